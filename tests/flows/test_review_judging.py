"""What is put to the model about a message, and what of its answer counts: 20 of the specification, in whole turns."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.flows import (
    Collect,
    Do,
    Field,
    Flow,
    OnMention,
    OnMessage,
    Say,
    Talk,
)
from tests.flows.playing import (
    NOTHING,
    Play,
    says,
    sections,
)

pytestmark = pytest.mark.unit

RIGHT = [says("Right?")]
SALES = Flow("sales", on=[OnMessage("wants to buy", repeat="always")], steps=[Collect("ok", id="q")])
HELP = Flow("help", on=[OnMessage("has a problem", repeat="always")], steps=[Collect("ok", id="q")])


def scores(**each: Any) -> dict[str, Any]:
    """An understand reply that scores flows."""
    return {"flows": each}


# ---- fields ----------------------------------------------------------------------------------------------------------


async def test_fields_stand_in_the_order_of_their_flows() -> None:
    """The floor's flow first: what it lists itself, then what its steps ask for; each once, and none that is known."""
    floor = Flow(
        "floor", collect=["budget", "company"], steps=[Collect("name", "budget", "ok", id="a"), Collect("size", id="b")]
    )
    other = Flow("other", on=[OnMessage("x")], collect=["model"], steps=[Collect("name", id="a")])
    play = Play(other, floor, data={"company": "Zeta"})
    await play.started("floor", speak=[says("Name?")])
    await play.said(judge=NOTHING, speak=[says("Name?")])
    assert sections(play.requests[0]) == {"flows": ["floor", "other"], "fields": ["budget", "name", "size", "model"]}


async def test_fields_of_a_flow_that_may_not_begin_are_not_asked_about() -> None:
    """Its condition is false, or it has run."""
    no = Flow("no", on=[OnMessage("x", only_if=lambda ctx: ctx.context)], steps=[Collect("name", id="q")])
    play = Play(no, SALES, HELP)
    await play.said(key="m1", context=False, judge=scores(sales=90), speak=RIGHT)
    assert sections(play.requests[0]) == {"flows": ["sales", "help"]}
    await play.said(key="m2", context=True, judge=scores(sales=90), speak=RIGHT)
    assert sections(play.requests[0]) == {"flows": ["sales", "no", "help"], "fields": ["name"]}


async def test_a_field_that_is_taken_where_asked_alone_is_never_put() -> None:
    """Nor is one of a type that says so by itself; one that may be taken anywhere is, though it is a boolean."""
    fields = {"name": Field(extract="asked"), "ok": Field(type="boolean", extract="anywhere")}
    play = Play(Flow("f", on=[OnMessage()], steps=[Say("Hi", id="s"), Collect("name", "ok", id="q")]), fields=fields)
    await play.said(judge=NOTHING, speak=[says("Who?")])
    assert sections(play.requests[0]) == {"fields": ["ok"]}


# ---- fields of a catch-all -------------------------------------------------------------------------------------------

FREE = Flow("open", on=[OnMessage(repeat="always")], steps=[Collect("name", id="q")])


async def test_what_the_catch_all_s_first_step_reads_needs_no_call() -> None:
    """Its speak call does that."""
    await Play(FREE).said(speak=[says("Name?")])


@pytest.mark.parametrize(
    "steps",
    [
        [Collect("name", id="q", question="Name?")],
        [Say("Hi", id="s"), Collect("name", id="q")],
        [Collect("company", id="a"), Collect("name", id="b")],
    ],
    ids=["fixed question", "no talk step first", "a later step"],
)
async def test_a_catch_all_whose_field_is_not_read_for_nothing_is_understood(steps: Any) -> None:
    """One such field puts all of them."""
    play = Play(Flow("open", on=[OnMessage()], steps=steps), idle="silent")
    first = steps[0]
    speak = [says("Which?")]
    await play.said(judge=NOTHING, speak=speak)
    put = sections(play.requests[0])["fields"]
    assert put == (["company", "name"] if first.id == "a" else ["name"])


async def test_a_field_of_the_catch_all_itself_is_not_read_for_nothing() -> None:
    """No step asks for it."""
    play = Play(Flow("open", on=[OnMessage()], collect=["budget"], steps=[Collect("name", id="q")]))
    await play.said(judge=NOTHING, speak=[says("Name?")])
    assert sections(play.requests[0]) == {"fields": ["budget", "name"]}


async def test_where_something_else_is_judged_the_catch_all_s_fields_are_put_too() -> None:
    """The call is made anyway."""
    rival = Flow("rival", on=[OnMention("names a rival")], steps=[Do("notify", id="n")])
    play = Play(rival, FREE)
    await play.said(judge={"mentions": {"rival": False}, "fields": {}}, speak=[says("Name?")])
    assert sections(play.requests[0]) == {"mentions": ["rival"], "fields": ["name"]}
    scored = Play(SALES, HELP, FREE)
    await scored.said(judge=scores(), speak=[says("Name?")])
    assert sections(scored.requests[0]) == {"flows": ["sales", "help"], "fields": ["name"]}


async def test_a_catch_all_that_could_not_take_the_message_puts_nothing() -> None:
    """Somebody asks, or a lone flow starts in its place, or it has run."""
    play = Play(SALES, Flow("open", on=[OnMessage()], collect=["budget"], steps=[Talk("Hi.", id="t")]))
    await play.said(key="m1", speak=RIGHT)
    await play.said(key="m2", speak=RIGHT)
    ran = Play(Flow("open", on=[OnMessage()], collect=["budget"], steps=[Talk("Hi.", id="t")]))
    await ran.said(key="m1", judge=NOTHING, speak=RIGHT)
    await ran.said(key="m2", speak=RIGHT)


async def test_what_the_catch_all_heard_is_written_before_it_asks() -> None:
    """So it asks for the rest."""
    play = Play(Flow("open", on=[OnMessage()], steps=[Say("Hi", id="s"), Collect("name", "company", id="q")]))
    await play.said(judge={"fields": {"name": "Ana"}}, speak=[says("And the company?")])
    assert (play.data, dict(play.run("open").asked)) == ({"name": "Ana"}, {"company": 1})


# ---- asks ------------------------------------------------------------------------------------------------------------

FIXED = Flow("fixed", steps=[Collect("ok", id="q", question="Right?")])


async def test_whether_the_customer_asks_is_never_a_reason_for_a_call() -> None:
    """It is put beside something else."""
    play = Play(FIXED, Flow("open", on=[OnMessage(repeat="always")], steps=[Talk("Hi.", id="t")]))
    await play.said(speak=RIGHT)


async def test_whether_the_customer_asks_is_put_where_any_flow_has_a_fixed_question() -> None:
    """Also when another one has the floor: the message may lead there."""
    play = Play(FIXED, SALES, HELP)
    await play.said(judge=scores(sales=90) | {"asks": False}, speak=RIGHT)
    assert [*sections(play.requests[0])] == ["flows", "asks"]
