"""Budgets: what is added up, when a limit is crossed, and what happens then."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Ask, Happened, approved
from onrecord.conversation.messages import ToolCall
from onrecord.conversation.usage import Usage
from onrecord.errors import ConfigurationError, FeatureFailed, LimitReached, ModelError
from onrecord.governance.budget import Budget, Limit, spent
from onrecord.governance.ledger import LEDGER, LimitHit, Spent, Ticked
from onrecord.models.chunks import TextChunk
from onrecord.models.prices import Price, Prices
from onrecord.models.request import Reading, Shape
from onrecord.prompt.model_choice import Choose
from onrecord.record.kinds import VerdictFiled
from onrecord.session import refold
from onrecord.session.session import Session
from onrecord.testing import FakeEffects, ScriptedModel, raises
from onrecord.turn.director import Query, Stage
from onrecord.turn.moments import Hooks
from onrecord.turn.result import TurnResult
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, call, calls_of, reply, results, tool, turn

pytestmark = pytest.mark.unit

USED = Usage(input_tokens=100, output_tokens=50)
PRICES = Prices({"scripted:": Price(input=1000.0, output=2000.0)})
"""A thousandth of a dollar for a token of input, two for one of output: a call of `USED` costs 0.2."""
PLAIN: Shape[str] = Shape(name="", schema={}, read=lambda held: Reading(text=held.text, value=held.text))


def looks(**budget: Any) -> tuple[Agent[Any, Any], ScriptedModel]:
    """An agent that looks something up twice before it answers, each call at 0.2 dollars."""
    model = ScriptedModel(call("lookup", n=1), call("lookup", n=2), "done", usage=USED)
    return Agent(model, tools=[tool()], features=[Budget(**{"prices": PRICES, **budget})]), model


def sums(result: TurnResult[Any]) -> list[float]:
    """The sums of a turn after each of its calls."""
    return [round(tick.cumulative.estimated_usd, 6) for tick in bodies(result, Ticked)]


def session_of(result: TurnResult[Any]) -> Session:
    """The session that a turn leaves."""
    assert result.session is not None
    return result.session


async def test_h98_each_call_is_added_up_and_a_limit_is_crossed_once() -> None:
    """0.2 and 0.4 and 0.6 of 0.3: one hit, at the second call; with `warn` nothing else happens (case 98).

    The original's prices are for a token; ours, as vendors publish them, are for a million.
    """
    agent, model = looks(turn=Limit(usd=0.3), then="warn")
    result = await turn(agent)
    ticks = bodies(result, Ticked)
    assert [round(tick.estimated_usd or 0, 6) for tick in ticks] == [0.2, 0.2, 0.2]
    assert sums(result) == [0.2, 0.4, 0.6]
    assert (ticks[0].tokens_input, ticks[0].tokens_output, ticks[0].model, ticks[0].provider) == (
        100, 50, "script", "scripted",
    )  # fmt: skip
    (hit,) = bodies(result, LimitHit)
    assert (hit.what, hit.limit, round(hit.actual, 6), hit.action, hit.per) == ("max_cost", 0.3, 0.4, "warn", "turn")
    assert (len(model.requests), result.text) == (3, "done")


async def test_h98_a_turn_that_is_stopped_runs_no_waiting_call_and_asks_nothing_more() -> None:
    """Cut short, without a wrap-up; the reason says which budget."""
    agent, model = looks(turn=Limit(usd=0.3))
    result = await turn(agent)
    (hit,) = bodies(result, LimitHit)
    assert (hit.action, len(model.requests), model.calls) == ("abort", 2, ["speak", "speak"])
    assert [status for status, _ in statuses(result)] == ["returned", "not_run"]
    assert (result.status, result.text) == ("silent", "")


def statuses(result: TurnResult[Any]) -> list[tuple[str, str]]:
    """What became of the calls of a turn."""
    return [(held.status, held.name) for held in calls_of(result)]


async def test_what_was_said_beside_the_waiting_calls_is_the_answer_of_a_stopped_turn() -> None:
    """It was paid for."""
    model = ScriptedModel(reply("Let me see.", call("lookup"), usage=USED))
    result = await turn(Agent(model, tools=[tool()], features=[Budget(turn=Limit(usd=0.1), prices=PRICES)]))
    assert (result.status, result.text) == ("answered", "Let me see.")


async def test_a_turn_may_fail_instead_and_runs_no_waiting_call_either() -> None:
    """`LimitReached`, with everything that happened."""
    agent, model = looks(turn=Limit(usd=0.3), then="fail")
    with pytest.raises(LimitReached, match=r"cost-budget: 0\.4 is more than the 0\.3 allowed for a turn") as failed:
        await turn(agent)
    assert failed.value.result is not None
    assert (len(model.requests), len(results(failed.value.result)), failed.value.code) == (2, 1, "limit-reached")
    assert round(spent(session_of(failed.value.result)).estimated_usd, 6) == 0.4


@pytest.mark.parametrize("then", ["stop", "fail"])
async def test_a_paid_answer_is_always_delivered(then: Any) -> None:
    """The limit is crossed by the answer itself: nothing more would be asked anyway."""
    model = ScriptedModel(reply("done", usage=USED))
    agent = Agent(model, features=[Budget(turn=Limit(usd=0.1), prices=PRICES, then=then)])
    result = await turn(agent)
    assert (result.text, [hit.action for hit in bodies(result, LimitHit)]) == ("done", ["abort"])


async def test_a_limit_that_is_reached_exactly_is_not_crossed() -> None:
    """Strictly more."""
    agent, model = looks(turn=Limit(tokens=450))
    result = await turn(agent)
    assert (result.text, bodies(result, LimitHit)) == ("done", [])
    agent, model = looks(turn=Limit(usd=0.4))
    (hit,) = bodies(await turn(agent), LimitHit)
    assert (len(model.requests), round(hit.actual, 6)) == (3, 0.6)
    agent, model = looks(turn=Limit(tokens=299))
    result = await turn(agent)
    (hit,) = bodies(result, LimitHit)
    assert (hit.what, hit.limit, hit.actual, len(model.requests)) == ("max_tokens", 299, 300, 2)


async def test_tokens_are_limited_without_any_price() -> None:
    """And cost nobody knows what."""
    agent, _ = looks(turn=Limit(tokens=1000), prices=None)
    result = await turn(agent)
    assert [tick.estimated_usd for tick in bodies(result, Ticked)] == [None, None, None]
    assert bodies(result, Ticked)[-1].cumulative == Spent(tokens_input=300, tokens_output=150)


async def test_time_is_limited_between_calls() -> None:
    """A running call is not cut off."""
    effects = FakeEffects()

    def slow(_: object) -> Any:
        effects.advance(seconds=40)
        return call("lookup")

    model = ScriptedModel(slow, slow, "never")
    agent = Agent(model, tools=[tool()], features=[Budget(turn=Limit(seconds=60))])
    result = await agent.turn("hi", effects=effects)
    (hit,) = bodies(result, LimitHit)
    assert (hit.what, hit.limit, hit.actual, len(model.requests)) == ("max_seconds", 60, 80.0, 2)


async def test_a_session_has_sums_of_its_own() -> None:
    """Over its turns; once it has spent too much no turn asks a model any more."""
    model = ScriptedModel(*["fine"] * 3, usage=USED)
    agent = Agent(model, features=[Budget(session=Limit(usd=0.3), prices=PRICES)])
    first = await turn(agent)
    second = await turn(agent, session=session_of(first))
    assert [round(tick.session.estimated_usd, 6) for tick in bodies(second, Ticked)] == [0.4]
    assert (sums(second), [hit.per for hit in bodies(second, LimitHit)], second.text) == ([0.2], ["session"], "fine")
    third = await turn(agent, session=session_of(second))
    assert (len(model.requests), third.status, bodies(third, LimitHit)) == (2, "silent", [])
    (verdict,) = bodies(third, VerdictFiled)
    assert verdict.why.startswith("cost-budget: 0.4 is more than the 0.3 allowed for a session")


class Judging:
    """Judges, then speaks."""

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        """Two calls."""
        await stage.judge(Query(key="mood", pieces=(), shape=PLAIN))
        await stage.speak(turn.spec.brief)


async def test_judgements_and_consultations_count_too() -> None:
    """Whoever asks: they are calls like others, and are told as what they are."""

    async def consults(turn: Turn, request: Any) -> Any:
        await turn.consult(Query(key="c", pieces=(), shape=PLAIN), where="main/c")
        return request

    model = ScriptedModel("fine", judge=["calm"], consult=["yes"], usage=USED)
    features: list[Any] = [Budget(prices=PRICES), Named("consults", Hooks(on_request=consults))]
    result = await turn(Agent(model, features=features, director=Judging()))
    assert [tick.purpose for tick in bodies(result, Ticked)] == ["judge", "consult", "speak"]
    assert sums(result) == [0.2, 0.4, 0.6]


async def test_a_wrap_up_counts_too() -> None:
    """It is the request after the last permitted round."""
    model = ScriptedModel(call("lookup"), "wrapped up", usage=USED)
    result = await turn(Agent(model, tools=[tool()], rounds=1, features=[Budget(prices=PRICES)]))
    assert [tick.purpose for tick in bodies(result, Ticked)] == ["speak", "wrap_up"]
    assert sums(result) == [0.2, 0.4]


async def test_what_is_asked_after_the_last_reply_is_added_up_at_the_end() -> None:
    """A consultation while the turn settles."""

    async def consults(turn: Turn) -> None:
        await turn.consult(Query(key="c", pieces=(), shape=PLAIN), where="main/c")

    model = ScriptedModel("fine", consult=["yes"], usage=USED)
    features: list[Any] = [Named("consults", Hooks(on_settle=consults)), Budget(prices=PRICES)]
    result = await turn(Agent(model, features=features))
    assert [tick.purpose for tick in bodies(result, Ticked)] == ["speak", "consult"]


async def test_a_judgement_that_may_not_be_paid_fails_the_turn() -> None:
    """There is no value to go on with."""
    model = ScriptedModel("fine", judge=["calm"], usage=USED)
    agent = Agent(model, features=[Budget(session=Limit(usd=0.1), prices=PRICES)], director=Judging())
    first = await turn(agent)
    assert (first.text, model.calls) == ("", ["judge"])
    with pytest.raises(LimitReached):
        await turn(agent, session=session_of(first))


async def test_a_turn_that_failed_was_paid_all_the_same() -> None:
    """Its calls are in the sums of the session, though it never settled."""
    model = ScriptedModel(
        reply(call("lookup"), usage=USED), [TextChunk("par"), raises("overload")], reply("fine", usage=USED)
    )
    agent: Agent[Any, Any] = Agent(model, tools=[tool()], features=[Budget(prices=PRICES)])
    stream = agent.turn_stream("hi", effects=FakeEffects())
    with pytest.raises(ModelError) as failed:
        await stream.result()
    assert failed.value.result is not None
    later = await turn(agent, session=session_of(failed.value.result))
    assert round(spent(session_of(later)).estimated_usd, 6) == 0.4
    assert sums(later) == [0.2]


async def test_a_reply_of_a_turn_that_failed_before_it_was_added_up_is_added_later() -> None:
    """To the session, and not to the turn that adds it."""

    async def breaks(turn: Turn, held: Any) -> Any:
        raise RuntimeError("broken")

    model = ScriptedModel("lost", usage=USED)
    first = Named("breaks", Hooks(on_reply=breaks, order={"reply": 1}))
    broken: Agent[Any, Any] = Agent(model, features=[first, Budget(prices=PRICES)])
    with pytest.raises(FeatureFailed) as failed:
        await turn(broken)
    assert failed.value.result is not None
    agent = Agent(ScriptedModel("fine", usage=USED), features=[Budget(prices=PRICES)])
    later = await turn(agent, session=session_of(failed.value.result))
    ticks = bodies(later, Ticked)
    assert [tick.of == ticks[-1].of for tick in ticks] == [False, True]
    assert sums(later) == [0.2, 0.2]
    assert round(spent(session_of(later)).estimated_usd, 6) == 0.4


async def test_the_sums_are_a_fold() -> None:
    """Replaying the record gives them again."""
    agent, _ = looks(turn=Limit(usd=0.3), then="warn")
    result = await turn(agent)
    session = session_of(result)
    again = refold(session.key, result.entries, digest_key=session.digest_key, folds=agent.plan.folds)
    assert again.slots["budget"].value == session.slots["budget"].value
    assert LEDGER.apply(LEDGER.start(), result.entries[0]).turn == result.entries[0].turn


async def test_a_provider_that_counts_nothing_leaves_zeros() -> None:
    """Zero of both means that nobody measured."""
    result = await turn(Agent(ScriptedModel("fine"), features=[Budget(prices=PRICES)]))
    (tick,) = bodies(result, Ticked)
    assert (tick.tokens_input, tick.tokens_output, tick.estimated_usd) == (0, 0, None)


async def test_a_model_without_a_price_is_not_asked_under_a_limit_in_dollars() -> None:
    """The limit would not hold. Refused while building, or once the model is chosen; `warn` limits nothing."""
    prices = Prices({"gpt-5": Price(input=1.0, output=1.0)})
    model = ScriptedModel("fine", usage=USED)
    budget = Budget(turn=Limit(usd=1.0), prices=prices)
    with pytest.raises(ConfigurationError, match="'scripted:script' has no price"):
        Agent(model, features=[budget])
    with pytest.raises(FeatureFailed, match="'scripted:script' has no price"):
        await turn(Agent(lambda _: model, features=[budget]))
    priced = ScriptedModel("fine", usage=USED, card=replace(model.card, model="gpt-5"))
    with pytest.raises(FeatureFailed, match="'scripted:script' has no price"):
        await turn(Agent(priced, features=[budget, Choose(lambda *_: model)]))
    assert model.requests == priced.requests == []
    result = await turn(Agent(model, features=[Budget(turn=Limit(usd=1.0), prices=prices, then="warn")]))
    assert (result.text, bodies(result, Ticked)[0].estimated_usd) == ("fine", None)


async def test_rounds_may_be_a_limit_too() -> None:
    """Strictly: instead of one last request without tools."""
    model = ScriptedModel(call("lookup"), call("lookup"), "wrapped up")
    agent: Agent[Any, Any] = Agent(model, tools=[tool()], rounds=2, features=[Budget(rounds_strict=True)])
    with pytest.raises(LimitReached, match="its 2 rounds"):
        await turn(agent)
    assert len(model.requests) == 2


async def test_a_turn_that_paused_goes_on_with_what_it_had_spent() -> None:
    """Another turn in between has sums of its own."""

    async def asks(turn: Turn, held: ToolCall) -> Any:
        return Ask("Really?")

    model = ScriptedModel(call("lookup"), "aside", "done", usage=USED)
    features: list[Any] = [Named("asks", Hooks(before_tool=asks)), Budget(prices=PRICES)]
    agent: Agent[Any, Any] = Agent(model, tools=[tool()], features=features)
    paused = await turn(agent)
    assert paused.question is not None
    aside = await turn(agent, Happened("ping", key="p1"), session=session_of(paused))
    assert sums(aside) == [0.2]
    done = await turn(agent, approved(paused.question, by="ana"), session=session_of(aside))
    assert (done.text, sums(done)) == ("done", [0.4])
    assert round(spent(session_of(done)).estimated_usd, 6) == 0.6


async def test_each_turn_crosses_its_limit_once_a_paused_one_too() -> None:
    """However often it goes on, and whichever turns go by meanwhile."""

    async def asks(turn: Turn, held: ToolCall) -> Any:
        return Ask("Really?")

    free = reply("aside", usage=Usage())
    model = ScriptedModel(
        reply(call("lookup"), usage=USED), free, reply("done", usage=USED), reply("again", usage=USED)
    )
    features: list[Any] = [
        Named("asks", Hooks(before_tool=asks)), Budget(prices=PRICES, turn=Limit(usd=0.1), then="warn"),
    ]  # fmt: skip
    agent: Agent[Any, Any] = Agent(model, tools=[tool()], features=features)
    paused = await turn(agent)
    assert paused.question is not None
    aside = await turn(agent, Happened("ping", key="p1"), session=session_of(paused))
    done = await turn(agent, approved(paused.question, by="ana"), session=session_of(aside))
    again = await turn(agent, session=session_of(done))
    assert [len(bodies(result, LimitHit)) for result in (paused, aside, done, again)] == [1, 0, 0, 1]


def test_the_sums_of_a_session_without_a_budget_are_empty() -> None:
    """Nobody added anything up."""
    assert spent(Session(key=SessionKey("s"))) == Spent()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"turn": Limit(usd=1.0)}, "needs prices"),
        ({"session": Limit(seconds=1.0)}, "no limit in seconds"),
        ({"then": "panic"}, "then= of Budget cannot be 'panic'"),
        ({"turn": 5000}, "takes a Limit, not int"),
    ],
)
def test_a_budget_that_could_not_hold_is_refused(fields: dict[str, Any], told: str) -> None:
    """When it is made."""
    with pytest.raises(ConfigurationError, match=told):
        Budget(**fields)


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "5", True])
def test_what_is_no_limit_is_refused(bad: Any) -> None:
    """By its name."""
    for name in ("usd", "tokens", "seconds"):
        with pytest.raises(ConfigurationError, match=name):
            Limit(**{name: bad})


async def test_the_manifest_says_what_the_limits_are() -> None:
    """So that a record tells under which ones it was made."""
    agent, _ = looks(turn=Limit(usd=0.3, tokens=0), session=Limit(tokens=5))
    assert agent.plan.spec.manifest["budget"] == {
        "then": "stop", "turn_usd": 0.3, "turn_tokens": 0, "session_tokens": 5,
    }  # fmt: skip
