"""Types as data: whether a value fits an annotation, what the annotation says in words, and what would help."""

from __future__ import annotations

import builtins
import inspect
import sys
import types
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    ItemsView,
    Iterable,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Generic, Literal, TypeVarTuple, Union, get_args, get_origin

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from onrecord.conditions import is_async

__all__ = ("Fit", "fit_of", "names_of")

_SIMPLE: Mapping[object, tuple[tuple[type, ...], str]] = {
    str: ((str,), "text"),
    bytes: ((bytes,), "bytes"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "True or False"),
    None: ((type(None),), "None"),
    type(None): ((type(None),), "None"),
}
_ELEMENTS = (list, tuple, set, frozenset)
_LASTING = (Sequence, AbstractSet, KeysView, ValuesView, ItemsView, Mapping)
"""What can be read more than once, so that its elements can be looked at."""

_AWAITED = (Awaitable, Coroutine)


Ts = TypeVarTuple("Ts")


class _Unknown(Generic[*Ts]):
    """Stands for a type that is imported for type checkers alone, with whatever is written in its brackets."""


_SAYS_NOTHING = (Any, object, _Unknown)


class Fit(Struct, frozen=True):
    """What an annotation takes. ``words`` says it, ``takes(value)`` whether a value fits."""

    words: str
    takes: Callable[[object], bool]
    is_list: bool = False
    is_function: bool = False
    kinds: tuple[type, ...] = ()
    arguments: int | None = None  # of a function: how many it is called with

    def told(self, value: object) -> str:
        """What was given, without quoting it."""
        if isinstance(value, type):
            return f"the class {value.__name__}"
        if self._takes_others(value):
            return "one that takes others"
        if self.is_function and callable(value):
            return "an async function"
        if self.is_list and isinstance(value, _ELEMENTS):
            found = sorted({_name(item) for item in value})
            if found == ["function"]:
                return "one with others"
            return f"one with {' and '.join(found)}" if found else "an empty one"
        return "an empty text" if value == "" and isinstance(value, str) else _name(value)

    def _takes_others(self, value: object) -> bool:
        return callable(value) and self.arguments is not None and not called_with(value, self.arguments)

    def hint(self, name: str, value: object) -> str:
        """What to write instead; empty where only the whole call can say it."""
        if not isinstance(value, type) and self._takes_others(value):
            return ""
        if self.is_function and callable(value) and not isinstance(value, type):
            return "it is asked at once, and nobody waits for it: write a plain function"
        if isinstance(value, type) and any(issubclass(value, kind) for kind in self.kinds):
            return f"write {name}={value.__name__}(...): a class is not yet one"
        if self.is_list and not isinstance(value, (*_ELEMENTS, Mapping)):
            return f"write {name}=[...], also for a single one"
        return ""


def called_with(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments, as far as its declaration tells."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Python's own functions need not say it
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def _is_endless(value: object) -> bool:
    """Whether it is a whole number that no record and no store can hold; Python may even refuse to write it."""
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def _name(value: object) -> str:
    if _is_endless(value):
        return "one of more than 64 bits"
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _all(value: object) -> bool:
    return True


ANYTHING = Fit("anything", _all)


def fit_of(hint: Any) -> Fit:
    """What an annotation takes. One that says nothing, or that nobody can read here, takes all."""
    if hint in _SIMPLE:
        allowed, words = _SIMPLE[hint]
        counts = hint in (int, float)
        return Fit(words, lambda v: isinstance(v, allowed) and not (counts and (isinstance(v, bool) or _is_endless(v))))
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return fit_of(args[0])
    if origin in (Union, types.UnionType):
        return _union([fit_of(part) for part in args])
    plain = origin or hint
    if plain in (Callable, Literal):
        return _function(args) if plain is Callable else _words(args)
    if not isinstance(plain, type) or plain in _SAYS_NOTHING:
        return ANYTHING
    if plain is type or issubclass(plain, Mapping):
        return _mapping(args) if plain is not type else _class(args)
    if (issubclass(plain, Iterable) and issubclass(plain, (*_ELEMENTS, Collection))) or plain is Iterable:
        return _collection(plain, args)
    return _instance(plain)


def _union(parts: list[Fit]) -> Fit:
    if ANYTHING in parts:
        return ANYTHING
    said = [part for part in parts if part.words != "None"] + [part for part in parts if part.words == "None"]
    return Fit(
        " or ".join(dict.fromkeys(part.words for part in said if part.kinds != (UnsetType,))),
        lambda value: any(part.takes(value) for part in parts),
        is_list=any(part.is_list for part in parts), is_function=any(part.is_function for part in parts),
        kinds=tuple(kind for part in parts for kind in part.kinds),
        arguments=next((part.arguments for part in parts if part.arguments is not None), None),
    )  # fmt: skip


def _words(args: tuple[Any, ...]) -> Fit:
    return Fit(" or ".join(map(repr, args)), lambda value: any(type(value) is type(a) and value == a for a in args))


def _function(args: tuple[Any, ...]) -> Fit:
    """A function, and a plain one where it gives neither a promise nor just anything."""
    given = args[-1] if args else Any
    parts = get_args(given) if get_origin(given) in (Union, types.UnionType) else (given,)
    is_plain = not any(part in _SAYS_NOTHING or (get_origin(part) or part) in _AWAITED for part in parts)
    is_plain = is_plain and all(fit_of(part) is not ANYTHING for part in parts)
    count = len(args[0]) if len(args) > 1 and isinstance(args[0], (list, tuple)) else None
    of = "" if count is None else f" of {_COUNTS.get(count, count)}"

    def takes(value: object) -> bool:
        return callable(value) and (count is None or isinstance(value, type) or called_with(value, count))

    if not is_plain:
        return Fit(f"a function{of}", takes, arguments=count)
    if bool in parts:
        said = Fit(f"a plain function{of}", lambda value: _answers(value) and takes(value), is_function=True)
    else:
        said = Fit(f"a plain function{of}", lambda value: takes(value) and not is_async(value), is_function=True)
    return replace(said, arguments=count)


_COUNTS = {0: "no argument", 1: "one argument", 2: "two arguments", 3: "three arguments"}


def _answers(value: object) -> bool:
    """Whether it can say yes or no: whatever another class makes would count as yes, and so would a promise."""
    return value is bool or (callable(value) and not isinstance(value, type) and not is_async(value))


def _class(args: tuple[Any, ...]) -> Fit:
    if not args or not isinstance(args[0], type) or args[0] in _SAYS_NOTHING:
        return ANYTHING  # a type of any form, such as list[int]
    kind = args[0]
    return Fit(f"a class of {kind.__name__}", lambda value: isinstance(value, type) and issubclass(value, kind))


def _mapping(args: tuple[Any, ...]) -> Fit:
    keys, values = (fit_of(arg) for arg in args) if len(args) == 2 else (ANYTHING, ANYTHING)
    words = "a dict" if values is ANYTHING else f"a dict with {_plural(values)} as values"

    def takes(value: object) -> bool:
        if not isinstance(value, Mapping):
            return False
        return all(keys.takes(key) and values.takes(held) for key, held in value.items())

    return Fit(words, takes)


def _collection(plain: type, args: tuple[Any, ...]) -> Fit:
    if plain in (str, bytes) or (issubclass(plain, tuple) and args and args[-1] is not ...):
        return _instance(plain) if not args else ANYTHING
    item = fit_of(args[0]) if args else ANYTHING
    allowed: type = Iterable if plain is Iterable else Collection

    def takes(value: object) -> bool:
        if isinstance(value, (str, bytes, type)) or not isinstance(value, allowed):
            return False
        if isinstance(value, Mapping) and plain not in (Iterable, Collection):
            return False
        return item is ANYTHING or not isinstance(value, _LASTING) or all(map(item.takes, value))

    return Fit("a list" if item is ANYTHING else f"a list of {_plural(item)}", takes, is_list=True)


def _plural(fit: Fit) -> str:
    return fit.words.removeprefix("an ").removeprefix("a ")


def _instance(kind: type) -> Fit:
    words = f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}"
    if getattr(kind, "_is_protocol", False):
        return _shaped(words, _members(kind))
    return Fit(words, lambda value: isinstance(value, kind), kinds=(kind,))


def _shaped(words: str, needed: tuple[str, ...]) -> Fit:
    """An object with the shape of a port. A part of it does: more than that is found out where it is used."""
    plain = (type, str, bytes, int, float, Mapping, *_ELEMENTS)
    return Fit(words, lambda value: not isinstance(value, plain) and any(hasattr(value, name) for name in needed))


def _members(protocol: type) -> tuple[str, ...]:
    """What an object of this shape has."""
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False) and base.__module__ != "typing"]
    named = {name for base in bases for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return tuple(name for name in named if name == "__call__" or not name.startswith("_"))


class _Names(dict[str, Any]):
    """The names of a module, for reading its annotations."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, _Unknown)


def names_of(declares: Any) -> Mapping[str, Any]:
    """The annotations that a class or a function has itself, read; none where one of them cannot be."""
    module = sys.modules.get(getattr(declares, "__module__", ""), None)
    known = _Names(vars(module)) if module is not None else _Names()
    try:
        return inspect.get_annotations(declares, locals=known, eval_str=True)
    except (AttributeError, NameError, SyntaxError, TypeError):
        # A class of an application may be annotated with what only its type checker understands. It works all the
        # same, so its arguments pass unchecked.
        return {}
