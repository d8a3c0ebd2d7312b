"""Flows under a host: silence and timers are rows of the inbox, and each fires once, whatever clocks and workers do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from onrecord.conversation.inputs import Happened, Said, Started, Woke
from onrecord.flows import Do, Flow, OnEvent, OnSilence, Say, Talk, Wait, WaitEvent
from onrecord.turn.options import Silenced
from tests.flows.playing import T0, after
from tests.flows.served import House, house

pytestmark = pytest.mark.integration

NUDGE = Flow(
    "nudge", on=[OnSilence("24h")],
    steps=[Talk("Pick the conversation up.", id="p1"), Wait("2d", id="w", else_="end"), Talk("Last try.", id="p2")],
)  # fmt: skip
REMIND = Flow("remind", steps=[Wait("1d", id="w", else_="thanks"), Say("Still there?", id="ask", then="end"),
                               Say("Good.", id="thanks")])  # fmt: skip
PAID = Flow("paid", steps=[WaitEvent("paid", id="w", up_to="3d", else_="late"), Say("Thanks.", id="ok", then="end"),
                           Do("notify", id="late", args={"text": "late"})])  # fmt: skip


@pytest.fixture(params=["memory", "sqlite"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where sessions are kept: in memory, or in a file."""
    return tmp_path / "flows.db" if request.param == "sqlite" else None


@asynccontextmanager
async def spoken(path: Path | None, *flows: Flow, **given: Any) -> AsyncIterator[House]:
    """A house in which the assistant answered session s1 at the beginning."""
    async with house(*flows, path=path, **given) as made:
        host = await made.opened()
        await host.turn("s1", Said("hi", key="m1"))
        await host.close()
        yield made


# ---- rows ------------------------------------------------------------------------------------------------------------


async def test_a_silence_is_a_row_of_the_inbox(path: Path | None) -> None:
    """Its key, its time and its session are those of the wake."""
    async with spoken(path, NUDGE) as made:
        host = await made.opened()
        key = f"silence:nudge:s1:{_ms(T0)}"
        (row,) = await host.pending("s1")
        assert (row.box, row.body, row.due) == ("in", Woke(key, at=after(hours=24)), after(hours=24))


async def test_a_silence_fires_once_after_a_restart(path: Path | None) -> None:
    """A host that begins later than the row was due takes it; one that begins after that finds nothing."""
    async with spoken(path, NUDGE) as made:
        made.clock.advance(hours=30)
        host = await made.opened()
        await made.quiet(host)
        first = await made.said(host)
        assert [key.rpartition(":")[0] for key, _ in first] == ["idle", f"nudge#{_ms(T0)}:p1"]
        await host.close()
        again = await made.opened()
        await made.later(again, hours=1)
        assert await made.said(again) == first


async def test_a_follow_up_waits_two_days_behind_the_first_word(path: Path | None) -> None:
    """Each of its waits survives a restart of its own, and it ends behind the last word."""
    async with spoken(path, NUDGE) as made:
        for hours in (24, 48):
            made.clock.advance(hours=hours)
            host = await made.opened()
            await made.quiet(host)
            await host.close()
        host = await made.opened()
        assert [key for key, _ in await made.said(host)][1:] == [f"nudge#{_ms(T0)}:p1:1", f"nudge#{_ms(T0)}:p2:1"]
        assert (await made.state(host)).runs == ()
        assert await made.wakes(host) == {}


async def test_a_timer_fires_once_with_two_workers(tmp_path: Path) -> None:
    """Twenty customers whose timers come due at one moment hear from one worker each, once."""
    async with house(REMIND, path=tmp_path / "flows.db") as made:
        one = await made.opened()
        sessions = [f"s{n}" for n in range(20)]
        for id in sessions:
            await one.turn(id, Started("remind", key="k"))
        two = await made.opened()
        made.clock.advance(days=1)
        await made.quiet(one)
        await made.quiet(two)
        for id in sessions:
            assert await made.said(one, id) == [("remind#k:ask:1", "Still there?")]
            assert len(await made.inputs(one, id)) == 2
        taken = [(await host.health()).taken for host in (one, two)]
        assert sum(taken) == 2 * len(sessions)


# ---- clocks that jump ------------------------------------------------------------------------------------------------


async def test_a_clock_that_jumps_ahead_fires_what_is_due_once(path: Path | None) -> None:
    """A month at once: the follow-up begins, and its next wait counts from when it did."""
    async with spoken(path, NUDGE, REMIND) as made:
        host = await made.opened()
        await host.turn("s1", Started("remind", key="k"))
        await made.later(host, days=30)
        keys = [key for key, _ in await made.said(host)]
        assert sorted(keys[1:]) == [f"nudge#{_ms(T0)}:p1:1", "remind#k:ask:1"]
        ahead = [due for key, due in (await made.wakes(host)).items() if key.startswith("nudge#")]
        assert ahead == [after(days=32)]


async def test_a_clock_that_goes_back_fires_nothing_early_and_nothing_again(path: Path | None) -> None:
    """What fired stays done when its time comes a second time; what did not waits until its time."""
    async with spoken(path, NUDGE) as made:
        host = await made.opened()
        await made.later(host, hours=24)
        said = await made.said(host)
        made.clock.advance(hours=-5)
        await made.quiet(host)
        await made.later(host, hours=5)
        assert await made.said(host) == said
        assert [*(await made.wakes(host)).values()] == [after(days=3)]
        made.clock.advance(days=-2)
        await made.later(host, days=3, hours=23)
        assert await made.said(host) == said
        await made.later(host, hours=1)
        assert len(await made.said(host)) == len(said) + 1


async def test_a_customer_who_writes_while_the_clock_is_behind_is_not_silent(path: Path | None) -> None:
    """The clock was set back an hour: the answer to them arms the silence anew, and the old one is gone."""
    async with spoken(path, NUDGE) as made:
        host = await made.opened()
        made.clock.advance(hours=-1)
        await host.turn("s1", Said("wait", key="m2"))
        assert [*(await made.wakes(host)).values()] == [after(hours=23)]
        await made.later(host, hours=24)
        assert [key for key, _ in await made.said(host)][2:] == [f"nudge#{_ms(after(hours=-1))}:p1:1"]
        await made.later(host, hours=2)
        assert len(await made.said(host)) == 3


# ---- rows that nobody needs any more ---------------------------------------------------------------------------------


async def test_a_new_silence_takes_the_place_of_the_old_one(path: Path | None) -> None:
    """However often they write and are answered, one row waits, counted from the last answer."""
    async with spoken(path, NUDGE) as made:
        host = await made.opened()
        for n in range(2, 6):
            made.clock.advance(hours=1)
            await host.turn("s1", Said("and?", key=f"m{n}"))
        assert [*(await made.wakes(host)).values()] == [after(hours=28)]


async def test_a_reply_takes_the_timer_it_answers_away(path: Path | None) -> None:
    """The run went on by the reply, so nothing is left to come."""
    async with house(REMIND, path=path, idle="silent") as made:
        host = await made.opened()
        await host.turn("s1", Started("remind", key="k"))
        assert [*(await made.wakes(host)).values()] == [after(days=1)]
        await host.turn("s1", Said("here", key="m1"))
        assert await made.wakes(host) == {}
        assert await made.said(host) == [("remind#k:thanks:1", "Good.")]


async def test_an_event_that_comes_takes_away_when_the_wait_gives_up(path: Path | None) -> None:
    """And one that does not come is given up once, at its time."""
    async with house(PAID, path=path, events=["paid"]) as made:
        host = await made.opened()
        for id in ("s1", "s2"):
            await host.turn(id, Started("paid", key="k"))
        await host.turn("s1", Happened("paid", key="e1"))
        assert await made.wakes(host, "s1") == {}
        await made.later(host, days=3)
        assert await made.said(host, "s1") == [("paid#k:ok:1", "Thanks.")]
        assert [key for key, _, _ in made.notified] == ["paid#k:late:1"]


async def test_a_run_that_ends_takes_its_timer_away(path: Path | None) -> None:
    """A newer event takes the place of one that has not begun, and its row that of the old row."""
    late = Flow("late", on=[OnEvent("moved", after="2h")], steps=[Say("Moved.", id="s")])
    async with house(late, path=path, events=["moved"]) as made:
        host = await made.opened()
        await host.turn("s1", Happened("moved", key="e1"))
        made.clock.advance(hours=1)
        await host.turn("s1", Happened("moved", key="e2"))
        assert await made.wakes(host) == {f"late#e2:start:{_ms(after(hours=3))}": after(hours=3)}
        await made.later(host, hours=2)
        assert await made.said(host) == [("late#e2:s:1", "Moved.")]


async def test_a_wake_that_a_queue_delivers_again_changes_nothing(path: Path | None) -> None:
    """By hand, twice, and for a session that never was: nobody waits for it, and nothing is filed."""
    async with spoken(path, REMIND) as made:
        host = await made.opened()
        await host.turn("s1", Started("remind", key="k"))
        fired = await made.fired(host, days=1)
        assert [m.key for m in fired.messages] == ["remind#k:ask:1"]
        entries = len(await made.entries(host))
        (woke,) = [one for one in await made.inputs(host) if isinstance(one, Woke)]
        for id, code in (("s1", "stale-wake"), ("s1", "stale-wake"), ("nobody", "no-session")):
            again = await host.turn(id, Woke(woke.key))
            assert (again.status, again.changed, again.outcomes[0].code) == ("ignored", False, code)
        assert len(await made.entries(host)) == entries
        assert await host.store.load("nobody") is None


async def test_the_rows_are_those_that_the_session_says_it_waits_for(path: Path | None) -> None:
    """So a queue that lost them is filled again from sessions alone."""
    async with spoken(path, NUDGE, REMIND, PAID, events=["paid"]) as made:
        host = await made.opened()
        for name in ("remind", "paid"):
            made.clock.advance(hours=1)
            await host.turn("s1", Started(name, key="k"))
        rows = await made.wakes(host)
        told = made.flows.pending_wakes(await made.session(host), now=made.clock.now())
        assert {wake.key: wake.at for wake in told} == rows
        assert len(rows) == 3
        assert await host.cancel_pending("s1") == 3
        for wake in told:
            await host.send("s1", Woke(wake.key, at=wake.at))
        await made.quiet(host)
        assert await made.wakes(host) == rows
        await made.later(host, hours=24)
        assert [key for key, _ in await made.said(host)] == ["idle:m1", f"nudge#{_ms(T0)}:p1:1", "remind#k:ask:1"]


async def test_a_customer_who_wrote_to_a_person_is_not_silent(path: Path | None) -> None:
    """While somebody else answers the assistant is silenced, but it hears: the row comes to nothing."""
    async with spoken(path, NUDGE) as made:
        host = await made.opened()
        made.clock.advance(hours=2)
        await host.turn("s1", Said("a person, please", key="m2"), options=[Silenced("a person answers")])
        fired = await made.fired(host, hours=22)
        assert (fired.status, fired.outcomes[0].code) == ("ignored", "silence-broken")
        assert await made.wakes(host) == {}


def _ms(at: Any) -> int:
    return int((at - T0) / timedelta(milliseconds=1)) + int(T0.timestamp() * 1000)
