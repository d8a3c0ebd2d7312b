"""Plan: an agent compiled once. Features become one tuple of hooks per moment; an empty moment is an empty loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError, FeatureConflict, ToolInvalid
from onrecord.jsonio import Json
from onrecord.models.model import Model
from onrecord.models.request import Offer, Piece, Purpose, Shape, ToolSpec
from onrecord.record.entry import Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.session.folding import Folds
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import SessionToolset, Toolset, holders
from onrecord.tools.traits import traits_of
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.below import Below, Expire, Forget, forgetting
from onrecord.turn.conflicts import check_instructions, check_single
from onrecord.turn.director import Director
from onrecord.turn.instruction import Instruction
from onrecord.turn.misplaced import instead_of_feature, instead_of_tool, named
from onrecord.turn.moments import MOMENTS, SLOTS, Feature, Guard, Hooks, Moment, Rank, Watch
from onrecord.turn.options import Silenced

__all__ = ("Bundle", "Mounted", "Plan", "compile_plan")

HOOK_NAMES: dict[Moment, str] = {
    "input": "on_input",
    "request": "on_request",
    "text": "on_text",
    "reply": "on_reply",
    "before_tool": "before_tool",
    "after_tool": "after_tool",
    "output": "on_output",
    "settle": "on_settle",
}
PURPOSES: tuple[Purpose, ...] = ("speak", "wrap_up", "judge", "consult")


class Mounted(Struct, frozen=True, kw_only=True):
    """One hook where it stands: whose it is, what to call, its slot, and its feature's hooks.

    ``mark`` is its name where it must be found again: the second hook of one name at a moment is ``name/1``.
    """

    name: str
    mark: str
    call: Callable[..., Any]
    slot: int
    hooks: Hooks


class Bundle(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """A named, versioned list of features, tools and instructions, flattened where it stands in the list.

    Name and version are on the record of every turn. What it brings and somebody else brought too is refused, naming
    both sides, and so is a bundle that is given twice. ConfigurationError for a blank name or version.
    """

    name: str
    version: str
    features: tuple[Feature, ...] = ()
    tools: tuple[Tool | Toolset, ...] = ()
    instructions: tuple[Instruction, ...] = ()

    def __post_init__(self) -> None:
        for what in ("name", "version"):
            given: object = getattr(self, what)
            if not isinstance(given, str) or not given.strip():
                raise ConfigurationError(
                    f"a bundle has a {what}, not {given!r}", hint='Bundle(name="support-desk", version="1", ...)'
                )
        for what in ("features", "tools", "instructions"):
            given = getattr(self, what)
            if not isinstance(given, (tuple, list)):
                raise ConfigurationError(
                    f"{what}= of bundle {self.name!r} takes several, not a {type(given).__name__}",
                    hint=f"write {what}=(..., )",
                )

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(tools=self.tools, instructions=self.instructions, manifest={"bundles": {self.name: self.version}})


class Plan:
    """Everything the loop needs of an agent, immutable after `compile_plan`."""

    def __init__(self, spec: AgentSpec, model: object, instructions: object, director: Director) -> None:
        self.spec, self.model, self.instructions, self.director = spec, model, instructions, director
        self.tools: dict[str, Tool] = {}
        self.toolsets: tuple[Toolset, ...] = ()
        self.holders: tuple[SessionToolset, ...] = ()  # those that keep something open, sub-agents' too
        self.on: dict[Moment, tuple[Mounted, ...]] = {}
        self.before_gates: tuple[Mounted, ...] = ()
        self.behind_gates: tuple[Mounted, ...] = ()
        self.before_cap: tuple[Mounted, ...] = ()
        self.behind_cap: tuple[Mounted, ...] = ()
        self.on_request: dict[Purpose, tuple[Mounted, ...]] = {}
        self.folds = Folds()
        self.codec = EntryCodec()
        self.options: frozenset[type] = frozenset({Silenced})
        self.watch: tuple[Watch, ...] = ()
        self.holds_drafts = self.keeps_wakes = False
        self.on_thinking: tuple[str, Callable[[str], str]] | None = None
        self.redact: Callable[[Entry], Entry] | None = None
        self.shape: Shape[Any] | None = None
        self.pieces: tuple[Piece, ...] = ()
        self.conditional: tuple[Instruction, ...] = ()
        self.declared: tuple[Instruction, ...] = ()  # all of them, in the order in which requests show them
        self.forget: tuple[Forget, ...] = ()
        self.expire: tuple[Expire, ...] = ()
        self.guards: tuple[tuple[str, Guard], ...] = ()
        self.features: tuple[str, ...] = ()
        self.active: tuple[Callable[[Any], frozenset[str]], ...] = ()
        self.manifests: tuple[Mapping[str, Json], ...] = ()
        self._base: tuple[str, tuple[Piece, ...]] | None = None
        self._offers: dict[tuple[str, ...] | None, tuple[Offer, ...]] = {}

    def base_pieces(self, instructions: str) -> tuple[Piece, ...]:
        """What every request begins with, in order; the same tuple for the same instructions."""
        held = self._base  # read once: another thread may run a turn with other instructions
        if held is None or held[0] != instructions:
            lead = Piece(source="instructions", text=instructions, rank=Rank.BASE, cache="always")
            pieces = (lead, *self.pieces) if instructions else self.pieces
            held = self._base = (instructions, tuple(sorted(pieces, key=lambda p: p.rank)))
        return held[1]

    def fixed_model(self) -> Model | None:
        """The model, unless it is a function of the turn."""
        return None if callable(self.model) else cast(Model, self.model)

    def unread(self, tool: Tool) -> str:
        """The feature that a trait of this tool needs and that is not mounted, or an empty string."""
        return next((feature.name for feature in armed_by(tool) if feature.name not in self.features), "")

    def offers(self, allowed: tuple[str, ...] | None) -> tuple[Offer, ...]:
        """Registered tools of an allow-list as offers, in the agent's order. ConfigurationError for an unknown id."""
        held = self._offers.get(allowed)
        if held is None:
            if not self.toolsets:  # what a toolset offers is only known round by round
                check_allowed(allowed, self.tools)
            chosen = [t for t in self.tools.values() if allowed is None or t.id in allowed]
            held = self._offers[allowed] = tuple(offer_of(tool) for tool in chosen)
        return held


def offer_of(tool: Tool) -> Offer:
    """A tool with its plain description."""
    return Offer(tool=tool, spec=ToolSpec(name=tool.id, description=tool.description, schema=tool.parameters))


_TOOLS: dict[int, tuple[tuple[Offer, ...], dict[str, Tool]]] = {}


def tools_of(offers: tuple[Offer, ...]) -> Mapping[str, Tool] | None:
    """The tools of some offers by id; None when one of them is no offer. The same tuple is read once."""
    held = _TOOLS.get(id(offers))
    if held is None or held[0] is not offers:
        if not all(isinstance(offer, Offer) for offer in offers):
            return None
        tools = {offer.tool.id: offer.tool for offer in offers}
        if type(offers) is not tuple:  # a list may be another the next time
            return tools
        if len(_TOOLS) >= 256:
            _TOOLS.clear()
        held = _TOOLS[id(offers)] = (offers, tools)
    return held[1]


def check_allowed(allowed: Iterable[str] | None, tools: dict[str, Tool]) -> None:
    """ConfigurationError when an allow-list names a tool that is not registered."""
    for name in allowed or ():
        if name not in tools:
            known = ", ".join(map(repr, tools)) or "none"
            raise ConfigurationError(f"unknown tool {name!r} in an allow-list", hint=f"registered tools: {known}")


def compile_plan(
    plan: Plan, features: Sequence[Feature], tools: Sequence[Tool | Toolset], first: Sequence[tuple[str, Hooks]] = ()
) -> Plan:
    """Mounts everything into the plan. ``first`` are hooks of the core and the director, before the features'."""
    mounted = list(first)
    sides, forms = [OURS] * len(mounted), [name for name, _ in mounted]
    for feature, side in sourced(features):
        mounted.append((feature.name, hooks_of(feature, feature.name, plan.spec)))
        sides.append(side)
        forms.append(type(feature).__name__)
    check_single(mounted, forms, sides)  # before their tools, which are two of one id where a feature is given twice
    register_tools(plan, _tools(tools, mounted, sides))
    if armed := _armed(plan, features):
        mounted += armed
        sides += [OURS] * len(armed)
        forms += [name for name, _ in armed]
        register_tools(plan, _tools(tools, mounted, sides))
    plan.features = tuple(name for name, _ in mounted)
    _check_bundles(features)
    check_single(mounted, forms, sides)
    _mount_moments(plan, mounted)
    _mount_state(plan, mounted)
    told = [i for _, h in mounted for i in h.instructions]
    check_instructions(mounted, sides)
    plan.declared = tuple(sorted(told, key=lambda i: i.rank))
    plan.conditional = tuple(i for i in told if not i.is_fixed)
    plan.pieces = tuple(piece for i in told if i.is_fixed and (piece := i.piece()) is not None)
    for _, hooks in mounted:
        if hooks.built is not None:
            hooks.built(plan.tools, may_be_more=bool(plan.toolsets))
    return plan


def hooks_of(owner: Any, name: str, spec: AgentSpec) -> Hooks:
    """What a feature, or a director that is one too, hands in. ConfigurationError when that is something else."""
    given: object = owner.hooks(spec)
    if not isinstance(given, Hooks):
        raise ConfigurationError(
            f"hooks(spec) of the feature {name!r} returned {type(given).__name__}, not Hooks",
            hint="end it with return Hooks(...)",
        )
    return given


OURS = "the agent itself"
"""The side of what an agent was given outside of any bundle."""


def flatten(features: Iterable[Feature]) -> Iterable[Feature]:
    """Features in list order, each bundle followed by what it holds."""
    return (feature for feature, _ in sourced(features))


def sourced(features: Iterable[Feature], side: str = OURS) -> Iterator[tuple[Feature, str]]:
    """The same, each with the side that brings it: the agent itself, or the bundle that it stands in."""
    for feature in features:
        if (
            isinstance(feature, type)
            or not callable(getattr(feature, "hooks", None))
            or not getattr(feature, "name", "")
        ):
            raise ConfigurationError(f"{named(feature)!r} in features= is no feature", hint=instead_of_feature(feature))
        yield feature, _side(feature) if isinstance(feature, Bundle) else side
        if isinstance(feature, Bundle):
            yield from sourced(feature.features, _side(feature))


def _side(bundle: Bundle) -> str:
    return f"bundle {bundle.name!r} {bundle.version}"


def _check_bundles(features: Iterable[Feature]) -> None:
    """FeatureConflict for a bundle that comes twice, in one version or in two."""
    versions: dict[str, str] = {}
    for bundle in flatten(features):
        if isinstance(bundle, Bundle) and bundle.name in versions:
            held = versions[bundle.name]
            twice = "twice" if held == bundle.version else f"in version {held!r} and in version {bundle.version!r}"
            raise FeatureConflict(f"bundle {bundle.name!r} is given {twice}", hint="take one of them out")
        if isinstance(bundle, Bundle):
            versions[bundle.name] = bundle.version


def _tools(
    tools: Sequence[Tool | Toolset], mounted: Sequence[tuple[str, Hooks]], sides: Sequence[str]
) -> Iterator[tuple[Tool | Toolset, str]]:
    """All tools, each with the side that brings it."""
    yield from ((tool, OURS) for tool in tools)
    for (name, hooks), side in zip(mounted, sides, strict=True):
        yield from ((tool, side if side != OURS else f"feature {name!r}") for tool in hooks.tools)


def register_tools(plan: Plan, tools: Iterable[tuple[Tool | Toolset, str]]) -> None:
    """Registers tools by id. ToolInvalid when an id comes twice, naming both sides."""
    toolsets: list[Toolset] = []
    sides: dict[str, str] = {}
    for tool, side in tools:
        if not isinstance(tool, Tool):
            if not callable(getattr(tool, "tools", None)):
                raise ToolInvalid(
                    f"{named(tool)!r} in tools= is neither a tool nor a toolset", hint=instead_of_tool(tool)
                )
            toolsets.append(tool)
            continue
        if plan.tools.setdefault(tool.id, tool) is not tool:
            first = sides[tool.id]
            who = f"one of {first}, one of {side}" if first != side else f"both of {side}"
            raise ToolInvalid(
                f"two tools have the id {tool.id!r}: {who}",
                hint="ids must be unique: the model calls by them",
            )
        sides.setdefault(tool.id, side)
    plan.toolsets = tuple(toolsets)


def _armed(plan: Plan, features: Sequence[Feature]) -> list[tuple[str, Hooks]]:
    """Hooks of features that traits of registered tools mount by themselves."""
    found: dict[str, Hooks] = {}
    names = {f.name for f in flatten(features)}
    for tool in plan.tools.values():
        for feature in armed_by(tool):
            if feature.name not in names and feature.name not in found:
                found[feature.name] = hooks_of(feature, feature.name, plan.spec)
    return list(found.items())


def armed_by(tool: Tool) -> Iterable[Feature]:
    """The features that a tool's traits need to be read by."""
    return [cast("Feature", feature) for trait in tool.traits if (feature := trait.arms()) is not None]


def _mount_moments(plan: Plan, mounted: Sequence[tuple[str, Hooks]]) -> None:
    for moment in MOMENTS:
        named: dict[str, int] = {}
        chain = [
            Mounted(
                name=name,
                mark=_mark(name, named),
                call=call,
                slot=hooks.order.get(moment, SLOTS[moment]["RULES"]),
                hooks=hooks,
            )
            for name, hooks in mounted
            if (call := getattr(hooks, HOOK_NAMES[moment])) is not None
        ]
        if moment == "after_tool":
            chain.reverse()
        plan.on[moment] = tuple(sorted(chain, key=lambda m: m.slot))
    gates, cap = SLOTS["before_tool"]["ARGUMENTS"], SLOTS["after_tool"]["CAP"]
    plan.before_gates = tuple(m for m in plan.on["before_tool"] if m.slot < gates)
    plan.behind_gates = tuple(m for m in plan.on["before_tool"] if m.slot >= gates)
    plan.before_cap = tuple(m for m in plan.on["after_tool"] if m.slot < cap)
    plan.behind_cap = tuple(m for m in plan.on["after_tool"] if m.slot >= cap)
    requests = plan.on["request"]
    thinking = ((name, hooks.on_thinking) for name, hooks in mounted if hooks.on_thinking is not None)
    plan.on_thinking = next(thinking, None)
    plan.redact = next((hooks.redact for _, hooks in mounted if hooks.redact is not None), None)
    plan.on_request = {p: tuple(m for m in requests if p in m.hooks.purposes) for p in PURPOSES}
    plan.on_request["consult"] = ()
    plan.holds_drafts = any(m.hooks.holds_drafts for m in plan.on["output"])


def _mark(name: str, named: dict[str, int]) -> str:
    place = named[name] = named.get(name, -1) + 1
    return f"{name}/{place}" if place else name


def _mount_state(plan: Plan, mounted: Sequence[tuple[str, Hooks]]) -> None:
    folds = [f for _, h in mounted for f in h.folds]
    names = [f.name for f in folds]
    for name in names:
        if names.count(name) > 1:
            raise FeatureConflict(f"two folds are named {name!r}", hint="a fold's name is its slot in the session")
    plan.folds = Folds(folds)
    plan.codec = EntryCodec(b for _, h in mounted for b in h.bodies)
    plan.options = frozenset({Silenced, *(o for _, h in mounted for o in h.options)})
    for watch in (w for _, h in mounted for w in h.watch):
        if watch not in plan.watch:  # given twice, it still looks once
            plan.watch = (*plan.watch, watch)
    plan.active = tuple(h.active for _, h in mounted if h.active is not None)
    plan.keeps_wakes = any(h.keeps_wakes for _, h in mounted)
    plan.guards = tuple((name, h.guard) for name, h in mounted if h.guard is not None)
    plan.manifests = tuple(h.manifest for _, h in mounted if h.manifest)
    below = list(traits_of(plan.tools.values(), Below))
    plan.holders = holders((*plan.toolsets, *(one for trait in below for one in trait.holders)))
    plan.forget, plan.expire = forgetting(mounted, below)
