"""Responses over HTTP."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import ClassVar

from onrecord.errors import ConfigurationError
from onrecord.jsonio import Json
from onrecord.models.model import Model, ModelCard
from onrecord.models.retry import Reliable
from onrecord.providers.api_keys import Key
from onrecord.providers.http_model import SILENCE_S, HttpModel
from onrecord.providers.openai_responses.cards import OPENAI_URL, PROVIDER, Dialect, responses_card
from onrecord.providers.openai_responses.parse import Parser
from onrecord.providers.openai_responses.project import ResponsesProjection

__all__ = ("ResponsesModel", "named", "openai_responses")


class ResponsesModel(HttpModel):
    """A model behind a Responses endpoint. ``extra`` goes into every body; for the rest see `HttpModel`."""

    keeps_alive: ClassVar[re.Pattern[bytes] | None] = re.compile(rb'\s*\{\s*"type"\s*:\s*"(response\.)?keep_?alive"')

    def __init__(
        self,
        card: ModelCard,
        *,
        dialect: Dialect = Dialect(),  # noqa: B008 - an immutable value
        key: Key | None = None,
        headers: Mapping[str, str] | None = None,
        silence_s: float = SILENCE_S,
        extra: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(card, ResponsesProjection(card, dialect, extra), key=key, headers=headers, silence_s=silence_s)
        self._dialect, self._extra = dialect, extra
        self._url = self._base + "/responses"

    def address(self) -> str:
        return self._url

    def projected(self, card: ModelCard, /) -> ResponsesProjection:
        return ResponsesProjection(card, self._dialect, self._extra)

    def parser(self) -> Parser:
        return Parser(self._card.provider)


def openai_responses(
    model: str,
    /,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    provider: str = PROVIDER,
    headers: Mapping[str, str] | None = None,
    silence_s: float = SILENCE_S,
    retry: bool = True,
) -> Model:
    """A model of OpenAI's service over Responses, or of a proxy in front of it at ``base_url``.

    The address is ``base_url``, else ``OPENAI_BASE_URL``; the key is ``api_key``, else ``OPENAI_API_KEY`` at each call.
    A ``provider`` of another name is a server of somebody else that speaks Responses, such as one run here: it needs a
    ``base_url``, and is sent no key but ``api_key``. ``retry=False`` leaves out the waits of `Reliable`. Words about
    the reasoning stream where they are asked for:
    ``preset(openai_responses("gpt-5"), thinking="low", reasoning={"summary": "auto"})``. Raises ConfigurationError.
    """
    ours = provider == PROVIDER
    if not ours and base_url is None:
        raise ConfigurationError(f"{provider!r} has no address", hint="give base_url=")
    card, dialect = responses_card(
        model, base_url=base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL, provider=provider
    )
    key = Key(api_key, variable="OPENAI_API_KEY", needed=True) if ours else Key(api_key)
    held = ResponsesModel(card, dialect=dialect, key=key, headers=headers, silence_s=silence_s)
    return Reliable(held) if retry else held


def named(provider: str, model: str) -> Model:
    """``openai-responses:MODEL``, with waits. ConfigurationError without a model's name."""
    if not model:
        raise ConfigurationError(
            f"{provider!r} names no model", hint="write openai-responses:MODEL, such as openai-responses:gpt-5-mini"
        )
    return openai_responses(model)
