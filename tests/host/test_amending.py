"""What is neither an input nor an amendment is refused, should a store ever hand it out as a row of the inbox."""

from __future__ import annotations

import pytest

from onrecord import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import UsageError
from onrecord.host import Host
from onrecord.host.amending import amend
from onrecord.session.inbox import Row
from onrecord.testing import ScriptedModel

pytestmark = pytest.mark.unit


def test_a_message_out_in_the_inbox_is_taken_by_nobody() -> None:
    """Named by its kind, without its words."""
    row = Row(session=SessionKey("s"), box="in", key="k", body=Outgoing(key="k", text="secret"))
    with pytest.raises(UsageError, match="holds a Outgoing") as told:
        amend(row, None, Host(Agent(ScriptedModel()))._setup)
    assert "secret" not in str(told.value)
