"""The model port, and what a model's card says it can do."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import replace

from onrecord.declared import declared
from onrecord.errors import ConfigurationError
from onrecord.jsonio import UNREADABLE, Json, dumps, loads
from onrecord.models.chunks import Chunk
from onrecord.models.lanes import SLICE
from onrecord.models.names import as_model
from onrecord.models.request import Request, Settings, Wire

__all__ = ("Model", "ModelCard", "Preset", "extend", "preset", "scope_of", "scope_parts", "session_in")


class ModelCard(Struct, frozen=True, kw_only=True):
    """What a model can do, and where it lives.

    ``base_url`` is None for models without an endpoint. ``arrays`` is whether message content may be a list;
    ``least_thinking`` is the smallest budget in tokens where ``thinking`` is ``budget``;
    ``needs_tools_with_calls`` whether definitions must stay while old calls are shown; ``steps`` how many requests one
    answer may take at most (None: as many as the agent's rounds); ``cache_marks`` whether its vendor caches what
    requests mark, where others cache by themselves. ``about`` is one sentence for people, ``honest`` one that the
    command line shows before the first reply of a stand-in.
    """

    provider: str
    model: str
    protocol: str
    base_url: str | None = None
    context_tokens: int | None = None
    output_tokens: int | None = None
    images: bool = True
    audio: bool = False
    files: bool = True
    tools: bool = True
    hosted_search: bool = False
    thinking: Literal["none", "budget", "adaptive"] = "none"
    least_thinking: int = 1
    structured: Literal["native", "json", "prompt"] = "native"
    structured_with_tools: bool = True
    needs_tools_with_calls: bool = False
    arrays: bool = True
    steps: int | None = None
    cache_marks: bool = False
    about: str = ""
    honest: str = ""

    @property
    def name(self) -> str:
        """``provider:model``, as agents name it."""
        return f"{self.provider}:{self.model}"


class Model(Protocol):
    """Streams chunks for a request. Wrappers (retries, fallbacks, presets) are models too."""

    @property
    def card(self) -> ModelCard: ...

    def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        """The reply, ending in one `Finished`. Consumed under ``aclosing``; closing aborts the call. ModelError."""
        ...

    def wire(self, request: Request, /) -> Wire:
        """The exact bytes this request would send, and what they cannot carry. Pure and synchronous."""
        ...


def extend(model: Model, request: Request, limit: int = SLICE) -> int:
    """Encodes up to ``limit`` units for a request ahead of `Model.wire`, and says how many are left.

    Models that cache bytes beside the conversation have a method of this name; for others nothing is left. Called in
    a loop, with other tasks in between, it keeps a long history from holding up the event loop at its first use.
    """
    own: Callable[[Request, int], int] | None = getattr(model, "extend", None)
    return 0 if own is None else own(request, limit)


def scope_of(card: ModelCard, session: str | None) -> str:
    """Where native output may be replayed: provider, endpoint, model, session. Never credentials."""
    return _scope(card.provider, card.base_url, card.model, session)


@lru_cache(maxsize=4096)
def _scope(provider: str, base_url: str | None, model: str, session: str | None) -> str:
    if base_url and ("@" in base_url or "?" in base_url or "#" in base_url):  # of models that let it pass
        base_url = _CREDENTIALS.sub(r"\1", re.split("[?#]", base_url, maxsplit=1)[0])
    return dumps([provider, base_url, model, session]).decode()


@lru_cache(maxsize=1024)
def scope_parts(scope: str) -> tuple[Any, Any, Any, Any] | None:
    """Provider, endpoint, model and session of a scope, as `scope_of` made it; None for a text that is none."""
    try:
        held = loads(scope)
    except UNREADABLE:
        return None
    return tuple(held) if isinstance(held, list) and len(held) == 4 else None


def session_in(scope: str) -> str | None:
    """The session of a scope; None when it names none."""
    parts = scope_parts(scope)
    return parts[3] if parts is not None and isinstance(parts[3], str) else None


_CREDENTIALS = re.compile(r"^([^/@]*://)?.*@")  # greedy: a password may hold a slash or an @ that nobody escaped


class Preset:
    """A model with settings of its own; a request's own settings win field by field."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self.model, self.settings = model, settings

    @property
    def card(self) -> ModelCard:
        return self.model.card

    def with_settings(self, request: Request) -> Request:
        """The request with this preset's settings where its own say nothing."""
        own, held = request.settings, self.settings
        merged = {name: value for name in held.__struct_fields__ if (value := getattr(own, name)) not in (None, {})}
        return replace(request, settings=replace(held, **merged) if merged else held)

    def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        return self.model.stream(self.with_settings(request))

    def wire(self, request: Request, /) -> Wire:
        return self.model.wire(self.with_settings(request))

    def extend(self, request: Request, /, limit: int = SLICE) -> int:
        return extend(self.model, self.with_settings(request), limit)


@declared
def preset(
    model: str | Model,
    /,
    *,
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int | None = None,
    stop: tuple[str, ...] | None = None,
    seed: int | None = None,
    thinking: str | int | None = None,
    search: bool | None = None,
    **extra: Json,
) -> Model:
    """A model that always runs with these settings: ``preset("openai:gpt-5", temperature=0.2, max_tokens=800)``.

    ``thinking`` is an effort, a budget in tokens or ``"none"``; ``search=True`` adds the search that the provider runs
    itself. ``extra`` goes into the request body as given. Raises ConfigurationError for an unknown model name, and for
    a value of another type than the setting has.
    """
    settings = Settings(
        temperature=temperature, top_p=top_p, max_tokens=max_tokens, stop=stop, seed=seed, thinking=thinking,
        search=search, extra=extra,
    )  # fmt: skip
    _check(settings)
    return Preset(as_model(model), settings)


_TAKES: Mapping[str, tuple[Any, str]] = {
    "temperature": (float, "a number"),
    "top_p": (float, "a number"),
    "max_tokens": (Annotated[int, Meta(ge=1)], "a whole number above 0"),
    "stop": (tuple[str, ...], "a tuple of texts, such as ('END',)"),
    "seed": (int, "a whole number"),
    "thinking": (str | int, "an effort such as 'low', a number of tokens, or 'none'"),
    "search": (bool, "True or False"),
}


def _check(settings: Settings) -> None:
    """ConfigurationError for a value that its vendor would refuse, or that would be read as something else."""
    for name, (taken, said) in _TAKES.items():
        if (value := getattr(settings, name)) is not None:
            try:
                convert(value, taken)
            except ValidationError:
                raise ConfigurationError(
                    f"{name}= of preset is not {said}", hint="correct it or leave it out"
                ) from None
