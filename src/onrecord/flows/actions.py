"""What an action says came of it: `Ok`, `Skipped`, `Failed` or `Defer`; any other JSON is `Ok`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from onrecord.jsonio import is_json, writable
from onrecord.timing import duration_text
from onrecord.tools.result_text import serialise
from onrecord.turn.contained import told

__all__ = ("ActionResult", "Defer", "Failed", "Ok", "Skipped", "as_action_result")

TAG = "type"


class _Detail(Struct, frozen=True):
    detail: str = ""


class Ok(_Detail, frozen=True, kw_only=True, tag_field=TAG, tag="action.ok"):
    """It is done. ``spoke``: the action itself sent the customer something, so the assistant has spoken."""

    spoke: bool = False


class Skipped(Struct, frozen=True, tag_field=TAG, tag="action.skipped"):
    """There was nothing to do; the run goes on."""

    reason: str


class Failed(Struct, frozen=True, tag_field=TAG, tag="action.failed"):
    """It could not be done; the run goes where ``on_fail`` says."""

    reason: str


class Defer(Struct, frozen=True, tag_field=TAG, tag="action.defer"):
    """Try again after ``duration``: the same visit of the step, so under the same key."""

    duration: str | timedelta
    detail: str = ""

    def __post_init__(self) -> None:
        """A timedelta is kept as text, as a pause keeps it."""
        if isinstance(self.duration, timedelta):
            force_setattr(self, "duration", duration_text(self.duration))


ActionResult: TypeAlias = Ok | Skipped | Failed | Defer

_KINDS: Mapping[str, Any] = {str(kind.__struct_config__.tag): kind for kind in (Ok, Skipped, Failed, Defer)}


def as_action_result(value: object) -> ActionResult:
    """The result that an action's value is.

    One that a pause kept as JSON is read back, any other JSON (null too) is `Ok`, and what is no JSON is `Failed`.
    Reasons and details are texts, whatever was given as such: an exception is what it says.
    """
    if isinstance(value, (Ok, Defer)):
        return value if _is_kept(value.detail) else replace(value, detail=_words(value.detail))
    if isinstance(value, (Skipped, Failed)):
        return value if _is_kept(value.reason) else replace(value, reason=_words(value.reason))
    if isinstance(value, Mapping) and isinstance(tag := value.get(TAG), str) and (kind := _KINDS.get(tag)):
        fields = {str(name): item for name, item in value.items() if name != TAG}
        if fields.keys() <= set(kind.__struct_fields__) and all(map(_fits, fields, fields.values())):
            try:
                return kind(**fields)  # type: ignore[no-any-return] # one of the four
            except TypeError:
                return Ok()
    if not is_json(value):
        return Failed(f"the action returned {type(value).__name__}, which is no result and no JSON")
    return Ok()


def _is_kept(text: object) -> bool:
    return isinstance(text, str) and (text.isascii() or writable(text) == text)


def _words(given: object) -> str:
    if isinstance(given, str):
        return writable(given)
    if isinstance(given, BaseException):
        return told(given)
    return "" if given is None else serialise(given) if is_json(given) else f"a {type(given).__name__}"


def _fits(name: str, value: object) -> bool:
    # A duration that is none is kept: it is told when the run is to wait for it.
    return name == "duration" or isinstance(value, bool if name == "spoke" else str)
