"""How entries look to a command line: as the agent that it names redacts them, and as its options say."""

from __future__ import annotations

import argparse
from typing import Any

from onrecord.agent import Agent
from onrecord.cli.loading import agent_named
from onrecord.governance.redaction import Redaction
from onrecord.record.leaving import Leaves, leaves_by

__all__ = ("leaves_of", "named_agent")


def named_agent(args: argparse.Namespace) -> Agent[Any, Any] | None:
    """The agent of ``--agent``."""
    return agent_named(args.agent) if args.agent else None


def leaves_of(args: argparse.Namespace, agent: Agent[Any, Any] | None) -> Leaves:
    """What the options of `onrecord.cli.record.add_leaving` say. ConfigurationError for a wrong expression."""
    own = None
    if args.redact or args.redact_name or args.no_texts:
        own = Redaction(patterns=args.redact, names=args.redact_name, texts=not args.no_texts)
    return leaves_by((None if agent is None else agent.plan.redact, own))
