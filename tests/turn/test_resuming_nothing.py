"""A stored pause that does not fit what it should go on with is refused, and nothing runs (architecture §7)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.errors import UsageError
from onrecord.models.request import Request
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel, call
from onrecord.turn.director import Stage
from onrecord.turn.moments import Hooks
from onrecord.turn.plan import offer_of
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, tool, turn

pytestmark = pytest.mark.unit


async def paused() -> tuple[Agent[Any, Any], Session, Answered]:
    """An agent, its session with an open question, and an answer."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(call("ask")), tools=[tool("ask", lambda *_: Ask("Which?"))])
    result = await turn(agent)
    assert result.session is not None
    assert result.question is not None
    return agent, result.session, Answered(result.question.key, value=1)


def with_pending(session: Session, **fields: Any) -> Session:
    """The session with its pause changed."""
    assert session.pending is not None
    return replace(session, pending=replace(session.pending, **fields))


async def test_a_pause_without_its_rounds_is_refused() -> None:
    """There is nothing to go on from."""
    agent, session, answer = await paused()
    with pytest.raises(UsageError, match="needs its answer and the rounds it paused in"):
        await turn(agent, answer, session=with_pending(session, rounds=()))


async def test_a_question_about_a_call_that_is_not_there_is_refused() -> None:
    """Its history was edited, say."""
    agent, session, answer = await paused()
    assert session.question is not None
    lost = with_pending(session, question=replace(session.question, call="gone"))
    with pytest.raises(UsageError, match="the call that asked is not in the conversation any more") as refused:
        await turn(agent, answer, session=lost)
    assert refused.value.code == "asker-gone"


async def test_an_agent_without_the_tool_that_asked_is_refused() -> None:
    """By the tool's name, with what to do."""
    agent, session, answer = await paused()
    with pytest.raises(UsageError, match="the tool 'ask' that it waits for is not part of this agent") as refused:
        await turn(agent.with_(tools=[]), answer, session=session)
    assert refused.value.hint == "answer with an agent that still has it, or decline, which lets the question go"


async def test_a_director_that_does_not_come_to_the_pause_leaves_it_answered() -> None:
    """The question is closed; the calls that waited do not run."""

    class Elsewhere:
        async def direct(self, turn: Turn, stage: Stage, /) -> None:
            await stage.say("Never mind.", key="other")

    agent, session, answer = await paused()
    result = await turn(agent.with_(director=Elsewhere()), answer, session=session)
    assert result.text == "Never mind."
    assert result.session is not None
    assert result.session.pending is None


async def test_a_tool_that_a_feature_offers_may_ask_a_person() -> None:
    """Answered, its call goes on like that of a registered tool."""
    asking = tool("ask", lambda *_: Ask("Which?"))

    async def offer(turn: Turn, request: Request) -> Request:
        return replace(request, offers=(*request.offers, offer_of(asking)))

    feature = Named("skills", Hooks(on_request=offer))
    agent: Agent[Any, Any] = Agent(ScriptedModel(call("ask"), "done"), features=[feature])
    result = await turn(agent)
    assert result.question is not None
    done = await turn(agent, Answered(result.question.key, value=1), session=result.session)
    assert done.text == "done"
