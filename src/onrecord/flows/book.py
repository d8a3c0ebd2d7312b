"""Flows compiled once: what every turn would otherwise look up again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from onrecord.errors import FeatureFailed
from onrecord.flows.fields import FieldSpec
from onrecord.flows.flow import Event, Flow, Idle
from onrecord.flows.instructions import FlowInstruction
from onrecord.flows.phrases import Phrases, phrases
from onrecord.flows.predicates import Check, compile_pred
from onrecord.flows.prompts import Prompts
from onrecord.flows.steps import Collect, Do, If, Next, Say, Step, Talk, Wait, WaitEvent
from onrecord.flows.template import Template, compile_template
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence, Trigger
from onrecord.timing import duration, whole_ms
from onrecord.tools.tool import Tool

__all__ = ("Book", "BookBranch", "BookFlow", "BookStep", "BookTrigger", "Guide", "guides")


class Guide(Struct, frozen=True):
    """An instruction with its condition compiled."""

    told: FlowInstruction
    check: Check | None


class BookTrigger(Struct, frozen=True, kw_only=True):
    """A trigger with its phrases, condition and times compiled; ``after`` is the duration of a silence, too."""

    declared: Trigger
    check: Check | None
    always: bool
    cooldown: timedelta | None
    phrases: Phrases | None = None
    after: timedelta | None = None
    business_hours: bool = False
    event: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it lists no phrase at all: a catch-all, or a mention that only code detects."""
        return self.phrases is not None and not self.phrases.counts and not self.phrases.excludes


class BookBranch(Struct, frozen=True, kw_only=True):
    """An exit of a step: judged by code (``check``) or put to the model (``when``)."""

    when: Template | None
    check: Check | None
    then: Next


class BookStep(Struct, frozen=True, kw_only=True):
    """A step with its place, texts, times and conditions compiled."""

    id: str
    kind: str
    index: int
    declared: Step
    then: Next | None
    text: Template | None = None
    question: Template | None = None
    asks: Mapping[str, Template] = {}
    collect: tuple[FieldSpec, ...] = ()
    branches: tuple[BookBranch, ...] = ()
    guides: tuple[Guide, ...] = ()
    duration: timedelta | None = None
    check: Check | None = None
    otherwise: Next | None = None

    @property
    def talks(self) -> bool:
        """Whether it takes the floor."""
        return self.kind in ("prompt", "collect")

    @property
    def max_asks(self) -> int:
        """How often each of its fields is asked for."""
        return self.declared.max_asks if isinstance(self.declared, Collect) else 0


class BookFlow(Struct, frozen=True, kw_only=True):
    """A flow with its steps by id and its triggers by kind.

    ``anywhere`` are the fields that may be taken from any message while the flow has the floor or could take it;
    ``phrased`` and ``catching`` its message triggers, with phrases and without; ``is_free``: its runs are keyed to the
    session and its first phrases have no condition, so that only a claim could stop it.
    """

    id: str
    declared: Flow
    steps: tuple[BookStep, ...]
    by_id: Mapping[str, BookStep]
    triggers: Mapping[str, tuple[BookTrigger, ...]]
    premise: Check | None
    anywhere: tuple[FieldSpec, ...]
    guides: tuple[Guide, ...]
    free: frozenset[str]
    in_session: bool
    is_free: bool
    phrased: tuple[BookTrigger, ...]
    catching: tuple[BookTrigger, ...]

    def of(self, kind: str) -> tuple[BookTrigger, ...]:
        """Its triggers of a kind, in their order."""
        return self.triggers.get(kind, ())

    @property
    def last_talk(self) -> BookStep | None:
        """Its last talk step."""
        return next((step for step in reversed(self.steps) if step.talks), None)

    @property
    def begins_by_speaking(self) -> bool:
        """Whether nothing of it can happen while nobody may speak."""
        return bool(self.steps) and (self.steps[0].talks or self.steps[0].kind == "say")


class Book(Struct, frozen=True, kw_only=True):
    """All flows of an agent, by id and by what starts them; every tuple is in the agent's order."""

    name: str
    flows: Mapping[str, BookFlow]
    routed: tuple[BookFlow, ...]
    open: tuple[BookFlow, ...]
    mentioned: tuple[BookFlow, ...]
    silent: tuple[BookFlow, ...]
    by_event: Mapping[str, tuple[BookFlow, ...]]
    has_questions: bool
    fields: Mapping[str, FieldSpec]
    actions: Mapping[str, Tool]
    events: Mapping[str, Event]
    prompts: Prompts
    guides: tuple[Guide, ...]
    idle: Idle | None
    idle_prompt: Template
    idle_guides: tuple[Guide, ...]
    business_hours: Callable[[datetime, Any], datetime] | None
    scores_lone: bool

    def moved(self, at: datetime, context: Any) -> datetime:
        """The instant, moved to when business is open; never back, whatever the function says. FeatureFailed."""
        if self.business_hours is None:
            return at
        moved: Any = self.business_hours(at, context)
        if not isinstance(moved, datetime) or moved.utcoffset() is None:
            if inspect.iscoroutine(moved):
                moved.close()
            gave = "a datetime without UTC offset" if isinstance(moved, datetime) else type(moved).__name__
            raise FeatureFailed("Flows", "direct", f"business_hours returned {gave}, not an aware datetime")
        return max(at, whole_ms(moved).astimezone(UTC))

    @classmethod
    def of(
        cls, flows: Sequence[Flow], *, fields: Mapping[str, FieldSpec], conditions: Mapping[str, Any],
        instructions: Sequence[FlowInstruction], idle: Idle | None, **others: Any,
    ) -> Book:  # fmt: skip
        """Compiles declared flows, which `validate_flow` has passed; ``others`` are kept as they are."""
        registers = {"fields": fields, "conditions": conditions}
        made = tuple(_flow(flow, fields, conditions) for flow in flows)
        events: dict[str, tuple[BookFlow, ...]] = {}
        for flow in made:
            for name in dict.fromkeys(trigger.event for trigger in flow.of("event")):
                events[name] = (*events.get(name, ()), flow)
        return cls(
            flows={flow.id: flow for flow in made},
            routed=tuple(flow for flow in made if flow.phrased),
            open=tuple(flow for flow in made if flow.catching),
            mentioned=tuple(flow for flow in made if flow.of("mention")),
            silent=tuple(flow for flow in made if flow.of("silence")),
            by_event=events,
            has_questions=any(step.question is not None for flow in made for step in flow.steps),
            fields=fields, idle=idle, guides=guides(instructions, where="agent", **registers),
            idle_prompt=compile_template("" if idle is None else idle.prompt),
            idle_guides=guides(() if idle is None else idle.instructions, where="idle", **registers), **others,
        )  # fmt: skip


def guides(
    told: Iterable[FlowInstruction], *, fields: Mapping[str, FieldSpec], conditions: Mapping[str, Any], where: str
) -> tuple[Guide, ...]:
    """Instructions with their conditions compiled."""
    return tuple(
        Guide(
            one,
            compile_pred(
                one.only_if, conditions=conditions, fields=fields, where=where, place=f"instructions[{at}].only_if"
            ),
        )
        for at, one in enumerate(told)
    )


def _flow(flow: Flow, fields: Mapping[str, FieldSpec], conditions: Mapping[str, Any]) -> BookFlow:
    where = f'flow "{flow.id}"'
    steps = tuple(_step(step, at, fields, conditions, where) for at, step in enumerate(flow.steps))
    triggers: dict[str, tuple[BookTrigger, ...]] = {}
    for at, trigger in enumerate(flow.on):
        made = _trigger(trigger, fields, conditions, f"{where}, trigger #{at + 1}")
        triggers[trigger.kind] = (*triggers.get(trigger.kind, ()), made)
    listed = dict.fromkeys((*flow.collect, *(spec.slug for step in steps for spec in step.collect)))
    first = steps[0] if steps else None
    free = first is not None and first.talks and first.question is None
    in_session = flow.anchor == "session"
    phrased = tuple(trigger for trigger in triggers.get("message", ()) if not trigger.is_open)
    return BookFlow(
        id=flow.id, declared=flow, steps=steps, by_id={step.id: step for step in steps}, triggers=triggers,
        premise=compile_pred(flow.while_, conditions=conditions, fields=fields, where=where, place="while"),
        anywhere=tuple(fields[slug] for slug in listed if fields[slug].extract == "anywhere"),
        guides=guides(flow.instructions, fields=fields, conditions=conditions, where=where),
        free=frozenset(spec.slug for spec in first.collect) if first is not None and free else frozenset(),
        in_session=in_session, is_free=in_session and bool(phrased) and phrased[0].check is None,
        phrased=phrased,
        catching=tuple(trigger for trigger in triggers.get("message", ()) if trigger.is_open),
    )  # fmt: skip


def _trigger(
    trigger: Trigger, fields: Mapping[str, FieldSpec], conditions: Mapping[str, Any], where: str
) -> BookTrigger:
    repeat = trigger.repeat
    after = trigger.after if isinstance(trigger, (OnSilence, OnEvent)) else None
    return BookTrigger(
        declared=trigger, always=repeat == "always",
        check=compile_pred(trigger.only_if, conditions=conditions, fields=fields, where=where),
        cooldown=duration(repeat.window) if isinstance(repeat, Cooldown) else None,
        phrases=phrases(trigger.phrases) if isinstance(trigger, (OnMessage, OnMention)) else None,
        after=None if after is None else duration(after),
        business_hours=isinstance(trigger, (OnSilence, OnEvent)) and trigger.business_hours,
        event=trigger.name if isinstance(trigger, OnEvent) else "",
    )  # fmt: skip


def _step(step: Step, at: int, fields: Mapping[str, FieldSpec], conditions: Mapping[str, Any], flow: str) -> BookStep:
    where = f'{flow}, step "{step.id}"'
    made = dict[str, Any](id=step.id, kind=step.kind, index=at, declared=step, then=step.then)
    if isinstance(step, (Talk, Collect)):
        made["text"] = compile_template(step.prompt) if step.prompt else None
        made["guides"] = guides(step.instructions, fields=fields, conditions=conditions, where=where)
    if isinstance(step, Collect):
        made["collect"] = tuple(fields[slug] for slug in step.fields)
        made["question"] = compile_template(step.question) if step.question else None
        made["asks"] = {slug: compile_template(text) for slug, text in step.ask.items()}
    if isinstance(step, Say):
        made["text"] = compile_template(step.text)
    if isinstance(step, (Talk, Collect, Wait)):
        made["branches"] = tuple(
            BookBranch(
                when=compile_template(branch.when) if branch.when else None, then=branch.then,
                check=compile_pred(branch.only_if, conditions=conditions, fields=fields, where=where),
            )
            for branch in step.branches
        )  # fmt: skip
    if isinstance(step, Wait):
        made.update(duration=duration(step.duration), otherwise=step.else_)
    if isinstance(step, WaitEvent):
        made.update(duration=duration(step.up_to), otherwise=step.else_)
    if isinstance(step, If):
        check = compile_pred(step.only_if, conditions=conditions, fields=fields, where=where, place="if")
        made.update(check=check, otherwise=step.else_)
    if isinstance(step, Do):
        made["otherwise"] = step.on_fail
    return BookStep(**made)
