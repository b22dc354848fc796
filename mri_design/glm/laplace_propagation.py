"""Laplace propagation: a MAP estimate with its Hessian, from chunks of sites that are solved one at a time.

Smola, Vishwanathan & Eskin 2003, algorithm 1. The sums P and h over all messages are made anew in every sweep, while
the messages pass, so that nothing drifts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import scipy.linalg

from mri_design.errors import InputError, require_choice, require_counts, require_numbers
from mri_design.glm.dense_model import as_image, as_vector, proper_factor, resolution
from mri_design.glm.messages import (
    Chunk,
    DensePrecision,
    LoadedChunk,
    LowRankCovariance,
    Message,
    Partition,
    gaussian_part,
    load_chunk,
    message_at,
    partition_sites,
    posterior_of_messages,
    square,
)
from mri_design.inference.base import LoopEngine, LoopState, StepInfo, WarmStart
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.potentials.requirements import ENGINES
from mri_design.status import Convergence, Status

Schedule = Literal["serial", "parallel"]


class MessageSweeps:
    """The messages of all chunks, their sums, and what the sweeps did.

    Parameters
    ----------
    model : GeneralizedLinearModel
        The model.
    chunks : list of Chunk
        The partition.
    gaussian : arrays
        P_0 and h_0 of t_0.
    settings : LaplacePropagation
        Of the sweeps.

    Attributes
    ----------
    messages : list of Message
        Per chunk, in units of sigma.
    modes : list of arrays
        Per chunk, on its ``coordinates`` of (real parts, imaginary parts), in units of sigma; see `chunk_mode`.
    means : list of arrays
        The mean after every sweep, shape of the image.
    """

    def __init__(
        self,
        model: GeneralizedLinearModel,
        chunks: list[Chunk],
        gaussian: tuple[Array, Array],
        settings: LaplacePropagation,
    ) -> None:
        self.model, self.chunks, self.gaussian, self.settings = model, chunks, gaussian, settings
        self.total = (gaussian[0].copy(), gaussian[1].copy())
        real_parts = [model.blocks[chunk.block].sharing for chunk in chunks]
        self.most_rows = max((len(c.sites) * k for c, k in zip(chunks, real_parts, strict=True)), default=1)
        self.messages = [Message.flat(len(c.sites), k) for c, k in zip(chunks, real_parts, strict=True)]
        self.duals: list[Array | None] = [None] * len(chunks)
        self.modes: list[Array] = [np.zeros(0)] * len(chunks)
        self.coordinates: list[Array | slice] = [slice(None)] * len(chunks)
        self.theta = np.zeros(len(gaussian[1]))
        self.means: list[Array] = []

    def expand_at(self, image: Array) -> None:
        """Messages begin as the expansions of the sites at ``image``, not as one."""
        self.theta = as_vector(image.astype(complex) if self.model.measurement.in_complex else image)
        self.theta = self.theta / float(np.sqrt(self.model.noise_variance))
        for number, chunk in enumerate(self.chunks):
            loaded = load_chunk(self.model, chunk)
            self.messages[number] = message_at(loaded, loaded.rows @ self.theta[loaded.coordinates])
            _add(self.total, loaded, self.messages[number])

    def sweep(self) -> tuple[Convergence, float]:
        """Every chunk once: how the least converged of them ended, and the sweep error.

        That is the largest distance of a chunk's mode from the mean of the product after the sweep, on the chunk's
        coordinates, relative to the norm of the mean.

        Raises
        ------
        InputError
            Where a chunk times its cavity is not a proper distribution, or the product of all is not.
        """
        serial = self.settings.schedule == "serial"
        cavities = self._cavities()
        fresh = (self.gaussian[0].copy(), self.gaussian[1].copy())
        worst, start = Convergence(Status.CONVERGED, 0, 0.0), self.theta
        for number, chunk in enumerate(self.chunks):
            loaded = load_chunk(self.model, chunk)
            old = self.messages[number]
            mode, theta_of_mode = cavities.mode(loaded, old, start, self.duals[number], self.settings.newton_steps)
            new = old.mixed(mode.message, self.settings.damping)
            if serial:
                cavities.replace(loaded, old.difference(new))
                start = start.copy()
                start[loaded.coordinates] = theta_of_mode
            self.messages[number], self.duals[number] = new, mode.dual
            self.modes[number], self.coordinates[number] = theta_of_mode, loaded.coordinates
            _add(fresh, loaded, new)
            if not mode.convergence.converged and worst.converged:
                worst = mode.convergence
        self.total, self.theta = fresh, _solved(fresh)
        scale = max(float(np.linalg.norm(self.theta)), resolution(self.total[0]))
        pairs = zip(self.modes, self.coordinates, strict=True)
        self.means.append(self._image(self.theta))
        return worst, max((float(np.linalg.norm(m - self.theta[c])) / scale for m, c in pairs), default=0.0)

    def chunk_mode(self, number: int) -> Array:
        """Mode of one chunk as an image in the units of the data; the mean where it touches nothing."""
        theta = self.theta.copy()
        theta[self.coordinates[number]] = self.modes[number]
        return self._image(theta)

    def _image(self, theta: Array) -> Array:
        return as_image(float(np.sqrt(self.model.noise_variance)) * theta, self.model)

    def _cavities(self) -> DensePrecision | LowRankCovariance:
        if 4 * self.most_rows <= len(self.theta) and _proper(self.total[0]):
            return LowRankCovariance.of(*self.total)
        return DensePrecision(self.total[0].copy(), self.total[1].copy())


def _add(total: tuple[Array, Array], chunk: LoadedChunk, message: Message) -> None:
    total[0][square(chunk.coordinates)] += message.quadratic(chunk)
    total[1][chunk.coordinates] += message.linear(chunk)


def _proper(P: Array) -> bool:
    try:
        proper_factor(P)
    except InputError:
        return False
    return True


def _solved(total: tuple[Array, Array]) -> Array:
    return np.asarray(scipy.linalg.cho_solve(proper_factor(total[0]), total[1]))


@dataclass(frozen=True, kw_only=True)
class SweepState(LoopState):
    """Between two sweeps.

    Parameters
    ----------
    sweeps : MessageSweeps
        The messages and their sums, which a sweep changes in place: they are the largest thing there is.
    """

    sweeps: MessageSweeps


@dataclass(frozen=True, kw_only=True)
class LaplacePropagation(LoopEngine[SweepState]):
    """Settings of Laplace propagation.

    Sites are cut into chunks t_i. Each chunk is multiplied by the messages of all others (its cavity), the mode of the
    product is found by Newton's method, and the second-order expansion of the chunk there is its new message. Fixed
    points are the modes of the posterior; the covariance there is the inverse Hessian (sites on moduli: see Notes).
    Memory is n^2 numbers for n real unknowns, plus one chunk's rows, plus a few numbers per site, so that B may stay on
    disk (`RowsOnDisk`). Where everything fits, Newton's method on all sites at once takes less time.

    Parameters
    ----------
    partition : {"random", "contiguous", "groups"}
        How sites become chunks; with "groups" every block is one (coil groups, slices).
    chunk_size : int
        Sites per chunk, but for groups.
    schedule : {"serial", "parallel"}
        Messages replaced at once, or all of a sweep together from the same start. One parallel sweep is the Bayes
        committee machine.
    max_sweeps : int
        Sweeps at most.
    tolerance : float
        Stop when all chunks' modes agree with the mean to this, relative to its norm.
    damping : float
        Fraction of a new message that is taken, the rest stays old; 1 is the method, less slows it down. 1 / N in one
        parallel sweep averages N chunks (Collobert et al. 2002).
    exact : tuple of str, optional
        Names of the blocks that belong to the Gaussian part t_0 with X and get no messages; by default all blocks of
        Gaussian sites.
    newton_steps : int
        Newton steps per chunk and sweep at most.
    limit : int
        Largest number of real unknowns accepted.

    Raises
    ------
    InputError
        For settings out of range; for sites with a kink at zero (Laplace); for a Gaussian part that leaves a chunk
        undetermined; for more unknowns than ``limit``.

    Notes
    -----
    Smola, Vishwanathan & Eskin 2003, algorithms 1 and 2. The product of messages is held by its precision, or, where
    every chunk has at most a quarter as many rows as there are unknowns, by its covariance. `Hinge` sites are expanded
    to first order, which makes the serial schedule the chunking of support vector machines (section 4); their message
    has no curvature. Sites on moduli and groups send full curvatures, while the posterior's site precisions are -2 g'
    at its mean. Parallel sweeps have no guarantee; serial ones have none without log-concavity. The mean of a warm
    start is where all messages begin as expansions, instead of as one; it is needed where X and the Gaussian blocks
    alone do not determine the unknowns.
    ``inner`` of every `StepInfo` is the least converged of the chunks, ``change`` the sweep error.
    """

    partition: Partition = "random"
    chunk_size: int = 500
    schedule: Schedule = "serial"
    max_sweeps: int = 20
    tolerance: float = 1e-8
    damping: float = 1.0
    exact: tuple[str, ...] | None = None
    newton_steps: int = 50
    limit: int = 9000

    def __post_init__(self) -> None:
        require_choice(get_args(Partition), partition=self.partition)
        require_choice(get_args(Schedule), schedule=self.schedule)
        require_counts(
            chunk_size=self.chunk_size,
            max_sweeps=self.max_sweeps,
            newton_steps=self.newton_steps,
            limit=self.limit,
            least=1,
        )
        require_numbers(tolerance=self.tolerance)
        require_numbers(damping=self.damping, most=1.0)
        if self.damping == 0:
            raise InputError("damping", "0", "a positive fraction of the new message")

    needs = ENGINES["LaplacePropagation"]

    @property
    def most_loops(self) -> int:
        return self.max_sweeps

    def needing(self, model: GeneralizedLinearModel) -> tuple[SiteBlock, ...]:
        """The blocks that are cut into chunks; the Gaussian part gets no messages."""
        return tuple(model.blocks[number] for number in self._roles(model)[0])

    def propagate(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        *,
        warm_start: WarmStart | None = None,
        callback: Callable[[StepInfo], None] | None = None,
    ) -> tuple[GaussianPosterior, MessageSweeps]:
        """The posterior as `infer` returns it, and the chunks, their messages and modes."""
        self.check(model, rng, warm_start, callback)
        state, convergence = self.iterate(self.init(model, rng, warm_start), callback)
        return self.finish(state, convergence), state.sweeps

    def init(
        self, model: GeneralizedLinearModel, rng: np.random.Generator, warm_start: WarmStart | None = None
    ) -> SweepState:
        members, exact = self._roles(model)
        chunks = partition_sites(model.blocks, members, self.partition, self.chunk_size, rng)
        sweeps = MessageSweeps(model, chunks, gaussian_part(model, exact), self)
        if warm_start is not None:
            sweeps.expand_at(warm_start.mean)
        return SweepState(sweeps=sweeps)

    def step(self, state: SweepState) -> SweepState:
        inner, error = state.sweeps.sweep()
        loop = state.loop + 1
        info = StepInfo(loop, None, error, inner, Convergence(Status.CONVERGED, 0, 0.0))
        return replace(state, loop=loop, change=error, info=info)

    def done(self, state: SweepState) -> Status | None:
        if state.info is None:
            return None
        if not np.isfinite(state.change):
            return Status.BREAKDOWN
        if state.change <= self.tolerance:
            return Status.CONVERGED if state.info.inner.converged else Status.STALLED
        return None

    def advice(self, state: SweepState, status: Status) -> str:
        return f"raise max_sweeps ({self.max_sweeps})" if status is Status.MAX_ITERATIONS else ""

    def finish(self, state: SweepState, convergence: Convergence) -> GaussianPosterior:
        sweeps = state.sweeps
        return posterior_of_messages(
            sweeps.model,
            sweeps.gaussian,
            sweeps.total,
            sweeps.chunks,
            sweeps.messages,
            convergence,
            sweeps.most_rows,
        )

    def _roles(self, model: GeneralizedLinearModel) -> tuple[list[int], list[int]]:
        """Numbers of the blocks that are cut into chunks, and of those in t_0."""
        n = model.measurement.in_size
        if n > self.limit:
            raise InputError(
                "unknowns",
                f"{n} real numbers",
                f"at most {self.limit} (LaplacePropagation holds n^2 numbers)",
                "Raise limit, split the problem, or use MapEstimate or DoubleLoop, which need no matrix.",
            )
        names = [block.name for block in model.blocks]
        unknown = [name for name in self.exact or () if name not in names]
        if unknown:
            raise InputError("exact", ", ".join(unknown), f"names out of {', '.join(names)}")
        exact: list[int] = []
        for number, block in enumerate(model.blocks):
            gaussian = block.potential.gaussian_precision is not None
            if block.name in self.exact if self.exact is not None else gaussian:
                exact.append(number)
        return [number for number in range(len(names)) if number not in exact], exact
