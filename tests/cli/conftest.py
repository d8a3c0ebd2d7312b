"""What tests of the command line share: the command itself, and a store that a chat left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import approved
from onrecord.conversation.outgoing import TextDelta
from onrecord.session.session import Session
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel
from tests.cli.agents import ASKING, Cli, Ran, run


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command in this process."""

    def ran(*arguments: str | Path, stdin: str = "") -> Ran:
        return run(capsys, monkeypatch, *arguments, stdin=stdin)

    return ran


async def _fill(path: Path) -> None:
    """Two sessions: one with a rule, a question, an answer and an interruption, one with a single message."""
    namespace: dict[str, Any] = {}
    exec(ASKING, namespace)  # noqa: S102  # the text of a test agent
    agent: Agent[Any, Any] = namespace["agent"]
    effects = FakeEffects()
    async with SqliteStore(path) as store:
        session: Session | str = "ana"
        for line in ("hello", "book it"):
            result = await agent.turn(line, session=session, effects=effects)
            session = await store.commit(result.change())
        assert isinstance(session, Session)
        assert session.question is not None
        effects.advance(minutes=5)
        answer = approved(session.question, by="boss", note="fine")
        result = await agent.turn(answer, session=session, effects=effects)
        session = await store.commit(result.change())
        stream = agent.turn_stream("linger", session=session, effects=effects)
        async for delta in stream:
            if isinstance(delta, TextDelta):
                break
        await stream.leave()
        await store.commit((await stream.result()).change())
        plain: Agent[Any, Any] = Agent(ScriptedModel("Good day."), name="Other", instructions="Greet.")
        await store.commit((await plain.turn("hi", session="bo", effects=effects)).change())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store's file with the sessions of `_fill`."""
    path = tmp_path / "talk.db"
    asyncio.run(_fill(path))
    return path


@pytest.fixture
def exported(store: Path, cli: Cli, tmp_path: Path) -> Path:
    """The record of ``ana``, exported."""
    path = tmp_path / "ana.jsonl"
    assert cli("record", "export", store, "ana", "-o", path).code == 0
    return path
