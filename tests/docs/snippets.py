"""Reads fenced blocks out of a page and runs them, in order, in one folder and one namespace per page.

- ```` ```python ```` runs. With ``title="hotel.py"`` the block is also written to that file first.
- ```` ```bash ```` runs when one of its lines calls ``onrecord`` or ``python``.
- ```` ```text title="prints" ```` right after a block must be exactly what it printed.
- A block below ``<!-- not run: reason -->`` is left out; one with a title is still written to its file, for the
  commands that run it. The reason is for the reader of the source.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ("Block", "blocks", "run_page")

FENCE = re.compile(
    r"(?P<skip><!-- not run: [^>]+ -->\n)?^(?P<indent> *)```(?P<language>\w+)?(?P<info>[^\n]*)\n(?P<body>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, title, text, first line in the page, and whether it is left out."""

    language: str
    title: str
    text: str
    line: int
    skipped: bool


def blocks(page: str) -> Iterator[Block]:
    """Every fenced block of a page, in order."""
    for match in FENCE.finditer(page):
        indent = match["indent"]
        text = "".join(line.removeprefix(indent) for line in match["body"].splitlines(keepends=True))
        title = re.search(r'title="([^"]*)"', match["info"])
        line = page.count("\n", 0, match.start("body")) + 1
        yield Block(match["language"] or "", title[1] if title else "", text, line, bool(match["skip"]))


def run_page(path: Path, folder: Path) -> int:
    """Run the blocks of a page in a folder, and return how many ran; raises what a block raises."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None
    ran = 0
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.title == "prints":
            if printed is not None and printed.strip() != block.text.strip():
                raise AssertionError(f"{path.name}:{block.line}: it printed\n{printed}")
        elif block.skipped:
            printed = None
            if block.title.endswith(".py"):
                (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            printed, ran = _python(block, path, folder, namespace), ran + 1
        elif block.language == "bash" and re.search(r"^(.*\| *)?(onrecord|python) ", block.text, re.MULTILINE):
            printed, ran = _bash(block, path, folder), ran + 1
    return ran


def _python(block: Block, path: Path, folder: Path, namespace: dict[str, object]) -> str:
    if block.title:
        (folder / block.title).write_text(block.text, encoding="utf-8")
    code = compile("\n" * (block.line - 1) + block.text, str(path), "exec", dont_inherit=True)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, namespace)  # noqa: S102  # the project's own documentation
    return out.getvalue()


def _bash(block: Block, path: Path, folder: Path) -> str:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],  # noqa: S607  # whichever bash the reader has
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"{path.name}:{block.line}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
