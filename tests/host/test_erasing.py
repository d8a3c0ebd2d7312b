"""Erasing through a host: in the store, in what runs and is kept ready here, and in every feature."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from onrecord import Agent, Said
from onrecord.conversation.content import Text
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.messages import UserMessage
from onrecord.errors import FeatureFailed
from onrecord.host import Given
from onrecord.session.erasure import Erasure, Retention
from onrecord.session.inbox import Row
from onrecord.session.memory_store import MemoryStore
from onrecord.stores import SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import Hooks
from tests.host.hosting import hosted, said
from tests.turn.interrupting.live import WAIT, Halting

pytestmark = pytest.mark.integration

ANA = Identity(principal="ana")


class Remembers:
    """A feature with a storage of its own."""

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self.name, self.fails = name, fails
        self.forgot: list[SessionKey | Identity] = []

    def hooks(self, spec: Any) -> Hooks:
        return Hooks(forget=self.forget)

    async def forget(self, what: SessionKey | Identity) -> None:
        self.forgot.append(what)
        if self.fails:
            raise OSError("canary words")


async def test_a_session_is_gone_everywhere() -> None:
    """Its messages, its rows, what is kept ready; and features forget it."""
    feature = Remembers("notes")
    async with hosted(Agent(ScriptedModel("Hello.", "New."), features=[feature])) as host:
        await host.turn("s", "My secret")
        erasure = await host.erase("s", why="asked for it")
        assert (erasure.sessions, erasure.messages) == (1, 2)
        assert host._desk.hot.get(SessionKey("s")) is None
        assert await said(host) == []
        assert feature.forgot == [SessionKey("s")]
        assert (await host.turn("s", "Hi")).text == "New."
        assert await said(host) == ["Hi", "New."]


async def test_what_runs_is_stopped_and_stores_nothing() -> None:
    """Its row went with the session; who waits for it is told that it was not taken."""
    model = Halting(("Hello.",), ("So far", WAIT))
    async with hosted(Agent(model), lease_s=3600) as host:  # at once, and not when its lease is next renewed
        await host.turn("s", "One")
        ticket = await host.send("s", "Two")
        await model.waiting.wait()
        await host.erase("s", why="asked for it")
        result = await ticket.result()
        assert (result.status, result.lines[0].code) == ("ignored", "not-taken")
        assert await said(host) == []


async def test_a_turn_that_runs_while_others_are_erased_is_taken_anew() -> None:
    """At once, not when its lease ends: it began with words that are gone, and is not itself to go."""
    model = Halting(("Hello.",), (WAIT, "Quotes the secret"), ("Quotes nothing",))
    async with hosted(Agent(model), lease_s=60) as host:
        first = await host.turn("s", "My secret")
        ticket = await host.send("s", "Two")
        await model.waiting.wait()
        assert first.session is not None
        await host.erase("s", messages=[first.session.conversation.messages[0].id], why="asked for it")
        async with asyncio.timeout(5):
            assert (await ticket.result()).text == "Quotes nothing"
        assert await said(host) == ["Two", "Quotes nothing"]


@pytest.mark.parametrize("turns", [0, 1])
async def test_what_runs_of_a_person_is_stopped_and_stores_nothing(turns: int) -> None:
    """In whichever way its row was leased, and also the first turn of a session that no store knows yet."""

    async def given(key: SessionKey, input: Any) -> Given[Any]:
        return Given(owner=ANA)

    model = Halting(*[("Hello.",)] * turns, ("So far", WAIT), ("Never", "said"))
    async with hosted(Agent(model), given=given) as host:
        for _ in range(turns):
            await host.turn("s", "One")
        await host.store.put(Row(session=SessionKey("s"), box="in", key="said::m", body=Said("Two")))
        async with host:
            await model.waiting.wait()
            await host.erase(ANA, why="left")
            await host.work(once=True)
            assert await host.pending("s") == []
            assert await said(host) == []
            assert len(model.requests) == turns + 1


async def test_a_person_is_erased_with_all_their_sessions() -> None:
    """Others keep theirs."""

    async def given(key: SessionKey, input: Any) -> Given[Any]:
        return Given(owner=ANA if key.id.startswith("ana") else Identity(principal="bob"))

    feature = Remembers("notes")
    async with hosted(Agent(ScriptedModel("1", "2", "3"), features=[feature]), given=given) as host:
        for name in ("ana-1", "ana-2", "bob-1"):
            await host.turn(name, "Hi")
        assert (await host.erase(ANA, why="left")).sessions == 2
        assert [await said(host, name) for name in ("ana-1", "ana-2", "bob-1")] == [[], [], ["Hi", "3"]]
        assert feature.forgot == [ANA]


async def test_one_feature_that_cannot_forget_does_not_keep_the_others_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is named, without its words; what is erased stays so."""
    broken, whole = Remembers("broken", fails=True), Remembers("whole")
    async with hosted(Agent(ScriptedModel("Hello."), features=[broken, whole])) as host:
        await host.turn("s", "Hi")
        with pytest.raises(FeatureFailed) as told:
            await host.erase("s", why="asked for it")
        assert "'broken'" in str(told.value)
        assert "canary" not in str(told.value) + caplog.text
        assert (await said(host), whole.forgot) == ([], [SessionKey("s")])


async def test_features_of_agents_below_forget_too() -> None:
    """Those of an agent that is a tool of another one, however deep; a feature that stands in both is asked once."""
    deep, shared = Remembers("deep"), Remembers("shared")
    below = Agent(ScriptedModel(), features=[deep, shared]).as_tool(id="below")
    middle = Agent(ScriptedModel(), tools=[below]).as_tool(id="middle")
    async with hosted(Agent(ScriptedModel(), tools=[middle], features=[shared])) as host:
        await host.erase(ANA, why="left")
    assert (deep.forgot, shared.forgot) == ([ANA], [ANA])


class Ages(Remembers):
    """One that knows how old what it keeps is."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.expired: list[tuple[Retention, datetime]] = []

    def hooks(self, spec: Any) -> Hooks:
        return Hooks(forget=self.forget, expire=self.expire)

    async def expire(self, policy: Retention, now: datetime) -> None:
        self.expired.append((policy, now))


async def test_sessions_of_sub_turns_are_forgotten_too() -> None:
    """What a feature keeps of them is kept under their own names; those of other sessions stay."""
    notes = Remembers("notes")
    below = Agent(ScriptedModel("Deep.", "Deeper."), features=[notes]).as_tool(id="below")
    model = ScriptedModel([call("below", message="?")], "One.", [call("below", message="?")], "Two.", "Three.")
    async with hosted(Agent(model, tools=[below])) as host:
        first = await host.turn("s", "Hi")
        await host.turn("s", "Hi")
        await host.turn("other", "Hi")
        children = [child.session.key for child in first.children if child.session is not None]
        assert len(children) == 1
        assert first.session is not None
        await host.erase("s", messages=[first.session.conversation.messages[0].id], why="a name")
        assert notes.forgot == [SessionKey("s"), *children]
        notes.forgot.clear()
        await host.erase("s", why="asked for it")
        assert (len(notes.forgot), set(children) < set(notes.forgot)) == (3, True)


async def test_features_let_go_by_age() -> None:
    """One that knows ages is told the policy and the instant; all forget sessions that are gone, of sub-turns too."""
    ages, notes = Ages("ages"), Remembers("notes")
    below = Agent(ScriptedModel("Deep."), features=[ages]).as_tool(id="below")
    model = ScriptedModel([call("below", message="?")], "Hello.", "Hello.")
    clock = FakeEffects()
    async with hosted(Agent(model, features=[notes], tools=[below]), effects=clock) as host:
        first = await host.turn("s", "Hi")
        (child,) = (child.session.key for child in first.children if child.session is not None)
        rows = Retention(rows=timedelta(0))
        await host.expire(rows)
        assert (ages.expired, ages.forgot, notes.forgot) == ([(rows, clock.now())], [], [])
        clock.advance(hours=1)
        await host.turn("young", "Hi")
        policy = Retention(entries=timedelta(seconds=9), sessions=timedelta(minutes=9))
        done = await host.expire(policy)
        assert ages.expired[1:] == [(policy, clock.now())]
        assert set(done.gone) == {SessionKey("s"), child}
        assert ages.forgot == notes.forgot == list(done.gone)


async def test_one_that_cannot_let_go_keeps_no_other_from_it() -> None:
    """The store's part is done; who failed is named."""
    fails, whole = Remembers("fails", fails=True), Remembers("whole")
    clock = FakeEffects()
    async with hosted(Agent(ScriptedModel("Hello."), features=[fails, whole]), effects=clock) as host:
        await host.turn("s", "Hi")
        clock.advance(minutes=1)
        with pytest.raises(FeatureFailed, match="'fails'") as raised:
            await host.expire(Retention(sessions=timedelta(seconds=9)))
        assert (await said(host), whole.forgot) == ([], [SessionKey("s")])
        assert isinstance(raised.value.erased, Erasure)
        assert raised.value.erased.gone == (SessionKey("s"),)
        assert "`erased.gone`" in raised.value.hint
        assert "once more" not in raised.value.hint  # another time no session is gone once more
        fails.fails = False
        assert (await host.expire(Retention(sessions=timedelta(seconds=9)))).gone == ()
        for gone in raised.value.erased.gone:
            await host.erase(gone, why="what was left")
        assert fails.forgot == [SessionKey("s")] * 2


async def test_both_ways_of_letting_go_that_fail_are_in_the_hint() -> None:
    """One feature cannot forget a session that is gone, another cannot let go of what is old."""

    class Stuck(Ages):
        async def expire(self, policy: Retention, now: datetime) -> None:
            raise OSError

    clock = FakeEffects()
    features = [Remembers("fails", fails=True), Stuck("stuck")]
    async with hosted(Agent(ScriptedModel("Hello."), features=features), effects=clock) as host:
        await host.turn("s", "Hi")
        clock.advance(minutes=1)
        with pytest.raises(FeatureFailed, match="'fails'") as raised:
            await host.expire(Retention(sessions=timedelta(seconds=9)))
    assert "`erased.gone`" in raised.value.hint
    assert "expire once more" in raised.value.hint


async def test_sub_turns_that_went_with_some_messages_can_be_forgotten_later() -> None:
    """The same messages lead to them no more, so the error names them."""
    notes = Remembers("notes", fails=True)
    below = Agent(ScriptedModel("Deep."), features=[notes]).as_tool(id="below")
    model = ScriptedModel([call("below", message="?")], "Hello.")
    async with hosted(Agent(model, tools=[below])) as host:
        first = await host.turn("s", "Hi")
        (child,) = (child.session.key for child in first.children if child.session is not None)
        assert first.session is not None
        with pytest.raises(FeatureFailed) as raised:
            await host.erase("s", messages=[first.session.conversation.messages[0].id], why="a name")
    assert isinstance(raised.value.erased, Erasure)
    assert raised.value.erased.gone == (child,)
    assert "`erased.gone`" in raised.value.hint


@pytest.mark.parametrize("in_file", [False, True], ids=["memory", "sqlite"])
async def test_somebody_who_comes_back_is_erased_again(tmp_path: Path, in_file: bool) -> None:
    """An erased person's session is nobody's; what is said in it afterwards is again whose `given` says."""
    store: Any = SqliteStore(tmp_path / "talk.db") if in_file else MemoryStore()

    async def given(key: SessionKey, input: Any) -> Given[Any]:
        return Given(owner=ANA)

    async with hosted(Agent(ScriptedModel("a", "b", "c")), store=store, given=given) as host:
        for _ in range(2):
            await host.turn("s", "My secret")
            assert (await host.erase(ANA, why="asked for it")).messages == 2
            held = await store.load("s")
            assert held is not None
            assert (held.owner, len(held.conversation.messages)) == (None, 0)
    await store.close()


@pytest.mark.parametrize("in_file", [False, True], ids=["memory", "sqlite"])
async def test_a_session_that_began_with_an_import_is_whose_given_says(tmp_path: Path, in_file: bool) -> None:
    """From its first turn on: erasing the person takes the import, too. One with turns of nobody stays so."""
    store: Any = SqliteStore(tmp_path / "talk.db") if in_file else MemoryStore()
    whose: list[Identity | None] = [None]

    async def given(key: SessionKey, input: Any) -> Given[Any]:
        return Given(owner=whose[0])

    async with hosted(Agent(ScriptedModel("a", "b", "c")), store=store, given=given) as host:
        await host.turn("nobodys", "Hi")
        whose[0] = ANA
        await host.turn("nobodys", "Hi")
        await host.import_history("s", [UserMessage(id="h0", content=(Text("My secret"),))], by="the old desk")
        await host.turn("s", "Hi")
        done = await host.erase(ANA, why="asked for it")
        assert (done.sessions, done.messages) == (1, 3)
        assert "My secret" not in str([entry async for entry in store.entries(SessionKey("s"))])
    await store.close()


async def test_some_messages_are_erased_with_their_turns() -> None:
    """The others stay, and the talk goes on over them."""
    async with hosted(Agent(ScriptedModel("1", "2", "3"))) as host:
        first = await host.turn("s", "One")
        await host.turn("s", "Two")
        assert first.session is not None
        await host.erase("s", messages=[first.session.conversation.messages[0].id], why="a name")
        assert await said(host) == ["Two", "2"]
        await host.turn("s", "Three")
        assert await said(host) == ["Two", "2", "Three", "3"]


async def test_a_host_lets_go_by_age() -> None:
    """With a policy that lets nothing go, nothing goes."""
    async with hosted(Agent(ScriptedModel("Hello."))) as host:
        await host.turn("s", "Hi")
        assert (await host.expire(Retention())).entries == 0
        assert await said(host) == ["Hi", "Hello."]
