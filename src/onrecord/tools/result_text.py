"""What the model reads of a tool's result."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from onrecord.conversation.content import Part, Text
from onrecord.jsonio import Json, is_json, loads, writable
from onrecord.record.entry import Body
from onrecord.tools.tool import ToolResult

__all__ = ("as_result", "cut", "misfit", "readable", "serialise")

NO_VALUE = '{"ok":true}'
STATUSES = frozenset({"returned", "failed", "partial", "absent", "invalid"})
UNSERIALISABLE = "[result could not be serialized]"


def as_result(returned: object) -> ToolResult:
    """What a handler returned, as a `ToolResult`: nothing (None) is a result without a value, not the value null."""
    if isinstance(returned, ToolResult):
        return returned
    return ToolResult() if returned is None else ToolResult(returned)


def misfit(result: ToolResult, patch: Mapping[str, Json]) -> str:
    """What of a result, or of the data set beside it, is not what it must be; stored, it could not be read again."""
    if result.status is not None and result.status not in STATUSES:
        return "a status that there is not"
    facts: object = result.facts
    if not isinstance(facts, tuple) or not all(isinstance(fact, Body) for fact in facts):
        return "facts that are no entry bodies"
    if not (_is_object(result.data) and _is_object(patch)):
        return "data that is no JSON object"
    value = result.value
    if isinstance(value, (Text, list, tuple)):
        parts = (value,) if isinstance(value, Text) else value
        if any(isinstance(part, Text) and not isinstance(part.text, str) for part in parts):
            return "a text that is none"
    return ""


def _is_object(data: object) -> bool:
    if not data and (data is None or isinstance(data, Mapping)):
        return True
    return isinstance(data, Mapping) and all(isinstance(name, str) for name in data) and is_json(data)


def readable(content: tuple[Part, ...]) -> tuple[Part, ...]:
    """Parts whose texts can be sent and stored."""
    if all(not isinstance(part, Text) or part.text.isascii() for part in content):
        return content
    return tuple(replace(part, text=writable(part.text)) if isinstance(part, Text) else part for part in content)


def serialise(value: Json | UnsetType) -> str:
    """A result's value as text: a string as it is, a value left out as ``{"ok":true}``, anything else as compact JSON.

    Dataclasses, msgspec structs, pydantic models, enums, dates, sets and other mappings are JSON too. What JSON cannot
    hold becomes ``[result could not be serialized]``; nothing is ever raised.
    """
    if isinstance(value, str):
        return writable(str.__str__(value))
    if value is UNSET:
        return NO_VALUE
    try:
        return _encode(value).decode()
    except Exception:  # noqa: BLE001 - the model is told; the cause lies in a value that may be anything
        return _serialise_slowly(value)


def cut(text: str, max_chars: int | None) -> str:
    """The first ``max_chars`` characters, with a line that says so, or the text itself when it is short enough."""
    if max_chars is None or len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}\n[truncated: {len(text)} chars total, showing the first {max_chars}]"


def _serialise_slowly(value: Json) -> str:
    # msgspec stops at integers beyond 64 bits, which JSON itself can hold.
    import json

    try:
        return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except Exception:  # noqa: BLE001 - see `serialise`
        return UNSERIALISABLE


def _plain(value: Any) -> Json:
    if isinstance(value, str):
        return writable(str.__str__(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Mapping):
        return {_plain(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, AbstractSet)):
        return [_plain(item) for item in value]
    return loads(_encode(value))


def _known(value: Any) -> Json:
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, AbstractSet):
        return list(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


_encode = msgspec.json.Encoder(enc_hook=_known).encode
