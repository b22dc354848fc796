"""Laplace propagation: a MAP estimate with its Hessian, from chunks of sites that are solved one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from mri_design.errors import InputError, require_choice, require_counts, require_numbers
from mri_design.inference.base import LoopEngine, LoopState, StepInfo, WarmStart
from mri_design.inference.propagation.chunks import Chunk, Message, Partition, partition_sites
from mri_design.inference.propagation.posterior import as_image, as_vector, gaussian_part, posterior_of_messages
from mri_design.inference.propagation.sweeps import CavityForm, MessageSweeps, Schedule
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.potentials.requirements import ENGINES
from mri_design.status import Convergence, Status


@dataclass(frozen=True, kw_only=True)
class Propagation:
    """What the sweeps left behind.

    Parameters
    ----------
    posterior : GaussianPosterior
        The product of all messages.
    chunks : tuple of Chunk
        The partition.
    sweep_errors : tuple of float
        Per sweep the largest distance of a chunk's mode from the mean of the product after the sweep, on the chunk's
        coordinates, relative to the norm of the mean.
    sweep_means : tuple of arrays
        The mean after every sweep, shape of the image.
    messages : tuple of Message
        Per chunk, in units of sigma.
    newton_steps : tuple of int
        Per sweep, summed over chunks.
    modes : tuple of arrays
        Per chunk, on its coordinates of (real parts, imaginary parts), in units of sigma; see `chunk_mode`.
    coordinates : tuple of int arrays or slices
        Which those are.
    """

    posterior: GaussianPosterior
    chunks: tuple[Chunk, ...]
    sweep_errors: tuple[float, ...]
    sweep_means: tuple[Array, ...]
    messages: tuple[Message, ...]
    newton_steps: tuple[int, ...]
    modes: tuple[Array, ...]
    coordinates: tuple[Array | slice, ...]

    def chunk_mode(self, number: int) -> Array:
        """Mode of one chunk as an image in the units of the data; the mean where it touches nothing."""
        sigma = float(np.sqrt(self.posterior.model.noise_variance))
        theta = as_vector(self.posterior.mean)
        theta[self.coordinates[number]] = sigma * self.modes[number]
        return as_image(theta, self.posterior.model)


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
        Share of a new message that is taken, the rest stays old; 1 is the method, less slows it down. 1 / N in one
        parallel sweep averages N chunks (Collobert et al. 2002).
    safeguard : bool
        After a sweep that raised -log p at the mean, go back towards the old messages until it did not (stalled where
        that does not help). One more pass over the rows per sweep, or a few.
    exact : tuple of str, optional
        Names of the blocks that belong to the Gaussian part t_0 with X and get no messages; by default all blocks of
        Gaussian sites.
    cavity : {"automatic", "dense", "low_rank"}
        How the product of messages is held, see `cavity`: by its precision, or by its covariance with corrections
        of a chunk's rank, which is faster where chunks have few rows or touch few coordinates. "automatic" takes the
        latter where every chunk has at most a quarter as many rows as there are unknowns.
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
    Smola, Vishwanathan & Eskin 2003, algorithms 1 and 2. `Hinge` sites are expanded to first order, which makes the
    serial schedule the chunking of support vector machines (section 4); their message has no curvature. Sites on moduli
    and groups send full curvatures, while the posterior's site precisions are -2 g' at its mean. Parallel sweeps have
    no guarantee; serial ones have none without log-concavity. The mean of a warm start is where all messages begin as
    expansions, instead of as one; it is needed where X and the Gaussian blocks alone do not determine the unknowns.
    ``inner`` of every `StepInfo` is the least converged of the chunks, ``change`` the sweep error.
    """

    partition: Partition = "random"
    chunk_size: int = 500
    schedule: Schedule = "serial"
    max_sweeps: int = 20
    tolerance: float = 1e-8
    damping: float = 1.0
    safeguard: bool = False
    exact: tuple[str, ...] | None = None
    cavity: CavityForm = "automatic"
    newton_steps: int = 50
    limit: int = 9000

    def __post_init__(self) -> None:
        require_choice(get_args(Partition), partition=self.partition)
        require_choice(get_args(Schedule), schedule=self.schedule)
        require_choice(get_args(CavityForm), cavity=self.cavity)
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
            raise InputError("damping", "0", "a positive share of the new message")

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
    ) -> Propagation:
        """As `infer`, with the partition, all messages and the errors of every sweep."""
        self.check(model, rng, warm_start, callback)
        state, convergence = self.iterate(self.init(model, rng, warm_start), callback)
        sweeps = state.sweeps
        return Propagation(
            posterior=self.finish(state, convergence),
            chunks=tuple(sweeps.chunks),
            sweep_errors=tuple(sweeps.errors),
            sweep_means=tuple(sweeps.means),
            messages=tuple(sweeps.messages),
            newton_steps=tuple(sweeps.steps),
            modes=tuple(sweeps.modes),
            coordinates=tuple(sweeps.coordinates),
        )

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
        inner = state.sweeps.sweep()
        loop, error = state.loop + 1, state.sweeps.errors[-1]
        info = StepInfo(loop, None, error, inner, Convergence(Status.CONVERGED, 0, 0.0))
        return replace(state, loop=loop, change=error, info=info)

    def done(self, state: SweepState) -> Status | None:
        if state.info is None:
            return None
        if not np.isfinite(state.change):
            return Status.BREAKDOWN
        if state.change <= self.tolerance:
            return Status.CONVERGED if state.info.inner.converged else Status.STALLED
        return Status.STALLED if state.sweeps.stuck else None

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
