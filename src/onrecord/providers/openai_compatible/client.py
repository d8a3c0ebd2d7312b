"""Models of compatible vendors, and of servers about which nothing is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from onrecord.jsonio import Json
from onrecord.models.model import Model, ModelCard
from onrecord.models.retry import Reliable
from onrecord.providers.api_keys import Key
from onrecord.providers.http_model import SILENCE_S
from onrecord.providers.openai_chat.cards import PROTOCOL, Dialect
from onrecord.providers.openai_chat.client import ChatModel
from onrecord.providers.openai_compatible.vendors import UNKNOWN, address_of, model_of, vendor_of

__all__ = ("azure", "named", "openai_compatible", "openrouter", "vendor_model")


class _KeyHeader(ChatModel):
    """A vendor that takes its key bare, in a header of its own."""

    key_header = "api-key"
    key_prefix = ""


def openai_compatible(
    base_url: str,
    model: str,
    /,
    *,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    provider: str = "openai-compatible",
    card: ModelCard | None = None,
    dialect: Dialect = UNKNOWN,
    extra: Mapping[str, Json] | None = None,
    silence_s: float = SILENCE_S,
    retry: bool = True,
) -> Model:
    """A model behind any server that speaks Chat Completions, such as ``http://localhost:8080/v1``.

    Without ``api_key`` no authorization is sent. ``card`` says what the model can do (default: text, images, files
    and tools, structured output by JSON Schema, until the server says otherwise), ``dialect`` how the server differs;
    ``extra`` goes into every body. ``retry=False`` leaves out the waits of `Reliable`. Raises ConfigurationError for an
    empty key or model, and for an address that is none.
    """
    about = card or ModelCard(provider=provider, model=model, protocol=PROTOCOL)
    held = ChatModel(
        replace(about, provider=provider, model=model, protocol=PROTOCOL, base_url=base_url),
        dialect=dialect,
        key=Key(api_key),
        headers=headers,
        silence_s=silence_s,
        extra=extra,
        learns=card is None,
    )
    return Reliable(held) if retry else held


def vendor_model(
    provider: str,
    model: str,
    /,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Json] | None = None,
    silence_s: float = SILENCE_S,
    retry: bool = True,
) -> Model:
    """A model of a vendor of `VENDORS`, as ``provider:model`` names it, with a key, an address or fields of your own.

    The key is ``api_key``, else the vendor's variable at each call. Raises ConfigurationError for an unknown vendor, an
    empty key or model, and an address that is none.
    """
    vendor = vendor_of(provider)
    card, dialect = model_of(provider, model, base_url=base_url or address_of(provider))
    variable = vendor.key or f"{provider.upper()}_API_KEY"
    kind = ChatModel if vendor.key_header == ChatModel.key_header else _KeyHeader
    held = kind(
        card,
        dialect=dialect,
        key=Key(api_key, variable=variable, needed=not vendor.runs_here),
        headers=headers,
        extra=extra,
        silence_s=silence_s,
    )
    return Reliable(held) if retry else held


def openrouter(
    model: str,
    /,
    *,
    api_key: str | None = None,
    site_url: str | None = None,
    site_name: str | None = None,
    provider_order: Sequence[str] | None = None,
    base_url: str | None = None,
    headers: Mapping[str, str] | None = None,
    silence_s: float = SILENCE_S,
    retry: bool = True,
) -> Model:
    """A model through OpenRouter; ``site_url`` and ``site_name`` say there which application asks.

    ``provider_order`` names the hosts to try first; default is the vendor in the model's name, so that a conversation
    stays where its prompt cache is. Others answer when none of them can. An empty one leaves the choice to OpenRouter.
    """
    about = {"HTTP-Referer": site_url, "X-Title": site_name}
    given = {name: value for name, value in about.items() if value} | dict(headers or {})
    order = list(provider_order) if provider_order is not None else _own_host(model)
    extra = {"provider": {"order": order, "allow_fallbacks": True}} if order else None
    return vendor_model(
        "openrouter", model, api_key=api_key, base_url=base_url, headers=given, extra=extra, silence_s=silence_s,
        retry=retry,
    )  # fmt: skip


def azure(
    deployment: str,
    /,
    *,
    endpoint: str | None = None,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    silence_s: float = SILENCE_S,
    retry: bool = True,
) -> Model:
    """A deployment in Azure OpenAI, over its v1 service; its name stands for the model.

    ``endpoint`` is the resource's address, ``https://NAME.openai.azure.com`` (default: ``AZURE_OPENAI_ENDPOINT``). The
    key is ``api_key``, else ``AZURE_OPENAI_API_KEY`` at each call; with a token of Entra ID, each request brings its
    ``Authorization`` header instead.
    """
    return vendor_model(
        "azure", deployment, api_key=api_key, base_url=address_of("azure", endpoint), headers=headers,
        silence_s=silence_s, retry=retry,
    )  # fmt: skip


def named(provider: str, model: str) -> Model:
    """``vendor:MODEL`` for a vendor of `VENDORS`, with waits. Raises ConfigurationError."""
    return openrouter(model) if provider == "openrouter" else vendor_model(provider, model)


def _own_host(model: str) -> list[str]:
    vendor, slash, _ = model.partition("/")
    return [vendor] if slash else []
