"""BART's pair of files, as BART's own manual describes it."""

import numpy as np

from mri_design.scan.writing.images import cfl_bytes


def test_samples_lie_in_fortran_order_behind_sixteen_dimensions() -> None:
    rng = np.random.default_rng(0)
    array = rng.standard_normal((3, 5, 2)) + 1j * rng.standard_normal((3, 5, 2))
    header, samples = cfl_bytes(array)
    lines = header.decode().splitlines()
    assert lines[0] == "# Dimensions"
    dims = [int(word) for word in lines[1].split()]
    assert dims == [3, 5, 2, *[1] * 13]
    read = np.frombuffer(samples, dtype="<c8").reshape(dims, order="F").squeeze()
    np.testing.assert_array_equal(read, array.astype(np.complex64))


def test_flags_become_ones_and_zeros() -> None:
    _, samples = cfl_bytes(np.broadcast_to(np.array([True, False, True]), (2, 3)))
    np.testing.assert_array_equal(np.frombuffer(samples, dtype="<c8"), [1, 1, 0, 0, 1, 1])
