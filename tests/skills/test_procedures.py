"""Procedures: declared steps of a skill (specification §14.5)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.messages import Round
from onrecord.errors import ToolInvalid
from onrecord.skills import Skills, SkillStep
from onrecord.skills.skill_entries import StepAdvanced, StepSkipped, StepsUnfinished
from onrecord.testing import ScriptedModel, call
from onrecord.turn.moments import Hooks, Stop
from onrecord.turn.turn import Turn
from tests.skills.knowing import answering, descriptions, offered, pick, procedure, skill, systems
from tests.turn.acting import Named, bodies, texts, tool

pytestmark = pytest.mark.unit

RETURNS = procedure()


async def test_119_one_step_at_a_time() -> None:
    """The other steps' tools are held back, the next one's says which step it is (case 119)."""
    requests, result = await answering(
        pick("returns"), call("t1"), call("t2"), "done", features=[Skills(RETURNS)], tools=[tool()]
    )
    assert [offered(request) for request in requests] == [
        ["lookup", "read_skill", "t1", "t2"],
        ["lookup", "read_skill", "skip_step", "t1"],
        ["lookup", "read_skill", "skip_step", "t2"],
        ["lookup", "read_skill", "t1", "t2"],
    ]
    assert descriptions(requests[1])["t1"].startswith("[Step 1 of 2 — n1] ")
    assert descriptions(requests[2])["t2"] == "[Step 2 of 2 — n2] About t2."
    told = texts(requests[3])
    assert "Step 1 is n1: call t1." in told[0]
    assert told[1].startswith("t1\n\n")
    assert "Step 2 of 2 is next: n2, with t2." in told[1]
    assert "The procedure 'returns' is complete." in told[2]
    assert [(b.step, b.total, b.tool, b.completed) for b in bodies(result, StepAdvanced)] == [
        (1, 2, "t1", False), (2, 2, "t2", True),
    ]  # fmt: skip
    assert result.text == "done"


async def test_119_a_step_is_skipped_for_a_reason_only() -> None:
    """Without one the procedure stays where it is (case 119)."""
    requests, result = await answering(
        pick("returns"), call("skip_step", reason=" "), call("skip_step", reason="x"), call("t2"), "done",
        features=[Skills(RETURNS)],
    )  # fmt: skip
    assert [offered(r)[-1] for r in requests[1:]] == ["t1", "t1", "t2", "t2"]
    assert [(b.step, b.reason, b.policy) for b in bodies(result, StepSkipped)] == [(1, "x", "advance")]
    assert "say why" in texts(requests[2])[1]
    assert "Step 1 of 2 was skipped. Step 2 of 2 is next" in texts(requests[3])[2]
    assert "n1" in descriptions(requests[1])["skip_step"]


async def test_119_an_early_answer_is_sent_back_once() -> None:
    """With the steps that are left; the next one stands (case 119)."""
    requests, result = await answering(pick("returns"), call("t1"), "early", "later", features=[Skills(RETURNS)])
    assert "2. n2 (t2)" in str(requests[3].conversation.units[-1])
    assert result.text == "later"
    assert [(b.action, b.remaining) for b in bodies(result, StepsUnfinished)] == [
        ("nudged", ("t2",)), ("accepted", ("t2",)),
    ]  # fmt: skip


async def test_after_a_stop_the_answer_is_cut_short_and_not_sent_back() -> None:
    """No request may follow."""

    async def stops(turn: Turn, held: Round) -> Round:
        if held.text == "early":
            turn.stop(Stop("enough"))
        return held

    features = [Skills(RETURNS), Named("stops", Hooks(on_reply=stops))]
    _, result = await answering(pick("returns"), "early", features=features)
    assert [b.action for b in bodies(result, StepsUnfinished)] == ["cut-short"]
    assert result.text == "early"


async def test_under_hold_a_skipped_step_stays() -> None:
    """The reason is on the record; the procedure is not past it."""
    features = [Skills(procedure(on_skip="hold"))]
    requests, result = await answering(
        pick("returns"), call("skip_step", reason="tired"), "early", "late", features=features
    )
    assert offered(requests[2])[-1] == "t1"
    assert "stays at step 1" in texts(requests[2])[1]
    assert [b.policy for b in bodies(result, StepSkipped)] == ["hold"]


async def test_a_step_that_failed_is_not_done() -> None:
    """The same step is next."""

    def broken(args: Any, ctx: Any) -> str:
        raise OSError("down")

    features = [Skills(skill("a", tool("t1", broken), steps=(SkillStep("t1", "n1"),)))]
    requests, result = await answering(pick("a"), call("t1"), "x", "y", features=features)
    assert bodies(result, StepAdvanced) == []
    assert descriptions(requests[2])["t1"].startswith("[Step 1 of 1 — n1] ")


async def test_a_procedure_begins_anew_when_another_skill_was_in_between() -> None:
    """The same skill again keeps its place."""
    features = [Skills(RETURNS, skill("b"))]
    requests, _ = await answering(
        pick("returns"), call("t1"), pick("returns"), pick("b"), pick("returns"), "x", "y", features=features, rounds=9
    )
    assert [next((s for s in ("t1", "t2") if f"{s} " in offered_text(r)), "") for r in requests[1:6]] == [
        "t1", "t2", "t2", "", "t1",
    ]  # fmt: skip


def offered_text(request: Any) -> str:
    """The step whose tool bears a banner, with a blank behind it."""
    told = descriptions(request)
    return "".join(f"{name} " for name, text in told.items() if text.startswith("[Step"))


async def test_a_step_tool_stays_where_another_source_offers_it() -> None:
    """Another skill in use, or the agent itself."""
    features = [Skills(RETURNS, skill("b", *[t for t in RETURNS.tools if t.id == "t2"]))]
    requests, _ = await answering(pick("b"), pick("returns"), "x", "y", features=features)
    assert "t2" in offered(requests[2])


async def test_a_later_steps_tool_does_no_step_before_its_turn() -> None:
    """It may be there, since another skill offers it; what is due stays due."""
    features = [Skills(RETURNS, skill("b", *[t for t in RETURNS.tools if t.id == "t2"]))]
    requests, result = await answering(pick("b"), pick("returns"), call("t2"), call("t1"), "x", "y", features=features)
    assert [(b.step, b.tool) for b in bodies(result, StepAdvanced)] == [(1, "t1")]
    assert "is done" not in texts(requests[3])[-1]


async def test_a_step_taken_in_the_round_that_takes_the_skill_up_does_not_count() -> None:
    """It was asked for before anybody had read the procedure."""
    requests, result = await answering([pick("returns"), call("t1")], "x", "y", features=[Skills(RETURNS)])
    assert bodies(result, StepAdvanced) == []
    assert descriptions(requests[1])["t1"].startswith("[Step 1 of 2")


async def test_a_hint_stands_while_a_procedure_runs() -> None:
    """And no longer."""
    requests, _ = await answering(pick("returns"), call("t1"), call("t2"), "done", features=[Skills(RETURNS)])
    assert ["step by step" in systems(request) for request in requests] == [False, True, True, False]


async def test_without_steps_nothing_of_procedures_is_there() -> None:
    """No tool, no held drafts, no output hook."""
    plan = Agent(ScriptedModel(), features=[Skills(skill("a", "t"))]).plan
    assert ("skip_step" in plan.tools, plan.holds_drafts, plan.on["output"]) == (False, False, ())
    with_steps = Agent(ScriptedModel(), features=[Skills(RETURNS)]).plan
    assert ("skip_step" in with_steps.tools, with_steps.holds_drafts) == (True, True)


async def test_the_agents_own_tool_may_not_be_called_skip_step() -> None:
    """The id is taken."""
    with pytest.raises(ToolInvalid, match="two tools have the id 'skip_step'"):
        await answering("x", tools=[tool("skip_step")], features=[Skills(RETURNS)])


async def test_skipping_without_a_procedure_says_so() -> None:
    """A model may remember the tool from before."""
    requests, _ = await answering(call("skip_step", reason="x"), "done", features=[Skills(RETURNS)])
    assert texts(requests[1]) == ["No procedure runs, so there is no step to skip."]
