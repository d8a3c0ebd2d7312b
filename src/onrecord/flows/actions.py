"""What an action says came of it: `Ok`, `Skipped`, `Failed` or `Defer`; any other JSON is `Ok`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from onrecord.jsonio import is_json
from onrecord.timing import duration_text

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
    """
    if isinstance(value, (Ok, Skipped, Failed, Defer)):
        return value
    if isinstance(value, Mapping) and (kind := _KINDS.get(str(value.get(TAG)))):
        told = {str(name): item for name, item in value.items() if name != TAG}
        if told.keys() <= set(kind.__struct_fields__) and all(map(_fits, told, told.values())):
            try:
                return kind(**told)  # type: ignore[no-any-return] # one of the four
            except TypeError:
                return Ok()
    if not is_json(value):
        return Failed(f"the action returned {type(value).__name__}, which is no result and no JSON")
    return Ok()


def _fits(name: str, value: object) -> bool:
    # A duration that is none is kept: it is told when the run is to wait for it.
    return name == "duration" or isinstance(value, bool if name == "spoke" else str)
