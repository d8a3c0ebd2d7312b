"""Artifacts: results that are too long to show are stored, and the model gets a ticket that other tools can spend."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from onrecord.conversation.content import Text
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.messages import ToolCall
from onrecord.declared import Declared
from onrecord.errors import ConfigurationError, ToolInvalid, UsageError, check_count
from onrecord.jsonio import Json, dumps
from onrecord.prompt.artifact_entries import (
    ArtifactExpired,
    ArtifactMinted,
    ArtifactPresented,
    ArtifactRefused,
    ArtifactResolved,
)
from onrecord.prompt.artifact_store import Artifact, ArtifactStore, MemoryArtifacts
from onrecord.prompt.session_artifacts import JSON, TEXT, SessionArtifacts, is_ref
from onrecord.session.erasure import Retention, ago
from onrecord.tools.result_text import serialise
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.tools.traits import traits_of
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.contained import ends_take
from onrecord.turn.moments import ALLOW, SLOTS, Allow, Deny, Hooks, Returned
from onrecord.turn.turn import Turn

__all__ = ("Artifacts", "SessionArtifacts", "Wants")

REASON = (
    "This result is too long to show, so it was stored. Pass this ref, as it is, to a tool that takes one. You have "
    "not seen what is in it: do not make it up."
)
LONGEST_S = 100 * 365 * 86_400.0
MOST_LISTED = 10
AS = ("text", "table", "chart", "download")


# ---- the feature -----------------------------------------------------------------------------------------------------


class _Inline(Struct, frozen=True, metaclass=Declared):
    max_inline_chars: int | None = 16_000


class Artifacts(_Inline, frozen=True, kw_only=True):
    """Stores results longer than ``max_inline_chars`` and shows a ticket in their place (None: only on request).

    Only a call that ran and succeeded is placed, as the model would have read it after all rules; a tool's own size
    limit applies to the ticket. A store that fails is told (``artifacts.refused``), and the result is shown whole. Refs
    are digests keyed with a secret of the session, and are looked up in its own artifacts only: one that was made up,
    or heard of elsewhere, names nothing.

    Tools spend tickets with `wants`, and store and read by `of`. ``store`` is where (default: this process);
    ``ttl_s`` is for how many seconds (None: for good); with ``present`` the model may put one before the person.
    A host lets go of them with their session or person; with the turn that stored them last, where messages are
    erased, together with what was made of them; and by age (`Retention.entries`, from when they were stored).
    ConfigurationError for numbers below 1, and for a tool that spends what another `Artifacts` stores.
    """

    store: ArtifactStore = field(default_factory=MemoryArtifacts)
    ttl_s: float | None = None
    present: bool = False

    def __post_init__(self) -> None:
        if self.max_inline_chars is not None:
            check_count("Artifacts", "max_inline_chars", self.max_inline_chars, hint="None places nothing")
        if self.ttl_s is not None and not 0 < self.ttl_s <= LONGEST_S:
            raise ConfigurationError(
                f"ttl_s of Artifacts is a number of seconds above 0, not {self.ttl_s!r}",
                hint="None keeps them for good",
            )

    @property
    def name(self) -> str:
        """The feature's name."""
        return "artifacts"

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(
            before_tool=self._check, after_tool=None if self.max_inline_chars is None else self._place, alone=True,
            order={
                "before_tool": SLOTS["before_tool"]["REFERENCES"], "after_tool": SLOTS["after_tool"]["PLACEMENT"],
            },
            tools=(_present(self),) if self.present else (), built=self._built,
            forget=self.store.forget, forget_turns=self._forget_turns, expire=self._expire,
            keeps_text=False,  # what is stored is stored to be kept out of the record
            bodies=(ArtifactMinted, ArtifactResolved, ArtifactExpired, ArtifactRefused, ArtifactPresented),
            manifest={"artifacts": {"max_inline_chars": self.max_inline_chars}},
        )  # fmt: skip

    def of(self, ctx: ToolContext[Any]) -> SessionArtifacts:
        """The artifacts of the session that a handler runs in. UsageError where this is not among the features."""
        turn: Turn = ctx.turn  # type: ignore[attr-defined]  # of the context that the loop makes
        if not any(
            m.name == self.name and getattr(m.call, "__self__", None) == self for m in turn.plan.on["before_tool"]
        ):
            raise UsageError(
                "these artifacts are not part of this agent", code="no-artifacts", hint="Agent(features=[artifacts])"
            )
        call: ToolCall = ctx.call  # type: ignore[attr-defined]  # of the same
        wanted: Mapping[str, Artifact] = getattr(ctx, "wanted", {})
        return SessionArtifacts(turn=turn, store=self.store, call=call, ttl_s=self.ttl_s, wanted=wanted)

    def wants(self, kinds: Mapping[str, str] | None = None, /, **more: str) -> Callable[[Tool], Tool]:
        """Makes a tool take refs: ``@artifacts.wants(rows="tool-result/search")`` above ``@tool``.

        Each named argument is a ref for the model; the handler gets what is stored under it, text or JSON, and
        ``artifacts.of(ctx).wanted[name]`` says what that is. A ref that names nothing, is over or is of another kind is
        refused before the tool runs. What is stored stays out of the record, and out of the call's arguments there.
        """
        wanted = {**(kinds or {}), **more}
        return lambda tool: _spending(tool, Wants(kinds=wanted, artifacts=self))

    async def _forget_turns(self, session: SessionKey, turns: Collection[str]) -> None:
        """What they stored, and what later turns made of it."""
        await self.store.forget(session, turns=turns)

    async def _expire(self, policy: Retention, now: datetime) -> None:
        """What turns left goes with them, at the latest once these may be gone."""
        await self.store.expire(None if policy.entries is None else ago(now, policy.entries), now)

    # ---- storing

    async def _place(self, turn: Turn, returned: Returned) -> Allow[Returned]:
        most, text = self.max_inline_chars, _text(returned)
        if most is None or returned.status != "returned" or text is None or len(text) <= most:
            return ALLOW
        # What a rule made of a result is a text, whatever the result was.
        is_json = not isinstance(returned.value, str) and serialise(returned.value) == text
        own = SessionArtifacts(turn=turn, store=self.store, call=returned.call, ttl_s=self.ttl_s)
        try:
            held = await own.keep(
                text.encode(), f"tool-result/{returned.call.name}", JSON if is_json else TEXT,
                parents=_spent(turn, returned.call),
            )  # fmt: skip
        except BaseException as error:
            if ends_take(error):
                raise
            own.tell(ArtifactRefused(op="put", reason=type(error).__name__, tool=returned.call.name))
            return ALLOW
        ticket = {
            "placed": True, "ref": held.ref, "kind": held.kind, "mediaType": held.media_type, "bytes": held.bytes,
            "reason": REASON,
        }  # fmt: skip
        return Allow(replace(returned, content=(Text(dumps(ticket).decode()),)), why=f"stored as {held.ref}")

    # ---- spending

    async def _check(self, turn: Turn, call: ToolCall) -> Allow[Mapping[str, Json]] | Deny:
        wants = _wants(turn, call)
        if wants is None:
            return ALLOW
        own = SessionArtifacts(turn=turn, store=self.store, call=call)
        for name, kind in wants.kinds.items():
            if name not in call.args:
                continue
            ref = call.args[name]
            held = await own.find(ref, kind)
            if isinstance(held, str):
                own.tell(ArtifactRefused(op="get", reason=held, ref=ref if is_ref(ref) else "", tool=call.name))
                return Deny(f"Argument {name!r}: {held}. It takes the ref of a stored result of kind {kind!r}.")
            own.tell(ArtifactResolved(ref=held.ref, what=held.kind, bytes=held.bytes, via=name, tool=call.name))
        return ALLOW

    def _built(self, tools: Mapping[str, Tool], /, **_: bool) -> None:
        for tool in tools.values():
            for trait in traits_of((tool,), Wants):
                if trait.artifacts != self:
                    raise ConfigurationError(
                        f"tool {tool.id!r} spends what another Artifacts stores",
                        hint="make one Artifacts, and use it for wants() and in features=",
                    )


def _text(returned: Returned) -> str | None:
    """The words of a result; None where it is not words alone."""
    if not all(isinstance(part, Text) for part in returned.content):
        return None
    return "".join(part.text for part in returned.content if isinstance(part, Text))


def _wants(turn: Turn, call: ToolCall) -> Wants | None:
    tool = turn.tools.get(call.name)
    return None if tool is None else next(traits_of((tool,), Wants), None)


def _spent(turn: Turn, call: ToolCall) -> tuple[str, ...]:
    """The refs that a call was given: what it returns is made of what they name."""
    wants = _wants(turn, call)
    given = () if wants is None else (call.args[name] for name in wants.kinds if name in call.args)
    return tuple(dict.fromkeys(ref for ref in given if is_ref(ref)))


# ---- what a tool wants -----------------------------------------------------------------------------------------------


class Wants(Struct, frozen=True, kw_only=True):
    """A trait: these arguments are refs, of these kinds, of what ``artifacts`` stores. Put on by `Artifacts.wants`."""

    kinds: Mapping[str, str]
    artifacts: Artifacts

    def check(self, tool: Tool, /) -> None:
        """Refuses names that are no parameters, and a tool that would want nothing."""
        known = tool.parameters.get("properties", {})
        for name in self.kinds:
            if name not in known:
                raise ToolInvalid(
                    f"tool {tool.id!r} wants {name!r}, which is none of its parameters",
                    hint=f"it has {', '.join(map(repr, known)) or 'none'}",
                )
        if not self.kinds:
            raise ToolInvalid(f"tool {tool.id!r} wants nothing", hint='artifacts.wants(rows="tool-result/search")')

    def arms(self) -> Artifacts:
        """The feature that reads it."""
        return self.artifacts


class _Spending:
    """A handler's context, with what its refs named. Everything else is the context's own."""

    __slots__ = ("_ctx", "wanted")

    def __init__(self, ctx: Any, wanted: Mapping[str, Artifact]) -> None:
        object.__setattr__(self, "_ctx", ctx)
        object.__setattr__(self, "wanted", wanted)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._ctx, name, value)


def _spending(tool: Tool, wants: Wants) -> Tool:
    """The tool with refs in its schema and what they name in its handler's arguments."""
    wants.check(tool)
    handler = tool.handler

    async def spends(args: Mapping[str, Json], ctx: Any) -> Any:
        own, given, wanted = wants.artifacts.of(ctx), dict(args), dict[str, Artifact]()
        for name in wants.kinds:
            if name in given:
                wanted[name] = await own.head(given[name])
                given[name] = await own.read(wanted[name])
        context = _Spending(ctx, wanted)
        if inspect.iscoroutinefunction(handler):
            return await handler(given, context)
        value = await asyncio.to_thread(_called, handler, given, context)
        return await value if inspect.isawaitable(value) else value

    spends.__name__ = spends.__qualname__ = tool.id
    # Its own check of arguments goes with the schema that the model no longer sees.
    return replace(
        tool, handler=spends, parameters=_with_refs(tool.parameters, wants.kinds), problems=None,
        traits=(*tool.traits, wants),
    )  # fmt: skip


def _called(handler: Callable[..., Any], args: Mapping[str, Json], ctx: object) -> Any:
    try:
        return handler(args, ctx)
    except StopIteration as error:  # no future can hand this over: it would wait for ever
        raise UsageError("the handler raised StopIteration") from error


def _with_refs(parameters: Mapping[str, Json], kinds: Mapping[str, str]) -> Mapping[str, Json]:
    properties = dict(parameters.get("properties", {}))
    for name, kind in kinds.items():
        told = properties[name].get("description", "") if isinstance(properties[name], Mapping) else ""
        about = f"The ref of a stored result of kind {kind}, such as art_0123."
        properties[name] = {"type": "string", "description": f"{told} {about}".strip()}
    return {**parameters, "properties": properties}


def _present(artifacts: Artifacts) -> Tool:
    """The tool by which the model puts an artifact before the person."""

    async def present(args: Mapping[str, Json], ctx: ToolContext[Any]) -> ToolResult:
        own = artifacts.of(ctx)
        held = await own.find(args["ref"])
        if isinstance(held, str):
            live = [one.ref for one in await own.list()][-MOST_LISTED:]
            own.tell(ArtifactRefused(op="present", reason=held, tool="present"))
            return ToolResult({"error": held, "refs": live}, status="failed")
        shown_as = str(args.get("as") or AS[0])
        presented = ArtifactPresented(ref=held.ref, shown_as=shown_as, what=held.kind)
        return ToolResult({"presented": held.ref, "as": shown_as}, facts=(presented,))

    return Tool(
        "present", present, "Puts a stored result before the person, by its ref. They see all of it.", read_only=True,
        parameters={
            "type": "object", "required": ["ref"], "additionalProperties": False,
            "properties": {
                "ref": {"type": "string", "description": "The ref of a stored result."},
                "as": {"type": "string", "enum": list(AS), "description": "How it is shown."},
            },
        },
        check_arguments=True,
    )  # fmt: skip
