"""Sites t(s): what is believed about one coefficient."""

from mri_design.potentials.base import Potential
from mri_design.potentials.gaussian import Gaussian
from mri_design.potentials.laplace import Laplace
from mri_design.potentials.student_t import StudentT

__all__ = ["Gaussian", "Laplace", "Potential", "StudentT"]
