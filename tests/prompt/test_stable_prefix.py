"""What a vendor's cache needs: every request begins with the bytes of the one before it, over a long session."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw

from onrecord.agent import Agent
from onrecord.conversation.content import Image, Text
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import Round
from onrecord.conversation.usage import Usage
from onrecord.jsonio import dumps
from onrecord.models.chunks import NativeItem, ThinkingChunk
from onrecord.prompt.cache_marks import CacheMarks
from onrecord.record.kinds import ModelRequested
from onrecord.record.receipts import Receipt
from onrecord.session.codec import dumps_session, loads_session
from onrecord.session.session import Session
from onrecord.testing import reply
from tests.models.wired import WiredModel, chat, merging
from tests.turn.acting import bodies, call, tool, turn

pytestmark = pytest.mark.unit

TURNS = 30
USED = Usage(input_tokens=100, cached_input_tokens=90)
MARK = b',"mark":true'

# A wire takes part by a line here: a model, and the bytes that it writes for a mark. New wires add theirs.
WIRES: list[tuple[str, Callable[..., WiredModel], bytes]] = [
    ("chat", chat, b""),
    ("merging", merging, MARK),
]


def native(model: WiredModel, text: str) -> NativeItem:
    """The model's own item, as its vendor would want it back."""
    item = {"role": "assistant", "content": text, "signature": "s"} if model.card.provider == "acme" else {"text": text}
    return NativeItem(raw=Raw(dumps(item)))


def played(model: WiredModel, number: int) -> tuple[list[Any], Any]:
    """What the model answers in a turn, and what the person says: calls alone and side by side, media, native items."""
    said: Any = f"question {number}"
    if number % 5 == 0:
        said = Said((Text(f"question {number}"), Image(url=f"https://h/{number}.png")))
    answer = f"answer {number}"
    last = reply(answer, usage=USED)
    if number % 2:
        last = reply(ThinkingChunk("hm"), answer, native(model, answer), usage=USED)
    if number % 3 == 0:
        return [last], said
    calls = [call("look", n=number, at=at, wire_id=f"w{number}-{at}") for at in range(1 + number % 2)]
    return [reply("One moment.", *calls, usage=USED), last], said


async def session_of(model: WiredModel, *features: Any) -> list[Receipt]:
    """The session: its receipts. In the middle it is stored and loaded again."""
    look = tool("look", lambda args, _: f"seen {args['n']}", concurrency_safe=True)
    agent: Agent[Any, Any] = Agent(model, instructions="You help travellers.", tools=[look], features=features)
    session: Session | str = "s"
    receipts: list[Receipt] = []
    for number in range(TURNS):
        answers, said = played(model, number)
        model.add(*answers)
        result = await turn(agent, said, session=session)
        receipts += [body.receipt for body in bodies(result, ModelRequested) if body.receipt is not None]
        assert result.session is not None
        session = result.session
        if number == TURNS // 2:
            session = loads_session(dumps_session(session))
    return receipts


def beginning(model: WiredModel, at: int, mark: bytes) -> bytes:
    """What a request has in front of where the next one goes on; without its marks."""
    _, tail = model.wires.frame(model.requests[at], (), empty=False)
    ends = model.wires.entries.end + tail
    body = model.bodies[at]
    assert body.endswith(ends)
    body = body.removesuffix(ends)
    return body.replace(mark, b"") if mark else body


@pytest.mark.parametrize(("make", "mark"), [wire[1:] for wire in WIRES], ids=[wire[0] for wire in WIRES])
@pytest.mark.parametrize("features", [(), (CacheMarks(),)], ids=["plain", "marked"])
async def test_every_request_begins_with_the_bytes_of_the_one_before(
    make: Callable[..., WiredModel], mark: bytes, features: tuple[Any, ...]
) -> None:
    """Thirty turns with calls, media and native items, loaded from a store in between; and the receipts say so."""
    model = make()
    receipts = await session_of(model, *features)
    assert len(model.bodies) == len(receipts) > 45
    rounds = [unit for unit in model.requests[-1].conversation.units if isinstance(unit, Round)]
    assert len([held for held in rounds if model.wires.native(held, receipts[0].scope)]) > 10
    for at in range(1, len(receipts)):
        assert model.bodies[at].replace(mark or b"\0", b"").startswith(beginning(model, at - 1, mark))
    lost = [at for at in range(1, len(receipts)) if receipts[at].stable_until != receipts[at - 1].units]
    assert len(lost) == 1  # the first request after loading: what was sent before is not known there, but sent again
    assert receipts[lost[0]].stable_until == 0


async def test_what_one_request_marks_the_next_one_marks_again() -> None:
    """So that a vendor finds it, however much was added since: each mark but the first was one before."""
    model = merging()
    receipts = await session_of(model, CacheMarks())
    for before, after in itertools.pairwise(receipts):
        assert before.head == after.head
        assert before.marks[-1] in after.marks
        assert len(after.marks) == 2


async def test_what_is_marked_is_what_the_next_request_begins_with() -> None:
    """Byte for byte up to the last mark of the request before."""
    model = merging()
    await session_of(model, CacheMarks())
    for before, after in zip(model.bodies, model.bodies[1:], strict=False):
        upto = before[: before.rindex(MARK)].replace(MARK, b"")
        assert after.replace(MARK, b"").startswith(upto)
