"""The verb `export`: every format of runs over lines, planes, shots and volumes, its options, and its refusals."""

import shutil
from collections.abc import Callable
from pathlib import Path

import ismrmrd
import numpy as np
import pydicom
import pypulseq
import pytest

from mri_design import KSpaceData
from mri_design.runs.export import DEFAULTS
from mri_design.scan import SliceGeometry
from mri_design.scan.io import read, read_pair
from mri_design.scan.writing import mrd_scan_bytes
from mri_design.sequences import GridOrder, SequenceSettings, load_scanner
from mri_design.sequences.pulseq_file import pulseq_file
from tests.cli.folders import Designed, Run


def test_options_reach_the_sequence(designed: Designed, run: Run, tmp_path: Path) -> None:
    words = ["--fov", "0.24", "--sequence", "tse", "--scanner", "siemens-prisma", "--te", "0.02"]
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
    run("export", known, "--out", tmp_path / "a.seq", code=0)
    text = (tmp_path / "a.seq").read_text()
    for definition in ("TE 0.012", "TR 0.15", "FlipAngle 25", "SliceThickness 0.004", "FOV 0.2 0.24 0.004"):
        assert f"\n{definition} \n" in text
    run("export", known, "--out", tmp_path / "a.dcm", code=0)
    file = pydicom.dcmread(tmp_path / "a.dcm")
    assert (file.EchoTime, file.RepetitionTime, file.FlipAngle, file.ProtocolName) == (12, 150, 25, "brain")
    assert (file.PatientID, str(file.PatientName), file.StudyID) == ("77", "Somebody^Else", "5")
    assert file.StudyInstanceUID.is_valid and "SourceImageSequence" not in file
    assert "Somebody" not in (known / "report.html").read_text()


def test_what_is_exported_as_a_mask_is_one_of_recon(designed: Designed, run: Run, tmp_path: Path) -> None:
    for name in ("order.npy", "mask.cfl"):
        run("export", designed[0], tmp_path / name, code=0)
    for mask in (tmp_path / "order.npy", tmp_path / "mask.cfl"):
        out = tmp_path / f"recon-{mask.parent.name}-{mask.name}"
        run("recon", "scan.npz", "--mask", mask, "--recipe", "fast.toml", "--no-report", "--out", out, code=0)
        np.testing.assert_array_equal(np.load(out / "mask.npy"), np.load(designed[0] / "mask.npy"))


PLAIN = '[input]\nmatrix = 16\n[reconstruction]\nmethod = "zero-filled"\n'
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
    words = ("--fov", "0.24", *(("--thickness", "0.16") * plane), "--tr", "0.04")
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
        ("radial", "h5", 2, ""),
        ("spiral", "seq --fov 0.24 --bandwidth 3000", 3, ""),
    ],
)
def test_refusals_name_the_option_and_nothing_is_written(
    designed: Designed, beyond: Beyond, run: Run, tmp_path: Path, encoding: str, words: str, code: int, option: str
) -> None:
    folder, form = designed[0] if encoding == "lines" else beyond(encoding), words.partition(" ")[0]
    out = tmp_path / f"a.{form.replace('mrd', 'h5')}"
    assert option in run("export", folder, out, *words.split()[1:], code=code).stderr
    assert list(tmp_path.iterdir()) == []


def test_coil_maps_are_kept_drawn_and_exported(run: Run, tmp_path: Path, work: Path) -> None:
    (work / "coils.toml").write_text(PLAIN.replace("16", "24") + "[simulation]\ncoils = 3\n[coils]\nmaps = 'auto:10'\n")
    scan = tmp_path / "scan"
    run("export", "phantom:brain", tmp_path / "true.cfl", "--recipe", "coils.toml", code=0)
    for half in ("hdr", "cfl"):  # without its maps, which have to be estimated
        shutil.copy(tmp_path / f"true.{half}", scan.with_suffix(f".{half}"))
    out = tmp_path / "run"
    run("recon", tmp_path / "scan.cfl", "--recipe", "coils.toml", "--no-report", "--out", out, code=0)
    maps = np.load(out / "coil_maps.npy")
    assert maps.shape == (3, 24, 24) and maps.dtype == np.complex64
    np.testing.assert_allclose(np.linalg.norm(maps, axis=0), 1, atol=1e-5)
    for form in ("cfl", "npy"):
        run("export", out, "--out", tmp_path / f"a.{form}", code=0)
    np.testing.assert_array_equal(np.load(tmp_path / "a_maps.npy"), maps)
    np.testing.assert_array_equal(read_pair(tmp_path / "a_maps.cfl").squeeze(), maps.T)
    # They are those of the scan's own coils, not of whitened ones: as given maps they lead to the same image.
    words = ("--maps", tmp_path / "a_maps.cfl", "--recipe", "coils.toml", "--out", tmp_path / "again")
    run("recon", tmp_path / "scan.cfl", *words, code=0)
    np.testing.assert_allclose(np.load(tmp_path / "again/recon.npy"), np.load(out / "recon.npy"), rtol=1e-3, atol=1e-3)


def test_a_field_of_view_that_nobody_knows_is_not_invented_on_the_way(run: Run, work: Path, tmp_path: Path) -> None:
    previous = "scan.npz"
    for name in ("a.h5", "b.cfl", "c.npz", "d.mrd"):
        run("export", previous, tmp_path / name, code=0)
        previous = str(tmp_path / name)
        scan = read(previous, isolated=False)
        assert isinstance(scan, KSpaceData) and scan.geometry is None
    out = tmp_path / "run"
    run("recon", previous, "--recipe", "fast.toml", "--out", out, code=0)
    run("export", out, "--out", tmp_path / "s.seq", code=2)
    run("export", out, "--out", tmp_path / "i.dcm", code=0)
    image = pydicom.dcmread(tmp_path / "i.dcm")
    assert "PixelSpacing" not in image and "SliceThickness" not in image
