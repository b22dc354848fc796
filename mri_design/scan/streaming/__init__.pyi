"""A scan that arrives readout by readout: the protocol, the grid that it fills, and the requests to the scanner."""

from .mrd import CLOSED as CLOSED
from .mrd import Gone as Gone
from .mrd import LineReadout as LineReadout
from .mrd import Message as Message
from .mrd import MrdStream as MrdStream
from .mrd import NoiseReadout as NoiseReadout
from .mrd import ScanHeader as ScanHeader
from .mrd import StreamedImage as StreamedImage
from .mrd import append as append
from .mrd import recorded as recorded
from .player import Player as Player
from .player import play_at as play_at
from .scanner import Arrivals as Arrivals
from .scanner import Connection as Connection
from .scanner import Event as Event
from .scanner import LineRequest as LineRequest
from .scanner import LiveScanner as LiveScanner
from .scanner import RepeatPolicy as RepeatPolicy
from .scanner import clients as clients
from .scanner import listening as listening
from .scanner import one_stream as one_stream
