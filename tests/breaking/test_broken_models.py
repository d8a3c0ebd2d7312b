"""Models that break their contract: a ModelError or an ordinary turn, and what is kept can be stored and read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, cast

import pytest

from onrecord.agent import Agent
from onrecord.errors import FeatureFailed, ModelError
from onrecord.jsonio import DEEPEST
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk, ThinkingChunk
from onrecord.models.request import Request
from onrecord.testing import ScriptedModel, reply
from onrecord.turn.moments import Hooks
from tests.breaking.keeping import kept
from tests.turn.acting import Named, Result, results, tool, turn

pytestmark = pytest.mark.unit

ANY: Any = None


def asks(raw: str, name: str = "lookup") -> CallChunk:
    """A call with exactly these arguments."""
    return CallChunk(wire_id="w", name=name, raw_args=raw)


async def ran(*script: Any) -> Result:
    """A turn over this script, stored and loaded again."""
    result = await turn(Agent(ScriptedModel(*script), tools=[tool()]))
    await kept(result)
    return result


@pytest.mark.parametrize(
    "raw",
    [
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        '{"a":' + "[" * 990 + "]" * 990 + "}",
        '{"a":' + "[" * DEEPEST + "]" * DEEPEST + "}",
        '{"a":1',
        "[1]",
        "null",
        '{"a":NaN}',
        '{"a":1e999}',
        '{"a":"\\ud83d"}',
        '{"a":"\ud83d"',
        "\0",
    ],
    ids=range(11),
)
async def test_arguments_that_are_no_json_object_are_invalid(raw: str) -> None:
    """Broken, foreign, or nested so deep that somewhere they could not be written again."""
    assert results(await ran([asks(raw)], "done")) == [("lookup", "invalid")]


@pytest.mark.parametrize(
    "raw",
    [
        '{"a":' + "[" * (DEEPEST - 2) + "]" * (DEEPEST - 2) + "}",
        '{"a":[' + ",".join(["{}"] * 1000) + "]}",
        '{"n":123456789012345678901234567890}',
        '{"a":1,"a":2}',
        "",
    ],
    ids=range(5),
)
async def test_unusual_arguments_that_are_a_json_object_run(raw: str) -> None:
    """Deep but not too deep, wide, beyond 64 bits, a key twice, none at all."""
    assert results(await ran([asks(raw)], "done")) == [("lookup", "returned")]


@pytest.mark.parametrize(
    "chunk",
    [
        TextChunk(ANY),
        TextChunk(cast(str, 5)),
        ThinkingChunk(ANY),
        CallChunk(wire_id=ANY, name="lookup", raw_args="{}"),
        CallChunk(wire_id="w", name=ANY, raw_args="{}"),
        CallChunk(wire_id="w", name="lookup", raw_args=ANY),
        Finished(finish=ANY),
        reply("text", usage=cast(Any, "a lot")),
    ],
    ids=range(8),
)
async def test_chunks_whose_fields_are_of_other_types_fail_the_call(chunk: Any) -> None:
    """Stored, they could never be read again."""
    with pytest.raises(ModelError, match="model 'scripted:script'"):
        await turn(Agent(ScriptedModel(chunk)))


async def test_words_that_are_no_unicode_are_kept_readable() -> None:
    """A pair of surrogates cut in two is whole again in the record; half of one is replaced."""
    result = await ran(["ok \ud83d", "\ude00 and \ud83d"])
    assert (result.text, result.status) == ("ok 😀 and �", "answered")
    result = await ran([asks("{}", "look\ud83dup")], "done")
    assert results(result) == [("look�up", "absent")]


class Cancels(ScriptedModel):
    """A model whose own machinery is cancelled under it."""

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        yield TextChunk("so ")
        raise asyncio.CancelledError


async def test_a_cancellation_that_nobody_asked_for_is_the_models_failure() -> None:
    """It would pass for the end of the caller's own task; a stream would end as if all was well."""
    with pytest.raises(ModelError) as failed:
        await turn(Agent(Cancels()))
    assert failed.value.kind == "aborted"
    words = Agent(Cancels()).turn_stream("hi").text
    assert await anext(words) == "so "
    with pytest.raises(ModelError):
        await anext(words)


@pytest.mark.parametrize("gives", [None, 5, b"ab", [None], [5], object()], ids=repr)
async def test_a_text_filter_that_gives_something_else_than_text_has_failed(gives: Any) -> None:
    """From `feed` and from `close`."""

    class Odd:
        def __init__(self, *, closing: bool) -> None:
            self.closing = closing

        def feed(self, item: Any) -> Any:
            return [item] if self.closing else gives

        def close(self) -> Any:
            return gives if self.closing else []

    for closing in (False, True):
        odd = Odd(closing=closing)
        hooks = Hooks(on_text=partial(lambda held, _: held, odd))
        with pytest.raises(FeatureFailed, match="feature 'odd' failed at text"):
            await turn(Agent(ScriptedModel("done"), features=[Named("odd", hooks)]))
