"""An agent as a tool of another: a turn and a session of its own, stored with its parent's, asking through it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Ask
from onrecord.conversation.usage import Usage
from onrecord.errors import ModelError
from onrecord.governance.rules import on_output
from onrecord.record.kinds import ToolReturned
from onrecord.session import pack, refold, unpack
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session
from onrecord.session.store import Store
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import ScriptedModel, call, raises, reply
from onrecord.turn.moments import Answer, Deny
from onrecord.turn.turn import Turn
from tests.turn.acting import Result, bodies, results, texts, tool, turn
from tests.turn.pausing.asking import answered, approve, asks, checked, open_question, waiting

pytestmark = pytest.mark.integration


def office(model: ScriptedModel, *child_features: Any, **given: Any) -> Agent[Any, str]:
    """An agent with a clerk, who has tools of its own; both read one script."""
    tools = [tool("pay"), tool("order", asks("Which size?", detail={"sizes": 3}))]
    clerk = Agent(model, name="clerk", tools=tools, features=child_features, **given)
    return Agent(model, tools=[clerk.as_tool(), tool("look")])


def ask_clerk(message: str = "do it") -> Any:
    """The parent's call of the clerk."""
    return call("clerk", message=message)


def child_of(result: Result) -> Session:
    """The session of the only child turn."""
    (child,) = result.children
    assert child.session is not None
    return child.session


async def test_a_child_is_a_turn_of_its_own() -> None:
    """Its message is the argument, its session lies below the parent's, and its text is the call's result."""
    model = ScriptedModel([ask_clerk("price?")], "Eighty.", "It costs eighty.")
    agent = office(model)
    result = await turn(agent, "how much?", session="s")
    assert (result.text, texts(model.requests[2])) == ("It costs eighty.", ["Eighty."])
    child = child_of(result)
    returned = bodies(result, ToolReturned)[0]
    assert (f"s:{child.key.id.removeprefix('s/')}", child.parent) == (returned.call, "s")
    assert [m.text for m in child.conversation.messages if hasattr(m, "text")] == ["price?", "Eighty."]
    (entries,) = (c.entries for c in result.children)
    assert refold(child.key, entries, digest_key=child.digest_key) == replace(child, parent=None)
    assert "Eighty." in str(returned.result)
    assert {e.turn for e in entries}.isdisjoint({e.turn for e in result.entries})
    checked(agent, result)


async def test_a_child_acts_for_the_same_person() -> None:
    """Tenant, owner and context of the parent's turn are those of the child's."""
    seen: list[object] = []

    def look(args: object, ctx: Any) -> str:
        seen.append((ctx.identity, ctx.context))
        return "ok"

    model = ScriptedModel([ask_clerk()], [call("look")], "Looked.", "Done.")
    clerk = Agent(model, name="clerk", tools=[tool("look", look)])
    owner = Identity(tenant="t", principal="ana")
    session = Session(key=SessionKey("s", tenant="t"), owner=owner, digest_key="k")
    result = await turn(Agent(model, tools=[clerk.as_tool()]), session=session, context={"desk": 4})
    assert seen == [(owner, {"desk": 4})]
    assert (child_of(result).key.tenant, child_of(result).owner) == ("t", owner)


async def test_what_a_child_spends_is_the_parent_s_to_report() -> None:
    """Calls and tokens of both are counted; the entry of the call says what the child used of them."""
    used = Usage(input_tokens=10, output_tokens=1)
    model = ScriptedModel([ask_clerk()], reply(call("pay"), usage=used), reply("Paid.", usage=used), "Done.")
    result = await turn(office(model))
    assert (result.llm_calls, result.usage) == (4, used + used)
    (returned,) = bodies(result, ToolReturned)
    assert (returned.name, returned.spent) == ("clerk", used + used)
    assert result.children[0].llm_calls == 2


class Price(Struct, frozen=True):
    """What a typed clerk answers."""

    euros: int


async def test_a_typed_child_returns_its_value() -> None:
    """The model reads it as JSON; a child without a value is a tool error."""
    model = ScriptedModel([ask_clerk()], '{"euros": 80}', [ask_clerk()], "nonsense", "nonsense", "Done.")
    clerk = Agent(model, name="clerk", output=Price)
    result = await turn(Agent(model, tools=[clerk.as_tool(id="ask_price", description="Knows prices.")]).with_(
        tools=[replace(clerk.as_tool(), id="clerk")]
    ))  # fmt: skip
    first, second = bodies(result, ToolReturned)
    assert '{"euros":80}' in str(first.result)
    assert (second.status, "not a valid output" in str(second.result)) == ("failed", True)


def test_a_child_is_described_as_a_tool() -> None:
    """By its own name and words, or by others."""
    clerk = Agent(ScriptedModel(), name="clerk")
    plain, named = clerk.as_tool(), clerk.as_tool(id="prices", description="Knows prices.")
    assert (plain.id, plain.description, named.id, named.description) == (
        "clerk", "Ask clerk.", "prices", "Knows prices.",
    )  # fmt: skip
    assert plain.parameters["required"] == ["message"]


async def test_arguments_of_a_child_are_checked() -> None:
    """A call without its message, or without words in it, never becomes a turn."""
    model = ScriptedModel([call("clerk"), ask_clerk(" ")], "Done.")
    result = await turn(office(model))
    assert (results(result), result.children) == ([("clerk", "invalid")] * 2, ())


# ---- failing ---------------------------------------------------------------------------------------------------------


async def test_a_model_that_fails_in_a_child_is_a_tool_error() -> None:
    """Its parent goes on, so what the child did and spent until then is kept. What the vendor wrote goes no further."""
    used = Usage(input_tokens=10, output_tokens=1)
    broken = ModelError("vendor-canary", kind="overload")
    model = ScriptedModel([ask_clerk()], reply(call("pay"), usage=used), broken, "Sorry.")
    result = await turn(office(model), session="s")
    assert (result.text, results(result), result.usage) == ("Sorry.", [("clerk", "failed")], used)
    assert texts(model.requests[3]) == ['{"error":"clerk could not answer: its model failed (overload)"}']
    (child,) = result.children
    assert (child.status, results(child)) == ("failed", [("pay", "returned")])
    assert "canary" not in repr((result.entries, child.entries))


async def test_a_child_that_is_refused_is_a_tool_error_and_kept() -> None:
    """Its entries tell what happened; they are stored with the parent's."""

    @on_output
    async def refuses(turn: Turn, answer: Answer) -> Deny:
        return Deny("not this")

    model = ScriptedModel([ask_clerk()], "secret-canary", "Sorry.")
    agent = office(model, refuses)
    result = await turn(agent, session="s")
    assert (result.text, results(result), result.children[0].status) == ("Sorry.", [("clerk", "failed")], "refused")
    assert "secret-canary" not in texts(model.requests[2])[0]
    store = MemoryStore()
    await store.commit(result.change())
    assert len(await store.sessions()) == 2


async def test_a_parent_that_fails_unseen_keeps_no_child() -> None:
    """A model error of the parent leaves nothing: the same input runs the child again, in the same session."""
    model = ScriptedModel([ask_clerk()], "One.", raises("overload"), [ask_clerk()], "Two.", "Done.")
    agent = office(model)
    with pytest.raises(ModelError):
        await turn(agent, session="s")
    result = await turn(agent, session="s")
    store = MemoryStore()
    await store.commit(result.change())
    assert len(await store.sessions()) == 2


# ---- asking ----------------------------------------------------------------------------------------------------------


async def test_the_question_of_a_child_is_the_parent_s() -> None:
    """Its words, its detail and its audience, asked by ``agent:name``; the answer goes to whoever asked inside."""
    model = ScriptedModel([call("look"), ask_clerk()], [call("order")], "Ordered XL.", "Done.")
    agent = office(model)
    paused = await turn(agent, session="s")
    question = open_question(paused)
    assert (question.text, question.by, question.audience) == ("Which size?", "agent:clerk", "speaker")
    assert question.detail == {"sizes": 3}
    assert paused.children[0].status == "paused"
    done = await answered(agent, paused, value="XL")
    assert (done.text, texts(model.requests[3])) == ("Done.", ["look", "Ordered XL."])
    assert child_of(done).question is None
    checked(agent, paused, done)


async def test_an_approval_inside_a_child_keeps_its_audience() -> None:
    """Whoever approves sees an approval, and a decline is read by the child's model."""
    model = ScriptedModel([ask_clerk()], [call("pay")], "They said no.", "Done.")
    agent = office(model, approve("pay"))
    paused = await turn(agent)
    assert (open_question(paused).by, open_question(paused).audience) == ("agent:clerk", "approver")
    done = await answered(agent, paused, approved=False, by="ana", note="too dear")
    assert texts(model.requests[2]) == ["Declined by ana: too dear"]
    assert texts(model.requests[3]) == ["They said no."]
    checked(agent, paused, done)


async def test_a_child_may_ask_again_and_again() -> None:
    """Each question is a new one of the parent; counters of both go on."""
    model = ScriptedModel([ask_clerk()], [call("order")], [call("pay")], [call("pay")], "Done there.", "Done.")
    agent = office(model, approve("pay"))
    results_ = [await turn(agent, session="s")]
    results_.append(await answered(agent, results_[-1], value="XL"))
    while results_[-1].status == "paused":
        results_.append(await answered(agent, results_[-1], approved=True))
    assert [open_question(r).key.rsplit("/", 1)[1] for r in results_[:-1]] == ["q0", "q1", "q2"]
    assert results_[-1].text == "Done."
    entries = [e for r in results_ for c in r.children for e in c.entries]
    assert len({(e.turn, e.n) for e in entries}) == len(entries)
    assert [e.seq for e in entries] == list(range(len(entries)))
    checked(agent, *results_)


async def test_what_a_child_asks_in_private_stays_so() -> None:
    """It reaches the caller of the parent and no record."""
    private = {"url": "https://consent.example/canary-8"}
    model = ScriptedModel([ask_clerk()], [call("order")])
    clerk = Agent(model, name="clerk", tools=[tool("order", asks(private=private))])
    paused = await turn(Agent(model, tools=[clerk.as_tool()]))
    assert paused.private == private
    assert "canary-8" not in repr((paused.entries, waiting(paused), paused.children[0].entries))


async def test_no_handler_can_ask_in_another_s_name() -> None:
    """What a tool writes into its question's detail is detail, whatever it is called."""
    form = tool("form", asks(detail={"by": "agent:clerk"}))
    agent = Agent(ScriptedModel([call("form")]), tools=[form, tool("plain", lambda *_: Ask("?"))])
    assert open_question(await turn(agent)).by == "form"


async def test_a_grandchild_s_question_comes_all_the_way_up() -> None:
    """Through two agents, each paused inside the one above, in nothing but bytes."""
    model = ScriptedModel([ask_clerk()], [call("helper", message="x")], [call("order")], "low", "middle", "top")
    helper = Agent(model, name="helper", tools=[tool("order", asks())])
    clerk = Agent(model, name="clerk", tools=[helper.as_tool()])
    agent = Agent(model, tools=[clerk.as_tool()])
    paused = await turn(agent, session="s")
    assert open_question(paused).by == "agent:clerk"
    done = await answered(agent, paused, value="XL")
    assert (done.text, texts(model.requests[5])) == ("top", ["middle"])
    store = MemoryStore()
    await store.commit(paused.change())
    assert len(await store.sessions()) == 3


# ---- storing ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """A store of each kind."""
    return MemoryStore if request.param == "memory" else lambda: SqliteStore(tmp_path / "s.db")


async def stored(store: Store, key: SessionKey | str) -> Session:
    """A session that is in the store."""
    session = await store.load(key)
    assert session is not None
    return session


async def test_a_child_is_stored_with_its_parent_at_every_pause(make_store: Callable[[], Store]) -> None:
    """Two questions, three commits: both sessions are there after each, and the child goes on from what is stored."""
    model = ScriptedModel([ask_clerk()], [call("order")], [call("pay")], "Done there.", "Done.")
    agent = office(model, approve("pay"))
    store = make_store()
    try:
        result = await turn(agent, session="s")
        key = child_of(result).key
        for answer in ({"value": "XL"}, {"approved": True}, None):
            session = await store.commit(result.change())
            parent, child = await stored(store, "s"), await stored(store, key)
            assert (parent.version, child.version) == (session.version, session.version)
            assert child == replace(child_of(result), version=child.version)
            record = [e async for e in store.entries(key)]
            assert refold(key, record, digest_key=child.digest_key) == replace(child, parent=None, version=0)
            if answer is not None:
                result = await answered(agent, replace(result, session=unpack(pack(parent))), **answer)
        assert result.text == "Done."
    finally:
        await store.close()


async def test_many_children_of_one_turn(make_store: Callable[[], Store]) -> None:
    """Each call is a session of its own, stored in one commit."""
    model = ScriptedModel([ask_clerk("a"), ask_clerk("b")], "A.", "B.", [ask_clerk("c")], "C.", "Done.")
    store = make_store()
    try:
        result = await turn(office(model), session="s")
        await store.commit(result.change())
        assert (len(result.children), len(await store.sessions())) == (3, 4)
    finally:
        await store.close()


async def test_a_cancelled_parent_cancels_its_child() -> None:
    """Nothing goes on in the background, and nothing is kept."""
    began, ended = asyncio.Event(), list[str]()

    async def slow(args: object, ctx: object) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    model = ScriptedModel([ask_clerk()], [call("slow")])
    clerk = Agent(model, name="clerk", tools=[tool("slow", slow)])
    task = asyncio.ensure_future(turn(Agent(model, tools=[clerk.as_tool()])))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["ended"]
