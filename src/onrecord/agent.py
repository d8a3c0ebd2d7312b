"""Agent: the door. An immutable declaration, compiled once, that takes turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from msgspec.structs import replace

from onrecord.conversation.conversation import Conversation
from onrecord.conversation.identity import SessionKey, session_key
from onrecord.conversation.inputs import Input, as_input
from onrecord.conversation.messages import Message
from onrecord.conversation.outgoing import Delta
from onrecord.declared import declared
from onrecord.errors import ConfigurationError, UsageError
from onrecord.jsonio import Json, canonical, digest
from onrecord.models.model import Model
from onrecord.models.names import model_named
from onrecord.session.session import Session
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import Toolset, named_source
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.answer import Typed
from onrecord.turn.director import Brief, Director, Solo
from onrecord.turn.effects import Effects, PlainEffects
from onrecord.turn.moments import Feature, Hooks
from onrecord.turn.plan import Bundle, Plan, compile_plan, flatten, hooks_of
from onrecord.turn.result import O, TurnResult
from onrecord.turn.stream import TurnStream
from onrecord.turn.take import Order, take
from onrecord.turn.turn import Turn

__all__ = ("Agent",)

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    # Defaults of type variables come with Python 3.13; type checkers know them everywhere.
    C = DefaultTypeVar("C", default=object)
else:
    C = TypeVar("C")

T = TypeVar("T")
MAX_ROUNDS = 50
_PLAIN = PlainEffects()
_TEXT: Any = str
_ANY: Any = object


@declared
class Agent(Generic[C, O]):
    """A conversational agent.

    ``model`` is a name (``"openai:gpt-5-mini"``, ``"offline"``), a `Model`, or a function of the turn giving either;
    ``instructions`` a text or a function of the turn. Such functions may be async, are asked once a turn, and what they
    chose is on the record; with `PerTurn` they have a default to keep. ``features`` attach at moments, in list order.
    ``output`` is the type of `TurnResult.output` (default str: the text); ``context`` the type of what a turn's tools
    get as ``ctx.context``. ``rounds`` caps the rounds with tools (0: no tools are sent, at most 50). Raises
    ConfigurationError and its kinds; nothing is checked later that can be checked here.
    """

    def __init__(
        self,
        model: str | Model | Callable[[Turn], str | Model | Awaitable[str | Model]],
        *,
        name: str = "agent",
        instructions: str | Callable[[Turn], str | Awaitable[str]] = "",
        tools: Sequence[Tool | Toolset] = (),
        director: Director | None = None,
        features: Sequence[Feature] = (),
        output: type[O] = _TEXT,
        context: type[C] = _ANY,
        rounds: int = 5,
    ) -> None:
        if type(rounds) is not int or not 0 <= rounds <= MAX_ROUNDS:
            raise ConfigurationError(f"rounds must be a whole number from 0 to {MAX_ROUNDS}, got {rounds!r}")
        if not name or not isinstance(name, str):
            raise ConfigurationError("an agent needs a name", hint='give a text, such as name="hotel"')
        self._given: dict[str, Any] = {
            "model": model, "name": name, "instructions": instructions, "tools": _several("tools", tools),
            "director": director, "features": _several("features", features), "output": output, "context": context,
            "rounds": rounds,
        }  # fmt: skip
        self.plan = _compiled(**self._given)

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.plan.spec.name

    @property
    def spec(self) -> AgentSpec:
        """The declaration as features read it."""
        return self.plan.spec

    async def turn(
        self, input: str | Input, *, session: Session | SessionKey | str | None = None,
        history: Conversation | Sequence[Message | Mapping[str, Json]] | None = None, context: C | None = None,
        options: Sequence[object] = (), effects: Effects = _PLAIN,
    ) -> TurnResult[O]:  # fmt: skip
        """Takes one input and returns what the turn came to.

        ``session`` is the state to go on from, or the key of a new one (None: a fresh key). ``history`` replaces the
        session's conversation for this turn and stays the caller's. Save ``result.change()`` in a store, or keep
        ``result.session``. Raises TurnError (its ``result`` is worth keeping), ModelError (nothing was shown, nothing
        is kept), UsageError.
        """
        return await take(self.plan, _order(input, session, history, context, options, effects), effects)

    def turn_stream(
        self, input: str | Input, *, session: Session | SessionKey | str | None = None,
        history: Conversation | Sequence[Message | Mapping[str, Json]] | None = None, context: C | None = None,
        options: Sequence[object] = (), effects: Effects = _PLAIN,
    ) -> TurnStream[O]:  # fmt: skip
        """The same turn, read while it runs: ``async for text in agent.turn_stream("hi").text``."""
        order = _order(input, session, history, context, options, effects)

        async def run(emit: Callable[[Delta], None], began: Callable[[Turn], None]) -> TurnResult[O]:
            return await take(self.plan, replace(order, emit=emit, began=began), effects)

        return TurnStream(run)

    def turn_sync(
        self, input: str | Input, *, session: Session | SessionKey | str | None = None,
        history: Conversation | Sequence[Message | Mapping[str, Json]] | None = None, context: C | None = None,
        options: Sequence[object] = (), effects: Effects = _PLAIN,
    ) -> TurnResult[O]:  # fmt: skip
        """`turn` for code without an event loop, and for notebooks: it runs on a loop in the background."""
        from onrecord.sync import run

        return run(
            self.turn(input, session=session, history=history, context=context, options=options, effects=effects)
        )

    def turn_stream_sync(
        self, input: str | Input, *, session: Session | SessionKey | str | None = None,
        history: Conversation | Sequence[Message | Mapping[str, Json]] | None = None, context: C | None = None,
        options: Sequence[object] = (), effects: Effects = _PLAIN,
    ) -> Iterator[str | TurnResult[O]]:  # fmt: skip
        """Pieces of text as they arrive, and last the result. Leaving the loop early interrupts the turn."""
        from onrecord.sync import stream

        return stream(
            lambda: self.turn_stream(
                input, session=session, history=history, context=context, options=options, effects=effects
            )
        )

    def with_(self, **changes: Any) -> Agent[C, O]:
        """A new agent with some parameters of the constructor given anew: ``agent.with_(features=[...])``."""
        unknown = changes.keys() - self._given.keys()
        if unknown:
            raise ConfigurationError(
                f"Agent has no parameter {min(unknown)!r}", hint=f"it has {', '.join(self._given)}"
            )
        return Agent(**{**self._given, **changes})

    def as_tool(self, *, id: str = "", description: str = "", concurrency_safe: bool | None = None) -> Tool:
        """This agent as a tool of another: each call is a child turn in a session of its own.

        It sees the message that it is called with, and none of the conversation above; it acts for the same person,
        with the same ``context``. With ``concurrency_safe`` its calls in one reply run side by side. Eight agents at
        most are at work one below the other.

        Wakes that such a turn arms are in ``children`` of the result; a host does not fire them.
        """
        from onrecord.subturn import agent_tool

        return agent_tool(self.plan, id or self.name, description, concurrency_safe=concurrency_safe)

    def __repr__(self) -> str:
        return f"Agent({self.plan.spec.manifest['model']!r}, name={self.name!r}, {len(self.plan.tools)} tools)"


def _several(name: str, given: Iterable[T]) -> tuple[T, ...]:
    if not isinstance(cast(object, given), Iterable):
        raise ConfigurationError(
            f"{name}= takes a list, not a {type(given).__name__}", hint=f"write {name}=[...], also for one"
        )
    return tuple(given)


def _order(
    input: str | Input, session: Session | SessionKey | str | None,
    history: Conversation | Sequence[Message | Mapping[str, Json]] | None, context: object,
    options: Sequence[object], effects: Effects,
) -> Order:  # fmt: skip
    if session is None:
        session = SessionKey(effects.nonce())
    elif isinstance(session, (str, SessionKey)):
        session = session_key(session)
        if not session.id.strip():
            raise UsageError(
                "a session needs a name that is not blank", hint="without session= each turn gets one of its own"
            )
    elif not isinstance(given := cast(object, session), Session):
        waits = isinstance(given, Awaitable)
        raise UsageError(
            f"session= takes a Session, a SessionKey or a key, not a {type(given).__name__}",
            hint="await it first: session=await store.load(...)" if waits else
            "pass result.session, or what the store loaded",
        )  # fmt: skip
    if history is not None and not isinstance(history, Conversation):
        from onrecord.conversation.transcript import messages_from

        history = Conversation.of(messages_from(history))
    return Order(
        input=as_input(input), session=session, context=context,
        options=tuple(options), history=history,
    )  # fmt: skip


def _compiled(
    *, model: Any, name: str, instructions: Any, tools: Sequence[Tool | Toolset], director: Director | None,
    features: Sequence[Feature], output: Any, context: Any, rounds: int,
) -> Plan:  # fmt: skip
    chosen = model_named(model) if isinstance(model, str) else model
    if not callable(chosen) and not hasattr(chosen, "card"):
        raise ConfigurationError(
            f"model must be a name, a model or a function of the turn, not {type(model).__name__}",
            hint='for first steps write Agent("offline"); `onrecord models` says what else can be used here',
        )
    if not isinstance(instructions, str) and not callable(instructions):
        raise ConfigurationError(
            f"instructions must be a text or a function of the turn, not {type(instructions).__name__}",
            hint="further texts are Instruction(...) in features=",
        )
    spec = AgentSpec(
        name=name, tools=tuple(t for t in tools if isinstance(t, Tool)), output=output, rounds=rounds,
        brief=Brief(key="answer"), manifest={}, digest="", card=None if callable(chosen) else chosen.card,
    )  # fmt: skip
    leader = director or Solo()
    if isinstance(leader, type) or not callable(getattr(leader, "direct", None)):
        raise ConfigurationError(
            f"{getattr(leader, '__name__', type(leader).__name__)!r} in director= is no director",
            hint="a director has async def direct(self, turn, stage); give an object, not its class",
        )
    plan = Plan(spec, chosen, instructions, leader)
    features, typed = _with_typed(features, output)
    plan.shape = None if typed is None else typed.shape
    first: list[tuple[str, Hooks]] = []
    if callable(getattr(leader, "hooks", None)):
        first.append((type(leader).__name__, hooks_of(leader, type(leader).__name__, spec)))
    compile_plan(plan, features, tools, first)
    plan.offers(None)
    plan.spec = _with_manifest(plan, spec, features, chosen)
    return plan


def _with_typed(features: Sequence[Feature], output: Any) -> tuple[Sequence[Feature], Typed | None]:
    """The features with typed output mounted, where the agent declares an output type."""
    given = [f for f in flatten(features) if isinstance(f, Typed)]
    if len(given) > 1:
        raise ConfigurationError("Typed is given twice", hint="one Typed says everything about the output")
    if output is str:
        return features, None
    mounted = (given[0] if given else Typed()).mount(output)
    return (_swapped(features, given[0], mounted) if given else [*features, mounted]), mounted


def _swapped(features: Sequence[Feature], old: Feature, new: Feature) -> Sequence[Feature]:
    """The features with one in the place of another, inside bundles too."""
    return tuple(
        new if f is old else replace(f, features=_swapped(f.features, old, new)) if isinstance(f, Bundle) else f
        for f in features
    )


def _with_manifest(plan: Plan, spec: AgentSpec, features: Sequence[Feature], model: Any) -> AgentSpec:
    """What a record says of the agent: names only, never an address, a directory or a secret."""
    manifest: dict[str, Json] = {
        "agent": spec.name,
        "model": "function" if plan.fixed_model() is None else model.card.name,
        "director": type(plan.director).__name__,
        "rounds": spec.rounds,
        "tools": list(plan.tools),
    }
    if plan.toolsets and plan.holders:
        manifest["toolsets"] = [named_source(toolset) for toolset in plan.toolsets]
    if names := [f.name for f in flatten(features)]:
        manifest["features"] = names
    for more in plan.manifests:
        for name, value in more.items():
            held = manifest.get(name)
            manifest[name] = {**held, **value} if isinstance(held, dict) and isinstance(value, dict) else value
    try:
        told = canonical(manifest)
    except UnicodeEncodeError:
        raise ConfigurationError(
            "a name of this agent, of a tool or of a feature is not valid Unicode",
            hint="half a surrogate pair often comes from a file name or from text that was cut",
        ) from None
    return replace(spec, tools=tuple(plan.tools.values()), manifest=manifest, digest=digest(told))
