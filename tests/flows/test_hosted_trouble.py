"""Flows under a host when something goes wrong: models that fail, people who are asked, replays, erasing, delays."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from onrecord.conversation.inputs import Ask, Interruption, Said, Started, approved
from onrecord.conversation.messages import UserMessage
from onrecord.errors import ModelError, UsageError
from onrecord.flows import Chain, Collect, Do, Failed, Flow, Ok, OnMessage, OnSilence, Say, Talk, Wait
from onrecord.flows.state import FlowState
from onrecord.host import Caller
from onrecord.jsonio import Json
from onrecord.record.kinds import TurnOpened
from onrecord.session import refold
from onrecord.session.working import Folds
from onrecord.testing import raises, reply
from onrecord.tools.tool import Tool, ToolContext
from tests.flows.playing import after, ends, keys, lines, said_by, says
from tests.flows.served import House, house

pytestmark = pytest.mark.integration

ROOM = Flow("room", on=[OnMessage("wants a room")],
            steps=[Collect("name", "company", id="who"), Say("Bye, {{data.name}}.", id="bye")])  # fmt: skip
OTHER = Flow("other", on=[OnMessage("asks for the bill")], steps=[Talk("Bring it.", id="t")])
NUDGE = Flow("nudge", on=[OnSilence("24h")], steps=[Talk("Pick it up.", id="p1")])


@pytest.fixture(params=["memory", "sqlite"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where sessions are kept: in memory, or in a file."""
    return tmp_path / "flows.db" if request.param == "sqlite" else None


# ---- models that fail ------------------------------------------------------------------------------------------------


async def test_a_message_that_could_not_be_understood_is_taken_again(path: Path | None) -> None:
    """Nothing of the first try is stored; the second, a minute later, has the keys that the first would have had."""
    async with house(ROOM, OTHER, path=path) as made:
        host = await made.opened()
        made.model.given(raises("overload"), [])
        with pytest.raises(ModelError):
            await host.turn("s1", Said("a room", key="m1"))
        assert await host.store.load("s1") is None
        (row,) = await host.pending("s1")
        assert (row.key, row.due, row.rung) == ("said::m1", after(minutes=1), 1)
        made.model.given({"flows": {"room": 90}, "fields": {"name": "Rui"}}, [says("Your company?")])
        await made.later(host, minutes=1)
        assert await made.said(host) == [("room#m1:who:1", "Your company?")]
        assert (await made.session(host)).data == {"name": "Rui"}


async def test_a_message_not_understood_lets_no_later_one_pass(path: Path | None) -> None:
    """The customer's second message waits behind the first, and both are answered in order."""
    async with house(ROOM, OTHER, path=path) as made:
        host = await made.opened()
        made.model.given(raises("overload"), [])
        with pytest.raises(ModelError):
            await host.turn("s1", Said("a room", key="m1"))
        made.model.given({"flows": {"room": 90}}, [says("Your name?")])
        made.model.given({"fields": {"name": "Rui"}}, [says("Your company?")])
        await host.turn("s1", Said("Rui", key="m2"))
        assert [(await made.said(host))[n][0] for n in (0, 1)] == ["room#m1:who:1", "room#m1:who:1/2"]


async def test_an_answer_that_failed_comes_later_by_a_timer_of_its_own(path: Path | None) -> None:
    """The turn is stored, the customer's message is in it, and the answer has the key it would have had."""
    async with house(ROOM, path=path) as made:
        host = await made.opened()
        made.model.given(None, [raises("overload")])
        deferred = await host.turn("s1", Said("a room", key="m1"))
        assert (deferred.status, keys(deferred)) == ("deferred", [])
        ((key, due),) = (await made.wakes(host)).items()
        assert (key.rpartition(":")[0], due) == ("room#m1:who:1:retry", after(minutes=1))
        await host.close()
        host = await made.opened()
        made.model.given(None, [raises("overload")])
        await made.later(host, minutes=1)
        assert [*(await made.wakes(host)).values()] == [after(minutes=6)]
        await made.later(host, minutes=5)
        assert [key for key, _ in await made.said(host)] == ["room#m1:who:1"]
        assert await made.wakes(host) == {}


async def test_a_customer_who_writes_meanwhile_gets_that_answer_and_its_timer_goes(path: Path | None) -> None:
    """One answer for both messages, and nothing more when the time of the retry comes."""
    async with house(ROOM, path=path) as made:
        host = await made.opened()
        made.model.given(None, [raises("overload")])
        await host.turn("s1", Said("a room", key="m1"))
        made.model.given({"fields": {}}, [])
        answered = await host.turn("s1", Said("hello?", key="m2"))
        assert keys(answered) == ["room#m1:who:1"]
        assert await made.wakes(host) == {}
        await made.later(host, minutes=1)
        assert len(await made.said(host)) == 1


async def test_six_failures_end_the_run_and_leave_no_timer(path: Path | None) -> None:
    """A minute, five, fifteen, an hour and six hours apart."""
    async with house(ROOM, path=path) as made:
        host = await made.opened()
        made.model.given(None, [raises("overload")] * 6)
        await host.turn("s1", Said("a room", key="m1"))
        for minutes in (1, 5, 15, 60, 360):
            await made.later(host, minutes=minutes)
        ended = [line for line in await made.lines(host) if line.status == "ended"]
        assert [(line.code, line.about["run_id"]) for line in ended] == [("failed", "room#m1")]
        assert (await made.state(host)).runs == ()
        assert await made.wakes(host) == {}
        assert made.model.left == 0


# ---- streams ---------------------------------------------------------------------------------------------------------


async def test_a_streamed_turn_reads_as_its_message(path: Path | None) -> None:
    """Deltas hold no trace of the envelope, and the result is that of any turn."""
    async with house(ROOM, path=path) as made:
        host = await made.opened()
        made.model.given({"fields": {}}, [reply('{"name": null, "mess', 'age": "Your na', 'me?", "company": null}')])
        async with host.turn_stream("s1", Said("a room", key="m1")) as stream:
            deltas = [text async for text in stream.text]
            result = await stream.result()
        assert deltas == ["Your na", "me?"]
        assert said_by(result) == [("Your name?", "ai", "room#m1:who:1")]
        assert result.session is not None
        assert made.flows.state(result.session) == await made.state(host)


async def test_a_stream_that_breaks_ends_with_its_result(path: Path | None) -> None:
    """Nothing is raised: the answer is deferred, its words are in no message, and they come whole a minute later."""
    async with house(ROOM, path=path) as made:
        host = await made.opened()
        made.model.given({"fields": {}}, [reply('{"message": "Your na', raises("network"))])
        async with host.turn_stream("s1", Said("a room", key="m1")) as stream:
            deltas = [text async for text in stream.text]
            result = await stream.result()
        assert (deltas, result.status, keys(result)) == (["Your na"], "deferred", [])
        assert [(line.status, line.code) for line in result.outcomes] == [("deferred", "provider-unavailable")]
        made.model.given(None, [says("Your name?")])
        await made.later(host, minutes=1)
        assert await made.said(host) == [("room#m1:who:1", "Your name?")]


# ---- people who are asked --------------------------------------------------------------------------------------------


def paying(ran: list[str]) -> Tool:
    """An action that a person of the staff has to agree to."""

    async def pay(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Any:
        given = await ctx.ask(Ask("Give it back?", audience="staff"))
        ran.append(ctx.key)
        return Ok("paid") if given.approved else Failed("declined")

    return Tool("pay", pay)


REFUND = Flow(
    "refund", on=[OnMessage("wants money back")], steps=[Do("pay", id="p"), Say("Done.", id="s", then=Chain("survey"))]
)
SURVEY = Flow("survey", steps=[Wait("1d", id="w"), Talk("Ask how it was.", id="how")])


async def test_a_question_inside_a_flow_is_answered_by_its_audience_after_a_restart(tmp_path: Path) -> None:
    """Not by the customer; by the staff, at another host, days later. The run comes back to the same visit."""
    ran: list[str] = []
    staff = Caller("Ana", audiences=frozenset({"staff"}))
    async with house(REFUND, SURVEY, path=tmp_path / "flows.db", actions=[paying(ran)]) as made:
        first = await made.opened()
        paused = await first.turn("s1", Said("money back", key="m1"))
        assert paused.status == "paused"
        await first.close()
        made.clock.advance(days=2)
        host = await made.opened()
        question = (await made.session(host)).question
        assert question is not None
        with pytest.raises(UsageError) as told:
            await host.answer("s1", approved(question, by="the customer"))
        assert (told.value.code, ran) == ("not-the-audience", [])
        done = await host.answer("s1", approved(question, by="ana"), caller=staff)
        assert (ran, keys(done)) == (["refund#m1:p:1"], ["refund#m1:s:1"])
        assert [*(await made.wakes(host)).values()] == [after(days=3)]
        again = await host.answer("s1", approved(question, by="ana"), caller=staff)
        assert (again.status, len(ran)) == ("ignored", 1)


async def test_timers_of_other_runs_fire_while_a_person_is_asked(tmp_path: Path) -> None:
    """And the answer then finds the run where it waits."""
    ran: list[str] = []
    async with house(REFUND, SURVEY, path=tmp_path / "flows.db", actions=[paying(ran)]) as made:
        host = await made.opened()
        await host.turn("s1", Started("survey", key="k"))
        await host.turn("s1", Said("money back", key="m1"))
        await made.later(host, days=1)
        assert [key for key, _ in await made.said(host)] == ["survey#k:how:1"]
        question = (await made.session(host)).question
        assert question is not None
        done = await host.answer("s1", approved(question, by="a"), caller=Caller("a", audiences=frozenset({"staff"})))
        assert (ran, keys(done)) == (["refund#m1:p:1"], ["refund#m1:s:1"])


# ---- replays ---------------------------------------------------------------------------------------------------------


async def test_a_message_that_comes_twice_is_answered_once(path: Path | None) -> None:
    """While it waits, while it runs, and after it was answered: one turn, one message out."""
    async with house(ROOM, path=path) as made:
        host = await made.opened(deliver=made.deliver)
        twice = await asyncio.gather(*(host.turn("s1", Said("a room", key="m1")) for _ in range(3)))
        again = await host.turn("s1", Said("a room", key="m1"))
        assert {keys(result)[0] for result in twice} == {"room#m1:who:1"}
        assert (again.status, again.lines[0].code) == ("ignored", "duplicate-input")
        await made.quiet(host)
        assert [m.key for m in made.out] == ["room#m1:who:1"]
        assert sum(isinstance(e.body, TurnOpened) for e in await made.entries(host)) == 1


async def test_a_start_that_comes_twice_starts_once(path: Path | None) -> None:
    """The claim with the host's key says so, also long after the row is gone."""
    async with house(SURVEY, path=path) as made:
        host = await made.opened()
        await host.turn("s1", Started("survey", key="signup:1"))
        await made.later(host, days=2)
        again = await host.turn("s1", Started("survey", key="signup:1"))
        assert [line.code for line in again.skipped] == ["already-claimed"]
        assert len(await made.said(host)) == 1


# ---- messages out ----------------------------------------------------------------------------------------------------


async def test_an_answer_and_its_fixed_question_are_both_delivered(path: Path | None) -> None:
    """They have keys of their own, so a channel that drops keys it has seen drops neither."""
    sure = Flow("sure", on=[OnMessage("books")], steps=[Collect("ok", id="q", question="Shall I book?")])
    async with house(sure, path=path) as made:
        host = await made.opened(deliver=made.deliver)
        made.model.given({"asks": True}, [says("It costs 420.")])
        await host.turn("s1", Said("what does it cost?", key="m1"))
        await made.quiet(host)
        assert [(m.key, m.text, m.kind) for m in made.out] == [
            ("sure#m1:q:1", "It costs 420.", "ai"), ("sure#m1:q:1/2", "Shall I book?", "verbatim"),
        ]  # fmt: skip


async def test_a_short_wait_delays_its_message_in_the_outbox(path: Path | None) -> None:
    """The first one leaves at once, the second five seconds later, however late the third was said."""
    slow = Flow("slow", steps=[Say("One.", id="a"), Wait("5s", id="w"), Say("Two.", id="b", after_ms=500),
                               Say("Three.", id="c")])  # fmt: skip
    async with house(slow, path=path) as made:
        host = await made.opened(deliver=made.deliver)
        await host.turn("s1", Started("slow", key="k"))
        await made.quiet(host)
        assert [m.text for m in made.out] == ["One."]
        await made.later(host, seconds=5)
        assert [m.text for m in made.out] == ["One."]
        await made.later(host, seconds=0.5)
        assert [m.text for m in made.out] == ["One.", "Two.", "Three."]


# ---- what is let go --------------------------------------------------------------------------------------------------


async def running(made: House) -> Any:
    """A host with a session in which one flow asks, one waits, and a silence is armed."""
    host = await made.opened()
    await host.turn("s1", Started("survey", key="k"))
    made.model.given({"flows": {"room": 90}, "fields": {"name": "Rui"}}, [says("Your company?")])
    await host.turn("s1", Said("a room, I am Rui", key="m1"))
    assert {run.flow_id: run.status for run in (await made.state(host)).runs} == {"survey": "waiting", "room": "asking"}
    assert len(await made.wakes(host)) == 2
    return host


async def test_an_erased_session_has_no_runs_no_claims_and_no_timers(path: Path | None) -> None:
    """What was claimed is free again, and the first message of the customer begins anew."""
    async with house(ROOM, OTHER, SURVEY, NUDGE, path=path) as made:
        host = await running(made)
        erasure = await host.erase("s1", why="asked for it")
        assert (erasure.sessions, erasure.rows) == (1, 2)
        session = await made.session(host)
        assert (made.flows.state(session).runs, made.flows.state(session).claims, session.data) == ((), {}, {})
        await made.later(host, days=3)
        assert await made.said(host) == []
        made.model.given({"flows": {"room": 90}}, [says("Your name?")])
        assert keys(await host.turn("s1", Said("a room", key="m1"))) == ["room#m1:who:1"]
        assert "Rui" not in str(await made.entries(host))


async def test_when_a_turn_is_erased_flows_begin_anew(path: Path | None) -> None:
    """A store cannot tell whose state holds what was said: runs and claims go, and their timers come to nothing."""
    async with house(ROOM, OTHER, SURVEY, NUDGE, path=path) as made:
        host = await running(made)
        first = next(m for m in (await made.session(host)).conversation.messages if isinstance(m, UserMessage))
        await host.erase("s1", messages=[first.id], why="asked for it")
        session = await made.session(host)
        assert (made.flows.state(session), session.data) == (FlowState(), {})
        folds = Folds(made.agent.plan.folds.all)
        again = refold(session.key, await made.entries(host), folds, digest_key=session.digest_key)
        assert made.flows.state(again) == FlowState()
        await made.later(host, days=3)
        assert (await made.said(host), await host.pending("s1")) == ([], [])
        made.model.given({"flows": {"room": 90}}, [says("Your name?")])
        assert keys(await host.turn("s1", Said("a room", key="m2"))) == ["room#m2:who:1"]


async def test_a_reset_lets_every_run_and_claim_go(path: Path | None) -> None:
    """Timers that were armed before come to nothing, and every flow may begin again."""
    async with house(ROOM, OTHER, SURVEY, NUDGE, path=path) as made:
        host = await running(made)
        await host.reset("s1", by="ana")
        state = await made.state(host)
        assert (state.runs, state.claims) == ((), {})
        said = await made.said(host)
        await made.later(host, days=3)
        assert await made.said(host) == said
        assert await made.wakes(host) == {}
        made.model.given({"flows": {"room": 90}}, [says("Your name?")])
        again = await host.turn("s1", Said("a room", key="m2"))
        assert lines(again) == [("who", "collect", "ok", None)]
        assert ends(again) == []


async def test_a_turn_that_is_interrupted_leaves_flows_as_they_were(path: Path | None) -> None:
    """A newer message stops it before it is answered: nothing was begun, and the newer one begins it."""
    gate = asyncio.Event()

    async def waits(args: Mapping[str, Json], ctx: ToolContext[Any]) -> Ok:
        gate.set()
        await asyncio.sleep(30)
        return Ok()

    slow = Flow("slow", on=[OnMessage("a")], steps=[Do("wait", id="d"), Say("Done.", id="s")])
    async with house(slow, path=path, actions=[Tool("wait", waits, read_only=True)], idle="silent") as made:
        host = await made.opened()
        first = await host.send("s1", Said("a", key="m1"))
        await gate.wait()
        gate.clear()
        second = await host.send("s1", Said("b", key="m2"), busy="supersede")
        stopped = await first.result()
        assert stopped.status == "interrupted"
        await gate.wait()
        await host.interrupt("s1", by=Interruption(id="i1"))
        assert (await second.result()).status == "interrupted"
        assert (await made.state(host)).runs == ()
        assert (await made.state(host)).claims == {}
        assert await made.said(host) == []
