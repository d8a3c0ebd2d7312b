"""The cursor of a graph: where it stands, and by what it moves. Pure: the same hop gives the same move."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from onrecord.conditions import says_yes
from onrecord.conversation.content import Text
from onrecord.conversation.messages import ToolCall
from onrecord.skills.guards import Evidence, ToolOutcome, judged
from onrecord.skills.hop import Hop, MoveCause
from onrecord.skills.matching import Finder, StartIndex, Witness
from onrecord.skills.routes import Decide, Route, Start

__all__ = ("LEFT", "RAN", "Lost", "Move", "Resolver", "held", "outcome_of")

log = logging.getLogger("onrecord.skills")
T = TypeVar("T")


RAN = frozenset({"returned", "partial"})
"""What a call came to that did its work. One that was denied or failed leads on only where a route says so."""

LEFT = frozenset({"asked", "not_run"})
"""A call that never ran, since the round waited or was left: it decides nothing."""


class Lost(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A result that would have led elsewhere, had another not come first."""

    call: str
    tool: str
    target: str


class Move(Struct, frozen=True, kw_only=True):
    """Where the cursor goes and why: ``to`` is the cursor after it, ``by`` the clause that decided.

    ``witness`` are the words that matched, ``guard`` the evidence of the guard that let it pass, ``closed`` the
    guards that did not (target and evidence). ``won`` and ``lost`` are results that led to different skills.
    """

    source: str
    to: str
    by: MoveCause
    witness: Witness | None = None
    guard: tuple[Evidence, ...] = ()
    closed: tuple[tuple[str, tuple[Evidence, ...]], ...] = ()
    won: Lost | None = None
    lost: tuple[Lost, ...] = ()

    @property
    def is_move(self) -> bool:
        """Whether the cursor stands elsewhere after it."""
        return self.to != self.source


def outcome_of(call: ToolCall) -> ToolOutcome:
    """A call of a round as routes read it."""
    text = "".join(part.text for part in call.result or () if isinstance(part, Text))
    return ToolOutcome(tool=call.name, status=call.status, text=text, call=call.id)


class Resolver:
    """Says where a graph's cursor goes: routes beat what tools propose, and that beats what the model picks."""

    def __init__(
        self, starts: Sequence[Start], finders: Sequence[Finder | None], routes: Sequence[Route], tree: Decide | None,
        *, entries: frozenset[str], walks: bool,
    ) -> None:  # fmt: skip
        self.starts, self.finders, self.tree = tuple(starts), tuple(finders), tree
        self.entries, self.walks = entries, walks
        self.index = StartIndex([start.match for start in starts])
        self.from_: dict[str, list[Route]] = {}
        for route in routes:
            if route.kind != "model":
                self.from_.setdefault(route.source, []).append(route)

    def explain(self, hop: Hop) -> Move:
        """The move of one request."""
        if self.tree is not None:
            leaf = self._leaf(self.tree, hop)
            return Move(source=hop.cursor, to=leaf, by="entry")
        if hop.round == 1 and hop.to:
            return Move(source=hop.cursor, to=hop.to, by=hop.by)
        return self._onward(hop) if hop.cursor else self._enter(hop)

    def entry(self, hop: Hop, *, conditional: bool = False) -> tuple[Start, Witness | None] | None:
        """The first start in order whose condition holds; with ``conditional`` those without one do not count."""
        for place in self.index.candidates(hop.message):
            start, find = self.starts[place], self.finders[place]
            if find is not None:
                # A message is the same for the whole turn: a rule over it is asked once.
                witness = find(hop.message) if hop.round == 1 else None
                if witness is not None:
                    return start, witness
            elif start.only_if is not None:
                if held(start.only_if, hop, f"the start at {start.use!r}"):
                    return start, None
            elif start.match is None and not conditional:
                return start, None
        return None

    def _enter(self, hop: Hop) -> Move:
        if self.walks and not hop.routed and (entry := self.entry(hop)) is not None:
            return Move(source="", to=entry[0].use, by="entry", witness=entry[1])
        if hop.proposal in self.entries:
            return Move(source="", to=hop.proposal, by="tool-proposal")
        if hop.pick in self.entries:
            return Move(source="", to=hop.pick, by="model-pick")
        return Move(source="", to="", by="none")

    def _onward(self, hop: Hop) -> Move:
        routes = self.from_.get(hop.cursor, ())
        taken: list[tuple[ToolOutcome, Route, tuple[Evidence, ...]]] = []
        closed: list[tuple[str, tuple[Evidence, ...]]] = []
        for outcome in hop.results if routes else ():
            for route in routes:
                fires, evidence = self._fires(route, outcome, hop)
                if fires:
                    taken.append((outcome, route, evidence))
                    break
                if evidence:
                    closed.append((route.to, evidence))
        if taken:
            won, route, evidence = taken[0]
            lost = tuple(_lost(o, r) for o, r, _ in taken[1:] if r.to != route.to)
            return Move(
                source=hop.cursor, to=route.to, by="route", guard=evidence, closed=tuple(closed),
                won=_lost(won, route) if lost else None, lost=lost,
            )  # fmt: skip
        shut = tuple(closed)
        if hop.proposal and hop.proposal != hop.cursor:
            return Move(source=hop.cursor, to=hop.proposal, by="tool-proposal", closed=shut)
        if hop.pick and hop.pick != hop.cursor:
            return Move(source=hop.cursor, to=hop.pick, by="model-pick", closed=shut)
        return Move(source=hop.cursor, to=hop.cursor, by="stay", closed=shut)

    def _fires(self, route: Route, outcome: ToolOutcome, hop: Hop) -> tuple[bool, tuple[Evidence, ...]]:
        if route.guard is not None:
            facts: Mapping[str, object] = {
                **hop.known(), "tool_name": outcome.tool, "result": outcome.text, "status": outcome.status
            }  # fmt: skip
            rows = judged(route.guard, outcome, facts)
            return all(row.passed for row in rows), rows
        if route.only_if is not None:
            return held(route.only_if, outcome, f"the route from {route.source!r} to {route.to!r}"), ()
        by_tool = not route.on_tool or outcome.tool == route.on_tool
        return by_tool and outcome.status in (route.on_status or RAN), ()

    def _leaf(self, node: Decide | str, hop: Hop) -> str:
        while isinstance(node, Decide):
            node = node.yes if held(node.only_if, hop, f"the decision {node.label!r}") else node.no
        return node


def _lost(outcome: ToolOutcome, route: Route) -> Lost:
    return Lost(call=outcome.call, tool=outcome.tool, target=route.to)


def held(condition: Callable[[T], bool], about: T, where: str) -> bool:
    """Whether code says yes. Code that raises does not, and the log says so."""
    try:
        return says_yes(condition(about))
    except Exception as error:  # noqa: BLE001 - a condition decides about its own way, not about the turn
        log.warning("only_if of %s failed: %s", where, type(error).__name__)
        return False
