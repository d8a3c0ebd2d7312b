"""What starts a turn, what a person is asked, and the names turns are known by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from onrecord.conversation.content import Audio, File, Image, Part, Text
from onrecord.conversation.identity import SessionKey
from onrecord.errors import UsageError
from onrecord.jsonio import Json, misfit, writable
from onrecord.timing import iso_ms

__all__ = (
    "Answered",
    "Ask",
    "AskField",
    "Happened",
    "Input",
    "Interruption",
    "Question",
    "Said",
    "Started",
    "Woke",
    "approved",
    "as_input",
    "below_key",
    "check_input",
    "declined",
    "ends_question",
    "expiry_key",
    "input_key",
    "row_key",
    "trigger_key",
    "turn_id",
)

OnMessage = Literal["hold", "answer", "drop"]


class _Content(Struct, frozen=True, gc=False):
    content: str | tuple[Part, ...]


class Said(_Content, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="said"):
    """A person wrote or spoke. ``key`` is the channel's message id: with it a replay is recognised."""

    key: str | None = None
    at: datetime | None = None
    notice: str | None = None
    reply_to: str | None = None
    reply_preview: str = ""
    speaks: bool = True
    agent: str = ""


class _Name(Struct, frozen=True, gc=False):
    name: str


class Happened(_Name, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="happened"):
    """Something happened in the host; ``key`` makes the same event recognisable."""

    key: str
    payload: Json = None
    hop: int = 0


class Started(_Name, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="started"):
    """The host starts something by hand: a flow, a recipe."""

    key: str
    input: Json = None
    hop: int = 0


class _Key(Struct, frozen=True, gc=False):
    key: str


class Woke(_Key, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="woke"):
    """A wake that a turn armed has come due; ``agent`` names whose it was, where a host runs several."""

    at: datetime | None = None
    payload: Json = None
    agent: str = ""


class Answered(_Key, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="answered"):
    """A person answered the question with this key: with a value, or by approving or declining.

    ``expired``: nobody answered in time, which the loop finds out; it counts as declined.
    """

    value: Json = None
    approved: bool | None = None
    by: str = ""
    note: str = ""
    expired: bool = False


Input = Said | Happened | Started | Woke | Answered


class AskField(_Name, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One thing a question wants to know; ``schema`` is JSON Schema for its value."""

    ask: str = ""
    schema: Mapping[str, Json] = {}
    required: bool = True

    def __post_init__(self) -> None:
        """A question is stored, so what could not be read again is refused while it is made."""
        if not (_are(str, self.name, self.ask) and _are(Mapping, self.schema)):
            raise UsageError("AskField takes a name, ask= as text and schema= as a JSON Schema object")


class _Question(Struct, frozen=True, gc=False):
    text: str


class Ask(_Question, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Returned by a rule, a reply hook or a handler: a person must answer before the turn goes on.

    ``private`` (consent addresses and the like) reaches only `TurnResult.private` and is never recorded.
    ``on_message`` says what another message does while the question is open. ``decision``: only an approval or a
    refusal answers it; a question of a ``before_tool`` hook is one in any case. ``partial``: an answer may leave out
    required fields. ``expires_s``: so many seconds after the take began it counts as declined (None: never).
    """

    fields: tuple[AskField, ...] = ()
    detail: Json = None
    audience: str | None = None
    on_message: OnMessage = "hold"
    private: Mapping[str, str] = {}
    decision: bool = False
    partial: bool = False
    expires_s: float | None = None

    def __post_init__(self) -> None:
        """A question is stored, so what could not be read again is refused while it is made."""
        if not _are(str, self.text, self.audience or ""):
            raise UsageError("Ask takes its question, and audience=, as text", hint='Ask("Book it?", audience="lead")')
        if not (_are((tuple, list), self.fields) and _are(AskField, *self.fields)):
            raise UsageError(
                "fields= of Ask takes AskFields",
                hint='write fields=(AskField(name="room", schema={"type": "string"}),)',
            )
        if self.on_message not in get_args(OnMessage):
            raise UsageError(f"on_message={self.on_message!r} is unknown", hint="use 'hold', 'answer' or 'drop'")
        if not _is_span(self.expires_s):
            raise UsageError(
                "expires_s= of Ask is a number of seconds, more than 0", hint="leave it out for a question that waits"
            )

    def __repr__(self) -> str:
        return f"Ask({self.text!r}, fields={self.fields!r}, private={[*self.private]!r})"


class Question(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """An open question: ``key`` is ``{turn}/q{n}``; ``by`` names the rule, tool or ``agent:name`` that asks.

    ``decision`` and ``partial`` as in `Ask`; ``expires`` is when it counts as declined.
    """

    key: str
    text: str
    by: str
    call: str | None = None
    fields: tuple[AskField, ...] = ()
    detail: Json = None
    audience: str = "speaker"
    on_message: OnMessage = "hold"
    decision: bool = False
    partial: bool = False
    expires: datetime | None = None


class Interruption(
    Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="interruption"
):
    """A person stopped or talked over a turn; ``heard`` is an offset into its shown text."""

    id: str
    turn: str = ""
    cause: str = "stopped"
    heard: int | None = None
    receipt: Json = None


_EXPIRY = "/expires"


def expiry_key(question: Question) -> str:
    """The key of the wake that ends a question which nobody answers."""
    return question.key + _EXPIRY


def ends_question(input: Input) -> bool:
    """Whether this is the wake that ends a question, open or not."""
    return isinstance(input, Woke) and _is_expiry(input.key) is not None


_is_expiry = re.compile(r".*~\d+/q\d+/expires", re.DOTALL).fullmatch


def _is_span(seconds: object) -> bool:
    if seconds is None:
        return True
    return isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds < _LONGEST_S


_LONGEST_S = 3_155_760_000  # a hundred years: what is added to a time must still be one


def approved(question: Question, *, by: str, note: str = "") -> Answered:
    """The answer that lets a question's action go ahead."""
    return Answered(_key_of(question), approved=True, by=by, note=note)


def declined(question: Question, *, by: str, note: str = "") -> Answered:
    """The answer that refuses a question's action."""
    return Answered(_key_of(question), approved=False, by=by, note=note)


def _key_of(question: object) -> str:
    if isinstance(question, Question):
        return question.key
    if question is None:
        raise UsageError("there is no open question to answer", hint="look whether session.question is None first")
    raise UsageError(
        f"an answer is to a Question, not to a {type(question).__name__}",
        hint="give session.question, or result.question of a paused turn",
    )


def as_input(given: str | Input) -> Input:
    """A text as what a person said; any input as it is. UsageError for what is neither, or could not be read again."""
    if isinstance(given, str):
        if not given.strip():
            raise UsageError("a message needs words", code="input-invalid", hint="there was nothing but white space")
        given = Said(given)
    elif not isinstance(given, (Said, Happened, Started, Woke, Answered)):
        raise UsageError(
            f"a turn takes a text or an input, not {type(given).__name__}",
            code="input-invalid",
            hint="inputs are Said, Happened, Started, Woke and Answered",
        )
    check_input(given)
    return given


def check_input(input: Input) -> None:
    """UsageError for an input whose fields hold what they are not declared to hold: it could not be read again."""
    bare, wrong = input, ""
    if isinstance(input, Said):
        bare = msgspec.structs.replace(input, content="")
        if isinstance(input.content, str):
            wrong = "" if writable(input.content) == input.content else _NO_UNICODE
        elif not (_are((tuple, list), input.content) and _are((Text, Image, Audio, File), *input.content)):
            raise UsageError(
                f"{type(input).__name__} holds neither a text nor parts",
                code="input-invalid",
                hint="give a text, or a list of Text, Image, Audio and File",
            )
        else:
            wrong = _unreadable([_light(part) for part in input.content], list[Part])
    wrong = wrong or _unreadable(bare, type(bare))
    if not wrong and isinstance(input, (Said, Woke)) and input.at is not None and input.at.utcoffset() is None:
        wrong = "its time has no UTC offset, so nobody knows which instant it is"
    if wrong:
        raise _unrecordable(input, wrong, "input-invalid")


def check_interruption(by: Interruption) -> None:
    """UsageError for an interruption that could not be read again, or whose ``heard`` is no offset."""
    given: object = by
    if not isinstance(given, Interruption):
        raise UsageError(f"an interruption is no {type(given).__name__}", hint="pass an Interruption")
    wrong = _unreadable(by, Interruption)
    if not wrong and by.heard is not None and by.heard < 0:
        wrong = "its heard= is less than 0"
    if wrong:
        raise _unrecordable(by, wrong)


_NO_UNICODE = "it holds text that is not valid Unicode (half of a surrogate pair)"


def _unreadable(value: object, kind: Any) -> str:
    """Why the value could not be read again once it is written down, or an empty string."""
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=kind)
    except UnicodeEncodeError:
        return _NO_UNICODE
    except (msgspec.ValidationError, RecursionError) as error:
        return misfit(error)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _unrecordable(value: object, wrong: str, code: str = "") -> UsageError:
    return UsageError(
        f"{type(value).__name__} cannot be recorded: {wrong}",
        code=code,
        hint="fields hold the types they are declared with, and payloads and values hold JSON",
    )


def _light(part: Part) -> Part:
    """The part without its bytes, which may be many and are JSON in any case."""
    if isinstance(part, Text) or not isinstance(getattr(part, "data", None), bytes):
        return part
    return msgspec.structs.replace(part, data=b"")


def _are(kind: type | tuple[type, ...], *values: object) -> bool:
    return all(isinstance(value, kind) for value in values)


_plain = re.compile(r"[A-Za-z0-9_.+@-]*").fullmatch


def _part(text: str) -> str:
    if not text or (text.isascii() and text.isalnum()) or _plain(text):
        return text
    from urllib.parse import quote

    return quote(text, safe="+@,; !$'()=&?")


def input_key(input: Input) -> str:
    """The key by which a replay of this input is recognised, or an empty string when it has none of its own."""
    if isinstance(input, (Said, Happened)) and input.key:
        return row_key(input, "")
    return ""


def row_key(input: Input, nonce: str) -> str:
    """``{kind}:{name}:{key}``, percent-encoded by part; ``nonce`` is the key of an input without one."""
    kind = input.__struct_config__.tag
    name = input.name if isinstance(input, (Happened, Started)) else ""
    return f"{kind}:{_part(name)}:{_part(input.key or nonce)}"


def turn_id(session: SessionKey, row: str, n: int) -> str:
    """``{session}:{row key}~{n}``; ``n`` is the row's number in its store, without a store `Session.seq` at open."""
    return f"{_part(session.id)}:{row}~{n}"


def below_key(session: SessionKey, call: str) -> SessionKey:
    """The session of a sub-agent's turn: ``{session}/{call}``, without the session's name before the call's own id."""
    return SessionKey(f"{session.id}/{call.removeprefix(f'{_part(session.id)}:')}", tenant=session.tenant)


def trigger_key(input: Input, now: datetime) -> str:
    """What flows key runs by: the input's key, else its ``at``, else the turn's first now (ISO, milliseconds, Z)."""
    if input.key:
        return input.key
    at = getattr(input, "at", None)
    return iso_ms(at if isinstance(at, datetime) else now)
