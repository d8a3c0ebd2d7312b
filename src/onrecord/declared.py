"""What applications declare is checked against the types it is declared with: a wrong value is named, with a hint.

`Declared` is the metaclass of structs, `declared` is for functions and classes. A class says first, in its own words,
what it does not take; these find out what is left, and why something raised. No value is ever quoted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import NODEFAULT, Struct, StructMeta

from onrecord.declared_types import Fit, fit_of, names_of
from onrecord.errors import ConfigurationError, OnrecordError

__all__ = ("Declared", "declared")

F = TypeVar("F", bound=Callable[..., Any])


class _Call(Struct, frozen=True):
    """How something is made: its arguments in order, how many may come without a name, which must come, their types."""

    owner: str
    names: tuple[str, ...]
    positional: int
    required: frozenset[str]
    fits: Mapping[str, Fit]
    any_name: bool = False
    more: Fit | None = None  # of any further arguments without a name
    example: str = ""

    def given(self, args: Sequence[Any], named: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """The arguments that were given, by name."""
        yield from zip(self.names[: self.positional], args, strict=False)
        yield from named.items()

    def check(self, args: Sequence[Any], named: Mapping[str, Any], cause: Exception | None) -> None:
        """ConfigurationError for an argument that does not fit; where something raised, for a call that does not."""
        if isinstance(cause, TypeError):
            self._check_names(args, named)
        for name, fit, value in (
            *((f"{name}=", self.fits.get(name), value) for name, value in self.given(args, named)),
            *(("each", self.more, value) for value in args[self.positional :]),
        ):
            if fit is not None and not fit.takes(value):
                raise ConfigurationError(
                    f"{name} of {self.owner} is {fit.words}, not {fit.told(value)}",
                    hint=fit.hint(name.rstrip("="), value) or self._shown(),
                ) from cause

    def _check_names(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        for name in named:
            if name not in self.names and not self.any_name:
                from difflib import get_close_matches  # every agent imports this module, and few mistype a name

                near = get_close_matches(name, self.names, 1, 0.7)
                raise ConfigurationError(
                    f"{self.owner} has no argument {name!r}",
                    hint=f"did you mean {near[0]}=?" if near else self._shown(),
                ) from None
        if len(args) > self.positional and self.more is None:
            first = "no argument" if not self.positional else f"only {' and '.join(self.names[: self.positional])}"
            raise ConfigurationError(f"{self.owner} takes {first} without a name", hint=self._shown()) from None
        missing = self.required - {name for name, _ in self.given(args, named)}
        if missing:
            names = " and ".join(f"{name}=" for name in self.names if name in missing)
            raise ConfigurationError(f"{self.owner} needs {names}", hint=self._shown()) from None

    def _shown(self) -> str:
        """How it is written, for a hint."""
        if self.example:
            return self.example
        first, more = self.names[: self.positional], [f"{name}=" for name in self.names[self.positional :]]
        return f"{self.owner}({', '.join((*first, *more))})"


class Declared(StructMeta):
    """The metaclass of a struct that an application declares. ConfigurationError for what it does not take."""

    if not TYPE_CHECKING:  # for a type checker a struct is called as its fields say

        def __call__(self, *args, **named):
            """The struct, made and checked."""
            with _checked(_struct, self, args, named):
                return super().__call__(*args, **named)


def declared(made: F) -> F:
    """The function, or the class, with its arguments checked each time. ConfigurationError names a wrong one."""
    if isinstance(made, type):
        type.__setattr__(made, "__init__", _wrapped(vars(made)["__init__"], made))
        return made
    return _wrapped(made, made)


def _wrapped(function: F, owner: Callable[..., Any]) -> F:
    skip = 1 if isinstance(owner, type) or next(iter(inspect.signature(function).parameters), "") == "cls" else 0

    @wraps(function)
    async def later(*args: Any, **named: Any) -> Any:
        with _checked(_function, (function, owner), args[skip:], named):
            return await function(*args, **named)

    @wraps(function)
    def now(*args: Any, **named: Any) -> Any:
        with _checked(_function, (function, owner), args[skip:], named):
            return function(*args, **named)

    return cast(F, later if inspect.iscoroutinefunction(function) else now)


@contextmanager
def _checked(
    call: Callable[[Any], _Call], what: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> Iterator[None]:
    """Around the making: own words of the class come first, then types; what is left is raised as it is."""
    try:
        yield
    except OnrecordError:
        raise
    except Exception as error:
        call(what).check(args, named, error)
        raise
    call(what).check(args, named, None)


@cache
def _struct(cls: type[Struct]) -> _Call:
    names, defaults = cls.__struct_fields__, cls.__struct_defaults__
    optional = names[len(names) - len(defaults) :]
    return _Call(
        owner=cls.__name__, names=names, positional=len(cls.__match_args__),
        required=frozenset(names[: len(names) - len(defaults)]).union(
            name for name, default in zip(optional, defaults, strict=True) if default is NODEFAULT
        ),
        fits={name: fit_of(hint) for base in reversed(cls.__mro__) for name, hint in names_of(base).items()},
        example=getattr(cls, "_example", ""),
    )  # fmt: skip


@cache
def _function(made: tuple[Callable[..., Any], Callable[..., Any]]) -> _Call:
    function, owner = made
    kinds = inspect.Parameter
    parameters = [*inspect.signature(function).parameters.values()]
    if isinstance(owner, type) or parameters[0].name == "cls":
        del parameters[0]
    own, hints = [p for p in parameters if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)], names_of(function)
    return _Call(
        owner=owner.__name__ if isinstance(owner, type) else function.__qualname__,
        names=tuple(p.name for p in own),
        positional=sum(p.kind is not kinds.KEYWORD_ONLY for p in own),
        required=frozenset(p.name for p in own if p.default is kinds.empty),
        fits={p.name: fit_of(hints[p.name]) for p in own if p.name in hints},
        any_name=any(p.kind is kinds.VAR_KEYWORD for p in parameters),
        more=next((fit_of(hints[p.name]) for p in parameters if p.kind is kinds.VAR_POSITIONAL), None),
        example=getattr(owner, "_example", ""),
    )  # fmt: skip
