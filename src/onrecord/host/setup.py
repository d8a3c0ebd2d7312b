"""Setup: what all parts of a host share; Given: what a turn that starts by itself is given."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast, get_args

from msgspec import Struct

from onrecord.agent import Agent
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Input, Said, Woke
from onrecord.conversation.messages import Message
from onrecord.conversation.outgoing import Outgoing
from onrecord.errors import ConfigurationError, OnrecordError, UsageError
from onrecord.jsonio import Json
from onrecord.session.folding import Folds
from onrecord.session.inbox import Row
from onrecord.session.session import Session, resumed
from onrecord.session.store import Store
from onrecord.turn.effects import Effects
from onrecord.turn.plan import Plan

__all__ = (
    "CRASHES",
    "LADDER",
    "Deliver",
    "Give",
    "Given",
    "Setup",
    "agent_of",
    "check_parts",
    "code_of",
    "is_count",
    "log",
)

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

    Asked for before every take. What the caller of a turn gave, and options stored with its input, stand; this fills in
    the rest. ``owner`` is whose a new session becomes, or one of nobody that is empty, as that of a person who was
    erased, or in which there was no turn yet, only an imported history. Erasing a person goes by it.
    """

    context: C | None = None
    options: tuple[object, ...] = ()
    history: Conversation | Sequence[Message | Mapping[str, Json]] | None = None
    owner: Identity | None = None


Give = Callable[[SessionKey, Input], Awaitable[Given[Any]]]
Deliver = Callable[[SessionKey, Outgoing], Awaitable[None]]


def check_parts(agent: object, store: object, given: object, deliver: object) -> None:
    """ConfigurationError for what cannot be a part of a host: when it is made, not when a turn needs it."""
    if not isinstance(agent, Agent):
        raise ConfigurationError(f"a host runs an Agent, not {type(agent).__name__}", hint='Agent("offline") makes one')
    if store is not None and not hasattr(store, "lease"):
        raise ConfigurationError(
            f"a host keeps its sessions in a store, not in {type(store).__name__}", hint="SqliteStore(path) makes one"
        )
    for name, called in (("given", given), ("deliver", deliver)):
        if called is not None and (not callable(called) or _is_plain(called)):
            raise ConfigurationError(f"{name}= of a host is no async function", hint="declare it with async def")


def _is_plain(called: object) -> bool:
    """A function with ``def``. What a lambda or an object returns is not known before it is called."""
    if not inspect.isroutine(called) or inspect.iscoroutinefunction(called):
        return False
    return getattr(called, "__name__", "") != "<lambda>"


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

    @property
    def every_plan(self) -> tuple[Plan, ...]:
        """Those of all its agents, its own first."""
        return (self.plan, *self.plans.values())

    def plan_of(self, input: Input, session: Session | None) -> Plan:
        """The agent that takes an input of this session. UsageError for a name that nobody has here."""
        name = agent_of(input, session)
        if not name:
            return self.plan
        found = self.plans.get(name)
        if found is None:
            known = ", ".join(sorted(self.plans)) or "no others"
            raise UsageError(f"this host has no agent {name!r}", code="unknown-agent", hint=f"agents= names {known}")
        return found

    def folds_of(self, row: Row, session: Session | None) -> Folds:
        """The folds of the agent that takes a row; the host's own where nobody has the name it asks for."""
        if isinstance(row.body, get_args(Input)):
            with suppress(UsageError):
                return self.plan_of(cast(Input, row.body), session).folds
        return self.plan.folds


def is_count(value: object, least: int) -> bool:
    """Whether this is a whole number from there on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _seconds(*values: object) -> list[float]:
    """Numbers as they are; what is none is less than any."""
    return [value if isinstance(value, (int, float)) and not math.isnan(value) else -math.inf for value in values]


def agent_of(input: Input, session: Session | None) -> str:
    """The agent that takes an input: the one it names, or whose question it answers; empty for the host's own."""
    paused = None if session is None else resumed(session, input)
    first = input if paused is None else paused.input
    return first.agent if isinstance(first, (Said, Woke)) else ""
