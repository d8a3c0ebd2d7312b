"""Every feature of the library as it is when it is configured and has nothing to do.

A feature that cannot be idle by its nature says what it adds, and the tests see to it that it is only that. Each
factory imports what it needs: loading this module loads no feature, which is what `modules` measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec.structs import replace

from onrecord.tools.tool import Tool
from onrecord.turn.moments import ALLOW
from tests.features.talk import PLAIN, REFUND, Made, Talker

__all__ = ("ELSEWHERE", "IDLE", "Adds", "Idle", "Words", "with_trait")


@dataclass(frozen=True, kw_only=True)
class Adds:
    """What a feature adds to requests and records just by being there: tools, pieces by source, kinds of entries.

    ``shape``: replies must look like something, so that only the first request of a talk can be compared. ``holds``:
    an answer is judged whole, so nothing of it streams before.
    """

    tools: frozenset[str] = frozenset()
    pieces: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    shape: bool = False
    holds: bool = False


NOTHING = Adds()


@dataclass(frozen=True, kw_only=True)
class Idle:
    """A feature with nothing to do: the classes it is made of, where they live, and how it is made."""

    of: tuple[str, ...]
    """The names of its public classes, traits among them, as ``module.Class`` below ``onrecord``."""
    make: Callable[[], Made]
    adds: Adds = NOTHING

    @property
    def home(self) -> frozenset[str]:
        """The packages that it may load."""
        return frozenset(name.split(".")[0] for name in self.of)


class Words(NamedTuple):
    """What a typed agent answers."""

    words: str


def with_trait(trait: Any) -> Callable[[Tool], Tool]:
    """Puts a trait on a tool."""
    return lambda tool: replace(tool, traits=(*tool.traits, trait))


def _allows(turn: Any, value: Any) -> Any:
    return ALLOW


def _nothing(*_: Any) -> None:
    return None


# ---- the core's own --------------------------------------------------------------------------------------------------


def _watch() -> Made:
    from onrecord.turn.moments import Watch

    return Made(features=(Watch(_nothing),))


def _condition() -> Made:
    from onrecord.turn.instruction import Instruction

    return Made(features=(Instruction("Never.", only_if=lambda _: False),))


def _instruction() -> Made:
    from onrecord.turn.instruction import Instruction

    return Made(features=(Instruction("Be brief.", name="brief"),))


def _bundle() -> Made:
    from onrecord.turn.moments import Watch
    from onrecord.turn.plan import Bundle

    return Made(features=(Bundle(name="desk", version="1", features=(Watch(_nothing),)),))


def _typed() -> Made:
    from onrecord.turn.answer import Typed

    return Made(features=(Typed(),), given={"output": Words})


# ---- governance ------------------------------------------------------------------------------------------------------


def _rules() -> Made:
    from onrecord.governance.rules import after_tool, before_tool, on_input

    return Made(features=tuple(kind(_allows) for kind in (on_input, before_tool, after_tool)))


def _output_rule() -> Made:
    from onrecord.governance.rules import on_output

    return Made(features=(on_output(_allows),))


def _permissions() -> Made:
    from onrecord.governance import Permissions, Policy

    spare = Policy(name="spare", tools=("spare",), args={"what": "ever"})
    return Made(features=(Permissions({"all": ["*"]}, "all", policies=(spare,), check=lambda _: ALLOW),))


def _check_in() -> Made:
    from onrecord.governance import CheckIn, NeedsCheckIn

    return Made(features=(CheckIn(),), dress={"pay": with_trait(NeedsCheckIn(lambda args, _: args["amount"] > 1000))})


def _credentials() -> Made:
    from onrecord.governance import Credentials, NeedsCredential

    async def never(wanted: object) -> Any:
        raise AssertionError(wanted)

    return Made(features=(Credentials(never),), dress={"spare": with_trait(NeedsCredential(service="mail"))})


def _budget() -> Made:
    from onrecord.governance import Budget, Limit

    return Made(features=(Budget(Limit(tokens=10**9)),))


def _redaction() -> Made:
    from onrecord.governance import Redaction

    return Made(features=(Redaction(patterns=["never"]),))


# ---- prompt ----------------------------------------------------------------------------------------------------------


def _artifacts() -> Made:
    from onrecord.prompt import Artifacts

    artifacts = Artifacts()
    return Made(features=(artifacts,))


def _presenting() -> Made:
    from onrecord.prompt import Artifacts

    return Made(features=(Artifacts(None, present=True),))


def _spending() -> Made:
    from onrecord.prompt import Artifacts

    artifacts = Artifacts()
    return Made(features=(artifacts,), dress={"spare": artifacts.wants(what="tool-result/look")})


def _context() -> Made:
    from onrecord.prompt import ContextRegistry, RuntimeContext

    return Made(features=(RuntimeContext(registry=ContextRegistry(), providers=(_nothing,)),))


def _cache_marks() -> Made:
    from onrecord.prompt import CacheMarks

    return Made(features=(CacheMarks(),))  # the model's vendor caches by itself


def _choose() -> Made:
    from onrecord.prompt import Choose

    return Made(features=(Choose(_nothing),))


def _media() -> Made:
    from onrecord.prompt import Media

    return Made(features=(Media(),))


def _degrade() -> Made:
    from onrecord.prompt import Degrade

    return Made(features=(Degrade(),))


def _prompt_budget() -> Made:
    from onrecord.prompt import PromptBudget

    return Made(features=(PromptBudget(9999),))


def _thinking() -> Made:
    from onrecord.prompt import Thinking

    return Made(features=(Thinking(handler=str),))


def _compaction() -> Made:
    from onrecord.prompt import Compaction

    return Made(features=(Compaction(100_000),))


def _window() -> Made:
    from onrecord.prompt import Window

    return Made(features=(Window.last(99),))


def _window_budget() -> Made:
    from onrecord.prompt import Window

    return Made(features=(Window.summarize(10**6, model=Talker(replace(PLAIN, model="scribe"))),))


def _window_by() -> Made:
    from onrecord.prompt import Window

    return Made(features=(Window.by("patient", lambda look: range(len(look.units) - 99)),))


# ---- memory, skills, honesty, telemetry ------------------------------------------------------------------------------


def _memory() -> Made:
    from onrecord.memory import Episodes, Facts, Memory, PlainShelf, Recent

    return Made(features=(Memory(PlainShelf(), (Recent(4), Facts(), Episodes()), read_only=True),))


def _retrieve() -> Made:
    from onrecord.memory import Corpus, Document, Retrieve
    from onrecord.memory.documents import passages_of

    text = "xylophone"
    return Made(features=(Retrieve(Corpus(passages_of(Document("d", text), [(0, len(text))]))),))


def _skills() -> Made:
    from onrecord.skills import Skill, Skills

    return Made(features=(Skills(Skill("refunds", "How to refund.", "Ask for the order.", tools=(REFUND,))),))


def _skill_graph() -> Made:
    from onrecord.skills import Keywords, Skill, SkillGraph, Start

    refunds = Skill("refunds", "How to refund.", "Ask for the order.", tools=(REFUND,))
    return Made(features=(SkillGraph([refunds], start=[Start("refunds", match=Keywords(["xylophone"]))]),))


def _commentary() -> Made:
    from onrecord.honesty import Commentary

    return Made(features=(Commentary(tell=_nothing),))


def _self_explain() -> Made:
    from onrecord.honesty import SelfExplain

    return Made(features=(SelfExplain(),))


def _otel() -> Made:
    from onrecord.telemetry import Otel

    return Made(features=(Otel(),))


def _logs() -> Made:
    from onrecord.telemetry import Logs

    return Made(features=(Logs(),))


IDLE: Mapping[str, Idle] = {
    "watch": Idle(of=("turn.moments.Watch",), make=_watch),
    "condition": Idle(of=("turn.instruction.Instruction",), make=_condition),
    "instruction": Idle(
        of=("turn.instruction.Instruction",), make=_instruction, adds=Adds(pieces=frozenset({"brief"}))
    ),
    "bundle": Idle(of=("turn.plan.Bundle",), make=_bundle),
    "typed": Idle(
        of=("turn.answer.Typed",), make=_typed, adds=Adds(shape=True, kinds=frozenset({"verdict"}))
    ),
    "rules": Idle(of=("governance.rules.Rule",), make=_rules),
    "output rule": Idle(of=("governance.rules.Rule",), make=_output_rule, adds=Adds(holds=True)),
    "permissions": Idle(of=("governance.permissions.Permissions",), make=_permissions),
    "check-in": Idle(
        of=("governance.approvals.CheckIn", "governance.approvals.NeedsCheckIn"), make=_check_in
    ),
    "credentials": Idle(
        of=("governance.credentials.Credentials", "governance.credentials.NeedsCredential"), make=_credentials
    ),
    "budget": Idle(of=("governance.budget.Budget",), make=_budget, adds=Adds(kinds=frozenset({"cost.tick"}))),
    "redaction": Idle(of=("governance.redaction.Redaction",), make=_redaction),
    "artifacts": Idle(of=("prompt.artifacts.Artifacts",), make=_artifacts),
    "artifacts, presenting": Idle(
        of=("prompt.artifacts.Artifacts",), make=_presenting, adds=Adds(tools=frozenset({"present"}))
    ),
    "artifacts, spending": Idle(
        of=("prompt.artifacts.Artifacts", "prompt.artifacts.Wants"), make=_spending,
        adds=Adds(tools=frozenset({"spare"})),  # its argument is a ref
    ),
    "context": Idle(of=("prompt.buckets.RuntimeContext",), make=_context),
    "cache marks": Idle(of=("prompt.cache_marks.CacheMarks",), make=_cache_marks),
    "choose": Idle(of=("prompt.model_choice.Choose",), make=_choose),
    "media": Idle(of=("prompt.media.Media",), make=_media),
    "degrade": Idle(of=("prompt.media.Degrade",), make=_degrade),
    "prompt budget": Idle(of=("prompt.prompt_budget.PromptBudget",), make=_prompt_budget),
    "thinking": Idle(of=("prompt.thinking.Thinking",), make=_thinking),
    "compaction": Idle(of=("prompt.window.compaction.Compaction",), make=_compaction),
    "window": Idle(of=("prompt.window.window.Window",), make=_window),
    "window, summing up": Idle(of=("prompt.window.window.Window",), make=_window_budget),
    "window, by a plan": Idle(of=("prompt.window.window.Window",), make=_window_by),
    "memory": Idle(of=("memory.memory.Memory",), make=_memory),
    "retrieve": Idle(of=("memory.retrieve.Retrieve",), make=_retrieve),
    "skills": Idle(
        of=("skills.registry.Skills",), make=_skills, adds=Adds(tools=frozenset({"read_skill", "refund"}))
    ),
    "skill graph": Idle(
        of=("skills.graph.SkillGraph",), make=_skill_graph, adds=Adds(tools=frozenset({"read_skill", "refund"}))
    ),
    "commentary": Idle(of=("honesty.commentary.Commentary",), make=_commentary),
    "self-explain": Idle(
        of=("honesty.self_explain.SelfExplain",), make=_self_explain,
        adds=Adds(tools=frozenset({"run_overview"}), pieces=frozenset({"self_explain"})),
    ),
    "otel": Idle(of=("telemetry.otel.Otel",), make=_otel),
    "logs": Idle(of=("telemetry.logs.Logs",), make=_logs),
}  # fmt: skip
"""Every feature, by a name of this registry."""

ELSEWHERE: Mapping[str, str] = {
    "flows.direct.Flows": "leads turns itself, so an agent has one and it is never idle: tests/flows",
}
"""What has hooks and is no feature that could be idle, and why."""
