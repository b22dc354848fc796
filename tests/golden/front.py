"""Python's front: designs and images of a scan in a file and of an array, as a golden run."""

import numpy as np

import mri_design as md

for name, source in (("file", "../not-square.npz"), ("array", np.load("../not-square.npz")["kspace"])):
    scan = md.load(source)
    design = scan.design(lines=13)
    image = design.reconstruct()
    mask = np.arange(24) % 2 == 0
    least_squares = scan.reconstruct(mask | (abs(np.arange(24) - 12) < 5), method="least-squares")
    np.savez(
        f"{name}.npz",
        lines=design.lines,
        mask=design.mask,
        image=image.array,
        std=image.std,
        least_squares=least_squares.array,
    )
