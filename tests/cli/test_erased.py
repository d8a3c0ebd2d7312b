"""The command line on records of which something was erased: it names the gaps and calls nothing damage."""

import asyncio
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from onrecord.cli.sources import held
from onrecord.conversation.identity import SessionKey
from onrecord.errors import UsageError
from onrecord.record.kinds import Erased, ModelRequested
from onrecord.session.erasure import Retention
from onrecord.stores import SqliteStore
from onrecord.turn.receipt import rebuild
from tests.cli.agents import Cli, entries_of, stored

pytestmark = pytest.mark.integration


@pytest.fixture
def thinned(store: Path) -> Path:
    """The store without the second turn of ``ana``, which had asked and was answered."""
    session = stored(store, "ana")
    assert session is not None
    id = next(m.id for m in session.conversation.messages if getattr(m, "text", "") == "book it")
    erase(store, id)
    return store


def erase(path: Path, *messages: str) -> None:
    """Erases messages of ``ana``, or all of her session."""

    async def act() -> None:
        async with SqliteStore(path) as store:
            await store.erase(SessionKey("ana"), messages=messages or None, why="asked by the guest")

    asyncio.run(act())


def test_a_record_with_an_erased_turn_verifies_and_names_the_gap(thinned: Path, cli: Cli) -> None:
    """How many entries, when and why; and which requests nobody can rebuild any more."""
    ran = cli("record", "verify", thinned, "ana")
    assert ran.code == 0, ran
    gone = sum(isinstance(entry.body, Erased) for entry in entries_of(thinned))
    assert f"-    {gone} entries of 1 turn: erased on 20" in ran.out
    assert ": asked by the guest" in ran.out
    assert "-    what 1 request showed: erased, so that nobody can rebuild them" in ran.out
    assert "ok   1 request rebuilt, every digest proved" in ran.out
    assert ran.out.splitlines()[-1] == "verified"


def test_a_wholly_erased_record_is_shown_explained_replayed_and_exported(store: Path, cli: Cli, tmp_path: Path) -> None:
    """Nothing of it breaks a reader, and the export verifies alone."""
    erase(store)
    shown = cli("record", "show", store, "ana")
    assert shown.code == 0, shown
    assert "tool.started was erased: asked by the guest" in shown.out
    assert " · erased · " in shown.out
    assert "erase: asked by the guest" in shown.out
    assert cli("record", "show", store).code == 0
    assert "What stood here (turn.input) was erased" in cli("record", "why", store, "ana", "1").out
    replayed = cli("replay", store, "ana")
    assert replayed.code == 0, replayed
    assert "erased on" in replayed.out
    assert cli("replay", store, "ana", "--at", "3").code == 0
    assert cli("record", "verify", store, "ana").code == 0
    _exports(store, cli, tmp_path)


def test_a_record_with_an_erased_turn_is_shown_explained_replayed_and_exported(
    thinned: Path, cli: Cli, tmp_path: Path
) -> None:
    """The turns around it tell what they told before."""
    assert "history erased" in cli("record", "show", thinned, "ana").out
    last = max(e.seq for e in entries_of(thinned) if isinstance(e.body, ModelRequested))
    why = cli("record", "why", thinned, "ana", str(last)).out
    assert "history: erased, at least in part" in why
    replayed = cli("replay", thinned, "ana")
    assert replayed.code == 0, replayed
    assert "> hello" in replayed.out
    assert "book it" not in replayed.out
    _exports(thinned, cli, tmp_path)


def _exports(store: Path, cli: Cli, folder: Path) -> None:
    path = folder / "erased.jsonl"
    assert cli("record", "export", store, "ana", "-o", path).code == 0
    ran = cli("record", "verify", path)
    assert ran.code == 0, ran
    assert "erased on" in ran.out
    assert "book it" not in path.read_text(encoding="utf-8")


def test_a_request_whose_history_was_erased_is_named_not_rebuilt(thinned: Path) -> None:
    """What is left of it is there; the rest is a gap that says so. An erased request is an error that says why."""
    record = held(str(thinned), "ana").record()
    requests = [e.seq for e in record if isinstance(e.body, ModelRequested)]
    assert rebuild(record, requests[0]).gaps == ()
    gaps = rebuild(record, requests[-1]).gaps
    assert ("history", "some of it was erased") in {(gap.what, gap.why) for gap in gaps}
    assert all(gap.erased for gap in gaps)
    gone = next(e.seq for e in record if isinstance(e.body, Erased) and e.body.was == "model.requested")
    with pytest.raises(UsageError, match="was erased"):
        rebuild(record, gone)


def test_a_request_cannot_be_passed_off_as_erased(store: Path, cli: Cli) -> None:
    """Its receipt says so, but nothing on the record does."""
    db = sqlite3.connect(store)
    sql = """update entries set body=cast(replace(cast(body as text), '"units":', '"erased":true,"units":') as blob)
        where kind='model.requested'"""
    assert db.execute(sql).rowcount
    db.commit()
    db.close()
    ran = cli("record", "verify", store, "ana")
    assert ran.code == 1
    assert "it says that history was erased, no later entry does" in ran.out


FOLDING = """
from onrecord import Agent
from onrecord.testing import ScriptedModel
from onrecord.turn.moments import Hooks


class Counter:
    name, version, state, scope, unfinished = "counter", 1, int, "session", False
    kinds = frozenset({"turn.input", "note", "turn.closed", "history.changed"})

    def start(self):
        return 0

    def apply(self, state, entry):
        return state + 1


class Counting:
    name = "counting"

    def hooks(self, spec):
        return Hooks(folds=(Counter(),))


def agent():
    return Agent(ScriptedModel("a", "b", "c"), features=[Counting()])
"""


def test_states_of_features_verify_after_every_erasure(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropped with a message, kept by age, and gone on with afterwards: the record folds to them."""
    (tmp_path / "cli_erasing.py").write_text(FOLDING, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = Path("f.db")

    def talk(line: str) -> int | None:
        assert cli("chat", "cli_erasing.py", "--store", path, stdin=f"{line}\n").code == 0
        ran = cli("record", "verify", path, "--agent", "cli_erasing.py")
        assert ran.code == 0, ran
        session = stored(path)
        assert session is not None
        slot = session.slots.get("counter")
        return None if slot is None else int(bytes(slot.value))

    async def act(expire: bool) -> None:
        async with SqliteStore(path) as store:
            if expire:
                assert (await store.expire(Retention(entries=timedelta(0)))).entries
                return
            session = await store.load("default")
            assert session is not None
            first = session.conversation.messages[0].id
            assert (await store.erase(session.key, messages=[first], why="asked")).entries

    assert talk("one") == 2
    assert talk("two") == 4
    asyncio.run(act(expire=False))
    ran = cli("record", "verify", path, "--agent", "cli_erasing.py")
    assert ran.code == 0, ran
    assert talk("three") == 2
    asyncio.run(act(expire=True))
    ran = cli("record", "verify", path, "--agent", "cli_erasing.py")
    assert ran.code == 0, ran
    assert talk("four") == 4
