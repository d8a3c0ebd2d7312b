"""Who takes a message: the floor, 40 and 15, catch-alls and lone flows, as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.flows.route import MARGIN, MINIMUM, Route, is_lone, route

pytestmark = pytest.mark.unit

FLOWS = ("sales", "help", "other")


@pytest.mark.parametrize(
    ("scores", "asker", "catch_all", "takes"),
    [
        ({"sales": 39, "help": 39}, None, None, None),
        ({"sales": 40}, None, None, Route("sales")),
        ({"sales": 70, "help": 70}, None, None, Route("sales")),
        ({"sales": 70, "help": 71}, None, "open", Route("help")),
        ({"sales": 10}, None, "open", Route("open", catch_all=True)),
        ({"sales": 50, "help": 64}, "sales", None, None),
        ({"sales": 50, "help": 65}, "sales", None, Route("help")),
        ({"sales": 10, "help": 39}, "sales", None, None),
        ({"help": 40}, "sales", None, Route("help")),
        ({"sales": 0}, "sales", "open", None),
        ({"help": 90}, "gone", None, Route("help")),
    ],
)
def test_a_message_goes_where_the_scores_say(
    scores: dict[str, float], asker: str | None, catch_all: str | None, takes: Route | None
) -> None:
    """The best of at least 40 starts; from one who asks it takes 15 more; nobody's message is the catch-all's."""
    assert route(FLOWS, scores, asker=asker, catch_all=catch_all, lone=False) == takes


@given(
    scores=st.dictionaries(st.sampled_from(FLOWS), st.floats(0, 100)),
    asker=st.sampled_from((*FLOWS, None)),
)
def test_nobody_takes_the_floor_without_reason(scores: dict[str, float], asker: str | None) -> None:
    """Who takes it has the best score, at least 40, and at least 15 more than who asks."""
    taken = route(FLOWS, scores, asker=asker, catch_all=None, lone=False)
    others = [scores.get(flow, 0.0) for flow in FLOWS if flow != asker]
    needed = max(MINIMUM, scores.get(asker, 0.0) + MARGIN) if asker else MINIMUM
    assert (taken is not None) == (max(others) >= needed)
    if taken is not None:
        assert scores[taken.flow] == max(others)
        assert taken.flow != asker


@pytest.mark.parametrize(
    ("eligible", "asking", "catch_all", "idle", "score", "lone"),
    [
        (("sales",), False, None, True, False, True),
        (("sales",), False, "open", True, False, True),
        (("sales",), True, None, True, False, False),
        (("sales", "help"), False, None, True, False, False),
        ((), False, "open", True, False, False),
        (("sales",), False, None, True, True, False),
        (("sales",), False, "open", False, True, False),
        (("sales",), False, None, False, True, True),
    ],
)
def test_a_lone_flow_starts_unscored(
    eligible: tuple[str, ...], asking: bool, catch_all: str | None, idle: bool, score: bool, lone: bool
) -> None:
    """With lone_flow="score" only where nobody else could take the message."""
    assert is_lone(eligible, asking=asking, catch_all=catch_all, idle=idle, score=score) is lone
