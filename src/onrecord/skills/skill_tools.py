"""The tools by which a model reaches skills, and everything that they say to it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from onrecord.jsonio import Json, dumps
from onrecord.models.request import Piece
from onrecord.skills.skill import Skill
from onrecord.skills.skill_entries import SkillRejected
from onrecord.tools.tool import Tool
from onrecord.turn.moments import Rank

__all__ = (
    "LIST_SKILLS",
    "NAMES",
    "READ_SKILL",
    "SKIP_STEP",
    "catalog",
    "list_skills",
    "open_text",
    "read_skill",
    "skip_step",
)  # fmt: skip

READ_SKILL = "read_skill"
LIST_SKILLS = "list_skills"
SKIP_STEP = "skip_step"
NAMES = frozenset({READ_SKILL, LIST_SKILLS, SKIP_STEP})

TAKES_UP = (
    "Takes up a skill: its instructions, and the tools that come with it, are then in use for the rest of this turn. "
    "Call it before you work on something that a skill is for."
)


def lines_of(skills: Iterable[Skill]) -> str:
    """A skill per line."""
    return "\n".join(f"- {skill.id}: {' '.join(skill.description.split())}" for skill in skills)


def open_text(skills: Sequence[Skill]) -> str:
    """What ``read_skill`` says where every skill can be taken up at any time."""
    return f"{TAKES_UP}\n\nSkills:\n{lines_of(skills)}" if skills else TAKES_UP


MOST_DESCRIBED = 1024
"""Some vendors refuse a request with a tool whose description is longer."""

ELSEWHERE = f"{TAKES_UP} Which skills there are stands among your instructions."

LISTED = f"{TAKES_UP} {LIST_SKILLS} tells which skills there are."


def placed(text: str) -> tuple[str, tuple[Piece, ...]]:
    """What ``read_skill`` is described by, and what stands among the instructions because it is too long for that."""
    if len(text) <= MOST_DESCRIBED:
        return text, ()
    return ELSEWHERE, (Piece(source="skill-catalog", text=text, rank=Rank.SKILL, cache="while_active"),)


def routed_text(can: Sequence[Skill], others: Sequence[str], menu: str, *, some_hidden: bool) -> str:
    """What ``read_skill`` says where a graph decides which skills can be reached from here.

    Where some may not be seen, that there is none is not said: it would tell that there are others.
    """
    parts = [menu, TAKES_UP] if menu else [TAKES_UP]
    if can:
        parts.append(f"From here you can take up:\n{lines_of(can)}")
    elif not some_hidden:
        parts.append("From here no skill can be taken up.")
    if others:
        parts.append(f"Not from here, so that asking for them is refused: {', '.join(others)}.")
    return "\n\n".join(parts)


def menu_text(offered: Sequence[tuple[str, float | None]], *, stay: str) -> str:
    """The skills that what was said may mean, with how well they fit, and that staying is a choice."""
    rows = ", ".join(skill if share is None else f"{skill} ({share:.0%})" for skill, share in offered)
    told = f"What the person wants may be one of these: {rows}. If one fits, call {READ_SKILL} with it first."
    return f"{told} If none does, stay with {stay!r}." if stay else f"{told} If none does, answer without."


def read_skill(skills: Mapping[str, Skill], description: str, wired: Container[str] = ()) -> Tool:
    """The tool that takes up a skill. Its result is the text, or says where that will stand.

    To one of the ``wired``, those of a graph, the cursor goes only where nothing better leads elsewhere.
    """

    async def handler(args: Mapping[str, Json], ctx: Any) -> str:  # async: it is not worth a thread
        skill = skills[args["id"]]
        return skill.text if skill.in_result else taken_up(skill, is_hop=skill.id in wired)

    return Tool(
        READ_SKILL, handler, description, parameters=_choice("id", "The skill's id.", list(skills)), read_only=True,
        check_arguments=True,
    )  # fmt: skip


def taken_up(skill: Skill, *, is_hop: bool) -> str:
    """What ``read_skill`` answers where the text stands among the instructions."""
    unless = ", unless another result of this step leads elsewhere" if is_hop else ""
    return f"The skill {skill.id!r} is in use from your next step on{unless}; its instructions stand among yours then."


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


def refusal_text(refused: SkillRejected, *, tree: bool, some_hidden: bool) -> str:
    """Why a skill was not taken up: what held when it was asked for, since it is read again in every later request.

    It names no skill that this person may not see, and where one may not, it does not say that there was none.
    """
    what = f"The skill {refused.requested!r} was not taken up"
    if tree:
        return f"{what}: a decision tree chooses the skill here."
    if refused.posture == "rails":
        return f"{what}: the way from there was fixed."
    if refused.posture == "guard" and not refused.allowed:
        return f"{what}." if some_hidden else f"{what}: no choice was open."
    place = f" from {refused.current!r}" if refused.current else ""
    if refused.allowed:
        return f"{what}: it could not be reached{place}. What could be: {', '.join(refused.allowed)}."
    return f"{what}: it could not be reached{place}." + ("" if some_hidden else " Nothing could be.")


def recalled_text(refused: SkillRejected) -> str:
    """What is answered to a skill of a parked graph that cannot be reached from where that stands."""
    place = f" at {refused.current!r}," if refused.current else ""
    can = f" What could be: {', '.join(refused.allowed)}." if refused.allowed else ""
    return (
        f"The skills were brought back,{place} for the steps after this one. {refused.requested!r} was not taken up: "
        f"it could not be reached from there.{can}"
    )
