"""Tables: the same bytes for the same rows, and nothing a cell holds can break the table."""

import csv

import numpy as np
import pytest

from mri_design.errors import InputError
from mri_design.evaluation.tables import csv_text, markdown_text, write_csv, write_markdown

ROWS = [
    {"strategy": "design", "lines": 32, "error": 0.0512345678, "converged": True},
    {"strategy": "random", "lines": np.int64(32), "error": np.float32(0.25), "p": None},
]


def test_csv_has_the_columns_in_order_of_appearance():
    assert csv_text(ROWS) == ("strategy,lines,error,converged,p\ndesign,32,0.0512346,yes,\nrandom,32,0.25,,\n")


def test_columns_and_formats_are_the_callers():
    assert csv_text(ROWS, ["error", "lines"], {"error": ".2f"}) == "error,lines\n0.05,32\n0.25,32\n"


def test_markdown_aligns_numbers_right():
    assert markdown_text(ROWS, ["strategy", "error"], {"error": ".3f"}) == (
        "| strategy | error |\n| :--- | ---: |\n| design | 0.051 |\n| random | 0.250 |\n"
    )


def test_zero_has_no_sign_and_infinity_a_name():
    assert csv_text([{"a": -0.0, "b": float("inf")}]) == "a,b\n0,inf\n"


def test_hostile_cells_stay_inside_their_cell():
    name = 'a|b\n<script>,"c"\\'
    assert next(csv.DictReader(csv_text([{"scan": name}]).splitlines(keepends=True)))["scan"] == name
    lines = markdown_text([{"scan": name}]).splitlines()
    assert lines[2] == '| a\\|b &lt;script>,"c"\\\\ |'
    assert len(lines) == 3


def test_no_rows_need_column_names():
    assert csv_text([], ["a", "b"]) == "a,b\n"
    with pytest.raises(InputError, match="no rows"):
        csv_text([])


def test_a_column_no_row_has_is_refused():
    with pytest.raises(InputError, match="psnr"):
        csv_text(ROWS, ["strategy", "psnr"])


def test_files_hold_the_text(tmp_path):
    write_csv(tmp_path / "t.csv", ROWS)
    write_markdown(tmp_path / "t.md", ROWS)
    assert (tmp_path / "t.csv").read_bytes() == csv_text(ROWS).encode()
    assert (tmp_path / "t.md").read_bytes() == markdown_text(ROWS).encode()
