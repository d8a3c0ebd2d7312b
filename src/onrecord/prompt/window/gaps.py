"""What has left a window, from turn to turn: a fold over what windows tell, and the notices that stand in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.content import Text
from onrecord.conversation.messages import ContextMessage
from onrecord.prompt.window.evicted import Evicted, How, Stayed
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import HistoryChanged, ModelReplied

__all__ = (
    "COMPACTED_HEAD", "DROPPED_HEAD", "WINDOWED", "WINDOW_PLACE", "Gap", "Measure", "Windowed", "WindowedFold",
    "about", "absorbed", "as_message", "notice", "safe_names", "summary",
)  # fmt: skip

WINDOW_PLACE = "main/window"
"""Where the entries of a window stand, and those of the calls that it makes."""

DROPPED_HEAD = "[dropped history"
COMPACTED_HEAD = "[compacted history"

MOST_NAMED = 4
"""How many tools a notice names."""

_SAFE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)
"""A tool is named by whoever calls it: what could be a sentence is not repeated."""


class Gap(Struct, frozen=True, gc=False, kw_only=True):
    """Units ``start`` up to before ``stop`` are not shown; ``text`` stands in their place, if any.

    ``last`` is the last one's id, and ``digest`` the chained digest that vouches for all units up to there.
    """

    start: int
    stop: int
    last: str
    digest: str
    how: How
    text: str = ""


class Measure(Struct, frozen=True, gc=False, kw_only=True):
    """What a provider counted for the request before; ``counted`` is False where it reported nothing."""

    provider: str
    input_tokens: int = 0
    counted: bool = False


class Windowed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a window knows. ``measured`` is used once: what was decided by it made it out of date.

    ``counts``: some provider has reported usage in this session; ``told``: that it stopped is on the record.
    ``visits`` counts those in a row that removed nothing and pinned a last result. ``said`` is the latest summary,
    ``failed`` the turn in which a summary or a plan failed, ``unfit`` the stretch whose summary was not smaller;
    ``asked`` is the latest request about which a plan of the application has decided.
    """

    gaps: tuple[Gap, ...] = ()
    measured: Measure | None = None
    counts: bool = False
    told: bool = False
    visits: int = 0
    said: str = ""
    failed: str = ""
    unfit: str = ""
    asked: str = ""


class WindowedFold:
    """Makes `Windowed` of the entries of windows and of what providers counted.

    It reads takes that were cut short too: what they removed is told and, where it was summed up, paid.
    """

    name = "window"
    version = 1
    state = Windowed
    kinds = frozenset({"context.evicted", "window.stayed", "model.replied", "history.changed"})
    scope: Literal["session", "turn"] = "session"
    unfinished = True
    quotes = True

    def start(self) -> Windowed:
        return Windowed()

    def apply(self, state: Windowed, entry: Entry, /) -> Windowed:
        return _applied(state, entry.body, entry)


WINDOWED = WindowedFold()


def _applied(state: Windowed, body: Body, entry: Entry) -> Windowed:
    if isinstance(body, ModelReplied):
        if entry.where == WINDOW_PLACE:
            return replace(state, said=body.round.text.strip())
        return state if body.purpose == "consult" else _measured(state, body)
    if isinstance(body, Evicted) and body.by:
        return replace(
            state, gaps=_with_gap(state, body), measured=None, visits=0, unfit="", said="",
            asked=about(entry.turn, body.asked),
        )  # fmt: skip
    if isinstance(body, Stayed):
        kept = {each.why for each in body.kept}
        stuck = "last-tool-result" in kept
        return replace(
            state, measured=None, visits=state.visits + 1 if stuck else 0, unfit=body.unfit or state.unfit, said="",
            failed=entry.turn if body.error else state.failed, told=state.told or "unmeasured" in kept,
            asked=about(entry.turn, body.asked),
        )  # fmt: skip
    if isinstance(body, HistoryChanged) and body.op in {"edit", "remove"}:
        return Windowed(counts=state.counts)  # what was taken out by hand does not live on in a summary
    return state


def about(turn: str, asked: str) -> str:
    """A request of this turn, as `Windowed.asked` names it; empty where no plan was asked."""
    return f"{turn}/{asked}" if asked else ""


def _measured(state: Windowed, body: ModelReplied) -> Windowed:
    use = body.round.use
    usage = use.usage if use is not None else None
    counted = usage is not None and bool(usage.input_tokens or usage.output_tokens)
    measured = Measure(
        provider=use.provider if use is not None else "", counted=counted,
        input_tokens=usage.input_tokens if usage is not None else 0,
    )  # fmt: skip
    return replace(state, measured=measured, counts=state.counts or counted, told=state.told and not counted)


def _with_gap(state: Windowed, body: Evicted) -> tuple[Gap, ...]:
    before, taken, behind = absorbed(state.gaps[: body.held], body.start, body.upto, body.how)
    start = min((body.start, *(gap.start for gap in taken)))
    gap = Gap(start=start, stop=body.upto, last=body.last, digest=body.digest, how=body.how)
    if taken and taken[-1].stop > gap.stop:
        gap = replace(gap, stop=taken[-1].stop, last=taken[-1].last, digest=taken[-1].digest)
    if body.how == "summarised":
        text = summary(body, gap.stop - gap.start, state.said)
    else:
        text = notice(body, gap.stop - gap.start) if body.noticed else ""
    return (*before, replace(gap, text=text), *behind)


def absorbed(
    gaps: Sequence[Gap], start: int, stop: int, how: How
) -> tuple[Sequence[Gap], Sequence[Gap], Sequence[Gap]]:
    """Gaps before a new one, those that become part of it, and those behind it.

    What lies inside becomes part of it, and what touches it where both left in the same way.
    """
    first, last = 0, len(gaps)
    while first < last and (gaps[first].stop < start or (gaps[first].stop == start and gaps[first].how != how)):
        first += 1
    while last > first and (
        gaps[last - 1].start > stop or (gaps[last - 1].start == stop and gaps[last - 1].how != how)
    ):
        last -= 1
    return gaps[:first], gaps[first:last], gaps[last:]


# ---- what stands in a gap --------------------------------------------------------------------------------------------


def notice(body: Evicted, count: int) -> str:
    """What a model reads in the place of units that were dropped. Library words only; tools by name, if it may be."""
    told = [
        f"{DROPPED_HEAD}: {_several(count)} left the window before request {body.round} ({body.by}).",
        "Nothing was summarised; the record keeps all of it.",
    ]
    if any(kept.why == "current-request" for kept in body.kept):
        told.append("The current request is kept.")
    if safe := safe_names(body.tools)[-MOST_NAMED:] if body.noticed == "named" else ():
        told.append(f"Results of {', '.join(safe)} left too: call again rather than go by memory.")
    return f"{' '.join(told)}]"


def safe_names(names: Sequence[str]) -> tuple[str, ...]:
    """Those that are plain names and nothing else."""
    return tuple(name for name in names if _SAFE_NAME.fullmatch(name))


def summary(body: Evicted, count: int, said: str) -> str:
    """What a model reads in the place of units that were summed up."""
    return (
        f"{COMPACTED_HEAD}: {_several(count)} left the window before request {body.round}. What follows is a "
        f"paraphrase written by {body.model}, not the exchange itself, which the record keeps.]\n{said}"
    )


def _several(count: int) -> str:
    return "1 message or round" if count == 1 else f"{count} messages and rounds"


def as_message(gap: Gap) -> ContextMessage:
    """The text of a gap, as data: it must not gain the force of an instruction."""
    return ContextMessage(id=f"window/{gap.start}-{gap.stop}", content=(Text(gap.text),), writer="window")
