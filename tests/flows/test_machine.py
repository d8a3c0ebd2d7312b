"""Flows keep their promises whatever happens: random flows, inputs, clocks, failures, edits, repeats and crashes."""

from __future__ import annotations

import logging
import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.flows.flow_machine import FlowMachine

pytestmark = [pytest.mark.integration, pytest.mark.timeout(0)]  # as long as it is told to

SESSIONS = int(os.environ.get("ONRECORD_FLOW_SESSIONS", "50"))
"""How many random sessions; thousands look longer."""


def test_flows_keep_every_promise_whatever_happens(caplog: pytest.LogCaptureFixture) -> None:
    """Long sessions with one agent or two, each with random flows; see `FlowMachine` for what befalls them."""
    caplog.set_level(logging.CRITICAL, "onrecord.flows")  # or it would tell of every failure that is played
    work = settings(
        max_examples=SESSIONS, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(FlowMachine, settings=work)
