import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from mri_design import random_head


def test_a_head_is_bright_inside_and_dark_around() -> None:
    for seed in range(4):
        magnitude = np.abs(random_head(96, np.random.default_rng(seed)))
        assert np.percentile(magnitude, 99.5) == pytest.approx(1)
        corners = magnitude[:12, :12]
        assert corners.max() < 0.1  # ringing at most
        assert magnitude[40:56, 40:56].mean() > 0.05


def test_the_seed_decides() -> None:
    first, again, other = (random_head((48, 40), np.random.default_rng(s)) for s in (1, 1, 2))
    assert first.shape == (48, 40)
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.slow
def test_spectra_fall_off_as_those_of_heads() -> None:
    """Between |k| = 8 and 48 the energy of 3 T brain images falls by 1.7 to 2.1 decades; the average head agrees."""
    falls = []
    for seed in range(8):
        image = random_head(128, np.random.default_rng(seed), phase="flat")
        lines = np.sum(np.abs(np.fft.fft2(image)) ** 2, axis=1)
        falls.append(np.log10(lines[6:11].mean() / lines[46:51].mean()))
    assert 1.3 < np.mean(falls) < 2.5


def test_flat_phases_have_small_exceptions_and_rough_ones_more_than_smooth_ones() -> None:
    def local_share(kind: str) -> float:
        shares = []
        for seed in range(4):
            image = random_head(64, np.random.default_rng(seed), phase=kind)  # type: ignore[arg-type]
            smooth = gaussian_filter(image.real, 3) + 1j * gaussian_filter(image.imag, 3)
            turned = image * np.exp(-1j * np.angle(smooth))
            shares.append(np.sum(turned.imag**2) / np.sum(turned.real**2))
        return float(np.mean(shares))

    assert local_share("smooth") < local_share("flat") < 0.05
    assert local_share("smooth") < local_share("rough")
