"""A history that grows too long is shown shortened, then summed up, then cut off (spec 30, cases R4 to R8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.messages import Round
from onrecord.errors import ConfigurationError, FeatureFailed
from onrecord.models.request import Span
from onrecord.prompt.window.compaction import Compaction
from onrecord.prompt.window.evicted import Evicted
from onrecord.prompt.window.sizes import estimate
from onrecord.prompt.window.summarising import HEADING, LEFT_OUT, SUMMARY_TOKENS, TASK
from onrecord.record.kinds import ModelRequested
from onrecord.testing import ScriptedModel, call, raises
from onrecord.testing.conformance.feature import InertFeatureConformance, MakeFeature
from tests.prompt.windows import Record, agent_with, dialogue, evictions, looked, shows, spans
from tests.turn.acting import bodies, kinds, read, texts, tool, turn

pytestmark = pytest.mark.unit

SUMMED = f"{HEADING}\nThey met."


class TestCompaction(InertFeatureConformance):
    """It keeps the promises of all features; with room enough it has nothing to say."""

    @pytest.fixture(params=[100_000, 10], ids=["roomy", "narrow"])
    def make_feature(self, request: pytest.FixtureRequest) -> MakeFeature:
        room: int = request.param
        return lambda: Compaction(room)


# ---- what fits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("items", "summaries"), [(7, 0), (8, 1)])
async def test_r4_below_the_threshold_nothing_changes(items: int, summaries: int) -> None:
    """Strictly below: 70 tokens of 80 are left alone, 80 are not; without a call (case R4)."""
    model = ScriptedModel("Hello.", consult=["They met."] * summaries)
    result = await turn(agent_with(model), history=dialogue(items))
    assert model.calls.count("consult") == summaries
    assert (spans(model.requests[-1])[0] == (0, 8)) is (summaries == 0)
    assert (len(evictions(result)), result.llm_calls) == (summaries, 1 + summaries)


async def test_r4_below_the_threshold_the_request_is_as_without_it() -> None:
    """The very same bytes (case R4)."""
    model, plain = ScriptedModel("Hello."), ScriptedModel("Hello.")
    await turn(agent_with(model), history=dialogue(7))
    await turn(Agent(plain), history=dialogue(7))
    assert model.wire(model.requests[0]).body == plain.wire(plain.requests[0]).body


async def test_the_message_of_the_turn_is_no_part_of_its_past() -> None:
    """However long it is: it was not asked for to be cut, nor is it counted."""
    model = ScriptedModel("Hello.")
    result = await turn(agent_with(model), "x" * 900, history=dialogue(7))
    assert (result.llm_calls, spans(model.requests[0])) == (1, [(0, 8)])


async def test_the_rounds_of_the_turn_are_no_part_of_its_past() -> None:
    """A result of this turn is shown as long as it is, in every later round; the view grows with them."""
    model = ScriptedModel(call("look"), call("look"), "Done.", consult=["They met."])
    agent = agent_with(model, tools=[tool("look", lambda *_: "y" * 9000)])
    await turn(agent, history=dialogue(8))
    spoken = [r for r in model.requests if r.purpose == "speak"]
    assert [spans(r) for r in spoken] == [[SUMMED, (4, n)] for n in (9, 10, 11)]
    assert texts(spoken[2]) == ["y" * 9000] * 2


# ---- shorter results ----------------------------------------------------------------------------------------------


def with_result(result: str) -> list[Record]:
    """A result older than the newest four items."""
    return [{"role": "user", "content": "hi"}, *looked("c1", result), *dialogue(4, 4)]


async def test_r4_long_results_are_cut_first() -> None:
    """To 5,000 characters and a notice, where that is enough; the conversation keeps them (case R4)."""
    model = ScriptedModel("Hello.")
    result = await turn(agent_with(model, 1700), history=with_result("z" * 6000))
    assert texts(model.requests[0]) == ["z" * 5000 + "\n\n[Truncated: 6000 chars total, showing first 5000]"]
    assert spans(model.requests[0]) == [(0, 7)]
    assert evictions(result) == [("cut", 2, 1513, 1276)]
    assert result.llm_calls == 1


async def test_white_space_goes_next() -> None:
    """Of all older results, where cutting is not enough."""
    model = ScriptedModel("Hello.")
    result = await turn(agent_with(model), history=with_result("a \n\n\t b " * 50))
    assert texts(model.requests[0]) == [" ".join(["a b"] * 50)]
    assert [how for how, *_ in evictions(result)] == ["collapsed"]


async def test_the_newest_results_are_left_alone() -> None:
    """However long they are: nothing is older, so nothing is done, and nobody is asked."""
    model = ScriptedModel("Hello.")
    result = await turn(agent_with(model), history=looked("c1", "z " * 6000))
    assert texts(model.requests[0]) == ["z " * 6000]
    assert (result.llm_calls, evictions(result)) == (1, [])


async def test_a_shortening_names_the_calls_it_is_about() -> None:
    """And the units they stand in, once."""
    model = ScriptedModel(call("look"), "Hello.")
    result = await turn(agent_with(model, 1700, tools=[tool("look")]), history=with_result("z" * 6000))
    (evicted,) = bodies(result, Evicted)
    assert [name.rsplit("/", 2)[1:] for name in evicted.calls] == [["r0", "c0"]]
    assert evicted.first.startswith("h0-")


# ---- the summary --------------------------------------------------------------------------------------------------


async def test_r5_the_oldest_are_summed_up_in_one_call() -> None:
    """The newest four items stay untouched behind the summary; the call counts (case R5).

    The original's summary is a system item. Ours is data: it holds customers' words.
    """
    model = ScriptedModel("Hello.", consult=["  They met.\n"])
    history = dialogue(9)
    result = await turn(agent_with(model), history=history)
    assert model.calls == ["consult", "speak"]
    assert shows(model.requests[1]) == [
        ("data", "[Conversation Summary]\nThey met"),
        *((r["role"], r["content"].rstrip(".")) for r in history[5:]),
        ("user", "hi"),
    ]
    assert result.llm_calls == 2
    assert evictions(result) == [("summarised", 5, 90, 49)]


async def test_r5_the_call_asks_for_plain_words() -> None:
    """No schema, no tools, at most 1,024 tokens; the older messages as lines, each behind who said it (case R5)."""
    model = ScriptedModel("Hello.", consult=["They met."])
    history = [
        {"role": "system", "content": "The hotel is in Lund."},
        {"role": "user", "content": [{"type": "text", "text": "A room?"}, {"type": "file", "file": {"file_id": "f"}}]},
        *looked("c1", '{"total":420}', "Let me see."),
        *dialogue(4, 80),
    ]
    await turn(agent_with(model, 110, tools=[tool("look")]), history=history)
    asked = model.requests[0]
    lines = (
        "[system]: The hotel is in Lund.\n[user]: A room? (a file)\n"
        '[assistant]: Let me see.\n[tool]: look({}) = {"total":420}'
    )
    assert (asked.shape, asked.offers, asked.settings.max_tokens) == (None, (), SUMMARY_TOKENS == 1024 and 1024)
    assert read(asked)["system"] == TASK.text
    assert [(m["role"], m["content"]) for m in read(asked)["messages"]] == [("data", lines)]


async def test_a_summary_is_made_by_the_model_that_was_given() -> None:
    """Its call counts in the turn all the same."""
    small, large = ScriptedModel(consult=["They met."]), ScriptedModel("Hello.")
    result = await turn(agent_with(large, model=small), history=dialogue(9))
    assert (small.calls, large.calls, result.llm_calls) == (["consult"], ["speak"], 2)


async def test_a_summary_reads_results_as_short_as_they_were_shown() -> None:
    """Cut, and without their white space."""
    model = ScriptedModel("Hello.", consult=["They met."])
    await turn(agent_with(model, max_tool_result_chars=8), history=[*looked("c1", "a  b " * 99), *dialogue(8)])
    lines = read(model.requests[0])["messages"][0]["content"]
    assert "[tool]: look({}) = a b a [Truncated: 495 chars total, showing first 8]\n" in lines


async def test_what_is_too_long_to_be_summed_up_is_summed_up_from_its_end() -> None:
    """What would not fit into ``max_tokens`` itself is left out, and the lines say so."""
    model = ScriptedModel("Hello.", consult=["They met."])
    await turn(agent_with(model), history=dialogue(99))
    lines = read(model.requests[0])["messages"][0]["content"]
    assert lines.startswith(LEFT_OUT)
    assert len(lines) == len(LEFT_OUT) + 1 + 400
    assert lines.rstrip(".").endswith("[user]: 094")


async def test_r6_a_window_that_would_open_on_a_result_grows() -> None:
    """To the round that asked for it; the call is not summed up without its result (case R6)."""
    model = ScriptedModel("Hello.", consult=["They met."])
    history = [*dialogue(6), *looked("c1", "ok"), *dialogue(3)]
    await turn(agent_with(model), history=history)
    assert spans(model.requests[1]) == [SUMMED, (6, 11)]
    assert shows(model.requests[1])[1:3] == [("assistant", ""), ("tool", "ok")]


@pytest.mark.parametrize(
    ("summary", "why"),
    [
        (raises("overload"), "model-overload"),
        (raises("context"), "model-context"),
        ("", "empty"),
        (" \n", "empty"),
        ([call("look")], "empty"),
    ],
)
async def test_r7_without_a_summary_the_newest_that_fit_stay(summary: Any, why: str) -> None:
    """The turn goes on, the call is counted, and the record says why; an empty summary is none (case R7)."""
    model = ScriptedModel(call("look"), "Hello.", consult=[summary])
    result = await turn(agent_with(model, tools=[tool("look")]), history=dialogue(12))
    assert [spans(r) for r in model.requests[1:]] == [[(5, 13)], [(5, 14)]]
    assert (result.text, result.llm_calls) == ("Hello.", 3)
    assert evictions(result) == [("dropped", 5, 120, 70)]
    assert [e.why for e in bodies(result, Evicted)] == [why]


async def test_r7_only_what_does_not_fit_is_left_out() -> None:
    """Where the oldest is all that is too much, nothing else goes (case R7)."""
    model = ScriptedModel("Hello.", consult=[raises("rate")])
    await turn(agent_with(model), history=[*dialogue(1, 4000), *dialogue(6)])
    assert spans(model.requests[1]) == [(1, 8)]


async def test_r7_a_window_too_large_alone_stays() -> None:
    """The newest items are shown whatever they count (case R7)."""
    model = ScriptedModel("Hello.", consult=[raises("rate")])
    await turn(agent_with(model), history=dialogue(6, 400))
    assert spans(model.requests[1]) == [(2, 7)]


async def test_r7_what_stays_of_the_older_part_stays_short() -> None:
    """Results before the window are shown in their shorter forms (case R7)."""
    model = ScriptedModel("Hello.", consult=[raises("rate")])
    history = [*dialogue(6), *looked("c1", "x   y" * 9), *dialogue(4, 40)]
    await turn(agent_with(model), history=history)
    assert texts(model.requests[1]) == ["x yx yx yx yx yx yx yx yx y"]
    assert spans(model.requests[1])[0][0] > 0


async def test_a_script_that_runs_out_is_a_tests_own_mistake() -> None:
    """It is not taken for a provider that failed."""
    with pytest.raises(FeatureFailed, match="ScriptEnded"):
        await turn(agent_with(ScriptedModel("Hello.")), history=dialogue(9))


async def test_the_record_says_what_left_before_it_says_what_was_asked() -> None:
    """The summary's call, what it covers, then the request that shows it."""
    model = ScriptedModel("Hello.", consult=["They met."])
    result = await turn(agent_with(model), history=dialogue(9))
    told = [kind for kind in kinds(result) if kind.startswith(("model", "context"))]
    assert told == ["model.requested", "model.replied", "context.evicted", "model.requested", "model.replied"]
    assert [b.purpose for b in bodies(result, ModelRequested)] == ["consult", "speak"]


# ---- configuration ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "given", "what"),
    [
        ((0,), {}, "max_tokens of Compaction is a whole number from 1 on, not 0"),
        ((1.5,), {}, "max_tokens"),
        ((True,), {}, "max_tokens"),
        ((100,), {"threshold": 1.2}, "the threshold of Compaction is a share from 0.5 to 0.95, not 1.2"),
        ((100,), {"threshold": 0.4}, "threshold"),
        ((100,), {"threshold": float("nan")}, "threshold"),
        ((100,), {"threshold": "0.8"}, "threshold"),
        ((100,), {"threshold": True}, "threshold"),
        ((100,), {"keep": 1}, "keep of Compaction is a whole number from 2 on, not 1"),
        ((100,), {"max_tool_result_chars": 0}, "max_tool_result_chars"),
        ((100,), {"model": 7}, "the model of Compaction is a model or its name, not a int"),
    ],
)
def test_r8_what_cannot_work_is_refused_when_it_is_made(
    args: Sequence[Any], given: Mapping[str, Any], what: str
) -> None:
    """In words of the library (case R8)."""
    with pytest.raises(ConfigurationError, match=what):
        Compaction(*args, **given)


@pytest.mark.parametrize("given", [{"threshold": 0.5}, {"threshold": 0.95}, {"keep": 2}, {"max_tool_result_chars": 1}])
def test_r8_the_limits_themselves_are_allowed(given: Mapping[str, Any]) -> None:
    """And show in what a record says of the agent (case R8)."""
    held = agent_with(ScriptedModel(), **given).spec.manifest["compaction"]
    assert held["max_tokens"] == 100


def test_a_models_name_is_looked_up_when_the_agent_is_built() -> None:
    """A name that nobody has is refused there."""
    assert agent_with(ScriptedModel(), model="offline").spec.manifest["compaction"]["model"] == "offline:rules"
    with pytest.raises(ConfigurationError, match="names no model provider"):
        agent_with(ScriptedModel(), model="nobody")


async def test_the_stand_in_model_writes_summaries_too() -> None:
    """First steps need nothing else."""
    agent = Agent("offline", features=[Compaction(100)])
    result = await turn(agent, "hello", history=dialogue(12))
    assert result.llm_calls == 2
    assert [e.how for e in bodies(result, Evicted)] == ["summarised"]


# ---- in general ---------------------------------------------------------------------------------------------------

item = st.one_of(
    st.text(alphabet="ab ", max_size=40).map(lambda t: [{"role": "user", "content": t}]),
    st.text(alphabet="ab ", max_size=40).map(lambda t: [{"role": "assistant", "content": t}]),
    st.lists(st.text(alphabet="ab \n", max_size=90), min_size=1, max_size=3),
)


def history_from(items: list[Any]) -> list[Record]:
    """Records of drawn items; texts alone are the results of one round."""
    records: list[Record] = []
    for place, held in enumerate(items):
        if held and isinstance(held[0], str):
            calls = [{"id": f"{place}-{i}", "name": "look", "arguments": {}} for i in range(len(held))]
            records.append({"role": "assistant", "content": None, "tool_calls": calls})
            records += [
                {"role": "tool", "tool_call_id": c["id"], "content": r} for c, r in zip(calls, held, strict=True)
            ]
        else:
            records += held
    return records


@given(st.lists(item, max_size=14), st.integers(4, 200), st.integers(2, 5), st.booleans())
async def test_whatever_the_history_the_promises_hold(items: list[Any], room: int, keep: int, works: bool) -> None:
    """The newest items whole, in order; below the threshold, or nothing but them; one call at most; no error."""
    model = ScriptedModel("Hello.", consult=["S" if works else raises("rate")])
    agent = agent_with(model, room, keep=keep, max_tool_result_chars=20)
    result = await turn(agent, history=history_from(items))
    request = model.requests[-1]
    units = request.conversation.units
    tail = request.view.spans[-1]
    assert isinstance(tail, Span)
    assert tail.stop == len(units)
    counts = [1 + len(u.calls) if isinstance(u, Round) else 1 for u in units][:-1]
    assert tail.start == 0 or sum(counts[tail.start :]) >= keep
    window = max((w for w in range(len(counts)) if sum(counts[w:]) >= keep), default=0)
    assert all(swap.unit < window for swap in request.view.swaps)
    assert len(evictions(result)) <= 1
    (how, upto, before, after) = evictions(result)[0] if evictions(result) else ("", 0, estimate(units[:-1]), 0)
    assert before == estimate(units[:-1])
    if how:
        assert before >= room * 0.8
        assert after < room * 0.8 or upto == window
    else:
        assert before < room * 0.8 or window == 0
