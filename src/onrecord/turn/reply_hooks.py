"""The ``reply`` moment: hooks over a round before anything of it is said or dispatched."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from onrecord.conversation.inputs import Ask, Question
from onrecord.conversation.messages import Round, ToolCall
from onrecord.errors import FeatureFailed
from onrecord.record.kinds import RoundSettled
from onrecord.turn.askable import can_be_kept, is_askable
from onrecord.turn.contained import fail
from onrecord.turn.pause import Asking, can_ask, pause
from onrecord.turn.turn import Turn
from onrecord.turn.verdicts import file_verdict

__all__ = ("reply_hooks",)


async def reply_hooks(
    turn: Turn, key: str, data: dict[str, Any], round_id: str, behind: str | None = None
) -> Question | None:
    """Reply hooks, from ``behind`` (who asked and is called again) on. An `Ask` is a question about the whole batch."""
    passed = behind is None
    for hook in turn.plan.on["reply"]:
        passed = passed or hook.mark == behind
        if not passed:
            continue
        before = turn.working.round(round_id)
        try:
            got = await hook.call(turn, before)
        except BaseException as error:  # noqa: BLE001 - `fail` lets through what ends the take
            fail(hook.name, "reply", error)
        turn.resumed = None  # an answer is handed to its asker once
        if isinstance(got, Ask):
            if not is_askable(got):
                raise FeatureFailed(hook.name, "reply", "it asks a question that cannot be kept")
            if not can_ask(turn):
                raise FeatureFailed(hook.name, "reply", "it asks a person while another question is open")
            file_verdict(turn, "reply", hook.name, "ask", "")
            return pause(turn, Asking(ask=got, by=hook.name, place=f"reply/{hook.mark}"), key, data)
        if got is not before and got != before:
            if not isinstance(got, Round) or got.id != before.id:
                raise FeatureFailed(hook.name, "reply", f"it returned {_named(got)}, not this round or an Ask")
            if not (can_be_kept(got, Round) and _calls_are_its_own(got)):
                raise FeatureFailed(hook.name, "reply", "it returned a round that cannot be kept")
            turn.note(RoundSettled(round=_without_stale_native(before, got)))
    return None


def _named(got: object) -> str:
    return "another round" if isinstance(got, Round) else type(got).__name__


def _calls_are_its_own(round_: Round) -> bool:
    """Whether the calls of a round can be told apart, from those of other rounds too."""
    ids = [call.id for call in round_.calls]
    return len(set(ids)) == len(ids) and all(id.startswith(f"{round_.id}/c") for id in ids)


def _without_stale_native(before: Round, after: Round) -> Round:
    """A changed round cannot be replayed natively, unless only arguments that the library had added were peeled."""
    changed: list[ToolCall] = [c for a, c in zip(before.calls, after.calls, strict=False) if a.raw_args != c.raw_args]
    same = len(before.calls) == len(after.calls) and before.content == after.content
    return after if same and not changed else replace(after, continuation=None)
