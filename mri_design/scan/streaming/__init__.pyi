"""A scan that comes readout by readout: protocols, what has arrived, and the conversation with the scanner."""

from .channel import Channel as Channel
from .channel import Connected as Connected
from .channel import Connection as Connection
from .channel import Event as Event
from .channel import Gone as Gone
from .channel import clients as clients
from .channel import listening as listening
from .channel import one_stream as one_stream
from .mrd import Closed as Closed
from .mrd import CutShort as CutShort
from .mrd import Journal as Journal
from .mrd import LeftOut as LeftOut
from .mrd import LineReadout as LineReadout
from .mrd import Message as Message
from .mrd import MrdStream as MrdStream
from .mrd import NoiseReadout as NoiseReadout
from .mrd import ScanHeader as ScanHeader
from .mrd import recorded as recorded
from .scanner import Arrivals as Arrivals
from .scanner import Exchange as Exchange
from .scanner import Patience as Patience
from .scanner import RepeatPolicy as RepeatPolicy
from .scanner import Scanner as Scanner
