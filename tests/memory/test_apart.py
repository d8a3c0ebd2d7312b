"""Memories of different people, tenants and sessions never meet, whatever happens in whatever order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.memory import Episodes, Facts, Memory, PlainShelf, Recent
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel
from tests.memory.remembering import session, shown_data, told

pytestmark = pytest.mark.unit

TENANTS, PEOPLE = ("", "t", "u"), ("", "ana", "bo", 't", "ana')

whose = st.tuples(st.sampled_from(TENANTS), st.sampled_from(TENANTS), st.sampled_from(PEOPLE), st.sampled_from("abc"))
steps = st.lists(
    st.tuples(st.sampled_from(["say", "say", "say", "forget session", "forget person"]), whose), max_size=14
)


@settings(max_examples=60, deadline=None)
@given(steps=steps, scope=st.sampled_from(["person", "session"]))
def test_no_word_crosses(steps: list[Any], scope: str) -> None:
    """Each says a word of its own; whoever is shown it is allowed to see it, and nobody forgot it."""
    asyncio.run(_play(steps, scope))


async def _play(steps: list[Any], scope: str) -> None:
    shelf = PlainShelf()
    memory = Memory(shelf, (Facts(), Recent(50), Episodes(50)), scope=scope, max_chars=100_000)
    said: list[tuple[str, Any]] = []
    for number, (what, (tenant, owner_tenant, person, id)) in enumerate(steps):
        if what == "forget session":
            await shelf.forget(SessionKey(id, tenant=tenant))
            said = [(word, by) for word, by in said if (by[0], by[3]) != (tenant, id)]
        elif what == "forget person" and person:
            await shelf.forget(Identity(tenant=owner_tenant, principal=person))
            said = [(word, by) for word, by in said if (by[1], by[2]) != (owner_tenant, person)]
        elif what == "say":
            word, by = f"word{number}x", (tenant, owner_tenant, person, id)
            model = ScriptedModel("ok")
            of = session(id, person, tenant=tenant, owner_tenant=owner_tenant)
            await told(Agent(model, features=[memory]), f"remember that {word} and the rest", of)
            data = "".join(shown_data(model.requests[0]))
            # A session that is new again has an empty conversation: what it said before under this id is not shown.
            allowed = {w for w, other in said if _may_see(by, other, scope)}
            assert {w for w, _ in said if w in data} <= allowed
            said.append((word, by))


def _may_see(me: Any, other: Any, scope: str) -> bool:
    if me[0] != other[0]:
        return False
    if me[2] and other[2]:
        return me[1:3] == other[1:3] and (scope == "person" or me[3] == other[3])
    return not me[2] and not other[2] and me[3] == other[3]


async def test_a_new_session_of_an_old_name_reads_its_person() -> None:
    """The positive side: what was said is there for whom it is."""
    agent = Agent(model := ScriptedModel("ok", "ok"), features=[Memory(PlainShelf(), (Facts(),))])
    await told(agent, "My name is Ana", session("a"))
    held: Session = session("b")
    await told(agent, "hi", held)
    assert "name: Ana" in "".join(shown_data(model.requests[1]))


async def test_an_owner_without_a_name_is_nobody() -> None:
    """Two sessions of such owners do not remember for each other."""
    agent = Agent(model := ScriptedModel("ok", "ok"), features=[Memory(PlainShelf(), (Facts(),))])
    for id, said in (("a", "My name is Ana"), ("b", "hi")):
        await told(agent, said, Session(key=SessionKey(id), owner=Identity(principal=""), digest_key="k"))
    assert shown_data(model.requests[1]) == []
