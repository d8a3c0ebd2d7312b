"""A text file that changes only on purpose: compare, show the difference, or rewrite with ``--write``."""

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ("compare", "write_requested")

HOW = "if this change is meant, run `make snapshots` and commit the file"


def write_requested() -> bool:
    """True when the gate was started to rewrite its file."""
    return "--write" in sys.argv[1:]


def compare(path: Path, text: str, *, write: bool, what: str) -> Iterator[str]:
    """Yield a readable difference between the stored text and the present one; rewrite instead when asked to."""
    if write:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    stored = path.read_text(encoding="utf-8") if path.exists() else ""
    if stored == text:
        return
    lines = difflib.unified_diff(stored.splitlines(), text.splitlines(), "stored", "now", lineterm="", n=2)
    yield f"{what} differs from {path.name}; {HOW}"
    yield from (f"  {line}" for line in lines)
