"""Steps, triggers, flows and what actions answer: values that say what they are."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from onrecord.errors import UsageError
from onrecord.flows.actions import Defer, Failed, Ok, Skipped, as_action_result
from onrecord.flows.flow import Event, Flow, FlowInstruction, Idle
from onrecord.flows.flow_options import Anchor, Claims, FlowOptions
from onrecord.flows.phrases import Phrases
from onrecord.flows.steps import (
    Branch,
    Chain,
    Collect,
    Do,
    Goto,
    If,
    Next,
    Say,
    Step,
    Talk,
    Wait,
    WaitEvent,
    next_label,
    with_id,
)
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence
from onrecord.host.row_options import decode_options, encode_options
from onrecord.jsonio import dumps, loads

pytestmark = pytest.mark.unit


# ---- flows and steps -------------------------------------------------------------------------------------------------


def test_a_step_without_an_id_is_named_after_its_kind() -> None:
    """The first by the kind alone, others by their number, skipping ids that an author has given."""
    flow = Flow(
        "f",
        steps=[
            Talk("a"), Collect("x"), Talk("b"), Say("hi", id="talk3"), Talk("c"), Say("ho"), Do("act"), Wait("1h"),
            WaitEvent("e"), If({"known": ["x"]}), Collect("y"), If({"known": ["y"]}, id="if2"), If({"known": ["x"]}),
        ],
    )  # fmt: skip
    assert [step.id for step in flow.steps] == [
        "talk", "collect", "talk2", "talk3", "talk4", "say", "do", "wait", "wait_event", "if", "collect2", "if2", "if3",
    ]  # fmt: skip


def test_a_flow_that_names_its_steps_keeps_them_as_they_are() -> None:
    """The very same steps, in a tuple; the name is the id where none is given."""
    steps: list[Step] = [Talk("a", id="one"), Collect("x", id="two")]
    flow = Flow("f", steps=steps)
    assert isinstance(flow.steps, tuple)
    assert all(kept is given for kept, given in zip(flow.steps, steps, strict=True))
    assert flow.name == "f"
    assert Flow("f", name="Flow").name == "Flow"


def test_a_flow_finds_its_steps() -> None:
    """By id, and the one that stands after it."""
    flow = Flow("f", steps=[Talk("a"), Collect("x")])
    assert flow.step("collect") is flow.steps[1]
    assert flow.step("gone") is None
    assert flow.after("talk") is flow.steps[1]
    assert flow.after("collect") is None
    assert flow.after("gone") is None


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Talk("p"), "prompt"), (Collect("x"), "collect"), (Say("hi"), "say"), (Do("act"), "do"), (Wait("1h"), "wait"),
        (WaitEvent("e"), "wait_event"), (If("vip"), "if"),
    ],
)  # fmt: skip
def test_every_step_says_its_kind_and_carries_what_an_editor_wants(step: Step, kind: str) -> None:
    """``ui`` is nobody's business here; a named copy differs in its id alone."""
    assert step.kind == kind
    assert step.ui is None
    named = with_id(step, "n")
    assert named.id == "n"
    assert with_id(named, "") == step
    assert type(named) is type(step)


def test_collect_is_a_value_with_a_readable_form() -> None:
    """Equal by what it says, unchangeable, and shown as it is written."""
    step = Collect("name", "size", id="who", ask={"name": "How?"}, tools=["t"], ui=[1])
    assert step == Collect("name", "size", id="who", ask={"name": "How?"}, tools=("t",), ui=[1])
    assert step != Collect("name", id="who")
    assert repr(step) == "Collect('name', 'size', id='who', ask={'name': 'How?'}, tools=('t',), ui=[1])"
    with pytest.raises(AttributeError):
        step.id = "other"  # type: ignore[misc] # what must not work
    assert (step.max_asks, step.question) == (Talk("p").max_asks, Talk("p").question) == (3, "")
    assert Talk("p").fields == ()


def test_lists_of_a_declaration_do_not_change_later() -> None:
    """They are kept as tuples; whatever is no list is left for the check that knows its place."""
    tools = ["t"]
    step = Talk("p", tools=tools, branches=[Branch("asks", then="end")], instructions=[FlowInstruction("x")])
    tools.append("u")
    assert step.tools == ("t",)
    assert isinstance(step.branches, tuple)
    assert Idle("p", tools=["t"]).tools == ("t",)
    assert Goto("a", clear=["x"]).clear == ("x",)
    assert Talk("p", tools="abc").tools == "abc"


@pytest.mark.parametrize(
    ("target", "label"),
    [
        (None, None),
        ("a", "a"),
        ("end", "end"),
        (Goto("a", clear=("x",)), "a"),
        (Chain("{{data.f}}"), "flow:{{data.f}}"),
    ],
)
def test_an_outcome_names_where_a_run_goes(target: Next | None, label: str | None) -> None:
    """A template prints as it is written."""
    assert next_label(target) == label


# ---- triggers and instructions ---------------------------------------------------------------------------------------


def test_triggers_say_their_kind_and_their_usual_repeat() -> None:
    """Events start a run each time, everything else once."""
    triggers = (OnMessage("a", "b"), OnMention(), OnSilence("24h"), OnEvent("e"))
    assert [trigger.kind for trigger in triggers] == ["message", "mention", "silence", "event"]
    assert [trigger.repeat for trigger in triggers] == ["once", "once", "once", "always"]
    assert OnMessage("a", "b").phrases == ("a", "b")
    assert OnMention(extract={"q": {"type": "string"}}) != OnMention()
    assert OnMessage("a") == OnMessage("a") != OnMessage("a", repeat=Cooldown("7d"))
    assert "phrases=('a',)" in repr(OnMessage("a"))


def test_an_instruction_sorts_its_phrases() -> None:
    """One or several; ``!`` excludes."""
    assert FlowInstruction("x", when="asks").phrases == Phrases(("asks",), ())
    assert FlowInstruction("x", when=["asks", "!thanks"]).phrases == Phrases(("asks",), ("thanks",))
    assert FlowInstruction("x").phrases == Phrases()
    assert FlowInstruction("x").kind == "should"
    assert Event().direction is None


# ---- what actions answer ---------------------------------------------------------------------------------------------

RESULTS = [
    Ok(), Ok("sent", spoke=True), Skipped("nothing new"), Failed("offline"), Defer("15m"), Defer("15m", "later"),
    Defer(timedelta(minutes=1, milliseconds=500)), Defer("whenever"),
    Defer(5),  # type: ignore[arg-type] # a mistake that is told when the run is to wait
]  # fmt: skip


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_survives_a_pause(result: Any) -> None:
    """Kept as JSON, it is read back as what it was."""
    assert as_action_result(result) is result
    assert as_action_result(loads(dumps(result))) == result


def test_a_deferral_keeps_a_timedelta_as_text() -> None:
    """So that it is the same before and after a pause."""
    assert Defer(timedelta(minutes=1, milliseconds=500)).duration == "60.5s"


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, "text", [1], {"a": 1}, {"type": "other"}, {"type": "failed", "reason": "mine"}, {"type": 1},
        {"type": "action.failed"}, {"type": "action.failed", "reason": 1}, {"type": "action.ok", "more": 1},
        {"type": "action.ok", "spoke": "yes"},
    ],
)  # fmt: skip
def test_any_other_json_is_ok(value: object) -> None:
    """An action may return what it likes; what only looks like a result is none."""
    assert as_action_result(value) == Ok()


def test_what_is_no_json_has_failed() -> None:
    """The reason names the type, so that whoever wrote the action finds it."""
    assert as_action_result(object()) == Failed("the action returned object, which is no result and no JSON")


# ---- options ---------------------------------------------------------------------------------------------------------

AT = datetime(2026, 9, 20, 10, tzinfo=UTC)


def test_options_travel_with_a_row() -> None:
    """Stored and read again they say the same, and instants are datetimes however they were given."""
    option = FlowOptions(
        anchors={"lead": "lead:456", "deal": Anchor("deal:1", last_inbound_at=AT)},
        claims=Claims(held={"promo:lead:456:": "2026-09-20T10:00:00.000Z", "b": AT}, active=["agenda:s1"]),  # type: ignore[arg-type] # a list will do
    )
    (again,) = decode_options(encode_options([option]), [FlowOptions])
    assert again == option
    assert isinstance(again, FlowOptions)
    assert again.anchor("lead") == Anchor("lead:456")
    assert again.anchor("deal") == Anchor("deal:1", last_inbound_at=AT)
    assert again.anchor("other") is None
    assert again.claims.at("promo:lead:456:") == again.claims.at("b") == AT
    assert again.claims.at("c") is None
    assert again.claims.active == ("agenda:s1",)


@pytest.mark.parametrize("at", ["yesterday", "2026-09-20T10:00:00", datetime(2026, 9, 20), 5, None])  # noqa: DTZ001 - what is refused
def test_an_instant_without_an_offset_is_refused(at: Any) -> None:
    """It could be any of a day's hours."""
    with pytest.raises(UsageError):
        Claims(held={"a": at})
    if isinstance(at, datetime):
        with pytest.raises(UsageError, match="last_inbound_at has no UTC offset"):
            Anchor("a", last_inbound_at=at)


def test_claims_compare_in_any_offset() -> None:
    """An instant keeps its offset and stays the instant."""
    east = timezone(timedelta(hours=5))
    assert Claims(held={"a": AT.astimezone(east)}).at("a") == AT


@pytest.mark.parametrize("active", ["agenda:s1", [1], 5])
def test_active_claims_are_a_list_of_texts(active: Any) -> None:
    """A single text would be read letter by letter."""
    with pytest.raises(UsageError, match="active="):
        Claims(active=active)


def test_usual_options_are_short_when_stored() -> None:
    """Defaults are not written."""
    assert msgspec.json.encode(FlowOptions()) == b"{}"
