"""SkillGraph: skills with declared ways between them, as a feature."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from onrecord.declared import declared
from onrecord.errors import ConfigurationError
from onrecord.jsonio import Json, digest
from onrecord.models.classify import Classifier
from onrecord.models.model import Model
from onrecord.models.names import as_model
from onrecord.skills import graph_making
from onrecord.skills.checkup import Finding, body_findings
from onrecord.skills.cursor import Move
from onrecord.skills.diagram import mermaid
from onrecord.skills.engagement import Engagement
from onrecord.skills.graph_plan import Continuity, Escalation, GraphPlan, Strictness
from onrecord.skills.hop import Hop
from onrecord.skills.registry import by_id, check_tools, kept_by
from onrecord.skills.routes import Decide, Route, Start
from onrecord.skills.scorers import Scorer
from onrecord.skills.skill import Skill, refused
from onrecord.skills.skill_hooks import SkillHooks, Visible, in_use
from onrecord.skills.turn_start import Closeness
from onrecord.tools.tool import Tool
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import Hooks
from onrecord.turn.turn import Turn

__all__ = ("SkillGraph",)

log = logging.getLogger("onrecord.skills")


@declared
class SkillGraph:
    """Skills with declared ways between them: where a turn begins, and what leads from one to the next.

    One skill, the *cursor*, is in use at a time; its text and tools are shown. ``start`` is the skill of every turn, or
    a list of `Start` rules of which the first that matches wins; or ``entries`` are skills among which the model
    chooses (with ``scored_by``, a scorer). ``routes`` are taken by results (`Route`), without a condition only by the
    model. ``tree`` is a decision instead of all that. ``loose`` are skills beside the graph, for any time.
    ``classify`` judges starts that are an `Intent`: a `Scorer` or a `Classifier`; ``closeness`` says when it is sure,
    else the model is offered a menu, unless ``decider`` (a model) decides. ``never_routes`` are messages that must
    match no start.

    ``strictness``: under ``assist`` the model may go wherever a way leads, under ``guard`` only where a menu is open,
    under ``rails`` nowhere. ``continuity``: where a turn begins that no rule decides, anew (``turn``) or where the last
    one ended (``conversation``). ``models`` gives skills a model of their own, ``escalation`` one after refusals.
    ``engagement`` parks a graph that a guess brought in. ``scope_tools`` offers a skill's tools only while it is in
    use. ``visible(turn, id)`` says whether a skill may be seen.

    It is checked when it is made (``check``: ``throw`` raises for errors and logs warnings, ``warn`` logs both,
    ``off``); texts that name tools against ``known_tools``, or those of the agent. ``graph`` takes any object with
    ``skills`` and ``next_skill(hop)``, and maybe ``edges``, ``reachable(id)`` and ``explain(hop)``, in place of all
    declarations. ConfigurationError for declarations that contradict each other or say nothing (``skill-invalid``),
    names of skills that there are not (``unknown-skill``), and, unless ``check`` says otherwise, the first error of the
    check-up under its own code.
    """

    name = "skills"

    def __init__(
        self, skills: Sequence[Skill] = (), *, start: str | Skill | Sequence[Start | Skill | str] = (),
        entries: Sequence[str | Skill] = (), routes: Sequence[Route] = (), tree: Decide | None = None,
        loose: Sequence[Skill] = (), never_routes: Sequence[str] = (), classify: Scorer | Classifier | None = None,
        scored_by: Scorer | Classifier | None = None, closeness: Closeness | None = None,
        decider: str | Model | None = None, strictness: Strictness = "assist", continuity: Continuity = "turn",
        models: Mapping[str, str | Model] | None = None, escalation: Escalation | None = None,
        engagement: Engagement | None = None, scope_tools: bool | None = None, visible: Visible | None = None,
        check: Literal["throw", "warn", "off"] = "throw", known_tools: Sequence[str] | None = None,
        graph: object | None = None,
    ) -> None:  # fmt: skip
        if check not in {"throw", "warn", "off"}:
            raise refused(f"check cannot be {check!r}", "it is 'throw', 'warn' or 'off'")
        given = graph_making.Given(
            nodes=by_id(skills), loose=by_id(loose), start=start, entries=entries, routes=tuple(routes), tree=tree,
            never=tuple(never_routes), classify=classify, scored_by=scored_by, closeness=closeness,
            decider=None if decider is None else as_model(decider), strictness=strictness,
            continuity=continuity, escalation=escalation, engagement=engagement,
            known=None if known_tools is None else frozenset(known_tools),
        )  # fmt: skip
        if graph is not None:
            if skills or start or entries or routes or tree is not None or scope_tools is not None:
                raise refused("graph= is given beside a declaration of its own", "give one of them")
            given = graph_making.shaped(given, graph)
        if tree is not None and scope_tools is not None:
            raise refused("a tree offers only the tools of the skill that it chose", "leave scope_tools out")
        self.plan: GraphPlan = graph_making.compiled(given) if graph is None else graph_making.of_shape(given, graph)
        self.skills = {**self.plan.nodes, **self.plan.loose}
        check_tools(self.skills)
        self.models = graph_making.models_for(self.skills, models or {})
        everywhere = scope_tools or tree is not None
        self.scoped = frozenset(
            id for id, skill in self.skills.items() if skill.scoped or (everywhere and id in self.plan.nodes)
        )
        self.visible, self.check, self._known, self._never = visible, check, given.known, given.never
        self._findings = tuple(graph_making.findings(given, self.plan)) if graph is None else ()
        if given.known is not None:
            self._findings += tuple(body_findings(self.plan, self.scoped, given.known, closed=True))
        self._tell(self._findings)

    def hooks(self, spec: AgentSpec) -> Hooks:
        made = SkillHooks(
            self.skills, graph=self.plan, scoped=self.scoped, kept=kept_by(spec), visible=self.visible, listed=False,
            models=self.models,
        )  # fmt: skip
        return replace(made.hooks(self._manifest()), built=None if self._known is not None else self._built)

    def _manifest(self) -> Mapping[str, Json]:
        plan = self.plan
        about: dict[str, Json] = {
            "skills": len(self.skills), "drawing": digest(self.to_mermaid().encode()), "strictness": plan.strictness,
            "continuity": plan.continuity,
        }  # fmt: skip
        if plan.begins is not None and plan.begins.scorer is not None:
            about["scorer"] = plan.begins.scorer.name
        return {"skill_graph": about}

    def _built(self, tools: Mapping[str, Tool], /, *, may_be_more: bool) -> None:
        """Texts are checked against the tools of the agent, which are all there are unless toolsets bring more."""
        self._tell(tuple(body_findings(self.plan, self.scoped, frozenset(tools), closed=not may_be_more)))

    def _tell(self, found: Sequence[Finding]) -> None:
        if self.check == "off":
            return
        errors = [each for each in found if each.severity == "error"]
        if errors and self.check == "throw":
            first = errors[0]
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise ConfigurationError(
                f"the graph of skills has an error: {first.code} at {first.where}: {first.message}{more}",
                code=first.code, hint="SkillGraph(..., check='off').checkup() tells all that was found",
            )  # fmt: skip
        for each in found:
            log.warning("graph of skills: %s at %s: %s", each.code, each.where, each.message)

    def checkup(self) -> tuple[Finding, ...]:
        """Everything that was found when it was made, errors first."""
        return tuple(sorted(self._findings, key=lambda each: each.severity))

    async def checkup_intents(self, model: str | Model | None = None) -> tuple[Finding, ...]:
        """What ``classify=`` makes of every example of an intent, and of ``never_routes``; errors first.

        An error is an example that begins elsewhere; a warning is one that cannot be told from another intent's, or
        that only its own words lead there. Each is judged as the first message of a conversation, up to twice; what a
        model is asked for it costs, and stands on no record. ``model`` is the agent's own, for ``ByModel()``.
        ConfigurationError for a graph without ``classify=``.
        """
        from onrecord.skills.checkup_intents import intent_findings

        begins = self.plan.begins
        if begins is None or begins.scorer is None or begins.apart or not self.plan.starts:
            raise refused("the graph judges no intents: it has no classify=", "checkup() tells the rest")
        asked = None if model is None else as_model(model)
        found = [each async for each in intent_findings(begins, self.plan.starts, self._never, asked)]
        return tuple(sorted(found, key=lambda each: each.severity))

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart; dashed arrows are those that only the model takes."""
        return mermaid(self.plan)

    def explain(self, hop: Hop) -> Move:
        """Where the cursor would go, and by what: for tests, and for whoever wonders."""
        return self.plan.resolver.explain(hop)

    def next_skill(self, hop: Hop) -> str:
        """Where the cursor would go; empty for nowhere."""
        return self.explain(hop).to

    def in_use(self, turn: Turn) -> frozenset[str]:
        """The skills in use in the request whose calls run now: for a rule that forbids what scoping only hides.

        One that is taken up in the same reply is not among them. KeyError in an agent without this graph.
        """
        return in_use(turn, self.skills, self.plan)

    def reachable(self, cursor: str = "") -> tuple[str, ...]:
        """The skills that the model may ask for from here, under ``assist``."""
        return self.plan.reachable(cursor)
