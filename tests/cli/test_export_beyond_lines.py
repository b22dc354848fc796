"""`export` of designs over a plane, spokes and spirals, and of reconstructions of what they measured."""

import shutil
from collections.abc import Callable
from pathlib import Path

import ismrmrd
import numpy as np
import pytest

from mri_design.evaluation.tables import read_csv
from mri_design.scan.io.bart import read_pair
from tests.cli.folders import Run

nibabel = pytest.importorskip("nibabel")
pydicom = pytest.importorskip("pydicom")
pypulseq = pytest.importorskip("pypulseq")

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


def test_a_plane_is_played(beyond: Beyond, run: Run, tmp_path: Path) -> None:
    folder = beyond("plane")
    words = ("--to", "seq", "--fov", "0.24", "--thickness", "0.16", "--tr", "0.04", "--out", tmp_path / "a.seq")
    result = run("export", folder, *words, code=0)
    assert "gre, 40 samples of a plane of 16 x 16" in result.stdout
    assert "Voxels of 15 x 10 x 15 mm (ky x kz x kx)" in result.stdout
    played = pypulseq.Sequence()
    played.read(str(tmp_path / "a.seq"))
    places = played.calculate_kspace()[0].reshape(3, 40, 16)[1:, :, 0] * np.array([[0.24], [0.16]])
    measured = np.zeros((16, 16), dtype=bool)
    rows, columns = np.rint(places).astype(int) + 8
    measured[rows, columns] = True
    np.testing.assert_array_equal(measured, np.load(folder / "mask.npy"))
    np.testing.assert_allclose(places, np.rint(places), atol=1e-3)


@pytest.mark.parametrize(
    ("encoding", "said"), [("radial", "gre, 6 spokes of 16 samples"), ("spiral", "Pixels of 15 x 15 mm (ky x kx)")]
)
def test_shots_are_played(beyond: Beyond, run: Run, tmp_path: Path, encoding: str, said: str) -> None:
    folder, out = beyond(encoding), tmp_path / "a.seq"
    assert said in run("export", folder, "--to", "seq", "--fov", "0.24", "--tr", "0.04", "--out", out, code=0).stdout
    wanted = np.load(folder / "trajectory.npz")["trajectory"]  # columns ky, kx
    played = pypulseq.Sequence()
    played.read(str(out))
    found = played.calculate_kspace()[0].reshape(3, *wanted.shape[:2])[:2] * 0.24
    np.testing.assert_allclose(found[::-1].transpose(1, 2, 0), wanted, atol=1e-3)


@pytest.mark.parametrize(
    ("encoding", "words", "code", "said"),
    [
        ("plane", ("--to", "seq", "--thickness", "0.1"), 2, "give its extent along ky and kx, as --fov 0.24"),
        ("plane", ("--to", "seq", "--fov", "0.24"), 2, "as --thickness 0.16"),
        ("plane", ("--to", "mrd", "--fov", "0.24"), 2, "has no sizes; leave it out"),
        ("plane-recon", ("--to", "seq", "--fov", "0.24", "--thickness", "0.1"), 2, "of the design that chose them"),
        ("radial-recon", ("--to", "seq", "--fov", "0.24"), 2, "--to seq makes a sequence of the design that chose it"),
        ("radial", ("--to", "seq"), 2, "give the field of view, as --fov 0.24"),
        ("radial", ("--to", "seq", "--fov", "0.24,0.2"), 2, "spokes have one field of view"),
        ("radial", ("--to", "seq", "--fov", "0.24", "--resolution", "0.01"), 2, "leave out --resolution"),
        ("radial", ("--to", "seq", "--fov", "0.24", "--sequence", "tse"), 2, "gre for planes, spokes and spirals"),
        ("radial", ("--to", "npy"), 2, "--to seq makes a sequence of them"),
        ("spiral", ("--to", "seq"), 2, "a run over spirals does not say how large pixels are"),
        ("spiral", ("--to", "seq", "--fov", "0.24", "--resolution", "0.01"), 2, "leave out --resolution"),
        ("spiral", ("--to", "seq", "--fov", "0.24", "--bandwidth", "3000"), 3, "Take a bandwidth of at most 1388.9 Hz"),
    ],
)
def test_refusals(
    beyond: Beyond, run: Run, tmp_path: Path, encoding: str, words: tuple[str, ...], code: int, said: str
) -> None:
    ending = {"mrd": "h5"}.get(words[1], words[1])
    result = run("export", beyond(encoding), *words, "--out", tmp_path / f"a.{ending}", code=code)
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_samples_that_are_not_those_of_the_mask_are_refused(beyond: Beyond, run: Run, tmp_path: Path) -> None:
    folder, copy = beyond("plane"), tmp_path / "copy"
    copy.mkdir()
    for name in ("samples.csv", "manifest.json"):
        (copy / name).write_bytes((folder / name).read_bytes())
    mask = np.load(folder / "mask.npy")
    np.save(copy / "mask.npy", ~mask)
    words = ("--to", "seq", "--fov", "0.24", "--thickness", "0.16", "--out", tmp_path / "a.seq")
    result = run("export", copy, *words, code=3)
    assert "40 samples other than those of mask.npy" in result.stderr
    np.save(copy / "mask.npy", mask.ravel())
    assert "bool (ky, kz)" in run("export", copy, *words).stderr


def test_samples_of_a_plane_are_readouts_of_a_volume(beyond: Beyond, run: Run, tmp_path: Path) -> None:
    folder, out = beyond("plane"), tmp_path / "a.h5"
    assert "readouts with their labels" in run("export", folder, "--to", "mrd", "--out", out, code=0).stdout
    run("export", folder, "--to", "npy", "--out", tmp_path / "a.npy", code=0)
    with ismrmrd.Dataset(str(out), mode="r") as opened:
        (encoding,) = ismrmrd.xsd.CreateFromDocument(opened.read_xml_header()).encoding
        heads = [opened.read_acquisition(i).idx for i in range(opened.number_of_acquisitions())]
    labels = [(head.kspace_encode_step_1, head.kspace_encode_step_2) for head in heads]
    np.testing.assert_array_equal(labels, np.load(tmp_path / "a.npy"))
    size, along_z = encoding.encodedSpace.matrixSize, encoding.encodingLimits.kspace_encoding_step_2
    mask = np.load(folder / "mask.npy")
    assert (size.y, size.z) == mask.shape and (along_z.maximum, along_z.center) == (size.z - 1, size.z // 2)


@pytest.mark.parametrize("encoding", ["plane", "plane-recon"])
def test_samples_of_a_plane_go_to_tables_arrays_and_bart(
    beyond: Beyond, run: Run, tmp_path: Path, encoding: str
) -> None:
    folder, said = beyond(encoding), ""
    for name in ("a.csv", "a.npy", "a.cfl"):
        result = run("export", folder, "--to", name[2:], "--out", tmp_path / name, code=0)
        said += result.stdout
    mask, rows = np.load(folder / "mask.npy"), read_csv(tmp_path / "a.csv")
    samples = np.load(tmp_path / "a.npy")
    assert samples.shape == (40, 2) and list(rows[0]) == ["order", "sample", "ky", "kz", "shot", "echo"]
    found = np.zeros((16, 16), dtype=bool)
    found[tuple(samples.T)] = True
    np.testing.assert_array_equal(found, mask)
    assert [(row["ky"], row["kz"]) for row in rows] == [(y - 8, z - 8) for y, z in samples.tolist()]
    np.testing.assert_array_equal(read_pair(tmp_path / "a.cfl").squeeze() != 0, mask)
    assert read_pair(tmp_path / "a.cfl").shape[:3] == (1, 16, 16) and "mask (1 x 16 x 16, for bart pics -p)" in said
    if encoding == "plane":
        assert [row["sample"] for row in rows] == [row["sample"] for row in read_csv(folder / "samples.csv")]
    else:
        assert "by their numbers, because the run chose no order" in said
    words = ("--mask", tmp_path / "a.cfl", "--recipe", "plain.toml", "--out", tmp_path / "again")
    run("recon", "phantom:brain", *words, code=0)
    np.testing.assert_array_equal(np.load(tmp_path / "again/mask.npy"), mask)
    np.testing.assert_array_equal(np.load(tmp_path / "again/recon.npy"), np.load(beyond("plane-recon") / "recon.npy"))


def test_the_order_and_trains_of_a_plane_are_those_of_measurement(run: Run, tmp_path: Path, work: Path) -> None:
    words = ("--encoding", "plane", "--samples", 40, "--strategy", "vd-polynomial")
    (work / "trains.toml").write_text(PLAIN + '[design]\ntrain = 4\norder = "centre-out"\n')
    out = tmp_path / "run"
    run("design", "phantom:brain", *words, "--recipe", "trains.toml", "--out", out, code=0)
    for name in ("a.csv", "a.npy"):
        run("export", out, "--to", name[2:], "--out", tmp_path / name, code=0)
    played, rows = read_csv(out / "acquisition.csv"), read_csv(tmp_path / "a.csv")
    assert [row["sample"] for row in rows] == [row["sample"] for row in played]
    assert [row["echo"] for row in rows] == [row["echo"] for row in played] and rows[3]["echo"] == 4
    numbers = np.load(tmp_path / "a.npy") @ (16, 1)
    assert numbers.tolist() == [row["sample"] for row in played]


def test_coil_maps_are_kept_drawn_and_exported(run: Run, tmp_path: Path, work: Path) -> None:
    (work / "coils.toml").write_text(PLAIN.replace("16", "24\ncoils = 3") + "[coils]\ncalibration_lines = 10\n")
    scan = tmp_path / "scan"
    run("convert", "phantom:brain", tmp_path / "true.cfl", "--recipe", "coils.toml", code=0)
    for half in ("hdr", "cfl"):  # without its maps, which have to be estimated
        shutil.copy(tmp_path / f"true.{half}", scan.with_suffix(f".{half}"))
    out = tmp_path / "run"
    result = run("recon", tmp_path / "scan.cfl", "--recipe", "coils.toml", "--out", out, drawn=True, code=0)
    maps = np.load(out / "coil_maps.npy")
    assert maps.shape == (3, 24, 24) and maps.dtype == np.complex64
    np.testing.assert_allclose(np.linalg.norm(maps, axis=0), 1, atol=1e-5)
    assert (out / "figures/coil-maps.svg").is_file() and "Coil maps" in (out / "report.html").read_text()
    for form, name in (("cfl", "a.cfl"), ("npy", "a.npy"), ("nifti", "a.nii")):
        result = run("export", out, "--to", form, "--out", tmp_path / name, code=0)
        assert "coil maps" in result.stdout
    np.testing.assert_array_equal(np.load(tmp_path / "a_maps.npy"), maps)
    np.testing.assert_array_equal(read_pair(tmp_path / "a_maps.cfl").squeeze(), maps.T)
    file = nibabel.load(tmp_path / "a_maps.nii")
    np.testing.assert_array_equal(np.asarray(file.dataobj)[:, :, 0], maps.T)
    # They are those of the scan's own coils, not of whitened ones: as given maps they lead to the same image.
    words = ("--maps", tmp_path / "a_maps.cfl", "--recipe", "coils.toml", "--out", tmp_path / "again")
    run("recon", tmp_path / "scan.cfl", *words, code=0)
    np.testing.assert_allclose(np.load(tmp_path / "again/recon.npy"), np.load(out / "recon.npy"), rtol=1e-3, atol=1e-3)
    (out / "coil_maps.npy").write_bytes((tmp_path / "a.npy").read_bytes())
    result = run("export", out, "--to", "npy", "--out", tmp_path / "b.npy", code=3)
    assert "coil_maps.npy: got int64" in result.stderr


@pytest.mark.slow
def test_coil_maps_of_spokes_are_exported_for_bart(run: Run, tmp_path: Path, work: Path) -> None:
    pytest.importorskip("finufft")
    (work / "spokes.toml").write_text(PLAIN.replace("16", "24\ncoils = 3"))
    words = ("--encoding", "radial", "--shots", 24, "--strategy", "half-turn", "--recipe", "spokes.toml")
    run("design", "phantom:brain", *words, "--out", tmp_path / "run", code=0)
    result = run("export", tmp_path / "run", "--to", "cfl", "--out", tmp_path / "a.cfl", code=0)
    assert "mri-design convert takes samples and trajectory to BART" in result.stdout
    assert read_pair(tmp_path / "a_maps").shape[:4] == (24, 24, 1, 3) and not (tmp_path / "a.cfl").exists()
