"""Chat Completions over HTTP."""

from __future__ import annotations

import os
from collections.abc import Mapping

from onrecord.errors import ConfigurationError
from onrecord.jsonio import Json
from onrecord.models.model import Model, ModelCard
from onrecord.models.retry import Reliable
from onrecord.providers.api_keys import Key
from onrecord.providers.http_model import SILENCE_S, HttpModel
from onrecord.providers.openai_chat.cards import OPENAI_URL, Dialect, openai_card
from onrecord.providers.openai_chat.parse import Parser
from onrecord.providers.openai_chat.project import ChatProjection

__all__ = ("ChatModel", "named", "openai")


class ChatModel(HttpModel):
    """A model behind a Chat Completions endpoint. ``extra`` goes into every body; for the rest see `HttpModel`."""

    def __init__(
        self,
        card: ModelCard,
        *,
        dialect: Dialect = Dialect(),  # noqa: B008 - an immutable value
        key: Key | None = None,
        headers: Mapping[str, str] | None = None,
        silence_s: float = SILENCE_S,
        extra: Mapping[str, Json] | None = None,
        learns: bool = True,
    ) -> None:
        projection = ChatProjection(card, dialect, extra)
        super().__init__(card, projection, key=key, headers=headers, silence_s=silence_s, learns=learns)
        self._dialect, self._extra = dialect, extra
        self._url = self._base + "/chat/completions"

    def address(self) -> str:
        return self._url

    def parser(self) -> Parser:
        return Parser(self._card.provider, self._dialect)

    def projected(self, card: ModelCard, /) -> ChatProjection:
        return ChatProjection(card, self._dialect, self._extra)


def openai(
    model: str,
    /,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    organization: str | None = None,
    headers: Mapping[str, str] | None = None,
    silence_s: float = SILENCE_S,
    retry: bool = True,
) -> Model:
    """A model of OpenAI's service, or of a proxy in front of it at ``base_url`` (default: ``OPENAI_BASE_URL``).

    The key is ``api_key``, else ``OPENAI_API_KEY`` at each call. ``retry=False`` leaves out the waits of `Reliable`.
    Raises ConfigurationError for an empty key or model, and for an address that is none.
    """
    card, dialect = openai_card(model, base_url=base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL)
    given = dict(headers or {})
    if organization:
        given["OpenAI-Organization"] = organization
    held = ChatModel(
        card,
        dialect=dialect,
        key=Key(api_key, variable="OPENAI_API_KEY", needed=True),
        headers=given,
        silence_s=silence_s,
    )
    return Reliable(held) if retry else held


def named(provider: str, model: str) -> Model:
    """``openai:MODEL``, with waits. ConfigurationError without a model's name."""
    if not model:
        raise ConfigurationError(f"{provider!r} names no model", hint="write openai:MODEL, such as openai:gpt-5-mini")
    return openai(model)
