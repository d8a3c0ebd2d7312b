"""Forms of types with named members: dataclasses, TypedDicts, NamedTuples and msgspec structs."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import NODEFAULT, UNSET, Struct

from onrecord.jsonio import Json
from onrecord.tools.annotations import Forms
from onrecord.tools.docstrings import Documented, documented
from onrecord.tools.forms import Form, Member, Unsupported, of_members, plain_default, shown_name

__all__ = ("described", "members_of")

_MISSING = object()


def members_of(forms: Forms, kind: type, arguments: tuple[Any, ...], whole: Any) -> Form | None:
    """The form of a class with members, or None when it has none to show. Raises Unsupported."""
    if issubclass(kind, dict) and hasattr(kind, "__required_keys__"):
        build = _typed_dict
    elif issubclass(kind, Struct):
        build = _struct
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        build = _named_tuple
    elif hasattr(kind, "__dataclass_fields__"):
        build = _dataclass
    else:
        return None
    return forms.named(whole, kind.__name__, lambda: build(forms, kind, arguments))


def described(forms: Forms, hint: Any, text: str | None, default: object = _MISSING) -> Form:
    """The form of one member or parameter, with what its docstring says and its default.

    A description in ``Annotated[...]`` stands nearer to the type than the docstring, and wins.
    """
    form = forms.of(hint)
    schema = dict(form.schema)
    if text and not ("description" in schema and typing.get_origin(hint) is typing.Annotated):
        schema["description"] = text
    if forms.defaults and default is not _MISSING and (shown := plain_default(default)) is not UNSET:
        schema["default"] = shown
    return Form(schema, form.read, form.fallible)


def _typed_dict(forms: Forms, kind: Any, arguments: tuple[Any, ...]) -> Form:
    doc = _doc(kind)
    members = [
        Member(
            name=name,
            attribute=name,
            form=described(forms, hint, doc.arguments.get(name)),
            required=_needed(hint, name in kind.__required_keys__),
        )
        for name, hint in _hints(forms, kind, arguments).items()
    ]
    return of_members(members, dict, description=doc.summary)


def _needed(hint: Any, usual: bool) -> bool:  # noqa: FBT001 - the answer where nothing is said
    # With `from __future__ import annotations`, __required_keys__ does not see Required and NotRequired.
    while (origin := typing.get_origin(hint)) is not None:
        if getattr(origin, "_name", "") in {"Required", "NotRequired"}:
            return bool(origin._name == "Required")  # noqa: SLF001 - equal names of typing and typing_extensions
        if origin is not typing.Annotated and getattr(origin, "_name", "") != "ReadOnly":
            break
        hint = typing.get_args(hint)[0]
    return usual


def _named_tuple(forms: Forms, kind: Any, arguments: tuple[Any, ...]) -> Form:
    hints = _hints(forms, kind, arguments)
    values = ((name, name, kind._field_defaults.get(name, _MISSING)) for name in kind._fields)
    return _made(forms, kind, hints, values)


def _dataclass(forms: Forms, kind: Any, arguments: tuple[Any, ...]) -> Form:
    import dataclasses

    hints = _hints(forms, kind, arguments)
    own = {field.name: field for field in dataclasses.fields(kind)}
    values: list[tuple[str, str, object]] = []
    for name, hint in list(hints.items()):
        if isinstance(hint, dataclasses.InitVar):
            hints[name] = hint.type
            values.append((name, name, getattr(kind, name, _MISSING)))
        elif name in own and own[name].init:
            values.append((name, name, _dataclass_default(own[name])))
    return _made(forms, kind, hints, values)


def _dataclass_default(field: Any) -> object:
    import dataclasses

    if field.default is not dataclasses.MISSING:
        return field.default
    return _MISSING if field.default_factory is dataclasses.MISSING else UNSET


def _struct(forms: Forms, kind: type[Struct], arguments: tuple[Any, ...]) -> Form:
    config = kind.__struct_config__
    if config.array_like:
        raise Unsupported(f"{shown_name(kind)} is array_like, its members have no names in JSON", "leave it out")
    defaults = kind.__struct_defaults__
    names = list(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    padded = [NODEFAULT] * (len(names) - len(defaults)) + list(defaults)
    values = [
        (attribute, name, _MISSING if default is NODEFAULT else default)
        for (attribute, name), default in zip(names, padded, strict=True)
    ]
    fixed: dict[str, Json] = {}
    if config.tag is not None and config.tag_field is not None:
        fixed[config.tag_field] = {"type": "string" if isinstance(config.tag, str) else "integer", "enum": [config.tag]}
    return _made(forms, kind, _hints(forms, kind, arguments), values, fixed)


def _made(
    forms: Forms,
    kind: type,
    hints: Mapping[str, Any],
    values: Iterable[tuple[str, str, object]],
    fixed: Mapping[str, Json] | None = None,
) -> Form:
    doc = _doc(kind)
    members = [
        Member(
            name=name,
            attribute=attribute,
            form=described(forms, hints[attribute], doc.arguments.get(attribute), default),
            required=default is _MISSING,
        )
        for attribute, name, default in values
    ]
    own_rules = hasattr(kind, "__post_init__")
    return of_members(members, kind, own_rules=own_rules, fixed=fixed, description=doc.summary)


def _doc(kind: type) -> Documented:
    text = kind.__dict__.get("__doc__")
    # Dataclasses and NamedTuples without a docstring get their signature as one.
    return Documented() if not text or text.startswith(f"{kind.__name__}(") else documented(text)


def _hints(forms: Forms, kind: type, arguments: tuple[Any, ...]) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(kind, None, {**forms.scope, kind.__name__: kind}, include_extras=True)
    except Exception as error:
        raise Unsupported(
            f"an annotation of {shown_name(kind)} cannot be resolved ({error})",
            "define its types at module level, and import them outside `if TYPE_CHECKING:`",
        ) from error
    variables = dict(zip(getattr(kind, "__parameters__", ()), arguments, strict=False))
    return {name: _filled(hint, variables) for name, hint in hints.items()} if variables else hints


def _filled(hint: Any, variables: Mapping[Any, Any]) -> Any:
    if hint in variables:
        return variables[hint]
    inner = getattr(hint, "__parameters__", ())
    return hint[tuple(variables.get(one, one) for one in inner)] if inner and not isinstance(hint, type) else hint
