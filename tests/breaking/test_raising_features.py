"""Features that raise whatever there is: a denial or FeatureFailed, never a cancellation that nobody asked for."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest

from onrecord.agent import Agent
from onrecord.errors import AnswerRefused, FeatureFailed, MessageDenied
from onrecord.record.kinds import Noted
from onrecord.testing import ScriptedModel
from onrecord.turn.moments import Allow, Hooks, Watch
from tests.breaking.exceptions import ODD
from tests.turn.acting import Named, bodies, call, results, tool, turn

pytestmark = pytest.mark.unit

NAMES = [f"{type(error).__name__}-{place}" for place, error in enumerate(ODD)]
odd = pytest.mark.parametrize("error", ODD, ids=NAMES)


def agent(hooks: Hooks) -> Agent[Any, Any]:
    """An agent whose model calls one tool, then answers."""
    return Agent(ScriptedModel([call("lookup")], "done"), tools=[tool()], features=[Named("odd", hooks)])


def raising(error: BaseException) -> Any:
    """A hook of any moment that raises."""

    async def hook(*_: Any) -> NoReturn:
        raise error

    return hook


@odd
async def test_an_input_rule_that_raises_denies(error: BaseException) -> None:
    """At the input moment."""
    with pytest.raises(MessageDenied):
        await turn(agent(Hooks(on_input=raising(error))))


@pytest.mark.parametrize("moment", ["on_request", "on_reply"])
@odd
async def test_a_hook_that_raises_fails_the_turn(moment: str, error: BaseException) -> None:
    """At the request and reply moments, where a failure can be no denial."""
    with pytest.raises(FeatureFailed, match="feature 'odd' failed at"):
        await turn(agent(Hooks(**{moment: raising(error)})))


@pytest.mark.parametrize("moment", ["before_tool", "after_tool"])
@odd
async def test_a_rule_around_a_tool_that_raises_denies_the_call(moment: str, error: BaseException) -> None:
    """Before and after a tool."""
    result = await turn(agent(Hooks(**{moment: raising(error)})))
    assert results(result) == [("lookup", "denied")]


@odd
async def test_an_output_rule_that_raises_refuses(error: BaseException) -> None:
    """At the output moment."""
    with pytest.raises(AnswerRefused):
        await turn(agent(Hooks(on_output=raising(error), holds_drafts=True)))


@odd
async def test_a_settle_hook_that_raises_is_noted(error: BaseException) -> None:
    """At the settle moment."""
    result = await turn(agent(Hooks(on_settle=raising(error))))
    assert (result.status, bodies(result, Noted)[0].by) == ("answered", "odd")


@odd
async def test_a_watcher_that_raises_is_noted(error: BaseException) -> None:
    """Awaited watchers."""
    seen = raising(error)
    result = await turn(Agent(ScriptedModel("done"), features=[Watch(seen, awaited=True)]))
    assert (result.status, bodies(result, Noted)[0].by) == ("answered", "watch")


async def test_the_cancellation_of_a_hooks_own_task_is_its_failure() -> None:
    """A hook that awaits a task somebody else cancelled does not pass for a cancelled turn."""

    async def waits(*_: Any) -> Allow[Any]:
        inner = asyncio.ensure_future(asyncio.Event().wait())
        inner.cancel()
        await inner
        return Allow()

    result = await turn(agent(Hooks(before_tool=waits)))
    assert (result.status, results(result)) == ("answered", [("lookup", "denied")])


async def test_a_cancelled_turn_is_cancelled_inside_a_hook_too() -> None:
    """What ends the take goes through every hook."""
    started = asyncio.Event()

    async def waits(*_: Any) -> Allow[Any]:
        started.set()
        await asyncio.Event().wait()
        return Allow()

    running = asyncio.ensure_future(turn(agent(Hooks(before_tool=waits))))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_watcher_that_files_entries_is_refused(awaited: bool) -> None:
    """It would be shown its own entry, and that one's, without end."""
    turns: list[Any] = []

    async def keeps(live: Any, _: Any) -> Allow[Any]:
        turns.append(live)
        return Allow()

    def files(_: Any) -> None:
        if turns:
            turns[0].note(Noted(by="me", text="seen"))

    async def files_later(_: Any) -> None:
        files(_)

    watch = Watch(files_later if awaited else files, awaited=awaited)
    result = await turn(Agent(ScriptedModel("done"), features=[Named("keeps", Hooks(on_input=keeps)), watch]))
    noted = bodies(result, Noted)
    assert (result.status, {note.by for note in noted}) == ("answered", {"watch"})
    assert {note.text for note in noted} == {"watcher failed: UsageError"}
