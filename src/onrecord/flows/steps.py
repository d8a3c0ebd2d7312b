"""Steps: what a run does, one thing each, and where it goes from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from onrecord.flows.instructions import FlowInstruction, as_tuples
from onrecord.flows.predicates import Pred
from onrecord.jsonio import Json

__all__ = (
    "END",
    "Branch",
    "Chain",
    "Collect",
    "Do",
    "Goto",
    "If",
    "Next",
    "Say",
    "Step",
    "StepKind",
    "Talk",
    "Wait",
    "WaitEvent",
    "next_label",
    "with_id",
)

StepKind = Literal["prompt", "collect", "say", "do", "wait", "wait_event", "if"]

END = "end"
"""The target that finishes a flow; no step has this id."""

MAX_ASKS = 3


class _StepName(Struct, frozen=True):
    step: str


class Goto(_StepName, frozen=True, kw_only=True):
    """Go to a step of this flow; ``clear`` names fields to forget first, with how often they were asked."""

    clear: Sequence[str] = ()

    def __post_init__(self) -> None:
        as_tuples(self, "clear")


class _FlowName(Struct, frozen=True):
    flow: str


class Chain(_FlowName, frozen=True, kw_only=True):
    """End this run and start another flow, with this run's input or one of its own; ``flow`` is a template."""

    input: Json = None


Next = str | Goto | Chain
"""Where a run goes: to a step by its id, to ``"end"``, to a step that forgets fields, or to another flow."""


def next_label(target: Next | None) -> str | None:
    """How an outcome names a target: a step's id, ``end``, or ``flow:`` with the flow as it is written."""
    if isinstance(target, Chain):
        return f"flow:{target.flow}"
    return target.step if isinstance(target, Goto) else target


class _When(Struct, frozen=True):
    when: str = ""


class Branch(_When, frozen=True, kw_only=True):
    """A way out of a step: ``when`` is judged by the model, ``only_if`` by code. The first that holds is taken."""

    only_if: Pred | None = None
    then: Next


class _PromptText(Struct, frozen=True):
    prompt: str = ""


class Talk(_PromptText, frozen=True, kw_only=True):
    """Say something in the model's own words, as ``prompt`` guides it.

    ``tools`` are the ids the model may call here (None: those of the flow, else all; empty: none).
    """

    id: str = ""
    label: str = ""
    tools: Sequence[str] | None = None
    instructions: Sequence[FlowInstruction] = ()
    branches: Sequence[Branch] = ()
    then: Next | None = None
    ui: Json = None

    kind: ClassVar[StepKind] = "prompt"
    # What only Collect has, so that the two talk steps can be read alike.
    fields: ClassVar[tuple[str, ...]] = ()
    ask: ClassVar[Mapping[str, str]] = {}
    question: ClassVar[str] = ""
    max_asks: ClassVar[int] = MAX_ASKS

    def __post_init__(self) -> None:
        as_tuples(self, "tools", "instructions", "branches")


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Collect:
    """Ask for fields until each is known, or was asked for ``max_asks`` times.

    ``ask`` words the asking per field, in place of the field's own; ``question`` is a fixed first question, sent word
    for word; ``prompt`` guides the reply. ``tools`` as in `Talk`.
    """

    fields: tuple[str, ...]
    id: str
    label: str
    prompt: str
    ask: Mapping[str, str]
    question: str
    max_asks: int
    tools: Sequence[str] | None
    instructions: Sequence[FlowInstruction]
    branches: Sequence[Branch]
    then: Next | None
    ui: Json

    kind: ClassVar[StepKind] = "collect"

    def __init__(
        self,
        *fields: str,
        id: str = "",
        label: str = "",
        prompt: str = "",
        ask: Mapping[str, str] | None = None,
        question: str = "",
        max_asks: int = MAX_ASKS,
        tools: Sequence[str] | None = None,
        instructions: Sequence[FlowInstruction] = (),
        branches: Sequence[Branch] = (),
        then: Next | None = None,
        ui: Json = None,
    ) -> None:
        given = (
            ("fields", fields), ("id", id), ("label", label), ("prompt", prompt), ("ask", {} if ask is None else ask),
            ("question", question), ("max_asks", max_asks), ("tools", tools), ("instructions", instructions),
            ("branches", branches), ("then", then), ("ui", ui),
        )  # fmt: skip
        for name, value in given:
            object.__setattr__(self, name, tuple(value) if isinstance(value, list) and name != "ui" else value)

    def __repr__(self) -> str:
        usual = Collect()
        told = [repr(field) for field in self.fields]
        told += [
            f"{name}={getattr(self, name)!r}"
            for name in self.__slots__
            if name != "fields" and getattr(self, name) != getattr(usual, name)
        ]
        return f"Collect({', '.join(told)})"


class _Text(Struct, frozen=True):
    text: str


class Say(_Text, frozen=True, kw_only=True):
    """Send a text word for word; it is a template. ``media`` is the slug of something the host sends with it.

    ``once``: not a second time in one session. ``after_ms``: how many milliseconds the host waits before it.
    """

    id: str = ""
    label: str = ""
    media: str | None = None
    once: bool = False
    after_ms: int = 0
    then: Next | None = None
    ui: Json = None

    kind: ClassVar[StepKind] = "say"


class _Action(Struct, frozen=True):
    action: str


class Do(_Action, frozen=True, kw_only=True):
    """Call an action of the host. Every text in ``args``, at any depth, is a template.

    ``on_fail``: where to go when it fails; without it, on as usual.
    """

    id: str = ""
    label: str = ""
    args: Mapping[str, Json] = {}
    on_fail: Next | None = None
    then: Next | None = None
    ui: Json = None

    kind: ClassVar[StepKind] = "do"


class _Duration(Struct, frozen=True):
    duration: str | timedelta


class Wait(_Duration, frozen=True, kw_only=True):
    """Wait for a while. ``else_`` is where to go when the customer writes first, branches (``only_if``) before it.

    Ten seconds or less before something is said are no waiting: they delay the message.
    """

    id: str = ""
    label: str = ""
    business_hours: bool = False
    else_: Next | None = None
    branches: Sequence[Branch] = ()
    then: Next | None = None
    ui: Json = None

    kind: ClassVar[StepKind] = "wait"

    def __post_init__(self) -> None:
        as_tuples(self, "branches")


class _EventName(Struct, frozen=True):
    event: str


class WaitEvent(_EventName, frozen=True, kw_only=True):
    """Wait for an event of the host, ``up_to`` some time; ``else_`` is where to go without it (None: the end)."""

    id: str = ""
    label: str = ""
    up_to: str | timedelta = "30d"
    else_: Next | None = None
    then: Next | None = None
    ui: Json = None

    kind: ClassVar[StepKind] = "wait_event"


class _Gate(Struct, frozen=True):
    only_if: Pred


class If(_Gate, frozen=True, kw_only=True):
    """Go on when a gate is open, else to ``else_`` (None: the end)."""

    id: str = ""
    label: str = ""
    else_: Next | None = None
    then: Next | None = None
    ui: Json = None

    kind: ClassVar[StepKind] = "if"


Step = Talk | Collect | Say | Do | Wait | WaitEvent | If


def with_id(step: Step, id: str) -> Step:
    """The same step under an id."""
    if isinstance(step, Collect):
        rest = {name: getattr(step, name) for name in Collect.__slots__ if name not in {"fields", "id"}}
        return Collect(*step.fields, id=id, **rest)
    return replace(step, id=id)
