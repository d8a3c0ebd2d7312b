"""The list of ``onrecord models``, and one model's card in words."""

from __future__ import annotations

import argparse

from onrecord.cli.failure import OK
from onrecord.cli.model_cards import HEADINGS, abilities, in_columns, in_words, table
from onrecord.cli.refusals import refusals
from onrecord.cli.terminal import Screen, wide_enough
from onrecord.cli.usable import example, found_here
from onrecord.errors import ConfigurationError
from onrecord.jsonio import dumps
from onrecord.models.model import ModelCard
from onrecord.models.names import model_named
from onrecord.providers.openai_compatible import VENDORS

__all__ = ("list_all", "tell_one")


def list_all(args: argparse.Namespace) -> int:
    """Who can be used here, what is missing for the others, and what the models of each can do."""
    screen, rows = Screen(), sorted(found_here(), key=lambda row: not row.usable)
    cards = {row.name: _card_of(row.name) for row in rows}
    if args.json:
        for row in rows:
            held = {"provider": row.name, "usable": row.usable, "model": example(row.name), "why": row.why}
            card = cards[row.name]
            screen.json(dumps(held | {"can": None if card is None else abilities(card)}))
        return OK
    width = max(len(example(row.name)) for row in rows)
    for row in rows:
        mark = "ready  " if row.usable else "missing"
        line = f"{mark}  {wide_enough(example(row.name), width)}  {row.why}"
        screen.line(line, bold=row.usable, dim=not row.usable)
    cells = [[example(name), *in_columns(card)] for name, card in cards.items() if card is not None]
    heading, *lines = table([["can", *HEADINGS], *cells])
    screen.line()
    screen.line(heading, bold=True)
    for line in lines:
        screen.line(line)
    return OK


def tell_one(args: argparse.Namespace, name: str) -> int:
    """One card in words, and what the model's wire refuses."""
    model, screen = model_named(name), Screen()
    card, refused = model.card, refusals(model)
    row = next((row for row in found_here() if row.name == card.provider), None)
    if args.json:
        about = {} if row is None else {"usable": row.usable, "why": row.why}
        screen.json(dumps({"model": card.name} | about | {"card": card, "refuses": refused}))
        return OK
    screen.line(card.name, bold=True)
    for line in in_words(card):
        screen.line(f"  {line}")
    if refused:
        screen.line("  refuses, before anything is sent:")
    for told in dict.fromkeys(told for each in refused.values() for told in each):
        screen.line(f"    {told}")
    if row is not None:
        screen.line(f"  {'ready' if row.usable else 'missing'}: {row.why}", dim=not row.usable)
    return OK


def _card_of(provider: str) -> ModelCard | None:
    """What a provider's models can do, as far as it can be said without naming one."""
    try:
        return model_named(example(provider)).card
    except (
        ConfigurationError
    ):  # a file, or a customer's endpoint, is not here; a vendor's models are known all the same
        vendor = VENDORS.get(provider)
        return None if vendor is None else vendor.card
