"""What of a reply is neither words nor calls: kept for the vendor that sent it, and named for all others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from onrecord.jsonio import Json
from onrecord.models.chunks import TextChunk
from onrecord.providers.openai_chat.events import Delta

__all__ = ("Unread",)

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


class Unread:
    """Pieces of content of kinds that nobody reads, each at its place, and media that the model made. False if none."""

    __slots__ = ("_images", "_pieces", "_sound")

    def __init__(self) -> None:
        self._pieces: list[tuple[int, dict[str, Json]]] = []
        self._images: list[Json] = []
        self._sound: dict[str, Json] = {}

    def piece(self, behind: int, piece: dict[str, Json]) -> None:
        """A piece of content ``behind`` so many pieces of text."""
        self._pieces.append((behind, piece))

    def media(self, delta: Delta) -> None:
        """Images as they come; of sound, which comes in pieces, the name by which its vendor knows it."""
        if isinstance(delta.images, list):
            self._images += delta.images
        if isinstance(delta.audio, dict):
            self._sound |= {name: held for name, held in delta.audio.items() if name == "id"}
            self._sound = self._sound or {"id": None}

    def lost(self) -> tuple[str, ...]:
        """What another vendor cannot be told, each kind once."""
        kinds = (piece.get("type") for _, piece in self._pieces)
        told = [
            f"content of type {kind!r}" if isinstance(kind, str) and _NAME.match(kind) else "content of unknown type"
            for kind in kinds
        ]
        told += ["images that the model made"] * bool(self._images) + ["audio that the model made"] * bool(self._sound)
        return tuple(dict.fromkeys(told))

    def fields(self, said: Sequence[TextChunk]) -> dict[str, Json]:
        """The fields of the message that goes back, with its text where there is some."""
        content: Json = "".join(chunk.text for chunk in said)
        if self._pieces:
            content, at = [], 0
            for behind, piece in (*self._pieces, (len(said), None)):
                if text := "".join(chunk.text for chunk in said[at:behind]):
                    content.append({"type": "text", "text": text})
                if piece is not None:
                    content.append(piece)
                at = behind
        media = {"images": self._images, "audio": self._sound if self._sound.get("id") else None}
        return {"content": content} | {name: held for name, held in media.items() if held}

    def __bool__(self) -> bool:
        return bool(self._pieces or self._images or self._sound)
