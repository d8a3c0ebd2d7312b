"""Captions: triggers, steps and gates in a few words, for people who look at flows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from onrecord.flows.predicates import Pred
from onrecord.flows.steps import Collect, Do, If, Say, Step, Talk, Wait, WaitEvent
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence, Repeat, Trigger
from onrecord.flows.ways import Way
from onrecord.jsonio import dumps, writable

__all__ = ("ELSEWHERE", "cut", "gate_caption", "lasting", "step_caption", "trigger_caption", "way_caption")

ELSEWHERE = "by hand, or from another flow"
"""What starts a flow without triggers."""

SHORT = 40
"""How many characters of a text a caption shows."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def trigger_caption(trigger: Trigger, limit: int = SHORT) -> str:
    """What starts a run: ``message: “wants a room”``, ``silence of 24h``; how often, where that is not usual."""
    told = [_cause(trigger, limit)]
    if trigger.only_if is not None:
        told.append(f"if {gate_caption(trigger.only_if, limit)}")
    if trigger.repeat != ("always" if isinstance(trigger, OnEvent) else "once"):
        told.append(_often(trigger.repeat))
    return ", ".join(told)


def _cause(trigger: Trigger, limit: int) -> str:
    hours = ", in business hours" if isinstance(trigger, (OnSilence, OnEvent)) and trigger.business_hours else ""
    match trigger:
        case OnMessage(phrases=phrases):
            return f"message: {_phrases(phrases, limit)}" if phrases else "any other message"
        case OnMention(phrases=phrases):
            return f"mention: {_phrases(phrases, limit)}" if phrases else "every message, judged by code"
        case OnSilence(after=after):
            return f"silence of {lasting(after)}{hours}"
        case OnEvent(name=name, after=after):
            return f"event {cut(name, limit)}{f', after {lasting(after)}' if after is not None else ''}{hours}"


def _phrases(phrases: tuple[str, ...], limit: int) -> str:
    """As many as there is room for, the first in any case."""
    shown = list[str]()
    for phrase in phrases:
        if shown and limit and sum(map(len, shown)) + len(phrase) > limit:
            return f"{', '.join(shown)} and {len(phrases) - len(shown)} more"
        shown.append(_quoted(phrase, limit))
    return ", ".join(shown)


def _often(repeat: Repeat) -> str:
    return f"once in {lasting(repeat.window)}" if isinstance(repeat, Cooldown) else repeat


def step_caption(step: Step, limit: int = SHORT) -> str:
    """What a step does: ``asks name, size``, ``says “Bye”``, ``waits 2d``."""
    match step:
        case Collect(fields=fields):
            return f"asks {cut(', '.join(fields), limit)}"
        case Talk(prompt=prompt):
            return f"talks: {cut(prompt, limit)}" if prompt else "talks"
        case Say(text=text, media=media):
            told = [_quoted(text, limit)] if text or not media else []
            return f"says {' and '.join([*told, *([f'[{cut(media, limit)}]'] if media else [])])}"
        case Do(action=action):
            return f"does {cut(action, limit)}"
        case Wait(duration=duration):
            return f"waits {lasting(duration)}{', in business hours' if step.business_hours else ''}"
        case WaitEvent(event=event):
            return f"waits for {cut(event, limit)}, up to {lasting(step.up_to)}"
        case If(only_if=only_if):
            return f"if {gate_caption(only_if, limit)}"


def way_caption(step: Step, way: Way, limit: int = SHORT) -> str:
    """When a run takes a way out of a step; empty where it is the only one, or the usual one."""
    told = _reason(step, way, limit)
    return ", ".join([*([told] if told else []), *([f"clears {', '.join(way.clears)}"] if way.clears else [])])


def _reason(step: Step, way: Way, limit: int) -> str:
    if way.name == "branches":
        told = [_quoted(way.when, limit)] if way.when else []
        told += [f"if {gate_caption(way.only_if, limit)}"] if way.only_if is not None else []
        return ", ".join([*(["a reply"] if isinstance(step, Wait) else []), *told])
    is_then = way.name == "then"
    if isinstance(step, If):
        return "yes" if is_then else "no"
    if isinstance(step, WaitEvent):
        return cut(step.event, limit) if is_then else "not in time"
    if isinstance(step, Wait) and step.else_ is not None:
        return "no reply" if is_then else "a reply"
    return "it fails" if way.name == "on_fail" else ""


def gate_caption(gate: Pred, limit: int = SHORT) -> str:
    """What a gate looks at: the name of a condition or function, or its JSON in words."""
    if isinstance(gate, str):
        return cut(gate, limit)
    if isinstance(gate, Mapping):
        told = [_entry(name, value) for name, value in gate.items() if value is not None]
        return cut(" and ".join(told), limit) or "nothing is asked"
    name = getattr(gate, "__name__", type(gate).__name__)
    return "code says so" if name == "<lambda>" else cut(name, limit)


def _entry(name: str, value: Any) -> str:
    if name == "equals" and isinstance(value, Mapping):
        return " and ".join(f"{slug} is {_shown(one)}" for slug, one in value.items())
    if name == "known" and isinstance(value, (list, tuple)):
        return " and ".join(f"{slug} is known" for slug in value)
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name} {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


def lasting(time: str | timedelta) -> str:
    """A length of time as an author writes it: ``2d``, ``1h 30m``, ``250ms``."""
    if isinstance(time, str):
        return cut(time, SHORT)
    seconds, rest = divmod(time // timedelta(milliseconds=1), 1000)
    told = list[str]()
    for size, unit in _UNITS:
        count, seconds = divmod(seconds, size)
        told += [f"{count}{unit}"] if count else []
    told += [f"{rest}ms"] if rest else []
    return " ".join(told) or "0s"


def cut(text: str, limit: int) -> str:
    """The text in one line of at most ``limit`` characters (0: no limit), as every encoding can hold it."""
    flat = " ".join(writable(str(text)).split())
    return flat if not limit or len(flat) <= limit else f"{flat[: limit - 1].rstrip()}…"


def _quoted(text: str, limit: int) -> str:
    return f"“{cut(text, limit)}”"
