"""The file of ``onrecord record export``: written whole or not at all, and over nothing but an earlier export."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.agents import Cli, command, environment, started

pytestmark = pytest.mark.integration


def test_an_earlier_export_or_an_empty_file_is_written_over(store: Path, cli: Cli, exported: Path) -> None:
    """What stands there afterwards verifies, with the permissions of before, and nothing is left beside it."""
    before = exported.read_bytes()
    exported.chmod(0o640)
    empty = exported.with_name("empty.jsonl")
    empty.touch()
    for target in (exported, empty):
        ran = cli("record", "export", store, "bo", "-o", target)
        assert ran.code == 0, ran
        assert ran.err == f"7 entries of session 'bo' written to {str(target)!r}\n"
        assert cli("record", "verify", target).code == 0
    assert exported.read_bytes() != before
    assert exported.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in store.parent.iterdir()) == ["ana.jsonl", "empty.jsonl", "talk.db"]


def test_a_link_stays_one_and_leads_to_the_export(store: Path, cli: Cli, exported: Path) -> None:
    """To an earlier export, and to a file that is not there yet."""
    links = {"old": exported, "new": store.with_name("made.jsonl")}
    for name, target in links.items():
        link = store.with_name(name)
        link.symlink_to(target.name)
        assert cli("record", "export", store, "bo", "-o", link).code == 0
        assert link.is_symlink()
        assert cli("record", "verify", target, "bo").code == 0


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("talk.db", "'talk.db' is a store"),
        ("./talk.db", "is a store"),
        ("hard.db", "'hard.db' is a store"),
        ("soft.db", "'soft.db' is a store"),
        ("talk.db-wal", "'talk.db-wal' belongs to the store beside it"),
        ("talk.db-shm", "'talk.db-shm' belongs to the store beside it"),
        ("talk.db-journal", "'talk.db-journal' belongs to the store beside it"),
        ("hard.db-wal", "'hard.db-wal' belongs to the store beside it"),
        ("notes.txt", "'notes.txt' is there already and no export; it was not touched"),
        ("bare.jsonl", "'bare.jsonl' is there already and no export"),
        ("folder", "'folder' is a folder"),
        ("", "'' is a folder"),
        ("no/where", "'no/where' cannot be made: there is no folder 'no'"),
        ("notes.txt/x", "'notes.txt/x' cannot be made: there is no folder 'notes.txt'"),
    ],
)
def test_what_is_no_export_is_not_written_over(
    store: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, target: str, told: str
) -> None:
    """Nothing there changes, nothing appears, and the store still verifies."""
    folder = store.parent
    monkeypatch.chdir(folder)
    os.link("talk.db", "hard.db")
    Path("soft.db").symlink_to("talk.db")
    Path("notes.txt").write_text("mine", encoding="utf-8")
    Path("bare.jsonl").write_text(cli("record", "show", "talk.db", "ana", "--json").out, encoding="utf-8")
    Path("folder").mkdir()
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    ran = cli("record", "export", "talk.db", "ana", "-o", target)
    assert ran.code == 2, ran
    assert told in ran.err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert cli("record", "verify", "talk.db", "ana").code == 0


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_keeps_what_was_there(
    store: Path, cli: Cli, exported: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    """A full disk and Ctrl-C: the old file is whole, and no unfinished one is left."""
    before = exported.read_bytes()

    def failing(*_: object) -> None:
        raise error

    owner = os if step == "fsync" else Path
    with monkeypatch.context() as patched:
        patched.setattr(owner, step, failing)
        ran = cli("record", "export", store, "bo", "-o", exported)
    assert ran.code == (1 if isinstance(error, OSError) else 130), ran
    assert ran.err == (
        "" if ran.code == 130 else f"onrecord: No space left on device: {str(exported)!r}\n  hint: make room\n"
    )
    assert exported.read_bytes() == before
    assert sorted(path.name for path in store.parent.iterdir()) == ["ana.jsonl", "talk.db"]


def test_an_export_that_may_not_be_written_is_not_replaced(
    store: Path, cli: Cli, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder would allow it; its own permissions count."""
    before = exported.read_bytes()
    allowed: Callable[..., bool] = os.access

    def access(path: str | Path, mode: int) -> bool:
        return Path(path) != exported and allowed(path, mode)  # root, who may run this, is allowed everything

    monkeypatch.setattr(os, "access", access)
    ran = cli("record", "export", store, "bo", "-o", exported)
    assert (ran.code, exported.read_bytes()) == (1, before)
    assert ran.err.startswith(f"onrecord: Permission denied: {str(exported)!r}")


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes")
def test_pipes_and_devices_are_written_as_they_are(store: Path, cli: Cli, tmp_path: Path) -> None:
    """Nothing is put in their place."""
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert cli("record", "export", store, "bo", "-o", pipe).code == 0
    reader.join(10)
    assert read[0].startswith(b'{"onrecord":"record",')
    assert pipe.is_fifo()
    assert cli("record", "export", store, "bo", "-o", "/dev/null").code == 0
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="/dev/stdin")
def test_a_record_is_read_from_a_pipe(store: Path, exported: Path) -> None:
    """Packed and unpacked as the help shows it; every reading command takes it, though a pipe gives its bytes once."""
    text = exported.read_text(encoding="utf-8")
    for arguments in ("record show", "record why", "record verify", "replay"):
        piped = started(*arguments.split(), "/dev/stdin", stdin=text)
        plain = started(*arguments.split(), exported)
        assert piped.code == 0, piped
        assert piped.out.replace("/dev/stdin", str(exported)) == plain.out
    script = '"$@" record export "$STORE" ana | gzip > ana.gz; gunzip -c ana.gz | "$@" record verify /dev/stdin'
    ran = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *command()], capture_output=True, text=True, check=False, cwd=store.parent,
        env=environment(STORE=str(store)), timeout=20,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout.splitlines()[-1], ran.stderr) == (0, "verified", "")
    empty = started("record", "show", "/dev/stdin")
    assert (empty.code, empty.err.splitlines()[0]) == (1, "onrecord: '/dev/stdin' is empty")
