"""A conversion: what a file holds, in the format that another file's name ends in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import UsageError, option
from mri_design.experiment.inputs import PHANTOM_PREFIX, load_scan, with_recipe_noise
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.sources import ALL_SLICES, SliceChoice, require_no_slices
from mri_design.kinds import KINDS
from mri_design.runs.provenance import centre_words, left_out_text, words
from mri_design.runs.stored_run import (
    NO_SIZES,
    MadeFiles,
    ending_of,
    name_beside,
    sentences,
    sized,
    unknown,
)
from mri_design.scan.data import ImageStack, KSpaceData, Scan, TrajectoryData
from mri_design.scan.io.atomic import npy_bytes, npz_bytes
from mri_design.scan.io.bart import is_bart, pair_of
from mri_design.scan.io.formats import read
from mri_design.scan.sampling import readouts_of_positions, refused_samples
from mri_design.scan.trajectories import maps_to_bart, planes_to_bart, samples_to_bart, to_bart
from mri_design.scan.writing import DicomLabels, dicom_bytes, mrd_scan_bytes, nifti_bytes, pair_files, stacked_slices

_PARTS = {
    "coil_maps": "coil maps",
    "noise_variance": "the noise variance",
    "noise_covariance": "the covariance of the noise",
    "calibration": "the calibration scan",
    "density": "the density compensation weights",
    "geometry": "sizes and places of slices",
    "reference": "the true image",
    "source": "identifiers of the patient and of the study",
    "phase": "the phase",
}
_NOISE = ("noise_variance", "noise_covariance")
_COMPANIONS = ("coil_maps", *_NOISE, "reference")
Content = KSpaceData | TrajectoryData | ImageStack
Written = tuple[dict[Path, bytes], tuple[str, ...]]
"""Files with their contents, and what they hold of `_PARTS`."""


def _header_file(stem: Path, scan: Scan, **facts: object) -> dict[Path, bytes]:
    """NAME.json, with the noise and what else the arrays do not tell our readers; none where there is nothing."""
    covariance = scan.noise_covariance
    pairs = None if covariance is None else np.stack([covariance.real, covariance.imag], axis=-1).tolist()
    facts = {"noise_variance": scan.noise_variance, "noise_covariance": pairs, **facts}
    known = {name: fact for name, fact in facts.items() if fact is not None}
    return {stem.with_name(f"{stem.name}.json"): f"{json.dumps(known)}\n".encode()} if known else {}


def _npz(scan: KSpaceData | TrajectoryData, out: Path) -> Written:
    arrays: dict[str, Any] = {name: getattr(scan, name) for name in _COMPANIONS if getattr(scan, name) is not None}
    if isinstance(scan, KSpaceData):
        arrays |= {"kspace": scan.kspace, "measured": scan.measured}
    else:
        arrays |= {"kspace": scan.by_readout, "trajectory": scan.readouts.shots, "matrix": np.array(scan.grid_shape)}
        arrays |= {} if scan.readouts.weights is None else {"density": scan.readouts.weights}
    return {out: npz_bytes(arrays)}, (*_COMPANIONS, "density")


def _grid_npy(scan: KSpaceData, out: Path) -> Written:
    return {out: npy_bytes(scan.kspace), **_header_file(out.with_suffix(""), scan)}, _NOISE


def _cfl(scan: KSpaceData | TrajectoryData, out: Path) -> Written:
    """BART's pairs of files: samples, trajectory and coil maps, which has the axes of planes or of slices."""
    stem, header, planes = out.with_suffix(""), dict[str, object](), scan.volume
    trajectory, maps = (stem.with_name(f"{stem.name}_{part}") for part in ("traj", "maps"))

    def for_bart(arrays: NDArray[np.complex64]) -> NDArray[np.generic]:
        return planes_to_bart(arrays) if planes else stacked_slices([maps_to_bart(one) for one in arrays])

    if isinstance(scan, TrajectoryData):
        files = pair_files(stem, stacked_slices([samples_to_bart(one) for one in scan.by_readout]))
        files |= pair_files(trajectory, to_bart(scan.readouts.shots))
        header["matrix"] = list(scan.grid_shape)
    else:
        files = pair_files(stem, for_bart(readouts_of_positions(scan.kspace) if planes else scan.kspace))
        header |= {"encoding": "plane"} if planes and scan.n_slices == 1 else {}
    files |= {} if scan.coil_maps is None else pair_files(maps, for_bart(scan.coil_maps))
    return files | _header_file(stem, scan, **header), ("coil_maps", *_NOISE)


def _grid_mrd(scan: KSpaceData, out: Path) -> Written:
    if scan.volume:
        raise UsageError(
            f"{scan.header.get('file', scan.name)} is a volume, which was transformed along its readout into planes "
            f"(ky, kz); {out.suffix} files hold lines. Give a name that ends in .cfl, .npz or .npy"
        )
    return {out: mrd_scan_bytes(scan, scan.geometry)}, ("geometry", "noise_covariance")


def _image_nifti(stack: ImageStack, out: Path) -> Written:
    compressed = out.name.endswith(".gz")
    return {out: nifti_bytes(_real(stack), stack.geometry, "image, mri-design", compressed=compressed)}, ("geometry",)


def _image_dicom(stack: ImageStack, out: Path) -> Written:
    images, files = _real(stack), dict[Path, bytes]()
    study = hashlib.sha256(images.tobytes()).hexdigest()
    derivation = f"converted by mri-design from {stack.header.get('file', stack.name)}"
    for number, image in enumerate(images):
        place = None if stack.geometry is None else stack.geometry.slice_after(number)
        source = None if stack.source is None else stack.source.of_frame(number)
        name = out if len(images) == 1 else name_beside(out, f"_{number + 1:04d}")
        labels = DicomLabels("image", derivation, study, instance=number + 1, source=source)
        files[name] = dicom_bytes(image, place, labels)
    return files, ("geometry", "source")


def _image_array(stack: ImageStack, out: Path) -> Written:
    if out.suffix == ".npz":
        return {out: npz_bytes({"image": stack.images})}, ("phase",)
    if np.iscomplexobj(stack.images):
        raise UsageError(f"a complex array in {out.name} would be read as k-space; give a name that ends in .npz")
    return {out: npy_bytes(stack.images)}, ()


def _real(stack: ImageStack) -> NDArray[np.floating]:
    return np.abs(stack.images) if np.iscomplexobj(stack.images) else stack.images.real


def _with_sizes(data: Content, extents: tuple[float, float] | None) -> Content:
    """A scan or images with the field of view that is given, in metres, where one is."""
    if extents is None or isinstance(data, TrajectoryData):
        return data
    if isinstance(data, ImageStack):
        return replace(data, geometry=sized(data.geometry, extents, data.images.shape[1:]))
    places = data.geometry or (NO_SIZES,) * data.n_slices
    return replace(data, geometry=tuple(place.with_field_of_view(extents, data.grid_shape) for place in places))


WRITERS: Mapping[type, Mapping[str, Callable[[Any, Path], Written]]] = {
    KSpaceData: {".npz": _npz, ".npy": _grid_npy, ".h5": _grid_mrd, ".mrd": _grid_mrd, ".cfl": _cfl},
    TrajectoryData: {".npz": _npz, ".cfl": _cfl},
    ImageStack: {
        ".nii.gz": _image_nifti,
        ".nii": _image_nifti,
        ".dcm": _image_dicom,
        ".npz": _image_array,
        ".npy": _image_array,
    },
}
"""By what the input holds, and by the ending of the file's name."""


ENDINGS = tuple(dict.fromkeys(ending for writers in WRITERS.values() for ending in writers))
"""Endings of the files that a conversion writes."""
_WITH_HEADER = (".npy", ".npz", ".cfl")
_SIZED = (".h5", ".mrd", ".nii.gz", ".nii", ".dcm")


def convert_file(
    source: str,
    out: Path,
    recipe: Recipe,
    *,
    field_of_view: tuple[float, float] | None = None,
    slices: SliceChoice = ALL_SLICES,
) -> MadeFiles:
    """Read a file and make those of another format; nothing is written.

    Parameters
    ----------
    source : str
        A path, or ``phantom:NAME``.
    out : Path
        The ending of its name, one of `ENDINGS`, is the format.
    recipe : Recipe
        Its ``input`` applies to files, its ``simulation`` to phantoms. Images stay images. Where its ``design`` is one
        over a plane, rows and columns of the one slice are ky and kz.
    field_of_view : tuple of float, optional
        (ky, kx) in metres, for formats that have sizes of pixels; by default that of the input, where it says one.
    slices : SliceChoice
        Those to take; by default all.

    Raises
    ------
    UsageError
        For another ending, a format that does not take what the input holds, slices, and names whose files would
        replace the input or be read with somebody else's header.
    InputError
        Where the input cannot be used, or the format cannot hold it.
    MissingPackageError
        Where the format needs a package that is not installed.
    """
    require_no_slices(source, "give {0} --slices {1}")
    ending = ending_of(out, ENDINGS)
    if ending is None:
        raise UsageError(f"{out.name} has no ending that says a format: end it in {_listed(ENDINGS)}")
    if field_of_view is not None and ending not in _SIZED:
        raise UsageError(f"--fov is for files with sizes of pixels: {_listed(_SIZED)}")
    phantom = source.startswith(PHANTOM_PREFIX)
    data = load_scan(source, recipe) if phantom else read(source, **recipe.input.reading)
    if isinstance(data, ImageStack):
        if recipe.noise.samples is not None:
            raise UsageError(f"{source} holds images, which no coil measured: leave out {option('noise-samples')}")
    else:
        data = with_recipe_noise(data, recipe)
    data = data if slices == ALL_SLICES else data.select_slices(slices.indices(data.n_slices))
    if KINDS[recipe.design.encoding].square:
        data = _as_plane(data, source)
    writers = WRITERS[type(data)]
    if ending not in writers:
        holds = {TrajectoryData: "samples along a trajectory", ImageStack: "images, from which no k-space is made here"}
        cure = f"end the name of the file in {_listed(writers)}"
        if isinstance(data, KSpaceData) and ending in WRITERS[ImageStack]:
            cure = f"reconstruct it (mri-design recon {source} --out run) and export the run (mri-design export run)"
        raise UsageError(f"{source} holds {holds.get(type(data), 'k-space')}: {cure}")
    data, header = _with_sizes(data, field_of_view), out.with_suffix(".json")
    files, kept = writers[ending](data, out)
    if not phantom:
        given = Path(source)
        read_ones = pair_of(given) if is_bart(given) else (given,)
        inputs = {path.resolve() for path in (*read_ones, given.with_suffix(".json"))}
        for path in files:
            if path.resolve() in inputs:
                raise UsageError(f"{path} belongs to the input, which stays as it is; take another name")
    if out.suffix in _WITH_HEADER and header.exists() and header not in files:  # it is about something else
        raise UsageError(f"{header} would be read as the header of {out.name}; take another name")
    refused = "" if isinstance(data, ImageStack) else refused_samples(data.kspace)  # by recon and design
    centre = (text := centre_words(data)) and f"its centre of k-space is {text}"
    warnings = [left_out_text(data, recipe.input.counters), centre, refused and f"samples {refused}"]
    warning = f"{data.name}: {'. '.join(filter(None, warnings))}" if any(warnings) else ""
    return MadeFiles(files, tuple(_sentences(data, out, ending, list(files), kept)), warning=warning)


def _sentences(data: Content, out: Path, ending: str, files: list[Path], kept: tuple[str, ...]) -> list[str]:
    """What is written where, and what is not."""
    complex_images = isinstance(data, ImageStack) and np.iscomplexobj(data.images)
    lost = [text for part, text in _PARTS.items() if part not in kept and getattr(data, part, None) is not None]
    lost += [_PARTS["phase"]] if complex_images and "phase" not in kept else []
    said = sentences(words("export").converted(data, ending, out, files, lost, complex_images))
    places = data.geometry if isinstance(data, ImageStack) else None if data.geometry is None else data.geometry[0]
    if ending in (".nii", ".nii.gz"):
        said += unknown("The input", places, "the file has sizes of 1 without a unit")
    elif ending in (".h5", ".mrd"):
        said += unknown("The input", places)
    return said


def _as_plane(data: KSpaceData | TrajectoryData | ImageStack, source: str) -> KSpaceData:
    """The scan with rows and columns as ky and kz."""
    if not isinstance(data, KSpaceData):
        raise UsageError(f"{source} holds no k-space on a grid, and so no plane (ky, kz): leave out --encoding")
    if data.volume:
        return data
    if data.n_slices > 1:
        raise UsageError(f"{source} holds {data.n_slices} slices, and a plane (ky, kz) is one: choose it with --slices")
    return replace(data, volume=True)


def _listed(endings: Collection[str]) -> str:
    *first, last = endings
    return f"{', '.join(first)} or {last}"
