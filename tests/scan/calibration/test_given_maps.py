"""Right maps explain a scan however it was undersampled; other maps do not."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import KSpaceData, load_phantom
from mri_design.scan.calibration.coil_maps import explained_by_maps
from tests.slow_cases import slow_case


def undersampled(data: KSpaceData, rows: int, columns: int = 1) -> KSpaceData:
    kspace = data.kspace.copy()
    for axis, every in ((-2, rows), (-1, columns)):
        keep = np.zeros(kspace.shape[axis], dtype=bool)
        keep[kspace.shape[axis] // 2 % every :: every] = True
        np.moveaxis(kspace, axis, -1)[..., ~keep] = 0
    return replace(data, kspace=kspace, measured=kspace.any(axis=(0, 1, 3)), reference=None)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 1), (3, 1), (1, 2)])
@pytest.mark.parametrize(("coils", "shape"), [(4, (64, 64)), slow_case(8, (96, 70)), slow_case(8, (65, 81))])
def test_the_right_maps_explain_nearly_all_and_others_less(
    rows: int, columns: int, coils: int, shape: tuple[int, int]
) -> None:
    whole = load_phantom("t2w", shape=shape, n_coils=coils, rng=np.random.default_rng(coils))
    data = undersampled(whole, rows, columns)
    assert data.coil_maps is not None
    assert explained_by_maps(data) > 0.99
    for wrong in (np.roll(data.coil_maps, 1, axis=1), data.coil_maps[..., ::-1, ::-1], data.coil_maps.conj()):
        assert explained_by_maps(replace(data, coil_maps=wrong)) < 0.94


def test_noise_that_is_known_is_not_held_against_the_maps() -> None:
    data = undersampled(load_phantom("t2w", shape=(64, 64), n_coils=6, rng=np.random.default_rng(0)), 2)
    rng = np.random.default_rng(1)
    sd = 0.05 * float(np.abs(data.kspace).max())
    noise = sd * (rng.standard_normal(data.kspace.shape) + 1j * rng.standard_normal(data.kspace.shape))
    noisy = replace(data, kspace=np.where(data.kspace != 0, data.kspace + noise, 0).astype(np.complex64))
    unknown = explained_by_maps(replace(noisy, noise_variance=None))
    known = explained_by_maps(replace(noisy, noise_variance=sd**2))
    assert unknown < 0.95 < 0.98 < known
