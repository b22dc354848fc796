"""Active learning: which label to ask for next, and which measurement to make where it can be designed freely."""

from .dense import DualState as DualState
from .dense import PriorAndSites as PriorAndSites
from .dense import as_image as as_image
from .dense import best_gaussian as best_gaussian
from .dense import exact_criterion as exact_criterion
from .dense import minimise_exact_criterion as minimise_exact_criterion
from .free_encoding import CovarianceRoot as CovarianceRoot
from .free_encoding import best_free_encoding as best_free_encoding
from .free_encoding import best_shot as best_shot
from .free_encoding import drawn_root as drawn_root
from .free_encoding import exact_root as exact_root
from .free_encoding import rotations as rotations
from .free_encoding import shot_gain as shot_gain
from .free_encoding import water_filling as water_filling
from .infomax import FeasibleQueries as FeasibleQueries
from .infomax import InfomaxQuery as InfomaxQuery
from .infomax import asymptotic_information as asymptotic_information
from .infomax import expected_gain as expected_gain
from .infomax import maximise_in_ball as maximise_in_ball
from .infomax import minimise_in_ball as minimise_in_ball
from .labels import LabelPool as LabelPool
from .labels import PoolDesign as PoolDesign
from .labels import PoolMarginals as PoolMarginals
from .labels import bald as bald
from .labels import information_gain_of_labels as information_gain_of_labels
from .labels import label_probability as label_probability
from .labels import site_width as site_width
from .labels import uncertainty as uncertainty
from .laplace import FilterState as FilterState
from .laplace import LaplaceFilter as LaplaceFilter
from .laplace import LaplacePropagation as LaplacePropagation
from .messages import coefficients_of_sites as coefficients_of_sites
from .messages import load_chunk as load_chunk
from .messages import minimise_in_box as minimise_in_box
from .messages import partition_sites as partition_sites
from .regression import Estimate as Estimate
from .regression import LinearRegression as LinearRegression
from .regression import LogisticRegression as LogisticRegression
from .regression import Regression as Regression
from .regression import linear_regression as linear_regression
from .regression import logistic_regression as logistic_regression
from .relevance import Relevance as Relevance
from .relevance import automatic_relevance as automatic_relevance
from .variational import Anchor as Anchor
from .variational import DecoupledGaussian as DecoupledGaussian
from .variational import VariationalGaussian as VariationalGaussian
from .variational import conjugate as conjugate
from .variational import linearised_dual as linearised_dual
from .variational import open_range as open_range
from .variational import slope_range as slope_range

__all__ = [
    "DecoupledGaussian",
    "FilterState",
    "InfomaxQuery",
    "LabelPool",
    "LaplaceFilter",
    "LaplacePropagation",
    "LinearRegression",
    "LogisticRegression",
    "PoolDesign",
    "Relevance",
    "VariationalGaussian",
    "asymptotic_information",
    "automatic_relevance",
    "best_free_encoding",
    "best_shot",
    "drawn_root",
    "exact_root",
    "rotations",
    "shot_gain",
]
