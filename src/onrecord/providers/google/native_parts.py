"""What a reply was made of, part by part, as Google wants it back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Raw

from onrecord.jsonio import dumps, kept, loads
from onrecord.models.chunks import NativeItem
from onrecord.providers.google.events import Part

__all__ = ("NativeParts",)

_WORDS = frozenset({"text", "thought"})
_PORTABLE = frozenset({"text", "functionCall", "toolCall", "toolResponse"})
"""Kinds of parts that another vendor can be told, or need not be."""
_BESIDE = frozenset({"thought", "thoughtSignature", "partMetadata", "mediaResolution", "videoMetadata"})
_NAMED = {"executableCode": "code that Google ran", "codeExecutionResult": "what code that Google ran printed"}


class NativeParts:
    """The parts of one reply in order.

    Streamed words without a signature are one part, as they would be had they not been streamed; a part that carries
    anything else stays as it came, byte for byte. ``shows`` is whether something was made that is neither words, nor
    calls, nor search.
    """

    __slots__ = ("_items", "_needed", "_run", "_thought", "shows")

    def __init__(self) -> None:
        self._items: list[NativeItem] = []
        self._run: list[str] = []
        self._thought = False
        self._needed = False
        self.shows = False

    def words(self, text: str, thought: bool) -> None:  # noqa: FBT001 - for every delta; a name costs
        """A part that is words alone."""
        if thought is not self._thought:
            self._flush()
            self._thought = thought
        self._run.append(text)

    def part(self, raw: Raw, part: Part) -> None:
        """A part that may be anything. DecodeError for one that could not be stored."""
        own = kept(raw)  # a view would keep the whole event alive
        held = loads(bytes(own))
        if not held.keys() - _WORDS:
            if part.text:
                self.words(part.text, bool(part.thought))
            return
        self._flush()
        kinds = held.keys() - _BESIDE
        lost = "" if kinds & _PORTABLE or not kinds else _lost(kinds, part)
        self.shows = self.shows or bool(lost)
        self._needed = self._needed or held.keys() != {"functionCall"}
        self._items.append(NativeItem(raw=own, lost=lost))

    def items(self) -> Sequence[NativeItem]:
        """All parts; none where the portable form says as much."""
        self._flush()
        return self._items if self._needed else ()

    def _flush(self) -> None:
        if self._run:
            about = {"thought": True} if self._thought else {}
            self._items.append(NativeItem(raw=Raw(dumps({"text": "".join(self._run)} | about))))
            self._run = []


def _lost(kinds: Iterable[str], part: Part) -> str:
    """What of a part no other wire can carry."""
    if part.inline_data is not None:
        return f"media that the model made ({part.inline_data.mime_type or 'of no stated type'})"
    return "; ".join(_NAMED.get(kind, f"a part of Google's kind {kind[:40]!r}") for kind in sorted(kinds))
