"""What it costs to go on with another model: calls that fail over less calls that do not, without a network.

A row holds everything between the failure and the first chunk of the other model: judging, rules, circuits, the
request made anew. Bytes are left out: they are measured as projection.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence

from benchmarks.in_process import Instant, Row, rows_of, table
from benchmarks.measure import Work, by_turns, yardstick
from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import UserMessage
from onrecord.errors import ModelError
from onrecord.models.breaker import Breaker
from onrecord.models.call_rules import CallRule
from onrecord.models.chunks import Chunk, TextChunk
from onrecord.models.fallback import Fallback
from onrecord.models.model import Model, ModelCard, scope_of
from onrecord.models.request import Request, Span, View, Wire
from onrecord.models.retry import Reliable

__all__ = ("BUDGETS", "measured", "table")

CALLS = 200
DELTAS = 2000

BUDGETS: Mapping[str, tuple[str, float]] = {
    "failover to a backup": ("us", 50),
    "failover by a rule, with circuits": ("us", 50),
    "failover of a fallback": ("us", 50),
    "past a model that is left alone": ("us", 50),
    "a delta through Reliable": ("us", 0.5),
    "a delta through Fallback": ("us", 0.5),
}
"""Unit and budget of each row."""


class Down:
    """A model whose provider is down."""

    card = ModelCard(provider="down", model="m", protocol="instant", base_url="https://down/v1")
    _wire = Wire(body=b"{}")

    def wire(self, request: Request, /) -> Wire:
        """Always the same bytes."""
        return self._wire

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        """Fails at once."""
        for _ in (1,):
            raise ModelError("down", kind="overload", status=503, provider="down")
        yield TextChunk("")


UP = Instant(lambda _: (TextChunk("Here."),))
_MANY: Sequence[Chunk] = tuple(TextChunk("alpha ") for _ in range(DELTAS))
TALKS = Instant(lambda _: _MANY)


def _request(model: Model) -> Request:
    """A short conversation, with its bytes."""
    held = Conversation.of([UserMessage(id="u0", content=(Text("hello"),))])
    return Request(
        purpose="speak", where="main/r0", pieces=(), conversation=held, own=1, view=View(spans=(Span(0, 1),)),
        model=model, scope=scope_of(model.card, "s"), wire=Wire(body=b"{}"),
    )  # fmt: skip


def _calls(model: Model, count: int = CALLS) -> Work:
    request = _request(model)

    async def block() -> int:
        for _ in range(count):
            async for _chunk in model.stream(request):
                pass
        return count

    return block


def _deltas(model: Model) -> Work:
    calls = _calls(model, 1)

    async def block() -> int:
        await calls()
        return DELTAS

    return block


def _by_rule() -> Reliable:
    rules = (
        CallRule(only_if=lambda s: s.error_kind == "rate-limit", then="retry"),
        CallRule(only_if=lambda s: s.error is not None and s.can_switch_provider, then="retry_other"),
        CallRule(only_if=lambda s: s.error is not None, then="fail_fast", kind="unrecoverable"),
    )
    return Reliable(Down(), UP, rules=rules, breaker=Breaker(threshold=1_000_000_000), waits_s=())


async def measured(blocks: int = 25) -> list[Row]:
    """Every row with a budget."""
    rested = Fallback(Down(), UP, cooldowns_s={"overload": 1e9})
    forgets = Fallback(Down(), UP, cooldowns_s={"overload": 0.0})  # so that every call fails over
    works: dict[str, Work] = {
        "yardstick": yardstick,
        "plain": _calls(Reliable(UP, UP)),
        "plain fallback": _calls(Fallback(UP, UP)),
        "failover to a backup": _calls(Reliable(Down(), UP, waits_s=())),
        "failover by a rule, with circuits": _calls(_by_rule()),
        "failover of a fallback": _calls(forgets),
        "past a model that is left alone": _calls(rested),
        "bare deltas": _deltas(TALKS),
        "a delta through Reliable": _deltas(Reliable(TALKS)),
        "a delta through Fallback": _deltas(Fallback(TALKS)),
    }
    without = dict.fromkeys(BUDGETS, "plain") | {
        "failover of a fallback": "plain fallback", "past a model that is left alone": "plain fallback",
        "a delta through Reliable": "bare deltas", "a delta through Fallback": "bare deltas",
    }  # fmt: skip
    return rows_of(await by_turns(works, blocks), BUDGETS, without)


if __name__ == "__main__":
    import asyncio

    print(table(asyncio.run(measured())))
