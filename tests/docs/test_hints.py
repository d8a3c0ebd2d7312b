"""What a hint says to write is there to be written."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

import pytest

import onrecord
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


def test_hints_call_only_what_there_is() -> None:
    """Functions and classes, with a bracket behind them."""
    known = DEFINED | ELSEWHERE | set(dir(builtins))
    found = [(where, name) for where, words in hints() for name in re.findall(r"(\w+)\(", words)]
    assert len(found) > 100
    assert [(where, name) for where, name in found if name not in known] == []


def test_what_is_to_decorate_a_function_is_imported_from_the_package() -> None:
    """In whatever is said, hints and their parts: else whoever follows it does not find it."""
    said = (
        node.value for text in SOURCES.values() for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)
    )
    lines = (each for each in said if isinstance(each, str) and "\n" not in each)
    found = {name for line in lines for name in re.findall(r"(?<![\w.{@])@(\w+)", line)}
    assert found >= {"tool", "before_tool"}
    assert [name for name in found if not hasattr(onrecord, name)] == []
