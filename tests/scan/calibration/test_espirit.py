"""ESPIRiT's maps are those of SigPy, which makes the image of every kernel, in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from sigpy.mri.app import EspiritCalib

from mri_design.calibration import espirit as module
from mri_design.calibration.espirit import central, espirit


@pytest.mark.parametrize(("shape", "coils", "width", "kernel"), [((40, 33), 5, 24, 6), ((25, 32), 3, 12, 4)])
def test_maps_are_those_of_the_images_of_all_kernels(
    truth: Callable, shape: tuple[int, int], coils: int, width: int, kernel: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kspace = truth(*shape, coils).scan(0.01).kspace[0]
    wanted = EspiritCalib(kspace, calib_width=width, kernel_width=kernel, crop=0, show_pbar=False).run()
    for size in (module._BYTES, 1):  # all rows at once, and one by one
        monkeypatch.setattr(module, "_BYTES", size)
        found = espirit(kspace, np.eye(coils, dtype=np.complex128), width)
        np.testing.assert_allclose(found, wanted, atol=3e-5)
    outside = np.where(central(np.ones(shape), width).any(), 9, 0) + kspace
    central(outside, width)[:] = central(kspace, width)
    np.testing.assert_array_equal(espirit(outside.astype(np.complex64), np.eye(coils) + 0j, width), found)


def test_memory_is_that_of_some_rows(truth: Callable) -> None:
    kspace = truth(96, 96, 12).scan(0.01).kspace[0]
    tracemalloc.start()
    espirit(kspace, np.eye(12, dtype=np.complex128), 16)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * module._BYTES < 8 * 12**2 * 96**2 * 4
