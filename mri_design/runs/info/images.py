"""What a file of images holds, in words: it has no k-space, so there is no scan to describe."""

from __future__ import annotations

import numpy as np

from mri_design.experiment.recipe import Recipe
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.nifti import WITHOUT_KSPACE
from mri_design.scan.summary import ImageSummary

_SIDES = (("right", "left"), ("front", "back"), ("feet", "head"))
"""Where the axes of the patient's coordinates begin and end."""
_SAID_ABOVE = ("pixel_mm", "slice_thickness_mm", "values")


def describe_images(held: ImageSummary, recipe: Recipe) -> dict[str, str]:
    """Number and size of the images, where they lie, their values, and what they can be used for.

    Parameters
    ----------
    held : ImageSummary
        As read.
    recipe : Recipe
        Whose simulation would make k-space from them.

    Returns
    -------
    dict of str to str
        Label to text, in the order in which people ask.
    """
    count, rows, columns = held.shape
    settings = recipe.simulation
    matrix = f"{rows} x {columns}" if settings.matrix is None else f"{settings.matrix} x {settings.matrix}"
    return {
        "name": held.name,
        "images": f"{count} of {rows} x {columns} pixels (rows x columns)",
        **_place(held),
        "values": _values(held),
        "phase": "that of the images" if held.has_phase else "none: the images are real, as magnitudes are",
        "k-space": "none, and so no coils, no measured lines and no noise of a scanner",
        "use": "simulation only: design, recon and compare measure such images with a simulated scanner, by the "
        f"recipe with a matrix of {matrix}, {settings.coils} coil{'s' * (settings.coils > 1)} and noise of sd "
        f"{settings.noise:g}",
        **{name: text for name, text in held.card.items() if name not in _SAID_ABOVE and text != WITHOUT_KSPACE},
    }


def _place(held: ImageSummary) -> dict[str, str]:
    """Field of view, voxels and orientation, where the file says them."""
    place = held.geometry
    if place is None:
        return {"field of view": "not in the file, nor the size of voxels or the orientation"}
    (along_y, along_x), (rows, columns) = place.pixel, held.shape[1:]
    sizes = f"{along_y:.3g} x {along_x:.3g}"
    voxels = f"voxels of {sizes} x {place.thickness:.3g} mm" if place.thickness else f"pixels of {sizes} mm"
    found = {"field of view": f"{rows * along_y:.4g} x {columns * along_x:.4g} mm, {voxels}"}
    if place.phase is None or place.read is None:
        return found | {"orientation": "not in the file"}
    ways = f"rows follow each other from {_way(place.phase)}, columns from {_way(place.read)}"
    return found | {"orientation": f"{_plane(place)}; {ways}"}


def _plane(place: SliceGeometry) -> str:
    """The plane's name without the direction of phase encoding, which images do not have."""
    return place.orientation.partition(", phase encoding")[0]


def _way(direction: tuple[float, float, float]) -> str:
    axis = int(np.argmax(np.abs(direction)))
    begin, end = _SIDES[axis]
    return f"{begin} to {end}" if direction[axis] > 0 else f"{end} to {begin}"


def _values(held: ImageSummary) -> str:
    low, high = held.values
    if held.has_phase:
        return f"complex, modulus up to {high:.4g}"
    return f"real, {low:.4g} to {high:.4g}" + (": negative ones are no magnitudes" if low < 0 else "")
