"""Sub-agents that ask at once: one question after the other, each effect once, and none is lost or told as not run."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask, Woke, expiry_key
from onrecord.errors import UsageError
from onrecord.governance.rules import before_tool
from onrecord.record.kinds import ToolReturned
from onrecord.session import pack, unpack
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import ALLOW, Deny, Hooks, Stop
from tests.agent.children import Effects, ask, clerk
from tests.turn.acting import Named, bodies, results, texts, tool, turn
from tests.turn.pausing.asking import Acting, answered, approve, asks, checked, open_question, waiting

pytestmark = pytest.mark.integration


def desk(model: ScriptedModel, below: Agent[Any, Any], **given: Any) -> Agent[Any, str]:
    """An agent whose clerks work side by side."""
    return Agent(model, tools=[below.as_tool(concurrency_safe=True), tool("look", read_only=True)], **given)


async def test_two_children_that_ask_at_once_are_asked_about_one_after_the_other() -> None:
    """The first in call order holds the question. The other keeps its place: what it did is not done again."""
    effects = Effects()
    model = ScriptedModel(ask("pay:a order:A", "pay:b order:B"), "Done.")
    agent = desk(model, clerk(effects))
    first = await turn(agent, session="s")
    assert (open_question(first).text, open_question(first).by) == ("Which size of A?", "agent:clerk")
    second = await answered(agent, first, value="XL")
    assert (open_question(second).text, open_question(second).by) == ("Which size of B?", "agent:clerk")
    done = await answered(agent, second, value="S")
    assert texts(model.requests[1]) == ["order:A is done: A in XL", "order:B is done: B in S"]
    assert (done.text, effects.done, len(effects.runs)) == ("Done.", ["a", "b"], 2)
    assert [r.status for r in done.children] == ["answered"]
    checked(agent, first, second, done)


async def test_a_child_that_waits_for_its_turn_is_never_taken_in_between() -> None:
    """It stands in the store as it was, at the version that it had."""
    agent = desk(ScriptedModel(ask("order:A order:C", "order:B"), "Done."), clerk())
    store = MemoryStore()
    paused = await turn(agent, session="s")
    asked = []
    while paused.status == "paused":
        asked.append(open_question(paused).text)
        session = await store.commit(paused.change())
        paused = await turn(agent, Answered(open_question(paused).key, value="M"), session=unpack(pack(session)))
    await store.commit(paused.change())
    assert asked == [f"Which size of {what}?" for what in "ACB"]
    below = [held for key in await store.sessions() if (held := await store.load(key)) and held.parent]
    assert [(held.version, held.question) for held in below] == [(3, None), (2, None)]


async def test_what_only_the_person_was_to_see_is_asked_for_anew() -> None:
    """A private address is kept nowhere, so a child that waited with one is told, and asks again with a new one."""
    urls = map(str, range(9))

    async def consent(args: Any, ctx: Any) -> str:
        got = await ctx.ask(Ask("Consent?", private={"url": next(urls)}))
        return "consented" if got.approved is not False else got.note

    model = ScriptedModel(ask("order:A", "order:B order:B"), "Done.")
    agent = desk(model, clerk(ask_with=consent))
    first = await turn(agent)
    assert first.private == {"url": "0"}
    second = await answered(agent, first, approved=True)
    assert second.private.keys() == {"url"}
    assert second.private["url"] not in {"0", "1"}
    done = await answered(agent, second, approved=True)
    assert done.text == "Done."
    assert texts(model.requests[1])[1] == "order:B is done: consented"


async def test_a_rule_s_question_and_a_child_s_are_asked_one_after_the_other() -> None:
    """What a rule stopped before it ran is not run, as in any batch; what ran and asked goes on."""
    effects = Effects()
    agent = desk(
        ScriptedModel([*ask("pay:a order:A"), call("look")], "Done."), clerk(effects), features=[approve("look")]
    )  # fmt: skip
    paused = await turn(agent)
    done = await answered(agent, paused, value="M")
    assert (results(done), effects.done) == ([("look", "not_run"), ("clerk", "returned")], ["a"])


async def test_a_turn_that_is_stopped_tells_of_a_child_that_waits_what_is_known() -> None:
    """It ran, and nobody knows what would have come of it: that is not "not run"."""

    async def stops(turn: Any, returned: Any) -> Any:
        turn.stop(Stop("enough"))
        return Deny("no")

    effects = Effects()
    agent = desk(
        ScriptedModel(ask("order:A", "pay:b order:B"), "Done."), clerk(effects),
        features=[Named("stops", Hooks(after_tool=stops))],
    )  # fmt: skip
    done = await answered(agent, await turn(agent), value="M")
    first, second = bodies(done, ToolReturned)
    assert (first.status, second.status, effects.done) == ("denied", "cancelled", ["b"])
    assert "outcome is unknown" in str(second.result)
    assert done.session is not None
    assert done.session.pending is None


async def test_an_interruption_in_the_middle_leaves_nobody_waiting() -> None:
    """The child that goes on is stopped, the one whose question was to come is told as what it is: unknown."""
    began = asyncio.Event()

    class Stuck(ScriptedModel):
        async def stream(self, request: Any, /) -> Any:
            if texts(request):
                began.set()
                await asyncio.Event().wait()
            async for chunk in super().stream(request):
                yield chunk

    low = clerk().with_(model=Stuck(*[call("order", what=what) for what in "AB"]))
    agent = desk(ScriptedModel(ask("a", "b"), "Never mind."), low)
    paused = await turn(agent)
    stream = agent.turn_stream(Answered(open_question(paused).key, value="M"), session=waiting(paused))
    async with asyncio.timeout(5), stream:
        await began.wait()
        await stream.leave()
        result = await stream.result()
    assert (result.status, results(result)) == ("interrupted", [("clerk", "failed"), ("clerk", "cancelled")])
    assert result.session is not None
    assert (result.session.pending, (await turn(agent, session=result.session)).text) == (None, "Never mind.")


async def test_a_director_that_acts_with_a_sub_agent_asks_through_it_too() -> None:
    """The answer goes down, and what the child came to is the value of the act."""
    told: list[object] = []
    effects = Effects()
    low = clerk(effects)

    async def direct(turn: Any, stage: Any) -> None:
        acted = await stage.act(low.as_tool(), {"message": "pay:a order:A"}, key="ask")
        told.append(acted.asked.text if acted.asked else acted.value)

    agent: Agent[Any, str] = Agent(ScriptedModel(), director=Acting(direct))
    paused = await turn(agent)
    await answered(agent, paused, value="XL")
    assert (told, effects.done) == (["Which size of A?", "order:A is done: A in XL"], ["a"])


async def test_an_expired_question_is_an_answer_to_the_child_alone() -> None:
    """The child hears that nobody answered; the question of the one beside it is put next."""
    effects = FakeEffects()
    model = ScriptedModel(ask("order:A", "order:B"), "Done.")

    async def soon(args: Any, ctx: Any) -> str:
        got = await ctx.ask(Ask(f"{args['what']}?", expires_s=60))
        return "nobody" if got.expired else str(got.value)

    agent = desk(model, clerk(ask_with=soon))
    paused = await turn(agent, effects=effects)
    effects.advance(seconds=61)
    key = expiry_key(open_question(paused))
    second = await turn(agent, Woke(key, at=effects.now()), session=waiting(paused), effects=effects)
    assert open_question(second).text == "B?"
    effects.advance(seconds=1)
    key = expiry_key(open_question(second))
    done = await turn(agent, Woke(key, at=effects.now()), session=waiting(second), effects=effects)
    assert texts(model.requests[1]) == ["order:A is done: nobody", "order:B is done: nobody"]
    assert done.text == "Done."


def deep(effects: Effects, gone: str = "", said: str = "order:A", *, goes_on: bool = False) -> Agent[Any, str]:
    """A clerk below a middle agent; ``gone`` is what a newer build has no more, or has otherwise.

    Where it ``goes_on``, its models only have their last words to say.
    """
    schema = {"type": "object", "properties": {"what": {"type": "integer"}}}
    order = tool("order", asks(), **({"parameters": schema} if gone == "schema" else {}))
    below = clerk(effects, features=[] if gone == "rule" else [approve("pay")])
    below = below.with_(tools=[tool("pay", effects.pay), *([] if gone == "tool" else [order])])
    if goes_on:
        below = below.with_(model=ScriptedModel("Clerk."))
    begins = [] if goes_on else [ask(said)]
    middle = Agent(ScriptedModel(*begins, "Middle."), name="middle", tools=[below.as_tool()])
    begins = [] if goes_on else [ask("go", of="middle")]
    return Agent(ScriptedModel(*begins, "Done."), tools=[middle.as_tool()])


@pytest.mark.parametrize("gone", ["tool", "schema", "rule"])
async def test_a_child_that_cannot_go_on_leaves_the_question_open(gone: str) -> None:
    """A newer build has not what asked, two agents below: nothing runs, and the older build can still answer."""
    effects, said = Effects(), "pay:a" if gone == "rule" else "order:A"
    agent = deep(effects, said=said)
    answer: dict[str, Any] = {"approved": True} if gone == "rule" else {"value": "XL"}
    paused = await turn(agent, session="s")
    with pytest.raises(UsageError) as refused:
        await answered(deep(effects, gone, said), paused, **answer)
    assert (refused.value.code, effects.runs) == ("asker-gone", [])
    done = await answered(agent, paused, **answer)
    assert (done.text, effects.done) == ("Done.", ["a"] if gone == "rule" else [])


@pytest.mark.parametrize("gone", ["tool", "schema", "rule"])
async def test_a_refusal_lets_go_of_a_child_that_could_not_go_on(gone: str) -> None:
    """Nothing more runs for it, so it needs nobody; the child's turn ends, and so do those above it."""
    effects, said = Effects(), "pay:a" if gone == "rule" else "order:A"
    paused = await turn(deep(effects, said=said), session="s")
    done = await answered(deep(effects, gone, said, goes_on=True), paused, approved=False, expired=True)
    assert (done.text, effects.runs) == ("Done.", [])
    (middle,) = done.children
    assert [below.session and below.session.question for below in (middle, *middle.children)] == [None, None]


async def test_a_refusal_lets_go_of_a_sub_agent_that_is_gone() -> None:
    """Its turn waits below a call of a tool that this build has no more: it is let go with the call."""
    effects = Effects()
    paused = await turn(desk(ScriptedModel(ask("pay:a")), clerk(effects, features=[approve("pay")])), session="s")
    bare: Agent[Any, Any] = Agent(ScriptedModel("Done."))
    done = await answered(bare, paused, approved=False, by="Maria")
    assert (done.text, effects.runs) == ("Done.", [])
    assert [below.session.question for below in done.children if below.session is not None] == [None]


async def test_nobody_answers_a_child_behind_its_parent_s_back() -> None:
    """Its session is to be seen, and takes no input while it waits: the question is that of the turn above."""
    agent = desk(ScriptedModel(ask("order:A"), "Done."), clerk())
    paused = await turn(agent, session="s")
    child = paused.children[0].session
    assert child is not None
    assert child.question is not None
    for said in (Answered(child.question.key, value="XL"), "hello"):
        with pytest.raises(UsageError, match="belongs to a call") as refused:
            await turn(clerk(), said, session=child)
        assert (refused.value.code, "'s'" in refused.value.hint) == ("asked-above", True)
    assert (await answered(agent, paused, value="XL")).text == "Done."


async def test_a_rule_of_the_parent_sees_the_call_and_not_what_is_below() -> None:
    """The child's tools are its own business: give it rules of its own."""
    seen: list[str] = []

    @before_tool
    async def looks(turn: Any, held: Any) -> Any:
        seen.append(held.name)
        return ALLOW

    await turn(desk(ScriptedModel(ask("pay:a"), "Done."), clerk(), features=[looks]))
    assert seen == ["clerk"]


async def test_how_long_a_child_s_question_waits_is_how_long_its_parent_s_does() -> None:
    """Where nobody answers in time, it counts as declined, below and above."""

    async def hurried(args: Any, ctx: Any) -> str:
        got = await ctx.ask(Ask("Quick?", expires_s=60))
        return "late" if got.expired else "in time"

    model = ScriptedModel(ask("order:A"), "Done.")
    agent = desk(model, clerk(ask_with=hurried))
    effects = FakeEffects()
    paused = await turn(agent, effects=effects)
    question = open_question(paused)
    assert question.expires == effects.now() + timedelta(seconds=60)
    done = await turn(agent, Woke(expiry_key(question)), session=paused.session, effects=FakeEffects(question.expires))
    assert texts(model.requests[1]) == ["order:A is done: late"]
    assert done.text == "Done."
