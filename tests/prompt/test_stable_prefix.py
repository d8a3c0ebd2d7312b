"""What a vendor's cache needs: every request begins with the bytes of the one before it, over a long session."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

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
from tests.models.wired import WiredModel, chat, gemini, merging, messages, responses
from tests.turn.acting import bodies, call, tool, turn

pytestmark = pytest.mark.unit

TURNS = 30
USED = Usage(input_tokens=100, cached_input_tokens=90)
MARK = b',"mark":true'


def chat_item(text: str) -> dict[str, Any]:
    """A message as a vendor of Chat Completions would want it back."""
    return {"role": "assistant", "content": text, "signature": "s"}


def response_item(text: str) -> dict[str, Any]:
    """An output item as Responses wants it back."""
    said = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "m", "role": "assistant", "content": [said], "phase": "final_answer"}


def part(text: str) -> dict[str, Any]:
    """A part of an entry."""
    return {"text": text}


def signed(text: str) -> dict[str, Any]:
    """A part that Google wants back as it came."""
    return {"text": text, "thoughtSignature": "s"}


def block(text: str) -> dict[str, Any]:
    """A block that Anthropic wants back as it came."""
    return {"type": "text", "text": text, "citations": [{"url": "https://e.test"}]}


class Wired(NamedTuple):
    """A wire that takes part, by a line below: a model, a native item of its own, and what it writes for a mark."""

    name: str
    make: Callable[..., WiredModel]
    item: Callable[[str], dict[str, Any]]
    mark: bytes = b"no mark"


MERGING = Wired("merging", merging, part, MARK)
MESSAGES = Wired("messages", messages, block, b',"cache_control":{"type":"ephemeral"}')
WIRES = (
    Wired("chat", chat, chat_item),
    Wired("responses", responses, response_item),
    Wired("google", gemini, signed),
    MESSAGES,
    MERGING,
)


def played(wire: Wired, number: int) -> tuple[list[Any], Any]:
    """What the model answers in a turn, and what the person says: calls alone and side by side, media, native items."""
    said: Any = f"question {number}"
    if number % 5 == 0:
        said = Said((Text(f"question {number}"), Image(url=f"https://h/{number}.png")))
    answer = f"answer {number}"
    last = reply(answer, usage=USED)
    if number % 2:
        native = NativeItem(raw=Raw(dumps(wire.item(answer))))
        last = reply(ThinkingChunk("hm"), answer, native, usage=USED)
    if number % 3 == 0:
        return [last], said
    calls = [call("look", n=number, at=at, wire_id=f"w{number}-{at}") for at in range(1 + number % 2)]
    return [reply("One moment.", *calls, usage=USED), last], said


async def session_of(wire: Wired, *features: Any) -> tuple[WiredModel, list[Receipt]]:
    """The session: its model and its receipts. In the middle it is stored and loaded again."""
    model = wire.make()
    look = tool("look", lambda args, _: f"seen {args['n']}", concurrency_safe=True)
    agent: Agent[Any, Any] = Agent(model, instructions="You help travellers.", tools=[look], features=features)
    session: Session | str = "s"
    receipts: list[Receipt] = []
    for number in range(TURNS):
        answers, said = played(wire, number)
        model.add(*answers)
        result = await turn(agent, said, session=session)
        receipts += [body.receipt for body in bodies(result, ModelRequested) if body.receipt is not None]
        assert result.session is not None
        session = result.session
        if number == TURNS // 2:
            session = loads_session(dumps_session(session))
    return model, receipts


def plain(body: bytes, wire: Wired) -> bytes:
    """A body without its marks."""
    return body.replace(wire.mark, b"")


def beginning(model: WiredModel, at: int, wire: Wired) -> bytes:
    """What a request has in front of where the next one goes on; without its marks."""
    _, tail = model.wires.frame(model.requests[at], (), empty=False)
    ends = model.wires.entries.end + tail
    assert model.bodies[at].endswith(ends)
    return plain(model.bodies[at].removesuffix(ends), wire)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize("features", [(), (CacheMarks(),)], ids=["plain", "marked"])
async def test_every_request_begins_with_the_bytes_of_the_one_before(wire: Wired, features: tuple[Any, ...]) -> None:
    """Thirty turns with calls, media and native items, loaded from a store in between; and the receipts say so."""
    model, receipts = await session_of(wire, *features)
    assert len(model.bodies) == len(receipts) > 45
    rounds = [unit for unit in model.requests[-1].conversation.units if isinstance(unit, Round)]
    assert len([held for held in rounds if model.wires.native(held, receipts[0].scope)]) > 10
    for at in range(1, len(receipts)):
        assert plain(model.bodies[at], wire).startswith(beginning(model, at - 1, wire))
    lost = [at for at in range(1, len(receipts)) if receipts[at].stable_until != receipts[at - 1].units]
    assert len(lost) == 1  # the first request after loading: what was sent before is not known there, but sent again
    assert (receipts[0].stable_until, receipts[lost[0]].stable_until) == (None, None)


async def test_what_one_request_marks_the_next_one_marks_again() -> None:
    """So that a vendor finds it, however much was added since."""
    _, receipts = await session_of(MERGING, CacheMarks())
    for before, after in pairwise(receipts):
        assert before.head == after.head
        assert before.marks[-1] in after.marks
        assert len(after.marks) == 2


async def test_what_is_marked_is_what_the_next_request_begins_with() -> None:
    """Byte for byte up to the last mark of the request before."""
    model, _ = await session_of(MERGING, CacheMarks())
    for before, after in pairwise(model.bodies):
        assert plain(after, MERGING).startswith(plain(before[: before.rindex(MARK)], MERGING))
