"""A model behind an HTTP endpoint: projection, transport and parser put together, the same for every wire.

A wire supplies a projection, a parser, the address of a request and the header that its key goes into.
"""

from __future__ import annotations

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from datetime import UTC, datetime
from operator import not_
from typing import ClassVar, Protocol, Self
from urllib.parse import SplitResult, urlsplit

from msgspec.structs import replace

from onrecord.errors import ConfigurationError, ModelError
from onrecord.jsonio import peek
from onrecord.models.chunks import Chunk
from onrecord.models.classify_errors import answer_error
from onrecord.models.lanes import SLICE
from onrecord.models.learned import Learned, proven, without_tools
from onrecord.models.model import ModelCard
from onrecord.models.projection import Projection
from onrecord.models.refusing import cannot_be_sent
from onrecord.models.request import Request, Wire
from onrecord.net.transport import Reply, post
from onrecord.providers.api_keys import Key, merged_headers, signed

__all__ = ("LEARNED", "SILENCE_S", "HttpModel", "StreamParser")

SILENCE_S = 60.0
LEARNED = Learned()
"""What endpoints refused in this process, whichever model object asked: see `onrecord.models.learned`."""
PROGRESS_S = 300.0
"""How long a stream may do nothing but keep its connection alive; longer where silence may last longer."""
TRAILING_S = 0.5
"""How long the end of the connection may come after the end of the reply; longer, and the connection is dropped."""
ERROR_BYTES = 1 << 20
_NOWHERE = frozenset({404, 405})


class StreamParser(Protocol):
    """Reads one reply of a wire; one is made for each request.

    ``done`` once nothing of the reply can follow, ``started`` once a chunk was handed out or a call began. All methods
    raise ModelError; no error quotes content.
    """

    done: bool
    started: bool

    def feed(self, data: bytes, /) -> Sequence[Chunk]:
        """The chunks of one event's data, which is an `onrecord.net.sse.ErrorEvent` where its sender says so."""
        ...

    def whole(self, body: bytes, /) -> Sequence[Chunk]:
        """The chunks of an answer that is one JSON object, from servers that do not stream."""
        ...

    def close(self) -> Sequence[Chunk]:
        """What is left at the end, `Finished` last; an error when the reply is not whole."""
        ...


class HttpModel(ABC):
    """A model behind an HTTP endpoint. Makes one request per `stream`: see `Reliable` for more.

    ``headers`` go out with every request, below those of the request itself. ``silence_s`` bounds each wait in which
    nothing comes, `PROGRESS_S` each in which only keep-alives do. ``learns``: once its endpoint said that it takes no
    tools, or no lists of parts, the model is asked without them for an hour; a card that somebody wrote on purpose is
    taken at its word instead. Raises ConfigurationError for a model without a name, and for an address that is none or
    holds a secret.
    """

    key_header: ClassVar[str] = "Authorization"
    """The header that holds the key, after ``key_prefix``. A request with this header, or with ``Authorization``,
    brings its own."""
    key_prefix: ClassVar[str] = "Bearer "
    ends_with: ClassVar[str] = "/v1"
    """How a base URL of this wire ends, for the hints of errors."""

    keeps_alive: ClassVar[re.Pattern[bytes] | None] = None
    """How an event begins with which a server only says that it is still there; None where it has comments for that."""

    def __init__(
        self,
        card: ModelCard,
        projection: Projection,
        *,
        key: Key | None = None,
        headers: Mapping[str, str] | None = None,
        silence_s: float = SILENCE_S,
        learns: bool = True,
    ) -> None:
        check_address(card, self.ends_with)
        self._card, self._projection, self.key = card, projection, key or Key()
        self._learns = learns
        self._flat: Projection | None = None
        self._base = (card.base_url or "").rstrip("/")
        self._headers = merged_headers(headers or {}, {})
        self._silence_s, self._progress_s = silence_s, max(PROGRESS_S, silence_s)

    @property
    def card(self) -> ModelCard:
        return self._card

    @abstractmethod
    def address(self) -> str:
        """Where requests go, below ``self._base``."""

    @abstractmethod
    def parser(self) -> StreamParser:
        """A parser for one reply."""

    def projected(self, card: ModelCard, /) -> Projection | None:
        """This wire's projection for another card of the same model; None where the wire makes no difference."""
        return None

    def under(self, card: ModelCard, /) -> Self | None:
        """The same model with another card, which is taken at its word; None where the wire has no such thing."""
        if (projection := self.projected(card)) is None:
            return None
        other = copy(self)
        other._card, other._projection, other._learns = card, projection, False  # noqa: SLF001 - its own copy
        return other

    def wire(self, request: Request, /) -> Wire:
        projection, shown = self._as_learned(request)
        return projection.wire(shown)

    def extend(self, request: Request, /, limit: int = SLICE) -> int:
        """See `onrecord.models.model.extend`."""
        return self._as_learned(request)[0].extend(request, limit)

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        projection, shown = self._as_learned(request)
        wire = request.wire or projection.wire(shown)
        if wire.issues and (issues := wire.refusing(request.view)):
            raise cannot_be_sent(self._card, issues)
        headers = self._signed(await request.headers() if request.headers is not None else {})
        projection.sent(shown)
        provider, silence_s = self._card.provider, self._silence_s
        parser = self.parser()
        try:
            async with post(
                self.address(), wire.body, headers=headers, provider=provider, silence_s=silence_s
            ) as reply:
                if not _is_answer(reply):
                    raise await self._refusal(reply)
                if reply.headers.get("content-type", "").startswith("application/json"):
                    for chunk in parser.whole(await reply.read()):
                        yield chunk
                else:
                    feed = parser.feed
                    idle = not_ if self.keeps_alive is None else self.keeps_alive.match
                    events = reply.event_batches(silence_s=silence_s, progress_s=self._progress_s, idle=idle)
                    async with aclosing(events) as batches:
                        async for batch in batches:
                            for data in batch:
                                for chunk in feed(data):
                                    yield chunk
                            if parser.done:
                                if not reply.ended:
                                    await _drain(batches)
                                break
            for chunk in parser.close():
                yield chunk
        except ModelError as error:
            error.started = parser.started
            self._learn(error, request, wire)
            raise

    def _learn(self, error: ModelError, request: Request, wire: Wire) -> None:
        if self._learns and (refusal := proven(error, request, wire.body)) is not None:
            LEARNED.note(self._card, refusal, time.monotonic())

    def _as_learned(self, request: Request) -> tuple[Projection, Request]:
        """The projection and the request as far as the endpoint is known to take them."""
        if not LEARNED or not self._learns:
            return self._projection, request
        refused = LEARNED.refusals(self._card, time.monotonic())
        if "tools" in refused:
            request = without_tools(request)
        if "arrays" not in refused:
            return self._projection, request
        if self._flat is None:
            self._flat = self.projected(replace(self._card, arrays=False)) or self._projection
        return self._flat, request

    def _signed(self, own: Mapping[str, str]) -> dict[str, str]:
        headers = merged_headers(self._headers, own) if own else self._headers
        return signed(
            headers, self.key, name=self.key_header, prefix=self.key_prefix, provider=self._card.provider
        )  # fmt: skip

    async def _refusal(self, reply: Reply) -> ModelError:
        elsewhere = f"check the base URL: it is the address of the API, up to and with {self.ends_with}"
        if 200 <= reply.status < 300:
            return ModelError(
                f"{self._card.provider} answered with a web page",
                kind="invalid",
                provider=self._card.provider,
                status=reply.status,
                hint=elsewhere,
            )
        try:
            body = await reply.read(ERROR_BYTES)
        except ModelError:  # the status says enough
            body = b""
        error = answer_error(
            self._card.provider, reply.status, reply.headers, body, now=datetime.now(UTC), key_hint=self.key.hint
        )
        if reply.status in _NOWHERE and not error.refuses and not isinstance(peek(body), dict | list):
            error.hint = elsewhere  # an API says in JSON what it does not have
        return error

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._card.name!r})"


def check_address(card: ModelCard, ends_with: str = "/v1") -> None:
    """Raises ConfigurationError unless the card names a model and an http address that holds no secret."""
    if not card.model.strip():
        raise ConfigurationError(f"{card.provider!r} names no model", hint="a model's name is part of each request")
    place = _place(card.base_url or "")
    if place is None:
        raise ConfigurationError(
            f"model {card.name!r} has no http address",
            hint="the base URL (base_url=, or a variable such as OPENAI_BASE_URL) begins with http:// or https:// "
            f"and goes up to and with {ends_with}",
        )
    if "@" in place.netloc or place.query or place.fragment:
        raise ConfigurationError(
            f"the address of {card.name!r} holds a user, a password, a query or a fragment",
            hint="records name the address, so it holds no secret: give api_key= or headers=",
        )


def _is_answer(reply: Reply) -> bool:
    """Whether this is what was asked for: no refusal, and no page for people, which another address gives."""
    return 200 <= reply.status < 300 and not reply.headers.get("content-type", "").startswith("text/html")


def _place(url: str) -> SplitResult | None:
    """The parts of an http address; None for what is none, or names no host or no possible port."""
    try:
        parts = urlsplit(url)
        named = parts.hostname is not None and parts.port != 0  # the port is checked when it is read
    except ValueError:
        return None
    return parts if named and url.startswith(("http://", "https://")) else None


async def _drain(batches: AsyncGenerator[list[bytes], None]) -> None:
    """Reads to the end of the answer, so that its connection can be used again."""
    try:
        async with asyncio.timeout(TRAILING_S):
            async for _ in batches:
                pass
    except (TimeoutError, ModelError):
        pass  # the reply is whole; what the connection does now costs only the connection
