"""Redaction: how entries look to everything outside the record."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from typing import Any, Literal, cast, get_args, get_origin

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import force_setattr
from msgspec.structs import replace as with_

from onrecord.conversation.content import Part
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import Message
from onrecord.conversation.outgoing import Wake
from onrecord.declared import Declared
from onrecord.errors import ConfigurationError
from onrecord.governance.named_values import folded
from onrecord.governance.redacted_words import RedactedWords
from onrecord.governance.worded_fields import worded_fields
from onrecord.jsonio import UNREADABLE, Json, loads, writable
from onrecord.record.entry import Entry, UnknownBody
from onrecord.record.kinds import (
    DataPatched,
    HistoryChanged,
    LeftMark,
    Pending,
    Receipt,
    SpanMark,
    ToolStarted,
    TurnInterrupted,
    TurnOpened,
    TurnPaused,
    TurnResumed,
)
from onrecord.record.leaving import leaving
from onrecord.session.erasure import Kept
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import Hooks

__all__ = ("Redaction",)

STRUCTURE = frozenset(
    "id turn call round key row name kind type where wire_id digest before after model provider protocol scope status "
    "moment by verdict writer source authority purpose code error finish place audience on_message media input_kind "
    "of agent was service tool tag".split()
)
"""Fields of entries that say what is what: ids, kinds and names. They are left, so that what leaves still fits."""

OF_ITS_OWN: Mapping[type[Struct], frozenset[str]] = {
    Receipt: frozenset({"carries", "offers", "shape", "choice"}),
    DataPatched: frozenset({"drop"}),
    Kept: frozenset({"inputs", "interruptions"}),
    SpanMark: frozenset({"chain"}),
    LeftMark: frozenset({"what"}),
    Pending: frozenset({"output"}),
    TurnOpened: frozenset({"input_key", "drops"}),
    TurnResumed: frozenset({"input_key"}),
    TurnInterrupted: frozenset({"cause"}),
    Said: frozenset({"reply_to"}),
    Wake: frozenset({"replaces"}),
    SessionKey: frozenset({"tenant"}),
}
"""The same of single types: digests, ids and names, in fields that elsewhere are those of texts."""

OF_HISTORY: Mapping[str, Any] = {"import": tuple[Message, ...], "edit": tuple[Part, ...], "erase": Kept}
"""What the value of a change of history is, by its op."""

KEYED = frozenset({"done", "children", "used", "uses", "slots"})
"""Fields whose names are keys and ids, and not what somebody wrote."""

NUMBERS = frozenset({int, float})

MANIFESTED = (TurnOpened, TurnResumed)
MOST_MANIFESTS = 64

_MANIFESTS: dict[tuple[int, int], tuple[object, Mapping[str, Any], Mapping[str, Any]]] = {}
_encode = msgspec.json.encode
_PLAIN = frozenset({int, float, bool, type(None), datetime})
"""Types of values that hold no words."""


@cache
def _fixed(kind: type[Struct]) -> frozenset[str]:
    """The fields of a type that are left: what says what is what, and what is one of a few words."""
    try:
        fields = msgspec.structs.fields(kind)
    except (AttributeError, NameError, TypeError):
        # A feature's own type whose annotations name what is not there at run time: nothing more of it is left in
        # place, so that more is taken out and not less.
        return STRUCTURE
    return STRUCTURE | {field.name for field in fields if _is_choice(field.type)}


def _is_choice(kind: Any) -> bool:
    """Whether a field holds one of a few words, or may hold one."""
    return get_origin(kind) is Literal or any(get_origin(option) is Literal for option in get_args(kind))


@cache
def _looked_at(kind: type[Struct]) -> tuple[tuple[str, bool], ...]:
    """The fields of a type that may hold words, each with whether a text in it is left."""
    fixed, apart = _fixed(kind), {"manifest"} if kind in MANIFESTED else set[str]()
    apart |= OF_ITS_OWN.get(kind, frozenset())
    return tuple((name, name in fixed) for name in worded_fields(kind, _fixed) if name not in apart)


_DIGEST = re.compile(r"[0-9a-f]{24}(?=/|\Z)")


def _unguessable(body: object) -> object:
    """Without the digests in keys of effects: who knows the turn's id could try out what was redacted."""
    if isinstance(body, ToolStarted):
        return with_(body, key=_DIGEST.sub("-", body.key))
    if isinstance(body, TurnPaused) and body.pending.done:
        done = {_DIGEST.sub(f"-{place}", name): held for place, (name, held) in enumerate(body.pending.done.items())}
        return with_(body, pending=with_(body.pending, done=done))
    return body


_escape = re.compile(r"\\u([0-9a-fA-F]{4})")


def _unescaped(text: str) -> str:
    """The text with the characters that JSON wrote by their numbers."""
    return writable(_escape.sub(lambda found: chr(int(found[1], 16)), text))


class Redaction(Struct, frozen=True, kw_only=True, dict=True, metaclass=Declared):
    """What is taken out of entries on their way to watchers, logs, telemetry and exports. The record keeps all of it.

    ``patterns`` are regular expressions (or compiled ones): whatever matches in a text becomes ``word``, and so does
    what matches in numbers and names of JSON, such as an address that something is listed under. ``names`` are names of
    JSON members (``"card"``) whose values become ``word``, wherever they stand: in arguments, results, data, payloads,
    and in texts that write them as code, commands, forms, headers, YAML or XML do; a name is the same in any case, and
    however its accents are written. ``texts=False`` takes out every text of people, models and tools, and leaves
    structure, names and counts. ``media=False`` (the default) leaves pictures, sounds and files without their bytes.
    The texts that verdicts keep never leave, whatever is set here. Ids and names that code gave stay, so that entries
    fit together.

    As a feature it stands before every watcher of the agent. It can be called with an entry, for exports:
    ``codec.lines(map(redaction, entries))``. What it cannot redact is not shown. ConfigurationError for what takes
    nothing out, and for an expression that is none.
    """

    patterns: Sequence[str | re.Pattern[str]] = ()
    names: Collection[str] = ()
    texts: bool = True
    media: bool = False
    word: str = "[redacted]"

    def __post_init__(self) -> None:
        if isinstance(cast(object, self.patterns), str) or isinstance(cast(object, self.names), str):
            raise ConfigurationError("patterns= and names= of Redaction take several", hint="write patterns=[...]")
        if self.texts and self.media and not self.patterns and not self.names:
            raise ConfigurationError(
                "this Redaction takes nothing out", hint="give patterns=, names=, texts=False or media=False"
            )
        try:
            compiled = [re.compile(pattern) for pattern in self.patterns]
        except (re.error, TypeError) as error:
            raise ConfigurationError(
                f"a pattern of Redaction is no regular expression: {error}",
                hint=r"it is read by Python's re, where a character such as '(' is written '\(' to stand for itself",
            ) from None
        if any(isinstance(one.pattern, bytes) for one in compiled):
            raise ConfigurationError("a pattern of Redaction is about bytes", hint="write it without b: texts are read")
        force_setattr(self, "patterns", tuple(compiled))
        force_setattr(self, "names", frozenset(folded(name) for name in self.names))
        if any(not name.strip() for name in self.names):
            raise ConfigurationError("a name of Redaction has no letters", hint='names=["card"]')

    @property
    def name(self) -> str:
        """The feature's name."""
        return "redaction"

    def hooks(self, spec: AgentSpec) -> Hooks:
        about: dict[str, Json] = {"patterns": len(self.patterns), "names": sorted(self.names), "texts": self.texts}
        return Hooks(redact=self, manifest={"redaction": about}, alone=True)

    def __call__(self, entry: Entry) -> Entry:
        """The entry as it may leave: the same one where nothing has to be taken out."""
        entry = leaving(entry)
        held = entry.body
        body: object = self._unknown(held) if isinstance(held, UnknownBody) else self._walked(held)
        if isinstance(held, MANIFESTED) and (manifest := self._manifest(held.manifest)) is not held.manifest:
            body = with_(cast(Any, body), manifest=manifest)
        return entry if body is held else with_(entry, body=_unguessable(body))

    def text(self, text: str) -> str:
        """A text as it may leave."""
        return self._words.text(text)

    @cached_property
    def _words(self) -> RedactedWords:
        patterns, names = cast("tuple[re.Pattern[str], ...]", self.patterns), cast("frozenset[str]", self.names)
        return RedactedWords(patterns, names, self.word, texts=self.texts)

    def _unknown(self, body: UnknownBody) -> UnknownBody:
        """A body that nothing here declares: all of it is looked at, but for what kind it is."""
        told = {name: held for name, held in loads(bytes(body.raw)).items() if name != "kind"}
        new = self._mapping(told, keys=False)
        return body if new is told else with_(body, raw=Raw(_encode({"kind": body.was, **new})))

    def _manifest(self, held: Mapping[str, Any]) -> Mapping[str, Any]:
        """A manifest is the same in every turn of an agent: it is looked at once."""
        key = (id(self), id(held))
        seen = _MANIFESTS.get(key)
        if seen is None:
            if len(_MANIFESTS) >= MOST_MANIFESTS:
                _MANIFESTS.clear()
            # What the key names by id is kept with it, so that no id can come to mean something else.
            seen = _MANIFESTS[key] = (self, held, self._declared(held))
        return seen[2]

    def _declared(self, value: Any) -> Any:
        """A manifest, whose names are those of code at every depth."""
        if not isinstance(value, Mapping):
            return self._walked(value)
        new = {name: self.word if folded(name) in self.names else self._declared(held) for name, held in value.items()}
        return value if all(new[name] is held for name, held in value.items()) else new

    def _walked(self, value: Any) -> Any:
        """The value with what it holds redacted; itself when nothing changed."""
        if isinstance(value, str):
            return self._text_of(value)
        if type(value) in _PLAIN or (not value and not isinstance(value, Struct)):
            return value
        if isinstance(value, (tuple, list)):
            return self._items(value)
        if isinstance(value, Struct):
            return self._history(value) if isinstance(value, HistoryChanged) else self._struct(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, Raw):
            held = loads(bytes(value)) if bytes(value) else None
            new = self._walked(held)
            return value if new is held else Raw(_encode(new))
        return b"" if isinstance(value, (bytes, bytearray)) and not self.media else value

    def _text_of(self, text: str) -> str:
        """A text, or JSON in a text, whose members may have to go by their names, and whose words may be escaped."""
        plain = text
        if text.lstrip()[:1] in ("{", "[", '"') and ("\\" in text or self._names_any(text)):
            try:
                held = loads(text.encode())
            except UNREADABLE:  # not JSON, or JSON that was cut short: then the names still stand before their values
                plain = _unescaped(text)
            else:
                new = self._walked(held)
                # The text itself, too: a pattern may speak of a name and its value, and of two members of one name
                # only the last was read.
                return self._words.text(text if new is held else _encode(new).decode())
        left = self._words.prose(plain)
        return text if left == plain else left

    def _names_any(self, text: str) -> bool:
        looked = folded(text) if self.names else ""
        return any(name in looked for name in self.names)

    def _history(self, body: HistoryChanged) -> HistoryChanged:
        """A change of history, whose value is JSON of a type that its op says."""
        kind = OF_HISTORY.get(body.op)
        if kind is None or not bytes(body.value):  # then it names messages and calls, and says no words
            return body
        held = msgspec.json.decode(body.value, type=kind)
        new = self._walked(held)
        return body if new is held else with_(body, value=Raw(_encode(new)))

    def _struct(self, value: Struct) -> Struct:
        changed: dict[str, Any] | None = None
        for name, is_fixed in _looked_at(type(value)):
            old = getattr(value, name)
            if not old or (is_fixed and isinstance(old, str)):
                continue  # nothing has no words
            if name in KEYED and isinstance(old, Mapping):
                new: Any = self._mapping(old, keys=False)
            else:
                new = self._text_of(old) if type(old) is str else self._walked(old)
            if new is not old:
                changed = {} if changed is None else changed
                changed[name] = new
        return with_(value, **changed) if changed else value

    def _items(self, value: tuple[Any, ...] | list[Any]) -> tuple[Any, ...] | list[Any]:
        items: list[Any] | None = None
        counts = isinstance(value, list)  # those of JSON are; a tuple is a field, with the types that it declares
        for place, old in enumerate(value):
            new = self._words.number(old) if counts and type(old) in NUMBERS else self._walked(old)
            if new is not old:
                items = [*value] if items is None else items
                items[place] = new
        return value if items is None else tuple(items) if isinstance(value, tuple) else items

    def _mapping(self, value: Mapping[str, Any], *, keys: bool = True) -> Mapping[str, Any]:
        """JSON by names: what stands under a name that goes, numbers and names that a pattern matches, and the rest."""
        new: dict[str, Any] = {}
        same = True
        for name, held in value.items():
            kept: Any = self.word
            if folded(name) not in self.names:
                kept = self._words.number(held) if type(held) in NUMBERS else self._walked(held)
            left = self._words.text(name) if keys and self.texts else name
            same = same and kept is held and left == name
            new[left] = kept
        return value if same else new
