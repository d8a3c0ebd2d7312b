"""What lies in the wrong list of an agent: the hint says where it belongs."""

import re
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError
from onrecord.governance import NeedsCheckIn
from onrecord.testing import ScriptedModel
from onrecord.turn.answer import Typed
from onrecord.turn.turn import Turn
from tests.turn.acting import tool

pytestmark = pytest.mark.unit


async def a_function(turn: Turn, call: Any) -> None:
    """A function that nobody decorated."""


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"features": [tool()]}, "tools="),
        ({"features": ["Be brief."]}, "Instruction"),
        ({"features": [Typed]}, r"Typed\(\.\.\.\)"),
        ({"features": [a_function]}, "@before_tool"),
        ({"features": [NeedsCheckIn("always")]}, "traits="),
        ({"tools": [a_function]}, "@tool"),
        ({"tools": [Typed()]}, "features="),
        ({"tools": [Agent(ScriptedModel())]}, "as_tool"),
    ],
)
def test_what_lies_in_the_wrong_list_is_told_where_it_belongs(given: dict[str, Any], hint: str) -> None:
    """The traceback says it below the message."""
    with pytest.raises(ConfigurationError, match=f"(?s)hint: .*{hint}") as refused:
        Agent(ScriptedModel(), **given)
    assert re.search(hint, refused.value.hint)
