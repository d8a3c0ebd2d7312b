"""Which calls ran, in order: for checks that look at what led up to a call, and for what a halted turn left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from onrecord.conversation.messages import Round
from onrecord.declared import declared
from onrecord.jsonio import Json
from onrecord.record.entry import Entry
from onrecord.record.kinds import ToolStarted, VerdictFiled
from onrecord.turn.turn import Turn

__all__ = ("Halt", "Ran", "halt_of", "ran", "ran_in")

_DID_NOT_RUN = frozenset({"asked", "denied", "invalid", "absent", "not_run"})


class Ran(Struct, frozen=True, kw_only=True):
    """A call that ran, or is about to: the tool's id and the arguments."""

    name: str
    args: Mapping[str, Json]


class Halt(Struct, frozen=True, kw_only=True):
    """Why a turn was ended by a denial: who denied, in which words, the call, and what ran before it, the call last."""

    by: str
    told: str
    call: str
    sequence: tuple[str, ...]


def ran(rounds: Iterable[Round], started: Collection[str] = ()) -> tuple[Ran, ...]:
    """The calls of these rounds that ran, in order: none that was denied, misspelt, or settled without running.

    ``started`` are ids of calls that ran whatever a rule made of their results.
    """
    return tuple(
        Ran(name=call.name, args=call.args)
        for round_ in rounds
        for call in round_.calls
        if call.status not in _DID_NOT_RUN or call.id in started
    )


def ran_in(turn: Turn) -> tuple[Ran, ...]:
    """The same for a turn so far, over its pauses."""
    return ran(turn.rounds, {entry.body.call for entry in turn.entries if isinstance(entry.body, ToolStarted)})


@declared
def halt_of(entries: Iterable[Entry]) -> Halt | None:
    """What ended a turn, from its entries (`TurnResult.entries`); None for a turn that no denial ended."""
    for entry in entries:
        body = entry.body
        if isinstance(body, VerdictFiled) and body.verdict == "deny" and body.data.get("halt") is True:
            names = body.data.get("sequence")
            sequence = tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()
            return Halt(by=body.by, told=body.why, call=body.call, sequence=sequence)
    return None
