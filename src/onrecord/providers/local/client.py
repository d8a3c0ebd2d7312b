"""``local:/path/to/model.gguf``: a GGUF file on this machine as a model."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path

from msgspec.structs import replace

from onrecord.errors import ConfigurationError, MissingDependency, ModelError
from onrecord.models.chunks import Chunk
from onrecord.models.model import Model, ModelCard
from onrecord.models.request import Request, Wire
from onrecord.net import transport
from onrecord.providers.api_keys import Key
from onrecord.providers.local.gguf import check_gguf
from onrecord.providers.local.plain_calls import PlainCalls
from onrecord.providers.local.process import PROVIDER, Endpoint, ModelProcess, Settings, model_process
from onrecord.providers.openai_chat.cards import PROTOCOL, Dialect
from onrecord.providers.openai_chat.client import ChatModel
from onrecord.providers.openai_chat.project import ChatProjection

__all__ = ("LocalModel", "local", "named")

INSTALL = 'pip install "onrecord[local]"'
MOST_CONTEXT = 8192
SILENCE_S = 300.0

# Chat templates raise an error for a system message that is not the first.
_DIALECT = Dialect(one_system=True, thinking=None)
# An event after each stretch of the prompt: a long prompt takes minutes and must not look like a dead server.
_EXTRA = {"return_progress": True}
_PART = re.compile(r"-(?P<part>\d{5})-of-(?P<parts>\d{5})$")


class LocalModel:
    """A GGUF file run by llama.cpp in a process of its own, which all models of the same file and settings share.

    The process starts with the first `stream` or `prewarm`, is started again should it die, and ends with `close`,
    with this program, or when this program is killed. Failures to load are `ModelError` of kind ``model``.
    """

    def __init__(self, card: ModelCard, process: ModelProcess) -> None:
        self.process = process
        self._served = _Served(card, process)
        self._model = PlainCalls(self._served)

    @property
    def card(self) -> ModelCard:
        return self._served.card

    def wire(self, request: Request, /) -> Wire:
        return self._model.wire(request)

    def extend(self, request: Request, /, limit: int = 500) -> int:
        """See `onrecord.models.model.extend`."""
        return self._model.extend(request, limit)

    def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        return self._model.stream(request)

    async def prewarm(self) -> None:
        """Loads the file now, so that the first reply need not wait for it. Raises ModelError."""
        await transport.prewarm()
        await self.process.endpoint()

    def close(self) -> None:
        """Ends the process and gives its memory back; the next use starts it again."""
        self.process.stop()

    def __repr__(self) -> str:
        return f"LocalModel({self.card.name!r})"


class _Served:
    """The Chat Completions model of a process, wherever the process has come to listen."""

    def __init__(self, card: ModelCard, process: ModelProcess) -> None:
        self.card = card
        self._process = process
        # Bytes depend on neither address nor key, so they can be had before anything runs.
        self._projection = ChatProjection(card, _DIALECT, _EXTRA)
        self._chat: tuple[Endpoint, ChatModel] | None = None

    def wire(self, request: Request, /) -> Wire:
        return self._projection.wire(request)

    def extend(self, request: Request, /, limit: int = 500) -> int:
        return self._projection.extend(request, limit)

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        if request.wire is None:
            request = replace(request, wire=self._projection.wire(request))
        chat = self._reached(await self._process.endpoint())
        try:
            async with aclosing(chat.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ModelError as error:
            if error.kind == "network" and await self._process.ended():
                raise self._died(error) from error
            raise

    def _reached(self, endpoint: Endpoint) -> ChatModel:
        held = self._chat
        if held is None or held[0] != endpoint:
            card = replace(self.card, base_url=endpoint.base_url)
            chat = ChatModel(card, dialect=_DIALECT, key=Key(endpoint.key), silence_s=SILENCE_S, extra=_EXTRA)
            held = self._chat = (endpoint, chat)
        return held[1]

    def _died(self, error: ModelError) -> ModelError:
        return ModelError(
            f"{PROVIDER}: the process of {self.card.model} ended during the reply",
            kind="network",
            provider=PROVIDER,
            started=error.started,
            hint="it starts again with the next call; if it ends again, memory may be short: try fewer context_tokens",
        )


def local(
    path: str | Path,
    /,
    *,
    context_tokens: int | None = None,
    parallel: int = 1,
    cores: int | None = None,
    gpu_layers: int | None = None,
    chat_template: str = "",
) -> Model:
    """A GGUF file as a model.

    ``context_tokens`` is the room for one conversation, prompt and reply together (default: what the model was trained
    for, at most 8192); memory grows with it, and with ``parallel``, the number of replies written at the same time
    (others wait their turn). ``cores`` and ``gpu_layers`` are llama.cpp's choice unless given. ``chat_template`` is a
    Jinja template in place of the file's own. Nothing is loaded before it is needed.

    Raises ConfigurationError when there is no such file, when it is no model, or when a number makes no sense, and
    MissingDependency when the extra ``local`` is not installed.
    """
    for name, number in (("context_tokens", context_tokens), ("parallel", parallel), ("cores", cores)):
        if number is not None and number < 1:
            raise ConfigurationError(f"{name} is {number}", hint=f"{name} is a number from 1 on, or left out")
    file = Path(path).expanduser().absolute()
    if (part := _PART.search(file.stem)) and int(part["part"]) != 1:
        first = file.name.replace(part[0], f"-00001-of-{part['parts']}")
        raise ConfigurationError(
            f"{str(file)!r} is a later part of a model", hint=f"name the first part, 'local:{file.with_name(first)}'"
        )
    head = check_gguf(file)
    if find_spec("xllamacpp") is None:
        raise MissingDependency("running a GGUF file needs the package 'xllamacpp'", hint=INSTALL)
    room = context_tokens or min(head.context_tokens or MOST_CONTEXT, MOST_CONTEXT)
    card = ModelCard(
        provider=PROVIDER,
        model=file.name,
        protocol=PROTOCOL,
        context_tokens=room,
        images=False,
        files=False,
        about=f"{head.name or file.stem}, run on this machine by llama.cpp.",
    )
    settings = Settings(
        path=str(file),
        name=file.name,
        context_tokens=room,
        parallel=parallel,
        cores=cores,
        gpu_layers=gpu_layers,
        chat_template=chat_template,
    )
    return LocalModel(card, model_process(settings))


def named(provider: str, model: str) -> Model:
    """``local:PATH``, relative to the working directory unless absolute. Raises ConfigurationError."""
    if not model:
        raise ConfigurationError(f"{provider!r} names no file", hint="write local:/path/to/model.gguf")
    return local(model)
