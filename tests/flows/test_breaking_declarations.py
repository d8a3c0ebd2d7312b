"""Careless declarations: whatever is given for whatever argument, it works or is refused with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import FlowInvalid, OnrecordError, UsageError
from onrecord.flows import (
    Anchor,
    Branch,
    Chain,
    Claims,
    Collect,
    Cooldown,
    Do,
    Event,
    Field,
    Flow,
    FlowInstruction,
    FlowOptions,
    Flows,
    Goto,
    Idle,
    If,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Registries,
    Say,
    Talk,
    Wait,
    WaitEvent,
    coerce_field,
    flow_spec_schema,
    from_spec,
    merge_field_groups,
    to_spec,
    validate_flow,
)
from onrecord.testing import ScriptedModel
from onrecord.tools.tool import Tool

pytestmark = pytest.mark.unit

ACT = Tool("act", lambda *_: None, "Acts.", parameters={"type": "object", "properties": {"x": {"type": "string"}}})
HI = Talk("Hi.", id="t")


class Unshowable:
    """What cannot even be shown, or compared."""

    def __repr__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]  # nor hashed


def circle() -> list[Any]:
    """A list in itself."""
    made: list[Any] = []
    made.append(made)
    return made


def tower() -> Any:
    """A list so deep that nobody can walk it."""
    made: Any = None
    for _ in range(3000):
        made = [made]
    return made


def odd() -> list[Any]:
    """Values of every kind, most of them wrong wherever they stand."""
    wrong: Any = 7
    return [
        None, 0, -1, 7, True, 1.5, float("nan"), float("inf"), 10**400, "", " ", "x", "end", "{{", "\ud800",
        "a" * 10_000, "a:b#c%d/é", b"x", [], ["x"], [1], [None], [[]], {}, {"x": 1}, {1: 2}, {"equals": 5},
        {"known": ["x"]}, (), (1,), {"x"}, object(), Unshowable(), circle(), {"a": circle()}, tower(), Decimal(1),
        timedelta(1), timedelta(-1), timedelta.max, datetime(2026, 1, 1, tzinfo=UTC), lambda: 1, lambda _: True,
        lambda _, __, ___: 1, int, Flow, Talk, Talk("x"), Say("x"), Flow("q"), OnMessage("x"), Goto("t"), Goto("no"),
        Chain("f"), Field(), Branch("w", then="end"), FlowInstruction("p"), Idle("x"), Event(), Cooldown("1d"),
        Cooldown(wrong), Wait("x"), ..., iter("ab"), range(3), Exception("x"),
    ]  # fmt: skip


def built(*flows: Any, **given: Any) -> None:
    """An agent with these flows."""
    usual: dict[str, Any] = {
        "fields": {"f": Field(ask="Ask."), "b": Field(type="boolean", ask="Ask.")}, "actions": [ACT], "events": ["ev"],
        "conditions": {"cond": lambda _: True},
    }  # fmt: skip
    Agent(ScriptedModel(), director=Flows(*flows, **(usual | given)))


def stepped(kind: Callable[..., Any], *usual: Any) -> Callable[[str, Any], None]:
    """A flow with one step of a kind, with one argument given; ``0`` is the first positional one."""

    def make(name: str, value: Any) -> None:
        step = kind(value) if name == "0" else kind(*usual, **{name: value})
        built(Flow("f", steps=[step, Say("Bye.", id="t")]))

    return make


def started(kind: Callable[..., Any], *usual: Any) -> Callable[[str, Any], None]:
    """A flow with one trigger of a kind."""

    def make(name: str, value: Any) -> None:
        built(Flow("f", on=[kind(value) if name == "0" else kind(*usual, **{name: value})], steps=[HI]))

    return make


def told(name: str, value: Any) -> None:
    """A rule for everybody, for a flow and for the idle speaker."""
    rule = FlowInstruction(**{"prompt": "Be brief.", name: value})
    refused: list[OnrecordError] = []
    places: tuple[tuple[tuple[Flow, ...], dict[str, Any]], ...] = (
        ((), {"instructions": [rule]}),
        ((Flow("f", steps=[HI], instructions=[rule]),), {}),
        ((), {"idle": Idle("x", instructions=[rule])}),
    )
    for flows, given in places:
        try:
            built(*flows, **given)
        except FlowInvalid as error:
            refused.append(error)
    assert len(refused) in (0, 3), "what is no rule here is no rule there"
    if refused:
        raise refused[0]


def talking(name: str, value: Any) -> None:
    """A step with one way out."""
    built(Flow("f", steps=[Talk("x", branches=[Branch(**({"when": "w", "then": "end"} | {name: value}))])]))


PLACES: Mapping[str, tuple[str, Callable[[str, Any], object]]] = {
    "Talk": ("0 id label tools instructions branches then", stepped(Talk, "x")),
    "Collect": ("0 id label prompt ask question max_asks tools instructions branches then", stepped(Collect, "f")),
    "Say": ("0 id label media once after_ms then", stepped(Say, "x")),
    "Do": ("0 id label args on_fail then", stepped(Do, "act")),
    "Wait": ("0 id label business_hours else_ branches then", stepped(Wait, "1d")),
    "WaitEvent": ("0 id label up_to else_ then", stepped(WaitEvent, "ev")),
    "If": ("0 id label else_ then", stepped(If, "cond")),
    "Do args": ("x", lambda name, value: built(Flow("f", steps=[Do("act", args={name: value})]))),
    "Branch": ("when only_if then", talking),
    "Goto": ("step clear", lambda name, value: stepped(Talk, "x")("then", Goto(**({"step": "t"} | {name: value})))),
    "Chain": ("flow input", lambda name, value: stepped(Talk, "x")("then", Chain(**({"flow": "f"} | {name: value})))),
    "FlowInstruction": ("prompt kind when only_if id", told),
    "Idle": ("prompt tools instructions", lambda name, value: built(idle=Idle(**{name: value}))),
    "Event": ("direction about", lambda name, value: built(events={"ev": Event(**{name: value})})),
    "Field": ("type ask about extract enum label", lambda name, value: built(fields={"f": Field(**{name: value})})),
    "field": ("type about description extract enum no", lambda name, value: built(fields={"f": {name: value}})),
    "fields": ("f", lambda name, value: built(fields={name: value})),
    "Flow": (
        "id name description on steps anchor while_ collect clear_on_start on_end instructions tools",
        lambda name, value: built(Flow(**({"id": "f", "steps": [HI]} | {name: value}))),
    ),
    "Flow lists": ("on steps", lambda name, value: built(Flow("f", **({"steps": [HI]} | {name: [value]})))),
    "OnMessage": ("0 repeat only_if", started(OnMessage, "x")),
    "OnMention": ("0 repeat only_if extract", started(OnMention, "x")),
    "extract": ("x", lambda name, value: started(OnMention, "x")("extract", {name: value})),
    "OnSilence": ("0 business_hours repeat only_if", started(OnSilence, "1d")),
    "OnEvent": ("0 after business_hours repeat only_if", started(OnEvent, "ev")),
    "Cooldown": ("window", lambda _, value: started(OnMessage, "x")("repeat", Cooldown(value))),
    "Flows": (
        "fields persona goal knowledge actions events conditions instructions idle business_hours lone_flow name",
        lambda name, value: built(**{name: value}),
    ),
    "Flows lists": ("actions events instructions", lambda name, value: built(**{name: [value]})),
    "Flows objects": ("events conditions knowledge", lambda name, value: built(**{name: {"x": value}})),
    "Flows flow": ("0", lambda _, value: built(value)),
    "Anchor": ("key last_inbound_at", lambda name, value: Anchor(**({"key": "k"} | {name: value}))),
    "Claims": ("held active", lambda name, value: Claims(**{name: value})),
    "held": ("k", lambda name, value: Claims(held={name: value})),
    "FlowOptions": ("anchors claims", lambda name, value: FlowOptions(**{name: value})),
    "anchors": ("k", lambda name, value: FlowOptions(anchors={name: value})),
    "Registries": (
        "fields actions events conditions tools flows",
        lambda name, value: flow_spec_schema(Registries(**{name: value})),
    ),
    "validate_flow": ("0", lambda _, value: validate_flow(value, Registries())),
    "validate_flow registries": ("1", lambda _, value: validate_flow(Flow("f", steps=[HI]), value)),
    "flow_spec_schema": ("0", lambda _, value: flow_spec_schema(value)),
    "from_spec": ("0", lambda _, value: from_spec(value)),
    "to_spec": ("0", lambda _, value: to_spec(value)),
    "merge_field_groups": ("0", lambda _, value: merge_field_groups(value)),
    "merge_field_groups fields": ("g", lambda name, value: merge_field_groups({name: value})),
    "coerce_field": ("0", lambda _, value: coerce_field(value, "x")),
    "state": ("0", lambda _, value: Flows().state(value)),
    "pending_wakes": ("0", lambda _, value: Flows().pending_wakes(value, now=datetime(2026, 1, 1, tzinfo=UTC))),
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "name"), [(place, name) for place, (names, _) in PLACES.items() for name in names.split()]
)
def test_anything_given_anywhere_is_taken_or_refused(place: str, name: str) -> None:
    """Refused with one short sentence and one of the documented errors, never with one of Python's."""
    make = PLACES[place][1]
    refused = list[str]()
    for value in odd():
        try:
            make(name, value)
        except (FlowInvalid, UsageError) as error:
            refused.append(str(error))
    assert refused, "nothing takes everything"
    assert all(0 < len(message) < 300 for message in refused)


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"actions": [print]}, "actions must be tools, got builtin_function_or_method", "@tool"),
        ({"actions": ACT}, "actions must be a list of tools, got Tool", "also for one"),
        ({"actions": [ACT, ACT]}, 'action "act" is given twice', "rename"),
        ({"events": "paid"}, "events must be a list of names or an object, got string", '["paid"]'),
        ({"events": {"paid": "inbound"}}, 'event "paid": must be an Event, got string', "Event("),
        (
            {"events": {"paid": Event(direction="inbond")}},  # type: ignore[arg-type]  # wrong on purpose
            'event "paid": unknown direction "inbond"',
            'did you mean "inbound"?',
        ),
        ({"events": [""]}, 'an event is named by a text that is not empty, got ""', ""),
        ({"conditions": ["vip"]}, "conditions must be an object of functions, got array", "is_vip"),
        ({"instructions": ["Be brief."]}, "agent: instructions[0] must be a FlowInstruction, got string", ""),
        ({"instructions": "Be brief."}, "instructions must be a list, got string", "FlowInstruction("),
        (
            {"instructions": [FlowInstruction("x", kind="alwaysly")]},  # type: ignore[arg-type]  # wrong on purpose
            'agent: unknown kind "alwaysly" in instructions[0]',
            "should",
        ),
        ({"idle": "silnet"}, 'idle must be an Idle or "silent", got "silnet"', "Idle("),
        ({"idle": None}, 'idle must be an Idle or "silent", got null', "silent"),
        ({"idle": Idle(tools="price")}, "idle: tools must be a list, got string", ""),
        ({"persona": None}, "persona must be text, got null", 'persona="..."'),
        ({"goal": ["sell"]}, "goal must be text, got array", 'goal="..."'),
        ({"knowledge": ["x"]}, "knowledge must be an object, got array", "breakfast"),
        ({"knowledge": {"x": object()}}, "knowledge holds what JSON cannot keep", "facts"),
        ({"business_hours": "9-17"}, "business_hours must be a function, got string", "(at, context)"),
        ({"lone_flow": "scored"}, 'lone_flow must be start or score, got "scored"', 'did you mean "score"?'),
        ({"name": ""}, "name is empty", "session"),
    ],
)
def test_what_flows_are_given_is_refused_in_their_words(given: dict[str, Any], message: str, hint: str) -> None:
    """With the argument, what it must be, and how it is written."""
    with pytest.raises(FlowInvalid) as caught:
        built(**given)
    assert (str(caught.value), hint in caught.value.hint) == (message, True)


def test_a_list_of_flows_is_refused_with_the_way_to_give_it() -> None:
    """It is what most people write first."""
    with pytest.raises(FlowInvalid, match="Flows takes flows, got array") as caught:
        Flows([Flow("f", steps=[HI])])  # type: ignore[arg-type]  # wrong on purpose
    assert "Flows(*flows)" in caught.value.hint


@pytest.mark.parametrize(
    "give",
    [
        lambda text: built(Flow(f"f{text}", steps=[HI])),
        lambda text: built(Flow("f", description=text, steps=[HI])),
        lambda text: built(Flow("f", steps=[Say(text)])),
        lambda text: built(Flow("f", steps=[Talk("x", id=text)])),
        lambda text: built(Flow("f", on=[OnMessage(text)], steps=[HI])),
        lambda text: built(Flow("f", steps=[Collect("f", ask={"f": text})])),
        lambda text: built(fields={f"f{text}": Field()}),
        lambda text: built(fields={"f": Field(enum=[text])}),
        lambda text: built(persona=text),
        lambda text: built(knowledge={"x": text}),
        lambda text: built(idle=Idle(text)),
        lambda text: built(instructions=[FlowInstruction(text)]),
    ],
)
def test_half_a_character_is_refused_while_building(give: Callable[[str], None]) -> None:
    """No wire and no store could hold it, so the turn that met it would fail."""
    give("é😀")
    with pytest.raises(FlowInvalid):
        give("\ud83d")


@pytest.mark.parametrize("given", [{"anchors": {"lead": 7}}, {"anchors": ["lead"]}, {"claims": {"held": {}}}])
def test_options_are_checked_where_they_are_made(given: dict[str, Any]) -> None:
    """Not in the turn that needs them."""
    with pytest.raises(UsageError, match=r"of FlowOptions takes|must be a key or an Anchor"):
        FlowOptions(**given)


def test_an_anchor_may_be_told_its_time_as_text() -> None:
    """As claims are; it is kept as an instant."""
    at: Any = "2026-01-31T09:30:00.000Z"
    assert Anchor("c1", last_inbound_at=at).last_inbound_at == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def test_a_thousand_flows_are_built_and_found() -> None:
    """Each is checked once, whatever the others are."""
    many = [Flow(f"f{n}", on=[OnMessage(f"asks {n}"), OnEvent("ev")], steps=[HI, Collect("f")]) for n in range(1000)]
    built(*many)
    with pytest.raises(FlowInvalid, match=r'flow "f7" is declared twice'):
        built(*many, Flow("f7"))


@pytest.mark.parametrize(
    "flow", [Flow("f", on=[OnSilence("0s")], steps=[HI]), Flow("f", on=[OnSilence(timedelta(0))], steps=[HI])]
)
def test_a_silence_has_a_length(flow: Flow) -> None:
    """Otherwise it would follow every word at once, and its own words too, for ever."""
    with pytest.raises(FlowInvalid, match=r"trigger #1: silence has no length"):
        built(flow)
    built(Flow("f", on=[OnSilence("1s")], steps=[HI]))


def test_a_line_may_be_delayed_by_what_an_outbox_takes() -> None:
    """A longer one would be refused where its turn is stored, and the turn with it."""
    longest = 50 * 365 * 86_400_000
    built(Flow("f", steps=[Say("x", id="s", after_ms=longest)]))
    with pytest.raises(FlowInvalid, match=r'step "s": after_ms must be a whole number of at most 1576800000000'):
        built(Flow("f", steps=[Say("x", id="s", after_ms=longest + 1)]))
