"""Laplace propagation: a MAP estimate with its Hessian, from chunks of sites that are solved one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np

from mri_design.errors import InputError, require_counts, require_numbers
from mri_design.inference.base import StepInfo, WarmStart, require_task
from mri_design.inference.propagation.chunks import Chunk, Message, Partition, partition_sites
from mri_design.inference.propagation.posterior import as_image, as_vector, gaussian_part, posterior_of_messages
from mri_design.inference.propagation.sweeps import CavityForm, MessageSweeps, Schedule
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.potentials.gaussian import Gaussian
from mri_design.potentials.hinge import Hinge
from mri_design.potentials.smoothness import require_smooth
from mri_design.status import Convergence, Status

__all__ = ["LaplacePropagation", "Propagation"]


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class LaplacePropagation:
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
    no guarantee; serial ones have none without log-concavity.
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
        for name, value, choices in (
            ("partition", self.partition, get_args(Partition)),
            ("schedule", self.schedule, get_args(Schedule)),
            ("cavity", self.cavity, get_args(CavityForm)),
        ):
            if value not in choices:
                raise InputError(field=name, got=repr(value), wanted=" or ".join(choices))
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
            raise InputError(field="damping", got="0", wanted="a positive share of the new message")

    def infer(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        *,
        warm_start: WarmStart | None = None,
        callback: Callable[[StepInfo], None] | None = None,
    ) -> GaussianPosterior:
        """The posterior of `propagate`; ``convergence.residual`` is the last of its sweep errors."""
        return self.propagate(model, rng, warm_start=warm_start, callback=callback).posterior

    def propagate(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        *,
        warm_start: WarmStart | None = None,
        callback: Callable[[StepInfo], None] | None = None,
    ) -> Propagation:
        """Sweep until all chunks agree, or to the limit.

        Parameters
        ----------
        model : GeneralizedLinearModel
            What to infer.
        rng : numpy Generator
            Of the random partition.
        warm_start : WarmStart, optional
            Its mean: all messages begin as the expansions there instead of one. Needed where X and the Gaussian blocks
            alone do not determine the unknowns.
        callback : callable, optional
            Called with a StepInfo after every sweep; ``inner`` is the least converged of the chunks.
        """
        require_task(model, rng, warm_start, callback)
        members, exact = self._roles(model)
        chunks = partition_sites(model.blocks, members, self.partition, self.chunk_size, rng)
        sweeps = MessageSweeps(model, chunks, gaussian_part(model, exact), self)
        if warm_start is not None:
            sweeps.expand_at(warm_start.mean)
        status, sweep = Status.MAX_ITERATIONS, 0
        for sweep in range(1, self.max_sweeps + 1):
            inner = sweeps.sweep()
            error = sweeps.errors[-1]
            if callback is not None:
                callback(StepInfo(sweep, None, error, inner, Convergence(Status.CONVERGED, 0, 0.0)))
            if not np.isfinite(error):
                status = Status.BREAKDOWN
                break
            if error <= self.tolerance:
                status = Status.CONVERGED if inner.converged else Status.STALLED
                break
            if sweeps.stuck:
                status = Status.STALLED
                break
        convergence = Convergence(status, sweep, sweeps.errors[-1])
        posterior = posterior_of_messages(
            model, sweeps.gaussian, sweeps.total, chunks, sweeps.messages, convergence, sweeps.most_rows
        )
        return Propagation(
            posterior,
            tuple(chunks),
            tuple(sweeps.errors),
            tuple(sweeps.means),
            tuple(sweeps.messages),
            tuple(sweeps.steps),
            tuple(sweeps.modes),
            tuple(sweeps.coordinates),
        )

    def _roles(self, model: GeneralizedLinearModel) -> tuple[list[int], list[int]]:
        """Numbers of the blocks that are cut into chunks, and of those in t_0."""
        n = model.measurement.in_size
        if n > self.limit:
            raise InputError(
                field="unknowns",
                got=f"{n} real numbers",
                wanted=f"at most {self.limit} (LaplacePropagation holds n^2 numbers)",
                cure="Raise limit, split the problem, or use MapEstimate or DoubleLoop, which need no matrix.",
            )
        names = [block.name for block in model.blocks]
        unknown = [name for name in self.exact or () if name not in names]
        if unknown:
            raise InputError(field="exact", got=", ".join(unknown), wanted=f"names out of {', '.join(names)}")
        exact: list[int] = []
        for number, block in enumerate(model.blocks):
            if block.name in self.exact if self.exact is not None else isinstance(block.potential, Gaussian):
                exact.append(number)
            elif not isinstance(block.potential, Hinge):  # expanded to first order
                require_smooth(f"block {block.name!r}", block.potential)
        return [number for number in range(len(names)) if number not in exact], exact
