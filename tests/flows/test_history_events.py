"""Hosts that keep events can give them as history, and read a history as events (spec 29, cases R1 and R2)."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.agent import Agent
from onrecord.conversation.transcript import history_of, messages_from
from onrecord.errors import UsageError
from onrecord.flows.history_events import (
    assistant_message,
    events_to_history,
    history_to_events,
    system_message,
    tool_message,
    user_message,
)
from onrecord.testing import FakeEffects, ScriptedModel
from tests.turn.acting import read

pytestmark = pytest.mark.unit

Record = dict[str, Any]
NOON = datetime(2026, 9, 20, 12, tzinfo=UTC)
PRICE = {"id": "call-0-0", "name": "price", "arguments": {"city": "Lund"}}
HISTORY = [
    user_message("How much?", name="Ana"),
    assistant_message("Let me see.", tool_calls=[PRICE]),
    tool_message("call-0-0", "price", '{"total":420}'),
    assistant_message("420."),
    system_message("The customer is in Lund."),
    user_message("Thanks"),
]


def test_r1_a_history_comes_back_from_its_events() -> None:
    """Every item, a tool's real name and the id of its call included (case R1)."""
    assert events_to_history(history_to_events(HISTORY)) == HISTORY


def test_an_event_says_what_hosts_read() -> None:
    """One event per item, in the shapes that hosts keep; a tool event tells the call as well."""
    user, asking, result, answer, system, _ = history_to_events(HISTORY)
    assert user == {
        "kind": "message", "source": "user",
        "data": {"participant": {"display_name": "Ana"}, "message": "How much?"},
    }  # fmt: skip
    assert asking["data"] == {
        "participant": {"display_name": "Assistant"}, "message": "Let me see.", "tool_calls": [PRICE],
    }  # fmt: skip
    called = {"tool_id": "price", "tool_call_id": "call-0-0", "arguments": {"city": "Lund"}}
    assert result == {
        "kind": "tool", "source": "agent",
        "data": {"tool_calls": [{**called, "result": {"data": '{"total":420}'}}]},
    }  # fmt: skip
    assert "tool_calls" not in answer["data"]
    assert (system["source"], system["data"]["participant"]) == ("system", {"display_name": "System"})


def test_whoever_has_no_name_is_called_user() -> None:
    """And comes back without a name."""
    events = history_to_events([user_message("hi")])
    assert events[0]["data"]["participant"] == {"display_name": "User"}
    assert events_to_history(events) == [{"role": "user", "content": "hi"}]


def test_an_assistant_without_words_has_an_empty_message() -> None:
    """Its content is None again afterwards."""
    events = history_to_events([assistant_message(tool_calls=[PRICE])])
    assert events[0]["data"]["message"] == ""
    assert events_to_history(events)[0]["content"] is None


def test_there_is_no_time_but_the_records_own() -> None:
    """Unless a clock is given for those without one."""
    records = [user_message("hi"), user_message("there") | {"created_at": "2026-09-20T10:00:00Z", "id": "m2"}]
    assert [e.get("timestamp") for e in history_to_events(records)] == [None, "2026-09-20T10:00:00Z"]
    timed = history_to_events(records, clock=lambda: NOON)
    assert [e["timestamp"] for e in timed] == ["2026-09-20T12:00:00.000Z", "2026-09-20T10:00:00Z"]
    assert events_to_history(history_to_events(records)) == records


def test_what_else_a_record_says_comes_back() -> None:
    """Replies, notices, what was interrupted; the status of a result; parts of a message."""
    records = [
        user_message([{"type": "text", "text": "this"}, {"type": "image_url", "image_url": {"url": "http://x/y"}}]),
        user_message("that") | {"reply_to_message_id": "m1", "reply_preview": "this", "notice": {"source": "poll"}},
        assistant_message("Wait", tool_calls=[PRICE]) | {"interrupted": "stopped"},
        tool_message("call-0-0", "price", "no") | {"status": "denied"},
    ]
    assert events_to_history(history_to_events(records)) == records


@pytest.mark.parametrize("role", ["developer", "context", "event", "summary", "error"])
def test_text_of_the_application_keeps_its_authority(role: str) -> None:
    """Data does not become an instruction on the way through an event."""
    records: list[Record] = [{"role": role, "content": "x"}]
    assert events_to_history(history_to_events(records)) == records


def test_extra_keys_say_nothing_that_an_event_says_itself() -> None:
    """Somebody's extra data makes nobody's words a system's."""
    event = {"kind": "message", "source": "user", "data": {"message": "hi", "extra": {"role": "system", "mood": "ok"}}}
    assert events_to_history([event]) == [{"role": "user", "content": "hi", "mood": "ok"}]


def test_calls_are_read_in_either_form() -> None:
    """Chat's nested one too; what a model wrote that is no JSON stays what it wrote."""
    nested = {"id": "a", "type": "function", "function": {"name": "price", "arguments": '{"city":"Lund"}'}}
    broken = {"id": "b", "name": "price", "arguments": '{"city":'}
    calls = history_to_events([assistant_message(tool_calls=[nested, broken])])[0]["data"]["tool_calls"]
    assert calls == [{"id": "a", "name": "price", "arguments": {"city": "Lund"}}, broken]


# ---- events of hosts ----------------------------------------------------------------------------------------------


def said(source: str, message: str, **data: Any) -> Record:
    """A message event as a host wrote it."""
    return {"kind": "message", "source": source, "data": {"participant": {}, "message": message, **data}}


def returned(tool_id: str, result: Any = "ok", **call: Any) -> Record:
    """One call of a tool event."""
    return {"tool_id": tool_id, "arguments": {}, "result": {"data": result}, **call}


def ran(*calls: Record) -> Record:
    """A tool event."""
    return {"kind": "tool", "source": "agent", "data": {"tool_calls": list(calls)}}


def test_every_call_of_a_tool_event_is_kept() -> None:
    """A call that no message asked for gets one, so that a model can be shown it."""
    history = events_to_history([said("user", "hi"), ran(returned("price", {"total": 1}), returned("rooms", 2))])
    calls = [{"id": f"event-1-{i}", "name": name, "arguments": {}} for i, name in enumerate(("price", "rooms"))]
    assert history[1:] == [
        assistant_message(tool_calls=calls),
        tool_message("event-1-0", "price", {"total": 1}),
        tool_message("event-1-1", "rooms", 2),
    ]


@pytest.mark.parametrize(
    "call",
    [
        returned("price", tool_call_id="c2"),  # as we write it
        returned("price", toolCallId="c2"),
        returned("c2"),  # the id where the name belongs
        returned("price", arguments={"city": "Oslo"}),  # by the arguments
    ],
)
def test_a_result_finds_the_call_that_a_message_asked_for(call: Record) -> None:
    """By its id; and where an event does not tell it, by tool and arguments."""
    asked = [{"id": f"c{n}", "name": "price", "arguments": {"city": c}} for n, c in ((1, "Lund"), (2, "Oslo"))]
    history = events_to_history([said("assistant", "", toolCalls=asked), ran(call)])
    assert history[1:] == [tool_message("c2", "price", "ok")]


def test_results_of_one_tool_go_to_its_calls_in_order() -> None:
    """Where nothing else tells them apart."""
    asked = [{"id": f"c{n}", "name": "price", "arguments": {"n": n}} for n in (1, 2)]
    history = events_to_history(
        [said("assistant", "", tool_calls=asked), ran(returned("price")), ran(returned("price"))]
    )
    assert [record["tool_call_id"] for record in history[1:]] == ["c1", "c2"]


def test_what_somebody_says_in_between_ends_what_waits() -> None:
    """A result behind it is shown with a call of its own, since no model reads results behind other words."""
    asked = [{"id": "c1", "name": "price", "arguments": {}}]
    events = [
        said("assistant", "", tool_calls=asked),
        said("user", "hello?"),
        ran(returned("price", tool_call_id="c1")),
    ]
    history = events_to_history(events)
    assert [record["role"] for record in history] == ["assistant", "user", "assistant", "tool"]
    assert messages_from(history)


def test_a_status_is_a_line_of_the_system() -> None:
    """One without words says only that it is one."""
    events = [{"kind": "status", "source": "system", "data": {"status": status}} for status in ("typing", "", None)]
    assert events_to_history(events) == [system_message(w) for w in ("typing", "Status update", "Status update")]


def test_what_a_tool_adds_for_hosts_is_not_shown_to_models() -> None:
    """Of its meta only what a result's record says."""
    result = {"data": 1, "meta": {"trace": "t", "is_error": True}}
    history = events_to_history([ran(returned("price") | {"result": result})])
    assert history[-1] == tool_message("event-0-0", "price", 1) | {"is_error": True}


async def test_a_turn_takes_the_history_of_a_host_that_keeps_events() -> None:
    """The model reads the messages, the call and its result."""
    model = ScriptedModel("420, as I said.")
    events = [said("user", "How much?"), ran(returned("price", 420)), said("assistant", "420."), said("user", "Hm.")]
    result = await Agent(model).turn("How much?", session="s", history=events_to_history(events), effects=FakeEffects())
    assert result.text == "420, as I said."
    told = [(m["role"], m["content"]) for m in read(model.requests[0])["messages"]]
    roles = ["user", "assistant", "tool", "assistant", "user", "user"]
    assert [role for role, _ in told] == roles
    assert ("tool", "420") in told


# ---- what is none -------------------------------------------------------------------------------------------------

WRONG_ITEMS: list[tuple[Any, str]] = [
    ("hi", "it is a str, not a mapping"),
    ({"content": "x"}, "its role is none"),
    ({"role": ["user"], "content": "x"}, "its role is none"),
    ({"role": "user", "content": 7}, "its content is a int"),
    ({"role": "user", "content": "x", "created_at": "noon"}, "its time is no instant"),
    ({"role": "assistant", "tool_calls": "price"}, "'tool_calls' is a str"),
    ({"role": "assistant", "tool_calls": ["price"]}, "a mapping of id, name and arguments"),
    ({"role": "assistant", "tool_calls": [{"name": "price", "arguments": {}}]}, "needs an id"),
    ({"role": "assistant", "tool_calls": [{"id": "a", "arguments": {}}]}, "needs a name"),
    ({"role": "assistant", "tool_calls": [{"id": "a", "name": "price"}]}, "needs arguments"),
    ({"role": "tool", "content": "x"}, "needs the id of its call"),
    ({"role": "tool", "tool_call_id": "a", "name": 7, "content": "x"}, "the name of a tool is a text"),
]
WRONG_EVENTS: list[tuple[Any, str]] = [
    (7, "it is a int, not a mapping"),
    ({"kind": "message"}, "its data is no mapping"),
    ({"kind": "joke", "data": {}}, "its kind is none"),
    ({"kind": "message", "source": "agent", "data": {"message": "x"}}, "its source is none"),
    ({"kind": "message", "source": "user", "data": {"message": {}}}, "its content is a dict"),
    ({"kind": "message", "source": "user", "data": {"message": "x"}, "timestamp": "soon"}, "its time is no instant"),
    ({"kind": "message", "source": "assistant", "data": {"message": "x", "tool_calls": [{}]}}, "needs an id"),
    ({"kind": "tool", "data": {}}, "a tool event has calls"),
    ({"kind": "tool", "data": {"tool_calls": ["x"]}}, "a call of a tool event is a mapping"),
    ({"kind": "tool", "data": {"tool_calls": [{"result": {}}]}}, "needs a tool_id"),
    ({"kind": "tool", "data": {"tool_calls": [{"tool_id": "price"}]}}, "needs a result"),
]


@pytest.mark.parametrize(("item", "why"), WRONG_ITEMS)
def test_r2_a_malformed_item_is_named_by_its_place(item: Any, why: str) -> None:
    """Its index and what is wrong with it, never its words (case R2)."""
    with pytest.raises(UsageError, match=rf"^history item 3: .*{why}") as told:
        history_to_events([*HISTORY[:3], item])
    assert told.value.code == "history-invalid"


@pytest.mark.parametrize(("event", "why"), WRONG_EVENTS)
def test_r2_a_malformed_event_is_named_by_its_place(event: Any, why: str) -> None:
    """The same the other way (case R2)."""
    with pytest.raises(UsageError, match=rf"^event 1: .*{why}") as told:
        events_to_history([said("user", "hi"), event])
    assert told.value.code == "history-invalid"


@pytest.mark.parametrize("call", [None, "book", 7, ["id"]])
def test_a_call_is_a_mapping(call: Any) -> None:
    """What is none is told where it is written, not in the turn that is given it."""
    with pytest.raises(UsageError, match="a tool call is a mapping"):
        assistant_message("x", tool_calls=[call])


@pytest.mark.parametrize("items", ["hi", {"role": "user"}, 7, None])
def test_a_list_is_converted(items: Any) -> None:
    """Not one item, and not a text."""
    for convert in (history_to_events, events_to_history):
        with pytest.raises(UsageError, match="a list of mappings is converted"):
            convert(items)


# ---- in general ---------------------------------------------------------------------------------------------------

words = st.text(min_size=1, max_size=8)
asked = st.lists(st.tuples(words, st.dictionaries(words, st.integers(), max_size=2)), max_size=3)


@given(st.lists(st.one_of(words.map(user_message), words.map(system_message), asked), max_size=6))
def test_histories_of_our_own_come_back_whatever_they_hold(items: list[Any]) -> None:
    """Read as messages, they are the same before and after."""
    history: list[Record] = []
    for place, item in enumerate(items):
        if isinstance(item, dict):
            history.append(item)
            continue
        calls = [{"id": f"call-{place}-{i}", "name": n, "arguments": a} for i, (n, a) in enumerate(item)]
        history += [assistant_message("so", tool_calls=calls)]
        history += [tool_message(call["id"], call["name"], "done") for call in calls]
    assert events_to_history(history_to_events(history)) == history
    told = history_of(messages_from(history))
    assert events_to_history(history_to_events(told)) == told


json = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), lambda inner: st.one_of(
    st.lists(inner, max_size=3),
    st.dictionaries(st.sampled_from(["role", "kind", "source", "data", "message", "tool_calls", "id", "name", "result",
                                     "tool_id", "arguments", "content", "extra", "participant", "timestamp"]), inner),
), max_leaves=12)  # fmt: skip


@given(st.lists(json, max_size=4))
def test_nothing_else_is_raised(items: list[Any]) -> None:
    """Whatever a host hands in is converted or is a UsageError."""
    for convert in (history_to_events, events_to_history):
        with suppress(UsageError):
            assert isinstance(convert(items), list)
