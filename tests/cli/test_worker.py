"""``onrecord worker``: serves what waits, drains when it is told to stop, tells its health, fails in sentences."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from onrecord.cli.loading import _modules
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Input, Said, Woke, row_key
from onrecord.conversation.messages import AssistantMessage
from onrecord.session.inbox import Row
from onrecord.stores.sqlite import SqliteStore
from tests.cli.agents import PACED, Cli, command, environment, stored

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

CHANNEL = '''
"""A channel, what turns are given, and hosts that are ready."""
import asyncio
import signal
from pathlib import Path

from onrecord.host import Given, Host
from onrecord.stores.sqlite import SqliteStore

from cli_paced import agent


async def send(session, message):
    with Path("sent.txt").open("a") as file:
        file.write(f"{session.id}: {message.text}\\n")


async def given(session, input):
    return Given(context=session.id)


def plain(session, message):
    pass


async def last(session, message):
    """Sends, and then somebody stops the worker."""
    await send(session, message)
    signal.raise_signal(signal.SIGUSR1)
    await asyncio.sleep(0.2)
    signal.raise_signal(signal.SIGTERM)


host = Host(agent, store=SqliteStore("t.db"), deliver=send)
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an agent and its channel, as the current one."""
    (tmp_path / "cli_paced.py").write_text(PACED, encoding="utf-8")
    (tmp_path / "cli_channel.py").write_text(CHANNEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr("onrecord.cli.loading._modules", {**_modules})
    for name in ("cli_paced", "cli_channel"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def put(store: Path, *inputs: Input, due: datetime | None = None) -> None:
    """Accepts inputs of the session ``ana``, as a web handler in another process does."""

    async def accept() -> None:
        async with SqliteStore(store) as opened:
            for one in inputs:
                await opened.put(Row(session=SessionKey("ana"), box="in", key=row_key(one, ""), body=one, due=due))

    asyncio.run(accept())


def waiting(store: Path) -> Sequence[Row]:
    """The rows of both boxes."""

    async def read() -> list[Row]:
        async with SqliteStore(store) as opened:
            return [*await opened.rows("in"), *await opened.rows("out")]

    return asyncio.run(read())


def replies(store: Path) -> list[str]:
    """What the agent said in ``ana``."""
    session = stored(store, "ana")
    messages = [] if session is None else session.conversation.messages
    return [m.text.strip() for m in messages if isinstance(m, AssistantMessage)]


def test_once_serves_what_is_due_and_ends(folder: Path, cli: Cli) -> None:
    """Inputs are taken in order, messages are printed as JSON, a later wake stays, and nothing else is said."""
    put(folder / "t.db", Said("one", key="1"), Said("two", key="2"))
    put(folder / "t.db", Woke("later"), due=datetime.now(UTC) + timedelta(days=1))
    ran = cli("worker", "cli_paced.py", "--store", "t.db", "--once")
    assert (ran.code, ran.err) == (0, "")
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["session"], one["text"]) for one in told] == [("ana", "word0 word1 word2 ")] * 2
    assert len({one["key"] for one in told}) == 2
    assert [row.key for row in waiting(folder / "t.db")] == ["woke::later"]


def test_a_channel_and_what_turns_are_given_come_from_functions(folder: Path, cli: Cli) -> None:
    """Messages go out through the one, contexts come from the other, nothing is printed."""
    put(folder / "t.db", Said("one", key="1"))
    options = ("--deliver", "cli_channel:send", "--given", "cli_channel.py:given", "--turns", "2")
    ran = cli("worker", "cli_paced:agent", "--store", "t.db", "--once", *options)
    assert (ran.code, ran.out) == (0, "")
    assert (folder / "sent.txt").read_text() == "ana: word0 word1 word2 \n"


def test_a_host_that_is_ready_is_served_as_it_is(folder: Path, cli: Cli) -> None:
    """With its own store and channel; options that it has already are refused."""
    put(folder / "t.db", Said("one", key="1"))
    assert cli("worker", "cli_channel:host", "--once").code == 0
    assert (folder / "sent.txt").read_text() == "ana: word0 word1 word2 \n"
    ran = cli("worker", "cli_channel:host", "--store", "t.db")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "onrecord: --store is not for a host that is ready")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("health", ["-", "health.json"])
def test_it_serves_until_it_is_told_to_stop(folder: Path, cli: Cli, health: str) -> None:
    """Its health is told at the start, at a signal and at the end, on standard error or in a file that is replaced."""
    put(folder / "t.db", Said("one", key="1"))
    ran = cli("worker", "cli_paced:agent", "--store", "t.db", "--deliver", "cli_channel:last", "--health", health)
    assert (ran.code, ran.out) == (0, "")
    told = [re.split("[,;]", line)[0].removeprefix("onrecord worker: ") for line in ran.err.splitlines()]
    if health == "-":
        assert told == ["taken 0", "taken 1", "stopping", "taken 1"]
    else:
        assert told == ["stopping"]
        assert json.loads((folder / health).read_bytes())["taken"] == 1
    assert [path.name for path in folder.glob(".onrecord-*")] == []


def test_a_run_to_the_end_tells_its_health_in_a_file(folder: Path, cli: Cli) -> None:
    """So that a crontab can be watched: what was taken and delivered, once all of it is."""
    put(folder / "t.db", Said("one", key="1"), Said("two", key="2"))
    ran = cli("worker", "cli_paced.py", "--store", "t.db", "--once", "--health", "health.json")
    assert (ran.code, ran.err) == (0, "")
    told = json.loads((folder / "health.json").read_bytes())
    assert (told["taken"], told["delivered"], told["running"], told["due"]) == (2, 2, 0, 0)


def test_a_health_file_that_cannot_be_written_is_told_at_once(folder: Path, cli: Cli) -> None:
    """Before anything is served."""
    put(folder / "t.db", Said("one", key="1"))
    ran = cli("worker", "cli_paced.py", "--store", "t.db", "--health", "no/health.json")
    assert (ran.code, ran.out) == (1, "")
    assert "'no/health.json'" in ran.err
    assert replies(folder / "t.db") == []


def test_a_run_to_the_end_says_that_its_health_could_not_be_written(folder: Path, cli: Cli) -> None:
    """What it was there for is done, and its exit code says so."""
    put(folder / "t.db", Said("one", key="1"))
    ran = cli("worker", "cli_paced.py", "--store", "t.db", "--once", "--health", "no/health.json")
    assert (ran.code, len(replies(folder / "t.db"))) == (0, 1)
    assert ran.err == "onrecord worker: no health: No such file or directory: 'no/health.json'\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("cli_paced.py",), "a worker needs a store to serve"),
        (("cli_paced.py", "--store", "no/t.db"), "cannot be made: its folder does not exist"),
        (("cli_paced.py:wait", "--store", "t.db"), "is neither an agent nor a host but of type Tool"),
        (("cli_paced.py", "--store", "t.db", "--deliver", "cli_channel"), "names no function"),
        (("cli_paced.py", "--store", "t.db", "--deliver", "cli_channel:absent"), "has no 'absent'"),
        (("cli_paced.py", "--store", "t.db", "--deliver", "cli_channel:plain"), "is no async function"),
        (("cli_paced.py", "--store", "t.db", "--turns", "0"), "'0' is no number of turns"),
        (("cli_paced.py", "--store", "t.db", "--drain", "soon"), "'soon' is no number of seconds"),
    ],
)
def test_what_leads_nowhere_is_said_in_a_sentence(folder: Path, cli: Cli, words: tuple[str, ...], told: str) -> None:
    """Wrong usage, with exit code 2 and a hint."""
    ran = cli("worker", *words)
    assert ran.code == 2, ran
    assert told in ran.err
    assert "  hint: " in ran.err


def started(folder: Path, *options: str) -> subprocess.Popen[str]:
    """A worker in a process of its own."""
    return subprocess.Popen(
        command("worker", "cli_paced.py", "--store", "t.db", *options), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=environment(PYTHONUNBUFFERED="1"), cwd=folder, text=True,
    )  # fmt: skip


def until_leased(store: Path) -> None:
    """Waits until somebody takes a row."""
    deadline = time.monotonic() + 15
    while not any(row.owner for row in waiting(store)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_sigterm_lets_the_running_turn_end(folder: Path) -> None:
    """Its reply is stored and delivered, nothing more is taken, and the exit code is 0."""
    put(folder / "t.db", Said("slow", key="1"), Said("two", key="2"))
    with started(folder) as worker:
        until_leased(folder / "t.db")
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err
    assert "stopping; 1 turn may end within 30 s" in err
    assert len(replies(folder / "t.db")) == 1
    left = {row.key for row in waiting(folder / "t.db")}
    assert "said::2" in left
    assert ("word99" in out) is not any(key.startswith("ana:") for key in left)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_what_does_not_end_in_time_is_given_back(folder: Path) -> None:
    """Its row can be taken at once by another worker, which does."""
    put(folder / "t.db", Said("slow", key="1"))
    with started(folder, "--drain", "0.2") as worker:
        until_leased(folder / "t.db")
        worker.send_signal(signal.SIGTERM)
        _, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err
    (row,) = waiting(folder / "t.db")
    assert (row.key, row.owner, row.attempt - row.clean) == ("said::1", "", 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_second_signal_ends_it_at_once(folder: Path) -> None:
    """The row stays leased until its lease ends; nothing of the turn is stored."""
    put(folder / "t.db", Said("slow", key="1"))
    with started(folder) as worker:
        until_leased(folder / "t.db")
        worker.send_signal(signal.SIGTERM)
        assert worker.stderr is not None
        while "stopping" not in worker.stderr.readline():
            pass
        worker.send_signal(signal.SIGINT)
        worker.communicate(timeout=30)
    assert worker.returncode == 130
    (row,) = waiting(folder / "t.db")
    assert row.owner
    assert replies(folder / "t.db") == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_its_health_is_told_at_a_signal_or_kept_in_a_file(folder: Path) -> None:
    """Numbers and the store, and nothing that anybody said."""
    put(folder / "t.db", Woke("secret"), due=datetime.now(UTC) + timedelta(days=1))
    with started(folder) as worker:
        assert worker.stderr is not None
        first = worker.stderr.readline()
        worker.send_signal(signal.SIGUSR1)
        second = worker.stderr.readline()
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=30)
    assert first == second
    assert first.startswith("onrecord worker: taken 0, delivered 0, running 0, due 0, waiting 1, parked 0")
    assert "secret" not in first
    with started(folder, "--health", "health.json") as worker:
        deadline = time.monotonic() + 15
        while not (folder / "health.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=30)
    told = json.loads((folder / "health.json").read_bytes())
    assert (told["waiting"], told["running"], told["store"]) == (1, 0, "t.db")


def test_whoever_reads_the_messages_may_go_away(folder: Path) -> None:
    """The worker ends, and the message that could not be written is delivered by the next one."""
    put(folder / "t.db", Said("one", key="1"))
    with started(folder) as worker:
        assert worker.stdout is not None
        worker.stdout.close()
        assert worker.wait(timeout=30) == 141
    (row,) = waiting(folder / "t.db")
    assert (row.box, row.owner) == ("out", "")
