"""Why a model call failed: status, body and headers of an answer, or an exception, as a `ModelError`.

Pure; every wire uses it. The body is only read here: servers echo prompts in it, so an error quotes the provider's
own short code or type and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal, NamedTuple

from onrecord.errors import ErrorKind, ModelError
from onrecord.jsonio import Json, peek

__all__ = (
    "Waits",
    "answer_error",
    "is_content_array_related_error",
    "is_tool_related_error",
    "kind_of_answer",
    "kind_of_exception",
    "refused_by",
    "retry_after_seconds",
    "stream_error",
    "waits_of",
)

READ_BYTES = 16_384  # how much of an error body is looked at


_Search = Callable[[str], "re.Match[str] | None"]


def _any(*words: str) -> _Search:
    """Finds any of these. Compiled when first used: whoever makes an agent imports this, and few see errors."""
    return partial(re.search, "|".join(words), flags=re.IGNORECASE)


_TOO_LONG = _any(
    r"context[ _-]?(length|window|size)", r"maximum context", r"prompt is too long", r"input is too long",
    r"too many (input )?tokens", r"exceeds? the (maximum|limit|model).{0,40}tokens?", r"token count.{0,40}exceeds",
    r"reduce the length of the (messages|prompt|input)",
)  # fmt: skip
_PLAN = _any(r"plan does(n't| not) include", r"\bupgrade (to|your plan)", r"no api access")
_USED_UP = _any(
    r"insufficient[ _](quota|balance|credits?|funds)", r"usage[ _]limit[ _]reached", r"(weekly|monthly) (usage )?limit",
    r"credit balance is too low", r"余额不足", r"额度(已|不足|用)", r"欠费", r"配额(已|不足)",
)  # fmt: skip
_NO_MODEL = _any(
    r"model[ _]not[ _]found", r"\bmodel\b.{0,120}\b(does not exist|not found|is not available)", r"unsupported model",
    r"no such model", r"unknown model",
)  # fmt: skip
_BAD_KEY = _any(
    r"(invalid|incorrect|missing|no)[ _](api|auth)[ _-]?(key|token)|unauthori[sz]ed",
    r"api[ _]key[ _](is[ _])?(not[ _]valid|invalid|not[ _]found|expired|missing)",
)
_CONTENT = _any(
    r"content[ _-]?filter", r"content[ _-]?policy", r"\bsafety\b", r"\bblocked\b", r"\brefus(al|ed to)", r"moderation"
)
_RATE = _any(r"rate[ _-]?limit", r"too many requests", r"RESOURCE_EXHAUSTED", r"请求过多", r"请求频率", r"速率限制")
_OVERLOAD = _any(r"overloaded", r"unavailable", r"internal[ _](server[ _])?error", r"\bcapacity\b")
_TIMED_OUT = _any(r"timed[ _]?out")
_INVALID = _any(r"invalid_\w*(request|prompt|image)|unsupported_(image|param|value)|image_(too|parse|file)|load_image")

_WINDOWS = (
    ("5h", _any(r"\b5[ -]?h(ours?)?\b", r"five[ -]hour", r"5 ?小时")),
    ("weekly", _any(r"week", r"每周")),
    ("monthly", _any(r"month", r"每月")),
)
_CODE = re.compile(r"[A-Za-z0-9_.]{1,48}\Z")
_STATUS = re.compile(r"[0-9]{3}\Z")
_PARAMETER = re.compile(r"[A-Za-z0-9_.\[\]]{1,64}\Z")

_HINTS: Mapping[ErrorKind, str] = {
    "auth": "check the API key and that it belongs to this endpoint",
    "entitlement": "the account's plan does not cover this; choose another model or another plan",
    "quota": "the account has no credit or quota left; check its billing",
    "rate": "send fewer requests at once, or wait",
    "content": "the provider's filter stopped it: other words, or another model",
    "context": "show the model less: a window, a summary, shorter tool results",
    "model": "check the model's name and the address of the endpoint, and that the account may use it",
    "invalid": "the provider refuses the request; its words may quote the conversation and are left out here: "
    "onrecord.testing.wire(agent, conversation) is the body to send by hand and see them",
    "overload": "the provider is busy or failing; try again later",
}

_REFUSED = {
    "tools": "this model takes no tools: choose another, or give the model a card with tools=False",
    "arrays": "this model takes text only, each message as one string: give the model a card with arrays=False",
}

_ABOUT_ACCOUNTS = {"auth", "entitlement", "quota", "rate"}

_TOOLS = _any(
    r"does not support tools?\b", r"no endpoints? found that supports? tool use", r"no endpoints? support tool use",
    r"functions? (is|are) not supported", r"unrecogni[sz]ed (request )?arguments?.{0,40}\btools?\b",
    r"tool use with function calling is unsupported", r"does not support function calling",
    r"\b(tools?|tool[ -](calling|calls|use))[`'\"]? (is|are) not supported",
    r"unsupported param(eter)?:? .?tools?\b",
)  # fmt: skip
_ARRAYS = _any(
    r"messages\[\d+\].{0,80}invalid type: sequence, expected a string",
    r"messages\.\d+\.content.{0,80}(expected|should be).{0,40}string",
)


def is_tool_related_error(problem: object) -> bool:
    """Whether an error, by its words, says that this model takes no tools at all."""
    return problem is not None and _TOOLS(str(problem)) is not None


def refused_by(text: str) -> Literal["", "tools", "arrays"]:
    """What a provider's words say that the model never takes; nothing where they are about this one request."""
    if _TOOLS(text) is not None:
        return "tools"
    return "arrays" if _ARRAYS(text) is not None else ""


def is_content_array_related_error(problem: object) -> bool:
    """Whether an error, by its words, says that message content must be a string and not a list."""
    return problem is not None and _ARRAYS(str(problem)) is not None


_ANY_STATUS = range(1000)  # with 0 for a status that is not known
_NOT_5XX = range(500)
_KINDS: tuple[tuple[ErrorKind, Container[int], _Search | None], ...] = (
    ("timeout", {408}, None),
    ("invalid", range(300, 400), None),
    ("context", _NOT_5XX, _TOO_LONG),
    ("entitlement", _NOT_5XX, _PLAN),
    ("quota", _NOT_5XX, _USED_UP),
    ("model", _ANY_STATUS, _NO_MODEL),
    ("auth", {401, 403}, None),
    ("auth", _ANY_STATUS, _BAD_KEY),
    ("quota", {402}, None),
    ("model", {404}, None),
    ("rate", {429}, None),
    ("content", _ANY_STATUS, _CONTENT),
    ("overload", {409, 425, *range(500, 1000)}, None),
    ("rate", _ANY_STATUS, _RATE),
    ("overload", _ANY_STATUS, _OVERLOAD),
    ("timeout", _ANY_STATUS, _TIMED_OUT),
    ("invalid", range(400, 500), None),
    ("invalid", {0}, _INVALID),
)
"""What a failed answer is, by its status and its words (None: whatever they are). The first row that fits decides."""


def kind_of_answer(status: int | None, text: str) -> ErrorKind:
    """The kind of a failed answer by its status (None: not known) and what its body says."""
    known = status or 0
    fits = (kind for kind, statuses, words in _KINDS if known in statuses and (words is None or words(text)))
    return next(fits, "unknown")


def kind_of_exception(problem: BaseException) -> ErrorKind:
    """The kind of an exception, looking up to five causes deep."""
    at: BaseException | None = problem
    for _ in range(5):
        if at is None:
            break
        if isinstance(at, ModelError):
            return at.kind
        if type(at).__name__ == "CancelledError":
            return "aborted"
        if isinstance(at, TimeoutError):
            return "timeout"
        if isinstance(at, (ConnectionError, EOFError)) or type(at).__name__ == "gaierror":
            return "network"
        at = at.__cause__ or at.__context__
    return kind_of_answer(None, str(problem))


_LONGEST_S = 1e9
"""A number of seconds that a date can still be reckoned with; above it, a bare number is an epoch."""


# ---- waits --------------------------------------------------------------------------------------------------------


class Waits(NamedTuple):
    """What a provider says about coming back: seconds to wait, an instant, and the name of the used-up window.

    The window is told by the words of an error and not where waits stand, so `waits_of` leaves it out.
    """

    retry_after: float | None = None
    reset_at: datetime | None = None
    window: str | None = None


def retry_after_seconds(value: str, now: datetime) -> float | None:
    """A ``Retry-After`` header, seconds or an HTTP date, as seconds from ``now``, at least 0; None if it is neither."""
    value = value.strip()
    try:
        seconds = float(value)
    except ValueError:
        from email.utils import parsedate_to_datetime  # a tenth of what importing an agent takes, and seldom used

        try:
            at = parsedate_to_datetime(value)
        except (ValueError, IndexError, TypeError, OverflowError):
            return None
        seconds = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
    return max(0.0, seconds) if abs(seconds) < _LONGEST_S else None


def waits_of(status: int | None, headers: Mapping[str, str], body: Json, now: datetime) -> Waits:
    """Every form in which providers state a wait; ``headers`` are looked up in lower case."""
    after: float | None = None
    if (header := headers.get("retry-after")) is not None:
        after = retry_after_seconds(header, now)
    if after is None and (header := headers.get("retry-after-ms")) is not None:
        after = None if (ms := retry_after_seconds(header, now)) is None else ms / 1000
    stated = _stated(body)
    if after is None and (delay := stated.get("retryDelay")) is not None:
        after = None if (seconds := _countdown(str(delay))) is None else min(seconds, _LONGEST_S)
    reset: datetime | None = None
    if isinstance(left := stated.get("resets_in_seconds"), (int, float)):
        reset = now + timedelta(seconds=min(max(0.0, left), _LONGEST_S))
    elif (at := stated.get("resets_at")) is not None:
        reset = _instant(str(at), now)
    if reset is None and status == 429:
        reset = _reset_header(headers, now)
    return Waits(after, reset)


def _stated(value: Json, depth: int = 6) -> dict[str, Json]:
    """The fields about waiting, wherever in the body they stand."""
    found: dict[str, Json] = {}
    if depth and isinstance(value, dict):
        for name, item in value.items():
            if name in {"retryDelay", "resets_in_seconds", "resets_at"}:
                found.setdefault(name, item)
            elif isinstance(item, (dict, list)):
                found = _stated(item, depth - 1) | found
    elif depth and isinstance(value, list):
        for item in value[:20]:
            found = _stated(item, depth - 1) | found
    return found


def _reset_header(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """The latest reset among the limits that are used up, or among all when none says how much is left."""
    resets: list[tuple[bool, datetime]] = []
    for name, value in headers.items():
        low = name.lower()
        if "ratelimit" not in low or "reset" not in low or (at := _instant(value, now)) is None:
            continue
        left = headers.get(low.replace("reset", "remaining"))
        resets.append((left is not None and left.strip() in {"0", "0.0"}, at))
    used_up = [at for empty, at in resets if empty] or [at for _, at in resets]
    return max(used_up, default=None)


_SPANS = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _countdown(text: str) -> float | None:
    text = text.strip()
    try:
        return max(0.0, float(text))
    except ValueError:
        spans = _SPANS.findall(text)
        if not spans or _SPANS.sub("", text):
            return None
        return sum(float(number) * _SECONDS[unit] for number, unit in spans)


def _instant(text: str, now: datetime) -> datetime | None:
    """An epoch (a bare number above 1,000,000,000), a countdown, or a date."""
    try:
        if (seconds := _countdown(text)) is not None:
            if seconds > 1e12:  # milliseconds
                seconds /= 1000
            return datetime.fromtimestamp(seconds, UTC) if seconds > _LONGEST_S else now + timedelta(seconds=seconds)
        at = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError, OSError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


# ---- errors -------------------------------------------------------------------------------------------------------


def answer_error(
    provider: str, status: int, headers: Mapping[str, str], body: bytes, *, now: datetime, key_hint: str = ""
) -> ModelError:
    """The error of an answer whose status says that the call failed; ``key_hint`` names where the key comes from."""
    held = peek(body)
    return _error(
        provider,
        f"answered with status {status}",
        status=status,
        headers={name.lower(): value for name, value in headers.items()},
        held=held,
        text=_words(held) or body[:READ_BYTES].decode("utf-8", "replace"),
        now=now,
        key_hint=key_hint,
    )


def stream_error(provider: str, held: Json, *, now: datetime | None = None, started: bool = False) -> ModelError:
    """The error of an error object inside a stream whose status was 200; what cannot be told is ``overload``."""
    error = _error(
        provider, "reported an error in its stream", status=_status_inside(held), headers={}, held=held,
        text=_words(held), now=now, otherwise="overload",
    )  # fmt: skip
    error.started = started
    return error


def _error(
    provider: str, what: str, *, status: int | None, headers: Mapping[str, str], held: Json, text: str,
    now: datetime | None, key_hint: str = "", otherwise: ErrorKind = "unknown",
) -> ModelError:  # fmt: skip
    kind = kind_of_answer(status, text)
    kind = otherwise if kind == "unknown" else kind
    waits = waits_of(status, headers, held, now) if now is not None else Waits()
    if kind in {"rate", "quota"}:
        waits = waits._replace(window=next((name for name, words in _WINDOWS if words(text)), None))
    retry = headers.get("x-should-retry", "").strip().lower()
    code = _code(held)
    if kind == "invalid" and (parameter := _parameter(held)):
        code = f"{code}: {parameter}" if code else parameter
    hint = key_hint if kind == "auth" and key_hint else _HINTS.get(kind, "")
    if kind == "rate" and waits.retry_after:
        hint = f"wait {waits.retry_after:g} s, and send fewer requests at once"
    elif status is not None and 300 <= status < 400:
        hint = "the address redirects, which is not followed: check the base URL"
    error = ModelError(
        f"{provider} {what}{f' ({code})' if code else ''}",
        kind=kind,
        provider=provider,
        status=status,
        retry_after=waits.retry_after,
        reset_at=waits.reset_at,
        window=waits.window,
        should_retry={"true": True, "false": False}.get(retry),
        hint=hint,
    )
    if kind not in _ABOUT_ACCOUNTS and (status is None or status >= 400) and (refused := refused_by(text)):
        error.refuses, error.hint = refused, _REFUSED[refused]
    return error


def _object(held: Json) -> Json:
    """The innermost thing that describes the error."""
    if isinstance(held, list) and held:
        held = held[0]
    if isinstance(held, dict):
        return held["error"] if held.get("error") else held
    return held


def _words(held: Json) -> str:
    found = _object(held)
    if isinstance(found, str):
        return found[:READ_BYTES]
    if not isinstance(found, dict):
        return ""
    said = [found.get(name) for name in ("code", "type", "status", "message", "detail")]
    return " ".join(str(one) for one in said if one is not None)[:READ_BYTES]


def _code(held: Json) -> str:
    """The provider's short name for an error; a number, which is mostly the status once more, where there is none."""
    found = _object(held)
    values = [found.get(name) for name in ("code", "type", "status")] if isinstance(found, dict) else []
    values.sort(key=lambda value: not isinstance(value, str))
    told = (str(value) for value in values if isinstance(value, (str, int)) and not isinstance(value, bool))
    return next((value for value in told if _CODE.match(value)), "")


def _parameter(held: Json) -> str:
    """The field of the request that the provider finds fault with: a path of names, never a value."""
    found = _object(held)
    value = found.get("param") if isinstance(found, dict) else None
    return value if isinstance(value, str) and _PARAMETER.match(value) else ""


def _status_inside(held: Json) -> int | None:
    found = _object(held)
    if isinstance(found, dict):
        for name in ("status_code", "status", "code"):
            value = found.get(name)
            if isinstance(value, str) and _STATUS.match(value):
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
                return value
    return None
