"""The check-up of intents: every example is scored, as a message that begins a conversation would be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NoReturn

from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Said
from onrecord.errors import ModelError
from onrecord.models.model import Model, ModelCard
from onrecord.models.request import Request
from onrecord.skills.checkup import Finding, error, warning
from onrecord.skills.matching import Intent
from onrecord.skills.routes import Start
from onrecord.skills.skill_entries import ALL_BODIES, TurnRouted
from onrecord.skills.turn_start import TurnStart
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.director import Brief, Stage
from onrecord.turn.effects import PlainEffects
from onrecord.turn.moments import Hooks
from onrecord.turn.plan import Plan, compile_plan
from onrecord.turn.take import Order, take
from onrecord.turn.turn import Turn

__all__ = ("intent_findings",)


class _Nobody:
    """In the place of the agent's own model, where none is given."""

    card = ModelCard(provider="none", model="none", protocol="none")

    def stream(self, request: Request, /) -> NoReturn:
        self.wire(request)

    def wire(self, request: Request, /) -> NoReturn:
        raise ModelError(
            "this scorer asks the agent's own model", kind="invalid", hint="await graph.checkup_intents(model)"
        )


class _Beginning:
    """A director that says nothing: it only asks where a turn would begin."""

    def __init__(self, begins: TurnStart, message: str) -> None:
        self.begins, self.message = begins, message
        self.routed: TurnRouted | None = None

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        self.routed = await self.begins.route(turn, self.message, "", frozenset(), dropped="")


async def _routed(begins: TurnStart, message: str, model: Model) -> TurnRouted:
    """Where a conversation would begin with this message. Nothing is stored."""
    director = _Beginning(begins, message)
    spec = AgentSpec(
        name="checkup", tools=(), output=str, rounds=1, brief=Brief(key="answer"), manifest={}, digest="",
        card=model.card,
    )  # fmt: skip
    plan = compile_plan(Plan(spec, model, "", director), (), (), [("checkup", Hooks(bodies=ALL_BODIES))])
    await take(plan, Order(input=Said(message), session=SessionKey("checkup")), PlainEffects())
    return director.routed or TurnRouted(by="none")


async def intent_findings(
    begins: TurnStart, starts: Sequence[Start], never: Sequence[str], model: Model | None
) -> AsyncIterator[Finding]:
    """What becomes of every example of an intent, and of every message that must begin nowhere.

    An example that leads to its intent is scored once more as if nobody had declared it. A scorer that fails ends it.
    """
    asked, judge = model or _Nobody(), replace(begins, decider=None, rails=False)
    for start in starts:
        intent = start.match
        for example in dict.fromkeys((*intent.examples, *start.examples)) if isinstance(intent, Intent) else ():
            routed = await _routed(judge, example, asked)
            if routed.failed:
                yield error("scorer-failed", start.use, f"{routed.scorer} raised {routed.failed}")
                return
            found = _judged(start.use, example, routed)
            if found is None and isinstance(intent, Intent) and example in intent.examples:
                found = _alone(start.use, example, await _routed(_without(judge, start.use, example), example, asked))
            if found is not None:
                yield found
    for message in never:
        routed = await _routed(judge, message, asked)
        if routed.failed:
            yield error("scorer-failed", "never_routes", f"{routed.scorer} raised {routed.failed}")
            return
        if routed.by == "intent":
            yield error("never-routes-claimed", routed.to, f"{message!r} must begin nowhere, and is taken for it")


def _judged(use: str, example: str, routed: TurnRouted) -> Finding | None:
    """What there is to say about where an example led; None where it led to its intent."""
    if routed.to == use:
        return None
    if routed.to:
        return error("example-misses-own-rule", use, f"its own example begins at {routed.to!r}: {example!r}")
    if not any(row.relevance for row in routed.scores):
        return warning("example-unclaimed", use, f"no intent fits its example {example!r}")
    others = ", ".join(repr(id) for id in routed.offered if id != use)
    if use in routed.offered:
        return warning("overlapping-intents", use, f"its example cannot be told from {others}: {example!r}")
    return error("example-misses-own-rule", use, f"its own example is taken for one of {others}: {example!r}")


def _alone(use: str, example: str, routed: TurnRouted) -> Finding | None:
    if routed.failed or routed.by != "intent" or routed.to == use:
        return None
    told = f"only its own words lead there; were it not declared, it would begin at {routed.to!r}: {example!r}"
    return warning("example-stands-alone", use, told)


def _without(begins: TurnStart, use: str, example: str) -> TurnStart:
    """The same beginning, had nobody given this example."""
    return replace(
        begins,
        candidates=tuple(
            replace(each, examples=tuple(one for one in each.examples if one != example)) if each.skill == use else each
            for each in begins.candidates
        ),
    )
