"""Verifying: numbers follow each other, causes exist, the record folds to the session, every receipt is proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from onrecord.cli.record_file import comparable, state_digest
from onrecord.cli.sources import Held
from onrecord.cli.terminal import plural
from onrecord.errors import RecordInvalid
from onrecord.jsonio import Json
from onrecord.record.entry import Entry
from onrecord.record.fold import Fold
from onrecord.record.kinds import Erased, HistoryChanged, ModelRequested
from onrecord.session.codec import slot_value
from onrecord.session.folding import Folds
from onrecord.session.session import Session, SlotState
from onrecord.session.walking import Walked, walk
from onrecord.turn.audit import audit

__all__ = ("Check", "checks", "departures", "erasures", "gap_lines")

MOST_TOLD = 20
"""How many gaps of one check are named one by one."""


class Check(Struct, frozen=True):
    """One thing that was looked at: what holds, or every gap. ``unchecked`` is what could not be looked at.

    ``erased`` says what is not there any more, and is nothing wrong.
    """

    holds: str
    gaps: tuple[str, ...] = ()
    unchecked: str = ""
    erased: tuple[str, ...] = ()


def checks(held: Held) -> Iterator[Check]:
    """Everything that can be verified about a record, in order."""
    entries = held.entries
    if held.header is not None or held.broken:
        yield Check("every line is as it was written", held.broken)
    if held.header is not None and held.header.redacted:
        yield Check("", erased=("redacted when it was exported: what is proved is what was left",))
    span = f", numbers {entries[0].seq} to {entries[-1].seq}" if entries else ""
    yield Check(f"{plural(len(entries), 'entry', 'entries')}{span} without a gap", tuple(_numbering(held)))
    if erased := tuple(erasures(entries)):
        yield Check("", erased=erased)
    walked = list[Walked]()
    try:
        walked.extend(walk(Session(key=held.key, digest_key=held.digest_key), entries, held.folds))
    except RecordInvalid as error:
        yield Check("the record folds", (str(error),))
        return
    session = walked[-1].session if walked else None
    yield _state_check(held, session or Session(key=held.key))
    receipts = [e.body.receipt for e in entries if isinstance(e.body, ModelRequested) and e.body.receipt is not None]
    requests = sum(not receipt.erased for receipt in receipts)
    if held.session is None and held.header is None:
        yield Check("", unchecked="receipts: a file without its header line does not say the key of its digests")
        return
    found = list(audit(walked, held.digest_key))
    gaps = tuple(f"entry {seq}: {gap.what}: {gap.why}" for seq, gap in found if not gap.erased)
    lost = sorted({seq for seq, gap in found if gap.erased})
    told: tuple[str, ...] = ()
    if lost:
        last = max((entry.seq for entry in entries if _erases(entry)), default=-1)
        gaps += tuple(
            f"entry {seq}: it says that history was erased, no later entry does" for seq in lost if seq > last
        )
        told = (f"what {plural(len(lost), 'request')} showed: erased, so that nobody can rebuild them",)
    yield Check(f"{plural(requests, 'request')} rebuilt, every digest proved", gaps, erased=told)


def erasures(entries: Sequence[Entry]) -> Iterator[str]:
    """What of a record was erased, one line for each time and reason."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        if isinstance(entry.body, Erased):
            groups.setdefault((f"{entry.body.at:%Y-%m-%d %H:%M}", entry.body.why), []).append(entry)
    for (at, why), gone in groups.items():
        turns = plural(len({entry.turn for entry in gone}), "turn")
        yield f"{plural(len(gone), 'entry', 'entries')} of {turns}: erased on {at}: {why}"


def _erases(entry: Entry) -> bool:
    return isinstance(entry.body, HistoryChanged) and entry.body.op == "erase"


def _numbering(held: Held) -> Iterator[str]:
    """Sequence numbers from 0 on; places within a turn unique, causes before their effects."""
    places: set[tuple[str, int]] = set()
    expected = 0
    for entry in held.entries:
        if entry.seq != expected:
            yield f"entry {expected} is missing: entry {entry.seq} stands in its place"
        expected = entry.seq + 1
        if (entry.turn, entry.n) in places:
            yield f"entry {entry.seq} has the place {entry.n} of another entry of its turn"
        if entry.cause is not None and (entry.turn, entry.cause) not in places:
            yield f"entry {entry.seq} names a cause, {entry.cause}, that its turn does not have"
        places.add((entry.turn, entry.n))
    if held.session is not None and held.session.seq != expected:
        yield f"the session goes on at entry {held.session.seq}, the record ends before {expected}"


def _state_check(held: Held, session: Session) -> Check:
    gaps = tuple(departures(held, session))
    if held.session is not None:
        count = plural(len(held.session.conversation.messages), "message")
        told = f"the record folds to the stored session ({count}, version {held.session.version})"
        return Check(told, gaps, _unread_slots(held))
    if held.header is None:
        return Check("the record folds")
    count = plural(len(session.conversation.messages), "message")
    return Check(f"the record folds to the exported session ({count})", gaps)


def departures(held: Held, session: Session) -> Iterator[str]:
    """Where a folded session is not the one that is known: the stored one by name, an exported one by its digest."""
    if held.session is not None:
        yield from _differences(held.session, session, held.folds, _unfoldable(held))
    elif held.header is not None and state_digest(session, held.digest_key) != held.header.state:
        yield "the record folds to another session than the one that was exported"


def _state(slot: SlotState | None, fold: Fold[Any]) -> Any:
    return fold.start() if slot is None else slot_value(slot, fold.state)


def _unfoldable(held: Held) -> tuple[str, ...]:
    """Features that read entries which are gone, and whose state no later erasure filed."""
    last = max((entry.seq for entry in held.entries if _erases(entry)), default=-1)
    gone = {entry.body.was for entry in held.entries if isinstance(entry.body, Erased) and entry.seq > last}
    return tuple(fold.name for fold in held.folds.all if fold.scope == "session" and gone & fold.kinds)


def _differences(stored: Session, session: Session, folds: Folds, unfoldable: Sequence[str]) -> Iterator[str]:
    """Where a folded session is not the stored one, by name, without quoting either."""
    kept, made = comparable(stored), comparable(session)
    messages, told = kept.pop("messages"), made.pop("messages")
    for name in sorted(kept.keys() | made.keys()):
        if kept.get(name) != made.get(name):
            yield f"{name} of the session is not what the record folds to{_inside(kept.get(name), made.get(name))}"
    for place, (one, other) in enumerate(zip(messages, told, strict=False)):
        if one != other:
            parts = sorted(k for k in one.keys() | other.keys() if one.get(k) != other.get(k))
            name = one.get("id", place)
            yield f"message {place + 1} ({name}) is not what the record folds to: {', '.join(parts)}"
    if len(messages) != len(told):
        yield f"{plural(len(messages), 'message')} are stored, the record folds to {len(told)}"
    for fold in folds.all:
        if fold.scope != "session" or fold.name in unfoldable:
            continue
        # A state that is not there is one that begins.
        one, other = (_state(side.slots.get(fold.name), fold) for side in (stored, session))
        if one != other:
            yield f"the state of feature {fold.name!r} is not what the record folds to"


def _inside(kept: Json, made: Json) -> str:
    """Which keys differ, where both are objects."""
    if not isinstance(kept, dict) or not isinstance(made, dict):
        return ""
    return f": {', '.join(sorted(str(k) for k in kept.keys() | made.keys() if kept.get(k) != made.get(k)))}"


def _unread_slots(held: Held) -> str:
    """Feature states that nothing here can fold."""
    names = [] if held.session is None else sorted(held.session.slots.keys() - {f.name for f in held.folds.all})
    told = [f"the state of {_named(names)}: --agent MODULE:AGENT brings the folds"] if names else []
    if gone := _unfoldable(held):
        told.append(f"the state of {_named(gone)}: entries that it was made of are erased")
    return "; ".join(told)


def _named(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def gap_lines(check: Check) -> Iterator[str]:
    """The gaps of a check, the first ones each on a line."""
    yield from check.gaps[:MOST_TOLD]
    if len(check.gaps) > MOST_TOLD:
        yield f"and {len(check.gaps) - MOST_TOLD} more"
