"""What a request to a provider is signed with: keys that nothing shows, and headers by name in any case."""

from __future__ import annotations

import os
from collections.abc import Mapping

from onrecord.errors import ConfigurationError

__all__ = ("Key", "merged_headers")


class Key:
    """Where an API key comes from: given, or an environment variable that is read at each call.

    Never shown: not by repr, not in an error, not in a pickle. Raises ConfigurationError for a given key that is empty:
    it would be refused at each call, and mostly stems from a variable that is not set.
    """

    __slots__ = ("_given", "needed", "variable")

    def __init__(self, given: str | None = None, *, variable: str = "", needed: bool = False) -> None:
        if given is not None and not given.strip():
            raise ConfigurationError(
                "api_key= is empty",
                hint="leave it out, and the key is read from the environment where the provider has a variable for it",
            )
        self._given, self.variable, self.needed = given, variable, needed

    def read(self) -> str | None:
        """The key without blanks around it, as files and shells leave them, or None where there is none."""
        return (self._given or (os.environ.get(self.variable) if self.variable else None) or "").strip() or None

    @property
    def hint(self) -> str:
        """What to do about a key that is missing or refused."""
        if self.read() is None:
            return f"set the environment variable {self.variable}" if self.variable else "pass api_key="
        where = "given as api_key=" if self._given else f"in the environment variable {self.variable}"
        return f"the key {where} was refused: check it, and that it belongs to this endpoint"

    def __repr__(self) -> str:
        return f"Key({self.variable or ('given' if self._given else 'none')})"

    def __reduce__(self) -> str:
        raise TypeError("a key is not written down")


def merged_headers(held: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Headers by name in any case, the later winning; authorization is spelled ``Authorization``, once."""
    named: dict[str, tuple[str, str]] = {}
    for name, value in (*held.items(), *own.items()):
        low = name.lower()
        named[low] = ("Authorization" if low == "authorization" else name, value)
    return dict(named.values())
