"""The host: runs an agent for many sessions over a store."""

from onrecord.host.health import Health
from onrecord.host.host import Host
from onrecord.host.host_stream import HostStream
from onrecord.host.live import Committed, Gone, LiveItem, Place, Progress
from onrecord.host.questions import Caller
from onrecord.host.running import Ticket
from onrecord.host.setup import LADDER, Deliver, Give, Given

__all__ = (
    "LADDER",
    "Caller",
    "Committed",
    "Deliver",
    "Give",
    "Given",
    "Gone",
    "Health",
    "Host",
    "HostStream",
    "LiveItem",
    "Place",
    "Progress",
    "Ticket",
)
