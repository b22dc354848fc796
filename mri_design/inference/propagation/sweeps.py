"""One sweep of Laplace propagation over the chunks, and the sums that it leaves.

Smola, Vishwanathan & Eskin 2003, algorithm 1. The sums P and h are made anew in every sweep, while the
messages pass, so that nothing drifts.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
import scipy.linalg

from mri_design.errors import InputError
from mri_design.inference.propagation.cavity import Cavities, DensePrecision, LowRankCovariance, square
from mri_design.inference.propagation.chunk_mode import message_at
from mri_design.inference.propagation.chunks import Chunk, LoadedChunk, Message, load_chunk, log_sites
from mri_design.inference.propagation.posterior import as_image, as_vector
from mri_design.inference.proper_factor import proper_factor, resolution
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status

Schedule = Literal["serial", "parallel"]
CavityForm = Literal["automatic", "dense", "low_rank"]
HALVINGS = 10


class SweepSettings(Protocol):
    """The settings of `LaplacePropagation` that a sweep reads."""

    @property
    def schedule(self) -> Schedule: ...
    @property
    def cavity(self) -> CavityForm: ...
    @property
    def damping(self) -> float: ...
    @property
    def safeguard(self) -> bool: ...
    @property
    def newton_steps(self) -> int: ...


class MessageSweeps:
    """The state between sweeps.

    Parameters
    ----------
    model : GeneralizedLinearModel
        The model.
    chunks : list of Chunk
        The partition.
    gaussian : arrays
        P_0 and h_0 of t_0.
    settings : SweepSettings
        Of the sweeps.
    """

    def __init__(
        self,
        model: GeneralizedLinearModel,
        chunks: list[Chunk],
        gaussian: tuple[Array, Array],
        settings: SweepSettings,
    ) -> None:
        self.model, self.chunks, self.gaussian, self.settings = model, chunks, gaussian, settings
        self.total = (gaussian[0].copy(), gaussian[1].copy())
        real_parts = [self._parts(chunk) for chunk in chunks]
        self.most_rows = max((len(c.sites) * k for c, k in zip(chunks, real_parts, strict=True)), default=1)
        self.messages = [Message.flat(len(c.sites), k) for c, k in zip(chunks, real_parts, strict=True)]
        self.duals: list[Array | None] = [None] * len(chunks)
        self.modes: list[Array] = [np.zeros(0)] * len(chunks)
        self.coordinates: list[Array | slice] = [slice(None)] * len(chunks)
        self.theta = np.zeros(len(gaussian[1]))
        self.errors: list[float] = []
        self.means: list[Array] = []
        self.steps: list[int] = []
        self.value = np.inf
        self.stuck = False

    def _parts(self, chunk: Chunk) -> int:
        block = self.model.blocks[chunk.block]
        shared = int(np.prod(block.analysis.out_shape)) // int(np.prod(block.site_shape))
        return shared * (2 if block.analysis.out_complex else 1)

    def expand_at(self, image: Array) -> None:
        """Messages begin as the expansions of the sites at ``image``, not as one."""
        self.theta = as_vector(image.astype(complex) if self.model.measurement.in_complex else image)
        self.theta = self.theta / float(np.sqrt(self.model.noise_variance))
        for number, chunk in enumerate(self.chunks):
            loaded = load_chunk(self.model, chunk)
            self.messages[number] = message_at(loaded, loaded.rows @ self.theta[loaded.coordinates])
            _add(self.total, loaded, self.messages[number])

    def sweep(self) -> Convergence:
        """Every chunk once; how the least converged of them ended.

        Raises
        ------
        InputError
            Where a chunk times its cavity is not a proper distribution, or the product of all is not.
        """
        before, before_messages = self.total, list(self.messages)
        serial, share = self.settings.schedule == "serial", self.settings.damping
        cavities = self._cavities()
        fresh = (self.gaussian[0].copy(), self.gaussian[1].copy())
        steps, worst, start = 0, Convergence(Status.CONVERGED, 0, 0.0), self.theta
        for number, chunk in enumerate(self.chunks):
            loaded = load_chunk(self.model, chunk)
            old = self.messages[number]
            mode, theta_of_mode = cavities.mode(loaded, old, start, self.duals[number], self.settings.newton_steps)
            new = old.mixed(mode.message, share)
            if serial:
                cavities.replace(loaded, old.difference(new))
                start = start.copy()
                start[loaded.coordinates] = theta_of_mode
            self.messages[number], self.duals[number] = new, mode.dual
            self.modes[number], self.coordinates[number] = theta_of_mode, loaded.coordinates
            _add(fresh, loaded, new)
            steps += mode.convergence.iterations
            if not mode.convergence.converged and worst.converged:
                worst = mode.convergence
        self.total, self.theta = fresh, _solved(fresh)
        if self.settings.safeguard:
            self._go_back(before, before_messages)
        scale = max(float(np.linalg.norm(self.theta)), resolution(self.total[0]))
        pairs = zip(self.modes, self.coordinates, strict=True)
        self.errors.append(max((float(np.linalg.norm(m - self.theta[c])) / scale for m, c in pairs), default=0.0))
        sigma = float(np.sqrt(self.model.noise_variance))
        self.means.append(as_image(sigma * self.theta, self.model))
        self.steps.append(steps)
        return worst

    def objective(self, theta: Array) -> float:
        """-log p(theta) up to a constant; reads every chunk once."""
        P, h = self.gaussian
        value = 0.5 * float(theta @ (P @ theta)) - float(h @ theta)
        for chunk in self.chunks:
            loaded = load_chunk(self.model, chunk)
            value -= log_sites(loaded, loaded.rows @ theta[loaded.coordinates])
        return value

    def _cavities(self) -> Cavities:
        form = self.settings.cavity
        small = 4 * self.most_rows <= len(self.theta)
        if form == "low_rank" or (form == "automatic" and small and _proper(self.total[0])):
            return LowRankCovariance.of(*self.total)
        return DensePrecision(self.total[0].copy(), self.total[1].copy())

    def _go_back(self, before: tuple[Array, Array], messages: list[Message]) -> None:
        """Halve the way from the old messages to the new ones until -log p at the mean is not above its last value.

        Where ten halvings do not do, the old messages stay, and `stuck` says so.
        """
        value, share = self.objective(self.theta), 1.0
        new, new_messages = self.total, list(self.messages)
        rounding = 1e-12 * (1 + abs(value))
        for halving in range(HALVINGS + 1):
            if value <= self.value + rounding:
                break
            self.stuck = halving == HALVINGS
            share = 0.0 if self.stuck else 0.5 * share
            self.total = tuple((1 - share) * a + share * b for a, b in zip(before, new, strict=True))  # type: ignore[assignment]
            self.messages = [a.mixed(b, share) for a, b in zip(messages, new_messages, strict=True)]
            self.theta = _solved(self.total)
            value = self.objective(self.theta)
        self.value = value


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
