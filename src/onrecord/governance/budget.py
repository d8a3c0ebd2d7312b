"""Budget: limits of money, tokens and time for the model calls of a turn or a session."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.messages import Round
from onrecord.conversation.usage import Usage
from onrecord.declared import Declared, declared
from onrecord.errors import ConfigurationError, FeatureFailed, LimitReached
from onrecord.governance.ledger import LEDGER, Ledger, LimitHit, Per, Spent, Ticked, Unpaid, What
from onrecord.models.model import ModelCard
from onrecord.models.prices import Prices
from onrecord.models.request import Request
from onrecord.session.codec import slot_value
from onrecord.session.session import Session
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.below import cards_below
from onrecord.turn.moments import SLOTS, Hooks, Stop
from onrecord.turn.turn import Turn

__all__ = ("Budget", "Limit", "spent")

EARLY = SLOTS["request"]["CHOOSE"] + 50
"""Once the model is chosen, and before anything else may spend: a window, say."""

PRICE_HINT = "add it to prices=; the key '' is for all others"
LIMIT_HINT = "raise the limit of Budget, or begin anew"

_NAMES: dict[What, str] = {"max_cost": "cost-budget", "max_tokens": "token-budget", "max_seconds": "time-budget"}


class Limit(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """How much may be spent: US dollars, tokens (input and output), seconds since the take began. None: no limit."""

    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            given = getattr(self, name)
            if given is None:
                continue
            if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given < math.inf:
                raise ConfigurationError(f"{name} of Limit is a number from 0 on, not {given!r}")

    def crossed(self, spent: Spent, seconds: float) -> Iterator[tuple[What, float, float]]:
        """Which of its limits are crossed, with the limit and what is spent."""
        if self.usd is not None and spent.estimated_usd > self.usd:
            yield "max_cost", self.usd, spent.estimated_usd
        if self.tokens is not None and spent.tokens > self.tokens:
            yield "max_tokens", self.tokens, spent.tokens
        if self.seconds is not None and seconds > self.seconds:
            yield "max_seconds", self.seconds, seconds


NO_LIMIT, NOTHING = Limit(), Spent()


class _Limits(Struct, frozen=True, metaclass=Declared):
    turn: Limit = NO_LIMIT


class Budget(_Limits, frozen=True, kw_only=True):
    """Adds up what the model calls of an agent cost, and ends turns that cost too much.

    Every call counts: replies, a director's judgements, consultations of features, replies that a `Reliable` threw
    away, and what sub-agents spent. Only what providers report is counted. Each call leaves a ``cost.tick`` entry, each
    limit that is crossed one ``cost.limit_hit``.

    ``turn`` and ``session`` limit one turn and all turns of a session, ``prices`` says what tokens cost. What is
    ``then`` done, once more was spent than a limit says, before another call would be made: ``stop`` the turn, with
    what was said so far and no wrap-up (calls of tools that wait are not run); ``fail`` it with `LimitReached`; or
    ``warn``, which only files the entry. A running call is never cut off, and a paid answer is always delivered.
    Sub-agents are looked at while they work, several at once and through all their pauses: each ends the call that it
    has begun, and makes no other.
    ``rounds_strict``: LimitReached also when a turn has used up its rounds and still asks for tools.

    ConfigurationError for a limit in dollars without prices, or without that of the agent's model or of one that a
    sub-agent asks, and for one in seconds of a session. FeatureFailed when a model that is chosen later has no price
    under a limit in dollars.
    """

    session: Limit = NO_LIMIT
    prices: Prices | None = None
    then: Literal["stop", "fail", "warn"] = "stop"
    rounds_strict: bool = False

    def __post_init__(self) -> None:
        if self.then not in {"stop", "fail", "warn"}:
            raise ConfigurationError(f"then= of Budget cannot be {self.then!r}", hint="it is 'stop', 'fail' or 'warn'")
        for limit in cast("tuple[object, ...]", (self.turn, self.session)):
            if not isinstance(limit, Limit):
                raise ConfigurationError(
                    f"a Budget takes a Limit, not {type(limit).__name__}", hint="Budget(turn=Limit(tokens=50_000))"
                )
        if self._limits_usd and self.prices is None:
            raise ConfigurationError(
                "a limit in dollars needs prices", hint='prices=Prices({"openai:gpt-5": Price(input=1.25, output=10)})'
            )
        if self.session.seconds is not None:
            raise ConfigurationError(
                "a session has no limit in seconds", hint="Budget(turn=Limit(seconds=60)) limits each turn"
            )

    @property
    def name(self) -> str:
        """The feature's name."""
        return "budget"

    @property
    def _limits_usd(self) -> bool:
        return self.turn.usd is not None or self.session.usd is not None

    def hooks(self, spec: AgentSpec) -> Hooks:
        if spec.card is not None and (told := self._without_price(spec.card)):
            raise ConfigurationError(told, hint=PRICE_HINT)
        for name, card in cards_below(spec.tools):
            if told := self._without_price(card):
                raise ConfigurationError(f"sub-agent {name!r}: {told}", hint=PRICE_HINT)
        about: dict[str, Any] = {"then": self.then}
        for per, limit in (("turn", self.turn), ("session", self.session)):
            about |= {
                f"{per}_{name}": held for name in limit.__struct_fields__ if (held := getattr(limit, name)) is not None
            }
        return Hooks(
            on_request=self.before_call, on_reply=self.after_reply, on_settle=self.at_the_end,
            order={"request": EARLY}, purposes=frozenset({"speak", "wrap_up", "judge"}), folds=(LEDGER,),
            bodies=(Ticked, LimitHit), guard=self.guard, manifest={"budget": about}, alone=True,
        )  # fmt: skip

    async def before_call(self, turn: Turn, request: Request) -> Request | Stop:
        """Nothing more is asked once a limit is crossed."""
        if self.rounds_strict and request.purpose == "wrap_up" and turn.stopped is None:
            raise LimitReached(
                f"the turn used up its {turn.spec.rounds} rounds", hint="give the agent more rounds, or fewer steps"
            )
        return self._ended(self._over(turn), request) or request

    async def after_reply(self, turn: Turn, held: Round) -> Round:
        """The calls that a reply asks for are not run when nothing may be asked after them."""
        why = self._over(turn)
        if _asks(held) and (stop := self._ended(why, held)) is not None:
            turn.stop(stop)
        return held

    async def at_the_end(self, turn: Turn) -> None:
        """What was spent since the last reply is added up."""
        self._over(turn)

    def guard(self, turn: Turn, child: Turn, seen: Request | Round) -> Stop | None:
        """What a sub-agent may still do, with what all of them have spent by now and the record does not say yet."""
        if self.then == "warn" or not _asks(seen):
            return None
        self._add_up(turn)
        return self._ended(next((_told(*hit) for hit in self._crossed(turn, self._spent_below(turn))), ""), seen)

    def _ended(self, why: str, seen: Request | Round) -> Stop | None:
        """How a turn that asks for more ends, where ``why`` tells of a limit: no judgement can be a `Stop`."""
        if why and (self.then == "fail" or (isinstance(seen, Request) and seen.purpose == "judge")):
            raise LimitReached(why, hint=LIMIT_HINT)
        if why:
            return Stop(why)
        if isinstance(seen, Request) and (told := self._without_price(seen.model.card)):
            raise FeatureFailed(self.name, "request", told, hint=PRICE_HINT)
        return None

    def _over(self, turn: Turn) -> str:
        """Adds up what is new. Why nothing more may be asked; empty when it may."""
        self._add_up(turn)
        ledger, why = turn.state(LEDGER), ""
        for per, what, most, actual in self._crossed(turn, NOTHING):
            if what not in (ledger.hits if per == "turn" else ledger.session_hits):
                action: Literal["warn", "abort"] = "warn" if self.then == "warn" else "abort"
                turn.note(LimitHit(what=what, per=per, limit=most, actual=actual, action=action))
            why = why or _told(per, what, most, actual)
        return "" if self.then == "warn" else why

    def _crossed(self, turn: Turn, more: Spent) -> Iterator[tuple[Per, What, float, float]]:
        """Which limits are crossed by what was added up, and some more."""
        seconds, ledger = (turn.effects.now() - turn.now).total_seconds(), turn.state(LEDGER)
        per: Per
        for per, limit, sums in (("turn", self.turn, ledger.in_turn), ("session", self.session, ledger.in_session)):
            if limit is not NO_LIMIT:
                for hit in limit.crossed(sums if more is NOTHING else sums + more, seconds):
                    yield per, *hit

    def _spent_below(self, turn: Turn) -> Spent:
        """What sub-agents spent for calls that have not returned yet."""
        spent = NOTHING
        for uses in (*turn.used.values(), *_running(turn)):
            for name, usage in uses.items():
                provider, _, model = name.partition(":")
                usd = None if self.prices is None else self.prices.usd(provider, model, usage)
                spent += Spent(
                    estimated_usd=usd or 0.0, tokens_input=usage.input_tokens, tokens_output=usage.output_tokens
                )
        return spent

    def _add_up(self, turn: Turn) -> None:
        for unpaid in turn.state(LEDGER).unpaid:
            self._tick(turn, unpaid)

    def _tick(self, turn: Turn, call: Unpaid) -> None:
        usage, ledger = call.usage, turn.state(LEDGER)
        usd = None if self.prices is None or not call.model else self.prices.usd(call.provider, call.model, usage)
        ticked = Ticked(
            of=call.turn, round=call.round, purpose=call.purpose, provider=call.provider, model=call.model,
            tokens_input=usage.input_tokens if usage else 0, tokens_output=usage.output_tokens if usage else 0,
            estimated_usd=usd,
        )  # fmt: skip
        in_turn = ledger.in_turn if call.turn == ledger.turn else Spent()
        filed = replace(ticked, cumulative=in_turn.plus(ticked), session=ledger.in_session.plus(ticked))
        turn.note(filed, where=call.where, cause=call.n if call.turn == turn.id else None)

    def _without_price(self, card: ModelCard) -> str:
        """Why a limit in dollars would not hold for this model; empty when it would, or there is none."""
        if self.then == "warn" or not self._limits_usd or self.prices is None:
            return ""
        if self.prices.of(card.provider, card.model) is not None:
            return ""
        return f"model {card.name!r} has no price, so a limit in dollars would not hold"


def _asks(seen: Request | Round) -> bool:
    """Whether more is to be done: a model is asked, or tools are."""
    return isinstance(seen, Request) or any(call.status == "asked" for call in seen.calls)


def _told(per: Per, what: What, most: float, actual: float) -> str:
    return f"{_NAMES[what]}: {actual:.6g} is more than the {most:.6g} allowed for a {per}"


def _running(turn: Turn) -> Iterator[Mapping[str, Usage]]:
    """What the turns below this one have used, while they run; each tells what those below it used that have ended."""
    for child in turn.below.values():
        yield child.uses
        yield from _running(child)


@declared
def spent(session: Session) -> Spent:
    """What the calls of a session cost so far, as its budget added it up; nothing when it has none."""
    held = session.slots.get(LEDGER.name)
    return Spent() if held is None else slot_value(held, Ledger).in_session
