"""Tool calls that a model writes into its text, found while the text streams.

Small models, and some large ones, know the JSON of a call but not the marks their template asks for: they write it into
a code fence, bare, with doubled braces, or inside ``<tool_call>`` tags that a server did not recognise. `CallReader`
takes such calls out of the text. A call counts only where it begins a line (or stands in its tags), names an offered
tool and has an object as arguments; everything else stays text, and what cannot become a call is passed on at once.

After other words, a call without tags may be meant as an example ("you can use this command: ..."). There it counts
only for tools that are harmless to run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import msgspec
from msgspec import Raw, Struct

__all__ = ("CallReader", "FoundCall")


class FoundCall(Struct, frozen=True):
    """A call in the text; ``raw_args`` is the JSON object as the model wrote it."""

    name: str
    raw_args: str


class _Named(Struct):
    name: str = ""
    arguments: Raw = Raw()
    parameters: Raw = Raw()


class _Call(_Named):
    function: _Named | None = None


_one = msgspec.json.Decoder(_Call)
_many = msgspec.json.Decoder(list[_Call])

_TAGS = ("<tool_call>", "<tools>", "<function_call>")
_END_TAGS = tuple(tag.replace("<", "</") for tag in _TAGS)
# A fence may name json or nothing; other languages are code to be shown.
_FENCES = ("```json", "```tool_call", "```")

_TAG = r"(?:<(?:tool_call|tools|function_call)>\s*)?"
_FENCE = r"(?:```(?:json|tool_call)?\s*)?"
_OPENING = re.compile(_TAG + _FENCE + r"(?P<json>\[?\s*\{)")
_OPENING_TAG, _OPENING_FENCE = re.compile(_TAG), re.compile(_FENCE)
_CLOSING = re.compile(r"[\s,;}\]]*(?:```|</(?:tool_call|tools|function_call)>)?")
_KEY = re.compile(r'\[?\s*\{\s*\{?\s*"([^"]*)"')
# The first key of anything that may be a call.
_KEYS = {"name", "arguments", "parameters", "function", "type", "id"}
_MARKS = re.compile(r'["\\{}\[\]]')


class CallReader:
    """Splits streamed text into text for people and calls. Lives for one reply.

    ``names`` are the offered tools, ``harmless`` those of them that count also after other words.
    """

    def __init__(self, names: Collection[str], harmless: Collection[str] = ()) -> None:
        self._names, self._harmless = names, harmless
        self._said = False
        self._held = ""
        self._line_start = True
        self._after_call = False
        self._brackets = _Brackets()

    def feed(self, text: str) -> Iterator[str | FoundCall]:
        """What ``text`` decides, in order."""
        self._held += text
        yield from self._drain(final=False)

    def close(self) -> Iterator[str | FoundCall]:
        """What is left at the end of the reply."""
        yield from self._drain(final=True)

    def _drain(self, *, final: bool) -> Iterator[str | FoundCall]:
        while self._held:
            if self._after_call and not self._skip_closing():
                return
            if start := self._candidate():
                yield self._pass(start)
                continue
            decided = self._decide(final=final)
            if decided is None:
                return
            calls, length = decided
            self._brackets = _Brackets()
            if calls:
                self._held = self._held[length:]
                self._line_start = self._after_call = True
                yield from calls
            else:
                yield self._pass(length)

    def _skip_closing(self) -> bool:
        """Drops what closes a call and the blanks around it; False while more must be seen."""
        while (closing := _CLOSING.match(self._held)) and closing.end():
            self._held = self._held[closing.end() :]
        if not self._held or _begins(self._held, (*_END_TAGS, "```")):
            return False
        self._after_call = False
        return True

    def _candidate(self) -> int:
        """Where the next possible call begins: 0 is here, the length of what is held is nowhere in it."""
        held, at, fresh = self._held, 0, self._line_start
        while at < len(held):
            if fresh and (held[at:].lstrip()[:1] or "{") in "{[`<":
                return at
            tag, line = held.find("<", at), held.find("\n", at)
            if tag >= 0 and not 0 <= line < tag:
                if held.startswith(_TAGS, tag) or _begins(held[tag:], _TAGS):
                    return tag
                at, fresh = tag + 1, False
            elif line >= 0:
                at, fresh = line + 1, True
            else:
                break
        return len(held)

    def _pass(self, length: int) -> str:
        passed, self._held = self._held[:length], self._held[length:]
        self._line_start = passed.endswith("\n")
        self._said = self._said or not passed.isspace()
        return passed

    def _decide(self, *, final: bool) -> tuple[list[FoundCall], int] | None:
        """The calls that begin here and their length; no calls and how much is text; or None: not yet known."""
        held = self._held
        blank = len(held) - len(held.lstrip())
        opening = _OPENING.match(held, blank)
        if opening is None:
            if final:
                return [], len(held)
            return None if _may_open(held[blank:]) else ([], blank + 1)
        at = opening.start("json")
        if (key := _KEY.match(held, at)) and key[1] not in _KEYS:
            return [], opening.end()
        end = self._brackets.end(held, at)
        if end is None:
            if not final:
                return None
            end = len(held)
        example = self._said and not held.startswith(_TAGS, blank)
        return self._read(held[at:end], self._harmless if example else self._names), end

    def _read(self, text: str, names: Collection[str]) -> list[FoundCall]:
        for attempt in _attempts(text):
            try:
                read = _many.decode(attempt) if attempt.startswith("[") else [_one.decode(attempt)]
            except msgspec.MsgspecError:
                continue
            calls = [call for found in read if (call := _call(found, names)) is not None]
            if calls and len(calls) == len(read):
                return calls
        return []


def _call(found: _Call, names: Collection[str]) -> FoundCall | None:
    inner = found.function or found
    args = (bytes(inner.arguments) or bytes(inner.parameters)).decode()
    if inner.name not in names:
        return None
    if args.startswith('"'):  # some write the arguments as a string of JSON
        args = msgspec.json.decode(args, type=str).strip()
    return FoundCall(inner.name, args) if args.startswith("{") else None


class _Brackets:
    """Finds where an object or list ends, going on from where it stopped when more text is there."""

    def __init__(self) -> None:
        self._at = -1
        self._depth = 0
        self._quoted = False

    def end(self, text: str, start: int) -> int | None:
        at = max(self._at, start)
        while found := _MARKS.search(text, at):
            mark, at = found[0], found.end()
            if mark == '"':
                self._quoted = not self._quoted
            elif mark == "\\":
                at += 1
            elif not self._quoted:
                self._depth += 1 if mark in "{[" else -1
                if self._depth == 0:
                    return at
        self._at = max(at, len(text))
        return None


def _attempts(text: str) -> Iterator[str]:
    """The text, and without the doubled braces that templates with a wrong escape teach."""
    yield text
    stripped = text.strip()
    if stripped.startswith("{{"):
        yield stripped[1:-1]
        yield stripped[1:]


def _begins(text: str, wanted: tuple[str, ...]) -> bool:
    """Whether ``text`` is the beginning of one of them."""
    return any(mark.startswith(text) for mark in wanted)


def _may_open(body: str) -> bool:
    """Whether more text could make this the opening of a call."""
    rest = _OPENING_TAG.sub("", body, count=1)
    if _begins(body, _TAGS) or _begins(rest, _FENCES):
        return True
    rest = _OPENING_FENCE.sub("", rest, count=1)
    return not rest or (rest[0] == "[" and not rest[1:].strip())
