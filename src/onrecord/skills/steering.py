"""Steering: a graph's cursor in a turn, from its first request to its last."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from onrecord.conversation.messages import ToolCall
from onrecord.models.request import Piece
from onrecord.skills import skill_tools
from onrecord.skills.cursor import LEFT, Move, outcome_of
from onrecord.skills.engagement import advanced, park_card
from onrecord.skills.graph_plan import GraphPlan
from onrecord.skills.hop import Hop, MoveCause
from onrecord.skills.skill_entries import (
    RerouteSuperseded,
    RouteConflict,
    SkillEscalated,
    SkillMoved,
    SkillRejected,
    TurnRouted,
)
from onrecord.skills.skill_state import CURSOR, Place, SkillFold, SkillState
from onrecord.skills.turn_start import STAY
from onrecord.turn.moments import Rank
from onrecord.turn.turn import Turn

__all__ = ("Steering",)


class Steering:
    """Moves the cursor of one graph, and says what the model may pick."""

    def __init__(self, graph: GraphPlan, fold: SkillFold) -> None:
        self.graph, self.fold = graph, fold

    # ---- where it goes

    async def begin(self, turn: Turn, message: str, hidden: frozenset[str]) -> None:
        """Decides where the turn begins, where that is not left to its start rules."""
        begins = self.graph.begins
        if begins is None or turn.state(self.fold).routed is not None:
            return
        place = turn.state(CURSOR) if self.graph.continuity == "conversation" else Place()
        before = place.skill
        dropped = before if before not in self.graph.nodes else ""
        routed = await begins.route(turn, message, "" if dropped else before, hidden, dropped=dropped)
        if routed is not None:
            turn.note(replace(routed, step=self._step(routed, place)))

    def _step(self, routed: TurnRouted, place: Place) -> int:
        """Where a procedure of an earlier turn goes on, if the turn stays there or leads there.

        One that is done begins again where it is led to; to stay, beside a menu say, begins nothing.
        """
        if not place.skill or routed.stands != place.skill:
            return 1
        stays = not routed.to or routed.by == "continuity" or routed.picked == STAY
        is_done = place.step > len(self.graph.nodes[place.skill].steps or ())
        return 1 if is_done and not stays else place.step

    def first(self, turn: Turn, message: str) -> Hop:
        """The hop of a turn's first request."""
        state = turn.state(self.fold)
        routed = state.routed
        to = ""
        by: MoveCause = "none"
        if routed is not None and routed.by != "menu":
            to, by = routed.to, routed.by
        return Hop(
            round=1, message=message, cursor=state.cursor, active=state.active, routed=_is_apart(routed), to=to,
            by=by,
        )  # fmt: skip

    def next(self, turn: Turn, message: str, batch: Sequence[ToolCall]) -> Hop:
        """The hop of a later request: what the calls of the last round came to."""
        state = turn.state(self.fold)
        results = tuple(outcome_of(call) for call in batch if call.status not in LEFT)
        return Hop(
            round=state.rounds + 1, message=message, results=results, cursor=self.place(state), pick=state.pick,
            proposal=state.proposal, active=state.active, routed=_is_apart(state.routed),
        )  # fmt: skip

    def place(self, state: SkillState) -> str:
        """Where the cursor stands; nowhere, in a turn that waited while a newer build lost that skill."""
        known = state.cursor in self.graph.nodes or state.cursor in self.graph.loose  # a graph by shape has no ways
        return state.cursor if known else ""

    def move(self, turn: Turn, hop: Hop) -> None:
        """Moves the cursor, files what there is to say about it, then looks whether the graph is still wanted."""
        move = self.graph.resolver.explain(hop)
        if move.is_move or move.closed or move.by == "continuity":
            turn.note(_moved(move))
        if move.won is not None:
            turn.note(RouteConflict(source=move.source, winner=move.won, losers=move.lost))
        if move.by == "route":
            if hop.proposal not in {"", move.to}:
                turn.note(
                    RerouteSuperseded(volunteered=hop.proposal, won=move.to, source=move.source, by="tool-proposal")
                )
            if hop.pick not in {"", move.to}:
                turn.note(RerouteSuperseded(volunteered=hop.pick, won=move.to, source=move.source, by="model-pick"))
        elif move.by == "tool-proposal" and hop.pick not in {"", move.to}:
            turn.note(RerouteSuperseded(volunteered=hop.pick, won=move.to, source=move.source, by="model-pick"))
        if self.graph.engagement is not None:
            state = turn.state(self.fold)
            changed = advanced(state.standing, state.since, move, self.graph.engagement)
            if changed is not None:
                turn.note(changed)

    # ---- what the model reads of it

    def menu(self, state: SkillState) -> tuple[str, ...]:
        """The skills that the beginning of the turn left to the model, while none of them was taken."""
        routed = state.routed
        if routed is None or not routed.offered or (state.cursor and state.cursor != routed.source):
            return ()
        return tuple(id for id in routed.offered if id in self.graph.nodes)

    def menu_line(self, state: SkillState, hidden: frozenset[str]) -> str:
        """The open menu in words, or nothing."""
        offered = [id for id in self.menu(state) if id not in hidden]
        routed = state.routed
        if not offered or routed is None or self.graph.strictness == "rails":
            return ""
        shares = {row.skill: row.relevance for row in routed.scores}
        stay = state.cursor if routed.stay_offered and state.cursor not in hidden else ""
        return skill_tools.menu_text([(id, shares.get(id)) for id in offered], stay=stay)

    def lines(self, now: SkillState, hidden: frozenset[str], *, menu: bool) -> tuple[Piece, ...]:
        """The card of a parked graph, and the ``menu`` in the first request, where nothing else has it."""
        out: tuple[Piece, ...] = ()
        if now.standing is not None and now.is_parked:
            out = (park_card(now.standing, "" if now.cursor in hidden else now.cursor),)
        if menu and now.rounds == 0 and now.routed is not None and (line := self.menu_line(now, hidden)):
            out = (*out, Piece(source="skill-menu", text=line, rank=Rank.SKILL, cache="never"))
        return out

    # ---- what the model may do

    def refuses(self, state: SkillState, asked: str, hidden: frozenset[str]) -> SkillRejected | None:
        """Why a skill cannot be taken up from here; None when it can."""
        graph = self.graph
        if asked in graph.loose:
            return None
        if graph.tree is None and asked == state.cursor:
            return None
        menu = self.menu(state)
        reach = tuple(dict.fromkeys((*graph.reachable(state.cursor), *menu)))
        posture = ""
        if graph.strictness == "rails":
            reach, posture = (), "rails"
        elif graph.strictness == "guard":
            opened = graph.entries if graph.model_reads and not state.cursor else menu
            reach, posture = tuple(id for id in reach if id in opened), "guard"
        if asked in reach:
            return None
        allowed = tuple(id for id in (*reach, *graph.loose) if id not in hidden)
        current = "" if state.cursor in hidden else state.cursor
        return SkillRejected(requested=asked, current=current, allowed=allowed, posture=posture)

    def escalate(self, turn: Turn) -> None:
        """After enough refusals the rest of the turn is for another model."""
        state, escalation = turn.state(self.fold), self.graph.escalation
        if escalation is None or state.escalated or state.refusals < escalation[1]:
            return
        was = turn.request.model.card.name if turn.request is not None else turn.model.card.name
        turn.note(
            SkillEscalated(
                after_refusals=escalation[1], refusals=state.refusals, source=was, to=escalation[0].card.name
            )
        )


def _is_apart(routed: TurnRouted | None) -> bool:
    """Whether the beginning was judged, so that start rules have no say; not where only something gone was told."""
    return routed is not None and bool(routed.scorer or routed.to)


def _moved(move: Move) -> SkillMoved:
    witness = move.witness
    return SkillMoved(
        source=move.source, to=move.to, by=move.by, witness=witness.text if witness else "",
        keyword=witness.keyword if witness else "", guard=move.guard, guards_closed=move.closed,
    )  # fmt: skip
