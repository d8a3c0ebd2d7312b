"""State and the store port: sessions, how entries fold into them, and what a commit is."""

from onrecord.session.codec import pack, unpack
from onrecord.session.erasure import Erasure, Retention
from onrecord.session.folding import Folds, land, record_of, refold
from onrecord.session.session import Session, SlotState
from onrecord.session.store import Change, Store

__all__ = (
    "Change", "Erasure", "Folds", "Retention", "Session", "SlotState", "Store", "land", "pack", "record_of", "refold",
    "unpack",
)  # fmt: skip
