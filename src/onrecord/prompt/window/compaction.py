"""Compaction: a long conversation is shown shortened, summed up where that is not enough, and kept whole."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from onrecord.declared import Declared
from onrecord.errors import ConfigurationError, ModelError, check_count
from onrecord.models.model import Model
from onrecord.models.names import as_model, check_model
from onrecord.models.request import Request, Span
from onrecord.prompt.window.evicted import COMPACTED, SUMMARY_PLACE, Evicted, How
from onrecord.prompt.window.past import Past, Shown, digest_at, past_of
from onrecord.prompt.window.sizes import CHARS_PER_TOKEN, tokens
from onrecord.prompt.window.summarising import summary_query
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.contained import failed_call
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn

__all__ = ("Compaction",)

SHORTENINGS: tuple[How, ...] = ("cut", "collapsed")


class _Limit(Struct, frozen=True, metaclass=Declared):
    max_tokens: int


class Compaction(_Limit, frozen=True, kw_only=True):
    """Keeps the history that requests show below ``threshold`` of ``max_tokens``; the conversation itself stays whole.

    What came before a turn is measured once the turn asks a model (four characters a token, four for each message and
    tool result). From ``max_tokens * threshold`` on the first of these that is enough is done to what is older than
    the newest ``keep`` messages and results:

    1. tool results longer than ``max_tool_result_chars`` are cut;
    2. white space in tool results is collapsed;
    3. all of it is summed up in one call of ``model`` (a model or its name; None: the turn's) and shown as
       ``[Conversation Summary]``. Where that call fails, as many of the newest messages stay as fit.

    A summary is kept with the session and shown until the history outgrows it, so it is paid once; history that the
    caller passes is told by its messages. A turn makes one such call at most, and its own rounds are never shortened.
    A call and its result are never parted. What left is told by ``context.evicted`` entries. ConfigurationError for a
    ``max_tokens`` or ``max_tool_result_chars`` below 1, a ``threshold`` outside 0.5 to 0.95, a ``keep`` below 2.
    """

    threshold: float = 0.8
    keep: int = 4
    max_tool_result_chars: int = 5000
    model: Model | str | None = None

    def __post_init__(self) -> None:
        for name, least in (("max_tokens", 1), ("keep", 2), ("max_tool_result_chars", 1)):
            check_count("Compaction", name, getattr(self, name), least)
        threshold: object = self.threshold
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0.5 <= threshold <= 0.95:
            raise ConfigurationError(
                f"the threshold of Compaction is a share from 0.5 to 0.95, not {threshold!r}",
                hint="0.8 shortens the history once it fills four fifths of max_tokens",
            )
        if self.model is not None:
            check_model("Compaction", self.model, hint="without model= the model of the turn writes the summaries")

    @property
    def name(self) -> str:
        """The feature's name."""
        return "compaction"

    def fits(self, shown: Shown) -> bool:
        """Whether so much of the past may be shown."""
        return tokens(shown.chars) < self.max_tokens * self.threshold

    def hooks(self, spec: AgentSpec) -> Hooks:
        model = None if self.model is None else as_model(self.model)
        about: dict[str, Any] = {"max_tokens": self.max_tokens, "threshold": self.threshold, "keep": self.keep}
        if model is not None:
            about["model"] = model.card.name

        async def shows(turn: Turn, request: Request) -> Request:
            return await _windowed(turn, request, self, model)

        return Hooks(
            on_request=shows, order={"request": SLOTS["request"]["WINDOW"]},
            purposes=frozenset({"speak", "wrap_up", "judge"}), folds=(COMPACTED,), bodies=(Evicted,),
            manifest={"compaction": about},
        )  # fmt: skip


async def _windowed(turn: Turn, request: Request, to: Compaction, model: Model | None) -> Request:
    """The request with as much of the past as may be shown; the very request where that is all of it."""
    if request.view.spans != (Span(0, len(request.conversation.units)),):
        return request  # what is shown was chosen already
    past = await past_of(turn, request, to.keep, to.max_tool_result_chars)
    shown = past.whole()
    if not to.fits(shown) and turn.working.open is None:  # else a paused round is asked about, and nothing goes out
        past, shown = await _shortened(turn, request, past, to, model)
    if not shown.start and not shown.swaps:
        return request
    return replace(request, view=past.view(request.view, shown))


async def _shortened(
    turn: Turn, request: Request, past: Past, to: Compaction, model: Model | None
) -> tuple[Past, Shown]:
    """What is shown of a past that is too long; and that past, with its summary if there is a new one."""
    whole = short = past.whole()
    for how in SHORTENINGS:
        short = past.short(tight=how == "collapsed")
        if to.fits(short):
            _tell_shortened(turn, past, how, short)
            return past, short
    if past.window == past.base:  # nothing is older than the newest messages
        return past, whole
    if turn.state(COMPACTED).failed == turn.id:
        return past, past.newest(short, to.fits)
    text, why = await _summary(turn, past, short, to, model)
    if text:
        _evict(turn, past, "summarised", past.window, shown_after=past.chars_behind(text))
        past = await past_of(turn, request, to.keep, to.max_tool_result_chars)
        return past, past.whole()
    newest = past.newest(short, to.fits)
    _evict(turn, past, "dropped", newest.start, shown_after=newest.chars, why=why)
    return past, newest


async def _summary(turn: Turn, past: Past, short: Shown, to: Compaction, model: Model | None) -> tuple[str, str]:
    """A summary of what is older than the window; or none, and why: the call failed, or came back empty."""
    older = ((place, past.units[place]) for place in range(past.base, past.window))
    query = summary_query(older, short.swaps, past.summary, to.max_tokens * CHARS_PER_TOKEN)
    try:
        text = await turn.consult(query, where=SUMMARY_PLACE, model=model)
    except ModelError as error:
        return "", failed_call(error)
    return text, "" if text else "empty"


def _tell_shortened(turn: Turn, past: Past, how: How, short: Shown) -> None:
    """Files which results are shown shorter from now on; what was told in an earlier turn is not told again."""
    told, seen = turn.state(COMPACTED).shortened, past.base
    if told is not None and told.how == how and told.upto <= past.stop and past.units[told.upto - 1].id == told.last:
        seen = max(seen, told.upto)
    calls = tuple(past.call(swap) for swap in short.swaps if swap.unit >= seen)
    if calls:
        _evict(turn, past, how, past.window, shown_after=short.chars, calls=calls)


def _evict(
    turn: Turn, past: Past, how: How, upto: int, *, shown_after: int, calls: tuple[str, ...] = (), why: str = ""
) -> None:
    digest = digest_at(turn, past.units, upto) if how == "summarised" else ""
    evicted = Evicted(
        how=how, first=past.units[past.base].id, last=past.units[upto - 1].id, upto=upto, digest=digest, calls=calls,
        before=tokens(past.whole().chars), after=tokens(shown_after), why=why,
    )  # fmt: skip
    turn.note(evicted, where=SUMMARY_PLACE)
