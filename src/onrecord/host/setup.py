"""Setup: what all parts of a host share; Given: what a turn that starts by itself is given."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Input, Said
from onrecord.conversation.messages import Message
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import ConfigurationError, OnrecordError, UsageError
from onrecord.jsonio import Json
from onrecord.session.session import Session
from onrecord.session.store import Store
from onrecord.turn.effects import Effects
from onrecord.turn.plan import Plan
from onrecord.turn.take import answer_of

__all__ = ("CRASHES", "LADDER", "Deliver", "Give", "Given", "Setup", "code_of", "is_count", "log")

C = TypeVar("C")

_DAY, _DECADE = 86_400.0, 315_360_000.0

log = logging.getLogger("onrecord.host")

LADDER: tuple[float, ...] = (60.0, 300.0, 900.0, 3600.0, 21600.0)
"""Seconds until a turn whose model failed is tried again, rung by rung; then its row is parked."""

CRASHES = 6
"""Takes of one row that nobody heard of again, after which the row is parked."""


def code_of(error: Exception) -> str:
    """What the log says of an error: its code, or its class where it is none of ours."""
    return error.code if isinstance(error, OnrecordError) else type(error).__name__


class Given(Struct, Generic[C], frozen=True, kw_only=True):
    """What a turn gets that the row does not hold: the context of its tools, more options, another history.

    ``owner`` is whose a new session becomes.
    """

    context: C | None = None
    options: tuple[object, ...] = ()
    history: Conversation | Sequence[Message | Mapping[str, Json]] | None = None
    owner: Identity | None = None


Give = Callable[[SessionKey, Input], Awaitable[Given[Any]]]
Deliver = Callable[[SessionKey, Outgoing], Awaitable[None]]


class Setup(Struct, frozen=True, kw_only=True):
    """A host's parts and figures. ``name`` owns its leases, ``only`` is the one session it serves; times in seconds."""

    plan: Plan
    plans: Mapping[str, Plan]
    store: Store
    effects: Effects
    name: str
    given: Give | None
    deliver: Deliver | None
    retry: tuple[float, ...]
    turns: int
    lease_s: float
    poll_s: float
    only: SessionKey | None = None

    def __post_init__(self) -> None:
        """ConfigurationError for figures that cannot work."""
        if not is_count(self.turns, 1) or not all(0 < some <= _DAY for some in _seconds(self.lease_s, self.poll_s)):
            raise ConfigurationError(
                "turns=, lease_s= and poll_s= of a host are greater than 0, and seconds up to a day"
            )
        if not all(0 <= wait <= _DECADE for wait in _seconds(*self.retry)):
            raise ConfigurationError("retry= of a host holds seconds, none of them negative, up to ten years")
        for name, one in (("given", self.given), ("deliver", self.deliver)):
            if one is not None and not callable(one):
                raise ConfigurationError(f"{name}= of a host is an async function")

    def plan_over(self, input: Input, session: Session | None) -> Plan:
        """The agent that takes the input there: whoever asked goes on with the answer."""
        pending = None if session is None else session.pending
        if pending is not None and answer_of(input, pending) is not None:
            return self.plan_of(pending.input)
        return self.plan_of(input)

    def plan_of(self, input: Input) -> Plan:
        """The agent that the input asks for by name, or the host's own. UsageError for a name nobody has."""
        if not isinstance(input, Said) or not input.agent:
            return self.plan
        found = self.plans.get(input.agent)
        if found is None:
            known = ", ".join(sorted(self.plans)) or "no others"
            raise UsageError(
                f"this host has no agent {input.agent!r}", code="unknown-agent", hint=f"agents= names {known}"
            )
        return found


def is_count(value: object, least: int) -> bool:
    """Whether this is a whole number from there on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _seconds(*values: object) -> list[float]:
    """Numbers as they are; what is none is less than any."""
    return [value if isinstance(value, (int, float)) and not math.isnan(value) else -math.inf for value in values]
