"""What a model is shown of what it cannot take: words in the place of media, or nothing and a line in the record."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from onrecord.declared import Declared
from onrecord.models.request import Purpose, Request
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn

__all__ = ("Degrade", "Media")

_MEDIA = SLOTS["request"]["MEDIA"]
_PURPOSES: frozenset[Purpose] = frozenset({"speak", "wrap_up", "judge"})


class Media(Struct, frozen=True, metaclass=Declared):
    """Shows pictures, sounds and files to the models that take them, and their words to all others.

    Decided request by request, for the model that really gets it: a picture by its `Image.description`, a sound by its
    `Audio.transcript`, a file or anything without words by a label such as ``[Image]``; in messages and in tool
    results. The conversation keeps what was sent. Without this feature a request with media that its model does not
    take fails with ModelError. Models that take it are sent the same bytes as without the feature.
    """

    @property
    def name(self) -> str:
        """The feature's name."""
        return "media"

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(on_request=_in_words, order={"request": _MEDIA}, purposes=_PURPOSES)


class Degrade(Struct, frozen=True, metaclass=Declared):
    """Sends a conversation without what its model cannot be sent, instead of failing with ModelError.

    That is media that the model does not take, where `Media` gives it no words; and what a reply of another vendor
    holds in no form but that vendor's own. The receipt of the request says what was left out (`Receipt.left_out`).
    Settings that a model does not take are refused all the same.
    """

    @property
    def name(self) -> str:
        """The feature's name."""
        return "degrade"

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(on_request=_without, order={"request": _MEDIA}, purposes=_PURPOSES)


async def _in_words(turn: Turn, request: Request) -> Request:
    return replace(request, view=replace(request.view, stand_ins=True))


async def _without(turn: Turn, request: Request) -> Request:
    return replace(request, view=replace(request.view, degrade=True))
