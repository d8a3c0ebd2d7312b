"""What must be true after a soak: read from the file, and from what everybody wrote down."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from onrecord.conversation.inputs import Woke, row_key
from onrecord.record.entry import Entry
from onrecord.record.fold import takes
from onrecord.record.kinds import (
    TextSaid,
    ToolReturned,
    ToolStarted,
    TurnClosed,
    TurnFailed,
    TurnInput,
    TurnInterrupted,
    TurnOpened,
    TurnPaused,
    WakeArmed,
)
from onrecord.session.folding import refold
from onrecord.session.session import Session
from onrecord.stores import SqliteStore
from tests.soak.diary import Diary

__all__ = ("Told", "problems", "read", "session_problems", "summary")


class Told(Struct):
    """One session as it ended: its state, and its committed takes in order."""

    session: Session
    entries: list[Entry]
    takes: list[tuple[Entry, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.takes = [tuple(take) for take in takes(self.entries)]

    @property
    def is_reset(self) -> bool:
        """Whether this is one of those that are reset now and then."""
        return self.session.key.id.startswith("r")

    @property
    def is_erased(self) -> bool:
        """Whether parts of it are erased now and then: then what is left must fold, and no more can be asked of it."""
        return self.session.key.id.startswith("e")


async def read(file: Path) -> dict[str, Told]:
    """All sessions of a file."""
    async with SqliteStore(file) as store:
        found = {}
        for key in await store.sessions():
            session = await store.load(key)
            assert session is not None
            found[key.id] = Told(session, [entry async for entry in store.entries(key)])
    return found


def problems(file: Path, diary: Diary, told: dict[str, Told]) -> Iterator[str]:
    """Every promise that was broken, as a sentence."""
    yield from _file(file)
    for line in diary.lines("oops"):
        yield f"somebody met an unexpected error: {line['error']}"
    kept = {id: one for id, one in told.items() if not one.is_erased}
    yield from _inputs(diary, kept)
    yield from _deliveries(diary, kept)
    yield from _effects(diary, kept)
    for id, one in told.items():
        yield from (f"{id}: {problem}" for problem in (*_failures(one), *session_problems(one)))


def session_problems(one: Told) -> Iterator[str]:
    """Every promise about one session that was broken."""
    yield from _state(one)
    if not one.is_erased:
        yield from (*_order(one), *_wakes(one), *_calls(one))


def _file(file: Path) -> Iterator[str]:
    db = sqlite3.connect(file)
    if (found := db.execute("pragma integrity_check").fetchone()) != ("ok",):
        yield f"the file is damaged: {found}"
    for row in db.execute("select n, session, box, kind, key, attempt, clean, rung, dead, owner from rows"):
        yield f"a row is stuck: {row}"
    db.close()


def _inputs(diary: Diary, told: dict[str, Told]) -> Iterator[str]:
    """No accepted input is lost, and none has two turns."""
    turns = Counter[tuple[str, str]]()
    for id, one in told.items():
        turns.update((id, e.body.input_key) for e in one.entries if isinstance(e.body, TurnOpened) and e.body.input_key)
    withdrawn = {(line["session"], line["key"]) for line in diary.lines("withdrawing")}
    for line in diary.lines("accepted"):
        session = line["session"]
        is_there = turns[session, line["row"]] or (session, line["key"]) in withdrawn
        if not is_there and not session.startswith("e"):
            yield f"an accepted input was lost: {line}"
    for (id, key), count in turns.items():
        if count > 1 and not told[id].is_reset:
            yield f"{id}: {key} had {count} turns"


def _is_whole(take: tuple[Entry, ...]) -> bool:
    return isinstance(take[-1].body, (TurnClosed, TurnPaused))


def _deliveries(diary: Diary, told: dict[str, Told]) -> Iterator[str]:
    """Every message that was committed was delivered, under one key with one text, and nothing else was."""
    texts = defaultdict[tuple[str, str], set[str]](set)
    for line in diary.lines("delivered"):
        texts[line["session"], line["key"]].add(line["text"])
    said = {
        (id, e.body.key): e.body.text
        for id, one in told.items() for take in one.takes if _is_whole(take)
        for e in take if isinstance(e.body, TextSaid) and e.body.text
    }  # fmt: skip
    for name, found in texts.items():
        if name[0] not in told:
            continue
        if len(found) > 1:
            yield f"a message key was delivered with {len(found)} texts: {name} {found}"
        elif name not in said:
            yield f"a message was delivered that nobody said: {name} {found}"
        elif found != {said[name]}:
            yield f"a message was delivered with another text: {name} {found} {said[name]!r}"
    yield from (f"a message was never delivered: {name}" for name in said if name not in texts)


def _effects(diary: Diary, told: dict[str, Told]) -> Iterator[str]:
    """Under one key one effect, and what is recorded of a booking is what the till said of it."""
    receipts = {line["key"]: line["receipt"] for line in diary.lines("booked")}
    for line in diary.lines("asked to book"):
        if line["differs"]:
            yield f"one key stood for two effects: {line}"
    for id, one in told.items():
        keys = {
            e.body.call: e.body.key for e in one.entries if isinstance(e.body, ToolStarted) and e.body.name != "look"
        }
        for entry in one.entries:
            body = entry.body
            if not isinstance(body, ToolReturned) or body.status != "returned" or body.call not in keys:
                continue
            (part,) = body.result
            text = getattr(part, "text", "")
            if text not in {receipts.get(keys[body.call]), "not given back"}:
                yield f"{id}: a call's result is not that of its effect: {body.call} {text!r}"


_FAILURES = frozenset({
    "retries-used-up", "out-of-attempts", "model-network", "model-server", "model-rate", "model-overload",
})  # fmt: skip


def _failures(one: Told) -> Iterator[str]:
    """Nothing fails but the vendor."""
    for entry in one.entries:
        if isinstance(entry.body, TurnFailed) and entry.body.code not in _FAILURES:
            yield f"a turn failed for no reason known: {entry.body.code} {entry.body.error}"


def _state(one: Told) -> Iterator[str]:
    again = refold(one.session.key, one.entries, digest_key=one.session.digest_key)
    if replace(again, version=one.session.version) != one.session:
        yield "its state is not what its record tells"
    if one.session.pending is not None:
        yield "a question was never answered"
    if [e.seq for e in one.entries] != list(range(one.session.seq)):
        yield "its entries are not numbered in order"


def _order(one: Told) -> Iterator[str]:
    """Takes of a session follow each other, and messages are taken in the order in which they were accepted."""
    for before, after in zip(one.takes, one.takes[1:], strict=False):
        ends = [e.body for e in (before[-1], after[-1])]
        if any(isinstance(end, TurnInterrupted) and end.cause == "conflict" for end in ends):
            continue
        if after[0].at < before[-1].at:
            yield f"two takes overlap: {before[0].turn}/{before[0].take} and {after[0].turn}/{after[0].take}"
    parked = {e.turn for e in one.entries if isinstance(e.body, TurnFailed) and e.body.row}
    numbers = [
        int(e.turn.rpartition("~")[2])
        for e in one.entries if isinstance(e.body, TurnOpened) and e.body.input_kind == "said" and e.turn not in parked
    ]  # fmt: skip
    if numbers != sorted(numbers):
        yield f"messages overtook each other: {numbers}"


def _wakes(one: Told) -> Iterator[str]:
    """Every wake that was armed fired, once."""
    armed = Counter(
        (row_key(Woke(e.body.wake.key), ""), e.body.wake.payload)
        for take in one.takes if _is_whole(take) for e in take if isinstance(e.body, WakeArmed)
    )  # fmt: skip
    fired = Counter(
        (row_key(e.body.input, ""), e.body.input.payload)
        for e in one.entries if isinstance(e.body, TurnInput) and isinstance(e.body.input, Woke)
    )  # fmt: skip
    if armed != fired:
        yield f"wakes armed and not fired: {armed - fired}; fired and not armed: {fired - armed}"


def _calls(one: Told) -> Iterator[str]:
    """Every call of a turn that ended has exactly one recorded result."""
    ended = {take[0].turn for take in one.takes if not isinstance(take[-1].body, TurnPaused)}
    started, returned = set[tuple[str, str]](), Counter[tuple[str, str]]()
    for entry in one.entries:
        if isinstance(entry.body, ToolStarted):
            started.add((entry.turn, entry.body.call))
        elif isinstance(entry.body, ToolReturned):
            returned[entry.turn, entry.body.call] += 1
    for turn, call in started:
        if turn in ended and returned[turn, call] != 1:
            yield f"call {call} has {returned[turn, call]} results"
    yield from (f"call {call} has {count} results" for (_, call), count in returned.items() if count > 1)


def summary(diary: Diary, told: dict[str, Told]) -> Iterator[tuple[str, Any]]:
    """What happened, in numbers."""
    lines = Counter(line["what"] for line in diary.lines("accepted", "delivered", "booked", "erased"))
    ends = Counter(
        type(take[-1].body).__name__ for one in told.values() for take in one.takes
    )  # fmt: skip
    opened = sum(isinstance(e.body, TurnOpened) for one in told.values() for e in one.entries)
    retaken = sum(take[0].take > 1 for one in told.values() for take in one.takes)
    yield from (("inputs accepted", lines["accepted"]), ("turns", opened), ("takes committed", sum(ends.values())))
    yield from sorted((f"  {name}", count) for name, count in ends.items())
    yield from (("of them not the first take", retaken), ("messages delivered", lines["delivered"]))
    yield from (("effects booked", lines["booked"]), ("times that something was erased", lines["erased"]))
    yield from sorted(Counter(f"  log: {line['text'][:70]}" for line in diary.lines("log")).items())
    yield from sorted(Counter(f"  told: {line['error']}" for line in diary.lines("told", "store failed")).items())
