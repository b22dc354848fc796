"""Maximum likelihood of signal models: exact signals, SciPy's minimisers, Rice's noise floor, and what is refused."""

import numpy as np
import pytest
import scipy

import mri_design as md
from mri_design.signals.fit import fit_signals, rice_moments
from mri_design.signals.maps import fit_map
from mri_design.signals.models import SignalModel, signal_model
from tests.refusals import refused, refuses

ECHOES = np.arange(1, 9) * 15.0
EXACT = {
    "T2": (ECHOES, lambda t, q: np.exp(-t / q), (20, 300), 0),
    "T2*": (ECHOES, lambda t, q: 1j * np.exp(-t / q), (20, 300), 0),
    "t1-inversion": (
        np.array([50, 150, 400, 800, 1500, 3000, 6000.0]),
        lambda t, q: 1 - 1.9 * np.exp(-t / q),
        (200, 3000),
        0,
    ),
    "t1-flip:15": (
        np.array([2, 5, 10, 15, 25.0]),
        lambda t, q: np.sin(np.deg2rad(t)) * (1 - np.exp(-15 / q)) / (1 - np.exp(-15 / q) * np.cos(np.deg2rad(t))),
        (200, 3000),
        0,
    ),
    "adc": (np.array([0, 200, 500, 1000.0]), lambda t, q: np.exp(-t * q / 1e3), (0.2, 3), 0),
    "water-fat:-434": (
        np.array([1.0, 1.8, 2.6]),
        lambda t, q: np.exp(0.7j + 2e-3j * np.pi * 40 * t) * (1 - q + q * np.exp(-2e-3j * np.pi * 434 * t)),
        (0.02, 0.98),
        1e-4,
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_signals_without_noise_give_the_quantity_that_made_them(name: str) -> None:
    times, signal, between, away = EXACT[name]
    true = np.random.default_rng(0).uniform(*between, (40, 5))
    made = signal(times, true[..., None])
    fitted = fit_signals(signal_model(name), times, made, np.full(len(times), 1e-3 * np.abs(made).max()))
    assert fitted.convergence.converged and fitted.quantity.shape == true.shape
    np.testing.assert_allclose(fitted.quantity, true, rtol=1e-3, atol=away)
    np.testing.assert_allclose(fitted.misfit, 0, atol=1e-2)
    if not np.iscomplexobj(made):  # moduli, and a phase that all echoes share
        for given in (np.abs(made), made * np.exp(2j)):
            again = fit_signals(signal_model(name), times, given, np.full(len(times), 1e-3 * np.abs(made).max()))
            np.testing.assert_allclose(again.quantity, true, rtol=1e-2)


def test_two_echoes_of_water_and_fat_are_told_apart_near_resonance() -> None:
    times, fat = np.array([1.15, 2.3]), np.linspace(0.05, 0.45, 9)
    made = np.exp(0.3j) * (1 - fat[:, None] + fat[:, None] * np.exp(-2e-3j * np.pi * 434 * times))
    fitted = fit_signals(signal_model("dixon:-434"), times, made, np.full(2, 0.01))
    np.testing.assert_allclose(fitted.quantity, fat, atol=1e-3)
    assert np.isnan(fitted.misfit).all()


@pytest.mark.parametrize("whole", [False, True])
def test_the_likelihood_is_largest_where_scipy_finds_it(whole: bool) -> None:
    rng = np.random.default_rng(1)
    true, sd = rng.uniform(30, 120, 6), 0.15
    clean = np.exp(-ECHOES / true[:, None])
    noisy = clean + sd * (rng.normal(size=clean.shape) + 1j * rng.normal(size=clean.shape))
    fitted = fit_signals(signal_model("t2"), ECHOES, noisy if whole else np.abs(noisy), np.full(8, sd))

    def cost(parts: np.ndarray, data: np.ndarray) -> float:
        mu = parts[:-1, None] * np.exp(-ECHOES / np.exp(parts[-1]))
        if whole:
            return float(np.sum(np.abs(data - mu[0] - 1j * mu[1]) ** 2) / (2 * sd**2))
        m = np.abs(data)
        return -float(np.sum(scipy.stats.rice.logpdf(m, np.abs(mu[0]) / sd, scale=sd)))

    for pixel, data in enumerate(noisy):
        begun = [*([1.0, 0.0] if whole else [1.0]), np.log(60)]
        best = scipy.optimize.minimize(cost, begun, args=(data,), method="Nelder-Mead", options={"xatol": 1e-7})
        assert fitted.theta[pixel, 0] == pytest.approx(np.exp(best.x[-1]), rel=2e-3)


def test_moduli_of_noise_are_no_signal_to_rice_and_are_one_to_gauss() -> None:
    rng = np.random.default_rng(2)
    clean, sd = np.broadcast_to(np.exp(-ECHOES / 30), (4000, 8)), 0.15
    noisy = np.abs(clean + sd * (rng.normal(size=clean.shape) + 1j * rng.normal(size=clean.shape)))
    rice = fit_signals(signal_model("t2"), ECHOES, noisy, np.full(8, sd))
    gauss = fit_signals(signal_model("t2"), ECHOES, noisy, np.full(8, 1e-3))  # to which floors are signal
    assert abs(np.median(rice.quantity[rice.found]) / 30 - 1) < 0.06
    assert np.median(gauss.quantity) > 1.4 * 30
    assert np.mean(rice.misfit[rice.found]) == pytest.approx(1, abs=0.1)
    mean, variance = rice_moments(np.array([0.0, 0.3, 3.0]), np.array(0.5))
    known = scipy.stats.rice.stats(np.array([0.0, 0.6, 6.0]), scale=0.5)
    np.testing.assert_allclose([mean, variance], known, rtol=1e-6)


def test_intervals_of_a_map_hold_the_truth_and_air_is_not_identified() -> None:
    rng = np.random.default_rng(3)
    true = np.where(np.arange(30) < 24, 60 + 20 * np.sin(np.arange(30 * 40).reshape(40, 30)), np.nan)
    clean = np.exp(1j) * np.nan_to_num(np.exp(-ECHOES[:, None, None] / true))
    std = 0.04 * np.ones(clean.shape)

    def noise(*shape: int) -> np.ndarray:
        return np.asarray(0.04 / np.sqrt(2) * (rng.normal(size=shape) + 1j * rng.normal(size=shape)))

    image = clean + noise(*clean.shape)
    draws = image[:, None] + noise(8, 24, 40, 30)
    for whole in (False, True):
        made = fit_map(signal_model("t2"), ECHOES, image, draws, std, complex_signals=whole)
        low, high = made.interval(0.9)
        inside = (low < true) & (true < high)
        assert made.identified[:, :24].mean() > 0.99 and made.identified[:, 24:].mean() < 0.05
        assert 0.87 < inside[:, :24].mean() < 0.94
        assert np.nanmean(made.misfit[:, :24]) == pytest.approx(1, abs=0.1)
    shrunk = image - 0.05 * np.exp(1j * np.angle(image))
    for pull, ratio in ((None, 0.87), (np.full(std.shape, 0.05), 1.0)):
        moved = fit_map(signal_model("t2"), ECHOES, shrunk, shrunk[:, None] + draws - image[:, None], std, pull=pull)
        assert np.nanmedian(moved.value[:, :24] / true[:, :24]) == pytest.approx(ratio, abs=0.02)


def test_a_model_of_ones_own_has_a_name() -> None:
    linear = SignalModel("slope", "1/ms", lambda t, q: (1 + q[..., :1] * t)[..., None], ((-0.02, 0.02),))
    made = fit_signals(linear, ECHOES, 3 * (1 - 0.004 * ECHOES)[None], np.full(8, 0.01))
    assert made.quantity[0] == pytest.approx(-0.004, rel=1e-3)
    md.register_signal_model("slope-of-a-test", lambda: linear)
    assert signal_model("slope-of-a-test") is linear
    refuses("signal model", md.register_signal_model, "t2", lambda: linear)


def test_times_units_and_models_that_cannot_be_are_named() -> None:
    t2 = signal_model("T2")
    np.testing.assert_allclose(t2.times("10,20,30", 3), [10, 20, 30])
    np.testing.assert_allclose(t2.times("0.01s, 0.02s", 2), [10, 20])
    np.testing.assert_allclose(t2.times("100,200us", 2), [0.1, 0.2])
    np.testing.assert_allclose(signal_model("adc").times("0,0,1000", 3), [0, 0, 1000])
    for model, given, count in (
        ("T2", "10,20,30", 4),
        ("T2", "10,30,20", 3),
        ("T2", "10,10,20", 3),
        ("T2", "0.01,0.02,0.03", 3),
        ("T2", "10T,20T", 2),
        ("T2", "10ms,20", 2),
        ("T2", "ten,20", 2),
        ("T2", "1e,20", 2),
        ("T2", "-10,20", 2),
        ("T2", [10, np.nan], 2),
        ("T2", 10, 1),
        ("adc", "500,500", 2),
        ("adc", "0,1", 2),
        ("t1-flip:15", "0.1,0.3", 2),
    ):
        refuses(signal_model(model).axis.name, signal_model(model).times, given, count)
    for wrong in ("t1-flip", "t2:3", "t1-flip:x", "t1-flip:-3", "water-fat:0", 3):
        refuses("fit", signal_model, wrong)
    with pytest.raises(md.UsageError):
        signal_model("t3")
    refuses("signals", fit_signals, signal_model("water-fat:-434"), ECHOES, np.ones((2, 8)), np.ones(8))
    refuses("times", fit_signals, t2, ECHOES[:1], np.ones((2, 1)), np.ones(1))
    nothing = np.zeros((8, 6, 6), complex)
    with refused("fit"):
        fit_map(t2, ECHOES, nothing, np.zeros((8, 4, 6, 6), complex), np.ones((8, 6, 6)))


def test_fits_end_where_one_echo_alone_has_signal_or_where_they_begin_without_any() -> None:
    data = np.exp(-ECHOES / 60) * np.ones((3, 1))
    fitted = fit_signals(signal_model("t2"), ECHOES, data, np.full(8, 0.01), start=np.array([[0.1], [1e4], [60.0]]))
    assert np.isfinite(fitted.theta).all() and fitted.quantity[1:] == pytest.approx(60, rel=1e-2)
    alone = np.eye(8)[:1] * np.ones((200, 1)) + 1e-3 * np.random.default_rng(0).normal(size=(200, 8))
    for given in (np.abs(alone), alone + 0j):
        assert np.all(fit_signals(signal_model("t2"), ECHOES, given, np.full(8, 1e-3)).quantity < 10)
