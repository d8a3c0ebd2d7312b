"""``onrecord flows``: check, draw and simulate the flows of an agent."""

from __future__ import annotations

import argparse
from typing import Any

from onrecord.cli.command import command
from onrecord.cli.failure import EXIT_CODES

__all__ = ("declare",)

ABOUT = "See the flows of an agent: whether they can work, what they look like, and what they do over days."

CHECK = """\
Builds the agent and prints each of its flows: what starts it, its steps with every way out of them, the fields it
asks for, the tools and actions it uses, and how it ends. Below stand warnings, and steps that no run can reach.
The exit code is 1 where the agent cannot be built or a step cannot be reached; with --strict also for a warning."""

DRAW = """\
Draws flows as a diagram in Mermaid, which GitHub, GitLab and many editors show, or in DOT, which Graphviz turns into
SVG. Triggers are the way in; a dashed arrow starts another run. Names and texts are escaped: they never break it."""

SIMULATE = """\
Talks to an agent with flows while its clock stands still, and moves only when you say so: days pass in an instant,
and every timer and silence fires at its own time. Below each reply stands what every step came to, and why. Each
line is a message of the customer, or a command. Tools and actions are really called: what they book, they book."""

COMMANDS = """\
  /wait 24h            lets time pass: what comes due on the way happens in order, each at its own time
  /next                moves to when the next thing is due
  /event NAME [JSON]   reports an event of the application
  /start FLOW [JSON]   starts a flow by hand
  /data                what is known of the customer
  /runs                the runs that are live
  /wakes               what is due later
  /answer              the open question again; /later leaves it open, /decline says no
  /quit                ends it (Ctrl-D does too); Ctrl-C stops a turn
  //text               a message that begins with a slash"""

AGENT = "an importable module or a .py file, and the agent in it: an Agent, or a function that returns one"


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Adds the command and its three to the parser."""
    epilog = f"onrecord flows COMMAND --help has examples.\n\n{EXIT_CODES}"
    parser = command(
        commands, shared, "flows", short="check, draw and simulate flows of an agent", about=ABOUT, epilog=epilog
    )
    kinds = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=type(parser))
    for add in (_check, _draw, _simulate):
        add(kinds, shared)


def _sub(
    kinds: Any, shared: argparse.ArgumentParser, name: str, short: str, about: str, before: str
) -> argparse.ArgumentParser:
    parser = command(kinds, shared, name, short=short, about=about, epilog=f"{before}\n\n{EXIT_CODES}")
    parser.add_argument("agent", metavar="MODULE:AGENT", help=AGENT)
    return parser


def _check(kinds: Any, shared: argparse.ArgumentParser) -> None:
    examples = "examples:\n  onrecord flows check hotel.py:agent\n  onrecord flows check hotel:agent --strict"
    parser = _sub(kinds, shared, "check", "whether flows can work, and all that is in them", CHECK, examples)
    parser.add_argument("--strict", action="store_true", help="a warning counts as a problem, too")
    parser.set_defaults(run=check, parser=parser)


def _draw(kinds: Any, shared: argparse.ArgumentParser) -> None:
    examples = (
        "examples:\n  onrecord flows draw hotel.py:agent\n  onrecord flows draw hotel:agent booking nudge\n"
        "  onrecord flows draw hotel:agent --format dot | dot -Tsvg -o hotel.svg"
    )
    parser = _sub(kinds, shared, "draw", "flows as a diagram", DRAW, examples)
    parser.add_argument("flows", metavar="FLOW", nargs="*", help="the ids of flows to draw (all of them)")
    parser.add_argument("--format", choices=("mermaid", "dot"), default="mermaid", help="what to write (%(default)s)")
    parser.set_defaults(run=draw, parser=parser)


def _simulate(kinds: Any, shared: argparse.ArgumentParser) -> None:
    before = (
        f"commands in it:\n{COMMANDS}\n\n"
        "Without a terminal each line of standard input is one, and an open question is answered by the next\n"
        "line. In a script, blank lines and lines that begin with # are passed over. The exit code is 1 where a\n"
        "turn failed or a command was not understood; with a terminal the simulation has said so and gone on.\n\n"
        "examples:\n  onrecord flows simulate hotel.py:agent\n"
        "  onrecord flows simulate hotel:agent --script silence.txt --at 2026-09-20T12:00Z\n"
        "  printf 'I want a room\\n/wait 24h\\n' | onrecord flows simulate hotel:agent"
    )
    parser = _sub(kinds, shared, "simulate", "talk to an agent while time passes when you say so", SIMULATE, before)
    parser.add_argument("--script", metavar="FILE", help="read lines from there instead of standard input")
    parser.add_argument(
        "--store", metavar="FILE",
        help="keep the session in a SQLite file; one of its own, since its clock is not that of the world",
    )  # fmt: skip
    parser.add_argument("--session", metavar="ID", default="customer", help="which session to go on with (%(default)s)")
    parser.add_argument("--at", metavar="INSTANT", help="when it begins, such as 2026-09-20T12:00Z (now)")
    parser.add_argument("--model", metavar="NAME", help="another model, such as openai:gpt-5-mini or offline")
    parser.add_argument(
        "--given", metavar="MODULE:FUNCTION", help="async (session, input) -> Given: the context of turns"
    )
    parser.set_defaults(run=simulate, parser=parser)


def check(args: argparse.Namespace) -> int:
    """Prints the flows and what is wrong with them."""
    from onrecord.cli.flow_lines import check

    return check(args)


def draw(args: argparse.Namespace) -> int:
    """Prints the diagram."""
    from onrecord.cli.flow_lines import draw

    return draw(args)


def simulate(args: argparse.Namespace) -> int:
    """Loads the agent and simulates until the input ends."""
    from onrecord.cli.simulate import simulate

    return simulate(args)
