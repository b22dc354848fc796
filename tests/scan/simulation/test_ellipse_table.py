"""Ellipse tables from JSON: what is read and what is refused."""

import json

import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.simulation.phantoms import read_ellipse_table

ROW = {"centre": [0.1, -0.2], "semi_axes": [0.1, 0.2], "angle_degrees": 90, "intensity": 0.5}


def write(tmp_path, content):
    path = tmp_path / "scene.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_rows_are_read_with_units_and_complex_intensities(tmp_path):
    phantom = read_ellipse_table(write(tmp_path, {"ellipses": [ROW, {**ROW, "intensity": [0.0, 1.0]}]}))
    np.testing.assert_allclose(phantom.angles, np.pi / 2)
    np.testing.assert_allclose(phantom.intensities, [0.5, 1j])
    np.testing.assert_allclose(phantom.centres[0], [0.1, -0.2])
    assert phantom.name == "scene"
    plain = read_ellipse_table(write(tmp_path, {"ellipses": [{**ROW, "part": "remark"}]}), name="mine")
    assert not np.iscomplexobj(plain.intensities)
    assert plain.name == "mine"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "scene.json"),
        ("[" * 100_000, "scene.json"),
        ([], "scene.json"),
        ({}, "ellipses"),
        ({"ellipses": []}, "0 rows"),
        ({"ellipses": [ROW] * 1001}, "1001 rows"),
        ({"ellipses": [3]}, r"ellipses\[0\]"),
        ({"ellipses": [ROW, {**ROW, "centre": [0.1]}]}, r"ellipses\[1\].centre"),
        ({"ellipses": [{**ROW, "centre": [0.1, "0"]}]}, r"ellipses\[0\].centre"),
        ({"ellipses": [{**ROW, "intensity": float("nan")}]}, "intensity"),
        ({"ellipses": [{**ROW, "intensity": 10**400}]}, "intensity"),
        ({"ellipses": [{**ROW, "angle_degrees": None}]}, "angle_degrees"),
        ({"ellipses": [{**ROW, "angle_degrees": True}]}, "angle_degrees"),
        ({"ellipses": [{**ROW, "semi_axes": [0.1, 0]}]}, "semi_axes"),
        ({"ellipses": [ROW, {**ROW, "centre": [0.45, 0.0]}]}, r"ellipses\[1\]"),
        (" " * (1 << 20) + "{}", "bytes"),
    ],
)
def test_bad_tables_are_refused_by_field(tmp_path, content, words):
    with pytest.raises(InputError, match=words):
        read_ellipse_table(write(tmp_path, content))


def test_turned_ellipses_are_measured_turned(tmp_path):
    slim = {"semi_axes": [0.3, 0.05], "intensity": 1}
    for centre, fits, leaves in (([0.0, 0.35], 90, 60), ([0.35, 0.0], 0, 30)):
        at = {**slim, "centre": centre}
        read_ellipse_table(write(tmp_path, {"ellipses": [{**at, "angle_degrees": fits}]}))
        with pytest.raises(InputError, match="field of view"):
            read_ellipse_table(write(tmp_path, {"ellipses": [{**at, "angle_degrees": leaves}]}))


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.json"):
        read_ellipse_table(tmp_path / "nothing.json")
