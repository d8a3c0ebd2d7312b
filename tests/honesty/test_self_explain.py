"""Self-explanation: a model reads what it did in turns that have ended, and nothing that it should not read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Ask, approved
from onrecord.errors import ConfigurationError, FeatureConflict
from onrecord.governance.rules import before_tool, on_output
from onrecord.honesty import SelfExplain, trace_tools
from onrecord.honesty.finished import FINISHED, MOST_TURNS
from onrecord.honesty.trace_tools import MOST_FOUND, TOOLS
from onrecord.honesty.turn_trace import MOST_CHARS, Trace
from onrecord.record.entry import Entry
from onrecord.record.kinds import TextSaid
from onrecord.session import Session
from onrecord.session.folding import land
from onrecord.session.history import reset
from onrecord.session.memory_store import MemoryStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.testing.conformance.feature import FeatureConformance, MakeFeature
from onrecord.turn.moments import Allow, Deny
from tests.honesty.talks import Talk, asked, first
from tests.models.requests import projection
from tests.strategies import takes
from tests.turn.acting import tool, turn

pytestmark = pytest.mark.unit

NAMES = (
    "run_overview", "find_context_errors", "find_in_trace", "trace_node", "trace_slice", "backtrack", "who_wrote",
    "get_value", "inspect_tool_call", "inspect_tool_run", "read_narrative",
)  # fmt: skip
"""As the specification has them."""


# ---- which turn, whose record ----------------------------------------------------------------------------------------


async def test_175_the_first_turn_has_nothing_to_explain_and_the_second_only_the_first() -> None:
    """``who_wrote("history")`` names entries of the first turn only; the turn that asks is never among them."""
    talk = Talk([call("who_wrote", name="history")], "Nothing yet.", [call("who_wrote", name="history")], "I did.")
    before = await asked(talk)
    assert before == [{"not_recorded": "no turn of this conversation has ended before this one"}]
    (told,) = await asked(talk)
    assert talk.session is not None
    (one, _) = talk.session.slots[FINISHED.name].value.done
    assert {line["entry"] for line in told["written_by"]} <= set(range(one.first, one.last + 1))
    assert [line["told"] for line in told["written_by"]] == [
        "The agent got a message.",
        "It asked for who_wrote.",
        "who_wrote is not there, or found nothing.",
        "It replied.",
        "The agent answered.",
    ]


async def test_an_earlier_turn_is_asked_for_by_its_number() -> None:
    """So a question about an explanation still reaches what was explained."""
    talk = Talk("One.", "Two.", [call("run_overview", turn=2), call("run_overview", turn=3)], "x")
    await talk.say("first")
    await talk.say("second")
    found, missing = await asked(talk)
    assert found["answered"][0]["text"] == "One."
    assert missing == {"not_recorded": "only 2 earlier turns of this conversation are remembered"}


async def test_nothing_is_recorded_where_nobody_keeps_a_record() -> None:
    """Said as that by every one of the eleven, so that no evidence is never taken for a clean run."""
    args: dict[str, Any] = {"text": "x", "entry": 1, "name": "history", "tool": "price"}
    calls = [call(n, **{k: args[k] for k in about[3]}) for n, about in TOOLS.items()]
    talk = Talk("One.", calls, "x", explains=SelfExplain())
    await talk.say()
    told = await asked(talk)
    assert len(told) == len(NAMES)
    assert {t["not_recorded"] for t in told} == {
        "no record of this conversation is kept where this agent runs, so nothing can be cited"
    }


async def test_a_record_that_was_cleared_is_told_as_that() -> None:
    """Not as a turn in which nothing went wrong."""

    async def none(key: SessionKey, /, *, after: int = -1) -> Any:
        nothing: tuple[Entry, ...] = ()
        for entry in nothing:
            yield entry

    talk = Talk("One.", [call("find_context_errors")], "x", explains=SelfExplain(entries=none))
    await talk.say()
    assert await asked(talk) == [{"not_recorded": "the entries of that turn are not in the record any more"}]


async def test_only_the_own_session_is_read() -> None:
    """The record is asked for the session of the turn, from where its turn began."""
    read: list[tuple[SessionKey, int]] = []
    store = MemoryStore()

    async def source(key: SessionKey, /, *, after: int = -1) -> Any:
        read.append((key, after))
        async for entry in store.entries(key, after=after):
            yield entry

    talk = Talk("One.", "Two.", [call("run_overview")], "x", explains=SelfExplain(entries=source))
    talk.store = store
    await talk.say()
    first = await talk.say()
    await asked(talk)
    assert read == [(SessionKey("s"), first.entries[0].seq - 1)]


async def test_a_turn_that_waited_is_read_without_those_in_between() -> None:
    """Its entries lie around another turn's; a turn that waits has not ended."""

    @before_tool
    async def asks(turn: Any, made: Any) -> Any:
        return Ask("Sure?") if made.name == "price" else Allow()

    script = [call("price")], "In between.", "47.", [call("read_narrative")], "x"
    talk = Talk(*script, features=[asks])
    paused = await talk.say("price?")
    await talk.say("hello?")
    await talk.say(approved(paused.question, by="ana"))
    (told,) = await asked(talk)
    text = "\n".join(told["lines"])
    assert "asks asked a person." in text
    assert "The person said yes." in text
    assert text.count("The agent got a message.") == 1
    assert text.count("The agent answered.") == 1


async def test_failed_turns_are_explained_too() -> None:
    """They are what people ask about most."""

    @on_output
    async def refuses(turn: Any, answer: Any) -> Any:
        return Deny("no prices") if "47" in answer.text else Allow()

    talk = Talk("It is 47.", [call("run_overview"), call("find_context_errors")], "x", features=[refuses])
    await talk.say("price?")
    overview, problems = await asked(talk)
    assert overview["ended"] == "failed"
    assert [line["told"] for line in problems["found"]] == [
        "The rule refuses denied the answer.",
        "The turn failed: AnswerRefused.",
    ]


async def test_a_conversation_that_began_anew_explains_nothing_from_before() -> None:
    """A reset ends what may be cited."""
    talk = Talk("secret", [call("run_overview")], "x")
    await talk.say()
    assert talk.session is not None
    assert talk.agent.plan.features.count("self_explain") == 1
    assert SelfExplain().can_explain(talk.session)
    await talk.keep(reset(talk.session, by="ana", at=FakeEffects().now(), folds=talk.agent.plan.folds))
    assert not SelfExplain().can_explain(talk.session)
    assert "not_recorded" in (await asked(talk))[0]


# ---- how much --------------------------------------------------------------------------------------------------------


async def test_long_values_come_in_parts() -> None:
    """Each part says how much is left."""
    long = "".join(str(n % 10) for n in range(MOST_CHARS + 10))
    script = first(call("get_value", entry=7), call("get_value", entry=7, start=MOST_CHARS))
    talk = Talk(*script, tools=[tool("price", lambda *_: long, read_only=True)])
    await talk.say()
    begun, rest = await asked(talk)
    assert begun["text"] == f"{long[:MOST_CHARS]} … (10 more characters)"
    assert rest["text"] == long[MOST_CHARS:]


async def test_many_hits_are_counted_and_few_are_shown() -> None:
    """The total says that there are more."""
    talk = Talk([call("price", n=n) for n in range(60)], "x", [call("find_in_trace", text="euros")], "x")
    await talk.say()
    (told,) = await asked(talk)
    assert (len(told["found"]), told["total"]) == (MOST_FOUND, 60)


async def test_a_turn_of_very_many_entries_is_read_from_its_beginning() -> None:
    """And every result says how many entries were not read."""
    store = MemoryStore()
    talk = Talk("One.", [call("run_overview")], "x", explains=SelfExplain(entries=store.entries, most_entries=3))
    talk.store = store
    await talk.say()
    (told,) = await asked(talk)
    assert told["entries"]["count"] == 3
    assert told["entries_not_read"] > 0


async def test_only_so_many_turns_are_remembered() -> None:
    """What a session carries does not grow with its length."""
    talk = Talk(*["x"] * (MOST_TURNS + 5))
    for _ in range(MOST_TURNS + 5):
        await talk.say()
    assert talk.session is not None
    assert len(talk.session.slots[FINISHED.name].value.done) == MOST_TURNS


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_every_tool_reads_any_turn(data: Any) -> None:
    """Whatever it holds, a tool gives JSON, or says what is not recorded."""
    session = Session(key=SessionKey("s"), digest_key="k")
    take: tuple[Entry, ...] = data.draw(takes(session))
    trace = Trace(take[0].turn, take, land(session, take).conversation)
    args = {"text": "a", "entry": take[-1].seq, "name": "history", "tool": "x", "start": 1}
    for name, (read, *_) in TOOLS.items():
        assert msgspec.json.encode(read(trace, args)), name
    for entry in take:
        words = trace.words(entry)
        assert not words or isinstance(words, str)
        if isinstance(entry.body, TextSaid):
            assert words in ("", entry.body.text)


# ---- as a feature ----------------------------------------------------------------------------------------------------


class TestFeature(FeatureConformance):
    """What every feature promises."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return SelfExplain


def test_the_tools_are_those_of_the_specification() -> None:
    """By name; all of them only read."""
    plan = Talk("x").agent.plan
    assert tuple(TOOLS) == NAMES
    assert [name for name in plan.tools if name != "price"] == list(NAMES)
    assert all(plan.tools[name].is_read_only({}) for name in NAMES)
    assert (trace_tools.MOST_DEEP, trace_tools.MOST_NODES, trace_tools.MOST_LINES) == (20, 100, 200)
    assert (trace_tools.MOST_FOUND, MOST_CHARS, MOST_TURNS) == (25, 8000, 20)


def test_a10_reserved_names() -> None:
    """A tool of such a name is refused while the agent is built, with the list of those that are reserved."""
    with pytest.raises(ConfigurationError, match="'who_wrote'") as caught:
        Agent(ScriptedModel("x"), tools=[tool("who_wrote")], features=[SelfExplain()])
    assert all(name in (caught.value.hint or "") for name in NAMES)


def test_useless_configurations_are_refused() -> None:
    """Twice is once too often; and no entries are too few."""
    with pytest.raises(FeatureConflict, match="given twice"):
        Agent(ScriptedModel("x"), features=[SelfExplain(), SelfExplain()])
    with pytest.raises(ConfigurationError, match="from 1 on"):
        SelfExplain(most_entries=0)


def shown_tools(talk: Talk) -> list[list[str]]:
    """The names of the tools in each request."""
    model = talk.agent.plan.model
    assert isinstance(model, ScriptedModel)
    return [[offer.tool.id for offer in request.offers] for request in model.requests]


async def test_one_tool_stands_in_a_request_until_it_is_called() -> None:
    """Then all of them, for the rest of that turn; other tools are always there."""
    talk = Talk("One.", [call("run_overview")], [call("trace_node", entry=1)], "Because.", "Two.")
    for _ in range(3):
        await talk.say("why?")
    first, opening, *reading, after = shown_tools(talk)
    assert first == opening == after == ["price", "run_overview"]
    assert reading == [["price", *NAMES]] * 2


async def test_a_tool_that_is_not_shown_answers_and_brings_the_others() -> None:
    """A model may know the name from the turn before."""
    talk = Talk("One.", [call("who_wrote", name="history")], "I did.")
    await talk.say()
    (told,) = await asked(talk)
    assert told["written_by"]
    assert shown_tools(talk)[1:] == [["price", "run_overview"], ["price", *NAMES]]


async def test_it_costs_a_request_little() -> None:
    """Schema and instruction together, as the commonest wire writes them: under 150 tokens, counted roughly."""
    bare, explaining = ScriptedModel("x"), ScriptedModel("x")
    await turn(Agent(bare), "hi", session="s")
    await turn(Agent(explaining, features=[SelfExplain()]), "hi", session="s")
    sizes = [len(projection().wire(model.requests[0]).body) for model in (bare, explaining)]
    assert sizes[1] - sizes[0] < 4 * 150


async def test_the_instruction_can_be_replaced_or_left_out() -> None:
    """It is one piece of the prompt, under the feature's name."""
    for explains, told in ((SelfExplain(instruction="Cite."), ["Cite."]), (SelfExplain(instruction=""), [])):
        talk = Talk("x", explains=explains)
        await talk.say()
        model = talk.agent.plan.model
        assert isinstance(model, ScriptedModel)
        assert [p.text for p in model.requests[0].pieces if p.source == "self_explain"] == told


async def test_turns_that_never_end_are_not_remembered_for_ever() -> None:
    """A session whose process dies again and again keeps the places of the last few."""
    (opened, *_) = (await turn(Agent(ScriptedModel("a"), features=[SelfExplain()]))).entries
    state = FINISHED.start()
    for seq in range(20):
        state = FINISHED.apply(state, msgspec.structs.replace(opened, turn=f"t{seq}", seq=seq))
    assert [one.first for one in state.begun] == [*range(12, 20)]
