"""Upkeep of a store's file: findings, and copies that are whole or not there."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.errors import StoreError
from onrecord.stores.sqlite import SqliteStore
from onrecord.stores.sqlite_upkeep import backup, faults_of, sessions_of
from onrecord.testing import ScriptedModel

pytestmark = pytest.mark.integration


async def fill(path: Path, *sessions: SessionKey | str) -> None:
    """One turn in each session."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(*["Good day."] * len(sessions)))
    async with SqliteStore(path) as store:
        for session in sessions:
            await store.commit((await agent.turn("hi", session=session)).change())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with three sessions of two tenants."""
    file = tmp_path / "talk.db"
    asyncio.run(fill(file, "ana", "bo", SessionKey("ana", tenant="hotel")))
    return file


def beside(path: Path) -> set[str]:
    """The files in its folder."""
    return {found.name for found in path.parent.iterdir()}


def test_a_whole_file_has_no_faults_and_every_session_is_named(path: Path) -> None:
    """Of every tenant, and without a change to the file."""
    before = path.read_bytes()
    assert faults_of(str(path)) == []
    assert sessions_of(str(path)) == [SessionKey("ana"), SessionKey("bo"), SessionKey("ana", tenant="hotel")]
    assert path.read_bytes() == before


def test_rows_that_belong_to_no_session_are_faults(path: Path) -> None:
    """Counted by table."""
    with sqlite3.connect(path) as connection:
        connection.execute("delete from sessions where id='bo'")
    connection.close()
    assert faults_of(str(path)) == ["2 messages belong to no session", "6 entries belong to no session"]


def test_pages_that_were_overwritten_are_faults(path: Path) -> None:
    """As SQLite's own check tells them, or by an error with a code."""
    raw = bytearray(path.read_bytes())
    raw[2 * 4096 : 2 * 4096 + 2000] = b"\x55" * 2000
    path.write_bytes(raw)
    try:
        found = faults_of(str(path))
    except StoreError as error:
        found = [error.code]
    assert found
    assert found != ["ok"]


def test_a_copy_is_the_store_and_tells_how_far_it_is(path: Path, tmp_path: Path) -> None:
    """It opens as a store; nothing else is left beside it."""
    told: list[tuple[int, int]] = []
    size = backup(str(path), str(tmp_path / "copy.db"), progress=lambda *at: told.append(at))
    assert size == (tmp_path / "copy.db").stat().st_size
    assert told[-1][0] == told[-1][1] > 0
    assert sessions_of(str(tmp_path / "copy.db")) == sessions_of(str(path))
    assert {name for name in beside(path) if "part" in name} == set()


def test_nothing_is_ever_overwritten(path: Path, tmp_path: Path) -> None:
    """Neither a file, nor the store itself, nor a link that leads nowhere."""
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("there", "talk.db", "link"):
        with pytest.raises(StoreError, match="already; it was not touched") as caught:
            backup(str(path), str(tmp_path / name))
        assert caught.value.code == "store-exists"
    assert (tmp_path / "there").read_text() == "mine"


def test_a_disk_without_hard_links_gets_its_copy_too(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And still nothing is overwritten there."""

    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    backup(str(path), str(tmp_path / "copy.db"))
    assert sessions_of(str(tmp_path / "copy.db")) == sessions_of(str(path))

    def taken(done: int, total: int) -> None:
        (tmp_path / "late.db").write_text("mine")

    with pytest.raises(StoreError) as caught:
        backup(str(path), str(tmp_path / "late.db"), progress=taken)
    assert caught.value.code == "store-exists"
    assert (tmp_path / "late.db").read_text() == "mine"


def test_a_copy_that_appears_meanwhile_is_not_overwritten(path: Path, tmp_path: Path) -> None:
    """Whoever is first keeps the name."""

    def taken(done: int, total: int) -> None:
        (tmp_path / "copy.db").write_text("mine")

    with pytest.raises(StoreError) as caught:
        backup(str(path), str(tmp_path / "copy.db"), progress=taken)
    assert caught.value.code == "store-exists"
    assert (tmp_path / "copy.db").read_text() == "mine"


def test_a_copy_that_fails_leaves_nothing(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged source, a folder that is not there, and an interruption half-way."""
    with pytest.raises(StoreError, match="cannot be written"):
        backup(str(path), str(tmp_path / "none" / "copy.db"))

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    before = beside(path)
    with pytest.raises(KeyboardInterrupt):
        backup(str(path), str(tmp_path / "copy.db"), progress=stop)
    with sqlite3.connect(path) as connection:
        connection.execute("pragma writable_schema=on")
        connection.execute("update sqlite_master set rootpage=3 where name='entries'")
    connection.close()
    with pytest.raises(StoreError, match="not whole"):
        backup(str(path), str(tmp_path / "copy.db"))
    assert {name for name in beside(path) - before if not name.startswith("talk.db-")} == set()


def test_what_is_no_store_is_not_copied(tmp_path: Path) -> None:
    """Nor is a missing one made."""
    (tmp_path / "x.txt").write_text("hello")
    for name, code in (("x.txt", "store-foreign"), ("none.db", "store-unreachable")):
        with pytest.raises(StoreError) as caught:
            backup(str(tmp_path / name), str(tmp_path / "copy.db"))
        assert caught.value.code == code
    assert beside(tmp_path / "x") == {"x.txt"}


def test_a_copy_is_one_moment_while_others_write(path: Path, tmp_path: Path) -> None:
    """Every session of the copy is whole, and the writer is not held up for ever."""
    asyncio.run(fill(path, *(f"s{n}" for n in range(40))))
    stop, wrote = threading.Event(), list[int]()

    def write() -> None:
        n = 0
        while not stop.is_set():
            asyncio.run(fill(path, f"w{n}"))
            n += 1
        wrote.append(n)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for n in range(5):
            backup(str(path), str(tmp_path / f"copy{n}.db"))
    finally:
        stop.set()
        writer.join()
    assert wrote[0] > 0
    for n in range(5):
        copy = tmp_path / f"copy{n}.db"
        assert faults_of(str(copy)) == []
        assert asyncio.run(_all_load(copy)) >= 43


async def _all_load(path: Path) -> int:
    async with SqliteStore(path) as store:
        keys = await store.sessions()
        for key in keys:
            session = await store.load(key)
            assert session is not None
            assert len([entry async for entry in store.entries(key)]) == session.seq
        return len(keys) + len(await store.sessions(tenant="hotel"))
