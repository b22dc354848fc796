"""The variational criterion phi, the evidence log P(y) that it bounds, and hyperparameters learnt by the evidence.

phi(gamma) = log|A| + h(gamma) + min_u R(u, gamma) bounds log of the integral of N(y | X u, sigma^2 I) prod t_i(s_i) for
the sites as they are (`evidence_bound`). Without a matrix log|A| comes from Lanczos quadrature on the precision,
preconditioned by a circulant (`LogDeterminant`).

log P(y) follows once the sites are divided by their integrals (`log_evidence`): each likelihood site by its integral
over the datum, the prior as a whole by Z = integral of prod t_i(B u) du. Z has a closed form if B is square or all
sites are Gaussian. Otherwise Z is bounded by phi_0, the criterion of the sites alone (`PriorEvidence`):

    phi_0 = min over gamma of log|B^H diag(1/gamma) B| + h(gamma).

If all sites of a group are equal, the minimum has one gamma per group, and log|A_0| with A_0 = sum over groups of
pi_g B_g^H B_g remains. It is a sum over frequencies if all rows are shifts of filters, and a sum over wavelets if all
blocks are wavelets and pixels. In a basis that is not A_0's own, the sum of logs of the diagonal is an upper bound
(Hadamard); the lower one of the two is used.

The noise variance and the scales of the sites are learnt from the data by maximising

    log P(y | tau, sigma^2) ~ -(phi - phi_0) / 2 - (m / 2) log sigma^2 + ...

(`learn_hyperparameters`). The difference phi - phi_0 is no bound, but it is homogeneous as the true evidence is: at its
maximum every group of sites is as far from zero under the posterior as under the prior.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg

from mri_design.errors import (
    InputError,
    positive_number,
    require_counts,
    require_numbers,
    require_random,
    require_working,
)
from mri_design.estimation.penalised import PenalisedProblem
from mri_design.inference.base import Engine, WarmStart, pooled_variances, require_engine, require_task
from mri_design.krylov import lanczos
from mri_design.model.circulant import circulant_inverse
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock, require_model
from mri_design.model.posterior import GaussianPosterior, PosteriorPrecision, require_posterior
from mri_design.operators.base import Array
from mri_design.operators.sparsity import Wavelet
from mri_design.sites.base import represented
from mri_design.status import Convergence, Status
from mri_design.variances.base import not_positive_definite
from mri_design.variances.control_variate import CirculantControl


def dual_arguments(model: GeneralizedLinearModel, u: Array, z: tuple[Array, ...]) -> tuple[Array, ...]:
    """x + z per block, x = |s|^2 / sigma^2 at u: where each site's -2 g' is its best pi for the tangent z."""
    powers = PenalisedProblem(model, ()).site_powers(model.analysis_coefficients(u))
    return tuple((x + z_j).astype(x.dtype, copy=False) for x, z_j in zip(powers, z, strict=True))


def criterion_value(
    model: GeneralizedLinearModel,
    u: Array,
    site_precisions: tuple[Array, ...],
    site_arguments: tuple[Array, ...],
    log_determinant: float,
) -> float:
    """phi(gamma) = log|A| + h(gamma) + R(u, gamma), R = (||y - X u||^2 + s^H diag(pi) s - 2 sigma b^T s) / sigma^2.

    Parameters
    ----------
    u : array
        Minimiser of R for these site precisions (the inner problem's solution).
    site_precisions, site_arguments : tuples of float arrays
        pi and the argument at which -2 g' takes it (x + z), per block.
    log_determinant : float
        log|A| over the real unknowns; phi is an estimate where this is one.

    Notes
    -----
    TR-175 section 4; h is taken in closed form, -(t pi + 2 g(t)) at t = x + z.
    """
    sigma2 = model.noise_variance
    residual = model.data - model.measurement(u)
    total = log_determinant + float(np.sum(np.abs(residual) ** 2, dtype=np.float64)) / sigma2
    coefficients = model.analysis_coefficients(u)
    for block, s, pi, t in zip(model.blocks, coefficients, site_precisions, site_arguments, strict=True):
        weighted = np.sum(pi * block.site_power(s), dtype=np.float64) / sigma2
        total += float(weighted + np.sum(block.represented.h_at_optimum(t), dtype=np.float64))
    return total - 2 * model.odd_part(coefficients)


def evidence_bound(model: GeneralizedLinearModel, criterion: float) -> float:
    """Lower bound on log P(y) for unnormalised sites: (n - m) / 2 log(2 pi sigma^2) - phi / 2 + log|W|.

    ``n`` and ``m`` count real unknowns and real measurements; W is 1 unless the data were whitened
    (`GeneralizedLinearModel.log_whitening`).

    Raises
    ------
    InputError
        For anything but a model and a finite number.
    """
    require_model(model)
    require_numbers(criterion=criterion, least=-np.inf)
    n, m = model.measurement.in_size, model.measurement.out_size
    return 0.5 * (n - m) * float(np.log(2 * np.pi * model.noise_variance)) - 0.5 * criterion + model.log_whitening


@dataclass(frozen=True)
class LogDeterminant:
    """log|A| = log|C| + tr log M with M = C^(-1/2) A C^(-1/2), C the nearest circulant; the trace from random probes.

    Parameters
    ----------
    probes : int
        Random sign vectors, at least 2; the standard error falls as one over the square root.
    steps : int
        Lanczos steps for each: one product with A each. The quadrature lies above the truth, by an amount that falls
        geometrically with the steps.

    Raises
    ------
    InputError
        For fewer than 2 probes or no step; where A is found not to be positive definite.

    Notes
    -----
    Golub & Meurant 1994; Ubaru, Chen & Saad 2017. Where C is the projection of A on circulants tr M = n exactly, and
    tr M^2 is known too where X^H X is circulant itself: v^T M v and v^T M^2 v, with the weights of the parabola nearest
    to log over the spectrum found, are control variates that cost nothing. Without a circulant C is the identity.
    """

    probes: int = 16
    steps: int = 15

    def __post_init__(self) -> None:
        require_counts(least=2, **{"log-determinant: probes": self.probes})
        require_counts(least=1, **{"log-determinant: steps": self.steps})

    def __call__(
        self, precision: PosteriorPrecision, rng: np.random.Generator, like: Array
    ) -> tuple[float, float, Convergence]:
        """Estimate log|A| over the real unknowns; ``like`` is an image whose shape and dtype the probes take.

        Returns
        -------
        value, std_error : float
            Estimate and its standard error, from the spread of the probes.
        convergence : Convergence
            ``residual`` is how far the estimate may still lie too high for want of Lanczos steps, a third of what the
            last half of them lowered it by (all of an error that falls as one over steps squared): converged where that
            is less than the standard error. ``matvecs`` are the products spent.
        """
        require_random(rng)
        root, log_circulant, traces = _whitening(precision, like)
        size = precision.measurement.in_size

        def whitened(flat: Array) -> Array:
            image = root(precision(root(flat.view(like.dtype).reshape(like.shape))))
            return np.ascontiguousarray(image).view(like.real.dtype).ravel()

        values, moments, nodes, weights, drops = [], [], [], [], []
        for _ in range(self.probes):
            signs = rng.choice(np.array([-1.0, 1.0], dtype=like.real.dtype), size=size)
            factors = lanczos(whitened, signs, min(self.steps, size))
            if factors.convergence.status is Status.BREAKDOWN:
                raise not_positive_definite()
            theta, vectors = scipy.linalg.eigh_tridiagonal(factors.diagonal, factors.off_diagonal)
            mass = vectors[0] ** 2
            nodes.append(theta)
            weights.append(mass)
            values.append(size * float(mass @ np.log(theta)))
            half = len(theta) // 2
            early = _log_quadrature(factors.diagonal[:half], factors.off_diagonal[: max(half - 1, 0)])
            drops.append(size * early - values[-1])
            moments.append([size * float(mass @ theta ** (k + 1)) for k in range(len(traces))])
        if traces:
            slopes = _polynomial_of_log(np.concatenate(nodes), np.concatenate(weights), len(traces))
            values = list(np.array(values) - (np.array(moments) - traces) @ slopes)
        error = float(np.std(values, ddof=1) / np.sqrt(self.probes))
        spent = sum(len(theta) for theta in nodes)
        excess = float(np.mean(drops)) / 3
        status = Status.CONVERGED if abs(excess) <= error + 1e-9 * size else Status.MAX_ITERATIONS
        convergence = Convergence(status, self.probes, excess, spent)
        return log_circulant + float(np.mean(values)), error, convergence


def _log_quadrature(diagonal: Array, off_diagonal: Array) -> float:
    """e_1^T log(T) e_1 of a tridiagonal matrix; infinite where nothing is left of it."""
    if not diagonal.size:
        return np.inf
    theta, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal)
    return float(vectors[0] ** 2 @ np.log(theta))


def _whitening(precision: PosteriorPrecision, like: Array) -> tuple[Callable[[Array], Array], float, list[float]]:
    """r -> C^(-1/2) r, log|C| over the real unknowns, and as many of tr M, tr M^2 as are known."""
    spectrum = precision.circulant_spectrum
    if spectrum is None:
        return (lambda r: r), 0.0, []
    inverse_root = 1 / np.sqrt(spectrum)
    components = 2
    if not np.iscomplexobj(like):  # what the real part of an FFT filter does: its spectrum made symmetric
        mirrored = np.roll(inverse_root[::-1, ::-1], 1, axis=(0, 1))
        inverse_root, components = 0.5 * (inverse_root + mirrored), 1
    log_circulant = -2 * components * float(np.sum(np.log(inverse_root)))
    traces = _known_traces(precision) if components == 2 else []
    return circulant_inverse(1 / inverse_root), log_circulant, traces


def _known_traces(precision: PosteriorPrecision) -> list[float]:
    """tr M and tr M^2 over the real unknowns of a complex image; none where the circulant is only near the nearest."""
    size = float(precision.measurement.in_size)
    if any(block.analysis.filter_bands() is None for block in precision.blocks):
        return []
    control = CirculantControl.of(precision)
    if control is None or control.gram is None:
        return [size]
    total = float(np.sum(control.inverse * control.gram))
    for block, pi in zip(precision.blocks, precision.site_precisions, strict=True):
        moments = control.moments(block.analysis)
        if moments is None or moments[1] is None:
            return [size]
        total += float(np.sum(pi * moments[1], dtype=np.float64))
    return [size, 2 * total]


def _polynomial_of_log(theta: Array, mass: Array, degree: int) -> Array:
    """Coefficients of theta, theta^2 in the polynomial nearest to log theta over the spectral measure found."""
    powers = np.stack([theta**k for k in range(degree + 1)], axis=1)
    root = np.sqrt(mass)
    return np.asarray(np.linalg.lstsq(powers * root[:, None], np.log(theta) * root, rcond=1e-10)[0][1:])


@dataclass(frozen=True)
class SiteGroup:
    """Sites of one block that share a scale.

    Parameters
    ----------
    block : int
        Number of the block.
    name : str
        For tables.
    members : bool array
        Which of the block's sites, of the shape of its sites.
    """

    block: int
    name: str
    members: Array

    @property
    def count(self) -> int:
        """Number of sites."""
        return int(np.count_nonzero(self.members))


def is_centred(block: SiteBlock) -> bool:
    """Whether every site of a block is an even function of its coefficient, around zero."""
    return block.offset is None and "g" in block.offers and not np.any(block.potential.shift)


def site_groups(model: GeneralizedLinearModel, labels: dict[str, Array] | None = None) -> tuple[SiteGroup, ...]:
    """One group for each set of equal scales of a block and each wavelet level, or for each of a block's ``labels``.

    Likelihoods have none, nor have blocks whose sites are not centred (`is_centred`).

    Raises
    ------
    InputError
        For more than 32 groups in a block, labels of a block that is not there, or of another shape.
    """
    names = [block.name for block in model.blocks]
    if len(set(names)) < len(names):
        raise InputError("blocks", f"names {names}", "a name of its own for each, to learn its scale")
    given = dict(labels or {})
    groups: list[SiteGroup] = []
    for number, block in enumerate(model.blocks):
        if block.is_likelihood or not is_centred(block):
            continue
        if block.name in given:
            wanted = np.asarray(given.pop(block.name))
            if wanted.shape != block.site_shape:
                raise InputError(f"labels of {block.name!r}", f"shape {wanted.shape}", f"{block.site_shape}")
        elif isinstance(block.analysis, Wavelet):
            wanted = block.analysis.level_map()
        else:
            wanted = np.broadcast_to(np.asarray(block.potential.start_variance), block.site_shape)
        kinds = np.unique(wanted)
        if len(kinds) > 32:
            raise InputError(
                f"block {block.name!r}", f"{len(kinds)} scales", "at most 32", "Give labels: which sites share one."
            )
        for i, kind in enumerate(kinds):
            name = block.name if len(kinds) == 1 else f"{block.name} {i}"
            groups.append(SiteGroup(number, name, wanted == kind))
    if given:
        raise InputError("labels", f"{sorted(given)}", f"{[b.name for b in model.blocks]}")
    return tuple(groups)


@dataclass(frozen=True)
class PriorEvidence:
    """phi_0 of a model's sites, with one pi per group.

    Parameters
    ----------
    model : GeneralizedLinearModel
        Its blocks are used, not its data.
    groups : tuple of SiteGroup
        From `site_groups`.
    bases : tuple of pairs of float arrays, shapes (group, entry) and (entry,)
        Candidates for A_0's own orthonormal basis: the distinct diagonals of B_g^H B_g in it, and how often each
        occurs. The product of A_0's diagonal bounds its determinant from above.
    """

    model: GeneralizedLinearModel
    groups: tuple[SiteGroup, ...]
    bases: tuple[tuple[Array, Array], ...]

    @classmethod
    def of(cls, model: GeneralizedLinearModel, groups: tuple[SiteGroup, ...]) -> PriorEvidence:
        """Bases from the operators: frequencies, and the wavelets of every wavelet block.

        Raises
        ------
        InputError
            For operators whose Gram matrices are not known as circulants, or sites that leave a direction free.
        """
        spectra = np.array([_spectrum(model.blocks[group.block], group) for group in groups])
        total = spectra.sum(axis=0)
        if total.min() <= 1e-12 * total.max():
            raise InputError(
                "prior", "a direction that is left free", "a proper prior", "Add a block of sites on the pixels."
            )
        own = sorted({group.block for group in groups})
        bases = [(spectra.reshape(len(groups), -1), np.ones(total.size))]
        bases += [_wavelet_basis(model, groups, spectra, b) for b in own if _is_basis(model, b)]
        return cls(model, groups, tuple(bases))

    def __call__(self, blocks: Sequence[SiteBlock], rounds: int = 200) -> tuple[float, Array]:
        """phi_0 for these blocks (the model's, with other scales), and its derivatives by the logs of the rates.

        Notes
        -----
        The double loop without data: z = tr(B_g A_0^-1 B_g^H) / sites, pi = -2 g'(z), in turn.
        """
        minima = [self._minimum(blocks, *basis, rounds) for basis in self.bases]
        return min(minima, key=lambda minimum: minimum[0])

    def _minimum(
        self, blocks: Sequence[SiteBlock], diagonals: Array, multiplicity: Array, rounds: int
    ) -> tuple[float, Array]:
        components = 2 if self.model.measurement.in_complex else 1
        counts = np.array([group.count for group in self.groups])
        sites = []
        for group in self.groups:  # whose sites have equal scales: one of them stands for all
            block, place = blocks[group.block], tuple(int(i[0]) for i in np.nonzero(group.members))
            sites.append(represented(block.potential.at(place, block.site_shape), f"block {block.name!r}"))

        def precisions(z: Array) -> Array:
            return np.array([float(site.site_precision(np.asarray(z_g))) for site, z_g in zip(sites, z, strict=True)])

        z = np.array([float(np.asarray(site.start_variance)) for site in sites])
        for _ in range(rounds):
            traces = np.asarray((diagonals / (precisions(z) @ diagonals)) @ multiplicity)  # tr(B_g A_0^-1 B_g^H)
            renewed = components * traces / counts
            done = bool(np.all(np.abs(renewed - z) <= 1e-9 * z))
            z = renewed
            if done:
                break
        dual = [float(site.h_at_optimum(np.asarray(z_g))) for site, z_g in zip(sites, z, strict=True)]
        pi = precisions(z)
        log_determinant = float(multiplicity @ np.log(pi @ diagonals))
        return components * log_determinant + float(counts @ dual), 2 * counts * pi * z


def _is_basis(model: GeneralizedLinearModel, number: int) -> bool:
    """True where a block's rows are an orthonormal basis of shifted filters, and not the pixels."""
    bands = model.blocks[number].analysis.filter_bands()
    return bands is not None and len(bands) > 1 and sum(1 / band.stride**2 for band in bands) == 1


def _wavelet_basis(
    model: GeneralizedLinearModel, groups: tuple[SiteGroup, ...], spectra: Array, number: int
) -> tuple[Array, Array]:
    """Diagonals in the basis of a block of wavelets; every band's wavelets are shifts of one."""
    bands = model.blocks[number].analysis.filter_bands() or ()
    sizes = np.array([spectra[0].size / band.stride**2 for band in bands])
    diagonals = np.empty((len(groups), len(bands)))
    for g, group in enumerate(groups):
        for b, band in enumerate(bands):
            if group.block == number:
                diagonals[g, b] = np.mean(group.members[band.band])
            else:
                diagonals[g, b] = band.mean_power(spectra[g])
    return diagonals, sizes


def _spectrum(block: SiteBlock, group: SiteGroup) -> Array:
    weights = np.broadcast_to(group.members, block.analysis.out_shape).astype(float)
    spectrum = block.analysis.circulant_spectrum(weights)
    if spectrum is None:
        raise InputError(
            f"block {block.name!r}", f"{type(block.analysis).__name__}", "pixels, differences or wavelets of an image"
        )
    return np.asarray(spectrum, dtype=float)


DENSE_LIMIT = 3000


@dataclass(frozen=True)
class Evidence:
    """log P(y) of one model.

    Parameters
    ----------
    value : float
        For normalised sites.
    kind : {"lower_bound", "estimate"}
        A bound if log|A| is exact and the prior's normaliser has a closed form; otherwise an estimate.
    normaliser : {"closed form", "variational"}
        How the prior's normaliser was computed.
    """

    value: float
    kind: Literal["lower_bound", "estimate"]
    normaliser: Literal["closed form", "variational"]


def log_evidence(posterior: GaussianPosterior, *, allow_estimates: bool = False) -> Evidence:
    """Bound on log P(y) with the sites normalised.

    The values of two models of the same data can be compared: their difference is the logarithm of a Bayes factor.

    Parameters
    ----------
    posterior : GaussianPosterior
        With a criterion.
    allow_estimates : bool
        Also accept an estimated log|A|, and a prior whose normaliser has to be bounded itself (overcomplete B): the
        difference of two bounds is an estimate.

    Raises
    ------
    InputError
        For anything but a posterior; without a criterion; for an estimate if ``allow_estimates`` is false; for an
        improper prior, and for hinge sites, which are no probability of their labels.
    """
    require_posterior(posterior)
    model = posterior.model
    for block in model.blocks:
        block.require({"normaliser"}, user="the evidence")
    if not posterior.criterion:
        raise InputError(
            "posterior",
            "no criterion: its variances do not know log|A|",
            "a criterion",
            'Infer by DoubleLoop with Exact variances, or DoubleLoop(criterion="estimate"); sites that the double '
            "loop does not take, as counts, by DecoupledGaussian or VariationalGaussian(Exact()).",
        )
    exact = posterior.criterion_kind == "exact"
    if not (exact or allow_estimates):
        raise InputError(
            "posterior", "log|A| estimated", "an exact one", "Infer with Exact variances, or say allow_estimates=True."
        )
    value = evidence_bound(model, posterior.criterion[-1])
    for block in model.blocks:
        if block.is_likelihood and "probability" not in block.offers:
            value -= _log_integral(block) + 0.5 * block.analysis.out_size * float(np.log(model.noise_variance))
    closed = prior_log_normaliser(model)
    if closed is not None:
        return Evidence(value - closed, "lower_bound" if exact else "estimate", "closed form")
    if not allow_estimates:
        raise InputError(
            "prior",
            "sites on more coefficients than unknowns, whose normaliser has no closed form",
            "an invertible B, or Gaussian sites",
            "Say allow_estimates=True for a variational bound of the normaliser.",
        )
    return Evidence(value - _bounded_normaliser(model), "estimate", "variational")


def prior_log_normaliser(model: GeneralizedLinearModel) -> float | None:
    """log Z, Z the integral of the prior's sites over the image, in the units of the image; None where intractable.

    Returns
    -------
    float or None
        Closed forms for as many coefficients as unknowns (orthonormal wavelets, pixels, any invertible B) and for
        Gaussian sites; None for other sites on overcomplete B.

    Raises
    ------
    InputError
        For sites that leave a direction of the image free, or are not integrable: an improper prior.
    """
    blocks = _prior(model)
    if not blocks:
        raise InputError(
            "prior",
            "no block of sites except those of the likelihood",
            "a proper prior on the unknowns",
            "Write the prior as a block, as Gaussian sites on Identity: a Gaussian factor counts as data.",
        )
    n, rows = model.measurement.in_size, sum(block.analysis.out_size for block in blocks)
    log_sigma = 0.5 * float(np.log(model.noise_variance))
    if all(block.potential.gaussian_precision is not None for block in blocks):
        return n * (0.5 * float(np.log(2 * np.pi)) + log_sigma) - 0.5 * _log_gram(model, blocks, weighted=True)
    if rows < n:
        raise _improper(f"{rows} coefficients for {n} unknowns")
    if rows > n:
        return None
    total = sum(_log_integral(block) for block in blocks)
    if not np.isfinite(total):
        raise _improper("sites that are not integrable")
    return total + n * log_sigma - 0.5 * _log_gram(model, blocks, weighted=False)


def _prior(model: GeneralizedLinearModel) -> tuple[SiteBlock, ...]:
    return tuple(block for block in model.blocks if not block.is_likelihood)


def _log_integral(block: SiteBlock) -> float:
    """Sum over the block's sites of the log of their integral over their coefficients, in units of sigma."""
    return float(np.sum(np.broadcast_to(block.potential.log_normaliser(block.sharing), block.site_shape)))


def _log_gram(model: GeneralizedLinearModel, blocks: tuple[SiteBlock, ...], *, weighted: bool) -> float:
    """log|B^H diag(p) B| over the real unknowns, p the precisions of Gaussian sites or 1."""
    weights = [np.asarray(block.represented.site_precision(np.ones(block.site_shape))) for block in blocks]
    if not weighted:
        weights = [np.ones(block.site_shape) for block in blocks]
    spectra = [block.analysis.gram_spectrum() for block in blocks]
    if all(s is not None for s in spectra) and all(np.ptp(w) == 0 for w in weights):
        total = np.sum([float(w.flat[0]) * np.asarray(s) for w, s in zip(weights, spectra, strict=True)], axis=0)
        if total.min() <= 1e-12 * total.max():
            raise _improper("sites that leave a direction of the image free")
        return float(np.sum(np.log(total))) * (2 if model.measurement.in_complex else 1)
    size = model.measurement.in_size
    if size > DENSE_LIMIT:
        raise InputError(
            "prior",
            f"{size} unknowns and analysis operators without a known spectrum",
            f"at most {DENSE_LIMIT} unknowns, or pixels, differences and wavelets with one scale each",
        )
    gram = np.zeros((size, size))
    for block, w in zip(blocks, weights, strict=True):
        rows = block.analysis.to_dense_real(DENSE_LIMIT)
        full = np.broadcast_to(w, block.analysis.out_shape).ravel()
        gram += rows.T @ (np.tile(full, len(rows) // len(full))[:, None] * rows)
    eigenvalues = np.linalg.eigvalsh(gram)
    if eigenvalues[0] <= 1e-12 * eigenvalues[-1]:
        raise _improper("sites that leave a direction of the image free")
    return float(np.sum(np.log(eigenvalues)))


def _bounded_normaliser(model: GeneralizedLinearModel) -> float:
    if not all(is_centred(block) for block in _prior(model)):
        raise InputError(
            "prior",
            "sites with an odd part, an offset or a position",
            "centred sites, as there are more coefficients than unknowns",
        )
    alone = GeneralizedLinearModel.of_sites(_prior(model), model.noise_variance)
    scales = [np.broadcast_to(np.asarray(b.potential.start_variance), b.site_shape) for b in alone.blocks]
    labels = {
        b.name: np.unique(scale, return_inverse=True)[1].reshape(scale.shape)
        for b, scale in zip(alone.blocks, scales, strict=True)
    }
    phi = PriorEvidence.of(alone, site_groups(alone, labels))(alone.blocks)[0]
    return evidence_bound(alone, phi)


def _improper(got: str) -> InputError:
    return InputError("prior", got, "a proper prior", "Compare models that differ in other things, or add sites.")


LARGEST_STEP = 3.0  # of a rate or a noise sd in one round
SWITCHED_OFF = 0.01  # a group that pulls less than this fraction of the unknowns is left where it is
LEAST_NOISE = 2.0**-24  # least noise sd learnt, over the largest number of y: its rounding in single precision


@dataclass(frozen=True)
class Hyperparameters:
    """Noise variance and rates after one round.

    Parameters
    ----------
    noise_variance : float
        sigma^2 per real component, in the data's units squared.
    rates : dict of str to float
        By group: the factor on the rates (tau / sigma, per unit of the coefficients) that the model came with.
    """

    noise_variance: float
    rates: dict[str, float]


@dataclass(frozen=True)
class LearnedModel:
    """A model with learnt hyperparameters, and its posterior.

    Parameters
    ----------
    model : GeneralizedLinearModel
        With the learnt noise variance and scales.
    posterior : GaussianPosterior
        Of that model.
    trace : tuple of Hyperparameters
        After every round.
    convergence : Convergence
        ``iterations`` are rounds, ``residual`` the last largest relative change of a hyperparameter, ``matvecs`` those
        of all inferences.
    """

    model: GeneralizedLinearModel
    posterior: GaussianPosterior
    trace: tuple[Hyperparameters, ...]
    convergence: Convergence


@dataclass(frozen=True)
class HyperparameterLearning:
    """Settings of `learn_hyperparameters`.

    Parameters
    ----------
    noise, scales : bool
        Whether to learn the noise variance, and the scales. Noise only where data outnumber unknowns: fewer can be
        fitted exactly, and on a part of the lines the bound lets the noise go to nothing
        (results/benchmarks/measured-once.md).
    labels : dict of block name to integer array, optional
        Which sites of a block share a scale; by default those that have equal ones, and those of one wavelet level.
    rounds : int
        At most; each is one inference from the last one's mean and variances.
    tolerance : float
        Stop when no rate and no noise sd changes by more than this, relative, and inference has converged.

    Raises
    ------
    InputError
        For settings of another kind or out of range, or where neither noise nor scales are to be learnt.
    """

    noise: bool = False
    scales: bool = True
    labels: dict[str, Array] | None = None
    rounds: int = 20
    tolerance: float = 0.02

    def __post_init__(self) -> None:
        if not self.noise and not self.scales:
            raise InputError("learn_hyperparameters", "neither noise nor scales", "at least one of them")
        require_counts(least=1, **{"learn_hyperparameters: rounds": self.rounds})
        positive_number("learn_hyperparameters: tolerance", self.tolerance)


def learn_hyperparameters(
    model: GeneralizedLinearModel,
    engine: Engine,
    rng: np.random.Generator,
    *,
    callback: Callable[[Hyperparameters], None] | None = None,
    **settings: Any,
) -> LearnedModel:
    """Learn the scales of a model's sites, and its noise variance, from its data: infer and renew them in turn.

    Parameters
    ----------
    model : GeneralizedLinearModel
        Where to start: its noise variance and scales.
    engine : Engine
        Or another object with its method ``infer``.
    rng : numpy Generator
        Of the variances; every round sees the same noise.
    callback : callable, optional
        Sees the hyperparameters after every round.
    settings
        ``noise``, ``scales``, ``labels``, ``rounds`` and ``tolerance``; see `HyperparameterLearning`.

    Raises
    ------
    InputError
        For arguments of another kind or out of range; where there is nothing to learn, the prior is improper, or its
        operators' Gram matrices are not circulants.

    Notes
    -----
    Scales: at fixed mean and z, minimise sum_i -2 g_i(c^2 (x_i + z_i)) - phi_0(c) over the factors c, one per group;
    since phi lies below its tangent bound every round lowers phi - phi_0 (exact variances). Noise: MacKay's fixed point
    sigma^2 = ||y - X u||^2 / (m - n + sum_i pi_i z_i), n and m real dimensions, with the sites themselves unchanged.
    TR-175 section 3 has the bound; Palmer et al., NIPS 2005, the role of g.

    Learnt scales serve error bars and predictions, not the picture: what they do to both is measured in
    results/benchmarks/measured-once.md.
    """
    require_task(model, rng)
    require_engine(engine=engine)
    wanted = HyperparameterLearning(**settings)
    if callback is not None:
        require_working(callback=callback, takes=1, wanted="a function of one Hyperparameters")
    if wanted.noise and not model.measurement.out_size:
        raise InputError("learn_hyperparameters", "noise of a model without a Gaussian factor", "noise=False")
    groups = site_groups(model, wanted.labels) if wanted.scales else ()
    if wanted.scales and not groups:
        raise InputError("learn_hyperparameters", "no block of centred, even sites", "a prior with scales to learn")
    prior = PriorEvidence.of(model, groups) if wanted.scales else None
    seed = int(rng.integers(2**63))
    least = min((LEAST_NOISE * float(np.abs(model.data).max(initial=0.0))) ** 2, model.noise_variance)
    trace = [Hyperparameters(model.noise_variance, {group.name: 1.0 for group in groups})]
    status, change, done = Status.MAX_ITERATIONS, np.inf, 0
    posterior = engine.infer(model, np.random.default_rng(seed))
    matvecs = posterior.convergence.matvecs
    for done in range(1, wanted.rounds + 1):  # noqa: B007 (reported)
        model, start, change, factors = _renewed(posterior, prior, least if wanted.noise else None)
        rates = {name: rate * factor for (name, rate), factor in zip(trace[-1].rates.items(), factors, strict=True)}
        trace.append(Hyperparameters(model.noise_variance, rates))
        if callback is not None:
            callback(trace[-1])
        posterior = engine.infer(model, np.random.default_rng(seed), warm_start=start)
        matvecs += posterior.convergence.matvecs
        if posterior.convergence.status is Status.BREAKDOWN or not np.isfinite(change):
            status = Status.BREAKDOWN
            break
        if change < wanted.tolerance and posterior.convergence.converged:
            status = Status.CONVERGED
            break
    return LearnedModel(model, posterior, tuple(trace[1:]), Convergence(status, done, float(change), matvecs))


def _renewed(
    posterior: GaussianPosterior, prior: PriorEvidence | None, least_noise: float | None
) -> tuple[GeneralizedLinearModel, WarmStart, float, list[float]]:
    """The model after one round, where to infer from, the largest change in logarithms, and the factors on rates."""
    model, steps, factors = posterior.model, list[float](), np.ones(0)
    blocks, variance = model.blocks, model.noise_variance
    if prior is not None:
        factors = _scale_factors(posterior, prior)
        blocks = rescaled_blocks(blocks, prior.groups, factors)
        steps += [abs(float(np.log(f))) for f in factors]
    if least_noise is not None:
        ratio = max(_noise_ratio(posterior), least_noise / variance)
        variance *= ratio
        # t(s) stays the same function of s: its rate is tau / sigma.
        blocks = tuple(replace(b, potential=b.potential.rescaled(np.sqrt(ratio))) for b in blocks)
        steps.append(abs(float(np.log(ratio))) / 2)
    z = tuple(old * (model.noise_variance / variance) for old in pooled_variances(model, posterior.marginals))
    start = WarmStart(posterior.mean, z)
    return replace(model, blocks=blocks, noise_variance=variance), start, max(steps), factors.tolist()


def rescaled_blocks(
    blocks: tuple[SiteBlock, ...], groups: tuple[SiteGroup, ...], factors: Array
) -> tuple[SiteBlock, ...]:
    """The blocks with the rates of each group multiplied."""
    renewed = list(blocks)
    for number, block in enumerate(blocks):
        own = [(group, float(f)) for group, f in zip(groups, factors, strict=True) if group.block == number]
        if not own:
            continue
        factor: Array | float = own[0][1]
        if len(own) > 1:
            factor = np.ones(block.site_shape)
            for group, f in own:
                factor[group.members] = f
        renewed[number] = replace(block, potential=block.potential.rescaled(factor))
    return tuple(renewed)


def _scale_factors(posterior: GaussianPosterior, prior: PriorEvidence) -> Array:
    """The factors that minimise the tangent bound of phi - phi_0, within a step's limit."""
    from scipy.optimize import minimize  # here, because the import takes a tenth of a second, and few runs learn

    model, groups = posterior.model, prior.groups
    z = pooled_variances(model, posterior.marginals)
    arguments = [t.astype(float) for t in dual_arguments(model, posterior.mean, z)]

    def objective(log_factors: Array) -> tuple[float, Array]:
        blocks = rescaled_blocks(model.blocks, groups, np.exp(log_factors))
        phi_0, slopes = prior(blocks)
        value, gradient = -phi_0, -slopes
        for number in sorted({group.block for group in groups}):
            block, x = blocks[number], arguments[number]
            value -= 2 * float(np.sum(block.represented.g(x)))
            slopes = 2 * block.represented.site_precision(x) * x
            for i, group in enumerate(groups):
                if group.block == number:
                    gradient[i] += float(slopes[group.members].sum())
        return value / size, gradient / size

    size, most = model.measurement.in_size, np.log(LARGEST_STEP)
    slopes = [
        float(np.sum((x * block.represented.site_precision(x))[group.members]))
        for group in groups
        for block, x in [(model.blocks[group.block], arguments[group.block])]
    ]
    limits = [most if slope > SWITCHED_OFF * size else 0.0 for slope in slopes]
    minimum = minimize(
        objective,
        np.zeros(len(groups)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-limit, limit) for limit in limits],
        options={"ftol": 1e-9, "gtol": 1e-6, "maxiter": 40},
    )
    return np.asarray(np.exp(minimum.x))


def _noise_ratio(posterior: GaussianPosterior) -> float:
    """New over old noise variance, within a step's limit."""
    model = posterior.model
    residual = model.data - model.measurement(posterior.mean)
    pi_z = sum(
        float(np.sum(pi * z, dtype=np.float64))
        for pi, z in zip(posterior.precision.site_precisions, pooled_variances(model, posterior.marginals), strict=True)
    )
    m, n = model.measurement.out_size, model.measurement.in_size
    free = max(m - n + pi_z, 1e-3 * m)  # random variances may overstep their limits
    ratio = float(np.sum(np.abs(residual) ** 2, dtype=np.float64)) / (free * model.noise_variance)
    return float(np.clip(ratio, LARGEST_STEP**-2, LARGEST_STEP**2))
