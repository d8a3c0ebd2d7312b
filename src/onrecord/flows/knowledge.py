"""The knowledge base of an agent, as nested bullets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onrecord.jsonio import Json, dumps

__all__ = ("knowledge_section",)

_INDENT = "  "


def knowledge_section(knowledge: Mapping[str, Json] | str | None) -> str:
    """The section of a prompt that tells what an agent knows; empty when that is nothing. A text stands as it is."""
    if not knowledge:
        return ""
    told = knowledge.strip() if isinstance(knowledge, str) else "\n".join(_bullets(knowledge, ""))
    return f"## Knowledge base\n{told}" if told else ""


def _bullets(held: Mapping[str, Json], indent: str) -> Iterator[str]:
    for name, value in held.items():
        if isinstance(value, (list, tuple)) and any(isinstance(item, Mapping) for item in value):
            yield f"{indent}- {name}:"
            yield from _bullets({str(number): item for number, item in enumerate(value, 1)}, indent + _INDENT)
        elif isinstance(value, Mapping):
            yield f"{indent}- {name}:"
            yield from _bullets(value, indent + _INDENT)
        elif isinstance(value, (list, tuple)):
            yield f"{indent}- {name}: {', '.join(_written(item, indent) for item in value)}"
        else:
            yield f"{indent}- {name}: {_written(value, indent)}"


def _written(value: Json, indent: str) -> str:
    """A text with its further lines below the bullet, anything else as JSON."""
    return value.replace("\n", f"\n{indent}{_INDENT}") if isinstance(value, str) else dumps(value).decode()
