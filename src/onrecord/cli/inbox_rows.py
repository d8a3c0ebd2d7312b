"""``onrecord inbox``: what waits in a store, what was set aside, and what to do about it."""

from __future__ import annotations

import argparse
from typing import Any

from onrecord.cli.command import command
from onrecord.cli.failure import EXIT_CODES

__all__ = ("declare",)

ABOUT = """\
Rows of a store: inputs that wait to be handled (in) and messages that wait to be delivered (out). What a row holds is
never shown, only its key, when it is due, how often it was tried, and why it was set aside."""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Adds the command and its three to the parser."""
    epilog = f"onrecord inbox COMMAND --help has examples.\n\n{EXIT_CODES}"
    short = "what waits in a store, and what was set aside"
    parser = command(commands, shared, "inbox", short=short, about=ABOUT, epilog=epilog)
    kinds = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=type(parser))
    for add in (_list, _retry, _drop):
        add(kinds, shared)


def _sub(
    kinds: Any, shared: argparse.ArgumentParser, name: str, short: str, about: str, examples: str
) -> argparse.ArgumentParser:
    epilog = f"examples:\n{examples}\n\n{EXIT_CODES}"
    parser = command(kinds, shared, name, short=short, about=about, epilog=epilog)
    parser.add_argument("file", metavar="FILE", help="a store's file")
    parser.add_argument("session", metavar="SESSION", nargs="?", help="only the rows of this session (all)")
    parser.add_argument("--tenant", metavar="NAME", help="only the rows of this tenant (all; with SESSION: none's)")
    parser.add_argument("--box", choices=("in", "out"), help="only rows to handle, or only rows to deliver (both)")
    return parser


def _list(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "list", "the rows there are",
        "One line for each row: its box, session and key, when it is due, attempts, who has it, why it is parked.",
        "  onrecord inbox list talk.db\n  onrecord inbox list talk.db ana --box out\n"
        "  onrecord inbox list talk.db --parked --json",
    )  # fmt: skip
    parser.add_argument("--parked", action="store_true", help="only rows that were set aside")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=list_rows, parser=parser)


def _retry(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "retry", "try parked rows again",
        "Parked rows become due at once, as if they had never been tried. Workers that run take them by themselves.",
        "  onrecord inbox retry talk.db\n  onrecord inbox retry talk.db ana --key said::m17",
    )  # fmt: skip
    parser.add_argument("--key", metavar="KEY", action="append", help="only the row with this key; may be repeated")
    parser.set_defaults(run=retry, parser=parser)


def _drop(kinds: Any, shared: argparse.ArgumentParser) -> None:
    parser = _sub(
        kinds, shared, "drop", "delete rows that wait or are parked",
        "Rows that a worker has at this moment stay. What was accepted and is dropped is never handled, so this asks\n"
        "first; where nobody can be asked it needs --yes.",
        "  onrecord inbox drop talk.db ana --key said::m17\n  onrecord inbox drop talk.db --parked --yes",
    )  # fmt: skip
    parser.add_argument("--key", metavar="KEY", action="append", help="only the row with this key; may be repeated")
    parser.add_argument("--parked", action="store_true", help="only rows that were set aside")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=drop, parser=parser)


# ---- what they do ----------------------------------------------------------------------------------------------------


def list_rows(args: argparse.Namespace) -> int:
    """Prints the rows."""
    from onrecord.cli.waiting import list_rows

    return list_rows(args)


def retry(args: argparse.Namespace) -> int:
    """Revives parked rows."""
    from onrecord.cli.waiting import retry

    return retry(args)


def drop(args: argparse.Namespace) -> int:
    """Deletes rows that nobody has leased."""
    from onrecord.cli.waiting import drop

    return drop(args)
