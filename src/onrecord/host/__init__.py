"""The host: runs an agent for many sessions over a store."""

from onrecord.host.host import Host
from onrecord.host.live import Committed, Gone, LiveItem, Place, Progress
from onrecord.host.questions import Caller
from onrecord.host.running import Ticket
from onrecord.host.setup import LADDER, Deliver, Give, Given
from onrecord.host.stream import HostStream

__all__ = (
    "LADDER",
    "Caller",
    "Committed",
    "Deliver",
    "Give",
    "Given",
    "Gone",
    "Host",
    "HostStream",
    "LiveItem",
    "Place",
    "Progress",
    "Ticket",
)
