"""Files, functions and classes stay small, and names keep one meaning.

Limits: 400 lines a file, 60 lines a function, 15 methods a class. No dumping-ground modules, no module with the name
of a standard library module, no module name used for two things, no retired word in a public name.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish, python_files, relative

FILE_LINES = 400
FUNCTION_LINES = 60
CLASS_METHODS = 15

DUMPING_GROUNDS = {"base", "common", "helper", "helpers", "manager", "managers", "misc", "shared", "util", "utils"}

# Stems that mean the same thing wherever they stand: the parts every provider package has.
CONVENTIONAL = {"__init__", "__main__", "cards", "client", "events", "parse", "project"}
# Folders whose files are named after something else on purpose: a command, or the port a suite is for.
NAMED_AFTER = ("cli/", "testing/conformance/")

# Words that architecture and glossary replaced; each has exactly one successor.
RETIRED = {
    "builder": "Agent",
    "capability": "Feature",
    "checkpoint": "Take",
    "confidence": "Standing",
    "guardrail": "Rule",
    "injection": "Piece",
    "invocation": "ToolCall",
    "iteration": "Round",
    "manager": "Host or Store",
    "middleware": "Feature",
    "orchestrator": "Host",
    "pipeline": "Stage",
    "plugin": "Feature",
    "recorder": "Fold",
    "reducer": "Fold",
    "reminder": "Wake",
    "repository": "Store",
    "router": "Director",
    "runner": "Agent",
    "supplement": "Piece",
    "thread": "Session",
    "timer": "Wake",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def problems(root: Path = ROOT) -> Iterator[str]:
    """Every breach below ``src``, ``gates``, ``tests``, ``examples`` and ``benchmarks`` of a tree."""
    for part in ("src", "gates", "tests", "examples", "benchmarks"):
        for path in python_files(root / part):
            yield from _sizes(path, relative(path, root))
            yield from _file_name(path, relative(path, root))
    package = root / "src" / "onrecord"
    yield from _double_names(package, root)
    for path in python_files(package):
        yield from _retired(path, relative(path, root))


def _sizes(path: Path, shown: str) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if (lines := text.count("\n")) > FILE_LINES:
        yield f"{shown}: {lines} lines, at most {FILE_LINES}: split it by meaning"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function) and (size := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES:
            yield f"{shown}:{node.lineno}: {node.name}() has {size} lines, at most {FUNCTION_LINES}"
        if isinstance(node, ast.ClassDef) and not shown.startswith("tests/"):
            names = {item.name for item in node.body if isinstance(item, Function)}
            methods = sum(not name.startswith("__") for name in names)  # dunders follow from the protocol a class has
            if methods > CLASS_METHODS:
                yield f"{shown}:{node.lineno}: class {node.name} has {methods} methods, at most {CLASS_METHODS}"


def _file_name(path: Path, shown: str) -> Iterator[str]:
    names = [path.stem] if path.stem != "__init__" else [path.parent.name]
    for name in names:
        if name in DUMPING_GROUNDS:
            yield f"{shown}: a module named {name!r} collects everything; name it after what it holds"
        if shown.startswith("src/") and name in sys.stdlib_module_names:
            yield f"{shown}: {name!r} is a standard library module"


def _double_names(package: Path, root: Path) -> Iterator[str]:
    places: dict[str, list[Path]] = defaultdict(list)
    for path in python_files(package):
        inside = path.relative_to(package).as_posix()
        if path.stem in CONVENTIONAL or inside.startswith(NAMED_AFTER):
            continue
        places[path.stem].append(path)
    for init in sorted(package.rglob("__init__.py")):
        name, above = init.parent.name, init.parent.parent.relative_to(package.parent).as_posix() + "/"
        own = {init.parent / f"{name}.py"}  # session/session.py is the heart of session/
        if init.parent != package and not any(part in above for part in NAMED_AFTER):
            places[name] = [p for p in places.get(name, []) if p not in own] + [init.parent]
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"module name {name!r} has two meanings: {', '.join(relative(p, root) for p in found)}"


def _retired(path: Path, shown: str) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, Function | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            continue
        for name in names:
            words = {w.lower().rstrip("s") for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
            for word in sorted(words & RETIRED.keys()) if not name.startswith("_") else ():
                told = f"{name!r} uses the retired word {word!r}; the glossary says {RETIRED[word]}"
                yield f"{shown}:{node.lineno}: {told}"


if __name__ == "__main__":
    finish(problems())
