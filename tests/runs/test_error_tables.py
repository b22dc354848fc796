import numpy as np
import pytest

from mri_design.runs.error_tables import (
    best_other,
    enough_table,
    errors_by_image,
    paired_table,
    summary_table,
    winners_table,
)


def rows_of(name: str, lines: int, errors: list[list[float]]) -> list[dict[str, object]]:
    """Errors by (draw, image)."""
    cell = {"strategy": name, "lines": lines}
    return [
        {**cell, "draw": draw, "image": f"image {i}", "relative_l2": e, "psnr": 10 * e, "ssim": 1 - e}
        for draw, errors_of_draw in enumerate(errors)
        for i, e in enumerate(errors_of_draw)
    ]


ROWS = [
    *rows_of("gain", 8, [[0.1, 0.2, 0.3]]),
    *rows_of("random", 8, [[0.2, 0.2, 0.4], [0.4, 0.2, 0.6]]),
    *rows_of("low-pass", 8, [[0.3, 0.4, 0.5]]),
    *rows_of("gain", 16, [[0.1, 0.1, 0.1]]),
    *rows_of("random", 16, [[0.1, 0.1, 0.2], [0.1, 0.1, 0.2]]),
    *rows_of("low-pass", 16, [[0.05, 0.1, 0.1]]),
]


def test_the_summary_by_hand() -> None:
    np.testing.assert_array_equal(errors_by_image(ROWS, "random", 8), [[0.2, 0.2, 0.4], [0.4, 0.2, 0.6]])
    np.testing.assert_allclose(errors_by_image(ROWS[::-1], "gain", 8, "psnr"), [[3.0, 2.0, 1.0]])
    table = summary_table(ROWS, ["gain", "random"], [8, 16])
    assert [row["lines"] for row in table] == [8, 8, 16, 16]
    assert [row["strategy"] for row in table] == ["gain", "random"] * 2
    gain, random = table[:2]
    found = [gain[name] for name in ("relative_l2", "sd_images", "worst", "psnr", "ssim")]
    assert found == pytest.approx([0.2, 0.1, 0.3, 2.0, 0.8]) and gain["sd_draws"] is None
    found = [random[name] for name in ("relative_l2", "sd_images", "sd_draws", "worst")]
    spreads = [np.std(values, ddof=1) for values in ([0.3, 0.2, 0.5], [0.8 / 3, 1.2 / 3])]
    assert found == pytest.approx([1 / 3, *spreads, 0.5])
    (one,) = summary_table(rows_of("gain", 8, [[0.5]]), ["gain"], [8])
    assert (one["sd_images"], one["sd_draws"], one["worst"]) == (None, None, 0.5)


def test_pairs_are_with_the_best_of_the_others_at_each_count() -> None:
    first, second = paired_table(ROWS, ["gain"], ["random", "low-pass"], [8, 16])
    assert (first["lines"], first["against"]) == (8, "random")
    assert first["change"] == pytest.approx(np.mean([0.1 / 0.3, 1.0, 0.3 / 0.5]) - 1)
    assert first["worst_change"] == pytest.approx(0.0)
    assert first["better_on"] == "2 of 3"
    assert (second["lines"], second["against"]) == (16, "low-pass")
    assert second["change"] == pytest.approx(1 / 3)  # the designed mask loses, and the table says so
    assert second["better_on"] == "0 of 3"
    for images in (1, 5, 6):  # of five images even those that agree have a p of 1/16
        rows = [*rows_of("gain", 8, [[0.1] * images]), *rows_of("random", 8, [[0.2] * images])]
        (row,) = paired_table(rows, ["gain"], ["random"], [8])
        assert row.get("p") == (pytest.approx(2 / 2**6) if images == 6 else None)


def test_the_winner_at_each_count_is_the_least_mean_error() -> None:
    names = ["gain", "random", "low-pass"]
    first, second = winners_table(ROWS, names, [8, 16])
    assert (first["lines"], first["best"], first["second"]) == (8, "gain", "random")
    assert first["relative_l2"] == pytest.approx(0.2)
    assert first["lead"] == pytest.approx(0.2 / (2.0 / 6) - 1)
    assert (second["best"], second["second"]) == ("low-pass", "gain")  # the designed one loses here, and that is said
    (alone,) = winners_table(ROWS, ["gain"], [8])
    assert (alone["best"], alone["second"], alone["lead"]) == ("gain", None, None)


def test_lines_that_are_enough_for_every_error() -> None:
    """Errors that fall as 1 / lines: an error of e needs as many lines as make it e, whatever was measured beside."""
    rows = [
        row
        for count in (8, 16, 32)
        for name, scale in (("gain", 1.0), ("random", 2.0))
        for row in rows_of(name, count, [[scale * 2 / count, scale * 2.4 / count, scale * 4 / count]])
    ]
    table = {(row["relative_l2"], row["strategy"]): row for row in enough_table(rows, ["gain", "random"], [32, 8, 16])}
    assert [table[0.2, "gain"][name] for name in ("median", "most", "reached")] == [12, 20, "3 of 3"]
    assert table[0.1, "gain"]["median"] == 24 and table[0.1, "gain"]["most"] is None
    assert table[0.15, "random"]["reached"] == "2 of 3" and table[0.15, "random"]["median"] == 32
    assert (0.05, "random") not in table  # which none reaches
    assert table[0.3, "gain"] == {**table[0.2, "gain"], "relative_l2": 0.3, "median": None, "most": 14}
    assert enough_table(rows_of("gain", 8, [[0.05]]) + rows_of("gain", 16, [[0.0]]), ["gain"], [8, 16]) == []
    exact = enough_table(rows_of("gain", 8, [[0.2]]) + rows_of("gain", 16, [[0.0]]), ["gain"], [8, 16])
    assert [(row["relative_l2"], row["median"]) for row in exact] == [(e, 16) for e in (0.05, 0.08, 0.1, 0.15)]
    assert not enough_table(rows, ["gain"], [16])


def test_the_best_of_the_others_is_that_of_the_least_error() -> None:
    rows = [{"strategy": name, "relative_l2": error} for name, error in (("protocol", 0.1), ("a", 0.3), ("b", 0.2))]
    assert best_other(rows, "protocol") == ("b", 0.2) and best_other(rows[:1], "protocol") is None
