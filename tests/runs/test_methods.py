from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mri_design import Recipe, UsageError, measure, reconstruct
from mri_design.design import ReferenceSlice
from mri_design.estimation import compressed_sensing
from mri_design.runs import compare as methods_module
from mri_design.runs.compare import TRAINED, MethodStudy, methods_named
from mri_design.runs.study import Study, StudyPieces
from mri_design.runs.work import Keep, Work

METHODS = ("zero-filled", "l1-wavelet", "least-squares")
WEIGHTS, DAMPINGS = (0.002, 0.1), (0.001, 0.3)
TRIED = {"l1-wavelet": WEIGHTS, "least-squares": DAMPINGS}
NAMES = ("low-pass", "golden-ratio")


@pytest.fixture(autouse=True)
def few_iterations_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed_sensing, "SHIFTED", 10)
    monkeypatch.setattr(methods_module, "WEIGHTS", WEIGHTS)
    monkeypatch.setattr(methods_module, "DAMPINGS", DAMPINGS)


@pytest.fixture
def side_by_side(make_image: Callable[..., ReferenceSlice], tiny: Recipe) -> MethodStudy:
    """Two masks of two test images, and one training image; the study's own reconstruction is zero-filled."""
    tests, training = [make_image("brain"), make_image("shepp-logan")], [make_image("t2w")]
    study = Study(tests=tests, strategies=NAMES, lines=[6, 8], recipe=tiny, training=training)
    return MethodStudy(study, METHODS)


def finished(one: MethodStudy) -> StudyPieces:
    progress = one.study.run(Work(), Keep())
    one.run(Work(), Keep())
    return progress


def error(image: ReferenceSlice, lines: tuple[int, ...], method: str, recipe: Recipe, weight: float) -> float:
    own = recipe.replacing("reconstruction", weight=weight)
    made = reconstruct(image.slice_model, sorted(lines), method, own, with_std=False)
    return measure(made.image, image.reference).relative_l2


def test_every_mask_is_reconstructed_by_every_method_at_the_weight_of_the_training_scan(side_by_side):
    progress, study = finished(side_by_side), side_by_side.study
    table, judged = side_by_side.table(), [key.split("|")[::2][:2] for key in progress.trials]
    assert judged.count(["l1-wavelet", "train"]) == len(WEIGHTS) * 2 * 2  # no test scan has a say
    assert judged.count(["l1-wavelet", "test"]) == 2 * 2 * 2
    assert ["zero-filled", "test"] not in judged  # the study's own, which are there already
    assert [(row["lines"], row["strategy"], row["method"]) for row in table] == [
        (n, name, method) for n in (6, 8) for name in NAMES for method in METHODS
    ]
    for row in table:
        count, name, method = int(str(row["lines"])), str(row["strategy"]), str(row["method"])
        masks = [study.mask_lines(name, count, 0, image) for image in (0, 1)]
        weight = 0.01
        if method in TRIED:
            trained = study.training[0]
            everywhere = [study.mask_lines(other, count, 0, 0) for other in study.strategies]
            tried = TRIED[method]
            means = [np.mean([error(trained, m, method, study.recipe, w) for m in everywhere]) for w in tried]
            weight = tried[int(np.argmin(means))]
            assert (row["weight"], row["weight_from"]) == (weight, TRAINED)
        else:
            assert row["weight"] is row["weight_from"] is None
        found = [error(test, mask, method, study.recipe, weight) for test, mask in zip(study.tests, masks, strict=True)]
        np.testing.assert_allclose(float(str(row["relative_l2"])), np.mean(found), rtol=1e-6)
        if method != METHODS[0]:
            plain = [error(test, m, METHODS[0], study.recipe, 1.0) for test, m in zip(study.tests, masks, strict=True)]
            np.testing.assert_allclose(float(str(row["change"])), np.mean(np.divide(found, plain)) - 1, atol=1e-6)
        assert str(row["converged"]).endswith(" of 2")


def test_weights_are_tuned_coarsely_first(side_by_side: MethodStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, made = tuple(0.001 * 2.0**i for i in range(7)), list[methods_module.Trial]()

    def measured(_: object, job: tuple[methods_module.Trial, str, tuple[int, ...]]) -> dict[str, object]:
        made.append(job[0])
        distance = 0.0 if job[0].weight is None else abs(np.log2(job[0].weight / weights[5]) + 0.2)
        return {"relative_l2": 0.1 + distance, "psnr": 20.0, "ssim": 0.5, "reconstruction_converged": True}

    monkeypatch.setattr(methods_module, "trial_errors", measured)
    monkeypatch.setattr(methods_module, "WEIGHTS", weights)
    study = replace(side_by_side.study, training=(), strategies=("low-pass", "random"), lines=[8], seeds=3)
    side_by_side = MethodStudy(study, ("zero-filled", "l1-wavelet"))
    study.run(Work(), Keep())
    side_by_side.run(Work(), Keep())
    assert side_by_side.weight("l1-wavelet", 8) == weights[5]
    assert len({trial.key for trial in made}) == len(made) < len(weights) * len(study.cells)


def test_a_rival_that_did_not_converge_is_told_by_the_status_and_one_that_was_only_tuned_is_not(side_by_side):
    progress = finished(side_by_side)
    for row in progress.trials.values():
        row["reconstruction_converged"] = True  # type: ignore[index]
    judged = {trial.key for trial in side_by_side.judged()}
    tuned = next(key for key in progress.trials if key not in judged)
    progress.trials[tuned]["reconstruction_converged"] = False  # type: ignore[index]
    assert side_by_side.status == progress.status == "converged"
    progress.trials[next(key for key in progress.trials if key in judged)]["reconstruction_converged"] = False  # type: ignore[index]
    assert side_by_side.status != "converged"


def test_unknown_methods_and_shots_are_refused() -> None:
    for names, encoding in ((["wavelets"], "lines"), (["mean", "total-variation"], "radial")):
        with pytest.raises(UsageError):
            methods_named(names, encoding)
    assert methods_named(["mean", "sense", "least-squares"], "radial") == ("mean", "least-squares")
    assert methods_named(["tv", "l1", "cs"], "lines") == ("total-variation", "l1-wavelet", "map")
