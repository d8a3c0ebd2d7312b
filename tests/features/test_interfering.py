"""Features that end turns early, ask again or take everything away: beside any other, what holds of all talks holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec import Struct

from onrecord.conversation.inputs import Ask
from onrecord.errors import OnrecordError
from onrecord.governance import Budget, Limit, after_tool, before_tool, on_output
from onrecord.prompt import Window
from onrecord.skills import Skill, Skills, SkillStep
from onrecord.turn.moments import Allow, Deny, Feature, Hooks, Revise, Stop
from tests.features.active import ACTIVE, EXCLUDE
from tests.features.always import every_promise
from tests.features.talk import REFUND, TOOLS, Made, played

pytestmark = pytest.mark.unit


class Named(Struct, frozen=True):
    """A feature made of hooks."""

    name: str
    held: Hooks

    def hooks(self, spec: object) -> Hooks:
        return self.held


def _halting() -> Feature:
    @before_tool
    def halts(turn: Any, call: Any) -> Any:
        return Deny("enough", halt=True) if call.name == "pay" else Allow()

    return halts


def _denying() -> Feature:
    @after_tool
    def denies(turn: Any, returned: Any) -> Any:
        return Deny("nobody reads this")

    return denies


def _raising() -> Feature:
    @after_tool
    def raises(turn: Any, returned: Any) -> Any:
        raise LookupError

    return raises


def _asking() -> Feature:
    @before_tool
    def asks(turn: Any, call: Any) -> Any:
        return Allow() if turn.resumed is not None else Ask(f"{call.name}?", audience="speaker")

    return asks


def _revising() -> Feature:
    @on_output
    def revises(turn: Any, answer: Any) -> Any:
        return Revise("again, please")

    return revises


def _stopping(*, wrap_up: bool) -> Feature:
    async def stops(turn: Any, request: Any) -> Any:
        return (
            Stop("that will do", wrap_up=wrap_up) if len(turn.rounds) == 2 and request.purpose == "speak" else request
        )

    return Named("stops", Hooks(on_request=stops))


def _procedure() -> Feature:
    steps = (SkillStep("refund", "pay it back"), SkillStep("look", "look whether it came"))
    return Skills(Skill("refunds", "How to refund.", "Ask for it.", tools=(REFUND, TOOLS[0]), steps=steps))


INTERFERING: Mapping[str, Callable[[], Feature]] = {
    "budget that stops": lambda: Budget(Limit(tokens=250)),
    "budget that fails": lambda: Budget(Limit(tokens=250), then="fail"),
    "halting rule": _halting,
    "denying rule": _denying,
    "raising rule": _raising,
    "asking rule": _asking,
    "revising rule": _revising,
    "stop": lambda: _stopping(wrap_up=False),
    "stop and wrap up": lambda: _stopping(wrap_up=True),
    "window of one": lambda: Window.last(1, keep_last_tool_results=0),
    "window that wants all to leave": lambda: Window.by("greedy", lambda look: range(len(look.units))),
    "procedure": _procedure,
}
"""None of these leaves the talk its course, so the promises about what comes in it do not apply."""


@pytest.mark.parametrize("name", INTERFERING)
async def test_beside_any_other_feature_what_holds_of_all_talks_holds(name: str) -> None:
    """Records prove themselves, no result is an orphan, nothing runs twice, prefixes stay; and beside all at once."""
    broken: list[str] = []
    left_out = {"budget", *(other for pair in EXCLUDE for other in pair)}
    for others in (*([other] for other in ACTIVE), [other for other in ACTIVE if other not in left_out]):
        try:
            play = await played(Made(features=(INTERFERING[name](),)), *(ACTIVE[other]()[0] for other in others))
        except OnrecordError:
            assert len(others) == 1
            continue  # two of what there may be one of
        try:
            every_promise(play)
        except AssertionError as error:
            broken.append(f"{name}, {others}: {error}")
    assert not broken, "\n".join(broken)
