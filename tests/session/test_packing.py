"""A waiting session is a few bytes, and comes back equal."""

import pytest
from hypothesis import given, settings
from msgspec import Raw
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.log import Log
from onrecord.errors import StoreError
from onrecord.session import pack, unpack
from onrecord.session.codec import (
    decode_message,
    decode_state,
    dumps_session,
    encode_state,
    loads_session,
    slot_value,
)
from onrecord.session.session import Session, SlotState
from onrecord.testing import ScriptedModel, call
from tests.session.folds import Seen
from tests.strategies import of
from tests.turn.acting import tool, turn
from tests.turn.pausing.asking import approve

pytestmark = pytest.mark.unit


@settings(max_examples=60, deadline=None)
@given(of(Session))
def test_any_session_survives_packing(session: Session) -> None:
    """Every field, of any content."""
    assert dumps_session(unpack(pack(session))) == dumps_session(session)
    assert decode_state(encode_state(session), session.conversation).key == session.key


async def test_a_paused_session_of_many_turns_is_small() -> None:
    """Fifty messages and an open question in a few kilobytes."""
    agent = Agent(ScriptedModel(*["Some words of an answer."] * 25, [call("pay")]), tools=[tool("pay")],
                  features=[approve("pay")])  # fmt: skip
    session = (await turn(agent, "Some words of a question?", session="s")).session
    for _ in range(25):
        session = (await turn(agent, "Some words of a question?", session=session)).session
    assert session is not None
    assert session.pending is not None
    assert len(pack(session)) < 6_000
    assert unpack(pack(session)) == session


@pytest.mark.parametrize("data", [b"", b"no", b"\x78\x01\x03\x00"])
def test_bytes_that_are_no_session_are_refused(data: bytes) -> None:
    """By a code, without their content."""
    with pytest.raises(StoreError) as told:
        unpack(data)
    assert told.value.code == "store-corrupt"


async def test_a_damaged_session_is_told_without_its_content() -> None:
    """A state that does not decode names what is wrong, never what it holds."""
    session = (await turn(Agent(ScriptedModel("ok")), "canary-4", session="s")).session
    assert session is not None
    whole = dumps_session(replace(session, data={"a": 1}))
    for damaged in (
        whole.replace(b'"canary-4"', b'["canary-4"]'),
        whole.replace(b'"type":"user"', b'"type":"canary-4"'),
        whole.replace(b'"data":{"a":1}', b'"data":{"a":' + b"[" * 9000 + b"]" * 9000 + b"}"),
    ):
        assert damaged != whole
        with pytest.raises(StoreError) as told:
            loads_session(damaged)
        assert "canary-4" not in str(told.value)


def test_a_state_that_json_cannot_keep_is_named() -> None:
    """A fold whose state is no plain value: its type is told when the session is written."""
    session = Session(key=of_key(), slots={"x": SlotState(1, object())})
    with pytest.raises(TypeError, match="object"):
        encode_state(session)


def of_key() -> SessionKey:
    """A key."""
    return SessionKey("s")


def test_a_slot_that_was_not_read_stays_as_it_was_written() -> None:
    """Its bytes go through unread, spaces and all."""
    session = Session(key=of_key(), slots={"x": SlotState(3, Raw(b'{ "a" : 1.0 }'))})
    again = loads_session(dumps_session(session))
    assert bytes(again.slots["x"].value) == b'{ "a" : 1.0 }'
    assert replace(again).slots["x"].version == 3


@pytest.mark.parametrize("raw", [b'[{"kind":["canary-4"],"n":1}]', b'{"canary-4":1}', b"[" * 9000])
def test_a_state_that_its_fold_does_not_read_is_told_without_its_content(raw: bytes) -> None:
    """The fold has to say that it keeps something else now."""
    with pytest.raises(StoreError, match="does not decode") as told:
        slot_value(SlotState(1, Raw(raw)), Log[Seen])
    assert (told.value.code, "version" in told.value.hint) == ("store-corrupt", True)
    assert "canary-4" not in str(told.value)


@pytest.mark.parametrize("data", [b'{"type":"canary-4"}', b"{", b"[" * 9000], ids=["type", "cut", "deep"])
def test_a_message_that_does_not_decode_is_an_error_of_the_store(data: bytes) -> None:
    """By the code that all stored bytes have, without what they hold."""
    with pytest.raises(StoreError, match="does not decode") as told:
        decode_message(data)
    assert told.value.code == "store-corrupt"
    assert "canary-4" not in str(told.value)
