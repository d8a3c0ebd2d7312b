"""Phrases: what a model compares a message with, and what it must not count."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

__all__ = ("Phrases", "phrases")


class Phrases(Struct, frozen=True):
    """``counts`` are alternatives, ``excludes`` overrule them. Each is a template."""

    counts: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()


def phrases(written: Sequence[str]) -> Phrases:
    """Sorts what an author wrote: a phrase whose first visible character is ``!`` excludes; blank ones are dropped."""
    counts, excludes = list[str](), list[str]()
    for phrase in written:
        text = phrase.strip()
        kept, text = (excludes, text[1:].strip()) if text.startswith("!") else (counts, text)
        if text:
            kept.append(text)
    return Phrases(tuple(counts), tuple(excludes))
