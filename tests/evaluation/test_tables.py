"""Tables: the same bytes for the same rows, and nothing a cell holds can break the table."""

import csv

import numpy as np
import pytest

from mri_design import InputError
from mri_design.evaluation import (
    csv_text,
    is_numeric,
    markdown_text,
    read_csv,
    read_csv_texts,
    shown_texts,
    write_csv,
)

ROWS = [
    {"strategy": "design", "lines": 32, "error": 0.0512345678, "converged": True},
    {"strategy": "random", "lines": np.int64(32), "error": np.float32(0.25), "p": None},
]


def test_csv_has_the_columns_in_order_of_appearance():
    assert csv_text(ROWS) == ("strategy,lines,error,converged,p\ndesign,32,0.0512346,yes,\nrandom,32,0.25,,\n")

    assert csv_text(ROWS, ["error", "lines"], {"error": ".2f"}) == "error,lines\n0.05,32\n0.25,32\n"
    assert csv_text([{"a": -0.0, "b": float("inf")}]) == "a,b\n0,inf\n"
    assert markdown_text(ROWS, ["strategy", "error"], {"error": ".3f"}) == (
        "| strategy | error |\n| :--- | ---: |\n| design | 0.051 |\n| random | 0.250 |\n"
    )


def test_hostile_cells_stay_inside_their_cell():
    name = 'a|b\n<script>,"c"\\'
    assert next(csv.DictReader(csv_text([{"scan": name}]).splitlines(keepends=True)))["scan"] == name
    lines = markdown_text([{"scan": name}]).splitlines()
    assert lines[2] == '| a\\|b &lt;script>,"c"\\\\ |'
    assert len(lines) == 3


def test_no_rows_need_column_names():
    assert csv_text([], ["a", "b"]) == "a,b\n"
    for rows, columns, field in (([], None, "rows"), (ROWS, ["strategy", "psnr"], "columns")):
        with pytest.raises(InputError) as caught:
            csv_text(rows, columns)
        assert caught.value.field == field


FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "'=1", "''@x"]


@pytest.mark.parametrize("text", FORMULAS)
def test_what_a_spreadsheet_would_run_is_quoted_and_read_back(tmp_path, text):
    write_csv(tmp_path / "t.csv", [{text: text, "scan": "a-b"}])
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as stream:
        header, row = csv.reader(stream)
    assert header[0] == row[0] == "'" + text
    assert row[1] == "a-b"
    assert read_csv(tmp_path / "t.csv") == [{text: text, "scan": "a-b"}]


def test_negative_numbers_stay_numbers():
    row = {"a": -3, "b": -0.5, "c": np.float64(-2e-8), "d": "-1.5", "e": float("-inf"), "f": "+3", "g": 0.25}
    assert csv_text([row], formats={"g": "+.1%"}).splitlines()[1] == "-3,-0.5,-2e-08,-1.5,-inf,+3,+25.0%"


def test_a_file_is_read_back_with_numbers_as_numbers(tmp_path):
    write_csv(tmp_path / "t.csv", [*ROWS, {"change": -0.105, "lines": -3}], formats={"change": "+.1%"})
    first, second, third = read_csv(tmp_path / "t.csv")
    error = pytest.approx(0.0512346)
    assert list(first.values()) == ["design", 32, error, "yes", None, None] and list(first)[-1] == "change"
    assert isinstance(first["lines"], int) and isinstance(second["error"], float)
    assert third["change"] == pytest.approx(-0.105) and third["lines"] == -3
    assert is_numeric([first, second, third], "change") and not is_numeric([first], "strategy")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.103531, 0.11482], ["0.104", "0.115"]),
        ([1.376, 0.96512, 1.0], ["1.376", "0.965", "1.000"]),
        ([314.52, 25405.4], ["315", "25405"]),
        ([64.0, 128.0], ["64", "128"]),
        ([2.5e-9, 1.0], ["2.50e-09", "1.00e+00"]),
        ([0.0, float("nan"), 0.25, None], ["0.000", "nan", "0.250", ""]),
        ([0.0, 0.0], ["0", "0"]),
        (["a", True], ["a", "yes"]),
    ],
)
def test_people_see_one_precision_in_a_column(values, shown):
    assert [cell for (cell,) in shown_texts([{"x": v} for v in values], ["x"])] == shown

    assert shown_texts([{"x": 2}, {"x": 0.123}], ["x"], {"x": ".1f"}) == [["2.0"], ["0.1"]]


def test_a_file_can_be_read_back_as_text(tmp_path):
    write_csv(tmp_path / "t.csv", [{"-log Z": 1.5, "who": "@me", "why": None}])
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == "'-log Z,who,why"
    assert read_csv_texts(tmp_path / "t.csv") == [{"-log Z": "1.5", "who": "@me", "why": ""}]
    (tmp_path / "old.csv").write_text("-log Z,who\n1.5,@me\n")  # written before cells were guarded
    assert read_csv_texts(tmp_path / "old.csv") == [{"-log Z": "1.5", "who": "@me"}]
