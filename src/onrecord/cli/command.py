"""How a command is declared: its help as it is written here, its options never abbreviated."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ("AS_WRITTEN", "command")

AS_WRITTEN = argparse.RawDescriptionHelpFormatter
"""Texts keep their lines: examples are to be copied."""


def command(
    commands: Any, shared: argparse.ArgumentParser, name: str, *, short: str, about: str, epilog: str
) -> argparse.ArgumentParser:
    """Adds a command; ``short`` is its line in the list, ``about`` and ``epilog`` frame its own help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=short, description=about, epilog=epilog, parents=[shared], formatter_class=AS_WRITTEN,
        allow_abbrev=False,
    )  # fmt: skip
    return parser
