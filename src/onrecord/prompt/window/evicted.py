"""What leaves a window, on the record; and what a window knows of it from turn to turn."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import HistoryChanged, ModelReplied

__all__ = (
    "COMPACTED", "SUMMARY_PLACE", "Compacted", "CompactedFold", "Evicted", "How", "Kept", "Pressure", "Shortened",
    "Stayed", "Summary",
)  # fmt: skip

How = Literal["cut", "collapsed", "summarised", "dropped"]

SUMMARY_PLACE = "main/compaction"
"""Where the entries of a summary's call stand."""


class Kept(Struct, frozen=True, gc=False, kw_only=True):
    """A unit that a window may not remove, or a removal that did not come about, and why.

    ``why`` is one of ``current-request``, ``system-envelope``, ``pending-check-in``, ``paused-tool``,
    ``unresolved-tool-call``, ``last-tool-result``, what a feature gave in `View.pins`, ``inside-keep-window``,
    ``only-existing-summary``, ``summarizer-failed``, ``replacement-not-smaller`` and ``unmeasured``. Of what a plan of
    the application names: ``not-shown``, ``too-many-stretches``, and ``plan-failed`` where the plan is none.
    """

    why: str
    unit: str = ""


class Evicted(Body, frozen=True, gc=False, kw_only=True, tag="context.evicted"):
    """Something left what requests show; the conversation itself keeps it.

    ``how``: tool results were ``cut`` to their beginnings or had their white space ``collapsed`` (``calls`` names
    them), or whole units were ``summarised`` or ``dropped``. ``first`` and ``last`` are the units it is about;
    ``upto`` is how many leading units of the history it reaches, ``digest`` the chained digest there. ``before`` and
    ``after`` are estimates in tokens of the history that is shown. The words of a summary are in its reply; ``why``
    there is none is the code of the error, or ``empty``.

    A `Window` fills more: ``by`` is its strategy (empty: `Compaction`), ``start`` the first unit's place, ``held`` how
    many earlier gaps still stand. ``tools`` names tools whose results left, ``kept`` who stayed and why, ``pinned`` the
    tools whose last results stayed (``stood_down``: none were asked for). ``measured`` and ``cap`` are tokens,
    ``model`` wrote the summary, ``round`` is the number of the request. ``why`` is the code with which the model had
    refused a longer one, where it did. ``noticed``: a notice stands in the gap, with
    names of tools or without. ``asked``: which request of its turn a plan of the application was asked about.
    """

    how: How
    first: str
    last: str
    upto: int
    digest: str = ""
    calls: tuple[str, ...] = ()
    before: int = 0
    after: int = 0
    why: str = ""
    by: str = ""
    start: int = 0
    held: int = 0
    tools: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()
    pinned: tuple[str, ...] = ()
    measured: int = 0
    cap: int = 0
    model: str = ""
    round: int = 0
    noticed: Literal["", "plain", "named"] = ""
    stood_down: bool = False
    asked: str = ""


class Stayed(Body, frozen=True, gc=False, kw_only=True, tag="window.stayed"):
    """A `Window` wanted room, and nothing left: ``kept`` says who refused, in order. Other fields as in `Evicted`.

    ``error`` is the code of a summary's call that failed, or ``empty``; of a plan of the application, what it raised
    and where, never what it said. ``unfit`` names the stretch whose summary was
    not smaller than itself; ``skipped``: the same stretch again, so no call was made.
    """

    by: str
    kept: tuple[Kept, ...] = ()
    pinned: tuple[str, ...] = ()
    measured: int = 0
    cap: int = 0
    error: str = ""
    unfit: str = ""
    skipped: bool = False
    stood_down: bool = False
    asked: str = ""


class Pressure(Body, frozen=True, gc=False, kw_only=True, tag="context.budget_pressure"):
    """A part of a request is larger than it should be. ``plan_action``: ``evict``, or ``none`` where nothing left.

    ``projected`` is how large it is and ``cap`` how large it may be, in ``unit``; ``slot`` is which part.
    """

    slot: str
    overflow_by: int
    plan_action: Literal["evict", "none"]
    unit: Literal["tokens", "chars"]
    cap: int
    projected: int


class Summary(Struct, frozen=True, kw_only=True):
    """Sums up the first ``covers`` units, of which ``last`` is the last one; ``digest`` vouches for all of them."""

    text: str
    covers: int
    last: str
    digest: str


class Shortened(Struct, frozen=True, kw_only=True):
    """Up to which unit shortened tool results are on the record."""

    how: How
    upto: int
    last: str


class Compacted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a window knows: the summary that stands for the oldest units, and what else it has told already.

    ``said`` is the latest reply of a summary's call; ``failed`` the turn in which such a call failed last.
    """

    summary: Summary | None = None
    shortened: Shortened | None = None
    said: str = ""
    failed: str = ""


class CompactedFold:
    """Makes `Compacted` of the entries of windows.

    It reads takes that were cut short too: a summary that was made and paid tells of earlier turns only.
    """

    name = "compaction"
    version = 1
    state = Compacted
    kinds = frozenset({"context.evicted", "model.replied", "history.changed"})
    scope: Literal["session", "turn"] = "session"
    unfinished = True
    quotes = True

    def start(self) -> Compacted:
        return Compacted()

    def apply(self, state: Compacted, entry: Entry, /) -> Compacted:
        body = entry.body
        if isinstance(body, ModelReplied):
            return replace(state, said=body.round.text.strip()) if entry.where == SUMMARY_PLACE else state
        if isinstance(body, HistoryChanged):
            # What was taken out by hand does not live on in a summary.
            return Compacted() if body.op in {"edit", "remove"} else state
        return _after(state, body, entry.turn) if isinstance(body, Evicted) and not body.by else state


def _after(state: Compacted, body: Evicted, turn: str) -> Compacted:
    if body.how == "summarised":
        summary = Summary(text=state.said, covers=body.upto, last=body.last, digest=body.digest)
        return Compacted(summary=summary, failed=state.failed)
    if body.how == "dropped":
        return replace(state, failed=turn)
    return replace(state, shortened=Shortened(how=body.how, upto=body.upto, last=body.last))


COMPACTED = CompactedFold()
