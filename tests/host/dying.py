"""Processes that die where they are told to, and the scripts that fork them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

DIED = 9
"""How a process ends that died where it was told to."""


def deaths(script: str, folder: Path) -> int:
    """How often a process died in this script, which ends well."""
    ended = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), str(folder)], capture_output=True, text=True,
        check=False, timeout=19, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    return int(json.loads(ended.stdout)["deaths"])


def died(living: Coroutine[Any, Any, None], place: int) -> bool:
    """Whether a child that lives so died where it was told to; otherwise it had no more statements."""
    child = os.fork()
    if not child:
        try:
            asyncio.run(living)
        except BaseException:  # noqa: BLE001 - a child of a test ends here, whatever it met
            os._exit(1)
        os._exit(0)
    living.close()  # it runs in the child alone
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) not in {0, DIED}:
        raise SystemExit(f"the child that was to die at {place} ended with {status}")
    return os.waitstatus_to_exitcode(status) == DIED
