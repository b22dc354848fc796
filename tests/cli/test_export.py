"""The verb `export`: every format of a real run, its options, and its refusals."""

from pathlib import Path

import ismrmrd
import numpy as np
import pytest

from mri_design.runs.export import DEFAULTS
from mri_design.scan import SliceGeometry
from mri_design.scan.io import read
from mri_design.scan.writing import mrd_scan_bytes
from mri_design.sequences import LineOrder, SequenceSettings, load_scanner
from mri_design.sequences.pulseq_file import pulseq_file
from tests.cli.folders import Designed, Run

pydicom = pytest.importorskip("pydicom")
pytest.importorskip("pypulseq")


@pytest.mark.parametrize(
    ("words", "code", "option"),
    [
        ("--fov 240", 2, "--fov"),
        ("--fov 0.24 --te 0.001", 2, "--te"),
        ("--fov 0.24 --sequence epi", 2, "epi"),
        ("--fov 0.24 --scanner missing.toml", 3, "missing.toml"),
        ("--fov 0.24 --sequence tse", 2, "--sequence"),
        ("--fov 0.24 --sequence gre --etl 4", 2, "--etl"),
        ("--to csv --etl 4", 2, "--etl"),
    ],
)
def test_refusals_name_the_option_and_nothing_is_written(
    designed: Designed, run: Run, tmp_path: Path, words: str, code: int, option: str
) -> None:
    out = tmp_path / ("a.csv" if "csv" in words else "a.seq")
    assert option in run("export", designed[0], "--to", "seq", *words.split(), "--out", out, code=code).stderr
    assert list(tmp_path.iterdir()) == []


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
    assert pulseq_file(LineOrder(trains, 256), settings, load_scanner("generic"))[1].largest_error < 1e-3


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
