"""What flows promise of a whole session, kept turn by turn beside it and held against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from onrecord.conversation.inputs import Answered, Happened, Input, Said, Woke
from onrecord.conversation.outgoing import Wake
from onrecord.errors import FeatureFailed, ModelError
from onrecord.flows import Cooldown, Flows
from onrecord.flows.entries import ClaimReleased, LineSentOnce, RunStarted
from onrecord.flows.keys import IDLE, SILENCE, claim_key, silence_key, step_key
from onrecord.flows.outcomes import END_REASONS
from onrecord.flows.state import KEPT_CLAIMS, FlowState, Run
from onrecord.models.request import Request
from onrecord.record.entry import Entry
from onrecord.session.session import Session, resumed
from onrecord.timing import to_ms
from onrecord.turn.result import TurnResult
from tests.flows.random_flows import COOLDOWN, MAX_ASKS

__all__ = ("ROUNDS", "Ledger")

ROUNDS = 2
"""How many rounds with tools an agent may take."""
UNFINISHED = ("interrupted", "failed", "refused")
PROVIDER = ("provider-quota", "provider-context", "provider-auth", "provider-invalid", "provider-unavailable")
EXCUSES = {*PROVIDER, "refused"}
"""Codes of lines that say why a customer heard nothing."""
_LATER = ("prompt deferred", "collect deferred")
LINES: Mapping[str | None, Sequence[str]] = {
    None: ("prompt ok", "collect ok", "say ok", "do ok", "if ok", "wait waiting", "idle ok", "run started"),
    "no-session": ("wait skipped",), "stale-wake": ("wait skipped",), "silence-broken": ("wait skipped",),
    "unknown-event": ("wait skipped",), "duplicate-input": ("input ignored",), "stale-answer": ("input ignored",),
    "already-claimed": ("run skipped",), "cooldown": ("run skipped",), "hop-limit": ("run skipped",),
    "already-running": ("run skipped",), "flow-gone": ("run skipped", "if skipped"), "step-gone": ("if skipped",),
    "silenced": ("run skipped", "prompt skipped", "collect skipped", "say skipped"),
    "already-known": ("collect skipped",), "asked-fixed": ("collect ok",), "max-asks": ("collect skipped",),
    "another-reply": ("prompt skipped", "collect skipped"), "branch": ("prompt ok", "collect ok"),
    "already-sent": ("say skipped",), "blank": ("say skipped",),
    "refused": ("prompt failed", "collect failed", "say failed", "idle failed"),
    "inline-delay": ("wait ok",), "awaiting-trigger": ("wait waiting",), "awaiting-event": ("wait waiting",),
    "event-arrived": ("wait ok",), "no-event": ("wait ok",), "replied": ("wait ok",), "no-reply": ("wait ok",),
    "awaiting-answer": ("prompt waiting", "collect waiting", "do waiting"), "question-gone": ("do failed",),
    "action-skipped": ("do skipped",), "action-failed": ("do failed",), "action-deferred": ("do deferred",),
    "unknown-field": ("collect skipped",), "bad-value": ("collect skipped",), "not-in-enum": ("collect skipped",),
    **dict.fromkeys(PROVIDER, (*_LATER, "prompt failed", "collect failed", "idle deferred")),
    **dict.fromkeys(END_REASONS, ("run ended",)),
}  # fmt: skip
"""With which kind and status each code may stand; those that end a run early may stand at a step of any kind."""
ANYWHERE = {"step-loop": "failed", "customer-replied": "skipped", "premise-changed": "skipped"}


class Ledger:
    """Everything that left the turns of one session, and what must follow from it.

    ``armed`` are wakes with their time and whose they are; ``spent`` claims, ``live`` runs, ``acted`` what actions came
    to by key, ``once`` lines said once. ``asker`` is who asked the question that is open.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.sent: set[str] = set()
        self.armed: dict[str, tuple[datetime, int]] = {}
        self.fired: list[str] = []
        self.live: list[str] = []
        self.spent: dict[str, datetime] = {}
        self.acted: dict[str, str] = {}
        self.once: set[str] = set()
        self.silent: set[str] = set()
        self.asker = 0
        self.is_repeat = self.is_silence_unsure = self.is_cut_short = False

    # ---- one turn

    def keep(
        self, flows: Flows, before: Session | None, input: Input, result: TurnResult[Any], *, gate: Any,
        acted: Sequence[tuple[str, str]], now: datetime, door: int,
    ) -> None:  # fmt: skip
        """Takes down what a turn came to."""
        is_whole = result.status not in UNFINISHED
        for line in result.lines:
            fits = LINES.get(line.code, ())
            assert f"{line.kind} {line.status}" in fits or ANYWHERE.get(line.code or "") == line.status, line
        if isinstance(input, Woke):
            self.fired.append(input.key)
            if is_whole:  # one that broke off is given back, and comes again
                self.armed.pop(input.key, None)
        if self.is_repeat and isinstance(input, (Said, Happened)):
            assert result.status == "ignored", "an input is taken once"
        if not result.changed:
            assert result.session is before, "what changed nothing leaves the session that was given"
            assert (result.messages, result.wakes, result.disarmed, result.entries) == ((), (), (), ())
            return
        self.entries += result.entries
        self.is_cut_short = not is_whole
        if not is_whole:
            self._broken_off(flows, before, result)
            return
        if result.status == "paused":
            self.asker = door
        self._messages(result, gate)
        self._runs(flows, result)
        self._timers(flows, before, result, now, door)
        self._floor(flows, before, input, result)
        self._actions(acted)
        self._answered(flows, before, input, result, gate=gate, acted=acted)

    def _broken_off(self, flows: Flows, before: Session | None, result: TurnResult[Any]) -> None:
        """A turn that was stopped, or failed, leaves flows as they were."""
        assert result.session is not None
        assert (result.messages, result.wakes, result.disarmed) == ((), (), ())
        assert flows.state(result.session) == (FlowState() if before is None else flows.state(before))
        assert result.session.data == ({} if before is None else before.data)
        spoke = None if before is None else before.last_assistant_at
        self.is_silence_unsure = self.is_silence_unsure or result.session.last_assistant_at != spoke

    def _messages(self, result: TurnResult[Any], gate: Any) -> None:
        assert gate is None or not result.messages, "nobody speaks while silenced"
        assert sum(message.kind == "ai" for message in result.messages) <= 1, "one voice a turn"
        begun = {line.about["run_id"] for line in result.started}
        for message in result.messages:
            assert message.key not in self.sent, "a key is that of one message"
            assert message.text.strip() or message.media, "what is sent says or shows something"
            self.sent.add(message.key)
            run = message.about.get("run_id")
            if run is None:
                assert message.key.startswith(IDLE)
            else:
                assert run in begun or run in self.live
                assert message.key.startswith(step_key(run, message.about["step_id"], 0)[:-1])

    def _timers(
        self, flows: Flows, before: Session | None, result: TurnResult[Any], now: datetime, door: int
    ) -> None:  # fmt: skip
        keys = [wake.key for wake in result.wakes]
        assert len(set(keys)) == len(keys), "a wake is armed once a turn"
        for key in result.disarmed:
            self.armed.pop(key, None)
        for wake in result.wakes:
            assert wake.at >= now, "nothing is armed for the past"
            self.armed.pop(wake.replaces or "", None)
            self.armed[wake.key] = (wake.at, door)
        spoke = None if before is None else before.last_assistant_at
        speaks = None if result.session is None else result.session.last_assistant_at
        if result.session is not None and speaks is not None and speaks != spoke:
            for flow, claim in _silences(flows, result.session):
                is_armed = silence_key(flow, result.session.key.id, speaks) in keys
                assert is_armed == (claim not in self.spent), "silence is armed where its flow may begin"
            self.is_silence_unsure = False
            self.silent = {flow.id for flow in flows.declared if any(_is_plain_silence(one) for one in flow.on)}

    def _runs(self, flows: Flows, result: TurnResult[Any]) -> None:
        for line in result.lines:
            if line.kind == "run" and line.status == "started":
                self.live.append(str(line.about["run_id"]))
            elif line.kind == "run" and line.status == "ended":
                self.live.remove(str(line.about["run_id"]))
        for entry in result.entries:
            body = entry.body
            if isinstance(body, RunStarted):
                self._spend(flows, body)
            elif isinstance(body, ClaimReleased):
                del self.spent[claim_key(body.flow, body.anchor, body.nonce)]
            elif isinstance(body, LineSentOnce):
                assert body.key not in self.once, "what is said once is said once"
                self.once.add(body.key)

    def _spend(self, flows: Flows, body: RunStarted) -> None:
        claim = claim_key(body.run.flow_id, body.run.anchor, body.nonce)
        if claim in self.spent:
            flow = next(one for one in flows.declared if one.id == body.run.flow_id)
            assert not body.nonce, "a claim is spent once"
            assert any(isinstance(trigger.repeat, Cooldown) for trigger in flow.on), "a claim is spent once"
            assert body.at - self.spent[claim] >= COOLDOWN, "or when it has cooled down"
        self.spent[claim] = body.at

    def _floor(self, flows: Flows, before: Session | None, input: Input, result: TurnResult[Any]) -> None:
        """Who waits for a wake goes on when it fires; who was suspended last asks first."""
        if before is None or result.session is None:
            return
        old, new = {run.id: run for run in flows.state(before).runs}, _own(flows, result.session)
        for run in new:
            if isinstance(input, Woke) and run.waiting is not None and run.waiting.key == input.key:
                assert run.waiting != old[run.id].waiting, "a wake is not fired in vain"
        asker = next((run for run in new if run.status == "asking"), None)
        if isinstance(input, (Said, Answered)) or asker is None or asker.id not in old:
            return
        last = old[asker.id].suspended_at
        if last is not None:
            for run in new:
                earlier = old[run.id].suspended_at if run.id in old and run.suspended_at is not None else None
                assert earlier is None or earlier <= last, "who was suspended last asks first"

    def _actions(self, acted: Sequence[tuple[str, str]]) -> None:
        for key, how in acted:
            assert self.acted.get(key, "defer") in ("defer", "asks"), "an action that is done is not done again"
            self.acted[key] = how

    def _answered(
        self, flows: Flows, before: Session | None, input: Input, result: TurnResult[Any], *, gate: Any,
        acted: Sequence[tuple[str, str]],
    ) -> None:  # fmt: skip
        if not isinstance(input, Said) or gate is not None or result.status == "paused" or flows._book.idle is None:
            return
        if before is not None and resumed(before, input) is not None:
            return  # it answered a question of another turn
        excuses = {line.code for line in result.lines} & EXCUSES
        assert result.messages or excuses or any(how == "spoke" for _, how in acted), "a customer is answered"

    # ---- calls

    def check_calls(self, input: Input, gate: Any, got: Any, requests: Sequence[Request], *, breaks: bool) -> None:
        """No more calls than a turn may cost; nothing is raised but what is documented."""
        purposes = [request.purpose for request in requests]
        judged = purposes.count("judge")
        assert judged <= (isinstance(input, Said) and (gate is None or gate.understand))
        assert len(purposes) - judged <= (0 if gate is not None else ROUNDS + 1)
        if isinstance(got, ModelError):
            assert (purposes, got.result) == (["judge"], None)
        elif isinstance(got, FeatureFailed):
            assert breaks
        else:
            assert got.llm_calls == len(requests)
            assert got.status != "ignored" or not requests

    # ---- the session

    def check_state(self, flows: Flows, session: Session, pending: Sequence[Wake], *, door: int) -> None:
        """What holds of a session between turns; ``flows`` are those of the last one."""
        state, own = flows.state(session), _own(flows, session)
        assert [run.id for run in state.runs] == self.live
        assert len(set(self.live)) == len(self.live)
        self._claims(state)
        held = None if state.held is None else state.held.question
        question = None if session.question is None else session.question.key
        assert self.is_cut_short or held == question
        asking = [run for run in own if run.status == "asking"]
        assert len(asking) <= 1, "one run has the floor"
        assert asking or all(run.status != "suspended" for run in own), "the floor is given back"
        for run in own:
            self._run(run, question)
        parked = {r.waiting.key: r.waiting.until for r in own if r.waiting is not None and r.waiting.until}
        armed = {key: at for key, (at, whose) in self.armed.items() if whose == door and not key.startswith(SILENCE)}
        assert parked == armed, "who waits for a wake has armed it, and nobody else has"
        assert {wake.key: wake.at for wake in pending if not wake.key.startswith(SILENCE)} == parked
        if not self.is_silence_unsure:
            self._silences(flows, session, {wake.key for wake in pending})

    def _claims(self, state: FlowState) -> None:
        spent = {**self.spent, **state.sent}
        forgotten = spent.keys() - state.claims.keys()
        assert dict(state.claims) == {key: at for key, at in spent.items() if key not in forgotten}
        assert not forgotten or len(state.claims) >= KEPT_CLAIMS
        assert set(state.sent) == self.once

    def _run(self, run: Run, question: str | None) -> None:
        assert (run.suspended_at is not None) == (run.status == "suspended")
        assert (run.waiting is not None) == (run.status == "waiting")
        assert run.status != "running" or question is not None or self.is_cut_short, "nobody is left on the way"
        if run.waiting is not None and run.waiting.kind == "answer":
            assert self.is_cut_short or run.waiting.key == question, "nobody waits for an answer to nothing"
        assert run.step_id is None or run.visits[run.step_id]
        assert all(times <= MAX_ASKS for times in run.asked.values())

    def _silences(self, flows: Flows, session: Session, pending: set[str]) -> None:
        spoke, wrote = session.last_assistant_at, session.last_user_at
        for flow, claim in _silences(flows, session):
            assert spoke is not None
            key = silence_key(flow, session.key.id, spoke)
            is_open = claim not in self.spent and (wrote is None or wrote <= spoke)
            assert (key in pending) == is_open
            assert not is_open or flow not in self.silent or key in self.armed or key in self.fired


def _own(flows: Flows, session: Session) -> list[Run]:
    return [run for run in flows.state(session).runs if run.of == flows.name]


def _silences(flows: Flows, session: Session) -> Iterator[tuple[str, str]]:
    """Flows that a silence starts, with the claim for the present one, where nothing but that claim stops them."""
    spoke = session.last_assistant_at
    for flow in flows.declared if spoke is not None else ():
        trigger = next((one for one in flow.on if one.kind == "silence"), None)
        if trigger is None or not _is_plain_silence(trigger) or flow.id == "f0" or flow.anchor != "session":
            continue  # f0 is claimed elsewhere now and then
        nonce = str(to_ms(spoke)) if trigger.repeat == "always" and spoke is not None else ""
        yield flow.id, claim_key(flow.id, session.key.id, nonce)


def _is_plain_silence(trigger: Any) -> bool:
    """Whether nothing but a claim stops it."""
    return trigger.kind == "silence" and trigger.only_if is None and not isinstance(trigger.repeat, Cooldown)
