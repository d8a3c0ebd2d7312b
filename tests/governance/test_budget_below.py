"""A budget over sub-agents: it looks at them while they work, counts each call once, prices each model by itself."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.usage import Usage
from onrecord.errors import ConfigurationError, LimitReached
from onrecord.governance.budget import Budget, Limit, spent
from onrecord.governance.ledger import LEDGER, LimitHit, Ticked
from onrecord.models.model import ModelCard
from onrecord.models.prices import Price, Prices
from onrecord.record.kinds import ToolReturned
from onrecord.session import refold
from onrecord.testing import FakeEffects, ScriptedModel, call, reply
from onrecord.turn.moments import Hooks
from tests.agent.children import Effects, ask, clerk
from tests.turn.acting import Named, bodies, results, texts, tool, turn
from tests.turn.pausing.asking import answered, asks

pytestmark = pytest.mark.unit

USED = Usage(input_tokens=100, output_tokens=50)
PRICES = Prices({"scripted:": Price(input=1000.0, output=2000.0), "small:": Price(input=100.0, output=200.0)})
"""A call of `USED` costs 0.2 dollars, at the small model 0.02."""
SMALL = ModelCard(provider="small", model="mini", protocol="scripted")


def helper(*script: Any, name: str = "helper", card: ModelCard | None = None, **given: Any) -> Agent[Any, Any]:
    """A sub-agent with a model of its own."""
    return Agent(ScriptedModel(*script, usage=USED, card=card), name=name, tools=[tool()], **given)


def boss(below: Agent[Any, Any], *script: Any, **budget: Any) -> Agent[Any, Any]:
    """An agent with a budget over it, whose helpers work side by side."""
    model = ScriptedModel(*script, usage=USED)
    return Agent(
        model, tools=[below.as_tool(concurrency_safe=True)], features=[Budget(**{"prices": PRICES, **budget})]
    )  # fmt: skip


def money(result: Any) -> list[float]:
    """What was paid, tick by tick."""
    return [round(tick.estimated_usd or 0, 6) for tick in bodies(result, Ticked)]


def asked(agent: Agent[Any, Any]) -> int:
    """How often the agent's model was asked."""
    return len(agent.plan.model.requests)  # type: ignore[attr-defined]  # a ScriptedModel


async def test_each_model_of_a_sub_agent_is_priced_by_itself() -> None:
    """Those of its own sub-agents too; the result says the same by model, and the sums are folds of the record."""
    deep = helper("deep", name="deep", card=SMALL)
    middle = helper(ask("x", of="deep"), "middle").with_(tools=[deep.as_tool()])
    agent = boss(middle, ask("go", of="helper"), "done")
    result = await turn(agent, session="s")
    assert money(result) == [0.2, 0.4, 0.02, 0.2]
    assert [(tick.purpose, tick.provider) for tick in bodies(result, Ticked)] == [
        ("speak", "scripted"), ("tool", "scripted"), ("tool", "small"), ("speak", "scripted"),
    ]  # fmt: skip
    twice = USED + USED
    assert result.uses == {"scripted:script": twice + twice, "small:mini": USED}
    assert bodies(result, ToolReturned)[0].uses == {"scripted:script": twice, "small:mini": USED}
    assert result.session is not None
    assert round(spent(result.session).estimated_usd, 6) == 0.82
    told = refold(result.session.key, result.entries, agent.plan.folds, digest_key=result.session.digest_key)
    assert told.slots[LEDGER.name] == result.session.slots[LEDGER.name]


async def test_a_sub_agent_is_stopped_while_it_works() -> None:
    """Once the sum of both is over the limit neither asks again; a waiting call is not run, and its parent says so."""
    below = helper(*[call("lookup", n=n) for n in range(9)])
    agent = boss(below, ask("go", of="helper"), turn=Limit(usd=0.5))
    result = await turn(agent)
    assert (asked(below), asked(agent), round(sum(money(result)), 6)) == (2, 1, 0.6)
    (child,) = result.children
    assert results(child) == [("lookup", "returned"), ("lookup", "not_run")]
    (returned,) = bodies(result, ToolReturned)
    assert returned.status == "failed"
    assert "helper was stopped before it answered: cost-budget: 0.6 is more than the 0.5" in str(returned.result)
    assert [(hit.what, round(hit.actual, 6)) for hit in bodies(result, LimitHit)] == [("max_cost", 0.6)]


async def test_what_a_stopped_sub_agent_said_is_a_part_of_an_answer() -> None:
    """It was paid for: the call is partial, not failed."""
    below = helper([*"Half.", call("lookup")])
    result = await turn(boss(below, ask("go", of="helper"), turn=Limit(tokens=200)))
    (returned,) = bodies(result, ToolReturned)
    assert (returned.status, "Half." in str(returned.result)) == ("partial", True)


@pytest.mark.parametrize("then", ["stop", "fail"])
async def test_a_paid_answer_of_a_sub_agent_is_always_delivered(then: Any) -> None:
    """It is over the limit with it, but nothing more is asked for: the call has returned, and its parent ends."""
    agent = boss(helper("Half and half."), ask("go", of="helper"), turn=Limit(tokens=200), then=then)
    if then == "stop":
        result = await turn(agent)
    else:
        with pytest.raises(LimitReached) as failed:
            await turn(agent)
        assert failed.value.result is not None
        result = failed.value.result
    (returned,) = bodies(result, ToolReturned)
    assert (returned.status, "Half and half." in str(returned.result)) == ("returned", True)


@pytest.mark.parametrize("several", [2, 3])
async def test_sub_agents_side_by_side_share_the_limit(several: int) -> None:
    """Each may end the call that it has begun, and no more: the limit is passed by one call for each at most."""
    below = helper(*[call("lookup", n=n) for n in range(20)])
    agent = boss(below, ask(*map(str, range(several)), of="helper"), turn=Limit(usd=1.0))
    result = await turn(agent)
    total = round(sum(money(result)), 6)
    assert 1.0 < total <= 1.0 + 0.2 * several
    assert round(0.2 * (asked(below) + asked(agent)), 6) == total
    assert [status for _, status in results(result)] == ["failed"] * several


async def test_a_limit_holds_three_agents_down() -> None:
    """The one that works is looked at, however deep it is, and each above it ends as well."""
    deep = helper(*[call("lookup", n=n) for n in range(9)], name="deep", card=SMALL)
    middle = helper(ask("x", of="deep"), "never").with_(tools=[deep.as_tool()])
    agent = boss(middle, ask("go", of="helper"), "never", turn=Limit(usd=0.43))
    result = await turn(agent)
    assert (asked(agent), asked(middle), asked(deep)) == (1, 1, 2)
    assert round(sum(money(result)), 6) == 0.44


async def test_what_was_spent_before_a_question_is_counted_once() -> None:
    """A sub-agent pauses twice; the limit holds over all takes, and no call is in the sums twice."""
    below = helper(call("order"), call("order"), call("order"), "never").with_(tools=[tool("order", asks())])
    agent = boss(below, ask("go", of="helper"), turn=Limit(usd=0.75))
    paused = await turn(agent)
    second = await answered(agent, paused, value="XL")
    done = await answered(agent, second, value="L")
    assert [r.status for r in (paused, second, done)] == ["paused", "paused", "silent"]
    assert (asked(below), money(paused), money(second)) == (3, [0.2], [])
    assert round(sum(money(done)), 6) == 0.6
    assert done.uses == {"scripted:script": USED}
    assert [hit.what for hit in bodies(done, LimitHit)] == ["max_cost"]


async def test_two_that_wait_are_counted_while_the_other_goes_on() -> None:
    """What the one spent before it asked is in the sums, though its call has not returned."""
    agent = boss(clerk(), ask("order:A order:A order:A", "pay:b order:B", of="clerk"), turn=Limit(tokens=185))
    paused = await turn(agent)
    again = await answered(agent, paused, value="M")
    assert ([c.status for c in again.children], results(again)) == (["silent"], [("clerk", "failed")])
    done = await answered(agent, again, value="M")
    assert (done.status, results(done)) == ("silent", [("clerk", "failed")])
    assert sum(t.tokens_input + t.tokens_output for r in (paused, again, done) for t in bodies(r, Ticked)) == 194


@pytest.mark.parametrize("then", ["fail", "warn"])
async def test_the_other_ends_of_a_budget(then: Any) -> None:
    """`fail`: the sub-agent is told first, then the turn fails with what happened. `warn`: it only files."""
    below = helper(*[call("lookup", n=n) for n in range(3)], "Here.")
    agent = boss(below, ask("go", of="helper"), "done", turn=Limit(usd=0.5), then=then)
    if then == "warn":
        result = await turn(agent)
        assert (result.text, asked(below)) == ("done", 4)
        return
    with pytest.raises(LimitReached, match="cost-budget") as failed:
        await turn(agent)
    assert failed.value.result is not None
    (child,) = failed.value.result.children
    assert (child.status, asked(below), len(failed.value.result.change().children)) == ("failed", 2, 1)


async def test_a_session_s_limit_counts_sub_agents_of_all_its_turns() -> None:
    """The second turn's sub-agent begins with what is left."""
    below = helper("One.", call("lookup"), call("lookup"))
    agent = boss(below, ask("a", of="helper"), "done", ask("b", of="helper"), session=Limit(usd=0.95))
    first = await turn(agent, session="s")
    second = await turn(agent, session=first.session)
    assert (first.text, second.text, asked(below)) == ("done", "", 2)
    assert [(hit.per, hit.what) for hit in bodies(second, LimitHit)] == [("session", "max_cost")]


async def test_time_is_looked_at_below_too() -> None:
    """Seconds since the turn began, not since the sub-agent did."""
    effects = FakeEffects()

    def slow(_: object) -> Any:
        effects.advance(seconds=20)
        return reply(call("lookup"))

    below = helper(*[slow] * 9)
    result = await turn(boss(below, ask("go", of="helper"), turn=Limit(seconds=50), prices=None), effects=effects)
    assert (asked(below), [hit.what for hit in bodies(result, LimitHit)]) == (3, ["max_seconds"])


async def test_a_budget_of_the_sub_agent_is_its_own() -> None:
    """It is stopped by itself; its parent reads why, and goes on."""
    below = helper(*[call("lookup", n=n) for n in range(9)], features=[Budget(turn=Limit(tokens=200))])
    agent = boss(below, ask("go", of="helper"), "Then without.")
    result = await turn(agent)
    assert result.text == "Then without."
    assert "helper was stopped before it answered: token-budget" in texts(agent.plan.model.requests[1])[0]  # type: ignore[attr-defined]  # a ScriptedModel


def test_a_sub_agent_whose_model_has_no_price_is_refused() -> None:
    """However deep it is, by name; a budget that only warns, or limits no dollars, takes it."""
    deep = helper(name="deep", card=replace(SMALL, provider="other"))
    middle = helper().with_(tools=[deep.as_tool()])
    with pytest.raises(ConfigurationError, match=r"sub-agent 'deep': model 'other:mini' has no price") as refused:
        boss(middle, turn=Limit(usd=1))
    assert "prices=" in refused.value.hint
    boss(middle, turn=Limit(usd=1), then="warn")
    boss(middle, turn=Limit(tokens=1))


async def test_a_sub_agent_that_chooses_its_model_later_is_refused_then() -> None:
    """Before anything is asked of a model that nobody priced."""
    other = ScriptedModel("never", card=replace(SMALL, provider="other"))
    below: Agent[Any, Any] = Agent(lambda _: other, name="helper")
    result = await turn(boss(below, ask("go", of="helper"), "done", turn=Limit(usd=9)))
    assert (other.requests, results(result)) == ([], [("helper", "failed")])


async def test_a_guard_that_breaks_is_the_failure_of_its_feature() -> None:
    """The sub-agent fails by name, its parent is told, and nothing was sent."""

    def breaks(turn: Any, child: Any, seen: Any) -> None:
        raise RuntimeError("guard-canary")

    below = helper("never")
    agent = boss(below, ask("go", of="helper"), "done")
    agent = agent.with_(features=[Named("mine", Hooks(guard=breaks))])
    result = await turn(agent)
    assert (asked(below), results(result)) == (0, [("helper", "failed")])
    assert "'mine' failed at request: RuntimeError" in texts(agent.plan.model.requests[1])[0]  # type: ignore[attr-defined]  # a ScriptedModel
    assert "canary" not in str(result.entries)


async def test_effects_before_a_limit_stand_and_none_come_after() -> None:
    """What was paid for is on the record with its effects."""
    effects = Effects()
    agent = boss(clerk(effects), ask("pay:a pay:b pay:c pay:d", of="clerk"), turn=Limit(tokens=180))
    await turn(agent)
    assert effects.done == ["a", "b"]
