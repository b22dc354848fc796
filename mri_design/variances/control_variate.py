"""Variances from posterior samples, with control variates: a simpler operator whose variances are known exactly.

For b ~ N(0, A) a sample is s = B A^-1 b, and t = B P b is its control for a P near A^-1. `CirculantControl` has both
moments of t in closed form, where X and B are filters; `ScaledControl` has the first one, for any P that is a circulant
between two diagonals. Then every coefficient takes the fraction of t that explains most of its sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import require_choice, require_counts, require_numbers, require_random
from mri_design.krylov import ConjugateGradients, chunks, in_chunks, real_inner
from mri_design.model.circulant import ONCE, ScaledCirculantInverse, circulant_inverse
from mri_design.model.posterior import (
    DEFAULT_MEMORY,
    MIB,
    PROGRAM,
    PosteriorPrecision,
    Variances,
    draws_at_once,
)
from mri_design.operators import kernels
from mri_design.operators.base import Array, FilterBand, LinearOperator, squared_modulus
from mri_design.operators.conventions import laid_out
from mri_design.operators.elementary import Identity, PhasedParts
from mri_design.status import Convergence, Status
from mri_design.variances.base import RunningMean, SolvedDraws, mean_over_draws, not_positive_definite, starting_draws
from mri_design.variances.columns import ColumnControl, column_memory


@dataclass(frozen=True)
class CirculantControl:
    """t = B P b with P the inverse of the circulant nearest to A, where X^H X is circulant and B is made of filters.

    Parameters
    ----------
    inverse : float array, shape (ky, kx)
        Eigenvalues of P, in FFT order.
    gram : float array, shape (ky, kx)
        Eigenvalues of X^H X (one coil, any mask).
    sites : tuple of (FilterBand, float array)
        Every band of filters in B with its site precisions.

    Notes
    -----
    For a row f of B, diag(B P B^H) is the mean of P |f|^2 over frequencies, equal for all shifts of f. In
    diag(B P A P B^H) the sites of a band g add sum_x' pi_g(x') |k(x - x')|^2 with the kernel k of f P g^H: one
    correlation by FFT for each pair of bands. Rows on coarse grids (wavelets) are shifts too, so pi is spread with
    zeros between its entries.
    """

    inverse: Array
    gram: Array
    sites: tuple[tuple[FilterBand, Array], ...]

    @classmethod
    def of(cls, precision: PosteriorPrecision) -> CirculantControl | None:
        """The control of a precision; None where X^H X is not circulant, or rows of B are no shifted filters.

        Raises
        ------
        InputError
            Where A is seen not to be positive definite.
        """
        gram = precision.measurement.gram_spectrum()
        if gram is None or not precision.complex_linear:
            return None
        sites: list[tuple[FilterBand, Array]] = []
        for block, pi in zip(precision.blocks, precision.site_precisions, strict=True):
            bands = block.analysis.filter_bands()
            if bands is None:
                return None
            weights = np.broadcast_to(pi, block.analysis.out_shape)
            sites += [(filters, weights[filters.band]) for filters in bands]
        spectrum = precision.circulant_spectrum
        if spectrum is None:
            return None
        require_positive(spectrum)
        return cls(1 / spectrum, gram, tuple(sites))

    def image(self, b: Array) -> Array:
        """P b."""
        return self._filter(b)

    @cached_property
    def _filter(self) -> Callable[[Array], Array]:
        return circulant_inverse(1 / self.inverse)

    def moments(self, analysis: LinearOperator) -> tuple[Array, Array | None] | None:
        """diag(B P B^H) and diag(B P A P B^H) per real component, in the precision of the site precisions.

        The second one is None for rows that are no shifted filters, and both are where the first is not known.
        """
        first, bands = analysis.row_powers(self.inverse), analysis.filter_bands()
        if first is None or bands is None:
            return None if first is None else (first, None)
        second = np.empty(analysis.out_shape, dtype=self.sites[0][1].dtype)
        measured = self.inverse**2 * self.gram
        for filters, correlated in zip(bands, self._correlations(analysis, bands), strict=True):
            second[filters.band] = filters.mean_power(measured) + correlated[:: filters.stride, :: filters.stride]
        return first.astype(second.dtype), second

    @cached_property
    def _columns(self) -> list[tuple[Array, Array]]:
        """Per band g one column of P g^H, and the transform of its weights, in the precision of the weights."""
        columns = []
        for filters, weights in self.sites:
            full = np.zeros(self.inverse.shape, dtype=weights.dtype)
            full[:: filters.stride, :: filters.stride] = weights
            spectrum = self.inverse.astype(np.result_type(weights.dtype, np.complex64))
            for factor in (filters.along_y[:, np.newaxis], filters.along_x):
                spectrum *= np.conj(factor).astype(spectrum.dtype)
            columns.append((scipy.fft.ifft2(spectrum, overwrite_x=True), np.asarray(scipy.fft.rfft2(full))))
        return columns

    def _correlations(self, analysis: LinearOperator, bands: Sequence[FilterBand]) -> Array:
        """Per band f the sum over bands g and grid points x' of pi_g(x') |k(x - x')|^2, for every x."""
        total: Array | None = None
        for column, weights in self._columns:
            if all(filters.stride == 1 for filters in bands):
                rows = analysis(column)
                kernels = [rows[filters.band] for filters in bands]
            else:  # every place is needed, the operator has some
                spectrum = scipy.fft.fft2(column)
                kernels = [scipy.fft.ifft2(filters.response.astype(column.dtype) * spectrum) for filters in bands]
            spectra = np.stack([scipy.fft.rfft2(squared_modulus(kernel)) for kernel in kernels])
            spectra *= weights
            total = spectra if total is None else np.add(total, spectra, out=total)
        return np.asarray(scipy.fft.irfft2(total, s=self.inverse.shape))


@dataclass(frozen=True)
class ScaledControl:
    """t = B P b with P the preconditioner of A, a circulant between two diagonals, and its first moment.

    Parameters
    ----------
    inverse : ScaledCirculantInverse
        P.
    """

    inverse: ScaledCirculantInverse

    @classmethod
    def of(cls, precision: PosteriorPrecision) -> ScaledControl | None:
        """The control of a precision; None where circulants are not known, or sites hold parts of complex pairs.

        Raises
        ------
        InputError
            Where A is seen not to be positive definite.
        """
        inverse = precision.preconditioner
        if inverse is None or (inverse.other is None and not precision.complex_linear):
            return None
        spectrum = precision.circulant_spectrum
        if inverse.other is None and spectrum is not None:
            require_positive(spectrum)
        return cls(inverse)

    def image(self, b: Array) -> Array:
        """P b."""
        return self.inverse(b)

    def moments(self, analysis: LinearOperator) -> tuple[Array, None] | None:
        """diag(B P B^T) per real component; the second moment is not known. None where neither is."""
        first = self.inverse.row_powers(analysis)
        return None if first is None else (first, None)


def require_positive(spectrum: Array) -> None:
    """Refuse a circulant nearest to A that shows a wave w with w^H A w = 0.

    Raises
    ------
    InputError
        Where it does.
    """
    if spectrum.min() <= np.finfo(float).eps * spectrum.max():
        raise not_positive_definite()


def filter_control(precision: PosteriorPrecision) -> CirculantControl | ScaledControl | None:
    """The best control that filters give, which is the one with both moments where they are known; None without any."""
    return CirculantControl.of(precision) or ScaledControl.of(precision)


AROUND = 5
"""Pixels a side over which fractions are averaged."""
GROUPS = 2
"""Draws by turns: those of one group use the fractions estimated from the others."""


def best_share(own: Array, control: Array, both: Array) -> Array:
    """w with which |s|^2 + w (E t s* - Re t s*) scatters least for Gaussians.

    It is 2 E|s|^2 E ts* / (E|s|^2 E|t|^2 + (E ts*)^2).

    Parameters
    ----------
    own, control, both : arrays of one shape
        E|s|^2, E|t|^2 and E Re t s*, all up to one factor.
    """
    bound = own * control + both**2
    return np.asarray(2 * own * both / np.where(bound > 0, bound, 1))


LEAST = 0.1
"""Least z as a part of that of plain sampling: the scatter of a few terms may make it smaller, or negative."""

Control = CirculantControl | ColumnControl | ScaledControl

ControlName = Literal["auto", "circulant", "columns", "none"]


@dataclass(frozen=True)
class ControlVariate:
    """z from samples, with a standard error far below that of `MonteCarlo`.

    With b ~ N(0, A), s = B A^-1 b and the control t = B P b for some P near A^-1, only the small part of s that t does
    not explain is sampled.

    Parameters
    ----------
    samples : int
        K, at least 2; all are solved side by side.
    tolerance, max_iterations : float, int
        Of the conjugate gradients, see `krylov.conjugate_gradients`, which start at P b: relative to what P b lacks.
        Without a control, which makes up for a loose tolerance, the solver goes to its square; to its power 3/2 where a
        control leaves most of z to slow iterations: along trajectories, which measure some waves many times, and with
        several coils where there is so little noise that a circulant without scale is the nearest.
    control : {"auto", "circulant", "columns", "none"}
        P. The circulant is best for one coil and samples on a grid, where both of its moments are known; columns serve
        lines of any coils at O(kx ky^3) operations, and explain all or more; a circulant serves whatever else was
        measured (other trajectories, masks over both directions of several coils, lines of several coils with too many
        columns or with sites that are no filters). Automatic is the first of these that applies. Coefficients for which
        a control is not known stay with plain sampling.
    column_limit : int
        kx ky^3 up to which columns count as affordable; by default up to 128 x 128.
    memory : float
        MiB that the process should stay within, coil maps and the data of every coil included: draws are solved some at
        a time, and their noise is not kept from loop to loop, where all of them together would take more; columns
        that do not fit are not chosen automatically.
    with_bias : bool
        Whether ``bias`` of the result is estimated, which takes a few products; without it, it is None.
    extrapolated : bool
        Whether draws with a control take one more step after the solver has stopped, which costs no product. Designs,
        which judge lines by the draws themselves, set it to False; lines of several coils without a
        control by columns then stay with plain sampling.
    shared_noise : bool
        Whether the noise behind the draws is that of all lines, so that the noise of a line is the same whichever
        others are measured: for designs. Images do without, which takes less time.

    Raises
    ------
    InputError
        For fewer than 2 samples, a senseless tolerance or limit, or an unknown control; where A is found not to be
        positive definite.

    Notes
    -----
    With a1 = diag(B P B^H) and a2 = diag(B P A P B^H) exact (circulant P, one coil, shifted filters),
    z = a1^2 / a2 + Var(s - (a1 / a2) t). Where a2 is not known (columns, with wavelets among the sites), E[t s*] = a1
    still holds exactly, and z = a1 + E[Re (s - t) s*]. Elsewhere a circulant between two diagonals (`ScaledControl`),
    which is the preconditioner as well, explains less, and z = w a1 + E[Re (s - w t) s*] for any w that is independent
    of the draw: the best one for the other draws, around the pixel. For sites on pixels and differences
    columns are exact and nothing is left to sample: the kind is then "exact", unless other coefficients had to be
    sampled, and no product with A is spent. Columns also are the better preconditioner.

    ``std_error`` of the result is that of the sampled part, estimated from the K draws, and shrinks as there are more
    of them. ``bias`` does not: every solve stops at the tolerance, and z is off by what all of them lack. With a
    control draws are ``extrapolated`` (`ConjugateGradients.extrapolated`), which makes up for most of it without a
    product where the tolerance is 0.1 or less. Where z spans decades its few largest values are solved last, and most
    of them are too low; of the others many are too high. The bias is estimated from an eighth of the draws (at least
    one), which are solved a little further (`SolvedDraws`); ``convergence.matvecs`` counts the products that this
    takes. The bias is zero where columns are exact. Where totals matter, or where many draws make the standard error
    small, take a smaller tolerance. Where the iterations ended at their limit, ``convergence`` says so, and the bias
    may be larger than stated. How the estimate compares to the truth is tabulated in
    results/benchmarks/measured-once.md.

    Where sites know the image's phase, its real and its imaginary part have circulants of their own, and every part
    takes the fraction of its own that explains most. Real images, other sites on parts of complex pairs, and matrices
    have no control yet.
    """

    samples: int = 8
    tolerance: float = 0.07
    max_iterations: int = 500
    control: ControlName = "auto"
    _: KW_ONLY
    column_limit: int = 2**28
    memory: float = DEFAULT_MEMORY
    with_bias: bool = True
    extrapolated: bool = True
    shared_noise: bool = True

    def __post_init__(self) -> None:
        require_counts(least=2, **{"variance samples": self.samples})
        require_choice(get_args(ControlName), control=self.control)
        require_numbers(tolerance=self.tolerance, memory=self.memory)
        require_counts(max_iterations=self.max_iterations, least=1)
        require_counts(column_limit=self.column_limit, least=0)

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        require_random(rng)
        control = self._control(precision)
        X, factors = precision.measurement, column_memory(like.shape) if isinstance(control, ColumnControl) else 0
        at_once = draws_at_once(self.memory, self.samples, X, analyses, like.real.dtype, factors)
        b = precision.perturbations(
            rng, self.samples, like, again=at_once is None, at_once=at_once, of_all=self.shared_noise
        )
        explained = None if control is None else in_chunks(control.image, b, at_once)
        if explained is not None and isinstance(control, ColumnControl) and control.exact:
            solved = SolvedDraws.exact(explained)
        else:
            reached, solver = self._solved(precision, control, b, explained, previous, at_once)
            solved = SolvedDraws.of(
                solver,
                reached,
                self.max_iterations,
                with_bias=self.with_bias and len(analyses) > 0,
                extrapolated=self.extrapolated and control is not None,
            )
            del b, solver  # images of every draw, no longer needed
        if solved.convergence.status is Status.BREAKDOWN:
            raise not_positive_definite()

        def estimate(analysis: LinearOperator) -> tuple[Array, Array, Array, bool]:
            return _estimate(analysis, control, solved, explained, at_once, like.real.dtype)

        estimates = [estimate(analysis) for analysis in analyses]
        pixels = [found for a, found in zip(analyses, estimates, strict=True) if isinstance(a, Identity)]
        by_columns = control if isinstance(control, ColumnControl) else None
        exact = by_columns is not None and by_columns.exact
        return Variances(
            tuple(value for value, _, _, _ in estimates),
            "exact" if exact and all(known for _, _, _, known in estimates) else "unbiased",
            solved.convergence,
            std_error=tuple(error for _, error, _, _ in estimates),
            bias=tuple(bias for _, _, bias, _ in estimates) if self.with_bias else None,
            samples=solved.draws,
            explained=explained if by_columns is None else None,
            image=None if control is None else (pixels or [estimate(Identity(like.shape))])[0][0],
            log_determinant=2 * by_columns.factors.log_determinant if by_columns is not None and exact else None,
        )

    @property
    def _tolerance_without_control(self) -> float:
        return self.tolerance**2

    def _control(self, precision: PosteriorPrecision) -> Control | None:
        X, automatic = precision.measurement, self.control == "auto"
        knows_phase = any(isinstance(block.analysis, PhasedParts) for block in precision.blocks)
        if self.control == "circulant" or (
            automatic and (X.couples_columns or X.gram_spectrum() is not None or knows_phase)
        ):
            by_filters = filter_control(precision)
            if by_filters is not None or not automatic:
                return by_filters
        affordable = len(X.in_shape) == 2 and X.in_shape[1] * X.in_shape[0] ** 3 <= self.column_limit
        affordable = affordable and PROGRAM + column_memory(X.in_shape) <= self.memory * MIB
        columns = ColumnControl.of(precision) if self.control == "columns" or (automatic and affordable) else None
        if columns is None and automatic and self.extrapolated:
            return filter_control(precision)
        return columns

    def _solved(
        self,
        precision: PosteriorPrecision,
        control: Control | None,
        b: Array,
        explained: Array | None,
        previous: Variances | None,
        at_once: int | None,
    ) -> tuple[Convergence, ConjugateGradients]:
        """A^-1 b, whose solver can go on; ``b`` is written to."""
        warm, spent = starting_draws(previous, b), 0
        preconditioner: Callable[[Array], Array] | None
        if control is None or explained is None:
            start, preconditioner, tolerance = warm, precision.preconditioner, self._tolerance_without_control
        else:
            nearer = warm is None or isinstance(control, ColumnControl)  # P b
            start, preconditioner = explained if nearer else warm, control.image
            tolerance, spent = self.tolerance ** (1.5 if _leaves_much(control, precision.measurement) else 1.0), 1
            tolerance *= _relative_residual(precision, control, b[:1], explained[:1])
        solver = ConjugateGradients(
            precision,
            b,
            n_axes=b.ndim - 1,
            start=start,
            preconditioner=preconditioner,
            preconditioned=explained,
            at_once=at_once,
        )
        convergence = solver.solve(tolerance, self.max_iterations)
        return replace(convergence, matvecs=convergence.matvecs + spent), solver


@dataclass(frozen=True)
class MonteCarlo(ControlVariate):
    """z as the mean power of posterior samples, with relative standard error sqrt(2 / K), sqrt(1 / K) if complex.

    Parameters
    ----------
    samples : int
        K, at least 2; all are solved side by side.
    tolerance, max_iterations : float, int
        Of the conjugate gradients, see `krylov.conjugate_gradients`.
    memory : float
        MiB that the process should stay within: draws are solved some at a time where all of them together would take
        more.
    with_bias : bool
        Whether ``bias`` of the result is estimated, which takes a few products; without it, it is None.

    Raises
    ------
    InputError
        For fewer than 2 samples or a senseless tolerance or limit; where A is found not to be positive definite.

    Notes
    -----
    Papandreou & Yuille, NIPS 2010. ``std_error`` of the result is the standard error estimated from the K draws
    themselves, and shrinks as there are more of them. ``bias`` does not: every solve stops at the tolerance, and z is
    off by what all of them lack, mostly too low, in proportion to the tolerance. It is estimated from an eighth of the
    draws (at least one), which are solved a little further (`SolvedDraws`); ``convergence.matvecs`` counts the products
    that this takes. Where the iterations ended at their limit, ``convergence`` says so,
    and the bias may be larger than stated. How the estimate compares to the truth is tabulated in
    results/benchmarks/measured-once.md.
    """

    samples: int = 12
    tolerance: float = 1e-2
    control: ControlName = field(default="none", init=False)

    @property
    def _tolerance_without_control(self) -> float:
        return self.tolerance


Terms = Callable[[NDArray[np.intp]], Callable[[Array], Array]]
"""Numbers of draws -> a function of these draws, which gives the terms whose mean is the estimate (`SolvedDraws`)."""
Sampled = tuple[Array, Array, Array, Terms]
"""z, its standard error, the mean modulus of the terms, and the terms."""


def _estimate(
    analysis: LinearOperator,
    control: Control | None,
    solved: SolvedDraws,
    explained: Array | None,
    at_once: int | None,
    real: np.dtype[Any],
) -> tuple[Array, Array, Array, bool]:
    """z of ``analysis``, its standard error, its bias, and whether the control explained the coefficients at all.

    From draws A^-1 b, and from P b where there is a control, ``at_once`` draws at a time.
    """
    moments = None if control is None or explained is None else control.moments(analysis)
    each = list(chunks(len(solved.draws), at_once))
    if moments is None or explained is None:
        value, error, typical, terms = _plain(analysis, solved.draws, each)
    elif moments[1] is not None:
        value, error, typical, terms = _controlled(analysis, moments[0], moments[1], solved.draws, explained, each)
    else:
        shared = not isinstance(control, ColumnControl)
        value, error, typical, terms = _partly_controlled(analysis, shared, moments[0], solved.draws, explained, each)
    value, error = value.astype(real, copy=False), error.astype(real, copy=False)
    return value, error, solved.bias(terms, typical, value).astype(real), moments is not None


def _plain(analysis: LinearOperator, draws: Array, each: Sequence[slice]) -> Sampled:
    """z as the mean power of draws."""

    def power(some: Array) -> Array:
        return squared_modulus(analysis(some))

    z = mean_over_draws(power(draws[some]) for some in each)
    value = np.asarray(z.mean)
    return value, z.error, value, lambda _: power


def _controlled(
    analysis: LinearOperator, first: Array, second: Array, draws: Array, explained: Array, each: Sequence[slice]
) -> Sampled:
    """z where both moments are known."""
    fraction, power = (first / second).astype(explained.real.dtype, copy=False), RunningMean()
    for some in each:
        drawn = analysis(draws[some])
        power.add(kernels.pixels.mean_squares(drawn, analysis(explained[some]), fraction), len(drawn))

    def terms(which: NDArray[np.intp]) -> Callable[[Array], Array]:
        part = fraction * analysis(explained[which])
        return lambda some: squared_modulus(analysis(some) - part)

    # The remainder is a circular Gaussian: its power is exponentially distributed, the mean gives the deviation.
    left = np.asarray(power.mean)
    return 2 * fraction * first + left, left / float(np.sqrt(len(draws))), left, terms


def _partly_controlled(
    analysis: LinearOperator, shared: bool, first: Array, draws: Array, explained: Array, each: Sequence[slice]
) -> Sampled:
    """z where the first moment alone is known: the mean over draws of |s|^2 + w (E t s* - Re t s*).

    Coefficients are complex, or pairs of real ones along the last axis (`PhasedParts`) with a fraction w each. With
    ``shared``, w are those of `_fractions`; else they are one, and E t s* is added at the end.
    """
    shape, parts = (analysis.out_shape, 1) if analysis.out_complex else (analysis.out_shape[:-1], 2)
    grid, form = shape[-2:], (int(np.prod(shape[:-2])), shape[-2] * shape[-1])
    numbers, real = np.arange(len(draws)), draws.real.dtype

    def in_pairs(s: Array) -> Array:
        return np.ascontiguousarray(s).view(s.real.dtype).reshape(len(s), *form, 2)

    def pairs() -> Iterator[tuple[NDArray[np.int64], Array, Array]]:
        return (
            (numbers[some] % GROUPS, in_pairs(analysis(draws[some])), in_pairs(analysis(explained[some])))
            for some in each
        )

    all_at_once = list(pairs()) if len(each) == 1 else None
    if shared:
        fractions = _fractions(all_at_once or pairs(), grid, parts, real)
        known = laid_out(2 // parts * first, first.shape, draws).reshape(*form, parts)
    else:
        fractions, known = np.ones((GROUPS, form[1], parts), dtype=real), np.zeros((*form, parts), dtype=real)
    sampled, plain, typical = RunningMean(), RunningMean(), RunningMean()
    for group, s, t in all_at_once or pairs():
        made = kernels.pixels.compared(s, t, group, fractions, known)
        mean, scatter, moduli, power = (array.reshape(analysis.out_shape) for array in made)
        sampled.add(mean, len(s), scatter)
        plain.add(power, len(s))
        typical.add(moduli, len(s))

    def terms(which: NDArray[np.intp]) -> Callable[[Array], Array]:
        fraction = fractions[which % GROUPS][:, None]  # for all coefficients of a pixel
        by_part = (len(which), *form, parts, 2 // parts)
        part = fraction[..., None] * in_pairs(analysis(explained[which])).reshape(by_part)

        def of(some: Array) -> Array:
            s = in_pairs(analysis(some)).reshape(by_part)
            return np.asarray((((s - part) * s).sum(axis=-1) + fraction * known).reshape(-1, *analysis.out_shape))

        return of

    value = np.maximum(sampled.mean, LEAST * plain.mean) if shared else 2 * first + sampled.mean
    return value, sampled.error, np.asarray(typical.mean), terms


def _fractions(
    pairs: Iterable[tuple[NDArray[np.int64], Array, Array]], grid: tuple[int, ...], parts: int, real: np.dtype[Any]
) -> Array:
    """Fractions w of the control, shape (2, pixels, parts), for draws of even and of odd numbers.

    `best_share` of means over a few pixels around each, over the coefficients of a pixel, and over every other draw:
    for draws of even numbers over those of odd numbers, and the other way round. So a draw has no part in its own
    fraction, and the mean is unbiased whatever the fractions are.
    """
    totals = np.zeros((GROUPS, 3, grid[0] * grid[1], parts), dtype=real)
    for group, s, t in pairs:
        kernels.pixels.add_powers(s, t, group, totals)
    side = min(AROUND, *grid)
    near = kernels.pixels.box_means(totals.reshape(GROUPS, 3, *grid, parts), side - (side + 1) % 2)
    own, control, both = np.moveaxis(near, 1, 0)
    return np.ascontiguousarray(best_share(own, control, both)[::-1]).reshape(GROUPS, -1, parts)


def _leaves_much(control: Control, measurement: LinearOperator) -> bool:
    """Whether a control leaves most of z to slow iterations (see `ControlVariate`)."""
    if not isinstance(control, ScaledControl) or measurement.gram_spectrum() is not None:
        return False
    often = measurement.circulant_spectrum()
    return control.inverse.scale is None or (often is not None and float(often.max()) > ONCE)


def _relative_residual(precision: PosteriorPrecision, control: Control, b: Array, explained: Array) -> float:
    """||b - A x|| / ||b|| in the norm of preconditioned conjugate gradients, x = ``explained``, for the first draw."""
    residual = b - precision(explained)
    pairs = ((residual, control.image(residual)), (b, explained))
    left, whole = (real_inner(v, preconditioned, b.ndim - 1)[0] for v, preconditioned in pairs)
    return float(np.sqrt(max(left, 0.0) / whole)) if whole > 0 else 1.0
