"""``onrecord models``: what can be used here, what each model can do, and what an endpoint really does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onrecord.cli.command import command
from onrecord.cli.failure import EXIT_CODES, OK, Wrong, meant

if TYPE_CHECKING:
    from onrecord.models.model import Model, ModelCard
    from onrecord.providers.openai_compatible import Available
    from onrecord.providers.probe import Probed

__all__ = ("declare",)

ABOUT = """\
Which models can be used on this machine, what is missing for the others (a variable, an extra, a server), and what they
can do. With a NAME, what that model can do, in words. Both read the environment and knock at the ports of local
servers, and send nothing.

With probe before the NAME its endpoint is asked: does it stream, call tools, keep to a schema, and do both at once?
That is about a dozen short calls, which are paid for as any others. It prints the card that follows."""

EPILOG = f"""\
A model is named provider:model, in Agent("...") or with onrecord chat --model.

In the table: schema is how typed output is asked for (native: enforced; json: JSON is enforced; prompt: asked for in
words), with tools is whether that goes beside tools, search is the provider's own, thinking how it is steered.

examples:
  onrecord models
  onrecord models openai:gpt-5-mini
  onrecord models probe ollama:qwen3
  onrecord models probe qwen3 --at http://localhost:9000/v1 --key MY_SERVER_KEY

{EXIT_CODES}"""

USAGE = "onrecord models [-h] [--debug] [--json] [[probe] NAME] [--samples N] [--at URL] [--key VARIABLE]"


def declare(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Adds the command to the parser."""
    short = "what can be used here, what it can do, and what is missing"
    parser = command(commands, shared, "models", short=short, about=ABOUT, epilog=EPILOG)
    parser.usage = USAGE
    parser.add_argument("names", nargs="*", metavar="NAME", help="a model, such as openai:gpt-5-mini")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--samples", type=_count, default=3, metavar="N", help="probe: tools with schema so often (3)")
    parser.add_argument("--at", metavar="URL", help="probe: NAME is a model of the compatible server at this address")
    parser.add_argument("--key", metavar="VARIABLE", help="probe --at: the environment variable with its key")
    parser.set_defaults(run=run, parser=parser)


def _count(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= number <= 20:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 20")
    return number


def run(args: argparse.Namespace) -> int:
    """Prints what was asked for."""
    names: Sequence[str] = args.names
    if names[:1] == ["probe"]:
        if len(names) != 2:
            raise Wrong("probe takes one model", hint="such as onrecord models probe ollama:qwen3")
        return _probe(args, names[1])
    if args.at or args.key:
        raise Wrong("--at and --key go with probe", hint="such as onrecord models probe NAME --at URL")
    if len(names) > 1:
        raise Wrong(f"one model at a time, not {len(names)}", hint=meant(names[0], ["probe"], otherwise="name one"))
    return _one(args, names[0]) if names else _all(args)


# ---- all ----------------------------------------------------------------------------------------------------------


def _all(args: argparse.Namespace) -> int:
    from onrecord.cli.model_cards import HEADINGS, abilities, in_columns, table
    from onrecord.cli.terminal import Screen, wide_enough
    from onrecord.cli.usable import example, found_here
    from onrecord.jsonio import dumps

    screen, rows = Screen(), sorted(found_here(), key=lambda row: not row.usable)
    cards = {row.name: _card_of(row) for row in rows}
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


def _card_of(row: Available) -> ModelCard | None:
    """What a provider's models can do, as far as it can be said without naming one."""
    from onrecord.cli.usable import example
    from onrecord.errors import ConfigurationError
    from onrecord.models.names import model_named

    try:
        return model_named(example(row.name)).card
    except ConfigurationError:
        pass
    from onrecord.providers.openai_compatible import VENDORS

    vendor = VENDORS.get(row.name)  # a customer's endpoint is missing; its models are known all the same
    return None if vendor is None else vendor.card


# ---- one ----------------------------------------------------------------------------------------------------------


def _one(args: argparse.Namespace, name: str) -> int:
    from onrecord.cli.model_cards import in_words
    from onrecord.cli.terminal import Screen
    from onrecord.cli.usable import found_here
    from onrecord.jsonio import dumps
    from onrecord.models.names import model_named

    card, screen = model_named(name).card, Screen()
    row = next((row for row in found_here() if row.name == card.provider), None)
    if args.json:
        about = {} if row is None else {"usable": row.usable, "why": row.why}
        screen.json(dumps({"model": card.name} | about | {"card": card}))
        return OK
    screen.line(card.name, bold=True)
    for line in in_words(card):
        screen.line(f"  {line}")
    if row is not None:
        screen.line(f"  {'ready' if row.usable else 'missing'}: {row.why}", dim=not row.usable)
    return OK


# ---- a real endpoint ----------------------------------------------------------------------------------------------


def _probe(args: argparse.Namespace, name: str) -> int:
    import asyncio

    from onrecord.cli.failure import debugging, tell
    from onrecord.cli.terminal import Screen
    from onrecord.providers.probe import probe

    model, screen = _asked_for(args, name), Screen()
    where = model.card.base_url or "this machine"

    def told(what: str) -> None:
        if screen.live and not args.json:
            screen.erase()
            screen.write(f"  asking: {what} ...", dim=True)

    if not args.json:
        screen.line(f"{model.card.name} at {where}", bold=True)
    found = asyncio.run(probe(model, samples=args.samples, told=told))
    if screen.live and not args.json:
        screen.erase()
    if args.json:
        _told_json(screen, found)
    else:
        _told(screen, found)
    screen.out.flush()
    return OK if found.error is None else tell(found.error, debug=debugging(args))


def _asked_for(args: argparse.Namespace, name: str) -> Model:
    import os

    from onrecord.models.names import model_named

    if not args.at:
        if args.key:
            raise Wrong("--key goes with --at", hint="models that have a name read their own variable")
        return model_named(name)
    from onrecord.providers.openai_compatible import openai_compatible

    key = os.environ.get(args.key, "") if args.key else None
    if key is not None and not key.strip():
        raise Wrong(f"the environment variable {args.key!r} is not set", hint="it is to hold the key")
    return openai_compatible(args.at, name, api_key=key)


def _told(screen: Any, found: Probed) -> None:
    from onrecord.cli.model_cards import in_words, table

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


def _told_json(screen: Any, found: Probed) -> None:
    from onrecord.jsonio import dumps

    error = None if found.error is None else {"kind": found.error.kind, "told": str(found.error)}
    held = {"model": found.card.name, "found": found.findings, "json_with_tools": found.json_with_tools}
    screen.json(dumps(held | {"card": found.card, "error": error}))
