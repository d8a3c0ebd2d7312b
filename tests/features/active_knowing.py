"""Memory, skills and those who tell of talks, at work, and what they promise."""

from __future__ import annotations

from typing import Any

from onrecord.honesty import Commentary, SelfExplain
from onrecord.memory import Corpus, Document, Facts, Memory, PlainShelf, Recent, Retrieve
from onrecord.memory.documents import passages_of
from onrecord.record.entry import kind_of
from onrecord.skills import Keywords, Skill, SkillGraph, Skills, Start
from onrecord.telemetry import Logs
from onrecord.turn.moments import Watch
from tests.features.promises import Active, data_of, everything, statuses, system_of, times
from tests.features.talk import REFUND, Made, Play

__all__ = ("commentary", "memory", "retrieve", "self_explain", "skill_graph", "skills", "watch")


def memory() -> Active:
    """Knows a person from one conversation to the next."""

    def keeps(play: Play) -> None:
        (asked,) = play.of("#8")
        (told,) = (text for text in data_of(asked) if text.startswith("[Remembered]"))
        assert "name: Ana" in told
        assert told.count("<memory ") == told.count("</memory>") >= 1
        assert "Remembered" not in system_of(asked)

    return Made(features=(Memory(PlainShelf(), (Facts(), Recent(4))),)), keeps


def retrieve() -> Active:
    """Shows a passage about zebras while a turn is about them."""
    text = "Zebras are allowed in the garden."
    corpus = Corpus(passages_of(Document("garden", text), [(0, len(text))]))

    def keeps(play: Play) -> None:
        told = [[one for one in data_of(request) if one.startswith("[Sources]")] for request in play.of("#2")]
        assert len(told) >= 2
        assert told == [told[0]] * len(told)
        assert [one.count("<source ") for one in told[0]] == [1]
        assert all("the garden." not in system_of(request) for request in play.requests)

    return Made(features=(Retrieve(corpus),)), keeps


REFUNDS = Skill("refunds", "How to refund.", "Ask for the order.", tools=(REFUND,), scoped=True)


def skills() -> Active:
    """The model takes a skill up, and has its tool from then on."""

    def keeps(play: Play) -> None:
        requests = play.of("#3")
        offered = [any(offer.tool.id == "refund" for offer in request.offers) for request in requests]
        assert offered == [False] + [True] * (len(requests) - 1)
        assert ["Ask for the order." in system_of(request) for request in requests] == offered
        assert times(play, "refund") == 1
        assert not any("Ask for the order." in system_of(request) for request in play.of("#7"))

    return Made(features=(Skills(REFUNDS),)), keeps


def skill_graph() -> Active:
    """A message about refunds begins at the skill for them."""
    graph = SkillGraph(
        [REFUNDS], start=[Start("refunds", match=Keywords(["refunds"]))], scope_tools=True, check="off"
    )  # fmt: skip

    def keeps(play: Play) -> None:
        assert all("Ask for the order." in system_of(request) for request in play.of("#3"))
        assert times(play, "refund") == 1
        for request in (*play.of("#2"), *play.of("#7")):
            assert "Ask for the order." not in system_of(request)
            assert not any(offer.tool.id == "refund" for offer in request.offers)

    return Made(features=(graph,)), keeps


def self_explain() -> Active:
    """The model reads what it did."""
    plays: list[Play] = []

    def entries(key: Any, /, *, after: int = -1) -> Any:
        return plays[0].store.entries(key, after=after)

    def keeps(play: Play) -> None:
        assert statuses(play, "run_overview") == ["returned"]
        assert "abc123" not in everything(play.of("#6")) or "abc123" in everything(play.of("#2"))

    return Made(features=(SelfExplain(entries=entries),), began=plays.append), keeps


def commentary() -> Active:
    """Tells of every entry as it may be seen, and shows no words of anybody."""
    told: list[str] = []

    def keeps(play: Play) -> None:
        assert told == list(Commentary().sentences(play.watched))
        assert "zebra" not in "".join(told)

    return Made(features=(Commentary(tell=lambda sentence, _: told.append(sentence)),)), keeps


def watch() -> Active:
    """Sees every entry once, in order; beside it a log, of which tests/telemetry tell."""
    seen: list[Any] = []

    def keeps(play: Play) -> None:
        assert seen == play.watched
        assert [kind_of(entry.body) for entry in seen] == [kind_of(entry.body) for entry in play.entries]

    return Made(features=(Watch(seen.append, name="inside"), Logs())), keeps
