"""What is known about each vendor, and models of vendors about which nothing is known."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from onrecord.errors import ConfigurationError
from onrecord.jsonio import Json
from onrecord.models.model import Model, ModelCard
from onrecord.models.retry import Reliable
from onrecord.providers.api_keys import Key
from onrecord.providers.http_model import SILENCE_S
from onrecord.providers.openai_chat.cards import PROTOCOL, Dialect
from onrecord.providers.openai_chat.client import ChatModel

__all__ = ("VENDORS", "Available", "Vendor", "available", "named", "openai_compatible")

_PROBE_S = 0.3
_UNKNOWN = Dialect(keeps=("reasoning_content",))
# Chat templates of models raise an error for a system message that is not the first.
_ONE_SYSTEM = replace(_UNKNOWN, one_system=True)


class Vendor(Struct, frozen=True, kw_only=True):
    """Where a vendor is, how it is paid, and what its models are assumed to do.

    ``url`` may be replaced by the environment variable ``{NAME}_BASE_URL``; ``key`` is the variable with the API key,
    empty for servers that need none. ``card`` stands for every model of the vendor.
    """

    url: str
    key: str = ""
    about: str = ""
    dialect: Dialect = _UNKNOWN
    card: ModelCard = ModelCard(provider="", model="", protocol=PROTOCOL)

    @property
    def runs_here(self) -> bool:
        """Whether this is a server that people run themselves."""
        return not self.key


def _card(**can: Json) -> ModelCard:
    return ModelCard(provider="", model="", protocol=PROTOCOL, **can)


VENDORS: Mapping[str, Vendor] = {
    "openrouter": Vendor(
        url="https://openrouter.ai/api/v1",
        key="OPENROUTER_API_KEY",
        about="Models of many vendors through OpenRouter.",
        dialect=Dialect(thinking="reasoning", keeps=("reasoning", "reasoning_details"), keeps_all=True),
        card=_card(audio=True, thinking="budget"),
    ),
    "deepseek": Vendor(
        url="https://api.deepseek.com",
        key="DEEPSEEK_API_KEY",
        about="DeepSeek's own service.",
        # The reasoning of rounds with calls has to come back; of other rounds it is ignored.
        dialect=Dialect(keeps=("reasoning_content",)),
        card=_card(images=False, files=False, structured="json", thinking="adaptive"),
    ),
    "groq": Vendor(
        url="https://api.groq.com/openai/v1",
        key="GROQ_API_KEY",
        about="Open models on Groq's hardware.",
        dialect=Dialect(cap="max_completion_tokens"),
        # Its structured output does not go with streaming or with tools.
        card=_card(files=False, structured="prompt", structured_with_tools=False, thinking="adaptive"),
    ),
    "zai": Vendor(
        url="https://api.z.ai/api/paas/v4",
        key="ZAI_API_KEY",
        about="Z.ai's own service.",
        dialect=Dialect(thinking="switch", keeps=("reasoning_content",)),
        card=_card(files=False, structured="json", thinking="adaptive"),
    ),
    "ollama": Vendor(
        url="http://localhost:11434/v1",
        about="A model served by Ollama on this machine.",
        card=_card(files=False),
    ),
    "llamacpp": Vendor(
        url="http://localhost:8080/v1",
        about="A model served by llama.cpp on this machine.",
        dialect=replace(_ONE_SYSTEM, thinking=None),
        card=_card(files=False),
    ),
    "vllm": Vendor(
        url="http://localhost:8000/v1",
        about="A model served by vLLM on this machine.",
        dialect=_ONE_SYSTEM,
        card=_card(audio=True, files=False),
    ),
}


def openai_compatible(
    base_url: str,
    model: str,
    /,
    *,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    provider: str = "openai-compatible",
    card: ModelCard | None = None,
    dialect: Dialect = _UNKNOWN,
    extra: Mapping[str, Json] | None = None,
    silence_s: float = SILENCE_S,
    retry: bool = True,
) -> Model:
    """A model behind any server that speaks Chat Completions, such as ``http://localhost:8080/v1``.

    Without ``api_key`` no authorization is sent. ``card`` says what the model can do (default: text, images, files
    and tools, structured output by JSON Schema), ``dialect`` how the server differs; ``extra`` goes into every body.
    ``retry=False`` leaves out the waits of `Reliable`. Raises ConfigurationError for an address that is none.
    """
    about = card or ModelCard(provider=provider, model=model, protocol=PROTOCOL)
    held = ChatModel(
        replace(about, provider=provider, model=model, protocol=PROTOCOL, base_url=base_url),
        dialect=dialect,
        key=Key(api_key),
        headers=headers,
        silence_s=silence_s,
        extra=extra,
    )
    return Reliable(held) if retry else held


def named(provider: str, model: str) -> Model:
    """``vendor:MODEL`` for a vendor of `VENDORS`, with waits. Raises ConfigurationError."""
    vendor = VENDORS.get(provider)
    if vendor is None:
        raise ConfigurationError(f"unknown vendor {provider!r}", hint=f"known: {', '.join(sorted(VENDORS))}")
    if not model:
        raise ConfigurationError(f"{provider!r} names no model", hint=f"write {provider}:MODEL")
    card = replace(vendor.card, provider=provider, model=model, base_url=_url(provider, vendor), about=vendor.about)
    extra = None
    if provider == "openrouter" and "/" in model:
        # The vendor's own machines first; others only when those cannot answer.
        extra = {"provider": {"order": [model.split("/", 1)[0]], "allow_fallbacks": True}}
    key = Key(variable=vendor.key, needed=True) if vendor.key else Key(variable=f"{provider.upper()}_API_KEY")
    return Reliable(ChatModel(card, dialect=vendor.dialect, key=key, extra=extra))


def _url(name: str, vendor: Vendor) -> str:
    return os.environ.get(f"{name.upper()}_BASE_URL") or vendor.url


class Available(NamedTuple):
    """Whether models of a provider can be used here, and what is there or missing."""

    name: str
    usable: bool
    why: str


def available() -> list[Available]:
    """Every provider that is reached over HTTP. Reads the environment, and tries the ports of servers run here."""
    found = [_by_key("openai", "OPENAI_API_KEY"), _by_key("openai-responses", "OPENAI_API_KEY")]
    for name, vendor in VENDORS.items():
        found.append(_by_port(name, _url(name, vendor)) if vendor.runs_here else _by_key(name, vendor.key))
    return found


def _by_key(name: str, variable: str) -> Available:
    if Key(variable=variable).read() is not None:
        return Available(name, usable=True, why=f"{variable} is set")
    return Available(name, usable=False, why=f"set {variable}")


def _by_port(name: str, url: str) -> Available:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "localhost", port), timeout=_PROBE_S):
            return Available(name, usable=True, why=f"a server answers at {url}")
    except (OSError, ValueError):  # nobody answers, or the variable holds no address at all
        return Available(name, usable=False, why=f"start its server at {url}, or set {name.upper()}_BASE_URL")
