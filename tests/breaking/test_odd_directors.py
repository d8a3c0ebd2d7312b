"""Directors that use their stage at the wrong time or with the wrong things."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, cast

import pytest
from msgspec import Struct

from onrecord.agent import Agent
from onrecord.conversation.outgoing import Outcome
from onrecord.errors import UsageError
from onrecord.models.chunks import Chunk
from onrecord.models.request import Request
from onrecord.testing import ScriptedModel
from onrecord.turn.director import Brief
from tests.turn.acting import Result, tool, turn

pytestmark = pytest.mark.unit

ANY: Any = None
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


class Doing(Struct, frozen=True):
    """A director that does one thing."""

    what: Callable[[Any], Awaitable[Any]]

    async def direct(self, live: Any, stage: Any) -> None:
        await self.what(stage)


class Slow(ScriptedModel):
    """A model that lets others run before it answers."""

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        await asyncio.sleep(0)
        async for chunk in super().stream(request):
            yield chunk


async def directed(what: Callable[[Any], Awaitable[Any]]) -> Result:
    """A turn under this director."""
    return await turn(Agent(Slow("one", "two", "three"), director=Doing(what)))


async def test_verbs_do_not_run_side_by_side() -> None:
    """They share one conversation: two at once would mix their rounds."""

    async def both(stage: Any) -> None:
        await asyncio.gather(stage.speak(Brief(key="a")), stage.speak(Brief(key="b")))

    with pytest.raises(UsageError, match="the verb 'b' begins while 'a' is not done") as failed:
        await directed(both)
    assert failed.value.code == "stage-busy"


async def test_a_stage_is_closed_once_its_director_has_returned() -> None:
    """What a task left behind files would be in no record."""
    held: list[Any] = []

    async def keeps(stage: Any) -> None:
        held.append(stage)
        await stage.speak(Brief(key="a"))

    result = await directed(keeps)
    filed = len(result.entries)
    with pytest.raises(UsageError, match="stage is closed"):
        await held[0].speak(Brief(key="b"))
    with pytest.raises(UsageError, match="stage is closed"):
        held[0].outcome(Outcome(kind="late", status="ended"))
    assert len(held[0].turn.entries) == filed


@pytest.mark.parametrize("key", [None, 5, "", "half \ud83d"], ids=repr)
@pytest.mark.parametrize("verb", ["speak", "say", "act"])
async def test_a_verb_needs_a_key_that_is_a_text(verb: str, key: Any) -> None:
    """Entries and messages are named after it."""

    async def does(stage: Any) -> None:
        if verb == "speak":
            await stage.speak(Brief(key=key))
        elif verb == "say":
            await stage.say("hello", key=key)
        else:
            await stage.act(tool(), {}, key=key)

    with pytest.raises(UsageError, match="a verb needs a key"):
        await directed(does)


@pytest.mark.parametrize("text", [None, 5, b"hi", "half \ud83d"], ids=repr)
async def test_what_is_said_is_text(text: Any) -> None:
    """Before anybody hears it."""

    async def says(stage: Any) -> None:
        await stage.say(text, key="a")

    with pytest.raises(UsageError, match="what is said is text"):
        await directed(says)


@pytest.mark.parametrize("args", [None, [1], {"o": object()}, {"o": CIRCLE}, {"o": "\ud83d"}], ids=range(5))
async def test_the_arguments_of_an_act_are_a_json_object(args: Any) -> None:
    """They are on the record before the tool runs."""

    async def acts(stage: Any) -> None:
        await stage.act(tool(), cast(Any, args), key="a")

    with pytest.raises(UsageError, match="are a JSON object"):
        await directed(acts)
