"""``onrecord store``: a file is checked, brought up to date and copied; nothing of a conversation is shown."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.cli.main import main
from onrecord.cli.store_files import ADDED
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said
from onrecord.session.inbox import Row
from onrecord.stores.sqlite import SqliteStore
from onrecord.stores.sqlite_schema import _SCHEMAS, APPLICATION_ID, SCHEMA_VERSION, schema_version
from onrecord.testing import ScriptedModel
from tests.cli.agents import Cli, Terminal, entries_of

pytestmark = pytest.mark.integration


def changed(path: Path, *statements: str) -> None:
    """The file as somebody left it who does not keep to the rules."""
    connection = sqlite3.connect(path, isolation_level=None)
    for sql in statements:
        connection.execute(sql)
    connection.close()


def made_older(path: Path) -> None:
    """The file as the first onrecord would have written it."""
    changed(path, "pragma wal_checkpoint(truncate)")
    newer = path.rename(path.with_name("newer.db"))
    older = sqlite3.connect(path, isolation_level=None)
    older.execute(f"attach '{newer}' as newer")
    for sql in (f"pragma application_id={APPLICATION_ID}", "pragma user_version=1", *_SCHEMAS[1]):
        older.execute(sql)
    for table in ("sessions", "messages", "entries"):
        columns = ",".join(name for _, name, *_ in older.execute(f"pragma main.table_info({table})"))
        older.execute(f"insert into main.{table}({columns}) select {columns} from newer.{table}")  # noqa: S608 - names of the schema
    older.close()
    newer.unlink()


async def accepted(path: Path, *, parked: str = "", tenant: str = "") -> None:
    """A message that waits, or that was set aside."""
    async with SqliteStore(path) as store:
        key = SessionKey("ana", tenant=tenant)
        await store.put(Row(session=key, box="in", key="said::1", body=Said("secret words", key="1")))
        if parked:
            (row,) = await store.lease("in", "w", ttl=60)
            await store.park(row, why=parked)


# ---- check -----------------------------------------------------------------------------------------------------------


def test_a_good_store_is_told_in_four_lines(store: Path, cli: Cli) -> None:
    """The file, its sessions, its rows, and that all is well."""
    entries = len(entries_of(store, "ana")) + len(entries_of(store, "bo"))
    asyncio.run(accepted(store))
    ran = cli("store", "check", store)
    assert ran.code == 0, ran
    assert ran.out.splitlines() == [
        f"store {store}",
        "ok   the file is whole, with schema 2",
        f"ok   2 sessions with {entries} entries decode, fold and verify",
        "ok   1 row in and 0 out can be taken as they are",
        "all is well",
    ]


def test_sessions_of_every_tenant_are_checked(store: Path, cli: Cli) -> None:
    """And a gap names whose session it is."""

    async def fill() -> None:
        agent: Agent[Any, Any] = Agent(ScriptedModel("Good day."))
        async with SqliteStore(store) as opened:
            result = await agent.turn("hi", session=SessionKey("ana", tenant="hotel"))
            await opened.commit(result.change())

    asyncio.run(fill())
    changed(store, "delete from entries where place=(select max(place) from entries)")
    ran = cli("store", "check", store)
    assert ran.code == 1
    assert "NOT  3 sessions" in ran.out
    assert "session 'ana' of 'hotel': " in ran.out
    assert "ends too early" in ran.out


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("update messages set body='{' where place=(select min(place) from messages)", "does not decode"),
        ("update sessions set state=replace(cast(state as text), '\"seq\"', '\"sqe\"')", "not of one version"),
        ("delete from sessions where id='bo'", "messages belong to no session"),
        ("update rows set body='{'", "does not decode"),
        ("update rows set owner='w'", "an owner without a lease"),
        ("update rows set clean=3", "given back 3 times and leased 0 times"),
        ("update rows set dead='x', owner='w', lease_until=1", "it is parked and leased"),
        ("update rows set key=''", "it has no key"),
    ],
)
def test_each_thing_that_is_wrong_is_found(store: Path, cli: Cli, sql: str, told: str) -> None:
    """With the place and the exit code 1; what was said is not quoted."""
    asyncio.run(accepted(store))
    changed(store, sql)
    ran = cli("store", "check", store)
    assert ran.code == 1
    assert told in ran.out
    assert "not well: 1 of the checks above failed" in ran.out
    assert "secret" not in ran.out + ran.err


def test_parked_rows_are_worth_knowing_and_no_fault(store: Path, cli: Cli) -> None:
    """They wait for somebody to decide."""
    asyncio.run(accepted(store, parked="model-quota"))
    ran = cli("store", "check", store)
    assert ran.code == 0
    assert "?    1 row parked: onrecord inbox list --parked says why" in ran.out


def test_a_lease_that_ran_out_is_worth_knowing_and_no_fault(store: Path, cli: Cli) -> None:
    """Its worker died; another takes over."""
    asyncio.run(accepted(store))
    changed(store, "update rows set owner='w', attempt=1, lease_until=1")
    ran = cli("store", "check", store)
    assert ran.code == 0
    assert "?    1 lease ran out: the next worker takes over" in ran.out


def test_a_file_that_cannot_be_read_any_more_is_told(store: Path, cli: Cli) -> None:
    """Its header is whole, and nothing behind it."""
    changed(store, "pragma wal_checkpoint(truncate)")
    raw = store.read_bytes()
    store.write_bytes(raw[:4096] + b"\x55" * (len(raw) - 4096))
    ran = cli("store", "check", store)
    assert ran.code == 1
    assert "NOT  the file is whole" in ran.out
    assert "NOT  sessions and rows can be read" in ran.out


STATEFUL = """
from onrecord import Agent
from onrecord.testing import ScriptedModel
from onrecord.turn.moments import Hooks


class Turns:
    name, version, state = "turns", 1, int
    kinds, scope, unfinished = frozenset({"turn.opened"}), "session", False

    def start(self):
        return 0

    def apply(self, state, entry):
        return state + 1


class Counts:
    name = "turns"

    def hooks(self, spec):
        return Hooks(folds=(Turns(),))


agent = Agent(ScriptedModel("x", "y"), features=[Counts()])
"""


def test_states_of_features_are_checked_where_the_agent_is_named(tmp_path: Path, cli: Cli) -> None:
    """Without it they are told as not checked; a wrong one is found."""
    (tmp_path / "counting.py").write_text(STATEFUL)
    namespace: dict[str, Any] = {}
    exec(STATEFUL, namespace)  # noqa: S102  # the text of a test agent
    path = tmp_path / "talk.db"

    async def fill() -> None:
        async with SqliteStore(path) as opened:
            await opened.commit((await namespace["agent"].turn("hi", session="ana")).change())

    asyncio.run(fill())
    assert "?    not checked: the state of 'turns'" in cli("store", "check", path).out
    agent = f"{tmp_path / 'counting.py'}:agent"
    assert "not checked" not in cli("store", "check", path, "--agent", agent).out
    changed(path, """update sessions set state=replace(cast(state as text), '"value":1', '"value":2')""")
    ran = cli("store", "check", path, "--agent", agent)
    assert ran.code == 1
    assert "the state of feature 'turns' is not what the record folds to" in ran.out


def test_an_older_file_is_checked_as_a_file_and_left_as_it_is(store: Path, cli: Cli) -> None:
    """Opening it would bring it up to date, and a check changes nothing."""
    made_older(store)
    ran = cli("store", "check", store)
    assert ran.code == 0
    assert "schema 1 is an older one: onrecord store migrate" in ran.out
    assert schema_version(str(store)) == 1


def test_a_newer_file_is_refused_with_what_to_do(store: Path, cli: Cli) -> None:
    """By every command that opens it."""
    changed(store, "pragma user_version=99")
    for command in ("check", "migrate"):
        ran = cli("store", command, store)
        assert ran.code == 1
        assert "has schema 99" in ran.err
        assert "update onrecord" in ran.err
    assert {found.name for found in store.parent.iterdir() if "schema" in found.name} == set()


# ---- migrate and backup ----------------------------------------------------------------------------------------------


def test_an_older_file_is_brought_up_to_date_and_kept_as_it_was(store: Path, cli: Cli) -> None:
    """The copy beside it still has the old schema; the second time there is nothing to do."""
    made_older(store)
    ran = cli("store", "migrate", store)
    assert ran.code == 0, ran
    copy = Path(f"{store}.schema-1")
    assert f"copied to {copy} (" in ran.out
    assert f"{store} had schema 1 and has schema 2" in ran.out
    assert (schema_version(str(store)), schema_version(str(copy))) == (2, 1)
    assert cli("store", "check", store).code == 0
    assert "nothing to do" in cli("store", "migrate", store).out


def test_every_schema_says_what_it_brought() -> None:
    """A new one needs its line."""
    assert sorted(ADDED) == list(range(2, SCHEMA_VERSION + 1))


def test_a_file_is_not_migrated_without_a_copy(store: Path, cli: Cli) -> None:
    """Where the copy cannot be written, the file stays as it is."""
    made_older(store)
    taken = store.with_name("taken")
    taken.write_text("mine")
    ran = cli("store", "migrate", store, "--copy", taken)
    assert ran.code == 1
    assert "already; it was not touched" in ran.err
    assert (schema_version(str(store)), taken.read_text()) == (1, "mine")


def test_a_backup_is_a_store_with_the_same_sessions(store: Path, cli: Cli, tmp_path: Path) -> None:
    """It says where it is and how large; a second one of that name is refused."""
    copy = tmp_path / "copy.db"
    ran = cli("store", "backup", store, copy)
    assert ran.code == 0, ran
    assert ran.out.startswith(f"{store} copied to {copy} (")
    assert cli("record", "verify", copy, "ana").code == 0
    again = cli("store", "backup", store, copy)
    assert again.code == 1
    assert "hint: give the copy a name that is free" in again.err


def test_a_terminal_sees_how_far_a_copy_is(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, which is taken back."""
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("onrecord.stores.sqlite_upkeep._PAGES_AT_ONCE", 3)
    assert main(["store", "backup", str(store), str(tmp_path / "copy.db")]) == 0
    assert "page 3 of " in screen.getvalue()
    assert f"\r\x1b[K{store} copied" in screen.getvalue().replace("\n", " ")


@pytest.mark.parametrize("command", [("store", "check"), ("store", "migrate"), ("inbox", "list"), ("inbox", "retry")])
def test_what_is_no_store_is_wrong_usage_and_stays_as_it_is(tmp_path: Path, cli: Cli, command: tuple[str, ...]) -> None:
    """Nor is a file made where there is none."""
    text = tmp_path / "x.txt"
    text.write_text("hello")
    ran = cli(*command, text)
    assert ran.code == 2
    assert "is no store" in ran.err
    ran = cli(*command, tmp_path / "none.db")
    assert ran.code == 2
    assert [found.name for found in tmp_path.iterdir()] == ["x.txt"]
