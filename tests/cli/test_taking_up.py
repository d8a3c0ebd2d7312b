"""What a chat takes up before its prompt: what an earlier one left in the boxes of its session."""

from __future__ import annotations

import asyncio
import signal
from datetime import UTC, datetime

import pytest

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said, Woke
from onrecord.conversation.outgoing import Outgoing
from onrecord.session.inbox import Row
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import ScriptedModel
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.cli.test_talk import chat
from tests.turn.directing import Directed

pytestmark = pytest.mark.integration


def test_what_an_earlier_chat_left_is_taken_up_first() -> None:
    """Messages that may not have been seen, then inputs that were accepted, then what is due, then the prompt."""
    store, key, now = MemoryStore(), SessionKey("s"), datetime.now(UTC)

    async def leave() -> None:
        for row in (
            Row(session=key, box="out", key="a", body=Outgoing(key="a", text="Earlier.", media="map.png")),
            Row(session=key, box="in", key="said::k", body=Said("first", key="k")),
            Row(session=key, box="in", key="said::p", body=Said((Text("parts"),), key="p")),
            Row(session=key, box="in", key="woke::w", body=Woke("w"), due=now),
            Row(session=key, box="in", key="said::unkeyed", body=Said("unkeyed")),
        ):
            await store.put(row)

    async def direct(turn: Turn, stage: Stage) -> None:
        await stage.say(f"({turn.input.__struct_config__.tag})", key="1")

    asyncio.run(leave())
    _, shown = chat(Agent(ScriptedModel(), director=Directed(direct)), "hi", store=store, live=False)
    lines = shown.splitlines()
    going_on = "  going on with what was asked before the interruption:"
    assert lines[1:4] == ["  not known to have been shown yet:", "Earlier.", "  [map.png]"]
    assert lines[4:10] == [going_on, "> first", "(said)", going_on, "> parts", "(said)"]
    assert sorted(lines[10:]) == ["(said)", "(said)", "(woke)"]
    assert asyncio.run(store.rows("in")) == asyncio.run(store.rows("out")) == []


def test_a_delayed_message_that_streamed_is_not_shown_again_when_it_is_due() -> None:
    """The person has read it: it is crossed off, whenever it would have been due."""

    async def direct(turn: Turn, stage: Stage) -> None:
        await stage.say("In a while.", key="1", after_ms=60_000)

    store = MemoryStore()
    _, shown = chat(Agent(ScriptedModel(), director=Directed(direct)), "hi", store=store, live=False)
    assert shown.endswith("In a while.\n")
    assert asyncio.run(store.rows("out")) == []


def test_ctrl_c_stops_a_turn_that_began_by_itself() -> None:
    """A wake that takes too long is stopped like a reply."""

    async def direct(turn: Turn, stage: Stage) -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()  # for good: only the signal ends it

    store = MemoryStore()
    asyncio.run(store.put(Row(session=SessionKey("s"), box="in", key="woke::w", body=Woke("w"))))
    talk, _ = chat(Agent(ScriptedModel(), director=Directed(direct)), store=store)
    assert talk.session is not None
    assert talk.session.interruptions
    assert asyncio.run(store.rows("in")) == []
