"""Skills at their moments: before a request, after a call, before an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from onrecord.conditions import check_condition, says_yes
from onrecord.conversation.content import Text
from onrecord.conversation.messages import Note, Round, ToolCall, UserMessage
from onrecord.jsonio import Json
from onrecord.models.model import Model
from onrecord.models.request import Piece, Request
from onrecord.skills import skill_tools
from onrecord.skills.graph_plan import GraphPlan
from onrecord.skills.procedure import Procedures
from onrecord.skills.proposals import judge_proposal
from onrecord.skills.shown_skills import MOST_KEPT, Serving, Situation
from onrecord.skills.skill import Skill
from onrecord.skills.skill_entries import ALL_BODIES, SkillActivated
from onrecord.skills.skill_state import CURSOR, SkillFold, SkillState
from onrecord.skills.steering import Steering
from onrecord.tools.tool import Tool
from onrecord.turn.moments import ALLOW, SLOTS, AfterTool, Allow, BeforeTool, Deny, Hooks, OnOutput, Returned
from onrecord.turn.turn import Turn

__all__ = ("SkillHooks", "Visible", "in_use")

log = logging.getLogger("onrecord.skills")


def used_skills(now: SkillState, skills: Mapping[str, Skill], graph: GraphPlan | None) -> tuple[str, ...]:
    """The skills in use, in the order of their declaration when a graph decides, else as they were taken up."""
    # A turn that waited may go on in a newer build, which has not all of its skills any more.
    active = tuple(id for id in now.active if id in skills)
    if graph is None:
        return active
    wired = () if now.is_parked else (*graph.always, *((now.cursor,) if now.cursor in skills else ()))
    return tuple(dict.fromkeys((*wired, *active)))


def in_use(turn: Turn, skills: Mapping[str, Skill], graph: GraphPlan | None) -> frozenset[str]:
    """The skills that were in use in the request whose calls run."""
    return frozenset(used_skills(turn.state(_READ), skills, graph))


_READ = SkillFold(graphed=False)
"""A state is read by its fold's name; what else a fold is made with counts for making one."""

MOST_LOOKED = 256
"""So far back a result is looked for; one that is further away is as good as gone."""

Visible = Callable[[Turn, str], bool]
"""Whether the skill with this id may be seen in this turn."""


class SkillHooks:
    """The hooks of an agent's skills, with or without a graph."""

    def __init__(
        self, skills: Mapping[str, Skill], *, graph: GraphPlan | None, scoped: frozenset[str], kept: frozenset[str],
        visible: Visible | None, listed: bool, models: Mapping[str, Model],
    ) -> None:  # fmt: skip
        check_condition(visible, "visible= of skills")
        self.skills, self.graph, self.visible, self.listed, self.models = skills, graph, visible, listed, models
        owned = frozenset(tool.id for skill in (graph.nodes if graph else {}).values() for tool in skill.tools)
        engages = graph is not None and graph.engagement is not None
        self.fold = SkillFold(graphed=graph is not None, owned=owned if engages else None)
        self.procedures = Procedures(skills, self.fold)
        self.serving = Serving(skills, scoped=scoped, owned=owned, kept=kept)
        self.steering = None if graph is None else Steering(graph, self.fold)
        self.tools = self._tools()
        self.unseen = frozenset(id for id, skill in skills.items() if not skill.in_system)
        self._descriptions: dict[tuple[object, ...], tuple[str, tuple[Piece, ...]]] = {}

    def _tools(self) -> tuple[Tool, ...]:
        every = list(self.skills.values())
        described = skill_tools.LISTED if self.listed else skill_tools.placed(skill_tools.open_text(every))[0]
        tools = {tool.id: tool for skill in every for tool in skill.tools}
        own = [skill_tools.read_skill(self.skills, described, self.graph.nodes if self.graph is not None else ())]
        own += [skill_tools.list_skills(every)] if self.listed else []
        own += [skill_tools.skip_step()] if self.procedures.skills else []
        return (*own, *tools.values())

    def hooks(self, manifest: Mapping[str, Json]) -> Hooks:
        """What the feature hands in."""
        has_steps = bool(self.procedures.skills)
        continued = self.graph is not None and self.graph.continuity == "conversation"
        after: AfterTool = self.after_tool
        before: BeforeTool | None = self.before_tool if self.visible is not None else None
        output: OnOutput | None = self.procedures.finished if has_steps else None
        return Hooks(
            on_request=self.on_request, after_tool=after, before_tool=before, on_output=output, holds_drafts=has_steps,
            tools=self.tools, folds=(self.fold, CURSOR) if continued else (self.fold,), bodies=ALL_BODIES,
            order={
                "request": SLOTS["request"]["CHOOSE"], "after_tool": SLOTS["after_tool"]["GATES"],
                "before_tool": SLOTS["before_tool"]["PERMISSION"], "output": SLOTS["output"]["PROCEDURE"],
            },
            manifest=manifest, alone=True, active=self.active,
        )  # fmt: skip

    def active(self, turn: Turn) -> frozenset[str]:
        """The skills in use, as far as they are known before a request: where a graph moves is seen in the next."""
        now = self.fold.served(turn.state(self.fold))
        return frozenset(used_skills(now, self.skills, self.graph))

    # ---- before a request

    async def on_request(self, turn: Turn, request: Request) -> Request:
        """The cursor moves, then texts, tools and the model follow."""
        state = turn.state(self.fold)
        steering, hidden = self.steering, self._hidden(turn)
        if steering is not None:
            if state.rounds == 0:
                message = message_of(turn)
                await steering.begin(turn, message, hidden)
                steering.move(turn, steering.first(turn, message))
            elif (batch := _batch(request, state.last)) is not None:
                steering.move(turn, steering.next(turn, message_of(turn), batch))
            state = turn.state(self.fold)
        now = self.fold.served(state)
        parked = now.is_parked
        used = used_skills(now, self.skills, self.graph)
        at = None if parked else self.procedures.at(now)
        untold, pins = self._handed(request, now, used) if self.unseen else (frozenset[str](), {})
        described, catalog = self._described(now, hidden)
        more: tuple[Piece, ...] = (*catalog, *self.serving.pieces(used, untold))
        if at is not None:
            more = (*more, at.hint)
        if steering is not None:
            more = (*more, *steering.lines(now, hidden, menu=not catalog))
        situation = Situation(used, at, described, parked)
        offers = self.serving.offers(request.offers, situation)
        model = self._model(now, used)
        if not more and offers is request.offers and model is None and not pins:
            return request
        view = replace(request.view, pins={**request.view.pins, **pins}) if pins else request.view
        return replace(
            request, pieces=(*request.pieces, *more) if more else request.pieces, offers=offers, view=view,
            model=model or request.model,
        )  # fmt: skip

    def _handed(
        self, request: Request, now: SkillState, used: tuple[str, ...]
    ) -> tuple[frozenset[str], Mapping[str, str]]:
        """Texts that only ``read_skill`` shows: those that no result of this turn has, and the rounds of the others.

        A skill that a route, a tool or the turn before led to was never read; a result may have been placed elsewhere.
        Such a text stands among the instructions. A round that has one must stay: it is pinned.
        """
        wanted, pins = set(self.unseen.intersection(used)), dict[str, str]()
        for id, round_ in dict(now.handed).items():
            if id in wanted and _says(request, round_, self.skills[id].text):
                wanted.remove(id)
                pins[round_] = "skill-in-use"
        return frozenset(wanted), pins

    def _model(self, now: SkillState, used: Sequence[str]) -> Model | None:
        graph = self.graph
        if graph is not None and graph.escalation is not None and now.escalated:
            return graph.escalation[0]
        if not self.models:
            return None
        leads = now.cursor if graph is not None else (used[-1] if used else "")
        return self.models.get(leads)

    def _hidden(self, turn: Turn) -> frozenset[str]:
        """The skills that may not be seen in this turn. One that nobody can judge is among them."""
        visible = self.visible
        if visible is None:
            return frozenset()
        return frozenset(id for id in self.skills if not _sees(visible, turn, id))

    def _described(self, now: SkillState, hidden: frozenset[str]) -> tuple[str, tuple[Piece, ...]]:
        """How ``read_skill`` is described now, and what of it stands among the instructions."""
        graph, steering = self.graph, self.steering
        if self.listed:
            return skill_tools.LISTED, ()
        if graph is None or steering is None:
            return self._kept(
                (hidden,), lambda: skill_tools.open_text([s for i, s in self.skills.items() if i not in hidden])
            )
        menu = steering.menu_line(now, hidden)
        return self._kept((now.cursor, menu, hidden), lambda: self._routed(graph, now.cursor, menu, hidden))

    def _routed(self, graph: GraphPlan, cursor: str, menu: str, hidden: frozenset[str]) -> str:
        reach = tuple(id for id in graph.reachable(cursor) if id not in hidden)
        loose = [skill for id, skill in graph.loose.items() if id not in hidden]
        # Asking for the one in use is staying, but in a tree, which has no place to stay at.
        known = hidden.union(reach, () if graph.tree is not None else (cursor,))
        others = [id for id in graph.nodes if id not in known]
        can = [*(self.skills[id] for id in reach), *loose]
        return skill_tools.routed_text(can, others, menu, some_hidden=bool(hidden))

    def _kept(self, key: tuple[object, ...], make: Callable[[], str]) -> tuple[str, tuple[Piece, ...]]:
        held = self._descriptions.get(key)
        if held is None:
            if len(self._descriptions) >= MOST_KEPT:
                self._descriptions.clear()
            held = self._descriptions[key] = skill_tools.placed(make())
        return held

    # ---- calls

    async def before_tool(self, turn: Turn, call: ToolCall) -> Allow[Mapping[str, Json]] | Deny:
        """A skill that may not be seen may not be taken up either."""
        visible = self.visible
        asked = call.args.get("id") if call.name == skill_tools.READ_SKILL else None
        if visible is None or not isinstance(asked, str) or asked not in self.skills or _sees(visible, turn, asked):
            return ALLOW  # what is no id is for the gate of schemas to say
        return Deny("Permission denied: there is no such skill for this conversation.")

    async def after_tool(self, turn: Turn, returned: Returned) -> Allow[Returned] | Deny:
        """Gates of ``read_skill`` and ``skip_step``; steps that are done; what tools propose."""
        name = returned.call.name
        if name == skill_tools.READ_SKILL:
            return self._read(turn, returned)
        if name == skill_tools.SKIP_STEP and self.procedures.skills:
            return self.procedures.skipped(turn, returned)
        if name == skill_tools.LIST_SKILLS and self.listed and (hidden := self._hidden(turn)):
            told = skill_tools.catalog(skill for id, skill in self.skills.items() if id not in hidden)
            return Allow(replace(returned, content=(Text(told),)), "skills that may not be seen were left out")
        state = turn.state(self.fold)
        if state.proposed and (told := judge_proposal(turn, state, self.graph, returned.call, self._hidden(turn))):
            returned = replace(returned, notes=(*returned.notes, Note(by="skills", text=f"\n\n{told}")))
            stepped = self.procedures.stepped(turn, returned)
            return stepped if stepped.why else Allow(returned, "what became of the proposal was added")
        return self.procedures.stepped(turn, returned)

    def _read(self, turn: Turn, returned: Returned) -> Allow[Returned] | Deny:
        asked = str(returned.call.args["id"])  # the schema gate lets no other id through
        skill, steering = self.skills[asked], self.steering
        state, hop = turn.state(self.fold), False
        if steering is not None:
            hop = asked in steering.graph.nodes
            hidden = self._hidden(turn)
            refused = steering.refuses(state, asked, hidden)
            if refused is not None and state.is_parked:
                turn.note(SkillActivated(skill=asked, recalls=True))
                told = skill_tools.recalled_text(refused)
                return Allow(replace(returned, content=(Text(told),)), "the graph comes back, its cursor stays")
            if refused is not None:
                turn.note(refused)
                steering.escalate(turn)
                tree = steering.graph.tree is not None
                return Deny(skill_tools.refusal_text(refused, tree=tree, some_hidden=bool(hidden)))
        turn.note(SkillActivated(skill=asked, hop=hop, restarts=self.procedures.is_done(state, skill)))
        intro = self.procedures.intro(turn.state(self.fold), skill)
        if intro is None:
            return ALLOW
        return Allow(replace(returned, notes=(*returned.notes, intro)), "the first step was added")


def _sees(visible: Visible, turn: Turn, skill: str) -> bool:
    try:
        return says_yes(visible(turn, skill))
    except Exception as error:  # noqa: BLE001 - what cannot be judged is not shown
        log.warning("visible= failed for the skill %r: %s", skill, type(error).__name__)
        return False


def message_of(turn: Turn) -> str:
    """What the person said in this turn, as it was admitted; empty for a turn that nobody's words began."""
    place = turn.admitted
    unit: Any = None if place is None else turn.conversation.units[place]
    return unit.text if isinstance(unit, UserMessage) else ""


def _says(request: Request, round_: str, text: str) -> bool:
    """Whether a result of this round has the text, as the conversation keeps it."""
    units = request.conversation.units
    for place in range(len(units) - 1, max(len(units) - MOST_LOOKED, 0) - 1, -1):
        unit = units[place]
        if isinstance(unit, Round) and unit.id == round_:
            return any(text in part.text for call in unit.calls for part in call.result or () if isinstance(part, Text))
    return False


def _batch(request: Request, last: str) -> Sequence[ToolCall] | None:
    """The calls of the last round, once it is settled; None while it still runs, which is when a pause goes on."""
    units = request.conversation.units
    for place in range(len(units) - 1, max(len(units) - 9, -1), -1):
        unit = units[place]
        if isinstance(unit, Round):
            return unit.calls if unit.id == last else None
    return None
