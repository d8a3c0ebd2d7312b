"""Commands of a simulation: what a line that begins with a slash asks for."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Literal

from msgspec import Struct

from onrecord.cli.failure import said_of
from onrecord.errors import FlowInvalid, OnrecordError
from onrecord.flows.invalid import nearest
from onrecord.jsonio import Json, loads
from onrecord.timing import duration

__all__ = ("Command", "Leave", "Look", "NotUnderstood", "Pass", "Report", "command_named", "length_named")


class NotUnderstood(OnrecordError):
    """A line that asks for nothing there is; its text says why."""

    default_code = "simulation-command"


class Pass(Struct, frozen=True):
    """Let time pass; None: until the next thing is due."""

    length: timedelta | None


class Report(Struct, frozen=True):
    """An event of the application, or a flow that is started by hand, with its payload or input."""

    kind: Literal["event", "start"]
    name: str
    value: Json


class Look(Struct, frozen=True):
    """Show something, and change nothing."""

    at: Literal["data", "runs", "wakes", "question", "help"]


class Leave(Struct, frozen=True):
    """End the simulation."""


Command = Pass | Report | Look | Leave

_BARE: dict[str, Command] = {
    "/next": Pass(None), "/data": Look("data"), "/runs": Look("runs"), "/wakes": Look("wakes"), "/help": Look("help"),
    "/?": Look("help"), "/answer": Look("question"), "/later": Look("question"),
    "/quit": Leave(), "/exit": Leave(), "/q": Leave(),
}  # fmt: skip


def command_named(line: str, flows: Collection[str]) -> Command:
    """What a line asks for, where there are these flows. NotUnderstood for anything else."""
    name, _, rest = line.partition(" ")
    rest = rest.strip()
    if name == "/wait":
        return Pass(length_named(rest))
    if name in {"/event", "/start"}:
        return _report("event" if name == "/event" else "start", rest, flows)
    if name not in _BARE:
        raise NotUnderstood(f"there is no {name}; /help lists the commands")
    if rest:
        raise NotUnderstood(f"{name} takes nothing behind it")
    return _BARE[name]


def length_named(text: str) -> timedelta:
    """A length of time in one or more parts, such as ``24h`` or ``1d 12h``. NotUnderstood for what is none."""
    try:
        whole = sum(map(duration, text.split()), timedelta())
    except FlowInvalid as error:
        raise NotUnderstood(f"{error}; {error.hint}") from None
    if not whole:
        raise NotUnderstood("say how much time passes, such as /wait 30m, /wait 24h or /wait 1d 12h")
    return whole


def _report(kind: Literal["event", "start"], rest: str, flows: Collection[str]) -> Report:
    name, _, text = rest.partition(" ")
    if not name:
        raise NotUnderstood(f"/{kind} needs the name of {'an event' if kind == 'event' else 'a flow'}, then its JSON")
    if kind == "start" and name not in flows:
        raise NotUnderstood(f"there is no flow {name!r}; {nearest(name, flows)}")
    try:
        return Report(kind, name, loads(text) if text.strip() else None)
    except (ValueError, RecursionError) as error:
        raise NotUnderstood(f"what stands behind {name} is no JSON: {said_of(error)[0]}") from None
