"""The stage as the loop gives it to a director: keys are unique, what was done once is not done again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from onrecord.conversation.inputs import Question
from onrecord.conversation.messages import Round, ToolCall
from onrecord.conversation.outgoing import Outcome, Wake, disarmed
from onrecord.errors import UsageError
from onrecord.jsonio import Json, dumps, is_json
from onrecord.record.kinds import DataPatched, OutcomeFiled, Pending, RoundSettled, WakeArmed, WakeDisarmed
from onrecord.tools.tool import Tool
from onrecord.turn.answer import run_output
from onrecord.turn.director import Acted, Brief, Query, Scope, Spoken
from onrecord.turn.dispatch import Batch, dispatch
from onrecord.turn.judge import ask_silently
from onrecord.turn.listen import release
from onrecord.turn.moments import Answer
from onrecord.turn.options import Silenced
from onrecord.turn.pause import next_mark
from onrecord.turn.performed import ActDone, SpeakDone, acted_again, spoken_again
from onrecord.turn.resume import pass_by, resume_verb
from onrecord.turn.saying import say_text
from onrecord.turn.speak import speak

if TYPE_CHECKING:
    from onrecord.turn.turn import Turn

__all__ = ("LiveStage",)

T = TypeVar("T")
NO_SCOPE = Scope()


class LiveStage:
    """See `Stage`. UsageError: a key used twice in a turn, a verb after a question came up, speech while silenced."""

    __slots__ = ("_acting", "_ordinals", "_over", "_used", "turn")

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._used: set[str] = set()
        self._ordinals: dict[str, int] = {}
        self._acting = ""
        self._over = False

    def leave(self) -> None:
        """The director has returned: whoever still holds the stage has nothing to say any more."""
        self._over = True

    def _check_here(self) -> None:
        if self._over:
            raise UsageError(
                "the director has returned, so its stage is closed", code="stage-closed",
                hint="await every verb before `direct` returns",
            )  # fmt: skip

    @contextmanager
    def _verb(self, key: str) -> Iterator[object | None]:
        """One verb while it acts, alone, since verbs share one conversation. Gives what is kept of one that is done."""
        self._check_here()
        turn = self.turn
        if turn.question is not None:
            raise UsageError("a person was asked: the director must return", code="question-open")
        if self._acting:
            raise UsageError(
                f"the verb {key!r} begins while {self._acting!r} is not done", code="stage-busy",
                hint="await one verb after the other",
            )  # fmt: skip
        if key in self._used:
            raise UsageError(f"the verb key {key!r} is used twice in one turn", code="key-reused")
        if not _is_words(key) or not key:
            raise UsageError("a verb needs a key, and it is a text", code="key-invalid")
        self._used.add(key)
        held = turn.done.get(key)
        if held is None and turn.resuming is not None and turn.resuming.key != key:
            pass_by(turn)
        self._acting = key
        try:
            yield held
        finally:
            self._acting = ""

    def _resuming(self, key: str) -> Pending | None:
        held = self.turn.resuming
        return held if held is not None and held.key == key else None

    def _once(self, kind: str, value: object) -> bool:
        """Whether this line, or timer, is new: a director called again from the top files nothing twice."""
        self._check_here()
        turn = self.turn
        if turn.answer is None:  # nothing was filed before; it is marked if the turn pauses
            turn.filed.append((kind, value))
            return True
        mark = next_mark(self._ordinals, kind, value)
        is_new = mark not in turn.done
        turn.done[mark] = True
        return is_new

    def _may_speak(self, verb: str) -> None:
        if self.turn.option(Silenced) is not None:
            raise UsageError(
                f"{verb} in a silenced turn", code="silenced", hint="a director asks turn.option(Silenced)"
            )

    async def speak(self, brief: Brief, /) -> Spoken:
        with self._verb(brief.key) as held:
            if held is not None:
                return spoken_again(brief, held)
            self._may_speak("speak")
            return await speak(self.turn, brief, self._resuming(brief.key))

    async def judge(self, query: Query[T], /) -> T:
        turn = self.turn
        with self._verb(query.key) as kept:
            held = kept
            if held is None:
                silenced = turn.option(Silenced)
                if silenced is not None and not silenced.understand:
                    raise UsageError(
                        "judge in a silenced turn", code="silenced", hint="Silenced(understand=True) allows it"
                    )
                number, turn.number = turn.number, turn.number + 1
                round_id = f"{turn.id}/{query.key}/r{number}"
                held = await ask_silently(turn, query, "judge", round_id, f"main/r{number}")
                turn.done[query.key] = held
        replied = held if isinstance(held, Round) else msgspec.json.decode(cast(bytes, held), type=Round)
        return query.shape.read(replied).value

    async def say(
        self, text: str, /, *, key: str, message_key: str = "", after_ms: int = 0, media: str | None = None,
        about: Mapping[str, str] = {},
    ) -> None:  # fmt: skip
        turn = self.turn
        with self._verb(key) as held:
            if held is not None:
                return
            self._may_speak("say")
            if not _is_words(text) or not is_json(about):
                raise UsageError("what is said is text, and what it is about is JSON", code="line-invalid")
            answer: object = Answer(key=key, text=text, drafted=text, verbatim=True)
            if turn.plan.on["output"]:
                answer = await run_output(turn, cast(Answer, answer))
            number, turn.number = turn.number, turn.number + 1
            brief = Brief(key=key, message_key=message_key, after_ms=after_ms, about=about)
            release(turn, text)
            say_text(turn, brief, cast(Answer, answer), round_id=f"{turn.id}/{key}/r{number}", shown=(), media=media)
            turn.done[key] = SpeakDone(text=text)

    async def act(self, tool: Tool, args: Mapping[str, Json], /, *, key: str, scope: Scope = NO_SCOPE) -> Acted:
        turn = self.turn
        with self._verb(key) as held:
            if held is not None:
                return acted_again(held)
            if not _is_object(args):
                raise UsageError(f"the arguments of {tool.id!r} are a JSON object", code="arguments-invalid")
            batch = Batch(verb=key, tools={tool.id: tool}, scope=scope, data={}, direct=True)
            resuming = self._resuming(key)
            if resuming is not None:
                batch.data.update(resuming.data)
                round_id = resuming.rounds[-1].id
                asked = await resume_verb(turn, batch, resuming)
            else:
                round_id = f"{turn.id}/{key}/act{turn.number}"
                turn.number += 1
                call = ToolCall(
                    id=f"{round_id}/c0", wire_id="act", name=tool.id, raw_args=dumps(args).decode(), args=args
                )  # fmt: skip
                filed = turn.note(RoundSettled(round=Round(id=round_id, calls=(call,))))
                asked = await dispatch(turn, batch, round_id, filed.n)
            return self._acted(key, round_id, batch, asked)

    def _acted(self, key: str, round_id: str, batch: Batch, asked: Question | None) -> Acted:
        turn = self.turn
        call = turn.working.round(round_id).calls[0]
        if asked is not None:
            return Acted(call=call, asked=asked)
        if batch.data:
            turn.note(DataPatched(patch=dict(batch.data)))
        result, failed = turn.values.get(call.id, (None, ""))
        shown = "".join(p.text for p in call.result or () if hasattr(p, "text"))
        error = None if call.status in ("returned", "partial", "absent") and not failed else shown
        value = None if result is None or result.value is UNSET else result.value
        turn.done[key] = ActDone(call=call, value=_keepable(value, shown), error=error)
        turn.working.acting = None
        return Acted(call=call, value=value, error=error)

    def arm(self, wake: Wake, /) -> None:
        if not _is_words(wake.key) or not wake.key:
            raise UsageError("a wake needs a key, and it is a text", code="key-invalid")
        if wake.at.utcoffset() is None:  # a store would refuse it, far from the line that is wrong
            raise UsageError("the time of a wake has no UTC offset", hint="count from turn.first_now")
        if self._once("arm", wake):
            self.turn.note(WakeArmed(wake=wake))
            self.turn.wakes.append(wake)

    def disarm(self, key: str, /) -> None:
        if self._once("disarm", key):
            self.turn.note(WakeDisarmed(key=key))
            self.turn.disarmed.append(key)
            self.turn.wakes[:] = disarmed(self.turn.wakes, key, self.turn.session.key)

    def outcome(self, line: Outcome, /) -> None:
        if self._once("line", line):
            stamped = line if line.at is not None else replace(line, at=self.turn.now)
            self.turn.note(OutcomeFiled(line=stamped))
            self.turn.lines.append(stamped)


def _is_words(text: object) -> bool:
    return isinstance(text, str) and is_json(text)


def _is_object(args: object) -> bool:
    return isinstance(args, Mapping) and is_json(args)


def _keepable(value: object, shown: str) -> Json:
    return value if is_json(value) else shown
