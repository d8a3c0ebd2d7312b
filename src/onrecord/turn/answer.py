"""Answers: the output chain, budgets for revision, blocks below the text; and typed output as a feature of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from onrecord.conversation.content import CallRef, Text
from onrecord.conversation.inputs import Ask
from onrecord.conversation.messages import Block, ContextMessage, Round
from onrecord.declared import declared
from onrecord.errors import AnswerRefused, ConfigurationError, FeatureFailed, OutputInvalid, TurnError
from onrecord.jsonio import Json, dumps
from onrecord.models.request import Reading, Shape
from onrecord.tools.result_text import serialise
from onrecord.turn.askable import can_be_kept
from onrecord.turn.contained import ends_take
from onrecord.turn.moments import SLOTS, Allow, Answer, Deny, Hooks, Revise
from onrecord.turn.plan import Mounted
from onrecord.turn.verdicts import file_verdict

if TYPE_CHECKING:
    from onrecord.turn.agent_spec import AgentSpec
    from onrecord.turn.turn import Turn

__all__ = ("Typed", "correction", "run_output", "with_blocks")


def with_blocks(text: str, blocks: tuple[Block, ...]) -> str:
    """The text with its blocks below it, each after a rule line, by rank."""
    if not blocks:
        return text
    below = "\n\n".join(b.text for b in sorted(blocks, key=lambda b: b.rank))
    return f"{text.rstrip()}\n\n---\n\n{below}"


async def run_output(turn: Turn, answer: Answer) -> Answer | tuple[Mounted, Revise]:
    """The answer as the output hooks leave it, or the revision one of them asked for and may still ask for.

    AnswerRefused when a hook denies; FeatureFailed when a hook that did not declare ``holds_drafts`` wants the text
    otherwise, since it may have been shown already.
    """
    for hook in turn.plan.on["output"]:
        verdict = await _one_output(turn, hook, answer)
        if isinstance(verdict, Revise):
            used = turn.revised.get(hook.mark, 0)
            if answer.verbatim or used >= hook.hooks.revisions or not may_ask_again(turn):
                why = f"{verdict.reason} (no revision left)"
                file_verdict(turn, "output", hook.name, "allow", why, before=answer.text)
                continue
            _must_hold(hook, "revises")
            turn.revised[hook.mark] = used + 1
            file_verdict(turn, "output", hook.name, "revise", verdict.reason, before=answer.text)
            return hook, verdict
        if verdict.value is UNSET:
            if verdict.why:
                file_verdict(turn, "output", hook.name, "allow", verdict.why, before=answer.text)
            continue
        changed = verdict.value
        if not can_be_kept((changed.text, changed.unmet, changed.blocks), tuple[str, str, tuple[Block, ...]]):
            raise FeatureFailed(hook.name, "output", "it gave an answer that cannot be kept")
        if changed.text != answer.text:
            _must_hold(hook, "rewrites")
            if answer.verbatim:
                raise FeatureFailed(hook.name, "output", "it rewrote a verbatim line")
            changed = replace(changed, rewritten_by=(*answer.rewritten_by, hook.name))
        keeps = hook.hooks.keeps_text and changed.text != answer.text
        file_verdict(
            turn, "output", hook.name, "allow", verdict.why, before=answer.text, after=changed.text, keeps=keeps
        )
        answer = replace(changed, key=answer.key, drafted=answer.drafted, verbatim=answer.verbatim)
    return answer


def may_ask_again(turn: Turn) -> bool:
    """Whether another model call may follow at all: a stop without a wrap-up rules it out, and the last step does."""
    return not turn.last_step and (turn.stopped is None or turn.stopped.wrap_up)


async def _one_output(turn: Turn, hook: Mounted, answer: Answer) -> Allow[Answer] | Revise:
    try:
        verdict = await hook.call(turn, answer)
    except TurnError:
        raise
    except BaseException as error:
        if ends_take(error):
            raise
        verdict = Deny(f"rule {hook.name!r} failed: {type(error).__name__}")
    if isinstance(verdict, Revise) or (isinstance(verdict, Allow) and isinstance(verdict.value, (Answer, UnsetType))):
        return verdict
    if not isinstance(verdict, Deny):
        verdict = Deny(f"rule {hook.name!r} failed: {_breach(verdict)}")
    _must_hold(hook, "denies")
    file_verdict(
        turn, "output", hook.name, "deny", verdict.reason, before=answer.text, data=verdict.data,
        keeps=hook.hooks.keeps_text,
    )  # fmt: skip
    raise (verdict.error or AnswerRefused)(hook.name, verdict.reason)


def _breach(verdict: object) -> str:
    if isinstance(verdict, Allow):
        return f"it allowed a {type(verdict.value).__name__} in place of the answer"
    if isinstance(verdict, Ask):
        return "it asked a person, but there is no pause at the message boundary"
    return f"it returned {type(verdict).__name__}, not Allow, Deny or Revise"


def _must_hold(hook: Mounted, does: str) -> None:
    if not hook.hooks.holds_drafts:
        raise FeatureFailed(hook.name, "output", f"it {does} an answer, but its hooks do not declare holds_drafts")


def correction(round_id: str, turn: str, by: str, verdict: Revise) -> tuple[ContextMessage, ...]:
    """What a draft's correction shows the model, until its next answer."""
    texts = (verdict.reason, *(p.text for p in verdict.show))
    content = (Text("\n\n".join(texts)),)
    return (ContextMessage(id=f"{round_id}/v", turn=turn, content=content, authority="system", writer=by),)


@declared
class Typed:
    """The answer must be a value of a type; mounted by itself for ``Agent(output=T)``, or by hand to say more.

    ``retries`` is how often a misfit is asked for again (each a paid call, default 1). Then ``fallback(problem,
    text)``, sync or async, may supply a value, then ``canned`` stands in; both are checked against the type, the
    canned one at build. Without either, reading `TurnResult.output` raises OutputInvalid. ``text`` stays the model's.
    """

    name = "typed"

    def __init__(self, *, retries: int = 1, fallback: Callable[..., Any] | None = None, canned: object = UNSET) -> None:
        if not 0 <= retries <= 10:
            raise ConfigurationError(
                f"retries must be between 0 and 10, got {retries}", hint="each retry is a paid model call"
            )
        self.retries, self.fallback, self.canned = retries, fallback, canned
        self.schema: Mapping[str, Json] = {}
        self._convert: Callable[[Json], Any] | None = None

    def mount(self, kind: object) -> Typed:
        """This feature for one type. ConfigurationError when the type has no schema or the canned value no fit."""
        from onrecord.tools.schema import output_schema

        mounted = Typed(retries=self.retries, fallback=self.fallback, canned=self.canned)
        mounted.schema, mounted._convert = output_schema(kind)
        if self.canned is not UNSET:
            try:
                mounted.canned = mounted._checked(self.canned)
            except OutputInvalid as misfit:
                raise ConfigurationError(f"the canned output does not fit the output type: {misfit.problem}") from None
        return mounted

    def hooks(self, spec: AgentSpec) -> Hooks:
        if self._convert is None:
            raise ConfigurationError("Typed needs an output type", hint="give the agent output=YourType")
        return Hooks(
            on_output=self.judge, order={"output": SLOTS["output"]["SCHEMA"]}, revisions=self.retries, holds_drafts=True
        )

    @property
    def shape(self) -> Shape[Any]:
        """What every reply must look like."""
        return Shape(name="answer", schema=self.schema, read=lambda r: Reading(text=r.text, value=None))

    def _read(self, text: str) -> Any:
        if self._convert is None:
            raise ConfigurationError("Typed is not mounted on an agent with an output type")
        return self._convert(text)

    def _checked(self, value: object) -> Any:
        """A value that code supplies, checked by the way an answer is: as the JSON it makes."""
        return self._read(dumps(value).decode() if isinstance(value, str) else serialise(value))

    async def judge(self, turn: Turn, answer: Answer) -> Allow[Answer] | Revise:
        """Reads the value; asks again while there is budget, then falls back."""
        if answer.verbatim:
            return Allow()
        try:
            return Allow(replace(answer, output=self._read(answer.text), source="model"), "fits the output type")
        except OutputInvalid as misfit:
            told = misfit.problem
            found: str = getattr(misfit, "public", told)
        if answer.rewritten_by and self._fits(answer.drafted):
            unmet = f"{found}; the model's answer fitted before {answer.rewritten_by[-1]!r} rewrote it"
            return Allow(await self._fall_back(turn, replace(answer, unmet=unmet)), "broken by a rule")
        revised = self._revised(turn)
        if revised < self.retries and may_ask_again(turn):
            return Revise(_correction_text(told, revised + 1, self.retries + 1))
        return Allow(await self._fall_back(turn, replace(answer, unmet=found)), "does not fit the output type")

    def _revised(self, turn: Turn) -> int:
        """How often it has asked again; a rule that has the same name is counted by itself."""
        mark = next((hook.mark for hook in turn.plan.on["output"] if hook.call == self.judge), self.name)
        return turn.revised.get(mark, 0)

    def _fits(self, text: str) -> bool:
        try:
            self._read(text)
        except OutputInvalid:
            return False
        return True

    async def _fall_back(self, turn: Turn, answer: Answer) -> Answer:
        if self.fallback is not None:
            try:
                made = self.fallback(answer.unmet, answer.text)
                value = self._checked(await made if inspect.isawaitable(made) else made)
                file_verdict(turn, "output", self.name, "allow", "the fallback supplied the value")
                return replace(answer, output=value, source="fallback", unmet="")
            except BaseException as error:
                if ends_take(error):
                    raise
                reason = error.problem if isinstance(error, OutputInvalid) else type(error).__name__
                answer = replace(answer, unmet=f"{answer.unmet}; the fallback failed: {reason}")
        if self.canned is not UNSET:
            file_verdict(turn, "output", self.name, "allow", "the canned value stands in")
            return replace(answer, output=self.canned, source="canned", unmet="")
        return answer


def _correction_text(problem: str, attempt: int, attempts: int) -> str:
    return (
        f"[schema check] Attempt {attempt} of {attempts} does not fit. What does not fit, as data: {problem}\n"
        "Answer again with JSON only: no prose, no code fence."
    )


def withheld(round_: Round) -> Round:
    """The round of an answer that was denied: nobody was shown its words, so no later request shows them."""
    calls = tuple(p for p in round_.content if isinstance(p, CallRef))
    return replace(round_, content=calls, continuation=None, lost=())


def governed(round_: Round, text: str) -> Round:
    """The round as it stands after rules rewrote its words: later requests show what the person saw."""
    others = tuple(p for p in round_.content if not isinstance(p, Text))
    return replace(round_, content=(Text(text), *others), continuation=None)
