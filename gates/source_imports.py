"""Imports inside the package follow the house rules that import-linter cannot see.

- Nothing is imported from the top-level barrel: it would load lazily what a module needs at once, or in a circle.
- No underscore name of another module is imported.
- Third-party libraries other than the hard, light one are imported inside functions, so that importing costs nothing.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish, python_files, relative

AT_MODULE_LEVEL = {"msgspec", "onrecord"}
# The conformance suites are pytest classes; whoever subclasses them has pytest.
ALSO = {"src/onrecord/testing/conformance/": {"pytest"}}


def problems(root: Path = ROOT) -> Iterator[str]:
    """Every import below ``src/onrecord`` that breaks a rule."""
    for path in python_files(root / "src" / "onrecord"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        shown = relative(path, root)
        allowed = AT_MODULE_LEVEL.union(*(extra for place, extra in ALSO.items() if shown.startswith(place)))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                yield from _from_import(node, shown)
        for node in _at_module_level(tree):
            for name in _roots(node):
                if name not in sys.stdlib_module_names and name not in allowed:
                    yield f"{shown}:{node.lineno}: import {name!r} inside the function that needs it"


def _from_import(node: ast.ImportFrom, shown: str) -> Iterator[str]:
    if node.module == "onrecord":
        yield f"{shown}:{node.lineno}: import from the module that defines the name, not from the top-level barrel"
    if node.module and node.module.startswith("onrecord."):
        for alias in node.names:
            if alias.name.startswith("_") and not alias.name.startswith("__"):
                yield f"{shown}:{node.lineno}: {alias.name!r} is private to {node.module}"


def _roots(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "").split(".")[0]]
    return [alias.name.split(".")[0] for alias in node.names]


def _at_module_level(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports that run when the module is imported: those under ``if TYPE_CHECKING`` and in functions do not."""
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            stack.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            stack.extend(ast.iter_child_nodes(node))


if __name__ == "__main__":
    finish(problems())
