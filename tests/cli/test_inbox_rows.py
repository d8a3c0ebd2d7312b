"""``onrecord inbox``: rows are listed, tried again and deleted, and what they hold is never shown."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from onrecord.cli.main import main
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said, Woke
from onrecord.conversation.outgoing import Outgoing
from onrecord.session.inbox import Row
from onrecord.stores.sqlite import SqliteStore
from tests.cli.agents import Cli, Terminal

pytestmark = pytest.mark.integration

BIRD = "canary-7f3a91"
ANA, HOTEL = SessionKey("ana"), SessionKey("ana", tenant="hotel")


def said(key: str, session: SessionKey = ANA) -> Row:
    """A message that waits."""
    return Row(session=session, box="in", key=f"said::{key}", body=Said(BIRD, key=key))


async def _fill(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.put(said("parked", SessionKey("bo")))
        (row,) = await store.lease("in", "old", ttl=60)
        await store.park(row, why="model-quota")
        await store.put(said("taken", HOTEL))
        await store.lease("in", "worker-1", ttl=600)
        await store.put(said("waits"))
        at = datetime.now(UTC) + timedelta(hours=5, minutes=1)
        await store.put(Row(session=ANA, box="in", key="woke::tick", body=Woke("tick", at=at, payload=BIRD), due=at))
        out = Outgoing(key="m1", text=BIRD)
        await store.put(Row(session=ANA, box="out", key="m1", body=out))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Five rows: parked, leased, waiting, sleeping, and one to deliver."""
    file = tmp_path / "talk.db"
    asyncio.run(_fill(file))
    return file


@pytest.fixture
def keys(path: Path, cli: Cli) -> Callable[[], list[tuple[str, bool]]]:
    """The rows there are: keys, and whether they are parked."""

    def read() -> list[tuple[str, bool]]:
        lines = cli("inbox", "list", path, "--json").out.splitlines()
        return sorted((row["key"], bool(row["parked"])) for row in map(json.loads, lines))

    return read


def test_each_row_is_a_line_with_its_state(path: Path, cli: Cli) -> None:
    """Which box, whose, which key, when it is due, who has it, why it was set aside."""
    ran = cli("inbox", "list", path)
    assert ran.code == 0, ran
    lines = [re.sub(r"due \d+ s ago", "due now", line) for line in ran.out.splitlines()]
    assert lines == [
        f"4 rows in, 1 row out, 1 parked, in {path}",
        "  in   bo           said::parked  parked: model-quota, 1 attempt",
        "  in   ana (hotel)  said::taken   leased by worker-1 for 9 min, 1 attempt",
        "  in   ana          said::waits   due now",
        "  in   ana          woke::tick    due in 5 h",
        "  out  ana          m1            due now",
    ]


@pytest.mark.parametrize(("rung", "told"), [(1, "failed once"), (3, "failed 3 times")])
def test_how_often_a_row_failed_is_said_in_words(tmp_path: Path, cli: Cli, rung: int, told: str) -> None:
    """Beside the attempts, which count crashes too."""
    path = tmp_path / "talk.db"

    async def fail() -> None:
        async with SqliteStore(path) as store:
            await store.put(said("waits"))
            (row,) = await store.lease("in", "worker-1", ttl=60)
            await store.again(row, due=datetime.now(UTC) + timedelta(hours=5, minutes=1), rung=rung)

    asyncio.run(fail())
    assert cli("inbox", "list", path).out.splitlines()[1].endswith(f"due in 5 h, 1 attempt, {told}")


def test_rows_are_chosen_by_session_tenant_box_and_state(path: Path, cli: Cli) -> None:
    """A session without a tenant is that of no tenant."""

    def listed(*chosen: str) -> list[str]:
        lines = cli("inbox", "list", path, *chosen, "--json").out.splitlines()
        return [json.loads(line)["key"] for line in lines]

    assert listed("ana") == ["said::waits", "woke::tick", "m1"]
    assert listed("ana", "--tenant", "hotel") == listed("--tenant", "hotel") == ["said::taken"]
    assert listed("--box", "out") == ["m1"]
    assert listed("--parked") == ["said::parked"]
    assert listed("nobody") == []


def test_json_tells_every_field_but_what_the_row_holds(path: Path, cli: Cli) -> None:
    """For programs that watch a store."""
    (row,) = map(json.loads, cli("inbox", "list", path, "--tenant", "hotel", "--json").out.splitlines())
    assert datetime.fromisoformat(row.pop("due")) <= datetime.now(UTC)
    assert datetime.fromisoformat(row.pop("lease_until")) > datetime.now(UTC)
    assert row == {
        "box": "in", "tenant": "hotel", "session": "ana", "key": "said::taken", "n": 2, "kind": "said", "attempt": 1,
        "clean": 0, "rung": 0, "retry_at": None, "floor": None, "owner": "worker-1", "told_to_stop": False,
        "parked": "",
    }  # fmt: skip


def test_what_rows_hold_is_never_shown(path: Path, cli: Cli) -> None:
    """By no command, and by none that fails."""
    for command in (["list"], ["list", "--json"], ["drop"], ["retry", "--key", "x"], ["retry"], ["drop", "--yes"]):
        ran = cli("inbox", command[0], path, *command[1:])
        assert BIRD not in ran.out + ran.err


def test_parked_rows_are_tried_again(path: Path, cli: Cli, keys: Callable[[], list[tuple[str, bool]]]) -> None:
    """All of them, or those named; then nothing is parked."""
    ran = cli("inbox", "retry", path)
    assert (ran.code, ran.out) == (0, "1 row of session 'bo' can be taken again\n")
    assert ("said::parked", False) in keys()
    assert cli("inbox", "retry", path).out == "nothing is parked\n"


def test_a_key_that_no_row_has_is_wrong_usage(path: Path, cli: Cli) -> None:
    """The nearest one is offered."""
    ran = cli("inbox", "retry", path, "--key", "said::parkd")
    assert ran.code == 2
    assert "no row has the key 'said::parkd'" in ran.err
    assert "did you mean 'said::parked'?" in ran.err


def test_rows_are_deleted_but_for_those_that_are_taken(
    path: Path, cli: Cli, keys: Callable[[], list[tuple[str, bool]]]
) -> None:
    """Named ones, parked ones, or all."""
    assert cli("inbox", "drop", path, "ana", "--key", "said::waits", "--yes").out == "1 row deleted\n"
    assert cli("inbox", "drop", path, "--parked", "--yes").out == "1 row deleted\n"
    assert [key for key, _ in keys()] == ["m1", "said::taken", "woke::tick"]
    assert cli("inbox", "drop", path, "--yes").out == "2 rows deleted; 1 stay, since a worker has them\n"
    assert keys() == [("said::taken", False)]
    assert cli("inbox", "drop", path, "bo", "--yes").out == "there is nothing to delete\n"


def test_nothing_is_deleted_unasked(path: Path, cli: Cli, keys: Callable[[], list[tuple[str, bool]]]) -> None:
    """Without a terminal and without --yes it is wrong usage."""
    before = keys()
    ran = cli("inbox", "drop", path)
    assert ran.code == 2
    assert "4 rows (1 parked) of 2 sessions would be deleted" in ran.err
    assert "--yes" in ran.err
    assert keys() == before


@pytest.mark.parametrize(("answer", "left"), [("y\n", 1), ("\n", 5), ("no\n", 5), ("", 5)])
def test_at_a_terminal_it_asks(
    path: Path, keys: Callable[[], list[tuple[str, bool]]], monkeypatch: pytest.MonkeyPatch, answer: str, left: int
) -> None:
    """Only a yes deletes."""
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdin", Terminal(answer))
        patch.setattr("sys.stdout", Terminal())
        assert main(["inbox", "drop", str(path)]) == 0
    assert len(keys()) == left
