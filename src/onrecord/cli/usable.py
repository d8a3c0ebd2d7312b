"""Which providers can be used on this machine, and what each of the others needs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from onrecord.providers.google.client import key_of
from onrecord.providers.openai_compatible import Available, available

__all__ = ("found_here",)


def found_here() -> Iterator[Available]:
    """Every provider that a model name can begin with."""
    yield Available("offline", usable=True, why="a rule-based stand-in, no language model: for first steps and tests")
    yield from available()
    key = key_of()
    yield Available("google", usable=key.read() is not None, why=f"{key.variable} is set" if key.read() else key.hint)
    if find_spec("xllamacpp") is None:
        yield Available("local", usable=False, why='pip install "onrecord[local]", then name a GGUF file')
    else:
        yield Available("local", usable=True, why="runs a GGUF file of yours through llama.cpp")
