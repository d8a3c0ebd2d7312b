"""Pausing: whoever asked is called again, and asking returns the recorded answer.

Inside the library a pause is a return value. What the next take needs is one `Pending`; nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Raw, Struct

from onrecord.conversation.inputs import Ask, Question, expiry_key
from onrecord.conversation.outgoing import Wake
from onrecord.jsonio import Json, canonical, digest
from onrecord.models.request import Shape
from onrecord.record.kinds import Pending, WakeArmed
from onrecord.tools.tool import Tool
from onrecord.turn.turn import Turn

__all__ = (
    "BEFORE",
    "CHECKED",
    "Asking",
    "can_ask",
    "has_not_run",
    "next_mark",
    "pause",
    "schema_mark",
    "settled_pending",
)

BEFORE, CHECKED = "before", "checked"
"""How places begin where a call waits for an answer: behind a hook, or behind its second look at the arguments."""

_encode = msgspec.json.Encoder().encode


class Asking(Struct, frozen=True, kw_only=True):
    """A question on its way up: what is asked, by whom, about which call, and the place where the answer goes on."""

    ask: Ask
    by: str
    place: str
    call: str | None = None
    tool: Tool | None = None
    audience: str = "speaker"


def has_not_run(place: str) -> bool:
    """Whether what waits at this place is a call that has not run."""
    return place.partition("/")[0] in {BEFORE, CHECKED}


def schema_mark(of: Tool | Shape[Any] | None) -> str:
    """The digest of a schema without its words for readers; empty for what has none."""
    if of is None:
        return ""
    return digest(canonical(_wordless(of.parameters if isinstance(of, Tool) else of.schema)))


def _wordless(schema: Json) -> Json:
    if isinstance(schema, Mapping):
        return {
            name: _wordless(part)
            for name, part in schema.items()
            if name not in {"description", "title"} or not isinstance(part, str)
        }
    return [_wordless(part) for part in schema] if isinstance(schema, (list, tuple)) else schema


def can_ask(turn: Turn) -> bool:
    """Whether a question can be asked: one is open per session at most, that of the turn above it included."""
    return turn.may_ask and turn.working.pending is None and turn.question is None


def pause(turn: Turn, asking: Asking, key: str, data: Mapping[str, Json]) -> Question:
    """Sets the question that ends this take. ``key`` is the verb that asks, ``data`` its patch so far."""
    ask = asking.ask
    expires = None if ask.expires_s is None else turn.now + timedelta(seconds=ask.expires_s)
    question = Question(
        key=f"{turn.id}/q{turn.asks}", text=ask.text, by=asking.by, call=asking.call, fields=ask.fields,
        detail=ask.detail, audience=ask.audience or asking.audience, on_message=ask.on_message,
        decision=ask.decision or has_not_run(asking.place), partial=ask.partial, expires=expires,
    )  # fmt: skip
    if expires is not None:
        wake = Wake(key=expiry_key(question), at=expires)
        turn.note(WakeArmed(wake=wake))
        turn.wakes.append(wake)
    turn.asks += 1
    turn.question = question
    turn.private.update(ask.private)
    turn.pending = Pending(
        turn=turn.id, row=turn.key, input=turn.input, now=turn.first_now, key=key, place=asking.place,
        question=question, data=dict(data), tool=schema_mark(asking.tool), output=schema_mark(turn.plan.shape),
    )  # fmt: skip
    return question


def next_mark(ordinals: dict[str, int], kind: str, value: object) -> str:
    """Under which it is kept that a line or timer was filed: its digest, and the how many-th of its like it is."""
    mark = f"{kind}/{digest(_encode(value))}"
    ordinals[mark] = ordinals.get(mark, -1) + 1
    return f"{mark}/{ordinals[mark]}"


def settled_pending(turn: Turn, pending: Pending) -> Pending:
    """The pause as it is recorded: with what was done, and where the next take goes on counting."""
    ordinals: dict[str, int] = {}
    turn.done.update((next_mark(ordinals, kind, value), True) for kind, value in turn.filed)
    return msgspec.structs.replace(
        pending,
        done={key: value if isinstance(value, Raw) else Raw(_encode(value)) for key, value in turn.done.items()},
        children=dict(turn.paused_children),
        n=turn.n + 1,
        take=turn.take,
        number=turn.number,
        asks=turn.asks,
        ids=turn.ids,
        outside=turn.working.outside is not None,
        stopped="" if turn.stopped is None else turn.stopped.reason,
        stopped_wraps_up=turn.stopped is not None and turn.stopped.wrap_up,
        used=dict(turn.used),
    )
