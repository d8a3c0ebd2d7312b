"""The tools by which a model reaches skills, and everything that they say to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onrecord.jsonio import Json, dumps
from onrecord.skills.skill import Skill
from onrecord.skills.skill_kinds import SkillRejected
from onrecord.tools.tool import Tool

__all__ = ("LIST_SKILLS", "READ_SKILL", "SKIP_STEP", "catalog", "door_text", "list_skills", "read_skill", "skip_step")

READ_SKILL = "read_skill"
LIST_SKILLS = "list_skills"
SKIP_STEP = "skip_step"

TAKES_UP = (
    "Takes up a skill: its instructions, and the tools that come with it, are then in use for the rest of this turn. "
    "Call it before you work on something that a skill is for."
)


def lines_of(skills: Iterable[Skill]) -> str:
    """A skill per line."""
    return "\n".join(f"- {skill.id}: {' '.join(skill.description.split())}" for skill in skills)


def door_text(skills: Sequence[Skill]) -> str:
    """What ``read_skill`` says where every skill can be taken up at any time."""
    return f"{TAKES_UP}\n\nSkills:\n{lines_of(skills)}" if skills else f"{TAKES_UP}\n\nThere is no skill for now."


LISTED = f"{TAKES_UP} {LIST_SKILLS} tells which skills there are."


def routed_text(reachable: Sequence[Skill], others: Sequence[str], menu: str, *, open_too: Sequence[Skill] = ()) -> str:
    """What ``read_skill`` says where a graph decides which skills can be reached from here."""
    parts = [menu, TAKES_UP] if menu else [TAKES_UP]
    can = [*reachable, *open_too]
    parts.append(f"From here you can take up:\n{lines_of(can)}" if can else "From here no skill can be taken up.")
    if others:
        parts.append(f"Not from here, so that asking for them is refused: {', '.join(others)}.")
    return "\n\n".join(parts)


def menu_text(offered: Sequence[tuple[str, float | None]], *, stay: str) -> str:
    """The skills that what was said may mean, with how well they fit, and that staying is a choice."""
    rows = ", ".join(skill if share is None else f"{skill} ({share:.0%})" for skill, share in offered)
    told = f"What the person wants may be one of these: {rows}. If one fits, call {READ_SKILL} with it first."
    return f"{told} If none does, stay with {stay!r}." if stay else f"{told} If none does, answer without."


def read_skill(skills: Mapping[str, Skill], description: str) -> Tool:
    """The tool that takes up a skill. Its result is the text, or says where that will stand."""

    async def handler(args: Mapping[str, Json], ctx: Any) -> str:  # async: it is not worth a thread
        skill = skills[args["id"]]
        return skill.text if skill.in_result else taken_up(skill)

    return Tool(
        READ_SKILL, handler, description, parameters=_choice("id", "The skill's id.", list(skills)), read_only=True,
        check_arguments=True,
    )  # fmt: skip


def taken_up(skill: Skill) -> str:
    """What ``read_skill`` answers where the text stands among the instructions."""
    return f"The skill {skill.id!r} is in use from your next step on; its instructions stand among yours."


def list_skills(skills: Sequence[Skill]) -> Tool:
    """The tool that names all skills."""
    told = catalog(skills)

    async def handler(args: Mapping[str, Json], ctx: Any) -> str:
        return told

    return Tool(
        LIST_SKILLS, handler, f"Lists the skills that {READ_SKILL} can take up, as JSON: id and description.",
        read_only=True,
    )  # fmt: skip


def catalog(skills: Iterable[Skill]) -> str:
    """The skills as JSON, as ``list_skills`` returns them."""
    return dumps([{"id": skill.id, "description": skill.description} for skill in skills]).decode()


def _choice(name: str, about: str, words: list[str]) -> Mapping[str, Json]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": about, "enum": words}},
        "required": [name],
        "additionalProperties": False,
    }


def skip_step() -> Tool:
    """The tool that passes over a step of a procedure; what it answers depends on the step."""

    async def handler(args: Mapping[str, Json], ctx: Any) -> str:
        return ""

    return Tool(
        SKIP_STEP, handler, "Skips the step of the procedure that is next, for a reason.",
        parameters={
            "type": "object",
            "properties": {"reason": {"type": "string", "description": "Why this step is not needed."}},
            "required": ["reason"],
            "additionalProperties": False,
        },
        check_arguments=True,
    )  # fmt: skip


def refusal_text(refused: SkillRejected, *, tree: bool) -> str:
    """Why a skill cannot be taken up from here. It names none that this person may not see."""
    what = f"The skill {refused.requested!r} cannot be taken up"
    if tree:
        return f"{what}: a decision tree chooses the skill here. Go on with the one that is in use."
    if refused.posture == "rails":
        return f"{what}: the way from here is fixed. Go on with the skill that is in use."
    if refused.posture == "guard" and not refused.allowed:
        return f"{what}: no choice is open now. Go on with the skill that is in use."
    told = f"You can take up: {', '.join(refused.allowed)}." if refused.allowed else "There is none that can be."
    return f"{what} from here. {told}"


def recalled_text(refused: SkillRejected) -> str:
    """What is answered to a skill of a parked graph that cannot be reached from where that stands."""
    can = f" From there you can take up: {', '.join(refused.allowed)}." if refused.allowed else ""
    return (
        f"The skills are in use again from your next step on, at {refused.current!r}, not {refused.requested!r}.{can}"
    )
