"""Rows that hold what was said in turns that are erased: wakes they armed, messages out, answers to their questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Interruption, Said, Woke, row_key
from onrecord.record.entry import Entry
from onrecord.record.kinds import HistoryChanged, TextSaid, TurnFailed, TurnOpened, WakeArmed, WakeDisarmed
from onrecord.session.erasing import Told
from onrecord.session.inbox import Row
from onrecord.session.quoting import Names, unpreviewed

__all__ = ("Leftovers", "armed_elsewhere")


def armed_elsewhere(key: SessionKey, entries: Iterable[Entry]) -> frozenset[tuple[SessionKey, str]]:
    """The rows, by session and key, of wakes that a session armed for others."""
    wakes = [entry.body.wake for entry in entries if isinstance(entry.body, WakeArmed)]
    return frozenset(
        (wake.session, row_key(Woke(wake.key), ""))
        for wake in wakes
        if wake.session is not None and wake.session != key
    )


class Leftovers(Struct, frozen=True):
    """What of both boxes goes with some turns of a session. ``wakes`` may wait in other sessions."""

    session: SessionKey
    turns: frozenset[str]
    messages: frozenset[str]
    wakes: frozenset[tuple[SessionKey, str]]
    inputs: frozenset[str]
    said: frozenset[str]
    names: Names

    @classmethod
    def of(cls, told: Told, turns: Collection[str]) -> Leftovers:
        """Of these turns."""
        key, armed, inputs, said = told.session.key, dict[tuple[SessionKey, str], str](), set[str](), set[str]()
        for entry in told.entries:
            body, goes = entry.body, entry.turn in turns
            if isinstance(body, WakeArmed):
                armed[body.wake.session or key, row_key(Woke(body.wake.key), "")] = entry.turn
            elif isinstance(body, WakeDisarmed):
                armed.pop((key, row_key(Woke(body.key), "")), None)
            elif goes and isinstance(body, (TurnOpened, TurnFailed)):
                inputs.add(body.row)
            elif goes and isinstance(body, TextSaid):
                said.add(body.key)
        wakes = frozenset(place for place, turn in armed.items() if turn in turns)
        about = frozenset(id for id, turn in told.origins.items() if turn in turns)
        names = Names.of(entry for entry in told.entries if entry.turn not in turns)
        return cls(key, frozenset(turns), about, wakes, frozenset(inputs), frozenset(said), names)

    def hold(self, row: Row) -> bool:
        """Whether this row goes too. What started a turn goes only where it was parked: else it runs anew."""
        if (row.session, row.key) in self.wakes and row.box == "in":
            return True
        if row.session != self.session:
            return False
        if row.box == "out":
            return row.key in self.said
        body = row.body
        if isinstance(body, Answered):
            return body.key.rpartition("/")[0] in self.turns
        if isinstance(body, Interruption):
            return body.turn in self.turns
        if isinstance(body, HistoryChanged):
            return body.message in self.messages
        return bool(row.dead) and row.key in self.inputs

    def without_preview(self, row: Row) -> Row:
        """The row of a message without its preview of one that goes. Whoever is taking it has to take it anew."""
        body = unpreviewed(row.body, self.names) if isinstance(row.body, Said) else row.body
        return row if body is row.body else replace(row, body=body, owner="", lease_until=None)
