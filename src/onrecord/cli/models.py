"""``onrecord models``: what can be used here, what is missing, and how to get it."""

from __future__ import annotations

import argparse
from typing import Any

from onrecord.cli.command import command
from onrecord.cli.failure import EXIT_CODES, OK

__all__ = ("declare",)

ABOUT = """\
Which models can be used on this machine, and exactly what is missing for the others: a variable, an extra, a server.
Reads the environment and knocks at the ports of local servers; sends nothing."""

EPILOG = f"""\
A model is named provider:model, in Agent("...") or with onrecord chat --model.

examples:
  onrecord models
  onrecord models --json

{EXIT_CODES}"""

NAMES = {
    "offline": "offline",
    "openai": "openai:gpt-5-mini",
    "google": "google:gemini-3.8-flash",
    "openrouter": "openrouter:VENDOR/MODEL",
    "local": "local:FILE.gguf",
}
"""How a model of a provider is named; of the others ``provider:MODEL``."""


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Adds the command to the parser."""
    short = "what can be used here, and what is missing"
    parser = command(commands, shared, "models", short=short, about=ABOUT, epilog=EPILOG)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    """Prints the table."""
    from onrecord.cli.terminal import Screen, wide_enough
    from onrecord.cli.usable import found_here
    from onrecord.jsonio import dumps

    screen, rows = Screen(), sorted(found_here(), key=lambda row: not row.usable)
    if args.json:
        for row in rows:
            held = {"provider": row.name, "usable": row.usable, "model": _named(row.name), "why": row.why}
            screen.json(dumps(held))
        return OK
    width = max(len(_named(row.name)) for row in rows)
    for row in rows:
        mark = "ready  " if row.usable else "missing"
        line = f"{mark}  {wide_enough(_named(row.name), width)}  {row.why}"
        screen.line(line, bold=row.usable, dim=not row.usable)
    return OK


def _named(provider: str) -> str:
    return NAMES.get(provider, f"{provider}:MODEL")
