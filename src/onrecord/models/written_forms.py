"""What several wires write alike: data URLs, arguments as an object, schemas in words and in their strict subset."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from msgspec import DecodeError

from onrecord.conversation.content import File
from onrecord.conversation.messages import ToolCall
from onrecord.jsonio import Json, dumps, loads
from onrecord.models.request import Shape

__all__ = ("arguments", "data_url", "file_name", "is_strict", "schema_text")


def data_url(data: bytes, media: str) -> str:
    """Bytes of a media type as a URL that holds them."""
    return f"data:{media};base64,{b64encode(data).decode()}"


def file_name(part: File) -> str:
    """The name of a file that comes along as bytes: OpenAI wants one, and by its ending knows how to read them."""
    return part.name or _FILE_NAMES.get(part.media or "application/pdf", "file")


_FILE_NAMES = {
    "application/pdf": "file.pdf",
    "application/json": "file.json",
    "text/csv": "file.csv",
    "text/html": "file.html",
    "text/markdown": "file.md",
    "text/plain": "file.txt",
}


def arguments(call: ToolCall) -> str:
    """What the model wrote; an empty object where that is no JSON, since some servers then refuse all that follows."""
    try:
        return call.raw_args if isinstance(loads(call.raw_args), dict) else "{}"
    except DecodeError:
        return "{}"


def schema_text(shape: Shape[Any]) -> str:
    """What a model is told that can only be asked in words to keep to a schema."""
    return (
        "Answer with one JSON object and nothing else. It must be valid against this JSON Schema:\n"
        + dumps(shape.schema).decode()
    )


def is_strict(schema: Json) -> bool:
    """Whether a JSON Schema keeps to the strict subset: every object closed and every property required."""
    if isinstance(schema, list):
        return all(is_strict(item) for item in schema)
    if not isinstance(schema, Mapping):
        return True
    kind = schema.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
        if not all(is_strict(one) for one in properties.values()):
            return False
    if _LOOSE & schema.keys():
        return False
    named = (schema.get(key, {}) for key in ("$defs", "definitions"))
    return all(is_strict(one) for group in named for one in group.values()) and all(
        is_strict(schema[key]) for key in ("items", "anyOf") if key in schema
    )


_LOOSE = frozenset(
    {"allOf", "oneOf", "not", "if", "then", "else", "patternProperties", "dependentRequired", "dependentSchemas"}
)
