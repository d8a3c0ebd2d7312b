"""The features of governance keep the promises of all; with nothing to do they change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.governance import (
    CheckIn,
    Credential,
    Credentials,
    NeedsCheckIn,
    NeedsCredential,
    Permissions,
    Policy,
    Redaction,
    ask_human,
)
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.testing.conformance.feature import InertFeatureConformance, MakeFeature
from onrecord.tools.tool import Tool
from onrecord.turn.moments import ALLOW, Feature

pytestmark = pytest.mark.unit

IDLE: dict[str, MakeFeature] = {
    "roles": lambda: Permissions({"guest": ["look"]}, "guest"),
    "policies": lambda: Permissions(policies=(Policy(name="p", tools=("look",), args={"never": 1}),)),
    "check": lambda: Permissions(check=lambda _: ALLOW),
    "redaction": lambda: Redaction(patterns=["never"]),
}


class TestIdle(InertFeatureConformance):
    """Permissions that allow all that happens, and a redaction that nobody looks through."""

    @pytest.fixture(params=list(IDLE.values()), ids=list(IDLE))
    def make_feature(self, request: pytest.FixtureRequest) -> MakeFeature:
        made: MakeFeature = request.param
        return made


async def never(wanted: object) -> Credential:
    """A source that is not asked."""
    raise AssertionError


@pytest.mark.parametrize(
    ("trait", "feature"),
    [
        (NeedsCheckIn(lambda *_: False), CheckIn(expires_s=60)),
        (NeedsCredential(service="mail"), Credentials(never)),
    ],
    ids=["check-in", "credentials"],
)
async def test_a_trait_that_is_not_needed_changes_nothing(trait: Any, feature: Feature) -> None:
    """The same requests to the byte, and the same entries but for the manifest; it works alone, too."""

    async def talked(*features: Feature, traits: tuple[Any, ...] = ()) -> tuple[list[bytes], list[str]]:
        look, other = Tool("look", lambda *_: "ok"), Tool("other", lambda *_: "ok", traits=traits)
        if isinstance(trait, NeedsCheckIn):
            look = Tool("look", lambda *_: "ok", traits=traits)
        model = ScriptedModel([call("look")], "Looked.", "Hello.")
        agent: Agent[Any, Any] = Agent(model, tools=[look, other], features=features)
        first = await agent.turn("look", session="s", effects=FakeEffects())
        second = await agent.turn("hi", session=first.session, effects=FakeEffects())
        entries = [*first.entries, *second.entries]
        return [model.wire(r).body for r in model.requests], [type(entry.body).__name__ for entry in entries]

    assert await talked(feature, traits=(trait,)) == await talked()


async def test_a_tool_that_asks_is_a_tool_like_any_other() -> None:
    """Offered and not called, it only stands in the request."""
    model = ScriptedModel("Hello.")
    agent: Agent[Any, Any] = Agent(model, tools=[ask_human()])
    result = await agent.turn("hi", effects=FakeEffects())
    assert (result.status, result.wakes, result.question) == ("answered", (), None)
