"""What the solvers of the inner problem have in common."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from mri_design.errors import require_working
from mri_design.estimation.penalised import PenalisedProblem
from mri_design.operators.base import Array
from mri_design.status import Convergence


class InnerSolver(Protocol):
    """Minimises J; a frozen dataclass of settings, so that `dataclasses.replace` tightens them.

    ``tolerance`` is in units of J per real unknown for every solver: a posterior's own J is about one per unknown, so
    1e-4 is a gap of about 1e-4 of it. ``residual`` of the returned `Convergence` is what was compared to it.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def tolerance(self) -> float:
        """Stop at this (estimated) excess of J per real unknown."""
        ...

    @property
    def max_iterations(self) -> int:
        """Limit of the outermost loop."""
        ...

    def __call__(self, problem: PenalisedProblem, start: Array) -> tuple[Array, Convergence]:
        """Minimise from ``start``, which is left alone."""
        ...


def require_solver(**settings: Any) -> None:
    """Refuse anything but a solver of the inner problem, its class included.

    Raises
    ------
    InputError
        Naming the first such setting.
    """
    require_working(takes=2, wanted="a solver of the inner problem, as LBFGS() or IRLS()", **settings)
