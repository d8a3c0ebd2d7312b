"""Messages over HTTP."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from copy import copy
from typing import ClassVar, cast

from msgspec.structs import replace

from onrecord.conversation.usage import Usage
from onrecord.errors import ConfigurationError, ModelError
from onrecord.models.chunks import Chunk, CitationChunk, Finished, NativeItem, TextChunk
from onrecord.models.model import Model, ModelCard
from onrecord.models.request import HeaderSource, Request
from onrecord.models.retry import Reliable
from onrecord.providers.anthropic.cards import (
    ANTHROPIC_URL,
    Rules,
    Structured,
    ThinkingMode,
    anthropic_card,
    rules_of,
)
from onrecord.providers.anthropic.message_events import PAUSED
from onrecord.providers.anthropic.parse import Parser
from onrecord.providers.anthropic.project import AnthropicProjection
from onrecord.providers.api_keys import Key, merged_headers
from onrecord.providers.http_model import SILENCE_S, HttpModel

__all__ = ("VERSION", "AnthropicModel", "anthropic", "named")

VERSION = "2023-06-01"
BINDING = "thinking-binding-controls-2026-08-01"
FILES = "files-api-2025-04-14"
RESUMES = 5
"""How often a reply that pauses is continued."""
_SERVER_TOOLS = frozenset({"tools", "mcp_servers", "container"})
_STORED = b'"type":"file","file_id":'
"""What no text of a body can hold, only a file that the vendor keeps: inside a text quotes are escaped."""
_VERSIONED = re.compile(r"/v\d+\Z")


class AnthropicModel(HttpModel):
    """A model behind a Messages endpoint; for the rest see `HttpModel`.

    A request or a configuration that brings an ``Authorization`` header needs no key. A reply that its sender pauses
    in the middle of its own searches is continued, and comes out as one.
    """

    key_header = "x-api-key"
    key_prefix = ""
    keeps_alive: ClassVar[re.Pattern[bytes] | None] = re.compile(rb'\s*\{\s*"type"\s*:\s*"ping"')

    def __init__(
        self,
        card: ModelCard,
        *,
        rules: Rules | None = None,
        key: Key | None = None,
        headers: Mapping[str, str] | None = None,
        silence_s: float = SILENCE_S,
    ) -> None:
        rules = rules or rules_of(card.model)
        ours = {"anthropic-version": VERSION} | ({"anthropic-beta": BINDING} if rules.binds else {})
        super().__init__(
            card,
            AnthropicProjection(card, rules),
            key=key,
            headers=_with_betas(ours, headers or {}),
            silence_s=silence_s,
        )
        self._rules = rules
        self._url = self._base + "/messages"
        self.resumes = False

    def projected(self, card: ModelCard, /) -> AnthropicProjection:
        return AnthropicProjection(card, self._rules)

    def address(self) -> str:
        return self._url

    def parser(self) -> Parser:
        return Parser(self._card.provider, resumes=self.resumes)

    def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        settings, wire = request.settings, request.wire or self.wire(request)
        headers = self._with_files(request.headers) if _STORED in wire.body else request.headers
        request = replace(request, wire=wire, headers=headers)
        if settings.search or _SERVER_TOOLS & settings.extra.keys():
            return self._resuming(request)
        return super().stream(request)

    def _with_files(self, given: HeaderSource | None) -> HeaderSource:
        """The headers of a request that shows a file which the vendor keeps: a beta of its own."""

        async def headers() -> Mapping[str, str]:
            own = await given() if given is not None else {}
            return _with_betas({"anthropic-beta": FILES}, merged_headers(self._headers, own))

        return headers

    async def _resuming(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """The reply, continued as often as its sender pauses: one text, one continuation, all that was used."""
        found, shown = self._as_learned(request)
        projection = cast("AnthropicProjection", found)
        wire = request.wire or projection.wire(shown)
        asked, said, usage, reached, ended = replace(request, wire=wire), 0, Usage(), False, Finished()
        items: list[bytes] = []
        source = copy(self)
        for left in reversed(range(RESUMES + 1)):
            source.resumes = left > 0
            before = said
            try:
                async with aclosing(HttpModel.stream(source, asked)) as chunks:
                    async for chunk in chunks:
                        if type(chunk) is Finished:
                            ended = chunk
                            continue
                        if type(chunk) is TextChunk:
                            said += len(chunk.text)
                        elif type(chunk) is NativeItem:
                            items.append(bytes(chunk.raw))
                        reached = True
                        yield _moved(chunk, before) if before and type(chunk) is CitationChunk else chunk
            except ModelError as error:
                error.started = error.started or reached
                raise
            usage += ended.usage or Usage()
            if ended.finish != PAUSED:
                break
            if not items:  # nothing to go on from
                ended = replace(ended, finish="length")
                break
            asked = replace(request, wire=projection.resumed(shown, wire, items))
        yield replace(ended, usage=usage if usage != Usage() else ended.usage)


def _moved(chunk: CitationChunk, by: int) -> CitationChunk:
    """Citations of a continued reply, counted from its first beginning."""
    return CitationChunk(tuple(replace(one, start=one.start + by, stop=one.stop + by) for one in chunk.citations))


def _with_betas(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Our headers below the given ones; betas of both sides, since one header lists them all."""
    merged = merged_headers(ours, given)
    name = next((one for one in merged if one.lower() == "anthropic-beta"), "")
    if name and "anthropic-beta" in ours and ours["anthropic-beta"] not in merged[name]:
        merged[name] = f"{ours['anthropic-beta']},{merged[name]}"
    return merged


def anthropic(
    model: str,
    /,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    headers: Mapping[str, str] | None = None,
    provider: str = "anthropic",
    silence_s: float = SILENCE_S,
    retry: bool = True,
    thinking: ThinkingMode | None = None,
    structured: Structured = "prompt",
) -> Model:
    """A Claude, or another vendor's model behind the same protocol at ``base_url`` (default: ``ANTHROPIC_BASE_URL``).

    The base URL is taken with its version (``…/v1``) and without, as Anthropic's own clients take it. The key is
    ``api_key``, else ``ANTHROPIC_API_KEY`` at each call. ``provider`` is the vendor's name, in records and errors.
    ``thinking`` says which mode this model has, for names that
    the rules take wrongly: ``"none"``, ``"budget"`` or ``"adaptive"``. ``structured="native"`` has the vendor enforce
    schemas, which takes closed ones only; by default the schema goes into the prompt. ``retry=False`` leaves out the
    waits of `Reliable`. Raises ConfigurationError for an address that is none.
    """
    url = (base_url or os.environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL).rstrip("/")
    held = AnthropicModel(
        anthropic_card(
            model,
            base_url=url if _VERSIONED.search(url) else url + "/v1",
            provider=provider,
            thinking=thinking,
            structured=structured,
        ),
        key=Key(api_key, variable="ANTHROPIC_API_KEY", needed=True),
        headers=headers,
        silence_s=silence_s,
    )
    return Reliable(held) if retry else held


def named(provider: str, model: str) -> Model:
    """``anthropic:MODEL``, with waits. ConfigurationError without a model's name."""
    if not model:
        raise ConfigurationError(
            f"{provider!r} names no model", hint="write anthropic:MODEL, such as anthropic:claude-sonnet-4-5"
        )
    return anthropic(model)
