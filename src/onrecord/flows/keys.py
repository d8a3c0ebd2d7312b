"""Keys of flows: exact formats, made only of ids the host already has, so that a replay makes the same ones."""

from __future__ import annotations

from datetime import datetime

from onrecord.timing import to_ms

__all__ = (
    "IDLE",
    "SILENCE",
    "claim_key",
    "idle_key",
    "message_key",
    "retry_key",
    "run_id",
    "said_once_key",
    "silence_key",
    "silence_parts",
    "start_key",
    "step_key",
    "wake_key",
)

SILENCE = "silence:"
IDLE = "idle:"


def run_id(flow: str, trigger_key: str) -> str:
    """``{flow}#{trigger key}``."""
    return f"{flow}#{trigger_key}"


def step_key(run: str, step: str, visit: int) -> str:
    """``{run}:{step}:{visit}``: of a message, an action, an outcome line, and what a chain hands on as trigger key."""
    return f"{run}:{step}:{visit}"


def message_key(key: str, place: int) -> str:
    """The key of the n-th message of one step visit, counted from 1: the second gets ``/2``."""
    return key if place == 1 else f"{key}/{place}"


def idle_key(trigger_key: str) -> str:
    """``idle:{trigger key}``: of a message that belongs to no run."""
    return f"{IDLE}{trigger_key}"


def claim_key(flow: str, anchor: str, nonce: str) -> str:
    """``{flow}:{anchor}:{nonce}``; the nonce is the trigger key of flows that always repeat, else empty."""
    return f"{flow}:{anchor}:{nonce}"


def said_once_key(flow: str, step: str, session: str) -> str:
    """``{flow}:{step}:{session}``: the claim of a line that is said once."""
    return f"{flow}:{step}:{session}"


def wake_key(run: str, step: str, at: datetime) -> str:
    """``{run}:{step}:{ms}``: a timer wait, the give-up of an event wait, an action that runs again later."""
    return f"{run}:{step}:{to_ms(at)}"


def start_key(run: str, at: datetime) -> str:
    """``{run}:start:{ms}``: a trigger whose delay has not passed."""
    return f"{run}:start:{to_ms(at)}"


def retry_key(step: str, at: datetime) -> str:
    """``{step key}:retry:{ms}``: an answer that a model could not give."""
    return f"{step}:retry:{to_ms(at)}"


def silence_key(flow: str, session: str, since: datetime) -> str:
    """``silence:{flow}:{session}:{ms}``, where ms is when the assistant last spoke."""
    return f"{SILENCE}{flow}:{session}:{to_ms(since)}"


def silence_parts(key: str, session: str) -> tuple[str, int]:
    """Flow id and milliseconds of a silence key. Ids may hold colons, so the session's id is looked for from the end.

    Milliseconds that are none read as -1, which no silence has.
    """
    rest, _, ms = key.removeprefix(SILENCE).rpartition(":")
    flow, found, behind = f"{rest}:".rpartition(f":{session}:")
    if not found or behind:
        flow = rest.partition(":")[0]
    return flow, int(ms) if ms.isascii() and ms.isdigit() and len(ms) < 18 else -1
