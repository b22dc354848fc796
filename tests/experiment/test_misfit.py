"""What an image leaves of the samples of several coils, over their noise: whether maps and noise explain the scan."""

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.experiment.reconstruction import image_rng, misfit_of_samples, reconstruct_prepared
from mri_design.operators.conventions import to_kspace
from mri_design.variances import ControlVariate

QUICK = md.load_recipe("local")


LINES = tuple(range(24, 40)) + tuple(range(0, 24, 3)) + tuple(range(40, 64, 3))


@pytest.fixture(scope="module")
def one() -> md.SliceModel:
    return md.load_phantom("brain", shape=(64, 64), n_coils=4, rng=np.random.default_rng(0)).slice_model()


def test_it_is_the_mean_square_of_what_is_left(one: md.SliceModel) -> None:
    posterior = md.DoubleLoop(ControlVariate(4)).infer(one.model(LINES), np.random.default_rng(0))
    samples = to_kspace(one.maps * posterior.mean)[:, sorted(LINES)]
    left = np.abs(one.kspace[:, sorted(LINES)] - samples) ** 2
    found = misfit_of_samples(posterior)
    np.testing.assert_allclose(found, left.mean() / (2 * one.noise_variance), rtol=1e-3)
    assert 0.6 < found < 1.2


def test_images_tell_maps_that_do_not_explain_the_coils(one: md.SliceModel) -> None:
    wrong = replace(one, maps=np.ascontiguousarray(one.maps[::-1]))
    misfits = [reconstruct_prepared(m, LINES, "mean", QUICK, image_rng(0), with_std=False).misfit for m in (one, wrong)]
    assert misfits[0] is not None and misfits[1] is not None
    assert misfits[0] < 1.2 and misfits[1] > 2
    assert reconstruct_prepared(one, LINES, "least-squares", QUICK, image_rng(0)).misfit is None


def test_what_maps_do_not_explain_counts_as_noise(one: md.SliceModel) -> None:
    wrong, rng = replace(one, maps=np.ascontiguousarray(one.maps[::-1])), image_rng(0)
    first = reconstruct_prepared(wrong, LINES, "mean", QUICK, rng, with_std=False)
    assert first.misfit is not None
    told = replace(wrong, noise_variance=wrong.noise_variance * first.misfit)
    same = reconstruct_prepared(told, LINES, "mean", QUICK, image_rng(0), with_std=False)
    assert same.misfit is not None and same.misfit < 2
    assert np.linalg.norm(same.image - first.image) < 0.05 * np.linalg.norm(first.image)
