"""Cases I of the specification: flows that stay, and where."""

from __future__ import annotations

import pytest

from onrecord.flows import Branch, Collect, Do, Flow, If, OnMessage, Say, Talk
from tests.flows.playing import Play, ends, keys, line, lines, said_by, says, sections

pytestmark = pytest.mark.unit

NOTIFY = Do("notify", id="alert")
SAY = [says("Sure.")]


async def test_i2_stay_prompt() -> None:
    """A flow that stays on a prompt answers every message, each under the next visit's key."""
    play = Play(Flow("faq", on=[OnMessage()], steps=[Talk("Answer.", id="r")], on_end="stay"))
    first = await play.said(key="m1", speak=SAY)
    run = play.run("faq")
    assert (keys(first), dict(run.visits), run.staying, run.status) == (["faq#m1:r:1"], {"r": 2}, True, "asking")
    second = await play.said(key="m2", speak=SAY)
    assert (keys(second), ends(second)) == (["faq#m1:r:2"], [])


COLLECTS = Flow("faq", on=[OnMessage()], steps=[Collect("name", id="q"), NOTIFY], on_end="stay")


async def test_i3_stay_collect_tail() -> None:
    """The steps behind the one it stays on ran once and run no more."""
    play = Play(COLLECTS)
    await play.said(key="m1", speak=[says("Nice", name="Ana")])
    run = play.run("faq")
    assert (run.step_id, run.staying, dict(run.visits)) == ("q", True, {"q": 2, "alert": 1})
    assert keys(await play.said(key="m2", speak=SAY)) == ["faq#m1:q:2"]
    assert keys(await play.said(key="m3", speak=SAY)) == ["faq#m1:q:3"]
    assert len(play.notified) == 1


async def test_i4_stay_answers_the_finishing_message() -> None:
    """When the understand call brought the last value, the step it stays on answers that very message."""
    play = Play(COLLECTS)
    await play.said(key="m1", speak=[says("Name?")])
    result = await play.said("Ana", key="m2", judge={"fields": {"name": "Ana"}}, speak=[says("Nice")])
    assert [(each.about["step_id"], each.status, each.code, each.key) for each in result.outcomes] == [
        ("q", "ok", None, "faq#m1:q:1"),
        ("alert", "ok", None, "faq#m1:alert:1"),
        ("q", "ok", None, "faq#m1:q:2"),
    ]
    assert said_by(result) == [("Nice", "ai", "faq#m1:q:2")]


async def test_i6_stay_on_its_branch() -> None:
    """It stays on the step of the way that was taken, not on the last one of the list."""
    flow = Flow(
        "f", on=[OnMessage()], on_end="stay",
        steps=[
            If({"known": ["name"]}, id="g", then="x", else_="y"), Talk("X.", id="x", then="end"), Talk("Y.", id="y"),
        ],
    )  # fmt: skip
    play = Play(flow, data={"name": "Ana"})
    assert keys(await play.said(key="m1", speak=SAY)) == ["f#m1:x:1"]
    assert keys(await play.said(key="m2", speak=SAY)) == ["f#m1:x:2"]


async def test_i7_if_branch_while_staying() -> None:
    """A branch in code to a step it has been to would fire for ever, so it does not; one for the model does."""
    flow = Flow(
        "f", on=[OnMessage()], on_end="stay",
        steps=[
            Do("notify", id="n"),
            Talk(
                "Help.", id="q", then="end",
                branches=[Branch(only_if={"known": ["name"]}, then="n"), Branch("asks for a person", then="p")],
            ),
            Say("Calling.", id="p", then="end"),
        ],
    )  # fmt: skip
    play = Play(flow, data={"name": "Ana"})
    assert keys(await play.said(key="m1", speak=SAY)) == ["f#m1:q:1"]
    result = await play.said(key="m2", judge={"branches": {"q1": False}}, speak=SAY)
    assert sections(play.requests[0]) == {"branches": ["q1"]}
    assert (keys(result), len(play.notified)) == (["f#m1:q:2"], 1)
    result = await play.said("a person please", key="m3", judge={"branches": {"q1": True}})
    assert (line(result, "branch").next, keys(result)) == ("p", ["f#m1:p:1"])
    assert (play.run("f").staying, len(play.notified)) == (True, 1)


async def test_i8_stay_without_talk() -> None:
    """A flow without a step to stay on just ends."""
    play = Play(Flow("f", steps=[NOTIFY], on_end="stay"))
    assert ends(await play.started("f")) == [("f#k", "end")]
    assert play.state.runs == ()


async def test_i9_two_askers() -> None:
    """A flow that comes to stay while another one asks waits behind it, and takes over when that one ends."""
    stays = Flow("faq", steps=[Collect("name", id="r")], on_end="stay")
    play = Play(Flow("other", steps=[Collect("ok", id="q")]), stays, data={"name": "Ana"})
    await play.started("other", key="k1", speak=[says("Right?")])
    await play.started("faq", key="k2")
    assert play.statuses == {"other": "asking", "faq": "suspended"}
    result = await play.said("yes", key="m1", speak=[says("Good.", ok=True)])
    assert ends(result) == [("other#k1", "end")]
    assert play.statuses == {"faq": "asking"}
    assert keys(await play.said(key="m2", speak=SAY)) == ["faq#k2:r:2"]


async def test_i10_edited() -> None:
    """A flow edited so that it no longer stays ends on the next message, which somebody else answers."""
    steps = [Talk("Answer.", id="r")]
    play = Play(Flow("faq", on=[OnMessage()], steps=steps, on_end="stay"))
    await play.said(key="m1", speak=SAY)
    edited = Play(Flow("faq", on=[OnMessage()], steps=steps), session=play.kept)
    result = await edited.said(key="m2", speak=SAY)
    assert ends(result) == [("faq#m1", "end")]
    assert lines(result)[-1] == (None, "idle", "ok", None)
    assert keys(result) == ["idle:m2"]
