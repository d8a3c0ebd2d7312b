"""Silent calls: a director's `judge` and a feature's `consult`. No tools, no streaming, no output hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from onrecord.conversation.messages import Round
from onrecord.errors import ModelError, UsageError
from onrecord.models.model import Model
from onrecord.models.names import as_model
from onrecord.models.request import Purpose, Settings
from onrecord.record.kinds import ModelReplied
from onrecord.session.quoting import CONSULTED
from onrecord.turn.compose import arranged, base_request, run_request_hooks, wired
from onrecord.turn.listen import listen
from onrecord.turn.moments import Stop
from onrecord.turn.receipt import file_request
from onrecord.turn.too_long import check_shorter, is_too_long
from onrecord.turn.turn import Turn
from onrecord.turn.verdicts import fingerprint

if TYPE_CHECKING:
    from onrecord.turn.director import Query

__all__ = ("ask_silently", "consult")

T = TypeVar("T")


async def ask_silently(
    turn: Turn, query: Query[T], purpose: Purpose, round_id: str, where: str, model: Model | None = None
) -> Round:
    """One structured call, recorded. ModelError; UsageError when a hook stops it, since there is no value then."""
    pieces = arranged((*(turn.plan.base_pieces(turn.instructions) if purpose == "judge" else ()), *query.pieces))
    units = turn.working.conversation.units
    carried = turn.admitted if query.carries_input else None
    request = base_request(
        turn, purpose, where, pieces, own=len(units), shape=query.shape if query.shape.schema else None,
        carries=carried, model=model, view=query.view, settings=Settings(max_tokens=query.max_tokens),
    )  # fmt: skip
    while True:
        got = await run_request_hooks(turn, request)
        if isinstance(got, Stop):
            raise UsageError(f"a silent call was stopped: {got.reason}", code="stopped")
        if purpose == "judge":  # a window may consult while it makes room
            check_shorter(turn, got)
        sent = wired(got)
        requested = file_request(turn, sent, round_id)
        try:
            heard = await listen(turn, sent, round_id, (), live=False, where=where)
        except ModelError as error:
            if purpose == "consult" or not is_too_long(turn, sent, error, round_id):
                raise
            continue
        turn.note(ModelReplied(round=heard.round, purpose=purpose), cause=requested.n, where=where)
        return heard.round


async def consult(turn: Turn, query: Query[T], *, where: str, model: Model | str | None = None) -> T:
    """What `Turn.consult` does: the reply read by the query's shape."""
    model = None if model is None else as_model(model)
    # By the question too: two features may choose one key, and must not read each other's replies.
    asked = (query.pieces, query.shape.name, query.shape.schema, query.carries_input, query.max_tokens)
    mark = f"{CONSULTED}{query.key}:{fingerprint(turn, (where, *asked, model.card.name if model else ''))}"
    raw = turn.done.get(mark)
    if raw is not None:
        held = raw if isinstance(raw, Round) else msgspec.json.decode(raw, type=Round)
    else:
        turn.number += 1
        held = await ask_silently(turn, query, "consult", f"{turn.id}/{query.key}/r{turn.number - 1}", where, model)
        turn.done[mark] = held
    return query.shape.read(held).value
