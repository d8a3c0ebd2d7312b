"""Values for conformance suites: filled examples of any stored type, and small turns to commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Raw
from msgspec.structs import fields, replace

from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import SessionKey, session_key
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import Message, Round
from onrecord.conversation.outgoing import Outgoing
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import (
    DataPatched,
    HistoryChanged,
    ModelReplied,
    ModelRequested,
    TextSaid,
    TurnClosed,
    TurnInput,
    TurnOpened,
)
from onrecord.session.folding import land
from onrecord.session.inbox import Row, RowBody, kind_of_row
from onrecord.session.session import Session
from onrecord.session.store import Change

__all__ = ("AT", "ELSEWHERE", "changed", "entries_of", "examples", "row", "turn", "with_history")

AT = datetime(2026, 11, 29, 10, 30, 0, 123000, tzinfo=UTC)
"""When everything here happens."""

ELSEWHERE = AT.astimezone(timezone(timedelta(hours=5, minutes=45)))
"""The same instant, told elsewhere."""

_PLAIN: Mapping[object, object] = {
    str: 'Zimmer 12, "sea view" \\ é 部屋 🛏\n\0',
    int: 2**40 + 7,
    float: 0.1,
    bool: True,
    bytes: bytes(range(256)),
    datetime: ELSEWHERE,
    Any: {"total": 80, "nested": [None, True, -0.5, {"": "部屋"}]},
    Raw: Raw(b'{"spaces" : "kept" , "number":1.0}'),
}
_ONE_SOURCE = ("url", "data", "file_id")


def examples(kind: Any) -> list[Any]:
    """Values of a stored type with every field set: one for each alternative of a union, one for each media source."""
    if kind in _PLAIN:
        return [_PLAIN[kind]]
    if kind is NoneType:
        return [None]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return [inner[-1]]
    if origin in {Union, UnionType}:
        if Raw in inner:
            return [None]  # msgspec writes raw JSON in a union but does not read it back
        return [value for one in inner if one is not NoneType for value in examples(one)]
    if origin is tuple:
        return [tuple(examples(inner[0]))]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return [{"key": value, "": value} for value in examples(inner[1])[:1]]
    return _structs(kind)


def _structs(kind: type[msgspec.Struct]) -> list[msgspec.Struct]:
    given = {field.name: examples(field.type) for field in fields(kind)}
    sources = [name for name in _ONE_SOURCE if name in given and hasattr(kind, "__post_init__")]
    if sources:
        plain = {name: values[0] for name, values in given.items() if name not in sources}
        return [kind(**plain, **{source: given[source][0]}) for source in sources]
    widest = max(map(len, given.values()), default=1)
    return [kind(**{name: values[at % len(values)] for name, values in given.items()}) for at in range(widest)]


def entries_of(session: Session, bodies: Sequence[Body], *, turn: str = "", at: datetime = AT) -> tuple[Entry, ...]:
    """The bodies as the next entries of a session, all of one turn."""
    name = turn or f"{session.key.id}:said::m{session.seq}~{session.seq}"
    return tuple(
        Entry(
            seq=session.seq + n, n=n, turn=name, take=1, where="main/r0", at=at, cause=n - 1 if n else None, body=body
        )
        for n, body in enumerate(bodies)
    )


def turn(
    before: Session | SessionKey | str, text: str = "What is a room?", answer: str = "80 euros.", *, at: datetime = AT
) -> Change:
    """A plain turn: somebody says something, a model answers. A key stands for a session that is not stored yet."""
    session = before if isinstance(before, Session) else Session(key=session_key(before), digest_key="k1")
    name = f"{session.key.id}:said::m{session.seq}~{session.seq}"
    held = Round(id=f"{name}/main/r0", content=(Text(answer),))
    bodies = (
        TurnOpened(input_kind="said", row="said::m", now=AT, input_key=f"said::m{session.seq}"),
        TurnInput(input=Said(text), now=AT),
        ModelRequested(round=held.id, purpose="speak", model="scripted"),
        ModelReplied(round=held),
        TextSaid(key=f"{name}/main", text=answer, round=held.id),
        DataPatched(patch={"last": text[:20], "turns": session.seq}),
        TurnClosed(status="answered"),
    )
    return changed(session, entries_of(session, bodies, turn=name, at=at))


def changed(session: Session, entries: Sequence[Entry]) -> Change:
    """What a take of these entries makes of a session."""
    return Change.between(session if session.version else None, land(session, entries), entries)


def with_history(session: Session, messages: Sequence[Message], kept: int, **fields: Any) -> Change:
    """A change of history: an entry tells of it, and the messages stand as given, with other fields of the session."""
    entries = entries_of(session, (HistoryChanged(op="reset" if fields else "edit", by="owner"),))
    after = replace(session, conversation=Conversation.of(messages), seq=session.seq + 1, **fields)
    return Change(session=after, kept=kept, messages=tuple(messages[kept:]), entries=entries)


def row(body: RowBody | str, session: SessionKey | str = "s", **fields: Any) -> Row:
    """A row of a session: of a text somebody says it, and a message out goes into the outbox under its own key."""
    held = Said(body) if isinstance(body, str) else body
    if isinstance(held, Outgoing):
        given = {"box": "out", "key": held.key, **fields}
    else:
        key = body if isinstance(body, str) else getattr(body, "key", None) or getattr(body, "id", "")
        given = {"box": "in", "key": f"{kind_of_row(held)}::{key}", **fields}
    return Row(session=session_key(session), body=held, **given)
