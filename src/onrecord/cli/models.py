"""``onrecord models``: what can be used here, what each model can do, and what an endpoint really does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from onrecord.cli.command import command
from onrecord.cli.failure import EXIT_CODES, Wrong, meant

__all__ = ("declare",)

ABOUT = """\
Which models can be used on this machine, what is missing for the others (a variable, an extra, a server), and what they
can do. With a NAME, what that model can do and what its wire refuses, in words. Both read the environment and knock at
the ports of local servers, and send nothing.

With probe before the NAME its endpoint is asked: does it stream, call tools, keep to a schema, and do both at once?
That is about a dozen short calls, which are paid for as any others. It prints the card that follows. With --at another
server is asked, over the protocol that NAME begins with (openai-responses:, anthropic: or google:), else over Chat
Completions, in the dialect of a vendor whose name it begins with; no key is sent there but that of --key."""

EPILOG = f"""\
A model is named provider:model, in Agent("...") or with onrecord chat --model.

In the table: schema is how typed output is asked for (native: enforced; json: JSON is enforced; prompt: asked for in
words), with tools is whether that goes beside tools, search is the provider's own, thinking how it is steered.

examples:
  onrecord models
  onrecord models openai:gpt-5-mini
  onrecord models probe ollama:qwen3
  onrecord models probe qwen3 --at http://localhost:9000/v1 --key MY_SERVER_KEY
  onrecord models probe anthropic:qwen3 --at http://localhost:9000

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
    parser.add_argument("--at", metavar="URL", help="probe: NAME is a model of the server at this address")
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
        from onrecord.cli.probing import probe_one

        return probe_one(args, names[1])
    if args.at or args.key:
        raise Wrong("--at and --key go with probe", hint="such as onrecord models probe NAME --at URL")
    if len(names) > 1:
        raise Wrong(f"one model at a time, not {len(names)}", hint=meant(names[0], ["probe"], otherwise="name one"))
    from onrecord.cli.model_list import list_all, tell_one

    return tell_one(args, names[0]) if names else list_all(args)
