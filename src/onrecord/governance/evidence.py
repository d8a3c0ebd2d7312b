"""What a person is shown of a call that waits: the call, and where it comes from. Quoted and cut, as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from onrecord.conversation.content import Text
from onrecord.conversation.messages import ToolCall, UserMessage
from onrecord.conversation.short import clipped
from onrecord.jsonio import Json, dumps
from onrecord.tools.tool import Tool
from onrecord.turn.turn import Turn

__all__ = ("Scorer", "minimal_evidence", "standard_evidence")

LONGEST_ARG = 60
LONGEST_FRAME = 160
MOST_FRAMES = 12
_WORDS = re.compile(r"[^\W\d_]{2,}")
_STOP = frozenset(
    "a an and are as at be by for from has have i in is it its me my of on or our please that the their this to was we "
    "were what will with you your".split()
)


def minimal_evidence(tool: Tool, call: ToolCall) -> dict[str, Json]:
    """What the call will do: the tool's description and its arguments, each cut to sixty characters."""
    args = {name: clipped(value if isinstance(value, str) else dumps(value).decode(), LONGEST_ARG)
            for name, value in call.args.items()}  # fmt: skip
    return {"will_do": {"tool": tool.id, "description": tool.description, "args": args}}


Scorer: TypeAlias = Callable[[str, str], float]
"""How much a text speaks of a call: told both as texts, the call first. Nothing above 0 is no driver."""


def standard_evidence(turn: Turn, tool: Tool, call: ToolCall, scorer: Scorer | None = None) -> dict[str, Json]:
    """That, with what was read before the call, which of it shares words with the call, and what ran in this turn.

    ``drivers`` are overlaps of words, or what a ``scorer`` makes of them, most first: a hint where to look, not a
    reason. ``said`` is what the model wrote beside the call.
    """
    frames, score = _frames(turn), scorer or _shared
    about = f"{tool.id} {tool.description} {dumps(call.args).decode()}"
    scored = [(score(about, text), kind, text) for kind, text in frames]
    drivers = sorted((one for one in scored if one[0] > 0), key=lambda one: -one[0])
    said, trail = "", list[Json]()
    for round_ in turn.rounds:
        said = round_.text if any(c.id == call.id for c in round_.calls) else said
        trail += [{"tool": c.name, "ok": c.status == "returned"} for c in round_.calls if c.status != "asked"]
    return {
        **minimal_evidence(tool, call),
        "said": clipped(said, LONGEST_FRAME),
        "read": [{"from": kind, "text": clipped(text, LONGEST_FRAME)} for kind, text in frames],
        "drivers": [{"from": kind, "text": clipped(text, LONGEST_FRAME), "overlap": round(much, 3)}
                    for much, kind, text in drivers],
        "trail": {"round": len(turn.rounds), "calls": trail},
    }  # fmt: skip


def _frames(turn: Turn) -> list[tuple[str, str]]:
    """What the model had before it: sentences of the instructions, this turn's message and results; the last ones."""
    found = [("instructions", part) for part in re.split(r"(?<=[.!?])\s+", turn.instructions.strip()) if part]
    task = next((u for u in reversed(turn.conversation.units) if isinstance(u, UserMessage)), None)
    if task is not None and task.turn == turn.id:  # an earlier turn's words would outlive its erasure in the question
        found.append(("message", _text(task.content)))
    for round_ in turn.rounds:
        found += [(f"result of {c.name}", _text(c.result or ())) for c in round_.calls if c.status == "returned"]
    return [(kind, text) for kind, text in found if text][-MOST_FRAMES:]


def _text(parts: Iterable[object]) -> str:
    return " ".join(part.text for part in parts if isinstance(part, Text))


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in map(str.casefold, _WORDS.findall(text)) if word not in _STOP)


def _shared(about: str, text: str) -> float:
    one, other = _words(about), _words(text)
    return len(one & other) / len(one | other) if one and other else 0.0
