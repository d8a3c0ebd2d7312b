"""Mentions, names that cannot travel, and several triggers of a kind: 12.3 and 20 of the specification."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import (
    Collect,
    Cooldown,
    Do,
    Field,
    Flow,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Wait,
)
from tests.flows.playing import (
    FIELDS,
    NOTHING,
    Play,
    ends,
    says,
    sections,
    skips,
    starts,
    told,
)

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]
SALES = Flow("sales", on=[OnMessage("wants to buy", repeat="always")], steps=[Collect("ok", id="q")])
HELP = Flow("help", on=[OnMessage("has a problem", repeat="always")], steps=[Collect("ok", id="q")])


def scores(**each: Any) -> dict[str, Any]:
    """An understand reply that scores flows."""
    return {"flows": each}


# ---- mentions --------------------------------------------------------------------------------------------------------


async def test_mentions_are_judged_of_every_message_while_they_may_repeat() -> None:
    """Once, in each window, or always; a condition is asked when they start."""
    play = Play(
        Flow("once", on=[OnMention("a")], steps=[Do("notify", id="n")]),
        Flow("cool", on=[OnMention("b", repeat=Cooldown("1h"))], steps=[Do("notify", id="n")]),
        Flow(
            "often", on=[OnMention("c", repeat="always", only_if=lambda ctx: ctx.context)], steps=[Do("notify", id="n")]
        ),
        idle="silent",
    )
    every = {"mentions": {"once": True, "cool": True, "often": True}}
    result = await play.said(key="m1", context=True, judge=every)
    assert starts(result) == ["once#m1", "cool#m1", "often#m1"]
    play.clock.advance(minutes=59)
    result = await play.said(key="m2", context=False, judge=every)
    assert sections(play.requests[0]) == {"mentions": ["often"]}
    assert (starts(result), skips(result)) == ([], [("once", "m2", "already-claimed"), ("cool", "m2", "cooldown")])
    play.clock.advance(minutes=1)
    await play.said(key="m3", context=False, judge=NOTHING)
    assert sections(play.requests[0]) == {"mentions": ["cool", "often"]}


async def test_a_detector_in_code_is_told_off_at_every_message() -> None:
    """No model is asked; a condition that is false says nothing."""
    play = Play(
        Flow("once", on=[OnMention()], steps=[Do("notify", id="n")]),
        Flow("never", on=[OnMention(only_if=lambda ctx: ctx.context)], steps=[Do("notify", id="n")]), idle="silent",
    )  # fmt: skip
    assert starts(await play.said(key="m1", context=False)) == ["once#m1"]
    for key in ("m2", "m3"):
        assert skips(await play.said(key=key, context=False)) == [("once", key, "already-claimed")]


async def test_what_a_mention_extracts_is_as_the_model_gave_it() -> None:
    """Nothing is converted, what says nothing is dropped, and no field is written."""
    extract = {
        "name": {"type": "string"},
        "n": {"type": "integer"},
        "yes": {"type": "boolean"},
        "no": {"type": "string"},
    }
    text = "{{input.name}} {{input.n}} {{input.yes}} {{input.no}}"
    flow = Flow("rival", on=[OnMention("names a rival", extract=extract)],
                steps=[Do("notify", id="d", args={"text": text})])  # fmt: skip
    play = Play(flow, idle="silent")
    given = {"name": "Zeta", "n": "7", "yes": False, "no": None}
    result = await play.said(judge={"mentions": {"rival": True}, "extract": {"rival": given}})
    assert play.notified[0][2] == {"text": "Zeta 7 false {{input.no}}"}
    assert (play.data, starts(result)) == ({}, ["rival#m1"])


@pytest.mark.parametrize(
    "extract", [None, {}, {"rival": {}}, {"rival": {"name": ""}}, {"rival": "Zeta"}, {"rival": None}]
)
async def test_a_mention_without_values_has_no_input(extract: Any) -> None:
    """It starts all the same."""
    flow = Flow("rival", on=[OnMention("a", extract={"name": {"type": "string"}})], steps=[Wait("1h", id="w")])
    play = Play(flow, idle="silent")
    await play.said(judge={"mentions": {"rival": True}, "extract": extract})
    run = play.run("rival")
    assert (run.input, run.payload) == (None, None)


async def test_mentions_start_in_the_order_of_the_agent_before_the_routed_flow() -> None:
    """Detectors in code among them."""
    one = Flow("one", on=[OnMention("a")], steps=[Do("notify", id="n")])
    two = Flow("two", on=[OnMention()], steps=[Do("notify", id="n")])
    three = Flow("three", on=[OnMention("c")], steps=[Do("notify", id="n")])
    play = Play(SALES, one, two, three, HELP)
    judged = scores(sales=90) | {"mentions": {"three": True, "one": "yes"}}
    assert starts(await play.said(judge=judged, speak=RIGHT)) == ["one#m1", "two#m1", "three#m1", "sales#m1"]


# ---- names that cannot travel ----------------------------------------------------------------------------------------

ODD: dict[str, Field] = {
    **FIELDS,
    "full name": Field(ask="Ask it."),
    "d1": Field(ask="Ask."),
    "message": Field(ask="Ask."),
}
BUY = Flow("buy:now", on=[OnMessage("buys")], steps=[Collect("full name", "d1", "message", id="q:1", prompt="Ask.")])
RIVAL = Flow(
    "sig:rival", on=[OnMention("names a rival", extract={"the quote": {"type": "string"}})],
    steps=[Do("notify", id="n", args={"text": "{{input.who}}"})],
)  # fmt: skip


async def test_every_name_travels_under_one_that_vendors_take_and_comes_back() -> None:
    """Ids of flows, slugs of fields and what mentions extract, in what is asked and in what is answered."""
    play = Play(BUY, RIVAL, HELP, fields=ODD)
    judged = {
        "flows": {"f1": 90, "help": 0}, "mentions": {"f2": True}, "extract": {"f2": {"d1": "cheaper"}},
        "fields": {"d2": "Ana Sá", "d1": None},
    }  # fmt: skip
    result = await play.said(judge=judged, speak=[says(None, message="Hi Ana!", field_1="the note", d1="D")])
    put = sections(play.requests[0])
    assert put == {"flows": ["f1", "help"], "mentions": ["f2"], "extract": ["f2"], "fields": ["d2", "d1", "message"]}
    prompt = told(play.requests[0])
    assert "1. f1 — buy:now" in prompt
    assert "- f2 — sig:rival" in prompt
    assert "  - d1 (string)" in prompt
    assert "- d2 (string)" in prompt
    assert starts(result) == ["sig:rival#m1", "buy:now#m1"]
    assert play.data == {"full name": "Ana Sá", "d1": "D", "message": "the note"}
    assert sections(play.requests[1]) == {"message": [], "d1": [], "field_1": []}
    assert ends(result) == [("sig:rival#m1", "end"), ("buy:now#m1", "end")]


async def test_the_current_flow_and_what_it_still_wants_go_by_their_names_in_the_answer() -> None:
    """So that a model need not guess which is which."""
    play = Play(BUY, HELP, fields=ODD)
    await play.said(key="m1", judge={"flows": {"f1": 90}}, speak=[says("Name?")])
    await play.said(key="m2", judge={"flows": {"f1": 50, "help": 60}}, speak=[says("Name?")])
    prompt = told(play.requests[0])
    assert '"buy:now" (f1)' in prompt
    assert "Current step: q:1 — Ask.\n- d2 (string)\n- d1 (string)\n- message (string)" in prompt


# ---- several triggers of a kind --------------------------------------------------------------------------------------


async def test_of_several_lists_of_phrases_the_one_that_may_start_is_put() -> None:
    """The model is shown what it would start by, and no phrases of a trigger whose condition is false."""
    flow = Flow("deal", on=[
        OnMessage("wants a discount", only_if=lambda ctx: ctx.context), OnMessage("asks the price", repeat="always")
    ], steps=[Do("notify", id="n")])  # fmt: skip
    play = Play(flow, HELP)
    result = await play.said(key="m1", context=False, judge=scores(deal=90), speak=RIGHT)
    assert "The customer: asks the price" in told(play.requests[0])
    assert [each.about["dedupe_key"] for each in result.started] == ["deal:s1:m1"]
    result = await play.said(key="m2", context=True, judge=scores(deal=90), speak=RIGHT)
    assert "The customer: wants a discount" in told(play.requests[0])
    assert [each.about["dedupe_key"] for each in result.started] == ["deal:s1:"]
    await play.said(key="m3", context=True, judge=scores(deal=0), speak=RIGHT)
    assert "The customer: asks the price" in told(play.requests[0])


@pytest.mark.parametrize("trigger", [OnMention("a"), OnMention()])
def test_further_mentions_of_a_flow_are_warned_of(trigger: OnMention) -> None:
    """Only the first counts; so it is with silences. Events and messages may be several."""
    twice = Flow("f", on=[OnMention("x"), trigger, OnSilence("1h"), OnSilence("2h"), OnEvent("e"), OnEvent("e"),
                          OnMessage("a"), OnMessage("b")], steps=[Do("notify", id="n")])  # fmt: skip
    play = Play(twice, events=["e"])
    assert play.flows.warnings == (
        'flow "f", trigger #2: only the first mention trigger of a flow counts',
        'flow "f", trigger #4: only the first silence trigger of a flow counts',
    )
