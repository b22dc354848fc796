from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design import Recipe, run_design
from mri_design.design import ReferenceSlice
from mri_design.evaluation import RunFolder
from mri_design.experiment import strategies as strategy_names
from mri_design.readouts import LineReadouts
from mri_design.runs import study as study_module
from mri_design.runs.known_slice import knowing_rule
from mri_design.runs.store import FolderKeep, Record, Run
from mri_design.runs.study import Study, StudyPieces
from mri_design.runs.work import Keep, Progress, Work
from tests.design_steps import changed
from tests.interruptions import stopping
from tests.refusals import refused

ImageMaker = Callable[..., ReferenceSlice]
STRATEGIES = ("information-gain", "vd-polynomial", "low-pass")


def shifted(image, lines, **more):
    model = replace(image.slice_model, kspace=np.roll(image.slice_model.kspace, lines, axis=1))
    return replace(image, slice_model=model, **more)


@pytest.fixture
def study(make_image: ImageMaker, tiny: Recipe) -> Study:
    """Two test images, the second with its echo off centre, one training image, two counts, two draws."""
    tests = [make_image("brain"), shifted(make_image("shepp-logan"), 3)]
    return Study(tests=tests, strategies=STRATEGIES, lines=[6, 12], recipe=tiny, training=[make_image("t2w")], seeds=2)


FINISHED = StudyPieces()


@pytest.fixture
def progress(study: Study) -> StudyPieces:
    """The study, run once: what is finished is not done again."""
    vars(study.pieces).update(vars(FINISHED))
    return study.run(Work(), Keep())


def test_names_with_training_scans_are_tuned_and_fixed(study: Study) -> None:
    assert study.expanded == ["information-gain", "information-gain@train", "vd-polynomial@tuned", "low-pass"]
    assert replace(study, training=[]).expanded == list(STRATEGIES)
    assert replace(study, strategies=["vd-polynomial:3"]).expanded == ["vd-polynomial:3"]
    assert replace(study, strategies=["residual-greedy"]).expanded == ["residual-greedy@train"]


def test_random_masks_have_draws_and_others_one(study: Study) -> None:
    wanted = study.cells
    assert len(wanted) == len(set(wanted)) == 2 * 2 * (1 + 1 + 2 + 1)
    draws = {name: {d for n, _, d, _ in wanted if n == name} for name in study.expanded}
    assert draws["vd-polynomial@tuned"] == {0, 1}
    assert draws["low-pass"] == draws["information-gain"] == draws["information-gain@train"] == {0}


def test_every_cell_is_measured_with_the_same_reconstruction(study: Study, progress: StudyPieces, tiny: Recipe) -> None:
    assert list(progress.rows) == ["|".join(map(str, cell)) for cell in study.cells]
    for cell in study.cells:
        name, count, draw, image = cell
        row = progress.rows["|".join(map(str, cell))]
        lines = study.mask_lines(*cell)
        assert len(set(lines)) == len(lines) == count
        test = study.tests[image]
        shown = md.reconstruct(test.slice_model, lines, "zero-filled", tiny, np.random.default_rng(0)).image
        expected = md.measure(shown, test.reference)
        assert row["relative_l2"] == pytest.approx(expected.relative_l2, rel=1e-5)
        assert row["ssim"] == pytest.approx(expected.ssim, rel=1e-5)
        assert (row["strategy"], row["lines"], row["draw"], row["image"]) == (name, count, draw, test.name)
        assert row["acceleration"] == 16 / count
        assert row["converged"] is True


def test_masks_are_shared_where_they_look_at_no_test_data(study: Study, progress: StudyPieces) -> None:
    for name in ("vd-polynomial@tuned", "low-pass", "information-gain@train"):
        first, second = (study.mask_lines(name, 12, 0, image) for image in (0, 1))
        assert first == second
    adaptive = [study.mask_lines("information-gain", 12, 0, image) for image in (0, 1)]
    assert adaptive[0] != adaptive[1]
    draws = [study.mask_lines("vd-polynomial@tuned", 12, draw, 0) for draw in (0, 1)]
    assert draws[0] != draws[1]


def test_adaptive_masks_are_designs_of_the_test_scan_and_fixed_ones_of_the_training_scans(study, progress, tiny):
    rule = md.make_strategy("information-gain")
    for name, scan in (("information-gain", study.tests[1]), ("information-gain@train", study.training[0])):
        for count in (6, 12):
            start = rule.default_start(LineReadouts((16, 16)), count)
            alone = run_design([scan.slice_model], rule, count, tiny, seed=0, start=start).trace.lines
            assert study.mask_lines(name, count, 0, 1) == alone


def test_a_rule_that_looks_at_the_truth_sees_that_of_the_training_scans_only(study: Study, tiny: Recipe) -> None:
    ruled = replace(study, strategies=["residual-greedy"], lines=[10])
    rule = knowing_rule("residual-greedy", study.training, tiny, 0)
    alone = run_design([scan.slice_model for scan in study.training], rule, 10, tiny, seed=0, start=8).trace.lines
    ruled.run(Work(), Keep())
    assert ruled.mask_lines("residual-greedy@train", 10, 0, 1) == alone


def test_one_design_serves_all_counts_that_start_alike(study: Study, tiny: Recipe) -> None:
    recipe = tiny.replacing("design", start=4)
    one = replace(study, recipe=recipe, training=[], tests=study.tests[:1], seeds=1)
    with stopping(study_module, "run_design") as made:
        one.run(Work(), Keep())
    wanted = [("information-gain", 12), *((name, n) for name in ("low-pass", "vd-polynomial") for n in (6, 12))]
    assert sorted((strategy.name, target) for _, strategy, target, *_ in made) == wanted
    short, long = (one.mask_lines("information-gain", count, 0, 0) for count in (6, 12))
    assert long[:6] == short


def test_a_density_is_tuned_on_the_training_images_alone(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    powers = (0.5, 3.0, 50.0)
    known = replace(strategy_names.STRATEGIES["lines"]["vd-polynomial"], tuned=powers)
    monkeypatch.setitem(strategy_names.STRATEGIES["lines"], "vd-polynomial", known)
    training = [shifted(study.tests[0], 7, name="shifted")]
    only = replace(study, strategies=["vd-polynomial"], lines=[12], tests=study.tests[:1], training=training)
    progress, errors = only.run(Work(), Keep()), []
    for power in powers:
        fixed = replace(only, strategies=[f"vd-polynomial:{power:g}"], tests=only.training, training=[])
        rows = fixed.run(Work(), Keep()).rows.values()
        errors.append(np.mean([float(str(row["relative_l2"])) for row in rows]))
    best = powers[int(np.argmin(errors))]
    assert progress.tuned == {"vd-polynomial|12|16": best}
    assert best < powers[-1]  # its echo is off centre: the narrow density that is best for the test image misses it
    plain = replace(only, strategies=[f"vd-polynomial:{best:g}"], training=[]).run(Work(), Keep())
    assert list(progress.masks.values()) == list(plain.masks.values())


@pytest.mark.slow
@pytest.mark.parametrize("work", ["run_design", "reconstruct_by_recipe"])
def test_an_interrupted_comparison_goes_on_where_it_stopped_in_other_processes(study, progress, tmp_path, work):
    one, told = replace(study), list[tuple[str, int, int]]()
    with RunFolder(tmp_path / "run") as folder:
        keep = FolderKeep(Run(folder=folder), Record("me", [], {}))
        with stopping(study_module, work, 5), pytest.raises(KeyboardInterrupt):
            one.run(Work(), keep)
        resumed = replace(study).run(Work(jobs=2, progress=Progress(lambda *what: told.append(what))), keep)
    assert (resumed.masks, resumed.rows, resumed.tuned) == (progress.masks, progress.rows, progress.tuned)
    assert [t for t in told if t[0] == "reconstructing"][-1][1:] == (told[-1][2],) * 2


def test_fixed_masks_hold_only_lines_of_the_test_scan(study: Study) -> None:
    """The training scan has all lines, the test scan lacks the outer ones."""
    test = study.tests[0]
    measured = np.ones(16, dtype=bool)
    measured[[0, 1, 2, 14, 15]] = False
    narrow = replace(test, slice_model=replace(test.slice_model, measured=measured))
    one = replace(study, strategies=["information-gain"], tests=[narrow], lines=[11])
    one.run(Work(), Keep())
    for name in ("information-gain", "information-gain@train"):
        assert sorted(one.mask_lines(name, 11, 0, 0)) == list(range(3, 14))


def test_only_masks_whose_own_steps_converged_are_trusted(study, tiny, monkeypatch):
    """The eighth line of a design comes from a step that did not converge: six lines of it are good, twelve are not."""

    def missing_one(*arguments: object, **options: object) -> object:
        state = run_design(*arguments, **options)  # type: ignore[arg-type]
        steps = list(state.trace.steps)
        if state.trace.strategy == "information-gain":
            steps[7 - len(state.trace.start)] = changed(steps[7 - len(state.trace.start)], converged=False)
        return replace(state, trace=replace(state.trace, steps=tuple(steps)))

    monkeypatch.setattr(study_module, "run_design", missing_one)
    one = replace(study, recipe=tiny.replacing("design", start=4), training=[], tests=study.tests[:1], seeds=1)
    progress = one.run(Work(), Keep())
    found = {(row["strategy"], row["lines"]): row["converged"] for row in progress.rows.values()}
    assert [key for key, converged in found.items() if not converged] == [("information-gain", 12)]
    row = progress.rows["information-gain|12|0|0"]
    assert (row["mask_converged"], row["reconstruction_converged"]) == (False, True)


def test_impossible_comparisons_are_refused(study: Study, make_image: ImageMaker) -> None:
    larger = make_image("t2w", n=20)
    for field, changes in (
        ("training scans", {"training": [larger]}),
        ("test scans", {"tests": [make_image(), larger], "training": []}),
        ("number of lines", {"lines": [17]}),
    ):
        with refused(field):
            replace(study, **changes).run(Work(), Keep())
    with pytest.raises(md.UsageError):
        replace(study, strategies=["magic"]).run(Work(), Keep())


def test_calibration_lines_are_in_every_mask(study: Study) -> None:
    tests = [replace(t, calibration_lines=5) for t in study.tests]
    one = replace(study, tests=tests, training=[], strategies=["random", "low-pass", "vd-polynomial"], seeds=4)
    one.run(Work(), Keep())
    for cell in one.cells:
        assert {8, 7, 9, 6, 10} <= set(one.mask_lines(*cell))


def test_finished_pieces_are_kept_for_the_same_comparison_alone(tmp_path: Path) -> None:
    row = {"strategy": "random", "lines": 8, "relative_l2": 0.1 + 0.2, "reconstruction_converged": True}
    masks, rows = {"random|8": [3, 1, 2]}, {"random|8|0|0": row}
    filled = StudyPieces(masks, rows, {"vd|8|16": 3.0}, {"random|8": False}, {"random|8|0|0|map": row})
    with RunFolder(tmp_path / "run") as folder:
        mine, other = (FolderKeep(Run(folder=folder), Record(name, [], {})) for name in ("me", "you"))
        empty = StudyPieces()
        empty.read(mine, "progress.json")
        assert empty == StudyPieces()
        mine.keep_table("progress.json", vars(filled))
        empty.read(mine, "progress.json")
        assert empty == filled
        with pytest.raises(md.UsageError):
            empty.read(other, "progress.json")


PARTS = b'{"identity": "me", "masks": {}, "rows": {}, "tuned": {}, "masks_converged": {}, "trials": {}}'


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b'{"identity": "me"}', b"\xff\xfe", PARTS.replace(b'"masks": {}', b'"masks": {"a": [1]}')]
    + [PARTS.replace(b'"%s": {}' % part, b'"%s": []' % part) for part in (b"masks", b"rows", b"tuned", b"trials")],
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    with RunFolder(tmp_path / "run") as folder:
        folder.output_path("progress.json").write_bytes(content)
        with refused("progress.json"):
            StudyPieces().read(FolderKeep(Run(folder=folder), Record("me", [], {})), "progress.json")


def test_the_draw_that_is_shown_has_the_median_error(study: Study) -> None:
    name, many = "vd-polynomial@tuned", replace(study, seeds=5)
    progress = many.pieces
    for draw, error in enumerate((0.5, 0.1, 0.4, 0.2, 0.3)):
        progress.rows[f"{name}|6|{draw}|1"] = {"relative_l2": error}
        progress.rows[f"{name}|6|{draw}|0"] = {"relative_l2": 1 - error / 2}
    assert many.typical_draw(name, 6, 1) == 4
    progress.rows["low-pass|6|0|1"] = {"relative_l2": 0.1}
    assert many.typical_draw("low-pass", 6, 1) == 0
