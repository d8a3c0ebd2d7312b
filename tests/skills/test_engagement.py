"""Engagement: a graph that a guess brought in and nothing renewed is parked (specification §16; seed 004: maps)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.errors import ConfigurationError
from onrecord.governance import on_output
from onrecord.skills import Engagement, Intent, Keywords, Route, Skill, SkillGraph, Start
from onrecord.skills.cursor import Move
from onrecord.skills.engagement import Renewal, Standing, advanced, strength_of
from onrecord.skills.skill_entries import MapEngaged, MapParked, SkillMoved
from onrecord.testing import call
from onrecord.turn.moments import Revise
from tests.skills.knowing import answering, offered, pick, skill, systems
from tests.turn.acting import Result, bodies, texts, tool

pytestmark = pytest.mark.unit

ZONE = [Start("audit", match=Keywords(["zone"]))]
SAID = "find the most recent zone run"
AUDIT, REPORT = skill("audit", "scan"), skill("report", "write")
OTHER = tool("other")
IDLE = [call("other")] * 3
USUAL = Engagement()


def graph(*routes: Route, start: Any = ZONE, engagement: Any = USUAL, **more: Any) -> SkillGraph:
    """An audit that the word *zone* begins, and a report behind it."""
    return SkillGraph([AUDIT, REPORT], start=start, routes=routes, engagement=engagement, check="off", **more)


async def played(
    *answers: Any, held: SkillGraph | None = None, said: str = SAID, rounds: int = 9
) -> tuple[Any, Result]:
    """A turn with a tool that is none of the graph's."""
    return await answering(*answers, said=said, features=[held or graph()], tools=[OTHER], rounds=rounds)


async def test_187_a_guess_that_nothing_renews_is_parked() -> None:
    """The fourth request has neither text nor tools of it; the cursor stays (case 187)."""
    requests, result = await played(*IDLE, "done")
    assert [offered(request) for request in requests] == [["other", "read_skill", "scan", "write"]] * 3 + [
        ["other", "read_skill"]
    ]
    assert ["About audit." in systems(request) for request in requests] == [True, True, True, False]
    card = systems(requests[3])
    assert all(word in card for word in ("'skill-map'", "parked", "'audit'", "3 requests", "read_skill"))
    (parked,) = bodies(result, MapParked)
    assert (parked.map, parked.by, parked.idle, parked.at, parked.witness) == (
        "skill-map",
        "lexical",
        3,
        "audit",
        "zone",
    )
    assert [b.to for b in bodies(result, SkillMoved)] == ["audit"]
    later, _ = await played(*IDLE, *IDLE, "done")
    assert {systems(request) for request in later[3:]} == {card}  # the same bytes for as long as it is parked


async def test_187_asking_for_a_skill_of_it_brings_it_back() -> None:
    """Any of its skills, also the one where it stands, under any strictness (case 187)."""
    for strictness in ("assist", "guard", "rails"):
        held = graph(strictness=strictness)
        requests, result = await played(*IDLE, pick("audit"), *IDLE, call("other"), "done", held=held)
        assert offered(requests[4]) == ["other", "read_skill", "scan", "write"]
        assert "About audit." in systems(requests[4])
        back = bodies(result, MapEngaged)[-1]
        assert (back.reengaged, back.by, back.founded_by, len(bodies(result, MapParked))) == (
            True, "explicit", "lexical", 1,
        )  # fmt: skip


async def test_asking_for_what_cannot_be_reached_brings_it_back_and_moves_nothing() -> None:
    """Parking opens no way that there was not."""
    requests, result = await played(*IDLE, pick("report"), "done")
    assert "About audit." in systems(requests[4])
    assert [b.to for b in bodies(result, SkillMoved)] == ["audit"]
    assert "at 'audit', not 'report'. From there" not in texts(requests[4])[-1]
    assert "at 'audit', for the steps after this one. 'report' was not taken up" in texts(requests[4])[-1]


async def test_187_a_call_of_its_tools_renews_it() -> None:
    """On the second pass, so that the fourth still has it (case 187)."""
    requests, result = await played(call("other"), call("scan"), call("other"), "done")
    assert "scan" in offered(requests[3])
    assert bodies(result, MapParked) == []


@pytest.mark.parametrize("grace", [1, 2, 5])
async def test_the_grace_is_how_long_it_may_be_idle(grace: int) -> None:
    """In requests, each of which followed a call."""
    requests, _ = await played(*[call("other")] * 6, "done", held=graph(engagement=Engagement(grace)))
    assert ["scan" in offered(request) for request in requests] == [True] * grace + [False] * (7 - grace - 0)


async def test_a_request_without_a_call_is_no_sign_of_idleness() -> None:
    """A model may be asked again for another reason, such as a draft that was sent back."""
    again = on_output(revisions=4)(lambda *_: Revise("once more"))
    _, result = await answering(
        *["draft"] * 4, call("other"), "done", said=SAID, features=[graph(), again], tools=[OTHER], rounds=9
    )
    assert (bodies(result, MapParked), result.text) == ([], "done")


async def test_a_route_is_better_than_a_guess() -> None:
    """Then it is no guess any more, and is not parked."""
    held = graph(Route("audit", "report", on_tool="other"))
    _, result = await played(*[call("other")] * 6, "done", held=held)
    first, changed = bodies(result, MapEngaged)
    assert (first.by, first.witness, first.founded_by) == ("lexical", "zone", None)
    assert (changed.tenant_changed, changed.by, changed.at, changed.founded_by) == (
        True,
        "structural",
        "report",
        "lexical",
    )
    assert bodies(result, MapParked) == []


async def test_a_tool_that_another_skill_in_use_has_too_stays_while_it_is_parked() -> None:
    """A loose skill that was taken up keeps what is its own."""
    helping = Skill("help", "For help.", "About help.", tools=AUDIT.tools)
    requests, result = await played(*IDLE, pick("help"), call("other"), "done", held=graph(loose=[helping]))
    assert ["scan" in offered(request) for request in requests[3:]] == [False, True, True]
    assert len(bodies(result, MapParked)) == 1


@pytest.mark.parametrize(
    ("strength", "comes_back"),
    [("explicit", True), ("structural", True), ("semantic", False), ("lexical", False), ("assumed", False)],
)
def test_a_guess_does_not_bring_back_what_was_parked(strength: Any, comes_back: bool) -> None:
    """Somebody asked for it, or a route led there; what founded it stays on the record."""
    parked = Standing(status="parked", by="lexical", founded_by="assumed", idle=3)
    back = advanced(parked, Renewal(moved=strength), Move(source="audit", to="report", by="entry"), USUAL)
    assert (back is not None) is comes_back
    assert not isinstance(back, MapEngaged) or (back.reengaged, back.by, back.founded_by) == (True, strength, "assumed")


def test_to_stay_is_no_evidence() -> None:
    """A way that was closed is filed as a move that stays; it renews nothing, or a map could not be parked by it."""
    assert [strength_of(cause) for cause in ("stay", "none", "entry", "route")] == [None, None, "lexical", "structural"]


async def test_better_evidence_upgrades_it() -> None:
    """Once; equal evidence says nothing new."""
    _, result = await played(call("scan"), call("scan"), *[call("other")] * 5, "done")
    engaged = [(b.by, b.upgraded, b.reengaged, b.tenant_changed) for b in bodies(result, MapEngaged)]
    assert engaged == [("lexical", False, False, False), ("structural", True, False, False)]
    assert bodies(result, MapParked) == []


async def test_what_the_model_picked_is_never_parked() -> None:
    """Nor what a conversation goes on with."""
    held = SkillGraph([AUDIT, REPORT], entries=["audit", "report"], engagement=Engagement(1), check="off")
    _, result = await played(pick("audit"), *[call("other")] * 4, "done", held=held)
    assert ([b.by for b in bodies(result, MapEngaged)], bodies(result, MapParked)) == (["explicit"], [])


async def test_a_graph_that_stands_nowhere_is_not_engaged() -> None:
    """No rule matched: there is nothing to park."""
    _, result = await played(*IDLE, "done", said="hello")
    assert (bodies(result, MapEngaged), bodies(result, MapParked)) == ([], [])


async def test_it_may_be_told_and_never_parked() -> None:
    """The standing is on the record, the requests stay."""
    requests, result = await played(
        *[call("other")] * 5, "done", held=graph(engagement=Engagement(1, never_parks=True))
    )
    assert all("scan" in offered(request) for request in requests)
    assert len(bodies(result, MapEngaged)) == 1


async def test_a_call_of_another_skills_tool_keeps_it() -> None:
    """The map is one: each of its tools renews all of it. A tool that the agent has by itself stays in any case."""
    own = SkillGraph([skill("audit", OTHER, "scan"), REPORT], start=ZONE, engagement=Engagement(1), check="off")
    _, result = await played(*[call("write"), call("other")] * 2, "done", held=own)
    assert bodies(result, MapParked) == []
    requests, _ = await answering(
        *[call("third")] * 2, "done", said=SAID, features=[own], tools=[OTHER, tool("third")], rounds=9
    )
    assert offered(requests[1]) == ["other", "third", "read_skill"]


async def test_without_engagement_nothing_of_it_is_filed_or_read() -> None:
    """And with it, a turn in which nothing idles has the same requests."""
    plain, without = await played(call("scan"), "done", held=graph(engagement=None))
    watched, result = await played(call("scan"), "done")
    assert [r.wire for r in plain] == [r.wire for r in watched]
    assert bodies(without, MapEngaged) == []
    assert len(bodies(result, MapEngaged)) == 2


@pytest.mark.parametrize("grace", [0, -1, 1.5, True])
def test_the_grace_is_a_whole_number_from_one_on(grace: Any) -> None:
    """Zero would park a graph before it is served."""
    with pytest.raises(ConfigurationError, match="grace of Engagement"):
        Engagement(grace)


def test_187_there_must_be_a_graph_to_park() -> None:
    """Loose skills alone are none (case 187)."""
    with pytest.raises(ConfigurationError, match="engagement parks a graph"):
        SkillGraph(loose=[AUDIT], engagement=Engagement(), check="off")


async def test_an_intent_is_a_guess_too() -> None:
    """A scorer's."""

    class Picks:
        name, floor, categorical = "picks", None, True

        async def score(self, turn: Any, message: str, candidates: Any, /) -> dict[str, float]:
            return {"audit": 1.0}

    held = graph(start=[Start("audit", match=Intent("audit"))], classify=Picks(), engagement=Engagement(1))
    _, result = await played(call("other"), "done", held=held)
    assert [b.by for b in bodies(result, MapParked)] == ["semantic"]
