"""Hypothesis strategies for everything that is stored: any type by its annotations, and whole takes of a session."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st
from msgspec import NODEFAULT, Raw, Struct
from msgspec.structs import fields

from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.inputs import Answered, Question, Said
from onrecord.conversation.messages import AssistantMessage, Message, Round, ToolCall
from onrecord.jsonio import dumps
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import (
    CORE_KINDS,
    ContextAdded,
    DataPatched,
    HistoryChanged,
    ModelReplied,
    ModelRequested,
    Noted,
    Pending,
    TextSaid,
    ToolReturned,
    ToolStarted,
    TurnClosed,
    TurnFailed,
    TurnInput,
    TurnInterrupted,
    TurnOpened,
    TurnPaused,
    TurnResumed,
)
from onrecord.session.session import Session

__all__ = ("bodies", "json_values", "messages", "of", "sessions", "takes")

SOME = 2
"""How many items a drawn collection has at most."""

texts = st.text(max_size=8)
numbers = st.integers(-(2**63), 2**63 - 1)
offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
instants = st.builds(
    lambda at, zone: at.replace(tzinfo=UTC).astimezone(zone),
    st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2200, 1, 1)),  # noqa: DTZ001 - the zone follows
    offsets,
)
_leaves = st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | texts
json_values = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=SOME) | st.dictionaries(texts, inner, max_size=SOME), max_leaves=5
)
_PLAIN: Mapping[object, st.SearchStrategy[Any]] = {
    str: texts,
    int: numbers,
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=20),
    datetime: instants,
    Any: json_values,
    Raw: json_values.map(lambda value: Raw(dumps(value))),
    NoneType: st.none(),
}
_ONE_SOURCE = ("url", "data", "file_id")


# ---- any stored type -------------------------------------------------------------------------------------------------


@cache
def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type as its annotations describe it."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind is Conversation:
        return st.lists(of(Message), max_size=SOME).map(Conversation.of)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in {Union, UnionType}:
        # msgspec writes raw JSON in a union but does not read it back
        return st.one_of([of(one) for one in inner if one is not Raw])
    if origin is tuple:
        return st.lists(of(inner[0]), max_size=SOME).map(tuple)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(texts, of(inner[1]), max_size=SOME)
    return st.deferred(lambda: _structs(kind))


def _structs(kind: type[Struct]) -> st.SearchStrategy[Any]:
    given = {field.name: _field(field) for field in fields(kind)}
    sources = [name for name in _ONE_SOURCE if name in given and hasattr(kind, "__post_init__")]
    if not sources:
        return st.builds(kind, **given)
    plain = {name: drawn for name, drawn in given.items() if name not in sources}
    types = {field.name: get_args(field.type)[0] for field in fields(kind) if field.name in sources}
    return st.one_of([st.builds(kind, **plain, **{name: of(types[name])}) for name in sources])


def _field(field: msgspec.structs.FieldInfo) -> st.SearchStrategy[Any]:
    if field.default is not NODEFAULT:
        return st.just(field.default) | of(field.type)
    if field.default_factory is not NODEFAULT:
        return st.builds(field.default_factory) | of(field.type)
    return of(field.type)


messages: st.SearchStrategy[Message] = of(Message)
_LEFT_OUT = {"version", "generation", "seq", "slots", "conversation"}
sessions: st.SearchStrategy[Session] = st.builds(
    Session,
    generation=st.integers(0, 2**40),
    **{field.name: _field(field) for field in fields(Session) if field.name not in _LEFT_OUT},
)
"""Small states of sessions in which nothing was said yet."""
bodies: st.SearchStrategy[Body] = st.one_of([of(kind) for kind in CORE_KINDS])


# ---- takes of a session ----------------------------------------------------------------------------------------------


class _Take:
    """Collects the entries of one take of a session."""

    def __init__(self, session: Session, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.session, self.draw = session, draw
        self.turn, self.n, self.take = f"{session.key.id}:said::~{session.seq}", 0, 1
        self.now: datetime = draw(instants)
        self.entries: list[Entry] = []

    def note(self, body: Body) -> None:
        """Files one entry."""
        self.entries.append(
            Entry(
                seq=self.session.seq + len(self.entries), n=self.n, turn=self.turn, take=self.take, where="main",
                at=self.draw(instants), cause=None, body=body,
            )
        )  # fmt: skip
        self.n += 1

    def begin(self, kind: str) -> None:
        """Opens the turn; what was pending is dropped by it."""
        pending = self.session.pending
        self.note(
            TurnOpened(
                input_kind=kind, row=f"{kind}::{self.session.seq}", now=self.now, input_key=self.draw(texts),
                drops="" if pending is None else pending.turn,
            )
        )  # fmt: skip

    def rounds(self, verb: str) -> None:
        """Some rounds, the last one without calls."""
        calls = self.draw(st.lists(st.integers(0, 2), max_size=2))
        for number, count in enumerate([*calls, 0]):
            self.call(f"{self.turn}/{verb}/r{number}", count)
        self.say(f"{self.turn}/{verb}/r{len(calls)}")

    def call(self, id: str, count: int) -> None:
        """One round with this many calls, all of them settled."""
        drawn = [self.draw(of(ToolCall)) for _ in range(count)]
        calls = tuple(
            msgspec.structs.replace(call, id=f"{id}/c{n}", status="asked", result=None, notes=())
            for n, call in enumerate(drawn)
        )
        held = msgspec.structs.replace(self.draw(of(Round)), id=id, calls=calls, revised=())
        self.note(ModelRequested(round=id, purpose="speak", model="drawn"))
        self.note(ModelReplied(round=held))
        for call in calls:
            self.note(ToolStarted(call=call.id, round=id, name=call.name, args=self.draw(of(ToolCall)).args, key="k"))
        for call in calls:
            returned = self.draw(of(ToolReturned))
            self.note(msgspec.structs.replace(returned, call=call.id, round=id, name=call.name))

    def say(self, said_in: str) -> None:
        """The answer of a round."""
        self.note(TextSaid(key=f"{self.turn}/main", text=self.draw(texts), round=said_in))

    def between(self) -> None:
        """What may be filed at any time."""
        for body in self.draw(st.lists(of(DataPatched) | of(ContextAdded) | of(Noted), max_size=2)):
            self.note(body)


@st.composite
def takes(draw: Any, session: Session) -> tuple[Entry, ...]:
    """The entries of one plausible take: a turn that ends in any way, an answer to a question, a change of history."""
    take = _Take(session, draw)
    kinds: list[Callable[[_Take], None]] = [_turn, _turn]
    if session.pending is not None:
        kinds.append(_resume)
    if any(isinstance(message, AssistantMessage) for message in session.conversation.messages):
        kinds.append(_history)
    draw(st.sampled_from(kinds))(take)
    return tuple(take.entries)


def _turn(take: _Take) -> None:
    draw = take.draw
    take.begin("said")
    take.note(TurnInput(input=draw(of(Said)), now=take.now))
    take.between()
    if draw(st.booleans()):
        take.rounds("main")
    take.between()
    _end(take)


def _end(take: _Take) -> None:
    shown: tuple[Text, ...] = tuple(Text(text) for text in take.draw(st.lists(texts.filter(bool), max_size=1)))
    match take.draw(st.sampled_from(["closed", "closed", "failed", "interrupted", "paused"])):
        case "closed":
            take.note(TurnClosed(status="answered"))
        case "failed":
            take.note(TurnFailed(code="turn-failed", error="TurnError", shown=shown))
        case "interrupted":
            take.note(TurnInterrupted(id=f"i{take.session.seq}", cause="stopped", of=take.turn, shown=shown))
        case _:
            _pause(take)


def _pause(take: _Take) -> None:
    id = f"{take.turn}/ask/r0"
    call = ToolCall(id=f"{id}/c0", wire_id="w", name="pay")
    take.note(ModelRequested(round=id, purpose="speak", model="drawn"))
    take.note(ModelReplied(round=Round(id=id, calls=(call,))))
    drawn: Pending = take.draw(of(Pending))
    take.note(
        TurnPaused(
            pending=msgspec.structs.replace(
                drawn, turn=take.turn, key="ask", question=Question(key=f"{take.turn}/q0", text="May I?", by="tool"),
                rounds=(), n=take.n + 1, take=take.take, outside=False, input=take.draw(of(Said)),
            )
        )
    )  # fmt: skip


def _resume(take: _Take) -> None:
    pending = take.session.pending
    assert pending is not None
    take.turn, take.n, take.take = pending.turn, pending.n, pending.take + 1
    take.note(TurnResumed(answer=Answered(pending.question.key, approved=True), now=take.now))
    for held in pending.rounds:
        for call in held.calls:
            take.note(ToolReturned(call=call.id, round=held.id, name=call.name, status="returned"))
    take.rounds("more")
    take.note(TurnClosed(status="answered"))


def _history(take: _Take) -> None:
    answers = [m for m in take.session.conversation.messages if isinstance(m, AssistantMessage)]
    take.begin("history")
    op = take.draw(st.sampled_from(["remove", "reset"]))
    message = take.draw(st.sampled_from(answers)).id if op == "remove" else ""
    take.note(HistoryChanged(op=op, message=message))
    take.note(TurnClosed(status="silent"))
