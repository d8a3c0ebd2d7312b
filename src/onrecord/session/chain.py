"""Chained digests of a conversation: one value vouches for all units up to it."""

from __future__ import annotations

from threading import Lock

import msgspec

from onrecord.conversation.log import Log
from onrecord.conversation.messages import Unit
from onrecord.jsonio import chained, digest
from onrecord.record.kinds import PieceMark
from onrecord.session.session import KEPT_FILED

__all__ = ("Chain", "chain_of")

_encode = msgspec.json.Encoder().encode


class Chain:
    """Chained digests parallel to a log of units: item *i* vouches for units 0 to *i*.

    ``texts`` remembers the digests of prompt texts, which are the same from turn to turn of a session.
    """

    __slots__ = ("_lock", "digests", "key", "marked", "texts")

    def __init__(self, key: str, digests: list[str]) -> None:
        self.key, self.digests = key, digests
        self.texts: dict[str, str] = {}
        self.marked: tuple[object, tuple[PieceMark, ...]] = ((), ())
        self._lock = Lock()  # a session may take turns in several threads at once

    def text(self, text: str) -> str:
        """The digest of a prompt text."""
        mark = self.texts.get(text)
        if mark is None:
            if len(self.texts) > KEPT_FILED:
                self.texts.clear()
            mark = self.texts[text] = digest(text.encode(), self.key)
        return mark

    def cut(self, size: int) -> Chain:
        with self._lock:
            return Chain(self.key, self.digests[:size])

    def behind(self, size: int) -> int:
        """How many of the first ``size`` units have no digest yet."""
        return max(0, size - len(self.digests))

    def upto(self, units: Log[Unit], size: int) -> str:
        """The digest of the first ``size`` units."""
        digests = self.digests
        if len(digests) < size:
            with self._lock:
                before = digests[-1] if digests else ""
                known = len(digests)
                for unit in units.since(known)[: size - known] if known < size else ():
                    before = chained(before, _encode(unit), self.key)
                    digests.append(before)
        return digests[size - 1] if size else ""


def chain_of(units: Log[Unit], key: str) -> Chain:
    """The chain that hangs on this log, begun when missing."""
    held = units.beside.get(("chain", key))
    if not isinstance(held, Chain):
        held = units.beside[("chain", key)] = Chain(key, [])
    return held
