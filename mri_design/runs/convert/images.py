"""Images in every format that takes them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import UsageError
from mri_design.runs.made_files import NO_SIZES, WITHOUT_UNIT, MadeFiles, name_beside, what_is_unknown, whose_it_is
from mri_design.scan.data import ImageStack
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.atomic import npy_bytes, npz_bytes
from mri_design.scan.writing.dicom import DicomLabels, dicom_bytes
from mri_design.scan.writing.nifti import nifti_bytes

Extents = tuple[float, float] | None


def _nifti(stack: ImageStack, out: Path, extents: Extents) -> MadeFiles:
    geometry = _geometry(stack, extents)
    compressed = out.name.endswith(".gz")
    content = nifti_bytes(_real(stack), geometry, "image, mri-design", compressed=compressed)
    unknown = what_is_unknown("The input", geometry, WITHOUT_UNIT)
    return MadeFiles({out: content}, (*_said(stack, out), *_nobody(stack), *unknown))


def _dicom(stack: ImageStack, out: Path, extents: Extents) -> MadeFiles:
    images, geometry = _real(stack), _geometry(stack, extents)
    study = hashlib.sha256(images.tobytes()).hexdigest()
    names = [out] if len(images) == 1 else [name_beside(out, ".dcm", f"_{i:04d}") for i in range(1, len(images) + 1)]
    derivation = f"converted by mri-design from {stack.card.get('file', stack.name)}"
    files = {}
    for number, (name, image) in enumerate(zip(names, images, strict=True)):
        place = None if geometry is None else geometry.slice_after(number)
        source = None if stack.source is None else stack.source.of_frame(number)
        labels = DicomLabels("image", derivation, study, instance=number + 1, source=source)
        files[name] = dicom_bytes(image, place, labels)
    where = names[0] if len(names) == 1 else f"{names[0]} to {names[-1].name}"
    said = [*_said(stack, where), *whose_it_is(stack.source)]
    if geometry is None:
        said.append(
            "The input does not say how large pixels are, and neither do the files. --fov gives the field of view."
        )
    return MadeFiles(files, tuple(said))


def _npz(stack: ImageStack, out: Path, _: Extents) -> MadeFiles:
    return MadeFiles({out: npz_bytes({"image": stack.images})}, (f"{_counted(stack)}: {out}", *_lost_sizes(stack)))


def _npy(stack: ImageStack, out: Path, _: Extents) -> MadeFiles:
    if np.iscomplexobj(stack.images):
        raise UsageError(f"a complex array in {out.name} would be read as k-space; give a name that ends in .npz")
    return MadeFiles({out: npy_bytes(stack.images)}, (f"{_counted(stack)}: {out}", *_lost_sizes(stack)))


def _geometry(stack: ImageStack, extents: Extents) -> SliceGeometry | None:
    if extents is None:
        return stack.geometry
    rows, columns = stack.images.shape[1:]
    return (stack.geometry or NO_SIZES).with_field_of_view(extents, (rows, columns))


def _lost_sizes(stack: ImageStack) -> list[str]:
    return [*([] if stack.geometry is None else ["Not in this file: sizes and places of slices."]), *_nobody(stack)]


def _nobody(stack: ImageStack) -> list[str]:
    return [] if stack.source is None else ["Not in this file: identifiers of the patient and of the study."]


def _real(stack: ImageStack) -> NDArray[np.floating]:
    return np.abs(stack.images) if np.iscomplexobj(stack.images) else stack.images.real


def _counted(stack: ImageStack) -> str:
    count, rows, columns = stack.images.shape
    kind = "complex" if np.iscomplexobj(stack.images) else "real"
    return f"{count} {kind} image{'s' * (count > 1)} of {rows} x {columns} pixels"


def _said(stack: ImageStack, where: object) -> list[str]:
    phase = ["Not in this file: the phase."] if np.iscomplexobj(stack.images) else []
    return [f"{_counted(stack)}: {where}", *phase]


IMAGE_WRITERS: Mapping[str, Callable[[ImageStack, Path, Extents], MadeFiles]] = {
    ".nii.gz": _nifti,
    ".nii": _nifti,
    ".dcm": _dicom,
    ".npz": _npz,
    ".npy": _npy,
}
"""By the ending of the file's name."""
