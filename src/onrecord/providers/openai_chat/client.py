"""Chat Completions over HTTP: projection, transport and parser put together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from urllib.parse import SplitResult, urlsplit

from onrecord.errors import ConfigurationError, ModelError
from onrecord.jsonio import Json
from onrecord.models.chunks import Chunk
from onrecord.models.classify_errors import answer_error
from onrecord.models.lanes import SLICE
from onrecord.models.model import Model, ModelCard
from onrecord.models.request import Request, Wire
from onrecord.models.retry import Reliable
from onrecord.net.transport import Reply, post
from onrecord.providers.openai_chat.cards import OPENAI_URL, Dialect, openai_card
from onrecord.providers.openai_chat.parse import Parser
from onrecord.providers.openai_chat.project import ChatProjection

__all__ = ("ChatModel", "Key", "merged_headers", "named", "openai")

SILENCE_S = 60.0
TRAILING_S = 0.5
"""How long the end of the connection may come after the end of the reply; longer, and the connection is dropped."""
ERROR_BYTES = 1 << 20


class Key:
    """Where an API key comes from: given, or an environment variable that is read at each call.

    Never shown: not by repr, not in an error, not in a pickle.
    """

    __slots__ = ("_given", "needed", "variable")

    def __init__(self, given: str | None = None, *, variable: str = "", needed: bool = False) -> None:
        self._given, self.variable, self.needed = given, variable, needed

    def read(self) -> str | None:
        """The key without blanks around it, as files and shells leave them, or None where there is none."""
        return (self._given or (os.environ.get(self.variable) if self.variable else None) or "").strip() or None

    @property
    def hint(self) -> str:
        """What to do about a key that is missing or refused."""
        if self.read() is None:
            return f"set the environment variable {self.variable}" if self.variable else "pass api_key="
        where = "given as api_key=" if self._given else f"in the environment variable {self.variable}"
        return f"the key {where} was refused: check it, and that it belongs to this endpoint"

    def __repr__(self) -> str:
        return f"Key({self.variable or ('given' if self._given else 'none')})"

    def __reduce__(self) -> str:
        raise TypeError("a key is not written down")


class ChatModel:
    """A model behind a Chat Completions endpoint. Makes one request per `stream`: see `Reliable` for more.

    ``headers`` go out with every request, below those of the request itself. ``silence_s`` bounds each wait in which
    nothing comes. ``extra`` goes into every body.
    """

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
        address = card.base_url or ""
        place = _place(address)
        if place is None:
            raise ConfigurationError(
                f"model {card.name!r} has no http address",
                hint="the base URL (base_url=, or a variable such as OPENAI_BASE_URL) begins with http:// or https:// "
                "and goes up to and with /v1",
            )
        if "@" in place.netloc or place.query or place.fragment:
            raise ConfigurationError(
                f"the address of {card.name!r} holds a user, a password, a query or a fragment",
                hint="records name the address, so it holds no secret: give api_key= or headers=",
            )
        self._card, self._dialect, self._key = card, dialect, key or Key()
        self._headers = merged_headers(headers or {}, {})
        self._silence_s = silence_s
        self._url = address.rstrip("/") + "/chat/completions"
        self._projection = ChatProjection(card, dialect, extra)

    @property
    def card(self) -> ModelCard:
        return self._card

    def wire(self, request: Request, /) -> Wire:
        return self._projection.wire(request)

    def extend(self, request: Request, /, limit: int = SLICE) -> int:
        """See `onrecord.models.model.extend`."""
        return self._projection.extend(request, limit)

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        wire = request.wire or self._projection.wire(request)
        if wire.issues:
            raise self._cannot_carry(wire)
        headers = self._signed(await request.headers() if request.headers is not None else {})
        self._projection.sent(request)
        provider, silence_s = self._card.provider, self._silence_s
        parser = Parser(provider, self._dialect)
        try:
            async with post(self._url, wire.body, headers=headers, provider=provider, silence_s=silence_s) as reply:
                if not _is_answer(reply):
                    raise await self._refusal(reply)
                if reply.headers.get("content-type", "").startswith("application/json"):
                    for chunk in parser.whole(await reply.read()):
                        yield chunk
                else:
                    feed = parser.feed
                    async with aclosing(reply.event_batches(silence_s=silence_s)) as batches:
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
            raise

    def _signed(self, own: Mapping[str, str]) -> dict[str, str]:
        """The headers of one request; with the key, unless they bring their own authorization."""
        headers = merged_headers(self._headers, own) if own else dict(self._headers)
        if "Authorization" not in headers:
            if (key := self._key.read()) is not None:
                headers["Authorization"] = f"Bearer {key}"
            elif self._key.needed:
                raise ModelError(
                    f"{self._card.provider} needs an API key and there is none",
                    kind="auth",
                    provider=self._card.provider,
                    hint=self._key.hint,
                )
        return headers

    async def _refusal(self, reply: Reply) -> ModelError:
        if 200 <= reply.status < 300:
            return ModelError(
                f"{self._card.provider} answered with a web page",
                kind="invalid",
                provider=self._card.provider,
                status=reply.status,
                hint="check the base URL: it is the address of the API, up to and with /v1",
            )
        try:
            body = await reply.read(ERROR_BYTES)
        except ModelError:  # the status says enough
            body = b""
        return answer_error(
            self._card.provider, reply.status, reply.headers, body, now=datetime.now(UTC), key_hint=self._key.hint
        )

    def _cannot_carry(self, wire: Wire) -> ModelError:
        told = "; ".join(dict.fromkeys(issue.what for issue in wire.issues[:5]))
        return ModelError(
            f"{self._card.name!r} cannot be sent this conversation: {told}",
            kind="invalid",
            provider=self._card.provider,
            hint="choose a model that takes it, or leave it out of what is shown",
        )

    def __repr__(self) -> str:
        return f"ChatModel({self._card.name!r})"


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


def merged_headers(held: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Headers by name in any case, the later winning; authorization is spelled ``Authorization``, once."""
    named: dict[str, tuple[str, str]] = {}
    for name, value in (*held.items(), *own.items()):
        low = name.lower()
        named[low] = ("Authorization" if low == "authorization" else name, value)
    return dict(named.values())


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
