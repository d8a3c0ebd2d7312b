"""Whatever models, rules and clocks do: one model's words, nothing again after the first, and an end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from onrecord.errors import ErrorKind, ModelError
from onrecord.models.breaker import Breaker
from onrecord.models.call_rules import CallRule, Verb
from onrecord.models.calling import MOST_LOOPS
from onrecord.models.chunks import Attempted, CallChunk, Chunk, Finished, NativeItem, TextChunk, ThinkingChunk
from onrecord.models.fallback import COOLDOWNS_S, Fallback
from onrecord.models.held_reply import fits_shape
from onrecord.models.model import ModelCard
from onrecord.models.request import ProjectionIssue, Reading, Request, Shape, Wire
from onrecord.models.retry import Reliable
from tests.models.failing import Clock
from tests.models.requests import request, user

pytestmark = pytest.mark.unit

SHAPE: Shape[None] = Shape(name="s", schema={"type": "object"}, read=lambda h: Reading(text=h.text, value=None))
KINDS: tuple[ErrorKind, ...] = (
    "aborted",
    "network",
    "overload",
    "rate",
    "quota",
    "auth",
    "model",
    "invalid",
    "unknown",
)
VERBS: tuple[Verb, ...] = ("ok", "retry", "retry_other", "fallback", "fail_fast")


class Scripted(Struct, frozen=True):
    """One reply: what it says, in which pieces, and how it fails, if it does."""

    pieces: tuple[str, ...]
    fails: ErrorKind | None = None
    status: int | None = None
    retry_after: float | None = None
    started: bool = False


class World:
    """Everything that happened, in order: ``("ask", model, when)``, ``("chunk", chunk)``."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.events: list[tuple[Any, ...]] = []


class Vendor:
    """A model of this world; each word it says carries its name."""

    def __init__(self, world: World, name: str, replies: list[Scripted], *, fits: bool) -> None:
        self.world, self.replies, self.fits, self.asked = world, replies, fits, 0
        self.card = ModelCard(provider=name, model="m", protocol="p", base_url=f"http://{name}")

    def wire(self, asked: Request, /) -> Wire:
        """Bytes that nobody reads."""
        issues = () if self.fits else (ProjectionIssue(unit=0, what="video"),)
        return Wire(body=self.card.name.encode(), issues=issues)

    async def stream(self, asked: Request, /) -> AsyncGenerator[Chunk, None]:
        """The next reply, the last again and again."""
        reply = self.replies[min(self.asked, len(self.replies) - 1)]
        self.asked += 1
        self.world.events.append(("ask", self.card.name, self.world.clock.at))
        for piece in reply.pieces:
            if piece == "thinks":
                yield ThinkingChunk(f"{self.card.provider};")
            elif piece == "calls":
                yield CallChunk(wire_id="c", name=self.card.provider, raw_args="{}")
            else:
                yield TextChunk(f"{self.card.provider};")
        if reply.fails is not None:
            self.world.events.append(("fail", self.card.name, self.world.clock.at, reply))
            raise ModelError(
                "scripted", kind=reply.fails, status=reply.status, retry_after=reply.retry_after,
                started=reply.started or bool(reply.pieces),
            )  # fmt: skip
        self.world.events.append(("good", self.card.name, self.world.clock.at))
        yield Finished()


replies = st.builds(
    Scripted,
    pieces=st.lists(st.sampled_from(["words", "thinks", "calls"]), max_size=3).map(tuple),
    fails=st.none() | st.sampled_from(KINDS),
    status=st.none() | st.sampled_from([400, 429, 503]),
    retry_after=st.none() | st.sampled_from([0.0, 5.0, 40.0]),
    started=st.booleans(),
)
vendors = st.lists(st.tuples(st.lists(replies, min_size=1, max_size=4), st.booleans()), min_size=1, max_size=3)
rules = st.lists(
    st.builds(
        CallRule,
        only_if=st.sampled_from(
            [
                lambda s: s.error is not None,
                lambda s: s.error is None,
                lambda s: s.attempt < 4,
                lambda s: s.error_kind == "5xx-transient",
                lambda s: s.error_kind in {"circuit-open", "schema-fail"},
                lambda _: 1 / 0,
            ]
        ),
        then=st.sampled_from(VERBS),
        feedback=st.sampled_from(["", "Again."]),
    ),
    max_size=4,
)
breakers = st.none() | st.builds(
    Breaker, threshold=st.integers(1, 3), cooldown_s=st.just(30.0), successes=st.integers(1, 2)
)
steps = st.lists(
    st.tuples(st.sampled_from([0.0, 10.0, 31.0, 4000.0]), st.none() | st.integers(0, 2)), min_size=1, max_size=5
)
"""How long before each call, and after how many chunks its reader leaves, if he does."""


async def called(model: Any, world: World, leaves: int | None, shape: Shape[None] | None) -> list[tuple[Any, ...]]:
    """One call: what happened in it."""
    start = len(world.events)
    asked = request(user("q"), shape=shape)
    wire = model.wire(asked)
    if wire.issues:
        return []
    chunks, seen = model.stream(replace(asked, wire=wire)), 0
    try:
        async for chunk in chunks:
            world.events.append(("chunk", chunk))
            seen += 1
            if leaves is not None and seen > leaves:
                break
    except ModelError as error:
        world.events.append(("error", error))
    finally:
        await chunks.aclose()
    return world.events[start:]


def check_call(events: list[tuple[Any, ...]], *, most: int) -> None:
    """What holds of every call."""
    delivered, ended = set[str](), False
    for event in events:
        if event[0] == "ask":
            assert not delivered, "asked again after something was handed out"
            assert not ended
        elif event[0] == "chunk":
            assert not ended, "something came after the end"
            chunk = event[1]
            if isinstance(chunk, Finished):
                ended = True
            elif not isinstance(chunk, (Attempted, NativeItem)):
                delivered.add(chunk.name if isinstance(chunk, CallChunk) else chunk.text.rstrip(";"))
        elif event[0] == "error":
            assert not ended
    assert len(delivered) <= 1, "words of two models in one reply"
    assert sum(event[0] == "ask" for event in events) <= most
    finished = [e[1] for e in events if e[0] == "chunk" and isinstance(e[1], Finished)]
    if finished and delivered and finished[0].provider:
        assert {finished[0].provider} == delivered


def check_circuits(events: list[tuple[Any, ...]], breaker: Breaker) -> None:
    """No model is asked while it has failed too often in a row, until its time is over."""
    row: dict[str, int] = {}
    last: dict[str, float] = {}
    for event in events:
        if event[0] == "ask" and row.get(event[1], 0) >= breaker.threshold:
            assert event[2] - last[event[1]] >= breaker.cooldown_s
        elif event[0] == "good":
            row[event[1]] = 0
        elif event[0] == "fail" and event[3].fails not in {"aborted", "invalid"}:
            row[event[1]], last[event[1]] = row.get(event[1], 0) + 1, event[2]


def check_cooldowns(events: list[tuple[Any, ...]]) -> None:
    """No model is asked before its time is over."""
    until: dict[str, float] = {}
    for event in events:
        if event[0] == "ask":
            assert event[2] >= until.get(event[1], 0.0)
        elif event[0] == "fail" and event[3].fails in COOLDOWNS_S:
            stated = event[3].retry_after
            until[event[1]] = event[2] + (COOLDOWNS_S[event[3].fails] if stated is None else stated)


@settings(max_examples=60)
@given(vendors, rules, breakers, steps, st.booleans(), st.booleans(), st.booleans())
async def test_a_reliable_model_keeps_its_promises(
    given_vendors: Any, given_rules: Any, breaker: Breaker | None, given_steps: Any, stands_in: bool, validates: bool,
    shaped: bool,
) -> None:  # fmt: skip
    """For random models, rules, breakers, pauses and readers who leave."""
    world = World()
    models = [Vendor(world, name, held, fits=fits) for name, (held, fits) in zip("abc", given_vendors, strict=False)]
    reliable = Reliable(
        *models, rules=given_rules, breaker=breaker, sleep=world.clock.sleep, clock=world.clock,
        fallback=(lambda _r, _e: "fallback;") if stands_in else None, validate=fits_shape if validates else None,
    )  # fmt: skip
    for pause, leaves in given_steps:
        world.clock.at += pause
        check_call(await called(reliable, world, leaves, SHAPE if shaped else None), most=MOST_LOOPS)
        assert all(circuit.state in {"closed", "open", "half-open"} for circuit in reliable.circuits.values())
    if breaker is not None:
        check_circuits(world.events, breaker)


@settings(max_examples=60)
@given(vendors, steps)
async def test_fallbacks_keep_theirs(given_vendors: Any, given_steps: Any) -> None:
    """Each model at most once in a call, none before its time is over."""
    world = World()
    models = [Vendor(world, name, held, fits=fits) for name, (held, fits) in zip("abc", given_vendors, strict=False)]
    fallback = Fallback(*models, clock=world.clock, now=world.clock.now)
    for pause, leaves in given_steps:
        world.clock.at += pause
        check_call(await called(fallback, world, leaves, None), most=len(models))
        if not any(model.fits for model in models):
            assert world.events == []
    check_cooldowns(world.events)
