"""What a promise is, and how talks are read to check one."""

from __future__ import annotations

from collections.abc import Callable

from onrecord.conversation.messages import ContextMessage
from onrecord.conversation.render import context_text
from onrecord.models.request import Request
from onrecord.record.kinds import ToolReturned
from onrecord.testing import shown
from tests.features.talk import Made, Play

__all__ = ("Active", "data_of", "everything", "statuses", "system_of", "times")

Active = tuple[Made, Callable[[Play], None]]
"""A feature at work, and its promise: a check of a talk that was had with it."""


def everything(requests: list[Request]) -> str:
    """All that some requests show."""
    return "".join(str(shown(request)) for request in requests)


def system_of(request: Request) -> str:
    """The system text of a request."""
    return str(shown(request)["system"])


def statuses(play: Play, tool: str) -> list[str]:
    """How the calls of a tool ended."""
    return [body.status for body in play.bodies(ToolReturned) if body.name == tool]


def times(play: Play, tool: str) -> int:
    """How often a tool ran."""
    return sum(name == tool for name, _ in play.ran)


def data_of(request: Request) -> list[str]:
    """What a request shows as data."""
    return [context_text(span) for span in request.view.spans if isinstance(span, ContextMessage)]
