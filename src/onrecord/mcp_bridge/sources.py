"""Where a server is: a program that is started here, or an address."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, structs

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError
from onrecord.tools.toolset import OfferContext

__all__ = ("Http", "Stdio", "given", "secrets_of")

Given = Mapping[str, str] | Callable[[OfferContext], Mapping[str, str] | Awaitable[Mapping[str, str]]] | None
"""Names and values, or a function of the session that they are for, sync or async."""

SHORTEST = 8
"""A secret with fewer characters is not looked for in results: too much would be taken for it."""
_secret_name = re.compile(r"key|token|secret|password|passwd|credential|auth|cookie", re.IGNORECASE).search


class Stdio(Struct, frozen=True, metaclass=Declared):
    """A program that is started here and spoken to over its input and output: ``Stdio(("uvx", "git-tools"))``.

    ``env`` adds to the few variables that it inherits (``PATH``, ``HOME`` and the like); a function is asked each time
    it is started. What it writes to its error output is shown where this process writes its own, unless ``quiet``.
    ConfigurationError for a command that is none.
    """

    command: tuple[str, ...]
    env: Given = None
    cwd: str | None = None
    quiet: bool = False

    def __post_init__(self) -> None:
        told: object = self.command
        if not isinstance(told, (tuple, list)) or not told or not all(isinstance(e, str) and e for e in told):
            raise ConfigurationError(
                "the command of a server is its program and arguments", hint='Stdio(("python", "server.py"))'
            )
        structs.force_setattr(self, "command", tuple(self.command))
        _check_given("env", self.env)

    def __repr__(self) -> str:
        return f"Stdio({self.command[0]!r}, {len(self.command) - 1} arguments)"


class Http(Struct, frozen=True, metaclass=Declared):
    """A server at an address: ``Http("https://tools.example.com/mcp", headers=...)``.

    ``headers`` go with every request, to this address alone; a function is asked before each request, so that a token
    may be renewed. ConfigurationError for an address that is none, or that holds a user or a password.
    """

    url: str
    headers: Given = None

    def __post_init__(self) -> None:
        told: object = self.url
        parts = urlsplit(told) if isinstance(told, str) else None
        if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigurationError(
                "the address of a server begins with http:// or https://", hint='Http("https://example.com/mcp")'
            )
        if parts.username is not None or parts.password is not None:
            raise ConfigurationError(
                "the address of a server holds a user or password", hint="give it in headers=, which nothing shows"
            )
        _check_given("headers", self.headers)

    def __repr__(self) -> str:
        return f"Http({self.shown!r})"

    @property
    def shown(self) -> str:
        """The address without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _check_given(name: str, value: object) -> None:
    if value is not None and not callable(value) and not isinstance(value, Mapping):
        raise ConfigurationError(f"{name}= of a server are names and values, or a function that returns them")


async def given(source: Given, ctx: OfferContext) -> dict[str, str]:
    """Names and values for this session. What the function raises goes through; ConfigurationError for other things."""
    got: Any = source(ctx) if callable(source) else source
    if inspect.isawaitable(got):
        got = await got
    if got is None:
        return {}
    if not isinstance(got, Mapping) or not all(isinstance(e, str) for pair in got.items() for e in pair):
        raise ConfigurationError(
            "headers and variables of a server are texts by name", hint='return {"Authorization": f"Bearer {token}"}'
        )
    return dict(got)


def secrets_of(values: Mapping[str, str], *, all_of_them: bool) -> tuple[str, ...]:
    """What of these values must not be repeated: the last word of each, which is the token of ``Bearer token``."""
    found = [
        value.split()[-1] for name, value in values.items() if value.split() and (all_of_them or _secret_name(name))
    ]
    return tuple(sorted({each for each in found if len(each) >= SHORTEST}, key=len, reverse=True))
