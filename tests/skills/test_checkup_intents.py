"""The check-up of intents: where their examples would begin, by the scorer that will judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from onrecord.errors import ConfigurationError, ModelError
from onrecord.models.classify import Choice, Chosen, Classified
from onrecord.skills import ByModel, ByWords, Candidate, Intent, Keywords, SkillGraph, Start
from onrecord.testing import ScriptedModel
from tests.skills.knowing import skill

pytestmark = pytest.mark.unit

REFUNDS = Start("refunds", match=Intent("wants money back", ["my lamp arrived broken", "I want to return the lamp"]))
INVOICES = Start("invoices", match=Intent("asks about a bill", ["the amount is wrong", "send the bill again"]))


class ByExample:
    """Scores 1 for a candidate that has the message among its examples, else what it is told to."""

    name = "by-example"
    floor: float | None = 0.0
    categorical = False

    def __init__(self, **scores: float) -> None:
        self.scores = scores

    async def score(self, turn: Any, message: str, candidates: Sequence[Candidate], /) -> Mapping[str, float]:
        return {c.skill: 1.0 if message in c.examples else self.scores.get(c.skill, 0.0) for c in candidates}


def graph(classify: Any, *starts: Start, **given: Any) -> SkillGraph:
    """A graph of intents; nothing else of it is checked."""
    rules = starts or (REFUNDS, INVOICES)
    skills = [skill(id) for id in dict.fromkeys(start.use for start in rules)]
    return SkillGraph(skills, start=rules, classify=classify, check="off", **given)


async def found(held: SkillGraph, *given: Any) -> list[tuple[str, str, str]]:
    """The findings: severity, code and where."""
    return [(each.severity, each.code, each.where) for each in await held.checkup_intents(*given)]


async def test_intents_that_can_be_told_apart_have_no_findings() -> None:
    """Each example begins at its own, and would without having been declared."""
    assert await found(graph(ByWords(), never_routes=["what is the weather like"])) == []
    assert await found(graph(ByExample(refunds=0.0, invoices=0.0))) == []


async def test_an_example_that_begins_elsewhere_is_an_error() -> None:
    """With the example, and where it would begin."""
    held = graph(ByWords(), REFUNDS, Start("invoices", match=Intent("asks about a bill", []), examples=["return it"]))
    (told,) = await held.checkup_intents()
    assert (told.severity, told.code, told.where) == ("error", "example-misses-own-rule", "invoices")
    assert told.message == "its own example begins at 'refunds': 'return it'"


async def test_an_example_that_another_intent_has_too_is_a_near_tie() -> None:
    """The model would be offered both."""
    other = Start("returns", match=Intent("sends things back", ["my lamp arrived broken"]))
    decider = ScriptedModel()
    more: list[dict[str, Any]] = [{}, {"strictness": "rails"}, {"decider": decider}]
    for given in more:  # which of them a turn would take is another matter
        held = graph(ByExample(), REFUNDS, other, **given)
        assert await found(held) == [
            ("warning", "overlapping-intents", "refunds"),
            ("warning", "overlapping-intents", "returns"),
        ]
        assert "'returns'" in (await held.checkup_intents())[0].message
    assert decider.requests == []


async def test_an_example_on_a_menu_of_others_is_an_error() -> None:
    """It is not even offered."""
    third = Start("third", match=Intent("a third thing", []), examples=["hm"])
    held = graph(ByExample(refunds=0.9, invoices=0.9, third=0.1), third, REFUNDS, INVOICES)
    errors = [each for each in await held.checkup_intents() if each.severity == "error"]
    assert [(each.code, each.message) for each in errors] == [
        ("example-misses-own-rule", "its own example is taken for one of 'refunds', 'invoices': 'hm'")
    ]


async def test_an_example_that_nothing_fits_is_unclaimed() -> None:
    """Every score is at or under the floor."""
    held = graph(ByWords(), REFUNDS, Start("invoices", match=Intent("pays"), examples=["xyzzy"]))
    assert await found(held) == [("warning", "example-unclaimed", "invoices")]


async def test_an_example_that_only_its_own_words_lead_to_stands_alone() -> None:
    """A person who says nearly the same would begin elsewhere."""
    held = graph(ByExample(refunds=0.5, invoices=0.1))
    assert await found(held) == [("warning", "example-stands-alone", "invoices")] * 2
    assert "would begin at 'refunds': 'the amount is wrong'" in (await held.checkup_intents())[0].message


async def test_a_message_that_must_begin_nowhere_is_taken_for_an_intent() -> None:
    """By what is scored; rules over words are checked when the graph is made."""
    held = graph(ByWords(), never_routes=["the bill of rights", "hello"])
    assert await found(held) == [("error", "never-routes-claimed", "invoices")]
    ruled = graph(ByWords(), REFUNDS, INVOICES, Start("lights", match=Keywords(["sun"])), never_routes=["the sun"])
    assert [each.code for each in ruled.checkup()] == ["never-routes-claimed"]
    assert await found(ruled) == []


async def test_a_rule_over_words_takes_an_example_before_any_intent_does() -> None:
    """Which is proved when the graph is made, and scored no better."""
    starts = [REFUNDS, INVOICES, Start("lamps", match=Keywords(["lamp"]))]
    held = graph(ByWords(), *starts)
    shadowed = [each for each in held.checkup() if each.code == "example-shadowed-by-earlier"]
    assert [(each.severity, each.where) for each in shadowed] == [("error", "refunds")] * 2
    assert await found(held) == [("error", "example-misses-own-rule", "refunds")] * 2
    own = graph(ByWords(), REFUNDS, INVOICES, Start("refunds", match=Keywords(["lamp"])), never_routes=["hello"])
    assert (own.checkup(), await found(own)) == ((), [])


async def test_a_model_is_asked_about_every_example() -> None:
    """Its own, or the agent's."""

    def choose(asked: Any) -> str:
        return '{"choice": "refunds"}' if "lamp" in repr(asked.pieces[-1]) else '{"choice": "invoices"}'

    model = ScriptedModel(consult=[choose] * 8)
    assert await found(graph(ByModel()), model) == []
    assert len(model.requests) == 8
    assert await found(graph(ByModel(ScriptedModel(consult=[choose] * 8)))) == []


@pytest.mark.parametrize("without", [(), (ScriptedModel(consult=[]),)])
async def test_a_scorer_that_fails_ends_the_check_up(without: Any) -> None:
    """A finding by itself: nothing was judged. Without a model, one that asks the agent's own fails too."""

    class Down(ByExample):
        async def score(self, turn: Any, message: str, candidates: Any, /) -> Mapping[str, float]:
            raise ModelError("down", kind="overload")

    assert await found(graph(Down())) == [("error", "scorer-failed", "refunds")]
    assert await found(graph(ByModel()), *without) == [("error", "scorer-failed", "refunds")]
    no_examples = Start("refunds", match=Intent("wants money back"))
    assert await found(graph(Down(), no_examples, never_routes=["x"])) == [("error", "scorer-failed", "never_routes")]


async def test_each_example_is_a_turn_of_its_own() -> None:
    """A classifier is asked once per turn, and what it said is kept for that turn alone."""
    asked: list[Any] = []

    class Judge:
        async def classify(self, state: Any, questions: Sequence[Any], /) -> Classified:
            asked.append(state["message"])
            (question,) = questions
            assert isinstance(question, Choice)
            own = next(
                name for name, about in question.options.items() if state["message"] in about or name == "refunds"
            )
            return Classified(model="judge", answers=(Chosen(choice=own, chances={own: 1.0}),))

    await graph(Judge()).checkup_intents()
    declared = [start.match.examples for start in (REFUNDS, INVOICES) if isinstance(start.match, Intent)]
    assert sorted(set(asked)) == sorted([example for many in declared for example in many])


def by_start(**given: Any) -> SkillGraph:
    """Graphs that judge no intents."""
    return SkillGraph([skill("a"), skill("b")], check="off", **given)


@pytest.mark.parametrize(
    "held",
    [
        by_start(start="a"),
        by_start(entries=["a", "b"], scored_by=ByWords()),
        by_start(start="a", continuity="conversation"),
    ],
)
async def test_a_graph_that_judges_no_intents_is_refused(held: SkillGraph) -> None:
    """There is nothing to check."""
    with pytest.raises(ConfigurationError, match="judges no intents"):
        await held.checkup_intents()
