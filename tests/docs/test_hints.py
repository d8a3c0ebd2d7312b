"""What a hint says to write is there to be written."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

import pytest

from gates.report import ROOT

pytestmark = pytest.mark.docs

ELSEWHERE = {"timedelta", "urandom"}
"""Names of Python's library that hints use."""

SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}
DEFINED = {name for text in SOURCES.values() for name in re.findall(r"(?:def|class) (\w+)", text)}


def hints() -> Iterator[tuple[str, str]]:
    """Where each stands, and its words; what is filled in is left out."""
    for path, text in SOURCES.items():
        if "hint=" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                parts = (each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant))
                yield f"{path.name}:{node.value.lineno}", " ".join(part for part in parts if isinstance(part, str))


def test_hints_name_only_what_there_is() -> None:
    """Decorators with their sign, functions and classes with a bracket behind them."""
    known = DEFINED | ELSEWHERE | set(dir(builtins))
    found = [(where, name) for where, words in hints() for name in re.findall(r"@(\w+)|(\w+)\(", words)]
    assert len(found) > 100
    assert [(where, name) for where, pair in found if (name := "".join(pair)) not in known] == []
