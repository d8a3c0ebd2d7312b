"""Standard streams that are closed, full, or left by their reader: the exit code still says what happened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.agents import PACED, command, environment, stored

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform == "win32", reason="file descriptors as POSIX shells give them"),
]


def shell(folder: Path, streams: str, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """The command with its streams as a shell hands them over: ``>&-`` closes one."""
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {streams}', "sh", *command(*arguments)], input=typed, capture_output=True, text=True,
        env=environment(), cwd=folder, check=False, timeout=15,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("streams", "out", "err"),
    [("<&-", True, True), (">&-", False, True), ("2>&-", True, False), ("<&- >&- 2>&-", False, False)],
)
def test_a_closed_stream_leads_nowhere(tmp_path: Path, streams: str, out: bool, err: bool) -> None:
    """What was done and its exit code are as ever, the other streams say what they always say, without a traceback."""
    for arguments in ("models", "--help"):
        ran = shell(tmp_path, streams, arguments)
        assert (ran.returncode, bool(ran.stdout), ran.stderr) == (0, out, ""), (arguments, ran)
    for arguments in ("record show nowhere.db", "--bogus"):
        ran = shell(tmp_path, streams, *arguments.split())
        assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 2 if err else 0), (arguments, ran)


def test_a_chat_without_streams_writes_nothing_into_its_store(tmp_path: Path) -> None:
    """The store's file never gets the number of a stream: nothing that is printed lands in it."""
    (tmp_path / "cli_paced.py").write_text(PACED, encoding="utf-8")
    ran = shell(tmp_path, ">&- 2>&-", "chat", "cli_paced.py", "--store", "t.db", typed="one\n")
    assert ran.returncode == 0, ran
    kept = stored(tmp_path / "t.db")
    assert kept is not None
    assert len(kept.conversation.messages) == 2
    assert shell(tmp_path, "<&-", "chat", "cli_paced.py").returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_a_stream(tmp_path: Path) -> None:
    """Output that cannot be written is an error of its own; an error that cannot be told keeps its exit code."""
    for arguments in ("models", "--help", "record --help", "--version"):
        ran = shell(tmp_path, ">/dev/full", *arguments.split())
        assert ran.returncode == 1, (arguments, ran)
        assert ran.stderr == "onrecord: No space left on device\n  hint: make room\n"
        assert shell(tmp_path, "2>/dev/full", *arguments.split()).returncode == 0
    for arguments in ("record show nowhere.db", "record show nowhere.db --debug", "--bogus"):
        ran = shell(tmp_path, "2>/dev/full", *arguments.split())
        assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", ""), arguments
    assert shell(tmp_path, ">/dev/full", "--bogus").returncode == 2
