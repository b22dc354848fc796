"""`export` of designs over a plane, spokes and spirals, and of reconstructions of what they measured."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

Run = Callable[..., Result]
PLAIN = '[simulation]\nmatrix = 16\n[reconstruction]\nmethod = "zero-filled"\n'


@pytest.fixture(scope="module")
def beyond(work: Path, run: Run) -> Callable[[str], Path]:
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
            result = run(*called, "--recipe", "plain.toml", "--out", out)
            assert result.exit_code == 0, result.output
        return out

    return make


def test_a_plane_is_played(beyond: Callable[[str], Path], run: Run, tmp_path: Path) -> None:
    pypulseq = pytest.importorskip("pypulseq")
    folder = beyond("plane")
    words = ("--to", "seq", "--fov", "0.24", "--slice", "0.16", "--tr", "0.04", "--out", tmp_path / "a.seq")
    result = run("export", folder, *words)
    assert result.exit_code == 0, result.output
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


def test_spokes_are_played(beyond: Callable[[str], Path], run: Run, tmp_path: Path) -> None:
    pypulseq = pytest.importorskip("pypulseq")
    folder = beyond("radial")
    result = run("export", folder, "--to", "seq", "--fov", "0.24", "--tr", "0.04", "--out", tmp_path / "a.seq")
    assert result.exit_code == 0, result.output
    assert "gre, 6 spokes of 16 samples" in result.stdout
    played = pypulseq.Sequence()
    played.read(str(tmp_path / "a.seq"))
    found = played.calculate_kspace()[0].reshape(3, 6, 16)[:2] * 0.24
    wanted = np.load(folder / "trajectory.npz")["trajectory"]  # columns ky, kx
    np.testing.assert_allclose(found[::-1].transpose(1, 2, 0), wanted, atol=1e-3)


def test_arms_of_spirals_are_played(beyond: Callable[[str], Path], run: Run, tmp_path: Path) -> None:
    pypulseq = pytest.importorskip("pypulseq")
    folder = beyond("spiral")
    result = run("export", folder, "--to", "seq", "--fov", "0.24", "--tr", "0.04", "--out", tmp_path / "a.seq")
    assert result.exit_code == 0, result.output
    wanted = np.load(folder / "trajectory.npz")["trajectory"]  # columns ky, kx
    assert f"gre, 4 arms of spirals of {wanted.shape[1]} samples" in result.stdout
    assert "Pixels of 15 x 15 mm (ky x kx)" in result.stdout
    played = pypulseq.Sequence()
    played.read(str(tmp_path / "a.seq"))
    found = played.calculate_kspace()[0].reshape(3, 4, -1)[:2] * 0.24
    np.testing.assert_allclose(found[::-1].transpose(1, 2, 0), wanted, atol=1e-3)


@pytest.mark.parametrize(
    ("encoding", "measured"),
    [
        ("plane", "40 of 256 samples"),
        ("plane-recon", "40 of 256 samples"),
        ("radial", "6 of 6 shots"),
        ("radial-recon", "6 of 6 readouts"),
        ("spiral", "4 of 4 shots"),
    ],
)
def test_images_of_every_run_are_exported_with_their_error_bars(
    beyond: Callable[[str], Path], run: Run, tmp_path: Path, encoding: str, measured: str
) -> None:
    nibabel, pydicom = pytest.importorskip("nibabel"), pytest.importorskip("pydicom")
    copy = tmp_path / "run"
    shutil.copytree(beyond(encoding), copy)
    image = np.abs(np.load(copy / "recon.npy"))
    np.save(copy / "std.npy", image / 10)
    for name in ("a.nii", "a.dcm"):
        form = {"nii": "nifti", "dcm": "dicom"}[name[2:]]
        result = run("export", copy, "--to", form, "--fov", "0.24", "--out", tmp_path / name)
        assert result.exit_code == 0, result.output
    for name, wanted in (("a", image), ("a_std", image / 10)):
        volume, file = nibabel.load(tmp_path / f"{name}.nii"), pydicom.dcmread(tmp_path / f"{name}.dcm")
        np.testing.assert_allclose(volume.get_fdata()[:, :, 0].T, wanted, rtol=1e-6)
        np.testing.assert_allclose(file.pixel_array * float(file.RescaleSlope), wanted, atol=1e-4 * wanted.max())
        assert volume.header.get_zooms()[:2] == pytest.approx((15, 15)) and list(file.PixelSpacing) == [15, 15]
        assert file.DerivationDescription == f"{measured}, reconstructed by mri-design"


@pytest.mark.parametrize(
    ("encoding", "words", "code", "said"),
    [
        ("plane", ("--to", "seq", "--slice", "0.1"), 2, "give its extent along ky and kx, as --fov 0.24"),
        ("plane", ("--to", "seq", "--fov", "0.24"), 2, "as --slice 0.16"),
        ("plane", ("--to", "csv"), 2, "samples.csv has their order and --to seq makes a sequence"),
        ("plane-recon", ("--to", "npy"), 2, "--to nifti and --to dicom take its image, mask.npy has the samples"),
        ("plane-recon", ("--to", "seq", "--fov", "0.24", "--slice", "0.1"), 2, "of the design that chose them"),
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
    beyond: Callable[[str], Path],
    run: Run,
    tmp_path: Path,
    encoding: str,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    pytest.importorskip("pypulseq")
    result = run("export", beyond(encoding), *words, "--out", tmp_path / f"a.{words[1]}")
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_samples_that_are_not_those_of_the_mask_are_refused(
    beyond: Callable[[str], Path], run: Run, tmp_path: Path
) -> None:
    pytest.importorskip("pypulseq")
    folder, copy = beyond("plane"), tmp_path / "copy"
    copy.mkdir()
    for name in ("samples.csv", "manifest.json"):
        (copy / name).write_bytes((folder / name).read_bytes())
    mask = np.load(folder / "mask.npy")
    np.save(copy / "mask.npy", ~mask)
    words = ("--to", "seq", "--fov", "0.24", "--slice", "0.16", "--out", tmp_path / "a.seq")
    result = run("export", copy, *words)
    assert result.exit_code == 3 and "40 samples other than those of mask.npy" in result.stderr
    np.save(copy / "mask.npy", mask.astype(np.uint8))
    assert "bool (ky, kz)" in run("export", copy, *words).stderr
