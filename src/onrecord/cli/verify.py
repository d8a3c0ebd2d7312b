"""Verifying: numbers follow each other, causes exist, the record folds to the session, every receipt is proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from onrecord.cli.record_file import comparable, state_digest
from onrecord.cli.sources import Held
from onrecord.cli.terminal import plural
from onrecord.errors import RecordInvalid
from onrecord.jsonio import Json
from onrecord.record.kinds import ModelRequested
from onrecord.session.codec import slot_value
from onrecord.session.folding import Folds
from onrecord.session.session import Session
from onrecord.turn.audit import Walked, audit, walk

__all__ = ("Check", "checks", "departures", "gap_lines")

MOST_TOLD = 20
"""How many gaps of one check are named one by one."""


class Check(Struct, frozen=True):
    """One thing that was looked at: what holds, or every gap. ``unchecked`` is what could not be looked at."""

    holds: str
    gaps: tuple[str, ...] = ()
    unchecked: str = ""


def checks(held: Held) -> Iterator[Check]:
    """Everything that can be verified about a record, in order."""
    entries = held.entries
    if held.header is not None or held.broken:
        yield Check("every line is as it was written", held.broken)
    span = f", numbers {entries[0].seq} to {entries[-1].seq}" if entries else ""
    yield Check(f"{plural(len(entries), 'entry', 'entries')}{span} without a gap", tuple(_numbering(held)))
    walked = list[Walked]()
    try:
        walked.extend(walk(Session(key=held.key, digest_key=held.digest_key), entries, held.folds))
    except RecordInvalid as error:
        yield Check("the record folds", (str(error),))
        return
    session = walked[-1].session if walked else None
    yield _state_check(held, session or Session(key=held.key))
    requests = sum(isinstance(e.body, ModelRequested) and e.body.receipt is not None for e in entries)
    if held.session is None and held.header is None:
        yield Check("", unchecked="receipts: a file without its header line does not say the key of its digests")
        return
    gaps = tuple(f"entry {seq}: {gap.what}: {gap.why}" for seq, gap in audit(walked, held.digest_key))
    yield Check(f"{plural(requests, 'request')} rebuilt, every digest proved", gaps)


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
        yield from _differences(held.session, session, held.folds)
    elif held.header is not None and state_digest(session, held.digest_key) != held.header.state:
        yield "the record folds to another session than the one that was exported"


def _differences(stored: Session, session: Session, folds: Folds) -> Iterator[str]:
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
        one, other = stored.slots.get(fold.name), session.slots.get(fold.name)
        if fold.scope == "session" and (one is None or other is None or slot_value(one, fold.state) != other.value):
            yield f"the state of feature {fold.name!r} is not what the record folds to"


def _inside(kept: Json, made: Json) -> str:
    """Which keys differ, where both are objects."""
    if not isinstance(kept, dict) or not isinstance(made, dict):
        return ""
    return f": {', '.join(sorted(str(k) for k in kept.keys() | made.keys() if kept.get(k) != made.get(k)))}"


def _unread_slots(held: Held) -> str:
    """Feature states that nothing here can fold."""
    names = [] if held.session is None else sorted(held.session.slots.keys() - {f.name for f in held.folds.all})
    if not names:
        return ""
    return f"the state of {_named(names)}: --agent MODULE:AGENT brings the folds"


def _named(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def gap_lines(check: Check) -> Iterator[str]:
    """The gaps of a check, the first ones each on a line."""
    yield from check.gaps[:MOST_TOLD]
    if len(check.gaps) > MOST_TOLD:
        yield f"and {len(check.gaps) - MOST_TOLD} more"
