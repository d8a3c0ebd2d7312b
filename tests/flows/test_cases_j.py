"""Cases J of the specification: turns in which the host may not let the assistant speak."""

from __future__ import annotations

import pytest

from onrecord.flows import Collect, Do, Flow, If, Say, Talk
from onrecord.turn.options import Silenced
from tests.flows.playing import Play, ends, line, lines, says

pytestmark = pytest.mark.unit


async def test_j1_asker() -> None:
    """Whoever asks keeps asking, without a word, a line or a model call."""
    play = Play(Flow("f", steps=[Collect("name", id="who")]))
    await play.started("f", speak=[says("Name?")])
    result = await play.said(options=[Silenced("human")])
    assert (result.messages, result.outcomes, result.changed) == ((), (), True)
    assert (play.statuses, dict(play.run("f").asked)) == ({"f": "asking"}, {"name": 1})


async def test_j5_gate_predicate() -> None:
    """A condition may ask whether the gate is closed, and take a way without words."""
    flow = Flow(
        "f",
        steps=[
            If({"silenced": True}, id="g", then="r", else_="t"), Do("notify", id="r", then="end"), Talk("Hi.", id="t"),
        ],
    )  # fmt: skip
    play = Play(flow)
    result = await play.started("f", options=[Silenced("human")])
    assert lines(result) == [("g", "if", "ok", None), ("r", "do", "ok", None)]
    assert (len(play.notified), ends(result)) == (1, [("f#k", "end")])


async def test_j5_open() -> None:
    """The same flow speaks when the gate is open."""
    flow = Flow("f", steps=[If({"silenced": False}, id="g", then="t"), Talk("Hi.", id="t")])
    assert lines(await Play(flow).started("f", speak=[says("Hi")])) == [
        ("g", "if", "ok", None), ("t", "prompt", "ok", None)
    ]  # fmt: skip


async def test_j6_skip_true() -> None:
    """With ``skip`` a talk step is passed over, and what follows it still happens."""
    play = Play(Flow("f", steps=[Talk("Hi.", id="t"), Do("notify", id="n")]))
    result = await play.started("f", options=[Silenced("window closed", skip=True)])
    assert lines(result) == [("t", "prompt", "skipped", "silenced"), ("n", "do", "ok", None)]
    assert line(result, "silenced").detail == "window closed"
    assert len(play.notified) == 1


async def test_j6_without_skip() -> None:
    """Without it a run that comes to a talk step ends there."""
    play = Play(Flow("f", steps=[Do("notify", id="n"), Talk("Hi.", id="t"), Say("Bye", id="s")]))
    result = await play.started("f", options=[Silenced("human")])
    assert lines(result) == [("n", "do", "ok", None), ("t", "prompt", "skipped", "silenced")]
    assert line(result, "silenced").detail == "human"
    assert (ends(result), result.messages) == ([("f#k", "skipped")], ())
