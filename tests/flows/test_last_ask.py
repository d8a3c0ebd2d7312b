"""The answer to the last ask of a field that only its own step may read."""

from __future__ import annotations

import pytest

from onrecord.flows import Collect, Flow, If, OnMessage, Say
from onrecord.flows.steps import Step
from tests.flows.playing import Play, lines, says, sections

pytestmark = pytest.mark.unit

AGREED = If({"equals": {"ok": True}}, id="if", else_="no")
STEPS: list[Step] = [AGREED, Say("Booked.", id="yes", then="end"), Say("Not booked.", id="no")]


@pytest.mark.parametrize("most", [1, 2])
async def test_the_answer_to_the_last_ask_is_heard(most: int) -> None:
    """No reply of the step reads it any more, so it is taken when the message is judged."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q", max_asks=most), *STEPS]))
    await play.said("hello", key="m0", speak=[says("Right?")])
    for number in range(1, most):
        await play.said("hm", key=f"m{number}", speak=[says("Right?", ok=None)])
    result = await play.said("yes", key="yes", judge={"fields": {"ok": True}})
    assert [m.text for m in result.messages] == ["Booked."]
    assert lines(result)[0] == ("q", "collect", "ok", None)
    assert sections(play.requests[-1]) == {"fields": ["ok"]}


async def test_no_answer_to_the_last_ask_goes_on_without_it() -> None:
    """The field stays unknown, and a line says so."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q", max_asks=1), *STEPS]))
    await play.said("hello", key="m0", speak=[says("Right?")])
    result = await play.said("hm", key="m1", judge={"fields": {"ok": None}})
    assert [m.text for m in result.messages] == ["Not booked."]
    assert lines(result)[0] == ("q", "collect", "skipped", "max-asks")
    assert "ok" not in play.data


async def test_only_the_field_that_is_used_up_costs_a_judgement() -> None:
    """What the step still asks for is read by its reply, as ever."""
    play = Play(Flow("f", on=[OnMessage()], steps=[Collect("ok", id="q"), *STEPS]))
    await play.said("hello", key="m0", speak=[says("Right?")])
    result = await play.said("yes", key="m1", speak=[says("Fine.", ok=True)])
    assert (result.llm_calls, play.data) == (1, {"ok": True})
