"""``onrecord chat``: talk to an agent; replies stream, questions are answered, the session is kept."""

from __future__ import annotations

import argparse
from typing import Any

from onrecord.cli.command import command
from onrecord.cli.failure import EXIT_CODES

__all__ = ("declare",)

ABOUT = """\
Talk to an agent. Replies stream, tool calls are shown as they happen, questions can be answered now or later.
With --store the session is kept in a SQLite file, and the same --session goes on with it."""

EPILOG = f"""\
In the chat:
  Ctrl-C     stops the reply that is streaming; at the prompt it ends the chat, as Ctrl-D does
  /help      lists the commands: /record, /why, /answer, /later, /decline, /outcomes, /quit

Without a terminal each line of standard input is one message; an open question is answered by the next line,
and Ctrl-C ends the chat once what was said until then is kept.

examples:
  onrecord chat examples/hotel.py:agent
  onrecord chat my_package.agents:concierge --store talk.db --session ana
  onrecord chat examples/hotel.py --model openai:gpt-5-mini
  echo "Hello!" | onrecord chat examples/hotel.py:agent

{EXIT_CODES}
  Without a terminal 1 also means that a turn failed; with one the chat has said so and gone on."""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Adds the command to the parser."""
    parser = command(commands, shared, "chat", short="talk to an agent", about=ABOUT, epilog=EPILOG)
    parser.add_argument(
        "agent", metavar="MODULE:AGENT",
        help="an importable module or a .py file, and the agent in it: an Agent, or a function that returns one",
    )  # fmt: skip
    parser.add_argument("--session", metavar="ID", default="default", help="which session to go on with (%(default)s)")
    parser.add_argument("--store", metavar="FILE", help="the SQLite file that keeps sessions; made when there is none")
    parser.add_argument(
        "--model", metavar="NAME", help="another model, such as openai:gpt-5-mini; `onrecord models` lists them"
    )
    parser.add_argument(
        "--given", metavar="MODULE:FUNCTION", help="async (session, input) -> Given: the context of turns"
    )
    parser.add_argument(
        "--outcomes", action="store_true", help="below each reply, what the steps of flows came to (/outcomes in it)"
    )
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    """Loads the agent and talks until the input ends."""
    from onrecord.cli.talk import talk

    return talk(args)
