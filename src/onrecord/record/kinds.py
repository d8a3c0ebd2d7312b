"""The twenty-four core bodies: everything the core ever writes into a record.

Features add kinds of their own; the core never does.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Raw, Struct

from onrecord.conversation.content import Mark, Part, Structured, Text
from onrecord.conversation.inputs import Answered, Input, Question, Started
from onrecord.conversation.messages import Block, CallStatus, Note, Round
from onrecord.conversation.outgoing import Outcome, Wake
from onrecord.conversation.usage import Usage
from onrecord.jsonio import Json
from onrecord.record.entry import Body
from onrecord.record.receipts import HeadMark, LeftMark, PieceMark, Receipt, SpanMark, SwapMark

__all__ = (
    "CORE_KINDS",
    "ENDS",
    "ContextAdded",
    "DataPatched",
    "Erased",
    "HeadMark",
    "HistoryChanged",
    "LeftMark",
    "ModelAttempted",
    "ModelReplied",
    "ModelRequested",
    "Noted",
    "OutcomeFiled",
    "Pending",
    "PieceFiled",
    "PieceMark",
    "Receipt",
    "RoundSettled",
    "SpanMark",
    "SwapMark",
    "TextSaid",
    "ToolReturned",
    "ToolStarted",
    "TurnClosed",
    "TurnFailed",
    "TurnInput",
    "TurnInterrupted",
    "TurnOpened",
    "TurnPaused",
    "TurnResumed",
    "VerdictFiled",
    "WakeArmed",
    "WakeDisarmed",
)


class Pending(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A paused turn: everything its next take needs, no entries required.

    ``key`` names the verb that paused and ``place`` who asked inside it; ``rounds`` and ``data`` are that verb's so
    far; ``done`` holds the results of verbs already performed; ``children`` paused sub-turns; the counters say where
    entries, takes, rounds, questions and new ids go on counting, so that nothing is named twice. ``tool`` and
    ``output`` are digests of schemas: of the tool that waits, and of the agent's typed output. ``stopped`` is the
    reason of a stop that came up beside the question, ``used`` what sub-turns used so far, by call and model.
    """

    turn: str
    row: str
    input: Input
    now: datetime
    key: str
    place: str
    question: Question
    rounds: tuple[Round, ...] = ()
    data: Mapping[str, Json] = {}
    done: Mapping[str, Raw] = {}
    children: Mapping[str, Raw] = {}
    n: int = 0
    take: int = 0
    number: int = 0
    asks: int = 0
    ids: int = 0
    outside: bool = False
    tool: str = ""
    output: str = ""
    stopped: str = ""
    stopped_wraps_up: bool = False
    used: Mapping[str, Mapping[str, Usage]] = {}


class TurnOpened(Body, frozen=True, gc=False, kw_only=True, tag="turn.opened"):
    """A turn begins; carries the input's key even when the input is denied and filed nowhere else.

    ``outside``: it runs over the caller's history and leaves the conversation alone. ``drops`` names a paused turn
    whose question this message dropped.
    """

    input_kind: str
    row: str
    now: datetime
    input_key: str = ""
    agent: str = ""
    manifest: Mapping[str, Json] = {}
    outside: bool = False
    drops: str = ""


class TurnInput(Body, frozen=True, gc=False, kw_only=True, tag="turn.input"):
    """The input as admitted, after the ``input`` hooks."""

    input: Input
    now: datetime


class TurnPaused(Body, frozen=True, gc=False, kw_only=True, tag="turn.paused"):
    """A person must answer. The rounds of the paused verb are in the entries, the fold fills them in."""

    pending: Pending


class TurnResumed(Body, frozen=True, gc=False, kw_only=True, tag="turn.resumed"):
    """The answer reopened the turn; ``input_key`` is that of a message which was taken as the answer.

    ``row`` is the row of the inbox that the answer came as, if it did.
    """

    answer: Answered
    now: datetime
    manifest: Mapping[str, Json] = {}
    input_key: str = ""
    row: str = ""


class TurnInterrupted(Body, frozen=True, gc=False, kw_only=True, tag="turn.interrupted"):
    """A person stopped turn ``of``; ``shown`` is the text released before that and in no ``said`` entry."""

    id: str
    cause: str
    of: str
    shown: tuple[Text | Mark, ...] = ()
    heard: int | None = None
    receipt: Json = None


class TurnFailed(Body, frozen=True, gc=False, kw_only=True, tag="turn.failed"):
    """The take ended with an error: its code and class, never its message; ``shown`` as in ``turn.interrupted``."""

    code: str
    error: str
    shown: tuple[Text | Mark, ...] = ()
    row: str = ""


class TurnClosed(Body, frozen=True, gc=False, kw_only=True, tag="turn.closed"):
    """The turn is settled."""

    status: str


class ModelRequested(Body, frozen=True, gc=False, kw_only=True, tag="model.requested"):
    """A request goes out for ``round``."""

    round: str
    purpose: str
    model: str
    receipt: Receipt | None = None


class ModelAttempted(Body, frozen=True, gc=False, kw_only=True, tag="model.attempted"):
    """One attempt failed and another follows after ``wait_s`` seconds, possibly at another model.

    ``model`` is the one that failed, ``usage`` what it counted all the same. ``feedback`` is what the next one is told
    besides the request that the receipt describes; ``left_out`` is what of that request the next model is not sent.
    """

    round: str
    attempt: int
    error: str
    status: int | None = None
    wait_s: float = 0.0
    model: str = ""
    feedback: str = ""
    usage: Usage | None = None
    left_out: tuple[LeftMark, ...] = ()


class ModelReplied(Body, frozen=True, gc=False, kw_only=True, tag="model.replied"):
    """The raw reply; ``shown`` is its filtered text where that differs.

    ``unwrapped``: the conversation keeps ``shown`` in place of the raw words, which were an envelope around them.
    """

    round: Round
    purpose: str = "speak"
    shown: str | None = None
    unwrapped: bool = False


class RoundSettled(Body, frozen=True, gc=False, kw_only=True, tag="round.settled"):
    """A round as it stands after hooks or a verdict changed it, or a director's own call (``.../act0``)."""

    round: Round


class ToolStarted(Body, frozen=True, gc=False, kw_only=True, tag="tool.started"):
    """A handler starts, with the arguments that run; ``key`` is what `ToolContext.key` says."""

    call: str
    round: str
    name: str
    args: Mapping[str, Json]
    key: str


class ToolReturned(Body, frozen=True, gc=False, kw_only=True, tag="tool.returned"):
    """What the model reads of a call, filed in call order; the wall times are the handler's own.

    ``spent`` is what a sub-agent used, ``uses`` the same by model, named with its provider. That a rule replaced the
    result is a verdict of its own.
    """

    call: str
    round: str
    name: str
    status: CallStatus
    result: tuple[Part, ...] = ()
    notes: tuple[Note, ...] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    spent: Usage | None = None
    uses: Mapping[str, Usage] = {}


class VerdictFiled(Body, frozen=True, gc=False, kw_only=True, tag="verdict"):
    """A feature changed, denied, asked, or said why; digests of what stood before and after.

    ``before_text`` and ``after_text`` are those values of a change or denial, as text or JSON: they stay in the record
    (see `onrecord.record.leaving`), and a rule made with ``keeps_text=False`` leaves none.
    """

    moment: str
    by: str
    verdict: Literal["allow", "deny", "ask", "revise", "stop"]
    why: str = ""
    call: str = ""
    before: str = ""
    after: str = ""
    data: Mapping[str, Json] = {}
    before_text: str = ""
    after_text: str = ""

    def __repr__(self) -> str:
        return f"VerdictFiled({self.moment!r}, by={self.by!r}, verdict={self.verdict!r}, why={self.why!r})"


class OutcomeFiled(Body, frozen=True, gc=False, kw_only=True, tag="outcome"):
    """A coded line of what a director did or skipped."""

    line: Outcome


class TextSaid(Body, frozen=True, gc=False, kw_only=True, tag="said"):
    """The assistant said something: the governed text under the key of its message.

    ``verbatim`` is a line no model wrote. With blank text it only says that somebody spoke elsewhere (``side``).
    """

    key: str
    text: str
    round: str = ""
    verbatim: bool = False
    shown: tuple[Text | Mark, ...] = ()
    blocks: tuple[Block, ...] = ()
    media: str | None = None
    after_ms: int = 0
    about: Mapping[str, str] = {}
    side: Literal["assistant", "user"] = "assistant"


class DataPatched(Body, frozen=True, gc=False, kw_only=True, tag="data.patched"):
    """Session data changed: ``patch`` is merged at the top level, then the names in ``drop`` are gone."""

    patch: Mapping[str, Json] = {}
    drop: tuple[str, ...] = ()


class WakeArmed(Body, frozen=True, gc=False, kw_only=True, tag="wake.armed"):
    """A timer was armed."""

    wake: Wake


class WakeDisarmed(Body, frozen=True, gc=False, kw_only=True, tag="wake.disarmed"):
    """A timer was disarmed."""

    key: str


class ContextAdded(Body, frozen=True, gc=False, kw_only=True, tag="context.added"):
    """The library or the application put text into the conversation."""

    content: tuple[Text | Structured, ...]
    authority: Literal["system", "developer", "data"] = "data"
    writer: str = ""

    @classmethod
    def of(cls, input: Input) -> ContextAdded:
        """What an input other than a message shows a model: data, without the force of an instruction."""
        name = getattr(input, "name", None) or input.key or ""
        payload = input.input if isinstance(input, Started) else getattr(input, "payload", None)
        kind = str(input.__struct_config__.tag)
        return cls(content=(Structured(kind="domain-event", text=f"{kind}:{name}", payload=payload),), writer="input")


class HistoryChanged(Body, frozen=True, gc=False, kw_only=True, tag="history.changed"):
    """The conversation itself changed: ``import`` (value: messages), ``edit`` (value: parts), ``remove``, ``reset``.

    ``erase`` says that entries before it were erased, and what the session keeps all the same (value: a `Kept`).
    """

    op: Literal["import", "edit", "remove", "reset", "erase"]
    by: str = ""
    message: str = ""
    call: str = ""
    value: Raw = Raw(b"")


class PieceFiled(Body, frozen=True, gc=False, kw_only=True, tag="piece.filed"):
    """A text that receipts refer to by digest, filed the first time it is sent."""

    digest: str
    text: str
    source: str = ""


class Noted(Body, frozen=True, gc=False, kw_only=True, tag="note"):
    """Something worth knowing that changes nothing."""

    by: str
    text: str
    about: Mapping[str, Json] = {}


class Erased(Body, frozen=True, gc=False, kw_only=True, tag="erased"):
    """What stood here was erased; only its kind is left."""

    was: str
    why: str
    at: datetime


CORE_KINDS: tuple[type[Body], ...] = (
    TurnOpened, TurnInput, TurnPaused, TurnResumed, TurnInterrupted, TurnFailed, TurnClosed,
    ModelRequested, ModelAttempted, ModelReplied, RoundSettled, ToolStarted, ToolReturned,
    VerdictFiled, OutcomeFiled, TextSaid, DataPatched, WakeArmed, WakeDisarmed,
    ContextAdded, HistoryChanged, PieceFiled, Noted, Erased,
)  # fmt: skip

ENDS = (TurnClosed, TurnPaused, TurnInterrupted, TurnFailed)
"""The bodies that end a take; only with the first two do all folds read it."""
