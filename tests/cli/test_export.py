"""The verb `export`: every format of runs over lines, planes, shots and volumes, its options, and its refusals."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ismrmrd
import nibabel
import numpy as np
import pydicom
import pypulseq
import pytest

from mri_design import load_phantom
from mri_design.evaluation import read_csv
from mri_design.runs.export import DEFAULTS
from mri_design.scan import SliceGeometry
from mri_design.scan.io import read, read_pair
from mri_design.scan.writing import mrd_scan_bytes
from mri_design.sequences import GridOrder, SequenceSettings, load_scanner
from mri_design.sequences.pulseq_file import pulseq_file
from tests.cli.folders import Designed, Run


def test_options_reach_the_sequence(designed: Designed, run: Run, tmp_path: Path) -> None:
    words = ["--to", "seq", "--fov", "0.24", "--sequence", "tse", "--scanner", "siemens-prisma", "--te", "0.02"]
    words += ["--tr", "0.5", "--flip", "120", "--bandwidth", "400", "--thickness", "0.003", "--resolution", "0.006"]
    run("export", designed[0], *words, "--etl", "1", "--dummies", "2", "--out", tmp_path / "a.seq", code=0)
    text = (tmp_path / "a.seq").read_text()
    for definition in ("Matrix 40 24 1", "TE 0.02", "TR 0.5", "FlipAngle 120", "SliceThickness 0.003"):
        assert f"\n{definition} \n" in text


@pytest.mark.parametrize("kind", DEFAULTS)
def test_the_defaults_can_be_played_with_256_lines_on_the_default_scanner(kind: str) -> None:
    settings = SequenceSettings(kind=kind, field_of_view=(0.22, 0.22), samples=256, **DEFAULTS[kind])
    trains = (tuple(range(0, 256, 16)),)
    assert pulseq_file(GridOrder(trains, 256), settings, load_scanner("generic"))[1].largest_error < 1e-3


def test_the_image_of_a_dicom_scan_is_its_patient_s(run: Run, tmp_path: Path, work: Path) -> None:
    np.save(tmp_path / "image.npy", np.abs(np.load(work / "scan.npz")["reference"][0]))
    run("convert", tmp_path / "image.npy", tmp_path / "image.dcm", "--fov", "0.24,0.2", code=0)
    file = pydicom.dcmread(tmp_path / "image.dcm")
    file.PatientID, file.PatientName, file.StudyInstanceUID = "77", "Somebody^Else", "1.2.3"
    file.save_as(tmp_path / "image.dcm")
    (tmp_path / "plain.toml").write_text('[simulation]\nmatrix = 40\n[reconstruction]\nmethod = "zero-filled"\n')
    words = ["--recipe", tmp_path / "plain.toml", "--out", tmp_path / "recon"]
    run("recon", tmp_path / "image.dcm", *words, code=0)
    assert "Somebody" not in (tmp_path / "recon/report.html").read_text()
    run("export", tmp_path / "recon", "--to", "dicom", "--out", tmp_path / "a.dcm", code=0)
    made = pydicom.dcmread(tmp_path / "a.dcm")
    assert (made.PatientID, str(made.PatientName), made.StudyInstanceUID) == ("77", "Somebody^Else", "1.2.3")
    assert made.SourceImageSequence[0].ReferencedSOPInstanceUID == file.SOPInstanceUID
    assert list(made.PixelSpacing) == [6, 6]
    assert list(made.pixel_array.shape) == [40, 40]


@pytest.fixture(scope="module")
def known(work: Path, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose scan's header says a place, 4 mm, 12 ms, 150 ms, 25 degrees, a protocol, a patient and a study."""
    folder = tmp_path_factory.mktemp("known")
    place = SliceGeometry((10.0, 10.0), 4.0, (1.0, 2.0, 3.0), *np.eye(3).tolist())
    (folder / "scan.h5").write_bytes(mrd_scan_bytes(read(work / "scan.npz"), (place,)))
    with ismrmrd.Dataset(str(folder / "scan.h5"), mode="r+") as file:
        said = ismrmrd.xsd.CreateFromDocument(file.read_xml_header())
        said.sequenceParameters = ismrmrd.xsd.sequenceParametersType(TR=[150.0], TE=[12.0], flipAngle_deg=[25.0])
        said.measurementInformation = ismrmrd.xsd.measurementInformationType(
            protocolName="brain", patientPosition="HFS"
        )
        said.subjectInformation = ismrmrd.xsd.subjectInformationType(patientName="Somebody^Else", patientID="77")
        said.studyInformation = ismrmrd.xsd.studyInformationType(studyInstanceUID="not an identifier", studyID="5")
        file.write_xml_header(ismrmrd.xsd.ToXML(said).encode())
    run("recon", folder / "scan.h5", "--recipe", "fast.toml", "--out", folder / "recon", code=0)
    return folder / "recon"


def test_what_the_scan_had_is_what_its_sequence_and_its_image_have(known: Path, run: Run, tmp_path: Path) -> None:
    run("export", known, "--to", "seq", "--out", tmp_path / "a.seq", code=0)
    text = (tmp_path / "a.seq").read_text()
    for definition in ("TE 0.012", "TR 0.15", "FlipAngle 25", "SliceThickness 0.004", "FOV 0.2 0.24 0.004"):
        assert f"\n{definition} \n" in text
    run("export", known, "--to", "dicom", "--out", tmp_path / "a.dcm", code=0)
    file = pydicom.dcmread(tmp_path / "a.dcm")
    assert (file.EchoTime, file.RepetitionTime, file.FlipAngle, file.ProtocolName) == (12, 150, 25, "brain")
    assert (file.PatientID, str(file.PatientName), file.StudyID) == ("77", "Somebody^Else", "5")
    assert file.StudyInstanceUID.is_valid and "SourceImageSequence" not in file
    assert "Somebody" not in (known / "report.html").read_text()


def test_what_is_exported_as_a_table_is_a_mask_of_recon(designed: Designed, run: Run, tmp_path: Path) -> None:
    for name in ("order.csv", "order.npy", "mask.cfl"):
        run("export", designed[0], "--to", name.partition(".")[2], "--out", tmp_path / name, code=0)
    for mask in (tmp_path / "order.csv", tmp_path / "order.npy", tmp_path / "mask.cfl", designed[0] / "lines.csv"):
        out = tmp_path / f"recon-{mask.parent.name}-{mask.name}"
        run("recon", "scan.npz", "--mask", mask, "--recipe", "fast.toml", "--no-report", "--out", out, code=0)
        np.testing.assert_array_equal(np.load(out / "mask.npy"), np.load(designed[0] / "mask.npy"))


PLAIN = '[simulation]\nmatrix = 16\n[reconstruction]\nmethod = "zero-filled"\n'
Beyond = Callable[[str], Path]


@pytest.fixture(scope="module")
def beyond(work: Path, run: Run) -> Beyond:
    """(encoding) -> the folder of a small design; (encoding-recon) -> that of a reconstruction of what it measured."""
    (work / "plain.toml").write_text(PLAIN)
    words = {
        "plane": ("--samples", 40, "--strategy", "vd-polynomial"),
        "radial": ("--shots", 6, "--strategy", "golden"),
        "spiral": ("--shots", 4, "--strategy", "full-turn"),
    }

    def make(encoding: str) -> Path:
        out = work / f"beyond-{encoding}"
        if not out.exists():
            design = encoding.removesuffix("-recon")
            if design == encoding:
                called = ("design", "phantom:brain", "--encoding", encoding, *words[encoding])
            elif design == "plane":
                called = ("recon", "phantom:brain", "--mask", make(design) / "mask.npy")
            else:
                called = ("recon", make(design) / "trajectory.npz")
            run(*called, "--recipe", "plain.toml", "--out", out, code=0)
        return out

    return make


@pytest.mark.parametrize("encoding", ["plane", "radial", "spiral"])
def test_a_design_is_played(beyond: Beyond, run: Run, tmp_path: Path, encoding: str) -> None:
    folder, plane = beyond(encoding), encoding == "plane"
    words = ("--to", "seq", "--fov", "0.24", *(("--thickness", "0.16") * plane), "--tr", "0.04")
    run("export", folder, *words, "--out", tmp_path / "a.seq", code=0)
    played = pypulseq.Sequence()
    played.read(str(tmp_path / "a.seq"))
    trajectory = played.calculate_kspace()[0]
    if plane:
        places = trajectory.reshape(3, 40, 16)[1:, :, 0] * np.array([[0.24], [0.16]])
        measured = np.zeros((16, 16), dtype=bool)
        measured[tuple(np.rint(places).astype(int) + 8)] = True
        np.testing.assert_array_equal(measured, np.load(folder / "mask.npy"))
        np.testing.assert_allclose(places, np.rint(places), atol=1e-3)
    else:
        wanted = np.load(folder / "trajectory.npz")["trajectory"]  # columns ky, kx
        found = trajectory.reshape(3, *wanted.shape[:2])[:2] * 0.24
        np.testing.assert_allclose(found[::-1].transpose(1, 2, 0), wanted, atol=1e-3)


@pytest.mark.parametrize(
    ("encoding", "words", "code", "option"),
    [
        ("lines", "seq --fov 240", 2, "--fov"),
        ("lines", "seq --fov 0.24 --te 0.001", 2, "--te"),
        ("lines", "seq --fov 0.24 --sequence epi", 2, "epi"),
        ("lines", "seq --fov 0.24 --scanner missing.toml", 3, "missing.toml"),
        ("lines", "seq --fov 0.24 --sequence tse", 2, "--sequence"),
        ("lines", "seq --fov 0.24 --sequence gre --etl 4", 2, "--etl"),
        ("lines", "csv --etl 4", 2, "--etl"),
        ("plane", "seq --thickness 0.1", 2, ""),
        ("plane", "seq --fov 0.24", 2, ""),
        ("plane", "mrd --fov 0.24", 2, ""),
        ("plane-recon", "seq --fov 0.24 --thickness 0.1", 2, ""),
        ("radial-recon", "seq --fov 0.24", 2, ""),
        ("radial", "seq --fov 0.24,0.2", 2, ""),
        ("radial", "seq --fov 0.24 --resolution 0.01", 2, ""),
        ("radial", "npy", 2, ""),
        ("spiral", "seq --fov 0.24 --bandwidth 3000", 3, ""),
    ],
)
def test_refusals_name_the_option_and_nothing_is_written(
    designed: Designed, beyond: Beyond, run: Run, tmp_path: Path, encoding: str, words: str, code: int, option: str
) -> None:
    folder, form = designed[0] if encoding == "lines" else beyond(encoding), words.partition(" ")[0]
    out = tmp_path / f"a.{form.replace('mrd', 'h5')}"
    assert option in run("export", folder, "--to", *words.split(), "--out", out, code=code).stderr
    assert list(tmp_path.iterdir()) == []


def test_samples_of_a_plane_go_to_tables_arrays_and_bart(beyond: Beyond, run: Run, tmp_path: Path) -> None:
    folder = beyond("plane")
    for name in ("a.csv", "a.npy", "a.cfl"):
        run("export", folder, "--to", name[2:], "--out", tmp_path / name, code=0)
    mask, rows = np.load(folder / "mask.npy"), read_csv(tmp_path / "a.csv")
    samples = np.load(tmp_path / "a.npy")
    assert samples.shape == (40, 2) and list(rows[0]) == ["order", "sample", "ky", "kz", "shot", "echo"]
    found = np.zeros((16, 16), dtype=bool)
    found[tuple(samples.T)] = True
    np.testing.assert_array_equal(found, mask)
    assert [(row["ky"], row["kz"]) for row in rows] == [(y - 8, z - 8) for y, z in samples.tolist()]
    np.testing.assert_array_equal(read_pair(tmp_path / "a.cfl").squeeze() != 0, mask)
    assert read_pair(tmp_path / "a.cfl").shape[:3] == (1, 16, 16)
    assert [row["sample"] for row in rows] == [row["sample"] for row in read_csv(folder / "samples.csv")]
    words = ("--mask", tmp_path / "a.cfl", "--recipe", "plain.toml", "--out", tmp_path / "again")
    run("recon", "phantom:brain", *words, code=0)
    np.testing.assert_array_equal(np.load(tmp_path / "again/mask.npy"), mask)
    np.testing.assert_array_equal(np.load(tmp_path / "again/recon.npy"), np.load(beyond("plane-recon") / "recon.npy"))


def test_coil_maps_are_kept_drawn_and_exported(run: Run, tmp_path: Path, work: Path) -> None:
    (work / "coils.toml").write_text(PLAIN.replace("16", "24\ncoils = 3") + "[coils]\ncalibration_lines = 10\n")
    scan = tmp_path / "scan"
    run("convert", "phantom:brain", tmp_path / "true.cfl", "--recipe", "coils.toml", code=0)
    for half in ("hdr", "cfl"):  # without its maps, which have to be estimated
        shutil.copy(tmp_path / f"true.{half}", scan.with_suffix(f".{half}"))
    out = tmp_path / "run"
    run("recon", tmp_path / "scan.cfl", "--recipe", "coils.toml", "--no-report", "--out", out, code=0)
    maps = np.load(out / "coil_maps.npy")
    assert maps.shape == (3, 24, 24) and maps.dtype == np.complex64
    np.testing.assert_allclose(np.linalg.norm(maps, axis=0), 1, atol=1e-5)
    for form in ("cfl", "npy"):
        run("export", out, "--to", form, "--out", tmp_path / f"a.{form}", code=0)
    np.testing.assert_array_equal(np.load(tmp_path / "a_maps.npy"), maps)
    np.testing.assert_array_equal(read_pair(tmp_path / "a_maps.cfl").squeeze(), maps.T)
    # They are those of the scan's own coils, not of whitened ones: as given maps they lead to the same image.
    words = ("--maps", tmp_path / "a_maps.cfl", "--recipe", "coils.toml", "--out", tmp_path / "again")
    run("recon", tmp_path / "scan.cfl", *words, code=0)
    np.testing.assert_allclose(np.load(tmp_path / "again/recon.npy"), np.load(out / "recon.npy"), rtol=1e-3, atol=1e-3)


COUNT, GAP = 3, 6.5
TILT = np.array([[0.0, 1.0, 0.0], [0.8, 0.0, -0.6], [-0.6, 0.0, -0.8]])
"""Directions of ky, kx and across the slices: oblique."""
FIRST = SliceGeometry((2.0, 3.0), 5.0, (10.0, -20.0, 30.0), *map(tuple, TILT.tolist()))


def place(number: int) -> SliceGeometry:
    """Slices of 5 mm, 6.5 mm apart."""
    return replace(FIRST, centre=tuple(np.array(FIRST.centre) + GAP * number * TILT[2]))


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Slices of an ISMRMRD file, the second one above the third, as scanners number them that interleave slices."""
    data = load_phantom("brain", shape=(24, 20), noise=1e-3, rng=np.random.default_rng(0))
    kspace = np.concatenate([data.kspace * (1 + k) for k in range(COUNT)])
    places = (place(0), place(2), place(1))
    path = tmp_path_factory.mktemp("scan") / "scan.h5"
    made = replace(data, kspace=kspace, reference=None, geometry=places)
    path.write_bytes(mrd_scan_bytes(made, places))
    return path


@pytest.fixture(scope="module")
def reconstructed(scan: Path, work: Path, run: Run) -> Path:
    out = scan.with_name("run")
    run("recon", scan, "--recipe", "quick.toml", "--no-report", "--jobs", 1, "--out", out, code=(0, 4))
    return out


def where(number: int, row: int, column: int) -> np.ndarray:
    """A pixel's place in the patient's coordinates of DICOM."""
    (dy, dx), centre = FIRST.pixel, np.array(place(number).centre)
    return np.asarray(centre + dy * (row - 12) * TILT[0] + dx * (column - 10) * TILT[1])


def test_a_nifti_volume_has_its_slices_where_they_lie(reconstructed: Path, run: Run, tmp_path: Path) -> None:
    run("export", reconstructed, "--to", "nifti", "--out", tmp_path / "v.nii.gz", code=0)
    volume, images = nibabel.load(tmp_path / "v.nii.gz"), np.abs(np.load(reconstructed / "recon.npy"))
    assert volume.shape == (20, 24, COUNT) and int(volume.header["sform_code"]) == 1
    np.testing.assert_allclose(volume.header.get_zooms(), (3, 2, GAP), rtol=1e-5)
    for above, number in enumerate((0, 2, 1)):
        np.testing.assert_array_equal(volume.get_fdata(dtype=np.float32)[:, :, above], images[number].T)
        for row, column in ((0, 0), (23, 4)):
            found = volume.affine @ (column, row, above, 1)
            np.testing.assert_allclose(found[:3], where(above, row, column) * (-1, -1, 1), atol=1e-3)
    std = nibabel.load(tmp_path / "v_std.nii.gz")
    np.testing.assert_array_equal(std.get_fdata(dtype=np.float32)[:, :, 2], np.load(reconstructed / "std.npy")[1].T)


def test_dicom_has_a_file_for_every_slice_in_one_series(reconstructed: Path, run: Run, tmp_path: Path) -> None:
    run("export", reconstructed, "--to", "dicom", "--out", tmp_path / "v.dcm", code=0)
    images = np.abs(np.load(reconstructed / "recon.npy"))
    files = [pydicom.dcmread(tmp_path / f"v_{n:04d}.dcm") for n in (1, 2, 3)]
    assert len({file.SeriesInstanceUID for file in files}) == 1 and len({file.SOPInstanceUID for file in files}) == 3
    assert len({float(file.RescaleSlope) for file in files}) == 1
    for file, image, above in zip(files, images, (0, 2, 1), strict=True):
        shown = file.pixel_array * float(file.RescaleSlope)
        np.testing.assert_allclose(shown, image, atol=float(images.max()) / 65000)
        np.testing.assert_allclose(file.ImagePositionPatient, where(above, 0, 0), atol=1e-4)
        np.testing.assert_allclose(file.ImageOrientationPatient, [*TILT[1], *TILT[0]], atol=1e-6)
    assert (tmp_path / "v_std_0003.dcm").is_file()
