"""What stands in a list of an agent that it does not belong in: its name, and what to write in its place."""

from __future__ import annotations

from typing import Any

from onrecord.tools.tool import Tool

__all__ = ("instead_of_feature", "instead_of_tool", "named")

FOR_A_FEATURE = (
    "hand it to the feature that takes it, such as Skills(...), Retrieve(...) or Permissions(policies=[...])"
)


def named(given: Any) -> str:
    """What an error calls it: its own name, or that of its class."""
    return str(getattr(given, "__name__", type(given).__name__))


def instead_of_tool(given: Any) -> str:
    """What to write in the place of something in ``tools=`` that is no tool."""
    if callable(getattr(given, "as_tool", None)):
        return "agent.as_tool(description=...) makes a tool of an agent"
    if callable(getattr(given, "hooks", None)):
        return "this is a feature: put it into features=[...]"
    if (getattr(given, "__module__", None) or "").startswith("onrecord."):
        return f"call it: tools=[{named(given)}(...)]" if hasattr(given, "__name__") else FOR_A_FEATURE
    return "decorate the function with @tool"


def instead_of_feature(given: Any) -> str:
    """What to write in the place of something in ``features=`` that is no feature."""
    if isinstance(given, type):
        return f"make one: {given.__name__}(...)"
    if isinstance(given, str):
        return "a text for the model is Instruction(...)"
    if isinstance(given, Tool) or callable(getattr(given, "tools", None)):
        return "this is a tool or a toolset: put it into tools=[...]"
    if callable(getattr(given, "arms", None)):
        return "this is a trait of a tool: Tool(..., traits=(...,))"
    if callable(given):
        return "decorate a rule with @on_input, @before_tool, @after_tool or @on_output"
    if type(given).__module__.startswith("onrecord."):
        return FOR_A_FEATURE
    return "a feature has a name and hooks(spec); Window.last(12), say"
