"""Conditions: an application's own functions that say yes or no about a skill or a way. They answer at once."""

from __future__ import annotations

import inspect

from onrecord.errors import ConfigurationError

__all__ = ("check_condition", "says_yes")


def check_condition(function: object, where: str) -> None:
    """ConfigurationError for what is no function, and for an async one: whatever it would say, its promise is true."""
    if function is None:
        return
    called = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself is looked at, not whether it is
    if not callable(function):
        raise ConfigurationError(f"{where} is a {type(function).__name__}, and no function")
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        raise ConfigurationError(
            f"{where} is async, and nobody waits for it", hint="write a plain function; look things up before the turn"
        )


def says_yes(said: object) -> bool:
    """What a condition said. TypeError for a promise, which is no answer, though it counts as true."""
    if inspect.isawaitable(said):
        if inspect.iscoroutine(said):
            said.close()
        raise TypeError("a condition answers at once: this one has to be awaited")
    return bool(said)
