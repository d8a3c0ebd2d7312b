"""Hypothesis strategies for flows: valid ones with every kind of step and trigger, and what an editor makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from onrecord.flows import (
    Branch,
    Chain,
    Collect,
    Cooldown,
    Do,
    Event,
    Field,
    Flow,
    Goto,
    Idle,
    If,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Say,
    Talk,
    Wait,
    WaitEvent,
)
from onrecord.flows.predicates import PredContext

__all__ = ("CONDITIONS", "COOLDOWN", "EVENTS", "FIELDS", "IDS", "MAX_ASKS", "edited_flows", "flow_sets", "idles")

FIELDS: Mapping[str, Field] = {
    "name": Field(type="string", ask="Ask who it is, {{data.name}}."),
    "size": Field(type="string", enum=("1-10", "11-50")),
    "age": Field(type="integer"),
    "ok": Field(type="boolean", ask="Is it right?"),
    "message": Field(type="string"),
    "odd slug!": Field(type="number", extract="asked"),
}
EVENTS = {"paid": Event(), "wrote": Event(direction="inbound"), "sent": Event(direction="outbound")}
IDS = ("f0", "f1", "f2", "f:3 é#")
"""Flow ids: the last one as hostile as they may be."""
MAX_ASKS = 2
COOLDOWN = timedelta(hours=1)


def _vip(ctx: PredContext) -> bool:
    return bool(ctx.context["vip"])


async def _vip_elsewhere(ctx: PredContext, argument: object) -> bool:
    return ctx.context["vip"] is argument


def _breaks(ctx: PredContext) -> bool:
    if ctx.context["breaks"]:
        raise LookupError("a condition that breaks")
    return True


CONDITIONS: Mapping[str, Callable[..., Any]] = {"vip": _vip, "elsewhere": _vip_elsewhere, "breaks": _breaks}

_GATES = (
    {"vip": True}, {"elsewhere": False}, {"known": ["name"]}, {"equals": {"ok": True}}, {"silenced": False}, "breaks",
    {"known": ["size"], "vip": None}, lambda ctx: ctx.data.get("age") != 7,
)  # fmt: skip
gates = st.sampled_from(_GATES)
maybe_gates = st.one_of(st.none(), st.none(), st.none(), gates)
slugs = st.sampled_from(tuple(FIELDS))
some_slugs = st.lists(slugs, max_size=2, unique=True).map(tuple)
repeats = st.sampled_from(("once", "always", "always", Cooldown(COOLDOWN)))
texts = st.sampled_from(
    (*("Hi {{data.name}}.", "You said {{input.quote}}, {{context.blank}}?", "Line.") * 3, "{{context.blank}}")
)
prompts = st.sampled_from(("Be brief.", "Greet {{data.name}}."))
tools = st.sampled_from((None, None, (), ("look",), ("book", "look")))
idles = st.sampled_from((Idle(), Idle("Help.", tools=()), "silent"))


def _one(draw: st.DrawFn, *choices: Any) -> Any:
    return draw(st.sampled_from(choices))


@st.composite
def _targets(draw: st.DrawFn, ids: tuple[str, ...], *, must: bool = False) -> Any:
    """Where a step leads: mostly on, sometimes anywhere."""
    if not must and _one(draw, True, True, True, False):
        return None
    leads = _one(draw, "step", "step", "end", "goto", "chain")
    if leads == "end":
        return "end"
    if leads == "chain":
        return Chain(_one(draw, *IDS, "nowhere", "{{context.flow}}"), input=_one(draw, None, {"quote": "q"}))
    step = draw(st.sampled_from(ids))
    return step if leads == "step" else Goto(step, clear=draw(some_slugs))


@st.composite
def _branches(draw: st.DrawFn, ids: tuple[str, ...], *, by_code: bool = False) -> tuple[Branch, ...]:
    out = []
    for _ in range(_one(draw, 0, 0, 0, 1, 2)):
        then = draw(_targets(ids, must=True))
        gate = draw(gates) if by_code or draw(st.booleans()) else None
        out.append(
            Branch("", only_if=gate, then=then) if gate is not None else Branch("Is it {{data.name}}?", then=then)
        )
    return tuple(out)


@st.composite
def _steps(draw: st.DrawFn, id: str, ids: tuple[str, ...]) -> Any:
    """One step of any kind."""
    to = _targets(ids)
    kind = _one(draw, "talk", "collect", "collect", "say", "do", "wait", "event", "if")
    then = draw(to)
    if kind == "talk":
        return Talk(draw(prompts), id=id, tools=draw(tools), branches=draw(_branches(ids)), then=then)
    if kind == "collect":
        return Collect(
            *draw(st.lists(slugs, min_size=1, max_size=2, unique=True)), id=id, prompt=_one(draw, "", "Ask."),
            question=_one(draw, "", "", "What is it, {{data.name}}?"), max_asks=_one(draw, 1, MAX_ASKS),
            tools=draw(tools), branches=draw(_branches(ids)), then=then,
        )  # fmt: skip
    if kind == "say":
        return Say(
            draw(texts), id=id, once=draw(st.booleans()), media=_one(draw, None, None, "photo"),
            after_ms=_one(draw, 0, 0, 500), then=then,
        )  # fmt: skip
    if kind == "do":
        args = {"text": "{{data.name}}", "deep": [{"x": "{{input.quote}}"}]}
        return Do("act", id=id, args=args, on_fail=draw(to), then=then)
    if kind == "wait":
        return Wait(
            _one(draw, "0s", "5s", "10s", "2m", "24h"), id=id, business_hours=draw(st.booleans()),
            else_=draw(_targets(ids, must=draw(st.booleans()))), branches=draw(_branches(ids, by_code=True)),
            then=then,
        )  # fmt: skip
    if kind == "event":
        up_to = _one(draw, "1h", "30d")
        return WaitEvent(draw(st.sampled_from(tuple(EVENTS))), id=id, up_to=up_to, else_=draw(to), then=then)
    return If(draw(gates), id=id, else_=draw(_targets(ids, must=True)), then=then)


@st.composite
def _triggers(draw: st.DrawFn) -> Any:
    kind = _one(draw, "message", "message", "open", "mention", "silence", "event")
    how: dict[str, Any] = {"repeat": draw(repeats), "only_if": draw(maybe_gates)}
    if kind == "message":
        return OnMessage("wants it", "{{data.name}}", "!is rude", **how)
    if kind == "open":
        return OnMessage(**how)
    if kind == "mention":
        phrases = _one(draw, (), ("a rival",))
        return OnMention(*phrases, extract=_one(draw, {}, {"quote": Field(type="string")}), **how)
    if kind == "silence":
        return OnSilence(_one(draw, "1m", "24h"), business_hours=draw(st.booleans()), **how)
    after = _one(draw, None, None, "0s", "2h")
    return OnEvent(draw(st.sampled_from(tuple(EVENTS))), after=after, business_hours=draw(st.booleans()), **how)


@st.composite
def _flows(draw: st.DrawFn, id: str) -> Flow:
    ids = tuple(f"s{n}" for n in range(draw(st.integers(1, 4))))
    return Flow(
        id, on=draw(st.lists(_triggers(), min_size=_one(draw, 0, 1, 1), max_size=2)),
        steps=[draw(_steps(one, ids)) for one in ids], anchor=_one(draw, "session", "session", "customer"),
        while_=draw(maybe_gates), collect=draw(some_slugs),
        clear_on_start=_one(draw, (), (), ("name", "ok")), on_end=_one(draw, "end", "end", "stay", "reset"),
        tools=draw(tools),
    )  # fmt: skip


@st.composite
def flow_sets(draw: st.DrawFn, name: str) -> tuple[Flow, ...]:
    """The flows of one agent, whose ids begin with its name."""
    return tuple(draw(_flows(f"{name}{id[1:]}")) for id in IDS[: _one(draw, 4, 3, 2, 1)])


@st.composite
def edited_flows(draw: st.DrawFn, flows: tuple[Flow, ...]) -> tuple[Flow, ...]:
    """The same flows after somebody edited them: flows and steps are gone, or are something else under the same id."""
    out = []
    for flow in flows:
        fate = _one(draw, "same", "gone", "steps", "steps", "new")
        if fate == "new":
            out.append(replace(draw(_flows(flow.id)), anchor=flow.anchor))  # another one would make other claims
        elif fate == "steps":
            out.append(draw(_edited(flow)))
        elif fate == "same":
            out.append(flow)
    return tuple(out)


@st.composite
def _edited(draw: st.DrawFn, flow: Flow) -> Flow:
    ids = tuple(step.id for step in flow.steps)
    fates = {id: _one(draw, "kept", "kept", "gone", "new") for id in ids}
    kept = tuple(id for id in ids if fates[id] != "gone") or ids[:1]
    steps = [
        draw(_steps(s.id, kept)) if fates[s.id] == "new" else _rewired(s, kept) for s in flow.steps if s.id in kept
    ]
    return replace(flow, steps=tuple(steps), on_end=_one(draw, "end", "stay", "reset"))


def _rewired(step: Any, kept: tuple[str, ...]) -> Any:
    """The step, whose ways that lead nowhere any more end the flow."""
    changes: dict[str, Any] = {
        name: _there(getattr(step, name), kept) for name in ("then", "else_", "on_fail") if hasattr(step, name)
    }
    if hasattr(step, "branches"):
        changes["branches"] = tuple(replace(one, then=_there(one.then, kept)) for one in step.branches)
    if isinstance(step, Collect):
        names = (name for name in Collect.__slots__ if name != "fields")
        return Collect(*step.fields, **{name: changes.get(name, getattr(step, name)) for name in names})
    return replace(step, **changes)


def _there(target: Any, kept: tuple[str, ...]) -> Any:
    id = target.step if isinstance(target, Goto) else target
    return "end" if isinstance(id, str) and id not in kept else target
