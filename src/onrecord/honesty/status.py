"""What an agent is doing right now, in the first person: what a chat shows while it works."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from onrecord.conversation.inputs import Question
from onrecord.conversation.outgoing import CallDelta, Delta, TextDelta
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
    "paused": {"question": lambda now, _words: now.text, "by": lambda now, _words: now.by},
    "paused.elsewhere": {"by": lambda now, _words: now.by},
}
_TOOL: Facts = {**_FACTS["tool"], "args": lambda now, _words: shown(now.args)}
_PARTLY = 2 * LONGEST
_OVER = (kinds.TurnClosed, kinds.TurnFailed, kinds.TurnInterrupted)


class _Working(Struct, frozen=True):
    """A call that runs."""

    name: str
    args: Mapping[str, Any]


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
        self.tools = tuple(key.removeprefix(_PER_TOOL) for key in self.lines if key.startswith(_PER_TOOL))

    def told(self, key: str, now: Any) -> str:
        return self.lines[key].told(now, {}, LONGEST)


class StatusLine:
    """The status of one session, made by `Commentary.follow`: a fold over its entries, and over deltas if you like.

    A question that is open comes first, then the call that began last of those that run, then what streams, then
    ``idle``. Empty when no turn runs. A question to anybody but the speaker is not shown.
    """

    def __init__(self, templates: StatusTemplates) -> None:
        self._templates = templates
        self._turn = ""
        self._calls: dict[str, _Working] = {}
        self._partial = ""
        self._question: Question | None = None

    def see(self, item: Entry | Delta) -> str:
        """Takes in what happened next, and says the status."""
        if isinstance(item, Entry):
            self._entry(item)
        elif isinstance(item, TextDelta):
            self._partial = (self._partial + item.text)[-_PARTLY:]
        elif isinstance(item, CallDelta):
            self._call(item.id, None if item.status != "asked" else _Working(item.name, item.args))
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
            own = f"{_PER_TOOL}{call.name}"
            return told(own if own in self._templates.lines else "tool", call)
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
