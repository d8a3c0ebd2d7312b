"""Appending takes the same time however long a log is."""

import time

import pytest

from onrecord.conversation.log import Log

pytestmark = pytest.mark.bench


def seconds_per_append(log: Log[int], appends: int) -> float:
    """The best of several runs."""
    best = 1.0
    for _ in range(3):
        view, begun = log.cut(len(log)), time.perf_counter()
        for item in range(appends):
            view = view.append(item)
        best = min(best, (time.perf_counter() - begun) / appends)
    return best


def test_an_append_to_a_million_entries_costs_what_one_to_a_hundred_does() -> None:
    """With a generous bound: a copy of the list would take thousands of times as long."""
    short = seconds_per_append(Log(range(100)), 50_000)
    long = seconds_per_append(Log(range(1_000_000)), 50_000)
    assert long < 10 * short
