"""Revise: an answer becomes a draft, the model is asked again, and the draft leaves when the turn closes (§6, §7)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.messages import AssistantMessage
from onrecord.errors import ConfigurationError
from onrecord.governance.rules import on_output
from onrecord.models.request import Piece
from onrecord.record.kinds import ModelReplied, RoundSettled
from onrecord.session.folding import refold
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.answer import Typed
from onrecord.turn.moments import ALLOW, Allow, Answer, Hooks, Revise, Stop
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, read, rounds_of, tool, turn, verdicts

pytestmark = pytest.mark.unit


def refusing(*bad: str, name: str = "rule", revisions: int = 1, show: str = "") -> Named:
    """Asks again for answers that hold one of these words."""

    async def hook(turn: Turn, answer: Answer) -> Any:
        if any(word in answer.text for word in bad):
            return Revise("No bad words.", show=(Piece(source=name, text=show),) if show else ())
        return ALLOW

    return Named(name, Hooks(on_output=hook, holds_drafts=True, revisions=revisions))


async def test_the_model_is_asked_again_with_the_draft_and_the_correction() -> None:
    """The next request shows both; the person sees the accepted answer alone."""
    model = ScriptedModel("bad draft", "good answer")
    agent: Agent[Any, Any] = Agent(model, features=[refusing("bad", show="Say: good.")])
    stream = agent.turn_stream("hi", effects=FakeEffects())
    seen = [text async for text in stream.text]
    result = await stream.result()
    assert read(model.requests[1])["messages"][1:] == [
        {"role": "assistant", "content": "bad draft"},
        {"role": "system", "content": "No bad words.\n\nSay: good."},
    ]
    assert seen == [result.text] == ["good answer"]
    assert result.llm_calls == 2
    assert verdicts(result) == [("output", "rule", "revise", "No bad words.")]


async def test_draft_and_correction_are_gone_from_the_closed_message() -> None:
    """The record keeps them; later turns read what the person read."""
    model = ScriptedModel("bad", "good", "later")
    agent: Agent[Any, Any] = Agent(model, features=[refusing("bad")])
    first = await turn(agent)
    assert [r.text for r in rounds_of(first)] == ["good"]
    assert [b.round.text for b in bodies(first, ModelReplied)] == ["bad", "good"]
    (draft,) = bodies(first, RoundSettled)
    assert [c.content for c in draft.round.revised] != []
    await turn(agent, "more", session=first.session)
    assert [m["content"] for m in read(model.requests[2])["messages"]] == ["hi", "good", "more"]


async def test_a_record_with_drafts_folds_to_the_same_session() -> None:
    """Replay drops the draft where the turn did."""
    result = await turn(Agent(ScriptedModel("bad", "good"), features=[refusing("bad")]), session="s")
    assert result.session is not None
    again = refold(result.session.key, result.entries, digest_key=result.session.digest_key)
    assert again == result.session


async def test_a_draft_stays_for_the_rounds_that_follow_it() -> None:
    """A model that looks something up after a correction still sees why."""
    model = ScriptedModel("bad", call("lookup"), "good")
    result = await turn(Agent(model, tools=[tool()], features=[refusing("bad")]))
    told = [(m["role"], m["content"]) for m in read(model.requests[2])["messages"]]
    assert told == [
        ("user", "hi"),
        ("assistant", "bad"),
        ("system", "No bad words."),
        ("assistant", ""),
        ("tool", "lookup"),
    ]
    assert [len(r.calls) for r in rounds_of(result)] == [1, 0]


async def test_the_budget_is_per_rule_and_turn_and_a_spent_one_lets_pass() -> None:
    """What remains wrong is on the record, and the person gets an answer."""
    model = ScriptedModel("bad 1", "bad 2", "bad 3")
    result = await turn(Agent(model, features=[refusing("bad", revisions=2)]))
    assert result.text == "bad 3"
    assert [v for _, _, v, _ in verdicts(result)] == ["revise", "revise", "allow"]
    assert verdicts(result)[-1][3] == "No bad words. (no revision left)"


async def test_two_rules_have_a_budget_each() -> None:
    """One rule's wishes do not use up another's."""
    model = ScriptedModel("a b", "b", "fine")
    features = [refusing("a", name="one"), refusing("b", name="two")]
    result = await turn(Agent(model, features=features))
    assert result.text == "fine"
    assert [(by, v) for _, by, v, _ in verdicts(result)] == [("one", "revise"), ("two", "revise")]


async def test_the_answer_tells_how_often_it_was_revised() -> None:
    """By rule, for the turn."""
    seen: list[Any] = []

    @on_output
    async def look(turn: Turn, answer: Answer) -> Allow[Answer]:
        seen.append(dict(answer.revised))
        return ALLOW

    await turn(Agent(ScriptedModel("bad", "good"), features=[look, refusing("bad")]))
    assert seen == [{}, {"rule": 1}]


async def test_revisions_do_not_use_up_the_rounds() -> None:
    """They have a budget of their own: one round with tools, a draft of its wrap-up, and its correction."""
    model = ScriptedModel(call("lookup"), "bad", "good")
    result = await turn(Agent(model, tools=[tool()], features=[refusing("bad")], rounds=1))
    assert model.calls == ["speak", "wrap_up", "wrap_up"]
    assert result.text == "good"
    model = ScriptedModel("bad", call("lookup"), "good")
    await turn(Agent(model, tools=[tool()], features=[refusing("bad")], rounds=1))
    assert model.calls == ["speak", "speak", "wrap_up"]


async def test_no_revision_is_allowed_at_all_with_a_budget_of_zero() -> None:
    """The wish is on the record."""
    result = await turn(Agent(ScriptedModel("bad"), features=[refusing("bad", revisions=0)]))
    assert result.text == "bad"
    assert [v for _, _, v, _ in verdicts(result)] == ["allow"]


async def test_calls_beside_a_refused_answer_are_settled_before_it_becomes_a_draft() -> None:
    """No request ever shows a call without its result."""
    model = ScriptedModel(call("lookup"), ["bad", call("lookup")], "good")
    await turn(Agent(model, tools=[tool()], features=[refusing("bad")], rounds=1))
    last = [m for m in read(model.requests[2])["messages"] if m["role"] == "tool"][-1]
    assert last["content"] == '{"error":"Not executed: the budget for actions was used up."}'


async def test_an_interrupted_draft_is_not_in_the_conversation() -> None:
    """A turn cut between draft and answer leaves nothing that a person did not see."""
    import asyncio

    reached, stay = asyncio.Event(), asyncio.Event()

    class Waiting(ScriptedModel):
        async def stream(self, request: Any, /) -> Any:
            if self.requests:
                reached.set()
                await stay.wait()
            async for chunk in super().stream(request):
                yield chunk

    agent: Agent[Any, Any] = Agent(Waiting("bad", "good"), features=[refusing("bad")])
    async with agent.turn_stream("hi", effects=FakeEffects()) as stream:
        await reached.wait()
    result = await stream.result()
    assert result.status == "interrupted"
    assert result.session is not None
    assert [m for m in result.session.conversation.messages if isinstance(m, AssistantMessage)] == []


def test_a_typed_agent_takes_at_most_ten_retries() -> None:
    """Each is a paid call."""
    for wrong in (-1, 11):
        with pytest.raises(ConfigurationError, match="retries must be between 0 and 10") as refused:
            Typed(retries=wrong)
        assert refused.value.hint == "each retry is a paid model call"


async def test_two_rules_of_one_name_have_a_budget_each() -> None:
    """Rules made by one function have its name; their wishes are counted apart."""
    model = ScriptedModel("a b", "b", "fine")
    result = await turn(Agent(model, features=[refusing("a"), refusing("b")]))
    assert (result.text, len(model.requests)) == ("fine", 3)


async def test_a_stopped_turn_is_not_asked_again() -> None:
    """No model call may follow a stop: the answer stands, and what was wished is on the record."""

    async def enough(turn: Turn, round_: Any) -> Any:
        turn.stop(Stop("enough"))
        return round_

    model = ScriptedModel("bad")
    features = [Named("cap", Hooks(on_reply=enough)), refusing("bad")]
    result = await turn(Agent(model, features=features))
    assert (result.text, result.status) == ("bad", "answered")
    assert verdicts(result) == [("output", "rule", "allow", "No bad words. (no revision left)")]
    typed: Agent[Any, Any] = Agent(ScriptedModel("x"), output=int, features=[features[0], Typed(canned=0)])
    assert ((await turn(typed)).output, (await turn(typed.with_(model=ScriptedModel("y")))).text) == (0, "y")
