"""``onrecord``: the parser, the commands, and how each of them ends."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import onrecord
from onrecord.cli import chat, flows, inbox_rows, models, record, replay, store_files, worker
from onrecord.cli.command import AS_WRITTEN
from onrecord.cli.failure import EXIT_CODES, INTERRUPTED, PIPE, USAGE, aside, debugging, let_go, tell

__all__ = ("main",)

ABOUT = "Conversational LLM agents on the record: talk to an agent, and read, explain and verify what happened."
EXAMPLES = """\
examples:
  onrecord chat examples/hotel.py:agent                     talk to an agent; nothing is kept
  onrecord chat hotel:agent --store talk.db --session ana   keep the session, and go on with it later
  onrecord flows draw hotel.py:agent                        its flows as a diagram
  onrecord record show talk.db ana                          what happened, entry by entry
  onrecord record why talk.db ana last                      why the last answer came about
  onrecord models                                           what can be used here, and what is missing
  onrecord worker hotel:agent --store talk.db               serve what waits there: inputs, wakes, messages
"""


class _Parser(argparse.ArgumentParser):
    """Wrong usage is one line and a hint, as every other error; an unknown option is told before what is missing."""

    given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.given = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        if message.startswith("the following arguments are required") and (unknown := self._unknown()):
            message = not_taken(unknown)
        aside(f"{self.prog}: {message}\n  hint: {self.prog} --help shows how it is used")
        raise SystemExit(USAGE)

    def _unknown(self) -> list[str]:
        """Options among what was given that this parser does not have."""
        options = [text.partition("=")[0] if text.startswith("--") else text[:2] for text in self.given]
        return [option for option in options if option[1:].strip("-") and option[0] == "-" and not self._has(option)]

    def _has(self, option: str) -> bool:
        return option in self._option_string_actions

    def _print_message(self, message: str, file: Any = None) -> None:
        print(message, end="", file=file, flush=True)  # argparse itself says nothing of help that cannot be written


def not_taken(options: Sequence[str]) -> str:
    """What is said about options that there are not."""
    return f"it does not take {' '.join(map(repr, options))}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; wrong usage and ``--help`` leave through SystemExit as usual."""
    _open_what_is_closed()
    args: argparse.Namespace | None = None
    try:
        args, unknown = _parser().parse_known_args(argv)
        if unknown:
            args.parser.error(not_taken(unknown))
        code: int = args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        let_go(sys.stdout)
        return PIPE
    except Exception as error:  # noqa: BLE001 - the last place where an error can still become a line and a hint
        return _told(error, debug=debugging(args))
    return code


def _told(error: Exception, *, debug: bool) -> int:
    """The error behind what was printed before it; its exit code."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        let_go(sys.stdout)
    return tell(error, debug=debug)


def _open_what_is_closed() -> None:
    """A stream that was closed before the start leads nowhere, so that no file of ours gets its place and its output.

    In order, each on the lowest number that is free: its own.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end


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
    for command in (chat, flows, worker, record, replay, store_files, inbox_rows, models):
        command.declare(commands, shared)
    return parser


if __name__ == "__main__":
    sys.exit(main())
