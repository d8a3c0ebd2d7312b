"""Flows under a host: what turns that start by themselves are given, and that a host and a caller come to the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Happened, Input, Said, Woke
from onrecord.flows import (
    Anchor,
    Branch,
    Chain,
    Claims,
    Collect,
    Do,
    Flow,
    FlowOptions,
    If,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Say,
    Talk,
    Wait,
)
from onrecord.host import Given
from onrecord.session import Session, pack, unpack
from onrecord.testing import FakeEffects, shown
from onrecord.turn.options import Silenced
from onrecord.turn.result import TurnResult
from tests.flows.playing import T0, after, says
from tests.flows.served import House, Talkative, house

pytestmark = pytest.mark.integration

MINE = Flow(
    "mine", on=[OnSilence("24h", only_if=lambda ctx: ctx.context["mine"])], steps=[Say("{{context.name}}?", id="s")]
)
ONCE = Flow("once", anchor="customer", on=[OnSilence("24h")], steps=[Say("Still there?", id="s")])


def giving(*given: Given[Any]) -> tuple[Callable[[SessionKey, Input], Awaitable[Given[Any]]], list[Input]]:
    """A ``given`` that gives these, one take after the other, then the last one; and what it was asked for."""
    left, asked = list(given), list[Input]()

    async def give(session: SessionKey, input: Input) -> Given[Any]:
        asked.append(input)
        return left.pop(0) if len(left) > 1 else left[0]

    return give, asked


# ---- given -----------------------------------------------------------------------------------------------------------


async def test_a_silence_sees_the_context_of_its_own_moment() -> None:
    """Whose customer it is was asked again when the silence was over, and the line names them as they are then."""
    give, asked = giving(Given(context={"mine": True, "name": "Ann"}), Given(context={"mine": True, "name": "Bob"}))
    async with house(MINE) as made:
        host = await made.opened(given=give)
        await host.turn("s1", Said("hi", key="m1"))
        await made.later(host, hours=24)
        assert [text for _, text in await made.said(host)][1:] == ["Bob?"]
        assert [type(one) for one in asked] == [Said, Woke]


async def test_a_condition_that_has_become_false_stops_a_silence() -> None:
    """Somebody else has taken the customer over meanwhile."""
    give, _ = giving(Given(context={"mine": True, "name": ""}), Given(context={"mine": False, "name": ""}))
    async with house(MINE) as made:
        host = await made.opened(given=give)
        await host.turn("s1", Said("hi", key="m1"))
        assert len(await made.wakes(host)) == 1
        await made.later(host, hours=24)
        assert len(await made.said(host)) == 1


async def test_a_context_that_cannot_be_had_is_asked_for_again() -> None:
    """The application's database was away: the timer's row waits its rung, and fires once it is back."""
    calls: list[datetime] = []

    async def give(session: SessionKey, input: Input) -> Given[Any]:
        calls.append(made.clock.now())
        if isinstance(input, Woke) and len(calls) < 4:
            raise ConnectionError
        return Given(context={"mine": True, "name": "Ann"})

    async with house(MINE) as made:
        host = await made.opened(given=give, retry=(60, 300, 900))
        await host.turn("s1", Said("hi", key="m1"))
        await made.later(host, hours=24)
        assert len(await made.said(host)) == 1
        await made.later(host, minutes=1)
        assert len(await made.said(host)) == 1
        await made.later(host, minutes=5)
        assert [text for _, text in await made.said(host)][1:] == ["Ann?"]


async def test_claims_of_other_sessions_stop_a_silence_at_its_time() -> None:
    """The customer was followed up elsewhere between the arming and the firing."""
    customer = {"customer": "c1"}
    held = Claims(held={"once:c1:": after(hours=20)})
    give, _ = giving(
        Given(options=(FlowOptions(anchors=customer),)), Given(options=(FlowOptions(anchors=customer, claims=held),))
    )
    async with house(ONCE) as made:
        host = await made.opened(given=give)
        await host.turn("s1", Said("hi", key="m1"))
        fired = await made.fired(host, hours=24)
        assert [(line.code, line.about["anchor"]) for line in fired.skipped] == [("already-claimed", "c1")]
        assert fired.messages == ()


async def test_a_customer_who_wrote_elsewhere_is_not_silent() -> None:
    """The anchor says when they last wrote, in whatever session."""
    wrote = Anchor("c1", last_inbound_at=after(hours=23))
    give, _ = giving(
        Given(options=(FlowOptions(anchors={"customer": "c1"}),)),
        Given(options=(FlowOptions(anchors={"customer": wrote}),)),
    )
    async with house(ONCE) as made:
        host = await made.opened(given=give)
        await host.turn("s1", Said("hi", key="m1"))
        fired = await made.fired(host, hours=24)
        assert (fired.status, fired.outcomes[0].code) == ("ignored", "silence-broken")


async def test_one_customer_is_followed_up_once_in_two_sessions() -> None:
    """Each session is given what the others claimed, and the second one holds back."""
    claims: dict[str, datetime] = {}

    async def give(session: SessionKey, input: Input) -> Given[Any]:
        return Given(options=(FlowOptions(anchors={"customer": "c1"}, claims=Claims(held=claims)),))

    async with house(ONCE) as made:
        host = await made.opened(given=give)
        for id in ("s1", "s2"):
            await host.turn(id, Said("hi", key="m1"))
            made.clock.advance(hours=1)
        for id, hours in (("s1", 22), ("s2", 1)):
            for line in (await made.fired(host, id, hours=hours)).started:
                claims[str(line.about["dedupe_key"])] = made.clock.now()
        assert [*claims] == ["once:c1:"]
        assert [len(await made.said(host, id)) for id in ("s1", "s2")] == [2, 1]


async def test_options_sent_with_a_message_stand_over_those_given() -> None:
    """They are kept with its row, whichever host takes it; others are filled in."""
    give, _ = giving(Given(options=(Silenced("closed"), FlowOptions(anchors={"customer": "c1"}))))
    ask = Flow("ask", anchor="customer", on=[OnMessage("a")], steps=[Say("Yes?", id="s")])
    async with house(ask, idle="silent") as made:
        host = await made.opened(given=give)
        sent = await host.turn("s1", Said("a", key="m1"), options=[FlowOptions(anchors={"customer": "c2"})])
        assert [(line.code, line.about["anchor"]) for line in sent.skipped] == [("silenced", "c2")]


async def test_a_history_is_shown_to_a_turn_that_starts_by_itself() -> None:
    """The application keeps conversations itself: the model reads those."""
    nudge = Flow("nudge", on=[OnSilence("24h")], steps=[Talk("Pick it up.", id="p1")])
    kept = [{"role": "user", "content": "A room, please"}, {"role": "assistant", "content": "For when?"}]
    give, _ = giving(Given(history=kept))
    async with house(nudge) as made:
        host = await made.opened(given=give)
        await host.turn("s1", Said("hi", key="m1"))
        await made.later(host, hours=24)
        seen: Any = shown(made.model.requests[-1])
        assert [one["content"] for one in seen["messages"]] == ["A room, please", "For when?"]
        assert [key for key, _ in await made.said(host)][1:] == [f"nudge#{int(T0.timestamp() * 1000)}:p1:1"]


# ---- a host and a caller ---------------------------------------------------------------------------------------------

BOOK = Flow(
    "book", on=[OnMessage("wants a room")],
    steps=[
        Collect("name", "company", id="who", prompt="Ask who they are.", branches=[Branch("is angry", then="sorry")]),
        Wait("5s", id="soon"), Collect("ok", id="sure", question="Shall I book, {{data.name}}?"),
        If({"equals": {"ok": True}}, id="if", else_="end"), Do("notify", id="n", args={"text": "{{data.name}}"}),
        Say("Booked.", id="done", then=Chain("survey")), Say("Sorry.", id="sorry", then="end"),
    ],
)  # fmt: skip
SURVEY = Flow("survey", steps=[Wait("1d", id="w", else_="end"), Talk("Ask how it was.", id="how")])
RIVAL = Flow(
    "rival", on=[OnMention("names a rival", repeat="always", extract={"who": {"type": "string"}})],
    steps=[Do("notify", id="n", args={"text": "{{input.who}}"})],
)  # fmt: skip
SHIPPED = Flow("shipped", on=[OnEvent("shipped", after="1h")], steps=[Say("On its way.", id="s", once=True)])
NUDGE = Flow(
    "nudge", on=[OnSilence("24h", repeat="always")],
    steps=[Talk("Pick it up.", id="p1"), Wait("2d", id="w", else_="end"), Talk("Last try.", id="p2")],
)  # fmt: skip
FLOWS = (BOOK, SURVEY, RIVAL, SHIPPED, NUDGE)

Step = tuple[float, Input | str, Mapping[str, Any] | None, list[Any]]
"""Hours before it, the input or the beginning of a wake's key, and what the model judges and says: all of it."""

STORY: tuple[Step, ...] = (
    (0, Said("A room, and Zeta is cheaper", key="m1"),
     {"flows": {"book": 90}, "mentions": {"rival": True}, "extract": {"rival": {"who": "Zeta"}}}, [says("Your name?")]),
    (1, Said("Rui. And the price?", key="m2"), {"fields": {"name": "Rui"}, "asks": True}, [says("420. Your company?")]),
    (1, Happened("shipped", key="e1"), None, []),
    (1, "shipped#e1:start:", None, []),
    (1, Said("Acme. Is there a pool?", key="m3"), {"fields": {"company": "Acme"}, "asks": True},
     [says("There is.")]),
    (0.5, Said("Acme. Is there a pool?", key="m3"), None, []),
    (24, "silence:nudge:", None, [says("Hello again?")]),
    (3, Said("Yes, book it", key="m4"), {"fields": {}}, [says("Good.", ok=True)]),
    (24, "survey#", None, [says("How was it?")]),
    (24, "silence:nudge:", None, [says("Still there?")]),
    (24, "silence:nudge:", None, []),
    (24, "nudge#", None, [says("Last word.")]),
    (24, "silence:nudge:", None, [says("Anybody?")]),
    (1, Said("Stop writing", key="m5"), None, [says("As you like.")]),
)  # fmt: skip


class Alone:
    """A caller that keeps its session as JSON, and its timers in a list."""

    def __init__(self, made: House) -> None:
        self.agent, self.flows, self.clock, self.model = made.agent, made.flows, FakeEffects(T0), Talkative()
        self.agent = made.agent.with_(model=self.model)
        self.kept: bytes | None = None
        self.timers: dict[str, datetime] = {}

    async def take(self, hours: float, input: Input | str, judge: Any, speak: list[Any]) -> TurnResult[Any]:
        """One turn at its time; what it leaves is kept."""
        self.clock.advance(hours=hours)
        self.model.given(judge, speak)
        if isinstance(input, str):
            (key,) = (key for key in self.timers if key.startswith(input))
            assert self.timers.pop(key) <= self.clock.at
            input = Woke(key)
        held: Session | str = "s1" if self.kept is None else unpack(self.kept)
        result = await self.agent.turn(input, session=held, effects=self.clock)
        if result.changed:
            assert result.session is not None
            self.kept = pack(result.session)
        for wake in result.wakes:
            self.timers.pop(wake.replaces or "", None)
            self.timers[wake.key] = wake.at
        for gone in result.disarmed:
            self.timers.pop(gone, None)
        return result


async def served(made: House, host: Any, hours: float, input: Input | str, judge: Any, speak: list[Any]) -> Any:
    """The same turn under a host, whose timers come by themselves."""
    made.model.given(judge, speak)
    if not isinstance(input, str):
        made.clock.advance(hours=hours)
        return await host.turn("s1", input)
    (key,) = [key for key in await made.wakes(host) if key.startswith(input)]
    ticket = await host.send("s1", Woke(key))
    made.clock.advance(hours=hours)
    return await ticket.result()


@pytest.mark.parametrize("kept", ["memory", "sqlite"])
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_host_and_a_caller_come_to_the_same_turn_by_turn(kept: str, tmp_path: Path, *, restarts: bool) -> None:
    """Keys, texts, delays, timers, lines, fields, runs and claims, also when the host is another one for each turn."""
    path = tmp_path / "flows.db" if kept == "sqlite" else None
    async with house(*FLOWS, path=path, events=["shipped"]) as made:
        alone, host = Alone(made), await made.opened()
        for hours, input, judge, speak in STORY:
            if restarts:
                await host.close()
                host = await made.opened()
            theirs = await alone.take(hours, input, judge, speak)
            ours = await served(made, host, hours, input, judge, speak)
            assert _told(ours) == _told(theirs), input
            assert (made.model.left, alone.model.left) == (0, 0), input
            mine = await made.session(host)
            assert alone.kept is not None
            assert _kept(made, mine) == _kept(made, unpack(alone.kept))
            assert await made.wakes(host) == alone.timers
        assert [key for key, _, _ in made.notified] == 2 * ["rival#m1:n:1"] + 2 * ["book#m1:n:1"]
        assert len(await made.said(host)) == 13


def _told(result: TurnResult[Any]) -> Any:
    return (
        result.status, result.changed, result.text, result.messages, result.wakes, result.lines, result.llm_calls,
        result.disarmed,
    )  # fmt: skip


def _kept(made: House, session: Session) -> Any:
    """What of a session does not name its turns, which the host numbers and a caller does not."""
    state = made.flows.state(session)
    texts = [getattr(message, "text", "") for message in session.conversation.messages]
    return (
        replace(state, held=None), dict(session.data), session.inputs, texts, session.last_user_at,
        session.last_assistant_at, session.seq,
    )  # fmt: skip
