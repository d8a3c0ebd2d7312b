"""Random graphs and random replies: the cursor only goes where a way leads, and replays equal what was lived."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.jsonio import dumps
from onrecord.record.jsonl import EntryCodec
from onrecord.session.codec import dumps_session
from onrecord.session.folding import refold
from onrecord.skills import Decide, Engagement, Hop, Keywords, Route, SkillGraph, Start, ToolOutcome
from onrecord.skills.skill_entries import SkillActivated, SkillMoved, SkillRejected
from onrecord.testing import FakeEffects, ScriptedModel, call
from tests.skills.knowing import offered, procedure, skill, systems
from tests.turn.acting import tool

pytestmark = pytest.mark.unit

IDS = ("a", "b", "c", "d")
TOOLS = ("x", "y", "tool_a", "tool_b")
SKILLS = [skill("a", "tool_a"), skill("b", "tool_b", scoped=True), procedure("c"), skill("d")]

routes = st.lists(
    st.builds(
        lambda source, to, how: Route(source, to, **how), st.sampled_from(IDS), st.sampled_from(IDS),
        st.sampled_from(
            [
                {}, {"on_tool": "x"}, {"on_tool": "y"}, {"on_status": "failed"},
                {"guard": {"tool_name": {"eq": "tool_a"}}},
            ]
        ),
    ),
    max_size=6,
)  # fmt: skip
beginnings = st.one_of(
    st.sampled_from(IDS).map(lambda id: {"start": id}),
    st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True).map(lambda ids: {"entries": ids}),
    st.sampled_from(IDS).map(lambda id: {"start": [Start(id, match=Keywords(["go"]))]}),
)
graphs = st.builds(
    lambda found, begins, **more: SkillGraph(SKILLS, routes=found, check="off", **begins, **more), routes, beginnings,
    continuity=st.sampled_from(["turn", "conversation"]), strictness=st.sampled_from(["assist", "guard"]),
    engagement=st.sampled_from([None, Engagement(1)]), scope_tools=st.booleans(),
)  # fmt: skip
calls = st.one_of(
    st.sampled_from(TOOLS).map(call),
    st.sampled_from((*IDS, "zzz")).map(lambda id: call("read_skill", id=id)),
    st.sampled_from(["", "no need"]).map(lambda why: call("skip_step", reason=why)),
    st.sampled_from(["t1", "t2"]).map(call),
)
replies = st.one_of(st.lists(calls, min_size=1, max_size=3), st.just("Said."))


def failing(args: Any, ctx: Any) -> str:
    """A tool that always fails."""
    raise OSError("down")


async def lived(graph: SkillGraph, answers: list[Any], said: list[str]) -> tuple[Agent[Any, Any], list[Any], Any, Any]:
    """Turns of one session, with as many answers as there are, then plain ones."""
    model = ScriptedModel(*answers, *["Done."] * 40)
    agent: Agent[Any, Any] = Agent(
        model, tools=[tool("x"), tool("y", failing), tool("tool_b")][:2], features=[graph], rounds=6
    )  # fmt: skip
    session: Any = "s"
    entries: list[Any] = []
    for words in said:
        result = await agent.turn(words, session=session, effects=FakeEffects())
        session = result.session
        entries += result.entries
    return agent, entries, session, model


@settings(max_examples=60, deadline=None)
@given(graphs, st.lists(replies, max_size=8), st.lists(st.sampled_from(["go", "hello"]), min_size=1, max_size=3))
def test_the_cursor_is_always_where_a_way_leads(graph: SkillGraph, answers: list[Any], said: list[str]) -> None:
    """Each move follows a declared way; what the model took up was reachable; what was refused changed nothing."""
    _, entries, _, _ = asyncio.run(lived(graph, answers, said))
    ways = {(route.source, route.to) for route in graph.plan.routes}
    entered = set(graph.plan.entries)
    for entry in entries:
        body = entry.body
        if isinstance(body, SkillMoved):
            assert body.to in graph.skills
            if body.by in {"route", "model-pick", "tool-proposal"} and body.source:
                assert (body.source, body.to) in ways or body.to in entered
            if body.by == "route":
                assert (body.source, body.to) in ways
            if not body.source:
                assert body.to in entered
        if isinstance(body, SkillRejected):
            assert body.requested not in body.allowed
            assert body.requested in graph.skills
        if isinstance(body, SkillActivated):
            assert body.hop != body.recalls


@settings(max_examples=40, deadline=None)
@given(graphs, st.lists(replies, max_size=8), st.lists(st.sampled_from(["go", "hello"]), min_size=1, max_size=3))
def test_a_record_replays_to_the_same_session(graph: SkillGraph, answers: list[Any], said: list[str]) -> None:
    """Through its lines too; and the same turns make the same record and the same requests."""
    agent, entries, session, model = asyncio.run(lived(graph, answers, said))
    again, others, _, other = asyncio.run(lived(graph, answers, said))
    assert [dumps(e.body) for e in entries] == [dumps(e.body) for e in others]
    assert [model.wire(r).body for r in model.requests] == [other.wire(r).body for r in other.requests]
    codec: EntryCodec = again.plan.codec
    read = list(codec.read(codec.lines(entries)))
    told = refold(session.key, read, agent.plan.folds, digest_key=session.digest_key)
    assert dumps_session(told) == dumps_session(session)


@settings(max_examples=40, deadline=None)
@given(graphs, st.lists(replies, max_size=8))
def test_tools_of_the_agent_and_the_door_are_always_offered(graph: SkillGraph, answers: list[Any]) -> None:
    """Whatever is parked, scoped or held back; and never a tool twice."""
    _, _, _, model = asyncio.run(lived(graph, answers, ["go"]))
    for request in model.requests:
        names = offered(request)
        assert len(set(names)) == len(names)
        if request.purpose == "speak":
            assert {"x", "y", "read_skill"} <= set(names)


def raising(_: Hop) -> bool:
    """A condition that breaks."""
    raise OSError("down")


trees = st.recursive(
    st.sampled_from(IDS),
    lambda below: st.builds(
        Decide, st.sampled_from([lambda _: True, lambda _: False, raising, lambda hop: hop.round > 1]), below, below
    ),
    max_leaves=8,
).filter(lambda tree: isinstance(tree, Decide))  # fmt: skip


def leaves(tree: Any) -> set[str]:
    """The skills that a tree can choose."""
    return {tree} if isinstance(tree, str) else leaves(tree.yes) | leaves(tree.no)


@settings(max_examples=40, deadline=None)
@given(trees, st.lists(replies, max_size=4))
def test_a_tree_has_one_leaf_in_each_request(tree: Any, answers: list[Any]) -> None:
    """Whatever its conditions do, and whatever a model asks for: there is nothing that would have to be watched."""
    chosen = leaves(tree)
    graph = SkillGraph([skill(id) for id in sorted(chosen)], tree=tree, check="off")
    _, entries, _, model = asyncio.run(lived(graph, answers, ["go"]))
    for request in model.requests:
        assert systems(request) in {f"About {id}." for id in chosen}
    assert all(entry.body.by == "entry" for entry in entries if isinstance(entry.body, SkillMoved))


outcomes = st.lists(
    st.builds(
        ToolOutcome,
        tool=st.sampled_from(TOOLS),
        status=st.sampled_from(["returned", "failed"]),
        text=st.text(max_size=5),
    ),
    max_size=3,
).map(tuple)
hops = st.builds(
    Hop, round=st.integers(1, 4), message=st.sampled_from(["go", ""]), results=outcomes,
    cursor=st.sampled_from(["", *IDS]), pick=st.sampled_from(["", *IDS]), proposal=st.sampled_from(["", *IDS]),
)  # fmt: skip


@given(graphs, hops)
def test_a_hop_has_one_outcome(graph: SkillGraph, hop: Hop) -> None:
    """The same again for the same hop; it stays exactly when it says so."""
    move = graph.explain(hop)
    assert move == graph.explain(hop)
    assert move.source == hop.cursor
    if move.by in {"stay", "none"}:
        assert move.to == hop.cursor
    assert all(not all(row.passed for row in rows) for _, rows in move.closed)
