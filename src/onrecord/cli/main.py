"""``onrecord``: the parser, the commands, and how each of them ends."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import onrecord
from onrecord.cli import chat, inbox_rows, models, record, replay, store_files
from onrecord.cli.command import AS_WRITTEN
from onrecord.cli.failure import EXIT_CODES, INTERRUPTED, PIPE, USAGE, debugging, tell

__all__ = ("main",)

ABOUT = "Conversational LLM agents on the record: talk to an agent, and read, explain and verify what happened."
EXAMPLES = """\
examples:
  onrecord chat examples/hotel.py:agent                     talk to an agent; nothing is kept
  onrecord chat hotel:agent --store talk.db --session ana   keep the session, and go on with it later
  onrecord record show talk.db ana                          what happened, entry by entry
  onrecord record why talk.db ana last                      why the last answer came about
  onrecord models                                           what can be used here, and what is missing
"""


class _Parser(argparse.ArgumentParser):
    """Wrong usage is one line and a hint, as every other error."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}\n  hint: {self.prog} --help shows how it is used", file=sys.stderr)
        raise SystemExit(USAGE)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; wrong usage and ``--help`` leave through SystemExit as usual."""
    args, unknown = _parser().parse_known_args(argv)
    if unknown:
        args.parser.error(f"it does not take {' '.join(map(repr, unknown))}")
    debug = debugging(args)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _let_go_of_stdout()
        return PIPE
    except Exception as error:  # noqa: BLE001 - the last place where an error can still become a line and a hint
        return tell(error, debug=debug)
    return code


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks (or set ONRECORD_DEBUG=1)"
    )
    parser = _Parser(
        prog="onrecord",
        description=ABOUT,
        epilog=f"{EXAMPLES}\n{EXIT_CODES}",
        formatter_class=AS_WRITTEN,
        parents=[shared],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"onrecord {onrecord.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for command in (chat, record, replay, store_files, inbox_rows, models):
        command.declare(commands, shared)
    return parser


def _let_go_of_stdout() -> None:
    """Nobody reads any more: what is still buffered must not raise again when Python ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
