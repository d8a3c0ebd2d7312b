"""generateContent over HTTP."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote

from onrecord.errors import ConfigurationError
from onrecord.jsonio import Json
from onrecord.models.model import Model, ModelCard
from onrecord.models.retry import Reliable
from onrecord.providers.api_keys import Key
from onrecord.providers.google.cards import GOOGLE_URL, Dialect, google_card
from onrecord.providers.google.parse import Parser
from onrecord.providers.google.project import GoogleProjection
from onrecord.providers.http_model import SILENCE_S, HttpModel

__all__ = ("GoogleModel", "google", "key_of", "named")

_FOLDERS = ("models/", "tunedModels/")


class GoogleModel(HttpModel):
    """A model behind a generateContent endpoint. ``extra`` goes into every body; for the rest see `HttpModel`."""

    key_header: ClassVar[str] = "x-goog-api-key"
    key_prefix: ClassVar[str] = ""
    ends_with: ClassVar[str] = "/v1beta"

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
        super().__init__(card, GoogleProjection(card, dialect, extra), key=key, headers=headers, silence_s=silence_s)
        self._dialect, self._extra = dialect, extra
        self._url = f"{self._base}/{_path_of(card.model)}:streamGenerateContent?alt=sse"

    def address(self) -> str:
        return self._url

    def projected(self, card: ModelCard, /) -> GoogleProjection:
        return GoogleProjection(card, self._dialect, self._extra)

    def parser(self) -> Parser:
        return Parser(self._card.provider)


class _EitherKey(Key):
    """A key from the first of two variables that is set."""

    __slots__ = ("_second",)

    def __init__(self, given: str | None, first: str, second: str) -> None:
        super().__init__(given, variable=first, needed=True)
        self._second = Key(variable=second)

    def read(self) -> str | None:
        return super().read() or self._second.read()

    @property
    def hint(self) -> str:
        return super().hint if super().read() is not None or self._second.read() is None else self._second.hint


def key_of(given: str | None = None) -> Key:
    """The key of Google's own service: given, from ``GEMINI_API_KEY``, or from the older ``GOOGLE_API_KEY``."""
    return _EitherKey(given, "GEMINI_API_KEY", "GOOGLE_API_KEY")


def google(
    model: str,
    /,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    headers: Mapping[str, str] | None = None,
    silence_s: float = SILENCE_S,
    retry: bool = True,
) -> Model:
    """A model of Google's Gemini API, or of a proxy at ``base_url`` (default: ``GOOGLE_BASE_URL``), up to ``/v1beta``.

    The key is ``api_key``, else ``GEMINI_API_KEY`` or ``GOOGLE_API_KEY`` at each call; it goes into a header and never
    into the address. ``retry=False`` leaves out the waits of `Reliable`.
    """
    card, dialect = google_card(model, base_url=base_url or os.environ.get("GOOGLE_BASE_URL") or GOOGLE_URL)
    held = GoogleModel(card, dialect=dialect, key=key_of(api_key), headers=headers, silence_s=silence_s)
    return Reliable(held) if retry else held


def named(provider: str, model: str) -> Model:
    """``google:MODEL``, with waits. ConfigurationError without a model's name."""
    if not model:
        told = "write google:MODEL, such as google:gemini-3.8-flash"
        raise ConfigurationError(f"{provider!r} names no model", hint=told)
    return google(model)


def _path_of(model: str) -> str:
    """The model's place below the base URL; what a name holds besides letters and digits is escaped."""
    folder = next((folder for folder in _FOLDERS if model.startswith(folder)), "")
    return (folder or _FOLDERS[0]) + quote(model.removeprefix(folder), safe="")
