"""The sparse linear model: a Gaussian factor and sites on linear projections.

P(u | y) is proportional to N(y | X u, sigma^2 I) prod_i t_i(s_i) with s = B u - offset. Unknowns and data may be
complex; sigma^2 is always per real component. The Gaussian factor may be absent, or not white
(`with_noise_covariance` whitens the data). A model determines its unknowns where X and the analysis operators share no
null space (`require_determined`). Seeger & Nickisch 2008 (TR-175), section 2.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, fields, replace
from functools import cached_property
from numbers import Integral
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from mri_design.brief import briefly
from mri_design.errors import (
    InputError,
    covariance_matrix,
    described,
    number_array,
    positive_number,
    require_instance,
    sequence_of,
)
from mri_design.krylov import conjugate_gradients, real_inner, squared_norm
from mri_design.operators.base import Array, LinearOperator, squared_modulus
from mri_design.operators.elementary import Diagonal, Mixing, NoRows, RealMatrix
from mri_design.sites.base import Role, Site, SuperGaussian, refusal, represented, require_offers

_BLOCKS = "a tuple of SiteBlocks"
# Squares of data, and what they are over the noise variance, with room for products of two of them and sums of many.
_SINGLE_RANGE, _DOUBLE_RANGE = 1e30, 1e120
_SINGLE_SIGNAL_TO_NOISE = 200.0  # results/reliability/little-noise.md has what single precision does beyond


@briefly
@dataclass(frozen=True)
class SiteBlock:
    """Sites of one kind on the coefficients of one analysis operator.

    Parameters
    ----------
    name : str
        For messages and tables, for example ``"differences"``.
    analysis : LinearOperator
        This block's rows of B. A site on a complex coefficient acts on its modulus.
    potential : Site
        The site; its rate broadcasts against the coefficients.
    group_axes : tuple of int
        Negative axes of the coefficients that share one site (``(-3,)`` on differences is isotropic TV).
    offset : array, optional
        The sites act on s = B u - offset: data, where the sites are a likelihood (robust regression); zero without it.
    role : {"prior", "likelihood"}, optional
        Whether the block is a belief about the unknowns or a factor of the likelihood, which the evidence and the
        learning of scales tell apart (`is_likelihood`). Without it a likelihood where there is an offset, or where the
        sites are one by themselves (labels, counts).

    Raises
    ------
    InputError
        For shapes that do not fit, sites that are no function of |s| on complex or grouped coefficients, another role,
        or anything else instead of an operator or a site.
    """

    name: str
    analysis: LinearOperator
    potential: Site
    group_axes: tuple[int, ...] = ()
    offset: Array | None = None
    role: Role | None = None

    def __post_init__(self) -> None:
        for wanted, part in ((LinearOperator, self.analysis), (Site, self.potential)):
            if not isinstance(part, wanted):
                got = described(part) if isinstance(part, type) else type(part).__name__
                raise InputError(f"block {self.name!r}", got, f"a {wanted.__name__} in its place")
        if not self.on_line and "moduli" not in self.potential.offers:
            raise refusal(f"block {self.name!r}", self.potential, "moduli")
        if self.offset is not None:
            field, shape = f"block {self.name!r}: offset", self.analysis.out_shape
            offset = number_array(field, self.offset, wanted=f"finite numbers {shape}", shape=shape, kind="finite")
            object.__setattr__(self, "offset", offset)
        axes, most = self.group_axes, len(self.analysis.out_shape)
        listed = isinstance(axes, tuple | list)
        whole = listed and all(isinstance(n, Integral) and not isinstance(n, bool) for n in axes)
        if not whole or any(axis >= 0 or -axis > most for axis in axes) or len(set(axes)) < len(axes):
            got, field = str(axes) if listed else described(axes), f"block {self.name!r}: group_axes"
            raise InputError(field, got, f"a tuple of different negative axes of {self.analysis.out_shape}, as (-3,)")
        object.__setattr__(self, "group_axes", tuple(int(axis) for axis in axes))
        if self.role is not None and self.role not in get_args(Role):
            raise InputError(f"block {self.name!r}: role", described(self.role), "prior or likelihood")
        for named, of_sites in (("odd part", self.potential.shift), ("rate", self.potential.start_variance)):
            shape = np.shape(of_sites)
            if not _broadcasts_to(shape, self.site_shape):
                raise InputError(f"block {self.name!r}: {named} of the sites", f"shape {shape}", f"{self.site_shape}")

    @classmethod
    def on_vectors(
        cls,
        name: str,
        analysis: LinearOperator,
        potential: Site,
        covariance: ArrayLike,
        axis: int = 0,
        *,
        offset: Array | None = None,
        role: Role | None = None,
    ) -> SiteBlock:
        """Sites t((s^H C^-1 s)^(1/2)) on vectors s of coefficients, as scale mixtures with a covariance are.

        Parameters
        ----------
        covariance : array, shape (d, d) or (*other axes, d, d)
            C, the same for all vectors or one for each, Hermitian and positive definite; in units of the scale of t.
        axis : int
            Of the coefficients, d long, along which the vectors lie.
        name, analysis, potential, offset, role
            As for the class.

        Raises
        ------
        InputError
            For an axis that the coefficients do not have, or a C of another shape or not positive definite.

        Notes
        -----
        TR-175 section 5.1: Gamma has blocks gamma_i C. They are blocks of one number each on whitened coefficients
        L^-1 s with C = L L^H, on which this block's analysis ends. A block that was free, a whole positive definite
        matrix, would bound such sites no better: h depends on its largest eigenvalue relative to C alone, and log|A|
        and the fit fall as the others rise to that.
        """
        field, shape = f"block {name!r}: covariance", analysis.out_shape
        if axis not in range(-len(shape), len(shape)):
            raise InputError(f"block {name!r}: axis", str(axis), f"{-len(shape)} to {len(shape) - 1}")
        side, others = shape[axis], tuple(np.delete(shape, axis).tolist())
        given = number_array(field, covariance, wanted=f"a matrix ({side}, {side}), or one for each of {others}")
        if given.shape not in ((side, side), (*others, side, side)):
            raise InputError(field, f"shape {given.shape}", f"({side}, {side}), or {(*others, side, side)}")
        for one in given.reshape(-1, side, side):
            covariance_matrix(field, one, side)
        whitening = Mixing(np.linalg.inv(np.linalg.cholesky(given)), shape, axis, is_complex=analysis.out_complex)
        white = None if offset is None else whitening(offset)
        return cls(name, whitening @ analysis, potential, (axis % len(shape) - len(shape),), white, role)

    @property
    def is_likelihood(self) -> bool:
        """Whether the block is a factor of the likelihood, and not of the prior."""
        derived = "likelihood" if self.offset is not None else self.potential.role
        return (self.role or derived) == "likelihood"

    @property
    def on_line(self) -> bool:
        """Whether every site acts on one real coefficient, and not on a modulus."""
        return not (self.analysis.out_complex or self.group_axes)

    @property
    def offers(self) -> frozenset[str]:
        """Capabilities of the sites in this block: ``"line"`` as well, where they act on real coefficients."""
        return self.potential.offers | {"line"} if self.on_line else self.potential.offers

    @property
    def represented(self) -> SuperGaussian:
        """The sites through their representation g; refused where they have none."""
        return represented(self.potential, f"block {self.name!r}")

    def require(self, needs: Collection[str], *, user: str, relief: str = "") -> None:
        """Refuse sites that lack something that ``user`` needs; see `sites.base.require_offers`."""
        field = f"block {self.name!r}"
        require_offers(
            field, self.potential, needs, user=user, offers=self.offers, shape=self.site_shape, relief=relief
        )

    @property
    def site_shape(self) -> tuple[int, ...]:
        """Shape of one value per site: that of the coefficients, with length one along group axes."""
        shape = np.array(self.analysis.out_shape)
        shape[list(self.group_axes)] = 1
        return tuple(shape.tolist())

    @property
    def sharing(self) -> int:
        """How many real numbers share one site: 1, 2 of a complex coefficient, more in groups."""
        return self.analysis.out_size // int(np.prod(self.site_shape))

    def coefficients(self, u: Array) -> Array:
        """s = B u - offset."""
        s = self.analysis(u)
        return s if self.offset is None else s - self.offset.astype(s.dtype, copy=False)

    def pooled(self, power: Array) -> Array:
        """Sum of per-coefficient powers over each site's group (kept axes of length one)."""
        for axis in self.group_axes:
            if power.shape[axis] > 4:
                power = power.sum(axis=axis, keepdims=True)
                continue
            # Slice by slice: a sum over a short axis, as most groups have, is slow.
            parts = np.split(power, power.shape[axis], axis)
            power = sum(parts[1:], start=parts[0])
        return power

    def site_power(self, s: Array) -> Array:
        """|s|^2 of each site."""
        return self.pooled(squared_modulus(s))


@briefly
@dataclass(frozen=True)
class GeneralizedLinearModel:
    """Measurement X, data y, noise variance and blocks of sites.

    Parameters
    ----------
    measurement : LinearOperator
        X; a model without a Gaussian factor is made by `of_sites`.
    data : array of shape ``measurement.out_shape``
        y. In single precision it becomes double, and with it all that is computed, where squares of it, or of it over
        sigma, do not fit, and where there is so little noise that rounding in single precision would count: above a
        signal-to-noise ratio of 200, |y| / sigma per root of the number of complex (or real) unknowns.
    noise_variance : float
        sigma^2 per real component.
    blocks : tuple of SiteBlock
        Sites; together with X they must leave no direction of the unknowns undetermined.
    analysis, potentials : LinearOperator and Site, or sequences of them
        The short way to ``blocks`` without names and groups: one potential per analysis operator.
    log_whitening : float
        log|W| over the real measurements where X and y were multiplied by W (`with_noise_covariance`).

    Raises
    ------
    InputError
        On shapes that disagree, non-finite data, complex data of a real operator, a non-positive variance, blocks that
        are none, and data or a variance so large or small that squares leave the range of double precision.
    """

    measurement: LinearOperator
    data: Array
    noise_variance: float
    blocks: tuple[SiteBlock, ...] = ()
    _: KW_ONLY
    analysis: InitVar[LinearOperator | Sequence[LinearOperator] | None] = None
    potentials: InitVar[Site | Sequence[Site] | None] = None
    log_whitening: float = 0.0

    def __post_init__(
        self,
        analysis: LinearOperator | Sequence[LinearOperator] | None,
        potentials: Site | Sequence[Site] | None,
    ) -> None:
        blocks = () if self.blocks is None else sequence_of(SiteBlock, "blocks", self.blocks, wanted=_BLOCKS)
        if analysis is not None or potentials is not None:
            blocks = (*blocks, *_paired(analysis, potentials))
        object.__setattr__(self, "blocks", blocks)
        if not isinstance(self.measurement, LinearOperator) or self.data is None:
            raise InputError(
                "measurement and data",
                f"{type(self.measurement).__name__} and {type(self.data).__name__}",
                "a LinearOperator and an array",
                "Without a Gaussian factor: GeneralizedLinearModel.of_sites(blocks).",
            )
        shape = self.measurement.out_shape
        data = number_array("data", self.data, wanted=f"finite samples {shape}", shape=shape, kind="finite")
        data = data if data.dtype.kind in "fc" else data.astype(np.float64)
        if np.iscomplexobj(data) and not self.measurement.out_complex:
            raise InputError(
                "data",
                "complex numbers",
                "real ones, as the measurement operator makes them",
                "Give real data, or build the operator as a complex one (is_complex=True, or a complex matrix).",
            )
        object.__setattr__(self, "noise_variance", positive_number("noise_variance", self.noise_variance))
        unknowns = int(np.prod(self.measurement.in_shape))
        object.__setattr__(self, "data", _in_working_precision(data, self.noise_variance, unknowns))
        if not self.blocks:
            raise InputError("blocks", "no sites", "at least one block", "Add a pixel block.")
        for block in self.blocks:
            got, wanted = ((one.in_complex, one.in_shape) for one in (block.analysis, self.measurement))
            if got != wanted:
                raise InputError(f"block {block.name!r}", repr(block.analysis), f"the images of {self.measurement!r}")

    @classmethod
    def of_sites(cls, blocks: Sequence[SiteBlock], noise_variance: float = 1.0) -> GeneralizedLinearModel:
        """A model without a Gaussian factor: a prior alone, or a prior with a likelihood of sites.

        Parameters
        ----------
        blocks : sequence of SiteBlock
            All there is; logistic regression, say, with Gaussian sites on the weights.
        noise_variance : float
            sigma^2, nothing but the unit of the scales here: t(s) is a function of s / sigma.

        Raises
        ------
        InputError
            For no block, or anything that is none.
        """
        blocks = sequence_of(SiteBlock, "blocks", blocks, wanted=_BLOCKS)
        if not blocks:
            raise InputError("blocks", "no sites", "at least one block")
        first = blocks[0].analysis
        empty = np.zeros(0, dtype=complex if first.in_complex else float)
        return cls(NoRows(first.in_shape, is_complex=first.in_complex), empty, noise_variance, tuple(blocks))

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Shape of the unknown image."""
        return self.measurement.in_shape

    @property
    def n_axes(self) -> int:
        """Number of axes of one image; further leading axes are a batch."""
        return len(self.measurement.in_shape)

    @property
    def log_concave(self) -> bool:
        """True where inference is a convex problem (TR-175, Theorem 3)."""
        return all(block.potential.log_concave for block in self.blocks)

    def analysis_coefficients(self, u: Array) -> tuple[Array, ...]:
        """s = B u - offset, one array per block."""
        return tuple(block.coefficients(u) for block in self.blocks)

    def odd_part(self, coefficients: Sequence[Array | None]) -> float:
        """sum_i b_i s_i / sigma over the sites that have one; of others no coefficients are needed."""
        total = 0.0
        for block, s in zip(self.blocks, coefficients, strict=True):
            if s is not None and np.any(block.potential.shift):
                total += float(np.sum(block.potential.shift * s, dtype=np.float64))
        return total / float(np.sqrt(self.noise_variance))

    def __getstate__(self) -> dict[str, object]:
        """State without cached values, which are computed again in another process."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def back_projection(self) -> Array:
        """X^H y."""
        return self.measurement.adjoint(self.data)

    @cached_property
    def rotated(self) -> GeneralizedLinearModel:
        """An equivalent model of u, whose measurement is rotated (`LinearOperator.rotated`) and costs less."""
        measurement, data = self.measurement.rotated(self.data)
        return self if measurement is self.measurement else replace(self, measurement=measurement, data=data)

    def right_hand_side(self, site_precisions: tuple[Array, ...]) -> Array:
        """r of A u = r for the mean under these pi: X^H y + B^H (pi offset + sigma b)."""
        total = self.back_projection()
        sigma = float(np.sqrt(self.noise_variance))
        for block, pi in zip(self.blocks, site_precisions, strict=True):
            pull = sigma * np.asarray(block.potential.shift)
            if block.offset is not None:
                pull = pull + pi * block.offset
            if np.any(pull):
                real = total.real.dtype
                pull = pull.astype(np.result_type(real, np.complex64) if np.iscomplexobj(pull) else real, copy=False)
                total = total + block.analysis.adjoint(np.broadcast_to(pull, block.analysis.out_shape))
        return total


def _paired(
    analysis: LinearOperator | Sequence[LinearOperator] | None, potentials: Site | Sequence[Site] | None
) -> tuple[SiteBlock, ...]:
    operators = (analysis,) if isinstance(analysis, LinearOperator) else analysis or ()
    operators = sequence_of(LinearOperator, "analysis", operators, wanted="one LinearOperator or several")
    sites = (potentials,) if isinstance(potentials, Site) else potentials or ()
    sites = sequence_of(Site, "potentials", sites, wanted="one site or several")
    if len(operators) != len(sites):
        raise InputError("analysis and potentials", f"{len(operators)} and {len(sites)}", "one site for each operator")
    return tuple(SiteBlock(f"block {i}", b, t) for i, (b, t) in enumerate(zip(operators, sites, strict=True)))


def require_model(model: object) -> None:
    """Refuse anything but a model.

    Raises
    ------
    InputError
        Naming what came.
    """
    cure = "mr_image_model makes one of a scan."
    require_instance(GeneralizedLinearModel, wanted="a GeneralizedLinearModel", cure=cure, model=model)


def _in_working_precision(data: Array, noise_variance: float, unknowns: int) -> Array:
    """The data, in double precision where single is too narrow or too coarse; refused where double is too narrow.

    Where the data leave the image open, the site precisions alone determine it. The eigenvalues of X^H X
    are about 1, and these precisions about one over the squared signal-to-noise ratio, so that the condition number of
    A grows as that ratio squared.
    """
    parts = (data.real, data.imag) if np.iscomplexobj(data) else (data,)
    peak = max((float(np.abs(part).max()) for part in parts if part.size), default=0.0)
    size, tiny = max(data.size, 1), np.finfo(np.float64).tiny
    # In logarithms: these numbers are what may not be there.
    power = 2 * np.log10(max(peak, tiny)) + np.log10(size)
    spread = float(np.log10(max(noise_variance, tiny)))
    reach = max(power, power - spread, abs(spread))
    if reach > np.log10(_DOUBLE_RANGE):
        raise InputError(
            "noise_variance" if abs(spread) == reach else "data",
            f"{noise_variance:.3g} with data of up to {peak:.3g}",
            f"squares of the data, and these over the noise variance, below {_DOUBLE_RANGE:g}; a noise variance "
            f"from {1 / _DOUBLE_RANGE:g} to {_DOUBLE_RANGE:g}",
            "Scale the data by one factor to ordinary numbers, and the noise variance by its square.",
        )
    single = data.dtype in (np.float16, np.float32, np.complex64)
    if not single:
        return data
    too_wide = reach > np.log10(_SINGLE_RANGE)
    if not too_wide and squared_norm(data) <= _SINGLE_SIGNAL_TO_NOISE**2 * noise_variance * unknowns:
        return data
    return data.astype(np.result_type(data.dtype, np.float64))


def _broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


DENSE_LIMIT = 600
MODES = 16
PROBE_SEED = 7093486211  # none that a model's own matrices are likely to be drawn from: v must not lie in their rows


def require_determined(model: GeneralizedLinearModel) -> None:
    """Refuse a model whose A = X^H X + B^H diag(pi) B has no inverse, whatever the site precisions.

    Raises
    ------
    InputError
        Naming the blocks.

    Notes
    -----
    The null spaces of X and of every block that are known by frequency are intersected; the others are tried on the few
    frequencies left over. An operator that knows a positive bound on the eigenvalues of its Gram matrix from below has
    no null space at all. Without any such operator the rank is computed, up to 600 real unknowns; beyond, A x = A v is
    solved by conjugate gradients for a random v: v - x is what of v lies in the null space, up to the solver's error,
    and a v - x that A maps to nothing (1e-12 of the mean eigenvalue) proves one. Determined models always pass where
    their condition number is below 1e12; a null space together with eigenvalues so small that 1000 iterations do not
    separate them passes too.
    """
    operators = [model.measurement, *(block.analysis for block in model.blocks)]
    spectra = [operator.gram_spectrum() for operator in operators]
    known = [spectrum for spectrum in spectra if spectrum is not None]
    others = [operator for operator, spectrum in zip(operators, spectra, strict=True) if spectrum is None]
    if known:
        total = np.asarray(sum(known))
        dark = np.argwhere(total <= 1e-9 * total.max())
        if not len(dark):
            return
        if len(dark) <= MODES:
            seen = [
                np.concatenate([_embedded(op(mode)) for op in others] or [np.zeros(1)]) for mode in _modes(model, dark)
            ]
            if _independent(np.stack(seen)):
                return
            raise _refusal(model, len(dark))
    if any(operator.gram_floor() > 0 for operator in others):
        return
    if model.measurement.in_size > DENSE_LIMIT:
        if _null_direction_found(model, operators):
            raise _refusal(model)
    else:
        rows = np.concatenate([operator.to_dense_real(DENSE_LIMIT) for operator in operators])
        if not _independent(rows.T):
            raise _refusal(model, int(rows.shape[1] - np.linalg.matrix_rank(rows)))


def _null_direction_found(model: GeneralizedLinearModel, operators: list[LinearOperator]) -> bool:
    """Whether v - A^-1 A v is mapped to zero by A = sum of the Gram matrices, each of unit mean gain."""
    n_axes = model.n_axes
    rng = np.random.default_rng(PROBE_SEED)
    v = rng.standard_normal((1, *model.image_shape))
    if model.measurement.in_complex:
        v = v + 1j * rng.standard_normal(v.shape)
    gains = [float(np.sum(np.abs(operator(v)) ** 2)) for operator in operators]
    seeing = [(operator, 1 / gain) for operator, gain in zip(operators, gains, strict=True) if gain > 0]
    if not seeing:
        return True

    def power(e: Array) -> float:
        """e^H A e, as a sum of squares."""
        return sum(weight * float(np.sum(np.abs(operator(e)) ** 2)) for operator, weight in seeing)

    def precision(u: Array) -> Array:
        return np.asarray(sum(weight * operator.adjoint(operator(u)) for operator, weight in seeing))

    x = conjugate_gradients(precision, precision(v), n_axes=n_axes, tolerance=1e-10, max_iterations=1000)[0]
    rest = v - x
    whole, left = (float(real_inner(image, image, n_axes)[0]) for image in (v, rest))
    if left <= 1e-9 * whole / model.measurement.in_size:  # less than one direction's part of v
        return False
    return power(rest) / left <= 1e-12 * power(v) / whole


def _modes(model: GeneralizedLinearModel, frequencies: Array) -> list[Array]:
    """Real unit images that span the given frequencies; for complex images also times i."""
    modes: list[Array] = []
    for frequency in frequencies:
        spectrum = np.zeros(model.image_shape, dtype=complex)
        spectrum[tuple(frequency)] = np.sqrt(spectrum.size)
        wave = np.fft.ifft2(spectrum, norm="ortho")
        modes += [wave, 1j * wave] if model.measurement.in_complex else [_real_wave(wave, frequency)]
    return modes


def _real_wave(wave: Array, frequency: Array) -> Array:
    """Cosine or sine: the two frequencies k and -k of a real image share both."""
    mirrored = tuple(int(n) for n in (-frequency) % np.array(wave.shape))
    return np.asarray(wave.real if tuple(int(n) for n in frequency) <= mirrored else wave.imag)


def _independent(rows: Array) -> bool:
    """True where the rows are linearly independent, to rounding."""
    values = np.linalg.eigvalsh(rows @ rows.T)
    return bool(values[0] > 1e-10 * max(values[-1], 1e-300))


def _embedded(values: Array) -> Array:
    flat = values.ravel()
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat


def _refusal(model: GeneralizedLinearModel, missing: int | None = None) -> InputError:
    names = ", ".join(repr(block.name) for block in model.blocks)
    dimensions = "one dimension" if missing == 1 else f"{missing or 'one or more'} dimensions"
    return InputError(
        f"model with blocks {names}",
        f"X and B sharing a null space of {dimensions}: A is not positive definite",
        "measurements or sites on every direction of the image",
        "Add a block of sites on the pixels.",
    )


def with_noise_covariance(
    model: GeneralizedLinearModel,
    *,
    variances: ArrayLike | None = None,
    coils: ArrayLike | None = None,
    matrix: ArrayLike | None = None,
) -> GeneralizedLinearModel:
    """``model`` with noise of covariance sigma^2 C instead of sigma^2 I: X and y multiplied by W, W^H W = C^-1.

    Exactly one of the three is given.

    Parameters
    ----------
    model : GeneralizedLinearModel
        With white noise so far; sigma^2 is its ``noise_variance`` (1 where C is the covariance itself).
    variances : float array, optional
        The diagonal of C, one per sample, of (or broadcastable to) the shape of the data; per real component.
    coils : array, shape (coil, coil), optional
        One Hermitian C for the coils of every sample: the first axis of the data.
    matrix : float array, shape (m, m), optional
        C of all m real measurements: real parts first, then imaginary parts, where the data are complex.

    Returns
    -------
    GeneralizedLinearModel
        ``log_whitening`` is log|W| over the real measurements; `evidence_bound` adds it.

    Raises
    ------
    InputError
        For none or several of them, another shape, or a covariance that is not positive definite and finite.

    Notes
    -----
    TR-175 section 5.1. W is the Hermitian inverse root. `prewhiten` does the same to a scan and keeps X a
    Fourier measurement, with its fast products.
    """
    require_model(model)
    given = [
        name for name, value in (("variances", variances), ("coils", coils), ("matrix", matrix)) if value is not None
    ]
    if len(given) != 1:
        raise InputError("noise covariance", str(given or "nothing"), "one of variances, coils, matrix")
    shape, is_complex = model.measurement.out_shape, model.measurement.out_complex
    whitening: LinearOperator
    if variances is not None:
        diagonal = number_array("noise variances", variances, wanted="positive finite numbers", kind="positive")
        diagonal = diagonal.astype(float)
        try:
            diagonal = np.broadcast_to(diagonal, shape)
        except ValueError as error:
            raise InputError("noise variances", f"shape {diagonal.shape}", f"{shape}") from error
        root = (1 / np.sqrt(diagonal)).astype(model.data.real.dtype)
        whitening = Diagonal(root, is_complex=is_complex)
        log_whitening = -0.5 * float(np.sum(np.log(diagonal))) * (2 if is_complex else 1)
    elif coils is not None:
        values, vectors = _eigen("coil covariance", coils, shape[0])
        whitening = Mixing((vectors / np.sqrt(values)) @ vectors.conj().T, shape, is_complex=is_complex)
        log_whitening = -0.5 * float(np.sum(np.log(values))) * (model.measurement.out_size // shape[0])
    else:
        size = model.measurement.out_size
        real = number_array("noise covariance", matrix, wanted=f"a real matrix ({size}, {size})", kind="real")
        values, vectors = _eigen("noise covariance", real.astype(float), size)
        whitening = RealMatrix((vectors / np.sqrt(values)) @ vectors.T, shape, is_complex=is_complex)
        log_whitening = -0.5 * float(np.sum(np.log(values)))
    return replace(
        model,
        measurement=whitening @ model.measurement,
        data=whitening(model.data),
        log_whitening=model.log_whitening + log_whitening,
    )


def _eigen(field: str, matrix: ArrayLike, side: int) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(covariance_matrix(field, matrix, side))
    return values, vectors
