"""``onrecord replay``: fold a record again, show the conversation as it unfolds, compare with what is stored."""

from __future__ import annotations

import argparse
from typing import Any

from onrecord.cli.command import command
from onrecord.cli.failure import EXIT_CODES, OK
from onrecord.cli.record import add_leaving, add_source, warn_broken

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
    parser = command(commands, shared, "replay", short="fold a record again and compare", about=ABOUT, epilog=EPILOG)
    add_source(parser)
    parser.add_argument("--at", metavar="SEQ", type=int, help="show the state after this entry instead")
    parser.add_argument("--json", action="store_true", help="with --at: the state as JSON")
    add_leaving(parser)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    """Replays, or travels to one entry."""
    from onrecord.cli.leaving import leaves_of, named_agent
    from onrecord.cli.sources import held
    from onrecord.cli.terminal import Screen
    from onrecord.cli.unfolding import show_state, unfold

    if args.json and args.at is None:
        args.parser.error("--json needs --at SEQ: it prints the state after that entry")
    agent, screen = named_agent(args), Screen()
    found, leaves = held(args.source, args.session, tenant=args.tenant, agent=agent), leaves_of(args, agent)
    if args.at is not None:
        show_state(found.leaving(leaves).record().state_at(args.at), args.at, screen, as_json=args.json)
        code = OK
    else:
        code = unfold(found, screen, leaves)
    warn_broken(found)
    return code
