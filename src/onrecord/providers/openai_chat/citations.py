"""Sources of a reply's text, in the forms that vendors of Chat Completions name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from onrecord.conversation.content import Citation
from onrecord.providers.openai_chat.events import Event

__all__ = ("annotated", "fresh", "named_by", "searched")


def annotated(annotations: Sequence[dict[str, Any]]) -> tuple[Citation, ...]:
    """Sources of passages, as the protocol has them; what else is annotated is passed over."""
    return tuple(
        found for held in annotations if (found := _source(held.get("url_citation"), "start_index", "end_index"))
    )


def fresh(sources: Iterable[Citation], known: set[str]) -> tuple[Citation, ...]:
    """The sources whose addresses are not ``known`` yet, and now are: vendors repeat them in every event."""
    new: list[Citation] = []
    for one in sources:
        if one.url not in known:
            known.add(one.url)
            new.append(one)
    return tuple(new)


def named_by(event: Event) -> tuple[Citation, ...]:
    """Sources of the whole text, as the event names them."""
    return _listed(event.citations) + _listed(event.web_search)


def _listed(sources: object) -> tuple[Citation, ...]:
    """A list of addresses, or of objects with an address and a title."""
    if not isinstance(sources, list):
        return ()
    objects = ({"url": one} if isinstance(one, str) else one for one in sources)
    return tuple(found for held in objects if (found := _source(held)))


def searched(executed: object) -> tuple[Citation, ...]:
    """What the vendor's own searches found."""
    found: list[Citation] = []
    for held in executed if isinstance(executed, list) else ():
        results = held.get("search_results") if isinstance(held, dict) else None
        if isinstance(results, dict):
            found += _listed(results.get("results"))
    return tuple(found)


def _source(held: object, first: str = "", last: str = "") -> Citation | None:
    if not isinstance(held, dict):
        return None
    url, title = held.get("url") or held.get("link"), held.get("title")
    if not isinstance(url, str) or not url:
        return None
    start, stop = held.get(first), held.get(last)
    return Citation(
        url=url,
        title=title if isinstance(title, str) else "",
        start=start if type(start) is int else 0,  # true is no place
        stop=stop if type(stop) is int else 0,
    )
