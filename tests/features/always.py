"""What holds of every talk, whichever features an agent has: of its record, of its requests, of what ran."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from onrecord.models.model import scope_of
from onrecord.models.request import Request, Span
from onrecord.record.entry import Entry, kind_of
from onrecord.record.kinds import ModelRequested, ToolStarted, TurnPaused, VerdictFiled
from onrecord.session.codec import dumps_session
from onrecord.session.session import Session
from onrecord.session.walking import Walked, walk
from onrecord.turn.audit import audit
from onrecord.turn.compose import arranged
from tests.features.talk import Play
from tests.providers.wires import WIRES, Wire

__all__ = ("calls_and_results", "every_promise", "no_orphans", "prefixes_are_stable", "record_is_proved", "wired")

REASONS = frozenset({"context.evicted", "history.changed"})
"""Kinds of entries that say why a request does not begin as the one before."""


def every_promise(play: Play) -> None:
    """All of them."""
    record_is_proved(play)
    prefixes_are_stable(play)
    runs_once(play)
    for request in play.requests:
        assert request.pieces == arranged(request.pieces), "pieces stand by place and rank"
        assert request.own - 1 in shown_units(request), "the message that the turn is about is shown"
    for wire in WIRES:
        no_orphans(wire, play.requests[-1])


# ---- the record -----------------------------------------------------------------------------------------------------


def record_is_proved(play: Play) -> None:
    """Numbers without a gap, causes before effects, every request rebuilt, and the session is what it folds to."""
    for id, kept in play.sessions.items():
        entries = [entry for result in play.results if _is_of(result.session, id) for entry in result.entries]
        assert [entry.seq for entry in entries] == list(range(len(entries)))
        places: set[tuple[str, int]] = set()
        for entry in entries:
            assert entry.cause is None or (entry.turn, entry.cause) in places
            places.add((entry.turn, entry.n))
        walked = _walked(play, kept, entries)
        assert not list(audit(walked, kept.digest_key))
        told = walked[-1].session
        assert told is not None
        assert _as_json(replace(told, owner=kept.owner, version=kept.version)) == _as_json(kept)
        lines = play.agent.plan.codec
        assert list(lines.read(lines.lines(entries))) == entries


def _walked(play: Play, kept: Session, entries: Sequence[Entry]) -> list[Walked]:
    return list(walk(Session(key=kept.key, digest_key=kept.digest_key), entries, play.agent.plan.folds))


def _as_json(session: Session) -> Any:
    return json.loads(dumps_session(session))


def _is_of(session: Session | None, id: str) -> bool:
    return session is not None and session.key.id == id


# ---- requests -------------------------------------------------------------------------------------------------------


def shown_units(request: Request) -> list[int]:
    """The places of the units that a request shows."""
    return [at for span in request.view.spans if isinstance(span, Span) for at in range(span.start, span.stop)]


def prefixes_are_stable(play: Play) -> None:
    """Each request shows what the one before it showed, in the same words; where not, an entry between says why.

    A turn that waits for a person keeps its rounds to itself: another one goes on without them. A draft that a rule
    sent back is shown until its next answer.
    """
    for id in play.sessions:
        entries = [entry for result in play.results if _is_of(result.session, id) for entry in result.entries]
        sent = iter([request for request in play.requests if _session_of(request) == id])
        before, of, told, waits, sent_back = None, "", set[str](), set[str](), set[str]()
        for entry in entries:
            told.add(kind_of(entry.body))
            if isinstance(entry.body, TurnPaused):
                waits.add(entry.turn)
            if isinstance(entry.body, VerdictFiled) and entry.body.verdict == "revise":
                sent_back.add(entry.turn)
            if isinstance(entry.body, ModelRequested) and entry.body.purpose != "consult":
                request = next(sent)
                apart = (entry.turn != of and waits & {of, entry.turn}) or of in sent_back
                if before is not None and not apart and not told & REASONS:
                    assert _prefix(request)[: len(_prefix(before))] == _prefix(before)
                before, of, told = request, entry.turn, set[str]()


def _session_of(request: Request) -> str:
    return str(json.loads(request.scope)[-1])


def _prefix(request: Request) -> list[tuple[str, Any]]:
    units = request.conversation.units
    swaps = {swap.unit: swap.shows for swap in request.view.swaps}
    return [(units[at].id, swaps.get(at)) for at in shown_units(request)]


def wired(wire: Wire, request: Request) -> Any:
    """What a wire sends of a request, as JSON."""
    model = wire.make("http://127.0.0.1:9/v1", wire.vendors[0])
    request = replace(request, model=model, scope=scope_of(model.card, "s"), wire=None)
    return json.loads(model.wire(request).body)


def no_orphans(wire: Wire, request: Request) -> None:
    """Every call has its result behind it, every result its call, each once."""
    asked: Counter[str] = Counter()
    for what, id in calls_and_results(wire, wired(wire, request)):
        assert (what == "call") == (asked[id] == 0), f"{what} {id} on {wire.name}"
        asked[id] += 1
    assert set(asked.values()) <= {2}, f"calls without results on {wire.name}"


def calls_and_results(wire: Wire, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """``call`` or ``result`` with the id that joins them, in order."""
    for message in body.get("messages") or body.get("input") or body["contents"]:
        if wire.name == "chat":
            yield from (("call", asked["id"]) for asked in message.get("tool_calls") or ())
            if message["role"] == "tool":
                yield "result", message["tool_call_id"]
        elif wire.name == "responses":
            kinds = {"function_call": "call", "function_call_output": "result"}
            if message.get("type") in kinds:
                yield kinds[message["type"]], message["call_id"]
        elif wire.name == "messages":
            blocks = message["content"] if isinstance(message["content"], list) else ()
            yield from (("call", block["id"]) for block in blocks if block["type"] == "tool_use")
            yield from (("result", block["tool_use_id"]) for block in blocks if block["type"] == "tool_result")
        else:
            yield from (("call", part["functionCall"]["id"]) for part in message["parts"] if "functionCall" in part)
            yield from (
                ("result", part["functionResponse"]["id"]) for part in message["parts"] if "functionResponse" in part
            )


# ---- tools ----------------------------------------------------------------------------------------------------------


def runs_once(play: Play) -> None:
    """What ran was told before, and ran as often as that."""
    started = Counter(body.name for body in play.bodies(ToolStarted))
    for name, times in Counter(name for name, _ in play.ran).items():
        assert times == started[name]
        assert len({body.call for body in play.bodies(ToolStarted) if body.name == name}) == times
