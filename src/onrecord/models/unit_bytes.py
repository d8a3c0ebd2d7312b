"""Units as the bytes of one wire: what a protocol writes for a message, a round, a call and its result. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from onrecord.conversation.content import Audio, Image, Part, Text
from onrecord.conversation.display import labelled
from onrecord.conversation.messages import Authority, ContextMessage, Continuation, Round, ToolCall, Unit, UserMessage
from onrecord.conversation.render import request_text, unframed_parts, user_parts
from onrecord.models.lanes import Entries, Run, portable_id

__all__ = ("InWords", "UnitBytes", "in_words", "result_parts")

UNSAID: Mapping[str, str] = {
    "failed": '{"error":"The tool failed."}',
    "denied": '{"error":"The call was not allowed."}',
    "invalid": '{"error":"The arguments were not valid."}',
    "absent": '{"error":"There is no result."}',
    "not_run": '{"error":"The call was not run."}',
    "cancelled": '{"error":"The call was cancelled; whether it took effect is not known."}',
}
"""What a model reads of a call that ended without a result of its own."""


def result_parts(call: ToolCall) -> tuple[Part, ...]:
    """What the model reads of a call: its result, then the library's notes on lines of their own."""
    result = call.result
    if result is None:
        result = (Text(UNSAID.get(call.status, "")),)
    result = unframed_parts(result)
    return result + tuple(Text("\n" + note.text) for note in call.notes) if call.notes else result


class UnitBytes(ABC):
    """How one wire, for one model, writes units.

    ``profile`` holds whatever but protocol and version decides bytes: wires with equal profiles share lanes.
    """

    protocol: ClassVar[str]
    version: ClassVar[int] = 1
    model_kind: ClassVar[str] = "item"
    entries: Entries = Entries()
    keep: int = 65_536
    profile: Hashable = ()

    # ---- what a wire supplies

    @abstractmethod
    def user(self, parts: Sequence[Part], /) -> Sequence[Run]:
        """A user message; parts that the wire cannot carry are left out."""

    @abstractmethod
    def context(self, authority: Authority, text: str, /) -> Run:
        """Text of the library or the application, in its place. ``data`` is a user's."""

    @abstractmethod
    def model_half(self, settled: Round, calls: Sequence[ToolCall], ids: Sequence[str], /) -> bytes:
        """A model's words and calls in portable form; nothing for a round that shows neither."""

    @abstractmethod
    def results(self, calls: Sequence[ToolCall], ids: Sequence[str], /) -> Sequence[Run]:
        """What the calls returned, in call order."""

    def refuses(self, part: Part, /) -> str:
        """Why this wire cannot carry a part; empty when it can."""
        return ""

    def takes(self, part: Part, /) -> bool:
        """Whether a model behind this wire gets a part as it is. Some parts are neither taken nor refused."""
        return not self.refuses(part)

    def filler(self, *, leads: bool) -> Run:
        """See `UnitEncoder.filler`."""
        return self.context("data", "(earlier messages are not shown)" if leads else "(continue)")

    # ---- units

    def native(self, settled: Round, scope: str, /) -> Continuation | None:
        """The round's own output items, where this wire, in this scope, takes them back."""
        held = settled.continuation
        if held is None or held.protocol != self.protocol or held.scope != scope:
            return None
        # Verbatim items cannot leave out a call that nobody answered.
        return None if any(call.status == "asked" for call in settled.calls) else held

    def runs(self, unit: Unit, scope: str, /) -> Sequence[Run]:
        """See `UnitEncoder.runs`."""
        if isinstance(unit, UserMessage):
            return self.user(user_parts(unit))
        if isinstance(unit, ContextMessage):
            return self._contexts((unit,))
        out = self._contexts(unit.before) if unit.before else []
        native = self.native(unit, scope)
        calls = unit.calls
        ids: Sequence[str] = ()
        if calls:
            shown = [(i, call) for i, call in enumerate(calls) if call.status != "asked"]
            calls = tuple(call for _, call in shown)
            ids = [call.wire_id if native else portable_id(unit.id, i) for i, call in shown]
        half = self.verbatim(native) if native else self.model_half(unit, calls, ids)
        if half:
            out.append((self.model_kind, half))
        if calls:
            out += self.results(calls, ids)
        if unit.revised:
            out += self._contexts(unit.revised)
        return out

    def verbatim(self, held: Continuation, /) -> bytes:
        """Native items as they came."""
        return b",".join(bytes(item) for item in held.items)

    def problems(self, unit: Unit, scope: str, /) -> tuple[str, ...]:
        """See `UnitEncoder.problems`."""
        if isinstance(unit, UserMessage):
            return self._refused(unit.content)
        if isinstance(unit, Round):
            found: tuple[str, ...] = ()
            for call in unit.calls:
                if call.result is not None:
                    found += self._refused(call.result)
            return found if not unit.lost or self.native(unit, scope) else unit.lost + found
        return ()

    def _refused(self, parts: Sequence[Part]) -> tuple[str, ...]:
        if len(parts) == 1 and type(parts[0]) is Text:
            return ()
        return tuple(why for part in parts if (why := self.refuses(part)))

    def _contexts(self, messages: Sequence[ContextMessage]) -> list[Run]:
        return [self.context(m.authority, text) for m in messages if (text := request_text(m))]


class InWords:
    """A wire whose media that it does not take is shown by its words: an encoder for lanes of its own."""

    def __init__(self, wires: UnitBytes) -> None:
        self.wires, self.entries, self.keep, self.filler = wires, wires.entries, wires.keep, wires.filler
        self._latest: tuple[Unit, Unit] | None = None  # a lane asks for problems and runs of a unit in turn

    def runs(self, unit: Unit, scope: str, /) -> Sequence[Run]:
        """See `UnitEncoder.runs`."""
        return self.wires.runs(self._worded(unit), scope)

    def problems(self, unit: Unit, scope: str, /) -> tuple[str, ...]:
        """See `UnitEncoder.problems`."""
        return self.wires.problems(self._worded(unit), scope)

    def parts(self, parts: Sequence[Part], /) -> tuple[Part, ...]:
        """See `in_words`."""
        return in_words(parts, self.wires)

    def _worded(self, unit: Unit) -> Unit:
        latest = self._latest  # read once: another thread may write it
        if latest is None or latest[0] is not unit:
            latest = self._latest = (unit, self._in_words(unit))
        return latest[1]

    def _in_words(self, unit: Unit) -> Unit:
        if isinstance(unit, UserMessage):
            shown = in_words(unit.content, self.wires)
            return unit if shown == unit.content else replace(unit, content=shown)
        if not isinstance(unit, Round) or not any(_has_media(call) for call in unit.calls):
            return unit
        calls = tuple(
            replace(call, result=in_words(call.result or (), self.wires)) if _has_media(call) else call
            for call in unit.calls
        )
        return replace(unit, calls=calls)


def _has_media(call: ToolCall) -> bool:
    return call.result is not None and not all(type(part) is Text for part in call.result)


def in_words(parts: Sequence[Part], wires: UnitBytes) -> tuple[Part, ...]:
    """The parts with words for what this wire does not take, on lines of their own: words for it, or its label.

    A sound is shown by its transcript, since those are the person's words; a picture by what was said about it, which
    are not, and therefore in brackets.
    """
    shown: list[Part] = []
    after = False  # whether the last one stands for something
    for part in parts:
        stands = not isinstance(part, Text) and not wires.takes(part)
        said = Text(_words(part)) if stands else part
        if (stands or after) and isinstance(said, Text) and shown and isinstance(before := shown[-1], Text):
            if after:
                shown[-1] = replace(before, text=before.text + "\n")
            else:
                said = replace(said, text="\n" + said.text)
        shown.append(said)
        after = stands
    return tuple(shown)


def _words(part: Part) -> str:
    if isinstance(part, Audio) and part.transcript.strip():
        return part.transcript
    if isinstance(part, Image) and part.description.strip():
        return f"[Image: {part.description}]"
    return labelled((part,))
