"""Skills that may not be seen are in nothing that is said to the model (specification §7.7; case 125)."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.skills import Engagement, Intent, Keywords, Route, SkillGraph, SkillProposed, Skills, Start
from onrecord.skills.skill_entries import EffectJudged, SkillRejected
from onrecord.testing import call
from onrecord.tools.tool import ToolResult
from tests.skills.knowing import answering, descriptions, pick, skill, systems
from tests.turn.acting import bodies, results, texts, tool

pytestmark = pytest.mark.unit

A, B, C, D = (skill(id, f"tool_{id}") for id in "abcd")


def graph(*routes: Route, **more: Any) -> SkillGraph:
    """A graph of four skills that is not checked up."""
    return SkillGraph([A, B, C, D], start="a", routes=routes, check="off", **more)


def unseen(*ids: str) -> Any:
    """A rule under which these skills may not be seen."""
    return lambda _, id: id not in ids


async def test_125_where_all_ways_are_hidden_it_is_not_said_that_there_is_none() -> None:
    """Neither the refusal, the door nor the record names one, or says that nothing can be reached (spec §7.7)."""
    ways = (Route("a", "b"), Route("b", "c"))
    requests, result = await answering(pick("c"), "done", features=[graph(*ways, visible=unseen("a", "b"))])
    assert texts(requests[1]) == ["The skill 'c' was not taken up: it could not be reached."]
    assert "From here" not in descriptions(requests[0])["read_skill"]
    (told,) = bodies(result, SkillRejected)
    assert (told.current, told.allowed) == ("", ())
    requests, _ = await answering(pick("c"), "done", features=[graph(Route("b", "c"))])
    assert texts(requests[1]) == ["The skill 'c' was not taken up: it could not be reached from 'a'. Nothing could be."]
    assert "From here no skill can be taken up." in descriptions(requests[0])["read_skill"]
    requests, _ = await answering(
        pick("c"), "done", features=[graph(*ways, visible=unseen("a", "b"), strictness="guard")]
    )  # fmt: skip
    assert texts(requests[1]) == ["The skill 'c' was not taken up."]


async def test_the_card_of_a_parked_graph_does_not_say_at_which_hidden_skill_it_stands() -> None:
    """A rule led there; the card is for whoever may not see it."""
    start = [Start("a", match=Keywords(["hi"]))]
    for hidden, told in ((unseen("a"), False), (unseen(), True)):
        held = SkillGraph([A, B], start=start, engagement=Engagement(1), visible=hidden, check="off")
        requests, _ = await answering(call("look"), "done", features=[held], tools=[tool("look")])
        card = systems(requests[-1])
        assert ("is parked" in card, "It stands at 'a'." in card) == (True, told)


async def test_a_menu_does_not_name_the_hidden_skill_that_one_may_stay_with() -> None:
    """It was in use in the turn before, when it could be seen."""

    class Nothing:
        name, floor, categorical = "nothing-fits", 0.5, False

        async def score(self, turn: Any, message: str, candidates: Any, /) -> dict[str, float]:
            return dict.fromkeys((c.skill for c in candidates), 0.1)

    start = [Start("a", match=Keywords(["hi"])), *(Start(id, match=Intent(f"wants {id}")) for id in "bc")]
    hidden = set[str]()
    held = SkillGraph(
        [A, B, C], start=start, classify=Nothing(), continuity="conversation", visible=lambda _, id: id not in hidden,
        check="off",
    )  # fmt: skip
    _, first = await answering("done", features=[held])
    for hidden_now, told in (((), "stay with 'a'"), (("a",), "answer without")):
        hidden.clear()
        hidden.update(hidden_now)
        requests, _ = await answering("done", features=[held], said="well", session=first.session)
        door = descriptions(requests[0])["read_skill"]
        assert (told in door, "'a'" in door) == (True, not hidden_now)


@pytest.mark.parametrize("id", [["a"], {"a": 1}, 7, None])
async def test_what_is_no_id_is_told_as_any_wrong_argument(id: Any) -> None:
    """Whether a skill may be seen is asked before arguments are checked."""
    requests, result = await answering(call("read_skill", id=id), "done", features=[Skills(A, visible=unseen())])
    assert results(result) == [("read_skill", "invalid")]
    assert "expected string" in texts(requests[1])[0]


async def test_what_became_of_a_proposal_names_nothing_hidden() -> None:
    """Nor what was proposed before it."""

    def propose(*ids: str) -> Any:
        return [
            tool(f"to_{id}", lambda *_, id=id: ToolResult("ok", facts=(SkillProposed(skill=id),))) for id in ids
        ]  # fmt: skip

    ways = (Route("a", "b"), Route("a", "c"))
    calls = [call("to_b"), call("to_c"), call("to_d")]
    held = graph(*ways, visible=unseen("b", "c", "d"))
    requests, result = await answering(calls, "done", features=[held], tools=propose("b", "c", "d"))
    told = texts(requests[1])
    assert [row.outcome for row in bodies(result, EffectJudged)] == ["accepted", "superseded", "refused"]
    assert not any(f"'{id}'" in text for text in told for id in "bcd")
    assert "go on with another skill was superseded: another call had proposed another one." in told[1]
