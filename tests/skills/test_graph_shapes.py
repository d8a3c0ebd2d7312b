"""Graphs that somebody else wrote: taken by their shape (specification §15.4)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError
from onrecord.skills import Closeness, Engagement, Hop, Move, Route, SkillGraph
from onrecord.skills.skill_entries import SkillActivated, SkillMoved, SkillRejected
from onrecord.testing import ScriptedModel, call
from tests.skills.knowing import answering, pick, skill, systems
from tests.turn.acting import bodies, tool, turn

pytestmark = pytest.mark.unit

A, B = skill("a"), skill("b")


def moves(result: Any) -> list[tuple[str, str, str]]:
    """From where to where the cursor went, and by what."""
    return [(b.source, b.to, b.by) for b in bodies(result, SkillMoved) if b.source != b.to]


class Shaped:
    """A graph by its shape: what somebody else wrote."""

    skills = (A, B)

    def next_skill(self, hop: Hop) -> str | None:
        return "b" if hop.results else "a"


async def test_194_a_graph_is_taken_by_its_shape() -> None:
    """Skills and ``next_skill``: it routes, and nothing explains why (case 194: there is no ``cursorMove`` then).

    Our cursor is a fold over moves, so they are filed; their cause is ``unexplained``.
    """
    requests, result = await answering(call("x"), "done", tools=[tool("x")], features=[SkillGraph(graph=Shaped())])
    assert [systems(request) for request in requests] == ["About a.", "About b."]
    assert moves(result) == [("", "a", "unexplained"), ("a", "b", "unexplained")]


async def test_194_such_a_graph_carries_nothing_over() -> None:
    """Even when it is asked to: nothing is guessed (case 194)."""
    cursors: list[str] = []

    class Watching(Shaped):
        def next_skill(self, hop: Hop) -> str | None:
            cursors.append(hop.cursor)
            return "b"

    agent = Agent(ScriptedModel("one", "two"), features=[SkillGraph(graph=Watching(), continuity="conversation")])
    first = await turn(agent, "one")
    await turn(agent, "two", session=first.session)
    assert cursors == ["", ""]


@pytest.mark.parametrize(
    ("more", "given", "told"),
    [
        ({"entry_selection": "model-read"}, {"strictness": "rails"}, "leaves the beginning to it"),
        ({"edges": (("a", "b"),)}, {"engagement": Engagement()}, "this graph explains nothing"),
        ({"explain": lambda *_: None}, {"engagement": Engagement()}, "this graph explains nothing"),
        ({}, {"never_routes": ["x"]}, "never_routes= goes with starts"),
        ({}, {"closeness": Closeness()}, "closeness= goes with starts"),
        ({}, {"strictness": "strict"}, "strictness cannot be 'strict'"),
        ({}, {"continuity": "for ever"}, "continuity cannot be 'for ever'"),
        ({}, {"routes": [Route("a", "b")]}, "beside a declaration of its own"),
        ({"next_skill": None}, {}, "is no graph"),
        ({"skills": 7}, {}, "is no graph"),
    ],
)
def test_what_could_say_nothing_about_such_a_graph_is_refused(more: Any, given: Any, told: str) -> None:
    """Spec §15.4 and §16."""
    graph = type("Odd", (Shaped,), more)()
    with pytest.raises(ConfigurationError, match=told):
        SkillGraph(graph=graph, **given)


async def test_such_a_graph_may_say_what_can_be_reached() -> None:
    """Its own word counts, for the skills that it wires."""

    class Reaching(Shaped):
        edges = (("a", "b"),)

        def next_skill(self, hop: Hop) -> str | None:
            return hop.pick or hop.cursor or "a"

        def reachable(self, cursor: str) -> list[str]:
            return []

    held = SkillGraph(graph=Reaching())
    assert held.reachable("a") == ()
    _, result = await answering(pick("b"), "done", features=[held])
    assert [b.requested for b in bodies(result, SkillRejected)] == ["b"]

    class Further(Reaching):
        def reachable(self, cursor: str) -> list[str]:
            return ["b", "gone", cursor]

    assert SkillGraph(graph=Further()).reachable("a") == ("b",)


@pytest.mark.parametrize("to", [None, "", "gone"])
async def test_such_a_graph_stays_where_it_names_no_skill(to: Any) -> None:
    """Nowhere at first."""

    class Lost(Shaped):
        def next_skill(self, hop: Hop) -> str | None:
            return "a" if hop.round == 2 else to

    answers = [call("x"), call("x", n=2), "done"]
    requests, _ = await answering(*answers, tools=[tool("x")], features=[SkillGraph(graph=Lost())])
    assert [systems(request) for request in requests] == ["", "About a.", "About a."]


async def test_such_a_graph_may_explain_itself_and_name_its_edges() -> None:
    """Then its moves have causes, and its gate knows what it wires."""

    class Explaining(Shaped):
        edges = (("a", "b"),)

        def explain(self, hop: Hop) -> Move:
            return Move(source=hop.cursor, to=self.next_skill(hop) or "", by="route")

    _, result = await answering(pick("b"), "done", features=[SkillGraph(graph=Explaining())])
    assert moves(result) == [("", "a", "route"), ("a", "b", "route")]
    assert [b.hop for b in bodies(result, SkillActivated)] == [True]
