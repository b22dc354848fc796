"""Lines become a sequence that a scanner plays: gradient echoes and trains of spin echoes in the Pulseq format."""

from .events import largest_bandwidth as largest_bandwidth
from .orders import GridOrder as GridOrder
from .orders import Order as Order
from .orders import SpiralOrder as SpiralOrder
from .orders import SpokeOrder as SpokeOrder
from .pulseq_file import SequenceError as SequenceError
from .pulseq_file import verify as verify
from .scanner import Scanner as Scanner
from .scanner import SequenceKind as SequenceKind
from .scanner import SequenceSettings as SequenceSettings
from .scanner import load_scanner as load_scanner
from .scanner import shipped_scanners as shipped_scanners
