"""FlowOptions: what a host knows about a customer beyond this session, given with one turn."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import force_setattr

from onrecord.errors import UsageError
from onrecord.flows.invalid import got, text_problem

__all__ = ("Anchor", "Claims", "FlowOptions")

if TYPE_CHECKING:
    Instant = datetime | str
else:
    Instant = Any  # in JSON both are text, so a decoder could not tell them apart


class _AnchorKey(Struct, frozen=True):
    key: str


class Anchor(_AnchorKey, frozen=True, kw_only=True, omit_defaults=True):
    """What a flow runs once for, such as a customer; and when the customer last wrote, in whatever session."""

    last_inbound_at: datetime | None = None

    def __post_init__(self) -> None:
        if problem := text_problem(self.key):
            raise UsageError(f"the key of an Anchor {problem}", hint='such as the id of a customer: Anchor("c-17")')
        if self.last_inbound_at is not None:
            force_setattr(self, "last_inbound_at", _aware(self.last_inbound_at, "last_inbound_at"))


class Claims(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Claims of the customer's other sessions: ``held`` by dedupe key, ``active`` as ``flow id:anchor``.

    Instants may be given as ISO 8601 text; they are kept as datetimes.
    """

    held: Mapping[str, Instant] = {}
    active: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        active: Any = self.active  # as a host wrote it
        if not isinstance(active, (list, tuple)) or not all(isinstance(one, str) for one in active):
            raise UsageError("active= of Claims takes a list of texts", hint='such as "flow id:anchor"')
        force_setattr(self, "active", tuple(active))
        held: Any = self.held
        if not isinstance(held, Mapping) or any(text_problem(key) for key in held):
            raise UsageError(
                "held= of Claims takes an object of instants",
                hint='such as {"flow id:anchor:": "2026-01-31T09:30:00Z"}',
            )
        if held:
            force_setattr(self, "held", {key: _aware(at, "the instant of a claim") for key, at in held.items()})

    def at(self, key: str) -> datetime | None:
        """When a claim was made; None where nobody holds it."""
        held = self.held.get(key)
        return held if isinstance(held, datetime) else None


class FlowOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """For flows whose ``anchor`` is not the session: the anchor's key, by the name that the flow uses; and `Claims`."""

    anchors: Mapping[str, Anchor | str] = {}
    claims: Claims = Claims()

    def __post_init__(self) -> None:
        anchors: Any = self.anchors  # as a host wrote them
        if not isinstance(anchors, Mapping) or any(text_problem(name) for name in anchors):
            raise UsageError("anchors= of FlowOptions takes an object of keys", hint='such as {"customer": "c-17"}')
        for name, anchor in anchors.items():
            if not isinstance(anchor, Anchor) and text_problem(anchor):
                raise UsageError(
                    f"the anchor {name!r} must be a key or an Anchor, {got(anchor)}",
                    hint='such as {"customer": "c-17"}',
                )
        if not isinstance(self.claims, Claims):
            raise UsageError(f"claims= of FlowOptions takes Claims, {got(self.claims)}")

    def anchor(self, name: str) -> Anchor | None:
        """The anchor of this name, where the host gave one."""
        given = self.anchors.get(name)
        return Anchor(given) if isinstance(given, str) else given


def _aware(at: object, what: str) -> datetime:
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            raise UsageError(f"{what} is no instant", hint="write ISO 8601, as 2026-01-31T09:30:00.000Z") from None
    if not isinstance(at, datetime):
        raise UsageError(f"{what} must be a datetime or ISO 8601 text, got {type(at).__name__}")
    if at.tzinfo is None or at.utcoffset() is None:
        raise UsageError(f"{what} has no UTC offset", hint="use an aware datetime, such as datetime.now(UTC)")
    return at
