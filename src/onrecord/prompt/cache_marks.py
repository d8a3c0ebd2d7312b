"""Cache marks: where a vendor that wants to be told is told that a request's beginning will come again.

The bytes that a model reads are the same with marks and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conditions import check_condition, says_yes
from onrecord.conversation.messages import ContextMessage, Unit, UserMessage
from onrecord.declared import Declared
from onrecord.errors import ConfigurationError
from onrecord.models.request import HeadMarks, Piece, Request, Span, View
from onrecord.record.entry import Entry
from onrecord.record.kinds import ModelReplied, ModelRequested, Noted
from onrecord.record.receipts import PieceMark
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.compose import arranged
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn

__all__ = ("CACHE_HITS", "LEAST_RATE", "CacheHits", "CacheHitsFold", "CacheMarks", "CachePolicy", "Until")

Until: TypeAlias = Callable[[Turn], bool]
"""Whether a text is no longer worth caching; one that raises says so too, and is noted."""

CachePolicy: TypeAlias = Literal["always", "never", "while_active"]

LEAST_RATE = 0.3
"""The share of input tokens that must come from the cache for marks to go on."""

RECENT = 10
"""So many replies say how large that share is."""

ENOUGH = 4
"""Fewer replies say nothing: the first can hit nothing."""

REST = 10
"""So many requests go out unmarked before it is tried again."""

RECENT_SKILLS, MOST_SKILLS = 5, 2
"""With more different sets of skill texts than this in so many requests, each beginning is written and never read."""

OF_SKILL = "skill:"
"""How the source of a skill's text begins."""

LOOK_BACK = 64
"""So many units are looked through for a place that can hold a mark."""


class CacheMarks(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """Marks what the next request will begin with, for vendors that cache what is marked (`ModelCard.cache_marks`).

    Marked are the tools, the longest beginning of the system text that is worth it, and the conversation so far. A text
    is worth it by its policy: ``always``, ``never``, or ``while_active`` (as long as the request has it), from
    ``policies`` by the source of its piece, else from the piece; one that nobody says anything about is not. A
    function of the turn in ``policies`` caches a text until it returns true. The agent's instructions are
    ``instructions``; those of `Instruction` go by its name. ``ttl`` is how long the vendor is asked to keep it.

    Marks cost more than they save where nothing is ever found again. So they stop once less than three tenths of the
    input came from the cache over the last ten replies (four at least), and are tried again ten requests later. They
    pause while skills change: at the third set of skill texts within five requests. ``caching="off"`` takes away all
    marks, those of others too. ConfigurationError for a policy that is none.
    """

    caching: Literal["on", "off"] = "on"
    policies: Mapping[str, CachePolicy | Until] = {}
    ttl: Literal["short", "long"] = "short"

    def __post_init__(self) -> None:
        for name, allowed in (("caching", ("on", "off")), ("ttl", ("short", "long"))):
            given: object = getattr(self, name)
            if given not in allowed:
                told = " or ".join(map(repr, allowed))
                raise ConfigurationError(f"{name}= of CacheMarks is {told}, not {given!r}")
        for source, policy in self.policies.items():
            if callable(policy):
                check_condition(policy, f"the cache policy of {source!r}")
            elif policy not in get_args(CachePolicy):
                known = ", ".join(map(repr, get_args(CachePolicy)))
                raise ConfigurationError(
                    f"the cache policy of {source!r} is none: {policy!r}",
                    hint=f"one of {known}, or a function of the turn that says when to stop",
                )

    @property
    def name(self) -> str:
        """The feature's name."""
        return "cache_marks"

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(
            on_request=self._marked, order={"request": SLOTS["request"]["CACHE"]}, folds=(CACHE_HITS,), alone=True,
            purposes=frozenset({"speak", "wrap_up", "judge"}),
            manifest={"cache_marks": {"caching": self.caching, "ttl": self.ttl}},
        )  # fmt: skip

    async def _marked(self, turn: Turn, request: Request) -> Request:
        card = request.model.card
        if self.caching == "off":
            return _unmarked(request)
        if not card.cache_marks:
            return request
        hits = turn.state(CACHE_HITS)
        if not hits.pays(card.name) or hits.changes(card.name, _skills_of(request.pieces)):
            return _unmarked(request)
        system, tools = self._prefix(turn, request), bool(request.offers)
        head = HeadMarks(system=system, tools=tools, ttl=self.ttl) if system or tools else None
        return replace(request, view=replace(request.view, head=head, marks=boundaries(request)))

    def _prefix(self, turn: Turn, request: Request) -> int:
        """How many of the system pieces, from the first on, are worth caching; blank ones are not sent, and pass."""
        system = [piece for piece in arranged(request.pieces) if piece.place == "system"]
        for at, piece in enumerate(system):
            if not _is_blank(piece) and not self._is_worth_it(turn, piece):
                return at
        return len(system)

    def _is_worth_it(self, turn: Turn, piece: Piece) -> bool:
        policy = self.policies.get(piece.source, piece.cache)
        if not callable(policy):
            return policy in {"always", "while_active"}
        try:
            return not says_yes(policy(turn))
        except Exception as error:  # noqa: BLE001 - it decides about a mark, not about the turn
            turn.note(Noted(by=self.name, text=f"the policy of {piece.source!r} failed: {type(error).__name__}"))
            return False


def _skills_of(pieces: Iterable[Piece | PieceMark]) -> tuple[str, ...]:
    return tuple(piece.source for piece in pieces if piece.source.startswith(OF_SKILL))


def _is_blank(piece: Piece) -> bool:
    return not piece.text or piece.text.isspace()


def _unmarked(request: Request) -> Request:
    view = request.view
    if view.head is None and not view.marks:
        return request
    return replace(request, view=replace(view, head=None, marks=()))


# ---- the conversation ------------------------------------------------------------------------------------------------


def boundaries(request: Request) -> tuple[int, ...]:
    """The units after which a mark goes, at most two: the last that can hold one, and the last that was marked before.

    Texts of a turn stand in front of its rounds for that turn alone, and so does a message that they carry: then the
    earlier mark is the last one in front of them, which the next turn finds again.
    """
    start, stop = _stretch(request.view, len(request.conversation.units))
    own = min(max(request.own, start), stop)
    carries = request.carries
    if carries is not None or any(p.place == "turn" and not _is_blank(p) for p in request.pieces):
        last = _last(request, own, stop)
        before = _last(request, start, own if carries is None else min(own, carries))
    else:
        last = _last(request, start, stop)
        before = None if last is None else _last(request, start, last)
    return tuple(at for at in (before, last) if at is not None)


def _stretch(view: View, units: int) -> tuple[int, int]:
    """The last stretch of the conversation that is shown; what stands in front of it moves with the window."""
    for span in reversed(view.spans):
        if isinstance(span, Span) and span.start < span.stop:
            return span.start, min(span.stop, units)
    return 0, 0


def _last(request: Request, start: int, stop: int) -> int | None:
    units, carried = request.conversation.units, request.carries
    for at in range(stop - 1, max(start, stop - LOOK_BACK) - 1, -1):
        if at != carried and _ends_with_user(units[at]):
            return at
    return None


def _ends_with_user(unit: Unit) -> bool:
    """Whether what a unit shows ends on the user's side, where vendors take marks."""
    if isinstance(unit, UserMessage):
        return bool(unit.content)
    if isinstance(unit, ContextMessage):
        return unit.authority == "data" and bool(unit.content)
    return bool(unit.revised) or any(call.status != "asked" for call in unit.calls)


# ---- how often it pays -----------------------------------------------------------------------------------------------


class CacheHits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of the latest marked requests to one model.

    ``seen`` holds input tokens and how many of them came from the cache, by reply; ``marked`` is whether the request
    that was filed last had marks; ``rested`` how many went without since they stopped paying. ``skills`` are the
    skill texts of the latest requests, by source.
    """

    model: str = ""
    marked: bool = False
    seen: tuple[tuple[int, int], ...] = ()
    rested: int = 0
    skills: tuple[tuple[str, ...], ...] = ()

    @property
    def rate(self) -> float | None:
        """The share of the input that came from the cache; None before enough replies say so."""
        if len(self.seen) < ENOUGH:
            return None
        return sum(cached for _, cached in self.seen) / sum(tokens for tokens, _ in self.seen)

    def pays(self, model: str) -> bool:
        """Whether requests to this model are worth marking."""
        rate = self.rate if model == self.model else None
        return rate is None or rate >= LEAST_RATE

    def changes(self, model: str, skills: tuple[str, ...]) -> bool:
        """Whether the skills in use have changed too often lately, up to a request with these."""
        held = (*self.skills[1 - RECENT_SKILLS :], skills) if model == self.model else ()
        return len({one for one in held if one}) > MOST_SKILLS


class CacheHitsFold:
    """Makes `CacheHits` of requests and of what their replies cost, of takes that were cut short too.

    A provider that does not say what a reply cost says nothing about its cache either.
    """

    name = "cache_marks"
    version = 1
    state = CacheHits
    kinds = frozenset({"model.requested", "model.replied"})
    scope: Literal["session", "turn"] = "session"
    unfinished = True

    def start(self) -> CacheHits:
        return CacheHits()

    def apply(self, state: CacheHits, entry: Entry, /) -> CacheHits:
        body = entry.body
        if isinstance(body, ModelRequested):
            return _asked(state, body)
        if not isinstance(body, ModelReplied) or not state.marked:
            return state
        usage = body.round.use.usage if body.round.use is not None else None
        if usage is None or usage.input_tokens <= 0:
            return state
        return replace(state, seen=(*state.seen, (usage.input_tokens, usage.cached_input_tokens))[-RECENT:])


def _asked(state: CacheHits, body: ModelRequested) -> CacheHits:
    receipt = body.receipt
    marked = receipt is not None and (receipt.head is not None or bool(receipt.marks))
    if body.purpose == "consult":
        return replace(state, marked=False)
    skills = _skills_of(receipt.pieces) if receipt is not None else ()
    if body.model != state.model:
        return CacheHits(model=body.model, marked=marked, skills=(skills,) if skills else ())
    if skills or state.skills:
        kept = (*state.skills, skills)[-RECENT_SKILLS:]
        state = replace(state, skills=kept if any(kept) else ())
    if marked or state.pays(state.model):
        return replace(state, marked=marked)
    if state.rested + 1 >= REST:
        return CacheHits(model=state.model, skills=state.skills)
    return replace(state, marked=False, rested=state.rested + 1)


CACHE_HITS = CacheHitsFold()
"""The fold of `CacheMarks`."""
