"""Handlers that raise whatever there is: the model reads of a failure, the turn goes on, and it can be stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import pytest

from onrecord.agent import Agent
from onrecord.testing import ScriptedModel
from onrecord.tools.tool import Validity
from tests.breaking.exceptions import ENDS, ODD
from tests.breaking.keeping import kept
from tests.turn.acting import call, results, texts, tool, turn

pytestmark = pytest.mark.unit

NAMES = [f"{type(error).__name__}-{place}" for place, error in enumerate(ODD)]


async def told(fails: Any, **fields: Any) -> tuple[list[tuple[str, str]], str]:
    """How the one call of a turn ended and what the model read of it; the turn is stored and loaded again."""
    model = ScriptedModel([call("lookup")], "done")
    result = await turn(Agent(model, tools=[tool(handler=fails, **fields)]))
    await kept(result)
    return results(result), texts(model.requests[1])[0]


@pytest.mark.parametrize("error", ODD, ids=NAMES)
async def test_a_handler_that_raises_is_a_failed_call(error: BaseException) -> None:
    """Async handlers."""

    async def fails(args: Mapping[str, Any], ctx: Any) -> NoReturn:
        raise error

    ended, read = await told(fails)
    assert (ended, read[:10]) == ([("lookup", "failed")], '{"error":"')


@pytest.mark.parametrize("error", [*ODD, *ENDS], ids=repr)
async def test_a_handler_that_raises_in_its_thread_is_a_failed_call(error: BaseException) -> None:
    """Sync handlers; nothing a thread raises can hang the turn or end the process, `StopIteration` not either."""

    def fails(args: Mapping[str, Any], ctx: Any) -> NoReturn:
        raise error

    ended, read = await told(fails)
    assert (ended, read[:10]) == ([("lookup", "failed")], '{"error":"')


@pytest.mark.parametrize("error", ODD, ids=NAMES)
async def test_a_gate_that_raises_is_a_failed_call(error: BaseException) -> None:
    """The gates of a tool are contained like its handler."""

    async def fails(args: Mapping[str, Any], ctx: Any) -> Validity:
        raise error

    ended, read = await told(lambda *_: "ran", validate_input=fails)
    assert (ended, read[:10]) == ([("lookup", "failed")], '{"error":"')


async def test_what_an_exception_says_is_readable_text() -> None:
    """Half of a surrogate pair is replaced; an exception without words goes by its name."""
    said: list[str] = []
    for error in ODD[1:4]:

        async def fails(args: Mapping[str, Any], ctx: Any, error: BaseException = error) -> NoReturn:
            raise error

        said.append((await told(fails))[1])
    assert said == ['{"error":"ValueError"}', '{"error":"half a � pair"}', '{"error":"Speechless"}']
