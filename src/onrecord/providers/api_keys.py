"""What a request to a provider is signed with: keys that nothing shows, and headers by name in any case."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from onrecord.errors import ConfigurationError, ModelError

__all__ = ("Key", "merged_headers", "signed")

_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


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


def signed(headers: Mapping[str, str], key: Key, *, name: str, prefix: str, provider: str) -> dict[str, str]:
    """The headers of one request; with the key as the header ``name``, unless they bring an authorization of their own.

    ModelError (``auth``) where a key is needed and there is none, ``invalid`` for a header that cannot be sent.
    """
    held = dict(headers)
    if {given.lower() for given in held}.isdisjoint({name.lower(), "authorization"}):
        if (secret := key.read()) is not None:
            held[name] = prefix + secret
        elif key.needed:
            raise ModelError(
                f"{provider} needs an API key and there is none", kind="auth", provider=provider, hint=key.hint
            )
    # Found here, since an exception of whoever encodes it would hold the whole value.
    if odd := next((given for given, value in held.items() if _UNSENDABLE.search(value)), None):
        raise ModelError(
            f"{provider} cannot be asked: the header {odd!r} holds a character that it must not",
            kind="invalid",
            provider=provider,
            hint="look for a line break in the key and the headers",
        )
    return held
