"""Tool calls put together from their fragments."""

from __future__ import annotations

from msgspec import UNSET, Raw

from onrecord.jsonio import Json, dumps, read_object
from onrecord.models.chunks import CallChunk
from onrecord.models.written_forms import NAMES
from onrecord.providers.openai_chat.events import Call

__all__ = ("CallParts",)


class _Parts:
    __slots__ = ("arguments", "extra", "id", "index", "name")

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: Raw | None = None


class CallParts:
    """The calls of one reply while their fragments arrive.

    Fragments belong together by index; servers that leave it out, or give every call the same one, are told apart by
    the ids that only first fragments carry.
    """

    __slots__ = ("_by_id", "_by_index", "_calls", "_latest")

    def __init__(self) -> None:
        self._calls: list[_Parts] = []
        self._by_index: dict[int, _Parts] = {}  # the latest call in each place; a reply may hold very many
        self._by_id: dict[str, _Parts] = {}  # the first call of each id
        self._latest: _Parts | None = None

    def add(self, fragment: Call) -> None:
        """One fragment, or a whole call."""
        parts, named = self._latest, fragment.id
        if parts is None or named or parts.index != fragment.index:  # else another piece of the same call, as mostly
            parts = self._of(fragment)
            self._latest = parts if parts is self._calls[-1] else None
            if named and not parts.id:
                parts.id = named
                self._by_id.setdefault(named, parts)
        extra = fragment.extra_content
        if extra is not UNSET and bytes(extra) != b"null":
            parts.extra = extra
        function = fragment.function
        if function is None:
            return
        name = function.name
        if name and name != parts.name:  # some servers repeat the whole name, some send it in pieces
            parts.name += name
        if function.arguments:
            given = function.arguments
            parts.arguments.append(given if isinstance(given, str) else dumps(given).decode())

    def _of(self, fragment: Call) -> _Parts:
        calls, index, named = self._calls, fragment.index, fragment.id
        found: _Parts | None = None
        if index is not None:
            found = self._by_index.get(index)
        elif calls:
            found = calls[-1]
        if found is not None and named and found.id and named != found.id:
            # The same place but another call, unless the id is one seen before.
            found = self._by_id.get(named)
        if found is None:
            found = _Parts(index)
            calls.append(found)
            if index is not None:
                self._by_index[index] = found
        return found

    def finished(self) -> list[CallChunk]:
        """The calls in order; each has an id of its own within the reply."""
        used: set[str] = set()
        times: dict[str, int] = {}
        out: list[CallChunk] = []
        for at, parts in enumerate(self._calls):
            wire = given = parts.id or f"call_{at}"
            while wire in used:
                times[given] = times.get(given, 1) + 1
                wire = f"{given}#{times[given]}"
            used.add(wire)
            out.append(CallChunk(wire_id=wire, name=parts.name, raw_args="".join(parts.arguments) or "{}"))
        return out

    @property
    def has_extras(self) -> bool:
        """Whether a call carries a field that its vendor wants back."""
        return any(parts.extra is not None for parts in self._calls)

    def can_return(self) -> bool:
        """Whether the vendor would take every call back: its name is one, and its arguments are a JSON object."""
        return all(NAMES.fit(call.name) and read_object(call.raw_args) is not None for call in self.finished())

    def native(self) -> list[Json]:
        """The calls as they go into a message."""
        return [
            {"id": call.wire_id, "type": "function", "function": {"name": call.name, "arguments": call.raw_args}}
            | ({"extra_content": parts.extra} if parts.extra is not None else {})
            for call, parts in zip(self.finished(), self._calls, strict=True)
        ]
