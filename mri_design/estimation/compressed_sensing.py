r"""Compressed sensing as in textbooks: least squares with an l1 norm of wavelets or of differences.

    J(u) = ||X u - y||^2 / 2 + lambda ||W u||_1

Lustig et al. 2007 have Daubechies-4 wavelets for W, Block et al. 2007 differences between neighbours. Blocks of
wavelets leave their grid in the image, unless the penalty is a mean over wavelets of shifted images (cycle spinning:
Coifman and Donoho 1995; a shift for every iteration, as Figueiredo and Nowak 2003 have it). Solvers take nothing of the
measurement but X^H y and the Gram product X^H X, and need one of these products for an iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
import pywt

from mri_design.errors import InputError, positive_number, require_choice
from mri_design.model.slice import SliceModel
from mri_design.operators import kernels
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.conventions import Chosen
from mri_design.operators.sparsity import FiniteDifferences
from mri_design.status import Convergence, Status

Textbook = Literal["l1-wavelet", "total-variation"]
TEXTBOOK: tuple[Textbook, ...] = get_args(Textbook)

ITERATIONS = 300
"""Of accelerated proximal gradients and of the primal-dual method: three times SigPy's 100, which few lines need."""
SHIFTED = 200
"""Of proximal gradients with shifts; the image is the mean over the second half of them."""
WAVELET = "db4"
_MOMENTUM = 0.95
"""Largest momentum with shifts: without a limit, it amplifies how much images of different shifts differ."""
_TURNS = (0.7548776662466927, 0.5698402909980532)
"""Fractions of a period from one shift to the next: powers of 1 / 1.3247..., which fill a square most evenly."""
_DUAL_STEP = 0.03
"""Step of the primal-dual method on edges, whose dual image is no larger than lambda; that on the image is the largest
that converges, 1 / 9 of its inverse (1 / 10 where two sets of coil maps see every pixel). With steps of 1 and 1 / 9
images of few lines are far from the minimum after 300 iterations (results/coils/everyday.md)."""
_SETTLED = 1e-2
"""Relative change over the last tenth of the iterations, with shifts over the last quarter, below which they have
converged."""


def textbook(
    slice_model: SliceModel, lines: Chosen, method: Textbook, weight: float, *, shifts: bool = True
) -> tuple[Array, Convergence]:
    """The minimiser of J; with shifts an image near the minimum of the mean of J over them.

    Parameters
    ----------
    slice_model : SliceModel
        The slice; its prior and noise are not used.
    lines : sequence of int, or bool array
        Measured lines, or samples of a plane.
    method : {"l1-wavelet", "total-variation"}
        W.
    weight : float
        lambda over the largest modulus of X^H y, so that it does not depend on the units of the scan.
    shifts : bool
        Of the image under its wavelets, for l1-wavelet; total variation needs none.

    Returns
    -------
    image : complex array, shape (ky, kx)
        In the precision of the data.
    convergence : Convergence
        Converged where the last tenth of the iterations, with shifts the last quarter, changed the image by less than
        a hundredth.

    Raises
    ------
    InputError
        For shots, another method, or a weight that is not positive.

    Notes
    -----
    Without shifts the images are those of SigPy's `L1WaveletRecon` and `TotalVariationRecon` with the same fixed steps;
    SigPy finds its own by a random start, which would make every run differ. The shifts are a fixed sequence (an
    additive recurrence), where BART's `pics` draws its own.
    """
    if not slice_model.candidates.kind.on_grid:
        got = "samples along a trajectory"
        raise InputError(f"method {method}", got, "lines, or samples of a plane", "Use mean, map or least-squares.")
    require_choice(TEXTBOOK, method=method)
    positive_number("weight", weight)
    measurement = slice_model.measurement(lines)
    plain = measurement.adjoint(slice_model.acquire(lines))
    scale = float(np.abs(plain).max()) or 1.0
    # The squared norm of X: that of the coil maps, where two places may fold into one pixel.
    square = slice_model.candidates.places
    if method == "total-variation":
        solve, iterations = _total_variation, ITERATIONS
    else:
        solve, iterations = (_shifted_wavelets, SHIFTED) if shifts else (_l1_wavelet, ITERATIONS)
    x, before = solve(measurement.gram, plain / scale, weight, square)
    change = float(np.linalg.norm(x - before) / (np.linalg.norm(x) or 1.0))
    status = Status.CONVERGED if change < _SETTLED else Status.MAX_ITERATIONS
    return x * scale, Convergence(status, iterations, change, iterations)


def _l1_wavelet(gram: LinearOperator, plain: Array, weight: float, square: float) -> tuple[Array, Array]:
    """The last image, and that a tenth of the iterations earlier."""
    x = before = np.zeros_like(plain)
    for iteration, x in enumerate(_proximal_gradients(gram, plain, weight, square, [(0, 0)] * ITERATIONS, 1.0), 1):
        if iteration == ITERATIONS - ITERATIONS // 10:
            before = x
    return x, before


def _shifted_wavelets(gram: LinearOperator, plain: Array, weight: float, square: float) -> tuple[Array, Array]:
    """The mean over the second half of the images, and over the first half of these.

    Every image is that of its last shifts, too; their mean is not (Polyak and Juditsky 1992).
    """
    steps = np.outer(np.arange(1, SHIFTED + 1), _TURNS) % 1
    shifts = [(int(y), int(x)) for y, x in steps * 2 ** _levels(plain.shape, WAVELET)]
    total, before, half = np.zeros_like(plain), np.zeros_like(plain), SHIFTED // 2
    for iteration, x in enumerate(_proximal_gradients(gram, plain, weight, square, shifts, _MOMENTUM), 1):
        if iteration > SHIFTED - half:
            total += x
        if iteration == SHIFTED - half // 2:
            before = total / (half - half // 2)
    return total / half, before


def _proximal_gradients(
    gram: LinearOperator, plain: Array, weight: float, square: float, shifts: list[tuple[int, int]], most: float
) -> Iterator[Array]:
    """The images of accelerated proximal gradients (Beck and Teboulle 2009), one for every shift of the wavelets.

    ``most`` is the largest momentum.
    """
    step = 1 / square
    x = np.zeros_like(plain)
    t, ahead = 1.0, x.copy()
    for shift in shifts:
        moved = gram(ahead)  # and in place from here on: new pages take as long as the sums
        moved -= plain
        moved *= -step
        moved += ahead
        old, x = x, shrunken_wavelets(moved, weight * step, shift=shift)
        yield x
        t, momentum = (1 + (1 + 4 * t**2) ** 0.5) / 2, t - 1
        np.subtract(x, old, out=ahead)
        ahead *= min(momentum / t, most)
        ahead += x


def _total_variation(gram: LinearOperator, plain: Array, weight: float, square: float) -> tuple[Array, Array]:
    """The primal-dual method (Chambolle and Pock 2011), with duals of the data as images X^H p and of the edges."""
    step = 1 / ((8 + square) * _DUAL_STEP)
    differences = FiniteDifferences((plain.shape[0], plain.shape[1]))
    x = before = ahead = np.zeros_like(plain)
    of_data, of_edges = np.zeros_like(plain), np.zeros((2, *plain.shape), dtype=plain.dtype)
    for iteration in range(ITERATIONS):
        if iteration == ITERATIONS - ITERATIONS // 10:
            before = x
        of_data += _DUAL_STEP * (gram(ahead) - plain)
        of_data /= 1 + _DUAL_STEP
        of_edges += _DUAL_STEP * differences(ahead)
        of_edges *= weight / np.maximum(np.abs(of_edges), weight)
        old, x = x, x - step * (of_data + differences.adjoint(of_edges))
        ahead = 2 * x - old
    return x, before


def shrunken_wavelets(u: Array, threshold: float, wavelet: str = WAVELET, *, shift: tuple[int, int] = (0, 0)) -> Array:
    """The minimiser of ||v - u||^2 / 2 + threshold ||W v||_1, or near it: W is an isometry, but not onto.

    Parameters
    ----------
    u : complex array, shape (ky, kx)
        An image, which zeros continue beyond its edges (a row or column of them first where a side is odd).
    threshold : float
        What is taken off the modulus of every coefficient, coarse ones too.
    wavelet : str
        A name of an orthogonal family of PyWavelets. All levels are taken that fit the image.
    shift : (int, int)
        Pixels by which the image is turned, around its edges, before, and back again afterwards.

    Notes
    -----
    W is that of SigPy, and `pywt.wavedecn(..., mode="zero")`.
    """
    family, levels = pywt.Wavelet(wavelet), _levels(u.shape, wavelet)
    shrunken = _shrunken(np.roll(u, shift, (0, 1)), [n % 2 for n in u.shape], threshold, family, levels)
    return np.roll(shrunken, (-shift[0], -shift[1]), (0, 1))


def _levels(shape: tuple[int, ...], wavelet: str) -> int:
    """How many fit an image, with a row or column more where a side is odd."""
    return int(pywt.dwtn_max_level([n + n % 2 for n in shape], wavelet))


def _shrunken(u: Array, before: list[int], threshold: float, wavelet: pywt.Wavelet, levels: int) -> Array:
    """One level, with zeros ``before`` the image and so many around that periodic filters do not meet, and the next."""
    if levels == 0:
        return kernels.pixels.shrink(u.copy(), threshold)
    taps = wavelet.dec_len
    starts = [taps // 2 - 1 + zeros for zeros in before]
    halves = [(n + zeros + taps - 1) // 2 for n, zeros in zip(u.shape, before, strict=True)]
    image = tuple(slice(start, start + n) for start, n in zip(starts, u.shape, strict=True))
    coarse = tuple(slice(half) for half in halves)
    padded = np.zeros([2 * half for half in halves], dtype=u.dtype)
    padded[image] = u
    bands = kernels.wavelet.analysis(padded, padded.shape, wavelet.name, 1)
    following = _shrunken(bands[coarse], [0, 0], threshold, wavelet, levels - 1)
    kernels.pixels.shrink(bands, threshold)[coarse] = following
    return kernels.wavelet.synthesis(bands, wavelet.name, 1)[image]
