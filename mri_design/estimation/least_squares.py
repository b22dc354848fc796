"""Zero-filled and regularised least-squares images."""

from __future__ import annotations

from mri_design.errors import require_numbers
from mri_design.krylov.conjugate_gradients import conjugate_gradients
from mri_design.model.generalized_linear import GeneralizedLinearModel, require_model
from mri_design.operators.base import Array
from mri_design.status import Convergence


def zero_filled(model: GeneralizedLinearModel) -> Array:
    """X^H y: inverse FFT with zeros for missing lines, combined over coils.

    Raises
    ------
    InputError
        For anything but a model.
    """
    require_model(model)
    return model.back_projection()


def least_squares(
    model: GeneralizedLinearModel, *, damping: float = 0.0, tolerance: float = 1e-4, max_iterations: int = 100
) -> tuple[Array, Convergence]:
    """argmin ||y - X u||^2 + damping ||u||^2 from u = 0 (the minimum-norm solution for damping 0).

    Parameters
    ----------
    model : GeneralizedLinearModel
        Only X and y are used.
    damping : float
        Tikhonov weight in units of X^H X (dimensionless for a unitary transform).
    tolerance, max_iterations : float, int
        Of the conjugate gradients.

    Raises
    ------
    InputError
        For anything but a model, a damping that is negative, a senseless tolerance or limit.
    """
    require_model(model)
    require_numbers(damping=damping)
    gram = model.measurement.gram
    u, convergence = conjugate_gradients(
        lambda x: gram(x) + damping * x,
        model.back_projection()[None],
        n_axes=model.n_axes,
        tolerance=tolerance,
        max_iterations=max_iterations,
    )
    return u[0], convergence
