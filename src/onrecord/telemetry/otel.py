"""Otel: OpenTelemetry spans of turns, model calls and tool calls, made from the entries of the record."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import below_key
from onrecord.conversation.usage import Usage
from onrecord.errors import MissingDependency
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import (
    ModelAttempted,
    ModelReplied,
    ModelRequested,
    Noted,
    OutcomeFiled,
    ToolReturned,
    ToolStarted,
    TurnClosed,
    TurnFailed,
    TurnInterrupted,
    TurnOpened,
    TurnPaused,
    TurnResumed,
    VerdictFiled,
)
from onrecord.telemetry import genai
from onrecord.telemetry.following import all_followed, follow, followed, unfollow
from onrecord.telemetry.genai import Attributes
from onrecord.telemetry.pseudonyms import Pseudonyms, session_of
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import Hooks, Left, Watch

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, TracerProvider

__all__ = ("Otel",)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_KNOWN = frozenset({"denied", "failed", "invalid"})
"""How calls end that never ran, of tools that exist; the name of any other may be words the model made up."""
_CAUSES = frozenset({"stopped", "superseded"})
"""Causes that the library names; others are the application's words."""


class Otel:
    """A feature that makes one span per take of a turn, with a child for each model call and each tool that ran.

    Names and numbers only: no text, no arguments, no keys. ``ids`` makes what stands for ids of sessions, turns and
    calls (default: `Pseudonyms`; ``str`` shows them as they are). ``tracer_provider`` is the application's own
    (default: the global one). MissingDependency without ``opentelemetry-api``.
    """

    name = "otel"

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, ids: Callable[[str], str] | None = None
    ) -> None:
        self._otel = _OpenTelemetry(tracer_provider)
        self._ids = Pseudonyms() if ids is None else ids

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(watch=(Watch(self._see, name=self.name, left=self._left),))

    def __repr__(self) -> str:
        return "Otel()"

    def _see(self, entry: Entry) -> None:
        body = entry.body
        if isinstance(body, (TurnOpened, TurnResumed)):
            self._open(entry, body)
            return
        act = _ACTS.get(type(body))
        take = followed(self, entry.turn) if act is not None else None
        if act is None or not isinstance(take, _Take):
            return
        act(take, entry, body)
        if take.over:
            unfollow(self, entry.turn)

    def _left(self, left: Left) -> None:
        take = followed(self, left.turn)
        if isinstance(take, _Take):
            take.end(left.at, "left" if left.error else "ignored", left.code or left.error)
            unfollow(self, left.turn)

    def _open(self, entry: Entry, body: TurnOpened | TurnResumed) -> None:
        agent, model = str(body.manifest.get("agent", "")), str(body.manifest.get("model", ""))
        session = session_of(entry.turn)
        about: Attributes = {
            genai.OPERATION: "invoke_agent",
            **({genai.AGENT_NAME: agent} if agent else {}),
            **genai.of_model(model),
            genai.CONVERSATION_ID: self._ids(session),
            "onrecord.turn.id": self._ids(entry.turn),
            "onrecord.take": entry.take,
            "onrecord.input.kind": body.input_kind if isinstance(body, TurnOpened) else "answered",
        }
        name = f"invoke_agent {agent}".rstrip()
        follow(self, entry.turn, _Take(self._otel, self._ids, name, about, entry.at, _call_above(session, self._otel)))


class _Take:
    """The open spans of one take."""

    __slots__ = ("calls", "ids", "otel", "outside", "over", "rounds", "span", "usage")

    def __init__(
        self, otel: _OpenTelemetry, ids: Callable[[str], str], name: str, about: Attributes, at: datetime,
        above: Span | None,
    ) -> None:  # fmt: skip
        self.otel, self.ids, self.over = otel, ids, False
        self.usage: Usage | None = None
        self.calls: dict[str, Span] = {}
        self.rounds: dict[str, Span] = {}
        self.outside = otel.current()
        self.span = otel.start(name, about, at, within=above)
        otel.enter(self.span)

    def count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def end(self, at: datetime, status: str, error: str = "") -> None:
        """Ends every span of the take that is still open. ``error`` is a code, or the class of what was raised."""
        for span in self.rounds.values():
            self.otel.end(span, at, error)
        for span in self.calls.values():
            self.otel.end(span, at)
        self.calls.clear()
        self.rounds.clear()
        self.span.set_attributes({"onrecord.turn.status": status, **genai.of_usage(self.usage)})
        self.otel.end(self.span, at, error)
        self.otel.go_back(self.outside)
        self.over = True

    def place(self) -> None:
        """What handlers and providers trace hangs below the one thing that runs, else below the turn."""
        running = [*self.calls.values(), *self.rounds.values()]
        self.otel.enter(running[0] if len(running) == 1 else self.span)


class _OpenTelemetry:
    """The library's API, imported here and nowhere else."""

    __slots__ = ("_context", "_error", "_kinds", "_trace", "_tracer")

    def __init__(self, provider: TracerProvider | None) -> None:
        try:
            from opentelemetry import context, trace
        except ImportError:
            raise MissingDependency(
                "spans need the package 'opentelemetry-api'", hint='pip install "onrecord[otel]"'
            ) from None
        self._context, self._trace = context, trace
        self._tracer = trace.get_tracer("onrecord", tracer_provider=provider)
        self._kinds = {True: trace.SpanKind.CLIENT, False: trace.SpanKind.INTERNAL}
        self._error = trace.StatusCode.ERROR

    def start(
        self, name: str, about: Attributes, at: datetime, *, within: Span | None = None, client: bool = False
    ) -> Span:
        """A span that begins at an entry, below ``within`` or whatever is current."""
        context = None if within is None else self._trace.set_span_in_context(within)
        return self._tracer.start_span(
            name, context=context, kind=self._kinds[client], attributes=about, start_time=_ns(at)
        )

    def end(self, span: Span, at: datetime, error: str = "") -> None:
        """Ends a span at an entry; with ``error`` it failed."""
        if error:
            span.set_attribute(genai.ERROR_TYPE, error)
            span.set_status(self._error)
        span.end(_ns(at))

    def current(self) -> Context:
        return self._context.get_current()

    def is_current(self, span: Span) -> bool:
        return self._trace.get_current_span() is span

    def enter(self, span: Span) -> None:
        """Makes a span the current one, until another is or `go_back`."""
        self._context.attach(self._trace.set_span_in_context(span))

    def go_back(self, context: Context) -> None:
        self._context.attach(context)


def _call_above(session: str, otel: _OpenTelemetry) -> Span | None:
    """The tool call that takes this turn, where it is that of a sub-agent; else what is current is above it."""
    above = next((one.state for one in all_followed() if isinstance(one.state, _Take)), None)
    if above is None or not otel.is_current(above.span):
        return None
    made = ((below_key(SessionKey(session_of(call)), call).id, span) for call, span in above.calls.items())
    return next((span for key, span in made if key == session), None)


def _ns(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND * 1000


# ---- what each entry does --------------------------------------------------------------------------------------------


def _requested(take: _Take, entry: Entry, body: ModelRequested) -> None:
    about = genai.of_request(body)
    name = f"chat {body.model.partition(':')[2] or body.model}"
    take.rounds[body.round] = take.otel.start(name, about, entry.at, within=take.span, client=True)
    take.place()


def _attempted(take: _Take, entry: Entry, body: ModelAttempted) -> None:
    about: Attributes = {genai.ERROR_TYPE: body.error, "onrecord.attempt": body.attempt, "onrecord.wait_s": body.wait_s}
    if body.status is not None:
        about["http.response.status_code"] = body.status
    take.count(body.usage)
    span = take.rounds.get(body.round, take.span)
    span.add_event("onrecord.model.attempted", about, _ns(entry.at))


def _replied(take: _Take, entry: Entry, body: ModelReplied) -> None:
    use = body.round.use
    take.count(None if use is None else use.usage)
    span = take.rounds.pop(body.round.id, None)
    if span is not None:
        span.set_attributes(genai.of_reply(body))
        take.otel.end(span, entry.at)
        take.place()


def _started(take: _Take, entry: Entry, body: ToolStarted) -> None:
    about: Attributes = {
        genai.OPERATION: "execute_tool",
        genai.TOOL_NAME: body.name,
        genai.TOOL_TYPE: "function",
        genai.CALL_ID: take.ids(body.call),
    }
    take.calls[body.call] = take.otel.start(f"execute_tool {body.name}", about, entry.at, within=take.span)
    take.place()


def _returned(take: _Take, entry: Entry, body: ToolReturned) -> None:
    take.count(body.spent)
    span = take.calls.pop(body.call, None)
    if span is None:
        about: Attributes = {"onrecord.tool.status": body.status}
        if body.status in _KNOWN:
            about[genai.TOOL_NAME] = body.name
        take.span.add_event("onrecord.tool.not_run", about, _ns(entry.at))
        return
    span.set_attribute("onrecord.tool.status", body.status)
    take.otel.end(span, body.ended_at or entry.at, "failed" if body.status == "failed" else "")
    take.place()


def _verdict(take: _Take, entry: Entry, body: VerdictFiled) -> None:
    about: Attributes = {"onrecord.moment": body.moment, "onrecord.rule": body.by, "onrecord.verdict": body.verdict}
    take.calls.get(body.call, take.span).add_event("onrecord.verdict", about, _ns(entry.at))


def _outcome(take: _Take, entry: Entry, body: OutcomeFiled) -> None:
    line = body.line
    about: Attributes = {"onrecord.outcome.kind": line.kind, "onrecord.outcome.status": line.status}
    if line.code is not None:
        about["onrecord.outcome.code"] = line.code
    take.span.add_event("onrecord.outcome", about, _ns(entry.at))


def _noted(take: _Take, entry: Entry, body: Noted) -> None:
    take.span.add_event("onrecord.note", {"onrecord.by": body.by}, _ns(entry.at))


def _closed(take: _Take, entry: Entry, body: TurnClosed) -> None:
    take.end(entry.at, body.status)


def _paused(take: _Take, entry: Entry, body: TurnPaused) -> None:
    take.end(entry.at, "paused")


def _interrupted(take: _Take, entry: Entry, body: TurnInterrupted) -> None:
    if body.cause in _CAUSES:
        take.span.set_attribute("onrecord.interrupted.cause", body.cause)
    take.end(entry.at, "interrupted")


def _failed(take: _Take, entry: Entry, body: TurnFailed) -> None:
    take.end(entry.at, "failed", body.code)


_ACTS: dict[type[Body], Callable[[_Take, Entry, Any], None]] = {
    ModelRequested: _requested,
    ModelAttempted: _attempted,
    ModelReplied: _replied,
    ToolStarted: _started,
    ToolReturned: _returned,
    VerdictFiled: _verdict,
    OutcomeFiled: _outcome,
    Noted: _noted,
    TurnClosed: _closed,
    TurnPaused: _paused,
    TurnInterrupted: _interrupted,
    TurnFailed: _failed,
}
