"""Procedures in conversations that keep their place: a step is done once, in whichever turn (specification §14.5)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.skills import Intent, Keywords, Route, Skill, SkillGraph, Skills, Start
from onrecord.skills.skill_entries import SkillActivated, StepAdvanced, StepSkipped, StepsUnfinished, TurnRouted
from onrecord.testing import ScriptedModel, call
from tests.skills.knowing import descriptions, offered, pick, procedure, skill
from tests.skills.scoring import Scores
from tests.turn.acting import Result, bodies, texts, turn

pytestmark = pytest.mark.unit


def graph(returns: Skill | None = None) -> SkillGraph:
    """A procedure that a keyword begins, and another skill that a keyword or the model goes to."""
    start = [Start("returns", match=Keywords(["return"])), Start("chat", match=Keywords(["chat"]))]
    ways = [Route("chat", "returns"), Route("returns", "chat")]
    return SkillGraph(
        [returns or procedure(), skill("chat")], start=start, routes=ways, continuity="conversation", check="off"
    )  # fmt: skip


async def turns(*said: str, answers: Any, held: Any = None) -> tuple[ScriptedModel, list[Result]]:
    """A conversation: what was asked of the model, and the results."""
    model, session, done = ScriptedModel(*answers), None, list[Result]()
    agent = Agent(model, features=[held or graph()], rounds=9)
    for one in said:
        done.append(await turn(agent, one, session=session))
        session = done[-1].session
    return model, done


def steps(results: list[Result]) -> list[list[int]]:
    """The steps that were done, turn by turn."""
    return [[body.step for body in bodies(result, StepAdvanced)] for result in results]


async def test_a_procedure_goes_on_in_the_next_turn_where_it_stopped() -> None:
    """The person was asked something in between; the draft is sent back once a turn."""
    answers = [call("t1"), "Which one?", "Which one?", call("t2"), "done"]
    model, results = await turns("I return it", "the red one", answers=answers)
    assert steps(results) == [[1], [2]]
    assert descriptions(model.requests[3])["t2"].startswith("[Step 2 of 2 — n2] ")
    assert bodies(results[1], TurnRouted)[0].step == 2
    assert not bodies(results[1], StepsUnfinished)


async def test_what_is_done_stays_done_while_the_conversation_stays() -> None:
    """Thanks are no reason to do it all again."""
    answers = [call("t1"), call("t2"), "done", "Welcome."]
    model, results = await turns("I return it", "thanks", answers=answers)
    assert (results[1].text, bodies(results[1], StepsUnfinished), len(model.requests)) == ("Welcome.", [], 4)
    assert "skip_step" not in offered(model.requests[3])


async def test_what_is_done_begins_again_where_a_rule_leads_there_again() -> None:
    """Another lamp. One that is not done goes on instead: the same word said twice is no second return."""
    answers = [call("t1"), call("t2"), "done", call("t1"), "more?", "more?", call("t2"), "done", "ok"]
    said = ("I return it", "I return another", "return the red one", "thanks")
    _, results = await turns(*said, answers=answers)
    assert steps(results) == [[1, 2], [1], [2], []]
    assert [bodies(result, TurnRouted)[0].step for result in results] == [1, 1, 2, 3]


async def test_leaving_and_coming_back_begins_again() -> None:
    """In the same turn or in another one."""
    answers = [call("t1"), "more?", "more?", "chat", pick("returns"), call("t1"), call("t2"), "done"]
    _, results = await turns("I return it", "let us chat", "well", answers=answers)
    assert steps(results) == [[1], [], [1, 2]]


@pytest.mark.parametrize("held", [Skills(procedure(), skill("chat")), graph()])
async def test_asking_again_for_a_skill_tells_the_step_that_is_next(held: Any) -> None:
    """It stays where it is; once all is done, it begins again, and the record says so."""
    answers = [
        pick("returns"),
        call("t1"),
        pick("returns"),
        call("t2"),
        pick("returns"),
        call("t1"),
        call("t2"),
        "done",
    ]
    model, results = await turns("hi", answers=answers, held=held)
    assert steps(results) == [[1, 2, 1, 2]]
    assert [body.restarts for body in bodies(results[0], SkillActivated)] == [False, False, True]
    told = [texts(model.requests[place])[-1].split("\n\n")[-1] for place in (1, 3, 5)]
    assert [text[:28] for text in told] == [
        "It has 2 steps. Step 1 is n1", "It has 2 steps. Step 2 is n2", "It has 2 steps. Step 1 is n1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "again"),
    [(("I return it", "thanks"), [pick("returns")]), (("I return it", "return it", "thanks"), ["done"])],
)
async def test_what_begins_again_and_goes_no_further_is_at_its_first_step_in_the_next_turn(
    said: tuple[str, ...], again: list[Any]
) -> None:
    """Whether the model asked for the skill again, or a rule led there again."""
    answers = [call("t1"), call("t2"), *again, "more?", "more?", call("t1"), call("t2"), "done"]
    _, results = await turns(*said, answers=answers)
    assert (steps(results)[0], steps(results)[-1], bodies(results[-1], TurnRouted)[0].step) == ([1, 2], [1, 2], 1)


async def test_a_step_that_cannot_be_skipped_is_still_next_in_the_next_turn() -> None:
    """Under ``on_skip="hold"`` the reason is noted, and nothing is passed over."""
    held = graph(returns=procedure(on_skip="hold"))
    _, results = await turns("I return it", "so?", answers=[call("skip_step", reason="no"), *["more?"] * 4], held=held)
    assert [body.policy for body in bodies(results[0], StepSkipped)] == ["hold"]
    assert bodies(results[1], TurnRouted)[0].step == 1


async def test_a_procedure_that_was_skipped_to_its_end_is_done() -> None:
    """Over turns too."""
    answers = [call("skip_step", reason="not needed"), call("skip_step", reason="nor this"), "done", "Welcome."]
    _, results = await turns("I return it", "thanks", answers=answers)
    assert (results[1].text, bodies(results[1], TurnRouted)[0].step) == ("Welcome.", 3)


class Pleased(Scores):
    """A scorer that finds the first message clear, and in whatever follows nothing at all."""

    async def score(self, turn: Any, message: str, candidates: Any, /) -> dict[str, float]:
        self.scores = {"returns": 0.9 if message == "I return it" else 0.1}
        return await super().score(turn, message, candidates)


@pytest.mark.parametrize("picked", ["", "none", "stay"])
async def test_a_procedure_stays_where_it_is_while_nothing_else_fits(picked: str) -> None:
    """A menu beside staying, or a decider that chooses nothing of it, begins nothing again (§15.5)."""
    decider = ScriptedModel(consult=[f'{{"choice": "{picked}"}}'] * 2) if picked else None
    starts = [Start("returns", match=Intent("returns", ["I return it"])), Start("chat", match=Intent("chat", ["hi"]))]
    held = SkillGraph(
        [procedure(), skill("chat")], start=starts, routes=[Route("chat", "returns"), Route("returns", "chat")],
        classify=Pleased(floor=0.5), continuity="conversation", check="off", decider=decider,
    )  # fmt: skip
    answers = [call("t1"), "Which one?", "Which one?", call("t2"), "done", "Welcome."]
    model, results = await turns("I return it", "the red one", "thanks", answers=answers, held=held)
    assert [body.by for result in results for body in bodies(result, TurnRouted)] == [
        "intent", *[("decider" if picked else "menu")] * 2
    ]  # fmt: skip
    assert (steps(results), [result.text for result in results[1:]]) == ([[1], [2], []], ["done", "Welcome."])
    assert descriptions(model.requests[3])["t2"].startswith("[Step 2 of 2 — n2] ")
    assert "skip_step" not in offered(model.requests[-1])
