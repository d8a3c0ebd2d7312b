"""A request that the model refuses as too long: what may leave does, and it is asked once more in the same turn."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ModelError
from onrecord.prompt.window.compaction import Compaction
from onrecord.prompt.window.evicted import Evicted, Pressure, Stayed
from onrecord.prompt.window.window import Window
from onrecord.record.kinds import ModelAttempted
from onrecord.session import refold
from onrecord.session.codec import dumps_session
from onrecord.testing import ScriptedModel, call, raises
from tests.prompt.test_window_record import Understanding
from tests.prompt.window_units import LONG, counting, scribe, tools
from tests.prompt.windows import dialogue, spans
from tests.turn.acting import bodies, kinds, tool, turn

pytestmark = pytest.mark.unit

TOO_LONG = raises("context", status=400)


async def test_a_request_that_is_too_long_is_made_shorter() -> None:
    """In the same turn, told as an attempt; nobody counted, so nothing is said of pressure. It stays so."""
    model = counting(TOO_LONG, "Hello.", "Again.")
    agent = Agent(model, features=[Window.budget(50_000, keep=2)])
    first = await turn(agent, session="s", history=dialogue(20, 900))
    assert [spans(request)[-1] for request in model.requests] == [(0, 21), (19, 21)]
    (attempted,), (evicted,) = bodies(first, ModelAttempted), bodies(first, Evicted)
    assert (attempted.error, attempted.status, attempted.round.rsplit("/", 1)[-1]) == ("context", 400, "r0")
    assert (evicted.why, evicted.upto, bodies(first, Pressure)) == ("model-context", 19, [])
    asked = [kind for kind in kinds(first) if kind.startswith(("model", "context"))]
    assert asked == ["model.requested", "model.attempted", "context.evicted", "model.requested", "model.replied"]
    assert first.session is not None
    again = refold(first.session.key, first.entries, agent.plan.folds, digest_key=first.session.digest_key)
    assert dumps_session(again) == dumps_session(first.session)
    await turn(agent, session=first.session, history=dialogue(20, 900))
    assert spans(model.requests[-1])[-1] == (19, 21)


@pytest.mark.parametrize(
    ("window", "asked"),
    [
        (None, 1),
        (Compaction(100_000), 1),
        (Window.last(50), 1),
        (Window.last(4, slack=50), 2),
        (Window.budget(50_000, keep=2), 2),
        (Window.budget(50_000, keep=50), 1),
    ],
)
async def test_where_nothing_more_may_leave_it_is_the_models_error(window: Any, asked: int) -> None:
    """Each request shows less than the one before, so there is an end; without a window there is no second one."""
    model = counting(*[TOO_LONG] * 5)
    with pytest.raises(ModelError, match="scripted context") as raised:
        await turn(Agent(model, features=[window] if window else []), history=dialogue(20, 900))
    assert (raised.value.code, len(model.requests)) == ("model-context", asked)


async def test_a_summary_stands_for_what_left() -> None:
    """And where there is none, the error is the model's own."""
    small = scribe("They met.", raises("rate"))
    model = counting(TOO_LONG, "Hello.", TOO_LONG)
    agent = Agent(model, features=[Window.summarize(50_000, model=small, keep=2)])
    result = await turn(agent, session="s", history=dialogue(20, 900))
    assert result.text == "Hello."
    assert spans(model.requests[1])[0].endswith("They met.")
    with pytest.raises(ModelError, match="scripted context"):
        await turn(agent, session="other", history=dialogue(20, 900))
    assert len(model.requests) == 3


async def test_a_summary_that_failed_is_not_asked_for_again() -> None:
    """Neither for a refusal of the same turn."""
    small = scribe(raises("rate"), "never")
    model = counting(call("look"), TOO_LONG, tokens=99)
    agent = Agent(model, tools=[tool("look")], features=[Window.summarize(50, model=small, keep=1)])
    with pytest.raises(ModelError, match="scripted context"):
        await turn(agent, history=dialogue(20, 900))
    assert (small.calls, len(model.requests)) == (["consult"], 2)


async def test_rounds_of_the_turn_that_grew_too_long_go_too() -> None:
    """Calls go with their results, and the message that the turn is about stays."""
    model = counting(call("toolA"), call("toolA"), call("toolA"), TOO_LONG, "done")
    agent = Agent(model, tools=tools("toolA"), features=[Window.budget(50_000, keep=1)])
    result = await turn(agent, "look", session="s")
    assert result.text == "done"
    assert spans(model.requests[-1]) == [(0, 1), spans(model.requests[-1])[1], (3, 4)]
    assert [body.kept[0].why for body in bodies(result, Evicted)] == ["current-request"]


async def test_a_refused_request_loses_all_that_may_leave_at_once() -> None:
    """Nobody counted, so nobody knows how much is enough; asking for each stretch would be asked for in vain."""
    model = counting(TOO_LONG, "Hello.")
    rules = [{"role": "system", "content": "Be kind."}, *dialogue(2, 900)]
    result = await turn(Agent(model, features=[Window.budget(50_000, keep=2)]), history=rules * 3)
    assert [body.start for body in bodies(result, Evicted)] == [1, 4, 7]
    assert [span for span in spans(model.requests[1]) if isinstance(span, tuple)] == [(0, 1), (3, 4), (6, 7), (8, 10)]


async def test_what_was_said_already_is_not_said_again() -> None:
    """A reply that breaks off when somebody has read of it is over, for whatever reason."""
    model = ScriptedModel(["So far", TOO_LONG], "never")
    stream = Agent(model, features=[Window.last(4, slack=50)]).turn_stream("hi", history=dialogue(20, 900))
    read: list[str] = []
    with pytest.raises(ModelError, match="scripted context"):
        await _reads(stream, read)
    assert ("".join(read), len(model.requests)) == ("So far", 1)


async def _reads(stream: Any, into: list[str]) -> None:
    async for text in stream.text:
        into.append(text)  # noqa: PERF401 - it ends with an error, and what came before counts


async def test_a_judgement_is_shortened_too_and_what_follows_with_it() -> None:
    """What one could not take is not tried with the other; an error of one is none of the other."""
    model = ScriptedModel("Hello.", judge=[TOO_LONG, "{}"])
    agent = Agent(model, features=[Window.last(4, slack=50)], director=Understanding())
    result = await turn(agent, history=dialogue(20, 900))
    assert model.calls == ["judge", "judge", "speak"]
    assert [spans(request)[-1] for request in model.requests] == [(0, 21), (17, 21), (17, 21)]
    assert len(bodies(result, Evicted)) == 1


async def test_a_refusal_is_forgotten_with_the_next_request() -> None:
    """A round later the window goes by its own rule again."""
    model = counting(LONG, TOO_LONG, [call("look")], "done", tokens=9)
    agent = Agent(model, tools=[tool("look")], features=[Window.budget(50_000, keep=1)])
    first = await turn(agent, LONG, session="s")
    second = await turn(agent, LONG, session=first.session)
    assert (second.text, len(bodies(second, Evicted)), bodies(second, Stayed)) == ("done", 1, [])
    assert spans(model.requests[-1])[-1] == (2, 4)
