"""One question, two hosts over one file, people who answer where they like: it is decided once, and runs once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, AskField, Question, approved, declined
from onrecord.errors import UsageError
from onrecord.governance import CheckIn, NeedsCheckIn, request_input
from onrecord.host import Host
from onrecord.host.questions import Caller
from onrecord.jsonio import Json
from onrecord.record.entry import Entry
from onrecord.record.kinds import ToolReturned, ToolStarted, TurnResumed
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from tests.turn.acting import keeping

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

BOSS = Caller("Maria", audiences=frozenset({"approver"}))
REFUSED = {"stale-answer", "decision-required", "answer-invalid", "not-the-audience"}


class Desk:
    """Two hosts, each with its own agent, built alike, and its own store over one file."""

    def __init__(self, path: Path, agents: Sequence[Agent[Any, Any]], effects: FakeEffects) -> None:
        self.path, self.agents, self.effects = path, agents, effects
        self.hosts = [self.opened(0), self.opened(1)]

    def opened(self, at: int) -> Host[Any, Any]:
        """A host as a new process would make it."""
        store = SqliteStore(self.path, clock=self.effects.now)
        return Host(self.agents[at], store=store, effects=self.effects, poll_s=0.01)

    async def shut(self, at: int) -> None:
        """Lets go of a host and its file."""
        await self.hosts[at].close(drain_s=0)
        await self.hosts[at].store.close()

    async def again(self, at: int) -> None:
        """A new process in its place."""
        await self.shut(at)
        self.hosts[at] = self.opened(at)

    async def told(self, at: int, answer: Answered, caller: Caller = BOSS) -> str:
        """What came of an answer: the status of its turn, or the code that refused it."""
        try:
            result = await self.hosts[at].answer("s", answer, caller=caller)
        except UsageError as error:
            return error.code
        return str(result.lines[0].code) if result.status == "ignored" else result.status

    async def entries(self) -> list[Entry]:
        """The record."""
        return [entry async for entry in self.hosts[0].store.entries("s")]


def paying(ran: list[Any], *first: Any) -> Agent[Any, Any]:
    """Asks before it pays, and waits for an hour."""
    pay = Tool("pay", keeping(ran, "pay", "paid"), "Pay.", traits=(NeedsCheckIn(),))
    return Agent(ScriptedModel(*first, *["Hello."] * 40), tools=[pay], features=[CheckIn(expires_s=3600)])


ACTS = ("yes", "no", "yes and no", "yes twice", "wrong", "stale", "stranger", "message", "restart", "wait", "expire")
acts = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 1)), max_size=6)


async def act(desk: Desk, question: Question, name: str, at: int) -> list[str]:
    """What one does, and what each answer came to."""
    yes, no = approved(question, by="Maria"), declined(question, by="Eva")
    match name:
        case "yes":
            return [await desk.told(at, yes)]
        case "no":
            return [await desk.told(at, no)]
        case "yes and no":
            return [*await asyncio.gather(desk.told(at, yes), desk.told(1 - at, no))]
        case "yes twice":
            return await asyncio.gather(*(desk.told(place, yes) for place in (at, 1 - at, at)))
        case "wrong":
            return [await desk.told(at, Answered(question.key, value="sure"))]
        case "stale":
            return [await desk.told(at, Answered(f"{question.key}9", approved=True))]
        case "stranger":
            return [await desk.told(at, yes, Caller("Ana"))]
        case "message":
            await desk.hosts[at].turn("s", "Hello?")
        case "restart":
            await desk.again(at)
        case "expire":
            desk.effects.advance(hours=1)
            await desk.hosts[at].work(once=True)
        case _:
            desk.effects.advance(minutes=1)
    return []


async def played(path: Path, held: Sequence[tuple[str, int]]) -> tuple[list[Any], list[str], list[Entry]]:
    """What ran, what every answer came to, and the record."""
    ran: list[Any] = []
    effects = FakeEffects()
    desk = Desk(path, [paying(ran, call("pay")), paying(ran)], effects)
    try:
        question = (await desk.hosts[0].turn("s", "Pay")).question
        assert question is not None
        told: list[str] = []
        for name, at in (*held, ("yes", 1)):
            told += await act(desk, question, name, at)
        session = await desk.hosts[0].store.load("s")
        assert session is not None
        assert session.pending is None
        return ran, told, await desk.entries()
    finally:
        for at in (0, 1):
            await desk.shut(at)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts)
@example([("yes and no", 0)])
@example([("wrong", 1), ("stranger", 0), ("restart", 0), ("restart", 1), ("yes twice", 1)])
@example([("expire", 1), ("yes", 0), ("no", 1)])
def test_whoever_answers_wherever_it_is_decided_once(tmp_path_factory: pytest.TempPathFactory, held: Any) -> None:
    """One execution where the record says yes, none where it says no or too late; every other answer was refused."""
    path = tmp_path_factory.mktemp("desk") / "talk.db"
    ran, told, entries = asyncio.run(played(path, held))
    started = [entry for entry in entries if isinstance(entry.body, ToolStarted)]
    (returned,) = [entry.body for entry in entries if isinstance(entry.body, ToolReturned)]
    assert len([entry for entry in entries if isinstance(entry.body, TurnResumed)]) == 1
    assert len(ran) == len(started) == (1 if returned.status == "returned" else 0)
    assert returned.status in {"returned", "denied"}
    assert set(told) <= {"answered", *REFUSED}


# ---- values, bit by bit, from two places

A, B = AskField("a", schema={"type": "string"}), AskField("b", schema={"type": "integer"})


def collecting(got: list[Any], *first: Any) -> Agent[Any, Any]:
    """Collects two values, and keeps what it got."""

    async def fill(args: Mapping[str, Json], ctx: ToolContext[Any]) -> ToolResult:
        result = await request_input(ctx, "Which?", (A, B))
        got.append(result.value)
        return result

    return Agent(ScriptedModel(*first, *["Done."] * 40), tools=[Tool("fill", fill, "Fill.")])


GIVEN: list[Any] = [{"a": "x"}, {"a": "y"}, {"b": 1}, {"b": 2}, {"a": "z", "b": 3}, {"b": "no"}, {"c": 1}]


async def filled(path: Path, held: Sequence[tuple[int, int, bool]]) -> tuple[list[Any], list[dict[str, Any]]]:
    """What was collected, and the answers that were taken, in order."""
    got: list[Any] = []
    desk = Desk(path, [collecting(got, call("fill")), collecting(got)], FakeEffects())
    first = (await desk.hosts[0].turn("s", "Go")).question
    assert first is not None
    taken: list[dict[str, Any]] = []
    try:
        for value, at, old in (*held, (0, 0, False), (2, 0, False), (0, 1, False), (2, 1, False)):
            session = await desk.hosts[at].store.load("s")
            assert session is not None
            question = first if old or session.question is None else session.question
            is_open = session.question is not None and session.question.key == question.key
            told = await desk.told(at, Answered(question.key, value=GIVEN[value]), Caller("ana"))
            assert (told in {"answered", "paused"}) <= is_open
            if told in {"answered", "paused"}:
                taken.append(GIVEN[value])
        return got, taken
    finally:
        for at in (0, 1):
            await desk.shut(at)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(GIVEN) - 1), st.integers(0, 1), st.booleans()), max_size=4))
def test_partial_answers_add_up_wherever_they_are_given(
    tmp_path_factory: pytest.TempPathFactory, held: list[tuple[int, int, bool]]
) -> None:
    """Each is of the question that is open then; wrong and late ones change nothing."""
    got, taken = asyncio.run(filled(tmp_path_factory.mktemp("desk") / "talk.db", held))
    whole: dict[str, Any] = {}
    for values in taken:
        whole |= {name: value for name, value in values.items() if name not in whole}
    assert [one["values"] for one in got] == [whole]
