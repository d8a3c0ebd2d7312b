"""A real model, end to end: set ONRECORD_TEST_GGUF to the GGUF file of a small instruct model (extra ``local``).

Slow (minutes on two cores), and a small model may lose its way: what is checked is what the library promises whatever
the model says, and that the model gets as far as a tool call and a typed answer with a short instruction.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import pytest

from onrecord import Agent, TextDelta, preset, tool
from onrecord.models.model import Model
from onrecord.providers.local.client import LocalModel, local
from onrecord.providers.local.plain_calls import PlainCalls
from onrecord.providers.openai_compatible import openai_compatible

GGUF = os.environ.get("ONRECORD_TEST_GGUF", "")

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not GGUF, reason="set ONRECORD_TEST_GGUF to a GGUF file"),
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason='run: pip install "onrecord[local]"'),
]

INSTRUCTIONS = (
    "You help hotel guests. Call a tool once when you need facts. "
    "When you have its result, answer in one short sentence."
)


@dataclass
class Quote:
    """A price for a stay."""

    city: str
    nights: int
    total: int


@tool(read_only=True)
async def price(city: Annotated[str, "City."], nights: Annotated[int, "Number of nights."]) -> dict[str, Any]:
    """Price of a stay in a city."""
    return {"city": city, "nights": nights, "total": 110 * nights, "currency": "EUR"}


@pytest.fixture(scope="module")
def served() -> Iterator[LocalModel]:
    """The file, run once for the module."""
    model = local(Path(GGUF), context_tokens=2048, cores=2)
    assert isinstance(model, LocalModel)
    yield model
    model.close()


def agent(model: Model, **more: Any) -> Agent[Any, Any]:
    """A small agent that says the same each time."""
    held = preset(model, temperature=0, max_tokens=60, seed=1)
    return Agent(held, instructions=INSTRUCTIONS, **more)


async def test_a_reply_streams(served: LocalModel) -> None:
    """In several pieces, and counted."""
    stream = agent(served).turn_stream("Hello!")
    pieces = [delta.text async for delta in stream if isinstance(delta, TextDelta)]
    result = await stream.result()
    assert len(pieces) > 1
    assert "".join(pieces) == result.text
    assert result.usage is not None
    assert result.usage.output_tokens > 1


async def test_a_tool_is_called_and_its_result_told(served: LocalModel) -> None:
    """Whatever form the model writes the call in."""
    result = await agent(served, tools=[price]).turn("How much are 3 nights in Porto?")
    assert "330" in result.text
    assert result.llm_calls == 2


async def test_an_answer_has_its_type(served: LocalModel) -> None:
    """The reply cannot be anything else."""
    result = await agent(served, output=Quote).turn("A quote, please: 2 nights in Lisbon are 280 euros in total.")
    assert result.output == Quote("Lisbon", 2, 280)


async def test_a_tool_and_a_type_go_together(served: LocalModel) -> None:
    """First the call, then the typed answer made from its result."""
    result = await agent(served, tools=[price], output=Quote).turn("How much are 3 nights in Porto?")
    assert isinstance(result.output, Quote)
    assert result.output.total == 330


async def test_leaving_stops_the_model(served: LocalModel) -> None:
    """It is idle again soon, although hundreds of tokens were still to come."""
    await served.prewarm()
    counting = Agent(preset(served, max_tokens=500), instructions="Count as asked, with commas.")
    async for _ in counting.turn_stream("Count from 1 to 300.").text:
        break
    started = time.monotonic()
    await agent(served).turn("Hello!")
    assert time.monotonic() - started < 60  # it would stand in line for the rest of the counting


async def test_the_loop_stays_free_while_the_model_loads_and_writes() -> None:
    """Loading happens elsewhere; pauses of the loop are those of a busy machine, not of a load of seconds."""
    fresh = local(Path(GGUF), context_tokens=512, cores=1)
    assert isinstance(fresh, LocalModel)
    pauses: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            pauses.append(time.perf_counter() - before - 0.001)

    watching = asyncio.ensure_future(watch())
    try:
        await agent(fresh).turn("Hello!")
    finally:
        watching.cancel()
        fresh.close()
    pauses.sort()
    assert pauses[int(len(pauses) * 0.99)] < 0.01
    assert pauses[-1] < 0.2


async def test_a_server_that_runs_already(served: LocalModel) -> None:
    """The same agent over `openai_compatible`, at the address of the process."""
    endpoint = await served.process.endpoint()
    remote = PlainCalls(
        openai_compatible(endpoint.base_url, "any", api_key=endpoint.key, provider="llamacpp", silence_s=300)
    )
    result = await agent(remote, tools=[price]).turn("How much are 3 nights in Porto?")
    assert "330" in result.text
