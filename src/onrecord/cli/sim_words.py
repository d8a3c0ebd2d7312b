"""A simulation in words: what waits for which time, which runs are live, and what is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from onrecord.cli.simulated_time import SimulatedTime
from onrecord.conversation.inputs import Input, Woke
from onrecord.flows.keys import SILENCE, silence_parts, start_key
from onrecord.flows.state import FlowState, Run
from onrecord.honesty.sentences import input_text
from onrecord.jsonio import Json, dumps
from onrecord.session.inbox import Row

__all__ = ("cause_text", "data_lines", "row_lines", "run_lines", "script_lines")


def script_lines(text: str) -> Iterator[str]:
    """The lines of a script that say something: neither blank nor a remark."""
    return (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def cause_text(input: Input, state: FlowState, session: str) -> str:
    """What a turn that starts by itself is about: ``silence, for nudge``."""
    if not isinstance(input, Woke):
        return f"again: {input_text(input)}"
    run = next((run for run in state.runs if run.waiting is not None and run.waiting.key == input.key), None)
    if run is not None:
        return _wait_text(run)
    if input.key.startswith(SILENCE):
        return f"silence, for {silence_parts(input.key, session)[0]}"
    return f"{input.key}, for which no run waits any more"


def _wait_text(run: Run) -> str:
    waiting, place = run.waiting, f"{run.flow_id}/{run.step_id}" if run.step_id else run.flow_id
    if waiting is None:
        return place
    if waiting.kind == "event":
        return f"{place} stops waiting for {waiting.event}"
    if waiting.until is not None and waiting.key == start_key(run.id, waiting.until):
        return f"{run.flow_id} begins after its delay"
    return f"{place} tries again" if ":retry:" in waiting.key else f"the wait of {place} ends"


def row_lines(rows: Iterable[Row], state: FlowState, session: str, clock: SimulatedTime) -> Iterator[str]:
    """What is due later, in order; what was set aside last."""
    later = sorted((row for row in rows if not row.dead), key=lambda row: (row.due or clock.at, row.n))
    for row in later:
        yield f"{clock.told(row.due or clock.at)}  {_row_text(row, state, session)}"
    for row in rows:
        if row.dead:
            yield f"set aside ({row.dead})  {_row_text(row, state, session)}"


def _row_text(row: Row, state: FlowState, session: str) -> str:
    body = row.body
    return cause_text(body, state, session) if isinstance(body, Input) else row.key


def run_lines(state: FlowState, clock: SimulatedTime) -> Iterator[str]:
    """A line for each live run."""
    for run in state.runs:
        told = [run.id, _status_text(run, clock), f"started {clock.told(run.started_at)}"]
        told += [f"asked {', '.join(f'{slug} x{count}' for slug, count in run.asked.items())}"] if run.asked else []
        yield " · ".join(told)


def _status_text(run: Run, clock: SimulatedTime) -> str:
    at = f" at {run.step_id}" if run.step_id else ""
    waiting = run.waiting
    if waiting is None:
        return f"{'stays' if run.staying else run.status}{at}"
    if waiting.kind == "answer":
        return f"waits{at} for a person's answer"
    until = f" until {clock.told(waiting.until)}" if waiting.until is not None else ""
    return f"waits{at} for {waiting.event}{until}" if waiting.kind == "event" else f"waits{at}{until}"


def data_lines(data: Mapping[str, Json], known: Iterable[str]) -> Iterator[str]:
    """A line for each value, declared fields first and in their order."""
    names = [name for name in known if name in data]
    for name in (*names, *(name for name in data if name not in names)):
        yield f"{name} = {dumps(data[name]).decode()}"
