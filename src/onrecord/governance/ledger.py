"""What model calls cost, on the record; and what a budget knows of it from turn to turn."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.usage import Usage
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import ModelAttempted, ModelReplied, ToolReturned, TurnOpened, TurnPaused, TurnResumed

__all__ = ("LEDGER", "Ledger", "LedgerFold", "LimitHit", "Per", "Spent", "Ticked", "Unpaid", "What")

Per = Literal["turn", "session"]
What = Literal["max_cost", "max_tokens", "max_seconds"]


class Spent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sums over calls. Tokens that nobody counted, and models without a price, are not in them."""

    estimated_usd: float = 0.0
    tokens_input: int = 0
    tokens_output: int = 0

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.tokens_input + self.tokens_output

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            estimated_usd=self.estimated_usd + other.estimated_usd, tokens_input=self.tokens_input + other.tokens_input,
            tokens_output=self.tokens_output + other.tokens_output,
        )  # fmt: skip

    def plus(self, ticked: Ticked) -> Spent:
        """With one more call."""
        return self + Spent(
            estimated_usd=ticked.estimated_usd or 0.0, tokens_input=ticked.tokens_input,
            tokens_output=ticked.tokens_output,
        )  # fmt: skip


class Ticked(Body, frozen=True, gc=False, kw_only=True, tag="cost.tick"):
    """One call, filed once its reply is on the record.

    ``of`` is the turn and ``round`` the round it was made for (the call of a tool, for what a sub-agent spent).
    ``purpose`` is that of the call; ``attempt`` for one that was paid and came to nothing, ``tool`` for a sub-agent.
    ``estimated_usd`` is None when the provider counted nothing, or the model has no price. ``cumulative`` are the sums
    of the turn, ``session`` those of the session, this call included.
    """

    of: str
    round: str
    purpose: str
    provider: str
    model: str
    tokens_input: int = 0
    tokens_output: int = 0
    estimated_usd: float | None = None
    cumulative: Spent = Spent()
    session: Spent = Spent()


class LimitHit(Body, frozen=True, gc=False, kw_only=True, tag="cost.limit_hit"):
    """A limit was crossed: ``actual`` is more than ``limit``. ``action`` is ``warn``, or ``abort``: no further call."""

    what: What
    per: Per
    limit: float
    actual: float
    action: Literal["warn", "abort"]


class Unpaid(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call that is on the record and not yet in the sums; ``n`` is its entry."""

    turn: str
    n: int
    where: str
    round: str
    purpose: str
    provider: str = ""
    model: str = ""
    usage: Usage | None = None


class Ledger(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was spent in this session, and in its latest ``turn``; which limits were crossed; calls to be added up.

    ``paused`` is the same of a turn that waits for an answer, while others go by.
    """

    turn: str = ""
    in_turn: Spent = Spent()
    in_session: Spent = Spent()
    paused: tuple[str, Spent, tuple[What, ...]] | None = None
    hits: tuple[What, ...] = ()
    session_hits: tuple[What, ...] = ()
    unpaid: tuple[Unpaid, ...] = ()


class LedgerFold:
    """Makes a `Ledger` of replies and ticks. It reads takes that were cut short, too: they were paid."""

    name = "budget"
    version = 1
    state = Ledger
    kinds = frozenset(
        {
            "turn.opened", "turn.paused", "turn.resumed", "model.attempted", "model.replied", "tool.returned",
            "cost.tick", "cost.limit_hit",
        }
    )  # fmt: skip
    scope: Literal["session", "turn"] = "session"
    unfinished = True

    def start(self) -> Ledger:
        return Ledger()

    def apply(self, state: Ledger, entry: Entry, /) -> Ledger:
        body = entry.body
        if isinstance(body, TurnOpened):
            return replace(state, turn=entry.turn, in_turn=Spent(), hits=())
        if isinstance(body, TurnPaused):
            return replace(state, paused=(entry.turn, state.in_turn, state.hits))
        if isinstance(body, TurnResumed):
            return _resumed(state, entry.turn)
        if isinstance(body, (ModelAttempted, ModelReplied, ToolReturned)):
            unpaid = _below(entry, body) if isinstance(body, ToolReturned) else _unpaid(entry, body)
            return replace(state, unpaid=(*state.unpaid, *unpaid)) if unpaid else state
        if isinstance(body, Ticked):
            in_turn = body.cumulative if body.of == state.turn else state.in_turn
            return replace(state, in_session=body.session, unpaid=state.unpaid[1:], in_turn=in_turn)
        return _hit(state, body) if isinstance(body, LimitHit) else state


def _resumed(state: Ledger, turn: str) -> Ledger:
    """The turn goes on with what it had spent before it asked."""
    paused = state.paused
    if paused is None or paused[0] != turn:
        return replace(state, turn=turn)
    return replace(state, turn=turn, in_turn=paused[1], hits=paused[2], paused=None)


def _below(entry: Entry, body: ToolReturned) -> tuple[Unpaid, ...]:
    """What a sub-agent spent, model by model; where the record does not say which, as a whole."""
    if body.spent is None:
        return ()
    return tuple(
        Unpaid(
            turn=entry.turn, n=entry.n, where=entry.where, round=body.call, purpose="tool", provider=provider,
            model=model, usage=usage,
        )
        for provider, model, usage in (
            (*name.partition(":")[::2], usage) for name, usage in (body.uses or {"": body.spent}).items()
        )
    )  # fmt: skip


def _unpaid(entry: Entry, body: ModelAttempted | ModelReplied) -> tuple[Unpaid, ...]:
    if isinstance(body, ModelAttempted):
        if body.usage is None:
            return ()
        provider, _, model = body.model.partition(":")
        one = Unpaid(
            turn=entry.turn, n=entry.n, where=entry.where, round=body.round, purpose="attempt", provider=provider,
            model=model, usage=body.usage,
        )  # fmt: skip
        return (one,)
    use = body.round.use
    if use is None:
        return ()
    one = Unpaid(
        turn=entry.turn, n=entry.n, where=entry.where, round=body.round.id, purpose=body.purpose,
        provider=use.provider, model=use.model, usage=use.usage,
    )  # fmt: skip
    return (one,)


def _hit(state: Ledger, body: LimitHit) -> Ledger:
    if body.per == "turn":
        return replace(state, hits=(*state.hits, body.what))
    return replace(state, session_hits=(*state.session_hits, body.what))


LEDGER = LedgerFold()
