"""Fields beside text and calls that a vendor wants back, put together from their pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onrecord.jsonio import Json

__all__ = ("Extras",)

_GROWS = frozenset({"text", "summary", "data", "signature"})
"""What of a block of structured reasoning comes in pieces."""


class _Block:
    """A block while it grows: its fields, and the pieces of those that come in pieces."""

    __slots__ = ("_fields", "_pieces")

    def __init__(self, first: Mapping[str, Json]) -> None:
        self._fields: dict[str, Json] = {}
        self._pieces: dict[str, list[str]] = {}
        self.add(first)

    def takes(self, piece: Mapping[str, Json]) -> bool:
        """Whether a piece goes on with this block."""
        fields = self._fields
        if fields.get("type") != piece.get("type") or fields.get("index") != piece.get("index"):
            return False
        id, kind = piece.get("id"), piece.get("type")
        return (id is None or id == fields.get("id")) and not (isinstance(kind, str) and "encrypted" in kind)

    def add(self, piece: Mapping[str, Json]) -> None:
        """Adds a piece; what is no text replaces what was there."""
        for name, value in piece.items():
            if name in _GROWS and isinstance(value, str):
                self._pieces.setdefault(name, []).append(value)
            elif value is None:
                self._fields.setdefault(name, None)
                continue
            self._fields[name] = value

    def whole(self) -> dict[str, Json]:
        """The block as one."""
        return self._fields | {name: "".join(texts) for name, texts in self._pieces.items()}


class Extras:
    """The extra fields of one reply while their pieces arrive. Each piece costs what it adds."""

    __slots__ = ("_blocks", "_texts")

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._blocks: dict[str, list[_Block | Json]] = {}

    def add(self, name: str, value: object) -> None:
        """A piece of a text, or a list of pieces of blocks; anything else is no such field."""
        if isinstance(value, str):
            self._texts.setdefault(name, []).append(value)
        elif isinstance(value, list):
            self._merge(self._blocks.setdefault(name, []), value)

    def fields(self) -> dict[str, Json]:
        """The fields as they go back; none that hold nothing."""
        texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        blocks = {
            name: [one.whole() if isinstance(one, _Block) else one for one in held]
            for name, held in self._blocks.items()
        }
        return {name: value for name, value in (texts | blocks).items() if value}

    @staticmethod
    def _merge(held: list[_Block | Json], more: Sequence[Json]) -> None:
        for piece in more:
            last = held[-1] if held else None
            if not isinstance(piece, dict):
                held.append(piece)
            elif isinstance(last, _Block) and last.takes(piece):
                last.add(piece)
            else:
                held.append(_Block(piece))
