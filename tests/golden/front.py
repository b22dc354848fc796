"""Python's front: a design and images of a scan in a file and of the same array, as a golden run."""

import numpy as np

import mri_design as md

RECIPE = {"coils": {"maps": "auto:10"}}
CENTRE_AND_EVEN = (np.arange(24) % 2 == 0) | (abs(np.arange(24) - 12) < 5)

for name, source in (("file", "../not-square.npz"), ("array", np.load("../not-square.npz")["kspace"])):
    scan = md.load(source, recipe=RECIPE)
    design = scan.design(lines=13)
    image = design.reconstruct()
    other = scan.reconstruct(CENTRE_AND_EVEN, method="least-squares")
    np.savez(
        f"{name}.npz",
        lines=design.lines,
        mask=design.mask,
        image=image.array,
        std=image.std,
        least_squares=other.array,
    )
