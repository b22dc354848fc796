"""Run folders are read back; what is damaged or contradicts itself is refused with the file's name."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, UsageError
from mri_design.runs.stored_run import read_images, read_run
from tests.runs.export.conftest import IMAGE, LINES, PLACED, STD, TRAINS


def test_everything_comes_back(folder: Callable[..., Path]) -> None:
    run = read_run(folder(place=PLACED))
    assert run.name == "run"
    assert run.order.trains == tuple((line,) for line in LINES)
    assert run.order.n_lines == 16
    assert run.geometry == PLACED
    np.testing.assert_array_equal(run.image, IMAGE)
    np.testing.assert_array_equal(run.std, STD)


def test_the_order_of_measurement_goes_before_that_of_choice(folder: Callable[..., Path]) -> None:
    run = read_run(folder(trains=True, images=False))
    assert run.order.trains == tuple(map(tuple, TRAINS))
    assert run.image is None and run.std is None and run.geometry is None


def test_other_folders_are_refused(tmp_path: Path, folder: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="holds no finished run with a mask; give a folder of design, recon or"):
        read_run(tmp_path)
    path = folder()
    (path / "manifest.json").unlink()
    (path / "checkpoint.npz").touch()
    with pytest.raises(UsageError, match="finish it with --resume first"):
        read_run(path)


def without_lines(path: Path, counted: str) -> Path:
    """The same folder as one of a run that measured something else."""
    if counted == "samples":
        np.save(path / "mask.npy", np.ones(IMAGE.shape, dtype=bool))
    elif counted == "shots":
        (path / "shots.csv").write_text("order,shot\n0,8\n")
    else:
        (path / "manifest.json").write_text(json.dumps({"lines": [], "settings": {"readouts": 5}}))
    return path


@pytest.mark.parametrize(
    ("counted", "measured", "cure"),
    [
        ("samples", "192 of 192 samples", "--to cfl, csv and npy its samples"),
        ("shots", "5 of 16 shots", r"takes its trajectory\.npz to other formats"),
        ("readouts", "5 of 16 readouts", "makes a sequence of the design that chose it"),
    ],
)
def test_runs_over_anything_but_lines_have_images_and_no_lines(
    folder: Callable[..., Path], counted: str, measured: str, cure: str
) -> None:
    path = without_lines(folder(), counted)
    images = read_images(path)
    assert (images.counted, images.measured) == (counted, measured)
    np.testing.assert_array_equal(images.image, IMAGE)
    np.testing.assert_array_equal(images.std, STD)
    with pytest.raises(UsageError, match=f"no lines: --to nifti and --to dicom take its image.*{cure}"):
        read_run(path)


def test_images_of_a_trajectory_need_no_row_for_each_readout(folder: Callable[..., Path]) -> None:
    path = without_lines(folder(), "readouts")
    np.save(path / "mask.npy", np.ones(40, dtype=bool))
    assert read_images(path).image is not None
    (path / "manifest.json").write_text(json.dumps({"lines": LINES, "settings": {}}))
    with pytest.raises(InputError, match=r"run/recon\.npy: got shape \(16, 12\); wanted 40 rows, as mask\.npy"):
        read_images(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("manifest.json", b"{", "run/manifest.json"),
        ("manifest.json", b"", "empty file"),
        ("manifest.json", b"[]", "run/manifest.json"),
        ("manifest.json", b'{"lines": [], "settings": {}}', "run/manifest.json"),
        ("manifest.json", b'{"lines": [1.5], "settings": {}}', "run/manifest.json"),
        ("manifest.json", b'{"lines": [true], "settings": {}}', "run/manifest.json"),
        ("manifest.json", b'{"lines": [1], "settings": []}', "run/manifest.json"),
        ("manifest.json", b'{"lines": [8, 3, 12, 9, 1], "settings": {}}', "other than those of mask.npy"),
        ("manifest.json", b'{"lines": [8, 3, 12, 9, 0, 8], "settings": {}}', "line 8 twice"),
        ("manifest.json", b'{"lines": [8, 3, 12, 9, 99], "settings": {}}', "got 99"),
        ("manifest.json", b'{"lines": [8, 3, 12, 9, 0], "settings": {"geometry": 7}}', "geometry of a slice"),
        ("mask.npy", b"\x93NUMPY", "run/mask.npy"),
        ("recon.npy", b"no array", "run/recon.npy"),
        ("acquisition.csv", b"order,train,echo\n0,0,1\n", "run/acquisition.csv"),
        ("acquisition.csv", b"train,line\n0,8\n0,x\n", "run/acquisition.csv"),
        ("acquisition.csv", b"train,line\n0,8\n0,3\n", "other than those of mask.npy"),
        ("acquisition.csv", b"train,line\n0,8,3\n", "run/acquisition.csv"),
        ("acquisition.csv", b"\xff\xfe", "run/acquisition.csv"),
    ],
)
def test_damaged_files_are_refused(folder: Callable[..., Path], name: str, content: bytes, words: str) -> None:
    path = folder()
    (path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_run(path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("mask.npy", np.ones(16)),
        ("mask.npy", np.ones((4, 4, 4), dtype=bool)),
        ("recon.npy", STD),
        ("recon.npy", IMAGE[:8]),
        ("recon.npy", IMAGE[0]),
        ("recon.npy", np.where(STD > 0.9, np.nan, IMAGE)),
        ("std.npy", STD[:, :8]),
        ("std.npy", IMAGE),
    ],
)
def test_arrays_that_do_not_fit_are_refused(folder: Callable[..., Path], name: str, array: np.ndarray) -> None:
    path = folder()
    np.save(path / name, array)
    with pytest.raises(InputError, match=f"run/{name}"):
        read_run(path)


def test_a_manifest_without_geometry_is_no_fault(folder: Callable[..., Path]) -> None:
    path = folder(place=PLACED)
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["settings"]["geometry"]
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert read_run(path).geometry is None
