"""The simulated scanner: forward model, noise, phase, coils, truth."""

import numpy as np
import pytest
from scipy import fft

from mri_design import ImageStack, InputError, simulate_scan
from mri_design.scan.simulation.ellipses import EllipsePhantom, TrigonometricSeries
from mri_design.scan.simulation.scanner import simulate_ellipse_scan


def magnitude_stack(shape=(2, 48, 40)):
    images = np.zeros(shape, np.float32)
    images[:, 8:40, 10:30] = np.random.default_rng(0).random((shape[0], 32, 20)) + 0.5
    return ImageStack(images, name="block", card={"licence": "CC0 1.0"})


def ellipse_scene():
    return EllipsePhantom(
        centres=np.array([[0.0, 0.0], [-0.1, 0.1]]),
        semi_axes=np.array([[0.33, 0.4], [0.08, 0.15]]),
        angles=np.array([0.0, 0.5]),
        intensities=np.array([1.0, -0.6]),
        name="pair",
    )


def centred_ifft(kspace):
    axes = (-2, -1)
    return fft.fftshift(fft.ifft2(fft.ifftshift(kspace, axes=axes), norm="ortho", axes=axes), axes=axes)


def rng(seed=1):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("matrix", [None, 32, (31, 45)])
@pytest.mark.parametrize("n_coils", [1, 4])
def test_noise_free_k_space_is_the_transform_of_maps_times_reference(matrix, n_coils):
    scan = simulate_scan(magnitude_stack(), matrix=matrix, noise=0, n_coils=n_coils, rng=rng())
    maps = np.ones((1, 1, 1, 1)) if scan.coil_maps is None else scan.coil_maps
    assert (scan.coil_maps is None) == (n_coils == 1)
    np.testing.assert_allclose(centred_ifft(scan.kspace), maps * scan.reference[:, None], atol=1e-5)
    assert np.percentile(np.abs(scan.reference), 99.5) == pytest.approx(1, rel=1e-5)
    assert scan.measured.all()
    assert scan.noise_variance is None


@pytest.mark.parametrize("simulate", ["images", "ellipses"])
def test_noise_has_the_variance_that_was_asked(simulate):
    def scan(noise):
        if simulate == "images":
            return simulate_scan(magnitude_stack((2, 64, 64)), noise=noise, n_coils=4, rng=rng())
        return simulate_ellipse_scan(ellipse_scene(), 96, noise=noise, n_coils=4, rng=rng())

    noisy, clean = scan(0.02), scan(0.0)
    noise = (noisy.kspace - clean.kspace).astype(np.complex128)
    assert noisy.noise_variance == pytest.approx(4e-4)
    for part in (noise.real, noise.imag):
        assert part.var() == pytest.approx(4e-4, rel=0.03)  # 4 standard errors
        assert abs(part.mean()) < 4e-4
    assert abs(np.corrcoef(noise.real.ravel(), noise.imag.ravel())[0, 1]) < 0.03
    neighbours = (noise[..., 1:] * noise[..., :-1].conj()).mean()
    assert abs(neighbours) < 0.03 * 8e-4
    between_coils = (noise[:, 0] * noise[:, 1].conj()).mean()
    assert abs(between_coils) < 0.05 * 8e-4


def test_each_phase_setting_does_what_it_says():
    stack = magnitude_stack()
    own = ImageStack((stack.images * np.exp(0.4j)).astype(np.complex64))

    def phases(images, phase):
        reference = simulate_scan(images, noise=0, phase=phase, rng=rng()).reference
        return np.angle(reference[:, 8:40, 10:30])

    np.testing.assert_allclose(phases(own, None), 0.4, atol=1e-5)
    np.testing.assert_allclose(phases(own, "own"), 0.4, atol=1e-5)
    np.testing.assert_allclose(phases(own, "none"), 0, atol=1e-5)
    np.testing.assert_allclose(phases(stack, "none"), 0, atol=1e-5)
    np.testing.assert_allclose(phases(stack, None), phases(stack, "smooth"))
    np.testing.assert_allclose(phases(own, "smooth"), phases(stack, "smooth"), atol=1e-4)
    smooth, rough = phases(stack, "smooth"), phases(stack, "rough")
    assert np.ptp(smooth) > 0.3
    assert np.abs(smooth[0] - smooth[1]).max() > 0.1  # a new one for every slice
    assert np.abs(np.diff(rough, n=2, axis=1)).max() > 2 * np.abs(np.diff(smooth, n=2, axis=1)).max()


def test_real_images_keep_their_sign():
    signed = magnitude_stack()
    images = signed.images.copy()
    images[:, 20:25, 15:20] *= -1
    reference = simulate_scan(ImageStack(images), noise=0, phase="none", rng=rng()).reference
    assert (reference.real[:, 20:25, 15:20] < 0).all()


def test_seeds_reproduce_and_noise_is_drawn_last():
    def scan(noise, seed):
        return simulate_ellipse_scan(ellipse_scene(), 32, noise=noise, n_coils=3, rng=rng(seed))

    first, again, quiet, other = scan(0.01, 1), scan(0.01, 1), scan(0, 1), scan(0.01, 2)
    np.testing.assert_array_equal(first.kspace, again.kspace)
    np.testing.assert_array_equal(first.reference, quiet.reference)
    np.testing.assert_array_equal(first.coil_maps, quiet.coil_maps)
    assert np.abs(first.kspace - other.kspace).max() > 0.1


def combined(scan):
    """What a complete scan shows: coil images weighted by the conjugate maps and summed."""
    images = centred_ifft(scan.kspace)
    maps = np.ones_like(images) if scan.coil_maps is None else scan.coil_maps
    return (maps.conj() * images).sum(axis=1)


def slow_part_error(image, truth):
    """Relative difference at the lowest frequencies, where ringing and pixel averaging play no role."""
    axes = (-2, -1)
    spectra = [fft.fft2(a, axes=axes) for a in (image, truth)]
    slow = [
        np.concatenate([np.concatenate([s[..., :3], s[..., -2:]], -1)[:, r] for r in (0, 1, 2, -2, -1)])
        for s in spectra
    ]
    return np.linalg.norm(slow[0] - slow[1]) / np.linalg.norm(slow[1])


@pytest.mark.parametrize("shape", [(96, 96), (95, 80)])
@pytest.mark.parametrize("n_coils", [1, 6])
def test_ellipse_reference_is_what_a_full_scan_shows_up_to_ringing(shape, n_coils):
    scan = simulate_ellipse_scan(ellipse_scene(), shape, noise=0, n_coils=n_coils, rng=rng())
    shown = combined(scan)
    assert np.linalg.norm(shown - scan.reference) < 0.1 * np.linalg.norm(scan.reference)
    assert slow_part_error(shown, scan.reference) < 3e-3


@pytest.mark.parametrize("phase", ["none", "smooth"])
def test_ellipse_reference_includes_the_coils_root_sum_of_squares(phase, monkeypatch):
    uneven = (TrigonometricSeries(np.array([[1.0 + 0j]])), TrigonometricSeries(np.array([[0.4, 0.5j, -0.3 + 0.2j]])))
    monkeypatch.setattr("mri_design.scan.simulation.scanner.coil_series", lambda n, rng: uneven)
    phantom, shape = ellipse_scene(), 96
    scan = simulate_ellipse_scan(phantom, shape, noise=0, phase=phase, n_coils=2, rng=rng())
    np.testing.assert_allclose((np.abs(scan.coil_maps) ** 2).sum(axis=1), 1, atol=1e-5)
    bare = phantom.image(shape)[None] * np.exp(1j * np.angle(scan.reference))
    bare = bare * np.abs(np.vdot(bare, scan.reference)) / np.vdot(bare, bare)
    shown = combined(scan)
    assert slow_part_error(shown, scan.reference) < 2e-3
    assert slow_part_error(shown, bare) > 0.02


def test_card_hands_on_provenance_and_says_simulated():
    scan = simulate_scan(magnitude_stack(), n_coils=2, rng=rng())
    assert scan.card["licence"] == "CC0 1.0"
    assert scan.card["simulated"] == "from images"
    assert scan.card["coils"] == "2"
    assert scan.name == "block"
    ellipses = simulate_ellipse_scan(ellipse_scene(), 16, rng=rng(), card={"licence": "x"})
    assert "closed form" in ellipses.card["simulated"]
    assert ellipses.card["licence"] == "x"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"noise": -0.1}, "noise"),
        ({"noise": np.nan}, "noise"),
        ({"noise": "0.1"}, "noise"),
        ({"n_coils": 0}, "n_coils"),
        ({"matrix": (0, 8)}, "matrix"),
        ({"phase": "own"}, "phase"),
        ({"phase": "wild"}, "phase"),
    ],
)
def test_wrong_settings_are_refused_by_name(settings, field):
    with pytest.raises(InputError) as refusal:
        simulate_scan(magnitude_stack(), rng=rng(), **settings)
    assert refusal.value.field == field


def test_ellipses_refuse_a_rough_phase_and_dark_images_are_refused():
    with pytest.raises(InputError, match="phase"):
        simulate_ellipse_scan(ellipse_scene(), 16, phase="rough", rng=rng())
    dark = np.zeros((1, 64, 64), np.float32)
    dark[0, 0, 0] = 1
    with pytest.raises(InputError, match=r"99\.5th percentile"):
        simulate_scan(ImageStack(dark), rng=rng())
