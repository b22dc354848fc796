"""The simulated scanner: shipped phantoms, forward model, noise, phase, coils, truth."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from scipy import fft

import mri_design as md
from mri_design.scan import SliceGeometry, simulation, spiral_curve
from mri_design.scan.scenes import EllipsePhantom
from tests.refusals import refuses


@pytest.mark.parametrize("name", simulation.PHANTOMS)
def test_every_file_equals_the_checksum_on_its_header(name):
    _, path, header = simulation.shipped_phantom(name)
    assert header["file"] == path.name
    assert header["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("layout", ["checkout", "wheel"])
def test_folder_is_found_beside_and_inside_the_package(layout, tmp_path, monkeypatch):
    module = tmp_path / "mri_design" / "scan" / "simulation.py"
    monkeypatch.setattr(simulation, "__file__", str(module))
    refuses("phantoms", simulation.phantoms_folder)
    target = tmp_path / "phantoms" if layout == "checkout" else tmp_path / "mri_design" / "phantoms"
    target.mkdir(parents=True)
    (target / "shepp_logan.json").write_text("{}")
    assert simulation.phantoms_folder() == target.resolve()


def test_changed_files_are_refused(tmp_path, monkeypatch):
    target = tmp_path / "phantoms"
    shutil.copytree(simulation.phantoms_folder(), target)
    monkeypatch.setattr(simulation, "phantoms_folder", lambda: target)
    simulation.read_shipped("brain")
    table = json.loads((target / "brain.json").read_text())
    table["ellipses"][0]["intensity"] = 0.1
    (target / "brain.json").write_text(json.dumps(table))
    refuses("brain.json", simulation.read_shipped, "brain")


@pytest.mark.parametrize("name", ["shepp-logan", "brain", "t2w", "t1w", "t1w-6a"])
@pytest.mark.parametrize(("shape", "grid"), [(64, (64, 64)), ((63, 50), (63, 50))])
def test_every_scene_loads_on_every_grid(name, shape, grid):
    scan = md.load_phantom(name, shape=shape, n_coils=2, rng=np.random.default_rng(0))
    assert scan.kspace.shape == (1, 2, *grid)
    assert scan.reference.shape == (1, *grid)
    assert scan.coil_maps.shape == scan.kspace.shape
    assert scan.kspace.dtype == scan.reference.dtype == scan.coil_maps.dtype == np.complex64
    assert scan.noise_variance == pytest.approx(0.007**2)
    assert scan.name == name
    assert scan.header["licence"] == "CC0 1.0"
    assert np.percentile(np.abs(scan.reference), 99.5) == pytest.approx(1, rel=1e-4)


def magnitude_stack(shape=(2, 48, 40)):
    images = np.zeros(shape, np.float32)
    images[:, 8:40, 10:30] = np.random.default_rng(0).random((shape[0], 32, 20)) + 0.5
    return md.ImageStack(images, name="block", header={"licence": "CC0 1.0"})


def ellipse_scene():
    centres, semi_axes = np.array([[0.0, 0.0], [-0.1, 0.1]]), np.array([[0.33, 0.4], [0.08, 0.15]])
    return EllipsePhantom(centres, semi_axes, np.array([0.0, 0.5]), np.array([1.0, -0.6]), "pair")


def centred_ifft(kspace):
    axes = (-2, -1)
    return fft.fftshift(fft.ifft2(fft.ifftshift(kspace, axes=axes), norm="ortho", axes=axes), axes=axes)


def rng(seed=1):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("matrix", [None, 32, (31, 45)])
@pytest.mark.parametrize("n_coils", [1, 4])
def test_noise_free_k_space_is_the_transform_of_maps_times_reference(matrix, n_coils):
    scan = md.scan.simulate_scan(magnitude_stack(), matrix=matrix, noise=0, n_coils=n_coils, rng=rng())
    maps = np.ones((1, 1, 1, 1)) if scan.coil_maps is None else scan.coil_maps
    assert (scan.coil_maps is None) == (n_coils == 1)
    np.testing.assert_allclose(centred_ifft(scan.kspace), maps * scan.reference[:, None], atol=1e-5)
    assert np.percentile(np.abs(scan.reference), 99.5) == pytest.approx(1, rel=1e-5)
    assert scan.measured.all()
    assert scan.noise_variance is None


@pytest.mark.parametrize("simulate", ["images", "ellipses", "shots"])
def test_noise_has_the_variance_that_was_asked(simulate):
    def scan(noise):
        if simulate == "images":
            return md.scan.simulate_scan(magnitude_stack((2, 64, 64)), noise=noise, n_coils=4, rng=rng())
        if simulate == "shots":
            spokes = md.operators.radial_spokes(128, md.operators.golden_angles(80))
            return md.scan.load_phantom_shots("brain", spokes, shape=128, noise=noise, n_coils=4, rng=rng())
        return simulation.simulate_ellipse_scan(ellipse_scene(), 96, noise=noise, n_coils=4, rng=rng())

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
    own = md.ImageStack((stack.images * np.exp(0.4j)).astype(np.complex64))

    def phases(images, phase):
        reference = md.scan.simulate_scan(images, noise=0, phase=phase, rng=rng()).reference
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


def test_seeds_reproduce_and_noise_is_drawn_last():
    def scan(noise, seed):
        return simulation.simulate_ellipse_scan(ellipse_scene(), 32, noise=noise, n_coils=3, rng=rng(seed))

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
    scan = simulation.simulate_ellipse_scan(ellipse_scene(), shape, noise=0, n_coils=n_coils, rng=rng())
    shown = combined(scan)
    assert np.linalg.norm(shown - scan.reference) < 0.1 * np.linalg.norm(scan.reference)
    assert slow_part_error(shown, scan.reference) < 3e-3


@pytest.mark.parametrize("phase", ["none", "smooth"])
def test_ellipse_reference_includes_the_coils_root_sum_of_squares(phase, monkeypatch):
    uneven = np.array([[1.0 + 0j]]), np.array([[0.4, 0.5j, -0.3 + 0.2j]])
    monkeypatch.setattr("mri_design.scan.simulation.coil_series", lambda n, rng: uneven)
    phantom, shape = ellipse_scene(), 96
    scan = simulation.simulate_ellipse_scan(phantom, shape, noise=0, phase=phase, n_coils=2, rng=rng())
    np.testing.assert_allclose((np.abs(scan.coil_maps) ** 2).sum(axis=1), 1, atol=1e-5)
    bare = phantom.image(shape)[None] * np.exp(1j * np.angle(scan.reference))
    bare = bare * np.abs(np.vdot(bare, scan.reference)) / np.vdot(bare, bare)
    shown = combined(scan)
    assert slow_part_error(shown, scan.reference) < 2e-3
    assert slow_part_error(shown, bare) > 0.02


def test_detail_beyond_the_matrix_does_not_alias():
    stripes = np.tile([[1.0], [0.0], [0.0]], (64, 192))[None]  # three rows a cycle: beyond 64 rows' reach
    fitted = simulation.fit_to_matrix(stripes, 64)[0][0]
    assert np.abs(fitted[4:-4] - 1 / 3).max() < 0.05  # picking rows would be off by 0.33
    fine = np.tile([[1.0], [0.0]], (96, 192))[None]
    assert np.ptp(simulation.fit_to_matrix(fine, 80)[0][0, 4:-4]) < 0.2 < np.ptp(fine)


@pytest.mark.parametrize(("shape", "matrix"), [((6, 5), (12, 10)), ((12, 9), (8, 6)), ((6, 10), 5), ((7, 4), None)])
def test_a_bright_spot_stays_where_it_was(shape: tuple[int, int], matrix: int | tuple[int, int] | None) -> None:
    rows, columns = np.meshgrid(np.arange(shape[0]), np.arange(shape[1]), indexing="ij")
    place = SliceGeometry((1.5, 2.0), 5.0, (1.0, 2.0, 3.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    spot = np.exp(-((rows - shape[0] / 2 + 0.2) ** 2 + (columns - shape[1] / 2 - 0.1) ** 2) / 1.5)
    (fitted,), moved = simulation.fit_to_matrix(spot[np.newaxis], matrix, place)
    found = []
    for image, geometry in ((spot, place), (fitted, moved)):
        middle = [np.average(np.arange(n), weights=image.sum(axis=1 - k)) for k, n in enumerate(image.shape)]
        corner = geometry.first_pixel((image.shape[0], image.shape[1]))
        found.append(np.add(corner[:2], [middle[1] * geometry.pixel[1], middle[0] * geometry.pixel[0]]))
    np.testing.assert_allclose(found[0], found[1], atol=0.25)


SPOKES = md.operators.radial_spokes(32, md.operators.golden_angles(6), oversampling=2)
SPIRALS = md.operators.turned(
    spiral_curve(32, md.scan.nyquist_turns(32, 4), points=120), md.operators.interleaf_angles(3)
)


def shots(trajectory, **settings):
    return md.scan.load_phantom_shots("brain", trajectory, shape=32, rng=np.random.default_rng(1), **settings)


@pytest.mark.parametrize("n_coils", [1, 3])
def test_a_spoke_along_kx_is_the_middle_line_of_the_cartesian_scan(n_coils):
    line = md.load_phantom("brain", shape=32, n_coils=n_coils, noise=0, rng=np.random.default_rng(1))
    made = shots(md.operators.radial_spokes(32, md.operators.equispaced_angles(1)), n_coils=n_coils, noise=0)
    np.testing.assert_allclose(made.kspace, line.kspace[:, :, 16], atol=1e-5)
    np.testing.assert_array_equal(made.reference, line.reference)
    assert made.noise_variance is None
    np.testing.assert_array_equal(made.coil_maps, line.coil_maps)
    count = SPIRALS.shape[0] * SPIRALS.shape[1]
    arms = shots(SPIRALS, n_coils=n_coils)
    assert arms.kspace.shape == (1, n_coils, count) and arms.n_readouts == len(SPIRALS)
    assert arms.header["licence"] == "CC0 1.0" and arms.provenance.simulated == "ellipses"


DARK = md.ImageStack(np.eye(64, dtype=np.float32)[None] * (np.arange(64) < 1))


@pytest.mark.parametrize(
    ("made", "arguments", "settings", "field"),
    [
        (md.load_phantom, ("lf-gre",), {}, "phantom"),  # a measured scan
        (md.load_phantom, ("../secret",), {}, "phantom"),
        (md.load_phantom, ("brain",), {"phase": "rough"}, "phase"),
        *((md.scan.simulate_scan, (magnitude_stack(),), {"noise": noise}, "noise") for noise in (-0.1, np.nan, "0.1")),
        (md.scan.simulate_scan, (magnitude_stack(),), {"n_coils": 0}, "n_coils"),
        (md.scan.simulate_scan, (magnitude_stack(),), {"matrix": (0, 8)}, "matrix"),
        *((md.scan.simulate_scan, (magnitude_stack(),), {"phase": phase}, "phase") for phase in ("own", "wild")),
        (md.scan.simulate_scan, (DARK,), {}, "images"),
        (md.scan.load_phantom_shots, ("brain", SPOKES / 32), {"shape": 32}, "trajectory"),
        (md.scan.load_phantom_shots, ("brain", SPOKES), {"shape": 24}, "trajectory"),
        (md.scan.load_phantom_shots, ("t2w", SPOKES), {"shape": 32}, "phantom"),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_name(made, arguments, settings, field):
    refuses(field, made, *arguments, rng=rng(), **settings)
