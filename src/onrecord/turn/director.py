"""Who has the floor: the director, the stage it speaks through, and the plain director of every simple agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct

from onrecord.conversation.inputs import Question, Said
from onrecord.conversation.messages import ToolCall
from onrecord.conversation.outgoing import Outcome, Wake
from onrecord.conversation.usage import Usage
from onrecord.jsonio import Json
from onrecord.models.request import Piece, Shape, View
from onrecord.record.kinds import ContextAdded
from onrecord.tools.tool import Tool
from onrecord.turn.options import Silenced

if TYPE_CHECKING:
    from onrecord.turn.turn import Turn

__all__ = ("Acted", "Brief", "Director", "Query", "Scope", "Solo", "Spoken", "Stage")

T = TypeVar("T")


class Scope(Struct, frozen=True, kw_only=True):
    """What a tool's context says about where it runs; flows fill it.

    ``key`` is what `ToolContext.key` says of a call that the director makes itself, where the director has a key that
    stays the same across turns (empty: the loop's own form).
    """

    run: object = None
    input: Json = None
    dedupe_key: str = ""
    silenced: str | None = None
    key: str = ""


class Brief(Struct, frozen=True, kw_only=True):
    """What a speaker is told.

    ``key`` names the verb, unique in its turn. ``tools`` is an allow-list of ids (None: all, empty: none at all);
    ``rounds`` caps the rounds with tools (None: the agent's). ``shape`` says what replies look like and how they are
    read, ``merge`` combines the values of several rounds. ``carries_input``: the turn pieces carry the admitted text.
    ``hold_data``: the caller files the data patch itself. ``message_key`` is the key of the message (empty: made of
    the turn and ``key``), for directors whose keys are exact formats.
    """

    key: str
    pieces: tuple[Piece, ...] = ()
    tools: tuple[str, ...] | None = None
    rounds: int | None = None
    shape: Shape[Any] | None = None
    merge: Callable[[Any, Any], Any] | None = None
    carries_input: bool = False
    hold_data: bool = False
    message_key: str = ""
    after_ms: int = 0
    about: Mapping[str, str] = {}
    scope: Scope = Scope()


class Query(Struct, Generic[T], frozen=True, kw_only=True):
    """What a silent model call is asked; ``view`` None shows all history.

    A shape without a schema asks for plain words, and only reads them.
    """

    key: str
    pieces: tuple[Piece, ...]
    shape: Shape[T]
    view: View | None = None
    carries_input: bool = False
    max_tokens: int | None = None


class Spoken(Struct, frozen=True, kw_only=True):
    """What speaking came to. When ``asked`` is set the turn pauses and the director must stop."""

    text: str = ""
    value: object = None
    data: Mapping[str, Json] = {}
    rounds: int = 0
    usage: Usage | None = None
    asked: Question | None = None


class Acted(Struct, frozen=True, kw_only=True):
    """What a tool called by a director came to; ``value`` is what its handler returned."""

    call: ToolCall
    value: object = None
    error: str | None = None
    asked: Question | None = None


class Stage(Protocol):
    """The seven verbs of a director. Keys are unique in a turn; a verb already performed returns its record."""

    async def speak(self, brief: Brief, /) -> Spoken:
        """Rounds of request, reply and tools until there is an answer. ModelError, AnswerRefused."""
        ...

    async def judge(self, query: Query[T], /) -> T:
        """One silent structured call. ModelError."""
        ...

    async def say(
        self, text: str, /, *, key: str, message_key: str = "", after_ms: int = 0, media: str | None = None,
        about: Mapping[str, str] = {},
    ) -> None:  # fmt: skip
        """A line no model wrote. AnswerRefused when a rule denies it."""
        ...

    async def act(self, tool: Tool, args: Mapping[str, Json], /, *, key: str, scope: Scope = ...) -> Acted:
        """Calls a tool the model never sees, through the same chains."""
        ...

    def arm(self, wake: Wake, /) -> None:
        """Arms a timer. A time told from `Turn.first_now` is the same after a question: the timer is armed once."""
        ...

    def disarm(self, key: str, /) -> None:
        """Takes a timer back."""
        ...

    def outcome(self, line: Outcome, /) -> None:
        """Files a coded line."""
        ...


class Director(Protocol):
    """Decides whether to speak, as whom, with which brief. Called again from the top when a question was answered."""

    async def direct(self, turn: Turn, stage: Stage, /) -> None: ...


class Solo:
    """The whole plain director: its one speaker always has the floor. What is no message is filed as data first."""

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        if turn.option(Silenced):
            return
        if turn.answer is None and not isinstance(turn.input, Said):
            turn.note(ContextAdded.of(turn.input))
        await stage.speak(turn.spec.brief)
