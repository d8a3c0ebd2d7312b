"""Prompts: what the two calls of a flow agent are told, section by section.

What is the same in every turn stands in the system half, so that vendors can cache it; the rest is built per call from
parts that were compiled before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from onrecord.flows.envelope import wire_names
from onrecord.flows.fields import FieldSpec, field_line, is_known
from onrecord.flows.flow import Flow
from onrecord.flows.flow_lines import lines_of
from onrecord.flows.instructions import FlowInstruction
from onrecord.flows.knowledge import knowledge_section
from onrecord.flows.steps import Collect, Talk
from onrecord.flows.template import Template, compile_template, words_only
from onrecord.flows.understand import Frame, ToJudge, frame_of
from onrecord.jsonio import Json, dumps

__all__ = ("Prompts", "Situation", "Told")

Data = Mapping[str, Json]
Situation = Literal["", "speak_first", "answer_pending"]


class Told(Struct, frozen=True, kw_only=True):
    """What a speaker is told.

    ``flow`` and ``step`` are None for the idle speaker. ``guideline``, ``asks`` (the step's own wordings by slug) and
    ``fixed_after`` (the question that goes out after the reply) come rendered: what a customer told stands in them, and
    is never rendered again. ``pending`` are the fields still to get, ``wire`` their keys in the envelope (empty: those
    of `wire_names`). ``instructions`` are those that apply now. ``text`` is what the customer wrote, ``situation`` why
    there is a reply without it. ``said`` went out in this turn before: texts, each with the slug of its media.
    """

    name: str
    flow: Flow | None = None
    step: Talk | Collect | None = None
    guideline: str = ""
    pending: tuple[FieldSpec, ...] = ()
    asks: Mapping[str, str] = {}
    wire: Mapping[str, str] = {}
    fixed_after: str = ""
    instructions: tuple[FlowInstruction, ...] = ()
    text: str | None = None
    situation: Situation = ""
    said: tuple[tuple[str, str | None], ...] = ()
    data: Data = {}
    context: object = None
    input: Json = None
    offers_tools: bool = False


class Prompts:
    """The texts of one agent's flows. ``instructions`` are the agent's own; they are compiled beforehand."""

    def __init__(
        self,
        *,
        flows: Sequence[Flow],
        fields: Mapping[str, FieldSpec],
        persona: str = "",
        goal: str = "",
        knowledge: Mapping[str, Json] | str | None = None,
        instructions: Sequence[FlowInstruction] = (),
    ) -> None:
        self._places = {slug: place for place, slug in enumerate(fields)}
        self._persona, self._goal = compile_template(persona), compile_template(goal)
        self._templated = not (self._persona.is_static and self._goal.is_static)
        self._knowledge = knowledge_section(knowledge)
        self._systems: dict[str, str] = {}
        self._rules: dict[int, _Rule] = {}
        for flow in flows:
            lines_of(flow)
            steps = [step for step in flow.steps if isinstance(step, (Talk, Collect))]
            for rule in (*flow.instructions, *(one for step in steps for one in step.instructions)):
                self._rule(rule)
        for rule in instructions:
            self._rule(rule)

    def system(self, name: str) -> str:
        """What stays the same: who speaks, unless that is templated, and what is known. May be empty."""
        held = self._systems.get(name)
        if held is None:
            identity = "" if self._templated else self._identity(name, {}, None)
            held = self._systems[name] = "\n\n".join(part for part in (identity, self._knowledge) if part)
        return held

    def understand(self, asked: ToJudge, *, name: str, text: str, data: Data, context: object = None) -> list[str]:
        """The sections that put a message to the model, for a reply as `understand_shape` says."""
        frame = frame_of(asked)
        flows, mentions = frame.candidates.render(data, context), frame.mentions.render(data, context)
        sections = (
            self._identity(name, data, context) if self._templated else "",
            _TASK,
            _current(asked.floor, asked, frame, data, context) if asked.floor else "",
            self._known(data, ""),
            f"{_FLOWS}{flows}\n\n{_BANDS}" if flows else "",
            f"{_MENTIONS}{mentions}" if mentions else "",
            _questions(asked.branches),
            f"{_DETAILS}{frame.details}" if frame.details else "",
            f'{_LATEST}\n"""\n{words_only(text)}\n"""' if text.strip() else "",
            frame.output,
        )
        return [section for section in sections if section]

    def speak(self, told: Told) -> list[str]:
        """The sections that ask for a reply, in the form that `speak_shape` says."""
        pending = () if told.fixed_after else told.pending
        sections = (
            self._identity(told.name, told.data, told.context, told.input) if self._templated else "",
            _flow(told.flow, told) if told.flow else "",
            _guideline(told),
            _to_collect(told, pending) if pending else "",
            self._known(told.data, _NEVER_AGAIN) if told.flow else "",
            self._instructions(told),
            _latest(told),
            _already_sent(told.said) if told.said else "",
            _format(pending, told.wire),
            _TOOLS if told.offers_tools else "",
        )
        return [section for section in sections if section]

    def _identity(self, name: str, data: Data, context: object, input: Json = None) -> str:
        persona, goal = (each.told(data, context, input).strip() for each in (self._persona, self._goal))
        lines = (f'You are "{name}". Always refer to yourself by this name.', persona, goal and f"Your goal: {goal}")
        return "\n".join(("## Identity", *(line for line in lines if line)))

    def _known(self, data: Data, rule: str) -> str:
        places = self._places
        known = sorted((places[slug], slug) for slug, value in data.items() if slug in places and is_known(value))
        lines = [f"- {slug}: {_one_line(data[slug])}" for _, slug in known]
        return "\n".join(("## Already known", *((rule,) if rule else ()), *lines)) if lines else ""

    def _instructions(self, told: Told) -> str:
        """The lines of those that apply and do not render to nothing."""
        lines = list[str]()
        for rule in map(self._rule, told.instructions):
            if text := rule.prompt.told(told.data, told.context, told.input).strip():
                lines.append(f"{rule.before}{text}{rule.after}")
        return "\n".join(("## Instructions", *lines)) if lines else ""

    def _rule(self, instruction: FlowInstruction) -> _Rule:
        held = self._rules.get(id(instruction))
        if held is None:
            if len(self._rules) >= _MOST_RULES:
                self._rules.clear()
            held = self._rules[id(instruction)] = _compiled(instruction)
        return held


def _one_line(value: Json) -> str:
    """A value as JSON, which escapes all ends of lines but these."""
    text = dumps(value).decode()
    return text if text.isascii() else text.translate(_LINE_ENDS)


_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
_MOST_RULES = 4096


class _Rule(NamedTuple):
    """An instruction, compiled; kept with it, so that its id cannot come to mean another one."""

    of: FlowInstruction
    before: str
    prompt: Template
    after: str


def _compiled(instruction: FlowInstruction) -> _Rule:
    when = instruction.phrases
    conditions = [
        f"{word}: {' OR '.join(texts)}"
        for word, texts in (("apply only when", when.counts), ("never when", when.excludes))
        if texts
    ]
    return _Rule(
        of=instruction,
        before=f"- [{instruction.kind}] [Always] ",
        prompt=compile_template(instruction.prompt),
        after=f" ({'; '.join(conditions)})" if conditions else "",
    )


_LATEST = "## Customer's latest message"

# ---- understand ------------------------------------------------------------------------------------------------------
_TASK = """## Task
Judge the customer's latest message against the conversation so far. Only the customer's own words are evidence, never \
what the assistant said or took for granted. Answer with one JSON object as described under "Output"."""
_SCORED = "The current flow is scored like any other."
_FLOWS = """## Flows the customer may want
How clearly does the latest message call for each flow? Score every one of them from 0 to 100."""
_BANDS = """- 90-100: explicit keywords + clear intent
- 70-89: strong contextual evidence + relevant keywords
- 50-69: moderate relevance
- 30-49: weak connection or ambiguous
- 0-29: minimal/none"""
_MENTIONS = """## Things the customer may mention
Be conservative: true only where the customer's own words say it. One match is enough; what does not count overrules \
what counts."""
_DETAILS = """## Details the customer may have given
Take only what was actually said in this message, never a guess; null otherwise."""


def _current(flow: Flow, asked: ToJudge, frame: Frame, data: Data, context: object) -> str:
    step = asked.floor_step
    called = frame.flow_names.get(flow.id)
    about = lines_of(flow).about.render(data, context, asked.input)
    lines = [f'## Current flow\n"{flow.name}" ({called or flow.id}){about}']
    if step is not None:
        prompt = compile_template(step.prompt).told(data, context, asked.input).strip()
        lines.append(f"Current step: {step.id} — {prompt}" if prompt else f"Current step: {step.id}")
        lines += [f"- {field_line(spec, frame.field_names.get(spec.slug, ''))}" for spec in asked.pending]
    return "\n".join((*lines, _SCORED) if called else lines)


def _questions(branches: Sequence[tuple[str, str]]) -> str:
    if not branches:
        return ""
    lines = (f"- q{number}: {text.strip()}" for number, (_, text) in enumerate(branches, 1))
    return "\n".join(("## Questions about this message", *lines))


# ---- speak -----------------------------------------------------------------------------------------------------------
_GUIDELINE = "## Guideline for your reply (adapt to the conversation)"
_BEFORE_A_QUESTION = (
    "Answer what the customer asked, and nothing else. Ask nothing yourself. Right after your reply this question goes "
    "out word for word, so do not ask it or anything like it:"
)
_TO_COLLECT = """## Still to collect
Ask for these in this order, at the pace of the guideline. Take an answer that was already given; do not ask for it."""
_NEVER_AGAIN = "This is settled. Never ask for any of it again."
_SITUATIONS: Mapping[Situation, str] = {
    "speak_first": (
        "## Situation\nThere is no new message from the customer. You speak first: write what the guideline calls for, "
        "as the next message of this conversation."
    ),
    "answer_pending": (
        "## Situation\nThe customer's last message in this conversation has no answer yet. Answer it now."
    ),
}
_SENT = """## Already sent
These messages went out just now, in this order, before your reply. Do not repeat what they say."""
_FORMAT = """## Response format
One JSON object, with nothing around it and no code fence:
- "message": your reply to the customer, as the guideline says: in your own words and natural text, not the customer's \
message again, and never with the names of fields in it."""
_VALUE = "The value the customer gave, or null when they did not give one."
_READING = """Take only what the customer said, now or earlier in this conversation, and take every match; null where \
they did not answer. Use exactly these property names."""
_TOOLS = """## Tools
Call a tool when you need what it returns or does, before you say so. Never tell the customer a result that no tool \
returned."""


def _flow(flow: Flow, told: Told) -> str:
    about = compile_template(flow.description).told(told.data, told.context, told.input).strip()
    return f"## Flow\n{flow.name}: {about}" if about else f"## Flow\n{flow.name}"


def _guideline(told: Told) -> str:
    if told.fixed_after:
        return f'{_GUIDELINE}\n{_BEFORE_A_QUESTION}\n"{told.fixed_after}"'
    text = told.guideline.strip()
    return f"{_GUIDELINE}\n{text}" if text else _GUIDELINE


def _to_collect(told: Told, pending: Sequence[FieldSpec]) -> str:
    lines = [_TO_COLLECT]
    for spec in pending:
        lines.append(f"- {field_line(spec)}")
        own = told.asks.get(spec.slug)
        ask = own or compile_template(spec.ask).told(told.data, told.context, told.input)
        if text := ask.strip():
            lines.append(f"  How to ask: {text}")
    return "\n".join(lines)


def _latest(told: Told) -> str:
    if told.text is None:
        return _SITUATIONS.get(told.situation, "")
    text = words_only(told.text.strip())
    return f'{_LATEST}\n"{text}"' if text else ""


def _already_sent(said: Sequence[tuple[str, str | None]]) -> str:
    return "\n".join(
        (_SENT, *(f'- "{words_only(text)}"{f" [media: {media}]" if media else ""}' for text, media in said))
    )


def _format(pending: tuple[FieldSpec, ...], wire: Mapping[str, str]) -> str:
    if not pending:
        return _FORMAT
    names = wire or wire_names(pending)
    lines = (f'- "{names[spec.slug]}": {field_line(spec)}. {_VALUE}' for spec in pending)
    return "\n".join((_FORMAT, *lines, _READING))
