"""``onrecord worker``: serves what waits in a store until it is told to stop."""

from __future__ import annotations

import argparse
import math
from typing import Any

from onrecord.cli.command import command
from onrecord.cli.failure import EXIT_CODES

__all__ = ("declare",)

ABOUT = """\
Serve the sessions of a store: inputs that wait, wakes that come due, messages to deliver. As many workers as you like
may share a store, with each other and with the hosts of your application."""

EPILOG = f"""\
signals:
  SIGTERM, SIGINT  take nothing more, let running turns end within --drain seconds, give the others back, exit with 0;
                   a second one ends at once: what ran is taken anew by others within seconds
  SIGUSR1          tell the health now, and not only each minute

Without --deliver each message is a line of JSON on standard output, and counts as delivered once it is written.
The health is a line on standard error, or a file of JSON that is replaced: numbers and the store, never content. It
is told at the start, each minute and at the end; with --once at the end, and only into a file.

examples:
  onrecord worker my_package.agents:concierge --store talk.db --deliver my_package.channel:send
  onrecord worker my_package.serving:host
  onrecord worker hotel.py --store talk.db --once      in a crontab

{EXIT_CODES}"""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Adds the command to the parser."""
    parser = command(commands, shared, "worker", short="serve what waits in a store", about=ABOUT, epilog=EPILOG)
    parser.add_argument(
        "agent", metavar="MODULE:AGENT",
        help="an Agent, or a Host that is ready: then its own store, channel and limits hold",
    )  # fmt: skip
    parser.add_argument("--store", metavar="FILE", help="the SQLite file whose sessions are served")
    parser.add_argument("--model", metavar="NAME", help="another model, such as openai:gpt-5-mini")
    parser.add_argument("--turns", metavar="N", type=_count, help="how many turns may run at once (64)")
    parser.add_argument(
        "--deliver", metavar="MODULE:FUNCTION", help="async def send(session, message), which carries messages out"
    )
    parser.add_argument(
        "--given", metavar="MODULE:FUNCTION", help="async def given(session, input), which returns a Given"
    )
    parser.add_argument(
        "--drain", metavar="SECONDS", type=_seconds, default=30.0,
        help="how long running turns may take to end (%(default)g)",
    )  # fmt: skip
    parser.add_argument("--health", metavar="FILE", default="-", help="where the health goes; - is standard error")
    parser.add_argument("--once", action="store_true", help="serve until nothing is due, then end")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    """Loads the agent and serves until a signal comes."""
    from onrecord.cli.serving import serve

    return serve(args)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of turns")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds
