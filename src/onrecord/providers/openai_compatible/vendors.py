"""What is known about each vendor: data, and how a model's card and dialect are read from it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from onrecord.errors import ConfigurationError
from onrecord.jsonio import Json
from onrecord.models.model import ModelCard
from onrecord.providers.openai_chat.cards import PROTOCOL, Dialect

__all__ = ("UNKNOWN", "VENDORS", "Family", "Vendor", "address_of", "model_of", "vendor_of")

UNKNOWN = Dialect(keeps=("reasoning_content",))
"""A server about which nothing is known: the plain protocol, and reasoning goes back with calls."""
# Chat templates of models raise an error for a system message that is not the first.
_ONE_SYSTEM = replace(UNKNOWN, one_system=True)


class Family(Struct, frozen=True, kw_only=True):
    """Models whose names match a pattern from the start, and what of card and dialect differs for them."""

    named: str
    card: Mapping[str, Json] = {}
    dialect: Mapping[str, Json] = {}


class Vendor(Struct, frozen=True, kw_only=True):
    """Where a vendor is, how it is paid, and what its models are assumed to do.

    ``url`` may be replaced by the environment variable ``{NAME}_BASE_URL``; ``place`` is a variable with the host for
    vendors where each customer has one, and ``url`` is then what follows it. ``key`` is the variable with the API key,
    empty for servers that need none; ``key_header`` carries it. ``card`` stands for every model of the vendor, each
    of ``families`` that matches a model's name changes something about it.
    """

    url: str
    place: str = ""
    key: str = ""
    key_header: str = "Authorization"
    about: str = ""
    dialect: Dialect = UNKNOWN
    card: ModelCard = ModelCard(provider="", model="", protocol=PROTOCOL)
    families: tuple[Family, ...] = ()

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
        dialect=Dialect(
            thinking="reasoning",
            keeps=("reasoning", "reasoning_details"),
            keeps_all=True,
            search={"tools": [{"type": "openrouter:web_search"}]},
        ),
        card=_card(audio=True, thinking="budget", hosted_search=True),
    ),
    "deepseek": Vendor(
        url="https://api.deepseek.com",
        key="DEEPSEEK_API_KEY",
        about="DeepSeek's own service.",
        # The reasoning of rounds with calls has to come back; of other rounds it is ignored.
        dialect=Dialect(thinking="switch_effort", keeps=("reasoning_content",)),
        card=_card(images=False, files=False, structured="json", thinking="adaptive"),
    ),
    "groq": Vendor(
        url="https://api.groq.com/openai/v1",
        key="GROQ_API_KEY",
        about="Open models on Groq's hardware.",
        dialect=Dialect(cap="max_completion_tokens", search={"tools": [{"type": "browser_search"}]}),
        # Its structured output does not go with streaming or with tools.
        card=_card(files=False, structured="prompt", structured_with_tools=False, thinking="adaptive"),
        families=(
            Family(named="openai/gpt-oss", card={"hosted_search": True, "images": False}),
            Family(named="llama-", card={"thinking": "none", "images": False}, dialect={"thinking": None}),
            # They search on their own, and take no tools of ours.
            Family(named="(groq/)?compound", card={"tools": False, "thinking": "none"}, dialect={"thinking": None}),
        ),
    ),
    "zai": Vendor(
        url="https://api.z.ai/api/paas/v4",
        key="ZAI_API_KEY",
        about="Z.ai's own service.",
        # Its models think unless they are told not to, and a call cannot be demanded of them.
        dialect=Dialect(
            thinking="switch",
            quiet=True,
            forces=False,
            keeps=("reasoning_content",),
            search={
                "tools": [
                    {
                        "type": "web_search",
                        "web_search": {"enable": True, "search_engine": "search-prime", "search_result": True},
                    }
                ]
            },
        ),
        card=_card(images=False, files=False, structured="json", thinking="adaptive", hosted_search=True),
        families=(
            Family(named=r"glm-[\d.]+v", card={"images": True}),
            Family(named=r"glm-(5\.[2-9]|[6-9])", dialect={"thinking": "switch_effort"}),
        ),
    ),
    "mistral": Vendor(
        url="https://api.mistral.ai/v1",
        key="MISTRAL_API_KEY",
        about="Mistral's own service.",
        # It refuses fields that it does not know; token counts come unasked. It searches over another service only.
        dialect=Dialect(seed="random_seed", usage=False),
        card=_card(files=False, thinking="adaptive"),
        families=(
            Family(named="voxtral", card={"audio": True, "images": False}),
            Family(named="(codestral|devstral|open-)", card={"images": False}),
            Family(
                named="(codestral|ministral|voxtral|pixtral|open-)",
                card={"thinking": "none"},
                dialect={"thinking": None},
            ),
            # These think in any case.
            Family(named="magistral", dialect={"thinking": None}),
        ),
    ),
    "xai": Vendor(
        url="https://api.x.ai/v1",
        key="XAI_API_KEY",
        about="xAI's own service.",
        # It searches over its Responses service only.
        dialect=Dialect(cap="max_completion_tokens", keeps=("reasoning_content",)),
        card=_card(files=False, thinking="adaptive"),
        families=(
            Family(named=".*non-reasoning", card={"thinking": "none"}, dialect={"thinking": None}),
            # These think in any case, and refuse to be told how much.
            Family(named="grok-(4-|4$|code|.*-reasoning)", dialect={"thinking": None}),
        ),
    ),
    "azure": Vendor(
        url="/openai/v1",
        place="AZURE_OPENAI_ENDPOINT",
        key="AZURE_OPENAI_API_KEY",
        key_header="api-key",
        about="A deployment in Azure OpenAI; MODEL is the deployment's name.",
        # A deployment may hold any model: what all of them take.
        dialect=Dialect(cap="max_completion_tokens"),
        card=_card(files=False, thinking="adaptive"),
        families=(Family(named="gpt-(3|4)", card={"thinking": "none"}, dialect={"thinking": None}),),
    ),
    "ollama": Vendor(
        url="http://localhost:11434/v1",
        about="A model served by Ollama on this machine.",
        card=_card(files=False, thinking="adaptive"),
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


def vendor_of(provider: str) -> Vendor:
    """The vendor with this name. Raises ConfigurationError naming the ones there are."""
    vendor = VENDORS.get(provider)
    if vendor is None:
        raise ConfigurationError(f"unknown vendor {provider!r}", hint=f"known: {', '.join(sorted(VENDORS))}")
    return vendor


def model_of(provider: str, model: str, *, base_url: str) -> tuple[ModelCard, Dialect]:
    """The card and the dialect of a vendor's model, by its name. Raises ConfigurationError for an empty name."""
    vendor = vendor_of(provider)
    if not model.strip():
        raise ConfigurationError(f"{provider!r} names no model", hint=f"write {provider}:MODEL")
    can: dict[str, Json] = {}
    differs: dict[str, Json] = {}
    for family in vendor.families:
        if re.match(family.named, model):
            can |= family.card
            differs |= family.dialect
    about = {"provider": provider, "model": model, "base_url": base_url, "about": vendor.about}
    return replace(vendor.card, **about, **can), replace(vendor.dialect, **differs)


def address_of(provider: str, endpoint: str | None = None) -> str:
    """Where a vendor's requests go: ``{NAME}_BASE_URL``, else its own address, at the customer's host where it has one.

    ``endpoint`` is such a host. Raises ConfigurationError where one is needed and nobody names it.
    """
    vendor = vendor_of(provider)
    if endpoint is None:
        if moved := os.environ.get(f"{provider.upper()}_BASE_URL"):
            return moved
        if not vendor.place:
            return vendor.url
        endpoint = os.environ.get(vendor.place, "").strip()
    if not endpoint:
        raise ConfigurationError(
            f"{provider!r} has no address of its own: each customer has an endpoint",
            hint=f"set {vendor.place}, such as https://NAME.openai.azure.com, or {provider.upper()}_BASE_URL",
        )
    endpoint = endpoint.rstrip("/")
    return endpoint if endpoint.endswith(vendor.url) else endpoint + vendor.url
