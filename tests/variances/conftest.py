"""Models that look like those of an image, small enough for exact variances."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design import FiniteDifferences, GeneralizedLinearModel, Identity, Laplace, SiteBlock, Wavelet, cartesian

ImageLike = tuple[GeneralizedLinearModel, tuple[np.ndarray, ...]]


@pytest.fixture(scope="session")
def scan_like() -> Callable[..., ImageLike]:
    """(lines, shape, prior, coils=1) -> a model and site precisions that vary as those of an image.

    They are small on a square's edge and large elsewhere. ``prior`` is "differences" or the name of a wavelet, beside
    pixels.
    """

    def build(lines: list[int], shape: tuple[int, int], prior: str, coils: int = 1) -> ImageLike:
        sparsity = FiniteDifferences(shape) if prior == "differences" else Wavelet(shape, prior, 2)
        blocks = tuple(
            SiteBlock(name, B, Laplace(1.0)) for name, B in (("pixels", Identity(shape)), ("sparsity", sparsity))
        )
        y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
        angles = 2 * np.pi * np.arange(coils) / coils
        maps = [np.exp(-((y - np.sin(a)) ** 2) - (x - np.cos(a)) ** 2 + 1j * a) for a in angles]
        maps = maps / np.sqrt(np.sum(np.abs(maps) ** 2, axis=0))
        X = cartesian(lines, shape, maps if coils > 1 else None)
        image = np.zeros(shape)
        image[shape[0] // 4 : -shape[0] // 4, shape[1] // 4 : -shape[1] // 4] = 1
        pi = tuple(1 / (0.1 + 2 * np.abs(block.analysis(image))) for block in blocks)
        return GeneralizedLinearModel(X, X(image + 0j), 0.01, blocks), pi

    return build
