"""Plain history, as hosts keep it, from and to messages.

A record is a Chat-shaped mapping (``role``, ``content``, ``tool_calls``, ``tool_call_id``) with the keys a store adds:
``id``, ``created_at``, ``completed_at``, ``notice``, ``reply_to_message_id``, ``reply_preview``, ``interrupted``,
``proactive``. Other keys are left behind. Calls are read in Chat's nested form and in the plain one
(``{id, name, arguments}``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import get_args

import msgspec
from msgspec.structs import replace

from onrecord.conversation.chat_parts import content_of, parts_from, result_from, said_from, string
from onrecord.conversation.content import CallRef, Refusal, Text, plain_text
from onrecord.conversation.messages import (
    AssistantMessage,
    Authority,
    CallStatus,
    ContextMessage,
    Message,
    Round,
    ToolCall,
    UserMessage,
)
from onrecord.conversation.render import context_text, preview
from onrecord.errors import UsageError
from onrecord.jsonio import UNREADABLE, Json, canonical, chained, dumps, misfit, read_object

__all__ = ("history_of", "merge_loaded", "messages_from")

Record = Mapping[str, Json]
DIGEST_CHARS = 8
ANSWER_ROLES = ("assistant", "tool")
ERROR_PREFIX = "User encountered error: "
AUTHORITIES: Mapping[str, Authority] = {
    "system": "system",
    "developer": "developer",
    "context": "data",
    "event": "data",
    "summary": "data",
}


def messages_from(
    records: Iterable[Record | Message], prefix: str = "h", *, at: datetime | None = None
) -> tuple[Message, ...]:
    """Plain history as messages, ids ``{prefix}{index}-{digest}`` (index of the first record, 8 hexadecimal digits).

    The digest covers the record, or all records of an answer: equal leading records give equal ids. A run of assistant
    and tool records is one answer with a round per assistant record. Our own messages pass through with their ids.
    ``at`` is stored as the time of people's messages without one, so that they render alike on every later request.
    Raises UsageError naming the record: an unknown role or part, a call without name or arguments, a result without a
    call, a file without exactly one source.
    """
    if not isinstance(records, Iterable):
        raise UsageError(f"a history is a list of messages or records, not {type(records).__name__}")
    held = [record if isinstance(record, Mapping) else _own(record) for record in records]
    messages: list[Message] = []
    index = 0
    while index < len(held):
        size = _run(held, index)
        try:
            messages.append(_message(held, index, size, prefix, at))
        except (UsageError, ValueError, TypeError, RecursionError) as problem:
            place = f"record {index}" if size == 1 else f"records {index} to {index + size - 1}"
            told = misfit(problem) if isinstance(problem, UNREADABLE) else str(problem)
            raise UsageError(f"history {place}: {told}", code="history-invalid") from None
        index += size
    return tuple(messages)


def history_of(messages: Iterable[Message]) -> list[dict[str, Json]]:
    """Messages as plain history: call ids are ``call-<round>-<index>``, arguments an object where they are one.

    A call that waits for its result has no tool record; ``status`` is named where a call did not simply return.
    An interrupted answer gives the words that were shown or heard. Library text (context messages, notes after
    results) keeps its role, or is left out where it belongs to a request.
    """
    records: list[dict[str, Json]] = []
    rounds = 0
    for message in messages:
        match message:
            case UserMessage():
                records.append(_user_record(message))
            case ContextMessage(authority=authority):
                role = "context" if authority == "data" else authority
                records.append({"role": role, "content": context_text(message)})
            case AssistantMessage():
                for held in message.rounds:
                    if held.calls or (message.interrupted is None and held.content):
                        records.extend(_round_records(held, rounds))
                    rounds += 1
                if message.interrupted is not None:
                    shown = message.text[: message.heard]  # all of it where that is None
                    records.append({"role": "assistant", "content": shown, "interrupted": message.interrupted})
    return records


def merge_loaded(stored: Sequence[Message], current: Sequence[Message]) -> tuple[Message, ...]:
    """What a store gave, followed by messages in memory that it does not have yet, in their order.

    Messages are the same when id, kind, time and text are. Of two leading system messages the stored one stays; with
    nothing stored the one in memory leads.
    """
    if not current or (len(current) == 1 and _is_system(current[0])):
        return tuple(stored)
    if not stored:
        return tuple(current)
    known = {_fingerprint(message) for message in stored}
    fresh = current[1:] if _is_system(current[0]) else current
    return (*stored, *(message for message in fresh if _fingerprint(message) not in known))


def _is_system(message: Message) -> bool:
    return isinstance(message, ContextMessage) and message.authority == "system"


def _fingerprint(message: Message) -> tuple[str, str, datetime | None, str]:
    match message:
        case UserMessage(at=at):
            return message.id, "user", at, message.text
        case AssistantMessage(started_at=at):
            return message.id, "assistant", at, message.text
        case ContextMessage(authority=authority):
            return message.id, authority, None, context_text(message)


# ---- reading ------------------------------------------------------------------------------------------------------


def _own(value: Message) -> Message:
    if isinstance(value, (UserMessage, ContextMessage, AssistantMessage)):
        return value
    raise UsageError(f"history holds mappings and messages, not {type(value).__name__}", code="history-invalid")


def _role(record: Record | Message) -> Json:
    return record.get("role") if isinstance(record, Mapping) else None


def _run(records: Sequence[Record | Message], index: int) -> int:
    """How many records from here on make one message."""
    stop = index
    while stop < len(records) and _role(records[stop]) in ANSWER_ROLES:
        stop += 1
    return max(stop - index, 1)


def _message(records: Sequence[Record | Message], index: int, size: int, prefix: str, at: datetime | None) -> Message:
    first = records[index]
    if isinstance(first, (UserMessage, ContextMessage, AssistantMessage)):
        return first
    if "role" not in first and "type" in first:
        own: Message = msgspec.convert(first, Message)
        return own
    mine = [record for record in records[index : index + size] if isinstance(record, Mapping)]
    message_id = f"{prefix}{index}-{_digest(mine)}"
    role: object = first.get("role")
    if role in ANSWER_ROLES:
        return _answer(message_id, mine)
    if role == "user":
        return _user(message_id, first, _reply(first, records, index), at)
    if role == "error":
        words = ERROR_PREFIX + plain_text(parts_from(first.get("content")))
        return ContextMessage(id=message_id, content=(Text(words),), writer="error")
    if isinstance(role, str) and role in AUTHORITIES:
        return ContextMessage(id=message_id, content=_texts(first, role), authority=AUTHORITIES[role])
    raise UsageError(f"unknown role {role!r}")


def _digest(records: Sequence[Record]) -> str:
    chain = ""
    for record in records:
        chain = chained(chain, canonical(record))
    return chain[:DIGEST_CHARS]


def _texts(record: Record, role: str) -> tuple[Text, ...]:
    parts = parts_from(record.get("content"))
    if not all(isinstance(part, Text) for part in parts):
        raise UsageError(f"the role {role!r} takes text only")
    return tuple(part for part in parts if isinstance(part, Text))


def _user(message_id: str, record: Record, reply: tuple[str | None, str], at: datetime | None) -> UserMessage:
    notice = record.get("notice")
    notice = notice.get("source") if isinstance(notice, Mapping) else notice
    return UserMessage(
        id=message_id,
        content=parts_from(record.get("content")),
        at=_instant(record.get("created_at")) or at,
        notice=None if notice is None else string(notice, "notice"),
        reply_to=reply[0],
        reply_preview=reply[1],
    )


def _reply(record: Record, records: Sequence[Record | Message], index: int) -> tuple[str | None, str]:
    """The message replied to and a preview of it; a target that is not in the history before is dropped."""
    target = record.get("reply_to_message_id")
    if target is None:
        return None, ""
    if "reply_preview" in record:
        return str(target), preview(str(record["reply_preview"]))
    for place in range(index - 1, -1, -1):
        held = records[place]
        if isinstance(held, Mapping):
            if held.get("id") == target:
                return str(target), preview(_words(held.get("content")))
        elif held.id == target:
            words = context_text(held) if isinstance(held, ContextMessage) else held.text
            return str(target), preview(words)
    return None, ""


def _words(content: Json) -> str:
    if isinstance(content, str):
        return content
    items = content if isinstance(content, (list, tuple)) else ()
    texts = (item.get("text", "") if isinstance(item, Mapping) else getattr(item, "text", item) for item in items)
    return " ".join(text for text in texts if isinstance(text, str))


def _instant(value: Json) -> datetime | None:
    return None if value is None else msgspec.convert(value, datetime, strict=False)


def _answer(message_id: str, records: Sequence[Record]) -> AssistantMessage:
    rounds: list[Round] = []
    for record in records:
        if record["role"] == "assistant":
            rounds.append(_round(f"{message_id}/r{len(rounds)}", len(rounds), record))
        else:
            _settle(rounds, record)
    spoken = [record for record in records if record["role"] == "assistant"]
    cut = next((record["interrupted"] for record in spoken if record.get("interrupted")), None)
    # What an interrupted answer showed is its last words: its earlier rounds are shown as rounds.
    shown = "\n\n".join(held.text for held in (rounds if cut is None else rounds[-1:]) if held.text)
    return AssistantMessage(
        id=message_id,
        rounds=tuple(rounds),
        shown=(Text(shown),) if shown else (),
        started_at=_instant(spoken[0].get("created_at")) if spoken else None,
        completed_at=_instant(spoken[-1].get("completed_at")) if spoken else None,
        interrupted=cut if cut is None or isinstance(cut, str) else "stopped",
        proactive=any(bool(record.get("proactive")) for record in spoken),
    )


def _round(round_id: str, number: int, record: Record) -> Round:
    calls = tuple(
        _call(f"{round_id}/c{index}", f"call-{number}-{index}", call)
        for index, call in enumerate(record.get("tool_calls") or ())
    )
    words: tuple[Text | Refusal, ...] = said_from(record.get("content"), record.get("refusal"))
    return Round(id=round_id, content=(*words, *(CallRef(call.id) for call in calls)), calls=calls)


def _call(call_id: str, default: str, record: Json) -> ToolCall:
    held = record.get("function", record) if isinstance(record, Mapping) else None
    name = held.get("name") if isinstance(held, Mapping) else None
    arguments = held.get("arguments") if isinstance(held, Mapping) else None
    if not isinstance(name, str) or not name or not isinstance(arguments, (str, Mapping)):
        raise UsageError("a tool call needs a name and arguments; an unfinished call cannot be shown again")
    raw = arguments if isinstance(arguments, str) else dumps(arguments).decode()
    wire_id = str(record.get("id") or default)
    return ToolCall(id=call_id, wire_id=wire_id, name=name, raw_args=raw, args=read_object(raw) or {})


def _settle(rounds: list[Round], record: Record) -> None:
    """The result goes to the nearest earlier round in which the call still waits for one."""
    target = record.get("tool_call_id")
    status: CallStatus = "failed" if record.get("is_error") else "returned"
    if record.get("status") in get_args(CallStatus):
        status = record["status"]
    for place in range(len(rounds) - 1, -1, -1):
        calls = rounds[place].calls
        for index, call in enumerate(calls):
            if call.wire_id == target and call.result is None:
                done = replace(call, result=result_from(record.get("content")), status=status)
                rounds[place] = replace(rounds[place], calls=(*calls[:index], done, *calls[index + 1 :]))
                return
    raise UsageError(f"the result for {target!r} has no call that waits for it")


# ---- writing ------------------------------------------------------------------------------------------------------


def _user_record(message: UserMessage) -> dict[str, Json]:
    record: dict[str, Json] = {"role": "user", "content": content_of(message.content)}
    if message.at is not None:
        record["created_at"] = message.at.isoformat()
    if message.notice is not None:
        record["notice"] = {"source": message.notice}
    if message.reply_to is not None:
        record |= {"reply_to_message_id": message.reply_to, "reply_preview": message.reply_preview}
    return record


def _round_records(held: Round, number: int) -> list[dict[str, Json]]:
    words = [part for part in held.content if isinstance(part, (Text, Refusal))]
    record: dict[str, Json] = {"role": "assistant", "content": content_of(words) if words else None}
    results: list[dict[str, Json]] = []
    for index, call in enumerate(held.calls):
        call_id = f"call-{number}-{index}"
        arguments: Json = read_object(call.raw_args) if call.raw_args else None
        if arguments is None:
            arguments = call.raw_args
        record.setdefault("tool_calls", []).append({"id": call_id, "name": call.name, "arguments": arguments})
        if call.status == "asked":
            continue
        content = dumps({"error": call.status}).decode() if call.result is None else content_of(call.result)
        result = {"role": "tool", "tool_call_id": call_id, "name": call.name, "content": content}
        results.append(result if call.status == "returned" else result | {"status": call.status})
    return [record, *results]
