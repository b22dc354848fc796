"""One folder per verb of the command line: what it computes, and the report that shows it."""

from .compare import ComparisonRequest as ComparisonRequest
from .compare import compare_strategies as compare_strategies
from .design import DesignResult as DesignResult
from .design import design_scan as design_scan
from .design_request import DesignRequest as DesignRequest
from .design_request import read_input as read_input
from .known_slice import GivenReference as GivenReference
from .recon import ReconRequest as ReconRequest
from .recon import reconstruct_scan as reconstruct_scan
from .recon_slices import what_is_used as what_is_used
from .store import Run as Run
from .work import Keep as Keep
from .work import Progress as Progress
from .work import Work as Work
