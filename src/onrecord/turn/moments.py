"""The extension contract: eight moments, the order inside each, verdicts, and what a feature may hand in.

A hook is a plain async function mounted at a moment. The table `SLOTS` is published as data: a feature takes a slot,
ties go by list position (in ``after_tool`` by reverse list position). Names in brackets in the docs are core steps
that sit in the same chains: ARGUMENTS and POLICY before a tool, CAP after it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from msgspec import UNSET, Struct, UnsetType, structs

from onrecord.conversation.content import Part, Refusal, Text, plain_text
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.conversation.inputs import Ask, Input
from onrecord.conversation.messages import Block, Note, Round, ToolCall
from onrecord.declared import Declared
from onrecord.errors import AnswerRefused, UsageError
from onrecord.jsonio import Json, is_json, writable
from onrecord.models.request import Piece, Purpose, Request, TextFilter
from onrecord.record.entry import Body, Entry
from onrecord.record.fold import Fold
from onrecord.session.erasure import Retention
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import Toolset

if TYPE_CHECKING:
    from onrecord.turn.agent_spec import AgentSpec
    from onrecord.turn.instruction import Instruction
    from onrecord.turn.turn import Turn

__all__ = (
    "ALLOW",
    "MOMENTS",
    "SLOTS",
    "AfterTool",
    "Allow",
    "Answer",
    "BeforeTool",
    "Built",
    "Deny",
    "Feature",
    "ForgetTurns",
    "Guard",
    "Hooks",
    "Left",
    "Moment",
    "OnInput",
    "OnOutput",
    "OnReply",
    "OnRequest",
    "OnSettle",
    "OnText",
    "Rank",
    "Returned",
    "Revise",
    "Stop",
    "Watch",
)

T = TypeVar("T")

Moment = Literal["input", "request", "text", "reply", "before_tool", "after_tool", "output", "settle"]
MOMENTS: tuple[Moment, ...] = ("input", "request", "text", "reply", "before_tool", "after_tool", "output", "settle")

SLOTS: Mapping[Moment, Mapping[str, int]] = {
    "input": {"CLOCK": 100, "MEMORY": 300, "RULES": 500},
    "request": {
        "CHOOSE": 100, "PINS": 200, "WINDOW": 300, "MEMORY": 400, "RULES": 500, "NARROW": 600, "DECORATE": 700,
        "RESERVED": 800, "MEDIA": 900, "CACHE": 950,
    },
    "text": {"MARKS": 100, "CATEGORISE": 200, "STICKERS": 300, "RULES": 500, "PEEL": 900},
    "reply": {"PEEL": 100, "RULES": 500, "INPUTS": 800},
    "before_tool": {
        "PERMISSION": 100, "REFUSAL": 200, "RULES": 500, "ARGUMENTS": 600, "POLICY": 610,
        "REFERENCES": 650, "CHECK_IN": 700, "CREDENTIALS": 900,
    },
    "after_tool": {"CEILING": 100, "GATES": 200, "RULES": 500, "PLACEMENT": 700, "CAP": 800, "NOTES": 900},
    "output": {
        "RULES": 100, "SCHEMA": 200, "PROCEDURE": 300, "EVIDENCE": 400, "CLAIMS": 500, "VALIDATION": 600,
        "STANDING": 700, "LIMITS": 800,
    },
    "settle": {"MEMORY": 300, "RULES": 500},
}  # fmt: skip


class Rank(IntEnum):
    """Where a piece stands among the system pieces, and among the trailing ones."""

    BASE = 0
    STEERING = 100
    SKILL = 200
    FACT = 300
    INSTRUCTION = 400
    MEMORY = 500
    BRIEF = 600
    NUDGE = 800
    WRAP_UP = 850
    RECOVERY = 900
    ONTOLOGY = 910
    FINDINGS = 920
    TIME = 999


# ---- verdicts --------------------------------------------------------------------------------------------------------


class _AllowValue(Struct, Generic[T], frozen=True):
    value: T | UnsetType = UNSET
    why: str = ""


class Allow(_AllowValue[T], Generic[T], frozen=True):
    """Go on, unchanged or with another value. Another value needs a ``why``; a why alone is recorded too."""

    def __post_init__(self) -> None:
        if self.value is not UNSET and not self.why:
            raise UsageError("Allow with another value needs a why", hint='write Allow(value, "what was changed")')
        if self.why:
            _make_readable(self, "why", self.why)


ALLOW: Allow[Any] = Allow()
"""The shared plain `Allow`, for rules on hot paths."""


class _Reason(Struct, frozen=True):
    reason: str

    def __post_init__(self) -> None:
        if not self.reason:
            raise UsageError(f"{type(self).__name__} needs a reason")
        _make_readable(self, "reason", self.reason)


def _make_readable(verdict: Struct, name: str, words: object) -> None:
    """What a verdict says is filed, so it is text, and text that can be stored."""
    if not isinstance(words, str):
        raise UsageError(f"the {name} of {type(verdict).__name__} is a text, not {type(words).__name__}")
    if not words.isascii():
        structs.force_setattr(verdict, name, writable(words))


class Deny(_Reason, frozen=True, kw_only=True):
    """Not this. The model reads ``reason`` as the result of a denied call; ``halt`` also stops the turn."""

    error: type[AnswerRefused] | None = None
    data: Mapping[str, Json] = {}
    halt: bool = False

    def __post_init__(self) -> None:
        _Reason.__post_init__(self)
        data: object = self.data
        if data and not (isinstance(data, Mapping) and is_json(data)):
            raise UsageError("the data of Deny is filed, so it is a JSON object")
        error: object = self.error
        if error is not None and not (isinstance(error, type) and issubclass(error, AnswerRefused)):
            raise UsageError("the error of Deny is a class derived from AnswerRefused")


class Revise(_Reason, frozen=True, kw_only=True):
    """The answer becomes a draft and the model is asked again, shown ``reason`` and ``show`` until its next answer."""

    show: tuple[Piece, ...] = ()

    def __post_init__(self) -> None:
        _Reason.__post_init__(self)
        if not all(isinstance(piece, Piece) for piece in self.show):
            raise UsageError("what Revise shows are pieces", hint='show=(Piece(source="me", text="...", rank=0),)')


class Stop(_Reason, frozen=True, kw_only=True):
    """No further model call in this turn, but with ``wrap_up`` one last request without tools."""

    wrap_up: bool = False


class Returned(Struct, frozen=True, kw_only=True):
    """What a tool handed back, on its way to the model: ``value`` as returned, ``content`` as it will be read.

    A rule that changes the words says ``Allow(returned.with_text("..."), "why")``.
    """

    call: ToolCall
    value: Json
    content: tuple[Part, ...]
    notes: tuple[Note, ...] = ()
    status: str = "returned"

    @property
    def text(self) -> str:
        """The words that the model would read; pictures and files have none, and notes stand apart."""
        return plain_text(self.content)

    def with_text(self, text: str) -> Returned:
        """The same with these words in place of all that it had. Pictures and files stay, behind them."""
        others = tuple(part for part in self.content if not isinstance(part, (Text, Refusal)))
        return structs.replace(self, content=(Text(text), *others))


class Answer(Struct, frozen=True, kw_only=True):
    """An answer on its way to a person.

    ``text`` is what the filters let through and rules made of it, ``drafted`` the same before any output hook.
    ``output`` is the typed value; ``unmet`` says why there is none.
    """

    key: str
    text: str
    drafted: str
    verbatim: bool = False
    output: object = UNSET
    source: str = "model"
    unmet: str = ""
    blocks: tuple[Block, ...] = ()
    rewritten_by: tuple[str, ...] = ()
    revised: Mapping[str, int] = {}


# ---- hooks -----------------------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    OnInput = Callable[[Turn, Input], Awaitable[Allow[Input] | Deny]]
    OnRequest = Callable[[Turn, Request], Awaitable[Request | Stop]]
    OnText = Callable[[Turn], TextFilter]
    OnReply = Callable[[Turn, Round], Awaitable[Round | Ask]]
    BeforeTool = Callable[[Turn, ToolCall], Awaitable[Allow[Mapping[str, Json]] | Deny | Ask]]
    AfterTool = Callable[[Turn, Returned], Awaitable[Allow[Returned] | Deny]]
    OnOutput = Callable[[Turn, Answer], Awaitable[Allow[Answer] | Deny | Revise]]
    OnSettle = Callable[[Turn], Awaitable[None]]
    Guard = Callable[[Turn, Turn, Request | Round], "Stop | None"]
else:
    OnInput = OnRequest = OnText = OnReply = BeforeTool = AfterTool = OnOutput = OnSettle = Guard = Callable[..., Any]


class Built(Protocol):
    """Looks at an agent's tools by id when it is built; ``may_be_more`` where toolsets may offer others later."""

    def __call__(self, tools: Mapping[str, Tool], /, *, may_be_more: bool) -> None: ...


class Left(Struct, frozen=True, kw_only=True):
    """A take that was left without an entry that ends it: nothing of it is stored.

    ``error`` is the class of what was raised and ``code`` its code, where it has one; both are empty when the input
    was ignored. ``at`` is when.
    """

    turn: str
    take: int
    at: datetime
    error: str = ""
    code: str = ""


class Watch(Struct, frozen=True, metaclass=Declared):
    """Looks at every entry and decides nothing; what it raises is contained.

    With ``awaited`` the function is async and the turn waits for it before it settles; no other watcher is waited for.
    ``left`` is called, and never awaited, when a take is left without an entry that ends it.
    As a feature: ``features=[Watch(fn)]``.
    """

    see: Callable[[Entry], Any]
    awaited: bool = False
    name: str = "watch"
    left: Callable[[Left], Any] | None = None

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(watch=(self,))


ForgetTurns = Callable[[SessionKey, Collection[str]], Awaitable[None]]
"""Lets go of what some turns of a session left."""


class Hooks(Struct, frozen=True, kw_only=True):
    """What a feature hands in at build: a function per moment, and everything else it needs.

    About the functions of moments:

    - ``order``: a slot number per moment (absent: RULES); ``purposes``: the requests that the request hook sees
    - ``revisions``: how many `Revise` verdicts are honoured per turn
    - ``holds_drafts``: nothing streams before the output hook accepts; set where that may deny, revise or change text
    - ``keeps_text``: verdicts that change or deny keep the text of what stood before and after, in the record alone

    Functions that stand at no moment:

    - ``built`` is called last, with every registered tool by id and whether toolsets may offer more: what names tools
      checks them here, and raises ConfigurationError
    - ``on_thinking``, of one feature, rewrites each stretch of a reply's reasoning before it is shown or filed, or
      drops it (an empty text); native items are left as they are
    - ``redact``, of one feature, says how entries look to everything outside the record
    - ``guard`` is asked in the turns of sub-agents, with the turn that mounts it first: about each request before it is
      sent, but for consultations, and about each reply; a `Stop` ends the turn below
    - ``active`` names what is in use in a turn, a skill say, for toolsets that offer by it (`OfferContext.active`)
    - ``forget`` erases what the feature stores about a person or session, ``forget_turns`` what it stores of some turns
      of a session (None: the session is forgotten whole); ``expire``, under a `Host.expire`, what is older than a
      policy says at an instant

    And ``alone``: two features of this name are refused; ``keeps_wakes``: something waits for every wake that is armed,
    so that under a host one whose turn broke off comes again.
    """

    on_input: OnInput | None = None
    on_request: OnRequest | None = None
    on_text: OnText | None = None
    on_reply: OnReply | None = None
    before_tool: BeforeTool | None = None
    after_tool: AfterTool | None = None
    on_output: OnOutput | None = None
    on_settle: OnSettle | None = None
    order: Mapping[Moment, int] = {}
    purposes: frozenset[Purpose] = frozenset({"speak", "wrap_up"})
    instructions: tuple[Instruction, ...] = ()
    tools: tuple[Tool | Toolset, ...] = ()
    folds: tuple[Fold[Any], ...] = ()
    bodies: tuple[type[Body], ...] = ()
    options: tuple[type[Struct], ...] = ()
    revisions: int = 1
    holds_drafts: bool = False
    forget: Callable[[Identity | SessionKey], Awaitable[None]] | None = None
    forget_turns: ForgetTurns | None = None
    expire: Callable[[Retention, datetime], Awaitable[None]] | None = None
    watch: tuple[Watch, ...] = ()
    keeps_wakes: bool = False
    manifest: Mapping[str, Json] = {}
    built: Built | None = None
    on_thinking: Callable[[str], str] | None = None
    alone: bool = False
    keeps_text: bool = True
    redact: Callable[[Entry], Entry] | None = None
    active: Callable[[Turn], frozenset[str]] | None = None
    guard: Guard | None = None


class Feature(Protocol):
    """Something attached at moments. ``hooks`` is called once, at build, and may raise ConfigurationError."""

    @property
    def name(self) -> str: ...
    def hooks(self, spec: AgentSpec, /) -> Hooks: ...
