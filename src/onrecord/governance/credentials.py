"""Credentials: what a tool needs to act for a person, lent to its handler alone and written down nowhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.identity import Identity
from onrecord.conversation.inputs import Ask
from onrecord.conversation.messages import ToolCall
from onrecord.declared import Declared, declared
from onrecord.errors import ConfigurationError, ToolInvalid, UsageError
from onrecord.record.entry import Body
from onrecord.tools.tool import Tool, ToolContext
from onrecord.tools.traits import traits_of
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.call_context import CallContext
from onrecord.turn.contained import ends_take
from onrecord.turn.lent import without_lent
from onrecord.turn.moments import ALLOW, SLOTS, Allow, Deny, Hooks, Returned
from onrecord.turn.turn import Turn

__all__ = (
    "Consent",
    "Credential",
    "CredentialSettled",
    "CredentialSource",
    "Credentials",
    "NeedsCredential",
    "Wanted",
    "credential",
)

Mode = Literal["pause", "tell-model"]


class Wanted(Struct, frozen=True, kw_only=True):
    """What a source is asked for: a credential of a service, with these scopes, for this person, if known."""

    service: str
    scopes: tuple[str, ...] = ()
    identity: Identity | None = None
    tool: str = ""


class _Secret(Struct, frozen=True, metaclass=Declared):
    secret: str


class Credential(_Secret, frozen=True, kw_only=True):
    """A credential that was issued. ``scheme`` is how it goes into a header, ``expires_at`` is for the record.

    It has no readable form: its repr shows neither the secret nor its length.
    """

    scheme: str = "Bearer"
    expires_at: datetime | None = None

    def headers(self) -> dict[str, str]:
        """``{"Authorization": "Bearer ..."}``."""
        return {"Authorization": f"{self.scheme} {self.secret}"}

    def __repr__(self) -> str:
        return f"Credential({self.scheme!r})"


class Consent(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """The person has to agree first, at this address. It is shown to the person alone, in `TurnResult.private`.

    ``session`` is the source's name for this consent, if it has one; it stands on the question.
    """

    url: str
    session: str = ""

    def __repr__(self) -> str:
        return f"Consent(session={self.session!r})"


class CredentialSource(Protocol):
    """Where credentials come from: a vault, an OAuth broker."""

    async def __call__(self, wanted: Wanted, /) -> Credential | Consent:
        """The credential, or what the person has to do first. What it raises denies the call."""
        ...


class NeedsCredential(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """A trait: a call of this tool needs a credential of ``service``; its handler reads it with `credential`.

    ``mode`` says what happens when the person has to agree first: ``pause`` asks them, ``tell-model`` denies the call
    in words that name the service; the address is in `TurnResult.private` all the same. ToolInvalid without a service.
    """

    service: str
    scopes: tuple[str, ...] = ()
    mode: Mode = "pause"

    def check(self, tool: Tool, /) -> None:
        if not self.service or self.mode not in ("pause", "tell-model"):
            raise ToolInvalid(
                f"tool {tool.id!r}: a credential is of a service, and its mode is 'pause' or 'tell-model'",
                hint='NeedsCredential(service="calendar")',
            )

    def arms(self) -> object:
        return Credentials()


class CredentialSettled(Body, frozen=True, kw_only=True, tag="credential.settled"):
    """What became of a call's need for a credential. Never the secret, and never an address."""

    service: str
    tool: str
    outcome: Literal["issued", "consent-required", "failed"]
    scopes: tuple[str, ...] = ()
    scheme: str = ""
    expires_at: datetime | None = None
    error: str = ""


class Credentials(Struct, frozen=True, metaclass=Declared):
    """Gets credentials for tools with `NeedsCredential`, right before they run and behind every other rule.

    ``source`` issues them, or says that the person has to agree first. After an approval it is asked again, and what
    it still does not issue is a denial. A secret reaches the handler alone: it is in no entry, request or log, and a
    result that repeats it is read without it. ConfigurationError without a source.
    """

    source: CredentialSource | None = None
    audience: str = "speaker"
    expires_s: float | None = None

    @property
    def name(self) -> str:
        """The feature's name."""
        return "credentials"

    def hooks(self, spec: AgentSpec) -> Hooks:
        source = self.source
        if source is None:
            needs = [tool.id for tool in spec.tools if traits_of((tool,), NeedsCredential)]
            who = f"tool {needs[0]!r}" if needs else "Credentials"
            raise ConfigurationError(
                f"{who} needs a credential, and nothing issues any", hint="features=[Credentials(your_source)]"
            )
        return Hooks(
            before_tool=partial(self._lend, source), after_tool=_taken_out, bodies=(CredentialSettled,),
            built=_check_needed,
            order={"before_tool": SLOTS["before_tool"]["CREDENTIALS"], "after_tool": SLOTS["after_tool"]["CEILING"]},
            keeps_text=False, alone=True,
        )  # fmt: skip

    async def _lend(self, source: CredentialSource, turn: Turn, call: ToolCall) -> Allow[Any] | Deny | Ask:
        tool = turn.tools.get(call.name)
        answered = turn.resumed is not None
        for need in traits_of(() if tool is None else (tool,), NeedsCredential):
            wanted = Wanted(service=need.service, scopes=need.scopes, identity=turn.session.owner, tool=call.name)
            refused = await self._one(partial(source, wanted), turn, call, need, answered=answered)
            if refused is not None:
                return refused
        return ALLOW

    async def _one(
        self,
        issued: Callable[[], Awaitable[object]],
        turn: Turn,
        call: ToolCall,
        need: NeedsCredential,
        *,
        answered: bool,
    ) -> Deny | Ask | None:
        settled = CredentialSettled(service=need.service, tool=call.name, scopes=need.scopes, outcome="failed")
        try:
            got = await issued()
        except BaseException as error:
            if ends_take(error):
                raise
            turn.note(replace(settled, error=type(error).__name__))
            return Deny(f"no credential of {need.service!r} could be had")
        if isinstance(got, Credential):
            turn.note(replace(settled, outcome="issued", scheme=got.scheme, expires_at=got.expires_at))
            turn.lent.setdefault(call.id, {})[need.service] = got
            return None
        if not isinstance(got, Consent):
            turn.note(replace(settled, error=f"{type(got).__name__} is no credential"))
            return Deny(f"no credential of {need.service!r} could be had")
        turn.note(replace(settled, outcome="consent-required"))
        if need.mode == "pause" and not answered:
            return Ask(
                f"{call.name!r} needs your consent at {need.service!r}. Approve once you have given it.",
                detail={"service": need.service, "scopes": list(need.scopes), "consent": got.session},
                audience=self.audience, expires_s=self.expires_s, private={f"consent:{need.service}": got.url},
            )  # fmt: skip
        turn.private[f"consent:{need.service}"] = got.url
        return Deny(f"the person has not given consent at {need.service!r}")


@declared
def credential(ctx: ToolContext[Any], service: str = "") -> Credential:
    """The credential that the running call was lent; of the only service, or of the one that is named.

    UsageError in a handler whose tool does not carry `NeedsCredential` for it.
    """
    held: Mapping[str, Credential] = {}
    if isinstance(ctx, CallContext):
        held = ctx.turn.lent.get(ctx.call.id, {})
    if not service and len(held) == 1:
        return next(iter(held.values()))
    if not service and held:
        raise UsageError(
            f"this call was lent credentials of {len(held)} services",
            hint=f"credential(ctx, {next(iter(held))!r}) says which",
        )
    if service not in held:
        raise UsageError(
            f"this call was lent no credential{f' of {service!r}' if service else ''}",
            hint=f'give its tool traits=(NeedsCredential(service="{service or "..."}"),)',
        )
    return held[service]


async def _taken_out(turn: Turn, returned: Returned) -> Allow[Returned]:
    """A result that repeats a secret is read without it."""
    content = without_lent(turn, returned.content)
    if content is returned.content:
        return ALLOW
    return Allow(replace(returned, content=content), "a credential was taken out")


def _check_needed(tools: Mapping[str, Tool], /, *, may_be_more: bool) -> None:
    if may_be_more or any(traits_of(tools.values(), NeedsCredential)):
        return
    raise ConfigurationError(
        "Credentials has no tool that needs any", hint='give one traits=(NeedsCredential(service="..."),)'
    )
