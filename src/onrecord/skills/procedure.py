"""Procedures: a skill's declared steps, one offered at a time, with leave to skip and one reminder."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.content import Text
from onrecord.conversation.messages import Note
from onrecord.models.request import Piece
from onrecord.skills.cursor import RAN
from onrecord.skills.skill import Skill, SkillStep
from onrecord.skills.skill_entries import StepAdvanced, StepSkipped, StepsUnfinished
from onrecord.skills.skill_state import SkillFold, SkillState
from onrecord.skills.skill_tools import SKIP_STEP
from onrecord.turn.answer import may_ask_again
from onrecord.turn.moments import ALLOW, Allow, Answer, Rank, Returned, Revise
from onrecord.turn.turn import Turn

__all__ = ("At", "Procedures")

BY = "skills"


class At(Struct, frozen=True, kw_only=True):
    """The step of a procedure that is next: ``number`` of ``total``."""

    skill: Skill
    number: int
    total: int
    step: SkillStep

    @property
    def banner(self) -> str:
        """What stands before the description of its tool."""
        return f"[Step {self.number} of {self.total} — {self.step.note}] "

    @property
    def hint(self) -> Piece:
        """What the model is told while a procedure runs."""
        text = (
            f"You are carrying out the procedure {self.skill.id!r} step by step: do the step that is marked on its "
            f"tool, or call {SKIP_STEP} with a reason, before you answer."
        )
        return Piece(source="procedure", text=text, rank=Rank.SKILL, cache="while_active")

    @property
    def skipping(self) -> str:
        """How ``skip_step`` is described now."""
        then = "the next step follows" if self.skill.on_skip != "hold" else "the procedure stays at it"
        return (
            f"Skips step {self.number} of {self.total} of {self.skill.id!r} ({self.step.note}), for a reason that you "
            f"give: {then}."
        )


class Procedures:
    """The procedures of an agent's skills, read and moved on by what its turns file."""

    def __init__(self, skills: Mapping[str, Skill], fold: SkillFold) -> None:
        self.skills = {id: skill for id, skill in skills.items() if skill.steps}
        self.fold = fold
        self.tools = frozenset(step.tool for skill in self.skills.values() for step in skill.steps or ())

    def at(self, state: SkillState) -> At | None:
        """The step that is next, while a procedure runs."""
        skill = self.skills.get(state.tenure)
        steps = skill.steps if skill is not None else None
        if skill is None or not steps or state.step > len(steps):
            return None
        return At(skill=skill, number=state.step, total=len(steps), step=steps[state.step - 1])

    def is_done(self, state: SkillState, skill: Skill) -> bool:
        """Whether this skill is the one whose procedure runs, and that is done."""
        return bool(skill.steps) and state.tenure == skill.id and state.step > len(skill.steps or ())

    def intro(self, state: SkillState, skill: Skill) -> Note | None:
        """What ``read_skill`` adds for a skill with steps: the first, or the one that is next where it runs already."""
        if not skill.steps:
            return None
        at = self.at(state) if state.tenure == skill.id else None
        number = 1 if at is None else at.number
        step = skill.steps[number - 1]
        told = f"It has {len(skill.steps)} steps. Step {number} is {step.note}: call {step.tool}."
        return Note(by=BY, text=f"\n\n{told}")

    def stepped(self, turn: Turn, returned: Returned) -> Allow[Returned]:
        """The step is done when its tool ran without an error; the result then says what is next."""
        if returned.call.name not in self.tools or returned.status not in RAN:
            return ALLOW
        at = self.at(turn.state(self.fold))
        if at is None or at.step.tool != returned.call.name:
            return ALLOW
        done = at.number == at.total
        turn.note(
            StepAdvanced(
                skill=at.skill.id, step=at.number, total=at.total, tool=at.step.tool, note=at.step.note,
                call=returned.call.id, completed=done,
            )
        )  # fmt: skip
        told = f"Step {at.number} of {at.total} is done. {self._next(turn, at)}"
        return Allow(
            replace(returned, notes=(*returned.notes, Note(by=BY, text=f"\n\n{told}"))), "what is next was added"
        )

    def _next(self, turn: Turn, was: At) -> str:
        now = self.at(turn.state(self.fold))
        if now is None:
            return f"The procedure {was.skill.id!r} is complete."
        return f"Step {now.number} of {now.total} is next: {now.step.note}, with {now.step.tool}."

    def skipped(self, turn: Turn, returned: Returned) -> Allow[Returned]:
        """The step that is next is passed over, if a reason is given."""
        at = self.at(turn.state(self.fold))
        reason = str(returned.call.args.get("reason", "")).strip()
        if at is None:
            return self._told(
                returned, "No procedure runs, so there is no step to skip.", "nothing to skip", failed=True
            )
        if not reason:
            return self._told(
                returned, f"Step {at.number} was not skipped: say why it is not needed.", "no reason given", failed=True
            )
        policy = at.skill.on_skip or "advance"
        turn.note(
            StepSkipped(
                skill=at.skill.id, step=at.number, total=at.total, tool=at.step.tool, note=at.step.note, reason=reason,
                policy=policy,
            )
        )  # fmt: skip
        if policy == "hold":
            told = (
                f"Your reason was noted. The procedure stays at step {at.number}: {at.step.note}, with {at.step.tool}."
            )
        else:
            told = f"Step {at.number} of {at.total} was skipped. {self._next(turn, at)}"
        return self._told(returned, told, "the step was skipped")

    def _told(self, returned: Returned, text: str, why: str, *, failed: bool = False) -> Allow[Returned]:
        status = "failed" if failed else returned.status
        return Allow(replace(returned, content=(Text(text),), status=status), why)

    async def finished(self, turn: Turn, answer: Answer) -> Allow[Answer] | Revise:
        """An answer before the last step is sent back once, then accepted."""
        state = turn.state(self.fold)
        at = None if answer.verbatim else self.at(state)
        if at is None:
            return ALLOW
        left = (at.skill.steps or ())[at.number - 1 :]
        cut = not may_ask_again(turn)
        filed = StepsUnfinished(
            skill=at.skill.id, remaining=tuple(step.tool for step in left), total=at.total,
            action="cut-short" if cut else "accepted" if state.nudged else "nudged",
        )  # fmt: skip
        turn.note(filed)
        if filed.action != "nudged":
            return ALLOW
        steps = "; ".join(f"{at.number + place}. {step.note} ({step.tool})" for place, step in enumerate(left))
        return Revise(
            f"The procedure {at.skill.id!r} is not finished. These steps are left: {steps}. Do them, or skip each with "
            f"{SKIP_STEP} and a reason, and then answer."
        )
