"""Cases G of the specification: who has the floor, who gives it up, and who gets it back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.conversation.inputs import Input, Said, Started, Woke
from onrecord.flows import Chain, Collect, Do, Flow, OnMention, OnMessage, OnSilence, Say, Talk, Wait
from onrecord.models.request import Request
from tests.flows.playing import NOTHING, Play, after, ends, keys, line, lines, said_by, says, sections, skips, starts

pytestmark = pytest.mark.unit

INTAKE = Flow("intake", on=[OnMessage("wants to know how it works")], steps=[Collect("name", id="who")])
HUMAN = Flow("human", on=[OnMention("asks for a person")], steps=[Say("Calling someone", id="s"), Do("notify", id="a")])
MENTIONED: Mapping[str, Any] = {"mentions": {"human": True}}


async def intake_asks(*others: Flow, **given: Any) -> Play:
    """A play in which intake asks for the name."""
    play = Play(INTAKE, *others, **given)
    await play.said(key="m1", judge=NOTHING, speak=[says("Name?")])
    assert play.statuses == {"intake": "asking"}
    return play


async def test_g1_mention_say() -> None:
    """A mention's line answers the message: the asker is held back, still asks, and its ask counts do not move."""
    play = await intake_asks(HUMAN)
    result = await play.said(key="m2", judge=MENTIONED)
    assert said_by(result) == [("Calling someone", "verbatim", "human#m2:s:1")]
    assert lines(result) == [
        ("s", "say", "ok", None), ("a", "do", "ok", None), ("who", "collect", "skipped", "another-reply")
    ]  # fmt: skip
    assert line(result, "another-reply").about["run_id"] == "intake#m1"
    asker = play.run("intake")
    assert (asker.status, dict(asker.asked)) == ("asking", {"name": 1})


async def test_g2_mention_once() -> None:
    """A mention that ran is not offered to the model again; one that it reports all the same is skipped."""
    play = await intake_asks(HUMAN)
    await play.said(key="m2", judge=MENTIONED)
    quiet = await play.said(key="m3", judge=NOTHING, speak=[says("Name?")])
    assert sections(play.requests[0]) == {"fields": ["name"]}
    assert skips(quiet) == []
    reported = await play.said(key="m4", judge=MENTIONED, speak=[says("Name?")])
    assert skips(reported) == [("human", "m4", "already-claimed")]
    assert len(play.notified) == 1


async def test_g4_mention_with_a_talk_step() -> None:
    """A mention that talks takes the floor; when it is done the one that asked before asks again."""
    rival = Flow("rival", on=[OnMention("names a rival")], steps=[Collect("ok", id="t")])
    play = await intake_asks(rival)
    result = await play.said(key="m2", judge={"mentions": {"rival": True}}, speak=[says("Do you use it?")])
    assert said_by(result) == [("Do you use it?", "ai", "rival#m2:t:1")]
    assert play.statuses == {"intake": "suspended", "rival": "asking"}
    result = await play.said(key="m3", judge={"flows": {"rival": 90, "intake": 0}}, speak=[says("I see.", ok=True)])
    assert ends(result) == [("rival#m2", "end")]
    assert play.statuses == {"intake": "asking"}
    assert play.run("intake").suspended_at is None


async def test_g5_lifo_by_suspension() -> None:
    """Who was suspended last comes back first, whenever it started."""
    late = Flow("late", steps=[Wait("1h", id="w"), Collect("name", id="q")])
    mid = Flow("mid", steps=[Collect("company", id="q")])
    other = Flow("other", steps=[Collect("ok", id="q")])
    play = Play(late, mid, other)
    await play.started("late")
    assert play.statuses == {"late": "waiting"}
    play.clock.advance(minutes=10)
    await play.started("mid", speak=[says("Company?")])
    assert play.statuses == {"late": "waiting", "mid": "asking"}
    play.clock.advance(minutes=50)
    await play.woke("late#k:w:1789902000000", speak=[says("Name?")])
    assert play.statuses == {"late": "asking", "mid": "suspended"}
    play.clock.advance(minutes=10)
    await play.started("other", speak=[says("Right?")])
    assert play.statuses == {"late": "suspended", "mid": "suspended", "other": "asking"}
    assert (play.run("mid").suspended_at, play.run("late").suspended_at) == (after(hours=1), after(minutes=70))
    play.clock.advance(minutes=10)
    await play.said(speak=[says("Good.", ok=True)])
    assert play.statuses == {"late": "asking", "mid": "suspended"}
    assert play.run("late").suspended_at is None


async def test_g6_wakes_leave_the_asker_alone() -> None:
    """A wake that only runs code makes nobody speak."""
    play = await intake_asks(Flow("w", steps=[Wait("1h", id="p"), Do("notify", id="n")]))
    await play.started("w")
    play.clock.advance(hours=1)
    result = await play.woke("w#k:p:1789902000000")
    assert lines(result) == [("p", "wait", "ok", "no-reply"), ("n", "do", "ok", None)]
    assert result.messages == ()
    assert play.run("intake").status == "asking"


NOTE = Flow("note", on=[OnMention("names a rival")], steps=[Do("notify", id="n", then=Chain("faq"))])
FAQ = Flow("faq", steps=[Collect("company", id="r")], on_end="stay")


async def test_g8_chained_mention() -> None:
    """What a mention chains to does not take the message from the flow that asks.

    The case names an internal of the original (its "floor run"). The promise behind it: the asker answers its message,
    and the chained flow, which would stay and answer too, waits behind it.
    """
    play = await intake_asks(NOTE, FAQ, data={"company": "Zeta"})
    result = await play.said(key="m2", judge={"mentions": {"note": True}}, speak=[says("And your name?")])
    assert starts(result) == ["note#m2", "faq#note#m2:n:1"]
    assert keys(result) == ["intake#m1:who:1/2"]
    assert play.statuses == {"intake": "asking", "faq": "suspended"}


async def test_g8_chained_mention_with_nobody_asking() -> None:
    """Where nobody has the floor the chained flow takes it, and answers this very message."""
    play = Play(NOTE, FAQ, data={"company": "Zeta"})
    result = await play.said(judge={"mentions": {"note": True}}, speak=[says("I know that one.")])
    assert keys(result) == ["faq#note#m1:n:1:r:2"]
    assert play.statuses == {"faq": "asking"}


async def test_g8_chained_from_the_floor() -> None:
    """What the flow that took the message chains to has the message too: it answers, and who asked before waits."""
    sales = Flow("sales", on=[OnMessage("wants to buy")], steps=[Do("notify", id="n", then=Chain("faq"))])
    play = Play(INTAKE, sales, FAQ, data={"company": "Zeta"})
    await play.said(key="m1", judge={"flows": {"intake": 90, "sales": 0}}, speak=[says("Name?")])
    result = await play.said(key="m2", judge={"flows": {"intake": 0, "sales": 90}}, speak=[says("We sell it.")])
    assert keys(result) == ["faq#sales#m2:n:1:r:2"]
    assert play.statuses == {"intake": "suspended", "faq": "asking"}


async def test_g_a_suspended_run_answers_when_the_asker_is_done_without_a_word() -> None:
    """The message brought the asker's last value, so it ends in silence: the one behind it answers, in this turn.

    No case has it; the original once left such a message to the idle speaker (section 17.5, and 38, number 4).
    """
    play = await intake_asks(Flow("size", steps=[Collect("size", id="q")]))
    await play.started("size", speak=[says("Which size?")])
    assert play.statuses == {"intake": "suspended", "size": "asking"}
    found = {"flows": {"size": 90, "intake": 0}, "fields": {"size": "1-10"}}
    result = await play.said("1-10", key="m2", judge=found, speak=[says("And your name?")])
    assert ends(result) == [("size#k", "end")]
    assert keys(result) == ["intake#m1:who:1/2"]
    assert play.statuses == {"intake": "asking"}


# ---- whatever happens ------------------------------------------------------------------------------------------------

CROWD = (
    INTAKE,
    HUMAN,
    Flow("sales", on=[OnMessage("wants to buy", repeat="always")], steps=[Collect("ok", id="q"), Wait("2h", id="w")]),
    Flow("rival", on=[OnMention("names a rival", repeat="always")], steps=[Collect("company", id="t")]),
    Flow("faq", on=[OnMessage()], steps=[Talk("Answer.", id="r")], on_end="stay"),
    Flow("nudge", on=[OnSilence("1h", repeat="always")], steps=[Talk("Still there?", id="p"), Wait("1d", id="w")]),
    Flow("form", steps=[Collect("size", id="q", question="Which size?"), Talk("Thank you.", id="t")]),
)
SCORE = st.sampled_from([0, 30, 45, 60, 90])
JUDGED = st.fixed_dictionaries(
    {
        "flows": st.fixed_dictionaries({"intake": SCORE, "sales": SCORE, "faq": SCORE}),
        "mentions": st.fixed_dictionaries({"human": st.booleans(), "rival": st.booleans()}),
        "fields": st.fixed_dictionaries({"name": st.sampled_from([None, "Ana"])}),
        "asks": st.booleans(),
    }
)
SPOKEN = st.fixed_dictionaries({"ok": st.sampled_from([None, True]), "company": st.sampled_from([None, "Zeta"])})
MOVE = st.sampled_from(["say", "say", "say", "wake", "start", "later"])


def moved(move: str, number: int, armed: list[str], pick: int) -> Input:
    """The input of a move; a wake is one of those that were armed, or none that ever was."""
    if move == "wake":
        return Woke(armed[pick % len(armed)])
    if move == "start":
        return Started(["form", "faq", "sales"][pick % 3], key=f"k{number}")
    return Said("hm", key=f"m{number}")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(MOVE, JUDGED, SPOKEN, st.integers(0, 9)), max_size=12))
async def test_g10_one_asker(moves: list[tuple[str, dict[str, Any], dict[str, Any], int]]) -> None:
    """Whatever is said, fires or starts: after any turn at most one run asks, and it is no suspended one."""
    play = Play(*CROWD)
    armed: list[str] = []
    for number, (move, judged, spoken, pick) in enumerate(moves):
        play.clock.advance(minutes=40 if move == "later" else 1)

        def speak(request: Request, spoken: dict[str, Any] = spoken) -> str:
            return json.dumps({"message": "So?", **spoken})

        play.model.queue([json.dumps(judged)], [speak])
        given: dict[str, Any] = {"session": play.session or "s1", "effects": play.clock}
        result = await play.agent.turn(moved(move, number, [*armed, "gone"], pick), **given)
        armed += [wake.key for wake in result.schedule]
        if result.changed:
            play.session = result.session
            assert [run.status for run in play.state.runs].count("asking") <= 1
            assert all((run.suspended_at is None) == (run.status != "suspended") for run in play.state.runs)
