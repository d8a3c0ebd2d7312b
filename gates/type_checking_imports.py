"""Imports of other packages of ours under TYPE_CHECKING: exempt from the layers, so each is listed; the list shrinks.

Siblings inside one package may see each other that way; across packages it hides a direction.

The allow-list is ``gates/snapshots/type_checking_imports.txt``. A line that is no longer needed must be removed; a new
line is a decision (``docs/decisions/``), made by editing the file by hand.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish, python_files, relative

ALLOWED = "gates/snapshots/type_checking_imports.txt"


def found(root: Path = ROOT) -> set[str]:
    """The exempt imports there are, as ``file -> module`` lines."""
    lines: set[str] = set()
    for path in python_files(root / "src" / "onrecord"):
        if path.parent.name == "onrecord" and path.name == "__init__.py":
            continue  # the lazy barrel shows type checkers what it loads on first use
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                modules = [n.module or "" for n in ast.walk(node) if isinstance(n, ast.ImportFrom)]
                modules += [a.name for n in ast.walk(node) if isinstance(n, ast.Import) for a in n.names]
                own = path.relative_to(root / "src").with_suffix("").parts[:2]
                others = (m for m in modules if m.startswith("onrecord") and tuple(m.split(".")[:2]) != own)
                lines |= {f"{relative(path, root)} -> {module}" for module in others}
    return lines


def problems(root: Path = ROOT) -> Iterator[str]:
    """Imports that are not listed, and listed ones that are gone."""
    listed = (root / ALLOWED).read_text(encoding="utf-8").splitlines()
    allowed = {line for line in listed if line and not line.startswith("#")}
    there = found(root)
    for line in sorted(there - allowed):
        advice = "import it plainly if it points down the layers, else turn the dependency round"
        yield f"{line}: an import under TYPE_CHECKING that is not in {ALLOWED}; {advice}"
    for line in sorted(allowed - there):
        yield f"{line}: no longer there; remove it from {ALLOWED}, the list may only shrink"


if __name__ == "__main__":
    finish(problems())
