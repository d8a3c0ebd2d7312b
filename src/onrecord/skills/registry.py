"""Skills of an agent without a graph: the feature, and a shared registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from onrecord.declared import declared
from onrecord.errors import ConfigurationError
from onrecord.models.model import Model
from onrecord.models.names import as_model
from onrecord.skills.skill import Skill, refused
from onrecord.skills.skill_hooks import SkillHooks, Visible, in_use
from onrecord.skills.skill_tools import NAMES, READ_SKILL, catalog, list_skills, open_text, read_skill
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import Toolset, gated
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import Hooks
from onrecord.turn.turn import Turn

__all__ = ("SkillRegistry", "Skills", "by_id", "check_tools", "model_of", "models_of", "offered_with")


@declared
class SkillRegistry:
    """A catalogue of skills that several agents share: ``Skills(registry)``.

    An agent takes what the registry holds when it is made; later changes are for agents made later.
    """

    def __init__(self, skills: Iterable[Skill] = ()) -> None:
        self._held: dict[str, Skill] = {}
        for skill in skills:
            self.register(skill)

    def register(self, skill: Skill) -> SkillRegistry:
        """Adds a skill, and returns the registry. ConfigurationError for what is none, and for an id that it has."""
        _checked(skill)
        if skill.id in self._held:
            raise refused(f"two skills have the id {skill.id!r}", "replace(id, skill) puts one in the place of another")
        self._held[skill.id] = skill
        return self

    def replace(self, id: str, skill: Skill) -> None:
        """Puts a skill in the place of the one with this id. ConfigurationError for an unknown or another id."""
        _checked(skill)
        if id not in self._held:
            raise refused(f"there is no skill {id!r} to replace", f"there are {', '.join(self._held) or 'none'}")
        if skill.id != id:
            raise refused(f"the skill {skill.id!r} cannot stand in the place of {id!r}", "unregister, then register")
        self._held[id] = skill

    def unregister(self, id: str) -> bool:
        """Takes a skill out, and says whether there was one."""
        return self._held.pop(id, None) is not None

    def get(self, id: str) -> Skill | None:
        """The skill with this id, if there is one."""
        return self._held.get(id)

    def clear(self) -> None:
        """Takes all skills out."""
        self._held.clear()

    def tools(self) -> tuple[Tool, Tool]:
        """``list_skills`` and ``read_skill`` as plain tools, for hosts that have no agent.

        ``read_skill`` then hands out every text, since nothing else would show it.
        """
        every = {id: _handed_out(skill) for id, skill in self._held.items()}
        return list_skills(list(every.values())), read_skill(every, open_text(list(every.values())))

    def catalog(self) -> str:
        """The skills as JSON: id and description."""
        return catalog(self)

    def __iter__(self) -> Iterator[Skill]:
        return iter(tuple(self._held.values()))

    def __contains__(self, id: object) -> bool:
        return id in self._held

    def __len__(self) -> int:
        return len(self._held)


def _handed_out(skill: Skill) -> Skill:
    return skill if skill.in_result else replace(skill, surface="both")


def _checked(skill: object) -> Skill:
    if not isinstance(skill, Skill):
        raise refused(f"a {type(skill).__name__} is no skill", "write Skill(id, description, text, tools=...)")
    return skill


def by_id(skills: Iterable[Skill]) -> dict[str, Skill]:
    """Skills by their ids. ConfigurationError for what is none, and when two have one id."""
    held: dict[str, Skill] = {}
    for skill in skills:
        if held.setdefault(_checked(skill).id, skill) is not skill:
            raise refused(f"two skills have the id {skill.id!r}", "ids must be unique: the model chooses by them")
    return held


def check_tools(skills: Mapping[str, Skill]) -> None:
    """ConfigurationError when two skills have different tools under one id, or one that is a skill's own door."""
    known: dict[str, tuple[str, Tool]] = {}
    for skill in skills.values():
        for tool in skill.tools:
            if tool.id in NAMES:
                raise refused(f"skill {skill.id!r} has a tool {tool.id!r}: that name is taken by skills themselves")
            other, held = known.setdefault(tool.id, (skill.id, tool))
            if held is not tool:
                raise refused(
                    f"the skills {other!r} and {skill.id!r} have different tools with the id {tool.id!r}",
                    "give both the same Tool, or other ids",
                )


def models_of(skills: Mapping[str, Skill]) -> dict[str, Model]:
    """The models of the skills that have one. ConfigurationError for a name that is none."""
    return {id: model_of(skill.model, id) for id, skill in skills.items() if skill.model is not None}


def model_of(model: str | Model, skill: str) -> Model:
    """A skill's model, by its name or as it is. ConfigurationError for what is none."""
    held = as_model(model)
    if not hasattr(held, "card"):
        raise refused(f"the model of the skill {skill!r} is a {type(held).__name__}", "a name such as 'openai:...'")
    return held


@declared
class Skills:
    """Skills that the model takes up by itself: ``features=[Skills(billing, refunds)]``.

    It gets one more tool, ``read_skill``. A skill that it takes up is in use from the next request on until the turn
    ends: its text stands among the instructions, its tools are offered. ``scoped_tools`` hides the tools of every
    skill that is not in use (a call to one still runs: what may run is a permission rule's business). ``catalog`` says
    where the model reads which skills there are: ``described`` in the description of ``read_skill``, or ``listed`` by
    a tool ``list_skills``, which keeps requests small and the same. ``visible(turn, id)`` says whether a skill may be
    seen; one that raises, or says no, hides it and refuses it.

    Takes skills, or a `SkillRegistry` or any other iterable of them. ConfigurationError for none, for
    two of one id, and for different tools of one id.
    """

    name = "skills"

    def __init__(
        self, *skills: Skill | Iterable[Skill], scoped_tools: bool = False,
        catalog: Literal["described", "listed"] = "described", visible: Visible | None = None,
    ) -> None:  # fmt: skip
        given = [one for each in skills for one in ([each] if isinstance(each, Skill) else each)]
        if not given:
            raise refused(
                "Skills has no skill", "give it some, or leave it out: a feature that does nothing is a mistake"
            )
        if catalog not in {"described", "listed"}:
            raise refused(f"the catalog of Skills cannot be {catalog!r}", "it is 'described' or 'listed'")
        self.skills = by_id(given)
        check_tools(self.skills)
        self.scoped = frozenset(id for id, skill in self.skills.items() if scoped_tools or skill.scoped)
        self.listed, self.visible = catalog == "listed", visible
        self._models = models_of(self.skills)

    def hooks(self, spec: AgentSpec) -> Hooks:
        made = SkillHooks(
            self.skills, graph=None, scoped=self.scoped, kept=kept_by(spec), visible=self.visible, listed=self.listed,
            models=self._models,
        )  # fmt: skip
        return made.hooks({"skills": {"ids": list(self.skills)}})

    def in_use(self, turn: Turn) -> frozenset[str]:
        """The skills in use in the request whose calls run now: for a rule that forbids what scoping only hides.

        One that is taken up in the same reply is not among them. KeyError in an agent without these skills.
        """
        return in_use(turn, self.skills, None)


@declared
def offered_with(skill: str, inner: Toolset | Sequence[Tool]) -> Toolset:
    """The tools of ``inner`` in the rounds in which the skill with this id is in use: for tools of a server, say.

    With a skill that a graph leads to they come a request later than its text, since toolsets are asked before the
    cursor moves; tools that must be there at once belong to `Skill.tools`.
    """
    return gated(inner, lambda _, ctx: skill in ctx.active)


def kept_by(spec: AgentSpec) -> frozenset[str]:
    """The tools that an agent has by itself. ConfigurationError when one has the name of a skill's door."""
    own = frozenset(tool.id for tool in spec.tools)
    if READ_SKILL in own:
        raise ConfigurationError(f"the agent has a tool {READ_SKILL!r}: that name is taken by its skills")
    return own
