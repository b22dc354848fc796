"""Every strategy of the package is explained where its name stands."""

from mri_design.experiment.strategies import EXPLAINED, STRATEGIES, explained


def test_every_strategy_is_explained_in_one_clause_and_no_other_is() -> None:
    known = {name for named in STRATEGIES.values() for name in named}
    assert known <= set(EXPLAINED)
    assert not any(text[0].isupper() or text.endswith(".") for text in EXPLAINED.values())


def test_what_stands_behind_a_colon_is_told() -> None:
    assert explained("vd-polynomial:3") == EXPLAINED["vd-polynomial"] + " (set to 3)"
    assert explained("trained:a/order.npz") == "in the order that mri-design train learnt on other scans"
    assert explained("calibrated:a/order.npz").startswith(EXPLAINED["calibrated"])
    assert "order.npz" not in explained("calibrated:a/order.npz")
    assert explained("mine") == ""
