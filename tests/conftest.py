"""Tiny models of every kind, small enough for dense linear algebra."""

import gc
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import mri_design as md
from mri_design.errors import say_once
from mri_design.experiment import ORACLES, TRAINING_RULES
from mri_design.experiment.strategies import STRATEGIES
from mri_design.kinds import KINDS
from mri_design.operators import (
    Dense,
    FiniteDifferences,
    Identity,
    LinearOperator,
    RealAndImaginary,
    RealImage,
    Wavelet,
)
from mri_design.registry import BLOCKS, SITES
from mri_design.scan.io.source import REGISTERED
from mri_design.sites import ENGINES, Laplace
from tests.slow_cases import slow_case

MODEL_NAMES = ["moduli", "groups", "parts", "real image", "coils", "wavelet", "matrix"]
QUICK_MODELS = ["groups", "coils", "matrix"]
"""Real and complex, one coil and several, groups and single sites; the others are left to the whole suite."""

ModelBuilder = Callable[..., md.GeneralizedLinearModel]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _piecewise(shape: tuple[int, int]) -> np.ndarray:
    y, x = np.mgrid[: shape[0], : shape[1]]
    image = 1.0 * ((y > 0) & (y < shape[0] - 1) & (x > 1))
    image[shape[0] // 2, shape[1] // 2] = 2.0
    return image


def _parts(name: str, rng: np.random.Generator) -> tuple[LinearOperator, np.ndarray, dict[str, tuple]]:
    """X, a true image, and (analysis, relative scale, group axes) by block name."""
    if name == "matrix":
        u = np.zeros(8)
        u[[1, 2, 5]] = 1.5, 1.0, -2.0
        walk = np.eye(8)[1:] - np.eye(8)[:-1]
        X = Dense(rng.standard_normal((5, 8)) / np.sqrt(5))
        return X, u, {"entries": (Identity((8,), is_complex=False), 1.0, ()), "steps": (Dense(walk), 0.5, ())}
    shape = (5, 4) if name in ("parts", "coils") else (6, 5)
    image = _piecewise(shape)
    lines = [shape[0] // 2, shape[0] // 2 - 1, 0]
    if name == "real image":
        pixels, slopes = (kind(shape, is_complex=False) for kind in (Identity, FiniteDifferences))
        analysis = {"pixels": (pixels, 0.5, ()), "differences": (slopes, 1.0, ())}
        return md.operators.cartesian(lines, shape) @ RealImage(shape), image, analysis
    u = image * np.exp(0.3j * np.arange(shape[1]))
    maps = None
    if name == "coils":
        maps = rng.standard_normal((3, *shape)) + 1j * rng.standard_normal((3, *shape))
        maps /= np.sqrt((np.abs(maps) ** 2).sum(axis=0))
    X = md.operators.cartesian(lines, shape, maps)
    if name == "parts":
        slopes = RealAndImaginary((2, *shape)) @ FiniteDifferences(shape)
        return X, u, {"pixels": (RealAndImaginary(shape), 0.5, ()), "differences": (slopes, 1.0, ())}
    slopes = FiniteDifferences(shape)
    if name == "wavelet":
        return X, u, {"wavelet": (Wavelet(shape, "db2", 1), 1.0, ()), "differences": (slopes, 0.5, ())}
    group = (-3,) if name == "groups" else ()
    return X, u, {"pixels": (Identity(shape), 0.5, ()), "differences": (slopes, 1.0, group)}


TESTS = Path(__file__).parent
SLOW_ROOMS = {"benchmarks", "cli", "docs", "golden"}
"""Folders of tests that run the whole program: `make test-fast` leaves them out, with all that is marked slow."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where everything slow is left out, do not read those folders at all: it takes seconds, in every process."""
    left_out = config.option.markexpr.startswith("not slow") and collection_path.parent == TESTS
    return True if left_out and collection_path.name in SLOW_ROOMS else None


gc.disable()  # thousands of tests are collected, and stay: nobody looks through them for garbage, now


def pytest_collection_finish() -> None:
    """Nor later, among what the tests leave."""
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--shuffle SEED``: files in a random order, and the tests of each file."""
    parser.addoption("--shuffle", type=int, metavar="SEED", help="random order of files, and in each file")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what runs the whole program as slow, and begin with the longest, so that no process ends alone."""
    for item in items:
        if SLOW_ROOMS.intersection(item.path.relative_to(TESTS).parts):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if config.option.shuffle is not None:
        draws = random.Random(config.option.shuffle)
        place = {path: draws.random() for path in sorted({item.path for item in items})}
        draws.shuffle(items)
        items.sort(key=lambda item: place[item.path])


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Nobody waits for the disk, from which no test reads after a loss of power."""
    with mock.patch("os.fsync", lambda descriptor: None):
        yield


@pytest.fixture(autouse=True, scope="module")
def registries_as_before() -> Iterator[None]:
    """Parts that a file of tests registers, and notices that it has seen, are known to that file alone."""
    known = (BLOCKS, SITES, KINDS, ENGINES, REGISTERED, ORACLES, TRAINING_RULES, *STRATEGIES.values())
    before = [one.copy() for one in known]
    say_once.cache_clear()
    yield
    for one, kept in zip(known, before, strict=True):
        one.clear()
        one.extend(kept) if isinstance(one, list) else one.update(kept)  # type: ignore[union-attr, arg-type]


@pytest.fixture(scope="session")
def tiny_model() -> ModelBuilder:
    """(name, site=md.sites.Laplace, scale=1, sigma=0.1, seed=0, real=float64) -> a model with simulated data.

    ``site`` makes a potential from a scale tau in units of 1; a typical coefficient is 10 sigma.
    """

    def build(name, site=Laplace, *, scale=1.0, sigma=0.1, seed=0, real=np.float64):
        rng = np.random.default_rng(seed)
        X, u, analysis = _parts(name, rng)
        clean = X(u)
        noise = rng.standard_normal(clean.shape)
        if X.out_complex:
            noise = noise + 1j * rng.standard_normal(clean.shape)
        data = (clean + sigma * noise).astype(np.result_type(real, np.complex64) if X.out_complex else real)
        blocks = tuple(
            md.SiteBlock(key, B, site(scale * relative), axes) for key, (B, relative, axes) in analysis.items()
        )
        return md.GeneralizedLinearModel(X, data, sigma**2, blocks)

    return build


@pytest.fixture(params=[name if name in QUICK_MODELS else slow_case(name) for name in MODEL_NAMES])
def model_name(request: pytest.FixtureRequest) -> str:
    """Every tiny model in turn."""
    return request.param


@pytest.fixture
def random_precisions() -> Callable[[md.GeneralizedLinearModel, int], tuple[np.ndarray, ...]]:
    """(model, seed) -> site precisions pi between 0.1 and 3."""

    def draw(model: md.GeneralizedLinearModel, seed: int) -> tuple[np.ndarray, ...]:
        rng = np.random.default_rng(seed)
        return tuple(rng.uniform(0.1, 3, block.site_shape) for block in model.blocks)

    return draw


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """A dask cluster of two workers in this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", protocol="tcp"
    ) as cluster:
        yield f"dask:{cluster.scheduler_address}"
