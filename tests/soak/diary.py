"""Diary: one file of JSON lines that every process of a soak appends to, so that nothing said dies with its process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ("Diary",)


class Diary:
    """Appends whole lines: two processes never write into each other's, and a SIGKILL cuts none in half."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_APPEND | os.O_WRONLY | os.O_CREAT)

    def note(self, what: str, **told: Any) -> None:
        """One more line."""
        line = json.dumps({"what": what, "pid": os.getpid(), "time": time.time(), **told})
        os.write(self._file, line.encode() + b"\n")

    def lines(self, *what: str) -> Iterator[dict[str, Any]]:
        """What was noted under these names, in order."""
        with self.path.open(encoding="utf-8") as file:
            for line in file:
                told = json.loads(line)
                if told["what"] in what:
                    yield told
