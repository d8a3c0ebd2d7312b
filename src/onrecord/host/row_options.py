"""Options as rows keep them: a JSON list, each item tagged with the type that owns it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw, Struct

from onrecord.errors import UsageError
from onrecord.jsonio import UNREADABLE

__all__ = ("decode_options", "encode_options")


class _Item(Struct, frozen=True):
    option: str
    value: Raw


def encode_options(options: Sequence[object]) -> Raw:
    """Options as JSON. UsageError for one that JSON cannot keep."""
    if not options:
        return Raw(b"[]")
    try:
        items = [_Item(type(option).__name__, Raw(msgspec.json.encode(option))) for option in options]
        return Raw(msgspec.json.encode(items))
    except (TypeError, ValueError, RecursionError):
        names = ", ".join(type(option).__name__ for option in options)
        raise UsageError(
            f"the options of this turn cannot be stored with its row ({names})",
            code="option-invalid",
            hint="options are data: structs of texts, numbers, lists and mappings",
        ) from None


def decode_options(raw: Raw, owned: Iterable[type]) -> list[object]:
    """Options by the types that the agent owns. UsageError for one that nobody owns any more."""
    if bytes(raw) == b"[]":
        return []
    kinds = {kind.__name__: kind for kind in owned}
    options = list[object]()
    for item in msgspec.json.decode(raw, type=list[_Item]):
        if item.option not in kinds:
            raise UsageError(f"option {item.option!r} has no owner in this agent", hint="mount its feature again")
        try:
            options.append(msgspec.json.decode(item.value, type=kinds[item.option]))
        except UNREADABLE:
            raise UsageError(
                f"option {item.option!r} was stored in a form this agent does not read",
                code="option-invalid",
                hint="send the input again",
            ) from None
    return options
