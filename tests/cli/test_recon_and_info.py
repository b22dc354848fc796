from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from mri_design.experiment import load_trained
from tests.cli.folders import Designed, Run, manifest, rows, settings


def methods(folder: Path) -> list[str]:
    return [row["method"] for row in rows(folder / "metrics.csv")]


def test_the_mask_of_a_design_gives_an_image_with_error_bars(run: Run, designed: Designed, tmp_path: Path) -> None:
    mask, out = designed[0] / "mask.npy", tmp_path / "x"
    run("recon", "scan.npz", "--mask", mask, "--recipe", "quick.toml", "--out", out, code=0)
    assert (out / "mask.npy").read_bytes() == mask.read_bytes()
    assert np.load(out / "recon.npy").shape == np.load(out / "std.npy").shape == (24, 20)
    assert methods(out) == ["mean", "zero-filled"]
    assert [entry["name"] for entry in manifest(out)["inputs"]] == ["scan.npz", "mask.npy"]
    assert manifest(out)["lines"] == sorted(manifest(designed[0])["lines"])
    designed_image = np.load(designed[0] / "recon.npy")
    difference = np.abs(np.load(out / "recon.npy") - designed_image)
    assert np.linalg.norm(difference) < 0.1 * np.linalg.norm(designed_image)
    # the design's own image starts from its last posterior
    assert int(rows(designed[0] / "metrics.csv")[0]["matvecs"]) < 0.8 * int(rows(out / "metrics.csv")[0]["matvecs"])


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


def test_what_the_mask_leaves_out_cannot_be_seen(run: Run, work: Path, tmp_path: Path) -> None:
    """With the noise known, garbage there changes no byte."""
    with np.load(work / "scan.npz") as stored:
        kspace = stored["kspace"].copy()
    mask = np.zeros(24, dtype=bool)
    mask[6:18] = mask[::3] = True
    np.save(tmp_path / "mask.npy", mask)
    recipe = tmp_path / "noise.toml"
    recipe.write_text((work / "quick.toml").read_text() + "[noise]\nvariance = 5e-5\n")
    for name in ("honest", "fooled"):
        np.save(tmp_path / f"{name}.npy", kspace)
        options = ("--mask", tmp_path / "mask.npy", "--recipe", recipe, "--out", tmp_path / name)
        run("recon", tmp_path / f"{name}.npy", *options, code=0)
        kspace[:, :, ~mask] = 50
    for file in ("recon.npy", "std.npy"):
        assert (tmp_path / "honest" / file).read_bytes() == (tmp_path / "fooled" / file).read_bytes()


def test_lines_with_gaps_are_enough_for_maps_and_a_prescan_gives_them_too(run: Run, tmp_path: Path) -> None:
    data = load_phantom("brain", shape=(32, 32), n_coils=4, rng=np.random.default_rng(1))
    few = np.zeros(32, dtype=bool)
    few[[3, 9, 12, *range(14, 20), 21, 23, 27]] = True
    noise = {"noise_variance": np.float64(data.noise_variance or 0)}
    np.savez(tmp_path / "few.npz", kspace=np.where(few[:, None], data.kspace, 0), **noise)
    np.savez(tmp_path / "prescan.npz", kspace=data.kspace[..., 4:28, 4:28], **noise)
    for name, words, source in (
        ("own", (), "estimated together with the image (NLINV) from the 12"),
        ("prescan", ("--maps-from", tmp_path / "prescan.npz"), "given (those of prescan.npz, there estimated by"),
    ):
        run("recon", tmp_path / "few.npz", *words, "--recipe", "fast.toml", "--out", tmp_path / name, code=0)
        assert settings(tmp_path / name)["coil_maps_source"].startswith(source)
    run("recon", tmp_path / "few.npz", "--maps", "espirit", "--out", tmp_path / "x", code=3)


def test_given_maps_are_used_by_every_verb_and_named_in_the_manifest(run: Run, tmp_path: Path) -> None:
    data = load_phantom("brain", shape=(24, 20), n_coils=4, rng=np.random.default_rng(1))
    assert data.coil_maps is not None and data.noise_variance is not None
    scan, maps, wrong = (tmp_path / name for name in ("coils.npz", "maps.npy", "wrong.npy"))
    known = {"noise_variance": np.float64(data.noise_variance), "reference": data.reference}
    np.savez(scan, kspace=data.kspace, **known)
    np.save(maps, data.coil_maps)
    np.save(wrong, data.coil_maps[:, [3, 0, 1, 2]])
    verbs = {
        "recon": ("--maps", maps),
        "design": ("--maps", maps, "--strategy", "low-pass", "--lines", 8, "--start", 4),
        "compare": ("--maps", f"{scan}={maps}", "--strategies", "low-pass", "--lines", 8, "--jobs", 1),
    }
    for verb, words in verbs.items():
        run(verb, scan, *words, "--recipe", "fast.toml", "--out", tmp_path / verb, code=0)
        assert "maps.npy" in [entry["name"] for entry in manifest(tmp_path / verb)["inputs"]]
    told = settings(tmp_path / "design")
    assert told["coil_maps_source"] == "given (maps.npy)"
    assert told["start"] == 4  # nothing was calibrated, so that nothing has to be measured for it
    run("recon", scan, "--maps", wrong, "--recipe", "fast.toml", "--out", tmp_path / "w", code=3)
    run("recon", scan, "--recipe", "fast.toml", "--out", tmp_path / "recon", code=2)


def test_verbs_of_several_scans_take_noise_and_maps_as_recon_does(run: Run, tmp_path: Path) -> None:
    data = load_phantom("brain", shape=(24, 20), n_coils=4, rng=np.random.default_rng(1))
    known = {"noise_variance": np.float64(data.noise_variance or 0), "reference": data.reference}
    np.savez(tmp_path / "coils.npz", kspace=data.kspace, **known)
    np.savez(tmp_path / "prescan.npz", kspace=data.kspace[..., 2:22, 2:18])
    np.savez(tmp_path / "mixed.npz", kspace=data.kspace[:, [3, 0, 1, 2]], **known)
    given = ("--maps-from", tmp_path / "prescan.npz", "--noise-sd", 0.01, "--recipe", "fast.toml")
    scan, words = tmp_path / "coils.npz", ("--lines", 8, "--jobs", 1)
    run("recon", scan, *given, "--out", tmp_path / "recon", code=0)
    one = settings(tmp_path / "recon")
    out, order = tmp_path / "protocol", tmp_path / "order.npz"
    run("protocol", scan, *given, *words, "--strategy", "low-pass", "--start", 4, "--out", out, code=0)
    told = settings(out)
    assert told["noise"]["variance"] == one["noise"]["variance"] == pytest.approx(1e-4)
    assert list(told["coil_maps_sources"].values()) == [one["coil_maps_source"]]
    assert "prescan.npz" in [entry["name"] for entry in manifest(out)["inputs"]]
    run("train", scan, *given, *words, "--out", order, code=0)
    sources = {"coils.npz": one["noise_source"]}
    assert told["noise_sources"] == load_trained(order).settings["noise_sources"] == sources
    wrong = ("--maps-from", tmp_path / "mixed.npz", *given[2:], *words, "--strategies", "low-pass")
    run("compare", scan, *wrong, "--out", tmp_path / "w", code=3)


def test_a_slice_with_lines_of_its_own_is_reconstructed_from_them(work: Path, run: Run, tmp_path: Path) -> None:
    one = np.load(work / "scan.npz")["kspace"][0]
    kspace = np.stack([one, one])
    kspace[0, :, 1::2], kspace[1, :, :10], kspace[1, :, 16:] = 0, 0, 0
    np.savez(tmp_path / "both.npz", kspace=kspace, noise_variance=4.9e-5)
    run("convert", tmp_path / "both.npz", tmp_path / "both.mrd", code=0)
    words = ("--recipe", "fast.toml", "--out", tmp_path / "recon", "--slice", 1)
    run("recon", tmp_path / "both.mrd", *words, code=0)
    assert manifest(tmp_path / "recon")["lines"] == list(range(10, 16))
