"""What a request asks for beside its conversation, as fields of the body, and what of it is refused. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from onrecord.jsonio import Json
from onrecord.models.model import ModelCard
from onrecord.models.request import Offer, Request, Settings
from onrecord.providers.anthropic.cards import NAMES, Rules

__all__ = ("OWN_FIELDS", "THINKING_LEAST", "Wishes", "is_forced", "wants_thinking")

OWN_FIELDS = frozenset({"model", "messages", "stream", "system"})
MAX_TOKENS = 4096
THINKING_LEAST = 1024
SEARCH = "web_search"
SEARCH_TYPE = "web_search_20250305"
_OFF = ("none", "off", 0)


class Wishes:
    """The fields that one model takes."""

    def __init__(self, card: ModelCard, rules: Rules) -> None:
        self.card, self.rules = card, rules

    # ---- fields

    def fields(self, request: Request, *, thinks: bool) -> dict[str, Json]:
        """All fields but the model, what was said, and the instructions; ``thinks`` is whether thinking fits in now."""
        settings, card = request.settings, self.card
        held: dict[str, Json] = {"max_tokens": self._max_tokens(settings)}
        tools = self.tools(request)
        if tools:
            held["tools"] = tools
            if (choice := _choice(request.choice)) is not None:
                held["tool_choice"] = choice
        if self.rules.sampling:
            held |= {"temperature": settings.temperature, "top_p": settings.top_p}
        if settings.stop:
            held["stop_sequences"] = settings.stop
        output: dict[str, Json] = {}
        if isinstance(settings.thinking, str) and card.thinking == "adaptive" and wants_thinking(settings):
            output["effort"] = settings.thinking
        if request.shape is not None and self.shapes(request):
            output["format"] = {"type": "json_schema", "schema": request.shape.schema}
        if thinks and (thinking := self._thinking(settings)):
            held["thinking"] = thinking
        if output:
            held["output_config"] = output
        held = {name: value for name, value in held.items() if value is not None}
        own = {name: value for name, value in settings.extra.items() if name not in OWN_FIELDS}
        return held | own | {"stream": True}

    def tools(self, request: Request) -> list[dict[str, Json]]:
        """Definitions of the tools offered, the vendor's own search last."""
        if not self.card.tools:
            return []
        tools = [_tool(offer) for offer in request.offers]
        if request.settings.search:
            tools.append({"type": SEARCH_TYPE, "name": SEARCH})
        return tools

    def shapes(self, request: Request) -> bool:
        """Whether the vendor is asked to keep to a schema; else the model is, in words."""
        card = self.card
        return card.structured == "native" and (card.structured_with_tools or not (request.offers and card.tools))

    def _max_tokens(self, settings: Settings) -> int:
        cap = MAX_TOKENS if settings.max_tokens is None else settings.max_tokens
        budget = settings.thinking
        if isinstance(budget, int) and budget >= cap and self.card.thinking != "none":
            return budget + THINKING_LEAST
        return cap

    def _thinking(self, settings: Settings) -> dict[str, Json]:
        rules = self.rules
        bound = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}} if rules.binds else {}
        if settings.thinking is None and not rules.quiet:
            return {"type": "adaptive", **bound} if bound else {}
        if settings.thinking is None or not wants_thinking(settings):
            return {} if rules.off in {"omit", "never"} else {"type": rules.off, **bound}
        if self.card.thinking == "budget":
            return {"type": "enabled", "budget_tokens": settings.thinking}
        if rules.on == "enabled":
            return {"type": "enabled"}
        return {"type": "adaptive", "display": "summarized", **bound}

    # ---- refusals

    def refusals(self, request: Request) -> Iterable[str]:
        """What cannot be asked of this model, each by its name."""
        settings = request.settings
        for name in sorted(OWN_FIELDS & settings.extra.keys()):
            yield f"settings with an extra field {name!r}: the request itself decides it"
        if settings.seed is not None:
            yield "a seed: Messages takes none"
        if any(not text.strip() for text in settings.stop or ()):
            yield "a stop text that is blank: Messages takes none"
        yield from self._tool_refusals(request)
        yield from self._sampling_refusals(settings)

    def _tool_refusals(self, request: Request) -> Iterable[str]:
        card, search = self.card, request.settings.search
        if card.tools:
            yield from NAMES.refusals(request.offers)
        if is_forced(request.choice):
            if not card.tools:
                yield f"a tool choice {request.choice!r}: {card.name!r} takes no tools"
            elif not self.rules.forced:
                yield f"a tool choice {request.choice!r}: {card.name!r} cannot be made to call a tool"
        if search and card.tools and not card.hosted_search:
            yield f"a search of the provider's own: {card.name!r} has none"
        if search and any(offer.spec.name == SEARCH for offer in request.offers):
            yield f"a tool named {SEARCH!r} beside the provider's own search of that name"

    def _sampling_refusals(self, settings: Settings) -> Iterable[str]:
        name, temperature, top_p = self.card.name, settings.temperature, settings.top_p
        if not self.rules.sampling:
            if self._thinks(settings):
                return  # told with the thinking
            for field, value in _sampling(settings):
                if value not in {None, 1}:
                    yield f"{field} {value}: {name!r} takes no sampling settings"
            return
        if temperature is not None and not 0 <= temperature <= 1:
            yield f"temperature {temperature}: Messages takes 0 to 1"
        if temperature is not None and top_p is not None and not self.rules.both:
            yield f"temperature and top_p at once: {name!r} takes one of them"

    def _thinks(self, settings: Settings) -> bool:
        return self.card.thinking != "none" and wants_thinking(settings)

    def thinking_refusals(self, request: Request) -> Iterable[str]:
        """Why this model cannot be asked to think in the way of this request."""
        settings, card = request.settings, self.card
        wanted = settings.thinking
        if wanted is None:
            return
        if not wants_thinking(settings):
            if self.rules.off == "never":
                yield f"thinking turned off: {card.name!r} always thinks"
            return
        if card.thinking == "none":
            yield f"thinking: {card.name!r} has none"
            return
        if card.thinking == "budget" and (type(wanted) is not int or wanted < THINKING_LEAST):
            yield (
                f"thinking {wanted!r}: {card.name!r} takes a budget, a whole number of tokens of at least "
                f"{THINKING_LEAST}"
            )
        for field, value in _sampling(settings):
            if self.rules.sampling and field == "top_p" and value is not None and 0.95 <= value <= 1:
                continue
            if value is not None and (field == "top_k" or value != 1):
                yield f"{field} {value} with thinking: a model that thinks takes the default"
        if is_forced(request.choice) and self.rules.forced:
            yield f"a tool choice {request.choice!r} with thinking: a model that thinks chooses itself"


def wants_thinking(settings: Settings) -> bool:
    """Whether thinking is asked for; ``"none"``, ``"off"`` and 0 ask for none."""
    return settings.thinking is not None and settings.thinking not in _OFF


def is_forced(choice: str) -> bool:
    """Whether a choice insists on a tool."""
    return choice not in {"auto", "none"}


def _sampling(settings: Settings) -> Sequence[tuple[str, Any]]:
    extra = settings.extra
    return (
        ("temperature", settings.temperature if settings.temperature is not None else extra.get("temperature")),
        ("top_p", settings.top_p if settings.top_p is not None else extra.get("top_p")),
        ("top_k", extra.get("top_k")),
    )


def _choice(choice: str) -> dict[str, Json] | None:
    match choice:
        case "auto":
            return None
        case "none":
            return {"type": "none"}
        case "required":
            return {"type": "any"}
        case name:
            return {"type": "tool", "name": name}


def _tool(offer: Offer) -> dict[str, Json]:
    spec = offer.spec
    about = {"description": spec.description} if spec.description else {}
    return {"name": spec.name, **about, "input_schema": spec.schema}
