"""Turns in which nobody speaks, that are ignored, or that no message started (architecture §6, §7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Happened, Said, Started, Woke
from onrecord.conversation.outgoing import Outcome, Wake
from onrecord.errors import UsageError
from onrecord.testing import FakeEffects, ScriptedModel
from onrecord.turn.director import Brief, Stage
from onrecord.turn.options import Silenced
from onrecord.turn.turn import Turn
from tests.turn.acting import last_answer, read, tool, turn
from tests.turn.directing import played, query

pytestmark = pytest.mark.unit

AT = datetime(2026, 9, 21, 12, tzinfo=UTC)
# ---- silenced and ignored --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verb", "understand"), [("speak", True), ("say", True), ("judge", False)])
async def test_a_silenced_turn_refuses_words(verb: str, understand: bool) -> None:
    """A silent call only where it is allowed."""

    async def script(turn: Turn, stage: Stage) -> None:
        verbs: dict[str, Callable[[], Awaitable[Any]]] = {
            "speak": lambda: stage.speak(Brief(key="k")), "judge": lambda: stage.judge(query("k")),
            "say": lambda: stage.say("x", key="k"),
        }  # fmt: skip
        await verbs[verb]()

    with pytest.raises(UsageError, match=f"{verb} in a silenced turn") as refused:
        await played(script, options=[Silenced(understand=understand)])
    assert refused.value.code == "silenced"


async def test_a_silenced_turn_may_act_arm_and_understand() -> None:
    """Nobody hears of it."""
    seen: list[Any] = []

    async def script(turn: Turn, stage: Stage) -> None:
        seen.append(await stage.judge(query()))
        seen.append((await stage.act(tool("a"), {}, key="a")).value)
        stage.arm(Wake(key="w", at=AT))

    result = await played(script, judge=["J"], options=[Silenced("muted", understand=True)])
    assert (seen, result.status, len(result.wakes)) == (["J", "a"], "silent", 1)


async def test_an_ignored_input_changes_nothing() -> None:
    """Nothing is filed; the session is the one given, or none."""

    async def script(turn: Turn, stage: Stage) -> None:
        turn.ignore(Outcome(kind="input", status="ignored", code="not-mine"))

    result = await played(script)
    assert (result.status, result.changed, result.session, result.entries) == ("ignored", False, None, ())
    assert [line.code for line in result.lines] == ["not-mine"]
    first = await turn(Agent(ScriptedModel("x")))
    again = await played(script, session=first.session)
    assert again.session is first.session
    with pytest.raises(UsageError, match="this turn changed nothing") as refused:
        again.change()
    assert refused.value.hint == "check result.changed"


@pytest.mark.parametrize("given", [Woke("w"), Started("flow", key="s"), Happened("shipped", key="h")])
async def test_an_input_that_nobody_directs_leaves_a_session_as_it_was(given: Any) -> None:
    """Save nothing, send nothing."""

    async def script(turn: Turn, stage: Stage) -> None:
        """Lets it pass."""

    first = await turn(Agent(ScriptedModel("x")))
    result = await played(script, given=given, session=first.session)
    assert (result.changed, result.session is first.session, result.entries) == (False, True, ())


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (Happened("order.shipped", key="h", payload={"id": 7}), "Domain event: happened:order.shipped"),
        (Started("tour", key="s", input={"n": 1}), "Domain event: started:tour"),
        (Woke("nudge", payload=3), "Domain event: woke:nudge"),
    ],
)
async def test_the_plain_agent_answers_what_is_no_message_as_data(given: Any, shown: str) -> None:
    """It enters the conversation without the force of an instruction."""
    model = ScriptedModel("noted")
    result = await turn(Agent(model), given)
    (told,) = read(model.requests[0])["messages"]
    assert told["role"] == "data"
    assert told["content"].startswith(shown)
    assert result.text == "noted"
    assert last_answer(result).proactive


async def test_an_input_known_by_its_key_is_taken_once() -> None:
    """A replay is ignored with a line that says so."""
    agent: Agent[Any, Any] = Agent(ScriptedModel("a"))
    first = await turn(agent, Said("hi", key="m1"))
    again = await turn(agent, Said("hi", key="m1"), session=first.session)
    assert (again.status, again.changed, again.lines[0].code) == ("ignored", False, "duplicate-input")


async def test_ids_and_effects_of_a_turn_are_named_after_it() -> None:
    """They count on across its verbs."""
    seen, effects = list[str](), FakeEffects()

    async def script(turn: Turn, stage: Stage) -> None:
        async def work() -> str:
            return "worked"

        seen.extend([turn.new_id("n"), turn.new_id("n"), await turn.once("work", str, work)])

    result = await played(script, effects=effects)
    of = result.entries[0].turn
    assert seen == [f"{of}/n0", f"{of}/n1", "worked"]
    assert effects.made == [f"{of}/work"]
    assert timedelta(0) == effects.at - FakeEffects().at
