"""Files of images are described as images, with what they can be used for."""

from dataclasses import replace

import numpy as np

from mri_design import ImageStack, Recipe
from mri_design.runs.info import describe_images
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.image_outline import ImageOutline

PLACE = SliceGeometry((2.0, 1.5), 5.0, (1.0, 2.0, 3.0), (0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, -1.0))
STACK = ImageStack(np.arange(1.0, 241, dtype=np.float32).reshape(3, 8, 10), "head", {"file": "head.nii"}, PLACE)
HELD = ImageOutline.of(STACK)


def test_size_voxels_orientation_and_use_are_told() -> None:
    rows = describe_images(HELD, Recipe().replacing("simulation", matrix=64, noise=0.02))
    assert rows["images"] == "3 of 8 x 10 pixels (rows x columns)"
    assert rows["field of view"] == "16 x 15 mm, voxels of 2 x 1.5 x 5 mm"
    assert rows["orientation"] == "transverse; rows follow each other from back to front, columns from right to left"
    assert rows["values"] == "real, 1 to 240"
    assert rows["phase"].startswith("none") and rows["k-space"].startswith("none") and "noise" in rows["k-space"]
    assert rows["use"].startswith("simulation only") and "64 x 64, 1 coil and noise of sd 0.02" in rows["use"]
    assert rows["file"] == "head.nii"
    assert not {"noise", "measured lines", "fully sampled", "coil maps"} & set(rows)


def test_what_the_file_does_not_say_is_said_to_be_missing() -> None:
    rows = describe_images(replace(HELD, geometry=None), Recipe())
    assert rows["field of view"].startswith("not in the file") and "orientation" not in rows
    rows = describe_images(replace(HELD, geometry=SliceGeometry((2.0, 1.5), None)), Recipe())
    assert rows["field of view"] == "16 x 15 mm, pixels of 2 x 1.5 mm" and rows["orientation"] == "not in the file"


def test_complex_and_negative_values_are_named() -> None:
    rows = describe_images(ImageOutline.of(replace(STACK, images=(STACK.images * 1j).astype(np.complex64))), Recipe())
    assert rows["values"] == "complex, modulus up to 240" and rows["phase"] == "that of the images"
    rows = describe_images(ImageOutline.of(replace(STACK, images=STACK.images - 5)), Recipe())
    assert rows["values"] == "real, -4 to 235: negative ones are no magnitudes"
