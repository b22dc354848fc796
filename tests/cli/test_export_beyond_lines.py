"""`export` of designs over a plane, spokes and spirals, and of reconstructions of what they measured."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mri_design.evaluation import read_csv
from mri_design.scan.io import read_pair
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
    ("encoding", "words", "code"),
    [
        ("plane", ("--to", "seq", "--thickness", "0.1"), 2),
        ("plane", ("--to", "seq", "--fov", "0.24"), 2),
        ("plane", ("--to", "mrd", "--fov", "0.24"), 2),
        ("plane-recon", ("--to", "seq", "--fov", "0.24", "--thickness", "0.1"), 2),
        ("radial-recon", ("--to", "seq", "--fov", "0.24"), 2),
        ("radial", ("--to", "seq", "--fov", "0.24,0.2"), 2),
        ("radial", ("--to", "seq", "--fov", "0.24", "--resolution", "0.01"), 2),
        ("radial", ("--to", "npy"), 2),
        ("spiral", ("--to", "seq", "--fov", "0.24", "--bandwidth", "3000"), 3),
    ],
)
def test_refusals(beyond: Beyond, run: Run, tmp_path: Path, encoding: str, words: tuple[str, ...], code: int) -> None:
    ending = {"mrd": "h5"}.get(words[1], words[1])
    run("export", beyond(encoding), *words, "--out", tmp_path / f"a.{ending}", code=code)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", ["plane", "plane-recon"])
def test_samples_of_a_plane_go_to_tables_arrays_and_bart(
    beyond: Beyond, run: Run, tmp_path: Path, encoding: str
) -> None:
    folder = beyond(encoding)
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
    if encoding == "plane":
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
    for form, name in (("cfl", "a.cfl"), ("npy", "a.npy"), ("nifti", "a.nii")):
        run("export", out, "--to", form, "--out", tmp_path / name, code=0)
    np.testing.assert_array_equal(np.load(tmp_path / "a_maps.npy"), maps)
    np.testing.assert_array_equal(read_pair(tmp_path / "a_maps.cfl").squeeze(), maps.T)
    file = nibabel.load(tmp_path / "a_maps.nii")
    np.testing.assert_array_equal(np.asarray(file.dataobj)[:, :, 0], maps.T)
    # They are those of the scan's own coils, not of whitened ones: as given maps they lead to the same image.
    words = ("--maps", tmp_path / "a_maps.cfl", "--recipe", "coils.toml", "--out", tmp_path / "again")
    run("recon", tmp_path / "scan.cfl", *words, code=0)
    np.testing.assert_allclose(np.load(tmp_path / "again/recon.npy"), np.load(out / "recon.npy"), rtol=1e-3, atol=1e-3)
