"""Templates: ``{{fact}}`` in a text, checked against a closed set of facts and compiled once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from msgspec import Struct

from onrecord.conversation.short import cut, safe
from onrecord.errors import ConfigurationError
from onrecord.honesty.entry_facts import FACTS, VARIANTS
from onrecord.honesty.fact_readers import Facts, Words, fields_of, shown
from onrecord.honesty.sentences import json_of
from onrecord.record.entry import Body, UnknownBody, kind_of

__all__ = ("LONGEST", "Line", "Teller", "compiled", "refused")

LONGEST = 120
"""How many characters of a fact a sentence shows."""

_HOLE = re.compile(r"\{\{\s*([A-Za-z_][\w.]*)\s*\}\}")
_ARGUMENT = "args."


class Line(Struct, frozen=True):
    """A template that is ready: the text with a ``%s`` for each fact, and the facts."""

    text: str
    facts: tuple[Callable[[Any, Words], str], ...] = ()

    def told(self, body: Any, words: Words, limit: int) -> str:
        """The sentence about one body. A fact longer than ``limit`` is cut (0: never), and its control codes are shown.

        Models name the tools that they call, and what is told may be printed.
        """
        if not self.facts:
            return self.text
        return self.text % tuple([safe(cut(fact(body, words), limit)) for fact in self.facts])


def compiled(key: str, template: object, facts: Facts, *, app: str) -> Line:
    """A template of some facts. ConfigurationError for what is no text, and for a fact that the key does not have."""
    if not isinstance(template, str):
        raise ConfigurationError(f"the template {key!r} is a text, not {type(template).__name__}")
    texts, names = _parts(key, template)
    used = list[Callable[[Any, Words], str]]()
    for at, name in enumerate(names):
        if name == "app_name":
            texts[at] += app
        else:
            used.append(_fact(key, name, facts))
            texts[at] += "\0"
    whole = "".join(texts)
    if not used:
        return Line(whole)
    return Line(whole.replace("%", "%%").replace("\0", "%s"), tuple(used))


def _parts(key: str, template: str) -> tuple[list[str], list[str]]:
    """The texts of a template, and the names between them."""
    split = _HOLE.split(template.replace("\0", ""))
    texts, names = split[::2], split[1::2]
    if any("{{" in text or "}}" in text for text in texts):
        raise ConfigurationError(f"the template {key!r} has braces that name no fact", hint="a fact is {{tool_name}}")
    return texts, names


def _fact(key: str, name: str, facts: Facts) -> Callable[[Any, Words], str]:
    if name in facts:
        return facts[name]
    if name.startswith(_ARGUMENT) and "args" in facts:
        argument = name.removeprefix(_ARGUMENT)
        return lambda body, _words: shown(body.args.get(argument))
    raise refused(f"the template {key!r} names an unknown fact {name!r}", name, ("app_name", *facts))


def refused(what: str, name: object, known: Iterable[str]) -> ConfigurationError:
    """The error for a name that is none of those known, with the nearest or all of them."""
    names = list(known)
    close = get_close_matches(_plain(str(name)), names, n=1)
    return ConfigurationError(what, hint=f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}")


def _plain(name: str) -> str:
    """``userPrompt`` as ``user_prompt``, which is how names are written here."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name[:LONGEST]).lower()


class Teller:
    """Templates by key, ready to tell of entries: ``KIND``, or ``KIND.VARIANT`` where several things are said of it.

    A kind without a template is not told, and an empty template says nothing. ConfigurationError for a key that no
    kind has, and for facts that its kind does not have.
    """

    def __init__(
        self, templates: Mapping[str, str], words: Words, *, app: str, limit: int = LONGEST,
        bodies: Iterable[type[Body]] = (),
    ) -> None:  # fmt: skip
        self._words, self._limit = words, limit
        own = {str(body.__struct_config__.tag): fields_of(body) for body in bodies}
        self._lines: dict[str, dict[str, Line]] = {}
        known = {**own, **FACTS}
        for key, template in templates.items():
            kind = _kind_of(key, known)
            self._lines.setdefault(kind, {})[key[len(kind) + 1 :]] = compiled(key, template, known[kind], app=app)

    def told(self, body: Body) -> str:
        """What is said of a body; empty when nothing is."""
        kind = kind_of(body)
        lines = self._lines.get(kind)
        if lines is None:
            return ""
        read: Any = json_of(bytes(body.raw)) if isinstance(body, UnknownBody) else body
        choose = VARIANTS.get(kind)
        variant = choose(read) if choose is not None else ""
        line = lines.get(variant) or lines.get("")
        return "" if line is None else line.told(read, self._words, self._limit)


def _kind_of(key: str, known: Mapping[str, Facts]) -> str:
    """The kind that a key is about."""
    kind = key
    while kind not in known:
        kind, dot, _ = kind.rpartition(".")
        if not dot:
            raise refused(f"no entry has the kind of the template {key!r}", key, known)
    return kind
