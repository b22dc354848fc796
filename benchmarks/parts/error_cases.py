"""Images whose error bars are held against their errors: subjects, encodings, coils, masks and noise at random.

Subjects are for learning or for testing, never for both. Every case is made from its number alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from parts.exams import complete_image, designed_lines, random_lines, with_phase
from study.scans import LOW_FIELD_NOISE, NOISE, Scan, denoised, self_calibrated

from mri_design.experiment.calibration import calibrate
from mri_design.experiment.inputs import load_scan
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.model.slice import SliceModel
from mri_design.model.sparsity import Companion
from mri_design.operators.base import Array
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.operators.trajectory import golden_angles, interleaf_angles, radial_spokes, turned
from mri_design.readouts import PlaneReadouts
from mri_design.scan.data import ImageStack, KSpaceData, TrajectoryData
from mri_design.scan.scenes import simulate_coil_maps
from mri_design.scan.simulation import simulate_scan
from mri_design.scan.trajectories import GradientLimits, nyquist_turns, spiral_readout

Rng = np.random.Generator
ENCODINGS = ("lines", "lines, coils", "plane", "plane, coils", "shots", "shots, coils", "companion", "lines, designed")
"""Groups of cases, as tables name them."""
LOCAL = ("lines, local", "lines, coils, local", "plane, local", "plane, coils, local", "shots, local")
"""Groups of cases by the recipe ``local``."""
FURTHER = ("lines, coils, raw",)
"""Groups of cases that were added later: raw scans of several coils alone."""
SPLITS = ("learn", "test")
_HEADS = {"learn": range(12), "test": range(12, 24)}
_SUBJECTS = {"learn": {"6A": 2, "6B": 1}, "test": {"7A": 2, "7B": 2}}
_RAW = {
    "learn": ("mc_brain_cimax16", "mc_phantom_ffe12", "ge_pfile8", "mc_phantom_skyra32"),
    "test": ("mc_brain_8a", "mc_brain_prescan16"),
}


_FURTHER_RAW = {"learn": ("mc_brain_cimax2", "mc_phantom_cimax16"), "test": ("mc_phantom_skyra_gre2",)}


@dataclass(frozen=True)
class Truth:
    """An image that scans are simulated from.

    Parameters
    ----------
    group : str
        Subject: groups are left out together.
    name : str
        Of the image.
    image : complex array, shape (ky, kx)
        Of any size.
    beside : array, optional
        Another contrast or echo of it.
    noise : float
        Standard deviation of the noise of a usual scan, relative to the 99.5th percentile.
    """

    group: str
    name: str
    image: Array
    beside: Array | None = None
    noise: float = NOISE


@dataclass(frozen=True)
class Case:
    """A slice, the readouts that are measured, and the truth."""

    number: int
    split: str
    encoding: str
    group: str
    name: str
    mask: str
    slice_model: SliceModel
    lines: list[int]
    truth: Array
    recipe: Recipe
    raw: bool = False


@cache
def _contrast(data: Path, subject: str, contrast: str, index: int) -> Array:
    with np.load(data / f"mag3T_{subject}_{contrast}.npz", allow_pickle=False) as archive:
        return np.asarray(archive["image"][index].astype(float))


@cache
def truths(data: Path, split: str) -> list[Truth]:
    """All that there are of one split."""
    found: list[Truth] = []
    with np.load(data / "img_3T_complex.npz", allow_pickle=False) as archive:
        parts = archive["image"].astype(np.float32)
    found += [Truth(f"3T subject {n // 6}", f"3T {n}", parts[n, ..., 0] + 1j * parts[n, ..., 1]) for n in _HEADS[split]]
    for place, (subject, index) in enumerate(_SUBJECTS[split].items()):
        images = [_contrast(data, subject, name, index) for name in ("T2w", "T1w")]
        for turn, name in enumerate(("T2w", "T1w")):
            own, other = (_square(image) for image in (images[turn], images[1 - turn]))
            phased = with_phase(own, (place, turn, len(split)))
            found.append(Truth(subject, f"{subject} {name}", phased, other))
        for name, other_name in (("fse", "flair"), ("flair", "fse"), ("gre", "")):
            own = denoised(data / f"lf_{subject}_{name}.npy", index, 128, 0).reference
            beside = denoised(data / f"lf_{subject}_{other_name}.npy", index, 128, 0).reference if other_name else None
            found.append(Truth(subject, f"{subject} {name}", own, beside, LOW_FIELD_NOISE))
    if split == "learn":
        with np.load(data / "img_heart_complex.npz", allow_pickle=False) as archive:
            echoes = archive["image"].astype(np.float32)
        hearts = [echo[..., 0] + 1j * echo[..., 1] for echo in echoes]
        found += [Truth("heart", f"heart {n}", hearts[n], hearts[(n + 1) % 4]) for n in range(4)]
        for name in ("lf_4A_gre_sag", "lf_4B_fse_sag"):
            found += [
                Truth("4", f"{name} {n}", denoised(data / f"{name}.npy", n, 128, 0).reference, None, LOW_FIELD_NOISE)
                for n in (3, 6)
            ]
    else:
        found += [Truth("wrist", f"wrist {n}", denoised(data / "wrist_ap.npy", n, 128, 0).reference) for n in (2, 5, 8)]
        found.append(Truth("head sag", "head sag", denoised(data / "sc_head_sag.npy", 0, 128, 0).reference))
    return found


def _square(image: Array) -> Array:
    side = max(image.shape)
    before = [(side - n) // 2 for n in image.shape]
    return np.pad(image, [(b, side - n - b) for b, n in zip(before, image.shape, strict=True)])


def scan_of(truth: Truth, image: Array, rng: Rng, matrix: int, noise: float, coils: int) -> Scan:
    """A simulated scan of all lines."""
    phase = "own" if np.iscomplexobj(image) else "rough"
    stack = ImageStack(np.asarray(image)[None], truth.name)
    return Scan.of(truth.name, simulate_scan(stack, matrix=matrix, noise=noise, phase=phase, n_coils=coils, rng=rng))


def raw_scan(path: Path, matrix: int) -> Scan:
    """The middle of a raw scan's k-space, judged by its own complete image."""
    data = load_scan(str(path), Recipe(), 0).select_slice(0)
    kspace = data.kspace
    for axis in (2, 3):
        first = max(0, kspace.shape[axis] - matrix) // 2
        kspace = np.take(kspace, range(first, min(first + matrix, kspace.shape[axis] + first)), axis=axis)
    cropped = KSpaceData(kspace, np.ones(kspace.shape[2], dtype=bool), name=path.stem)
    return Scan.of(path.stem, cropped)


def case_of(data: Path, split: str, encoding: str, number: int) -> Case:
    """The case of a number."""
    rng = np.random.default_rng([SPLITS.index(split), (*ENCODINGS, *LOCAL, *FURTHER).index(encoding), number])
    kind, with_coils = encoding.split(",")[0], "coils" in encoding
    matrix = int(rng.choice([64, 96, 128], p=[0.25, 0.45, 0.3]))
    coils = int(rng.choice([2, 4, 8, 12, 16])) if with_coils else 1
    recipe = load_recipe("local" if encoding in LOCAL else "default")
    all_of = truths(data, split)
    if kind == "companion":
        all_of = [one for one in all_of if one.beside is not None]
    truth = all_of[int(rng.integers(len(all_of)))]
    noise = truth.noise * float(np.exp(rng.uniform(-0.7, 0.9)))
    if kind == "shots":
        return _along_shots(truth, rng, matrix, noise, coils, recipe, (number, split, encoding))
    if kind == "plane":
        recipe = recipe.replacing("design", encoding="plane")
    scan = scan_of(truth, truth.image, rng, matrix, noise, coils)
    name = truth.name
    further = encoding in FURTHER
    if with_coils and kind == "lines" and (further or rng.random() < 0.4):
        scan = raw_scan(data / f"{rng.choice(_RAW[split] + (_FURTHER_RAW[split] if further else ()))}.npy", matrix)
        name = scan.name
        truth = replace(truth, group=name)
    own_maps = with_coils and kind == "lines" and rng.random() < 0.5
    centre = 24 if own_maps else 0
    shown = scan.reference
    if own_maps:
        coil_images = _coil_images(scan)
        scan = self_calibrated(scan, centre)
    elif with_coils:
        scan = replace(scan, prepared=calibrate(scan.prepared, recipe))
    one = scan.prepared.slice_model(0, **recipe.slice_settings)
    mask, lines = _plane_mask(one, rng, with_coils) if kind == "plane" else _line_mask(one, rng, with_coils, centre)
    if encoding.endswith("designed"):
        strategy, wanted = "calibrated", max(len(lines), 12)
        mask, lines = strategy, designed_lines(one, [wanted], int(rng.integers(1 << 30)))[wanted]
    reference = shown
    if own_maps:  # whose phase is their own
        maps = one.calibrated(lines).maps
        assert maps is not None
        reference = np.sum(maps.conj() * coil_images, axis=0) / np.maximum(np.sum(np.abs(maps) ** 2, axis=0), 1e-6)
    if kind == "companion":
        assert truth.beside is not None
        other = scan_of(truth, truth.beside, rng, matrix, noise, 1)
        strength = str(rng.choice(["careful", "moderate", "strong"]))
        recipe = recipe.replacing("companion", strength=strength)
        one = replace(one, companions=(Companion(strength, np.abs(complete_image(other))),))
        mask += f", {strength}"
    return Case(
        number, split, encoding, truth.group, name, mask, one, lines, reference, recipe, name.startswith(("mc_", "ge_"))
    )


def _coil_images(scan: Scan) -> Array:
    """What the coils see, in the units of the calibrated data: of simulated scans without noise."""
    data, one = scan.prepared, scan.prepared.slice_model(0, **load_recipe("local").slice_settings)
    if data.reference is not None and one.maps is not None:
        return np.asarray(one.maps * scan.reference)
    return CentredFFT(one.shape).adjoint(one.kspace)


def _line_mask(one: SliceModel, rng: Rng, with_coils: bool, centre: int) -> tuple[str, list[int]]:
    n = one.shape[0]
    count = max(int(n * np.exp(rng.uniform(np.log(1 / 8), np.log(1 / 2)))), centre + 8, 10)
    middle = list(range(n // 2 - centre // 2, n // 2 + centre // 2))
    if with_coils and rng.random() < 0.5:
        held = middle or list(range(n // 2 - 4, n // 2 + 4))
        rest = np.linspace(rng.uniform(0, 2), n - 1, max(count - len(held), 4)).astype(int)
        return "equispaced", sorted({*held, *rest.tolist()})
    lines = random_lines(one, count, int(rng.integers(1 << 30)))
    return "density", sorted({*lines, *middle})


def _plane_mask(one: SliceModel, rng: Rng, with_coils: bool) -> tuple[str, list[int]]:
    plane = one.candidates
    assert isinstance(plane, PlaneReadouts)
    share = float(np.exp(rng.uniform(np.log(1 / 16), np.log(1 / 3))))
    power = float(rng.uniform(1, 3))
    density = 1 / (0.05 + plane.radius) ** power
    density /= density.sum()
    centre = plane.outwards[: max(int(plane.size * share / 8), 16)]
    drawn = rng.choice(plane.size, int(plane.size * share), replace=False, p=density)
    return f"power {power:.1f}", sorted({*centre.tolist(), *drawn.tolist()})


def _along_shots(
    truth: Truth, rng: Rng, matrix: int, noise: float, coils: int, recipe: Recipe, key: tuple[int, str, str]
) -> Case:
    image = scan_of(truth, truth.image, rng, matrix, 0.0, 1).prepared.reference
    assert image is not None
    least = 1 / 10 if coils > 1 else 1 / 5
    share = float(np.exp(rng.uniform(np.log(least), np.log(0.8))))
    if rng.random() < 0.6:
        count, name = max(int(share * matrix), 6), "spokes"
        shots = radial_spokes(matrix, golden_angles(count, tiny=int(rng.integers(1, 4))))
    else:
        count, name = 2 * int(rng.integers(4, 11)), "spirals"
        density = float(rng.choice([1.0, 1.5]))
        turns = nyquist_turns(matrix, min(4 * count, matrix // 2), density=density)
        arm = spiral_readout(
            matrix, turns, GradientLimits(amplitude=0.04, slew=150.0), field_of_view=0.24, density=density
        ).samples
        shots = turned(arm, interleaf_angles(count, "one-missing"))
    flat = np.ascontiguousarray(shots.reshape(-1, 2))
    maps = None if coils == 1 else simulate_coil_maps((matrix, matrix), coils, rng)
    X = NonUniformFourier(flat, (matrix, matrix), maps)
    clean = X(image[0].astype(np.complex128))
    noisy = clean + noise * (rng.standard_normal(clean.shape) + 1j * rng.standard_normal(clean.shape))
    made = TrajectoryData(
        noisy.reshape(1, coils, -1).astype(np.complex64),
        flat,
        (matrix, matrix),
        n_readouts=len(shots),
        name=truth.name,
        noise_variance=noise**2,
        coil_maps=None if maps is None else np.asarray(maps, dtype=np.complex64)[None],
    )
    prepared = calibrate(made, recipe)
    one = prepared.slice_model(0, **recipe.slice_settings)
    number, split, encoding = key
    reference = np.asarray(image[0] / prepared.unit)
    mask = f"{count} {name}"
    return Case(
        number, split, encoding, truth.group, truth.name, mask, one, list(range(one.candidates.size)), reference, recipe
    )
