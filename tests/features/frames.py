"""Everything that the library itself writes for models: found in its source and in a talk, never listed by hand."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import onrecord
from onrecord.conversation.content import Text
from onrecord.conversation.messages import ContextMessage, Round
from onrecord.conversation.render import context_text, instruction
from tests.features.active import ACTIVE, EXCLUDE
from tests.features.talk import played

__all__ = ("frames",)

SOURCE = Path(onrecord.__file__).parent
WRITERS = (
    "conversation/render.py", "governance", "honesty/self_explain.py", "honesty/trace_tools.py", "memory",
    "models/unit_bytes.py", "prompt", "skills", "tools", "turn",
)  # fmt: skip
"""The modules that write for models."""


@cache
def frames() -> tuple[str, ...]:
    """Texts of the library's source, with ``x`` where it fills something in; and those that a talk really showed."""
    found = dict.fromkeys(text for path in _modules() for text in _texts(ast.parse(path.read_text(encoding="utf-8"))))
    found |= dict.fromkeys(asyncio.run(_shown()))
    found = dict.fromkeys(re.sub(r"art_[0-9a-f]{24}", "art_0123", text) for text in found)  # no refs that live
    return tuple(text for text in found if len(text) >= 12 and re.search(r"[\s\[<{:]", text))


def _modules() -> Iterator[Path]:
    for name in WRITERS:
        path = SOURCE / name
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def _texts(tree: ast.AST) -> Iterator[str]:
    docstrings = {
        id(body[0].value)
        for node in ast.walk(tree)
        if (body := getattr(node, "body", None)) and isinstance(body, list) and isinstance(body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)


async def _shown() -> list[str]:
    """Pieces, inserts, notes, results and descriptions of a talk with all features."""
    left_out = {max(pair) for pair in EXCLUDE}
    play = await played(*(ACTIVE[name]()[0] for name in ACTIVE if name not in left_out))
    told = [instruction("Obey.", "system"), instruction("Obey.", "developer")]
    for request in play.requests:
        told += [piece.text for piece in request.pieces]
        told += [offer.spec.description for offer in request.offers]
        inserts = [span for span in request.view.spans if isinstance(span, ContextMessage)]
        told += [context_text(message) for message in inserts]
        for unit in request.conversation.units:
            calls = unit.calls if isinstance(unit, Round) else ()
            told += [note.text for call in calls for note in call.notes]
            told += [part.text for call in calls for part in call.result or () if isinstance(part, Text)]
    return told
