"""Tool: a described function offered to the model; ToolResult: what it hands back; ToolContext: what it gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

from msgspec import UNSET, Struct, UnsetType, field, structs

from onrecord.conditions import check_condition, says_yes
from onrecord.conversation.identity import Identity
from onrecord.conversation.inputs import Answered, Ask
from onrecord.conversation.messages import Unit
from onrecord.declared import Declared
from onrecord.errors import ToolInvalid
from onrecord.jsonio import Json
from onrecord.record.entry import Body
from onrecord.tools.traits import Trait

__all__ = ("Flag", "Permission", "Tool", "ToolContext", "ToolResult", "Validity")

C_co = TypeVar("C_co", covariant=True)
T = TypeVar("T")

Flag = bool | Callable[[Mapping[str, Json]], bool]
"""A fact about a call: fixed, or a function of its arguments."""

FLAG_HINT = "it is True, False or a plain function of the arguments"


class _Value(Struct, frozen=True):
    value: Json | UnsetType = UNSET


class ToolResult(_Value, frozen=True, kw_only=True):
    """``value`` is what the model reads (left out: ``{"ok":true}``); ``data`` is merged into the session's data.

    ``status`` may say ``partial``, ``absent`` or ``failed`` of a call that ran; ``facts`` are entry bodies filed
    before the result is cut to size.
    """

    data: Mapping[str, Json] | None = None
    status: Literal["returned", "failed", "partial", "absent", "invalid"] | None = None
    facts: tuple[Body, ...] = ()


class Validity(Struct, frozen=True, kw_only=True):
    """What ``validate_input`` answers; ``corrected_input`` is shown to the model, the handler is not run with it."""

    valid: bool
    error: str = ""
    corrected_input: Mapping[str, Json] | None = None


class Permission(Struct, frozen=True, kw_only=True):
    """What ``check_permissions`` answers."""

    allowed: bool
    reason: str = ""


class ToolContext(Protocol[C_co]):
    """What a handler gets beside its arguments.

    ``data`` is the session's data with the patches of earlier rounds of this brief; ``history`` what the model saw;
    ``key`` is derived from the turn and the arguments that run: use it as the idempotency key of an outside effect.
    """

    @property
    def context(self) -> C_co: ...
    @property
    def data(self) -> Mapping[str, Json]: ...
    @property
    def history(self) -> Sequence[Unit]: ...
    @property
    def now(self) -> datetime: ...
    @property
    def identity(self) -> Identity | None: ...
    @property
    def run(self) -> object: ...
    @property
    def input(self) -> Json: ...
    @property
    def dedupe_key(self) -> str: ...
    @property
    def silenced(self) -> str | None: ...
    @property
    def key(self) -> str: ...

    def set(self, patch: Mapping[str, Json], /) -> None:
        """Adds to the data patch of this call."""
        ...

    def progress(self, message: str = "", /) -> None:
        """Tells live readers how far the call is, in words or only that it goes on. It stands on no record, costs
        nothing where nobody reads along, and never raises.
        """
        ...

    async def ask(self, ask: Ask, /) -> Answered:
        """Asks a person. The handler is left here and run again when the answer is in."""
        ...

    async def once(self, key: str, kind: type[T], act: Callable[[], Awaitable[T]], /) -> T:
        """An outside effect under a key: made once in a turn, also when the handler runs again after a question.

        A take that begins anew reads its result only from effects that keep a journal, which `PlainEffects` does not:
        give the effect ``key`` for what must not happen twice.
        """
        ...


def _no_parameters() -> Mapping[str, Json]:
    return {"type": "object", "properties": {}}


class _ToolHead(Struct, frozen=True, metaclass=Declared):
    id: str
    handler: Callable[..., Any]
    description: str = ""


class Tool(_ToolHead, frozen=True, kw_only=True):
    """A function the model may call while it speaks.

    ``handler(args, ctx)`` is sync or async and returns a `ToolResult` or any plain value. ``parameters`` is a JSON
    Schema object, sent to the model as it is; arguments are checked against it before the handler only with
    ``check_arguments`` (which `@tool` sets). The flags decide concurrency: consecutive safe calls
    (``concurrency_safe``, else ``read_only``; never ``destructive``) run together, others alone and in order.
    A value longer than ``max_result_size_chars`` is cut and says so. Raises ToolInvalid.
    """

    parameters: Mapping[str, Json] = field(default_factory=_no_parameters)
    read_only: Flag = False
    concurrency_safe: Flag | None = None
    destructive: Flag = False
    max_result_size_chars: int | None = None
    validate_input: Callable[..., Any] | None = None
    check_permissions: Callable[..., Any] | None = None
    check_arguments: bool = False
    problems: Callable[[Mapping[str, Json]], str] | None = None
    traits: tuple[Trait, ...] = ()

    def __post_init__(self) -> None:
        if not self.id or not isinstance(self.id, str):
            raise ToolInvalid("a tool needs an id", hint="the id is the name that the model calls")
        if not callable(self.handler):
            raise ToolInvalid(f"tool {self.id!r}: the handler is not callable")
        for flag in ("read_only", "concurrency_safe", "destructive"):
            if not isinstance(given := getattr(self, flag), bool):
                check_condition(given, f"{flag}= of the tool {self.id!r}", hint=FLAG_HINT, error=ToolInvalid)
        _check_parameters(self.id, self.parameters)
        if self.max_result_size_chars is not None and self.max_result_size_chars <= 0:
            raise ToolInvalid(
                f"tool {self.id!r}: max_result_size_chars must be positive, got {self.max_result_size_chars}",
                hint="leave it out for no limit",
            )
        if self.check_arguments and self.problems is None:
            from onrecord.tools.problems import argument_problems

            structs.force_setattr(self, "problems", argument_problems(self.parameters))
        for trait in self.traits:
            trait.check(self)

    def is_safe(self, args: Mapping[str, Json]) -> bool:
        """Whether a call with these arguments may run beside others."""
        if _holds(self.destructive, args):
            return False
        return _holds(self.read_only if self.concurrency_safe is None else self.concurrency_safe, args)

    def is_read_only(self, args: Mapping[str, Json]) -> bool:
        """Whether a call with these arguments only reads."""
        return _holds(self.read_only, args)


def _holds(flag: Flag, args: Mapping[str, Json]) -> bool:
    return flag if isinstance(flag, bool) else says_yes(flag(args))


def _check_parameters(tool: str, parameters: object) -> None:
    hint = 'write {"type": "object", "properties": {...}, "required": [...]}'
    if not isinstance(parameters, Mapping):
        raise ToolInvalid(f"tool {tool!r}: parameters must be a JSON Schema object", hint=hint)
    if parameters.get("type") != "object":
        raise ToolInvalid(f'tool {tool!r}: parameters must be a JSON Schema object with "type": "object"', hint=hint)
    if not isinstance(parameters.get("properties", {}), Mapping):
        raise ToolInvalid(f'tool {tool!r}: the "properties" of parameters must be an object', hint=hint)
