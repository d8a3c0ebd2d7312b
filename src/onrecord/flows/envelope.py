"""The envelope of a reply: its words and the fields to collect as one JSON object, asked for and read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial

import msgspec
from msgspec.structs import replace

from onrecord.conversation.messages import Round, ToolCall
from onrecord.flows.aliases import aliases
from onrecord.flows.fields import FieldSpec, is_known, to_wire_schema
from onrecord.flows.unwrap import MESSAGE, Unwrap, unescaped
from onrecord.jsonio import Json, dumps, loads, read_object
from onrecord.models.request import Reading, Shape

__all__ = ("Unwrap", "merge_fields", "speak_shape", "wire_names")

Values = Mapping[str, Json]

_CALLS = ("toolCalls", "tool_calls")
_RESERVED = frozenset((MESSAGE, *_CALLS))
_MESSAGE = FieldSpec(slug=MESSAGE)
_NOTHING = frozenset({"none", "null", "undefined", "nan"})
"""What models write for no value where JSON has null."""


@lru_cache(maxsize=1024)
def wire_names(pending: tuple[FieldSpec, ...]) -> Mapping[str, str]:
    """The key each pending field has in the envelope, by slug: its own, or ``field_1`` and so on."""
    return aliases((spec.slug for spec in pending), "field_", _RESERVED)


@lru_cache(maxsize=1024)
def speak_shape(pending: tuple[FieldSpec, ...] = ()) -> Shape[Values]:
    """What a reply must look like while these fields are pending; the same shape for the same fields.

    Its value is what the model gave for fields, by slug and untouched. A reply in plain text is a message without any.
    Tool calls that were written into the envelope are calls all the same.
    """
    wire = wire_names(pending)
    names = frozenset((*_RESERVED, *wire.values()))
    return Shape(
        name="speak",
        unwraps=True,
        schema=to_wire_schema((_MESSAGE, *(replace(spec, slug=wire[spec.slug]) for spec in pending))),
        read=partial(_read, names=names, slugs={name: slug for slug, name in wire.items()}),
        filter=partial(Unwrap, names),
    )


def merge_fields(old: Values | None, new: Values | None) -> Values:
    """The fields of several rounds: later ones win."""
    return {**(old or {}), **(new or {})}


def _read(settled: Round, *, names: frozenset[str], slugs: Mapping[str, str]) -> Reading[Values]:
    text = settled.text
    if "{" not in text:
        return Reading(text=text, value={})
    unwrap = Unwrap(names)
    words = [item for item in (*unwrap.feed(text), *unwrap.close()) if isinstance(item, str)]
    written = unwrap.values(text)
    values = {slug: _value(written[name]) for name, slug in slugs.items() if name in written}
    return Reading(
        text="".join(words),
        value={slug: value for slug, value in values.items() if is_known(value)},
        calls=tuple(call for name in _CALLS if name in written for call in _calls(_value(written[name]))),
    )


def _value(written: str) -> Json:
    """A value as the model wrote it, also where that is not quite JSON; None for what says nothing."""
    first = written[0]
    if first in "{[":
        # Through an object, whose reading has a limit of depth.
        return (read_object(f'{{"value":{written}}}') or {}).get("value")
    try:
        return loads(written)
    except msgspec.DecodeError:
        bare = unescaped(written[1:-1]) if first == '"' else written.strip()
        return None if bare.lower() in _NOTHING else bare


def _calls(listed: Json) -> Iterator[ToolCall]:
    for item in listed if isinstance(listed, list) else ():
        told = item.get("function", item) if isinstance(item, dict) else None
        if not isinstance(told, dict):
            continue
        name = next((told[key] for key in ("toolName", "tool_name", "name") if isinstance(told.get(key), str)), "")
        if name:
            yield _call(name, told.get("arguments"))


def _call(name: str, arguments: Json) -> ToolCall:
    """A call with what was written as its arguments: what is no object is refused where calls are carried out."""
    raw = arguments if isinstance(arguments, str) else "{}" if arguments is None else dumps(arguments).decode()
    return ToolCall(id="", wire_id="", name=name, raw_args=raw, args=read_object(raw) or {})
