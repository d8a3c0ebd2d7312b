"""Inputs, sessions and questions that are not what they seem: refused at the door, or told apart."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Image, Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Happened, Input, Said, Started, Woke
from onrecord.errors import UsageError
from onrecord.models.request import Piece, Reading, Request, Shape
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import ScriptedModel, call
from onrecord.turn.director import Query
from onrecord.turn.moments import Hooks
from tests.turn.acting import Named, tool, turn

pytestmark = pytest.mark.integration

ANY: Any = None
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - the point of the test


@pytest.mark.parametrize(
    "given",
    [
        "",
        " \n\t",
        None,
        b"hi",
        5,
        Said,
        "half \ud83d",
        Said(ANY),
        Said(cast(str, b"x")),
        Said(cast(Any, (None,))),
        Said(cast(Any, ("a",))),
        Said((Text(ANY),)),
        Said((Text("half \ud83d"),)),
        Said("hi", key=cast(str, 5)),
        Said("hi", key="half \ud83d"),
        Said("hi", at=NAIVE),
        Said("hi", notice=cast(str, 5)),
        Woke("k", at=NAIVE),
        Woke(ANY),
        Happened("e", key=ANY),
        Happened(ANY, key="k"),
        Happened("e", key="k", payload=object()),
        Happened("e", key="k", payload=CIRCLE),
        Happened("e", key="k", payload="half \ud83d"),
        Started("s", key="k", input={"a": {object()}}),
        Answered("k", value=object()),
    ],
    ids=range(26),
)
async def test_an_input_that_could_not_be_read_again_is_refused(given: Any) -> None:
    """Before anything of it is filed."""
    with pytest.raises(UsageError) as refused:
        await turn(Agent(ScriptedModel("x")), given)
    assert refused.value.code == "input-invalid"


KEYS = ["é/..%2f%00\n", "a\0b", "k" * 10_240, "a:b~1", "a%3Ab~1", " padded ", "🙂", "-", "..", "'; drop table"]


@pytest.mark.parametrize(
    "given",
    ["\u202etxet\u202c 🙂", "nul \0 nul", "x" * 1_000_000, Said((Image(data=b"x" * 2_000_000),)),
     Said("hi", key="k" * 10_240),
     Said("hi", at=datetime(2026, 1, 1, tzinfo=UTC)), Happened("e", key="k", payload={"n": 10**40})],
    ids=range(7),
)  # fmt: skip
async def test_an_unusual_input_is_kept_as_it_is(given: Any, tmp_path: Path) -> None:
    """Through a file, under every unusual key of a session."""
    async with SqliteStore(tmp_path / "talk.db") as store:
        for key in KEYS:
            result = await turn(Agent(ScriptedModel("ok")), given, session=SessionKey(key, tenant=key))
            stored = await store.commit(result.change())
            found = await store.load(SessionKey(key, tenant=key))
            assert found is not None
            assert found.conversation == stored.conversation
            assert [entry async for entry in store.entries(SessionKey(key, tenant=key))]
        assert {k.id for key in KEYS for k in await store.sessions(tenant=key)} == set(KEYS)


async def test_keys_that_look_alike_name_different_turns() -> None:
    """Parts are encoded, so nothing inside one can pass for the seam to the next."""
    inputs: list[Input] = [
        Happened("a:b", key="c"),
        Happened("a", key="b:c"),
        Happened("a%3Ab", key="c"),
        Said("x", key="c~1"),
    ]
    agent = Agent(ScriptedModel(*["ok"] * 20))
    ids = {
        (await turn(agent, given, session=key)).entries[0].turn for given in inputs for key in ("s", "s:said", "s~0")
    }
    assert len(ids) == len(inputs) * 3


@pytest.mark.parametrize("session", ["", "  ", SessionKey(""), 5, b"s", SessionKey(cast(str, 5)), object()], ids=repr)
async def test_a_session_needs_a_name(session: Any) -> None:
    """A blank one is an unset variable that would put everybody into one conversation."""
    with pytest.raises(UsageError):
        await turn(Agent(ScriptedModel("x")), session=session)


def consulting(name: str, question: str) -> Named:
    """A feature that asks a model before each request, under a key that others may choose too."""
    shape = Shape(name="answer", schema={}, read=lambda settled: Reading(text="", value=settled.text))
    query = Query(key="check", pieces=(Piece(source=name, text=question, rank=0),), shape=shape)

    async def asks(live: Any, request: Request) -> Request:
        told = Piece(source=name, text=f"{name}: {await live.consult(query, where=name)}", rank=1)
        return replace(request, pieces=(*request.pieces, told))

    return Named(name, Hooks(on_request=asks))


async def test_features_that_choose_one_key_get_replies_of_their_own() -> None:
    """The same question under the same key is asked once in a turn; another one is another."""
    model = ScriptedModel([call("lookup")], "done", consult=["yes", "no"])
    agent = Agent(model, tools=[tool()], features=[consulting("a", "Is it safe?"), consulting("b", "Is it spam?")])
    await turn(agent)
    spoken = [request for request in model.requests if request.purpose == "speak"]
    assert [[piece.text for piece in request.pieces] for request in spoken] == [["a: yes", "b: no"]] * 2
