"""Conditions: an application's own functions that say yes or no, such as ``only_if``. They answer at once."""

from __future__ import annotations

import inspect

from onrecord.errors import ConfigurationError

__all__ = ("check_condition", "is_async", "says_yes")


def is_async(function: object) -> bool:
    """Whether what a function gives has to be awaited, as far as its declaration tells."""
    called = type(function).__call__ if callable(function) else None  # of an object with a method for being called
    inner = getattr(function, "func", function)  # of a functools.partial
    return any(inspect.iscoroutinefunction(one) for one in (function, inner, called))


def check_condition(
    function: object,
    where: str,
    *,
    hint: str = "write a plain function; look things up before the turn",
    error: type[ConfigurationError] = ConfigurationError,
) -> None:
    """ConfigurationError for what is no function, and for an async one: whatever it would say, its promise is true.

    None is no condition, and passes.
    """
    if function is None:
        return
    if isinstance(function, type) and function is not bool:
        raise error(f"{where} is the class {function.__name__}: whatever it makes counts as yes", hint=hint)
    if not callable(function):
        raise error(f"{where} is a {type(function).__name__}, and no function", hint=hint)
    if is_async(function):
        raise error(f"{where} is async, and nobody waits for it", hint=hint)


def says_yes(said: object) -> bool:
    """What a condition said. TypeError for a promise, which is no answer, though it counts as true."""
    if inspect.isawaitable(said):
        if inspect.iscoroutine(said):
            said.close()
        raise TypeError("a condition answers at once: this one has to be awaited")
    return bool(said)
