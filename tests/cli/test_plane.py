"""`design` and `compare` over the samples of a plane, from the command line."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from mri_design import load_phantom, make_strategy, strategy_names
from mri_design.design import memory
from mri_design.evaluation.tables import read_csv_texts
from mri_design.experiment import checkpoint
from mri_design.experiment.strategy_names import is_random, tuned_families
from mri_design.operators.encodings import PlaneEncoding
from mri_design.runs.design import run as design_run

REPOSITORY = Path(__file__).parents[2]
Run = Callable[..., Result]
QUICK = "[design]\nblock = 20\n[inference]\nsamples = 4\nloops = 2\n[reconstruction]\nmethod = 'zero-filled'\n"
PLANE = ("--encoding", "plane")


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    path = tmp_path / "quick.toml"
    path.write_text(QUICK)
    return path


def tables_of(design: str) -> set[str]:
    """The CSV files that docs/formats.md gives to all runs and to such a design."""
    text = (REPOSITORY / "docs" / "formats.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    found = [re.findall(r"(\w+\.csv)", files) for files, of in rows if of.strip() == "all" or design in of]
    return {name for names in found for name in names}


def test_a_design_leaves_a_plane_in_its_folder(run: Run, work: Path, quick: Path, tmp_path: Path) -> None:
    out = tmp_path / "plane"
    result = run(
        *("design", "scan.npz", *PLANE, "--acceleration", 6, "--block", 16, "--shutter", "--calibration", 4),
        *("--recipe", quick, "--out", out),
    )
    assert result.exit_code in (0, 4), result.output
    assert "80 samples" in result.output
    mask = np.load(out / "mask.npy")
    manifest = json.loads((out / "manifest.json").read_text())
    assert mask.shape == (24, 20) and mask.sum() == 80 and mask[10:14, 8:12].all() and not mask[0, 0]
    assert sorted(manifest["lines"]) == np.flatnonzero(mask).tolist()
    assert [row["samples"] for row in read_csv_texts(out / "metrics.csv")] == ["80"]
    samples = read_csv_texts(out / "samples.csv")
    assert [int(row["sample"]) for row in samples] == manifest["lines"]
    assert samples[0]["ky"] == samples[0]["kz"] == "0" and int(samples[-1]["block"]) == 4
    blocks = read_csv_texts(out / "blocks.csv")
    assert [row["chosen"] for row in blocks] == ["16"] * 4
    assert [bool(row["predicted"]) for row in blocks] == [False, True, True, True]
    assert all(float(row["found"]) > 0 for row in blocks)
    checked = read_csv_texts(out / "prediction.csv")
    assert [row["samples"] for row in checked] == ["32", "48", "64", "80"] and "sample_ratio" in checked[0]
    assert {path.name for path in out.glob("*.csv")} == tables_of("in a plane") - {"acquisition.csv"}  # not asked for
    page = (out / "report.html").read_text()
    assert "Sample design" in page and "80 of 480" in page and "The mask as it grew" in page
    assert not (out / "lines.csv").exists()


def test_a_design_ends_at_an_error_once_innovations_speak_for_it(
    run: Run, work: Path, quick: Path, tmp_path: Path
) -> None:
    words = ("design", "scan.npz", *PLANE, "--acceleration", 4, "--recipe", quick)
    ended = run(*words, "--until-error", 0.9, "--out", tmp_path / "ended")
    assert ended.exit_code in (0, 4), ended.output
    assert "stopped after 36 of at most 120 samples: predicted error" in ended.output
    first, *others = read_csv_texts(tmp_path / "ended" / "blocks.csv")
    assert first["predicted"] == first["predicted_error"] == "" and float(first["found"]) > 0 and not others
    assert "Was the prediction right?" in (tmp_path / "ended" / "report.html").read_text()


def test_samples_of_a_plane_are_found_before_any_strategy_s_prediction_is_believed(
    run: Run, work: Path, quick: Path, tmp_path: Path
) -> None:
    words = ("design", "scan.npz", *PLANE, "--strategy", "expected-error", "--acceleration", 4, "--recipe", quick)
    result = run(*words, "--until-error", 0.99, "--out", tmp_path / "start")
    assert result.exit_code in (0, 4), result.output
    assert "stopped after 36 of at most 120 samples" in result.output
    assert "36 of 480" in (tmp_path / "start" / "report.html").read_text()


def test_an_error_out_of_reach_is_told_in_samples_once_some_were_found(
    run: Run, work: Path, quick: Path, tmp_path: Path
) -> None:
    words = ("design", "scan.npz", *PLANE, "--acceleration", 4, "--recipe", quick, "--until-error", 0.0001)
    result = run(*words, "--out", tmp_path / "start")
    assert result.exit_code == 4, result.output
    told = " ".join(result.output.split())
    assert "every sample that may be measured" in told and "predicted now: " in told
    assert "stopped after 36 of at most 120 samples" in told
    assert "nan" not in told.split() and "line" not in told
    assert json.loads((tmp_path / "start" / "manifest.json").read_text())["status"].startswith("an error of 0.01 %")


def test_a_design_whose_start_is_all_leaves_its_image(run: Run, work: Path, quick: Path, tmp_path: Path) -> None:
    """`calibrated` predicts nothing before the first block, so there is no prediction to be judged."""
    words = ("design", "scan.npz", *PLANE, "--acceleration", 480)
    result = run(*words, "--recipe", quick, "--out", tmp_path / "start")
    assert result.exit_code in (0, 4), result.output
    page = (tmp_path / "start" / "report.html").read_text()
    assert "1 of 480" in page and "How often the predicted error is right" not in page
    assert (tmp_path / "start" / "recon.npy").exists()


def test_samples_are_sorted_into_echo_trains(run: Run, work: Path, quick: Path, tmp_path: Path) -> None:
    quick.write_text(QUICK.replace("[design]", "[design]\ntrain = 6"))
    words = ("design", "scan.npz", *PLANE, "--samples", 60, "--strategy", "poisson-disc", "--recipe", quick)
    result = run(*words, "--order", "centre-out", "--out", tmp_path / "trains")
    assert result.exit_code in (0, 4), result.output
    rows = read_csv_texts(tmp_path / "trains" / "acquisition.csv")
    chosen = {row["sample"] for row in read_csv_texts(tmp_path / "trains" / "samples.csv")}
    assert {row["sample"] for row in rows} == chosen and [row["echo"] for row in rows[:6]] == list("123456")
    assert "10 echo trains of 6 samples; echo 1 measures DC" in (tmp_path / "trains" / "report.html").read_text()


def test_an_interrupted_design_goes_on_to_the_same_samples(
    run: Run, work: Path, quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("design", "scan.npz", *PLANE, "--samples", 60, "--block", 15, "--recipe", quick)
    assert run(*words, "--out", tmp_path / "whole").exit_code in (0, 4)
    saved, save = [], checkpoint.save_state

    def interrupted(where: object, state: object) -> None:
        save(where, state)  # type: ignore[arg-type]
        saved.append(state)
        if len(saved) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(checkpoint, "save_state", interrupted)
        context.setattr(checkpoint, "EVERY", 0.0)
        assert run(*words, "--out", tmp_path / "cut").exit_code == 130
    result = run(*words, "--out", tmp_path / "cut", "--resume")
    assert result.exit_code in (0, 4), result.output
    for name in ("samples.csv", "blocks.csv"):
        rows = [read_csv_texts(tmp_path / folder / name) for folder in ("whole", "cut")]
        assert rows[0] == rows[1]


def test_the_mask_of_a_plane_gives_the_same_image_in_recon(run: Run, work: Path, quick: Path, tmp_path: Path) -> None:
    scan = np.load(work / "scan.npz")
    flags = np.random.default_rng(0).uniform(size=(24, 20)) < 0.3
    flags[8:16, 6:14] = True
    np.save(tmp_path / "mask.npy", flags)
    made = run("recon", "scan.npz", "--mask", tmp_path / "mask.npy", "--recipe", quick, "--out", tmp_path / "masked")
    assert made.exit_code in (0, 4), made.output
    holed = np.where(flags, scan["kspace"], 0)
    np.savez(tmp_path / "holed.npz", kspace=holed, noise_variance=scan["noise_variance"])
    again = run("recon", tmp_path / "holed.npz", "--recipe", quick, "--out", tmp_path / "holed")
    assert again.exit_code in (0, 4), again.output
    images = [np.load(tmp_path / name / "recon.npy") for name in ("masked", "holed")]
    np.testing.assert_allclose(images[0], images[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.load(tmp_path / "masked" / "mask.npy"), flags)
    np.save(tmp_path / "ones.npy", np.ones((24, 20), dtype=bool))
    refused = run("recon", tmp_path / "holed.npz", "--mask", tmp_path / "ones.npy", "--out", tmp_path / "x")
    assert refused.exit_code == 3 and "hold no data" in " ".join(refused.output.split())


def test_a_plane_that_memory_cannot_hold_is_refused_before_anything_is_computed(
    run: Run, work: Path, quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 10_000)
    begin = ("scan.npz", *PLANE, "--samples", 80, "--recipe", quick, "--out")
    with monkeypatch.context() as context:
        context.setattr(design_run, "prepare", None)  # calling it would fail
        result = run("design", *begin, tmp_path / "out")
    assert result.exit_code == 3 and "480 samples of a plane" in " ".join(result.output.split()), result.output
    result = run("compare", *begin, tmp_path / "study")
    assert result.exit_code == 3 and "memory of this machine" in " ".join(result.output.split()), result.output
    assert not (tmp_path / "out" / "mask.npy").exists()


@pytest.mark.slow
def test_positions_share_one_mask(run: Run, quick: Path, tmp_path: Path) -> None:
    kspace = [load_phantom("brain", shape=(16, 16), rng=np.random.default_rng(seed)).kspace[0] for seed in (0, 1)]
    np.save(tmp_path / "volume.npy", np.stack(kspace))
    words = ("design", tmp_path / "volume.npy", *PLANE, "--samples", 50, "--block", 20, "--recipe", quick)
    alone = run(*words, "--out", tmp_path / "alone")
    both = run(*words, "--positions", "all", "--out", tmp_path / "both")
    assert alone.exit_code in (0, 4) and both.exit_code in (0, 4), both.output
    found = [float(read_csv_texts(tmp_path / name / "blocks.csv")[0]["found"]) for name in ("alone", "both")]
    assert found[1] > found[0]


@pytest.mark.slow
def test_a_comparison_in_the_plane_begins_with_the_design(run: Run, work: Path, quick: Path, tmp_path: Path) -> None:
    common = ("--recipe", quick, "--seed", 3)
    result = run(
        *("compare", "scan.npz", "--train", "head.npz", *PLANE, "--accelerations", "6", "--seeds", 2, "--jobs", 1),
        *("--strategies", "calibrated,vd-polynomial,caipi:2x2,oracle-hole,residual-greedy", *common),
        *("--out", tmp_path / "study"),
    )
    assert result.exit_code in (0, 4), result.output
    masks = json.loads((tmp_path / "study" / "masks.json").read_text())
    names = {mask["strategy"] for mask in masks}
    fixed = {"calibrated@train", "residual-greedy@train"}
    assert names == {"calibrated", "vd-polynomial@tuned", "caipi:2x2", "oracle-hole", *fixed}
    assert all(len(set(mask["order"])) == mask["samples"] == 80 for mask in masks)
    out = tmp_path / "design"
    assert run("design", "scan.npz", *PLANE, "--samples", 80, *common, "--out", out).exit_code in (0, 4)
    first = next(m["order"] for m in masks if (m["strategy"], m["samples"]) == ("calibrated", 80))
    assert first == json.loads((out / "manifest.json").read_text())["lines"]


@pytest.mark.slow
def test_coils_are_calibrated_from_a_square_that_every_mask_holds(run: Run, quick: Path, tmp_path: Path) -> None:
    data = load_phantom("brain", shape=(24, 24), n_coils=3, rng=np.random.default_rng(2))
    np.save(tmp_path / "coils.npy", data.kspace)
    out = tmp_path / "coils"
    result = run(
        *("design", tmp_path / "coils.npy", *PLANE, "--samples", 150, "--calibration", 8, "--block", 40),
        *("--recipe", quick, "--out", out),
    )
    assert result.exit_code in (0, 4), result.output
    said = "8 x 8 samples at the centre are measured first, for the coil maps, of 150 altogether"
    assert said in " ".join(result.output.split())
    assert np.load(out / "mask.npy")[8:16, 8:16].all()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--strategy", "vd-gaussian", "--samples", 60), 2, "chooses lines; for samples of a plane there are"),
        (("--strategy", "half-turn", "--samples", 60), 2, "chooses spokes and arms of spirals; for samples"),
        (("--strategy", "caipi:2x2x3", "--samples", 60), 2, "a shift of 3 is the same as one of 1, as samples lie 2"),
        (("--shots", 60), 2, "--shots counts spokes and arms (--encoding radial, spiral): give --samples 60"),
        (("--strategy", "caipi:2", "--samples", 60), 2, "2x3x1"),
        (("--strategy", "residual-greedy", "--samples", 60), 2, "learns from fully sampled training scans"),
        (("--samples", 60, "--order", "interleaved"), 2, "without echo trains"),
        (("--samples", 60, "--forbid", "3"), 2, "whose samples are no lines"),
        (("--samples", 60, "--acceleration", 4), 2, "or an acceleration"),
        (("--samples", 481), 3, "at most 480"),
        (("--samples", 60, "--calibration", 12), 2, "--calibration: required samples: got 144; wanted at most"),
        (("--samples", 60, "--start", 70), 2, "--start: start samples: got 70 (of which 0 are required); wanted at"),
        (("--samples", 360, "--shutter", "--calibration", 18), 2, "--calibration: calibration region: got 324"),
        ((), 2, "when does the design end"),
    ],
)
def test_what_a_plane_cannot_do_is_refused(
    run: Run, work: Path, tmp_path: Path, words: tuple[object, ...], code: int, said: str
) -> None:
    result = run("design", "scan.npz", *PLANE, *words, "--out", tmp_path / "refused")
    assert result.exit_code == code and said in " ".join(result.output.split()), result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--shutter",), "--shutter: got a shutter; wanted none where lines are chosen"),
        (("--calibration", 4), "--calibration: got a calibration region; wanted none where lines are chosen"),
        (("--positions", "all"), "in a plane only"),
        (("--strategy", "poisson-disc"), "chooses samples of a plane"),
    ],
)
def test_what_belongs_to_planes_is_refused_for_lines(
    run: Run, work: Path, tmp_path: Path, words: tuple[object, ...], said: str
) -> None:
    result = run("design", "scan.npz", "--lines", 8, *words, "--out", tmp_path / "refused")
    assert result.exit_code == 2 and said in " ".join(result.output.split()), result.output


@pytest.mark.parametrize(("encoding", "words"), [("lines", ()), ("radial", ("--strategies", "golden"))])
def test_a_recipe_that_constrains_what_is_no_plane_is_refused_by_its_settings(
    run: Run, work: Path, tmp_path: Path, encoding: str, words: tuple[str, ...]
) -> None:
    recipe, kind = tmp_path / "square.toml", "lines" if encoding == "lines" else "shots"
    recipe.write_text("[constraints]\ncalibration = 4\n")
    command = ("compare", "scan.npz", "--encoding", encoding, "--lines", 8, *words, "--recipe", recipe)
    result = run(*command, "--out", tmp_path / "refused")
    said = " ".join(result.output.split())
    assert result.exit_code == 3 and f"none where {kind} are chosen" in said and "constraints.calibration: got" in said
    result = run(*command, "--shutter", "--out", tmp_path / "refused")
    said = " ".join(result.output.split())
    assert result.exit_code == 2 and f"--shutter: got a shutter; wanted none where {kind} are chosen" in said


@pytest.mark.parametrize(("encoding", "wanted"), [("radial", "spokes"), ("spiral", "arms of spirals")])
def test_verbs_that_know_no_shots_say_what_the_recipe_asks_for(
    run: Run, work: Path, tmp_path: Path, encoding: str, wanted: str
) -> None:
    recipe = tmp_path / "other.toml"
    recipe.write_text(f"[design]\nencoding = '{encoding}'\n")
    for verb in ("protocol", "train"):
        result = run(verb, "scan.npz", "--lines", 8, "--recipe", recipe, "--out", tmp_path / "out.npz")
        said = " ".join(result.output.split())
        assert result.exit_code == 2 and f"lines or samples of a plane, and the recipe asks for {wanted}" in said, said
        assert f"encoding = '{encoding}'" in said and said.endswith(f"design and compare choose {wanted}")


def test_names_of_strategies_in_the_plane() -> None:
    names = strategy_names("plane")
    for name in names:
        rule = make_strategy(name, "plane")
        assert rule.name == name and 1 <= rule.default_start(PlaneEncoding((64, 64)), 512) <= 512
    assert [name for name in names if is_random(name, "plane")] == ["random", "vd-polynomial", "poisson-disc"]
    for family, powers in tuned_families("plane").items():
        for power in powers:
            assert make_strategy(f"{family}:{power:g}", "plane").power == power
    assert make_strategy("caipi:2x3x1", "plane").spacing == (2, 3)


def test_positions_of_air_have_no_say_in_the_mask(run: Run, work: Path, quick: Path, tmp_path: Path) -> None:
    """Before it, between, and behind the object; the mask is that of the positions with signal alone."""
    with np.load(work / "scan.npz") as stored:
        head, sd = stored["kspace"].reshape(1, 1, 24, 20), np.sqrt(float(stored["noise_variance"]))
    parts = np.random.default_rng(0).standard_normal((2, 3, 1, 24, 20)) * sd
    air = parts[0] + 1j * parts[1]
    whole = np.concatenate([air[:1], head, air[1:2], np.roll(head, 1, axis=-1), air[2:]])
    for name, kspace in (("volume", whole), ("filled", whole[[1, 3]])):
        np.savez(tmp_path / f"{name}.npz", kspace=kspace.astype(np.complex64), noise_variance=np.float64(sd**2))
    words = (*PLANE, "--positions", "all", "--acceleration", 6, "--recipe", quick)
    made = run("design", tmp_path / "volume.npz", "--slice", 1, *words, "--out", tmp_path / "all")
    assert made.exit_code in (0, 4), made.output
    assert "positions 0, 2, 4 hold noise only: they have no say in the mask" in " ".join(made.output.split())
    manifest = json.loads((tmp_path / "all" / "manifest.json").read_text())
    assert manifest["settings"]["positions_without_signal"] == [0, 2, 4]
    alone = run("design", tmp_path / "filled.npz", *words, "--out", tmp_path / "alone")
    assert alone.exit_code in (0, 4) and "noise only" not in alone.output
    assert "positions_without_signal" not in (tmp_path / "alone" / "manifest.json").read_text()
    masks = [np.load(tmp_path / name / "mask.npy") for name in ("all", "alone")]
    np.testing.assert_array_equal(*masks)
    seen = ("--seen", tmp_path / "volume.npz")
    informed = run("design", tmp_path / "volume.npz", "--slice", 1, *words, *seen, "--out", tmp_path / "seen")
    assert informed.exit_code in (0, 4), informed.output
    refused = run("design", tmp_path / "volume.npz", *words, "--out", tmp_path / "refused")
    assert refused.exit_code == 3 and "noise only" in refused.output
