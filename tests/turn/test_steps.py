"""A card may say how many requests one answer takes at most; drafts and the request without tools count."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.models.model import ModelCard
from onrecord.models.request import Request
from onrecord.testing import ScriptedModel, call, reply
from onrecord.turn.answer import Typed
from onrecord.turn.moments import ALLOW, SLOTS, Answer, Hooks, Revise
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, rounds_of, tool, turn, verdicts
from tests.turn.pausing.asking import answered, approve

pytestmark = pytest.mark.unit


def scripted(steps: int | None, *answers: Any) -> ScriptedModel:
    """A model whose card allows so many requests."""
    card = ModelCard(provider="scripted", model="script", protocol="scripted", steps=steps)
    return ScriptedModel(*answers, card=card)


def revising(times: int) -> Named:
    """A rule that wants another answer, so many times."""
    left = [times]

    async def hook(turn: Turn, answer: Answer) -> Any:
        left[0] -= 1
        return Revise("again") if left[0] >= 0 else ALLOW

    return Named("rule", Hooks(on_output=hook, holds_drafts=True, revisions=9))


async def test_e9_nine_rounds_with_tools_and_one_without_are_all_ten() -> None:
    """However many the agent allows; the last call is settled without being run (the loop's half of the case)."""
    model = scripted(10, *[call("lookup", n=n) for n in range(9)], reply("enough", call("lookup")))
    result = await turn(Agent(model, tools=[tool()], rounds=50))
    assert model.calls == ["speak"] * 9 + ["wrap_up"]
    assert [held.status for one in rounds_of(result) for held in one.calls] == ["returned"] * 9 + ["not_run"]
    assert (result.text, model.left) == ("enough", 0)


@pytest.mark.parametrize(("steps", "rounds", "asked"), [(3, 2, 3), (3, 1, 2), (None, 4, 5), (2, 4, 2), (1, 4, 1)])
async def test_the_smaller_of_rounds_and_steps_counts(steps: int | None, rounds: int, asked: int) -> None:
    """One step is a request without tools at once; without a cap the rounds alone decide."""
    model = scripted(steps, *[call("lookup")] * (asked - 1), "done")
    await turn(Agent(model, tools=[tool()], rounds=rounds))
    assert (model.calls[-1], len(model.calls), model.left) == ("wrap_up", asked, 0)


async def test_drafts_are_requests_too() -> None:
    """A revision leaves one round less for tools, and none is asked for behind the last step."""
    model = scripted(3, "draft", call("lookup"), "done")
    result = await turn(Agent(model, tools=[tool()], features=[revising(1)]))
    assert (model.calls, result.text) == (["speak", "speak", "wrap_up"], "done")
    model = scripted(2, "one", "two")
    result = await turn(Agent(model, features=[revising(5)]))
    assert (result.text, model.left) == ("two", 0)
    assert [why for *_, why in verdicts(result)] == ["again", "again (no revision left)"]


async def test_a_value_that_does_not_fit_is_not_asked_for_again_behind_the_last_step() -> None:
    """What stands in for it does."""
    model = scripted(1, "no number")
    result = await turn(Agent(model, output=int, features=[Typed(retries=3, canned=7)]))
    assert (result.output, result.output_source, model.left) == (7, "canned", 0)


async def test_requests_before_a_pause_count_after_it() -> None:
    """The answer is one, whoever had to be asked in between."""
    model = scripted(3, call("lookup"), call("pay"), "done")
    agent: Agent[Any, Any] = Agent(model, tools=[tool(), tool("pay")], features=[approve("pay")], rounds=9)
    done = await answered(agent, await turn(agent), approved=True)
    assert (model.calls, done.text) == (["speak", "speak", "wrap_up"], "done")


async def test_each_answer_has_its_steps() -> None:
    """The next turn begins anew."""
    model = scripted(2, call("lookup"), "one", call("lookup"), "two")
    agent: Agent[Any, Any] = Agent(model, tools=[tool()])
    first = await turn(agent)
    assert (await turn(agent, session=first.session)).text == "two"
    assert model.calls == ["speak", "wrap_up"] * 2


async def test_the_model_that_was_really_asked_decides() -> None:
    """A hook that chooses another model for a request brings that model's cap."""
    capped = scripted(2, call("lookup"))
    free = scripted(None, call("lookup"), "done")

    async def choose(turn: Turn, request: Request) -> Request:
        return replace(request, model=capped) if len(turn.rounds) == 1 else request

    chooser = Named("choose", Hooks(on_request=choose, order={"request": SLOTS["request"]["CHOOSE"]}))
    await turn(Agent(free, tools=[tool()], features=[chooser], rounds=9))
    assert (free.calls, capped.calls) == (["speak", "wrap_up"], ["speak"])
