"""Making room in a window: what leaves, what stands in its place, and what the record tells of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.log import Log
from onrecord.conversation.messages import ContextMessage, Unit, UserMessage
from onrecord.errors import ModelError
from onrecord.models.model import Model
from onrecord.models.request import Request, Span, View
from onrecord.prompt.window.evicted import Evicted, Kept, Pressure, Stayed
from onrecord.prompt.window.gaps import WINDOW_PLACE, WINDOWED, Gap, absorbed, as_message, notice, safe_names, summary
from onrecord.prompt.window.outline import Outline, outline_of
from onrecord.prompt.window.past import digest_at
from onrecord.prompt.window.planning import MOST_TOLD, Planned, Space, pinned_results, plan_removal
from onrecord.prompt.window.sizes import CHARS_PER_TOKEN, outweighs
from onrecord.prompt.window.summarising import fenced_query
from onrecord.turn.contained import failed_call
from onrecord.turn.pause import has_not_run
from onrecord.turn.turn import Turn
from onrecord.turn.warm import digest_ahead

__all__ = ("Asked", "Visit", "dropped", "held_in", "make_room", "shown", "standing", "visit_of")

LOOKED_AT = 200
"""How many rounds of what leaves are asked for the names of their tools, the newest first."""


class Asked(Struct, frozen=True, kw_only=True):
    """How a window makes room: ``pins`` is how many last results stay, ``model`` who sums up (None: nobody does)."""

    by: str
    keep: int
    pins: int
    tokens: int
    model: Model | None


async def standing(turn: Turn, request: Request, gaps: Sequence[Gap]) -> tuple[Gap, ...]:
    """The gaps that are still about this conversation: what came before each is what it was."""
    if not gaps:
        return ()
    units, left = request.conversation.units, len(gaps)
    await digest_ahead(turn, units)
    while left:
        gap = gaps[left - 1]
        fits = gap.stop <= len(units) and units[gap.stop - 1].id == gap.last
        if fits and digest_at(turn, units, gap.stop) == gap.digest:
            break  # a digest vouches for everything before it
        left -= 1
    return tuple(gaps[:left])


async def shown(turn: Turn, request: Request, gaps: Sequence[Gap]) -> View:
    """A view with these gaps. The current request and what is pinned are shown inside of gaps too."""
    units, at = request.conversation.units, 0
    must = sorted(await _musts(turn, request))
    spans: list[Span | ContextMessage] = []
    for gap in gaps:
        if at < gap.start:
            spans.append(Span(at, gap.start))
        if gap.text:
            spans.append(as_message(gap))
        spans += (Span(place, place + 1) for place in must if gap.start <= place < gap.stop)
        at = gap.stop
    if at < len(units):
        spans.append(Span(at, len(units)))
    return replace(request.view, spans=tuple(spans))


async def _musts(turn: Turn, request: Request) -> set[int]:
    places = set[int]() if turn.admitted is None else {turn.admitted}
    if request.view.pins:
        units = request.conversation.units
        outline = await outline_of(units)
        found = (outline.place_of(units, id, len(units)) for id in request.view.pins)
        places.update(place for place in found if place is not None)
    return places


# ---- making room -----------------------------------------------------------------------------------------------------


class Visit(Struct, frozen=True, kw_only=True):
    """One time that a window wants room: all that it decides by. ``about``: see `Evicted.asked`."""

    turn: Turn
    units: Log[Unit]
    outline: Outline
    gaps: tuple[Gap, ...]
    space: Space
    asked: Asked
    request: int
    pins: dict[int, str]
    stands_down: bool
    measured: int
    about: str = ""

    def units_of(self, start: int, stop: int) -> Iterator[tuple[int, Unit]]:
        """What is shown of a stretch, with places."""
        at = start
        while (at := self.space.from_(at)) < stop:
            yield at, self.units[at]
            at += 1

    def evicted(self, start: int, stop: int, kept: tuple[Kept, ...]) -> Evicted:
        """The entry of a removal, before anybody says what stands in its place."""
        return Evicted(
            how="dropped" if self.asked.model is None else "summarised", by=self.asked.by, start=start, upto=stop,
            first=self.units[start].id, last=self.units[stop - 1].id, digest=digest_at(self.turn, self.units, stop),
            held=len(self.gaps), tools=self.tools(start, stop), kept=kept, pinned=tuple(self.pins.values()),
            measured=self.measured, cap=self.asked.tokens, round=self.turn.number, stood_down=self.stands_down,
            model="" if self.asked.model is None else self.asked.model.card.name,
            why="" if self.turn.refused is None else self.turn.refused[1].code, asked=self.about,
        )  # fmt: skip

    def stayed(self, kept: tuple[Kept, ...]) -> Stayed:
        """The entry of a visit that removed nothing."""
        return Stayed(
            by=self.asked.by, kept=kept, pinned=tuple(self.pins.values()), measured=self.measured,
            cap=self.asked.tokens, stood_down=self.stands_down, asked=self.about,
        )  # fmt: skip

    def tools(self, start: int, stop: int) -> tuple[str, ...]:
        """Tools whose results are in a stretch, those of the newest rounds in their order."""
        names = dict[str, None]()
        for held in reversed(self.outline.between(self.units, start, stop, LOOKED_AT)):
            names |= dict.fromkeys(call.name for call in held.calls if call.status != "asked")
        return safe_names(tuple(names))[-MOST_TOLD:]

    def lost(self, body: Evicted) -> int:
        """How many characters of texts in earlier gaps a new one takes the place of."""
        return sum(len(gap.text) for gap in self.absorbed(body))

    def absorbed(self, body: Evicted) -> Sequence[Gap]:
        """Earlier gaps that become part of this one."""
        return absorbed(self.gaps, body.start, body.upto, body.how)[1]

    def count(self, body: Evicted) -> int:
        """How many units the new gap has, with those of earlier ones."""
        taken = self.absorbed(body)
        start, stop = min((body.start, *(g.start for g in taken))), max((body.upto, *(g.stop for g in taken)))
        return stop - start

    def outweighs(self, body: Evicted, text: str) -> bool:
        """Whether what is to leave is longer than the text in its place."""
        units = (unit for _, unit in self.units_of(body.start, body.upto))
        return outweighs(units, len(text) - self.lost(body))


async def make_room(
    turn: Turn, request: Request, gaps: tuple[Gap, ...], asked: Asked, *, since: int
) -> tuple[tuple[Gap, ...], int]:
    """Removes the oldest stretch that may leave, tells the record, and gives the gaps that then stand.

    ``since`` is up to where this request has removed already: what stays before it is not asked again, and that
    nothing more may leave is not told. The second value is how far that is now; 0 where nothing left.
    """
    visit = await visit_of(turn, request, gaps, asked)
    held = await held_in(visit, request)
    plan = plan_removal(visit.units, visit.outline, visit.space, asked.keep, visit.request, held, since)
    body: Evicted | Stayed
    if plan.start == plan.stop:
        only = any(gap.how == "summarised" for gap in gaps) and asked.model is not None
        more = (Kept(why="only-existing-summary"),) if only else ()
        body = visit.stayed((*plan.refusals, *more))
    elif asked.model is None:
        body = dropped(visit, plan)
    else:
        body = await _summarised(visit, plan, asked.model)
    if isinstance(body, Stayed) and since:
        return gaps, 0
    turn.note(body, where=WINDOW_PLACE)
    if visit.measured > asked.tokens > 0:
        _tell_pressure(turn, visit.measured, asked.tokens, removed=isinstance(body, Evicted))
    return await standing(turn, request, turn.state(WINDOWED).gaps), body.upto if isinstance(body, Evicted) else 0


async def visit_of(turn: Turn, request: Request, gaps: tuple[Gap, ...], asked: Asked) -> Visit:
    """What there is to decide by."""
    units, state = request.conversation.units, turn.state(WINDOWED)
    outline = await outline_of(units)
    await digest_ahead(turn, units)
    space = Space.of(len(units), gaps)
    current = turn.admitted if turn.admitted is not None else outline.last_person(len(units))
    current = -1 if current is None else current
    stands_down = state.visits >= 2
    limit = 0 if stands_down else asked.pins
    return Visit(
        turn=turn, units=units, outline=outline, gaps=gaps, space=space, asked=asked, request=current,
        pins=pinned_results(units, outline, space, asked.keep, limit, current) if limit else {},
        stands_down=stands_down, measured=0 if state.measured is None else state.measured.input_tokens,
    )  # fmt: skip


async def held_in(visit: Visit, request: Request) -> dict[int, str]:
    """Places that stay for reasons outside of their units: a waiting turn's message, last results, pins of features."""
    units, outline, size = visit.units, visit.outline, visit.space.size
    held = dict[int, str]()
    pending = visit.turn.session.pending
    if pending is not None:
        place = outline.place_of(units, f"{pending.turn}/u", size)
        if place is not None:
            held[place] = "pending-check-in" if has_not_run(pending.place) else "paused-tool"
    for place in visit.pins:
        held.setdefault(place, "last-tool-result")
    for id, why in request.view.pins.items():
        place = outline.place_of(units, id, size)
        if place is not None:
            held.setdefault(place, why)
    return held


def dropped(visit: Visit, plan: Planned) -> Evicted | Stayed:
    """The removal, with a notice if that is smaller; or none, where it would leave a window without a head."""
    body = visit.evicted(plan.start, plan.stop, plan.refusals)
    for body_with in (replace(body, noticed="named"), replace(body, noticed="plain")):
        if (body_with.noticed == "plain" or body.tools) and visit.outweighs(
            body_with, notice(body_with, visit.count(body))
        ):
            return body_with
    head = visit.space.from_(0)
    after = visit.space.from_(plan.stop)  # the newest ``keep`` are behind it
    if plan.start > head or isinstance(visit.units[after], UserMessage):
        return body
    # No notice fits, and what a model said would lead: what leaves ends before an earlier message of a person.
    stop = visit.outline.last_person(plan.stop)
    if stop is not None and stop > plan.start and visit.space.shows(stop):
        return visit.evicted(plan.start, stop, plan.refusals)
    return visit.stayed((*plan.refusals, Kept(why="replacement-not-smaller", unit=body.first)))


async def _summarised(visit: Visit, plan: Planned, model: Model) -> Evicted | Stayed:
    """The removal with a summary in its place; or why there is none."""
    body = visit.evicted(plan.start, plan.stop, plan.refusals)
    unfit = f"{body.start}-{body.upto}:{body.digest}"
    refused = visit.stayed((*plan.refusals, Kept(why="replacement-not-smaller", unit=body.first)))
    if visit.turn.state(WINDOWED).unfit == unfit:
        return replace(refused, unfit=unfit, skipped=True)
    earlier = "\n".join(gap.text for gap in visit.absorbed(body) if gap.text)
    query = fenced_query(
        visit.units_of(body.start, body.upto), earlier, _readable(model),
        f"window-{body.start}-{body.upto}",
    )  # fmt: skip
    error = "empty"
    try:
        text = await visit.turn.consult(query, where=WINDOW_PLACE, model=model)
    except ModelError as failed:
        text, error = "", failed_call(failed)
    if not text:
        failure = visit.stayed((*plan.refusals, Kept(why="summarizer-failed", unit=body.first)))
        return replace(failure, error=error)
    if not visit.outweighs(body, summary(body, visit.count(body), text)):
        return replace(refused, unfit=unfit)
    return body


def _readable(model: Model) -> int:
    """How many characters this model can be given, where its card says how much it takes: three quarters of that."""
    tokens = model.card.context_tokens
    return sys.maxsize if tokens is None else tokens * (CHARS_PER_TOKEN - 1)


def _tell_pressure(turn: Turn, measured: int, cap: int, *, removed: bool) -> None:
    turn.note(
        Pressure(
            slot="messages", overflow_by=measured - cap, plan_action="evict" if removed else "none", unit="tokens",
            cap=cap, projected=measured,
        ),
        where=WINDOW_PLACE,
    )  # fmt: skip
