"""Templates: texts with ``{{data.x}}``, ``{{context.x}}`` or ``{{input.x}}``, compiled once and rendered often."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from onrecord.flows.numerals import number_text
from onrecord.jsonio import Json, dumps

__all__ = ("Template", "compile_template", "render_deep", "words_only")

_inner = re.compile(r"\s*([^}\s]*)\s*(\}\})?").match
_PLAIN = (str, bool, int, float, bytes)
_MOST_DIGITS = 9


ROOTS = ("data", "context", "input")


class _Gone:
    """What a path leads to when it leads nowhere."""


GONE = _Gone()


class _Place(NamedTuple):
    """One placeholder: as it is written, and where its path begins and goes."""

    written: str
    root: str
    steps: tuple[str, ...]


class Template(Struct, frozen=True):
    """A text with placeholders; ``text`` is what the author wrote, ``pieces`` what is between and in the braces."""

    text: str
    pieces: tuple[str | _Place, ...] = ()

    @property
    def is_static(self) -> bool:
        """Whether nothing in the text is ever filled in."""
        return not self.pieces

    @property
    def is_whole(self) -> bool:
        """Whether it is one placeholder and nothing else, so that it could stand for a value of any type."""
        return len(self.pieces) == 1 and not isinstance(self.pieces[0], str)

    def value(self, data: Mapping[str, Json], context: object = None, input: Json = None) -> Any:
        """What a whole template stands for, as it is; one that leads nowhere, or to null, is its own text."""
        (place,) = self.pieces
        if isinstance(place, str):
            return self.text
        found: Any = {"data": data, "context": context, "input": input}[place.root]
        for step in place.steps:
            found = GONE if found is None else _walked(found, step)
            if found is GONE:
                break
        return self.text if found is None or found is GONE else found

    def render(self, data: Mapping[str, Json], context: object = None, input: Json = None) -> str:
        """The text with its placeholders filled in.

        One that leads nowhere, or to null, stays as it is written. One that is blank (an empty text or list, or a path
        that walks through null) vanishes, and the gap it leaves in the sentence is closed. Never raises.
        """
        return self._with(data, context, input, str) if self.pieces else self.text

    def told(self, data: Mapping[str, Json], context: object = None, input: Json = None) -> str:
        """The text as a prompt has it: what fills its placeholders, often a customer's words, opens no section."""
        return self._with(data, context, input, words_only) if self.pieces else self.text

    def _with(self, data: Mapping[str, Json], context: object, input: Json, as_: Callable[[str], str]) -> str:
        roots = {"data": data, "context": context, "input": input}
        parts, blank = list[str](), False
        for piece in self.pieces:
            if isinstance(piece, str):
                parts.append(piece)
                continue
            text = _filled(roots[piece.root], piece)
            blank = blank or not text
            parts.append(as_(text))
        rendered = "".join(parts)
        return _tidy(rendered) if blank else rendered


# What a line may begin with that a prompt uses to begin and end its parts; `str.splitlines` knows more ends of lines
# than "^" does.
_part = re.compile(r'(?:^|(?<=[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]))(?=[ \t]*+(?:##|#\Z|"""))', re.MULTILINE)


def words_only(text: str) -> str:
    """The text with a backslash before what would look like a heading, or like the end of a quotation, in a prompt."""
    return _part.sub(r"\\", text) if "##" in text or '"""' in text or text.endswith("#") else text


@lru_cache(maxsize=4096)
def compile_template(text: str) -> Template:
    """Compiles a text. One without placeholders is static: rendering it costs nothing."""
    pieces, done, at = list[str | _Place](), 0, text.find("{{")
    while at >= 0:
        found = _inner(text, at + 2)
        if found is None or not found[1] or not found[2]:
            # All starts inside this run of characters end at the same place and fail alike: none is tried again.
            after = at + 1 if found is None else max(at + 1, found.end(1) - 2)
        else:
            after = found.end()
            root, *steps = found[1].split(".")
            if root in ROOTS:
                if at > done:
                    pieces.append(text[done:at])
                pieces.append(_Place(text[at:after], root, tuple(steps)))
                done = after
        at = text.find("{{", after)
    if not pieces:
        return Template(text)
    if done < len(text):
        pieces.append(text[done:])
    return Template(text, tuple(pieces))


def render_deep(value: Json, data: Mapping[str, Json], context: object = None, input: Json = None) -> Json:
    """The value with every string in it rendered, at any depth; what has nothing to render is not built anew."""
    if isinstance(value, str):
        return compile_template(value).render(data, context, input) if "{{" in value else value
    if isinstance(value, Mapping):
        made = {name: render_deep(item, data, context, input) for name, item in value.items()}
        return value if all(made[name] is item for name, item in value.items()) else made
    if isinstance(value, (list, tuple)):
        items = [render_deep(item, data, context, input) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def _filled(root: object, place: _Place) -> str:
    found: Any = root if root is not None else GONE
    for step in place.steps:
        if found is None:
            return ""
        found = _walked(found, step)
        if found is GONE:
            return place.written
    text = None if found is None or found is GONE else _text(found)
    return place.written if text is None else text


def _walked(value: Any, step: str) -> Any:
    try:
        if isinstance(value, Mapping):
            return value.get(step, GONE)
        if isinstance(value, (list, tuple)) and step.isascii() and step.isdigit():
            return value[int(step)] if len(step) <= _MOST_DIGITS and int(step) < len(value) else GONE
        if isinstance(value, (*_PLAIN, list)) or step.startswith("_") or not step.isidentifier():
            return GONE
        return getattr(value, step, GONE)
    except Exception:  # noqa: BLE001 - a host's own objects may raise anything, and a text is no place to fail
        return GONE


def _text(value: Any) -> str | None:
    """How a value stands in a text; None for what has no form there."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return number_text(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return _listed(value)
    try:
        if isinstance(value, Mapping):
            return dumps(value).decode()
        # Dates, decimals, enums and structs: what JSON makes of them.
        plain = msgspec.to_builtins(value)
        return _text(plain) if isinstance(plain, (*_PLAIN, list)) else dumps(plain).decode()
    except Exception:  # noqa: BLE001 - whatever a host's object does, the placeholder stays and shows it
        return None


def _listed(items: Any) -> str | None:
    try:
        texts = [_text(item) for item in items if item is not None]
    except Exception:  # noqa: BLE001 - a list of a host's own may raise anything, or be circular
        return None
    return None if None in texts else ", ".join(text for text in texts if text is not None)


# What a blank leaves behind, in this order. Every pattern is linear: runs are taken whole, from their beginning only.
_TIDYING: tuple[Callable[[str], str], ...] = tuple(
    partial(re.compile(pattern, re.MULTILINE).sub, put)
    for pattern, put in (
        (r"(?<=\S)[ \t]{2,}", " "),
        (r"(?<=\S)[ \t]++(?=[,.;:!?…])", ""),
        (r"[,;]+(?=[,;.!?…])", ""),
        (r"^([ \t]*+)[,;:!?]++[ \t]++(?=\S)", r"\1"),
        (r"(?<![ \t])[ \t]++$", ""),
    )
)


def _tidy(text: str) -> str:
    for mend in _TIDYING:
        text = mend(text)
    return text
