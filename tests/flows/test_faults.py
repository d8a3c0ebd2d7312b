"""Faults of the originals that this library does not have, one test at least for each that the issue lists."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from onrecord.flows import Collect, Do, Flow, If, OnEvent, OnMessage, OnSilence, Say, Talk, Wait
from onrecord.session.codec import dumps_session, loads_session
from onrecord.session.session import Session
from onrecord.testing import raises
from onrecord.turn.options import Silenced
from tests.flows.playing import T0, Play, after, ends, keys, line, says, skips, starts, wakes

pytestmark = pytest.mark.unit

SAY = [says("Right?")]
HI = Talk("Hi.", id="t")

# ---- a silenced turn must not spend a once-claim ---------------------------------------------------------------------


@pytest.mark.parametrize("step", [Collect("ok", id="q"), Talk("Hi.", id="q"), Say("Hi", id="q")])
@pytest.mark.parametrize("phrases", [(), ("asks",)], ids=["catch-all", "lone"])
async def test_a_silenced_turn_spends_no_claim(step: Any, phrases: tuple[str, ...]) -> None:
    """A flow that could only have spoken did nothing, so it may begin when the gate is open again."""
    play = Play(Flow("f", on=[OnMessage(*phrases)], steps=[step]), idle="silent")
    await play.said(key="m1", options=[Silenced("human")])
    assert (play.claims, play.state.runs) == ({}, ())
    speaks = not isinstance(step, Say)
    assert starts(await play.said(key="m2", speak=SAY if speaks else [])) == ["f#m2"]


async def test_a_silenced_turn_that_came_to_nothing_spends_no_claim() -> None:
    """So it is with a flow that first asked a condition, which does nothing either."""
    play = Play(Flow("f", on=[OnMessage()], steps=[If({"known": ["name"]}, id="g", then="t", else_="t"), HI]))
    result = await play.said(key="m1", options=[Silenced("human")])
    assert ends(result) == [("f#m1", "skipped")]
    assert (play.claims, play.state.runs) == ({}, ())
    assert starts(await play.said(key="m2", speak=SAY)) == ["f#m2"]


async def test_a_silenced_turn_that_did_something_spends_it() -> None:
    """An action ran, so the claim stands: it must not run again."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Do("notify", id="n"), HI]), idle="silent")
    await play.said(key="m1", options=[Silenced("human")])
    assert ([*play.claims], len(play.notified)) == (["f:s1:"], 1)
    await play.said(key="m2")
    assert len(play.notified) == 1


# ---- a suspended run of a once-flow can be routed back to ------------------------------------------------------------


async def test_a_suspended_run_of_a_once_flow_is_routed_back_to() -> None:
    """The message is the suspended run's again: it goes on, and no second one starts."""
    play = Play(
        Flow("sales", on=[OnMessage("wants to buy")], steps=[Collect("ok", id="q")]),
        Flow("help", on=[OnMessage("has a problem")], steps=[Collect("ok", id="q")]),
    )
    await play.said(key="m1", judge={"flows": {"sales": 90, "help": 0}}, speak=SAY)
    await play.said(key="m2", judge={"flows": {"sales": 0, "help": 90}}, speak=SAY)
    assert play.statuses == {"sales": "suspended", "help": "asking"}
    result = await play.said(key="m3", judge={"flows": {"sales": 90, "help": 0}}, speak=SAY)
    assert (starts(result), skips(result), keys(result)) == ([], [], ["sales#m1:q:1/2"])
    assert play.statuses == {"sales": "asking", "help": "suspended"}


# ---- an answer followed by its fixed question get different keys -----------------------------------------------------


async def test_an_answer_and_its_fixed_question_have_keys_of_their_own() -> None:
    """A channel that drops repeated keys delivers both."""
    shop = Flow("shop", steps=[Collect("model", id="m"), Collect("name", id="q", question="Your name?")])
    play = Play(shop)
    await play.started("shop", speak=[says("Which model?")])
    found: dict[str, Any] = {"fields": {"model": "15"}, "asks": True}
    assert keys(await play.said(judge=found, speak=[says("It costs X.")])) == ["shop#k:q:1", "shop#k:q:1/2"]


# ---- pruning does not depend on key order ----------------------------------------------------------------------------


def reordered(session: Session) -> Session:
    """The session as a database gives it back that keeps the keys of objects in an order of its own."""
    return loads_session(json.dumps(json.loads(dumps_session(session)), sort_keys=True).encode())


async def test_pruning_goes_by_time() -> None:
    """The oldest claims are forgotten, however their keys are sorted where they are stored."""
    play = Play(Flow("ev", on=[OnEvent("ping")], steps=[Do("notify", id="n")]), events=["ping"])
    names = [f"e{99 - number}" for number in range(52)]
    for name in names:
        await play.happened("ping", key=name)
        play.session = reordered(play.kept)
        play.clock.advance(seconds=1)
    assert {*play.claims} == {f"ev:s1:{name}" for name in names[2:]}


# ---- a customer who writes while a retry is parked gets that answer now ----------------------------------------------


async def test_a_message_wakes_a_parked_retry() -> None:
    """The step that could not speak answers the message, under the same key; its retry is dropped."""
    play = Play(Flow("f", steps=[Collect("ok", id="q")]))
    ((retry, _),) = wakes(await play.started("f", speak=[raises("network")]))
    play.clock.advance(seconds=30)
    result = await play.said("hello?", speak=SAY)
    assert keys(result) == ["f#k:q:1"]
    assert (play.statuses, dict(play.run("f").visits)) == ({"f": "asking"}, {"q": 1})
    assert result.disarmed == (retry,)
    play.clock.advance(seconds=30)
    late = await play.woke(retry)
    assert (late.changed, line(late, "stale-wake").key) == (False, retry)


# ---- a flow that lists a phrase trigger and a catch-all --------------------------------------------------------------

BOTH = Flow("both", on=[OnMessage("wants to buy"), OnMessage(repeat="always")], steps=[Do("notify", id="n")])
HELP = Flow("help", on=[OnMessage("has a problem")], steps=[Do("notify", id="n")])


@pytest.mark.parametrize(("score", "claim"), [(90, "both:s1:"), (0, "both:s1:m1")], ids=["phrase", "catch-all"])
async def test_a_flow_starts_by_the_trigger_that_matched(score: int, claim: str) -> None:
    """How often it may start is what that trigger says, not what the first one of the list does."""
    play = Play(BOTH, HELP)
    result = await play.said(judge={"flows": {"both": score, "help": 0}}, speak=[says("Hello")])
    assert [each.about["dedupe_key"] for each in result.started] == [claim]


async def test_a_flow_that_ran_by_its_phrase_still_catches_all() -> None:
    """The phrase's claim does not stop the catch-all, which always repeats."""
    play = Play(BOTH, HELP, Flow("hire", on=[OnMessage("wants a job")], steps=[Do("notify", id="n")]))
    await play.said(key="m1", judge={"flows": {"both": 90}}, speak=[says("Hello")])
    result = await play.said(key="m2", judge={"flows": {"help": 0, "hire": 0}}, speak=[says("Hello")])
    assert starts(result) == ["both#m2"]


# ---- dates in business_hours never go back ---------------------------------------------------------------------------


def yesterday(at: datetime, context: object) -> datetime:
    """Opening hours that are wrong: what they give is over."""
    return at - timedelta(days=1)


async def test_business_hours_never_go_back() -> None:
    """An instant before the one that was asked about counts as that one, wherever opening hours are asked."""
    wait = Play(
        Flow("w", steps=[Wait("1h", id="p", business_hours=True), Do("notify", id="n")]), business_hours=yesterday
    )
    assert [at for _, at in wakes(await wait.started("w"))] == [after(hours=1)]
    silence = Play(Flow("s", on=[OnSilence("1h", business_hours=True)], steps=[Talk("Hi.", id="t")]),
                   business_hours=yesterday)  # fmt: skip
    assert [at for _, at in wakes(await silence.said(speak=SAY))] == [after(hours=1)]
    event = Play(Flow("e", on=[OnEvent("ping", after="1h", business_hours=True)], steps=[Do("notify", id="n")]),
                 business_hours=yesterday, events=["ping"])  # fmt: skip
    assert [at for _, at in wakes(await event.happened("ping"))] == [after(hours=1)]
    at_once = Play(Flow("e", on=[OnEvent("ping", business_hours=True)], steps=[Do("notify", id="n")]),
                   business_hours=yesterday, events=["ping"])  # fmt: skip
    result = await at_once.happened("ping")
    assert (wakes(result), ends(result)) == ([], [("e#e1", "end")])
    assert result.lines[0].at == T0
