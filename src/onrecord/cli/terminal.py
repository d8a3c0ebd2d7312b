"""The terminal: what it can show, how a line is typed on it, and text made safe to print."""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from typing import TextIO

from onrecord.conversation.short import CONTROLS, STEERING, cut, plural, quoted, safe

__all__ = ("Keyboard", "Screen", "cut", "name_shown", "plural", "quoted", "safe", "wide_enough")

PIPE_COLUMNS = 160
"""Where a line is cut when nobody says how wide the reader's screen is."""

_ESCAPED_IN_JSON = {code: f"\\u{code:04x}" for code in (*CONTROLS, *STEERING) if code > 32}


def name_shown(name: str, limit: int = 0) -> str:
    """A name made safe to print, in one line of at most ``limit`` characters; its line ends and tabs are shown."""
    shown = safe(name.replace("\n", r"\n").replace("\t", r"\t"))
    return shown if limit <= 0 or len(shown) <= limit else f"{shown[: limit - 1]}…"


def wide_enough(name: str, width: int) -> str:
    """The name, padded to a column."""
    return name + " " * max(width - len(name), 0)


class Screen:
    """Where output goes. On a terminal it may be bold or dim; anywhere else it is plain text, flushed by the line."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out if out is not None else sys.stdout
        if isinstance(self.out, io.TextIOWrapper):
            self.out.reconfigure(errors="replace")
        self.live = self.out.isatty()
        self.styled = self.live and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in {"dumb", ""}
        self.at_start = True

    @property
    def columns(self) -> int:
        """How many characters fit in a line."""
        return shutil.get_terminal_size().columns if self.live else PIPE_COLUMNS

    def dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self.styled and text else text

    def bold(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.styled and text else text

    def write(self, text: str, *, dim: bool = False) -> None:
        """Text as it comes, made safe; a terminal sees it at once, a pipe with the line's end."""
        if not text:
            return
        shown = safe(text)
        self.out.write(self.dim(shown) if dim else shown)
        self.at_start = shown.endswith("\n")
        if self.live or "\n" in shown:
            self.out.flush()

    def line(self, text: str = "", *, dim: bool = False, bold: bool = False) -> None:
        """One line of its own, or several; begun on a new line where the last one is not finished."""
        self.fresh()
        shown = self.wrapped(safe(text))
        self.out.write((self.dim(shown) if dim else self.bold(shown) if bold else shown) + "\n")
        self.out.flush()

    def wrapped(self, text: str, indent: str = "") -> str:
        """The text with lines broken between words where the screen ends; a pipe gets them whole."""
        width = self.columns
        if not self.live or (len(text) <= width and "\n" not in text):
            return text
        lines: list[str] = []
        for line in text.split("\n"):
            inside = indent or line[: len(line) - len(line.lstrip())]
            broken = textwrap.wrap(
                line, width, subsequent_indent=inside, break_on_hyphens=False, drop_whitespace=True
            )  # fmt: skip
            lines += broken or [line]
        return "\n".join(lines)

    def json(self, value: bytes) -> None:
        """JSON in one line. What would steer a terminal stands escaped in its texts, and reads as the same value."""
        self.drawn(value.decode().translate(_ESCAPED_IN_JSON))

    def drawn(self, text: str) -> None:
        """A line that is ready: its parts were made safe and may be styled."""
        self.fresh()
        self.out.write(f"{text}\n")

    def erase(self) -> None:
        """Takes back the line that is not finished; for terminals that can."""
        self.out.write("\r\x1b[K")
        self.at_start = True

    def fresh(self) -> None:
        """Ends the line that is not finished, if there is one."""
        if not self.at_start:
            self.out.write("\n")
            self.out.flush()
            self.at_start = True


class Keyboard:
    """Where lines come from: a person at a terminal, or a pipe. ``EOFError`` ends it."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.live = sys.stdin.isatty()
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        if self.live and screen.live:
            _line_editing()

    def line(self, prompt: str) -> str:
        """One line, without its end. From a pipe it is written out behind the prompt: the output reads as it went."""
        self.screen.fresh()
        if self.live:
            try:
                return input(prompt)
            except (EOFError, KeyboardInterrupt):
                self.screen.line()  # the cursor still stands behind the prompt
                raise
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        line = line.rstrip("\r\n")
        if line.strip():
            self.screen.line(f"{prompt}{line}")
        return line


def _line_editing() -> None:
    """Editing and history for `input`, where Python has them; nothing is written to a file."""
    try:
        import readline
    except ImportError:
        return
    readline.set_auto_history(True)
