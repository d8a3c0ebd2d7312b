"""Embeddings over HTTP: vectors of texts from any server that has OpenAI's ``/embeddings``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import Struct

from onrecord.errors import ConfigurationError, ModelError
from onrecord.jsonio import Json, dumps
from onrecord.models.classify_errors import answer_error
from onrecord.models.model import ModelCard
from onrecord.models.retry import is_worth_waiting
from onrecord.net.transport import post
from onrecord.providers.api_keys import Key, merged_headers, signed
from onrecord.providers.http_model import check_address
from onrecord.providers.openai_chat.cards import OPENAI_URL
from onrecord.providers.openai_compatible.vendors import address_of, vendor_of

__all__ = ("HttpEmbedder", "embedder_named", "embeddings")

WAITS_S = (1.0, 3.0, 9.0)
"""Seconds before another attempt, where the server does not say."""

LONGEST_WAIT_S = 30.0
ERROR_BYTES = 1 << 20


class _Item(Struct):
    embedding: list[float]
    index: int = -1


class _Answer(Struct):
    data: list[_Item]


_decode = msgspec.json.Decoder(_Answer).decode


class HttpEmbedder:
    """An `onrecord.memory.Embedder` behind an ``/embeddings`` endpoint; made by `embeddings` and `embedder_named`.

    Busy servers are waited for up to three times. ``name`` tells provider, model and what is asked of it, so that
    vectors that cannot be compared have different names.
    """

    def __init__(
        self, provider: str, model: str, *, base_url: str, key: Key, key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None, dims: int | None = None, prefixes: tuple[str, str] = ("", ""),
        silence_s: float = 60.0, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:  # fmt: skip
        check_address(ModelCard(provider=provider, model=model, protocol="embeddings", base_url=base_url))
        if dims is not None and (type(dims) is not int or dims < 1):
            raise ConfigurationError(f"dims={dims!r} of an embedder is a whole number from 1 on")
        self._provider, self._model, self._key, self._key_header = provider, model, key, key_header
        self._url, self._headers = f"{base_url.rstrip('/')}/embeddings", merged_headers(headers or {}, {})
        self._dims, self._prefixes = dims, dict(zip(("query", "passage"), prefixes, strict=True))
        self._silence_s, self._sleep = silence_s, sleep

    @property
    def name(self) -> str:
        parts = [f"{self._provider}:{self._model}", *([str(self._dims)] if self._dims else [])]
        if any(self._prefixes.values()):
            parts.append("|".join(self._prefixes.values()))
        return "/".join(parts)

    async def embed(self, texts: Sequence[str], /, *, of: Literal["query", "passage"]) -> list[list[float]]:
        """See `onrecord.memory.Embedder`. ModelError where the server failed or sent no vector for each text."""
        if not texts:
            return []
        prefix = self._prefixes[of]
        asked: dict[str, Json] = {"model": self._model, "input": [prefix + text for text in texts]}
        if self._dims is not None:
            asked["dimensions"] = self._dims
        body = dumps(asked | {"encoding_format": "float"})
        for failed in range(len(WAITS_S) + 1):
            try:
                return self._read(await self._asked(body), len(texts))
            except ModelError as error:
                wait = _wait(error, failed)
                if wait is None:
                    raise
                await self._sleep(wait)
        raise AssertionError  # the last attempt returns or raises

    async def _asked(self, body: bytes) -> bytes:
        provider = self._provider
        async with post(
            self._url, body, headers=self._signed(), provider=provider, silence_s=self._silence_s
        ) as reply:  # fmt: skip
            if 200 <= reply.status < 300:
                return await reply.read()
            try:
                told = await reply.read(ERROR_BYTES)
            except ModelError:  # the status says enough
                told = b""
            raise answer_error(
                provider, reply.status, reply.headers, told, now=datetime.now(UTC), key_hint=self._key.hint
            )  # fmt: skip

    def _signed(self) -> dict[str, str]:
        prefix = "Bearer " if self._key_header == "Authorization" else ""
        return signed(
            self._headers, self._key, name=self._key_header, prefix=prefix, provider=self._provider
        )  # fmt: skip

    def _read(self, body: bytes, count: int) -> list[list[float]]:
        """The vectors in the order of their texts; servers number them, and some do not."""
        try:
            items = _decode(body).data
        except (msgspec.DecodeError, RecursionError):
            raise self._error("sent something else than embeddings", "check the base URL and the model") from None
        order = [item.index for item in items]
        if sorted(order) == list(range(count)):
            items = sorted(items, key=lambda item: item.index)
        elif len(items) != count or any(at != -1 for at in order):
            raise self._error(f"sent {len(items)} embeddings for {count} texts")
        vectors = [item.embedding for item in items]
        if len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
            raise self._error("sent embeddings of several lengths, or of none")
        return vectors

    def _error(self, what: str, hint: str = "") -> ModelError:
        return ModelError(f"{self._provider} {what}", kind="invalid", provider=self._provider, hint=hint)

    def __repr__(self) -> str:
        return f"HttpEmbedder({self.name!r})"


def _wait(error: ModelError, failed: int) -> float | None:
    if failed >= len(WAITS_S) or not is_worth_waiting(error):
        return None
    if error.retry_after is None:
        return WAITS_S[failed]
    return error.retry_after if error.retry_after <= LONGEST_WAIT_S else None


def embeddings(
    base_url: str, model: str, /, *, api_key: str | None = None, headers: Mapping[str, str] | None = None,
    provider: str = "openai-compatible", dims: int | None = None, prefixes: tuple[str, str] = ("", ""),
    silence_s: float = 60.0,
) -> HttpEmbedder:  # fmt: skip
    """An embedder behind any server with ``/embeddings`` below this address, such as ``http://localhost:8080/v1``.

    ``dims`` asks for shorter vectors, where the model can make them. ``prefixes`` are put before questions and before
    passages, for models that want to be told which is which, such as ``("query: ", "passage: ")``. Without ``api_key``
    no authorization is sent. ConfigurationError for an empty key or model, and for an address that is none.
    """
    return HttpEmbedder(
        provider, model, base_url=base_url, key=Key(api_key), headers=headers, dims=dims, prefixes=prefixes,
        silence_s=silence_s,
    )  # fmt: skip


def embedder_named(
    name: str, /, *, api_key: str | None = None, base_url: str | None = None, dims: int | None = None,
    prefixes: tuple[str, str] = ("", ""),
) -> HttpEmbedder:  # fmt: skip
    """``openai:text-embedding-3-small``, or a model of a vendor of `VENDORS` that embeds, ``mistral:mistral-embed``.

    The key is ``api_key``, else the vendor's variable at each call; the address ``base_url``, else the vendor's.
    """
    provider, _, model = name.partition(":")
    if provider == "openai":
        url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        key, header = Key(api_key, variable="OPENAI_API_KEY", needed=True), "Authorization"
    else:
        vendor = vendor_of(provider)
        url = base_url or address_of(provider)
        variable = vendor.key or f"{provider.upper()}_API_KEY"
        key, header = Key(api_key, variable=variable, needed=not vendor.runs_here), vendor.key_header
    return HttpEmbedder(
        provider, model, base_url=url, key=key, key_header=header, dims=dims, prefixes=prefixes
    )  # fmt: skip
