"""The GenAI semantic conventions of OpenTelemetry, as far as entries can fill them.

Names follow github.com/open-telemetry/semantic-conventions-genai (status: development) at commit 002c8a6; what has no
name there begins with ``onrecord.``. Attributes for texts, arguments and results exist there too, and are not here on
purpose.
"""

from __future__ import annotations

from collections.abc import Mapping

from onrecord.conversation.usage import Usage
from onrecord.jsonio import Json
from onrecord.record.kinds import ModelReplied, ModelRequested

__all__ = (
    "AGENT_NAME",
    "CALL_ID",
    "CONVERSATION_ID",
    "ERROR_TYPE",
    "OPERATION",
    "TOOL_NAME",
    "TOOL_TYPE",
    "Attributes",
    "of_model",
    "of_reply",
    "of_request",
    "of_usage",
)

Attributes = dict[str, str | int | float | bool | tuple[str, ...]]

AGENT_NAME = "gen_ai.agent.name"
CALL_ID = "gen_ai.tool.call.id"
CONVERSATION_ID = "gen_ai.conversation.id"
ERROR_TYPE = "error.type"
OPERATION = "gen_ai.operation.name"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"

_PROVIDER, _MODEL = "gen_ai.provider.name", "gen_ai.request.model"
_SETTINGS = {
    "max_tokens": "gen_ai.request.max_tokens",
    "seed": "gen_ai.request.seed",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
}
_COUNTS = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_input_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "openai-responses": "openai",
    "vertex": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Providers that the conventions call otherwise than a model's name does; all others are called the same."""

_FINISHES = {"calls": "tool_call", "content": "content_filter"}


def of_model(name: str) -> Attributes:
    """The attributes of a model by its name, ``provider:model``; none where the name is not of that form."""
    provider, colon, model = name.partition(":")
    return {_PROVIDER: _PROVIDERS.get(provider, provider), _MODEL: model} if colon and provider and model else {}


def of_request(body: ModelRequested) -> Attributes:
    """What was asked of which model, without a word of it."""
    settings: Mapping[str, Json] = {} if body.receipt is None else body.receipt.settings
    told: Attributes = {OPERATION: "chat", **of_model(body.model), "onrecord.model.purpose": body.purpose}
    for key, name in _SETTINGS.items():
        value = settings.get(key)
        if isinstance(value, (int, float)):
            told[name] = value
    return told


def of_reply(body: ModelReplied) -> Attributes:
    """Who answered, how it ended and what it cost."""
    use = body.round.use
    if use is None:
        return {}
    return {
        "gen_ai.response.model": use.model,
        "gen_ai.response.finish_reasons": (_FINISHES.get(use.finish, use.finish),),
        **of_usage(use.usage),
    }


def of_usage(usage: Usage | None) -> Attributes:
    """Token counts; those that nobody counted are left out."""
    if usage is None:
        return {}
    counts = {key: int(getattr(usage, key)) for key in _COUNTS}
    return {_COUNTS[key]: n for key, n in counts.items() if n or key in {"input_tokens", "output_tokens"}}
