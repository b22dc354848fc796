"""The shipped files: complete, unchanged, licensed, small; found in a checkout and in a wheel."""

import hashlib
import json
import shutil

import numpy as np
import pytest

from mri_design import InputError, load_input, load_phantom, load_recipe
from mri_design.scan.simulation import phantoms
from mri_design.scan.simulation.phantoms import (
    phantom_header,
    phantom_kind,
    phantom_names,
    phantom_path,
    phantoms_folder,
    read_ellipse_table,
    read_shipped_ellipses,
    read_shipped_images,
)


@pytest.mark.parametrize("name", phantom_names())
def test_every_file_equals_the_checksum_on_its_header(name):
    header, path = phantom_header(name), phantom_path(name)
    assert header["file"] == path.name
    assert header["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", phantom_names())
def test_every_headers_names_source_licence_and_caveat(name):
    header = phantom_header(name)
    assert header["licence"].startswith("MIT, (c) 2024 pulseq" if name == "head-16ch" else "CC0 1.0")
    assert header["caveat"]
    assert header["field_of_view"]
    if phantom_kind(name) not in ("ellipses", "ellipsoids"):
        assert {"repo", "commit", "path", "sha256"} <= set(header["source"])
        assert ("pulseq" if name == "head-16ch" else "10.1038/s41467-021-27317-1") in header["citation"]


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


@pytest.mark.parametrize(("name", "measured"), [("lf-fse", (126, 125)), ("head-16ch", (128, 128))])
def test_raw_scans_are_read_with_their_phase_encodes_as_rows(name, measured):
    scan = load_input(f"phantom:{name}", load_recipe(None))
    assert (scan.grid_shape[0], scan.measured.sum()) == measured


@pytest.mark.parametrize("name", ["t2w", "t1w", "t1w-6a"])
def test_slices_are_magnitudes_of_the_promised_size(name):
    stack = read_shipped_images(name)
    assert stack.images.shape == (1, 256, 256)
    assert stack.images.min() == 0
    assert np.percentile(stack.images, 99.5) == pytest.approx(1, abs=2e-3)
    assert stack.header["licence"] == "CC0 1.0"


@pytest.mark.parametrize(("name", "least", "most"), [("shepp-logan", 10, 10), ("brain", 15, 40)])
def test_scenes_are_heads_not_negatives(name, least, most):
    phantom = read_shipped_ellipses(name)
    image = phantom.image(128)
    assert least <= len(phantom.intensities) <= most
    assert image.min() > -1e-12
    assert 0.9 < image.max() < 1.1
    assert not image[:, 0].any()  # air around the head
    occupied = image > 0
    assert occupied.sum(axis=0).max() > occupied.sum(axis=1).max() > 64  # longer than wide, filling the view


def test_orientation_of_the_shepp_logan_head():
    image = read_shipped_ellipses("shepp-logan").image(256)
    assert image[85, 128] == pytest.approx(0.3)  # the large tumour lies in the upper half
    assert image[204, 128] == pytest.approx(0.3)  # three small ones in the lower
    assert (image[60:180, 40:128] < 0.05).sum() > 1.3 * (image[60:180, 128:216] < 0.05).sum()


def test_unknown_names_and_wrong_kinds_are_refused():
    with pytest.raises(InputError, match="shepp-logan, brain"):
        phantom_path("../secret")
    with pytest.raises(InputError, match="ellipses"):
        read_shipped_images("brain")
    with pytest.raises(InputError, match="images"):
        read_shipped_ellipses("t2w")


@pytest.mark.parametrize("layout", ["checkout", "wheel"])
def test_folder_is_found_beside_and_inside_the_package(layout, tmp_path, monkeypatch):
    module = tmp_path / "mri_design" / "scan" / "simulation" / "phantoms.py"
    monkeypatch.setattr(phantoms, "__file__", str(module))
    with pytest.raises(InputError, match="Install"):
        phantoms_folder()
    target = tmp_path / "phantoms" if layout == "checkout" else tmp_path / "mri_design" / "phantoms"
    target.mkdir(parents=True)
    (target / "shepp_logan.json").write_text("{}")
    assert phantoms_folder() == target.resolve()


def test_changed_files_are_refused(tmp_path, monkeypatch):
    target = tmp_path / "phantoms"
    shutil.copytree(phantoms_folder(), target)
    monkeypatch.setattr(phantoms, "phantoms_folder", lambda: target)
    read_shipped_ellipses("brain")
    table = json.loads((target / "brain.json").read_text())
    table["ellipses"][0]["intensity"] = 0.1
    (target / "brain.json").write_text(json.dumps(table))
    with pytest.raises(InputError, match="checksum"):
        read_shipped_ellipses("brain")


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


def test_usual_size_and_noise():
    scan = load_phantom("t2w", noise=0.05, rng=np.random.default_rng(0))
    assert scan.grid_shape == (256, 256)
    assert scan.noise_variance == pytest.approx(0.0025)
    quiet = load_phantom("t2w", noise=0, rng=np.random.default_rng(0))
    assert (scan.kspace - quiet.kspace).real.std() == pytest.approx(0.05, rel=0.02)


def test_phase_is_handed_on():
    plain = load_phantom("t1w", shape=64, phase="none", rng=np.random.default_rng(0)).reference
    assert np.abs(plain.imag).max() == 0
    smooth = load_phantom("brain", shape=64, rng=np.random.default_rng(0)).reference
    assert np.abs(smooth.imag).max() > 0.1


def test_a_measured_scan_and_unknown_names_are_refused():
    with pytest.raises(InputError, match=r"lf_6A_gre_slice\.npy"):
        load_phantom("lf-gre", rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="one of"):
        load_phantom("head", rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="phase"):
        load_phantom("brain", phase="rough", rng=np.random.default_rng(0))
