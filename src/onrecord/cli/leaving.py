"""How entries look to a command line: the options that say what is taken out of them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onrecord.agent import Agent
    from onrecord.record.leaving import Leaves

__all__ = ("add_leaving", "leaves_of", "named_agent")


def add_leaving(parser: argparse.ArgumentParser) -> None:
    """The options of commands that show entries."""
    parser.add_argument(
        "--agent", metavar="MODULE:AGENT",
        help="the agent: its Redaction says what is shown, and its features know their entries and states",
    )  # fmt: skip
    parser.add_argument(
        "--redact", metavar="PATTERN", action="append", default=[],
        help="take out of all texts what matches this regular expression; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--redact-name", metavar="NAME", action="append", default=[],
        help="take out the value of every JSON member of this name; may be given several times",
    )  # fmt: skip
    parser.add_argument("--no-texts", action="store_true", help="take out every text, and leave names and numbers")


def named_agent(args: argparse.Namespace) -> Agent[Any, Any] | None:
    """The agent of ``--agent``."""
    from onrecord.cli.loading import agent_named

    return agent_named(args.agent) if args.agent else None


def leaves_of(args: argparse.Namespace, agent: Agent[Any, Any] | None) -> Leaves:
    """How entries look: as the agent's redaction says, and the options. ConfigurationError for a wrong expression."""
    from onrecord.record.leaving import leaves_by

    own = None
    if args.redact or args.redact_name or args.no_texts:
        from onrecord.governance.redaction import Redaction

        own = Redaction(patterns=args.redact, names=args.redact_name, texts=not args.no_texts)
    return leaves_by((None if agent is None else agent.plan.redact, own))
