"""How a flow is listed where a model judges a message: compiled once per flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from onrecord.flows.fields import FieldSpec, params_of
from onrecord.flows.flow import Flow
from onrecord.flows.passage import Joined, Passage, passage
from onrecord.flows.phrases import Phrases, phrases
from onrecord.flows.template import Template, compile_template
from onrecord.flows.triggers import OnMention, OnMessage

__all__ = ("FlowLines", "candidate_lines", "lines_of")

_KEPT = 4096
_LINES: dict[int, tuple[Flow, FlowLines]] = {}

Phrased = TypeVar("Phrased", OnMessage, OnMention)


class FlowLines(Struct, frozen=True, kw_only=True):
    """What stands behind the number or hyphen and the id: the name, and what the flow is for.

    ``about`` is the description on a line of its own, ``extract`` the values that a mention comes with.
    """

    candidate: Passage
    mention: Passage
    about: Passage
    extract: tuple[FieldSpec, ...]


def lines_of(flow: Flow) -> FlowLines:
    """The lines of a declared flow. FlowInvalid for parameters to extract that nobody can read."""
    held = _LINES.get(id(flow))
    if held is None:
        if len(_LINES) >= _KEPT:
            _LINES.clear()
        # The flow is kept with its lines, so that its id cannot come to mean another one.
        held = _LINES[id(flow)] = (flow, _compiled(flow))
    return held[1]


def candidate_lines(flow: Flow, trigger: OnMessage | None) -> Passage:
    """How a flow is listed that a message may be for, by the phrases of one of its triggers."""
    wanted = phrases(trigger.phrases) if trigger else Phrases()
    return passage((
        *_named(flow),
        Joined("\n   The customer: ", _compile(wanted.counts), "; "),
        Joined("\n   Score 0 when: ", _compile(wanted.excludes), "; "),
    ))  # fmt: skip


def _compiled(flow: Flow) -> FlowLines:
    mentioned = _first(flow, OnMention)
    noticed = phrases(mentioned.phrases) if mentioned else Phrases()
    return FlowLines(
        candidate=candidate_lines(flow, _first(flow, OnMessage)),
        mention=passage((
            *_named(flow),
            Joined("\n  Counts when: ", _compile(noticed.counts), "; "),
            Joined("\n  Does not count when: ", _compile(noticed.excludes), "; "),
        )),
        about=passage((Joined("\n", _described(flow)),)),
        extract=tuple(params_of(mentioned.extract).values()) if mentioned else (),
    )  # fmt: skip


def _named(flow: Flow) -> tuple[str | Joined, ...]:
    return (f" — {flow.name}", Joined(": ", _described(flow)))


def _described(flow: Flow) -> tuple[Template, ...]:
    return _compile([flow.description] if flow.description else [])


def _compile(texts: Sequence[str]) -> tuple[Template, ...]:
    return tuple(compile_template(text) for text in texts)


def _first(flow: Flow, kind: type[Phrased]) -> Phrased | None:
    """The first trigger of a kind that has phrases: what a model judges."""
    return next((trigger for trigger in flow.on if isinstance(trigger, kind) and trigger.phrases), None)
