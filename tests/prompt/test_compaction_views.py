"""One past per turn: every request of it shows the same, and what others chose or need is respected."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.errors import FeatureConflict
from onrecord.models.request import Reading, Request, Shape, Span, View
from onrecord.prompt.window.compaction import Compaction
from onrecord.prompt.window.summarising import HEADING
from onrecord.testing import ScriptedModel, call, raises
from onrecord.turn.director import Brief, Query, Stage
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn
from tests.prompt.windows import agent_with, dialogue, spans
from tests.turn.acting import Named, read, tool, turn

pytestmark = pytest.mark.unit

SUMMED = f"{HEADING}\nThey met."

SCORES: Shape[str] = Shape(
    name="understand", schema={"type": "object"}, read=lambda held: Reading(text=held.text, value=held.text)
)


class Understanding:
    """Judges first, then speaks, as flows do; ``view`` is what the judge is shown."""

    def __init__(self, view: View | None = None) -> None:
        self.view = view

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        await stage.judge(Query(key="understand", pieces=(), shape=SCORES, view=self.view, carries_input=True))
        await stage.speak(Brief(key="answer", carries_input=True))


@pytest.mark.parametrize(("consult", "sees"), [("They met.", [SUMMED, (8, 13)]), (raises("rate"), [(5, 13)])])
async def test_understanding_and_speaking_see_the_same(consult: Any, sees: list[Any]) -> None:
    """Decided once, by one call at most."""
    model = ScriptedModel("Hello.", judge=["{}"], consult=[consult])
    await turn(agent_with(model, director=Understanding()), history=dialogue(12))
    assert model.calls == ["consult", "judge", "speak"]
    assert [spans(r) for r in model.requests[1:]] == [sees, sees]


async def test_a_view_that_was_chosen_is_left_alone() -> None:
    """A query that shows a part shows that part."""
    model = ScriptedModel("Hello.", judge=["{}"], consult=["They met."])
    await turn(agent_with(model, director=Understanding(View(spans=(Span(0, 2),)))), history=dialogue(12))
    assert [spans(r) for r in model.requests] == [[(0, 2)], [model_lines(model, 1)], [SUMMED, (8, 13)]]


def model_lines(model: ScriptedModel, place: int) -> str:
    """The one insert of a request."""
    text: str = read(model.requests[place])["messages"][0]["content"]
    return text


async def test_the_wrap_up_sees_it_too() -> None:
    """The last request of a turn that used up its rounds."""
    model = ScriptedModel(call("look"), "Hello.", consult=["They met."])
    await turn(agent_with(model, tools=[tool("look")], rounds=1), history=dialogue(9))
    assert model.calls == ["consult", "speak", "wrap_up"]
    assert spans(model.requests[2]) == [SUMMED, (5, 11)]


async def test_pinned_units_are_shown_in_any_case() -> None:
    """In their order, behind the summary."""
    pins = ("h1-", "h3-")

    async def pinning(turn: Turn, request: Request) -> Request:
        view = request.view
        found = {u.id: "kept" for u in request.conversation.units if u.id.startswith(pins)}
        return replace(request, view=replace(view, pins=found))

    feature = Named("pins", Hooks(on_request=pinning, order={"request": SLOTS["request"]["PINS"]}))
    model = ScriptedModel("Hello.", consult=["They met."])
    await turn(agent_with(model, features=[feature]), history=dialogue(9))
    assert spans(model.requests[1]) == [SUMMED, (1, 2), (3, 4), (5, 10)]


async def test_only_one_feature_holds_the_window() -> None:
    """Two would undo each other."""
    with pytest.raises(FeatureConflict, match="only one feature can hold the window"):
        agent_with(ScriptedModel(), features=[Compaction(5)])
