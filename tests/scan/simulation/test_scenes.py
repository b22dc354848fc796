"""Shipped phantoms as simulated scans, by name."""

import numpy as np
import pytest

from mri_design import InputError, load_phantom


@pytest.mark.parametrize("name", ["shepp-logan", "brain", "t2w", "t1w"])
@pytest.mark.parametrize(("shape", "grid"), [(64, (64, 64)), ((63, 50), (63, 50))])
def test_every_scene_loads_on_every_grid(name, shape, grid):
    scan = load_phantom(name, shape=shape, n_coils=2, rng=np.random.default_rng(0))
    assert scan.kspace.shape == (1, 2, *grid)
    assert scan.reference.shape == (1, *grid)
    assert scan.coil_maps.shape == scan.kspace.shape
    assert scan.kspace.dtype == scan.reference.dtype == scan.coil_maps.dtype == np.complex64
    assert scan.noise_variance == pytest.approx(0.007**2)
    assert scan.name == name
    assert scan.card["licence"] == "CC0 1.0"
    assert np.percentile(np.abs(scan.reference), 99.5) == pytest.approx(1, rel=1e-4)


def test_usual_size_and_noise():
    scan = load_phantom("t2w", noise=0.05, rng=np.random.default_rng(0))
    assert scan.grid_shape == (256, 256)
    assert scan.noise_variance == pytest.approx(0.0025)
    quiet = load_phantom("t2w", noise=0, rng=np.random.default_rng(0))
    assert (scan.kspace - quiet.kspace).real.std() == pytest.approx(0.05, rel=0.02)


def test_phase_is_handed_on():
    plain = load_phantom("t1w", shape=64, phase="none", rng=np.random.default_rng(0)).reference
    assert np.abs(plain.imag).max() == 0
    smooth = load_phantom("brain", shape=64, rng=np.random.default_rng(0)).reference
    assert np.abs(smooth.imag).max() > 0.1


def test_a_measured_scan_and_unknown_names_are_refused():
    with pytest.raises(InputError, match=r"lf_6A_gre_slice\.npy"):
        load_phantom("lf-gre", rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="one of"):
        load_phantom("head", rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="phase"):
        load_phantom("brain", phase="rough", rng=np.random.default_rng(0))
