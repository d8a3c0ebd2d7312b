"""Speaking: rounds of request, reply and tools until there is an answer. The one loop of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from onrecord.conversation.inputs import Question
from onrecord.conversation.messages import Round
from onrecord.conversation.usage import Usage
from onrecord.errors import AnswerRefused, ModelError
from onrecord.models.request import Offer, Piece, Purpose, Reading, Request, Shape, TextFilter
from onrecord.record.kinds import DataPatched, ModelReplied, Pending, RoundSettled
from onrecord.turn.above import stop_above
from onrecord.turn.answer import correction, governed, run_output, withheld
from onrecord.turn.compose import WRAP_UP, arranged, base_request, offered, run_request_hooks, wired, with_conditional
from onrecord.turn.contained import fail
from onrecord.turn.director import Brief, Spoken
from onrecord.turn.dispatch import Batch, dispatch, settle_rest
from onrecord.turn.listen import Heard, heard_again, listen
from onrecord.turn.moments import Answer, Revise, Stop
from onrecord.turn.performed import SpeakDone, read_before
from onrecord.turn.plan import offer_of, tools_of
from onrecord.turn.receipt import file_request
from onrecord.turn.reply_hooks import reply_hooks
from onrecord.turn.resume import resume_verb
from onrecord.turn.saying import release_held, say_text
from onrecord.turn.too_long import check_shorter, is_too_long
from onrecord.turn.warm import SLICE, warm_up

if TYPE_CHECKING:
    from onrecord.turn.turn import Turn

__all__ = ("say_text", "speak")


class _Speaking:
    """One speak verb while it runs."""

    __slots__ = (
        "asked", "batch", "brief", "carries", "consulted", "count", "limit", "offers", "own", "pieces", "read", "said",
        "shape", "steps", "tools", "turn", "usage", "value", "wrapping",
    )  # fmt: skip

    def __init__(self, turn: Turn, brief: Brief) -> None:
        plan, spec = turn.plan, turn.spec
        self.turn, self.brief = turn, brief
        self.limit = spec.rounds if brief.rounds is None else brief.rounds
        self.tools = None if brief.tools is None else tuple(brief.tools)
        self.offers: tuple[Offer, ...] = plan.offers(self.tools) if self.limit else ()
        base = plan.base_pieces(turn.instructions)
        self.pieces: tuple[Piece, ...] = arranged((*base, *brief.pieces)) if brief.pieces else base
        self.shape: Shape[Any] | None = brief.shape
        self.batch = Batch(verb=brief.key, tools={}, scope=brief.scope, data={})
        self.consulted: tuple[str, ...] = ()  # ids of what toolsets offered last
        self.permit(self.offers)
        self.own = 0
        self.carries = turn.admitted if brief.carries_input else None
        self.count = 0
        self.asked = 0  # as `count`, but with drafts
        self.steps = turn.model.card.steps
        turn.last_step = False
        self.wrapping = False
        self.usage: Usage | None = None
        self.value: object = None
        self.read: tuple[Round, ...] = ()
        self.said = ""

    def permit(self, offers: tuple[Offer, ...]) -> None:
        """Whatever the agent has, and features offered in this turn, may be called; narrowing only hides."""
        self.batch.tools.update(tools_of(offers) or {})

    async def consult(self, number: int) -> tuple[Offer, ...]:
        """What there is in a round, toolsets asked anew. What they offered before and do not now may not be called."""
        if not self.turn.plan.toolsets:
            return self.offers
        offers = await offered(self.turn, self.offers, number, allowed=self.tools)
        for id in self.consulted:
            self.batch.tools.pop(id, None)
        self.consulted = tuple(offer.tool.id for offer in offers[len(self.offers) :])
        self.permit(offers)
        return offers

    def recall(self, pending: Pending) -> None:
        """What the recorded rounds of a paused verb count for: rounds, their values, revisions asked for."""
        self.step(self.steps, len(pending.rounds))
        for held in pending.rounds:
            if held.revised:
                by = held.revised[0].writer
                self.turn.revised[by] = self.turn.revised.get(by, 0) + 1
                continue
            self.count += 1
        for read in read_before(self.turn.done.get(f"{self.brief.key}/read")):
            self.note_value(read)

    def step(self, steps: int | None, requests: int = 1) -> None:
        """Requests were made of a model that may be asked so often for one answer (None: as often as need be)."""
        self.asked += requests
        self.steps = steps
        self.turn.last_step = steps is not None and self.asked >= steps

    def note_value(self, settled: Round) -> Reading[Any] | None:
        """Reads a round by the brief's shape, merged over rounds."""
        if self.shape is None:
            return None
        reading = self.shape.read(settled)
        merge = self.brief.merge
        self.value = reading.value if merge is None or not self.read else merge(self.value, reading.value)
        self.read = (settled,) if merge is None else (*self.read, settled)
        return reading

    def pausing(self, asked: Question) -> Spoken:
        """A person must answer. What the rounds said by the shape is kept: the conversation has only their words."""
        if self.read:
            self.turn.done[f"{self.brief.key}/read"] = SpeakDone(read=self.read)
        return Spoken(asked=asked)

    @property
    def used_up(self) -> bool:
        """Whether the next request is the one without tools: the rounds are over, or it is the last step."""
        return self.count >= self.limit or (self.steps is not None and self.asked >= self.steps - 1)

    @property
    def offering(self) -> bool:
        """Whether this brief has tools at all."""
        return self.limit > 0 and bool(self.batch.tools or (self.turn.plan.toolsets and self.tools != ()))

    def allowed(self, before: Request, after: Request) -> Request:
        """What request hooks made of the offers; where there are to be none, nobody adds any."""
        if not before.offers and (self.wrapping or not self.limit or self.tools == ()):
            return replace(after, offers=())
        self.permit(after.offers)
        return after

    def wrapped_at(self, request: Request) -> Request:
        """The wrap-up at a model that was chosen for it: definitions stay only where old calls need them."""
        stay = request.model.card.needs_tools_with_calls
        return replace(request, offers=tuple(map(offer_of, self.batch.tools.values())) if stay else ())


async def speak(turn: Turn, brief: Brief, resuming: Pending | None) -> Spoken:
    """Speaks as the brief says. ModelError, AnswerRefused, FeatureFailed."""
    speaking = _Speaking(turn, brief)
    if resuming is None:
        turn.working.settle_open()
        speaking.own = len(turn.working.conversation.units)
    try:
        if resuming is not None and (done := await _go_on(speaking, resuming)) is not None:
            return done
        return await _rounds(speaking)
    except (ModelError, AnswerRefused):
        # A director may go on without this answer. What its tools did stands in the conversation, so their data stays.
        if speaking.batch.data:
            turn.note(DataPatched(patch=dict(speaking.batch.data)))
        raise


async def _rounds(speaking: _Speaking) -> Spoken:
    turn, brief = speaking.turn, speaking.brief
    while True:
        if not _goes_on(speaking):
            break
        heard = await _one_round(speaking)
        if heard is None:
            continue
        if turn.plan.on["reply"]:
            asked = await reply_hooks(turn, brief.key, speaking.batch.data, heard.round.id)
            if asked is not None:
                return speaking.pausing(asked)
        settled = turn.working.round(heard.round.id)
        if _is_final(speaking, settled):
            if settled.calls:
                settle_rest(turn, settled.id, _why_final(speaking), turn.cause)
            if await _conclude(speaking, heard):
                break
            continue
        asked = await dispatch(turn, speaking.batch, settled.id, turn.cause or 0)
        if asked is not None:
            return speaking.pausing(asked)
    return _spoken(speaking)


async def _go_on(speaking: _Speaking, resuming: Pending) -> Spoken | None:
    """Goes on where the verb paused. What speaking came to, when that ends it or asks again."""
    turn = speaking.turn
    speaking.batch.data.update(resuming.data)
    speaking.own = turn.working.base_units  # where the recorded rounds stand again
    speaking.recall(resuming)
    await _permit_again(speaking)
    asked = await resume_verb(turn, speaking.batch, resuming, reply_hooks=reply_hooks)
    if asked is not None:
        return speaking.pausing(asked)
    return _spoken(speaking) if await _conclude_waiting(speaking) else None


async def _conclude_waiting(speaking: _Speaking) -> bool:
    """An answer that a reply hook asked about is said once that is answered; no other is asked for."""
    turn = speaking.turn
    waiting = turn.working.open
    if waiting is None or waiting.calls or waiting.revised:
        return False
    shape = speaking.shape or turn.shape
    heard = heard_again(turn, waiting, _filters(turn, shape), live=_streams(turn))
    return await _conclude(speaking, heard)


async def _permit_again(speaking: _Speaking) -> None:
    """What the paused rounds were offered. Request hooks are asked again where only they can know a tool that waits."""
    turn = speaking.turn
    offers = await speaking.consult(max(speaking.count - 1, 0))  # as the round that waits was told it
    waiting = turn.working.open
    if waiting is None or all(c.name in speaking.batch.tools for c in waiting.calls if c.status == "asked"):
        return
    request = base_request(
        turn, "speak", f"main/r{turn.number}", speaking.pieces, own=speaking.own, offers=offers,
        shape=speaking.shape or turn.shape, carries=speaking.carries, settle=False,
    )  # fmt: skip
    got = await run_request_hooks(turn, request)
    if isinstance(got, Request):
        speaking.allowed(request, got)


def _goes_on(speaking: _Speaking) -> bool:
    """Whether another request follows, and whether it is the wrap-up."""
    stopped = speaking.turn.stopped
    if stopped is not None and not speaking.wrapping:
        if not stopped.wrap_up or not speaking.offering:
            return False
        speaking.wrapping = True
    if speaking.offering and speaking.used_up:
        speaking.wrapping = True
    return True


async def _one_round(speaking: _Speaking) -> Heard | None:
    """One request and its reply, filed. None when a hook stopped the turn before it was sent, or it was too long."""
    turn, brief = speaking.turn, speaking.brief
    purpose: Purpose = "wrap_up" if speaking.wrapping else "speak"
    number = turn.number
    where, rid = f"main/r{number}", f"{turn.id}/{brief.key}/r{number}"
    offers: tuple[Offer, ...] = ()
    if not speaking.wrapping or turn.model.card.needs_tools_with_calls:
        offers = await speaking.consult(speaking.count) if speaking.limit else ()
    pieces = with_conditional(turn, speaking.pieces, speaking.count + 1, 0 if speaking.wrapping else speaking.limit)
    if speaking.wrapping and speaking.offering:
        pieces = (*pieces, WRAP_UP)
    request = base_request(
        turn, purpose, where, pieces, own=speaking.own, offers=offers, shape=speaking.shape or turn.shape,
        carries=speaking.carries,
    )  # fmt: skip
    hooked = turn.plan.on_request[purpose] or turn.above is not None
    got = await run_request_hooks(turn, request) if hooked else request
    if isinstance(got, Stop):
        if speaking.wrapping:
            turn.stopped = Stop(got.reason)
            speaking.wrapping = False
        return None
    if got.offers is not request.offers:
        got = speaking.allowed(request, got)
    if speaking.wrapping and got.model is not request.model:
        got = speaking.wrapped_at(got)
    if len(got.conversation.units) > SLICE:
        await warm_up(turn, got)
    check_shorter(turn, got)
    turn.request = request = wired(got)
    turn.number += 1
    turn.cause = file_request(turn, request, rid).n
    try:
        heard = await listen(turn, request, rid, _filters(turn, request.shape), live=_streams(turn), where=where)
    except ModelError as error:
        if not is_too_long(turn, request, error, rid):
            raise
        return None
    speaking.usage = heard.usage if speaking.usage is None else speaking.usage + (heard.usage or Usage())
    speaking.count += 1
    speaking.step(request.model.card.steps)
    shown = heard.text if heard.text != heard.round.text else None
    unwrapped = shown is not None and request.shape is not None and request.shape.unwraps
    replied = ModelReplied(round=heard.round, purpose=purpose, shown=shown, unwrapped=unwrapped)
    turn.cause = turn.note(replied, where=where).n
    _read(speaking, heard.round)
    if turn.above is not None:
        stop_above(turn, turn.working.round(heard.round.id))
    return heard


def _streams(turn: Turn) -> bool:
    return turn.emit is not None and not turn.plan.holds_drafts


def _filters(turn: Turn, shape: Shape[Any] | None) -> list[tuple[str, TextFilter]]:
    hooks = turn.plan.on["text"]
    if not hooks and (shape is None or shape.filter is None):
        return []
    filters: list[tuple[str, TextFilter]] = []
    if shape is not None and shape.filter is not None:
        filters.append((shape.name, shape.filter()))
    for hook in hooks:
        try:
            filters.append((hook.name, hook.call(turn)))
        except BaseException as error:  # noqa: BLE001 - `fail` lets through what ends the take
            fail(hook.name, "text", error)
    return filters


def _read(speaking: _Speaking, settled: Round) -> None:
    """The value of a round by the brief's shape, merged over rounds; and calls found inside an envelope."""
    reading = speaking.note_value(settled)
    if reading is not None and reading.calls:
        first = len(settled.calls)
        more = tuple(
            replace(c, id=f"{settled.id}/c{first + i}", wire_id=c.wire_id or f"c{first + i}")
            for i, c in enumerate(reading.calls)
        )
        held = speaking.turn.working.round(settled.id)
        speaking.turn.note(RoundSettled(round=replace(held, calls=(*settled.calls, *more))))


def _is_final(speaking: _Speaking, settled: Round) -> bool:
    if not settled.calls:
        return True
    pending = any(c.status == "asked" for c in settled.calls)
    stopped = speaking.turn.stopped
    if not pending or speaking.wrapping or not speaking.offering:
        return True
    return stopped is not None and not stopped.wrap_up


def _why_final(speaking: _Speaking) -> str:
    if speaking.turn.stopped is not None:
        return "the turn was stopped before this call"
    return "no tools may be called here" if not speaking.offering else "the budget for actions was used up"


async def _conclude(speaking: _Speaking, heard: Heard) -> bool:
    """The output chain, then the answer is said. False when it became a draft and the model is asked again."""
    turn, brief = speaking.turn, speaking.brief
    settled = turn.working.round(heard.round.id)
    answer = Answer(key=brief.key, text=heard.text, drafted=heard.text, revised=dict(turn.revised))
    try:
        got = await run_output(turn, answer) if turn.plan.on["output"] else answer
    except AnswerRefused:
        turn.note(RoundSettled(round=withheld(settled)))
        raise
    if isinstance(got, tuple):
        hook, verdict = got
        _revise(speaking, settled, hook.mark, verdict)
        return False
    if got.output is not UNSET or got.unmet:
        turn.output = (got.output, got.source, got.unmet)
    shown = heard.shown if got.text == heard.text else ()
    if got.text != heard.text:
        turn.note(RoundSettled(round=governed(settled, got.text)))
    if turn.plan.holds_drafts:
        release_held(turn, got.text, shown)
    say_text(turn, brief, got, round_id=settled.id, shown=shown)
    speaking.said = got.text
    return True


def _revise(speaking: _Speaking, settled: Round, by: str, verdict: Revise) -> None:
    turn = speaking.turn
    turn.note(RoundSettled(round=replace(settled, revised=correction(settled.id, turn.id, by, verdict))))
    speaking.count -= 1  # revisions have a budget of their own, outside the rounds


def _spoken(speaking: _Speaking) -> Spoken:
    turn, data = speaking.turn, speaking.batch.data
    if data and not speaking.brief.hold_data:
        turn.note(DataPatched(patch=dict(data)))
    turn.done[speaking.brief.key] = SpeakDone(
        read=speaking.read, text=speaking.said, data=data, rounds=speaking.count, usage=speaking.usage
    )
    return Spoken(
        text=speaking.said, value=speaking.value, data=data, rounds=speaking.count, usage=speaking.usage
    )  # fmt: skip
