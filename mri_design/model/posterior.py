"""The Gaussian approximation of the posterior: its scaled precision A = X^H X + B^H diag(pi) B, and marginal variances.

Sums of weighted Gram products, and products of two images' coefficients pooled over the groups of sites, go through the
images alone, with images in cache from one operator to the next. Preconditioners are inverses of the nearest
circulants; that of a phase-aware model has one of the real and one of the imaginary part, between two turns.

Last comes the memory of an inference: how many draws are computed at once, and unit noise kept for reuse."""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cache, cached_property, partial
from threading import Lock
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
import scipy  # whose parts are loaded when they are first used

from mri_design.brief import briefly
from mri_design.errors import (
    InputError,
    require_allocatable,
    require_counts,
    require_instance,
    require_random,
    say_once,
)
from mri_design.krylov import LanczosFactors, conjugate_gradients, in_chunks
from mri_design.model.circulant import ScaledCirculantInverse, scaled_circulant_inverse
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.conventions import compilable, laid_out
from mri_design.operators.elementary import Identity, MatrixOperator, PhasedParts
from mri_design.operators.sparsity import FiniteDifferences, GraphDifferences
from mri_design.status import Convergence

CHUNK = 1 << 19
"""Bytes of a batch taken through all operators before the next."""
GRAPH_CHUNK = 8
"""Images, at least, that are taken through a graph together: its kernel walks the edges once for so many."""
Term = tuple[LinearOperator, Array]


def add_weighted_grams(operators: Sequence[LinearOperator], weights: Sequence[Array], u: Array, total: Array) -> None:
    """``total += sum_j A_j^H diag(weights_j) A_j u`` in the precision of ``total``.

    Parameters
    ----------
    operators : sequence of LinearOperator
        All on images of one shape. Those that turn by the same phase (the same array) turn an image once.
    weights : sequence of float arrays
        Each broadcastable to one output of its operator, or to its outputs of the batch.
    u, total : arrays, shape (..., *image shape)
        One image or a batch.
    """
    of_a_batch = any(np.ndim(w) > len(a.out_shape) for a, w in zip(operators, weights, strict=True))
    if not operators or of_a_batch or not compilable(u, total):
        for operator, w in zip(operators, weights, strict=True):
            operator.add_weighted_gram(w, u, total)
        return
    first = next((operator for operator in operators if isinstance(operator, PhasedParts)), None)
    straight: list[Term] = []
    turning: list[Term] = []
    for operator, w in zip(operators, weights, strict=True):
        if first is not None and isinstance(operator, PhasedParts) and operator.rotation is first.rotation:
            turning.append((operator.analysis, operator.part_weights(np.asarray(w, dtype=u.real.dtype))))
        else:
            straight.append((operator, laid_out(w, operator.out_shape, u)))
    shape = operators[0].in_shape
    images, totals = u.reshape(-1, *shape), total.reshape(-1, *shape)
    with_graph = any(isinstance(operator, GraphDifferences) for operator, _ in (*straight, *turning))
    step = max(GRAPH_CHUNK if with_graph else 1, CHUNK // max(1, images[:1].nbytes))
    for begin in range(0, len(images), step):
        some, sums = images[begin : begin + step], totals[begin : begin + step]
        _add_terms(straight, some, sums)
        if first is not None:
            turned = first.turned_back(some)
            parts = np.zeros_like(turned)
            _add_terms(turning, turned, parts, apart=True)
            sums += first.turned(parts)


def _add_terms(terms: Sequence[Term], u: Array, total: Array, *, apart: bool = False) -> None:
    """Pixels and differences in one pass, others one after the other.

    With ``apart`` the last axis of the weights is that of the real and imaginary parts.
    """
    pixels = next((k for k, (operator, _) in enumerate(terms) if isinstance(operator, Identity)), None)
    slopes = next((k for k, (operator, _) in enumerate(terms) if isinstance(operator, FiniteDifferences)), None)
    done: tuple[int | None, ...] = ()
    if slopes is not None and (pixels is not None or apart):
        differences, on_slopes = terms[slopes]
        assert isinstance(differences, FiniteDifferences)
        add = differences.add_weighted_parts if apart else differences.add_in_place
        add(on_slopes, u, total, pixels=None if pixels is None else terms[pixels][1])
        done = (slopes, pixels)
    for k, (operator, w) in enumerate(terms):
        if k not in done:
            (operator.add_weighted_parts if apart else operator.add_weighted_gram)(w, u, total)


Products = tuple[Array, Array]


def pooled_products(blocks: Sequence[SiteBlock], a: Array, b: Array) -> tuple[Products | None, ...]:
    """Re <B a, B b> and |B b|^2 of every site, block by block, in passes over the images alone.

    Parameters
    ----------
    blocks : sequence of SiteBlock
        Offsets are ignored. Blocks that turn by the same phase (the same array) turn an image once.
    a, b : arrays, shape of the image
        Of one precision.

    Returns
    -------
    tuple of pairs of real arrays, or None
        As `SiteBlock.pooled` has them; None for blocks whose coefficients have to be made: of other operators than
        pixels, differences and graphs, behind a phase or not, or with other groups.
    """
    if not (np.iscomplexobj(a) and compilable(a, b) and a.ndim == 2):
        return (None,) * len(blocks)
    turned: dict[int, tuple[Array, Array]] = {}

    def of(block: SiteBlock) -> Products | None:
        operator, axes, images = block.analysis, set(block.group_axes), (a, b)
        factors: Array | None = np.ones(a.shape, dtype=a.real.dtype)
        if isinstance(operator, PhasedParts):
            factors = operator.squares_on_pixels(a.real.dtype) if -1 in axes else None
            if id(operator.rotation) not in turned:
                first = operator.turned_back(a)
                turned[id(operator.rotation)] = first, (first if b is a else operator.turned_back(b))
            images = turned[id(operator.rotation)]
            operator, axes = operator.analysis, {axis + 1 for axis in axes - {-1}}
        if factors is None or not axes <= {-3}:
            return None
        products = operator.site_products(*images, factors, bool(axes))
        return (
            None if products is None else (products[0].reshape(block.site_shape), products[1].reshape(block.site_shape))
        )

    return tuple(of(block) for block in blocks)


@dataclass(frozen=True)
class PosteriorPrecision:
    """A as something to multiply with, sample from and precondition; Cov[u] = sigma^2 A^-1.

    Parameters
    ----------
    measurement : LinearOperator
        X.
    blocks : tuple of SiteBlock
        Blocks of B.
    site_precisions : tuple of float arrays
        pi = 1 / gamma per block, broadcastable to the block's coefficients (groups have length-one axes).
    """

    measurement: LinearOperator
    blocks: tuple[SiteBlock, ...]
    site_precisions: tuple[Array, ...]

    def __getstate__(self) -> dict[str, object]:
        """State without derived values, which are computed again in another process."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _gram(self) -> LinearOperator:
        return self.measurement.gram

    def __call__(self, u: Array) -> Array:
        """A u, for one image or a batch."""
        total = self._gram(u)
        if np.may_share_memory(total, u):  # X may be the identity
            total = total.copy()
        add_weighted_grams([block.analysis for block in self.blocks], self.site_precisions, u, total)
        return total

    @property
    def complex_linear(self) -> bool:
        """True where A commutes with multiplication by i, so that real and imaginary parts are exchangeable."""
        return self.measurement.complex_linear and all(b.analysis.complex_linear for b in self.blocks)

    @cached_property
    def circulant_spectrum(self) -> Array | None:
        """Eigenvalues of the circulant nearest to A (FFT order), or None where X or B do not know theirs."""
        spectra = [self.measurement.circulant_spectrum()]
        for block, pi in zip(self.blocks, self.site_precisions, strict=True):
            spectra.append(block.analysis.circulant_spectrum(np.broadcast_to(pi, block.analysis.out_shape)))
        known = [s for s in spectra if s is not None]
        if len(known) < len(spectra) or len(self.measurement.in_shape) != 2:
            return None
        return np.maximum(sum(known), np.finfo(np.float32).tiny)

    @cached_property
    def preconditioner(self) -> ScaledCirculantInverse | None:
        """r -> (something near A)^-1 r, for conjugate gradients; see `scaled_circulant_inverse`."""
        nearest = self.circulant_spectrum
        if nearest is None:
            return None
        return scaled_circulant_inverse(self.measurement, self.blocks, self.site_precisions, nearest)

    def solve(
        self, rhs: Array, *, start: Array | None = None, tolerance: float, max_iterations: int
    ) -> tuple[Array, Convergence]:
        """A^-1 of every right-hand side (count, *image shape), by preconditioned `krylov.conjugate_gradients`."""
        return conjugate_gradients(
            self,
            rhs,
            n_axes=len(self.measurement.in_shape),
            start=start,
            preconditioner=self.preconditioner,
            tolerance=tolerance,
            max_iterations=max_iterations,
        )

    def perturbations(
        self,
        rng: np.random.Generator,
        count: int,
        like: Array,
        *,
        again: bool = False,
        at_once: int | None = None,
        of_all: bool = True,
    ) -> Array:
        """``count`` draws b ~ N(0, A): X^H e_0 + B^H sqrt(pi) e, with e of unit variance per real component.

        Parameters
        ----------
        rng : numpy Generator
            Source of the noise.
        count : int
            Number of draws.
        like : array
            Its precision (single or double) is used.
        again : bool
            Whether an equal generator is likely to be given again soon, so that its noise is worth keeping.
        at_once : int, optional
            Draws that are made of the noise at a time, all by default: what is made of the noise on the way is held for
            so many.
        of_all : bool
            Whether noise is drawn of all lines of the grid, so that measurements that share lines share their noise
            and b changes little when a line is added; else of the measured ones alone.

        Returns
        -------
        array, shape (count, *image shape)
            A^-1 b then has covariance A^-1 (Papandreou & Yuille 2010).

        Raises
        ------
        InputError
            Where a site precision is negative, or there are more draws than an array may hold.
        """
        rows = max(self.measurement.out_size, like.size)
        require_allocatable("draws", count, rows, item_bytes=like.itemsize, got=count, cure="Ask for fewer draws.")
        if any(np.any(np.asarray(pi) < 0) for pi in self.site_precisions):
            raise InputError(
                "draws",
                "negative site precisions, as sites that are not log-concave may have",
                "site precisions of zero or more",
                "Infer with variances from draws (MonteCarlo), which keep them so, or with DoubleLoop.",
            )
        made = recent_noise if again else _noise_anew
        X, real = self.measurement, like.real.dtype
        noise = made(X, rng, count, real, of_all)
        # A unitary Q leaves noise as white as it was, and adjoints of Q X may be cheaper.
        adjoint = X.adjoint_of_noise if of_all else X.rotated(noise[0])[0].adjoint
        draws = in_chunks(adjoint, noise, at_once)
        for block, pi in zip(self.blocks, self.site_precisions, strict=True):
            noise = made(block.analysis, rng, count, real)
            draws = draws + in_chunks(partial(block.analysis.weighted_adjoint, np.sqrt(pi)), noise, at_once)
        return draws

    def dense_real(self, limit: int = 9000) -> Array:
        """A as a real matrix on (real parts, imaginary parts); the reference for everything faster."""
        x = self.measurement.to_dense_real(limit)
        total = x.T @ x
        for block, pi in zip(self.blocks, self.site_precisions, strict=True):
            weights = np.broadcast_to(pi, block.analysis.out_shape).ravel()
            if isinstance(block.analysis, MatrixOperator) and not block.analysis.in_complex:
                total += block.analysis.weighted_gram_matrix(weights)
                continue
            b = block.analysis.to_dense_real(limit)
            if block.analysis.out_complex:
                weights = np.concatenate([weights, weights])
            total += b.T @ (weights[:, None] * b)
        return np.asarray(total)


def _noise_anew(
    operator: LinearOperator, rng: np.random.Generator, count: int, real: np.dtype[Any], shared: bool = True
) -> Array:
    return operator.shared_noise(rng, count, real) if shared else LinearOperator.unit_noise(operator, rng, count, real)


VarianceKind = Literal["exact", "lower_bound", "unbiased"]


@briefly
@dataclass(frozen=True)
class Variances:
    """z = diag(B A^-1 B^H) for a list of analysis operators.

    Parameters
    ----------
    values : tuple of float arrays
        One per analysis operator, of its output shape, in units of sigma^2. For complex coefficients the SUM of the
        variances of real and imaginary part.
    kind : {"exact", "lower_bound", "unbiased"}
        The kind of the numbers: "unbiased" ones are means over random draws, whose expectation is the truth but for
        ``bias``.
    convergence : Convergence
        Of the linear algebra behind them.
    std_error : tuple of float arrays, optional
        Standard error of each value, in its units: how far it scatters, because draws are few. None where the error is
        not random.
    bias : tuple of float arrays, optional
        One array per array of ``values``, of its shape and in its units (absolute, not relative), zero or positive: an
        estimate of how far each value may lie off, mostly below, because every draw was solved to a tolerance and not
        exactly. More draws do not make it smaller, a smaller tolerance of the solver does. It is cautious, some two to
        four times the root mean square over coefficients of similar size, so that the truth is expected within
        ``3 * std_error + bias`` of nearly every value, however many draws there are. Zero where draws are known
        exactly; None where there are no draws behind the values, or if the estimator was set to leave it out.
    samples : array, shape (count, *image shape), optional
        Draws with covariance A^-1 made on the way.
    explained : array, shape of ``samples``, optional
        P b for the right-hand side b of every draw, with P the inverse of the circulant nearest to A, or of the
        circulants of real and imaginary part behind a phase: the part of the draws whose variances are known exactly.
    image : float array, shape of one image, optional
        z of the pixels, where the draws alone would tell it worse.
    factors : LanczosFactors, optional
        Low-rank representation made on the way.
    log_determinant : float, optional
        log|A| on the real unknowns; exact only where ``kind`` is.
    """

    values: tuple[Array, ...]
    kind: VarianceKind
    convergence: Convergence
    _: KW_ONLY
    std_error: tuple[Array, ...] | None = None
    bias: tuple[Array, ...] | None = None
    samples: Array | None = None
    explained: Array | None = None
    image: Array | None = None
    factors: LanczosFactors | None = None
    log_determinant: float | None = None


@briefly
@dataclass(frozen=True)
class GaussianPosterior:
    """Q(u) = N(mean, sigma^2 A^-1).

    Parameters
    ----------
    model : GeneralizedLinearModel
        The model whose posterior it is.
    mean : array, shape of the image
        Posterior mean, in the units of the data.
    precision : PosteriorPrecision
        A with the final site precisions.
    marginals : Variances
        z of the model's blocks under A (per coefficient, not pooled over groups), in units of sigma^2: one array per
        block. Their accuracy is in ``marginals.kind``, ``marginals.std_error`` and, where they come
        from draws, ``marginals.bias``.
    convergence : Convergence
        Of the inference.
    criterion : tuple of float
        Trace of the criterion phi over outer loops; empty where it was not computed.
    criterion_kind : {"exact", "estimate", "none"}
        Whether log|A| in the trace was exact.
    stationarity : float
        How far the site precisions are from those that follow from their own z: mean over sites of the relative
        difference of pi and -2 g'(|s|^2 / sigma^2 + z). Zero exactly where the criterion is stationary: at its minimum
        for log-concave models (``model.log_concave``), in a local one for others. Other engines than the double loop
        compare pi with the update by their own rule.
    """

    model: GeneralizedLinearModel
    mean: Array
    precision: PosteriorPrecision
    marginals: Variances
    _: KW_ONLY
    convergence: Convergence
    criterion: tuple[float, ...] = ()
    criterion_kind: str = "none"
    stationarity: float = float("nan")

    @property
    def site_precisions(self) -> Array | tuple[Array, ...]:
        """pi = 1 / gamma: the array of a model of one block, a tuple of one per block otherwise."""
        return _alone(self.precision.site_precisions)

    @property
    def variances(self) -> Variances:
        """`marginals`, with ``values``, ``std_error`` and ``bias`` arrays in a model of one block, else as there."""
        made = self.marginals
        return replace(
            made,
            values=_alone(made.values),
            std_error=None if made.std_error is None else _alone(made.std_error),
            bias=None if made.bias is None else _alone(made.bias),
        )

    @cached_property
    def image_variances(self) -> Array:
        """Var[u] of every pixel in the image's units squared, real and imaginary part together.

        Of the same kind as `marginals`: from its draws or Lanczos vectors, or by dense algebra where it was exact.
        """
        made = self.marginals
        scaled: Array
        if made.image is not None:
            scaled = made.image
        elif made.samples is not None:
            scaled = np.mean(np.abs(made.samples) ** 2, axis=0)
        elif made.factors is not None:
            components = 2 if self.model.measurement.in_complex else 1
            scaled = components * np.sum(np.abs(made.factors.inverse_root()) ** 2, axis=0)
        else:
            inverse = np.diag(scipy.linalg.inv(self.precision.dense_real()))
            scaled = inverse.reshape(-1, *self.mean.shape).sum(axis=0)
        return np.asarray(self.model.noise_variance * scaled, dtype=self.mean.real.dtype)

    def draw(
        self, rng: np.random.Generator, count: int, *, tolerance: float = 1e-2, max_iterations: int = 500
    ) -> tuple[Array, Convergence]:
        """Draws of (u - mean) / sigma, covariance A^-1, by perturb-and-solve.

        Parameters
        ----------
        rng : numpy Generator
            Source of randomness.
        count : int
            Number of draws.
        tolerance, max_iterations : float, int
            Of the conjugate gradients; see `krylov.conjugate_gradients`.

        Raises
        ------
        InputError
            For anything but a generator, no draw, a senseless tolerance or limit.
        """
        require_random(rng)
        require_counts(count=count, least=1)
        b = self.precision.perturbations(rng, count, like=self.mean)
        return self.precision.solve(b, tolerance=tolerance, max_iterations=max_iterations)

    def deviations(self, rng: np.random.Generator, count: int) -> Array:
        """At least ``count`` draws of (u - mean) / sigma: those of the inference, with more added if needed.

        Raises
        ------
        InputError
            For anything but a generator, or no draw.
        """
        require_counts(count=count, least=1)
        made = self.own_deviations(rng, count)
        return made if len(made) >= count else np.concatenate([made, self.draw(rng, count - len(made))[0]])

    def own_deviations(self, rng: np.random.Generator, count: int) -> Array:
        """Draws of (u - mean) / sigma: those of the inference, however many, or ``count`` new ones if it has none.

        Raises
        ------
        InputError
            For anything but a generator, or no draw.
        """
        require_random(rng)
        return self.draw(rng, count)[0] if self.marginals.samples is None else self.marginals.samples


def require_posterior(posterior: object) -> None:
    """Refuse anything but a Gaussian posterior.

    Raises
    ------
    InputError
        Saying where one comes from.
    """
    cure = "Infer one: DoubleLoop(Exact()).infer(model, rng)."
    require_instance(GaussianPosterior, wanted="a GaussianPosterior", cure=cure, posterior=posterior)


def _alone(arrays: tuple[Array, ...]) -> Any:
    return arrays[0] if len(arrays) == 1 else arrays


DEFAULT_MEMORY = 1024.0
"""MiB of a process that infers one image, the program included."""
MIB = 1 << 20
PROGRAM = 200 * MIB
"""Bytes of the interpreter with its libraries and compiled loops, before there is any image."""
IMAGES = 30
"""Images that the model and the inner problem hold, whatever is drawn: the data, site precisions, spectra."""
OF_COILS = 4
"""Images of every coil that are held: its map, the map in the order of compiled loops, its spread, its data."""
HELD = 7
"""Images of every draw that are held throughout: b, A^-1 b and P b with those of the last loop, residual, direction."""
WORKED = 6
"""Images of every draw that is worked on: the product, what the preconditioner makes of it, and their transforms."""
COEFFICIENTS = 4
"""Sets of one operator's coefficients of every draw that is worked on: of A^-1 b, of P b, their powers, remainders."""
IN_COILS = 4
"""Images of every coil and draw that is worked on, where readouts are not whole: noise on the grid, its transforms."""
MADE = 5
"""Images of every draw beside one operator's noise of all draws while it is made, and right-hand sides of it."""


def draws_at_once(
    memory: float,
    count: int,
    measurement: LinearOperator,
    analyses: Sequence[LinearOperator],
    real: np.dtype,
    besides: int = 0,
) -> int | None:
    """Draws that an inference may work on at a time; None where it may work on all, and keep their noise.

    Parameters
    ----------
    memory : float
        MiB of the process.
    count : int
        Draws.
    measurement : LinearOperator
        X; its coil maps count, with the data of every coil.
    analyses : sequence of LinearOperator
        The blocks of B, and other operators whose variances are wanted.
    real : dtype
        Precision of the computation.
    besides : int
        Bytes that are held too, as the factors of a control.

    Notes
    -----
    A limit that draws made one by one do not keep to is not kept to, which one warning reports, with what they take;
    for the default limit there is no warning. What a process took before, to read a scan or to estimate coil maps, is
    not known here.
    """
    needs = _Needs.of(measurement, analyses, real)
    least = least_memory(count, measurement, analyses, real, besides)
    if memory < least and memory != DEFAULT_MEMORY:
        pixels, coils = " x ".join(str(n) for n in measurement.in_shape), f" by {needs.coils} coils" * bool(needs.coils)
        say_once(
            f"memory: {memory:g} MiB are not kept to: {count} draws of {pixels} pixels{coils}, made one by one, "
            f"take {math.ceil(least)} MiB or more. Allow more, or draw less (samples)."
        )
    if memory * MIB >= besides + needs.held + count * (HELD * needs.image + needs.worked + sum(needs.noise)):
        return None
    return min(max(int((memory - least) * MIB // needs.worked) + 1, 1), count)


def least_memory(
    count: int, measurement: LinearOperator, analyses: Sequence[LinearOperator], real: np.dtype, besides: int = 0
) -> float:
    """MiB of a process that computes its draws one by one; the arguments are those of `draws_at_once`."""
    needs = _Needs.of(measurement, analyses, real)
    of_all = count * max(HELD * needs.image, MADE * needs.image + max(needs.noise))
    return (besides + needs.held + of_all + needs.worked) / MIB


class _Needs(NamedTuple):
    """Coils with maps; bytes of an image, held whatever is drawn, for each draw worked on, and of a draw's noises."""

    coils: int
    image: int
    held: int
    worked: int
    noise: tuple[int, ...]

    @classmethod
    def of(cls, measurement: LinearOperator, analyses: Sequence[LinearOperator], real: np.dtype) -> Self:
        maps = getattr(measurement, "maps", None)
        coils = 0 if maps is None else len(maps)
        image = measurement.in_size * real.itemsize
        widest = max((analysis.out_size * real.itemsize for analysis in analyses), default=image)
        in_coils = IN_COILS * coils * image if measurement.couples_columns else 0
        noise = (math.prod(a.noise_shape) * (1 + a.out_complex) * real.itemsize for a in (measurement, *analyses))
        held, worked = (
            PROGRAM + (IMAGES + OF_COILS * coils) * image,
            max(WORKED * image, COEFFICIENTS * widest, in_coils),
        )
        return cls(coils, image, held, worked, tuple(noise))


AT_THE_TOP, MAPPED = -1, -3
"""glibc's names for the two limits: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD (malloc.h)."""
KEPT = 64 * MIB
"""Free memory at the end of the heap that is kept rather than given back."""
LARGEST_KEPT = 32 * MIB
"""Larger arrays get memory of their own, which is returned to the system when freed; glibc takes no larger number."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep up to 64 MiB of freed memory, once for the process; nothing where it is not glibc.

    A step makes and frees hundreds of arrays of an image or a few. Freed and allocated anew each time, their memory
    is cleared by the operating system page by page, which took a seventh of a step at 256 x 256. Limits set in
    the environment (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_) are left as they are.
    """
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    set_limit = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_limit is not None:
        set_limit(AT_THE_TOP, KEPT)
        set_limit(MAPPED, LARGEST_KEPT)


class MakesNoise(Protocol):
    """`LinearOperator.shared_noise`, or noise of what the operator measures alone."""

    def __call__(
        self, operator: LinearOperator, rng: np.random.Generator, count: int, real: np.dtype[Any], shared: bool = True
    ) -> Array: ...


def noise_memory(limit: int) -> MakesNoise:
    """Makes noise and keeps the most recently used, by generator and kind.

    The numbers are those of `LinearOperator.shared_noise`, or of one set of noise for every output, bit for bit, and
    the generator is advanced as by making them; they are not to be written.

    Parameters
    ----------
    limit : int
        Bytes that are kept at most. What is larger by itself is made anew each time.
    """
    recent = OrderedDict[object, tuple[Array, Mapping[str, Any]]]()
    lock = Lock()

    def noise_of(
        operator: LinearOperator, rng: np.random.Generator, count: int, real: np.dtype[Any], shared: bool = True
    ) -> Array:
        numbers, shape = rng.bit_generator, operator.noise_shape if shared else operator.out_shape
        key = (type(operator), operator.out_complex, shape, shared, count, real.char, pickle.dumps(numbers.state))
        with lock:
            found = recent.get(key)
            if found is not None:
                recent.move_to_end(key)
        if found is not None:
            numbers.state = found[1]
            return found[0]
        noise = _noise_anew(operator, rng, count, real, shared)
        if noise.nbytes <= limit:
            with lock:
                recent[key] = noise, numbers.state
                while sum(kept.nbytes for kept, _ in recent.values()) > limit:
                    recent.popitem(last=False)
        return noise

    return noise_of


recent_noise = noise_memory(1 << 28)
"""The noise kept in this process: 256 MiB, a design at 1024 x 1024 with one coil, or at 256 x 256 with 32."""
