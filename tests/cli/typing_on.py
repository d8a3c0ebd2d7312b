"""A person at a pseudo-terminal: types, waits for what appears, presses Ctrl-C."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cli.agents import environment

__all__ = ("CTRL_C", "CTRL_D", "Person")

CTRL_C, CTRL_D = "\x03", "\x04"

# The child takes the terminal as its own, so that Ctrl-C becomes a signal as it does for a shell's child.
_CHILD = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


class Person:
    """A command on a pseudo-terminal. ``seen`` is everything that appeared."""

    def __init__(self, *words: str, folder: Path, **more: str) -> None:
        self.terminal, side = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, *words], stdin=side, stdout=side, stderr=side, cwd=folder,
            env=environment(**more), start_new_session=True,
        )  # fmt: skip
        os.close(side)
        self.seen = ""
        self._at = 0

    def sees(self, pattern: str, timeout: float = 12) -> str:
        """Waits until this appears behind what was waited for before, and returns the text up to its end."""
        deadline = time.monotonic() + timeout
        while True:
            found = re.search(pattern, self.seen[self._at :])
            if found is not None:
                shown = self.seen[self._at : self._at + found.end()]
                self._at += found.end()
                return shown
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"{pattern!r} did not appear in\n{self.seen[self._at :]!r}")

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.terminal, 65536)
        except OSError:
            return False  # the other side is closed
        self.seen += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)

    def types(self, text: str) -> None:
        """A line, with its end."""
        self.presses(f"{text}\r")

    def presses(self, keys: str) -> None:
        """Keys as they are; an unpaired surrogate is a byte that is no text."""
        os.write(self.terminal, keys.encode(errors="surrogateescape"))

    def leaves(self, keys: str = "", timeout: float = 15) -> int:
        """Waits until the command ended, and returns its exit code.

        ``keys`` are pressed at the prompt, and again as a person would: Python loses a signal that comes in the
        instant between the prompt and its waiting for keys.
        """
        deadline = again = time.monotonic() + 0.1
        deadline += timeout
        while self.process.poll() is None and time.monotonic() < deadline:
            if keys and time.monotonic() >= again:
                self.presses(keys)
                again = time.monotonic() + 1.5
            self._read(0.1)
        while self._read(0.1):
            pass
        return self.process.wait(timeout=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.terminal)
