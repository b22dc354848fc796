"""One object from scan to image for scripts and notebooks: what the verbs compute, held in memory."""

from .results import ScanDesign as ScanDesign
from .results import ScanImage as ScanImage
from .results import StrategyComparison as StrategyComparison
from .results import image_png as image_png
