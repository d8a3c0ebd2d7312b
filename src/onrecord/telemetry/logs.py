"""Logs: a structured line of the standard `logging` for what a turn does, and a formatter that writes JSON lines."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from onrecord.conversation.usage import Usage
from onrecord.jsonio import Json
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
from onrecord.telemetry.following import follow, followed, unfollow
from onrecord.telemetry.pseudonyms import Pseudonyms, session_of
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import Hooks, Left, Watch

__all__ = ("JsonLines", "Logs")

_log = logging.getLogger("onrecord.turn")
_Fields = dict[str, Json]
_Line = tuple[int, str, _Fields]

_EXISTING = frozenset({"denied", "failed", "invalid"})
"""How calls end that never ran, of tools that exist; the name of any other may be words the model made up."""


class Logs:
    """A feature that logs what turns do to ``onrecord.turn``: a constant message, and fields in ``extra``.

    No text, no arguments, no keys, no words of errors. ``ids`` makes what stands for ids of sessions and turns
    (default: `Pseudonyms`; ``str`` shows them as they are). Levels and handlers are the application's to set.
    Ends of turns, model calls and tool calls are INFO, failures and further attempts WARNING, the rest DEBUG.
    """

    name = "logs"

    def __init__(self, *, ids: Callable[[str], str] | None = None) -> None:
        self._ids = Pseudonyms() if ids is None else ids

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(watch=(Watch(self._see, name=self.name, left=self._left),))

    def __repr__(self) -> str:
        return "Logs()"

    def _see(self, entry: Entry) -> None:
        body = entry.body
        if isinstance(body, (TurnOpened, TurnResumed)):
            took = _Took(self._ids, entry, str(body.manifest.get("agent", "")))
            follow(self, entry.turn, took)
            is_new = isinstance(body, TurnOpened)
            took.write(logging.DEBUG, "turn opened" if is_new else "turn resumed", {})
            return
        act = _ACTS.get(type(body))
        found = followed(self, entry.turn) if act is not None else None
        if act is None or not isinstance(found, _Took):
            return
        line = act(found, entry, body)
        if line is not None:
            found.write(*line)
        if found.over:
            unfollow(self, entry.turn)

    def _left(self, left: Left) -> None:
        took = followed(self, left.turn)
        if isinstance(took, _Took):
            about: _Fields = {"status": "left", "error": left.error, "code": left.code} if left.error else {}
            level = logging.WARNING if left.error else logging.DEBUG
            took.write(level, "turn left" if left.error else "input ignored", {**about, **took.sum(left.at)})
            unfollow(self, left.turn)


class _Took:
    """What a take took so far: time, calls, tokens."""

    __slots__ = ("about", "began", "calls", "over", "rounds", "tools", "usage")

    def __init__(self, ids: Callable[[str], str], entry: Entry, agent: str) -> None:
        self.about: _Fields = {
            "agent": agent, "session": ids(session_of(entry.turn)), "turn": ids(entry.turn), "take": entry.take
        }  # fmt: skip
        self.began, self.over = entry.at, False
        self.calls: dict[str, datetime] = {}
        self.rounds: dict[str, tuple[datetime, str]] = {}
        self.usage: Usage | None = None
        self.tools = 0

    def write(self, level: int, event: str, fields: _Fields) -> None:
        if _log.isEnabledFor(level):
            _log.log(level, event, extra={**self.about, **fields})

    def count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def sum(self, at: datetime) -> _Fields:
        """What it all came to, at its end."""
        self.over = True
        return {"ms": _ms(self.began, at), "tools": self.tools, **_tokens(self.usage)}


class JsonLines(logging.Formatter):
    """A formatter for handlers of the application's own: one JSON object a line, with every field of ``extra``.

    ``at`` (UTC), ``level``, ``logger`` and ``event`` come first, and ``exception`` where a line has one.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in record.__dict__.items():
            if name not in _OF_ANY_RECORD:
                line.setdefault(name, value)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


_OF_ANY_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def _ms(began: datetime, ended: datetime) -> float:
    return round((ended - began).total_seconds() * 1000, 3)


def _tokens(usage: Usage | None) -> _Fields:
    if usage is None:
        return {}
    return {
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
    }  # fmt: skip


# ---- what each entry says --------------------------------------------------------------------------------------------


def _requested(took: _Took, entry: Entry, body: ModelRequested) -> None:
    took.rounds[body.round] = (entry.at, body.model)


def _attempted(took: _Took, entry: Entry, body: ModelAttempted) -> _Line:
    took.count(body.usage)
    about: _Fields = {"model": body.model, "error": body.error, "http_status": body.status, "attempt": body.attempt}
    return logging.WARNING, "model attempt failed", {**about, "wait_s": body.wait_s}


def _replied(took: _Took, entry: Entry, body: ModelReplied) -> _Line:
    began, model = took.rounds.pop(body.round.id, (entry.at, ""))
    use = body.round.use
    usage = None if use is None else use.usage
    took.count(usage)
    about: _Fields = {"model": model, "purpose": body.purpose, "finish": "" if use is None else use.finish}
    return logging.INFO, "model replied", {**about, "ms": _ms(began, entry.at), **_tokens(usage)}


def _started(took: _Took, entry: Entry, body: ToolStarted) -> None:
    took.calls[body.call] = entry.at
    took.tools += 1


def _returned(took: _Took, entry: Entry, body: ToolReturned) -> _Line:
    took.count(body.spent)
    began = took.calls.pop(body.call, None)
    about: _Fields = {"status": body.status}
    if began is not None:
        about |= {"tool": body.name, "ms": _ms(began, body.ended_at or entry.at)}
    elif body.status in _EXISTING:
        about["tool"] = body.name
    level = logging.WARNING if body.status == "failed" else logging.INFO
    return level, "tool returned" if began is not None else "tool not run", about


def _verdict(took: _Took, entry: Entry, body: VerdictFiled) -> _Line:
    about: _Fields = {"moment": body.moment, "rule": body.by, "verdict": body.verdict}
    return logging.DEBUG if body.verdict == "allow" else logging.INFO, "verdict", about


def _outcome(took: _Took, entry: Entry, body: OutcomeFiled) -> _Line:
    line = body.line
    return logging.DEBUG, "outcome", {"outcome": line.kind, "status": line.status, "code": line.code}


def _noted(took: _Took, entry: Entry, body: Noted) -> _Line:
    return logging.DEBUG, "note", {"by": body.by}


def _closed(took: _Took, entry: Entry, body: TurnClosed) -> _Line:
    return logging.INFO, "turn closed", {"status": body.status, **took.sum(entry.at)}


def _paused(took: _Took, entry: Entry, body: TurnPaused) -> _Line:
    return logging.INFO, "turn paused", {"status": "paused", **took.sum(entry.at)}


def _interrupted(took: _Took, entry: Entry, body: TurnInterrupted) -> _Line:
    return logging.INFO, "turn interrupted", {"status": "interrupted", **took.sum(entry.at)}


def _failed(took: _Took, entry: Entry, body: TurnFailed) -> _Line:
    about: _Fields = {"status": "failed", "error": body.error, "code": body.code}
    return logging.WARNING, "turn failed", {**about, **took.sum(entry.at)}


_ACTS: dict[type[Body], Callable[[_Took, Entry, Any], _Line | None]] = {
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
