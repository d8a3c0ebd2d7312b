"""Flows: the director that gives the floor step by step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec.structs import replace

from onrecord.conversation.outgoing import Wake
from onrecord.errors import ConfigurationError, UsageError
from onrecord.flows.advance import resume_suspended, suspend_others
from onrecord.flows.book import Book
from onrecord.flows.deciding import choices, decide, judge_branches, understand
from onrecord.flows.director_shape import actions_of, check_director, check_flows, conditions_of, events_of
from onrecord.flows.entries import BODIES, FLOWS, TurnHeld
from onrecord.flows.fields import Field, fields_of
from onrecord.flows.flow import Event, Flow, Idle
from onrecord.flows.flow_options import FlowOptions
from onrecord.flows.ingest import ingest
from onrecord.flows.instructions import FlowInstruction
from onrecord.flows.play import Play, held
from onrecord.flows.predicates import Condition
from onrecord.flows.prompts import Prompts
from onrecord.flows.quiet import arm_silence, pending_wakes
from onrecord.flows.speaking import speak
from onrecord.flows.state import FlowState, Held, Run
from onrecord.flows.stepping import drain
from onrecord.flows.steps import Do
from onrecord.flows.validate import Registries, check_tools, validate_flow
from onrecord.jsonio import Json
from onrecord.session.codec import slot_value
from onrecord.session.session import Session
from onrecord.tools.tool import Tool
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.director import Stage
from onrecord.turn.instruction import Instruction
from onrecord.turn.moments import Hooks, Rank
from onrecord.turn.turn import Turn

if TYPE_CHECKING:
    from onrecord.flows.book import BookFlow, BookStep

__all__ = ("Flows",)

log = logging.getLogger("onrecord.flows")


class Flows:
    """A director that runs flows: ``Agent(model, director=Flows(hotel, nudge, fields=Stay))``.

    ``fields``: what is collected, a class with annotated attributes or a mapping. ``persona``, ``goal``: who the
    assistant is and what it is for; ``knowledge``: facts it may use. ``actions``: tools that `Do` steps run and no
    model sees. ``events``: names, or names with their `Event`. ``conditions``: functions of (context, argument) for
    gates written as JSON. ``instructions``: rules for every reply. ``idle``: who answers when no flow has the floor, or
    ``"silent"``. ``business_hours(at, context)`` moves an instant to when business is open. ``lone_flow``: whether the
    only flow that could take a message starts without being scored. ``name``: whose runs these are, where several
    agents with flows share a session (``Host(agents=...)``); flow ids are unique in a session.

    Raises FlowInvalid when a flow names what there is not, or cannot run; what is only doubtful is in ``warnings``.
    """

    def __init__(
        self, *flows: Flow, fields: type | Mapping[str, Field | Mapping[str, Json]] | None = None, persona: str = "",
        goal: str = "", knowledge: Mapping[str, Json] | None = None, actions: Sequence[Tool] = (),
        events: Mapping[str, Event] | Iterable[str] = (), conditions: Mapping[str, Condition] | None = None,
        instructions: Sequence[FlowInstruction] = (), idle: Idle | Literal["silent"] = Idle(),  # noqa: B008 - a frozen value
        business_hours: Callable[[datetime, Any], datetime] | None = None,
        lone_flow: Literal["start", "score"] = "start",
        name: str = "flows",
    ) -> None:  # fmt: skip
        check_director(
            name=name, persona=persona, goal=goal, knowledge=knowledge, instructions=instructions, idle=idle,
            business_hours=business_hours, lone_flow=lone_flow,
        )  # fmt: skip
        check_flows(flows)
        self.name, self.lone_flow = name, lone_flow
        self.declared = tuple(flows)
        self.fields = fields_of(fields)
        named, happen, judged = actions_of(actions), events_of(events), conditions_of(conditions)
        self.events = happen
        self.warnings = _validated(self.declared, self.fields, named, happen, judged)
        speaker = None if idle == "silent" else idle
        self._book = Book.of(
            self.declared, name=name, fields=self.fields, conditions=judged, instructions=tuple(instructions),
            idle=speaker, actions=named, events=happen, business_hours=business_hours, scores_lone=lone_flow == "score",
            prompts=Prompts(
                flows=self.declared, fields=self.fields, persona=persona, goal=goal, knowledge=knowledge,
                instructions=tuple(instructions),
            ),
        )  # fmt: skip

    def hooks(self, spec: AgentSpec) -> Hooks:
        """What flows need from the agent: their state, their entries, and the stable half of every prompt."""
        if spec.output is not str:
            raise ConfigurationError(
                "an agent with flows speaks messages, so it has no output=",
                hint="collect what you need as fields; result.session.data holds them",
            )
        for warning in self.warnings:
            log.warning("[Agent] %s", warning)
        system = self._book.prompts.system(spec.name)
        pieces = (Instruction(system, rank=Rank.BASE, name=self.name),) if system else ()
        return Hooks(
            folds=(FLOWS,), bodies=BODIES, options=(FlowOptions,), instructions=pieces, built=self._check_tools,
            keeps_wakes=True, manifest={"flows": [flow.id for flow in self.declared]},
        )  # fmt: skip

    def _check_tools(self, tools: Mapping[str, Tool], /, *, may_be_more: bool) -> None:
        for flow in self.declared:
            check_tools(flow, None, tools, open=may_be_more)
        if self._book.idle is not None:
            check_tools(None, self._book.idle, tools, open=may_be_more)

    def state(self, session: Session) -> FlowState:
        """Live runs and claims of a session."""
        _check_session(session)
        kept = session.slots.get(FLOWS.name)
        return FlowState() if kept is None else slot_value(kept, FlowState)

    def pending_wakes(
        self, session: Session, *, now: datetime, context: object = None, options: Sequence[object] = ()
    ) -> tuple[Wake, ...]:
        """The wakes that a saved session waits for, as its turns armed them: for a queue that lost them.

        A condition that is async counts as open; it is judged again when the wake fires.
        """
        _check_session(session)
        if not isinstance(cast("object", now), datetime) or now.utcoffset() is None:
            raise UsageError("now= must be a datetime with a UTC offset", hint="such as datetime.now(UTC)")
        given = next((option for option in options if isinstance(option, FlowOptions)), FlowOptions())
        return pending_wakes(self._book, self.state(session), session, now=now, context=context, options=given)

    async def direct(self, turn: Turn, stage: Stage) -> None:
        """One turn: take the input in, judge it, decide, move the runs, speak, settle."""
        play = Play(self._book, turn, stage)
        if turn.answer is not None:
            await _go_on(play)
        else:
            await ingest(play)
            if turn.ignored is not None:
                return
            if play.is_message:
                found = await choices(play)
                await decide(play, found, *await understand(play, found))
        await _run(play)
        await speak(play)
        await _settle(play)


def _check_session(session: object) -> None:
    if not isinstance(session, Session):
        raise UsageError(
            f"a session is needed, not a {type(session).__name__}", hint="pass result.session, or what the store loaded"
        )


def _validated(
    flows: Sequence[Flow], fields: Mapping[str, Any], actions: Mapping[str, Tool], events: Mapping[str, Event],
    conditions: Mapping[str, Condition],
) -> tuple[str, ...]:  # fmt: skip
    ids = frozenset(flow.id for flow in flows)
    registries = Registries(fields=fields, actions=actions, events=events, conditions=conditions, tools=None, flows=ids)
    return tuple(warning for flow in flows for warning in validate_flow(flow, registries))


async def _go_on(play: Play) -> None:
    """A person has answered: the run that waited comes back to the same visit of its step."""
    turn, state = play.turn, play.turn.state(FLOWS)
    question = "" if turn.answer is None else turn.answer.key
    kept = state.held if state.held is not None and state.held.question == question else Held()
    turn.note(TurnHeld())
    play.resumes, play.floor, play.floor_taken = True, kept.floor, True
    play.said, play.speakers = list(kept.said), set(kept.speakers)
    play.delays, play.asks, play.idle, play.answers = dict(kept.delays), kept.asks, kept.idle, kept.answers
    play.speaker = kept.speaker
    run = next((r for r in play.runs.values() if r.waiting is not None and r.waiting.key == question), None)
    flow = None if run is None else play.flow_of(run)
    step = None if flow is None or run is None else flow.by_id.get(run.step_id or "")
    if turn.resuming is not None and not _asks_still(play, flow, step):
        play.passed = turn.resuming.key
    if run is None:
        return
    run = play.put(replace(run, status="running", waiting=None))
    if step is None or not step.talks:
        return
    suspend_others(play, run)
    play.put(replace(run, status="asking"))
    play.speaker = run.id  # it goes on where it was, if it may


def _asks_still(play: Play, flow: BookFlow | None, step: BookStep | None) -> bool:
    """Whether what asked a person is still there: the action of a `Do`, or a tool that whoever speaks may call."""
    pending = play.turn.resuming
    if pending is None or not pending.rounds or pending.question.call is None:
        return True
    held = pending.rounds[-1]
    asked = next((call.name for call in held.calls if call.id == pending.question.call), "")
    by_action = held.id.rsplit("/", 1)[-1].startswith("act")
    if step is not None and isinstance(step.declared, Do):
        return by_action and asked == step.declared.action
    speaker: Any = play.book.idle if step is None else step.declared if step.talks else None
    if by_action or speaker is None:
        return False
    allowed = flow.declared.tools if speaker.tools is None and flow is not None else speaker.tools
    return (allowed is None or asked in allowed) and (asked in play.turn.plan.tools or bool(play.turn.plan.toolsets))


async def _run(play: Play) -> None:
    """Moves every run that may move; a suspended one takes over where nobody else answers the message."""
    if play.question is None and play.asker is None:
        await _take_up(play)
    play.queue.clear()  # whoever was started while the input was taken in is among the runs
    await drain(play, list(play.runs))
    if not play.is_message or play.silenced is not None or play.resumes:
        return
    for _ in range(len(play.runs)):
        if play.speaker or play.said or play.speakers or play.asker is not None or play.question is not None:
            return
        run = await _take_up(play)
        if run is None:
            return
        await drain(play, [run.id])


async def _take_up(play: Play) -> Run | None:
    """The run that was suspended last asks again; of what the customer wrote its exits by code are judged."""
    run = resume_suspended(play)
    if run is not None and play.is_message and not play.resumes:
        await judge_branches(play, run, None)
    return run


async def _settle(play: Play) -> None:
    """Nobody speaks any more: the floor goes back, silence is armed, and what changed is filed."""
    play.over = True
    if play.asker is None:
        resume_suspended(play)
    await arm_silence(play)
    play.flush()
    if play.question is not None:
        play.turn.note(TurnHeld(held=held(play)))
