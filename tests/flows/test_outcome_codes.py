"""Every code of an outcome line has its exact sentence, and each that no case reaches is reached here.

`Play` holds every line of every turn against the table, so a code that a case names has its sentence tested there.
"""

from __future__ import annotations

from typing import Any, get_args

import pytest

from onrecord.flows import Chain, Defer, Do, Failed, Flow, If, OnMessage, OnSilence, Say, Skipped, Talk, Wait
from onrecord.flows.outcomes import OUTCOME_MESSAGES, OutcomeCode
from onrecord.tools.tool import Tool
from tests.flows.playing import Play, after, ends, keys, line, lines, says, skips, starts, wakes

pytestmark = pytest.mark.unit

SENTENCES: dict[str, str] = {
    "no-session": "a wake arrived for a session that does not exist",
    "duplicate-input": "this input was already applied",
    "stale-wake": "no run is waiting on this wake",
    "silence-broken": "someone wrote after this silence wake was set",
    "already-claimed": "this flow already ran here",
    "cooldown": "the flow's cooldown has not passed",
    "hop-limit": "the chain reached the hop limit",
    "already-running": "a run of this flow is already live here",
    "flow-gone": "the flow is no longer registered on the agent",
    "step-loop": "the run moved through 50 steps in one turn",
    "step-gone": "the step is no longer in the flow",
    "customer-replied": "the customer wrote before the wake fired",
    "premise-changed": "the flow's while condition no longer holds",
    "silenced": "the host cannot speak right now",
    "already-known": "every field this step collects is known",
    "asked-fixed": "the step's fixed question went out word for word",
    "another-reply": "another run already answered this turn",
    "already-sent": "this message was already sent once",
    "branch": "a branch of this step fired",
    "max-asks": "the field was asked the most times allowed",
    "inline-delay": "a short wait rides on the next message",
    "awaiting-trigger": "the trigger's delay has not passed",
    "awaiting-event": "the run is waiting for an event",
    "event-arrived": "the event was reported",
    "no-event": "the event did not arrive in time",
    "replied": "the customer replied while the run waited",
    "no-reply": "the customer did not reply while the run waited",
    "action-skipped": "the action decided not to run",
    "action-failed": "the action failed",
    "action-deferred": "the action asked to run again later",
    "unknown-field": "no field by that name is declared on the agent",
    "bad-value": "the value did not fit the field's type",
    "not-in-enum": "the value is not one of the field's options",
    "provider-quota": "the provider's usage limit is spent",
    "provider-context": "the conversation outgrew the model's context window",
    "provider-auth": "the provider rejected the credentials",
    "provider-invalid": "the provider rejected the request",
    "provider-unavailable": "the model call failed or came back empty",
}


@pytest.mark.parametrize("code", SENTENCES)
def test_sentence(code: Any) -> None:
    """Products translate codes and people read these, so neither changes."""
    assert OUTCOME_MESSAGES[code] == SENTENCES[code]


def test_every_code_has_a_sentence() -> None:
    """Also those of this library alone."""
    assert {*get_args(OutcomeCode)} == {*OUTCOME_MESSAGES}
    assert all(OUTCOME_MESSAGES.values())


# ---- flows and steps that are gone -----------------------------------------------------------------------------------


async def test_flow_gone_by_hand() -> None:
    """A start of a flow that the agent does not have is skipped, for the session."""
    result = await Play().started("ghost", key="k")
    (skipped,) = result.skipped
    assert dict(skipped.about) == {"flow_id": "ghost", "anchor": "s1", "trigger_key": "k"}
    assert (skipped.code, skipped.message) == ("flow-gone", SENTENCES["flow-gone"])


async def test_flow_gone_by_chain() -> None:
    """So is one that a step goes on with, named by a template since no build could refuse it."""
    play = Play(Flow("a", steps=[Do("notify", id="n", then=Chain("{{data.name}}"))]), data={"name": "ghost"})
    result = await play.started("a", key="k")
    assert (skips(result), ends(result)) == ([("ghost", "a#k:n:1", "flow-gone")], [("a#k", "flow")])


ASKS = Flow("f", on=[OnMessage()], steps=[Talk("Hi.", id="hi"), Talk("Answer.", id="t")], on_end="stay")


async def test_flow_gone_under_a_live_run() -> None:
    """A run whose flow is gone ends when it would move, and somebody else answers."""
    play = Play(ASKS)
    await play.said(key="m1", speak=[says("Hello")])
    edited = Play(session=play.kept)
    result = await edited.said(key="m2", speak=[says("Hello")])
    assert ends(result) == [("f#m1", "skipped")]
    gone = line(result, "flow-gone")
    assert (gone.status, gone.message) == ("skipped", SENTENCES["flow-gone"])
    assert keys(result) == ["idle:m2"]


async def test_step_gone_under_a_live_run() -> None:
    """So does one whose step is gone."""
    play = Play(Flow("f", steps=[Wait("1h", id="w"), Do("notify", id="n")]))
    ((key, _),) = wakes(await play.started("f"))
    edited = Play(Flow("f", steps=[Do("notify", id="n")]), session=play.kept, at=after(hours=1))
    result = await edited.woke(key)
    gone = line(result, "step-gone")
    assert (gone.status, gone.message) == ("skipped", SENTENCES["step-gone"])
    assert (ends(result), edited.notified) == ([("f#k", "skipped")], [])


async def test_step_loop() -> None:
    """A run that goes round in code is stopped after fifty steps."""
    open_gate = {"silenced": False}
    flow = Flow("f", steps=[If(open_gate, id="a", then="b"), If(open_gate, id="b", then="a", else_="end")])
    result = await Play(flow).started("f")
    assert [each.code for each in result.outcomes] == [None] * 50 + ["step-loop"]
    looped = line(result, "step-loop")
    assert (looped.status, looped.message) == ("failed", SENTENCES["step-loop"])
    assert ends(result) == [("f#k", "failed")]


async def test_customer_replied() -> None:
    """A follow-up that waited without another way ends at its wake when the customer wrote meanwhile."""
    flow = Flow("nudge", on=[OnSilence("24h")], steps=[Say("There?", id="s"), Wait("2d", id="w"), Say("Bye", id="b")])
    play = Play(flow)
    ((silence, _),) = wakes(await play.said(key="m1", speak=[says("Hello")]))
    play.clock.advance(hours=24)
    ((key, at),) = wakes(await play.woke(silence))
    play.clock.advance(hours=1)
    await play.said(key="m2", speak=[says("Hello")])
    play.clock.at = at
    result = await play.woke(key)
    replied = line(result, "customer-replied")
    assert (replied.status, replied.message) == ("skipped", SENTENCES["customer-replied"])
    assert (ends(result), result.messages) == ([("nudge#1789898400000", "skipped")], ())


# ---- what actions answer ---------------------------------------------------------------------------------------------


def acts(answer: Any, on_fail: str | None = None) -> Play:
    """A flow whose first step calls an action that gives or raises this, and goes on with a line."""

    def handler(args: object, ctx: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    then, sorry = Say("Then", id="s", then="end"), Say("Sorry", id="sorry")
    return Play(Flow("f", steps=[Do("act", id="d", on_fail=on_fail), then, sorry]), actions=[Tool("act", handler)])


async def test_action_skipped() -> None:
    """An action may decide not to run, and the run goes on."""
    result = await acts(Skipped("closed today")).started("f")
    skipped = line(result, "action-skipped")
    assert (skipped.kind, skipped.status, skipped.detail) == ("do", "skipped", "closed today")
    assert (skipped.message, skipped.key) == (SENTENCES["action-skipped"], "f#k:d:1")
    assert keys(result) == ["f#k:s:1"]


@pytest.mark.parametrize("answer", [Failed("no line"), RuntimeError("no line")], ids=["failed", "raised"])
@pytest.mark.parametrize(("on_fail", "said"), [(None, "Then"), ("sorry", "Sorry")])
async def test_action_failed(answer: Any, on_fail: str | None, said: str) -> None:
    """One that failed, or raised, goes the way for failures where the step has one."""
    result = await acts(answer, on_fail).started("f")
    failed = line(result, "action-failed")
    assert (failed.kind, failed.status, failed.detail) == ("do", "failed", "no line")
    assert (failed.message, failed.next) == (SENTENCES["action-failed"], on_fail)
    assert [m.text for m in result.messages] == [said]


async def test_action_failed_by_a_wait_nobody_can_read() -> None:
    """An action that defers by what is no duration did its work already: it failed, and the turn goes on."""
    result = await acts(Defer("5 minutes")).started("f")
    detail = line(result, "action-failed").detail
    assert isinstance(detail, str)
    assert "act" in detail
    assert "5 minutes" in detail
    assert [m.text for m in result.messages] == ["Then"]


async def test_action_deferred() -> None:
    """An action that wants to run later is run again at the same visit, so under the same key."""
    seen: list[str] = []

    def handler(args: object, ctx: Any) -> object:
        seen.append(ctx.key)
        return Defer("15m", "line busy") if len(seen) == 1 else None

    play = Play(Flow("f", steps=[Do("act", id="d"), Say("Then", id="s")]), actions=[Tool("act", handler)])
    result = await play.started("f")
    deferred = line(result, "action-deferred")
    assert (deferred.kind, deferred.status, deferred.detail, deferred.until) == (
        "do", "deferred", "line busy", after(minutes=15)
    )  # fmt: skip
    assert deferred.message == SENTENCES["action-deferred"]
    assert wakes(result) == [("f#k:d:1789899300000", after(minutes=15))]
    assert (play.statuses, result.messages) == ({"f": "waiting"}, ())
    play.clock.advance(minutes=15)
    again = await play.woke("f#k:d:1789899300000")
    assert lines(again) == [("d", "do", "ok", None), ("s", "say", "ok", None)]
    assert (seen, keys(again)) == (["f#k:d:1", "f#k:d:1"], ["f#k:s:1"])
    assert starts(again) == []
