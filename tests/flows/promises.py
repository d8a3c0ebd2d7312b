"""What flows promise of a whole session, kept turn by turn beside it and held against it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from onrecord.conversation.inputs import Answered, Happened, Input, Said, Woke
from onrecord.errors import FeatureFailed, ModelError
from onrecord.flows import Cooldown, Flow, FlowOptions, Flows
from onrecord.flows.entries import ClaimReleased, LineSentOnce, RunStarted
from onrecord.flows.keys import SILENCE, claim_key, idle_key, silence_key, step_key
from onrecord.flows.state import KEPT_CLAIMS, Run
from onrecord.models.request import Request
from onrecord.record.entry import Entry
from onrecord.session.session import Session, resumed
from onrecord.timing import to_ms
from onrecord.turn.result import TurnResult
from tests.flows.random_flows import MAX_ASKS

__all__ = ("Ledger",)

COOLDOWN = timedelta(hours=1)
UNFINISHED = ("interrupted", "failed", "refused")
WHY_UNANSWERED = {"provider-quota", "provider-context", "provider-auth", "provider-invalid", "provider-unavailable", "refused"}


class Ledger:
    """Everything that left the turns of one session, and what must follow from it."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.delivered: dict[str, str] = {}
        self.armed: dict[str, datetime] = {}
        self.fired: list[str] = []
        self.live: list[str] = []
        self.spent: dict[str, datetime] = {}
        self.acted: dict[str, str] = {}
        self.once: set[str] = set()
        self.silent: set[str] = set()
        self.is_repeat = self.is_silence_unsure = self.is_cut_short = False

    # ---- one turn

    def keep(
        self, flows: Flows, before: Session | None, input: Input, result: TurnResult[Any], gate: Any, acted: Any, now: datetime
    ) -> None:  # fmt: skip
        """Takes down what a turn came to."""
        if isinstance(input, Woke):
            self.fired.append(input.key)
            if result.status not in UNFINISHED:  # one that broke off is given back to come again
                self.armed.pop(input.key, None)
        if self.is_repeat and isinstance(input, (Said, Happened)):
            assert result.status == "ignored", "an input is taken once"
        if not result.changed:
            assert result.session is before, "what changed nothing leaves the session that was given"
            assert not (result.messages or result.wakes or result.disarmed or result.entries)
            return
        self.entries += result.entries
        self.is_cut_short = result.status in UNFINISHED
        if result.status in UNFINISHED:
            self._unfinished(flows, before, result)
            return
        self._sent(result, gate)
        self._timers(flows, before, result, now)
        self._runs(flows, result)
        self._floor(flows, before, input, result)
        self._actions(acted)
        self._answered(before, input, result, gate, flows, acted)

    def _unfinished(self, flows: Flows, before: Session | None, result: TurnResult[Any]) -> None:
        """A turn that was stopped leaves flows as they were."""
        assert result.session is not None
        assert not (result.messages or result.wakes or result.disarmed)
        if before is not None:
            assert flows.state(result.session) == flows.state(before)
            assert result.session.data == before.data
        spoke = None if before is None else before.last_assistant_at
        self.is_silence_unsure = self.is_silence_unsure or result.session.last_assistant_at != spoke

    def _sent(self, result: TurnResult[Any], gate: Any) -> None:
        assert gate is None or not result.messages, "nobody speaks while silenced"
        assert sum(message.kind == "ai" for message in result.messages) <= 1, "one voice a turn"
        started = {line.about["run_id"] for line in result.started}
        for message in result.messages:
            assert message.key not in self.delivered, "a key is that of one message"
            self.delivered[message.key] = message.text
            assert message.text.strip() or message.media
            run = message.about.get("run_id")
            if run is None:
                assert message.key.startswith(idle_key(""))
            else:
                assert run in started or run in self.live
                assert message.key.startswith(step_key(run, message.about["step_id"], 0)[:-1])

    def _timers(self, flows: Flows, before: Session | None, result: TurnResult[Any], now: datetime) -> None:
        keys = [wake.key for wake in result.wakes]
        assert len(set(keys)) == len(keys), "a wake is armed once a turn"
        for key in result.disarmed:
            self.armed.pop(key, None)
        for wake in result.wakes:
            assert wake.key.startswith(SILENCE) or wake.at >= now, "nothing is armed for the past"
            self.armed.pop(wake.replaces or "", None)
            self.armed[wake.key] = wake.at
        spoke = None if before is None else before.last_assistant_at
        if result.session is not None and result.session.last_assistant_at != spoke:
            self.is_silence_unsure = False
            self.silent = {flow.id for flow in flows.declared if any(one.kind == "silence" and one.only_if is None for one in flow.on)}

    def _runs(self, flows: Flows, result: TurnResult[Any]) -> None:
        for line in result.lines:
            if line.kind == "run" and line.status == "started":
                self.live.append(str(line.about["run_id"]))
            elif line.kind == "run" and line.status == "ended":
                self.live.remove(str(line.about["run_id"]))
        for entry in result.entries:
            body = entry.body
            if isinstance(body, RunStarted):
                claim = claim_key(body.run.flow_id, body.run.anchor, body.nonce)
                if claim in self.spent:
                    assert not body.nonce
                    assert _cools_down(flows, body.run.flow_id), "a claim is spent once"
                    assert body.at - self.spent[claim] >= COOLDOWN
                self.spent[claim] = body.at
            elif isinstance(body, ClaimReleased):
                del self.spent[claim_key(body.flow, body.anchor, body.nonce)]
            elif isinstance(body, LineSentOnce):
                assert body.key not in self.once, "what is said once is said once"
                self.once.add(body.key)

    def _floor(self, flows: Flows, before: Session | None, input: Input, result: TurnResult[Any]) -> None:
        """Who waits for a wake goes on when it fires; who was suspended last asks first."""
        if before is None or result.session is None:
            return
        old = {run.id: run for run in flows.state(before).runs}
        new = flows.state(result.session)
        for run in new.runs:
            if isinstance(input, Woke) and run.waiting is not None and run.waiting.key == input.key:
                assert run.waiting != old[run.id].waiting, "a wake is not fired in vain"
        asker = new.asker
        if isinstance(input, (Said, Answered)) or asker is None or asker.id not in old or asker.waiting is not None:
            return
        behind = old[asker.id].suspended_at
        still = [run for run in new.runs if run.suspended_at is not None and run.id in old]
        assert behind is None or all(_is_behind(old[run.id], behind) for run in still)

    def _actions(self, acted: Sequence[tuple[str, str]]) -> None:
        for key, how in acted:
            assert self.acted.get(key, "defer") in ("defer", "asks"), "an action that is done is not done again"
            self.acted[key] = how

    def _answered(
        self, before: Session | None, input: Input, result: TurnResult[Any], gate: Any, flows: Flows, acted: Any
    ) -> None:  # fmt: skip
        if not isinstance(input, Said) or gate is not None or result.status == "paused" or flows._book.idle is None:
            return
        if before is not None and resumed(before, input) is not None:
            return  # it answered a question of another turn
        codes = {line.code for line in result.lines}
        assert result.messages or codes & WHY_UNANSWERED or any(how == "spoke" for _, how in acted), "a customer is answered"

    # ---- calls

    def check_calls(self, input: Input, gate: Any, got: Any, requests: Sequence[Request], *, rounds: int, context: Any) -> None:
        """No more calls than a turn may cost; nothing is raised but what is documented."""
        purposes = [request.purpose for request in requests]
        judged, spoken = purposes.count("judge"), len(purposes) - purposes.count("judge")
        assert judged <= (isinstance(input, Said) and (gate is None or gate.understand)), purposes
        assert spoken <= (0 if gate is not None else rounds + 1)
        if isinstance(got, ModelError):
            assert purposes == ["judge"]
            assert got.result is None
        elif isinstance(got, FeatureFailed):
            assert context["breaks"]
        else:
            assert got.llm_calls == len(requests)
            assert got.status != "ignored" or not requests

    # ---- the session

    def check_state(self, flows: Flows, session: Session, now: datetime, context: Any, options: FlowOptions | None) -> None:
        """What holds of a session between turns."""
        state = flows.state(session)
        assert [run.id for run in state.runs] == self.live
        assert len(set(self.live)) == len(self.live)
        spent = {**self.spent, **state.sent}
        forgotten = spent.keys() - state.claims.keys()
        assert dict(state.claims) == {key: at for key, at in spent.items() if key not in forgotten}
        assert not forgotten or len(state.claims) >= KEPT_CLAIMS
        assert set(state.sent) == self.once
        held = None if state.held is None else state.held.question
        assert self.is_cut_short or held == (None if session.question is None else session.question.key)
        asking = [run for run in state.runs if run.status == "asking"]
        suspended = [run for run in state.runs if run.status == "suspended"]
        assert len(asking) <= 1
        assert asking or not suspended, "the floor is given back"
        for run in state.runs:
            assert (run.suspended_at is not None) == (run.status == "suspended")
            assert (run.waiting is not None) == (run.status == "waiting")
            assert run.status != "running" or session.pending is not None or self.is_cut_short
            if run.waiting is not None and run.waiting.kind == "answer" and not self.is_cut_short:
                assert session.question is not None
                assert session.question.key == run.waiting.key
            assert run.step_id is None or run.visits[run.step_id]
            assert all(times <= MAX_ASKS for times in run.asked.values())
        parked = {run.waiting.key: run.waiting.until for run in state.runs if run.waiting is not None and run.waiting.until}
        assert parked == {k: at for k, at in self.armed.items() if not k.startswith(SILENCE)}
        pending = flows.pending_wakes(session, now=now, context={**context, "breaks": False}, options=[] if options is None else [options])
        assert {w.key: w.at for w in pending if not w.key.startswith(SILENCE)} == parked
        if not self.is_silence_unsure:
            self._silences(flows, session, {w.key: w.at for w in pending if w.key.startswith(SILENCE)})

    def _silences(self, flows: Flows, session: Session, pending: dict[str, datetime]) -> None:
        spoke, wrote = session.last_assistant_at, session.last_user_at
        for flow in flows.declared:
            trigger = next((one for one in flow.on if one.kind == "silence"), None)
            if trigger is None or trigger.only_if is not None or flow.anchor != "session" or isinstance(trigger.repeat, Cooldown):
                continue
            if spoke is None or flow.id == "f0":
                continue  # f0 is claimed elsewhere now and then
            key = silence_key(flow.id, session.key.id, spoke)
            nonce = str(to_ms(spoke)) if trigger.repeat == "always" else ""
            is_open = claim_key(flow.id, session.key.id, nonce) not in self.spent and (wrote is None or wrote <= spoke)
            assert (key in pending) == is_open
            if is_open and flow.id in self.silent:
                assert key in self.armed or key in self.fired


def _is_behind(run: Run, last: datetime) -> bool:
    return run.suspended_at is None or run.suspended_at <= last


def _cools_down(flows: Flows, id: str) -> bool:
    flow = next(one for one in flows.declared if one.id == id)
    return any(isinstance(trigger.repeat, Cooldown) for trigger in flow.on)
