"""Artifacts under a host, in files: tickets outlive the process, and nothing of them outlives their turn or person."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from onrecord import Agent, Given, Host
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.prompt import Artifacts, FileArtifacts
from onrecord.prompt.artifact_entries import ArtifactRefused
from onrecord.session import Retention
from onrecord.stores import SqliteArtifacts, SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from tests.host.hosting import hosted
from tests.prompt.placing import Spending, ticket
from tests.prompt.test_artifact_stores import traces
from tests.turn.acting import bodies, texts, tool

pytestmark = pytest.mark.integration

CANARY = b"canary-7Q-of-a-row"
GUEST = Identity(tenant="hotel", principal="guest-4711")  # of another tenant than the session's key
MAKES: dict[str, Any] = {"files": FileArtifacts, "sqlite": SqliteArtifacts}


class Desk:
    """A host over files, that can be begun again; its agents have tools that give long rows and one that counts."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind, self.clock = folder, kind, FakeEffects()

    @asynccontextmanager
    async def opened(self, *script: Any, below: bool = False) -> AsyncIterator[tuple[Host[Any, Any], Spending]]:
        kept = MAKES[self.kind](self.folder / "kept")
        spending = Spending(Artifacts(100, store=kept), result=[{"word": CANARY.decode()}] * 30)
        spending.model = ScriptedModel(*script)
        agent = spending.agent.with_(model=spending.model)
        if below:
            inner = agent.as_tool(id="ask", description="Asks.")
            agent = Agent(ScriptedModel([call("ask", message="?")], "done", "done"), tools=[inner])

        async def given(session: SessionKey, input: object) -> Given[Any]:
            return Given(owner=GUEST)

        async with (
            SqliteStore(self.folder / "talk.db", clock=self.clock.now) as store,
            hosted(agent, effects=self.clock, store=store, given=given) as host,
        ):
            yield host, spending
        if self.kind == "sqlite":
            await kept.close()

    def left(self) -> list[str]:
        """The files in which something of the rows is."""
        return traces(self.folder, CANARY)


@pytest.fixture(params=MAKES)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    """A desk with each kind of store."""
    return Desk(tmp_path, request.param)


async def test_a_ticket_is_spent_by_another_process(desk: Desk) -> None:
    """In a later turn of its session; in no other session, and not as somebody else's."""
    async with desk.opened([call("search")], "done") as (host, spending):
        await host.turn("s", "hi")
        ref = ticket(texts(spending.model.requests[1])[0])["ref"]
    script = [[call("count", rows=ref)], "done"]
    async with desk.opened(*script, *script) as (host, spending):
        assert (await host.turn("s", "how many?")).text == "done"
        assert texts(spending.model.requests[1])[-1] == "30 rows"
        result = await host.turn("other", "how many?")
        assert texts(spending.model.requests[3])[-1].startswith("Argument 'rows': nothing is stored under this ref.")
        assert [body.op for body in bodies(result, ArtifactRefused)] == ["get"]


@pytest.mark.parametrize("how", ["person", "session", "message", "age", "idle"])
async def test_nothing_outlives_what_it_came_from(desk: Desk, how: str) -> None:
    """Erased with a person, a session, a message, or by age: then it is in no file, sub-turns' neither."""
    async with desk.opened([call("search")], "done", below=how in {"session", "message", "idle"}) as (host, _):
        first = await host.turn("s", "hi")
        left = desk.left()
        assert left
        assert not [name for name in left if "talk" in name]  # a record has tickets, and no rows
        desk.clock.advance(days=2)
        if how == "person":
            await host.erase(GUEST, why="left")
        elif how == "session":
            await host.erase("s", why="asked")
        elif how == "message":
            assert first.session is not None
            await host.erase("s", messages=[first.session.conversation.messages[0].id], why="asked")
        elif how == "age":
            await host.expire(Retention(entries=timedelta(days=1)))
        else:
            await host.expire(Retention(sessions=timedelta(days=1)))
        assert desk.left() == []
    assert desk.left() == []


async def test_what_is_young_outlives_what_is_old(desk: Desk) -> None:
    """By age each goes in its time, and the ticket of today is still good."""
    script = [[call("search")], "done"]
    async with desk.opened(*script, *script, lambda request: [call("count", rows=_newest(request))], "done") as (
        host, spending,
    ):  # fmt: skip
        await host.turn("s", "hi")
        desk.clock.advance(days=2)
        await host.turn("s", "hi again")
        await host.expire(Retention(entries=timedelta(days=1)))
        await host.turn("s", "how many?")
        assert texts(spending.model.requests[-1])[-1] == "30 rows"


async def test_what_another_turn_stored_outlives_a_message(desk: Desk) -> None:
    """Erasing a message takes what its turn stored last; asked for once more, since nothing is left of it, all goes."""
    script = [[call("search")], "done"]
    async with desk.opened(*script, *script, lambda request: [call("count", rows=_newest(request))], "done") as (
        host, spending,
    ):  # fmt: skip
        first = await host.turn("s", "hi")
        second = await host.turn("s", "hi again")
        assert first.session is not None
        assert second.session is not None
        ids = [message.id for message in second.session.conversation.messages]
        erased = await host.erase("s", messages=[ids[0]], why="asked")
        assert erased.turns == (first.entries[0].turn,)
        await host.turn("s", "how many?")
        assert texts(spending.model.requests[-1])[-1] == "30 rows"
        await host.erase("s", messages=[ids[0]], why="asked again")
        assert desk.left() == []


def _newest(request: Any) -> str:
    return str(ticket(texts(request)[-1])["ref"])


async def test_a_damaged_file_costs_one_call_and_is_named_in_the_log(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """The model learns that it cannot be read, the record why, whoever runs this which file; the turn goes on."""
    async with desk.opened([call("search")], "done") as (host, spending):
        await host.turn("s", "hi")
        ref = ticket(texts(spending.model.requests[1])[0])["ref"]
    _overwrite(desk.folder / "kept")
    async with desk.opened([call("count", rows=ref)], "done") as (host, spending):
        with caplog.at_level(logging.WARNING, "onrecord.prompt"):
            result = await host.turn("s", "how many?")
        assert texts(spending.model.requests[1])[-1] == '{"error":"what was stored under this ref cannot be read"}'
        assert [(b.op, b.reason, b.ref) for b in bodies(result, ArtifactRefused)] == [("get", "artifact-damaged", ref)]
        assert "kept" in caplog.text
        assert CANARY.decode() not in caplog.text


def _overwrite(kept: Path) -> None:
    """Every stored byte of the rows becomes another one."""
    for path in [kept] if kept.is_file() else list(kept.rglob("*.data")):
        path.write_bytes(path.read_bytes().replace(CANARY, CANARY[::-1]))


async def test_parallel_calls_with_one_result_share_its_place(desk: Desk) -> None:
    """All are placed, under one ref."""
    model = ScriptedModel([call("look") for _ in range(8)], "done")
    kept = MAKES[desk.kind](desk.folder / "kept")
    look = tool("look", lambda *_: "x" * 500, read_only=True, concurrency_safe=True)
    result = await Agent(model, tools=[look], features=[Artifacts(100, store=kept)]).turn("hi")
    assert bodies(result, ArtifactRefused) == []
    assert len({ticket(text)["ref"] for text in texts(model.requests[1])}) == 1
    if desk.kind == "sqlite":
        await kept.close()
