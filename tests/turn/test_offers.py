"""Which tools a speaker has: allow-lists, toolsets, features that offer or hide (seed 001; architecture, Requests)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.errors import ConfigurationError, FeatureFailed
from onrecord.models.request import Request
from onrecord.record.kinds import Noted
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import OfferContext
from onrecord.turn.director import Brief, Stage
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.plan import offer_of
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, keeping, read, results, texts, tool, turn

pytestmark = pytest.mark.unit


class Briefed:
    """A director that speaks once, with this brief."""

    def __init__(self, **brief: Any) -> None:
        self.brief = brief

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        await stage.speak(Brief(key="answer", **self.brief))


class Shop:
    """A toolset that offers what it is told to, and remembers when it was asked."""

    def __init__(self, *offered: Any) -> None:
        self.offered, self.asked = offered, list[OfferContext]()

    async def tools(self, ctx: OfferContext, /) -> Sequence[Tool]:
        self.asked.append(ctx)
        return self.offered


async def offered(*answers: Any, tools: Sequence[Any] = (), **given: Any) -> list[list[str]]:
    """The names offered in each request of one turn."""
    model = ScriptedModel(*answers)
    await turn(Agent(model, tools=tools, **given))
    return [read(r)["tools"] for r in model.requests]


async def test_an_allow_list_is_in_the_agents_order() -> None:
    """Whatever order the list has."""
    held = [tool(n) for n in "abc"]
    assert await offered("x", tools=held, director=Briefed(tools=("c", "a"))) == [["a", "c"]]
    assert await offered("x", tools=held, director=Briefed()) == [["a", "b", "c"]]


@pytest.mark.parametrize("none", [(), []])
async def test_an_empty_list_is_no_tools_at_all(none: Any) -> None:
    """Not even those of a toolset; a call that the model makes up is not run (seed 001)."""
    shop, ran = Shop(tool("sold")), list[str]()
    held = tool("lookup", lambda *_: ran.append("ran"))
    assert await offered(["plain", call("lookup")], tools=[held, shop], director=Briefed(tools=none)) == [[]]
    assert (ran, shop.asked) == ([], [])


async def test_an_unknown_id_in_an_allow_list_is_refused_by_name() -> None:
    """With the ids that would do."""
    with pytest.raises(ConfigurationError, match="unknown tool 'c' in an allow-list") as refused:
        await offered("x", tools=[tool("a"), tool("b")], director=Briefed(tools=("a", "c")))
    assert refused.value.hint == "registered tools: 'a', 'b'"


async def test_what_the_list_leaves_out_is_not_available() -> None:
    """Although the agent has it."""
    model = ScriptedModel(call("b"), "done")
    await turn(Agent(model, tools=[tool("a"), tool("b")], director=Briefed(tools=("a",))))
    assert texts(model.requests[1]) == ['{"error":"Tool \\"b\\" is not available."}']


async def test_a_brief_has_rounds_of_its_own() -> None:
    """They win over the agent's."""
    answers = [call("a"), "done"]
    assert await offered(*answers, tools=[tool("a")], director=Briefed(rounds=1)) == [["a"], []]
    assert await offered("done", tools=[tool("a")], director=Briefed(rounds=0)) == [[]]


# ---- toolsets --------------------------------------------------------------------------------------------------------


async def test_toolsets_are_asked_each_round_with_what_they_need_to_know() -> None:
    """What they offer may be called, and stands behind the registered tools."""
    shop = Shop(tool("sold"))
    model = ScriptedModel(call("sold"), "done")
    result = await turn(Agent(model, tools=[shop, tool("own")]), context="crm")
    assert [read(r)["tools"] for r in model.requests] == [["own", "sold"]] * 2
    assert texts(model.requests[1]) == ["sold"]
    assert [(c.round, c.context, c.turn) for c in shop.asked] == [(n, "crm", result.entries[0].turn) for n in range(2)]


async def test_an_agent_may_have_toolsets_alone() -> None:
    """It is capped and wrapped up like any other; the wrap-up asks no toolset."""
    shop = Shop(tool("sold"))
    assert await offered(call("sold"), "done", tools=[shop], rounds=1) == [["sold"], []]
    assert len(shop.asked) == 1


async def test_zero_rounds_ask_no_toolset() -> None:
    """``rounds=0`` sends no tools at all, wherever they come from."""
    shop = Shop(tool("sold"))
    assert await offered("done", tools=[shop], rounds=0) == [[]]
    assert shop.asked == []


async def test_the_first_of_two_equal_names_is_offered_and_the_other_noted() -> None:
    """Registered tools come first, then toolsets in order."""
    mine, theirs = tool("a", lambda *_: "mine"), tool("a", lambda *_: "theirs")
    model = ScriptedModel(call("a"), "done")
    result = await turn(Agent(model, tools=[mine, Shop(theirs), Shop(tool("b")), Shop(tool("b"))]))
    assert read(model.requests[0])["tools"] == ["a", "b"]
    assert texts(model.requests[1]) == ["mine"]
    told = "tool {!r} of Shop is hidden by one of {}"
    assert {n.text for n in bodies(result, Noted)} == {
        told.format("a", "the agent itself"), told.format("b", "Shop")
    }  # fmt: skip


class Once(Shop):
    """A toolset that has its tools in the first round alone."""

    async def tools(self, ctx: OfferContext, /) -> Sequence[Tool]:
        return self.offered if ctx.round == 0 else ()


@pytest.mark.parametrize("own", [(), ("a",)])
async def test_161_what_a_toolset_does_not_offer_any_more_does_not_run(own: tuple[str, ...]) -> None:
    """A gate of a toolset gates execution too, where narrowing by a feature only hides (§5, §14.4, case 161).

    The model is told, and goes on, also where no other tool is left.
    """
    ran = list[str]()
    model = ScriptedModel(call("sold"), call("sold"), "done")
    sold = tool("sold", keeping(ran, "sold"))
    result = await turn(Agent(model, tools=[Once(sold), *map(tool, own)]))
    assert [read(r)["tools"] for r in model.requests] == [[*own, "sold"], [*own], [*own]]
    assert (results(result), ran, result.text) == ([("sold", "returned"), ("sold", "absent")], ["sold"], "done")
    assert texts(model.requests[2])[-1] == '{"error":"Tool \\"sold\\" is not available."}'


async def test_a_call_that_waited_goes_on_with_what_its_round_was_offered() -> None:
    """Toolsets are asked as they were for that round; the next round is another one."""
    model = ScriptedModel(call("sold"), call("sold"), "done")
    agent: Agent[Any, Any] = Agent(model, tools=[Once(tool("sold", lambda *_: Ask("Which?")))])
    paused = await turn(agent)
    assert paused.question is not None
    done = await turn(agent, Answered(paused.question.key, value="that one"), session=paused.session)
    assert results(done) == [("sold", "returned"), ("sold", "absent")]
    assert (texts(model.requests[1]), done.text) == (["that one"], "done")


async def test_a_toolset_that_raises_is_a_failed_feature() -> None:
    """It is named, and its words are not in the message."""

    class Broken:
        async def tools(self, ctx: OfferContext, /) -> Sequence[Tool]:
            raise OSError("secret address")

    with pytest.raises(FeatureFailed) as failed:
        await turn(Agent(ScriptedModel("x"), tools=[Broken()]))
    assert str(failed.value) == "feature 'Broken' failed at request: OSError"
    assert (failed.value.feature, failed.value.moment) == ("Broken", "request")


async def test_a_toolset_that_offers_what_is_no_tool_is_a_failed_feature() -> None:
    """A function without ``@tool`` is the usual slip."""
    with pytest.raises(FeatureFailed, match="feature 'Shop' failed at request: it offers a function, which is no tool"):
        await turn(Agent(ScriptedModel("x"), tools=[Shop(lambda *_: None)]))


# ---- features --------------------------------------------------------------------------------------------------------


def offering(change: Any, slot: str = "NARROW") -> Named:
    """A feature that changes what is offered."""

    async def on_request(turn: Turn, request: Request) -> Request:
        return replace(request, offers=change(request.offers))

    return Named("offering", Hooks(on_request=on_request, order={"request": SLOTS["request"][slot]}))


async def test_186_narrowing_hides_and_does_not_forbid() -> None:
    """A call to a hidden tool of the brief still runs: the offer is governed, not dispatch (case 186, decision 4)."""
    model = ScriptedModel(call("b"), "done")
    result = await turn(Agent(model, tools=[tool("a"), tool("b")], features=[offering(lambda o: o[:1])]))
    assert read(model.requests[0])["tools"] == ["a"]
    assert results(result) == [("b", "returned")]


async def test_a_tool_that_a_feature_offers_may_be_called_and_is_capped() -> None:
    """Also where the agent has no tools of its own: the cap and the wrap-up hold."""
    extra = tool("extra")

    async def on_request(turn: Turn, request: Request) -> Request:
        return replace(request, offers=(offer_of(extra),)) if request.purpose == "speak" else request

    model = ScriptedModel(call("extra"), call("extra"), "done")
    result = await turn(Agent(model, features=[Named("more", Hooks(on_request=on_request))], rounds=2))
    assert results(result) == [("extra", "returned")] * 2
    assert [(r.purpose, read(r)["tools"]) for r in model.requests] == [
        ("speak", ["extra"]), ("speak", ["extra"]), ("wrap_up", [])
    ]  # fmt: skip


async def test_no_feature_offers_tools_where_rounds_are_zero() -> None:
    """Zero sends no tools at all, whoever offers them."""
    extra = offer_of(tool("extra"))
    result = await offered(["plain", call("extra")], rounds=0, features=[offering(lambda o: (*o, extra))])
    assert result == [[]]


async def test_no_feature_offers_tools_in_the_wrap_up() -> None:
    """The last request has none, whoever offers them."""
    extra = offer_of(tool("extra"))
    features = [offering(lambda o: (*o, extra))]
    assert await offered(call("a"), "done", tools=[tool("a")], rounds=1, features=features) == [["a", "extra"], []]


async def test_an_allow_list_holds_for_toolsets_too() -> None:
    """What it does not name is not offered, whoever brings it."""
    shop = Shop(tool("sold"), tool("own"))
    assert await offered("x", tools=[tool("own"), shop], director=Briefed(tools=("own",))) == [["own"]]


async def test_an_allow_list_may_name_a_tool_of_a_toolset() -> None:
    """A step that may use one tool of a server says so by its id."""
    shop = Shop(tool("sold"), tool("other"))
    assert await offered("x", tools=[tool("own"), shop], director=Briefed(tools=("sold",))) == [["sold"]]
