"""``onrecord store erase``: sessions, messages and people go for good, after a yes, and nothing of them stays."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.cli.main import main
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Said
from onrecord.session.erasure import Erasure
from onrecord.session.inbox import Row
from onrecord.session.session import Session
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import ScriptedModel
from tests.cli.agents import Cli, Terminal, entries_of, stored

pytestmark = pytest.mark.integration

BIRD, WHY = "canary-7f3a91", "asked for"


async def _fill(path: Path) -> None:
    async with SqliteStore(path) as store:
        for name, owner in (("ana", "u1"), ("eva", "u1"), ("bo", "u2")):
            session: Session | SessionKey = Session(key=SessionKey(name), owner=Identity(principal=owner))
            for words in (BIRD, f"more {BIRD}"):
                agent: Agent[Any, Any] = Agent(ScriptedModel(f"You said {words}."))
                result = await agent.turn(words, session=session)
                session = await store.commit(result.change())
        await store.put(Row(session=SessionKey("ana"), box="in", key="said::1", body=Said(BIRD, key="1")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three sessions of two people, and a message that waits."""
    file = tmp_path / "talk.db"
    asyncio.run(_fill(file))
    return file


def messages(path: Path, session: str) -> list[str]:
    """The ids of a session's messages."""
    held = stored(path, session)
    return [] if held is None else [message.id for message in held.conversation.messages]


def birds(path: Path) -> int:
    """How often the canary is in the store's files."""
    return sum(found.read_bytes().count(BIRD.encode()) for found in path.parent.iterdir())


def test_a_session_is_erased_and_its_record_says_so(path: Path, cli: Cli) -> None:
    """With its rows; the others stay, and everything still verifies."""
    entries = len(entries_of(path, "ana"))
    ran = cli("store", "erase", path, "ana", "--why", WHY, "--yes")
    assert ran.code == 0, ran
    assert ran.out == f"erased: 1 session, 4 messages, {entries} entries, 1 row\n"
    assert (messages(path, "ana"), len(messages(path, "bo"))) == ([], 4)
    assert WHY in cli("record", "show", path, "ana", "--json").out
    assert cli("store", "check", path).code == 0
    assert cli("inbox", "list", path, "--json").out == ""
    assert cli("store", "erase", path, "ana", "--why", WHY, "--yes").out.startswith("erased: 0 sessions")


def test_a_message_goes_with_its_turn(path: Path, cli: Cli) -> None:
    """The other turn stays."""
    first = messages(path, "bo")[0]
    ran = cli("store", "erase", path, "bo", "--message", first, "--why", WHY, "--yes")
    assert ran.code == 0, ran
    assert ran.out.startswith("erased: 0 sessions, 2 messages, 6 entries")
    assert len(messages(path, "bo")) == 2
    checked = cli("store", "check", path)
    assert checked.code == 0, checked
    assert "-    in 1 session something was erased" in checked.out


def test_a_person_is_erased_from_every_session_they_own_and_from_the_files(path: Path, cli: Cli) -> None:
    """Nothing of what they said can be found in the file or beside it."""
    assert cli("store", "erase", path, "bo", "--why", WHY, "--yes").code == 0
    assert birds(path) > 0
    ran = cli("store", "erase", path, "--person", "u1", "--why", WHY, "--yes")
    assert ran.code == 0, ran
    assert ran.out.startswith("erased: 2 sessions, 8 messages")
    assert birds(path) == 0
    assert BIRD not in ran.out + ran.err


def test_a_person_who_owns_nothing_is_told_of(path: Path, cli: Cli) -> None:
    """A wrong name, or one that was erased already: erasing again is no mistake, so the exit code is 0."""
    assert "owned" not in cli("store", "erase", path, "--person", "u1", "--why", WHY, "--yes").out
    for who in ("u1", "u-one"):
        ran = cli("store", "erase", path, "--person", who, "--why", WHY, "--yes")
        assert (ran.code, ran.out.splitlines()[1:]) == (
            0, [f"no session is owned by '{who}'; erased sessions have no owner any more"],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nobody",), "holds no session 'nobody'"),
        (("an",), "did you mean 'ana'?"),
        (("ana", "--message", "x"), "holds no message 'x'"),
        (("ana", "--person", "u1"), "it is not said what to erase"),
        ((), "it is not said what to erase"),
        (("--person", "u1", "--message", "x"), "--message goes with a SESSION"),
        (("ana", "--tenant", "hotel"), "holds no session 'ana'"),
    ],
)
def test_what_there_is_not_is_wrong_usage(path: Path, cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    """And nothing is erased."""
    before = birds(path)
    ran = cli("store", "erase", path, *arguments, "--why", WHY, "--yes")
    assert ran.code == 2
    assert told in ran.err
    assert birds(path) == before


def test_a_reason_is_required(path: Path, cli: Cli) -> None:
    """It is what the record keeps."""
    assert "--why" in cli("store", "erase", path, "ana", "--yes").err
    for why in ("", " "):
        before = birds(path)
        ran = cli("store", "erase", path, "ana", "--why", why, "--yes")
        assert (ran.code, len(ran.err.splitlines())) == (2, 2)
        assert birds(path) == before


def test_nothing_is_erased_unasked(path: Path, cli: Cli) -> None:
    """Without a terminal and without --yes it is wrong usage."""
    ran = cli("store", "erase", path, "ana", "--why", WHY)
    assert ran.code == 2
    assert "session 'ana' (4 messages, " in ran.err
    assert len(messages(path, "ana")) == 4


@pytest.mark.parametrize(("answer", "left"), [("yes\n", 0), ("\n", 4), ("", 4)])
def test_at_a_terminal_an_erasure_asks(path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, left: int) -> None:
    """Only a yes erases."""
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdin", Terminal(answer))
        patch.setattr("sys.stdout", Terminal())
        assert main(["store", "erase", str(path), "ana", "--why", WHY]) == 0
    assert len(messages(path, "ana")) == left


def test_what_may_be_left_is_told_and_fails(path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody reads the file: the log beside it cannot be emptied."""

    async def swept(self: SqliteStore) -> Erasure:
        return Erasure(remains=("log",))

    async def erased(self: SqliteStore, *_: object, **__: object) -> Erasure:
        return Erasure(sessions=1, remains=("log", "pages"))

    monkeypatch.setattr(SqliteStore, "erase", erased)
    monkeypatch.setattr(SqliteStore, "sweep", swept)
    ran = cli("store", "erase", path, "ana", "--why", WHY, "--yes")
    assert ran.code == 1
    assert "copies may be left in the log beside the file" in ran.out
    assert "unused pages" not in ran.out
