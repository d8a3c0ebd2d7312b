"""Whose memory it is, what is refused when one is made, and what it costs an agent that has none."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import ConfigurationError
from onrecord.memory import Episodes, Facts, Memory, PlainShelf, Recent, Summary
from onrecord.memory.ports import Space
from onrecord.session.codec import dumps_session
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel
from tests.memory.remembering import AT, ana, messages, recalled_in, remembering, session, shown_data, told

pytestmark = pytest.mark.unit


# ---- whose -----------------------------------------------------------------------------------------------------------


async def test_a_function_says_whose_memory_it_is() -> None:
    """Of the turn, such as its context; a person without a name is nobody."""
    shelf = PlainShelf()
    agent, model, _ = remembering(
        Recent(9), answers=["1", "2", "3"], shelf=shelf, whose=lambda turn: Identity(principal=str(turn.context or ""))
    )
    await agent.turn("hello", session="one", context="ana", effects=FakeEffects(AT))
    await agent.turn("again", session="two", context="ana", effects=FakeEffects(AT))
    await agent.turn("who", session="three", context="", effects=FakeEffects(AT))
    assert [len(shown_data(request)) for request in model.requests] == [0, 1, 0]
    assert await messages(shelf, Space(session="three")) == ["who", "3"]


async def test_a_session_can_remember_for_itself() -> None:
    """Its owner's other sessions read nothing of it; and it goes with its owner all the same."""
    shelf = PlainShelf()
    agent, model, memory = remembering(Recent(9), answers=["1", "2"], shelf=shelf, scope="session")
    await told(agent, "hello", session("one"))
    await told(agent, "again", session("two"))
    assert shown_data(model.requests[1]) == []
    forget = memory.hooks(agent.spec).forget
    assert forget is not None
    await forget(ana)
    assert await messages(shelf, Space(owner=ana, session="one")) == []


async def test_two_memories_of_an_agent_are_apart() -> None:
    """By name; and each says what it showed."""
    shelf = PlainShelf()
    model = ScriptedModel("ok", "ok")
    features = [Memory(shelf, (Recent(9),)), Memory(shelf, (Facts(),), name="facts")]
    agent = Agent(model, features=features)
    await told(agent, "My name is Ana", session("one"))
    result = await told(agent, "hi", session("two"))
    assert [one.feature for one in recalled_in(result)] == ["memory", "facts"]
    assert len(shown_data(model.requests[1])) == 2
    assert agent.spec.manifest["memory"] == {"memory": ["recent"], "facts": ["facts"]}


async def test_erasing_a_session_takes_its_memories() -> None:
    """Through the host, as every feature's; what the person said elsewhere is still known."""
    from onrecord.host import Host

    shelf, store = PlainShelf(), MemoryStore()
    agent, _, _ = remembering(
        Recent(9), answers=["1", "2"], shelf=shelf, whose=lambda _: Identity(tenant="t", principal="ana")
    )
    async with Host(agent, store=store) as host:
        await host.turn(SessionKey("one", tenant="t"), "first")
        await host.turn(SessionKey("two", tenant="t"), "second")
        await host.erase(SessionKey("one", tenant="t"), why="asked")
        space = Space(tenant="t", owner=Identity(tenant="t", principal="ana"))
        assert await messages(shelf, space) == ["second", "2"]
        await host.erase(Identity(tenant="t", principal="ana"), why="asked")
        assert await messages(shelf, space) == []


# ---- building --------------------------------------------------------------------------------------------------------

USELESS: list[tuple[str, Any]] = [
    ("no shelf", lambda: Memory("memories.db", (Recent(),))),  # type: ignore[arg-type]  # wrong on purpose
    ("no strategies", lambda: Memory(PlainShelf(), ())),
    ("one that is not in a list", lambda: Memory(PlainShelf(), Recent())),  # type: ignore[arg-type]  # wrong on purpose
    ("two of a kind", lambda: Memory(PlainShelf(), (Recent(3), Recent(4)))),
    ("an unknown scope", lambda: Memory(PlainShelf(), (Recent(),), scope="world")),
    ("no name", lambda: Memory(PlainShelf(), (Recent(),), name="")),
    ("a name that is none", lambda: Memory(PlainShelf(), (Recent(),), name="a/b")),
    ("no room", lambda: Memory(PlainShelf(), (Recent(),), max_chars=0)),
    ("a summary that is never written", lambda: Memory(PlainShelf(), (Summary(),), read_only=True)),
    ("facts that are never asked for", lambda: Memory(PlainShelf(), (Facts(by="model"),), read_only=True)),
    ("no messages", lambda: Recent(0)),
    ("no recent messages", lambda: Summary(recent=0)),
    ("a summary of nothing", lambda: Summary(recent=5, size=5)),
    ("a model that is none", lambda: Summary(model=3)),  # type: ignore[arg-type]  # wrong on purpose
    ("a model by an unknown name", lambda: Facts(by="model", model="nobody:x")),
    ("a model that is not asked", lambda: Facts(model="offline")),
    ("no way to find facts", lambda: Facts(by="magic")),  # type: ignore[arg-type]  # wrong on purpose
    ("no facts", lambda: Facts(most=0)),
    ("no episodes", lambda: Episodes(0)),
    ("a half life of no time", lambda: Episodes(half_life=AT - AT)),
    ("a least worth that nothing wears off", lambda: Episodes(min_worth=0.1)),
    ("a least worth above all", lambda: Episodes(half_life=timedelta(days=1), min_worth=1.1)),
]


@pytest.mark.parametrize("make", [make for _, make in USELESS], ids=[name for name, _ in USELESS])
def test_a_useless_memory_is_refused_when_it_is_made(make: Any) -> None:
    """Case A's law for this feature: nothing that could never do anything is built."""
    with pytest.raises(ConfigurationError) as told:
        make()
    assert str(told.value)


def test_strategies_may_be_a_list() -> None:
    """Two memories that say the same are the same."""
    shelf = PlainShelf()
    assert Memory(shelf, [Recent(3)]) == Memory(shelf, (Recent(3),))


def test_an_agent_without_it_does_not_import_it() -> None:
    """Off costs nothing: no module of it is loaded by the door, and none of its libraries by itself."""
    code = (
        "import sys; from onrecord import Agent; Agent('offline'); "
        "assert not [m for m in sys.modules if m.startswith('onrecord.memory')]; "
        "import onrecord.memory, onrecord.stores; "
        "assert not {'numpy', 'pypdf', 'selectolax', 'usearch', 'sqlite3'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_sessions_fold_as_without_it() -> None:
    """It keeps no state in sessions."""
    agent, _, _ = remembering(Recent(9), answers=["ok"])
    with_it, without = await told(agent, "hi", session()), await told(Agent(ScriptedModel("ok")), "hi", session())
    assert with_it.session is not None
    assert without.session is not None
    one, other = dumps_session(with_it.session), dumps_session(without.session)
    assert one.replace(b'"seq":%d' % with_it.session.seq, b"") == other.replace(b'"seq":%d' % without.session.seq, b"")
