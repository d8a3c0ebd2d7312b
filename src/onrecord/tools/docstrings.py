"""Docstrings in the three usual styles: the first paragraph, and what is said about each argument."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from textwrap import dedent

from msgspec import Struct

__all__ = ("Documented", "documented")

_ARGUMENTS = r"(?:args|arguments|parameters|params|other parameters|keyword args|keyword arguments|attributes)"
_google = re.compile(rf"{_ARGUMENTS}:$", re.IGNORECASE).match
_numpy = re.compile(rf"{_ARGUMENTS}$", re.IGNORECASE).match
_rule = re.compile(r"-{3,}$").match
_google_entry = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$").match
_numpy_entry = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$").match
_field = re.compile(r"[:@](\w+)\s*([^:]*):\s*(.*)$").match
_FIELDS = frozenset({"arg", "argument", "attribute", "ivar", "key", "keyword", "param", "parameter", "var"})


class Documented(Struct, frozen=True):
    """A docstring, read: its first paragraph in one line, and a line for each argument it describes."""

    summary: str = ""
    arguments: Mapping[str, str] = {}


def documented(text: str | None) -> Documented:
    """Reads a docstring in Google, NumPy or ``:param name:`` style. What is in none of them is only a summary."""
    if not text or not text.strip():
        return Documented()
    first, _, rest = text.expandtabs().lstrip().partition("\n")
    lines = [line.rstrip() for line in [first, *dedent(rest).splitlines()]]
    arguments: dict[str, list[str]] = {}
    for name, line in _argument_lines(lines):
        arguments.setdefault(name, []).append(line.strip())
    told = {name: " ".join(part for part in parts if part) for name, parts in arguments.items()}
    return Documented(_summary(lines), {name: line for name, line in told.items() if line})


def _summary(lines: list[str]) -> str:
    paragraph: list[str] = []
    for index, line in enumerate(lines):
        if not line or _field(line) or _google(line) or (_numpy(line) and _rule("".join(lines[index + 1 : index + 2]))):
            break
        paragraph.append(line.strip())
    return " ".join(paragraph)


def _argument_lines(lines: list[str]) -> Iterator[tuple[str, str]]:
    index = 0
    while index < len(lines):
        line = lines[index].strip()
        depth = _depth(lines[index])
        following = lines[index + 1].strip() if index + 1 < len(lines) else ""
        if _numpy(line) and _rule(following):
            yield from _numpy_lines(lines[index + 2 :], depth)
        elif _google(line):
            yield from _google_lines(lines[index + 1 :], depth)
        elif (found := _field(line)) and found[1] in _FIELDS and (words := found[2].split()):
            yield words[-1].lstrip("*"), found[3]
            yield from ((words[-1].lstrip("*"), more) for more in _deeper(lines[index + 1 :], depth))
        index += 1


def _google_lines(lines: list[str], depth: int) -> Iterator[tuple[str, str]]:
    name, level = "", 0
    for line in _deeper(lines, depth):
        entry = _google_entry(line.strip())
        if entry and (not name or _depth(line) <= level):
            name, level = entry[1], _depth(line)
            yield name, entry[2]
        elif name:
            yield name, line


def _numpy_lines(lines: list[str], depth: int) -> Iterator[tuple[str, str]]:
    names: list[str] = []
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if line and (_depth(line) < depth or _rule(following.strip())):
            return
        if line and _depth(line) == depth:
            entry = _numpy_entry(line.strip())
            names = [name.strip().lstrip("*") for name in entry[1].split(",")] if entry else []
        else:
            yield from ((name, line) for name in names)


def _deeper(lines: list[str], depth: int) -> Iterator[str]:
    for line in lines:
        if line and _depth(line) <= depth:
            return
        yield line


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
