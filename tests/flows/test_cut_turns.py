"""A turn that is cut anywhere leaves nothing behind: taken again it comes to the same, and stopped it never was."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Happened, Input, Interruption, Said, Started, Woke, approved
from onrecord.flows import (
    Collect,
    Do,
    Flow,
    Flows,
    If,
    Ok,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Say,
    Wait,
    WaitEvent,
)
from onrecord.flows.state import FlowState
from onrecord.jsonio import Json, dumps
from onrecord.session import pack, unpack
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.director import Stage
from onrecord.turn.moments import Hooks
from onrecord.turn.turn import Turn
from tests.flows.flow_machine import Crash, Mortal, told
from tests.flows.playing import FIELDS, says
from tests.flows.test_questions import asking_action

pytestmark = pytest.mark.unit

ROOM = Flow(
    "room", on=[OnMessage("wants a room")], clear_on_start=["ok"],
    steps=[
        Do("notify", id="note", args={"text": "{{data.name}}"}), Collect("name", "company", id="who"),
        Say("Thanks, {{data.name}}.", id="thanks", once=True), Wait("1h", id="rest", else_="bye"),
        Say("Bye.", id="bye"),
    ],
)  # fmt: skip
RIVAL = Flow(
    "rival", on=[OnMention("a rival", repeat="always")],
    steps=[If({"known": ["name"]}, id="if", then="do", else_="do"), Do("notify", id="do"), WaitEvent("paid", id="ev")],
)  # fmt: skip
NUDGE = Flow("nudge", on=[OnSilence("1h", repeat="always")], steps=[Say("Still there?", id="s")])
PAID = Flow("paid", on=[OnEvent("paid")], steps=[Say("Got it.", id="s"), Do("notify", id="n"), Wait("1d", id="w")])
ASK = Flow(
    "ask", on=[OnEvent("refund")], steps=[Say("Let me ask.", id="s"), Do("confirm", id="c"), Say("Done.", id="d")]
)
HELP = Flow("help", on=[OnMessage("needs help")], steps=[Collect("ok", id="q", question="Is it right?")])
FLOWS = (ROOM, RIVAL, NUDGE, PAID, ASK, HELP)
JUDGED: Mapping[str, Json] = {
    "flows": {"room": 90, "help": 0}, "mentions": {"rival": True}, "fields": {"name": "Rui"}, "asks": True
}  # fmt: skip
ROUNDS: list[Any] = [["A moment.", call("look")], says("Which company?", company="Acme")]
SAID = Said("A room, cheaper than theirs", key="m1")


class Watched:
    """A director whose turn is stopped before its n-th verb."""

    name = "flows"

    def __init__(self, flows: Flows) -> None:
        self.flows, self.verbs, self.at = flows, 0, -1

    def hooks(self, spec: AgentSpec) -> Hooks:
        """Those of the flows."""
        return self.flows.hooks(spec)

    async def direct(self, turn: Turn, stage: Stage) -> None:
        """The flows direct."""
        self.verbs = 0
        await self.flows.direct(turn, Counted(self, turn, stage))


class Counted:
    """A stage that counts its verbs."""

    def __init__(self, by: Watched, turn: Turn, stage: Stage) -> None:
        self._by, self._turn, self._stage = by, turn, stage

    def __getattr__(self, name: str) -> Any:
        by = self._by
        if by.verbs == by.at:
            self._turn.interrupt(Interruption(id="i1"))
        by.verbs += 1
        return getattr(self._stage, name)


class World:
    """An agent with flows, its clock, and how often which action was called, by its key."""

    def __init__(self, *flows: Flow) -> None:
        self.clock, self.acted = Mortal(), list[str]()
        self.model = ScriptedModel()
        tool = Tool("notify", self._notify, parameters={"type": "object", "properties": {"text": {}}})
        director = Flows(
            *flows, fields=FIELDS, actions=[tool, asking_action([])], events=["paid", "refund"], lone_flow="score"
        )
        self.director = Watched(director)
        look = Tool("look", lambda *_: ToolResult("seen", data={"size": "1-10"}), read_only=True)
        self.agent: Agent[Any, str] = Agent(self.model, name="Ana", tools=[look], director=self.director)

    def _notify(self, args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
        self.acted.append(ctx.key)
        return Ok()

    async def take(self, input: Input, session: Session | None, *, stopped_before: int = -1) -> Any:
        """One take, with a model that says what it always says; perhaps it is stopped before a verb."""
        self.clock.names, self.acted, self.director.at = 0, [], stopped_before
        self.model._queues = {"speak": [*ROUNDS], "judge": [dumps(JUDGED).decode()], "consult": []}
        return await self.agent.turn(input, session=session or SessionKey("s1"), effects=self.clock)

    def state(self, session: Session | None) -> FlowState:
        """What flows keep of a session."""
        return FlowState() if session is None else self.director.flows.state(session)


async def world_with(*inputs: Input) -> tuple[World, Session | None]:
    """A world, and its session after these inputs."""
    world, session = World(*FLOWS), None
    for input in inputs:
        session = (await world.take(input, session)).session
        world.clock.advance(minutes=1)
    return world, session


TURNS: Mapping[str, tuple[Input, ...]] = {
    "a message": (SAID,),
    "a reply": (SAID, Said("Hello?", key="m2")),
    "an event": (SAID, Happened("paid", key="e1")),
    "a question": (SAID, Happened("refund", key="e1")),
    "a start": (Started("help", key="k1"),),
    "a timer": (SAID, Woke("room#m1:rest:1789909200000")),
    "a silence": (SAID, Woke("silence:nudge:s1:1789905600000")),
}


@pytest.mark.parametrize("name", TURNS)
async def test_a_process_may_die_before_any_entry(name: str) -> None:
    """Nothing of the take remains: another process takes the input again, and it comes to the same.

    Actions run again, under the same keys and in the same order.
    """
    *earlier, input = TURNS[name]
    world, session = await world_with(*earlier)
    whole = await world.take(input, session)
    expected, keys, looks = told(whole), world.acted, 0
    assert whole.changed
    got: Any = None
    while got is None:
        world.clock.left = looks
        looks += 1
        with suppress(Crash):
            got = await world.take(input, None if session is None else unpack(pack(session)))
        assert world.acted == keys[: len(world.acted)]
    assert told(got) == expected
    assert looks > len(whole.entries)


@pytest.mark.parametrize("name", [name for name in TURNS if name != "a question"])
async def test_a_turn_may_be_stopped_before_any_verb(name: str) -> None:
    """Flows are as they were, and nothing goes out; the next message goes on from there."""
    *earlier, input = TURNS[name]
    world, session = await world_with(*earlier)
    whole = await world.take(input, session)
    verbs = world.director.verbs
    assert (whole.status not in ("interrupted", "ignored"), verbs > 1) == (True, True)
    for verb in range(verbs):
        stopped = await world.take(input, session, stopped_before=verb)
        assert stopped.status == "interrupted"
        assert (stopped.messages, stopped.wakes, stopped.disarmed) == ((), (), ())
        assert world.state(stopped.session) == world.state(session)
        assert stopped.session.data == ({} if session is None else session.data)
        assert (await world.take(Said("Hello?", key="m9"), stopped.session)).status == "answered"


async def test_an_answered_turn_may_be_stopped_before_any_verb() -> None:
    """The question is closed with it; the run that asked it goes on with the next input."""
    world, session = await world_with(Happened("refund", key="e1"))
    assert session is not None
    assert session.question is not None
    given = approved(session.question, by="ana")
    whole = await world.take(given, session)
    assert [message.text for message in whole.messages] == ["Done."]
    for verb in range(world.director.verbs):
        stopped = await world.take(given, session, stopped_before=verb)
        assert (stopped.status, stopped.session.question) == ("interrupted", None)
        assert world.state(stopped.session) == world.state(session)
        after = await world.take(Happened("paid", key="e2"), stopped.session)
        assert [run.flow_id for run in world.state(after.session).runs] == ["paid"]
        assert any(line.code == "question-gone" for line in after.lines)
