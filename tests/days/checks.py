"""What must be true after the days: read from the file, and from what workers wrote down."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from onrecord.conversation.inputs import Said, Woke
from onrecord.conversation.outgoing import Wake
from onrecord.flows.entries import FLOWS, ClaimReleased, RunEnded, RunStarted
from onrecord.flows.state import FlowState
from onrecord.record.entry import Entry
from onrecord.record.fold import takes
from onrecord.record.kinds import (
    OutcomeFiled,
    TextSaid,
    ToolStarted,
    TurnClosed,
    TurnFailed,
    TurnInput,
    TurnInterrupted,
    TurnOpened,
    TurnPaused,
    WakeArmed,
    WakeDisarmed,
)
from onrecord.session.codec import slot_value
from onrecord.session.folding import refold
from onrecord.session.session import Session
from onrecord.session.working import Folds
from onrecord.stores import SqliteStore
from tests.days.customers import Act
from tests.days.shop import BEGIN, Clock, opening, shop
from tests.soak.diary import Diary

__all__ = ("Told", "problems", "read", "summary")

FOLDS = Folds((FLOWS,))


class Told(Struct):
    """One session as it ended: its state, its record, and its committed takes in order."""

    session: Session
    entries: list[Entry]
    takes: list[tuple[Entry, ...]] = field(default_factory=list)
    whole: list[tuple[Entry, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.takes = [tuple(take) for take in takes(self.entries)]
        self.whole = [take for take in self.takes if isinstance(take[-1].body, (TurnClosed, TurnPaused))]

    @property
    def state(self) -> FlowState:
        """Runs and claims."""
        kept = self.session.slots.get(FLOWS.name)
        return FlowState() if kept is None else slot_value(kept, FlowState)

    def bodies(self, kind: type[Any]) -> Iterator[Any]:
        """Bodies of a kind, of takes that came to their end."""
        return (entry.body for take in self.whole for entry in take if isinstance(entry.body, kind))


async def read(folder: Path) -> dict[str, Told]:
    """All sessions of a folder."""
    agent = shop(Clock(folder / "clock"), "reader", random.Random(0), Diary(folder / "diary"))  # noqa: S311 - not used
    async with SqliteStore(folder / "days.db", bodies=agent.plan.codec.kinds.values()) as store:
        found = {}
        for key in await store.sessions():
            session = await store.load(key)
            assert session is not None
            found[key.id] = Told(session, [entry async for entry in store.entries(key)])
    return found


def problems(folder: Path, diary: Diary, told: Mapping[str, Told], what: Sequence[Act]) -> Iterator[str]:
    """Every promise that was broken, as a sentence."""
    yield from _file(folder / "days.db")
    yield from (f"somebody met an unexpected error: {line['error']}" for line in diary.lines("oops"))
    yield from _inputs(told, what)
    yield from _deliveries(diary, told)
    yield from _effects(diary, told)
    fired = defaultdict[tuple[str, str], list[datetime]](list)
    for line in diary.lines("woke"):
        fired[line["session"], line["key"]].append(datetime.fromisoformat(line["at"]))
    for id, one in told.items():
        for problem in (*_state(one), *_order(one), *_runs(one), *_wakes(id, one, fired), *_repeats(one)):
            yield f"{id}: {problem}"


def _file(file: Path) -> Iterator[str]:
    db = sqlite3.connect(file)
    if (found := db.execute("pragma integrity_check").fetchone()) != ("ok",):
        yield f"the file is damaged: {found}"
    for row in db.execute("select n, session, box, kind, key, due, attempt, clean, rung, dead, owner from rows"):
        yield f"a row is stuck: {row}"
    db.close()


def _inputs(told: Mapping[str, Told], what: Sequence[Act]) -> Iterator[str]:
    """No accepted input is lost, and no message has two turns."""
    turns = Counter[tuple[str, str]]()
    for id, one in told.items():
        turns.update((id, e.body.input_key) for e in one.entries if isinstance(e.body, TurnOpened) and e.body.input_key)
        for entry in one.entries:
            if isinstance(entry.body, TurnInput) and not isinstance(entry.body.input, (Said, Woke)):
                turns[id, entry.body.input.key] += 0  # events that start nothing are not kept
    for act in what:
        if act.kind == "said" and turns[act.session, f"said::{act.key}"] != 1 and turns[act.row] != 1:
            yield f"{act.session}: message {act.key} had {turns[act.row]} turns"
    begun = {(id, body.run.trigger_key) for id, one in told.items() for body in one.bodies(RunStarted)}
    blocked = {
        (id, line.line.about.get("trigger_key")) for id, one in told.items() for line in one.bodies(OutcomeFiled)
    }  # fmt: skip
    for act in what:
        if act.text in {"shipped", "promo"} and act.row not in begun | blocked:
            yield f"{act.session}: {act.kind} {act.text} {act.key} came to nothing"


def _deliveries(diary: Diary, told: Mapping[str, Told]) -> Iterator[str]:
    """Every message that was committed was delivered, under one key with one text, and nothing else was."""
    texts = defaultdict[tuple[str, str], set[str]](set)
    for line in diary.lines("delivered"):
        texts[line["session"], line["key"]].add(line["text"])
    said = dict[tuple[str, str], str]()
    for id, one in told.items():
        for body in one.bodies(TextSaid):
            if body.text:
                if (id, body.key) in said:
                    yield f"{id}: two messages have the key {body.key}: {said[id, body.key]!r} and {body.text!r}"
                said[id, body.key] = body.text
    for name in texts.keys() | said.keys():
        if texts.get(name) != ({said[name]} if name in said else None):
            yield f"delivered: {texts.get(name)}, said: {said.get(name)!r}, key {name}"


def _effects(diary: Diary, told: Mapping[str, Told]) -> Iterator[str]:
    """Under one key of a session one effect; what a flow says it did was done, and nothing was done by no run.

    An effect without a line is one whose process died, and whose next take went another way, as a model may decide.
    """
    done = dict[tuple[str, str], dict[str, Any]]()
    for line in diary.lines("acted"):
        name = line["session"], line["key"]
        if done.setdefault(name, line["args"]) != line["args"]:
            yield f"one key stands for two effects: {line} {done[name]}"
    runs = {(id, body.run.id) for id, one in told.items() for body in one.bodies(RunStarted)}
    for id, key in done.keys() - _started(told):
        if (id, key.rsplit(":", 2)[0]) not in runs:
            yield f"an effect is that of no run: {id} {key}"
    for id, one in told.items():
        lines = [body.line for body in one.bodies(OutcomeFiled)]
        for key, count in Counter(line.key for line in lines if (line.kind, line.status) == ("do", "ok")).items():
            if count > 1 or (id, key or "") not in done:
                yield f"{id}: action {key} is told {count} times, and was done: {(id, key) in done}"


def _started(told: Mapping[str, Told]) -> set[tuple[str, str]]:
    """Session and key of every action on record."""
    return {(id, e.body.key) for id, one in told.items() for e in one.entries if isinstance(e.body, ToolStarted)}


def _state(one: Told) -> Iterator[str]:
    again = refold(one.session.key, one.entries, FOLDS, digest_key=one.session.digest_key)
    mine = one.session
    if replace(again, version=mine.version, slots={}) != replace(mine, slots={}):
        yield "its state is not what its record tells"
    if slot_value(again.slots[FLOWS.name], FlowState) != one.state:
        yield f"its runs are not what its record tells: {one.state} {again.slots}"
    if mine.pending is not None:
        yield "a question was never answered"
    if [e.seq for e in one.entries] != list(range(mine.seq)):
        yield "its entries are not numbered in order"
    for take in one.takes:
        end, opened = take[-1].body, take[0].body
        denied = isinstance(opened, TurnOpened) and opened.input_kind == "woke"
        if isinstance(end, TurnFailed) and not (end.code == "message-denied" and denied):
            yield f"a turn failed: {end.code} {end.error} {opened}"


def _order(one: Told) -> Iterator[str]:
    """Messages are taken in the order in which they were accepted."""
    numbers = [
        int(e.turn.rpartition("~")[2])
        for e in one.entries if isinstance(e.body, TurnOpened) and e.body.input_kind == "said"
    ]  # fmt: skip
    if numbers != sorted(numbers):
        yield f"messages overtook each other: {numbers}"


def _runs(one: Told) -> Iterator[str]:
    """Nobody is left waiting when nothing is to come, at most one run asks, and every run ended once at most."""
    for run in one.state.runs:
        if run.status == "waiting":
            yield f"a run waits for ever: {run}"
        if run.status == "running":
            yield f"a run stands still: {run}"
    if sum(run.status == "asking" for run in one.state.runs) > 1:
        yield "two runs are asking"
    if any(run.status == "suspended" for run in one.state.runs) and one.state.asker is None:
        yield "a run is suspended behind nobody"
    for id, count in Counter(body.run for body in one.bodies(RunEnded)).items():
        if count > 1:
            yield f"run {id} ended {count} times"


def _wakes(id: str, one: Told, fired: Mapping[tuple[str, str], list[datetime]]) -> Iterator[str]:
    """Every wake that was armed fired at its time or was taken back, and none led to two turns."""
    left, unarmed = _left(one)
    yield from (f"a wake led to a turn that was not armed: {key}" for key in unarmed)
    for key, wake in left.items():  # those that came and found nobody waiting leave nothing on record
        slack = timedelta(seconds=4)  # so far is the clock set back
        came = fired.get((id, key), ())
        if not any(at >= wake.at - slack for at in came):
            yield f"a wake was lost: {wake}, fired {came}"
        if any(at < wake.at - slack for at in came):
            yield f"a wake fired early: {wake}, fired {came}"
    for body in one.bodies(WakeArmed):
        if body.wake.key.startswith("silence:") and opening(body.wake.at, None) != body.wake.at:
            yield f"a silence was armed for the night: {body.wake}"


def _left(one: Told) -> tuple[dict[str, Wake], list[str]]:
    """The wakes that led to no turn and were not taken back; and keys of turns for which no wake was armed."""
    armed, unarmed = dict[str, Wake](), list[str]()
    for body in (entry.body for take in one.whole for entry in take):
        if isinstance(body, WakeDisarmed):
            armed.pop(body.key, None)
        elif isinstance(body, WakeArmed):
            armed.pop(body.wake.replaces or "", None)
            armed[body.wake.key] = body.wake
        elif isinstance(body, TurnInput) and isinstance(body.input, Woke) and not armed.pop(body.input.key, None):
            unarmed.append(body.input.key)
    return armed, unarmed


_COOLDOWNS = {"promo": timedelta(days=3), "nudge": timedelta(days=4)}
_ONCE = ("quote", "welcome")


def _repeats(one: Told) -> Iterator[str]:
    """What starts once starts once, and a cooldown is waited for; what is said once is said once."""
    begun = defaultdict[str, list[datetime]](list)
    for body in (entry.body for take in one.whole for entry in take):
        if isinstance(body, RunStarted) and not body.nonce:
            begun[body.run.flow_id].append(body.at)
        elif isinstance(body, ClaimReleased) and not body.nonce:
            begun[body.flow].pop()
    for flow in _ONCE:
        if len(begun[flow]) > 1:
            yield f"{flow} started {len(begun[flow])} times"
    for flow, window in _COOLDOWNS.items():
        if any(later - earlier < window for earlier, later in zip(begun[flow], begun[flow][1:], strict=False)):
            yield f"{flow} started within its cooldown: {begun[flow]}"
    said = Counter(body.about.get("step_id") for body in one.bodies(TextSaid))
    for step in ("told", "hi"):
        if said[step] > 1:
            yield f"the line {step!r}, which is said once, was said {said[step]} times"


def summary(diary: Diary, told: Mapping[str, Told]) -> Iterator[tuple[str, Any]]:
    """What happened, in numbers."""
    lines = Counter(line["what"] for line in diary.lines("delivered", "acted", "woke"))
    opened = Counter(e.body.input_kind for one in told.values() for e in one.entries if isinstance(e.body, TurnOpened))
    yield from (("sessions", len(told)), ("turns", opened.total()))
    yield from ((f"  {kind}", count) for kind, count in sorted(opened.items()))
    yield ("takes after the first", sum(take[0].take > 1 for one in told.values() for take in one.takes))
    yield ("turns interrupted", sum(isinstance(t[-1].body, TurnInterrupted) for o in told.values() for t in o.takes))
    yield from (("wakes that came", lines["woke"]), ("messages delivered", lines["delivered"]))
    yield ("effects", lines["acted"])
    acted = {(line["session"], line["key"]) for line in diary.lines("acted")}
    yield ("  of takes that died and went another way", len(acted - _started(told)))
    failed = Counter(t[-1].body.code for o in told.values() for t in o.takes if isinstance(t[-1].body, TurnFailed))
    yield from ((f"turns failed: {code}", count) for code, count in failed.items())
    codes = Counter(
        f"  {body.line.kind} {body.line.code or body.line.status}"
        for one in told.values() for body in one.bodies(OutcomeFiled)
    )  # fmt: skip
    yield from sorted(codes.items())
    last = max((e.at for one in told.values() for e in one.entries), default=BEGIN)
    yield ("days", round((last - BEGIN).total_seconds() / 86400, 1))
    yield from sorted(Counter(f"  log: {line['text'][:70]}" for line in diary.lines("log")).items())
    yield from sorted(Counter(f"  told: {line['error']}" for line in diary.lines("told")).items())
