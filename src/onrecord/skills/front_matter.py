"""Front matter: the lines between ``---`` at the top of a ``SKILL.md``, as a small and strict part of YAML.

Read are mappings of texts, lists of texts, nested one level, lists on one line (``[a, b]``); plain, quoted and block
(``|`` and ``>``) texts; comments.
Everything is a text: ``no`` is two letters, ``1.0`` three characters. Whatever else YAML has (anchors, tags, flow
maps, several documents) is refused by line, so that a file is never read otherwise than it was meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from onrecord.errors import ConfigurationError

__all__ = ("FrontValue", "read_front_matter")

FrontValue = str | list[str] | dict[str, str] | list[dict[str, str]]

MOST_BYTES = 64 * 1024
"""A front matter is a page at most; a bigger one is a mistake, or meant to hurt."""

_KEY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*):(?:[ ]+(.*)|)$")
_BLOCK = re.compile(r"([|>])(-?)$")
_QUOTED = {'"': r'"((?:[^"\\]|\\["\\/nt])*)"', "'": r"'((?:[^']|'')*)'"}
_WORD = r"[A-Za-z0-9_./(][A-Za-z0-9_./()*+~=$ -]*(?::[A-Za-z0-9_./()*+~=$-]+ *)*"
_ITEM = re.compile("|".join([*_QUOTED.values(), _WORD]))
_LIST_END = re.compile(r"\](?:\s+#.*|\s*)$")
_BREAKS = frozenset("\x7f\x85\u2028\u2029\ufeff")  # YAML takes them for line ends, or not at all
_SPECIAL = set("&*!|>%@`{}[]?,#'\"")


def read_front_matter(text: str, where: str) -> tuple[Mapping[str, FrontValue], str]:
    """The keys at the top of a file, and the text below them. ConfigurationError names ``where`` and the line."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        raise _broken(where, 1, "the file does not begin with a line '---'")
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise _broken(where, 1, "no second line '---' ends the front matter")
    if sum(len(line) for line in lines[:end]) > MOST_BYTES:
        raise _broken(where, 1, f"the front matter is longer than {MOST_BYTES} characters")
    return _Lines(lines[1:end], where).mapping(), "\n".join(lines[end + 1 :]).strip("\n")


def _broken(where: str, line: int, told: str) -> ConfigurationError:
    return ConfigurationError(
        f"{where}:{line}: {told}", code="skill-invalid",
        hint="front matter is 'key: value' lines, lists of '- item' and one level of nesting; quote what is unusual",
    )  # fmt: skip


class _Lines:
    """The lines of one front matter, read from top to bottom."""

    def __init__(self, lines: list[str], where: str) -> None:
        self.lines, self.where, self.at = lines, where, 0
        for place, line in enumerate(lines):
            if any(letter < " " or letter in _BREAKS for letter in line):
                raise _broken(where, place + 2, "there is a tab or another control character: use blanks")

    def broken(self, told: str) -> ConfigurationError:
        return _broken(self.where, self.at + 2, told)

    def peek(self) -> tuple[int, str] | None:
        """The next line that says something: how far it is indented, and what it says."""
        while self.at < len(self.lines):
            line = self.lines[self.at].rstrip()
            said = line.lstrip(" ")
            if said and not said.startswith("#"):
                return len(line) - len(said), said
            self.at += 1
        return None

    def mapping(self) -> dict[str, FrontValue]:
        held: dict[str, FrontValue] = {}
        while (found := self.peek()) is not None:
            indent, said = found
            if indent:
                raise self.broken("this line is indented, and belongs to nothing")
            key, rest = self.key(said, held)
            held[key] = self.value(rest)
        return held

    def key(self, said: str, held: Mapping[str, object]) -> tuple[str, str]:
        match = _KEY.match(said)
        if match is None:
            raise self.broken("a 'key: value' line is expected here")
        if match[1] in held:
            raise self.broken(f"the key {match[1]!r} comes twice")
        return match[1], (match[2] or "").strip()

    def value(self, rest: str) -> FrontValue:
        """What stands behind a key of the first level, on its line or below it."""
        if rest.startswith("["):
            return self.listed(rest)
        if rest and not rest.startswith("#"):
            return self.scalar(rest, 0)
        self.at += 1
        found = self.peek()
        if found is None:
            return ""
        if found[1].startswith("- ") or found[1] == "-":
            return self.items(found[0])
        return self.nested(found[0]) if found[0] else ""

    def nested(self, indent: int) -> dict[str, str]:
        held: dict[str, str] = {}
        while (found := self.peek()) is not None and found[0] >= indent:
            if found[0] > indent:
                raise self.broken("nesting goes one level deep here")
            key, rest = self.key(found[1], held)
            if not rest or rest.startswith("#"):
                self.at += 1
                deeper = self.peek()
                if deeper is not None and deeper[0] > indent:
                    raise self.broken("nesting goes one level deep here")
                held[key] = ""
            else:
                held[key] = self.scalar(rest, indent)
        return held

    def items(self, indent: int) -> list[str] | list[dict[str, str]]:
        texts: list[str] = []
        pairs: list[dict[str, str]] = []
        while (found := self.peek()) is not None and found[0] == indent and found[1][:2].strip() == "-":
            said = found[1][2:].strip()
            if not said or said.startswith(("- ", "#")):
                raise self.broken("an item of a list is a text, or one 'key: value'")
            match = None if said[0] in "\"'" else _KEY.match(said)
            if match is None:
                texts.append(self.scalar(said, indent))
            else:
                column = indent + len(found[1]) - len(said)  # a pair goes on where its key stands
                pairs.append({match[1]: self.scalar(match[2].strip(), column) if match[2] else self.none()})
        if found is not None and found[0] > indent:
            raise self.broken("nesting goes one level deep here")
        if texts and pairs:
            raise self.broken("the items of this list are of two kinds")
        return pairs or texts

    def listed(self, said: str) -> list[str]:
        """A list on its line: plain words without signs of YAML's own, and quoted ones."""
        # Item by item: one expression for all of it would try every way to share out the blanks between them.
        texts, at = list[str](), _behind_blanks(said, 1)
        more = said[at : at + 1] != "]"
        while more and (found := _ITEM.match(said, at)) is not None:
            texts.append(found[0].strip())
            at = _behind_blanks(said, found.end())
            if more := said[at : at + 1] == ",":
                at = _behind_blanks(said, at + 1)
        if more or _LIST_END.match(said, at) is None:
            raise self.broken("a list on one line holds words and quoted texts, and ends there: [one, 'two']")
        self.at += 1
        return [unquoted(text) if text[0] in "\"'" else text for text in texts]

    def none(self) -> str:
        self.at += 1
        return ""

    def scalar(self, said: str, indent: int) -> str:
        """One text, which may go on over the lines below it that are indented further than ``indent``."""
        block = _BLOCK.match(_uncommented(said))
        if block is not None:
            return self.block(indent, folded=block[1] == ">", ends=not block[2])
        if said[0] in "\"'":
            return self.quoted(said)
        if said[0] in _SPECIAL or said[:2] in ("- ", "? ") or said in ("-", "?", ":"):
            raise self.broken(f"a text cannot begin with {said[0]!r}: quote it")
        parts = [self.plain(said)]
        commented = _uncommented(said) != said
        self.at += 1
        while not commented and self.at < len(self.lines):
            line = self.lines[self.at].rstrip()
            more = line.lstrip(" ")
            if not more or len(line) - len(more) <= indent or more.startswith("#"):
                break
            parts.append(self.plain(more))
            commented = _uncommented(more) != more
            self.at += 1
        return " ".join(parts)

    def plain(self, said: str) -> str:
        told = _uncommented(said)
        if ": " in told or told.endswith(":"):
            raise self.broken("a text with ': ' in it is ambiguous: quote it")
        return told

    def quoted(self, said: str) -> str:
        quote = said[0]
        match = re.match(rf"{_QUOTED[quote]}\s*(?:\s#.*)?$", said)
        if match is None:
            raise self.broken(
                'a quoted text ends on its line, with nothing behind it; its escapes are \\" \\\\ \\n \\t'
            )
        self.at += 1
        return unquoted(f"{quote}{match[1]}{quote}")

    def block(self, indent: int, *, folded: bool, ends: bool) -> str:
        self.at += 1
        taken: list[str] = []
        depth = 0
        while self.at < len(self.lines):
            line = self.lines[self.at]
            here = len(line) - len(line.lstrip(" "))
            if line.strip():
                depth = depth or here
                if here <= indent:
                    break
                if here < depth:
                    raise self.broken("this line of a block is indented less than its first")
            if here > (depth or here) and folded:
                raise self.broken("a folded text has one indentation: use '|' to keep lines as they are")
            if not line.strip() and not depth and line:
                raise self.broken("a block begins with a line that is only blanks")
            taken.append(line[depth:])
            self.at += 1
        body = (_folded(taken) if folded else "\n".join(taken)).rstrip("\n")
        return body + "\n" if body and ends else body


def _behind_blanks(said: str, at: int) -> int:
    while said[at : at + 1].isspace():
        at += 1
    return at


def unquoted(said: str) -> str:
    """What a quoted text says."""
    inside = said[1:-1]
    if said[0] == "'":
        return inside.replace("''", "'")
    escapes = {"n": "\n", "t": "\t"}
    return re.sub(r"\\(.)", lambda m: escapes.get(m[1], m[1]), inside)


def _uncommented(said: str) -> str:
    return re.split(r"\s#", said, maxsplit=1)[0].rstrip()


def _folded(lines: list[str]) -> str:
    """Lines of a paragraph become one; each blank line is a line break."""
    out = ""
    for place, line in enumerate(lines):
        if not line:
            out += "\n"
        else:
            out += f" {line}" if place and lines[place - 1] else line
    return out
