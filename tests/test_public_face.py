"""The package hands its names on without loading anything until they are asked for."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import mri_design
import mri_design as md


def test_every_public_name_exists() -> None:
    assert not [name for name in mri_design.__all__ if not hasattr(mri_design, name)]
    assert not hasattr(mri_design, "no_such_name")


def test_every_name_of_a_public_subpackage_is_a_part_of_it_whatever_was_imported_before() -> None:
    modules = [importlib.import_module(f"mri_design.{name}") for name in ("operators", "potentials", "variances")]
    for module in modules:
        for path in pkgutil.iter_modules(module.__path__):
            importlib.import_module(f"{module.__name__}.{path.name}")  # sets the module as an attribute of its package
    wrong = [f"{m.__name__}.{name}" for m in modules for name in m.__all__ if inspect.ismodule(getattr(m, name))]
    assert not wrong


def test_importing_the_package_loads_no_numerics() -> None:
    code = "import sys, mri_design; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_fixed_names_on_a_dense_model() -> None:
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((6, 8)), rng.standard_normal((12, 8))
    data, noise_variance = rng.standard_normal(6), 0.3
    model = md.GeneralizedLinearModel(
        measurement=md.operators.Dense(x),
        data=data,
        noise_variance=noise_variance,
        analysis=md.operators.Dense(b),
        potentials=md.potentials.Laplace(scale=1.5),
    )
    loop = md.DoubleLoop(variances=md.variances.Exact(), outer_iterations=60, tolerance=1e-8)
    posterior = loop.infer(model, rng=np.random.default_rng(1))
    assert posterior.convergence.converged
    assert posterior.variances.kind == "exact"
    a = x.T @ x + b.T @ (posterior.site_precisions[:, None] * b)
    np.testing.assert_allclose(posterior.variances.values, np.diag(b @ np.linalg.inv(a) @ b.T), rtol=1e-8)
    np.testing.assert_allclose(posterior.mean, np.linalg.solve(a, x.T @ data), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(posterior.image_variances, noise_variance * np.diag(np.linalg.inv(a)), rtol=1e-8)
    assert np.all(np.diff(posterior.criterion) <= 1e-9)
    # At the optimum pi = tau / sqrt(s^2 / sigma^2 + z).
    s = b @ posterior.mean
    np.testing.assert_allclose(
        posterior.site_precisions, 1.5 / np.sqrt(s**2 / noise_variance + posterior.variances.values), rtol=1e-5
    )
    new = rng.standard_normal((2, 8))
    gain = md.information_gain(posterior, md.operators.Dense(new))
    expected = np.linalg.slogdet(a + new.T @ new)[1] - np.linalg.slogdet(a)[1]
    np.testing.assert_allclose(gain, expected, rtol=1e-4)


@pytest.mark.slow
def test_the_fixed_names_on_a_scan() -> None:
    recipe = md.Recipe.of({"simulation": {"matrix": 16}})
    scan = md.load("phantom:brain", recipe=recipe).data
    mask = np.zeros(16, dtype=bool)
    mask[[1, 4, *range(5, 11), 13]] = True
    model = md.mr_image_model(scan, mask)
    assert model.measurement.lines.tolist() == np.flatnonzero(mask).tolist()
    again = md.mr_image_model(scan.kspace[0, 0], mask, noise_variance=scan.noise_variance)
    np.testing.assert_array_equal(again.data, model.data)
    posterior = md.DoubleLoop(variances=md.variances.Exact(), outer_iterations=2).infer(
        model, rng=np.random.default_rng()
    )
    assert posterior.image_variances.shape == (16, 16)
    before = np.linalg.slogdet(posterior.precision.dense_real())[1]
    longer = replace(posterior.precision, measurement=md.cartesian([*model.measurement.lines.tolist(), 11], (16, 16)))
    expected = np.linalg.slogdet(longer.dense_real())[1] - before
    np.testing.assert_allclose(md.information_gain(posterior, 11), expected, rtol=1e-3)
    mode = md.map_estimate(model)
    assert mode.convergence.converged
    for wrong in (np.ones(15, dtype=bool), np.full(16, 0.5), np.zeros(16, dtype=bool)):
        with pytest.raises(md.InputError):
            md.mr_image_model(scan, wrong)
