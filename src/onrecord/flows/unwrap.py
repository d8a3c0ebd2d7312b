"""Unwrapping: the words of a reply that comes as a JSON envelope, found while it streams.

An envelope is a JSON object with one of the expected keys at its top level; its ``message`` is what people read. Each
character is looked at once, whatever the reply is made of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from onrecord.conversation.content import Mark
from onrecord.jsonio import loads

__all__ = ("MESSAGE", "Unwrap", "unescaped")

MESSAGE = "message"
"""The key of the words for people."""

PREAMBLE = 64
"""Characters before an envelope that are held back, and dropped when it follows."""

LITERAL = 64
"""Characters of a value without quotes; what is longer is no JSON."""

# ---- strings -------------------------------------------------------------------------------------------------------
_HEX = "[0-9a-fA-F]"
_HIGH = rf"\\u[dD][89abAB]{_HEX}{{2}}"
_LOW = rf"\\u[dD][c-fC-F]{_HEX}{{2}}"
_NO_LOW = rf"[^\\]|\\(?:[^u]|u(?:[^dD]|[dD](?:[^c-fC-F]|[c-fC-F](?:[^0-9a-fA-F]|{_HEX}[^0-9a-fA-F]))))"
# An escape that nothing after it can change: half a character waits until it is clear that the other half is missing.
_ESCAPE = rf"\\[^u]|{_HIGH}{_LOW}|(?!{_HIGH})\\u{_HEX}{{4}}|{_HIGH}(?={_NO_LOW})|\\u(?={_HEX}{{0,3}}[^0-9a-fA-F])"
_whole = re.compile(rf'(?:[^"\\]++|{_ESCAPE})*+')
_escape = re.compile(rf"\\[^u]|{_HIGH}{_LOW}|\\u{_HEX}{{4}}|\\u")
_skipped = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/", "'": "'"}
_LOST = "\ufffd"


def unescaped(text: str) -> str:
    """What stands between the quotes of a JSON string, read. Escapes that JSON does not know stay as they are."""
    if "\\" not in text:
        return text
    try:
        read: str = loads(f'"{text}"')
    except msgspec.DecodeError:
        return _escape.sub(_character, text)
    return read


def _character(found: re.Match[str]) -> str:
    escape = found[0]
    if len(escape) == 2:
        return _LOST if escape == "\\u" else _NAMED.get(escape[1], escape)
    code = int(escape[2:6], 16)
    if len(escape) == 12:
        return chr(0x10000 + ((code - 0xD800) << 10) + int(escape[8:], 16) - 0xDC00)
    return _LOST if 0xD800 <= code < 0xE000 else chr(code)


# ---- one object ----------------------------------------------------------------------------------------------------
_plain_key = re.compile(r'\s*+"([^"\\]*+)"\s*+:\s*+')
_blank = re.compile(r"\s*+")
_literal = re.compile(r'[^,:"{}\[\]]*+')
_bracket = re.compile(r'["{}\[\]]')


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The place after what the pattern matches; the patterns given here match nothing at all if need be."""
    found = pattern.match(text, at)
    return found.end() if found else at


class _Object:
    """Follows one object from behind its opening brace. Forgiving: values need not be JSON, commas may be missing.

    ``ours`` once a key is an expected one; ``words`` the message so far, taken away by whoever reads it; ``spans``
    where the whole values of expected keys stand, counted in a text that came in one piece; ``ended`` how it ended.
    """

    __slots__ = (
        "_depth", "_escaped", "_first", "_go", "_key", "_length", "_names", "_parts", "_quoted", "_start", "_told",
        "ended", "live", "ours", "spans", "tail", "words",
    )  # fmt: skip

    def __init__(self, names: frozenset[str]) -> None:
        self._go: Callable[[_Object, str, int], int] = _Object._before_key
        self._names = names
        self._key = ""
        self._parts: list[str] = []  # of a key that is not whole yet
        self._first = True  # until a key was read
        self._told = False  # whether a message was met
        self._start = self._depth = self._length = 0
        self._quoted = self._escaped = False
        self.ours = self.live = False
        self.tail = ""  # of the message: an escape that is not whole yet
        self.ended: Literal["", "closed", "failed"] = ""
        self.words: list[str] = []
        self.spans: dict[str, tuple[int, int]] = {}

    def feed(self, text: str, at: int) -> int:
        """Goes on at a place of the text; the place after the object, or of what cannot belong to one."""
        while at < len(text) and not self.ended:
            at = self._go(self, text, at)
        return at

    def begins_like_ours(self) -> bool:
        """Whether the first key, cut off where it is, could be an expected one."""
        key = "".join(self._parts)
        if self._go is _Object._after_key:
            return key in self._names
        return self._first and self._go is _Object._in_key and any(name.startswith(key) for name in self._names)

    def _before_key(self, text: str, at: int) -> int:
        if found := _plain_key.match(text, at):
            self._named(found[1])
            return found.end()
        at = _past(_blank, text, at)
        if at == len(text):
            return at
        if text[at] == '"':
            self._parts = []
            self._go = _Object._in_key
            return at + 1
        return self._end("closed", at + 1) if text[at] == "}" else self._end("failed", at)

    def _in_key(self, text: str, at: int) -> int:
        start, at = at, self._past_string(text, at)
        if at < 0:
            self._parts.append(text[start:])
            return len(text)
        self._parts = [unescaped("".join((*self._parts, text[start : at - 1])))]
        self._go = _Object._after_key
        return at

    def _after_key(self, text: str, at: int) -> int:
        at = _past(_blank, text, at)
        if at == len(text):
            return at
        if text[at] != ":":
            return self._end("failed", at)
        self._named(self._parts[0])
        return at + 1

    def _named(self, key: str) -> None:
        self._key, self._first = key, False
        self.ours = self.ours or key in self._names
        self._go = _Object._before_value

    def _before_value(self, text: str, at: int) -> int:
        at = _past(_blank, text, at)
        if at == len(text):
            return at
        first, self._start = text[at], at
        if first in ",}" and self.ours:
            self._go = _Object._after_value  # nothing stands where a value should
            return at
        if first in ",:}]":
            return self._end("failed", at)
        if first == '"' and self._key == MESSAGE and not self._told:
            self._told = self.live = True
            self._go = _Object._in_message
            return at + 1
        if first in '"{[':
            self._quoted = first == '"'
            self._depth = 0 if self._quoted else 1
            self._go = _Object._in_nested
            return at + 1
        self._length, self._go = 0, _Object._in_literal
        return at

    def _in_message(self, text: str, at: int) -> int:
        shift = len(self.tail)
        held, start = (self.tail + text[at:], 0) if shift else (text, at)
        stop = _past(_whole, held, start)
        if stop > start:
            self.words.append(unescaped(held[start:stop]))
        if stop < len(held) and held[stop] == '"':
            self.tail, self.live = "", False
            return self._valued(stop + 1 + at - shift if shift else stop + 1)
        self.tail = held[stop:]
        return len(text)

    def _in_nested(self, text: str, at: int) -> int:
        """In a string at no depth, or among brackets; strings in these hide theirs."""
        while True:
            if self._quoted:
                at = self._past_string(text, at)
                if at < 0:
                    return len(text)
                self._quoted = False
            if not self._depth:
                return self._valued(at)
            found = _bracket.search(text, at)
            if found is None:
                return len(text)
            at, mark = found.end(), found[0]
            if mark == '"':
                self._quoted = True
            else:
                self._depth += 1 if mark in "{[" else -1

    def _in_literal(self, text: str, at: int) -> int:
        start, at = at, _past(_literal, text, at)
        if self._length + at - start > LITERAL:
            return self._end("failed", start + LITERAL - self._length)
        self._length += at - start
        if at == len(text):
            return at
        return self._valued(at) if text[at] in ",}" else self._end("failed", at)

    def _past_string(self, text: str, at: int) -> int:
        """The place after the quote that ends a string, or -1 when that is still to come."""
        if self._escaped:
            at, self._escaped = at + 1, False
        at = _past(_skipped, text, at)
        if at < len(text) and text[at] == '"':
            return at + 1
        self._escaped = at < len(text)
        return -1

    def _valued(self, at: int) -> int:
        """A value ended here; what follows is a comma or the end."""
        if self._key in self._names:
            self.spans[self._key] = (self._start, at)
        self._go = _Object._after_value
        return at

    def _after_value(self, text: str, at: int) -> int:
        at = _past(_blank, text, at)
        if at == len(text):
            return at
        if text[at] == "}":
            return self._end("closed", at + 1)
        if text[at] == "," or (text[at] == '"' and self.ours):
            self._go = _Object._before_key
            return at + (text[at] == ",")
        return self._end("failed", at)

    def _end(self, how: Literal["closed", "failed"], at: int) -> int:
        self.ended = how
        return at


# ---- the filter ----------------------------------------------------------------------------------------------------
_FENCE_LENGTH = 8 + 20 + 40
_FENCE = r"`{3,8}+[\w+.-]{0,20}+\s{0,40}+"
# A brace that may open an object, with the fence around it.
_opening = re.compile(rf'(?:{_FENCE})?+\{{(?=\s*+(?:["}}]|\Z))')
_may_be_fence = re.compile(r"(?:`{1,2}|`{3,8}[\w+.-]{0,20}\s{0,40})\Z")
_closing = re.compile(r"[\s`]*+")


class Unwrap:
    """A `TextFilter` that lets the message of an envelope through, and plain text as it is.

    - Of an envelope nothing else gets through: no brace, no quote, no field name. Fields before the message, nested
      and later ``message`` keys, a code fence around it and everything after it are left out. What is cut off keeps
      the words that were whole.
    - Words before an envelope are held back, and dropped if they are up to 64 characters; longer ones were streamed,
      and stay.
    - A reply that is one JSON object and nothing else never gets through, whatever its keys; objects without an
      expected key among other words do.

    ``names`` are the expected keys. Lives for one reply, and takes time linear in its length.
    """

    __slots__ = (
        "_count", "_flowing", "_go", "_held", "_names", "_object", "_out", "_passing", "_raw", "_tail", "over",
    )  # fmt: skip

    def __init__(self, names: frozenset[str] = frozenset((MESSAGE,))) -> None:
        self._names = names
        self._go: Callable[[Unwrap, str, int], int] = Unwrap._in_prose
        self._out: list[str] = []
        self._held: list[str] = []  # words before an object, not let through yet
        self._count = 0  # of them, without blanks at the start
        self._flowing = False  # whether words are let through as they come
        self._tail = ""  # of the words: what may open a fence
        self._raw: list[str] = []  # an object that is no envelope so far, with what opened a fence before it
        self._object: _Object | None = None
        self._passing = ""  # the two characters without which a piece gets through as it is, if there are such
        self.over = False

    def feed(self, item: str | Mark, /) -> Sequence[str | Mark]:
        """What this piece of the reply lets through."""
        if not isinstance(item, str):
            return (item,)
        passing = self._passing
        if passing and passing[0] not in item and passing[1] not in item:
            return (item,)
        at = 0
        while at < len(item) and not self.over:
            at = self._go(self, item, at)
        return self._taken()

    def close(self) -> Sequence[str | Mark]:
        """The rest, now that nothing follows."""
        read, self.over = self._object, True
        if read is None:
            self._add(self._tail)
        elif read.ours or not self._count:
            self._held = []
        elif not read.begins_like_ours():
            self._give_up()
        self._out += self._held
        return self._taken()

    def values(self, text: str) -> Mapping[str, str]:
        """The whole values of an envelope's expected keys as they are written, after `text` was fed in one piece."""
        read = self._object
        return {name: text[start:stop] for name, (start, stop) in read.spans.items()} if read and read.ours else {}

    def _taken(self) -> Sequence[str]:
        taken, self._out = self._out, []
        return taken

    def _add(self, words: str) -> None:
        """Words that belong to no envelope."""
        if not words:
            return
        if self._flowing:
            self._out.append(words)
            return
        self._held.append(words)
        self._count += len(words if self._count else words.lstrip())
        if self._count > PREAMBLE:
            self._flowing = True
            self._out += self._held
            self._held = []

    def _in_prose(self, text: str, at: int) -> int:
        shift, self._passing = len(self._tail), ""
        held, start = (self._tail + text[at:], 0) if shift else (text, at)
        self._tail = ""
        if found := _opening.search(held, start):
            self._add(held[start : found.start()])
            self._object, self._raw = _Object(self._names), [found[0]]
            self._go = Unwrap._in_object
            return found.end() + at - shift if shift else found.end()
        cut = _may_be_fence.search(held, max(start, len(held) - _FENCE_LENGTH))
        stop = cut.start() if cut else len(held)
        self._add(held[start:stop])
        self._tail = held[stop:]
        self._passing = "{`" if self._flowing and not self._tail else ""
        return len(text)

    def _in_object(self, text: str, at: int) -> int:
        read = self._object
        if read is None:
            return len(text)
        stop = read.feed(text, at)
        if read.ours:
            self._held, self._raw = [], []
            self._out += read.words
            read.words = []
            self.over = bool(read.ended)
            self._passing = '"\\' if read.live and not read.tail else ""
            return stop
        self._raw.append(text[at:stop])
        if read.ended == "closed" and not self._count:
            self._go = Unwrap._behind
        elif read.ended:
            self._give_up()
        return stop

    def _behind(self, text: str, at: int) -> int:
        """Behind an object that the reply began with: if anything follows, it was among other words."""
        stop = _past(_closing, text, at)
        self._raw.append(text[at:stop])
        if stop < len(text):
            self._give_up()
        return stop

    def _give_up(self) -> None:
        """The object is no envelope: its text belongs to the words."""
        self._add("".join(self._raw))
        self._object, self._raw = None, []
        self._go = Unwrap._in_prose
