"""How a turn begins at a graph: rules, continuity, scorers, menus, deciders (specification §15.5)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Happened
from onrecord.errors import ConfigurationError
from onrecord.record.kinds import ModelReplied
from onrecord.skills import (
    Closeness,
    Intent,
    Keywords,
    Route,
    SkillGraph,
    Start,
)
from onrecord.skills.skill_entries import TurnRouted
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from tests.skills.knowing import answering, descriptions, pick, skill, systems
from tests.skills.scoring import INTENTS, A, B, C, Down, Scores, cursor, graph, routed
from tests.turn.acting import Result, bodies, tool, turn

pytestmark = pytest.mark.unit


async def two_turns(held: SkillGraph, *answers: Any, second: str = "two", **given: Any) -> tuple[Result, Result]:
    """Two turns of one session."""
    agent = Agent(ScriptedModel(*answers), features=[held], **given)
    first = await turn(agent, "one")
    return first, await turn(agent, second, session=first.session)


# ---- scores ----------------------------------------------------------------------------------------------------------


async def test_127_a_near_tie_is_a_menu_and_a_clear_lead_a_move() -> None:
    """``tanh(0.15)`` is below 0.15, ``tanh(0.15175)`` above it (case 127)."""
    requests, result = await answering("done", features=[graph(Scores(a=0.40, b=0.10))])
    told = routed(result)
    assert (told.by, told.offered, told.decisive, told.to) == ("menu", ("a", "b"), False, "")
    assert told.gap == pytest.approx(0.14889, abs=1e-5)
    assert "one of these: a (57%), b (43%)" in systems(requests[0])
    assert descriptions(requests[0])["read_skill"].startswith("What the person wants may be one of these: a (57%)")
    _, result = await answering("done", features=[graph(Scores(a=0.40, b=0.0965))])
    told = routed(result)
    assert (told.by, told.to, told.offered, cursor(result)) == ("intent", "a", (), "a")
    assert told.gap == pytest.approx(0.15060, abs=1e-5)


async def test_the_scores_are_on_the_record_with_their_shares() -> None:
    """The best first; what is dead has no share."""
    _, result = await answering("done", features=[graph(Scores(a=0.1, b=0.9, floor=0.1))])
    told = routed(result)
    assert [(row.skill, row.score, row.relevance) for row in told.scores] == [("b", 0.9, 1.0), ("a", 0.1, 0.0)]
    assert (told.scorer, told.to, told.gap) == ("scores", "b", None)


async def test_a_scorer_that_picks_is_decisive() -> None:
    """However near the second is."""
    _, result = await answering("done", features=[graph(Scores(a=0.40, b=0.39, categorical=True))])
    assert (routed(result).by, routed(result).to) == ("intent", "a")


async def test_nothing_alive_offers_all_that_may_be_seen() -> None:
    """The model chooses, or answers without."""
    held = graph(Scores(a=0.0, b=float("nan"), floor=0.0), visible=lambda _, id: id != "b")
    requests, result = await answering("done", features=[held])
    assert (routed(result).by, routed(result).offered) == ("menu", ("a",))
    assert "If none does, answer without." in systems(requests[0])


async def test_a_rule_over_the_message_comes_before_any_score() -> None:
    """It is certain, and free."""
    scorer = Scores(a=0.9, b=0.1)
    _, result = await answering("done", said="the third", features=[graph(scorer)])
    assert (routed(result).by, routed(result).to, routed(result).keyword) == ("entry", "c", "third")
    assert scorer.asked == []


async def test_the_menu_leads_until_one_of_it_is_taken() -> None:
    """In the first request among the instructions too, then in ``read_skill`` alone."""
    requests, result = await answering(
        call("x"), pick("b"), "done", tools=[tool("x")], features=[graph(Scores(a=0.4, b=0.4))]
    )
    told = ["may be one of these" in systems(request) for request in requests]
    doors = ["may be one of these" in descriptions(request)["read_skill"] for request in requests]
    assert (told, doors, cursor(result)) == ([True, False, False], [True, True, False], "b")


async def test_a_menu_stands_once_where_the_ways_are_too_many_for_a_description() -> None:
    """Before them, among the instructions."""
    many = [skill(f"topic-{n}") for n in range(60)]
    start = [Start(each.id, match=Intent(f"wants {each.id}")) for each in many]
    each_half: dict[str, Any] = {each.id: 0.5 for each in many}
    scores = Scores(**each_half)
    held = SkillGraph(many, start=start, classify=scores, check="off")
    requests, _ = await answering(call("look"), "done", features=[held], tools=[tool("look")])
    for request in requests:
        assert systems(request).startswith("What the person wants may be one of these: topic-0 (2%)")
        assert systems(request).count("What the person wants") == 1
        assert len(descriptions(request)["read_skill"]) <= 1024


async def test_at_most_so_many_are_offered() -> None:
    """At least two."""
    start = [Start(id, match=Intent(id)) for id in "abc"]
    for most, offered in ((3, 3), (2, 2), (1, 2)):
        held = graph(Scores(a=0.3, b=0.3, c=0.3), start=start, closeness=Closeness(menu=most))
        _, result = await answering("done", features=[held])
        assert len(routed(result).offered) == offered


async def test_under_rails_a_menu_is_nothing() -> None:
    """Nobody could choose from it."""
    requests, result = await answering("done", features=[graph(Scores(a=0.4, b=0.4), strictness="rails")])
    assert (routed(result).by, systems(requests[0])) == ("none", "")


# ---- from turn to turn -----------------------------------------------------------------------------------------------


async def test_a_conversation_keeps_its_place() -> None:
    """Where it ended, not where it began; the record of the second turn says so."""
    held = graph(None, Route("a", "b", on_tool="x"), start="a", continuity="conversation")
    first, second = await two_turns(held, call("x"), "one", "two", tools=[tool("x")])
    assert (cursor(first), routed(second).by, routed(second).source, cursor(second)) == ("b", "continuity", "b", "b")


async def test_a_rule_takes_the_next_turn_elsewhere() -> None:
    """Only one with a condition does: a default would take every turn."""
    held = graph(None, start=["a", Start("c", match=Keywords(["third"]))], continuity="conversation")
    _, second = await two_turns(held, "one", "two", second="the third")
    assert cursor(second) == "c"
    start = [Start("c", match=Keywords(["third"])), "a"]
    held = graph(None, Route("a", "b", on_tool="x"), start=start, continuity="conversation")
    _, second = await two_turns(held, call("x"), "one", "two", tools=[tool("x")])
    assert (routed(second).by, cursor(second)) == ("continuity", "b")


async def test_where_it_stands_is_scored_along() -> None:
    """A clear lead moves it, anything less lets it stay."""
    for scores, by, to in (
        (Scores(a=0.9, b=0.1, c=0.1), "intent", "a"), (Scores(a=0.4, b=0.4, c=0.3), "continuity", "c"),
        (Scores(a=0.1, b=0.1, c=0.9), "continuity", "c"),
    ):  # fmt: skip
        held = graph(scores, continuity="conversation")
        agent = Agent(ScriptedModel("one", "two"), features=[held])
        first = await turn(agent, "the third")
        second = await turn(agent, "two", session=first.session)
        assert (routed(second).by, routed(second).to) == (by, to)
        assert scores.asked[-1] == ("two", ["a", "b", "c"])


async def test_a_skill_that_is_gone_is_dropped_and_told() -> None:
    """The graph was changed since."""
    old = graph(None, start="a", continuity="conversation")
    first = await turn(Agent(ScriptedModel("one"), features=[old]), "one")
    rules = [Start("b", match=Intent("b"))]
    new = SkillGraph([B, C], start=rules, classify=Scores(b=0.9), continuity="conversation", check="off")
    second = await turn(Agent(ScriptedModel("two"), features=[new]), "two", session=first.session)
    assert (routed(second).dropped, routed(second).source, routed(second).to) == ("a", "", "b")


async def test_a_skill_that_is_gone_is_told_without_a_scorer_too() -> None:
    """And the start rules have their say."""
    first = await turn(Agent(ScriptedModel("one"), features=[graph(start="a", continuity="conversation")]), "one")
    new = SkillGraph([B], start="b", continuity="conversation", check="off")
    second = await turn(Agent(ScriptedModel("two"), features=[new]), "two", session=first.session)
    assert (routed(second).by, routed(second).dropped, cursor(second)) == ("none", "a", "b")


async def test_a_turn_that_nobodys_words_began_is_not_scored() -> None:
    """There is nothing to score."""
    scorer = Scores(a=0.9, b=0.1)
    agent = Agent(ScriptedModel("one"), features=[graph(scorer)])
    result = await agent.turn(Happened(name="shipped", key="e1"), session="s", effects=FakeEffects())
    assert (scorer.asked, routed(result).by) == ([], "menu")


# ---- deciders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("picked", "by", "to"), [("b", "decider", "b"), ("none", "decider", ""), ("nonsense", "menu", "")]
)
async def test_a_decider_decides_a_menu(picked: str, by: str, to: str) -> None:
    """One constrained pick by a model; what is none of it leaves the menu."""
    decider = ScriptedModel(consult=['{"choice": "' + picked + '"}'])
    _, result = await answering("done", features=[graph(Scores(a=0.4, b=0.4), decider=decider)])
    told = routed(result)
    assert (told.by, told.to, cursor(result)) == (by, to, to)
    assert told.offered == (("a", "b") if by == "menu" else ())
    assert [b.purpose for b in bodies(result, ModelReplied)] == ["consult", "speak"]


@pytest.mark.parametrize(("picked", "to"), [("stay", "a"), ("b", "b"), ("none", "a")])
async def test_a_decider_may_stay_where_the_conversation_is(picked: str, to: str) -> None:
    """Where nothing fits what was said next; choosing none leaves the conversation where it is, too."""
    scores = Scores(floor=0.5, a=0.9)
    decider = ScriptedModel(consult=[f'{{"choice": "{picked}"}}'])
    model = ScriptedModel("one", "two")
    agent = Agent(model, features=[graph(scores, decider=decider, continuity="conversation")])
    first = await turn(agent, "one")
    scores.scores = {"a": 0.1, "b": 0.1}
    second = await turn(agent, "two", session=first.session)
    told = routed(second)
    assert (told.by, told.picked, told.source) == ("decider", picked, "a")
    assert told.to == ("" if picked == "none" else to)
    assert "go on with a" in repr(decider.requests[0].pieces)
    assert systems(model.requests[-1]) == f"About {to}."


async def test_a_failing_decider_leaves_the_menu() -> None:
    """The model chooses."""
    decider = ScriptedModel(consult=[raises("overload")])
    _, result = await answering("done", features=[graph(Scores(a=0.4, b=0.4), decider=decider)])
    told = routed(result)
    assert (told.by, told.offered, told.decider_failed) == ("menu", ("a", "b"), "ModelError")
    assert (told.decider, told.picked) == (decider.card.name, "")


# ---- a scorer alone --------------------------------------------------------------------------------------------------


async def test_a_scorer_alone_chooses_among_entries() -> None:
    """Its best, however near the second is; where it fails, or finds none that fits, the model chooses from a menu."""
    held = SkillGraph([A, B], entries=["a", "b"], scored_by=Scores(a=0.4, b=0.41), check="off")
    _, result = await answering("done", features=[held])
    assert (routed(result).by, cursor(result)) == ("entry", "b")
    for scorer, failed in ((Down(), "ModelError"), (Scores(a=0.0, b=0.0, floor=0.5), "")):
        postures: list[tuple[Any, str]] = [("assist", "a"), ("guard", "a"), ("rails", "")]
        for strictness, to in postures:
            held = SkillGraph(
                [A, B], entries=["a", "b"], scored_by=scorer, strictness=strictness, check="off"
            )  # fmt: skip
            _, result = await answering(pick("a"), "done", features=[held])
            assert (routed(result).failed, routed(result).by == "menu", cursor(result)) == (failed, bool(to), to)
    unsaid = await turn(Agent(ScriptedModel("done"), features=[held]), Happened(name="shipped", key="e1"))
    assert bodies(unsaid, TurnRouted) == []


# ---- what is refused -------------------------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"classify": Scores(), "start": "a"}, "classify= judges starts that are an Intent"),
    ({"scored_by": Scores(), "start": "a"}, "scored_by= chooses among entries="),
    ({"entries": ["a"], "scored_by": Scores(), "classify": Scores()}, "classify= and scored_by="),
    ({"entries": ["a"], "start": "a"}, "start= and entries="),
    ({"entries": ["a", "a"]}, "entries names a skill twice"),
    ({"entries": ["a"], "strictness": "rails"}, "under rails the model chooses nothing"),
    ({"start": "a", "closeness": Closeness()}, "closeness says when classify= is sure"),
    ({"start": "a", "decider": ScriptedModel()}, "the decider could never decide"),
    (
        {"start": INTENTS, "classify": Scores(), "decider": ScriptedModel(), "skills": [A, B, skill("none")]},
        "the decider cannot tell the skill 'none' from its own answer",
    ),
    ({"start": INTENTS, "classify": 7}, "a int scores nothing"),
    ({"start": INTENTS, "classify": Scores(), "strictness": "rails", "decider": ScriptedModel()}, "could never decide"),
]


@pytest.mark.parametrize(("given", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_a_beginning_that_contradicts_itself_is_refused(given: dict[str, Any], told: str) -> None:
    """By what it is, whatever is checked."""
    with pytest.raises(ConfigurationError, match=told):
        SkillGraph(**{"skills": [A, B, C], "check": "off", **given})


@pytest.mark.parametrize("wrong", [{"near_tie": 1.0}, {"near_tie": -0.1}, {"menu": 0}, {"menu": 1.5}])
def test_closeness_is_checked(wrong: dict[str, Any]) -> None:
    """Bounds that would never, or always, be met."""
    with pytest.raises(ConfigurationError, match="Closeness takes"):
        Closeness(**wrong)
    assert Closeness(near_tie=0, menu=1).near_tie == 0
