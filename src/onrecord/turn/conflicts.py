"""Features and instructions of which there may be one: two are refused, and both sides are named."""

from __future__ import annotations

from collections.abc import Sequence

from onrecord.errors import ConfigurationError, FeatureConflict
from onrecord.turn.instruction import UNNAMED, Instruction
from onrecord.turn.moments import SLOTS, Hooks

__all__ = ("check_instructions", "check_single")


def check_single(mounted: Sequence[tuple[str, Hooks]], forms: Sequence[str], sides: Sequence[str]) -> None:
    """FeatureConflict for two of what there may be one of: their names, their classes, and who brings them."""
    placed = [(name, hooks, form, side) for (name, hooks), form, side in zip(mounted, forms, sides, strict=True)]
    for name, hooks, _, _ in placed:
        same = [(form, side) for other, _, form, side in placed if other == name]
        if hooks.alone and len(same) > 1:
            (one, by_one), (other, by_other), *_ = same
            as_one, as_other = (f"as {one} ", f"as {other} ") if one != other else ("", "")
            both = as_one or by_one != by_other
            who = f"{as_one}by {by_one} and {as_other}by {by_other}" if both else f"by {by_one}"
            raise FeatureConflict(
                f"the feature {name!r} is given twice, {who}",
                hint="leave one out and let the other say everything; what takes name= may be there under two names",
            )
    slot = SLOTS["request"]["WINDOW"]
    windows = [
        (n, side) for n, h, _, side in placed if h.on_request is not None and h.order.get("request") == slot
    ]  # fmt: skip
    thinking = [(n, side) for n, h, _, side in placed if h.on_thinking is not None]
    redacts = [(n, side) for n, h, _, side in placed if h.redact is not None]
    for what, found in (("can hold the window", windows), ("rewrites thinking", thinking), ("redacts", redacts)):
        if len(found) > 1:
            (one, by_one), (other, by_other), *_ = found
            both = f"{one!r} and {other!r}" if one != other else f"two of {one!r}"
            whose = f"of {by_one} and of {by_other}" if by_one != by_other else f"of {by_one}"
            raise FeatureConflict(f"only one feature {what}; found {both}, {whose}", hint="leave one of them out")


def check_instructions(mounted: Sequence[tuple[str, Hooks]], sides: Sequence[str]) -> None:
    """FeatureConflict for two different instructions of one name, naming who brings them."""
    named: dict[str, tuple[Instruction, str]] = {}
    for (feature, hooks), side in zip(mounted, sides, strict=True):
        for told in hooks.instructions:
            if not isinstance(told, Instruction):
                raise ConfigurationError(
                    f"{type(told).__name__!r} among the instructions of {feature!r} is none",
                    hint='write Instruction("Be brief.")',
                )
            first, by = named.setdefault(told.name, (told, side))
            if first is not told and told.name != UNNAMED:
                raise FeatureConflict(
                    f"two instructions are named {told.name!r}: one of {by}, one of {side}", hint="rename one of them"
                )
