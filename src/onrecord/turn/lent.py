"""What a call was lent and must not leave behind: secrets are taken out of all that its handler hands over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.messages import ToolCall
from onrecord.jsonio import Json, dumps
from onrecord.record.kinds import Noted
from onrecord.turn.call import Handled, place_of
from onrecord.turn.turn import Turn

__all__ = ("TAKEN_OUT", "Lent", "left_by", "without_lent")

SHORTEST = 6
"""A secret with fewer characters is not looked for: too much would be taken for it."""

TAKEN_OUT = "[credential]"


class Lent(Protocol):
    """A secret that a handler works with."""

    @property
    def secret(self) -> str: ...


def without_lent(turn: Turn, value: Any) -> Any:
    """The value without any secret that was lent in this take, in texts, names and fields; itself where there is none.

    Only the secret as it is, is found: not one that is encoded, hashed or cut into pieces.
    """
    if not turn.lent:
        return value
    lent = cast("Mapping[str, Mapping[str, Lent]]", turn.lent)
    secrets = {one.secret for held in lent.values() for one in held.values() if len(one.secret) >= SHORTEST}
    secrets |= {dumps(secret).decode()[1:-1] for secret in secrets}  # as JSON writes it, inside a result
    return _without(value, sorted(secrets, key=len, reverse=True)) if secrets else value


def left_by(
    turn: Turn, call: ToolCall, handled: Handled, patch: Mapping[str, Json]
) -> tuple[Handled, Mapping[str, Json]]:
    """What a handler leaves, and its patch of the session's data, without what it was lent. A note says where it was.

    Its result is left to the rules over results, which say on the record that they changed it.
    """
    if not turn.lent:
        return handled, patch
    result = handled.result
    kept = replace(
        handled, ask=without_lent(turn, handled.ask),
        result=replace(result, data=without_lent(turn, result.data), facts=without_lent(turn, result.facts)),
    )  # fmt: skip
    left = without_lent(turn, patch)
    places = {
        "session data": left is not patch or kept.result.data is not result.data,
        "facts": kept.result.facts is not result.facts,
        "a question": kept.ask is not handled.ask,
    }
    if found := [place for place, is_in in places.items() if is_in]:
        text = f"{call.name!r} put a credential into {', '.join(found)}: it was taken out"
        turn.note(Noted(by=call.name, text=text), where=place_of(call))
    return kept, left


def _without(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        new = value
        for secret in secrets:
            new = new.replace(secret, TAKEN_OUT)
        return value if new == value else new
    if isinstance(value, Mapping):
        made = {_without(name, secrets): _without(held, secrets) for name, held in value.items()}
        same = all(name in made and made[name] is held for name, held in value.items())
        return value if same else made
    if isinstance(value, (list, tuple)):
        items = [_without(item, secrets) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, Struct):
        changed = {
            name: new
            for name in value.__struct_fields__
            if (new := _without(old := getattr(value, name), secrets)) is not old
        }
        return replace(value, **changed) if changed else value
    return value
