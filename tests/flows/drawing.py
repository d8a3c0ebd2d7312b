"""Hypothesis strategies: valid flows over what `declared` knows, and JSON that is anything but a flow."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from onrecord.flows.flow import Flow, FlowInstruction
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
    with_id,
)
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence
from onrecord.jsonio import Json
from onrecord.timing import duration
from tests.flows.declared import KNOWN
from tests.strategies import json_values

__all__ = ("flows", "junk")


SLUGS = sorted(KNOWN.fields)
IDS = ("a", "b c", "é:1", "x" * 80)
values = st.sampled_from([0, 1.5, True, "", "{{data.name}}", [], [None, 1], {}, {"a": {"b": [1, {"c": "d"}]}}])
words = st.sampled_from(["", " ", "a", "b, c", "!not", "é\n{{data.name}}", '"quoted"'])
said = st.sampled_from(["a", "b, c", "é\n{{data.name}}", " x "])
slugs = st.lists(st.sampled_from(SLUGS), unique=True, max_size=2)
lengths = st.sampled_from(["30s", "5m", "24h", "1.5d", "0s"])
preds = st.one_of(
    st.just("vip"),
    st.fixed_dictionaries(
        {},
        optional={
            "equals": st.sampled_from([{}, {"name": "x"}, {"ok": True, "size": "1-10"}]),
            "known": slugs,
            "silenced": st.booleans(),
            "vip": values,
        },
    ),
)
gates = st.none() | preds
repeats = st.sampled_from(["once", "always", Cooldown("7d")])
instructions = st.lists(
    st.builds(
        FlowInstruction, words, kind=st.sampled_from(["must", "never", "should"]),
        when=words | st.lists(words, max_size=2), only_if=gates, id=words,
    ),
    max_size=1,
)  # fmt: skip
tools = st.sampled_from([None, [], ["price"], ["price", "book"]])
params = st.sampled_from([{}, {"q": {"type": "string"}}, {"a b": {"enum": ["a"], "optional": True, "about": "x"}}])
counting = st.lists(said, max_size=2)


def on_message(phrases: list[str], **told: Any) -> OnMessage:
    """A message trigger."""
    return OnMessage(*phrases, **told)


def on_mention(phrases: list[str], **told: Any) -> OnMention:
    """A mention trigger."""
    return OnMention(*phrases, **told)


def collect(fields: list[str], **told: Any) -> Collect:
    """A collect step."""
    return Collect(*fields, **told)


triggers = st.one_of(
    st.builds(on_message, counting, repeat=repeats, only_if=gates),
    st.builds(on_mention, counting, extract=params, repeat=repeats, only_if=gates),
    st.builds(OnSilence, lengths.filter(duration), business_hours=st.booleans(), repeat=repeats, only_if=gates),
    st.builds(
        OnEvent, st.sampled_from(["ping", "booked"]), after=st.none() | lengths, business_hours=st.booleans(),
        repeat=repeats, only_if=gates,
    ),
)  # fmt: skip


@cache
def steps(count: int) -> st.SearchStrategy[Step]:
    """Any step of a flow with so many steps, still without an id."""
    places = st.sampled_from([*IDS[:count], "end"])
    to: st.SearchStrategy[Next] = st.one_of(
        places, st.builds(Goto, places, clear=slugs), st.builds(Chain, words, input=st.none() | values)
    )
    maybe = st.none() | to
    usual: dict[str, Any] = {"label": words, "then": maybe, "ui": st.none() | values}
    gated = st.builds(Branch, only_if=preds, then=to)
    branches = st.lists(gated | st.builds(Branch, said, then=to), max_size=2)
    talks = {**usual, "tools": tools, "instructions": instructions, "branches": branches}
    args = st.fixed_dictionaries(
        {"text": words}, optional={"to": st.just("sales"), "count": st.integers(-9, 9), "tags": st.just(["new"])}
    )
    flag = st.booleans()
    return st.one_of(
        st.builds(Talk, said, **talks),
        st.builds(
            collect, st.lists(st.sampled_from(SLUGS), min_size=1, max_size=3), prompt=words, question=words,
            ask=st.dictionaries(st.sampled_from(SLUGS), words, max_size=2), max_asks=st.integers(1, 5), **talks,
        ),
        st.builds(Say, said, media=st.none() | words, once=flag, after_ms=st.integers(0, 9), **usual),
        st.builds(Do, st.just("notify"), args=args, on_fail=maybe, **usual),
        st.builds(Wait, lengths, business_hours=flag, else_=maybe, branches=st.lists(gated, max_size=2), **usual),
        st.builds(WaitEvent, st.sampled_from(["ping", "booked"]), up_to=lengths, else_=maybe, **usual),
        st.builds(If, preds, else_=to, **usual),
    )  # fmt: skip


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Any flow that `declared.KNOWN` makes valid."""
    count = draw(st.integers(0, 3))
    return Flow(
        draw(st.sampled_from(IDS)),
        name=draw(words),
        description=draw(words),
        on=draw(st.lists(triggers, max_size=2)) if count else (),
        steps=[with_id(draw(steps(count)), id) for id in IDS[:count]],
        anchor=draw(st.sampled_from(["session", "lead"])),
        while_=draw(gates),
        collect=draw(slugs),
        clear_on_start=draw(slugs),
        on_end=draw(st.sampled_from(["end", "stay", "reset"])),
        instructions=draw(instructions),
        tools=draw(tools),
    )


class Foreign:
    """A value that is no JSON, and raises when it is asked anything."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __hash__(self) -> int:
        raise RuntimeError("no")


def _deep(levels: int) -> Json:
    value: Json = []
    for _ in range(levels):
        value = {"step": value}
    return value


def _circle() -> Json:
    value: dict[str, Json] = {}
    value["then"] = value
    return value


_JUNK: list[Any] = [
    _deep(60), _deep(5000), _circle(), "x" * 20_000, "\ud800", float("nan"), float("inf"), 10**400, -(10**30), b"bytes",
    {1: 2}, {None: 1}, {(): 1}, {"a": {b"b": 1}}, {1, 2}, object, print, Foreign(), [Foreign()], {"step": Foreign()},
    ["end"], {"flow": []}, {"cooldown": {}}, {"event": 5}, {"wait": {}}, [[]] * 50, [None], True, -1, "", "end",
    {"\ud800": 1},
]  # fmt: skip
junk: st.SearchStrategy[Any] = json_values | st.integers(0, len(_JUNK) - 1).map(_JUNK.__getitem__)
"""What no flow has, and what one may have in another place."""
