"""Composing a request: the base request of a brief, then the ``request`` hooks."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, is_
from typing import Any

from msgspec.structs import replace

from onrecord.conditions import says_yes
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.messages import ContextMessage
from onrecord.errors import FeatureFailed, ModelError, OnrecordError
from onrecord.jsonio import is_json
from onrecord.models.model import Model, scope_of
from onrecord.models.refusing import cannot_be_sent
from onrecord.models.request import (
    NO_SETTINGS,
    Offer,
    Piece,
    Purpose,
    Request,
    Settings,
    Shape,
    Span,
    View,
)
from onrecord.record.kinds import Noted
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import OfferContext, named_source
from onrecord.turn.above import stop_above
from onrecord.turn.contained import fail
from onrecord.turn.instruction import Instruction
from onrecord.turn.moments import SLOTS, Rank, Stop
from onrecord.turn.plan import Mounted, offer_of, tools_of
from onrecord.turn.turn import Turn
from onrecord.turn.verdicts import file_verdict

__all__ = ("WRAP_UP", "arranged", "base_request", "run_request_hooks", "whole_view", "wired", "with_conditional")

WRAP_UP = Piece(
    source="wrap-up",
    text=(
        "The budget for actions in this turn is used up. Do not call any tools. Answer now as well as you can: what "
        "was done, what was not, and what the person should know."
    ),
    rank=Rank.WRAP_UP,
    place="trailing",
)

_PLACES = {"system": 0, "turn": 1, "trailing": 2}
_CHOOSE = SLOTS["request"]["CHOOSE"]


def arranged(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Pieces by place, rank and arrival."""
    return tuple(sorted(pieces, key=lambda p: (_PLACES[p.place], p.rank)))


def with_conditional(turn: Turn, pieces: tuple[Piece, ...], action: int, budget: int) -> tuple[Piece, ...]:
    """With the instructions whose ``only_if`` holds now, in their places, and templates as they read now."""
    if not turn.plan.conditional:
        return pieces
    more = [p for i in turn.plan.conditional if _holds(turn, i) and (p := i.piece(action, budget)) is not None]
    return arranged((*pieces, *more)) if more else pieces


def _holds(turn: Turn, instruction: Instruction) -> bool:
    """Whether a condition holds. One that raises does not, and the record says so."""
    try:
        return instruction.only_if is None or says_yes(instruction.only_if(turn))
    except Exception as error:  # noqa: BLE001 - a condition decides about its own text, not about the turn
        turn.note(Noted(by=instruction.name, text=f"only_if failed: {type(error).__name__}"))
        return False


def whole_view(turn: Turn) -> View:
    """Everything: the conversation with this turn's settled rounds."""
    return View(spans=(Span(0, len(turn.working.conversation.units)),))


def base_request(
    turn: Turn, purpose: Purpose, where: str, pieces: tuple[Piece, ...], *, own: int,
    offers: tuple[Offer, ...] = (), shape: Shape[Any] | None = None, carries: int | None = None,
    model: Model | None = None, view: View | None = None, settings: Settings = NO_SETTINGS, settle: bool = True,
) -> Request:  # fmt: skip
    """The request before any feature had a say. Without ``settle`` the round that still runs stays out of it."""
    if settle:
        turn.working.settle_open()
    chosen = model or turn.model
    return Request(
        purpose=purpose, where=where, pieces=pieces, conversation=turn.working.conversation, own=own,
        view=view or whole_view(turn), model=chosen, offers=offers, choice="none" if purpose == "wrap_up" else "auto",
        settings=settings, shape=shape, carries=carries, scope=scope_of(chosen.card, turn.session.key.id),
    )  # fmt: skip


def _outermost(turn: Turn) -> SessionKey:
    """The session that a turn belongs to in the end: what toolsets keep open is kept for that one, and left with it."""
    while turn.above is not None:
        turn = turn.above
    key, parent = turn.session.key, turn.session.parent
    return key if parent is None else SessionKey(parent, tenant=key.tenant)


async def offered(
    turn: Turn, static: tuple[Offer, ...], number: int, *, allowed: tuple[str, ...] | None
) -> tuple[Offer, ...]:
    """Registered tools, then what the toolsets offer this round. The first of two equal names wins, and it is noted."""
    toolsets = turn.plan.toolsets
    if not toolsets or allowed == ():
        return static
    context = OfferContext(
        turn=turn.id, round=number, session=_outermost(turn), note=turn.note,
        identity=turn.session.owner, context=turn.context, data=turn.working.data,
        active=frozenset().union(*(names(turn) for names in turn.plan.active)),
    )  # fmt: skip
    names, more = dict.fromkeys((o.tool.id for o in static), "the agent itself"), list(static)
    for toolset in toolsets:
        label = named_source(toolset)
        try:
            tools = tuple(await toolset.tools(context))
        except BaseException as error:  # noqa: BLE001 - `fail` lets through what ends the take
            fail(label, "request", error)
        for tool in tools:
            if not isinstance(tool, Tool):
                raise FeatureFailed(label, "request", f"it offers a {type(tool).__name__}, which is no tool")
            if allowed is not None and tool.id not in allowed:
                continue
            if tool.id in names:
                turn.note(Noted(by="offers", text=f"tool {tool.id!r} of {label} is hidden by one of {names[tool.id]}"))
                continue
            names[tool.id] = label
            more.append(offer_of(tool))
    return tuple(more)


async def run_request_hooks(turn: Turn, request: Request) -> Request | Stop:
    """The request after its hooks, pieces in order again; or the stop that one of them called for, or a turn above."""
    got = await _through_hooks(turn, request)
    if turn.above is None or isinstance(got, Stop) or got.purpose == "consult":
        return got
    return stop_above(turn, got) or got


async def _through_hooks(turn: Turn, request: Request) -> Request | Stop:
    hooks = turn.plan.on_request[request.purpose]
    if not hooks:
        return request
    base = request
    for hook in hooks:
        try:
            got = await hook.call(turn, request)
        except BaseException as error:  # noqa: BLE001 - `fail` lets through what ends the take
            fail(hook.name, "request", error)
        if isinstance(got, Stop):
            file_verdict(turn, "request", hook.name, "stop", got.reason)
            turn.stop(got)
            return got
        if got is not request:
            if not isinstance(got, Request):
                raise FeatureFailed(hook.name, "request", f"it returned {type(got).__name__}, not a Request or Stop")
            _check_changes(hook, request, got)
            if got.model is not request.model:
                got = _moved(turn, base, request, got)
            request = got
    return replace(request, pieces=arranged(request.pieces))


def _moved(turn: Turn, base: Request, before: Request, after: Request) -> Request:
    """A request at another model: nothing that was chosen for the one before goes along."""
    return replace(
        after, scope=scope_of(after.model.card, turn.session.key.id),
        settings=base.settings if after.settings is before.settings else after.settings,
        headers=base.headers if after.headers is before.headers else after.headers,
    )  # fmt: skip


def _check_changes(hook: Mounted, before: Request, after: Request) -> None:
    """A feature changes its own pieces only, and the model only in the CHOOSE slot."""
    if not all(map(is_, _fixed(after), _fixed(before))):
        name = next(name for name in _FIXED if getattr(after, name) is not getattr(before, name))
        raise FeatureFailed(hook.name, "request", f"it changed {name!r}, which is the loop's")
    try:
        problem = _misfit(before, after)
    except Exception as error:
        raise FeatureFailed(hook.name, "request", type(error).__name__) from error
    if problem:
        raise FeatureFailed(hook.name, "request", f"it left {problem}")
    if after.pieces is not before.pieces:
        kept = {id(p) for p in after.pieces}
        for piece in before.pieces:
            if id(piece) not in kept and piece.source != hook.name:
                raise FeatureFailed(hook.name, "request", f"it removed or replaced a piece of {piece.source!r}")
    if after.model is not before.model and hook.slot != _CHOOSE:
        raise FeatureFailed(hook.name, "request", "it changed the model outside the CHOOSE slot")


_FIXED = ("purpose", "where", "conversation", "own", "carries", "scope", "wire")
_fixed = attrgetter(*_FIXED)


def _misfit(before: Request, after: Request) -> str:
    """What a hook left in a request that is not of its type, or points to where nothing is."""
    units = len(after.conversation.units)
    if after.pieces is not before.pieces:
        known = set(map(id, before.pieces))
        if not all(id(piece) in known or _is_piece(piece) for piece in after.pieces):
            return "a piece that is none"
    if after.view is not before.view:
        spans: tuple[object, ...] = after.view.spans
        for span in spans:
            if isinstance(span, Span) and not 0 <= span.start <= span.stop <= units:
                return f"a span of units {span.start} to {span.stop}, where there are {units}"
            if not isinstance(span, (Span, ContextMessage)):
                return "a view of something else than spans and messages"
    if after.offers is not before.offers and tools_of(after.offers) is None:
        return "an offer that is none"
    if problem := _unset(before, after):
        return problem
    if after.shape is not before.shape and not isinstance(after.shape, Shape):
        return "a shape that is none"
    if after.model is not before.model:
        _ = after.model.card.name
    return ""


def _unset(before: Request, after: Request) -> str:
    """What of the settings and headers is none."""
    settings: object = after.settings
    if settings is not before.settings:
        if not isinstance(settings, Settings):
            return "settings that are none"
        if not is_json(settings):
            return "settings that JSON cannot hold"
    headers: object = after.headers
    return "headers that are no function" if headers is not None and not callable(headers) else ""


def _is_piece(piece: object) -> bool:
    if not isinstance(piece, Piece) or piece.place not in _PLACES or not isinstance(piece.rank, int):
        return False
    words: tuple[object, ...] = (piece.text, piece.source)
    return all(isinstance(each, str) and is_json(each) for each in words)


def wired(request: Request) -> Request:
    """The request with its exact bytes. ModelError (invalid) names what this wire cannot carry; nothing was sent.

    Where the view degrades, what it cannot carry is left out, and the receipt says so.
    """
    try:
        wire = request.model.wire(request)
        issues = wire.refusing(request.view) if wire.issues else ()
    except OnrecordError:
        raise
    except Exception as error:  # noqa: BLE001 - every one of them is the model's; it is told of it below
        # An encoding error holds the whole text that it is about.
        raise _unwritten(request, error) from (None if isinstance(error, UnicodeError) else error)
    if issues:
        raise cannot_be_sent(request.model.card, issues)
    return replace(request, wire=wire)


def _unwritten(request: Request, error: Exception) -> ModelError:
    """The error of a model that could not write a request down."""
    name, provider = request.model.card.name, request.model.card.provider
    told = f"model {name!r} could not write the request: {type(error).__name__}"
    return ModelError(told, kind="invalid", provider=provider)
