"""What every feature promises, as tests: subclass `FeatureConformance` and say how to make it.

```python
class TestMyFeature(FeatureConformance):
    @pytest.fixture
    def make_feature(self):
        return lambda: MyFeature(...)
```

`InertFeatureConformance` is for a feature that, made so, has nothing to say about a plain turn: then requests are byte
for byte those of an agent without it, and the record is the same. The tests are coroutines: they need pytest-asyncio.
"""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeAlias

import msgspec
import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.record.entry import UnknownBody
from onrecord.record.jsonl import EntryCodec
from onrecord.record.kinds import CORE_KINDS
from onrecord.session.codec import dumps_session, pack, unpack
from onrecord.session.erasure import Retention
from onrecord.session.folding import refold
from onrecord.session.memory_store import MemoryStore
from onrecord.session.session import Session, SlotState
from onrecord.testing.fakes import FakeEffects
from onrecord.testing.scripted import ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.turn.moments import Feature, Hooks
from onrecord.turn.result import TurnResult

__all__ = ("FeatureConformance", "InertFeatureConformance", "MakeFeature")

MakeFeature: TypeAlias = Callable[[], Feature]

CORE = {str(kind.__struct_config__.tag) for kind in CORE_KINDS}


def agent_with(*features: Feature, name: str = "agent") -> Agent[Any, str]:
    """An agent with a tool, whose model has one turn with a call and one without, three times over."""
    script: list[Any] = ["Hello.", [call("look")], "Looked."] * 3
    return Agent(ScriptedModel(*script), name=name, tools=[Tool("look", lambda *_: "ok")], features=features)


async def talked(agent: Agent[Any, str]) -> list[TurnResult[Any]]:
    """Two turns of one session."""
    first = await agent.turn("hi", session="s", effects=FakeEffects())
    return [first, await agent.turn("look", session=first.session, effects=FakeEffects())]


def requests(agent: Agent[Any, str]) -> list[bytes]:
    """The bytes of every request so far."""
    model = agent.plan.model
    assert isinstance(model, ScriptedModel)
    return [model.wire(request).body for request in model.requests]


def session_of(result: TurnResult[Any]) -> Session:
    """The session that a turn left."""
    assert result.session is not None
    return result.session


@pytest.mark.asyncio
class FeatureConformance:
    """A feature alone, twice, stored, replayed and taken out again: give a subclass ``make_feature``."""

    def hooks(self, feature: Feature) -> Hooks:
        """What it hands in."""
        return feature.hooks(agent_with().spec)

    async def test_it_has_a_name_and_hooks(self, make_feature: MakeFeature) -> None:
        """Made twice it has the same name; asked twice it hands in the same kinds of things."""
        one, other = make_feature(), make_feature()
        assert one.name
        assert one.name == other.name
        assert isinstance(self.hooks(one), Hooks)
        assert [f.name for f in self.hooks(one).folds] == [f.name for f in self.hooks(other).folds]

    async def test_it_works_alone(self, make_feature: MakeFeature) -> None:
        """An agent with no other feature takes turns."""
        results = await talked(agent_with(make_feature()))
        assert [result.status for result in results] == ["answered", "answered"]

    async def test_one_feature_serves_two_agents(self, make_feature: MakeFeature) -> None:
        """It keeps no state of its own: what one agent does is nothing to the other."""
        shared = make_feature()
        one, other = agent_with(shared, name="one"), agent_with(shared, name="other")
        await talked(one)
        after = await talked(other)
        alone = await talked(agent_with(make_feature(), name="other"))
        assert [[e.body for e in r.entries] for r in after] == [[e.body for e in r.entries] for r in alone]

    async def test_reading_along_changes_nothing(self, make_feature: MakeFeature) -> None:
        """A turn is the drained stream."""
        plain = await agent_with(make_feature()).turn("hi", session="s", effects=FakeEffects())
        stream = agent_with(make_feature()).turn_stream("hi", session="s", effects=FakeEffects())
        words = "".join([text async for text in stream.text])
        result = await stream.result()
        assert result == plain
        assert words == result.text

    async def test_the_record_folds_to_the_session(self, make_feature: MakeFeature) -> None:
        """With its folds, live and replayed."""
        agent = agent_with(make_feature())
        results = await talked(agent)
        session = session_of(results[-1])
        entries = [entry for result in results for entry in result.entries]
        told = refold(session.key, entries, agent.plan.folds, digest_key=session.digest_key)
        assert dumps_session(told) == dumps_session(session)

    async def test_its_kinds_are_its_own(self, make_feature: MakeFeature) -> None:
        """Entry bodies are namespaced, are none of the core's, and survive their lines."""
        feature = make_feature()
        kinds = [str(body.__struct_config__.tag) for body in self.hooks(feature).bodies]
        assert all("." in kind for kind in kinds)
        assert CORE.isdisjoint(kinds)
        agent = agent_with(feature)
        entries = [entry for result in await talked(agent) for entry in result.entries]
        codec: EntryCodec = agent.plan.codec
        assert list(codec.read(codec.lines(entries))) == entries
        assert not any(isinstance(entry.body, UnknownBody) for entry in codec.read(codec.lines(entries)))

    async def test_its_folds_are_pure(self, make_feature: MakeFeature) -> None:
        """The same state and entry give the same again, whatever became of the state; a start is always a new one."""
        agent = agent_with(make_feature())
        entries = [entry for result in await talked(agent) for entry in result.entries]
        for fold in self.hooks(make_feature()).folds:
            assert fold.start() == fold.start()
            state = fold.start()
            for entry in entries:
                if str(entry.body.__struct_config__.tag) in fold.kinds:
                    before = dumps_session(_slotted(fold.name, state))
                    once, again = fold.apply(state, entry), fold.apply(state, entry)
                    assert once == again
                    assert dumps_session(_slotted(fold.name, state)) == before
                    state = once

    async def test_its_state_goes_through_stores(self, make_feature: MakeFeature) -> None:
        """Committed, loaded and packed between two turns, it goes on as if it had never left memory."""
        agent, other = agent_with(make_feature()), agent_with(make_feature())
        kept = await talked(agent)
        store = MemoryStore(bodies=self.hooks(make_feature()).bodies)
        first = await other.turn("hi", session="s", effects=FakeEffects())
        session = unpack(pack(await store.commit(first.change())))
        second = await other.turn("look", session=session, effects=FakeEffects())
        await store.commit(second.change())
        loaded = await store.load("s")
        assert loaded is not None
        assert dumps_session(replace(loaded, version=0)) == dumps_session(session_of(kept[-1]))

    async def test_it_can_be_taken_out(self, make_feature: MakeFeature) -> None:
        """A session that has known it goes on without it."""
        first = await agent_with(make_feature()).turn("hi", session="s", effects=FakeEffects())
        later = await agent_with().turn("hi", session=first.session, effects=FakeEffects())
        assert later.status == "answered"

    async def test_it_forgets(self, make_feature: MakeFeature) -> None:
        """What it stores elsewhere about a person or a session, or for too long, can be erased, again and again."""
        hooks = self.hooks(make_feature())
        for what in (SessionKey("s"), Identity(tenant="t", principal="ana")):
            for _ in range(2):
                if hooks.forget is not None:
                    await hooks.forget(what)
        for policy in (Retention(), Retention(entries=timedelta(0))):
            if hooks.expire is not None:
                await hooks.expire(policy, FakeEffects().now())

    async def test_its_manifest_is_plain(self, make_feature: MakeFeature) -> None:
        """What a record says of it is JSON, and the same each time."""
        one, other = self.hooks(make_feature()).manifest, self.hooks(make_feature()).manifest
        assert msgspec.json.encode(one) == msgspec.json.encode(other)


class InertFeatureConformance(FeatureConformance):
    """The same for a feature that has nothing to say about a plain turn."""

    async def test_an_inert_feature_changes_nothing(self, make_feature: MakeFeature) -> None:
        """Byte-identical requests, and a record of core kinds with the same bodies but for the manifest."""
        plain, with_it = agent_with(), agent_with(make_feature())
        results, others = await talked(plain), await talked(with_it)
        assert requests(plain) == requests(with_it)
        bodies = [[e.body for r in told for e in r.entries] for told in (results, others)]
        bare = [[replace(b, manifest={}) if hasattr(b, "manifest") else b for b in told] for told in bodies]
        assert bare[0] == bare[1]


def _slotted(name: str, state: object) -> Session:
    return Session(key=SessionKey("s"), slots={name: SlotState(1, state)})
