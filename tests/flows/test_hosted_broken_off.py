"""A timer whose turn breaks off: nothing of the turn counts, so the timer comes again. Nobody else would send it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Input, Interruption, Said, Started, Woke
from onrecord.errors import MessageDenied, TurnError
from onrecord.flows import Do, Flow, Ok, Say, Talk, Wait
from onrecord.governance.rules import on_input
from onrecord.host import Given, Host
from onrecord.jsonio import Json
from onrecord.record.kinds import TurnFailed, TurnInterrupted
from onrecord.tools.tool import Tool, ToolContext
from onrecord.turn.moments import Allow, Hooks
from tests.flows.playing import after
from tests.flows.served import House, house

pytestmark = pytest.mark.integration

REMIND = Flow("remind", steps=[Wait("1d", id="w"), Talk("Remind them.", id="ask"), Say("Bye.", id="bye")])


@pytest.fixture(params=["memory", "sqlite"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where sessions are kept: in memory, or in a file."""
    return tmp_path / "flows.db" if request.param == "sqlite" else None


class Flaky:
    """A feature that fails before every request, until it is mended."""

    name = "flaky"

    def __init__(self) -> None:
        self.broken = True

    def hooks(self, spec: Any) -> Hooks:
        return Hooks(on_request=self.request)

    async def request(self, turn: Any, request: Any) -> Any:
        """Called before every request."""
        if self.broken:
            raise OSError
        return request


async def failures(made: House, host: Host[Any, str]) -> list[str]:
    """The codes of the turns of session s1 that failed."""
    return [e.body.code for e in await made.entries(host) if isinstance(e.body, TurnFailed)]


async def test_a_timer_whose_turn_failed_comes_again(path: Path | None) -> None:
    """A feature was broken for six minutes: the run waits on, and goes on by the third firing."""
    flaky = Flaky()
    async with house(REMIND, path=path, agent={"features": [flaky]}) as made:
        host = await made.opened()
        await host.turn("s1", Started("remind", key="k"))
        await made.later(host, days=1)
        assert await failures(made, host) == ["feature-failed"]
        assert [row.due for row in await host.pending("s1")] == [after(days=1, minutes=1)]
        assert (await made.state(host)).runs[0].status == "waiting"
        await made.later(host, minutes=1)
        assert [row.due for row in await host.pending("s1")] == [after(days=1, minutes=6)]
        flaky.broken = False
        await made.later(host, minutes=5)
        assert [key for key, _ in await made.said(host)] == ["remind#k:ask:1", "remind#k:bye:1"]
        assert (await made.state(host)).runs == ()
        assert await host.pending("s1") == []


async def test_a_timer_that_fails_for_hours_is_set_aside_where_it_can_be_seen(path: Path | None) -> None:
    """After its last rung the row is parked, with its reason; made due again, it fires."""
    flaky = Flaky()
    async with house(REMIND, path=path, agent={"features": [flaky]}) as made:
        host = await made.opened(retry=(60, 300))
        await host.turn("s1", Started("remind", key="k"))
        for minutes in (24 * 60, 1, 5):
            await made.later(host, minutes=minutes)
        (row,) = await host.pending("s1")
        assert (row.dead, await failures(made, host)) == ("feature-failed", ["feature-failed"] * 3)
        await made.later(host, days=1)
        assert len(await failures(made, host)) == 3
        flaky.broken = False
        assert await host.store.revive("in", "s1") == 1
        await made.quiet(host)
        assert [key for key, _ in await made.said(host)] == ["remind#k:ask:1", "remind#k:bye:1"]


async def test_who_sent_the_timer_by_hand_is_told_why_it_failed(path: Path | None) -> None:
    """And it comes again all the same."""
    flaky = Flaky()
    async with house(REMIND, path=path, agent={"features": [flaky]}) as made:
        host = await made.opened()
        await host.turn("s1", Started("remind", key="k"))
        with pytest.raises(TurnError) as told:
            await made.fired(host, days=1)
        assert told.value.code == "feature-failed"
        assert len(await made.wakes(host)) == 1


async def test_a_rule_that_could_not_judge_a_timer_does_not_lose_it(path: Path | None) -> None:
    """A rule that raises denies; once it works again the timer passes."""
    away = [True]

    @on_input
    async def gate(turn: Any, input: Any) -> Any:
        if isinstance(input, Woke) and away[0]:
            raise ConnectionError
        return Allow()

    async with house(REMIND, path=path, agent={"features": [gate]}) as made:
        host = await made.opened()
        await host.turn("s1", Started("remind", key="k"))
        with pytest.raises(MessageDenied):
            await made.fired(host, days=1)
        away[0] = False
        await made.later(host, minutes=1)
        assert len(await made.said(host)) == 2


LATER = Flow("later", steps=[Wait("1d", id="w"), Do("slow", id="d"), Say("Done.", id="s")])


def slow(gate: asyncio.Event) -> Tool:
    """An action that takes its time, unless the context is calm."""

    async def run(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
        gate.set()
        await asyncio.sleep(0 if ctx.context == "calm" else 30)
        return Ok()

    return Tool("slow", run, read_only=True)


async def test_a_timer_whose_turn_was_stopped_comes_again(path: Path | None) -> None:
    """Somebody talks over it: what it had begun does not count, so the run still waits, and goes on a minute later."""
    gate, context = asyncio.Event(), ["busy"]

    async def given(session: SessionKey, input: Input) -> Given[str]:
        return Given(context=context[0])

    async with house(LATER, path=path, actions=[slow(gate)]) as made:
        host = await made.opened(given=given)
        await host.turn("s1", Started("later", key="k"))
        made.clock.advance(days=1)
        await gate.wait()
        assert await host.interrupt("s1", Interruption(id="i1", cause="barge-in")) == "recorded"
        assert [row.due for row in await host.pending("s1")] == [after(days=1, minutes=1)]
        assert sum(isinstance(e.body, TurnInterrupted) for e in await made.entries(host)) == 1
        context[0] = "calm"
        await made.later(host, minutes=1)
        assert [key for key, _ in await made.said(host)] == ["later#k:s:1"]


async def test_a_timer_that_its_sender_takes_back_while_it_runs_does_not_come_again(path: Path | None) -> None:
    """Taken back is taken back."""
    gate = asyncio.Event()
    async with house(LATER, path=path, actions=[slow(gate)]) as made:
        host = await made.opened()
        await host.turn("s1", Started("later", key="k"))
        (key,) = await made.wakes(host)
        ticket = await host.send("s1", Woke(key))
        made.clock.advance(days=1)
        await gate.wait()
        assert await ticket.cancel()
        assert (await ticket.result()).status == "interrupted"
        assert await host.pending("s1") == []


async def test_a_message_whose_turn_failed_does_not_come_again(path: Path | None) -> None:
    """Its sender was told, and can send it again."""
    flaky = Flaky()
    async with house(REMIND, path=path, agent={"features": [flaky]}) as made:
        host = await made.opened()
        with pytest.raises(TurnError):
            await host.turn("s1", Said("hi", key="m1"))
        assert await host.pending("s1") == []
