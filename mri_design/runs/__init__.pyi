"""One folder per verb of the command line: what it computes, and the report that shows it."""

from .compare import ComparisonRequest as ComparisonRequest
from .compare import compare_strategies as compare_strategies
from .design.request import DesignInput as DesignInput
from .design.request import DesignRequest as DesignRequest
from .design.run import DesignResult as DesignResult
from .design.run import design_scan as design_scan
from .known_slice import GivenReference as GivenReference
from .recon.run import ReconRequest as ReconRequest
from .recon.run import reconstruct_scan as reconstruct_scan
from .recon.slices import what_is_used as what_is_used
from .store import Run as Run
from .work import Keep as Keep
from .work import Progress as Progress
from .work import Work as Work
