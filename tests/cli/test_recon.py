"""`recon` of one slice: of masks, coils and trajectories, and what it leaves beside an image."""

import json
import re
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from mri_design import load_phantom, measure
from mri_design.experiment import load_trained
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.runs import recon
from tests.cli.folders import Designed, Run, cited, manifest, page, rows, settings
from tests.folded_scans import folded


def test_the_mask_of_a_design_gives_an_image_with_error_bars(run: Run, designed: Designed, tmp_path: Path) -> None:
    mask, out = designed[0] / "mask.npy", tmp_path / "x"
    run("recon", "scan.npz", "--mask", mask, "--recipe", "quick.toml", "--out", out, code=0)
    assert (out / "mask.npy").read_bytes() == mask.read_bytes()
    assert np.load(out / "recon.npy").shape == np.load(out / "std.npy").shape == (24, 20)
    assert [row["method"] for row in rows(out / "metrics.csv")] == ["mean", "zero-filled"]
    assert [entry["name"] for entry in manifest(out)["inputs"]] == ["scan.npz", "mask.npy"]
    assert manifest(out)["lines"] == sorted(manifest(designed[0])["lines"])
    designed_image = np.load(designed[0] / "recon.npy")
    difference = np.abs(np.load(out / "recon.npy") - designed_image)
    assert np.linalg.norm(difference) < 0.1 * np.linalg.norm(designed_image)
    # the design's own image starts from its last posterior
    assert int(rows(designed[0] / "metrics.csv")[0]["matvecs"]) < 0.8 * int(rows(out / "metrics.csv")[0]["matvecs"])


def test_a_run_that_was_killed_while_it_reported_leaves_the_same_result(
    run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("recon", "scan.npz", "--recipe", "quick.toml", "--no-report", "--out")
    run(*words, tmp_path / "whole", code=0)
    with monkeypatch.context() as patch:
        patch.setattr(recon, "report_reconstruction", Mock(side_effect=KeyboardInterrupt))
        assert run(*words, tmp_path / "killed").exit_code == 130
    run(*words, tmp_path / "killed", "--resume", code=0)
    whole, killed = (np.load(tmp_path / name / "result.npz") for name in ("whole", "killed"))
    judged = [json.loads(one["text"].tobytes())["record"]["judged"] for one in (whole, killed)]
    assert judged[0] == judged[1] and np.array_equal(whole["numbers"], killed["numbers"])


def test_without_a_mask_all_measured_lines_are_used_and_no_others(run: Run, work: Path, tmp_path: Path) -> None:
    with np.load(work / "scan.npz") as stored:
        kspace = stored["kspace"].copy()
    kspace[:, :, [0, 5, 23]] = 0
    np.save(tmp_path / "holed.npy", kspace)
    run("recon", tmp_path / "holed.npy", "--method", "zero-filled", "--out", tmp_path / "x", code=0)
    assert np.flatnonzero(~np.load(tmp_path / "x" / "mask.npy")).tolist() == [0, 5, 23]
    (row,) = rows(tmp_path / "x" / "metrics.csv")
    assert row["relative_l2"] == ""  # nothing to compare with
    mask = np.ones(24, dtype=bool)
    np.save(tmp_path / "mask.npy", mask)
    run("recon", tmp_path / "holed.npy", "--mask", tmp_path / "mask.npy", "--out", tmp_path / "y", code=3)


def test_verbs_take_given_maps_and_noise_as_recon_does_and_name_them(run: Run, tmp_path: Path) -> None:
    data = load_phantom("brain", shape=(24, 20), n_coils=4, rng=np.random.default_rng(1))
    scan, maps = tmp_path / "coils.npz", tmp_path / "maps.npy"
    np.savez(scan, kspace=data.kspace, noise_variance=np.float64(data.noise_variance), reference=data.reference)
    np.save(maps, data.coil_maps)
    np.savez(tmp_path / "prescan.npz", kspace=data.kspace[..., 2:22, 2:18])
    low = ("--lines", 8, "--start", 4, "--recipe", "fast.toml")
    verbs = {
        "recon": ("--maps", maps, "--recipe", "fast.toml"),
        "design": ("--maps", maps, "--strategy", "low-pass", *low),
        "compare": ("--maps", f"{scan}={maps}", "--strategies", "low-pass", "--jobs", 1, *low),
    }
    for verb, words in verbs.items():
        run(verb, scan, *words, "--out", tmp_path / verb, code=0)
        assert "maps.npy" in [entry["name"] for entry in manifest(tmp_path / verb)["inputs"]]
    assert settings(tmp_path / "design")["start"] == 4  # nothing was calibrated, so nothing is measured for it
    run("recon", scan, "--recipe", "fast.toml", "--out", tmp_path / "recon", code=2)
    given, order = ("--maps-from", tmp_path / "prescan.npz", "--noise", 0.01), tmp_path / "order.npz"
    run("recon", scan, *given, "--recipe", "fast.toml", "--out", tmp_path / "recon", "--overwrite", code=0)
    run("protocol", scan, *given, *low, "--jobs", 1, "--strategy", "low-pass", "--out", tmp_path / "protocol", code=0)
    run("protocol", "--rule", "residual-greedy", scan, *given, *low[:2], *low[4:], "--jobs", 1, "--out", order, code=0)
    one, told = settings(tmp_path / "recon"), settings(tmp_path / "protocol")
    assert told["input"]["noise"] == one["input"]["noise"] == 0.01
    assert list(told["coil_maps_sources"].values()) == [one["coil_maps_source"]]
    assert "prescan.npz" in [entry["name"] for entry in manifest(tmp_path / "protocol")["inputs"]]
    sources = {"coils.npz": one["noise_source"]}
    assert told["noise_sources"] == load_trained(order).settings["noise_sources"] == sources


FAST = ("--recipe", "fast.toml")


def test_every_slice_of_a_volume_has_its_own_image(run: Run, work: Path, tmp_path: Path) -> None:
    scan = np.load(work / "scan.npz")
    kspace = np.concatenate([scan["kspace"], 2 * scan["kspace"]])
    np.savez(tmp_path / "two.npz", kspace=kspace, noise_variance=scan["noise_variance"])
    truths = np.abs(np.concatenate([scan["reference"], scan["reference"]]))
    truths[1, :4] = 0
    np.save(tmp_path / "truths.npy", truths)
    words = ("recon", tmp_path / "two.npz", "--reference", tmp_path / "truths.npy", *FAST, "--jobs", 1)
    run(*words, "--out", tmp_path / "run")
    images = np.load(tmp_path / "run" / "recon.npy")
    table = rows(tmp_path / "run" / "metrics.csv")
    scales = settings(tmp_path / "run")["reference_scales"]
    for number in range(2):
        expected = measure(np.abs(images[number]), scales[number] * truths[number]).relative_l2
        assert float(table[number]["relative_l2"]) == pytest.approx(expected, rel=1e-4)
    assert scales[1] == pytest.approx(2 * scales[0], rel=0.1)
    told, pair = settings(tmp_path / "run"), settings(tmp_path / "run")["error"]
    assert (pair["of"], pair["against"]) == ("modulus", "truths.npy")
    assert "reference_noise" not in told and "ranks" not in table[0]
    assert pair["found"] == pytest.approx(np.mean([float(row["found_error"]) for row in table[:2]]), rel=1e-4)


def test_draws_and_the_reference_stand_beside_an_image_and_do_not_stay(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "x"
    run("recon", "scan.npz", "--recipe", "quick-local.toml", "--draws", 5, "--no-report", "--out", out, code=(0, 4))
    assert np.load(out / "draws.npy").shape == (5, 24, 20) and np.load(out / "reference.npy").shape == (24, 20)
    run("recon", "scan.npz", "--recipe", "fast.toml", "--no-report", "--out", out, "--overwrite", code=(0, 4))
    assert not (out / "draws.npy").exists() and not (out / "reference.npy").exists()


STEP = 2


@pytest.fixture(scope="module")
def coils(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two slices that four coils measured on every second line, with their maps and noise."""
    scan = load_phantom("brain", shape=(24, 20), n_coils=4, rng=np.random.default_rng(0))
    kspace = np.repeat(scan.kspace, 2, axis=0)
    kspace[:, :, 1::STEP] = 0
    path = tmp_path_factory.mktemp("coils") / "coils.npz"
    np.savez(path, kspace=kspace, coil_maps=np.repeat(scan.coil_maps, 2, axis=0), noise_variance=5e-5)
    return path


def test_least_squares_leave_noise_and_g_factor_next_to_the_image_and_nothing_without_the_flag(
    run: Run, coils: Path, tmp_path: Path
) -> None:
    out, words = tmp_path / "x", ("recon", coils, "--slices", 0, "--method", "least-squares")
    run(*words, "-s", "reconstruction.noise_map=true", "--out", out, code=0)
    run("recon", coils, *words[-2:], "-s", "reconstruction.noise_map=true", "--out", tmp_path / "both", code=0)
    for name in ("noise.npy", "g_factor.npy"):
        np.testing.assert_array_equal(np.load(tmp_path / "both" / name)[0], np.load(out / name))
    g_factor, noise = np.load(out / "g_factor.npy"), np.load(out / "noise.npy")
    assert g_factor.shape == noise.shape == (24, 20) and g_factor.min() > 0.99 and g_factor.max() > 1.01
    # In the file's units a pixel of the complete scan has the noise of a sample: brightness is the coils' own.
    assert np.median(noise / g_factor) == pytest.approx(np.sqrt(2 * 5e-5 * STEP), rel=0.02)
    run("export", out, "--out", tmp_path / "x.nii", code=0)
    assert (tmp_path / "x_noise.nii").is_file() and (tmp_path / "x_g_factor.nii").is_file()
    run(*words, "--out", out, "--overwrite", code=0)
    assert not (out / "g_factor.npy").exists() and not (out / "noise.npy").exists()


def test_slices_of_two_sets_of_maps_leave_out_the_map_of_noise(run: Run, tmp_path: Path) -> None:
    lines = np.zeros(48, dtype=bool)
    lines[20:28] = lines[:20:3] = lines[28::3] = True
    inside = load_phantom("t1w", shape=(48, 64), noise=0.01, n_coils=8, rng=np.random.default_rng(1)).kspace
    slices = np.concatenate([inside, inside, folded().kspace]) * lines[:, np.newaxis]
    np.savez(tmp_path / "slices.npz", kspace=slices.astype(np.complex64))
    words = ("recon", tmp_path / "slices.npz", "-s", "input.dims=slice,coil,ky,kx", "--method", "least-squares")
    words, out = (*words, "-s", "reconstruction.noise_map=true"), tmp_path / "out"
    shown = run(*words, "--out", out, code=0)
    assert "slice 2" in shown.output and np.load(out / "recon.npy").shape == (3, 48, 64)
    assert not (out / "noise.npy").exists()
    run(*words, "--slices", "0-1", "--out", out, "--overwrite", code=0)
    assert np.load(out / "noise.npy").shape == (2, 48, 64)


def test_a_head_beyond_its_field_of_view_is_doubted(run: Run, tmp_path: Path) -> None:
    """What folds in has two values of every coil map at one pixel, which no single set of maps explains."""
    data = load_phantom("brain", shape=(64, 32), n_coils=4, rng=np.random.default_rng(1))
    images = to_image(data.kspace)
    folded = images[:, :, 10:54].copy()
    folded[:, :, -10:] += images[:, :, :10]
    folded[:, :, :10] += images[:, :, 54:]
    for name, kspace in (("whole", data.kspace), ("cut", to_kspace(folded))):
        np.savez(tmp_path / "scan.npz", kspace=kspace, noise_variance=np.float64(data.noise_variance))
        axes = ("-s", "input.dims=slice,coil,ky,kx")
        run(
            "recon",
            tmp_path / "scan.npz",
            *axes,
            "--maps",
            "espirit",
            "--recipe",
            "quick.toml",
            "--out",
            tmp_path / name,
            code=0,
        )
    whole, cut = settings(tmp_path / "whole"), settings(tmp_path / "cut")
    assert whole["misfit_of_samples"] < 2 and "misfit_doubt" not in whole
    assert cut["misfit_of_samples"] > 2 and cut["misfit_doubt"]


@pytest.mark.slow
def test_the_paragraph_for_a_paper_cites_what_the_run_used_and_nothing_else(
    run: Run, designed: Designed, tmp_path: Path
) -> None:
    assert cited(designed[0]) == {"seeger2008", "seeger2010", "nickisch2009", "mri_design"}
    methods = {"least-squares": {"pruessmann2001"}, "total-variation": {"block2007"}, "map": set()}
    for method, works in methods.items():
        out = tmp_path / method
        words = ("--mask", designed[0] / "mask.npy", "--recipe", "quick.toml", "--method", method)
        run("recon", "scan.npz", *words, "--out", out, code=(0, 4))
        assert cited(out) == works | {"mri_design"}
    text = re.sub("<.*?>", "", page(out).partition('id="methods-text">')[2].partition("</p>")[0])
    assert "12 of 24 lines" in text and f"seed {manifest(out)['seed']}" in text
