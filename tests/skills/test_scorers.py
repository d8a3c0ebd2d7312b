"""Scorers: by words, by vectors, by a classifier, by a model (specification §15.5; honesty §15.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from onrecord.conversation.usage import Usage
from onrecord.models.classify import Choice, Chosen, Classified, Told
from onrecord.record.kinds import ModelReplied
from onrecord.skills import ByClassifier, ByModel, BySimilarity, ByWords, Intent, SkillGraph, Start
from onrecord.skills.scorers import relevances
from onrecord.skills.skill_entries import SkillClassified, TurnRouted
from onrecord.testing import ScriptedModel
from tests.skills.knowing import answering, skill
from tests.turn.acting import Result, bodies

pytestmark = pytest.mark.unit

COST = Usage(input_tokens=7, output_tokens=1)


def routed(result: Result) -> TurnRouted:
    """How the turn began."""
    (body,) = bodies(result, TurnRouted)
    return body


async def scored(scorer: Any, said: str, **given: Any) -> Result:
    """A turn whose beginning this scorer judges, between orders and invoices."""
    orders, invoices = skill("orders"), skill("invoices")
    start = [
        Start("orders", match=Intent("track a parcel", ["where is my parcel", "has it shipped"])),
        Start("invoices", match=Intent("pay an invoice", ["send me the bill", "pay by card"])),
    ]
    _, result = await answering(
        "done", said=said, features=[SkillGraph([orders, invoices], start=start, classify=scorer, check="off")], **given
    )
    return result


async def test_words_in_common_score() -> None:
    """No model, no key; words that say nothing do not count."""
    result = await scored(ByWords(), "I want to pay by card please")
    assert (routed(result).to, routed(result).scorer) == ("invoices", "by-words")
    result = await scored(ByWords(), "is it me")
    assert routed(result).by == "menu"


async def test_vectors_score() -> None:
    """Those of the skills are asked for once."""
    asked: list[list[str]] = []

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        asked.append(list(texts))
        return [
            [float("parcel" in text or "shipped" in text), float("pay" in text or "bill" in text)] for text in texts
        ]

    scorer = BySimilarity(embed, floor=0.0)
    for _ in range(2):
        result = await scored(scorer, "my parcel")
        assert routed(result).to == "orders"
    assert (len(asked[0]), asked[1]) == (7, ["my parcel"])


async def test_what_is_nearly_as_close_is_no_clear_answer() -> None:
    """By words and by vectors; a model's pick is one."""

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.1 * ("bill" in text)] for text in texts]

    for scorer in (BySimilarity(embed), ByWords()):
        told = routed(await scored(scorer, "a parcel, a bill"))
        assert (told.by, told.decisive, len(told.offered)) == ("menu", False, 2)


async def test_vectors_that_cannot_be_compared_are_no_judgement() -> None:
    """Of another length, or too few: the turn begins without one, and the record says why."""

    async def longer(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] * (place + 1) for place, _ in enumerate(texts)]

    async def fewer(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts[1:]]

    for embed in (longer, fewer):
        told = routed(await scored(BySimilarity(embed), "my parcel"))
        assert (told.by, told.failed) == ("menu", "ValueError")


class Judge:
    """A classifier with an answer, which keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, list[Any]()

    async def classify(self, state: Any, questions: Any, /) -> Classified:
        self.asked.append((state, questions))
        return Classified(model="judge", answers=(self.answer,), usage=COST, latency_ms=12)


async def test_a_classifier_scores_with_its_chances() -> None:
    """They are taken as they were given; one that gives none picks."""
    judge = Judge(Chosen(choice="orders", chances={"orders": 2.0, "invoices": 0.5}))
    result = await scored(judge, "hm")
    assert [(row.skill, row.score) for row in routed(result).scores] == [("orders", 2.0), ("invoices", 0.5)]
    ((state, (question,)),) = judge.asked
    assert state == {"message": "hm"}
    assert isinstance(question, Choice)
    assert list(question.options) == ["orders", "invoices"]
    assert routed(await scored(ByClassifier(Judge(Chosen(choice="invoices"))), "hm")).to == "invoices"
    assert routed(await scored(Judge(Told(yes=1.0)), "hm")).by == "menu"


async def test_what_a_classifier_cost_is_on_the_record() -> None:
    """And in the result, beside what the model used."""
    result = await scored(Judge(Chosen(choice="orders")), "hm")
    (told,) = bodies(result, SkillClassified)
    assert (told.model, told.choice, told.usage, told.latency_ms) == ("judge", "orders", COST, 12)
    without = await scored(Judge(Told(yes=1.0)), "hm")
    assert bodies(without, SkillClassified)[0].choice == ""
    assert result.usage == without.usage
    assert (result.usage or Usage()).input_tokens >= 7


async def test_a_model_scores_by_choosing() -> None:
    """The agent's own, or another: a silent call, whose cost is on the record."""
    result = await scored(ByModel(), "hm", model=ScriptedModel("done", consult=['{"choice": "orders"}']))
    assert (routed(result).to, [b.purpose for b in bodies(result, ModelReplied)]) == ("orders", ["consult", "speak"])
    other = ScriptedModel(consult=["invoices."])
    assert routed(await scored(ByModel(other), "hm")).to == "invoices"


def test_shares_are_a_softmax_over_what_is_alive() -> None:
    """They add up to one; large scores overflow nothing."""
    shares = relevances({"a": 1000.0, "b": 999.0, "c": float("inf"), "d": -1.0}, 0.0)
    assert list(shares) == ["a", "b"]
    assert sum(shares.values()) == pytest.approx(1)
    assert relevances({}, None) == {}
    assert relevances({"a": 0.0, "b": 1000.0}, None) == {"b": 1.0, "a": 0.0}


@pytest.mark.parametrize("first", [[float("nan"), 0.0], [1.0], None], ids=["no number", "another length", "too few"])
async def test_vectors_that_were_wrong_once_are_made_anew(first: list[float] | None) -> None:
    """Those of skills are kept, and one bad answer of a service must not decide about every turn that follows."""
    wrong = [True]

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        made = [[float("parcel" in text), float("bill" in text)] for text in texts]
        if wrong.pop() if wrong else False:
            return [made[0], *([first] * (len(made) - 1) if first is not None else made[2:])]
        return made

    scorer = BySimilarity(embed, floor=0.0)
    assert routed(await scored(scorer, "my parcel")).failed == "ValueError"
    assert routed(await scored(scorer, "my parcel")).to == "orders"
