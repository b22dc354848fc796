"""What an input is, in words: images, sequences and folders of runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import ImageStack, InputError, KSpaceData, Recipe, TrajectoryData, UsageError
from mri_design.design import TrainedDesign
from mri_design.experiment import calibration, load_scan, save_trained
from mri_design.operators import equispaced_angles, radial_spokes
from mri_design.runs.info import (
    describe_folder,
    describe_images,
    describe_input,
    describe_scan,
    describe_sequence,
    is_sequence,
    measured_how,
)
from mri_design.runs.stored_run import StoredRun, read_run
from mri_design.scan import Sampling, ScanSummary, SliceGeometry, SourceImage
from mri_design.sequences import load_scanner
from mri_design.sequences.pulseq_file import pulseq_file
from tests.numbers_in_text import numbers_in
from tests.refusals import refused
from tests.sequences.conftest import GRE, ORDER
from tests.stored_runs import left

PLACE = SliceGeometry((2.0, 1.5), 5.0, (1.0, 2.0, 3.0), (0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, -1.0))
STACK = ImageStack(np.arange(1.0, 241, dtype=np.float32).reshape(3, 8, 10), "head", {"file": "head.nii"}, PLACE)


def test_images_have_sizes_orientation_values_and_how_they_were_measured() -> None:
    rows = describe_images(STACK, Recipe().replacing("input", matrix=64).replacing("simulation", noise=0.02)).text
    assert numbers_in(rows["images"])[:3] == [3, 8, 10] and numbers_in(rows["values"]) == [1, 240]
    assert numbers_in(rows["field of view"]) == [16, 15, 2, 1.5, 5]
    assert rows["orientation"].startswith("transverse") and rows["file"] == "head.nii" and "64 x 64" in rows["use"]
    assert not {"noise", "measured lines", "fully sampled", "coil maps", "sequence"} & set(rows)
    uids = {"StudyInstanceUID": "1.2.3", "SOPClassUID": "1.2.4", "SOPInstanceUID": "1.2.5"}
    source = SourceImage({**uids, "ProtocolName": "t1_mprage", "FlipAngle": "9", "StudyDate": "20191231"})
    for change, label, numbers in (
        ({"geometry": None}, "orientation", []),
        ({"geometry": SliceGeometry((2.0, 1.5), None)}, "field of view", [16, 15, 2, 1.5]),
        ({"images": (STACK.images * 1j).astype(np.complex64)}, "values", [240]),
        ({"source": source}, "date", [2019, 12, 31]),
    ):
        assert numbers_in(describe_images(replace(STACK, **change), Recipe()).text.get(label, "")) == numbers


MANIFEST = {
    "command": ["design", "scan.h5", "--lines", "30"],
    "status": "converged",
    "inputs": [{"name": "scan.h5", "sha256": "0"}],
    "lines": list(range(30)),
}


def folder(path: Path, files: str = "mask.npy lines.csv report.html", **changes: Any) -> Path:
    (path / "run").mkdir()
    for name in files.split():
        (path / "run" / name).touch()
    (path / "run/manifest.json").write_text(json.dumps({**MANIFEST, **changes}))
    return path / "run"


PLANE = np.arange(120).reshape(12, 10) < 30


def run_left(path: Path, readouts: str, files: str) -> Path:
    """The folder of a run over 30 lines, samples of a plane, or shots, with further files."""
    mask = PLANE if readouts == "plane" else PLANE.ravel()
    image = np.ones(PLANE.shape, np.complex64) if readouts == "plane" else None
    made = left(path / "run", StoredRun(mask=mask, chosen=tuple(range(30)), readouts=readouts, image=image), **MANIFEST)
    for name in files.split():
        (made / name).touch()
    return made


@pytest.mark.parametrize(
    ("readouts", "files", "counted", "ways"),
    [
        ("lines", "lines.csv report.html", "lines", ("report.html", "recon SCAN --mask", "export")),
        ("", "report.html", "", ("report.html",)),
        ("plane", "samples.csv", "samples", ("recon SCAN --mask", ".seq --thickness")),
        ("plane", "", "samples", ("recon SCAN --mask",)),
        ("radial", "shots.csv trajectory.npz", "shots", ("trajectory.npz", ".seq")),
    ],
)
def test_a_folder_of_a_run_names_its_verb_what_was_measured_and_what_takes_it(tmp_path, readouts, files, counted, ways):
    compared = {"command": ["compare", "x.h5"], "lines": []}
    made = run_left(tmp_path, readouts, files) if readouts else folder(tmp_path, files, **compared)
    rows = describe_folder(made).text
    assert rows["run"].startswith("mri-design design " if readouts else "mri-design compare ")
    assert rows["ended"] == "converged" and rows["inputs"] == "scan.h5"
    assert {"lines", "samples", "shots"} & set(rows) == ({counted} if counted else set())
    assert not counted or rows[counted].startswith("30: 0, 1, 2,")
    assert rows["holds"] == ", ".join(sorted(path.name for path in made.iterdir() if not path.name.startswith(".")))
    assert all(way in rows["next"] for way in ways) and ("--mask" in rows["next"]) == ("SCAN" in "".join(ways))
    assert (".seq" in rows["next"]) == (".seq" in "".join(ways))
    if readouts:
        assert numbers_in(read_run(made).measured) == [30, 120]


def test_a_run_of_an_earlier_version_is_told_as_one(tmp_path: Path) -> None:
    made = run_left(tmp_path, "radial", "shots.csv trajectory.npz")
    (made / "result.npz").unlink()
    rows = describe_folder(made).text
    assert "version" in rows and not {"lines", "samples", "shots"} & set(rows)
    assert "trajectory.npz" in rows["next"] and "export" not in rows["next"]


@pytest.mark.parametrize("change", [{"lines": "all"}, {"command": None}, {"status": 3}])
def test_damaged_manifests_and_other_folders_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with refused(f"manifest.json: {next(iter(change))}"):
        describe_folder(folder(tmp_path, **change))
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError):
        describe_folder(tmp_path / "other")


TEXT = """# Pulseq sequence file
# Created by nobody

[VERSION]
major 1
minor 4
revision 1

[DEFINITIONS]
FOV 0.24 0.24 0.005
TE 0.01
kSpaceCenterLine 8

# Format of blocks
[BLOCKS]
1 10 1 0 0 0 0 0
2 20 0 3 0 0 1 0

[RF]
1 250 1 2 0 100 0 0
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "lines.seq"
    file.write_text(TEXT)
    return file


def test_a_sequence_is_described_and_half_of_one_and_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    assert is_sequence(path)
    rows = describe_sequence(path).text
    assert "1.4.1" in rows["sequence"] and numbers_in(rows["sequence"])[-1] == 2
    assert rows["FOV"] == "0.24 0.24 0.005 m" and rows["TE"] == "0.01 s" and rows["kSpaceCenterLine"] == "8"
    path.write_text(TEXT.partition("# Format of blocks")[0])
    with refused("lines.seq"):
        describe_sequence(path)
    (tmp_path / "text.txt").write_text("[BLOCKS]\n1\n")
    assert not any(is_sequence(tmp_path / name) for name in ("text.txt", "", "absent"))


def signed(text: str, kind: str = "md5", ends: str = "\n") -> bytes:
    hashed = hashlib.md5(text.encode()).hexdigest()
    return f"{text}\n[SIGNATURE]\n# About it\nType {kind}\nHash {hashed}\n".replace("\n", ends).encode()


def test_the_signature_is_checked(path: Path) -> None:
    for content, said in (
        (TEXT.encode(), "none"),
        (signed(TEXT), "matches"),
        (signed(TEXT, ends="\r\n"), "matches"),
        (signed(TEXT, kind="sha1"), "of type sha1"),
        (f"{TEXT}\n[SIGNATURE]\n# still to be made\n".encode(), "none"),
        (signed(TEXT).partition(b"Hash")[0], "none"),
    ):
        path.write_bytes(content)
        assert describe_sequence(path).text["signature"].startswith(said)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.replace(b"TE 0.01", b"TE 0.02"),
        lambda content: content.replace(b"2 20 0 3 0 0 1 0\n", b""),
        lambda content: content[:-4],
    ],
)
def test_a_sequence_that_was_changed_is_refused(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(signed(TEXT)))
    with refused("signature"):
        describe_sequence(path)


def test_what_the_package_writes_is_signed(tmp_path: Path) -> None:
    pytest.importorskip("pypulseq")
    made = pulseq_file(ORDER, GRE, load_scanner("generic"))
    (tmp_path / "a.seq").write_bytes(made[0])
    assert describe_sequence(tmp_path / "a.seq").text["signature"].startswith("matches")


def test_a_mask_is_told_as_one_and_not_as_a_scan(tmp_path: Path) -> None:
    lines = np.arange(48) % 3 == 0
    lines[20:28] = True
    np.save(tmp_path / "mask.npy", lines)
    rows = describe_input(str(tmp_path / "mask.npy"), Recipe()).text
    assert numbers_in(rows["mask"]) == [lines.sum(), 48, float(f"{48 / lines.sum():.4g}")]
    assert rows["centre"].startswith("8 lines") and "--mask" in rows["next"]
    np.save(tmp_path / "plane.npy", np.eye(8, dtype=bool))
    assert numbers_in(describe_input(str(tmp_path / "plane.npy"), Recipe()).text["mask"])[:3] == [8, 8, 8]
    with pytest.raises(UsageError):
        describe_input(str(tmp_path / "mask.npy"), Recipe(), tmp_path / "plane.npy")


def test_an_order_of_train_is_told_as_one(tmp_path: Path) -> None:
    known = {"grid": (8, 6), "lines": (4, 3, 5), "n_start": 1, "profile": np.ones((3, 8)), "rule": "residual-greedy"}
    save_trained(tmp_path / "order.npz", TrainedDesign(**known, errors=np.array([0.9, 0.5, 0.25])))
    rows = describe_input(str(tmp_path / "order.npz"), Recipe()).text
    assert rows["lines"] == "4, 3, 5" and rows["error"].startswith("0.25") and "trained:" in rows["next"]


def test_an_image_of_a_run_says_which_way_it_lies(tmp_path: Path) -> None:
    made = run_left(tmp_path, "lines", "")
    np.save(made / "recon.npy", np.ones((12, 10), np.complex64))
    rows = describe_input(str(made / "recon.npy"), Recipe()).text
    assert rows["shape"] == "12 x 10" and "axes" in rows
    np.save(tmp_path / "recon.npy", np.ones((12, 10), np.complex64))  # nobody knows of what
    assert numbers_in(describe_input(str(tmp_path / "recon.npy"), Recipe()).text["grid"])[0] == 12


def test_a_slice_with_nan_is_named_by_its_number(tmp_path: Path) -> None:
    stack = np.ones((3, 1, 12, 10), np.complex64)
    stack[2, 0, 3, 4] = np.nan
    np.save(tmp_path / "scan.npy", stack)
    with pytest.raises(InputError) as caught:
        describe_input(str(tmp_path / "scan.npy"), Recipe())
    assert "slice 2" in caught.value.field


ESPIRIT = Recipe().replacing("coils", maps="espirit")
OBLIQUE = SliceGeometry((2.0, 1.5), 5.0, (1.0, 2.0, 3.0), (0.0, 0.8, 0.6), (1.0, 0.0, 0.0), (0.0, -0.6, 0.8))
STRAIGHT = SliceGeometry((2.0, 1.5), None, (0.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))


def scan(measured: int = 24, **changes: object) -> KSpaceData:
    """Noise in three slices and two coils; by default its central 25 lines."""
    rng = np.random.default_rng(0)
    kspace = (rng.standard_normal((3, 2, 32, 32)) + 1j * rng.standard_normal((3, 2, 32, 32))).astype(np.complex64)
    lines = np.abs(np.arange(32) - 16) <= measured // 2
    kspace[:, :, ~lines] = 0
    kspace[1] *= 5
    return replace(KSpaceData(kspace, lines, noise_variance=1.0), **changes)  # type: ignore[arg-type]


def rows_of(data: KSpaceData, recipe: Recipe = ESPIRIT) -> dict[str, str]:
    return describe_scan(ScanSummary.of(data), recipe).text


@pytest.mark.parametrize(
    ("data", "recipe", "row", "numbers"),
    [
        (scan(), ESPIRIT, "coil maps", "ESPIRiT 24"),
        (scan(14), ESPIRIT, "coil maps", "ESPIRiT 15"),
        (scan(6), Recipe(), "coil maps", "NLINV 7"),
        (scan(4), ESPIRIT, "calibration", "8"),
        (scan(), ESPIRIT, "centre", "16 25 4-28"),
        (scan(), ESPIRIT, "field of view", ""),
        (scan(14, geometry=(OBLIQUE,) * 3), ESPIRIT, "field of view", "64 48 2 1.5 5"),
        (scan(14, geometry=(STRAIGHT, STRAIGHT, OBLIQUE)), ESPIRIT, "orientation", "sagittal oblique"),
        (scan(14), ESPIRIT, "measured lines", "15 32 0-8 24-31 2.13"),
        (scan(14), ESPIRIT, "fully sampled", "9 23 0-8"),
        (load_scan("phantom:lf-gre"), ESPIRIT, "measured lines", "195 196 1.01"),
        (scan(source=SourceImage({"EchoTime": "12.5"}, image=False)), ESPIRIT, "sequence", "12.5"),
        (scan(source=SourceImage({"StudyDate": "20200304"}, image=False)), ESPIRIT, "date", "2020-03-04"),
    ],
)
def test_rows_and_their_numbers(data, recipe, row, numbers, monkeypatch):
    monkeypatch.setattr(calibration, "estimate_coil_maps", None)  # making maps would fail
    text = rows_of(data, recipe)[row]
    assert all(number in text for number in numbers.split())


def test_rows_that_are_left_out() -> None:
    assert not {"orientation", "sequence", "date", "samples", "read from", "slices differ"} & set(rows_of(scan()))
    assert measured_how(SourceImage({"FlipAngle": "15"}, image=False)).text.keys() == {"sequence"}


def test_samples_of_a_plane_are_counted_one_by_one() -> None:
    plane = np.zeros((1, 1, 32, 32), np.complex64)
    held = np.random.default_rng(1).random((32, 32)) < 0.2
    held[12:20, 12:20] = True  # the calibration square counts like the others
    plane[0, 0, held] = scan(32).kspace[0, 0][held]
    rows = rows_of(KSpaceData(plane, held.any(axis=1), noise_variance=1.0))
    count = int(held.sum())
    assert f"{count} of 1024" in rows["samples"] and f"{1024 / count:.3g}" in rows["samples"]
    assert "acceleration" not in rows["measured lines"]


def test_noise_of_coils_is_told_as_it_is_in_the_file() -> None:
    rng = np.random.default_rng(1)
    noise = (rng.standard_normal((1, 2, 64, 64)) + 1j * rng.standard_normal((1, 2, 64, 64))).astype(np.complex64)
    covariance = np.array([[4.0, 3.0], [3.0, 9.0]], dtype=np.complex128)
    data = KSpaceData(1e3 * noise, np.ones(64, dtype=bool), noise_covariance=covariance)
    told = rows_of(data)["noise of coils"]
    assert {2, 3, 2.5, 0.5} <= {*numbers_in(told)}
    assert "noise of coils" not in rows_of(replace(data, noise_covariance=None, noise_variance=0.5))


def test_of_other_slices_the_headers_tell() -> None:
    whole = ScanSummary.of(scan(28))
    short = Sampling(whole.samplings[0].samples & (np.abs(np.arange(32) - 16) < 3)[:, np.newaxis])
    some = replace(whole, samplings=(short, *whole.samplings[1:]), by_headers=True)
    rows = describe_scan(some, Recipe()).text
    assert {"read from", "slices differ"} < set(rows) and "NLINV" in rows["coil maps"]
    assert "5" in describe_scan(some, ESPIRIT).text["calibration"]


@pytest.mark.parametrize("coils", [1, 2])
def test_samples_along_a_trajectory(coils: int) -> None:
    points = radial_spokes(32, equispaced_angles(12)).reshape(-1, 2)
    samples = np.random.default_rng(0).standard_normal((1, coils, len(points))).astype(np.complex64)
    data = TrajectoryData(samples, points, (32, 32), n_readouts=12, noise_variance=1.0)
    rows = describe_scan(data, Recipe()).text
    assert [numbers_in(rows[name])[:2] for name in ("trajectory", "grid")] == [[12, 32], [32, 32]]
    alone = describe_scan(data.only(np.arange(12) < 1), Recipe()).text
    assert 12 in numbers_in(rows["samples"]) and 12 not in numbers_in(alone["samples"])
    assert ("calibration" in alone) == (coils > 1) and ("noise" in rows) != ("calibration" in rows)
