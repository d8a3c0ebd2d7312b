"""Features of which there may be one: two of them are refused, and both sides are named."""

from __future__ import annotations

from collections.abc import Sequence

from onrecord.errors import FeatureConflict
from onrecord.turn.moments import SLOTS, Hooks

__all__ = ("check_single",)


def check_single(mounted: Sequence[tuple[str, Hooks]], forms: Sequence[str], sides: Sequence[str]) -> None:
    """FeatureConflict for two of what there may be one of: their names, their classes, and who brings them."""
    placed = [(name, hooks, form, side) for (name, hooks), form, side in zip(mounted, forms, sides, strict=True)]
    for name, hooks, _, _ in placed:
        same = [(form, side) for other, _, form, side in placed if other == name]
        if hooks.alone and len(same) > 1:
            (one, by_one), (other, by_other), *_ = same
            as_one, as_other = (f"as {one} ", f"as {other} ") if one != other else ("", "")
            raise FeatureConflict(
                f"the feature {name!r} is given twice, {as_one}by {by_one} and {as_other}by {by_other}",
                hint="one of them says everything",
            )
    slot = SLOTS["request"]["WINDOW"]
    windows = [
        (n, side) for n, h, _, side in placed if h.on_request is not None and h.order.get("request") == slot
    ]  # fmt: skip
    thinking = [(n, side) for n, h, _, side in placed if h.on_thinking is not None]
    for what, found in (("can hold the window", windows), ("rewrites thinking", thinking)):
        if len(found) > 1:
            (one, by_one), (other, by_other), *_ = found
            raise FeatureConflict(
                f"only one feature {what}; found {one!r} and {other!r}, of {by_one} and of {by_other}"
            )
