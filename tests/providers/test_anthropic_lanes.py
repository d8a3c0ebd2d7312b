"""Messages: whatever happens to a conversation, the bytes joined from lanes are those of a fresh projection."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from onrecord.conversation.messages import Round
from onrecord.models.projection import Projection
from onrecord.models.request import HeadMarks, Request
from onrecord.providers.anthropic.project import AnthropicProjection
from tests.models import test_lane_bytes as lanes
from tests.models.requests import native
from tests.providers.anthropic_requests import check_rules, fresh_body, projection

pytestmark = pytest.mark.unit

THOUGHT = b'{"type":"thinking","thinking":"hm","signature":"s"}'
ASKED = b'{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}'
SMALL = projection()
SMALL.keep = 60  # almost every unit is too large for its slot
SMALL.profile = "small"
WIRES: list[Projection] = [projection(), SMALL, projection("claude-2.1"), projection("claude-opus-5-5")]
HEADS = [None, HeadMarks(system=1), HeadMarks(system=2, tools=True), HeadMarks(ttl="long")]


class Story(lanes.Story):
    """A conversation in which Messages' own replies occur: with thinking, with searches, whole or not."""

    def __init__(self, draw: Any) -> None:
        super().__init__(draw, WIRES)

    def round(self) -> Round:
        """A round whose native half may begin or end in thinking, or hold half a search."""
        made, draw = super().round(), self.draw
        if (held := made.continuation) is None:
            return made
        items = [bytes(item) for item in held.items]
        if draw(st.booleans()):
            items = [THOUGHT, *items]
        if draw(st.integers(0, 5)) == 0:
            items.append(draw(st.sampled_from([THOUGHT, ASKED])))
        return replace(made, continuation=native(*items, scope=self.scope, protocol=self.wire.protocol))

    def request(self) -> Request:
        """A request over the story so far, with marks before the units as well."""
        asked = super().request()
        return replace(asked, view=replace(asked.view, head=self.draw(st.sampled_from(HEADS))))


@settings(max_examples=70, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_lane_bytes_equal_fresh_bytes(data: st.DataObject) -> None:
    """Over conversations that grow, close, fork, are edited, windowed, marked and switched between models."""
    story = Story(data.draw)
    for _ in range(data.draw(st.integers(3, 20))):
        story.step()
        if data.draw(st.integers(0, 3)) == 0:
            continue  # so that lanes begin late and are behind
        asked = story.request()
        if data.draw(st.booleans()):
            while story.wire.extend(asked, 2):
                pass
        wire = story.wire.wire(asked)
        assert isinstance(story.wire, AnthropicProjection)
        assert wire.body == fresh_body(story.wire._for(asked), asked)
        assert story.wire.wire(asked) == wire  # a second look changes nothing
        check_rules(wire.body)
