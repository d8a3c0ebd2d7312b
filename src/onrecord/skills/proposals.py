"""What a tool proposes beside its result: to go on with another skill."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from onrecord.conversation.messages import ToolCall
from onrecord.skills.graph_plan import GraphPlan
from onrecord.skills.skill_entries import EffectJudged
from onrecord.skills.skill_state import SkillState
from onrecord.turn.turn import Turn

__all__ = ("judge_proposal",)


def judge_proposal(
    turn: Turn, state: SkillState, graph: GraphPlan | None, call: ToolCall, hidden: frozenset[str]
) -> str:
    """Files what becomes of a skill that the running call proposes. A refusal in words for the model, or nothing.

    It names no skill that may not be seen.
    The first proposal of a round that can be followed wins; it holds for the next request alone.
    """
    proposed = state.proposed
    if proposed is None:
        return ""
    told = EffectJudged(
        effect="propose-transition", outcome="accepted", tool=call.name, call=call.id, target=proposed.skill,
        reason=proposed.reason,
    )  # fmt: skip
    refusal = ""
    outcome: Literal["accepted", "refused", "superseded"] = "accepted"
    if graph is None:
        outcome, refusal = "refused", "there is no graph of skills"
    elif proposed.skill not in graph.reachable(state.cursor):
        outcome, refusal = "refused", "that skill could not be reached"
    elif state.proposal not in {"", proposed.skill}:
        outcome, refusal = "superseded", "another call had proposed another one"
    turn.note(replace(told, outcome=outcome, refusal=refusal) if refusal else told)
    named = "another skill" if proposed.skill in hidden else repr(proposed.skill)
    return f"The proposal to go on with {named} was {outcome}: {refusal}." if refusal else ""
