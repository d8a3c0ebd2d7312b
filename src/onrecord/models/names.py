"""Model names such as ``openai:gpt-5-mini``: which provider package answers, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from onrecord.errors import ConfigurationError

if TYPE_CHECKING:
    from onrecord.models.model import Model

__all__ = ("PROVIDERS", "as_model", "model_named")

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


def model_named(name: str) -> Model:
    """The model with this name, ``provider:model``. Raises ConfigurationError naming the nearest known provider."""
    provider, _, model = name.partition(":")
    if provider not in PROVIDERS:
        from difflib import get_close_matches

        near = get_close_matches(provider, PROVIDERS, n=1)
        known = f"known providers: {', '.join(sorted(PROVIDERS))}"
        before, slash, rest = name.partition("/")
        separated = slash and before in PROVIDERS
        if separated or (not model and not near):  # another separator, or a bare model name, as other libraries take it
            meant = f"did you mean '{before}:{rest}'?" if separated else "write provider:model"
            raise ConfigurationError(f"{name!r} names no model provider", hint=f"{meant}; {known}")
        raise ConfigurationError(
            f"unknown model provider in {name!r}", hint=f"did you mean {near[0]!r}?" if near else known
        )
    found: Model = import_module(PROVIDERS[provider]).named(provider, model)
    return found


def as_model(model: Model | str) -> Model:
    """A model, given itself or by its name. ConfigurationError as `model_named`."""
    return model_named(model) if isinstance(model, str) else model
