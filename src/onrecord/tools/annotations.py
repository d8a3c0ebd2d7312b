"""From a type annotation to its `Form`: schema and reading, for every type that a tool or an answer may use."""

from __future__ import annotations

import typing
from collections import abc, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union

from msgspec import Struct, UnsetType

from onrecord.jsonio import Json
from onrecord.tools.forms import Form, Read, Unfit, Unsupported, inside, reader, shown_name
from onrecord.tools.issues import Issue
from onrecord.tools.leaves import ANYTHING, constrained, enumerated, leaf, of_enum
from onrecord.tools.problems import compiled

__all__ = ("Forms",)

_WRAPPERS = frozenset({"Required", "NotRequired", "ReadOnly", "Final", "ClassVar"})
_ARRAYS: Mapping[object, Callable[[Any], Any]] = {
    list: list,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    abc.Iterable: list,
    deque: deque,
    set: set,
    abc.Set: set,
    abc.MutableSet: set,
    frozenset: frozenset,
}
_MAPPINGS = frozenset({dict, abc.Mapping, abc.MutableMapping})
_WHOLE_NUMBER = "^-?(0|[1-9][0-9]*)$"


class _Open(Struct):
    """A definition that is being read: met again inside itself, it becomes one that is referred to."""

    name: str
    recursive: bool = False
    form: Form = ANYTHING

    def read(self, value: Json) -> Any:
        return reader(self.form)(value)


class Forms:
    """The forms of one declaration: what is recursive is defined once in ``definitions``, everything else inlined.

    ``scope`` holds the names that annotations written as text may use beside those of their module; ``defaults`` says
    whether schemas show default values.
    """

    def __init__(self, scope: Mapping[str, Any], *, defaults: bool = True) -> None:
        self.scope, self.defaults = scope, defaults
        self.definitions: dict[str, Json] = {}
        self._open: dict[object, _Open] = {}

    def of(self, kind: Any) -> Form:
        """The form of one annotation. Raises Unsupported."""
        if kind is None or kind is Any or kind is object:
            return leaf(NoneType) if kind is None else ANYTHING
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            return self._annotated(kind, arguments[0], kind.__metadata__)
        if origin is Union or origin is UnionType:
            return self._union([option for option in arguments if option is not UnsetType])
        if origin is Literal:
            return enumerated([(choice.value if isinstance(choice, Enum) else choice, choice) for choice in arguments])
        if getattr(origin, "_name", "") in _WRAPPERS:
            return self.of(arguments[0])
        if origin is not None:
            return self._class(origin, arguments, kind) if isinstance(origin, type) else self._alias(origin, kind)
        return self._class(kind, (), kind) if isinstance(kind, type) else self._alias(kind, kind)

    def closed(self, schema: Mapping[str, Json]) -> dict[str, Json]:
        """A whole schema with the definitions it refers to."""
        return {**schema, "$defs": self.definitions} if self.definitions else dict(schema)

    def define(self, name: str, schema: Json) -> str:
        """Adds a definition and returns the name it got."""
        free = self._free(name)
        self.definitions[free] = schema
        return free

    def named(self, key: object, name: str, build: Callable[[], Form]) -> Form:
        """The form that ``build`` makes, or a reference to it where it contains itself."""
        known = self._open.get(key)
        if known is not None:
            known.recursive = True
            # Whether it is fallible is not known yet; taken as such, a refusal inside it is told with its place.
            return Form({"$ref": f"#/$defs/{known.name}"}, known.read, fallible=True)
        entry = self._open[key] = _Open(self._free(name))
        entry.form = form = build()
        if not entry.recursive:
            del self._open[key]
            return form
        self.definitions[entry.name] = form.schema
        return Form({"$ref": f"#/$defs/{entry.name}"}, form.read, form.fallible)

    def _free(self, name: str) -> str:
        taken = self.definitions.keys() | {entry.name for entry in self._open.values()}
        return next(free for free in _numbered(name) if free not in taken)

    def _alias(self, kind: Any, whole: Any) -> Form:
        if hasattr(kind, "__supertype__"):
            return self.of(kind.__supertype__)
        if isinstance(kind, TypeVar):
            return self._union(kind.__constraints__) if kind.__constraints__ else self.of(kind.__bound__ or Any)
        if hasattr(kind, "__value__") and not typing.get_args(whole):
            return self.named(kind, kind.__name__, lambda: self.of(kind.__value__))
        raise Unsupported(f"{shown_name(whole)} has no JSON Schema", "use a type that JSON can hold")

    def _annotated(self, whole: Any, kind: Any, metadata: Sequence[Any]) -> Form:
        from onrecord.tools.pydantic_forms import of_pydantic, speaks_pydantic

        if any(speaks_pydantic(type(one)) for one in metadata):
            return of_pydantic(self, whole)
        return constrained(self.of(kind), kind, metadata)

    def _class(self, kind: type, arguments: tuple[Any, ...], whole: Any) -> Form:
        from onrecord.tools.members import members_of
        from onrecord.tools.pydantic_forms import of_pydantic, speaks_pydantic

        if speaks_pydantic(kind):
            return of_pydantic(self, whole)
        if kind is tuple:
            return self._tuple(arguments)
        if kind in _ARRAYS:
            return self._array(_ARRAYS[kind], self.of(arguments[0] if arguments else Any), whole)
        if kind in _MAPPINGS:
            return self._mapping(arguments, whole)
        if issubclass(kind, Enum):
            return of_enum(kind)
        return members_of(self, kind, arguments, whole) or leaf(kind)

    def _array(self, make: Callable[[Any], Any], item: Form, whole: Any) -> Form:
        schema = {"type": "array", **({"items": item.schema} if item.schema else {})}
        fallible = item.fallible
        if make in {set, frozenset}:
            if item.schema.get("type") in ("array", "object") and not fallible:
                raise Unsupported(f"{shown_name(whole)} would hold what cannot be in a set", "use a list")
            if fallible or not _is_hashable(item.schema):
                make, fallible = partial(_hashed, make), True
        read = item.read
        if read is None:
            return Form(schema, make, fallible)
        if not item.fallible:
            return Form(schema, lambda value: make([read(one) for one in value]), fallible)
        placed = partial(_placed, item)
        return Form(schema, lambda value: make([placed(n, one) for n, one in enumerate(value)]), fallible)

    def _tuple(self, arguments: tuple[Any, ...]) -> Form:
        if not arguments or arguments[-1] is Ellipsis:
            return self._array(tuple, self.of(arguments[0] if arguments else Any), tuple)
        items = [self.of(argument) for argument in arguments]
        size = len(items)
        if all(item.schema == items[0].schema for item in items):
            places: dict[str, Json] = {"items": items[0].schema}
        else:
            places = {"prefixItems": [item.schema for item in items]}
        schema = {"type": "array", **places, "minItems": size, "maxItems": size}
        reads = [inside(str(index), item) for index, item in enumerate(items)]
        fallible = any(item.fallible for item in items)
        return Form(schema, lambda value: tuple(get(one) for get, one in zip(reads, value, strict=True)), fallible)

    def _mapping(self, arguments: tuple[Any, ...], whole: Any) -> Form:
        key, item = (self.of(arguments[0]), self.of(arguments[1])) if arguments else (ANYTHING, ANYTHING)
        schema: dict[str, Json] = {"type": "object"}
        if item.schema:
            schema["additionalProperties"] = item.schema
        if key.schema == {"type": "integer"}:
            schema["propertyNames"] = {"pattern": _WHOLE_NUMBER}
        elif key.schema.get("type") == "string" and not key.fallible:
            if key.schema != {"type": "string"}:
                schema["propertyNames"] = key.schema
        elif key is not ANYTHING:
            raise Unsupported(f"{shown_name(whole)} has keys that JSON cannot hold", "use text as keys")
        read_key = reader(key)
        if not item.fallible:
            read_item = reader(item)
            return Form(schema, lambda value: {read_key(name): read_item(one) for name, one in value.items()})
        placed = partial(_placed, item)
        return Form(schema, lambda value: {read_key(n): placed(n, one) for n, one in value.items()}, fallible=True)

    def _union(self, kinds: Sequence[Any]) -> Form:
        options = [self.of(kind) for kind in kinds]
        if len(options) == 1:
            return options[0]
        schema = {"anyOf": [option.schema for option in options]}
        fallible = any(option.fallible for option in options)
        if all(option.read is None for option in options):
            return Form(schema)
        others = [option for kind, option in zip(kinds, options, strict=True) if kind is not NoneType]
        if len(others) == 1:
            read = reader(others[0])
            return Form(schema, lambda value: None if value is None else read(value), fallible)
        return Form(schema, self._first_that_fits(options), fallible)

    def _first_that_fits(self, options: Sequence[Form]) -> Read:
        # Compiled at the first value: only then are all definitions known that the alternatives refer to.
        checks: list[Any] = []

        def read(value: Json) -> Any:
            if not checks:
                checks.extend(compiled(option.schema, {"$defs": self.definitions}) for option in options)
            refused = Unfit([Issue((), "fits none of the alternatives")])
            for check, option in zip(checks, options, strict=True):
                if not check(value):
                    try:
                        return reader(option)(value)
                    except Unfit as unfit:
                        refused = unfit
            raise refused

        return read


def _is_hashable(schema: Json) -> bool:
    """Whether every value of a schema can be in a set, as plain ones can."""
    if options := schema.get("anyOf"):
        return all(_is_hashable(option) for option in options)
    kinds = schema.get("type", "object")
    return not {"array", "object"} & set(kinds if isinstance(kinds, list) else [kinds])


def _hashed(make: Callable[[Any], Any], items: Sequence[Any]) -> Any:
    try:
        return make(items)
    except TypeError:
        raise Unfit([Issue((), "holds what cannot be in a set")]) from None


def _placed(form: Form, place: object, value: Json) -> Any:
    return inside(str(place), form)(value)


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}{number}"
        number += 1
