"""What an agent is doing right now, in the first person: what a chat shows while it works."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.inputs import Question
from onrecord.conversation.outgoing import CallDelta, Delta, ProgressDelta, TextDelta
from onrecord.conversation.short import cut
from onrecord.errors import ConfigurationError
from onrecord.honesty.fact_readers import Facts, shown
from onrecord.honesty.templates import LONGEST, Line, compiled, refused
from onrecord.record import kinds
from onrecord.record.entry import Entry

__all__ = ("StatusLine", "StatusTemplates")

_PER_TOOL = "tool."
_FACTS: Mapping[str, Facts] = {
    "idle": {},
    "streaming": {"partial": lambda now, _words: now},
    "tool": {"tool_name": lambda now, _words: now.name},
    "tool.progress": {
        "tool_name": lambda now, _words: now.name,
        "progress_message": lambda now, _words: now.message,
        "progress_count": lambda now, _words: str(now.count),
    },
    "tool.progress.generic": {
        "tool_name": lambda now, _words: now.name,
        "progress_count": lambda now, _words: str(now.count),
    },
    "paused": {"question": lambda now, _words: now.text, "by": lambda now, _words: now.by},
    "paused.elsewhere": {"by": lambda now, _words: now.by},
}
_TOOL: Facts = {**_FACTS["tool"], "args": lambda now, _words: shown(now.args)}
_PARTLY = 2 * LONGEST
_OVER = (kinds.TurnClosed, kinds.TurnFailed, kinds.TurnInterrupted)


class _Working(Struct, frozen=True):
    """A call that runs; what it said last of its progress, and how often it did."""

    name: str
    args: Mapping[str, Any] = {}
    message: str = ""
    count: int = 0


class StatusTemplates:
    """The templates of a status, checked and ready. ConfigurationError."""

    def __init__(self, templates: Mapping[str, str], *, app: str) -> None:
        self.lines: dict[str, Line] = {}
        for key, template in templates.items():
            if key not in _FACTS and not key.startswith(_PER_TOOL):
                raise refused(f"there is no status {key!r}", key, (*_FACTS, "tool.NAME"))
            if key == _PER_TOOL:
                raise ConfigurationError("the status 'tool.' names no tool", hint="write 'tool.weather'")
            self.lines[key] = compiled(key, template, _FACTS.get(key, _TOOL), app=app)
        own = (key for key in self.lines if key not in _FACTS)
        self.tools = tuple(key.removeprefix(_PER_TOOL) for key in own)

    def key_of(self, call: _Working) -> str:
        """Which template tells of a call that runs."""
        if call.count:
            return "tool.progress" if call.message.strip() else "tool.progress.generic"
        return f"{_PER_TOOL}{call.name}" if call.name in self.tools else "tool"

    def told(self, key: str, now: Any) -> str:
        return self.lines[key].told(now, {}, LONGEST)


class StatusLine:
    """The status of one session, made by `Commentary.follow`: a fold over its entries, and over deltas if you like.

    A question that is open comes first, then the call that began or told of its progress last of those that run, then
    what streams, then ``idle``. Empty when no turn runs; where only deltas are shown to it, one does. A question to
    anybody but the speaker is not shown.
    """

    def __init__(self, templates: StatusTemplates) -> None:
        self._templates = templates
        self._turn = ""
        self._calls: dict[str, _Working] = {}
        self._partial = ""
        self._question: Question | None = None
        self._alone = True  # without entries, which say when a turn begins and ends

    def see(self, item: Entry | Delta) -> str:
        """Takes in what happened next, and says the status."""
        if isinstance(item, Entry):
            self._alone = False
            self._entry(item)
            return self.text
        if self._alone:
            self._turn = "told by deltas"
        if isinstance(item, TextDelta):
            self._partial = (self._partial + item.text)[-_PARTLY:]
        elif isinstance(item, CallDelta):
            self._call(item.id, None if item.status != "asked" else _Working(item.name, item.args))
        elif isinstance(item, ProgressDelta):
            held = self._calls.pop(item.id, None) or _Working(item.name)
            self._calls[item.id] = replace(held, message=item.message, count=held.count + 1)
        return self.text

    @property
    def text(self) -> str:
        """The status."""
        told = self._templates.told
        if (question := self._question) is not None:
            return told("paused" if question.audience == "speaker" else "paused.elsewhere", question)
        if not self._turn:
            return ""
        if self._calls:
            call = next(reversed(self._calls.values()))
            return told(self._templates.key_of(call), call)
        if self._partial.strip():
            return told("streaming", self._shown())
        return told("idle", None)

    def _shown(self) -> str:
        """The last of what streams: it is being written there."""
        flat = cut(self._partial, 0)
        return flat if len(flat) <= LONGEST else f"…{flat[1 - LONGEST :].lstrip()}"

    def _entry(self, entry: Entry) -> None:
        body = entry.body
        if isinstance(body, (kinds.TurnOpened, kinds.TurnResumed)):
            self._begin(entry.turn)
            if not isinstance(body, kinds.TurnOpened) or body.drops:
                self._question = None
        elif isinstance(body, kinds.ModelRequested):
            self._partial = ""
        elif isinstance(body, kinds.ToolStarted):
            self._call(body.call, _Working(body.name, body.args))
        elif isinstance(body, kinds.ToolReturned):
            self._call(body.call, None)
        elif isinstance(body, kinds.TurnPaused):
            self._begin("")
            self._question = body.pending.question
        elif isinstance(body, _OVER) and entry.turn == self._turn:
            self._begin("")

    def _begin(self, turn: str) -> None:
        self._turn, self._partial = turn, ""
        self._calls.clear()

    def _call(self, id: str, call: _Working | None) -> None:
        self._partial = ""
        if call is None:
            self._calls.pop(id, None)
        else:
            self._calls[id] = call
