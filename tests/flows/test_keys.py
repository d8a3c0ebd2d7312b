"""Keys of flows: the exact formats, and ids with colons in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.flows import keys

pytestmark = pytest.mark.unit

T0 = datetime(2026, 9, 20, 10, tzinfo=UTC)
IDS = st.text(alphabet="ab:#-1", min_size=1, max_size=12)


def test_every_key_has_its_format() -> None:
    """A host stores and compares them, so they never change."""
    step = keys.step_key(keys.run_id("triagem", "m1"), "quem", 2)
    assert step == "triagem#m1:quem:2"
    assert [keys.message_key(step, place) for place in (1, 2, 3)] == [step, f"{step}/2", f"{step}/3"]
    assert keys.idle_key("m1") == "idle:m1"
    assert keys.claim_key("promo", "lead:456", "") == "promo:lead:456:"
    assert keys.claim_key("promo", "s1", "m1") == "promo:s1:m1"
    assert keys.said_once_key("hello", "s", "s1") == "hello:s:s1"
    assert keys.wake_key("w#k", "p", T0 + timedelta(seconds=5)) == "w#k:p:1789898405000"
    assert keys.start_key("prop#k1", T0 + timedelta(hours=1)) == "prop#k1:start:1789902000000"
    assert keys.retry_key(step, T0 + timedelta(minutes=1)) == f"{step}:retry:1789898460000"
    assert keys.silence_key("retomar", "s1", T0) == "silence:retomar:s1:1789898400000"


@given(flow=IDS, session=IDS)
def test_a_silence_key_is_read_back(flow: str, session: str) -> None:
    """Flow ids may hold colons; the session's own id says where the flow's ends."""
    got = keys.silence_parts(keys.silence_key(flow, session, T0), session)
    assert got == (flow, 1789898400000)


@pytest.mark.parametrize("tail", ["", "x", "12x", "-5", "1" * 30, "\uff11\uff12"])
def test_a_silence_key_without_a_time_is_that_of_no_silence(tail: str) -> None:
    """It comes from outside, so it may hold anything."""
    assert keys.silence_parts(f"silence:nudge:s1:{tail}", "s1") == ("nudge", -1)


def test_a_silence_key_of_another_session_names_its_flow_all_the_same() -> None:
    """It starts nothing, but the line about it should name something."""
    assert keys.silence_parts("silence:nudge:other:5", "s1") == ("nudge", 5)
