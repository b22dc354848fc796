"""The shipped files: complete, unchanged, licensed, small; found in a checkout and in a wheel."""

import hashlib
import json
import shutil

import numpy as np
import pytest

from mri_design import load_phantom
from mri_design.scan.simulation import (
    phantom_header,
    phantom_names,
    phantom_path,
    phantoms_folder,
    read_ellipse_table,
    read_ellipsoid_table,
    read_shipped,
    scanner,
)
from tests.refusals import refused


@pytest.mark.parametrize("name", phantom_names())
def test_every_file_equals_the_checksum_on_its_header(name):
    header, path = phantom_header(name), phantom_path(name)
    assert header["file"] == path.name
    assert header["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_nothing_is_shipped_without_a_name_and_all_of_it_is_small():
    folder = phantoms_folder()
    known = {"README.md"}
    for name in phantom_names():
        path = phantom_path(name)
        known |= {path.name, f"{path.stem}.header.json" if path.suffix == ".json" else f"{path.stem}.json"}
    shipped = {p.name for p in folder.iterdir() if not p.name.startswith(".")}
    assert shipped == known
    assert sum(p.stat().st_size for p in folder.iterdir()) < 2_000_000


@pytest.mark.parametrize(
    ("name", "shape", "without"),
    [("lf-gre", [1, 1, 128, 196], {0}), ("lf-fse", [4, 1, 128, 126], {0}), ("head-16ch", [1, 16, 128, 128], set())],
)
def test_raw_scans_have_the_shape_and_the_empty_lines_of_their_headers(name, shape, without):
    header, data = phantom_header(name), np.load(phantom_path(name), allow_pickle=False)
    kspace = data if isinstance(data, np.ndarray) else data["kspace"]
    assert kspace.dtype == np.complex64
    assert list(kspace.shape) == header["shape"] == shape
    largest = np.abs(kspace).max(axis=(0, 1, 2))
    assert set(header["zero_filled_k1_columns"]) == without
    assert set(np.flatnonzero(largest < 1e-6 * largest.max())) == without


@pytest.mark.parametrize("layout", ["checkout", "wheel"])
def test_folder_is_found_beside_and_inside_the_package(layout, tmp_path, monkeypatch):
    module = tmp_path / "mri_design" / "scan" / "simulation" / "phantoms.py"
    monkeypatch.setattr(scanner, "__file__", str(module))
    with refused("phantoms"):
        phantoms_folder()
    target = tmp_path / "phantoms" if layout == "checkout" else tmp_path / "mri_design" / "phantoms"
    target.mkdir(parents=True)
    (target / "shepp_logan.json").write_text("{}")
    assert phantoms_folder() == target.resolve()


def test_changed_files_are_refused(tmp_path, monkeypatch):
    target = tmp_path / "phantoms"
    shutil.copytree(phantoms_folder(), target)
    monkeypatch.setattr(scanner, "phantoms_folder", lambda: target)
    read_shipped("brain")
    table = json.loads((target / "brain.json").read_text())
    table["ellipses"][0]["intensity"] = 0.1
    (target / "brain.json").write_text(json.dumps(table))
    with refused("brain.json"):
        read_shipped("brain")


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


BALL = {"centre": [0, 0, 0], "semi_axes": [0.1, 0.1, 0.1], "intensity": 1}


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("{", "scene.json"),
        ("[" * 100_000, "scene.json"),
        ([], "scene.json"),
        (" " * (1 << 20) + "{}", "scene.json"),
        ({}, "ellipses"),
        ({"ellipses": []}, "ellipses"),
        ({"ellipses": [ROW] * 1001}, "ellipses"),
        ({"ellipses": [3]}, "ellipses[0]"),
        ({"ellipses": [ROW, {**ROW, "centre": [0.1]}]}, "ellipses[1].centre"),
        ({"ellipses": [{**ROW, "centre": [0.1, "0"]}]}, "ellipses[0].centre"),
        ({"ellipses": [{**ROW, "intensity": float("nan")}]}, "intensity"),
        ({"ellipses": [{**ROW, "intensity": 10**400}]}, "intensity"),
        ({"ellipses": [{**ROW, "angle_degrees": True}]}, "angle_degrees"),
        ({"ellipses": [{**ROW, "semi_axes": [0.1, 0]}]}, "semi_axes"),
        ({"ellipses": [ROW, {**ROW, "centre": [0.45, 0.0]}]}, "ellipses[1]"),
        ({"ellipsoids": [{**BALL, "centre": [0, 0]}]}, "ellipsoids[0].centre"),
        ({"ellipsoids": [BALL, {**BALL, "centre": [0, 0, 0.45]}]}, "ellipsoids[1]"),
        ({"ellipsoids": [{**BALL, "semi_axes": [0.1, 0, 0.1]}]}, "semi_axes"),
    ],
)
def test_bad_tables_are_refused_by_field(tmp_path, content, field):
    read = read_ellipsoid_table if "ellipsoids" in content else read_ellipse_table
    with refused(field):
        read(write(tmp_path, content))


def test_turned_ellipses_are_measured_turned(tmp_path):
    slim = {"semi_axes": [0.3, 0.05], "intensity": 1}
    for centre, fits, leaves in (([0.0, 0.35], 90, 60), ([0.35, 0.0], 0, 30)):
        at = {**slim, "centre": centre}
        read_ellipse_table(write(tmp_path, {"ellipses": [{**at, "angle_degrees": fits}]}))
        with refused("ellipses[0]"):
            read_ellipse_table(write(tmp_path, {"ellipses": [{**at, "angle_degrees": leaves}]}))


@pytest.mark.parametrize("name", ["shepp-logan", "brain", "t2w", "t1w", "t1w-6a"])
@pytest.mark.parametrize(("shape", "grid"), [(64, (64, 64)), ((63, 50), (63, 50))])
def test_every_scene_loads_on_every_grid(name, shape, grid):
    scan = load_phantom(name, shape=shape, n_coils=2, rng=np.random.default_rng(0))
    assert scan.kspace.shape == (1, 2, *grid)
    assert scan.reference.shape == (1, *grid)
    assert scan.coil_maps.shape == scan.kspace.shape
    assert scan.kspace.dtype == scan.reference.dtype == scan.coil_maps.dtype == np.complex64
    assert scan.noise_variance == pytest.approx(0.007**2)
    assert scan.name == name
    assert scan.header["licence"] == "CC0 1.0"
    assert np.percentile(np.abs(scan.reference), 99.5) == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "settings", "field"),
    [("lf-gre", {}, "phantom"), ("../secret", {}, "phantom"), ("brain", {"phase": "rough"}, "phase")],
)
def test_a_measured_scan_and_unknown_names_are_refused(name, settings, field):
    with refused(field):
        load_phantom(name, rng=np.random.default_rng(0), **settings)
