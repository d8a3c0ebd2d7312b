"""``onrecord models probe``: a real endpoint is asked, and what it can do is told."""

from __future__ import annotations

import argparse
import asyncio
import os

from onrecord.cli.failure import OK, Wrong, debugging, tell
from onrecord.cli.model_cards import in_words, table
from onrecord.cli.terminal import Screen
from onrecord.errors import ConfigurationError
from onrecord.jsonio import dumps
from onrecord.models.model import Model
from onrecord.models.names import model_named
from onrecord.providers.anthropic import anthropic
from onrecord.providers.google import google
from onrecord.providers.openai_compatible import VENDORS, openai_compatible, vendor_model
from onrecord.providers.openai_responses import openai_responses
from onrecord.providers.probe import Probed, probe

__all__ = ("probe_one",)

_NO_KEY = "none"
"""Where a protocol has no request without a key, and the server at hand asks for none."""


def probe_one(args: argparse.Namespace, name: str) -> int:
    """Asks, showing on a terminal what is asked at the moment; the exit code is 1 where there is nobody to ask."""
    model, screen = _asked_for(args, name), Screen()
    shows = screen.live and not args.json

    def told(what: str) -> None:
        if shows:
            screen.erase()
            screen.write(f"  asking: {what} ...", dim=True)

    if not args.json:
        screen.line(f"{model.card.name} at {model.card.base_url or 'this machine'}", bold=True)
    found = asyncio.run(probe(model, samples=args.samples, told=told))
    if shows:
        screen.erase()
    if args.json:
        _tell_json(screen, found)
    else:
        _tell(screen, found)
    screen.out.flush()
    return OK if found.error is None else tell(found.error, debug=debugging(args))


def _asked_for(args: argparse.Namespace, name: str) -> Model:
    if not args.at:
        if args.key:
            raise Wrong("--key goes with --at", hint="models that have a name read their own variable")
        if name.partition(":")[0] == "offline":
            raise Wrong("'offline' is no endpoint: rules, which know no model's tests", hint="onrecord models offline")
        try:
            return model_named(name)
        except ConfigurationError as error:
            if ":" in name:
                raise
            raise Wrong(str(error), hint=f"--at URL asks a server of your own; {error.hint}") from None
    key = os.environ.get(args.key, "") if args.key else None
    if key is not None and not key.strip():
        raise Wrong(f"the environment variable {args.key!r} is not set", hint="it is to hold the key")
    wire, _, model = name.partition(":")
    match wire:
        case "openai-responses":
            return openai_responses(model, base_url=args.at, api_key=key, provider="openai-responses-compatible")
        case "anthropic":
            return anthropic(model, base_url=args.at, api_key=key or _NO_KEY, provider="anthropic-compatible")
        case "google":
            return google(model, base_url=args.at, api_key=key or _NO_KEY)
    if wire in VENDORS and model:  # the vendor's dialect, and nothing of its key
        return vendor_model(wire, model, base_url=args.at, api_key=key or _NO_KEY)
    return openai_compatible(args.at, name.removeprefix("openai:"), api_key=key)


def _tell(screen: Screen, found: Probed) -> None:
    rows = [[finding.name, "yes" if finding.works else "no", finding.seen] for finding in found.findings]
    for line in table(rows) if rows else ():
        screen.line(f"  {line}")
    if found.error is not None:
        return
    screen.line()
    screen.line("its card", bold=True)
    for line in in_words(found.card):
        screen.line(f"  {line}")
    screen.line("  (images, audio, files, search and thinking are as assumed: they were not tried)", dim=True)


def _tell_json(screen: Screen, found: Probed) -> None:
    error = None if found.error is None else {"kind": found.error.kind, "told": str(found.error)}
    held = {"model": found.card.name, "found": found.findings, "json_with_tools": found.json_with_tools}
    screen.json(dumps(held | {"card": found.card, "error": error}))
