"""A graph of skills in turns (specification §15; seed 004: skillGraph)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.record.kinds import ModelRequested
from onrecord.skills import (
    Decide,
    Escalation,
    Hop,
    Intent,
    Keywords,
    Route,
    SkillGraph,
    SkillProposed,
    Start,
    ToolOutcome,
)
from onrecord.skills.skill_entries import (
    EffectJudged,
    RerouteSuperseded,
    RouteConflict,
    SkillActivated,
    SkillEscalated,
    SkillMoved,
    SkillRejected,
)
from onrecord.skills.skill_state import SkillState
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import ToolResult
from tests.skills.knowing import answering, descriptions, offered, pick, procedure, skill, systems
from tests.turn.acting import bodies, results, texts, tool, turn

pytestmark = pytest.mark.unit

A, B, C, D = (skill(id, f"tool_{id}") for id in "abcd")


def graph(*routes: Route, skills: Any = (A, B, C, D), start: Any = "a", **more: Any) -> SkillGraph:
    """A graph of four skills that is not checked up: its tests are about turns."""
    return SkillGraph(skills, start=start, routes=routes, check="off", **more)


def moves(result: Any) -> list[tuple[str, str, str]]:
    """From where to where the cursor went, and by what."""
    return [(b.source, b.to, b.by) for b in bodies(result, SkillMoved) if b.source != b.to]


# ---- beginning -------------------------------------------------------------------------------------------------------


async def test_121_a_keyword_begins_a_turn_and_is_the_witness() -> None:
    """Whatever its case, as a whole word (case 121)."""
    start = [Start("b", match=Keywords(["refund"]))]
    requests, result = await answering("done", said="please Refund", features=[graph(start=start)])
    (moved,) = bodies(result, SkillMoved)
    assert (moved.to, moved.by, moved.witness, moved.keyword) == ("b", "entry", "Refund", "refund")
    assert systems(requests[0]) == "About b."
    requests, result = await answering("done", said="my refunds", features=[graph(start=start)])
    assert (bodies(result, SkillMoved), systems(requests[0])) == ([], "")


async def test_the_first_start_that_matches_wins_and_a_default_is_always_in_use() -> None:
    """The default's text stays when a rule leads elsewhere."""
    start = [Start("b", match=Keywords(["refund"])), Start("c", only_if=lambda hop: "x" in hop.message), "a"]
    for said, told, cursor in (
        ("refund x", "About a.\n\nAbout b.", "b"), ("x", "About a.\n\nAbout c.", "c"), ("hello", "About a.", "a"),
    ):  # fmt: skip
        requests, result = await answering("done", said=said, features=[graph(start=start)])
        assert (systems(requests[0]), moves(result)) == (told, [("", cursor, "entry")])


async def test_a_condition_that_raises_does_not_hold() -> None:
    """And ends no turn."""
    start = [Start("b", only_if=lambda hop: hop.nothing), "a"]  # type: ignore[attr-defined] # it raises
    _, result = await answering("done", features=[graph(start=start)])
    assert moves(result) == [("", "a", "entry")]


async def test_the_model_reads_where_entries_are_given() -> None:
    """Nothing is in use until it picks."""
    requests, result = await answering(pick("b"), "done", features=[SkillGraph([A, B], entries=["a", B], check="off")])
    assert [systems(request) for request in requests] == ["", "About b."]
    assert moves(result) == [("", "b", "model-pick")]


# ---- going on --------------------------------------------------------------------------------------------------------


async def test_122_the_first_result_of_a_round_decides_and_the_conflict_is_told() -> None:
    """In call order (case 122)."""
    held = graph(Route("a", "b", on_tool="x"), Route("a", "c", on_tool="y"))
    requests, result = await answering([call("x"), call("y")], "done", tools=[tool("x"), tool("y")], features=[held])
    assert moves(result)[-1] == ("a", "b", "route")
    (conflict,) = bodies(result, RouteConflict)
    assert (conflict.winner.tool, [(lost.tool, lost.target) for lost in conflict.losers]) == ("x", [("y", "c")])
    assert systems(requests[1]) == "About a.\n\nAbout b."


async def test_123_a_route_beats_what_the_model_picked() -> None:
    """And the record says what lost (case 123)."""
    held = graph(Route("a", "b", on_tool="x"), Route("a", "d"))
    _, result = await answering([pick("d"), call("x")], "done", tools=[tool("x")], features=[held])
    assert moves(result)[-1] == ("a", "b", "route")
    (lost,) = bodies(result, RerouteSuperseded)
    assert (lost.volunteered, lost.won, lost.source, lost.by) == ("d", "b", "a", "model-pick")


async def test_a_pick_that_may_lose_is_not_told_as_done() -> None:
    """A skill beside the graph is taken up in any case."""
    held = graph(Route("a", "b"), loose=[skill("e")])
    requests, _ = await answering([pick("b"), pick("e")], "done", features=[held])
    hop, loose = texts(requests[1])
    assert "unless another result of this step leads elsewhere" in hop
    assert "unless" not in loose


async def test_124_a_guard_opens_or_stays_closed_with_evidence() -> None:
    """The status of a result, say; ours are the words of `ToolCall.status` (case 124)."""
    ran: list[str] = []

    def once(args: Any, ctx: Any) -> Any:
        ran.append("x")
        if len(ran) > 1:
            raise OSError("down")
        return "fine"

    held = graph(Route("a", "b", guard={"status": {"eq": "failed"}}))
    _, result = await answering(call("x"), call("x"), "done", tools=[tool("x", once)], features=[held])
    first, second = bodies(result, SkillMoved)[1:]
    assert (first.source, first.to, first.by) == ("a", "a", "stay")
    ((target, rows),) = first.guards_closed
    assert (target, [(r.key, r.op, r.value, r.actual, r.passed) for r in rows]) == (
        "b", [("status", "eq", "failed", "returned", False)],
    )  # fmt: skip
    assert (second.to, second.by, [r.passed for r in second.guard]) == ("b", "route", [True])


@pytest.mark.parametrize(
    ("route", "moved"),
    [
        (Route("a", "b", on_tool="x"), True),
        (Route("a", "b", on_tool="y"), False),
        (Route("a", "b", on_status="returned"), True),
        (Route("a", "b", on_tool="x", on_status=["failed", "partial"]), False),
        (Route("a", "b", only_if=lambda outcome: outcome.text == "x"), True),
        (Route("a", "b", only_if=lambda _: bool(1 / 0)), False),
        (Route("a", "b"), False),
        (Route("b", "c", on_tool="x"), False),
    ],
)
async def test_what_takes_a_route(route: Route, moved: bool) -> None:
    """A tool, a status, code; none of them is a route that only the model takes."""
    _, result = await answering(call("x"), "done", tools=[tool("x")], features=[graph(route)])
    assert (moves(result)[1:] == [("a", "b", "route")]) is moved


async def test_a_tool_may_propose_where_to_go_on() -> None:
    """The first that can be followed wins over what the model picks; what cannot is told to the model."""

    def proposing(to: str) -> Any:
        return lambda *_: ToolResult("ok", facts=(SkillProposed(skill=to, reason="because"),))

    tools = [tool("p", proposing("b")), tool("q", proposing("c")), tool("z", proposing("d"))]
    held = graph(Route("a", "b"), Route("a", "c"))
    requests, result = await answering(
        [call("z"), call("p"), call("q"), pick("c")], "done", tools=tools, features=[held]
    )
    assert moves(result)[-1] == ("a", "b", "tool-proposal")
    assert [(b.target, b.outcome) for b in bodies(result, EffectJudged)] == [
        ("d", "refused"), ("b", "accepted"), ("c", "superseded"),
    ]  # fmt: skip
    told = texts(requests[1])
    assert told[0] == "ok\n\nThe proposal to go on with 'd' was refused: that skill could not be reached."
    assert (told[1], [b.volunteered for b in bodies(result, RerouteSuperseded)]) == ("ok", ["c"])


async def test_a_tool_may_propose_where_to_begin() -> None:
    """Where nothing has begun, at one of the entries."""
    propose = [tool(f"to_{id}", lambda *_, id=id: ToolResult("ok", facts=(SkillProposed(skill=id),))) for id in "bc"]
    held = SkillGraph([A, B, C], entries=["a", "b"], check="off")
    for id, moved in (("b", [("", "b", "tool-proposal")]), ("c", [])):
        _, result = await answering(call(f"to_{id}"), "done", features=[held], tools=propose)
        assert moves(result) == moved


async def test_a_proposal_holds_for_one_request() -> None:
    """What was not followed is gone."""

    def proposes(args: Any, ctx: Any) -> Any:
        return ToolResult("ok", facts=(SkillProposed(skill="b"),))

    held = graph(Route("a", "b"), Route("a", "c", on_tool="p"), Route("c", "b"))
    _, result = await answering(call("p"), call("x"), "done", tools=[tool("p", proposes), tool("x")], features=[held])
    assert moves(result) == [("", "a", "entry"), ("a", "c", "route")]


async def test_the_cursor_begins_anew_with_each_turn() -> None:
    """Unless the graph says otherwise."""
    held = graph(Route("a", "b", on_tool="x"))
    model = ScriptedModel(call("x"), "done", "later")
    agent = Agent(model, tools=[tool("x")], features=[held])
    first = await turn(agent, "one")
    second = await turn(agent, "two", session=first.session)
    assert moves(second) == [("", "a", "entry")]


# ---- the gate --------------------------------------------------------------------------------------------------------


async def test_125_what_cannot_be_reached_is_refused_and_changes_nothing() -> None:
    """With those that can, hidden ones left out of the sentence and of the record (case 125)."""
    held = graph(Route("a", "b"), Route("a", "d"), visible=lambda _, id: id != "d", loose=[skill("e")])
    requests, result = await answering(pick("c"), "done", features=[held])
    assert texts(requests[1]) == [
        "The skill 'c' was not taken up: it could not be reached from 'a'. What could be: b, e."
    ]
    (rejected,) = bodies(result, SkillRejected)
    assert (rejected.requested, rejected.current, rejected.allowed) == ("c", "a", ("b", "e"))
    assert (bodies(result, SkillActivated), moves(result)[1:], results(result)) == ([], [], [("read_skill", "denied")])
    assert systems(requests[1]) == "About a."


async def test_what_read_skill_says_follows_the_cursor() -> None:
    """Those that can be reached with what they are for, the others by name."""
    held = graph(Route("a", "b", on_tool="x"), Route("b", "c"), loose=[skill("e")])
    requests, _ = await answering(call("x"), "done", tools=[tool("x")], features=[held])
    first, second = (descriptions(request)["read_skill"] for request in requests)
    assert "From here you can take up:\n- b: For b.\n- e: For e." in first
    assert "refused: c, d." in first  # to ask for the one in use is to stay
    assert "- c: For c.\n- a: For a.\n- e: For e." in second
    assert "refused: d." in second


async def test_loose_skills_are_taken_up_anywhere_and_move_nothing() -> None:
    """Under any strictness."""
    for strictness in ("assist", "guard", "rails"):
        held = graph(loose=[skill("e")], strictness=strictness)
        requests, result = await answering(pick("e"), "done", features=[held])
        assert systems(requests[1]) == "About a.\n\nAbout e."
        assert [b.hop for b in bodies(result, SkillActivated)] == [False]
        assert moves(result) == [("", "a", "entry")]


async def test_asking_for_the_skill_in_use_is_staying() -> None:
    """Never a refusal."""
    for strictness in ("assist", "guard", "rails"):
        _, result = await answering(pick("a"), "done", features=[graph(strictness=strictness)])
        assert (bodies(result, SkillRejected), moves(result)[1:]) == ([], [])


async def test_126_under_guard_only_an_open_menu_is_a_choice() -> None:
    """Where a near tie left one (case 126)."""
    held = menu_graph("guard")
    _, result = await answering(pick("c"), pick("b"), "done", features=[held])
    assert [(b.requested, b.posture, b.allowed) for b in bodies(result, SkillRejected)] == [("c", "guard", ("a", "b"))]
    assert moves(result) == [("", "b", "model-pick")]


async def test_126_under_guard_without_a_menu_every_hop_is_refused() -> None:
    """Although a way leads there."""
    requests, result = await answering(pick("b"), "done", features=[graph(Route("a", "b"), strictness="guard")])
    assert [(b.posture, b.allowed) for b in bodies(result, SkillRejected)] == [("guard", ())]
    assert "no choice was open" in texts(requests[1])[0]


async def test_126_under_rails_every_hop_is_refused() -> None:
    """Only code moves the cursor (case 126)."""
    held = graph(Route("a", "b"), Route("a", "c", on_tool="x"), strictness="rails")
    requests, result = await answering(pick("b"), call("x"), "done", tools=[tool("x")], features=[held])
    assert [b.posture for b in bodies(result, SkillRejected)] == ["rails"]
    assert "the way from there was fixed" in texts(requests[1])[0]
    assert moves(result)[-1] == ("a", "c", "route")


class Scores:
    """A scorer that gives what it is told to."""

    name, floor, categorical = "scores", None, False

    def __init__(self, **scores: float) -> None:
        self.scores = scores

    async def score(self, turn: Any, message: str, candidates: Any, /) -> Any:
        return self.scores


def menu_graph(strictness: Any = "assist", **more: Any) -> SkillGraph:
    """A graph whose turns begin with a near tie between a and b."""
    start = [Start(id, match=Intent(f"wants {id}")) for id in "ab"] + [Start("c", match=Keywords(["never"]))]
    return graph(start=start, classify=Scores(a=0.4, b=0.1), strictness=strictness, **more)


# ---- models, tools, steps --------------------------------------------------------------------------------------------


async def test_131_after_refusals_another_model_answers_the_rest_of_the_turn() -> None:
    """Once; the next turn begins with the first one again (case 131)."""
    big = ScriptedModel(pick("c"), "big")
    model = ScriptedModel(pick("b"), pick("c"), "small again")
    held = graph(escalation=Escalation(big, after_refusals=2))
    agent = Agent(model, features=[held])
    first = await turn(agent, "one")
    second = await turn(agent, "two", session=first.session)
    assert [(b.after_refusals, b.refusals) for b in bodies(first, SkillEscalated)] == [(2, 2)]
    assert (first.text, second.text, len(big.requests)) == ("big", "small again", 2)


async def test_166_a_skill_of_a_graph_has_a_model_of_its_own() -> None:
    """While the cursor is there (case 166)."""
    big = ScriptedModel(call("y"))
    model = ScriptedModel(call("x"), "done")
    held = graph(Route("a", "b", on_tool="x"), Route("b", "c", on_tool="y"), models={"b": big})
    result = await turn(Agent(model, tools=[tool("x"), tool("y")], features=[held]))
    assert (len(big.requests), len(model.requests), len(bodies(result, ModelRequested))) == (1, 2, 3)


async def test_a_graph_may_scope_its_tools() -> None:
    """Offered while their skill is in use; those of loose skills are not its business."""
    held = graph(Route("a", "b", on_tool="x"), scope_tools=True, loose=[skill("e", "tool_e")])
    requests, _ = await answering(call("x"), "done", tools=[tool("x")], features=[held])
    assert [offered(request) for request in requests] == [
        ["x", "read_skill", "tool_a", "tool_e"],
        ["x", "read_skill", "tool_a", "tool_b", "tool_e"],
    ]


async def test_the_procedure_of_the_cursor_runs() -> None:
    """It begins when the cursor arrives, and leaves with it."""
    steps = procedure("p")
    held = graph(Route("a", "p", on_tool="x"), Route("p", "a", on_tool="y"), skills=(A, steps))
    requests, _ = await answering(
        call("x"), call("t1"), call("y"), "done", tools=[tool("x"), tool("y")], features=[held]
    )
    shown = [next((t for t, told in descriptions(r).items() if told.startswith("[Step")), "") for r in requests]
    assert shown == ["", "t1", "t2", ""]


# ---- trees -----------------------------------------------------------------------------------------------------------


def tree(**more: Any) -> SkillGraph:
    """Long messages go to b, others to a."""
    decide = Decide(
        lambda hop: len(hop.message) > 3, "b", Decide(lambda hop: "!" in hop.message, "c", "a"), label="long?"
    )
    return SkillGraph([A, B, C], tree=decide, check="off", **more)


@pytest.mark.parametrize(("said", "leaf"), [("hello", "b"), ("hi", "a"), ("hi!", "c")])
async def test_a_tree_decides_by_itself(said: str, leaf: str) -> None:
    """One leaf is in use, with its tools; the model may go nowhere, and is told why."""
    requests, result = await answering(pick("a"), "done", said=said, features=[tree()])
    assert systems(requests[0]) == f"About {leaf}."
    assert offered(requests[0]) == ["read_skill", f"tool_{leaf}"]
    assert "a decision tree chooses" in texts(requests[1])[0]
    assert moves(result) == [("", leaf, "entry")]


# ---- reading it ------------------------------------------------------------------------------------------------------


def test_a_graph_can_be_asked_where_it_would_go() -> None:
    """Without an agent."""
    held = graph(Route("a", "b", on_tool="x"))
    assert held.next_skill(Hop(message="hi")) == "a"
    outcome = ToolOutcome(tool="x", status="returned", text="ok")
    assert held.explain(Hop(round=2, cursor="a", results=(outcome,))).by == "route"
    assert (held.reachable(), held.reachable("a"), held.reachable("c")) == (("a",), ("b",), ("a",))


async def test_state_stays_with_its_turn() -> None:
    """Nothing of it is left in the session of a turn that closed."""
    _, result = await answering("done", features=[graph()])
    assert result.session is not None
    assert "skills" not in result.session.slots
    assert SkillState() == SkillState(rounds=0)
