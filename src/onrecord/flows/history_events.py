"""History as hosts keep it: Chat-shaped records, and the events of hosts that keep those instead.

A record is what `onrecord.conversation.transcript` reads and writes. An event is a mapping:

- ``{kind: "message", source: "user" | "assistant" | "system", data: {participant: {display_name}, message}}``; of an
  assistant also ``tool_calls`` (``{id, name, arguments}``);
- ``{kind: "tool", source: "agent", data: {tool_calls: [{tool_id, tool_call_id?, arguments, result: {data, meta?}}]}}``,
  where ``tool_id`` is the tool's name;
- ``{kind: "status", source: "system", data: {status}}``.

Any of them may have ``id`` and ``timestamp``. What else a record says rides in ``extra`` and comes back.
``toolCalls``, ``displayName`` and ``toolCallId`` are read too, since older hosts have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar, cast

import msgspec

from onrecord.errors import UsageError
from onrecord.jsonio import Json, read_object
from onrecord.timing import Clock, iso_ms

__all__ = (
    "assistant_message",
    "events_to_history",
    "history_to_events",
    "system_message",
    "tool_message",
    "user_message",
)

T = TypeVar("T")
Record = Mapping[str, Json]
Event = Mapping[str, Json]
Writing = dict[str, Json]

NOBODY = "User"
"""The display name of a person whose name is not known."""

ASSISTANT, SYSTEM = "Assistant", "System"
STATUS = "Status update"
"""What a status without words is called."""

CONTEXT_ROLES = frozenset({"system", "developer", "context", "event", "summary", "error"})
"""Roles whose words are no person's and no model's: events of the source ``system``."""

TOLD = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "created_at", "id"})
"""What an event says of a record under names of its own."""


# ---- records ------------------------------------------------------------------------------------------------------


def user_message(content: str | Sequence[Json], *, name: str = "") -> dict[str, Json]:
    """What a person wrote: a text, or a list of content parts."""
    return {"role": "user", "content": content, **({"name": name} if name else {})}


def assistant_message(content: str | None = None, *, tool_calls: Sequence[Record] = ()) -> dict[str, Json]:
    """What the assistant said, and the calls it asked for: ``{id, name, arguments}`` each. UsageError."""
    for call in tool_calls or ():
        if not isinstance(cast("object", call), Mapping):
            told = f"a tool call is a mapping with id, name and arguments, not a {type(call).__name__}"
            raise UsageError(told, code="history-invalid")
    calls = {"tool_calls": [dict(call) for call in tool_calls]} if tool_calls else {}
    return {"role": "assistant", "content": content, **calls}


def tool_message(tool_call_id: str, name: str, content: Json) -> dict[str, Json]:
    """What the tool ``name`` returned to the call with this id: a text, or any JSON."""
    return {"role": "tool", "tool_call_id": tool_call_id, "name": name, "content": content}


def system_message(content: str) -> dict[str, Json]:
    """What the application says, with the force of an instruction."""
    return {"role": "system", "content": content}


# ---- both ways ----------------------------------------------------------------------------------------------------


def history_to_events(history: Iterable[Record], *, clock: Clock | None = None) -> list[dict[str, Json]]:
    """Records as events, one each. `events_to_history` makes equal records of them.

    A record with ``created_at`` gives its event that ``timestamp``; without one there is none, unless ``clock`` tells
    the time. UsageError names the item that is none.
    """
    known: dict[str, Record] = {}
    return _each("history item", history, lambda _, record: _event(record, known, clock))


def events_to_history(events: Iterable[Event]) -> list[dict[str, Json]]:
    """Events as records: give them to a turn, ``agent.turn(..., history=events_to_history(events))``.

    Every call of a tool event becomes a result. One that no message before it asked for gets a message that does, so
    that a model can be shown both. UsageError names the event that is none.
    """
    waiting: list[Record] = []
    read = _each("event", events, lambda index, event: _records(index, event, waiting))
    return [record for records in read for record in records]


def _each(what: str, items: Iterable[object], convert: Callable[[int, Record], T]) -> list[T]:
    if isinstance(items, (str, Mapping)) or not isinstance(items, Iterable):
        raise UsageError(f"a list of mappings is converted, not a {type(items).__name__}", code="history-invalid")
    converted: list[T] = []
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            told = f"{what} {index}: it is a {type(item).__name__}, not a mapping"
            raise UsageError(told, code="history-invalid")
        try:
            converted.append(convert(index, item))
        except UsageError as problem:
            raise UsageError(f"{what} {index}: {problem}", code="history-invalid", hint=problem.hint) from None
    return converted


# ---- records to events ---------------------------------------------------------------------------------------------


def _event(record: Record, known: dict[str, Record], clock: Clock | None) -> Writing:
    role: object = record.get("role")
    if role == "user":
        held = _said("user", str(record.get("name") or NOBODY), _content(record.get("content")))
    elif role == "assistant":
        held = _said("assistant", ASSISTANT, _content(record.get("content")))
        if calls := [_call(call) for call in _several(record.get("tool_calls"), "tool_calls")]:
            held["data"]["tool_calls"] = calls
            known.update((call["id"], call) for call in calls)
    elif role == "tool":
        held = {"kind": "tool", "source": "agent", "data": {"tool_calls": [_returned(record, known)]}}
    elif isinstance(role, str) and role in CONTEXT_ROLES:
        held = _said("system", SYSTEM, _content(record.get("content")))
        if role != "system":  # text without the force of an instruction must not gain it on the way
            held["data"]["role"] = role
    else:
        raise UsageError("its role is none that a history has", hint="user, assistant, tool or system")
    extra = {key: value for key, value in record.items() if key not in TOLD}
    if extra and role != "tool":
        held["data"]["extra"] = extra
    if record.get("id") is not None:
        held["id"] = record["id"]
    return held | _stamp(record, clock)


def _said(source: str, name: str, message: Json) -> Writing:
    return {"kind": "message", "source": source, "data": {"participant": {"display_name": name}, "message": message}}


def _stamp(record: Record, clock: Clock | None) -> Writing:
    at = record.get("created_at")
    if at is not None:
        return {"timestamp": _instant(at)}
    return {} if clock is None else {"timestamp": iso_ms(clock())}


def _instant(value: Json) -> Json:
    """The instant as it was given, once it is known to be one."""
    try:
        msgspec.convert(value, datetime, strict=False)
    except (msgspec.ValidationError, OverflowError):
        raise UsageError("its time is no instant", hint="write ISO 8601 with an offset") from None
    return value


def _content(content: Json) -> Json:
    if content is None:
        return ""
    if isinstance(content, (str, list, tuple)):
        return content
    raise UsageError(f"its content is a {type(content).__name__}, neither text nor parts")


def _call(call: Json) -> Writing:
    """A call in its plain form, read in Chat's nested one too."""
    held = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(held, Mapping):
        raise UsageError("a tool call is a mapping of id, name and arguments")
    id, name, arguments = call.get("id"), held.get("name"), held.get("arguments")
    for what, value in (("an id", id), ("a name", name)):
        if not isinstance(value, str) or not value:
            raise UsageError(f"a tool call needs {what}")
    if isinstance(arguments, str):
        # What a model wrote may be no JSON at all; then it stays what it wrote.
        arguments = arguments if (read := read_object(arguments)) is None else read
    elif not isinstance(arguments, Mapping):
        raise UsageError("a tool call needs arguments, as a mapping")
    return {"id": id, "name": name, "arguments": arguments}


def _returned(record: Record, known: Mapping[str, Record]) -> Writing:
    id = record.get("tool_call_id")
    if not isinstance(id, str) or not id:
        raise UsageError("a tool's result needs the id of its call", hint="tool_call_id")
    asked = known.get(id)
    name = record.get("name") or (id if asked is None else asked["name"])
    if not isinstance(name, str):
        raise UsageError("the name of a tool is a text")
    result: Writing = {"data": record.get("content")}
    if meta := {key: value for key, value in record.items() if key not in TOLD}:
        result["meta"] = meta
    arguments = {} if asked is None else asked["arguments"]
    return {"tool_id": name, "tool_call_id": id, "arguments": arguments, "result": result}


# ---- events to records --------------------------------------------------------------------------------------------


def _records(index: int, event: Event, waiting: list[Record]) -> list[Writing]:
    """The records of one event. ``waiting`` are the calls asked for since anybody else spoke, without a result yet."""
    kind: object = event.get("kind")
    data = event.get("data")
    if not isinstance(data, Mapping):
        raise UsageError("its data is no mapping")
    if kind == "tool":
        records = _results(index, _several(_read(data, "tool_calls", "toolCalls"), "tool_calls"), waiting)
        # A message that was made up for a call has no time or id of its own.
        return [record if record["role"] != "tool" else record | _about(event) for record in records]
    if kind == "status":
        status = data.get("status")
        record = system_message(status if isinstance(status, str) and status.strip() else STATUS)
    elif kind == "message":
        record = _message(event.get("source"), data)
    else:
        raise UsageError("its kind is none of message, tool and status")
    if record["role"] != "assistant":
        waiting.clear()
    waiting += record.get("tool_calls", ())
    extra = data.get("extra")
    more = {key: value for key, value in extra.items() if key not in TOLD} if isinstance(extra, Mapping) else {}
    return [record | more | _about(event)]


def _about(event: Event) -> Writing:
    held: Writing = {}
    if event.get("timestamp") is not None:
        held["created_at"] = _instant(event["timestamp"])
    if event.get("id") is not None:
        held["id"] = event["id"]
    return held


def _read(data: Record, name: str, older: str) -> Json:
    return data[name] if name in data else data.get(older)


def _several(value: Json, what: str) -> Sequence[Json]:
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        return value
    raise UsageError(f"{what!r} is a {type(value).__name__}, not a list")


def _message(source: Json, data: Record) -> Writing:
    content = _content(data.get("message"))
    if source == "user":
        held = data.get("participant")
        name = _read(held, "display_name", "displayName") if isinstance(held, Mapping) else None
        return user_message(content, name=name if isinstance(name, str) and name != NOBODY else "")
    if source == "assistant":
        calls = _several(_read(data, "tool_calls", "toolCalls"), "tool_calls")
        return assistant_message(content or None, tool_calls=[_call(call) for call in calls])
    if source == "system":
        role: object = data.get("role")
        return system_message(content) | ({"role": role} if isinstance(role, str) and role in CONTEXT_ROLES else {})
    raise UsageError("its source is none of user, assistant and system")


def _results(index: int, calls: Sequence[Json], waiting: list[Record]) -> list[Writing]:
    if not calls:
        raise UsageError("a tool event has calls")
    known: list[Writing] = []
    unasked: list[Writing] = []
    results: list[Writing] = []
    for place, call in enumerate(calls):
        name, held = _result(call)
        id = _read(call, "tool_call_id", "toolCallId")
        asked = _asked(call, name, id, waiting)
        if asked is not None:
            waiting.remove(asked)
            known.append(tool_message(asked["id"], asked["name"], None) | held)
            continue
        id = id if isinstance(id, str) and id else f"event-{index}-{place}"
        arguments = call.get("arguments")
        unasked.append({"id": id, "name": name, "arguments": {} if arguments is None else arguments})
        results.append(tool_message(id, name, None) | held)
    if not unasked:
        return known
    return [*known, assistant_message(tool_calls=[_call(call) for call in unasked]), *results]


def _result(call: Json) -> tuple[str, Writing]:
    """The name of a tool, and what a record of its result says besides."""
    if not isinstance(call, Mapping):
        raise UsageError("a call of a tool event is a mapping")
    name, result = _read(call, "tool_id", "toolId"), call.get("result")
    if not isinstance(name, str) or not name:
        raise UsageError("a call of a tool event needs a tool_id")
    if not isinstance(result, Mapping):
        raise UsageError("a call of a tool event needs a result: {data}")
    meta = result.get("meta")
    return name, {"content": result.get("data"), **(_status(meta) if isinstance(meta, Mapping) else {})}


def _status(meta: Record) -> Writing:
    """What a record of a result may say of it; the rest of a tool's meta is none of a model's business."""
    return {key: meta[key] for key in ("status", "is_error") if key in meta}


def _asked(call: Record, name: str, id: Json, waiting: Sequence[Record]) -> Record | None:
    """The call that an event's result belongs to: the one with its id, else one of its tool."""
    if isinstance(id, str) and id:
        return next((held for held in reversed(waiting) if held["id"] == id), None)
    # Events that do not tell the two apart have the id of the call where the tool's name belongs.
    same = [held for held in waiting if held["id"] == name] or [held for held in waiting if held["name"] == name]
    return next((held for held in same if held["arguments"] == call.get("arguments")), same[0] if same else None)
