"""Skills, graphs and turns as the tests of skills write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onrecord.agent import Agent
from onrecord.models.request import Request
from onrecord.skills import Skill, SkillStep
from onrecord.testing import ScriptedModel, call
from tests.turn.acting import Result, read, tool, turn

__all__ = ("answering", "descriptions", "offered", "pick", "procedure", "skill", "systems")


def skill(id: str, *tools: Any, **more: Any) -> Skill:
    """A skill whose text is ``About <id>.``; a tool may be given by its name."""
    held = tuple(tool(one) if isinstance(one, str) else one for one in tools)
    return Skill(id, f"For {id}.", f"About {id}.", tools=held, **more)


def procedure(id: str = "returns", **more: Any) -> Skill:
    """A skill with two steps: t1, then t2."""
    steps = (SkillStep("t1", "n1"), SkillStep("t2", "n2"))
    return skill(id, "t1", "t2", steps=steps, **more)


def pick(id: str) -> Any:
    """The call by which a model takes a skill up."""
    return call("read_skill", id=id)


async def answering(
    *answers: Any, features: Sequence[Any] = (), said: str = "hi", model: ScriptedModel | None = None,
    session: Any = None, **given: Any,
) -> tuple[list[Request], Result]:  # fmt: skip
    """One turn with these answers: its requests, and the result."""
    held = model or ScriptedModel(*answers)
    agent = Agent(held, features=features, **given)
    result = await turn(agent, said, session=session)
    return held.requests, result


def offered(request: Request) -> list[str]:
    """The tools of a request."""
    names: list[str] = read(request)["tools"]
    return names


def systems(request: Request) -> str:
    """The instructions of a request."""
    text: str = read(request)["system"]
    return text


def descriptions(request: Request) -> dict[str, str]:
    """What a request says of each tool."""
    return {offer.spec.name: offer.spec.description for offer in request.offers}
