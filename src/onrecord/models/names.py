"""Model names such as ``openai:gpt-5-mini``: which provider package answers, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from onrecord.errors import ConfigurationError

if TYPE_CHECKING:
    from onrecord.models.model import Model

__all__ = ("PROVIDERS", "as_model", "check_model", "model_named")

PROVIDERS: dict[str, str] = {
    "openai": "onrecord.providers.openai_chat.client",
    "openai-responses": "onrecord.providers.openai_responses.client",
    "anthropic": "onrecord.providers.anthropic.client",
    "google": "onrecord.providers.google.client",
    "openrouter": "onrecord.providers.openai_compatible.client",
    "deepseek": "onrecord.providers.openai_compatible.client",
    "groq": "onrecord.providers.openai_compatible.client",
    "zai": "onrecord.providers.openai_compatible.client",
    "mistral": "onrecord.providers.openai_compatible.client",
    "xai": "onrecord.providers.openai_compatible.client",
    "azure": "onrecord.providers.openai_compatible.client",
    "ollama": "onrecord.providers.openai_compatible.client",
    "llamacpp": "onrecord.providers.openai_compatible.client",
    "vllm": "onrecord.providers.openai_compatible.client",
    "local": "onrecord.providers.local.client",
    "offline": "onrecord.providers.offline.client",
}
"""Provider to the module whose ``named(provider, model)`` builds the model. Data, so that nothing here imports up."""

_MAKERS = {
    "chatgpt": "openai", "claude": "anthropic", "gemini": "google", "gemma": "google", "gpt": "openai", "grok": "xai",
    "magistral": "mistral", "responses": "openai-responses",
}  # fmt: skip
"""How people begin the name of a model, or of who makes it, and the provider that they mean."""


def model_named(name: str) -> Model:
    """The model with this name, ``provider:model``. Raises ConfigurationError naming the nearest known provider."""
    provider, _, model = name.partition(":")
    if provider not in PROVIDERS:
        raise _unknown(name, provider, model)
    found: Model = import_module(PROVIDERS[provider]).named(provider, model)
    return found


def as_model(model: Model | str) -> Model:
    """A model, given itself or by its name. ConfigurationError as `model_named`."""
    return model_named(model) if isinstance(model, str) else model


def check_model(owner: str, model: object, *, hint: str) -> None:
    """ConfigurationError for what is neither a model nor a name; ``owner`` is whose ``model=`` it is."""
    if not isinstance(model, str) and not hasattr(model, "card"):
        raise ConfigurationError(
            f"the model of {owner} is a model or its name, not a {type(model).__name__}", hint=hint
        )


def _unknown(name: str, provider: str, model: str) -> ConfigurationError:
    from difflib import get_close_matches

    low = provider.strip().lower()
    near = _MAKERS.get(low) or next(iter(get_close_matches(low, PROVIDERS, n=1)), "")
    known = f"known providers: {', '.join(sorted(PROVIDERS))}"
    before, slash, rest = name.partition("/")
    maker = next((held for begins, held in _MAKERS.items() if not model and name.startswith(begins + "-")), "")
    meant = f"{before}:{rest}" if slash and before in PROVIDERS else f"{maker}:{name}" if maker else ""
    if meant:  # another separator, or a bare model name, as other libraries take them
        return ConfigurationError(f"{name!r} names no model provider", hint=f"did you mean {meant!r}?; {known}")
    if not model and not near:
        return ConfigurationError(f"{name!r} names no model provider", hint=f"write provider:model; {known}")
    return ConfigurationError(f"unknown model provider in {name!r}", hint=f"did you mean {near!r}?" if near else known)
