"""The content blocks of one reply: which are open, what they are called by, and what goes back to the vendor."""

from __future__ import annotations

from collections.abc import Container, Sequence

from msgspec import Raw

from onrecord.models.chunks import NativeItem
from onrecord.providers.anthropic.blocks import Block
from onrecord.providers.anthropic.content_blocks import is_blank

__all__ = ("Blocks", "Odd")


class Odd(Exception):
    """Events of a reply contradict each other; its text says how, without content."""


class Blocks:
    """The blocks of a reply in the order in which they began. Methods raise `Odd`."""

    __slots__ = ("_all", "_at", "_calls", "_times")

    def __init__(self) -> None:
        self._all: list[Block] = []
        self._at: dict[int, Block] = {}
        self._calls: dict[str, Block] = {}  # by the id that they have in the reply
        self._times: dict[str, int] = {}

    def start(self, index: int, raw: bytes, offset: int) -> Block | None:
        """A new block; None for the same event twice."""
        if (known := self._at.get(index)) is not None:
            if known.open and known.raw == raw and not known.parts:
                return None
            raise Odd("began a block of its reply twice")
        block = self._at[index] = Block(raw, offset)
        self._all.append(block)
        return block

    def open_at(self, index: int | None) -> Block:
        """The block that something is added to."""
        block = self._at.get(index) if index is not None else None
        if block is None or not block.open:
            raise Odd("added to a block of its reply that is not open")
        return block

    def stop(self, index: int) -> Block | None:
        """The block that ends; None for the same event twice."""
        if (block := self._at.get(index)) is None:
            raise Odd("ended a block of its reply that never began")
        if not block.open:
            return None
        block.open = False
        return block

    def call(self, block: Block) -> tuple[str, str, str]:
        """Id, name and arguments of a call; each has an id of its own within the reply."""
        if not (name := block.head.name):
            raise Odd("sent a tool call without a name")
        given = wire = block.head.id or f"call_{len(self._calls)}"
        while wire in self._calls:
            self._times[given] = self._times.get(given, 1) + 1  # counted on: a reply may repeat an id very often
            wire = f"{given}_{self._times[given]}"
        self._calls[wire] = block
        return wire, name, block.arguments()

    @property
    def calls(self) -> int:
        """How many calls the reply asks for."""
        return len(self._calls)

    @property
    def are_whole(self) -> bool:
        """Whether every block has ended."""
        return not any(block.open for block in self._all)

    def natives(self, *, refused: bool) -> tuple[Sequence[NativeItem], list[str]]:
        """The blocks for the continuation, and what is lost beside them.

        There are none where the portable form says as much, as it does of plain text, nor where they could not go
        back: a ``refused`` reply, and one with a call whose arguments are cut, would be refused with every later
        request.
        """
        blocks, known = self._all, {block.head.id for block in self._all}
        returns = not refused and all(block.can_return() for block in blocks)
        if not returns or all(block.is_plain for block in blocks):
            return (), [told for block in blocks if (told := _lost(block, known))]
        ids = {id(block): wire for wire, block in self._calls.items()}
        items = [
            NativeItem(raw=Raw(block.native(ids.get(id(block), ""))), lost=_lost(block, known))
            for block in blocks
            if block.kind != "text" or not is_blank((block.head.text or "") + block.words())
        ]
        return items, []


def _lost(block: Block, known: Container[str | None]) -> str:
    """What of a block has no portable form; the result of a call of a ``known`` id is told of with the call."""
    asked = block.head.tool_use_id
    return "" if asked and asked in known else block.lost
