"""A reply on the screen while it arrives: words, reasoning, tool calls as they start and end."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from onrecord.cli.terminal import Screen
from onrecord.conversation.outgoing import (
    CallDelta,
    ChildDelta,
    CitationDelta,
    Delta,
    MarkDelta,
    ReasoningDelta,
    TextDelta,
)
from onrecord.honesty.sentences import call_text

__all__ = ("Reply",)


class Reply:
    """Shows the deltas of one turn. Calls that run together are told apart by what they are."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.said = False
        self._open: str | None = None  # the call whose line is not finished
        self._reasoning = False
        self._sources: dict[str, None] = {}
        self._waiting = False

    def wait(self, name: str) -> None:
        """Says whom one waits for, on a terminal that can take it back."""
        if self.screen.styled and self.screen.at_start:
            self.screen.write(f"  waiting for {name} …", dim=True)
            self._waiting = True

    def _arrived(self) -> None:
        if self._waiting:
            self.screen.erase()
            self._waiting = False

    def show(self, batch: Sequence[Delta]) -> None:
        self._arrived()
        for delta in batch:
            match delta:
                case TextDelta(text=text):
                    self._text(text)
                case CallDelta():
                    self._call(delta)
                case ChildDelta():
                    self._below(delta)
                case ReasoningDelta(text=text):
                    self._reason(text)
                case MarkDelta(mark=mark):
                    if not mark.hidden:
                        self._text(mark.raw)
                case CitationDelta(citations=citations):
                    self._sources.update(dict.fromkeys(c.url for c in citations))
                case _:
                    pass

    def end(self) -> None:
        """The last line is finished; sources stand below the words."""
        self._arrived()
        self._close()
        self.screen.fresh()
        for url in self._sources:
            self.screen.line(f"  source: {url}", dim=True)

    def _text(self, text: str) -> None:
        self._close()
        self.said = True
        self.screen.write(text)

    def _reason(self, text: str) -> None:
        """Reasoning is not the answer: a terminal shows it dimmed, a pipe does not get it."""
        if not self.screen.styled:
            return
        if not self._reasoning:
            self._close()
            self.screen.fresh()
            self._reasoning = True
        self.screen.write(text, dim=True)

    def _call(self, delta: CallDelta) -> None:
        screen = self.screen
        limit = max(screen.columns - len(delta.name) - 20, 20)
        if delta.status == "asked":
            self._close()
            screen.fresh()
            self._open = delta.id
            if screen.live:
                screen.write(f"  {call_text(delta.name, delta.args, limit)} …", dim=True)
            return
        if self._open == delta.id and screen.live and not screen.at_start:
            screen.write(f" {_ending(delta.status)}\n", dim=True)
        else:
            self._close()
            screen.line(f"  {call_text(delta.name, delta.args, limit)}: {_ending(delta.status)}", dim=True)
        self._open = None

    def _below(self, delta: ChildDelta) -> None:
        """A call that ended in a sub-agent has a line of its own, which says whose it was."""
        path, inner = [delta.agent], delta.delta
        while isinstance(inner, ChildDelta):
            path, inner = [*path, inner.agent], inner.delta
        if isinstance(inner, CallDelta) and inner.status != "asked":
            self._close()
            self._call(replace(inner, name=" > ".join((*path, inner.name))))

    def _close(self) -> None:
        """Ends a line of another kind before this one begins."""
        if self._open is not None or self._reasoning:
            self.screen.fresh()
        self._open, self._reasoning = None, False


def _ending(status: str) -> str:
    return {"not_run": "not run", "absent": "found nothing", "invalid": "arguments refused"}.get(status, status)
