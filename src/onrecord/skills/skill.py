"""Skill: instructions and tools that a model, or a graph, takes up when they are needed; and the steps of one."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError
from onrecord.jsonio import writable
from onrecord.models.model import Model
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import unique_tools

__all__ = ("Skill", "SkillStep", "Surface")

Surface = Literal["auto", "system", "tool_only", "both"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def refused(message: str, hint: str = "", code: str = "skill-invalid") -> ConfigurationError:
    """An error about a skill as it is declared."""
    return ConfigurationError(message, code=code, hint=hint)


class _StepHead(Struct, frozen=True, metaclass=Declared):
    tool: str
    note: str


class SkillStep(_StepHead, frozen=True, kw_only=True):
    """One step of a procedure: the id of the tool that does it, and a note that says what it is for.

    ``produces`` and ``consumes`` name kinds of things that steps hand to each other; they are checked, never sent.
    """

    produces: str = ""
    consumes: str = ""


class _SkillHead(Struct, frozen=True, metaclass=Declared):
    id: str
    description: str
    text: str


class Skill(_SkillHead, frozen=True, kw_only=True):
    """Instructions and tools under a name, taken up when they are needed.

    ``description`` is what a model reads when it looks for help, ``text`` what it reads once the skill is in use.
    ``tools`` come with it: offered from the start, or with ``scoped`` only while the skill is in use (which hides
    them and forbids nothing). ``steps`` make it a procedure over its own tools; ``on_skip`` says whether skipping a
    step goes on to the next (``advance``) or stays (``hold``).

    ``surface`` is where the text stands: among the instructions (``auto``, ``system``), in the result of
    ``read_skill`` (``tool_only``), or in both. ``model`` answers while the skill is in use (a name or a model).
    ``cache`` is when `CacheMarks` counts its text. ``produces`` and ``consumes`` name kinds of things that skills
    hand to each other: a check-up of a graph warns of what is consumed and never produced. ConfigurationError
    (``skill-invalid``) for an id that is none, a blank text, and steps that its tools cannot do.
    """

    tools: tuple[Tool, ...] = ()
    steps: tuple[SkillStep, ...] | None = None
    on_skip: Literal["advance", "hold"] | None = None
    surface: Surface = "auto"
    scoped: bool = False
    model: str | Model | None = None
    cache: Literal["always", "never", "while_active"] = "while_active"
    produces: str = ""
    consumes: str = ""

    def __post_init__(self) -> None:
        """Whatever could never work is refused where it is written."""
        named: object = self.id
        if not isinstance(named, str) or not _ID.fullmatch(named):
            raise refused(
                f"{named!r} is no id of a skill", "up to 64 letters, digits, '-', '_' and '.', such as 'refund-order'"
            )
        for field in ("description", "text"):
            given: object = getattr(self, field)
            if not isinstance(given, str) or not given.strip():
                raise refused(
                    f"skill {self.id!r} has no {field}", "the model chooses by the description, and reads the text"
                )
            if writable(given) != given:
                raise refused(f"the {field} of skill {self.id!r} holds half a character, which nothing can send")
        if self.surface not in {"auto", "system", "tool_only", "both"}:
            raise refused(
                f"skill {self.id!r}: surface cannot be {self.surface!r}",
                "it is 'auto', 'system', 'tool_only' or 'both'",
            )
        if self.cache not in {"always", "never", "while_active"}:
            raise refused(
                f"skill {self.id!r}: cache cannot be {self.cache!r}", "it is 'always', 'never' or 'while_active'"
            )
        unique_tools(self.tools)
        self._check_steps()

    def _check_steps(self) -> None:
        if self.on_skip is not None and self.steps is None:
            raise refused(
                f"skill {self.id!r}: on_skip without steps would say nothing", "leave it out, or declare steps"
            )
        if self.on_skip not in {None, "advance", "hold"}:
            raise refused(f"skill {self.id!r}: on_skip cannot be {self.on_skip!r}", "it is 'advance' or 'hold'")
        if self.steps is None:
            return
        if not self.steps:
            raise refused(f"skill {self.id!r}: steps is empty", "leave it out for a skill without a procedure")
        if not self.tools:
            raise refused(f"skill {self.id!r} has steps but no tools", "each step is done by one of the skill's tools")
        own = {tool.id for tool in self.tools}
        for place, step in enumerate(self.steps, 1):
            given: object = step
            if not isinstance(given, SkillStep):
                raise refused(
                    f"skill {self.id!r}: step {place} is a {type(given).__name__}", 'write SkillStep("tool", "note")'
                )
            if step.tool not in own:
                raise refused(
                    f"skill {self.id!r}: step {place} names the tool {step.tool!r}, which is not one of its own",
                    f"its tools are {', '.join(sorted(own))}",
                )
            if not step.note.strip():
                raise refused(f"skill {self.id!r}: step {place} has no note", "say what the step is for")

    @property
    def in_system(self) -> bool:
        """Whether its text stands among the instructions while it is in use."""
        return self.surface != "tool_only"

    @property
    def in_result(self) -> bool:
        """Whether ``read_skill`` hands its text out."""
        return self.surface in {"tool_only", "both"}
