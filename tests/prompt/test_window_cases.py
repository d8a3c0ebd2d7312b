"""What leaves a window, who stays and why (cases I99 to I111, A16): turns of the spec are units here.

A unit is a message, or a round with its results; what the cases count as two messages is one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.inputs import Happened
from onrecord.conversation.transcript import messages_from
from onrecord.conversation.usage import Usage
from onrecord.errors import ConfigurationError, FeatureConflict, Unmeasurable
from onrecord.models.request import Request
from onrecord.prompt.window.compaction import Compaction
from onrecord.prompt.window.evicted import Evicted, Pressure, Stayed
from onrecord.prompt.window.gaps import DROPPED_HEAD
from onrecord.prompt.window.window import Window
from onrecord.testing import ScriptedModel, call, reply
from onrecord.testing.conformance.feature import FeatureConformance, InertFeatureConformance, MakeFeature
from onrecord.turn.director import Query
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn
from tests.prompt.test_window_record import SCORES
from tests.prompt.window_units import LONG, counting, kept, knows, scribe, tools
from tests.prompt.windows import Record, dialogue, looked, shows, spans
from tests.turn.acting import Named, bodies, read, texts, tool, turn

pytestmark = pytest.mark.unit


class TestWindow(InertFeatureConformance):
    """It keeps the promises of all features; with room enough it has nothing to say."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: Window.last(100)


class TestNarrowWindow(FeatureConformance):
    """With hardly any room it keeps all but one of them: it has something to say."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: Window.last(1)


# ---- building --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [Window.last, Window.budget, Window.summarize])
def test_a16_how_many_last_results_stay_is_checked(made: Any) -> None:
    """Below zero is refused; False and 0 turn it off (case A16)."""
    more = {"model": scribe()} if made == Window.summarize else {}
    with pytest.raises(ConfigurationError, match="keep_last_tool_results of Window is a whole number from 0"):
        made(10, keep_last_tool_results=-1, **more)
    for off in (False, 0):
        assert int(made(10, keep_last_tool_results=off, **more).keep_last_tool_results) == 0


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "12"])
def test_numbers_that_make_no_sense_are_refused(bad: Any) -> None:
    """When the window is declared."""
    wrong: list[Callable[[], Window]] = [
        lambda: Window.last(bad), lambda: Window.budget(bad), lambda: Window.budget(9, keep=bad),
    ]  # fmt: skip
    for made in wrong:
        with pytest.raises(ConfigurationError, match="of Window is a whole number from 1 on"):
            made()
    with pytest.raises(ConfigurationError, match="slack of Window"):
        Window.last(3, slack=-1)


def test_a_summary_needs_a_model_of_its_own() -> None:
    """None, something else, or the agent's own are refused; `Compaction` takes the agent's own."""
    nobody: Any = None
    with pytest.raises(ConfigurationError, match=r"the model of Window\.summarize is a model or its name"):
        Window.summarize(10, model=nobody)
    own = counting()
    with pytest.raises(ConfigurationError, match="written by the agent's own model 'scripted:script'"):
        Agent(own, features=[Window.summarize(10, model=own)])
    unknown: Any = "never"
    with pytest.raises(ConfigurationError, match="there is no window 'never'"):
        Window(strategy=unknown, keep=2)


def test_a5_a_window_and_a_compaction_are_two_windows() -> None:
    """The error names both (case A5)."""
    with pytest.raises(FeatureConflict, match="found 'compaction' and 'window'"):
        Agent(counting(), features=[Compaction(100), Window.last(4)])


# ---- the last units --------------------------------------------------------------------------------------------------


async def test_i99_a_round_and_its_results_are_one_unit() -> None:
    """A message, a round with a call, a round with a call: three (case I99)."""
    history = [{"role": "user", "content": LONG}, *looked("c1", "one"), *looked("c2", "two")]
    held = Conversation.of(messages_from(history))
    assert len(held.units) == 3
    model = ScriptedModel("Hello.")
    await turn(Agent(model, features=[Window.last(3)]), history=history)
    assert [role for role, _ in shows(model.requests[0])] == ["data", "assistant", "tool", "assistant", "tool", "user"]


async def test_i101_what_leaves_is_told_with_who_stayed() -> None:
    """One entry for the stretch, naming units, refusals in order and tools; a notice that is smaller (case I101)."""
    model = ScriptedModel(call("toolA"), call("toolB"), call("toolC"), "done")
    window = Window.last(1, keep_last_tool_results=False)
    result = await turn(Agent(model, tools=tools("toolA", "toolB", "toolC"), features=[window]))
    last = bodies(result, Evicted)[-1]
    assert kept(last) == ["current-request@u", "inside-keep-window@r2"]
    assert [e.tools for e in bodies(result, Evicted)] == [("toolA",), ("toolB",)]
    assert [(e.start, e.upto, e.by, e.noticed) for e in bodies(result, Evicted)] == [
        (1, 2, "window.last", "named"), (2, 3, "window.last", "named"),
    ]  # fmt: skip
    first, second, third = spans(model.requests[3])
    assert (first, third) == ((0, 1), (3, 4))
    assert second.startswith(f"{DROPPED_HEAD}: 2 messages and rounds left")
    assert "The current request is kept. Results of toolB left too" in second


async def test_i100_the_last_results_of_tools_stay() -> None:
    """Two of them, the newest; then nothing is left that may leave (case I101 with pins on)."""
    model = ScriptedModel(call("toolA"), call("toolB"), call("toolC"), "done")
    result = await turn(Agent(model, tools=tools("toolA", "toolB", "toolC"), features=[Window.last(1)]))
    assert bodies(result, Evicted) == []
    assert kept(bodies(result, Stayed)[1]) == ["current-request@u", "last-tool-result@r0", "inside-keep-window@r1"]
    assert bodies(result, Stayed)[1].pinned == ("toolA",)
    assert spans(model.requests[2]) == [(0, 3)]
    names = ("toolA", "toolB", "toolC", "toolD")
    model = ScriptedModel(*[call(name) for name in names], "done")
    result = await turn(Agent(model, tools=tools(*names), features=[Window.last(1, slack=3)]))
    (left,) = bodies(result, Evicted)
    assert (left.pinned, left.tools, kept(left)[1]) == (("toolC", "toolB"), ("toolA",), "last-tool-result@r1")


async def test_i102_one_tool_has_one_last_result() -> None:
    """It is among the newest, so the earlier two leave (case I102)."""
    model = ScriptedModel(call("look"), call("look"), call("look"), "done")
    result = await turn(Agent(model, tools=tools("look"), features=[Window.last(1)]))
    assert [(e.start, e.upto) for e in bodies(result, Evicted)] == [(1, 2), (2, 3)]
    assert all(e.pinned == () for e in bodies(result, Evicted))


async def test_i103_pins_that_keep_everything_stand_down() -> None:
    """After two visits in a row that removed nothing because of them, the third does without (case I103)."""
    names = ("toolA", "toolB", "toolC", "toolD")
    model = ScriptedModel(*[call(name) for name in names], "done")
    window = Window.last(1, keep_last_tool_results=3)
    result = await turn(Agent(model, tools=tools(*names), features=[window]))
    stayed, (evicted,) = bodies(result, Stayed), bodies(result, Evicted)
    assert [body.stood_down for body in stayed] == [False, False, False]
    assert [body.pinned for body in stayed] == [(), ("toolA",), ("toolB", "toolA")]
    assert (evicted.stood_down, evicted.pinned, evicted.start, evicted.upto) == (True, (), 1, 4)
    assert knows(result).visits == 0


async def test_i104_a_call_without_a_result_stays() -> None:
    """By name, and what comes behind it leaves instead (case I104)."""
    asked = {"id": "c1", "name": "look", "arguments": {}}
    history: list[Record] = [
        {"role": "assistant", "content": "", "tool_calls": [asked]},
        {"role": "user", "content": LONG}, {"role": "assistant", "content": LONG},
    ]  # fmt: skip
    model = ScriptedModel("Hello.")
    result = await turn(Agent(model, features=[Window.last(1)]), history=history)
    (evicted,) = bodies(result, Evicted)
    assert [each.why for each in evicted.kept] == ["unresolved-tool-call", "inside-keep-window"]
    assert (evicted.start, evicted.upto) == (1, 3)


async def test_i105_few_units_are_left_alone() -> None:
    """No entry, the same bytes, no state (case I105)."""
    model, plain = ScriptedModel("Hello."), ScriptedModel("Hello.")
    result = await turn(Agent(model, features=[Window.last(12)]), history=dialogue(5))
    await turn(Agent(plain), history=dialogue(5))
    assert model.wire(model.requests[0]) == plain.wire(plain.requests[0])
    assert (bodies(result, Evicted), bodies(result, Stayed)) == ([], [])
    assert knows(result).gaps == ()


async def test_instructions_of_the_application_stay() -> None:
    """By name; what is around them leaves, stretch by stretch."""
    history: list[Record] = [
        {"role": "system", "content": "Be kind."}, *dialogue(3, 900), {"role": "system", "content": "Be brief."},
        *dialogue(2),
    ]  # fmt: skip
    model = ScriptedModel("Hello.")
    result = await turn(Agent(model, features=[Window.last(2)]), history=history)
    first, second = bodies(result, Evicted)
    assert [each.why for each in first.kept] == ["system-envelope", "system-envelope", "inside-keep-window"]
    assert [(e.start, e.upto) for e in (first, second)] == [(1, 4), (5, 6)]


async def test_slack_lets_several_gather_before_any_leaves() -> None:
    """So that the beginning of requests stays the same for as long."""
    model = ScriptedModel(*[LONG] * 8)
    agent = Agent(model, features=[Window.last(3, slack=4)])
    session: Any = "s"
    counts: list[int] = []
    for _ in range(8):
        result = await turn(agent, LONG, session=session)
        session = result.session
        counts.append(len(bodies(result, Evicted)))
    assert counts == [0, 0, 0, 0, 1, 0, 0, 1]


async def test_i111_a_window_without_a_head_gets_a_notice() -> None:
    """What a model said would lead: the notice precedes it (case I111)."""
    model = ScriptedModel("Hello.")
    await turn(Agent(model, features=[Window.last(2)]), history=[*dialogue(4, 900)])
    head, rest = spans(model.requests[0])
    assert head.startswith(f"{DROPPED_HEAD}: 3 messages and rounds left the window before request 0 (window.last).")
    assert rest == (3, 5)
    assert "Nothing was summarised; the record keeps all of it." in head


async def test_i111_no_room_for_a_notice_and_nobody_to_lead() -> None:
    """Then nothing leaves, and the record says why (case I111)."""
    model = ScriptedModel("Hello.")
    result = await turn(Agent(model, features=[Window.last(2)]), history=dialogue(2, 4))
    (stayed,) = bodies(result, Stayed)
    assert [each.why for each in stayed.kept] == ["inside-keep-window", "replacement-not-smaller"]
    assert spans(model.requests[0]) == [(0, 3)]


async def test_no_notice_is_needed_where_a_person_leads() -> None:
    """Short units leave up to a message of a person, which needs nothing in front."""
    model = ScriptedModel("Hello.")
    result = await turn(Agent(model, features=[Window.last(2)]), history=dialogue(4, 4))
    assert spans(model.requests[0]) == [(2, 5)]
    assert [(e.upto, e.noticed) for e in bodies(result, Evicted)] == [(2, "")]


# ---- a budget of tokens ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("counted", "leaves"), [(900, False), (1000, False), (1200, True)])
async def test_i106_a_budget_goes_by_what_the_provider_counted(counted: int, leaves: bool) -> None:
    """For the request before; the pressure says by how much (case I106)."""
    model = counting("Hello.", "Again.", tokens=counted)
    agent = Agent(model, features=[Window.budget(1000, keep=2)])
    first = await turn(agent, LONG, session="s")
    second = await turn(agent, LONG, session=first.session)
    assert bodies(first, Evicted) == []
    assert [e.measured for e in bodies(second, Evicted)] == [1200] * leaves
    assert (
        bodies(second, Pressure)
        == [Pressure(slot="messages", overflow_by=200, plan_action="evict", unit="tokens", cap=1000, projected=1200)]
        * leaves
    )


async def test_a_measure_is_used_once() -> None:
    """What was decided by it made it out of date: the next request is measured anew before anything else leaves."""
    model = ScriptedModel(
        reply(call("look"), usage=Usage(input_tokens=50)), reply(call("look"), usage=Usage(input_tokens=5)),
        reply("done", usage=Usage(input_tokens=6)),
    )  # fmt: skip
    result = await turn(Agent(model, tools=tools("look"), features=[Window.budget(10, keep=1)]), history=dialogue(6))
    assert len(bodies(result, Evicted)) == 1
    assert knows(result).measured is not None


async def test_a_budget_that_cannot_be_kept_says_so() -> None:
    """Everything stays for a reason: the pressure is told with no plan."""
    model = counting("Hello.", "Again.", tokens=99)
    agent = Agent(model, features=[Window.budget(10, keep=6)])
    first = await turn(agent, session="s")
    second = await turn(agent, session=first.session)
    assert [p.plan_action for p in bodies(second, Pressure)] == ["none"]
    assert [each.why for each in bodies(second, Stayed)[0].kept] == ["inside-keep-window"]


@pytest.mark.parametrize("usage", [None, Usage()])
async def test_i107_a_provider_that_counts_nothing_is_an_error(usage: Usage | None) -> None:
    """By name, once a reply has come without; the first request needs no measure (cases I106 to I108, spec 13.5)."""
    model = ScriptedModel(call("look"), "never", usage=usage)
    with pytest.raises(Unmeasurable, match="provider 'scripted' reported no usage") as raised:
        await turn(Agent(model, tools=[tool("look")], features=[Window.budget(1000)]))
    assert (raised.value.code, raised.value.provider, raised.value.feature) == ("unmeasurable", "scripted", "window")
    assert len(model.requests) == 1
    assert raised.value.result is not None


async def test_a_provider_that_counts_only_what_it_wrote_has_counted() -> None:
    """It reports usage; that the request had none of it is its word."""
    model = ScriptedModel(call("look"), "done", usage=Usage(output_tokens=3))
    result = await turn(Agent(model, tools=[tool("look")], features=[Window.budget(1000)]))
    assert (result.text, bodies(result, Stayed)) == ("done", [])


async def test_a_provider_that_stops_counting_is_told_once() -> None:
    """From then on nothing is removed."""
    model = ScriptedModel(reply(call("look"), usage=Usage(input_tokens=9)), call("look"), call("look"), "done")
    result = await turn(Agent(model, tools=[tool("look")], features=[Window.budget(1000)]))
    assert [[each.why for each in body.kept] for body in bodies(result, Stayed)] == [["unmeasured"]]


async def test_a_provider_that_counts_again_and_stops_again_is_told_again() -> None:
    """Once each time."""
    counts = Usage(input_tokens=9)
    replies = [reply(call("look"), usage=usage) for usage in (counts, None, None, counts, None, None)]
    model = ScriptedModel(*replies, "done")
    result = await turn(Agent(model, tools=[tool("look")], features=[Window.budget(1000)], rounds=9))
    assert [[each.why for each in body.kept] for body in bodies(result, Stayed)] == [["unmeasured"]] * 2


async def test_a_budget_lets_all_go_that_may() -> None:
    """Nobody counted how much of it is enough; a summary is made of one stretch, since each is paid."""
    rules = [{"role": "system", "content": "Be kind."}, *dialogue(2, 900)] * 3
    for window, starts in (
        (Window.budget(50, keep=2), [1, 4, 7]),
        (Window.summarize(50, model=scribe("They met."), keep=2), [1]),
    ):
        model = counting(call("look"), "done", tokens=99)
        result = await turn(Agent(model, tools=[tool("look")], features=[window]), history=rules)
        assert [body.start for body in bodies(result, Evicted)] == starts
        assert len(bodies(result, Pressure)) == 1


async def test_only_what_the_agent_itself_asks_is_a_measure() -> None:
    """The small questions of other features count for their own requests."""
    small = scribe("{}")  # which counts 7

    async def asks(turn: Turn, request: Request) -> Request:
        if turn.number == 1:
            await turn.consult(Query(key="q", pieces=(), shape=SCORES), where="main/other", model=small)
        return request

    other = Named("other", Hooks(on_request=asks, order={"request": SLOTS["request"]["PINS"]}))
    model = counting(call("look"), "done", tokens=99)
    agent = Agent(model, tools=[tool("look")], features=[other, Window.budget(50, keep=1)])
    result = await turn(agent, history=dialogue(6, 900))
    assert [body.measured for body in bodies(result, Evicted)] == [99]


async def test_results_stay_readable_where_they_are_pinned() -> None:
    """A pinned result is shown with its call, between the notice and the newest."""
    model = ScriptedModel(call("seats"), *[call("look")] * 3, "done")
    result = await turn(Agent(model, tools=tools("seats", "look"), features=[Window.last(1)]))
    assert texts(model.requests[-1]) == [LONG, LONG]
    assert spans(model.requests[-1])[0] == (0, 2)
    assert bodies(result, Evicted)[-1].pinned == ("seats",)


async def test_an_event_is_about_what_a_person_said_last() -> None:
    """A turn that no message began keeps the newest message of a person; a notice that nobody wrote is none."""
    model = ScriptedModel(LONG, "Noted.")
    agent = Agent(model, features=[Window.last(1)])
    first = await turn(agent, "#1 " + LONG, session="s")
    second = await turn(agent, Happened(name="rang", key="k"), session=first.session)
    (evicted,) = bodies(second, Evicted)
    assert kept(evicted) == ["current-request@u", "inside-keep-window@x2"]
    assert read(model.requests[1])["messages"][0]["content"].startswith("#1")
