"""The record as a timeline: a heading for each take, a line for each entry, drawn as a tree of rounds and calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from onrecord.cli.terminal import Screen, cut, name_shown, plural, quoted, safe, wide_enough
from onrecord.honesty.sentences import brief_of
from onrecord.jsonio import Json
from onrecord.record import kinds
from onrecord.record.entry import Entry, kind_of
from onrecord.record.fold import takes
from onrecord.record.leaving import Leaves, body_leaving
from onrecord.session.session import Session

__all__ = ("about", "as_it_leaves", "session_lines", "turn_lines")

_KIND_COLUMN = 17
_NAME_COLUMN = 40


def as_it_leaves(session: Session, leaves: Leaves) -> Session:
    """The session with its open question as the entry that asked it leaves the record."""
    if session.pending is None:
        return session
    body = body_leaving(kinds.TurnPaused(pending=session.pending), leaves)
    return replace(session, pending=body.pending if isinstance(body, kinds.TurnPaused) else None)


def session_lines(path: str, sessions: Sequence[Session], screen: Screen) -> Iterator[str]:
    """Lines to be drawn, one for each session of a store's file."""
    yield screen.bold(f"{plural(len(sessions), 'session')} in {name_shown(path)}")
    names = [name_shown(session.key.id, _NAME_COLUMN) for session in sessions]
    width = max(map(len, names), default=0)
    for name, session in zip(names, sessions, strict=True):
        told = [plural(len(session.conversation.messages), "message"), plural(session.seq, "entry", "entries")]
        if session.last_user_at is not None:
            told.append(f"last on {session.last_user_at:%Y-%m-%d %H:%M}")
        if session.question is not None:
            told.append(f"waits for an answer: {quoted(session.question.text, 50)}")
        yield f"  {wide_enough(name, width)}  {safe(', '.join(told))}"


def about(session: Session) -> dict[str, Json]:
    """The same about one session, as plain JSON."""
    return {
        "session": session.key.id,
        "version": session.version,
        "messages": len(session.conversation.messages),
        "entries": session.seq,
        "last_user_at": session.last_user_at,
        "last_assistant_at": session.last_assistant_at,
        "question": None if session.question is None else session.question.text,
    }


def turn_lines(
    entries: Sequence[Entry], screen: Screen, *, whole: bool = False, record: Sequence[Entry] = ()
) -> Iterator[str]:
    """Lines to be drawn, for entries in order. ``whole``: long texts are not cut, though still in one line.

    ``record`` holds all entries of the session, by which turns are numbered.
    """
    numbers = {turn: number for number, turn in enumerate(dict.fromkeys(entry.turn for entry in record), 1)}
    for place, take in enumerate(takes(entries)):
        if place:
            yield ""
        yield screen.bold(safe(_heading(take, numbers.get(take[0].turn))))
        width = len(str(take[-1].seq))
        for entry, stem in zip(take, _stems(take), strict=True):
            yield _line(entry, stem, take[0].at, width, screen, whole=whole)


def _heading(take: Sequence[Entry], number: int | None) -> str:
    """What a take was and how it ended."""
    start, last = take[0], take[-1]
    end = {
        kinds.TurnPaused: "paused",
        kinds.TurnInterrupted: "interrupted",
        kinds.TurnFailed: "failed",
    }.get(type(last.body), "")
    if isinstance(last.body, kinds.TurnClosed):
        end = last.body.status
    if isinstance(last.body, kinds.Erased):
        end = "erased"
    again = ", resumed" if isinstance(start.body, kinds.TurnResumed) else ""
    requests = sum(isinstance(e.body, kinds.ModelRequested) for e in take)
    calls = sum(isinstance(e.body, kinds.ToolStarted) for e in take)
    told = [
        f"turn {number}{again}" if number else f"turn{again}",
        f"{start.at:%Y-%m-%d %H:%M:%S}",
        end or "without an end",
        _span(start.at, last.at),
    ]
    told += [plural(requests, "request")] if requests else []
    told += [plural(calls, "call")] if calls else []
    return " · ".join(told)


def _span(start: datetime, end: datetime) -> str:
    seconds = (end - start).total_seconds()
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _stems(take: Sequence[Entry]) -> list[str]:
    """For each entry the lines of the tree in front of it: rounds hang on the turn, calls on their round."""
    paths = [entry.where.split("/")[:4] for entry in take]
    depths = [len(path) - 1 for path in paths]
    stems: list[str] = []
    for place, depth in enumerate(depths):
        begins = place == 0 or paths[place - 1] != paths[place]
        stem = ""
        for level in range(1, depth + 1):
            goes_on = _goes_on(paths, place, level)
            if level < depth:
                stem += "│ " if goes_on else "  "
            elif begins:
                stem += "├ " if goes_on else "└ "
            else:
                stem += "│ " if goes_on else "  "
        stems.append(stem)
    return stems


def _goes_on(paths: Sequence[Sequence[str]], place: int, level: int) -> bool:
    """Whether another branch follows at this level before a shallower entry ends it."""
    mine = paths[place][: level + 1]
    for path in paths[place + 1 :]:
        if len(path) <= level:
            return False
        if path[: level + 1] != mine:
            return True
    return False


def _line(entry: Entry, stem: str, start: datetime, width: int, screen: Screen, *, whole: bool) -> str:
    after = _span(start, entry.at)
    kind = kind_of(entry.body)
    head = f"{entry.seq:>{max(width, 4)}} {after:>7}  "
    named = wide_enough(stem + safe(kind), _KIND_COLUMN)
    room = 0 if whole else max(screen.columns - len(head) - len(named) - 2, 20)
    return f"{screen.dim(head)}{named}  {safe(cut(brief_of(entry.body), room))}"
