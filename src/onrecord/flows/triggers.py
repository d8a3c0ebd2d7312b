"""Triggers: what starts a run of a flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal

from msgspec import Struct

from onrecord.flows.field_specs import Field
from onrecord.flows.predicates import Pred
from onrecord.jsonio import Json

__all__ = ("Cooldown", "OnEvent", "OnMention", "OnMessage", "OnSilence", "Repeat", "Trigger", "TriggerName")

TriggerName = Literal["message", "mention", "silence", "event"]


class Cooldown(Struct, frozen=True):
    """One run, then none until the window has passed: ``Cooldown("7d")``."""

    window: str | timedelta


Repeat = Literal["once", "always"] | Cooldown
"""How often a trigger may start its flow: once per anchor, once per input, or once per window."""


@dataclass(frozen=True, init=False, slots=True)
class OnMessage:
    """The customer asks for what the phrases describe. Without phrases: whenever nothing else is asked for."""

    phrases: tuple[str, ...]
    repeat: Repeat
    only_if: Pred | None

    kind: ClassVar[TriggerName] = "message"

    def __init__(self, *phrases: str, repeat: Repeat = "once", only_if: Pred | None = None) -> None:
        object.__setattr__(self, "phrases", phrases)
        object.__setattr__(self, "repeat", repeat)
        object.__setattr__(self, "only_if", only_if)


@dataclass(frozen=True, init=False, slots=True)
class OnMention:
    """The customer brings up what the phrases describe; the flow runs beside the conversation.

    ``extract``: values to take from the message, by name; they become the run's input. Without phrases no model is
    asked and ``only_if`` decides.
    """

    phrases: tuple[str, ...]
    extract: Mapping[str, Field | Mapping[str, Json]]
    repeat: Repeat
    only_if: Pred | None

    kind: ClassVar[TriggerName] = "mention"

    def __init__(
        self,
        *phrases: str,
        extract: Mapping[str, Field | Mapping[str, Json]] | None = None,
        repeat: Repeat = "once",
        only_if: Pred | None = None,
    ) -> None:
        object.__setattr__(self, "phrases", phrases)
        object.__setattr__(self, "extract", {} if extract is None else extract)
        object.__setattr__(self, "repeat", repeat)
        object.__setattr__(self, "only_if", only_if)


class _After(Struct, frozen=True):
    after: str | timedelta


class OnSilence(_After, frozen=True, kw_only=True):
    """The customer has been quiet for ``after`` since the assistant last spoke."""

    business_hours: bool = False
    repeat: Repeat = "once"
    only_if: Pred | None = None

    kind: ClassVar[TriggerName] = "silence"


class _EventName(Struct, frozen=True):
    name: str


class OnEvent(_EventName, frozen=True, kw_only=True):
    """An event of the host; its payload is the run's input. ``after``: how long the run waits before its first step."""

    after: str | timedelta | None = None
    business_hours: bool = False
    repeat: Repeat = "always"
    only_if: Pred | None = None

    kind: ClassVar[TriggerName] = "event"


Trigger = OnMessage | OnMention | OnSilence | OnEvent
