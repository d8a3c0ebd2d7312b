"""Flow: when a run starts, what it does step by step, and what follows its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from onrecord.flows.instructions import FlowInstruction, as_tuples
from onrecord.flows.predicates import Pred
from onrecord.flows.steps import Collect, Do, If, Say, Step, Talk, Wait, WaitEvent, with_id
from onrecord.flows.triggers import Trigger

__all__ = ("Direction", "Event", "Flow", "FlowInstruction", "Idle", "OnEnd")

OnEnd = Literal["end", "stay", "reset"]
Direction = Literal["inbound", "outbound"]

_STEPS = (Talk, Collect, Say, Do, Wait, WaitEvent, If)


class _FlowId(Struct, frozen=True):
    id: str


class Flow(_FlowId, frozen=True, kw_only=True):
    """One thing a conversation can be about.

    ``on``: what starts it (nothing: only by hand or from another flow). ``while_`` must keep holding for a run to move
    (default: the trigger's ``only_if``). ``collect``: all the data it needs; what no step asks for is still taken when
    it is told. ``clear_on_start``: fields forgotten when a run starts. ``anchor``: what it runs once for, a name of
    ``FlowOptions.anchors``. ``tools``: ids that its steps may call (None: all). A step without an id gets one of its
    kind: ``talk``, ``talk2``, ``collect`` and so on. Nothing is checked here: names are, when an agent is built.
    """

    name: str = ""
    description: str = ""
    on: Sequence[Trigger] = ()
    steps: Sequence[Step] = ()
    anchor: str = "session"
    while_: Pred | None = None
    collect: Sequence[str] = ()
    clear_on_start: Sequence[str] = ()
    on_end: OnEnd = "end"
    instructions: Sequence[FlowInstruction] = ()
    tools: Sequence[str] | None = None

    def __post_init__(self) -> None:
        as_tuples(self, "on", "steps", "collect", "clear_on_start", "instructions", "tools")
        if not self.name:
            force_setattr(self, "name", self.id)
        if isinstance(self.steps, tuple):
            force_setattr(self, "steps", _with_ids(self.steps))

    def step(self, id: str) -> Step | None:
        """The step with this id."""
        return next((step for step in self.steps if step.id == id), None)

    def after(self, id: str) -> Step | None:
        """The step that stands after the one with this id; None after the last."""
        place = next((place for place, step in enumerate(self.steps) if step.id == id), len(self.steps))
        return self.steps[place + 1] if place + 1 < len(self.steps) else None


class _IdlePrompt(Struct, frozen=True):
    prompt: str = ""


class Idle(_IdlePrompt, frozen=True, kw_only=True):
    """Who answers when no flow has the floor; ``prompt`` guides it, ``tools`` are what it may call (None: all)."""

    tools: Sequence[str] | None = None
    instructions: Sequence[FlowInstruction] = ()

    def __post_init__(self) -> None:
        as_tuples(self, "tools", "instructions")


class Event(Struct, frozen=True, kw_only=True):
    """Something the host may report. ``inbound`` counts as the customer writing, ``outbound`` as the assistant."""

    direction: Direction | None = None
    about: str = ""


def _with_ids(steps: tuple[Any, ...]) -> tuple[Any, ...]:
    used = {step.id for step in steps if isinstance(step, _STEPS) and isinstance(step.id, str)}
    if "" not in used:
        return steps
    counts: dict[str, int] = {}
    named = list[Any]()
    for step in steps:
        if isinstance(step, _STEPS) and step.id == "":
            stem = "talk" if isinstance(step, Talk) else step.kind
            free = _free(stem, used, counts)
            used.add(free)
            step = with_id(step, free)  # noqa: PLW2901 - the same step, named
        named.append(step)
    return tuple(named)


def _free(stem: str, used: set[str], counts: dict[str, int]) -> str:
    while True:
        number = counts[stem] = counts.get(stem, 0) + 1
        name = stem if number == 1 else f"{stem}{number}"
        if name not in used:
            return name
