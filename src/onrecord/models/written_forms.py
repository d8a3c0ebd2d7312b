"""What several wires write alike: data URLs, arguments as an object, schemas in words and in their strict subset."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from onrecord.conversation.content import File
from onrecord.conversation.messages import ToolCall
from onrecord.jsonio import Json, dumps, read_object
from onrecord.models.request import Offer, Shape

__all__ = ("NAMES", "Names", "arguments", "data_url", "file_name", "is_path", "is_strict", "schema_text")

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def is_path(url: str | None) -> bool:
    """Whether this is the path of a file, which no server can fetch, where an address is meant."""
    return url is not None and _SCHEME.match(url) is None


class Names(NamedTuple):
    """Which names a wire takes for tools: letters, digits and ``more`` characters, ``most`` in all."""

    most: int = 64
    more: str = "_-"

    def refusals(self, offers: Iterable[Offer]) -> Iterable[str]:
        """The tools on offer whose names it does not take: the vendor would refuse all of the request."""
        for offer in offers:
            name = offer.spec.name
            if _fitting(self, name) != name:
                signs = ", ".join(repr(sign) for sign in self.more)
                yield f"a tool named {name[:80]!r}: names are of letters, digits, {signs}, {self.most} at most"

    def fit(self, name: str) -> bool:
        """Whether it takes this name."""
        return _fitting(self, name) == name

    def fitting(self, name: str) -> str:
        """The name, or one that it takes in its place: models call tools that there are not, and vendors that take
        their names differently refuse a conversation for one such call.
        """
        return _fitting(self, name)


NAMES = Names()
"""The names that every vendor takes."""


@lru_cache(maxsize=4096)
def _fitting(names: Names, name: str) -> str:
    more = names.more
    shown = (char if (char.isascii() and char.isalnum()) or char in more else "_" for char in name[: names.most])
    return "".join(shown) or "_"


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
    return call.raw_args if call.raw_args and read_object(call.raw_args) is not None else "{}"


def schema_text(shape: Shape[Any]) -> str:
    """What a model is told that can only be asked in words to keep to a schema."""
    return (
        "Answer with one JSON object and nothing else. It must be valid against this JSON Schema:\n"
        + dumps(shape.schema).decode()
    )


def is_strict(schema: Json) -> bool:
    """Whether a JSON Schema keeps to the strict subset: every object closed and every property required.

    One that says null, or anything else, where a schema has an object or a list does not.
    """
    if isinstance(schema, list):
        return all(is_strict(item) for item in schema)
    if not isinstance(schema, Mapping):
        return True
    kind = schema.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        if not isinstance(properties, Mapping) or not isinstance(required, (list, tuple)):
            return False
        if schema.get("additionalProperties") is not False or sorted(map(str, required)) != sorted(properties):
            return False
        if not all(is_strict(one) for one in properties.values()):
            return False
    if _LOOSE & schema.keys():
        return False
    named = [schema.get(key, {}) for key in ("$defs", "definitions")]
    if not all(isinstance(group, Mapping) for group in named):
        return False
    return all(is_strict(one) for group in named for one in group.values()) and all(
        is_strict(schema[key]) for key in ("items", "anyOf") if key in schema
    )


_LOOSE = frozenset(
    {"allOf", "oneOf", "not", "if", "then", "else", "patternProperties", "dependentRequired", "dependentSchemas"}
)
