"""Request: everything one model call is made of, as values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from msgspec import Struct

from onrecord.conversation.content import Mark, Part
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.messages import ContextMessage, Round, ToolCall
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool

if TYPE_CHECKING:
    from onrecord.models.model import Model

__all__ = (
    "NO_SETTINGS",
    "HeadMarks",
    "HeaderSource",
    "Offer",
    "Piece",
    "ProjectionIssue",
    "Purpose",
    "Reading",
    "Request",
    "Settings",
    "Shape",
    "Span",
    "Swap",
    "TextFilter",
    "ToolSpec",
    "View",
    "Wire",
)

T = TypeVar("T")

Purpose = Literal["speak", "wrap_up", "judge", "consult"]
HeaderSource = Callable[[], Awaitable[Mapping[str, str]]]
"""Gives per-request headers (credentials of a tenant, say); called per attempt, never recorded."""


class Piece(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sourced, ranked fragment of prompt text.

    ``place`` ``system`` leads the request; ``turn`` pieces form one user message before this brief's rounds;
    ``trailing`` pieces come last. ``cache`` advises vendors' prompt caches.
    """

    source: str
    text: str
    rank: int = 0
    place: Literal["system", "turn", "trailing"] = "system"
    cache: Literal["always", "never", "while_active"] | None = None


class Span(Struct, frozen=True):
    """A stretch of the unit log, from ``start`` up to before ``stop``."""

    start: int
    stop: int


class Swap(Struct, frozen=True, kw_only=True):
    """What the wire shows instead of a tool result; the conversation is untouched."""

    unit: int
    call: int
    shows: tuple[Part, ...]


class HeadMarks(Struct, frozen=True, kw_only=True):
    """Cache marks in front of the units: after so many of the system pieces (0: none), and after the tools.

    ``ttl`` is how long the vendor is asked to keep what is marked, units included.
    """

    system: int = 0
    tools: bool = False
    ttl: Literal["short", "long"] = "short"


class View(Struct, frozen=True, kw_only=True):
    """Which units a request shows: spans and inserted messages in order, swapped results, cache marks, pins.

    ``marks`` are the units after which a cache mark goes, ``head`` the marks before them; wires whose vendors cache
    by themselves have none. ``stand_ins``: media that a model does not take is shown by its transcript or its
    description, instead of refusing the request. ``degrade``: whatever else of them it cannot be sent is left out,
    instead of refusing the request.
    """

    spans: tuple[Span | ContextMessage, ...]
    swaps: tuple[Swap, ...] = ()
    marks: tuple[int, ...] = ()
    head: HeadMarks | None = None
    stand_ins: bool = False
    degrade: bool = False
    pins: Mapping[str, str] = {}


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sampling and limits; None is never sent. ``extra`` goes into the body as given.

    ``thinking`` is an effort in the vendor's words, a budget in tokens, or ``"none"``. ``search`` asks for the search
    that the provider runs itself, beside the tools of the request.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    thinking: str | int | None = None
    search: bool | None = None
    extra: Mapping[str, Json] = {}


NO_SETTINGS = Settings()
"""The settings of a request that nobody gave any."""


class ToolSpec(Struct, frozen=True, kw_only=True):
    """How a tool is described to the model; ``schema`` is a JSON Schema object."""

    name: str
    description: str
    schema: Mapping[str, Json]


class Offer(Struct, frozen=True, kw_only=True):
    """A tool in a request; its spec may be decorated, the tool may not."""

    tool: Tool
    spec: ToolSpec


class TextFilter(Protocol):
    """Rewrites spoken text while it streams; passes on a `Mark` that it does not know. Lives for one round."""

    def feed(self, item: str | Mark, /) -> Sequence[str | Mark]: ...
    def close(self) -> Sequence[str | Mark]: ...


class Reading(Struct, Generic[T], frozen=True, kw_only=True):
    """What a shape read from a round: the words for people, the value, and calls found in unusual places."""

    text: str
    value: T
    calls: tuple[ToolCall, ...] = ()


class Shape(Struct, Generic[T], frozen=True, kw_only=True):
    """What a reply must look like, per call.

    ``read`` is tolerant and never raises; ``filter`` unwraps an envelope while it streams (None: text as it is).
    ``unwraps``: the envelope matters to nobody later, so the conversation keeps what the filter let through; the
    record keeps both.
    """

    name: str
    schema: Mapping[str, Json]
    read: Callable[[Round], Reading[T]]
    filter: Callable[[], TextFilter] | None = None
    unwraps: bool = False


class ProjectionIssue(Struct, frozen=True, kw_only=True):
    """Something that this wire cannot carry, named before anything is sent; ``unit`` is -1 where it is no unit.

    ``about`` says that it is how thinking is asked for.
    """

    unit: int
    what: str
    about: Literal["", "thinking"] = ""


class Wire(Struct, frozen=True, kw_only=True):
    """A projected request: the exact bytes, what they leave out, and how many units kept the previous bytes.

    ``stable_until`` is None where no request is known that was sent before in this form: it is the first one, or the
    first since the session was loaded, or since another model answered.
    """

    body: bytes
    issues: tuple[ProjectionIssue, ...] = ()
    stable_until: int | None = None

    def refusing(self, view: View) -> tuple[ProjectionIssue, ...]:
        """The issues that keep the request from being sent: all, but where ``view`` degrades none that is of a unit.

        What is wrong with the request itself, its settings or its choice of a tool, cannot be left out.
        """
        return tuple(issue for issue in self.issues if issue.unit < 0) if view.degrade else self.issues


class Request(Struct, frozen=True, kw_only=True):
    """One model call before projection.

    ``own`` is the index of the first unit of this brief's rounds; ``carries`` the index of an admitted unit whose
    text the turn pieces carry. A request hook gets and returns this value and must stay O(changes).
    ``wire`` is what `Model.wire` already made of this very request, so that ``stream`` need not project again; a
    wrapper that sends it to another model drops it.
    """

    purpose: Purpose
    where: str
    pieces: tuple[Piece, ...]
    conversation: Conversation
    own: int
    view: View
    model: Model
    offers: tuple[Offer, ...] = ()
    choice: str = "auto"
    settings: Settings = NO_SETTINGS
    shape: Shape[Any] | None = None
    carries: int | None = None
    scope: str = ""
    blobs: Mapping[str, bytes] = {}
    headers: HeaderSource | None = None
    wire: Wire | None = None

    def __repr__(self) -> str:
        return f"Request({self.purpose!r}, where={self.where!r}, pieces={len(self.pieces)}, offers={len(self.offers)})"
