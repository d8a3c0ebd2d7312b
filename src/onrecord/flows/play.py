"""Play: flows during one turn. The runs as they stand now, who has the floor, and what was said so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from onrecord.conversation.content import plain_text
from onrecord.conversation.inputs import Question, Said, trigger_key
from onrecord.conversation.outgoing import Outcome, Wake
from onrecord.errors import FeatureFailed, TurnError
from onrecord.flows.entries import FLOWS, ClaimReleased, RunEnded, RunMoved, RunStarted
from onrecord.flows.flow_options import Anchor, FlowOptions
from onrecord.flows.keys import claim_key, message_key, step_key
from onrecord.flows.outcomes import OUTCOME_MESSAGES, EndReason, OutcomeCode
from onrecord.flows.predicates import Check, PredContext, holds
from onrecord.flows.repeat import blocked
from onrecord.flows.state import FlowState, Held, Run
from onrecord.jsonio import Json
from onrecord.record.kinds import DataPatched
from onrecord.turn.contained import raised
from onrecord.turn.director import Stage
from onrecord.turn.options import Silenced
from onrecord.turn.turn import Turn

if TYPE_CHECKING:
    from onrecord.flows.book import Book, BookFlow, BookStep, BookTrigger

__all__ = ("Play",)

NO_OPTIONS = FlowOptions()
TALKS = ("prompt", "collect")
HANDS_ON = ("flow", "reset")
"""Why a run ends whose place another one takes."""


class Play:
    """One turn of flows, mutable, with one owner.

    ``runs`` are the live ones in the order in which they started; changes of them are filed by `flush`, once, when
    the turn is settled or pauses. ``floor`` is the run whose turn it is, ``floor_taken`` whether it took the floor
    by itself, so that nothing is routed. ``speaker`` is the run that is about to talk; ``said`` and ``speakers`` are
    what went out and which runs said it. ``over``: speaking is over, whoever asks now waits for the next message.
    ``resumed`` are suspended runs that the message belongs to again, ``hushed`` those that could not say something,
    and ``before`` says for a run which one had started it without having done anything. ``passed`` is the verb that
    asked a person what nobody here asks any more: it is not resumed.
    """

    def __init__(self, book: Book, turn: Turn, stage: Stage) -> None:
        self.book, self.turn, self.stage, self.now = book, turn, stage, turn.now
        self.runs: dict[str, Run] = {run.id: run for run in turn.state(FLOWS).runs if run.of == book.name}
        self.silenced = turn.option(Silenced)
        self.options = turn.option(FlowOptions) or NO_OPTIONS
        self.is_message = isinstance(turn.input, Said)
        self.text = plain_text(turn.input.content) if isinstance(turn.input, Said) else ""
        self.key = trigger_key(turn.input, turn.first_now)
        self.floor = self.speaker = self.passed = ""
        self.floor_taken = self.ingesting = self.over = self.answers = self.idle = self.resumes = False
        self.asks: bool | None = None
        self.said: list[tuple[str, str | None]] = []
        self.speakers: set[str] = set()
        self.resumed: set[str] = set()
        self.hushed: set[str] = set()
        self.before: dict[str, Run] = {}
        self.delays: dict[str, int] = {}
        self.queue: list[str] = []
        self.question: Question | None = None
        self._session = turn.session.key.id
        self._dirty: dict[str, None] = {}

    # ---- reading

    @property
    def reason(self) -> str | None:
        """Why the assistant may not speak now, if it may not."""
        return None if self.silenced is None else self.silenced.reason

    @property
    def asker(self) -> Run | None:
        """The run that holds the floor."""
        return next((run for run in self.runs.values() if run.status == "asking"), None)

    def flow_of(self, run: Run) -> BookFlow | None:
        """The flow that a run executes, if the agent still has it."""
        return self.book.flows.get(run.flow_id)

    def anchor(self, flow: BookFlow) -> Anchor:
        """What a flow's runs are keyed to in this turn."""
        return anchor_of(flow, self.options, self.turn.session.key.id)

    async def holds(self, check: Check | None, run: Run | None) -> bool:
        """Whether a condition holds for a run; where there is none, it does."""
        if check is None:
            return True
        turn = self.turn
        context = PredContext(
            context=turn.context, data=turn.data, input=None if run is None else run.input, run=run,
            silenced=self.reason, now=self.now,
        )  # fmt: skip
        try:
            return await holds(check, context)
        except TurnError:
            raise
        except Exception as error:
            raise _failed("a gate" if run is None else f"a gate of {_place(run)}", error, turn.context) from error

    def never_begun(self) -> Callable[[str], bool]:
        """Tells of a flow whose runs are keyed to the session whether nothing of it was ever claimed."""
        if self.options.claims.held:
            return lambda _: False
        claimed, behind = self.turn.state(FLOWS).buckets, f":{self._session}"
        return (lambda id: id + behind not in claimed) if claimed else lambda _: True

    def blocked(self, flow: BookFlow, trigger: BookTrigger | None, nonce: str) -> OutcomeCode | None:
        """Why a claim stops a flow from beginning, here or in another session of the same customer."""
        state = self.turn.state(FLOWS)
        if not self.options.claims.held:  # most flows of a session have never begun: that is known at once
            anchor = self._session if flow.in_session else self.anchor(flow).key
            if f"{flow.id}:{anchor}" not in state.buckets:
                return None
        cooldown = None if trigger is None else trigger.cooldown
        return blocked(
            claimed_at(state, self.options, flow, self.anchor(flow).key, nonce), self.now,
            cooldown=cooldown,
        )  # fmt: skip

    # ---- changing

    def put(self, run: Run) -> Run:
        """The run as it stands now."""
        self.runs[run.id] = run
        self._dirty[run.id] = None
        return run

    def begin(self, run: Run, nonce: str) -> None:
        """A run starts, and its claim is spent."""
        self.turn.note(RunStarted(run=run, nonce=nonce, at=self.now))
        self.runs[run.id] = run
        self.lifecycle(run, "started", about={"dedupe_key": run.dedupe_key})

    def end(
        self, run: Run, reason: EndReason, code: OutcomeCode | None = None, *, status: str = "skipped",
        detail: Json = None, kind: str = "",
    ) -> None:  # fmt: skip
        """A run is over, with a line of its step when ``code`` says why it did not reach its end."""
        if code is not None:
            self.line(run, kind or self.kind_of(run), status, code, detail=detail)
        if code == "silenced":
            self.hushed.add(run.id)
        if run.waiting is not None and run.waiting.kind != "answer":
            self.stage.disarm(run.waiting.key)
        self.turn.note(RunEnded(run=run.id, flow=run.flow_id, anchor=run.anchor, reason=reason))
        self.runs.pop(run.id, None)
        self._dirty.pop(run.id, None)
        self.lifecycle(run, "ended", code=reason, about={} if run.step_id is None else {"step_id": run.step_id})
        if self.speaker == run.id:
            self.speaker = ""
        if reason not in HANDS_ON:
            self.settle_claim(run)

    def settle_claim(self, run: Run) -> None:
        """Gives back the claim of a run that is over, and of those that led to it, if silence is why nothing was done.

        A run that handed on is settled by what the next one came to.
        """
        before = self.before.pop(run.id, None)
        if run.acted:
            return
        if run.id in self.hushed:
            nonce = run.dedupe_key.removeprefix(claim_key(run.flow_id, run.anchor, ""))
            self.turn.note(ClaimReleased(flow=run.flow_id, anchor=run.anchor, nonce=nonce))
        if before is not None:
            if run.id in self.hushed:
                self.hushed.add(before.id)
            self.settle_claim(before)

    def flush(self) -> None:
        """Files the runs that changed since the last time."""
        for id in self._dirty:
            self.turn.note(RunMoved(run=self.runs[id]))
        self._dirty.clear()

    # ---- telling

    def kind_of(self, run: Run) -> str:
        """The kind of lines about a run: that of its step, or ``if`` before its first."""
        flow = self.flow_of(run)
        step = None if flow is None else flow.by_id.get(run.step_id or "")
        return "if" if step is None else line_kind(step)

    def line(
        self, run: Run | None, kind: str, status: str, code: OutcomeCode | None = None, *, detail: Json = None,
        key: str | None = None, leads: str | None = None, until: datetime | None = None, llm_calls: int = 0,
    ) -> None:  # fmt: skip
        """Files what happened to a step, or to nothing in particular; ``leads`` says where the run goes from there."""
        about: dict[str, Json] = {}
        if run is not None:
            about = {"run_id": run.id, "flow_id": run.flow_id}
            if run.step_id is not None:
                about["step_id"] = run.step_id
                if kind in TALKS and run.id in self.runs:
                    self.put(replace(self.runs[run.id], talked=run.step_id))
        told = OUTCOME_MESSAGES[code] if code else ""
        line = Outcome(
            kind=kind, status=status, code=code, message=told, detail=detail, key=key, next=leads, until=until,
            at=self.now, llm_calls=llm_calls, about=about,
        )  # fmt: skip
        self.stage.outcome(line)

    def lifecycle(self, run: Run, status: str, *, code: str | None = None, about: Mapping[str, Json]) -> None:
        """Files that a run started or ended."""
        told: dict[str, Json] = {"run_id": run.id, "flow_id": run.flow_id, "anchor": run.anchor, **about}
        self.stage.outcome(Outcome(kind="run", status=status, code=code, at=self.now, about=told))


def anchor_of(flow: BookFlow, options: FlowOptions, session: str) -> Anchor:
    """What a flow's runs are keyed to: the session, or what the host gave under the flow's name for it."""
    name = flow.declared.anchor
    return (options.anchor(name) if name != "session" else None) or Anchor(session)


def claimed_at(state: FlowState, options: FlowOptions, flow: BookFlow, anchor: str, nonce: str) -> datetime | None:
    """When a claim was spent last, in this session or another one of the customer's."""
    here = state.claimed(flow.id, anchor, nonce)
    if not options.claims.held:
        return here
    elsewhere = options.claims.at(claim_key(flow.id, anchor, nonce))
    return here if elsewhere is None else elsewhere if here is None else max(here, elsewhere)


def forget(play: Play, slugs: Iterable[str]) -> None:
    """Deletes collected fields."""
    gone = tuple(slug for slug in slugs if slug in play.turn.data)
    if gone:
        play.turn.note(DataPatched(drop=gone))


def skip(play: Play, flow: str, anchor: str, key: str, code: OutcomeCode) -> None:
    """Files that a flow was not begun."""
    about: dict[str, Json] = {"flow_id": flow, "anchor": anchor, "trigger_key": key}
    line = Outcome(kind="run", status="skipped", code=code, message=OUTCOME_MESSAGES[code], at=play.now, about=about)
    play.stage.outcome(line)


def arm(play: Play, key: str, at: datetime, replaces: str | None = None) -> None:
    """Arms a timer of this session."""
    play.stage.arm(Wake(key=key, at=at, replaces=replaces))


def line_kind(step: BookStep) -> str:
    """The kind of lines about a step: both waits are ``wait``."""
    return "wait" if step.kind == "wait_event" else step.kind


def visit_key(run: Run) -> str:
    """The key of the present visit."""
    step = run.step_id or ""
    return step_key(run.id, step, run.visits.get(step, 0))


def next_message_key(run: Run) -> str:
    """The key of the next message of the present visit."""
    return message_key(visit_key(run), run.sent + 1)


def verb_key(play: Play, key: str) -> str:
    """What a verb is called: by the key of its message or action, but for one whose question nobody asks now."""
    return f"{key}/anew" if key == play.passed else key


def spoke(play: Play, run: Run, text: str, media: str | None = None) -> Run:
    """Remembers that a run said something."""
    play.said.append((text, media))
    play.speakers.add(run.id)
    return play.put(replace(run, sent=run.sent + 1, acted=True))


def snapped(play: Play, at: datetime, *, business_hours: bool) -> datetime:
    """The instant, moved to when business is open, where that is asked for."""
    if not business_hours:
        return at
    try:
        return play.book.moved(at, play.turn.context)
    except TurnError:
        raise
    except Exception as error:
        raise _failed("business_hours", error, play.turn.context) from error


def _place(run: Run) -> str:
    """Where a gate that a run asks for stands, as errors of declarations name places."""
    return f'flow "{run.flow_id}"' + (f', step "{run.step_id}"' if run.step_id else "")


def _failed(what: str, error: Exception, context: object) -> FeatureFailed:
    """Code of the application raised where the director needs its answer: which code, and what it may lack."""
    hint = "--debug shows where, on the command line"
    if context is None:
        hint = "the turn has no context: give it one with context=, a host with given=, the command line with --given"
    return FeatureFailed("Flows", "direct", f"{what} raised {raised(error)}", hint=hint)


def held(play: Play) -> Held:
    """What must be known again when the question is answered."""
    return Held(
        question=play.question.key if play.question is not None else "", floor=play.floor, speaker=play.speaker,
        said=tuple(play.said), speakers=tuple(sorted(play.speakers)), delays=dict(play.delays), asks=play.asks,
        idle=play.idle, answers=play.answers,
    )  # fmt: skip
