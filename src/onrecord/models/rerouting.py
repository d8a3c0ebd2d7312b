"""Another model answers: a request as it is for that model, and a reply that says who gave it.

A request belongs to the model that it was composed for: its bytes, its scope, its headers. Sent to another one it
keeps what is portable, and native output of the first is shown to the other in its portable form.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from msgspec.structs import replace

from onrecord.errors import ConfigurationError
from onrecord.models.chunks import Finished
from onrecord.models.model import Model, ModelCard, extend, scope_of, session_in
from onrecord.models.names import as_model
from onrecord.models.raised_errors import raised_error
from onrecord.models.request import Request, Wire

__all__ = (
    "Rerouted",
    "answered_by",
    "fitted",
    "fitting_wire",
    "labels_of",
    "models_of",
    "sent_to",
    "shared_card",
)

log = logging.getLogger("onrecord.models")

_THINKING = ("none", "budget", "adaptive")
"""From the one that takes least to the one that takes most: a budget must be whole and large enough for all."""
_STRUCTURED = ("prompt", "json", "native")


class Rerouted(Wire, frozen=True, kw_only=True):
    """The bytes of model ``at`` of the wrapper ``by``: the models before it cannot carry the request."""

    by: object
    at: int
    wire: Wire


def models_of(given: Sequence[Model | str], whose: str) -> tuple[Model, ...]:
    """Models and names of models as models. ConfigurationError for what is neither, and for none at all."""
    if not given:
        raise ConfigurationError(f"{whose} needs at least one model", hint=f"{whose}(first, second)")
    for model in given:
        if not isinstance(model, str) and not hasattr(model, "card"):
            raise ConfigurationError(
                f"{whose} takes models or their names, not a {type(model).__name__}",
                hint="for a name write 'provider:model'",
            )
    return tuple(map(as_model, given))


def labels_of(models: Sequence[Model]) -> tuple[str, ...]:
    """A name for each model: its card's, and ``/2``, ``/3``, ... behind one that was there already."""
    seen: dict[str, int] = {}
    labels: list[str] = []
    for model in models:
        name = model.card.name
        seen[name] = seen.get(name, 0) + 1
        labels.append(name if seen[name] == 1 else f"{name}/{seen[name]}")
    return tuple(labels)


def shared_card(models: Sequence[Model]) -> ModelCard:
    """The first model's card with no more than all of them can do, since any of them may answer."""
    first, *others = (model.card for model in models)
    if not others:
        return first
    cards = (first, *others)
    return replace(
        first,
        context_tokens=min((c.context_tokens for c in cards if c.context_tokens is not None), default=None),
        output_tokens=min((c.output_tokens for c in cards if c.output_tokens is not None), default=None),
        images=all(c.images for c in cards),
        audio=all(c.audio for c in cards),
        files=all(c.files for c in cards),
        tools=all(c.tools for c in cards),
        hosted_search=all(c.hosted_search for c in cards),
        thinking=min((c.thinking for c in cards), key=_THINKING.index),
        least_thinking=max(c.least_thinking for c in cards),
        structured=min((c.structured for c in cards), key=_STRUCTURED.index),
        structured_with_tools=all(c.structured_with_tools for c in cards),
        needs_tools_with_calls=any(c.needs_tools_with_calls for c in cards),
        arrays=all(c.arrays for c in cards),
        steps=min((c.steps for c in cards if c.steps is not None), default=None),
        cache_marks=any(c.cache_marks for c in cards),  # to the others they are nothing
    )


def sent_to(model: Model, request: Request, first: ModelCard) -> Request:
    """The request as it is for another model than the ``first``.

    Headers of the request hold what the first model's server may know, so they go to no other server.
    """
    card = model.card
    is_near = card.provider == first.provider and card.base_url == first.base_url
    return replace(
        request, model=model, scope=scope_of(card, session_in(request.scope)), wire=None,
        headers=request.headers if is_near else None,
    )  # fmt: skip


def fitting_wire(by: object, models: Sequence[Model], request: Request) -> Wire:
    """The bytes of the first of these models that can carry the request; what the first lacks, if none can."""
    wire = models[0].wire(request)
    if not wire.refusing(request.view):
        return wire
    first = models[0].card
    for at, model in enumerate(models[1:], 1):
        other = model.wire(sent_to(model, request, first))
        if not other.refusing(request.view):
            return Rerouted(
                body=other.body, issues=other.issues, stable_until=other.stable_until, by=by, at=at, wire=other
            )
    return wire


async def fitted(model: Model, request: Request, first: ModelCard) -> Request | None:
    """The request with its bytes for another model; None when that one cannot carry it. Long histories go in slices."""
    asked = sent_to(model, request, first)
    try:
        left = extend(model, asked)
        while left:  # other tasks run in between
            await asyncio.sleep(0)
            left = extend(model, asked)
        wire = model.wire(asked)
    except Exception as error:  # noqa: BLE001 - other people's models raise anything
        # A model that cannot write the request down is passed over like one that cannot carry it; which, is told. What
        # says that the library was used wrongly goes on: no other model changes that.
        told = raised_error(model.card.provider, model.card.name, error)
        log.warning("a request was not sent to %s: %s", model.card.name, told)
        return None
    return None if wire.refusing(request.view) else replace(asked, wire=wire)


def answered_by(card: ModelCard, asked: Request, finished: Finished) -> Finished:
    """The end of a reply, with the name of the model that gave it."""
    if finished.provider and finished.protocol and finished.scope and finished.model:
        return finished
    return replace(
        finished, model=finished.model or card.model, provider=finished.provider or card.provider,
        protocol=finished.protocol or card.protocol, scope=finished.scope or asked.scope,
    )  # fmt: skip
