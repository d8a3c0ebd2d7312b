"""The names that are stored or published: entry kinds, error codes, outcome codes, moments, slots and ranks.

A stored record is read for years, so a kind or code is never renamed in passing.
"""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import EnumType
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from gates.report import ROOT, finish, python_files
from gates.snapshot import compare, write_requested

SNAPSHOT = "gates/snapshots/names.txt"

_store_code = re.compile(r"store-[a-z-]+").fullmatch


def render(root: Path = ROOT) -> str:
    """All published names, one section per family."""
    errors, kinds, moments = (_load(m) for m in ("onrecord.errors", "onrecord.record.kinds", "onrecord.turn.moments"))
    slots: Mapping[str, Mapping[str, int]] = _need(moments, "SLOTS")
    single, outcomes = _codes(root)
    sections = {
        "entry kinds": sorted(_tag(body) for body in _need(kinds, "CORE_KINDS")),
        "error codes": sorted(_error_codes(errors)),
        "error codes of their own": sorted(single),
        "outcome codes": sorted(outcomes),
        "model error kinds": list(get_args(_need(errors, "ErrorKind"))),
        "moments": list(_need(moments, "MOMENTS")),
        "slots": [
            f"{moment} {name} {n}" for moment in slots for name, n in sorted(slots[moment].items(), key=_by_number)
        ],
        "ranks": [f"{name} {n}" for name, n in sorted(_numbers(_need(moments, "Rank")), key=_by_number)],
    }
    return "\n".join(f"{title}\n" + "".join(f"  {line}\n" for line in lines) for title, lines in sections.items())


def problems(root: Path = ROOT, *, write: bool = False) -> Iterator[str]:
    """What differs from the stored names, or which module does not publish them."""
    try:
        text = render(root)
    except LookupError as missing:
        yield str(missing.args[0])
        return
    yield from compare(root / SNAPSHOT, text, write=write, what="a published name")


def _load(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise LookupError(f"{module} does not exist: it publishes names that records depend on") from None


def _need(module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        raise LookupError(f"{module.__name__}.{name} does not exist: it publishes names that records depend on")
    return getattr(module, name)


def _tag(body: type) -> str:
    config = getattr(body, "__struct_config__", None)
    if config is None or not isinstance(config.tag, str):
        raise LookupError(f"{body.__name__} in CORE_KINDS has no msgspec tag: an entry body needs its kind")
    return config.tag


def _error_codes(errors: ModuleType) -> Iterator[str]:
    for name in errors.__all__:
        item = getattr(errors, name)
        if isinstance(item, type) and issubclass(item, Exception):
            yield f"{getattr(item, 'default_code', '?')} {name}"


def _codes(root: Path) -> tuple[set[str], set[str]]:
    """Codes that the source gives single errors, and those that it gives outcome lines."""
    errors, outcomes = set[str](), set[str]()
    for path in python_files(root / "src" / "onrecord"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _store_code(node.value):
                errors.add(node.value)
            if isinstance(node, ast.Call):
                found = outcomes if isinstance(node.func, ast.Name) and node.func.id == "Outcome" else errors
                given = (word.value for word in node.keywords if word.arg == "code")
                found.update(v.value for v in given if isinstance(v, ast.Constant) and isinstance(v.value, str))
    return errors - {""}, outcomes


def _numbers(holder: Any) -> Iterable[tuple[str, int]]:
    named: Mapping[str, Any] = holder.__members__ if isinstance(holder, EnumType) else vars(holder)
    return [(name, int(value)) for name, value in named.items() if name.isupper() and isinstance(value, int)]


def _by_number(pair: tuple[str, int]) -> tuple[int, str]:
    return pair[1], pair[0]


if __name__ == "__main__":
    finish(problems(write=write_requested()))
