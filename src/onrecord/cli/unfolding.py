"""A record folded again: the conversation as it unfolds, and the state as it was after an entry."""

from __future__ import annotations

from onrecord.cli.failure import FAILED, OK
from onrecord.cli.record_file import comparable
from onrecord.cli.sources import Held
from onrecord.cli.terminal import Screen, cut, plural
from onrecord.cli.verify import departures, erasures
from onrecord.conversation.conversation import units_of
from onrecord.conversation.display import labelled
from onrecord.conversation.messages import AssistantMessage, ContextMessage, Message, UserMessage
from onrecord.conversation.render import context_text
from onrecord.honesty.sentences import call_text
from onrecord.jsonio import dumps
from onrecord.record.leaving import Leaves, leaving
from onrecord.session.session import Session
from onrecord.session.walking import walk

__all__ = ("show_state", "unfold")


def unfold(found: Held, screen: Screen, leaves: Leaves = leaving) -> int:
    """Folds the record again and says whether that is the session that is known; the exit code.

    ``leaves`` says how entries look that are shown; what is compared is the record as it is.
    """
    session = Session(key=found.key, digest_key=found.digest_key)
    shown = found if leaves is leaving else found.leaving(leaves)
    for one in walk(session, shown.entries, found.folds):
        if one.session is not None:
            _added(session, one.session, screen)
            session = one.session
    if shown is not found:
        session = found.folded(found.entries)
    for gone in erasures(found.entries):
        screen.line(f"  [{gone}]", dim=True)
    screen.line()
    messages = plural(len(session.conversation.messages), "message")
    told = f"{plural(len(found.entries), 'entry', 'entries')} fold to {messages}"
    if found.session is None and found.header is None:
        screen.line(f"{told}; there is nothing to compare them with: the file has no header", bold=True)
        return FAILED if found.broken else OK
    gaps = list(departures(found, session))
    screen.line(f"{told}: {'not ' if gaps else ''}the {'stored' if found.session else 'exported'} session", bold=True)
    for gap in gaps:
        screen.line(f"  {gap}")
    return FAILED if gaps else OK


def _added(before: Session, after: Session, screen: Screen) -> None:
    """The messages that a take added; and where it changed what was there before, a word about that."""
    told, known = after.conversation.messages, before.conversation.messages
    kept = told.shared_with(known)
    if kept < len(known):
        screen.line(f"  [history changed from message {kept + 1} on]", dim=True)
    for message in told.since(kept):
        _message(message, screen)
    if after.question is not None and after.pending is not before.pending:
        screen.line(f"? {after.question.text} (asked by {after.question.by})")


def _message(message: Message, screen: Screen) -> None:
    if isinstance(message, UserMessage):
        screen.line(f"> {labelled(message.content)}", bold=True)
    elif isinstance(message, ContextMessage):
        screen.line(
            f"  [{message.authority} by {message.writer or 'the application'}] {context_text(message)}", dim=True
        )
    elif isinstance(message, AssistantMessage):
        for held in message.rounds:
            if held.calls and held.text.strip() and message.interrupted is None:
                screen.line(held.text)
            for call in held.calls:
                result = "" if call.result is None else f" {cut(labelled(call.result), 100)}"
                screen.line(f"  {call_text(call.name, call.args, 80)}: {call.status}{result}", dim=True)
        if message.text.strip():
            screen.line(message.text)
        for block in message.blocks:
            screen.line(f"---\n{block.text}")
        if message.interrupted is not None:
            told = "" if message.interrupted == "left" else f": {message.interrupted}"
            screen.line(f"  [interrupted{told}]", dim=True)


def show_state(session: Session, seq: int, screen: Screen, *, as_json: bool) -> None:
    """The state after an entry: the conversation until then, and what else the session knew."""
    if as_json:
        screen.json(dumps(comparable(session)))
        return
    for message in session.conversation.messages:
        _message(message, screen)
    messages, units = session.conversation.messages, session.conversation.units
    screen.line()
    screen.line(f"after entry {seq}: {plural(len(messages), 'message')}, {plural(len(units), 'unit')}", bold=True)
    running = len(units) - sum(len(units_of(message)) for message in messages)
    if running > 0:
        screen.line(f"  a turn is running: {plural(running, 'round')} of it so far")
    if session.data:
        screen.line(f"  data: {dumps(session.data).decode()}")
    if session.question is not None:
        screen.line(f"  open question, by {session.question.by}: {session.question.text}")
    for name, at in (("the person", session.last_user_at), ("the agent", session.last_assistant_at)):
        if at is not None:
            screen.line(f"  {name} last spoke at {at:%Y-%m-%d %H:%M:%S%z}")
