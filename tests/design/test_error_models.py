"""Features of lines by hand, and the gamma regression of samples against a general optimiser."""

import json
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from scipy.optimize import minimize

from mri_design.design import FEATURES, LineKnowledge, features_of_line, fitted_weights, line_features
from mri_design.design import calibrated as module
from mri_design.evidence import ErrorEvidence
from mri_design.evidence import features as features_of_error

N = 16


def known(lines: list[int], scale: float = 1.0, expected: np.ndarray | None = None) -> LineKnowledge:
    measured = np.zeros(N, dtype=bool)
    measured[lines] = True
    energies = np.where(measured, 100.0 / (1 + np.abs(np.arange(N) - 8)) ** 2, 0)
    return LineKnowledge(
        measured, scale * energies, scale * 0.1, scale * (np.ones(N) if expected is None else expected)
    )


def column(features: np.ndarray, name: str) -> np.ndarray:
    return features[:, FEATURES.index(name)]


def test_every_feature_by_hand() -> None:
    features = line_features(known([6, 7, 8, 9, 12]))
    assert features.shape == (N, len(FEATURES))
    ten, eleven, four, five = 10, 11, 4, 5
    assert column(features, "log(1 + |k|)")[ten] == pytest.approx(np.log(3))
    assert column(features, "log(lines / 16)") == pytest.approx(np.log(5 / 16))
    smaller, larger = (np.exp(column(features, f"log(0.1 + {which} gap)")) - 0.1 for which in ("smaller", "larger"))
    assert (smaller[ten], larger[ten]) == pytest.approx((1, 2))  # 9 below, 12 above
    assert (smaller[four], larger[four]) == pytest.approx((2, 5))  # 6 above, the grid's end (-1) below
    assert (smaller[15], larger[15]) == pytest.approx((1, 3))
    for distance, at, count in ((1, eleven, 1), (2, eleven, 1), (3, eleven, 1), (1, ten, 1), (2, ten, 2), (1, 7, 2)):
        assert column(features, f"measured at distance {distance}")[at] == count, (distance, at)
    opposite = column(features, "-k measured")
    assert opposite[four] == 1 and opposite[ten] == 1 and opposite[five] == 0  # 12 and 6 are measured, 11 is not
    assert column(features, "measured at distance 1 of -k")[five] == 1  # 11 stands beside 12
    assert column(features, "log(0.1 + smaller gap at -k), 0 where measured")[five] == pytest.approx(np.log(1.1))
    assert column(features, "log(0.1 + smaller gap at -k), 0 where measured")[four] == 0
    assert column(features, "-k measured")[0] == 0  # the Nyquist line is its own opposite


def test_either_side_of_k_space_has_its_own_places() -> None:
    features = line_features(known([6, 7, 8, 9]))
    at_four, at_seven = features[8 + 4], features[8 - 7]
    sided = {name: i for i, name in enumerate(FEATURES) if name.startswith("k near")}
    assert at_four[sided["k near +4"]] == 1 and at_four[list(sided.values())].sum() == 1
    share = (np.log(8) - np.log(5)) / (np.log(9) - np.log(5))  # log(1 + 7) between log(1 + 4) and log(1 + 8)
    assert at_seven[sided["k near -8"]] == pytest.approx(share)
    assert at_seven[sided["k near -4"]] == pytest.approx(1 - share)
    assert not features[8][list(sided.values())].any()


def test_a_line_asked_for_again_is_remembered_and_anything_else_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[LineKnowledge] = []
    monkeypatch.setattr(module, "line_features", lambda *given: made.append(given[0]) or line_features(*given))
    state = known([6, 7, 8, 9, 3], expected=np.linspace(1, 2, N))
    later = replace(state, energies=np.where(state.measured, state.energies, 7.0))  # lines measured since
    features_of_line(state, 14)
    before = len(made)
    for again in (state, later):
        np.testing.assert_array_equal(features_of_line(again, 14), line_features(state, [14])[0])
    assert len(made) == before
    others = [
        known([6, 7, 8, 9, 4], expected=state.expected),
        replace(state, energies=2 * state.energies),
        replace(state, noise=0.2),
        replace(state, expected=3 * state.expected),
    ]
    for other in others:
        np.testing.assert_array_equal(features_of_line(other, 14), line_features(other, [14])[0])
        assert not np.array_equal(features_of_line(other, 14), line_features(state, [14])[0])
    assert len(made) == before + len(others)
    assert not features_of_line(state, 14).flags.writeable


OF_ERRORS = features_of_error(
    ErrorEvidence(1.0, local_variance=1.0, noise=1.0, share=1.0, coils=1, encoding="", phase_aware=False, held_back=1)
)


@pytest.mark.parametrize(
    ("package", "file", "names"),
    [("design", "error_model.json", FEATURES), ("evidence", "squared_error.json", tuple(OF_ERRORS))],
)
def test_what_was_learnt_has_the_features_of_this_version(package: str, file: str, names: tuple[str, ...]) -> None:
    stored = json.loads(resources.files(f"mri_design.{package}").joinpath(file).read_text("utf-8"))
    for each in [stored] if "features" in stored else stored.values():
        assert tuple(each["features"]) == names


PRIOR = (np.array([0.0, 1.0, 0.0]), np.array([2.0, 0.3, 0.5]))
TRUE = np.array([0.5, 0.7, -0.3])


def drawn(count: int, floor: float, shape: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = np.column_stack([np.ones(count), rng.normal(0, 2, count), rng.normal(size=count)])
    mean = floor + np.exp(features @ TRUE)
    return features, mean * rng.gamma(shape, 1 / shape, count), np.full(count, floor)


def test_the_weights_are_the_most_probable_ones() -> None:
    features, energies, floor = drawn(60, 0.3, 1.0)

    def objective(w: np.ndarray) -> float:
        m = floor + np.exp(features @ w)
        return float(np.sum(np.log(m) + energies / m) + np.sum(((w - PRIOR[0]) / PRIOR[1]) ** 2) / 2)

    best = minimize(objective, PRIOR[0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000})
    np.testing.assert_allclose(fitted_weights(features, energies, floor, 1.0, PRIOR), best.x, atol=1e-4)


@pytest.mark.parametrize("factor", [1e-4, 200.0, 1e6])
@pytest.mark.parametrize("shape", [1.0, 8.0])
def test_predictions_that_are_wrong_by_a_large_factor_are_put_right(factor: float, shape: float) -> None:
    """As for a scan whose posterior is far too sure of itself: predicted energies sum to what was found."""
    features, energies, _ = drawn(80, 1e-9, shape)
    weights = fitted_weights(features, factor * energies, np.full(80, 1e-12), shape, PRIOR)
    predicted = np.exp(features @ weights)
    assert 0.7 < predicted.mean() / (factor * energies.mean()) < 1.4
