"""Toolsets that keep something open for each session: when a host tells them to let go (loop-cases D61)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import OfferContext, StaticTools, gated, holders, named_source, prefixed
from tests.host.hosting import hosted, settled
from tests.turn.pausing.asking import approve

pytestmark = pytest.mark.integration


class Held:
    """Keeps something for each session that asked for its tools."""

    name = "held"

    def __init__(self, *tools: Tool) -> None:
        self._tools = tools
        self.opened: list[SessionKey | None] = []
        self.left: list[SessionKey] = []
        self.closed = 0
        self.stuck = False

    async def tools(self, ctx: OfferContext, /) -> Sequence[Tool]:
        if ctx.session not in self.opened:
            self.opened.append(ctx.session)
        return self._tools

    async def leave(self, session: SessionKey, /) -> None:
        if self.stuck:
            await asyncio.Event().wait()
        self.left.append(session)

    async def aclose(self) -> None:
        if self.stuck:
            raise OSError("secret detail")
        self.closed += 1


A, B = SessionKey("a"), SessionKey("b")


async def test_d61_what_is_kept_for_a_session_is_let_go_when_the_session_is() -> None:
    """Not when a turn ends, which would open it anew each time: when another session took its place."""
    held = Held()
    agent = Agent(ScriptedModel("one", "two", "three"), tools=[held])
    async with hosted(agent, hot=1) as host:
        await host.turn("a", "hi")
        await host.turn("a", "again")
        assert (held.opened, held.left) == ([A], [])
        await host.turn("b", "hi")
        await settled(lambda: held.left == [A])
        assert held.closed == 0
    assert (held.left, held.closed) == ([A], 1)


async def test_d61_a_paused_turn_lets_nothing_go() -> None:
    """The answer goes on where the turn stood. An erased session is let go."""
    held = Held(Tool("pay", lambda *_: "paid"))
    agent = Agent(ScriptedModel(call("pay"), "done"), tools=[held], features=[approve("pay")])
    async with hosted(agent) as host:
        paused = await host.turn("a", "pay")
        assert (paused.status, held.left) == ("paused", [])
        await host.erase("a", why="asked to")
        await settled(lambda: held.left == [A])


async def test_d61_one_that_does_not_let_go_in_time_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Five seconds are its budget, here less. It is told, in our words, and holds up nobody."""
    monkeypatch.setattr("onrecord.host.open_toolsets.CLOSING_S", 0.05)
    held = Held()
    agent = Agent(ScriptedModel("one", "two", "three"), tools=[held])
    with caplog.at_level(logging.WARNING, "onrecord.host"):
        async with hosted(agent, hot=1) as host:
            await host.turn("a", "hi")
            held.stuck = True
            await host.turn("b", "hi")
            assert (await host.turn("b", "again")).text == "three"
            await settled(lambda: "did not let go" in caplog.text)
    assert [(record.getMessage(), getattr(record, "code", "")) for record in caplog.records] == [
        ("Held 'held' did not let go in 0.05 s", "toolset-close-timeout"),
        ("Held 'held' could not let go: OSError", "OSError"),
    ]


async def test_toolsets_of_sub_agents_belong_to_the_session_above() -> None:
    """They are asked with its name, and told with it."""
    held = Held()
    below = Agent(ScriptedModel("sub"), name="below", tools=[gated(held, lambda *_: True)])
    agent = Agent(ScriptedModel(call("below", message="x"), "done", "more"), tools=[below.as_tool()])
    async with hosted(agent, hot=1) as host:
        await host.turn("a", "hi")
        assert held.opened == [A]
        await host.turn("b", "hi")
        await settled(lambda: held.left == [A])
    assert held.closed == 1


def test_wrapped_toolsets_are_found_once() -> None:
    """Whatever is around them; what keeps nothing open is none of them."""
    held = Held()
    wrapped = [prefixed(gated(held, lambda *_: True), "x_"), held, StaticTools([]), gated([], lambda *_: True)]
    assert holders(wrapped) == (held,)
    assert [named_source(one) for one in wrapped] == ["Held 'held'", "Held 'held'", "StaticTools", "_Gated"]


async def test_what_a_sub_agent_s_session_keeps_open_is_kept_for_the_one_above() -> None:
    """Also in a turn that is taken in it by itself."""
    held = Held()
    below = Session(key=SessionKey("a/c0", tenant="t"), parent="a", digest_key="k")
    await Agent(ScriptedModel("one"), tools=[held]).turn("hi", session=below)
    assert held.opened == [SessionKey("a", tenant="t")]
