"""Outcome lines in words: what a step came to, what started and ended, and why nobody answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from onrecord.conversation.outgoing import Outcome
from onrecord.jsonio import Json, dumps
from onrecord.turn.result import TurnResult

__all__ = ("outcome_text", "outcome_texts", "why_unanswered")

_ENDED = {
    "end": "ended",
    "flow": "ended, and handed on to another flow",
    "reset": "ended, and begins again",
    "skipped": "ended before its end",
    "failed": "failed",
    "replaced": "ended: a newer run took its place",
}
_DONE = {"prompt": "replied", "collect": "replied", "idle": "replied", "say": "said", "if": "goes on"}
_WAITS = "waits"


def outcome_texts(result: TurnResult[Any], when: Callable[[datetime], str]) -> Iterator[str]:
    """A line for each outcome of a turn, in the order in which they came; ``when`` words an instant."""
    for line in result.lines:
        yield outcome_text(line, when)


def outcome_text(line: Outcome, when: Callable[[datetime], str]) -> str:
    """``booking/size collect: every field this step collects is known → gate``."""
    flow = str(line.about.get("flow_id", ""))
    if line.kind == "run":
        return _run_text(flow, line)
    place = "/".join(filter(None, (flow, str(line.about.get("step_id", "")))))
    head = f"{place} {line.kind}: " if place else f"{line.kind}: " if line.kind in _DONE else ""
    done = _DONE.get(line.kind, "done") if line.status == "ok" else _WAITS if line.status == "waiting" else line.status
    told = None if line.code == "awaiting-answer" else line.detail  # a question's key says nothing to people
    detail = "" if told is None else f" ({_shown(told)})"
    following = "" if line.next is None else f" → {line.next}"
    return f"{head}{line.message or line.code or done}{detail}{_until(line, when)}{following}"


def _until(line: Outcome, when: Callable[[datetime], str]) -> str:
    if line.until is None:
        return ""
    if line.status == "deferred":
        return f"; again at {when(line.until)}"
    return f"{',' if line.message or line.code else ''} until {when(line.until)}"


def _run_text(flow: str, line: Outcome) -> str:
    if line.status == "ended":
        return f"{flow} {_ENDED.get(line.code or '', line.code or 'ended')}"
    if line.status == "skipped":
        return f"{flow} did not start: {line.message or line.code}"
    return f"{flow} {line.status}"


def why_unanswered(result: TurnResult[Any], when: Callable[[datetime], str]) -> str:
    """In a sentence or two why a turn had no reply, as far as its outcomes say so."""
    lines = [line for line in result.lines if line.status == result.status]
    lines = lines or [line for line in result.lines if line.message or (line.code and line.kind != "run")]
    return "; ".join(dict.fromkeys(_why(line, when) for line in lines if line.message or line.code))


def _why(line: Outcome, when: Callable[[datetime], str]) -> str:
    return f"{line.message or line.code}{_until(line, when) if line.status == 'deferred' else ''}"


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else dumps(value).decode()
