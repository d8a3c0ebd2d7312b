"""Memories and documents beside features that decide what a request shows: each keeps its promise."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.messages import ContextMessage
from onrecord.memory import Corpus, Document, Memory, PlainShelf, Recent, Retrieve
from onrecord.memory.documents import passages_of
from onrecord.models.request import Request
from onrecord.prompt import CacheMarks, Compaction, Window
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.turn.instruction import Instruction
from onrecord.turn.moments import Feature
from tests.memory.remembering import session, shown_data, told

pytestmark = pytest.mark.unit


def retrieve() -> Retrieve:
    """One passage that fits everything."""
    text = "hello again and again"
    return Retrieve(Corpus(passages_of(Document("d", text), [(0, len(text))])), query=lambda _: "hello")


async def requests(*features: Feature, turns: int = 4) -> list[Request]:
    """The requests of some turns of one session, every second one with a call."""
    script: list[Any] = ["a" * 30, [call("look")], "b" * 30] * turns
    model = ScriptedModel(*script)
    agent = Agent(model, instructions="You help.", tools=[Tool("look", lambda *_: "seen")], features=features)
    held: Any = session()
    for day in range(turns):
        held = (await told(agent, f"message {day}", held, day=day)).session
    return model.requests


def without_inserts(request: Request) -> Any:
    """What of the conversation a request shows, recalled words aside."""
    return [s for s in request.view.spans if not (isinstance(s, ContextMessage) and s.writer in {"retrieve", "memory"})]


BESIDE: dict[str, Feature] = {
    "cache marks": CacheMarks(policies={"instructions": "always"}),
    "a window": Window.last(4),
    "an instruction": Instruction("Be kind."),
}


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("first", [True, False])
async def test_others_decide_as_if_it_were_not_there(name: str, first: bool) -> None:
    """Marks, windows and texts are those without it, in either order; and its words stand last in the view."""
    other = BESIDE[name]
    alone = await requests(other)
    both = await requests(*((retrieve(), other) if first else (other, retrieve())))
    assert [r.view.marks for r in both] == [r.view.marks for r in alone]
    assert [r.view.head for r in both] == [r.view.head for r in alone]
    assert [r.pieces for r in both] == [r.pieces for r in alone]
    assert [without_inserts(r) for r in both] == [without_inserts(r) for r in alone]
    assert all(isinstance(r.view.spans[-1], ContextMessage) for r in both)
    assert all(shown_data(r)[-1].startswith("[Sources]") for r in both)


async def test_a_summary_of_the_conversation_stands_beside_it() -> None:
    """Compaction measures the conversation, not what is recalled."""
    made = await requests(Compaction(50, keep=2), retrieve(), turns=1)
    assert shown_data(made[0])[-1].startswith("[Sources]")


async def test_what_a_window_let_go_of_is_remembered() -> None:
    """The conversation shows its end, the memory what is before it, and nothing stands there twice."""
    made = await requests(Window.last(3), Memory(PlainShelf(), (Recent(20),)), turns=6)
    for request in made:
        data = "".join(shown_data(request))
        units = request.conversation.units
        for span in without_inserts(request):
            if not isinstance(span, ContextMessage):
                for unit in units[span.start : span.stop]:
                    text = getattr(unit, "text", "")
                    assert not text.startswith("message") or f"\n{text}\n" not in data
    assert "message 0" in "".join(shown_data(made[-1]))
