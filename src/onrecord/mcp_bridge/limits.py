"""Limits: how much a server may say, to the model and at all."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import fields

from onrecord.declared import Declared
from onrecord.errors import check_count

__all__ = ("Limits",)


class Limits(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """How much of a server reaches the model, and how much is read of it at all.

    ``tools`` are offered at most; a description has ``description`` characters, an input schema ``schema`` bytes of
    JSON; ``listing`` is the characters of all descriptions and schemas together. A result has ``result`` characters of
    text and ``parts`` pieces; a picture or sound has ``media`` bytes. ``message`` is the bytes of one message of the
    server: a longer one ends the connection. ConfigurationError for a limit below 1.
    """

    tools: int = 128
    description: int = 4_000
    schema: int = 32_000
    listing: int = 256_000
    result: int = 100_000
    parts: int = 32
    media: int = 5_000_000
    message: int = 16_000_000

    def __post_init__(self) -> None:
        for each in fields(self):
            check_count("Limits", each.name, getattr(self, each.name))
