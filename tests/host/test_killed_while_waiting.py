"""The process that asked is killed while it waits; the answer is given in another one. Real processes, a real file."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


def process(act: str, folder: Path) -> subprocess.Popen[str]:
    """A new process with this errand."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.host.waiting", act, str(folder)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.timeout(60)
def test_g82_the_answer_comes_in_a_process_that_never_saw_the_question(tmp_path: Path) -> None:
    """Killed, not closed: nothing ran before, the call runs once after, and a second answer is stale (case G82)."""
    asking = process("ask", tmp_path)
    assert asking.stdout is not None
    assert asking.stdout.readline() == "paused\n"
    asking.send_signal(signal.SIGKILL)
    asking.communicate()
    assert not (tmp_path / "ran").exists()
    assert process("answer", tmp_path).communicate(timeout=30) == ("answered Paid eight. ignored\n", "")
    assert (tmp_path / "ran").read_text() == "8\n"
