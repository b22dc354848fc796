"""`design` over spokes and arms of spirals, from the command line."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import Result

from mri_design import load_phantom, make_strategy, strategy_names
from mri_design.evaluation import plots
from mri_design.evaluation.tables import read_csv_texts
from mri_design.experiment import checkpoint
from mri_design.experiment.strategy_names import is_random
from mri_design.operators.encodings import LineEncoding
from mri_design.runs.design import run as design_run

pytest.importorskip("finufft")
Run = Callable[..., Result]
QUICK = "[simulation]\nmatrix = 16\n[inference]\nsamples = 4\nloops = 2\n[reconstruction]\nmethod = 'zero-filled'\n"
N = 16


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    path = tmp_path / "quick.toml"
    path.write_text(QUICK)
    return path


def ran(result: Result) -> Result:
    assert result.exit_code in (0, 4), result.output
    return result


@pytest.mark.slow
def test_a_design_of_spokes_leaves_a_scan_that_recon_reads(run: Run, quick: Path, tmp_path: Path) -> None:
    out = tmp_path / "radial"
    words = ("--encoding", "radial", "--shots", 7, "--angles", 14, "--recipe", quick)
    result = ran(run("design", "phantom:brain", *words, "--out", out, drawn=True))
    assert "7 spokes" in result.output
    manifest, rows = json.loads((out / "manifest.json").read_text()), read_csv_texts(out / "shots.csv")
    chosen = manifest["lines"]
    assert chosen[:4] == [0, 3, 7, 10] and len(set(chosen)) == 7 and max(chosen) < 14
    assert np.flatnonzero(np.load(out / "mask.npy")).tolist() == sorted(chosen)
    assert [float(row["angle_degrees"]) for row in rows] == pytest.approx(
        [180 * shot / 14 for shot in chosen], rel=1e-5
    )
    assert all(row["information_nats"] == "" for row in rows[:4])
    assert all(float(row["information_nats"]) > 0 for row in rows[4:])
    for name in ("trajectory", "scores", "point-spread", "images", "errors"):
        assert (out / "figures" / f"{name}.svg").stat().st_size > 3000
    page = (out / "report.html").read_text()
    assert "Spoke design" in page and "7 of 14" in page and "7 to 24 %" in page and "gridded" in page
    assert "thick orange curve is the first spoke of the start" in page and "Point-spread function" in page
    metrics = read_csv_texts(out / "metrics.csv")
    assert metrics[0]["shots"] == "7" and "lines" not in metrics[0]
    stored = np.load(out / "trajectory.npz")
    assert stored["kspace"].shape == (1, 7, N) and stored["trajectory"].shape == (7, N, 2)
    again = ran(run("recon", out / "trajectory.npz", "--recipe", quick, "--out", tmp_path / "recon"))
    assert "converged" in again.output
    images = [np.load(folder / "recon.npy") for folder in (out, tmp_path / "recon")]
    np.testing.assert_allclose(images[0], images[1], atol=1e-4 * np.abs(images[0]).max())
    refused = run("export", out, "--to", "seq", "--out", tmp_path / "x.seq")
    assert refused.exit_code == 2 and "--fov" in refused.output
    assert run("convert", out / "trajectory.npz", tmp_path / "spokes.cfl").exit_code == 0


@pytest.mark.slow
def test_an_interrupted_design_goes_on_to_the_same_shots(
    run: Run, quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("design", "phantom:brain", "--encoding", "spiral", "--shots", 7, "--angles", 16, "--recipe", quick)
    ran(run(*words, "--out", tmp_path / "whole"))
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
    ran(run(*words, "--out", tmp_path / "cut", "--resume"))
    whole, cut = (read_csv_texts(tmp_path / name / "shots.csv") for name in ("whole", "cut"))
    assert whole == cut and len(whole) == 7
    changed = run(*words[:-2], "--seed", 5, "--recipe", quick, "--out", tmp_path / "whole", "--resume")
    assert changed.exit_code == 2


@pytest.mark.slow
def test_an_interrupted_fixed_set_leaves_nothing_and_says_so(
    run: Run, quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shots are all those of the start: there is no decision to be kept, as docs/formats.md says."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    words = ("design", "phantom:brain", "--encoding", "spiral", "--shots", 5, "--strategy", "half-turn")
    where = ("--recipe", quick, "--out", tmp_path / "cut")
    with monkeypatch.context() as context:
        context.setattr(design_run, "concluded", interrupted)
        cut = run(*words, *where)
    assert cut.exit_code == 130 and "nothing to go on from" in " ".join(cut.output.split())
    assert not (tmp_path / "cut").exists()
    assert "5 arms" in ran(run(*words, *where, "--resume")).output


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "turn"), [("radial", 180.0), ("spiral", 360.0)])
def test_fixed_sets_have_angles_of_their_own(run: Run, quick: Path, tmp_path: Path, encoding: str, turn: float) -> None:
    words = ("--encoding", encoding, "--shots", 5, "--recipe", quick, "--strategy")
    for name, step in (("half-turn", 36.0), ("golden", turn * 0.6180340), ("one-missing", 60.0)):
        ran(run("design", "phantom:brain", *words, name, "--out", tmp_path / name))
        rows = read_csv_texts(tmp_path / name / "shots.csv")
        assert [float(row["angle_degrees"]) for row in rows] == pytest.approx([step * i for i in range(5)], rel=1e-5)


@pytest.mark.slow
def test_coils_of_a_measured_scan_are_sampled_along_shots(run: Run, quick: Path, tmp_path: Path) -> None:
    data = load_phantom("brain", shape=(24, 24), n_coils=3, rng=np.random.default_rng(2))
    np.save(tmp_path / "coils.npy", data.kspace)
    out = tmp_path / "coils"
    ran(run("design", tmp_path / "coils.npy", "--encoding", "radial", "--shots", 6, "--recipe", quick, "--out", out))
    stored = np.load(out / "trajectory.npz")
    assert stored["coil_maps"].shape == (3, 24, 24) and stored["kspace"].shape == (3, 6, 24)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("--shots", 6, "--strategy", "calibrated"),
            2,
            "chooses lines or samples of a plane; for spokes and arms of spirals there are: inf",
        ),
        (("--shots", 6, "--strategy", "poisson-disc"), 2, "chooses samples of a plane; for spokes and arms of spirals"),
        (("--lines", 6), 2, "count other candidates than spokes: give --shots 6"),
        ((), 2, "Give their number with --shots"),
        (("--shots", 6, "--acceleration", 4), 2, "Give their number with --shots"),
        (("--shots", 6, "--angles", 5), 2, "at least 6"),
        (("--shots", 6, "--angles", 10**6), 2, "which memory can hold"),
        (
            ("--shots", 6, "--angles", 12, "--strategy", "half-turn"),
            2,
            "half-turn has its own angles: leave it out, or take the strategy information-gain",
        ),
        (("--shots", 6, "--start", 8), 2, "at most the number of spokes, 6"),
        (("--shots", 6, "--forbid", "3"), 2, "--forbid: got 3; wanted none where shots are chosen"),
        (("--shots", 6, "--shutter"), 2, "--shutter: got a shutter; wanted none where shots are chosen"),
        (("--shots", 6, "--calibration", 4), 2, "--calibration: got 4; wanted none where shots are chosen"),
        (("--shots", 6, "--block", 2), 2, "one by one"),
        (("--shots", 6, "--order", "centre-out"), 2, "of lines and samples"),
        (("--shots", 6, "--until-error", 0.1), 2, "no error of the image"),
        (("--shots", 6, "--seen", "head.npz"), 2, "designs of lines and of samples of a plane, not of spokes and arms"),
        (("--shots", 6, "--positions", "all"), 2, "in a plane only"),
    ],
)
def test_what_cannot_be_is_refused(
    run: Run, work: Path, tmp_path: Path, words: tuple[object, ...], code: int, said: str
) -> None:
    result = run("design", "scan.npz", "--encoding", "radial", *words, "--out", tmp_path / "refused")
    assert result.exit_code == code and said in " ".join(result.output.split()), result.output


@pytest.mark.slow
def test_a_gain_that_is_too_small_ends_a_design(run: Run, quick: Path, tmp_path: Path) -> None:
    words = ("--encoding", "radial", "--shots", 9, "--recipe", quick, "--until-gain")
    ran(run("design", "phantom:brain", *words, 1e6, "--out", tmp_path / "early"))
    assert (
        len(json.loads((tmp_path / "early" / "manifest.json").read_text())["lines"]) == 4 + 4
    )  # none before four were chosen
    ran(run("design", "phantom:brain", *words, 1e-6, "--out", tmp_path / "late"))
    settings = json.loads((tmp_path / "late" / "manifest.json").read_text())["settings"]
    assert "not stopped early: all 9 s" in settings["ended"]


def test_names_of_strategies_of_shots() -> None:
    for encoding in ("radial", "spiral"):
        for name in strategy_names(encoding):
            rule = make_strategy(name, encoding)
            assert (
                rule.name == name
                and 1 <= rule.default_start(LineEncoding((64, 64)), 16) <= 16
                and not is_random(name, encoding)
            )


def test_a_comparison_of_shots_begins_with_the_design(
    run: Run, quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes: list[str] = []
    draw = plots.error_against_lines

    def seen(*curves: object, **settings: object) -> Figure:
        figure: Figure = draw(*curves, **settings)  # type: ignore[arg-type]
        axes.append(figure.axes[0].get_xlabel())
        return figure

    monkeypatch.setattr(plots, "error_against_lines", seen)
    radial = ("--encoding", "radial", "--angles", 12, "--recipe", quick, "--seed", 2)
    words = ("--shots", "5,6", "--strategies", "information-gain,golden,half-turn", *radial, "--jobs", 1)
    out = tmp_path / "study"
    ran(run("compare", "phantom:brain", *words, "--out", out))
    masks = json.loads((out / "masks.json").read_text())
    assert [(m["strategy"], m["shots"]) for m in masks] == [
        (name, count) for name in ("information-gain", "golden", "half-turn") for count in (5, 6)
    ]
    ran(run("design", "phantom:brain", "--shots", 6, *radial, "--out", tmp_path / "design"))
    rows = read_csv_texts(tmp_path / "design" / "shots.csv")
    chosen = next(m for m in masks if (m["strategy"], m["shots"]) == ("information-gain", 6))
    assert [int(row["shot"]) for row in rows] == chosen["order"]
    assert [float(row["angle_degrees"]) for row in rows] == pytest.approx(chosen["angles_degrees"], rel=1e-5)
    even = next(m for m in masks if (m["strategy"], m["shots"]) == ("half-turn", 6))
    assert sorted(even["angles_degrees"]) == pytest.approx([0, 30, 60, 90, 120, 150])
    metrics = read_csv_texts(out / "metrics.csv")
    found = read_csv_texts(tmp_path / "design" / "metrics.csv")[0]
    mine = next(row for row in metrics if (row["strategy"], row["shots"]) == ("information-gain", "6"))
    assert float(mine["relative_l2"]) == pytest.approx(float(found["relative_l2"]), rel=1e-4)
    assert float(mine["acceleration"]) == pytest.approx(256 / (6 * 16), rel=1e-5) and "lines" not in mine
    page = (out / "report.html").read_text()
    assert set(axes) == {"measured spokes"}
    assert "shot counts" in page and "Each strategy has candidates of its own" in page


def test_comparisons_of_shots_need_their_number(run: Run, quick: Path, tmp_path: Path) -> None:
    words = ("compare", "phantom:brain", "--encoding", "spiral", "--accelerations", "4", "--recipe", quick)
    refused = run(*words, "--out", tmp_path / "refused")
    assert refused.exit_code == 2 and "Give their numbers with --shots" in " ".join(refused.output.split())


@pytest.mark.parametrize("encoding", ["lines", "plane"])
@pytest.mark.parametrize("verb", ["design", "compare"])
def test_angles_are_refused_where_no_shots_are_chosen(
    run: Run, work: Path, tmp_path: Path, verb: str, encoding: str
) -> None:
    words = ("--encoding", encoding, "--lines", 12, "--angles", 8)
    refused = run(verb, "scan.npz", *words, "--out", tmp_path / "refused")
    said = " ".join(refused.output.split())
    assert refused.exit_code == 2 and not (tmp_path / "refused").exists()
    assert "--angles are those of spokes and arms to choose from" in said
    assert f"{'line' if encoding == 'lines' else 'sample'}s are chosen here" in said


def test_a_comparison_of_sets_of_shots_takes_no_angles_and_no_training_scans(
    run: Run, quick: Path, tmp_path: Path
) -> None:
    words = ("compare", "phantom:brain", "--encoding", "spiral", "--shots", 5, "--recipe", quick, "--jobs", 1)
    sets = ("--strategies", "golden,half-turn")
    for option, value, said in (
        ("--angles", 8, "golden and half-turn have their own angles"),
        ("--train", "phantom:shepp-logan", "none of these strategies learns: golden, half-turn. Leave out --train"),
    ):
        refused = run(*words, *sets, option, value, "--out", tmp_path / "refused")
        assert refused.exit_code == 2 and said in " ".join(refused.output.split()), refused.output
        assert not (tmp_path / "refused").exists()
    chosen = ("--strategies", "information-gain,golden", "--angles", 8, "--train", "phantom:shepp-logan")
    ran(run(*words, *chosen, "--out", tmp_path / "study"))
    masks = json.loads((tmp_path / "study" / "masks.json").read_text())
    assert [mask["strategy"] for mask in masks] == ["information-gain", "information-gain@train", "golden"]


def test_a_missing_transform_is_named_before_anything_is_done(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "finufft", None)
    result = run("design", "phantom:brain", "--encoding", "spiral", "--shots", 6, "--out", tmp_path / "run")
    assert result.exit_code == 3
    assert "pip install finufft" in result.stderr and "designing" not in result.stderr
    assert "simulated" not in result.stderr and not (tmp_path / "run").exists()
