"""Which providers can be used on this machine, and what each of the others needs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from onrecord.providers.api_keys import Key
from onrecord.providers.openai_compatible import Available, available

__all__ = ("found_here",)


def found_here() -> Iterator[Available]:
    """Every provider that a model name can begin with."""
    yield Available("offline", usable=True, why="a rule-based stand-in, no language model: for first steps and tests")
    yield from available()
    has_key = Key(variable="ANTHROPIC_API_KEY").read() is not None
    told = "ANTHROPIC_API_KEY is set" if has_key else "set ANTHROPIC_API_KEY"
    yield Available("anthropic", usable=has_key, why=told)
    if find_spec("xllamacpp") is None:
        yield Available("local", usable=False, why='pip install "onrecord[local]", then name a GGUF file')
    else:
        yield Available("local", usable=True, why="runs a GGUF file of yours through llama.cpp")
