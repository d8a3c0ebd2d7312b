"""Making a graph: from what was declared to what is mounted. Whatever contradicts itself is refused here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from onrecord.models.model import Model
from onrecord.models.names import as_model
from onrecord.skills.checkup import Finding, structure_findings
from onrecord.skills.checkup_starts import start_findings
from onrecord.skills.cursor import Move, Resolver
from onrecord.skills.engagement import Engagement
from onrecord.skills.graph_plan import Continuity, Escalation, Explains, GraphPlan, Strictness
from onrecord.skills.hop import Hop
from onrecord.skills.matching import Intent, compile_match
from onrecord.skills.registry import by_id, model_of, models_of
from onrecord.skills.routes import Decide, Route, Start
from onrecord.skills.scorers import ByClassifier, Candidate, Scorer
from onrecord.skills.skill import Skill, refused
from onrecord.skills.turn_start import RESERVED, Closeness, TurnStart

__all__ = ("Given", "compiled", "findings", "models_for", "of_shape", "shaped")


class Given(Struct, frozen=True, kw_only=True):
    """What a graph was declared with."""

    nodes: dict[str, Skill]
    loose: dict[str, Skill]
    start: Any
    entries: Sequence[str | Skill]
    routes: tuple[Route, ...]
    tree: Decide | None
    never: tuple[str, ...]
    classify: Any
    scored_by: Any
    closeness: Closeness | None
    decider: Model | None
    strictness: Strictness
    continuity: Continuity
    escalation: Escalation | None
    engagement: Engagement | None
    known: frozenset[str] | None


def compiled(given: Given) -> GraphPlan:
    """The graph to mount. ConfigurationError."""
    _check_words(given)
    starts = tuple(_starts(given.start))
    entries = tuple(_id(each) for each in given.entries)
    if given.tree is not None:
        return _tree(given, starts, entries)
    if starts and entries:
        raise refused("the graph has start= and entries=", "rules belong in start=, a choice among skills in entries=")
    _check_ids(given, starts, entries)
    _check_scorers(given, starts, entries)
    finders = [None if s.match is None else compile_match(s.match, f"the start at {s.use!r}") for s in starts]
    uses = tuple(dict.fromkeys((*(s.use for s in starts), *entries)))
    resolver = Resolver(starts, finders, given.routes, None, entries=frozenset(uses), walks=bool(starts))
    successors: dict[str, tuple[str, ...]] = {}
    for route in given.routes:
        successors[route.source] = (*successors.get(route.source, ()), route.to)
    default = next((s.use for s in starts if s.match is None and s.only_if is None), None)
    reads = bool(entries) and given.scored_by is None
    plan = GraphPlan(
        nodes=given.nodes, loose=given.loose, starts=starts, routes=given.routes, tree=None, entries=uses,
        always=() if default is None else (default,), successors=successors, resolver=resolver, model_reads=reads,
        strictness=given.strictness, continuity=given.continuity, engagement=given.engagement,
        begins=_begins(given, starts, entries, resolver), escalation=_escalation(given),
    )  # fmt: skip
    _check_surfaces(plan)
    return plan


def _check_words(given: Given) -> None:
    if not given.nodes and not given.loose:
        raise refused("the graph has no skills", "SkillGraph([billing, refunds], start='billing')")
    if given.strictness not in get_args(Strictness):
        raise refused(f"strictness cannot be {given.strictness!r}", "it is 'assist', 'guard' or 'rails'")
    if given.continuity not in get_args(Continuity):
        raise refused(f"continuity cannot be {given.continuity!r}", "it is 'turn' or 'conversation'")
    for id in given.nodes:
        if id in given.loose:
            raise refused(f"the skill {id!r} is in the graph and loose beside it", "leave it in one of them")
    if given.loose:
        for skill in given.loose.values():
            if skill.steps:
                raise refused(
                    f"the skill {skill.id!r} has steps and is loose: the graph's cursor never stands on it",
                    "put it into the graph, with a route that leads there",
                )
    if given.engagement is not None and not given.nodes:
        raise refused("engagement parks a graph, and this one has no skills in it", "leave engagement out")


def _id(one: str | Skill) -> str:
    return one.id if isinstance(one, Skill) else one


def _starts(start: Any) -> Iterator[Start]:
    several = isinstance(start, Iterable) and not isinstance(start, (str, Skill, Start))
    for each in start if several else [start]:
        if not isinstance(each, (str, Skill, Start)):
            raise refused(f"start= takes skills, ids and Start rules, not a {type(each).__name__}")
        yield each if isinstance(each, Start) else Start(_id(each))


def _check_ids(given: Given, starts: Sequence[Start], entries: Sequence[str]) -> None:
    for each in given.routes:
        route: object = each
        if not isinstance(route, Route):
            raise refused(f"routes= takes Route, not a {type(route).__name__}", 'Route("a", "b", on_tool="look")')
    named = [(s.use, "a start") for s in starts] + [(id, "entries") for id in entries]
    named += [(id, f"the route from {r.source!r} to {r.to!r}") for r in given.routes for id in (r.source, r.to)]
    for id, where in named:
        if id not in given.nodes:
            beside = " (it is loose, so no way leads there)" if id in given.loose else ""
            raise refused(
                f"{where} names {id!r}, which is no skill of the graph{beside}",
                f"its skills are {', '.join(given.nodes)}", "unknown-skill",
            )  # fmt: skip
    if len(set(entries)) != len(entries):
        raise refused("entries names a skill twice")


def _check_scorers(given: Given, starts: Sequence[Start], entries: Sequence[str]) -> None:
    if given.scored_by is not None and given.classify is not None:
        raise refused(
            "the graph has classify= and scored_by=", "classify= goes with start rules, scored_by= with entries="
        )
    if given.scored_by is not None and not entries:
        raise refused("scored_by= chooses among entries=, and there are none", "list them, or use classify=")
    if given.classify is not None and not any(isinstance(s.match, Intent) for s in starts):
        raise refused(
            "classify= judges starts that are an Intent, and there is none", "Start('refunds', match=Intent(...))"
        )
    if given.closeness is not None and given.classify is None:
        raise refused("closeness says when classify= is sure, and there is no classify=", "leave it out")
    if given.decider is not None and (given.classify is None or given.strictness == "rails"):
        raise refused("the decider could never decide: no menu is ever open", "it needs classify=, and no rails")
    if given.decider is not None and (clash := RESERVED & given.nodes.keys()):
        raise refused(f"the decider cannot tell the skill {min(clash)!r} from its own answer", "give it another id")
    if given.strictness == "rails" and entries and given.scored_by is None:
        raise refused("under rails the model chooses nothing, and entries= leaves the beginning to it", "use start=")


def _begins(given: Given, starts: Sequence[Start], entries: Sequence[str], resolver: Resolver) -> TurnStart | None:
    scorer = given.classify if given.classify is not None else given.scored_by
    if scorer is None and given.continuity == "turn":
        return None
    apart = given.scored_by is not None and given.continuity == "turn"
    made = dict[str, Candidate]()
    for start in starts:
        if isinstance(start.match, Intent):
            made[start.use] = _candidate(given.nodes[start.use], start.match)
    for id in entries:
        made[id] = Candidate(skill=id, description=given.nodes[id].description)
    return TurnStart(
        resolver=resolver, candidates=tuple(made.values()),
        descriptions={id: skill.description for id, skill in given.nodes.items()},
        scorer=None if scorer is None else _scorer(scorer), closeness=given.closeness or Closeness(),
        decider=given.decider, rails=given.strictness == "rails", apart=apart,
    )  # fmt: skip


def _candidate(skill: Skill, intent: Intent) -> Candidate:
    return Candidate(
        skill=skill.id, description=skill.description, means=intent.means, examples=tuple(intent.examples)
    )  # fmt: skip


def _scorer(given: Any) -> Scorer:
    if callable(getattr(given, "score", None)):
        scorer: Scorer = given
        return scorer
    if callable(getattr(given, "classify", None)):
        return ByClassifier(given)
    raise refused(
        f"a {type(given).__name__} scores nothing", "ByWords(), BySimilarity(embed), ByModel(), or a Classifier"
    )


def _escalation(given: Given) -> tuple[Model, int] | None:
    if given.escalation is None:
        return None
    return as_model(given.escalation.model), given.escalation.after_refusals


def models_for(skills: Mapping[str, Skill], more: Mapping[str, str | Model]) -> dict[str, Model]:
    """The models of skills, by both ways to say it. ConfigurationError when they disagree, or for an unknown skill."""
    own = models_of(skills)
    for id, model in more.items():
        if id not in skills:
            raise refused(
                f"models= names {id!r}, which is no skill of the graph", f"its skills are {', '.join(skills)}"
            )
        said = skills[id].model
        if said is not None and said != model:
            raise refused(f"models= and the skill {id!r} name different models", "leave it to one of them")
        own[id] = model_of(model, id)
    return own


def _check_surfaces(plan: GraphPlan) -> None:
    """A text that only ``read_skill`` hands out is never read where code leads to its skill."""
    coded = {r.to: "a route" for r in plan.routes if r.kind != "model"} | {s.use: "a start" for s in plan.starts}
    if plan.tree is not None:
        coded = dict.fromkeys(plan.nodes, "the tree")
    for id, by in coded.items():
        if plan.nodes[id].surface == "tool_only":
            raise refused(
                f"{by} leads to the skill {id!r}, whose text only read_skill hands out: nobody would read it",
                "surface='both', or let only the model go there",
            )


# ---- trees -----------------------------------------------------------------------------------------------------------


def _tree(given: Given, starts: Sequence[Start], entries: Sequence[str]) -> GraphPlan:
    for what, held in (
        ("start=", starts), ("entries=", entries), ("routes=", given.routes), ("never_routes=", given.never),
        ("classify=", given.classify), ("scored_by=", given.scored_by), ("decider=", given.decider),
        ("closeness=", given.closeness),
    ):  # fmt: skip
        if held:
            raise refused(f"a tree decides by itself, so {what} says nothing", "leave it out")
    if given.continuity != "turn":
        raise refused("a tree has no place that it could go on from: continuity is 'turn'")
    leaves = list(_leaves(given.tree))
    for id in leaves:
        if id not in given.nodes:
            raise refused(f"the tree names {id!r}, which is no skill of it", code="unknown-skill")
    for id, skill in given.nodes.items():
        if id not in leaves:
            raise refused(f"the skill {id!r} is no leaf of the tree: nothing leads there", "put it into loose=")
        if skill.steps:
            raise refused(f"the skill {id!r} has steps: a tree decides anew for each request", "use routes=")
    resolver = Resolver((), (), (), given.tree, entries=frozenset(), walks=False)
    plan = GraphPlan(
        nodes=given.nodes, loose=given.loose, starts=(), routes=(), tree=given.tree, entries=(), always=(),
        successors={}, resolver=resolver, strictness=given.strictness, engagement=given.engagement,
        escalation=_escalation(given),
    )  # fmt: skip
    _check_surfaces(plan)
    return plan


def _leaves(node: Decide | str | None) -> Iterator[str]:
    waiting: list[Decide | str | None] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Decide):
            waiting += [one.no, one.yes]
        elif one is not None:
            yield one


# ---- graphs by shape -------------------------------------------------------------------------------------------------


class _Shape:
    """Any object with ``skills`` and ``next_skill(hop)`` as a resolver."""

    def __init__(self, graph: Any, known: Mapping[str, Skill]) -> None:
        self.graph, self.known = graph, known
        self.own: Any = getattr(graph, "explain", None)

    def explain(self, hop: Hop, /) -> Move:
        if callable(self.own):
            move: object = self.own(hop)
            if isinstance(move, Move):
                return move
        to: object = self.graph.next_skill(hop)
        if not to or to not in self.known:
            return Move(source=hop.cursor, to=hop.cursor, by="stay" if hop.cursor else "none")
        return Move(source=hop.cursor, to=str(to), by="unexplained")


def shaped(given: Given, graph: Any) -> Given:
    """The declaration with the skills of an object that is a graph by its shape. ConfigurationError."""
    skills: object = getattr(graph, "skills", None)
    if not isinstance(skills, Iterable) or not callable(getattr(graph, "next_skill", None)):
        raise refused(
            f"a {type(graph).__name__} is no graph", "it has skills, and next_skill(hop) that gives an id or None"
        )
    if getattr(graph, "entry_selection", None) == "classify" and getattr(graph, "turn_routing", None) is None:
        raise refused("the graph classifies turns, and says not how: it has no turn_routing")
    if getattr(graph, "entry_selection", None) == "model-read" and given.strictness == "rails":
        raise refused("under rails the model chooses nothing, and this graph leaves the beginning to it", "use 'guard'")
    explains = callable(getattr(graph, "explain", None)) and bool(getattr(graph, "edges", None))
    if given.engagement is not None and not explains:
        raise refused(
            "engagement goes by why a cursor moves, and this graph explains nothing",
            "give it edges, and explain(hop) -> Move",
        )
    for what, held in (
        ("classify=", given.classify), ("scored_by=", given.scored_by), ("decider=", given.decider),
        ("closeness=", given.closeness), ("never_routes=", given.never),
    ):  # fmt: skip
        if held:
            raise refused(f"{what} goes with starts, and graph= has none that are known here")
    edges = tuple(getattr(graph, "edges", ()))
    wired = {str(id) for edge in edges for id in edge}
    every = by_id(skills)
    return replace(
        given, nodes={id: s for id, s in every.items() if id in wired},
        loose=given.loose | {id: s for id, s in every.items() if id not in wired},
        routes=tuple(Route(str(source), str(to)) for source, to in edges),
    )  # fmt: skip


def of_shape(given: Given, graph: Any) -> GraphPlan:
    """The graph to mount, of such an object. Nothing is carried over from turn to turn."""
    if given.strictness not in get_args(Strictness) or given.continuity not in get_args(Continuity):
        _check_words(given)
    successors: dict[str, tuple[str, ...]] = {}
    for route in given.routes:
        successors[route.source] = (*successors.get(route.source, ()), route.to)
    resolver: Explains = _Shape(graph, {**given.nodes, **given.loose})
    return GraphPlan(
        nodes=given.nodes, loose=given.loose, starts=(), routes=given.routes, tree=None, entries=(), always=(),
        successors=successors, resolver=resolver, strictness=given.strictness, continuity=given.continuity,
        engagement=given.engagement, escalation=_escalation(given), reaches=getattr(graph, "reachable", None),
    )  # fmt: skip


def findings(given: Given, plan: GraphPlan) -> Iterator[Finding]:
    """What the check-up finds without knowing the agent."""
    yield from structure_findings(plan, given.known)
    if plan.tree is None and isinstance(plan.resolver, Resolver):
        yield from start_findings(plan.resolver, given.routes, given.never, classified=given.classify is not None)
