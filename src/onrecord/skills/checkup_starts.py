"""The check-up of a graph's starts: rules that hide each other, and examples that would begin elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onrecord.conditions import says_yes
from onrecord.skills.checkup import Finding, error, warning
from onrecord.skills.cursor import Resolver
from onrecord.skills.hop import Hop
from onrecord.skills.matching import AllOf, Finder, Intent, Keywords, Match, Pattern
from onrecord.skills.routes import Route, Start
from onrecord.skills.scorers import cosine, words_of

__all__ = ("start_findings",)


def start_findings(
    resolver: Resolver, routes: Sequence[Route], never: Sequence[str], *, classified: bool
) -> Iterator[Finding]:  # fmt: skip
    """What the starts of a graph, their examples and the messages that must begin nowhere say together."""
    starts, finders = resolver.starts, resolver.finders
    yield from _shadows(starts, routes)
    yield from _overlaps(starts)
    yield from _intents(starts, classified=classified)
    for place, start in enumerate(starts):
        if isinstance(start.match, Intent):
            yield from _claimed(start, (*start.match.examples, *start.examples), starts, finders)
            continue
        for example in start.examples:
            yield from _example(place, example, starts, finders)
    yield from _never(starts, finders, never)


def _is_default(start: Start) -> bool:
    return start.match is None and start.only_if is None


def _shadows(starts: Sequence[Start], routes: Sequence[Route]) -> Iterator[Finding]:
    defaults = [place for place, start in enumerate(starts) if _is_default(start)]
    if len(defaults) > 1:
        names = ", ".join(repr(starts[place].use) for place in defaults)
        yield warning(
            "multi-entry-fanout", "start", f"several starts have no condition ({names}): the first claims all"
        )
    entered = {route.to for route in routes if route.source != route.to}
    for place, start in enumerate(starts):
        hides = next((other for other in starts[:place] if _hides(other, start)), None)
        if hides is None:
            continue
        if not _is_default(start):
            yield error(
                "rules-shadowed-by-order", start.use, f"the start at {hides.use!r} before it takes all of its messages"
            )
        lives = start.use in entered or any(s.use == start.use for s in starts[:place])
        for route in routes:
            if not lives and route.source == start.use:
                yield error(
                    "dead-entry-step", f"{route.source} -> {route.to}",
                    f"no turn begins at {route.source!r}, and no route leads there",
                )  # fmt: skip


def _hides(first: Start, then: Start) -> bool:
    """Whether an earlier start takes every message of a later one, as far as data can prove it."""
    if isinstance(then.match, Intent):
        return False
    if _is_default(first):
        return True
    one, other = first.match, then.match
    if isinstance(one, Pattern) and isinstance(other, Pattern):
        return one.regex == other.regex
    if isinstance(one, Keywords):
        parts = _parts(other) if isinstance(other, AllOf) else [other]
        mine = {word.lower() for word in one.words}
        return any(isinstance(p, Keywords) and {word.lower() for word in p.words} <= mine for p in parts)
    return False


def _parts(match: AllOf) -> list[Match]:
    return [part for each in match.matches for part in (_parts(each) if isinstance(each, AllOf) else [each])]


def _overlaps(starts: Sequence[Start]) -> Iterator[Finding]:
    words: dict[str, str] = {}
    for start in starts:
        for word in start.match.words if isinstance(start.match, Keywords) else ():
            other = words.setdefault(word.lower(), start.use)
            if other != start.use:
                yield warning(
                    "overlapping-rules", start.use, f"{word!r} is a keyword of {other!r} too, which comes first"
                )


def _intents(starts: Sequence[Start], *, classified: bool) -> Iterator[Finding]:
    given: dict[str, str] = {}
    intents = [(start.use, start.match) for start in starts if isinstance(start.match, Intent)]
    for use, intent in intents:
        if not classified:
            yield error("intent-without-classify", use, "an intent needs a classifier: give classify=")
        for example in intent.examples:
            other = given.setdefault(" ".join(example.lower().split()), use)
            if other != use:
                yield error("duplicate-intent-example", use, f"an example of it is one of {other!r} too: {example!r}")
    for place, (use, intent) in enumerate(intents):
        for other_use, other_intent in intents[:place]:
            alike = cosine(words_of(intent.means), words_of(other_intent.means))
            if use != other_use and alike >= 0.8:
                yield warning("overlapping-intents", use, f"it means nearly what the intent of {other_use!r} does")


def _example(place: int, example: str, starts: Sequence[Start], finders: Sequence[Finder | None]) -> Iterator[Finding]:
    start = starts[place]
    claims = _claims(start, finders[place], example)
    if claims is not True:
        told = f"its own example does not match it: {example!r}"
        # What code says of one message alone proves nothing, unless it breaks.
        if claims is None or start.match is not None:
            yield error("example-misses-own-rule", start.use, told)
        else:
            yield warning("example-misses-own-rule", start.use, told)
        if not any(_claims(each, find, example) for each, find in zip(starts, finders, strict=True)):
            yield warning("example-unclaimed", start.use, f"no start at all takes its example {example!r}")
        return
    for other, find in zip(starts[:place], finders[:place], strict=True):
        if other.use != start.use and _claims(other, find, example):
            if _is_default(other):
                yield warning("example-shadowed-by-default", start.use, f"{other.use!r} before it takes {example!r}")
            elif other.match is not None:
                yield error("example-shadowed-by-earlier", start.use, f"{other.use!r} before it takes {example!r}")
            return


def _claimed(
    start: Start, examples: Sequence[str], starts: Sequence[Start], finders: Sequence[Finder | None]
) -> Iterator[Finding]:
    """Examples of an intent that a rule over words takes: those come before all intents, wherever they stand."""
    for example in examples:
        for other, find in zip(starts, finders, strict=True):
            if other.use != start.use and find is not None and find(example) is not None:
                yield error("example-shadowed-by-earlier", start.use, f"a rule of {other.use!r} takes {example!r}")
                break


def _claims(start: Start, find: Finder | None, message: str) -> bool | None:
    """Whether a start takes a message; None when its code raises."""
    if find is not None:
        return find(message) is not None
    if start.only_if is None:
        return start.match is None
    try:
        return says_yes(start.only_if(Hop(message=message)))
    except Exception:  # noqa: BLE001 - that it breaks is what is told
        return None


def _never(starts: Sequence[Start], finders: Sequence[Finder | None], never: Sequence[str]) -> Iterator[Finding]:
    examples = {
        " ".join(example.lower().split()): start.use
        for start in starts
        for example in (*start.examples, *(start.match.examples if isinstance(start.match, Intent) else ()))
    }
    for message in never:
        other = examples.get(" ".join(message.lower().split()))
        if other is not None:
            yield error(
                "never-routes-contradicts-example", other, f"{message!r} must begin nowhere, and is its example"
            )
        for start, find in zip(starts, finders, strict=True):
            if not _claims(start, find, message):
                continue
            if _is_default(start):
                yield warning("never-routes-by-default", start.use, f"it has no condition, and takes {message!r}")
            elif start.match is not None:
                yield error("never-routes-claimed", start.use, f"{message!r} must begin nowhere, and matches it")
            break
    ruled = [start for start in starts if start.match is not None]
    if ruled and not never:
        yield warning("no-negative-evidence", "start", "no message is declared that must begin nowhere: never_routes=")
