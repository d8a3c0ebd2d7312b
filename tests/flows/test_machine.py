"""Flows keep their promises whatever happens: random flows, inputs, clocks, failures, edits, repeats and crashes."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.flows.flow_machine import FlowMachine

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]

EXAMPLES = int(os.environ.get("FLOWS_EXAMPLES", "60"))


def test_flows_keep_every_promise_whatever_happens() -> None:
    """Long sessions of an agent with random flows; ``FLOWS_EXAMPLES=5000`` looks longer."""
    work = settings(
        max_examples=EXAMPLES, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(FlowMachine, settings=work)
