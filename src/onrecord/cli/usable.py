"""Which providers can be used on this machine, and what each of the others needs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from onrecord.errors import ConfigurationError
from onrecord.models.model import Model
from onrecord.models.names import PROVIDERS, model_named
from onrecord.providers.http_model import HttpModel
from onrecord.providers.openai_compatible import Available, available

__all__ = ("EXAMPLES", "endpoint_of", "example", "found_here")

EXAMPLES = {
    "offline": "offline",
    "openai": "openai:gpt-5-mini",
    "openai-responses": "openai-responses:gpt-5-mini",
    "anthropic": "anthropic:claude-sonnet-4-5",
    "google": "google:gemini-3.8-flash",
    "openrouter": "openrouter:VENDOR/MODEL",
    "azure": "azure:DEPLOYMENT",
    "local": "local:FILE.gguf",
}
"""How a model of a provider is named; of the others ``provider:MODEL``."""


def example(provider: str) -> str:
    """A name that shows how models of this provider are named."""
    return EXAMPLES.get(provider, f"{provider}:MODEL")


def found_here() -> Iterator[Available]:
    """Every provider that a model name can begin with: the stand-in, then in the order in which names are looked up."""
    yield Available("offline", usable=True, why="a rule-based stand-in, no language model: for first steps and tests")
    told = {row.name: row for row in available()}
    for name in PROVIDERS:
        if name not in {"offline", "local"}:
            yield told.get(name) or _by_its_key(name)
    if find_spec("xllamacpp") is None:
        yield Available("local", usable=False, why='pip install "onrecord[local]", then name a GGUF file')
    else:
        yield Available("local", usable=True, why="runs a GGUF file of yours through llama.cpp")


def endpoint_of(model: object) -> HttpModel | None:
    """The model behind an endpoint that is inside wrappers, if there is one."""
    while model is not None and not isinstance(model, HttpModel):
        model = getattr(model, "model", None)
    return model


def _by_its_key(provider: str) -> Available:
    """A provider that nobody has told about yet, by the key that its models look for."""
    try:
        model: Model = model_named(example(provider))
    except ConfigurationError as error:
        return Available(provider, usable=False, why=error.hint or str(error))
    endpoint = endpoint_of(model)
    if endpoint is None:
        return Available(provider, usable=True, why="needs no key")
    key = endpoint.key
    if key.read() is None and key.needed:
        return Available(provider, usable=False, why=f"set {key.variable}")
    return Available(provider, usable=True, why=f"{key.variable} is set" if key.read() else "needs no key")
