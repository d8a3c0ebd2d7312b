"""How every gate reports: one line per problem, exit code 1 when there is any."""

import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ("ROOT", "finish", "python_files", "relative")

ROOT = Path(__file__).resolve().parent.parent


def finish(problems: Iterable[str]) -> None:
    """Print the problems and end the process: 0 when there is none, 1 otherwise."""
    lines = list(problems)
    for line in lines:
        print(line)
    sys.exit(1 if lines else 0)


def python_files(folder: Path) -> list[Path]:
    """Every Python file below a folder, in a stable order; caches and hidden folders left out."""
    inside = ((path, path.relative_to(folder).parts) for path in folder.rglob("*.py"))
    return sorted(path for path, parts in inside if not any(p.startswith(".") or p == "__pycache__" for p in parts))


def relative(path: Path, root: Path) -> str:
    """A path as the problem lines show it."""
    return path.relative_to(root).as_posix()
