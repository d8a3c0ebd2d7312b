"""One content block while it streams: put together so that its vendor takes it back as its own."""

from __future__ import annotations

import re

from msgspec import UNSET, Raw

from onrecord.conversation.content import Citation
from onrecord.jsonio import UNREADABLE, dumps, kept, loads, read_object
from onrecord.providers.anthropic.cards import NAMES
from onrecord.providers.anthropic.message_events import Delta, Head, read_fields, read_head, read_source

__all__ = ("Block",)

_SEARCHES = frozenset({"web_search", "web_fetch"})
_PORTABLE = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "compaction"})
_NAME = re.compile(r"[a-z0-9_]{1,64}\Z")
_EMPTY = b"{}"


class Block:
    """A content block: how it began, and what came since.

    ``parts`` are the pieces of its words: a text, thinking, or the arguments of a call as JSON. ``start`` is where a
    text begins within the text of the whole reply; ``sources`` are the pages it cites.
    """

    __slots__ = ("_changed", "_citations", "_signature", "head", "kind", "open", "parts", "raw", "sources", "start")

    def __init__(self, raw: bytes, start: int) -> None:
        self.raw, self.start = raw, start
        self.head: Head = read_head(raw)
        self.kind = self.head.type or ""
        self.open = True
        self.parts: list[str] = []
        self.sources: list[Citation] = []
        self._citations: list[Raw] = []
        self._signature: str | None = None
        self._changed: dict[str, list[Raw]] = {}

    @property
    def is_search(self) -> bool:
        """Whether this is a search that the vendor runs."""
        return self.kind == "server_tool_use" and self.head.name == "web_search"

    @property
    def is_plain(self) -> bool:
        """Whether this is text and nothing else."""
        return self.kind == "text" and not self._citations and b'"citations":[{' not in self.raw

    @property
    def lost(self) -> str:
        """What of the block has no portable form; empty when all has, or when nothing of it is missed."""
        kind = self.kind
        if kind in _PORTABLE or (kind == "server_tool_use" and self.head.name in _SEARCHES):
            return ""
        if kind in {"web_search_tool_result", "web_fetch_tool_result"}:
            return ""
        name = self.head.name or ""
        if kind in {"server_tool_use", "mcp_tool_use"} and _NAME.match(name):
            return f"a call of {name!r}, which the provider ran"
        return f"a block of type {kind!r}" if _NAME.match(kind) else "a block of unknown type"

    def words(self) -> str:
        """The pieces as one."""
        return "".join(self.parts)

    def arguments(self) -> str:
        """The arguments of a call as the model wrote them: what was streamed, else what the block began with."""
        streamed = self.words()
        if streamed:
            return streamed
        given = self._fields().get("input")
        return "{}" if given is None or bytes(given) == b"null" else bytes(given).decode()

    def cite(self, raw: Raw) -> None:
        """One citation; those that name no page stay in the native block alone."""
        self._citations.append(raw)
        found = read_source(raw)
        if url := found.url or found.source:
            self.sources.append(Citation(url=url, title=found.title or ""))

    def given(self) -> str:
        """Words that the block came with, before any piece; citations that came along are noted."""
        if self.kind == "text":
            if b'"citations":[' in self.raw:
                for raw in _listed(self._fields().get("citations")):
                    self.cite(raw)
                self._citations.clear()  # the block holds them
            return self.head.text or ""
        return _string(self._fields().get("thinking")) or "" if self.kind == "thinking" else ""

    def change(self, delta: Delta, data: bytes) -> bool:
        """Everything but words; False for a change of a kind that nobody knows. May raise DecodeError."""
        if delta.signature is not None:
            self._signature = delta.signature
            return True
        if delta.citation is not UNSET:
            self.cite(kept(delta.citation))
            return True
        if self.kind in _PORTABLE - {"compaction"}:
            return False
        for name, value in read_fields(read_fields(data)["delta"]).items():
            if name != "type":
                self._changed.setdefault(name, []).append(kept(value))
        return True

    def native(self, wire_id: str = "") -> bytes:
        """The block as it goes back: untouched where nothing came after its start."""
        fields = self._fields() if self._is_changed(wire_id) else {}
        if not fields:
            return self.raw
        if self.kind in {"text", "thinking"}:
            fields[self.kind] = Raw(dumps((_string(fields.get(self.kind)) or "") + self.words()))
        elif self.kind in {"tool_use", "server_tool_use"}:
            fields["input"] = Raw(self.arguments().encode())
        if self._signature is not None:
            fields["signature"] = Raw(dumps(self._signature))
        if self._citations:
            fields["citations"] = Raw(dumps([*_listed(fields.get("citations")), *self._citations]))
        if wire_id and wire_id != self.head.id:
            fields["id"] = Raw(dumps(wire_id))
        for name, values in self._changed.items():
            fields[name] = _joined(fields.get(name), values)
        return dumps(fields)

    def can_return(self) -> bool:
        """Whether the block could be sent back: a call needs a name that is one, and an object for its arguments."""
        if self.kind not in {"tool_use", "server_tool_use"}:
            return True
        return NAMES.fit(self.head.name or "") and read_object(self.arguments()) is not None

    def _is_changed(self, wire_id: str) -> bool:
        touched = self.parts or self._citations or self._changed or self._signature is not None
        return bool(touched) or wire_id not in {"", self.head.id}

    def _fields(self) -> dict[str, Raw]:
        try:
            return read_fields(self.raw)
        except UNREADABLE:
            return {}


def _listed(raw: Raw | None) -> list[Raw]:
    if raw is None:
        return []
    held = loads(raw)
    return [Raw(dumps(one)) for one in held] if isinstance(held, list) else []


def _string(raw: Raw | None) -> str | None:
    held = None if raw is None else loads(raw)
    return held if isinstance(held, str) else None


def _joined(given: Raw | None, values: list[Raw]) -> Raw:
    """Texts one behind the other, lists too; of anything else the last."""
    held = [loads(raw) for raw in ([] if given is None else [given]) + values]
    held = [one for one in held if one is not None] or [None]
    if all(isinstance(one, str) for one in held):
        return Raw(dumps("".join(held)))
    if all(isinstance(one, list) for one in held):
        return Raw(dumps([item for one in held for item in one]))
    return values[-1]
