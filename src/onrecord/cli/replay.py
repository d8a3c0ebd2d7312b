"""``onrecord replay``: fold a record again, show the conversation as it unfolds, compare with what is stored."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from onrecord.cli.failure import EXIT_CODES, FAILED, OK
from onrecord.cli.record import RAW, add_agent, add_source

if TYPE_CHECKING:
    from onrecord.cli.terminal import Screen
    from onrecord.conversation.messages import Message
    from onrecord.session.session import Session

__all__ = ("declare",)

ABOUT = """\
Folds a record again, entry by entry, shows the conversation as it unfolds, and compares the session that comes out
with the stored one. With --at it shows the state as it was after that entry."""

EPILOG = f"""\
examples:
  onrecord replay talk.db ana            the conversation again, compared with the store
  onrecord replay talk.db ana --at 17    the state after entry 17
  onrecord replay ana.jsonl

{EXIT_CODES}"""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser(
        "replay", help="fold a record again and compare", description=ABOUT, epilog=EPILOG, parents=[shared],
        formatter_class=RAW, allow_abbrev=False,
    )  # fmt: skip
    add_source(parser)
    parser.add_argument("--at", metavar="SEQ", type=int, help="show the state after this entry instead")
    parser.add_argument("--json", action="store_true", help="with --at: the state as JSON")
    add_agent(parser)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    """Replays, or travels to one entry."""
    from onrecord.cli.loading import agent_named
    from onrecord.cli.sources import held
    from onrecord.cli.terminal import Screen

    agent = agent_named(args.agent) if args.agent else None
    found, screen = held(args.source, args.session, tenant=args.tenant, agent=agent), Screen()
    if args.at is not None:
        _state(found.record().state_at(args.at), args.at, screen, as_json=args.json)
        return OK
    return _replay(found, screen)


def _replay(found: Any, screen: Screen) -> int:
    from onrecord.cli.record_file import state_digest
    from onrecord.cli.terminal import plural
    from onrecord.cli.verify import differences
    from onrecord.session.session import Session
    from onrecord.turn.audit import walk

    session = Session(key=found.key, digest_key=found.digest_key)
    for one in walk(session, found.entries, found.folds):
        if one.session is not None:
            _unfold(session, one.session, screen)
            session = one.session
    screen.line()
    messages = plural(len(session.conversation.messages), "message")
    told = f"{plural(len(found.entries), 'entry', 'entries')} fold to {messages}"
    if found.session is not None:
        gaps = list(differences(found.session, session, found.folds))
    elif found.header is not None:
        same = state_digest(session, found.digest_key) == found.header.state
        gaps = [] if same else ["the session is not the one that was exported"]
    else:
        screen.line(f"{told}; there is nothing to compare them with: the file has no header", bold=True)
        return OK
    screen.line(f"{told}: {'not ' if gaps else ''}the {'stored' if found.session else 'exported'} session", bold=True)
    for gap in gaps:
        screen.line(f"  {gap}")
    return FAILED if gaps else OK


def _unfold(before: Session, after: Session, screen: Screen) -> None:
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
    from onrecord.cli.reply import call_text
    from onrecord.cli.terminal import cut
    from onrecord.conversation.display import labelled
    from onrecord.conversation.messages import AssistantMessage, ContextMessage, UserMessage
    from onrecord.conversation.render import context_text

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


def _state(session: Session, seq: int, screen: Screen, *, as_json: bool) -> None:
    """The state after an entry: the conversation until then, and what else the session knew."""
    from onrecord.cli.record_file import comparable
    from onrecord.cli.terminal import plural
    from onrecord.conversation.conversation import units_of
    from onrecord.jsonio import dumps

    if as_json:
        screen.drawn(dumps(comparable(session)).decode())
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
