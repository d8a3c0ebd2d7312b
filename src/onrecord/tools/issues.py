"""What is wrong with a JSON value, in words: paths, expectations and names of types, never the value itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from onrecord.jsonio import Json, dumps
from onrecord.tools.formats import EXAMPLES

__all__ = (
    "MOST_ISSUES",
    "Issue",
    "choices_text",
    "either",
    "expectation",
    "format_text",
    "listed",
    "resolved",
    "type_name",
)

MOST_ISSUES = 10
MOST_CHOICES = 12
LONGEST_NAME = 60
DEEPEST = 8


class Issue(NamedTuple):
    """Something wrong at ``path``; ``got`` is the name of a type, or empty when ``expected`` says it all."""

    path: tuple[str, ...]
    expected: str
    got: str = ""

    def below(self, name: str) -> Issue:
        """The same, seen from one level up, where the value it is about has this name."""
        return self._replace(path=(name, *self.path))

    def text(self, root: str) -> str:
        """The issue in words; ``root`` names the whole where the path is empty."""
        where = ".".join(part[:LONGEST_NAME] for part in self.path) or root
        problem = f"expected {self.expected}, got {self.got}" if self.got else self.expected
        return f"{where}: {problem}" if where else problem


def listed(issues: Sequence[Issue], root: str = "") -> str:
    """All issues in one line, at most ten of them."""
    told = "; ".join(issue.text(root) for issue in issues[:MOST_ISSUES])
    return told if len(issues) <= MOST_ISSUES else f"{told}; and more"


def type_name(value: Json) -> str:
    """The JSON name of a value's type."""
    for kinds, name in _NAMES:
        if isinstance(value, kinds):
            return name
    return "something that is not JSON"


_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    ((list, tuple), "array"),
    (Mapping, "object"),
    (type(None), "null"),
)


def expectation(schema: Json, root: Json, depth: int = 0) -> str:
    """What a schema asks for, in a few words."""
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return "a value"
    kinds = schema.get("type")
    if isinstance(choices := schema.get("enum"), list):
        return choices_text(choices)
    if "const" in schema:
        return choices_text([schema["const"]])
    if kinds == "string" and isinstance(name := schema.get("format"), str):
        return format_text(name)
    if kinds:
        return either(kinds if isinstance(kinds, list) else [kinds])
    options = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(options, list):
        return either(expectation(option, root, depth + 1) for option in options)
    return expectation(resolved(schema.get("$ref"), root), root, depth + 1)


def either(texts: Iterable[object]) -> str:
    """Alternatives in words, each once."""
    return " or ".join(dict.fromkeys(str(text) for text in texts))


def choices_text(choices: Sequence[Json]) -> str:
    """The choices of an ``enum`` in words; they are the schema's own, so they may be quoted."""
    shown = [dumps(choice).decode() for choice in choices[:MOST_CHOICES]]
    if len(choices) > MOST_CHOICES:
        shown.append("...")
    return f"one of {', '.join(shown)}" if len(shown) > 1 else "".join(shown)


def format_text(name: str) -> str:
    """A text format in words, with an example where there is one."""
    return f"{name} (like {EXAMPLES[name]})" if name in EXAMPLES else f"string ({name})"


def resolved(reference: Json, root: Json) -> Json:
    """What a reference such as ``#/$defs/Node`` points at, or None when it points nowhere inside ``root``."""
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        return None  # elsewhere, or an anchor such as #Node
    found = root
    for part in reference.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found
