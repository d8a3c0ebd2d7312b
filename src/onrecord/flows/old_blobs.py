"""Session blobs of the library that flows come from, read into our values. Version 4 is checked whole, 3.x is mended.

Keys are snake_case or camelCase. Keys that nobody knows are left behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast, get_args

import msgspec
from msgspec import Struct

from onrecord.conversation.inputs import Said, input_key
from onrecord.conversation.messages import Message
from onrecord.conversation.transcript import messages_from
from onrecord.errors import UsageError
from onrecord.flows.history_events import events_to_history
from onrecord.flows.keys import claim_key, run_id
from onrecord.flows.state import Bucket, FlowState, Run, RunStatus, TriggerKind, Waiting, bucket_key
from onrecord.jsonio import Json, dumps, is_json, loads

__all__ = ("FlowIdOf", "Imported", "Unreadable", "read_blob")

FlowIdOf = Callable[[str], str]
"""The flow that a trigger of an old session belongs to now."""

Object = Mapping[str, Any]

LEGACY = "legacy"
"""The trigger key of a run that a 3.x session was in the middle of."""

INSTANT = re.compile(r":(?=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$)")
"""Where a nonce begins that is a time: it holds colons of its own."""

TALKS = ("prompt", "collect")


class Unreadable(Exception):
    """Why a blob is none, with its place and without its content."""


class Imported(Struct, frozen=True, kw_only=True):
    """What a blob says. ``inputs`` are the keys of messages that were handled, ``metadata`` is the host's own."""

    state: FlowState
    data: Mapping[str, Json]
    inputs: tuple[str, ...] = ()
    history: tuple[Message, ...] = ()
    metadata: Mapping[str, Json] = {}
    last_user_at: datetime | None = None
    last_assistant_at: datetime | None = None


def read_blob(blob: object, session: str, flow_id_of: FlowIdOf, now: datetime) -> Imported:
    """The blob of this session: a mapping, or its JSON. Raises `Unreadable`."""
    if isinstance(blob, (str, bytes)):
        try:
            blob = loads(blob)
        except msgspec.DecodeError:
            raise Unreadable("it is not valid JSON") from None
    elif not is_json(blob):
        raise Unreadable("it holds what JSON cannot")
    else:
        blob = loads(dumps(blob))  # dates are text from here on, whatever driver they came from
    held = _object(blob, "it")
    if "v" in held:
        return _v4(held, session)
    if not isinstance(held.get("data"), Mapping):
        raise Unreadable("it is no session: it has neither a version nor data")
    return _v3(held, session, flow_id_of, now)


# ---- version 4 ----------------------------------------------------------------------------------------------------


def _v4(blob: Object, session: str) -> Imported:
    if blob["v"] != 4 or isinstance(blob["v"], bool):
        raise Unreadable("its v is not 4")
    if blob.get("id") != session:
        raise Unreadable("its id is another session's")
    _whole(blob.get("version"), "version")
    inputs = _list(blob, "inputs")
    if not all(isinstance(id, str) for id in inputs):
        raise Unreadable("inputs holds something else than texts")
    runs = tuple(_run(run, f"runs[{place}]") for place, run in enumerate(_list(blob, "runs")))
    claims = {
        key: _instant(_object(claim, f"claims[{place}]"), "at", f"claims[{place}]")
        for place, (key, claim) in enumerate(_object(blob.get("claims"), "claims").items())
    }
    return Imported(
        state=FlowState(runs=runs, **_claimed(claims, runs, session)), data=_object(blob.get("data"), "data"),
        inputs=tuple(input_key(Said("", key=id)) for id in inputs if id), history=_history(blob),
        metadata=_object(blob.get("metadata"), "metadata"),
        last_user_at=_instant_if(blob, "last_user_at"), last_assistant_at=_instant_if(blob, "last_assistant_at"),
    )  # fmt: skip


def _run(blob: object, at: str) -> Run:
    held = _object(blob, at)
    trigger = _object(held.get("trigger"), f"{at}.trigger")
    flow, step = _text(held, "flow_id", at), _get(held, "step_id")
    if step is not None and not isinstance(step, str):
        raise Unreadable(f"{at}.step_id is neither a text nor null")
    staying = held.get("staying") is True
    lines = _outcomes(held, at)
    visits = _counts(held, "visits", at)
    waiting = _get(held, "waiting")
    return Run(
        id=_text(held, "id", at), flow_id=flow, anchor=_text(held, "anchor", at),
        dedupe_key=_text(held, "dedupe_key", at), trigger_key=_text(trigger, "key", f"{at}.trigger"),
        trigger_kind=cast(TriggerKind, _one_of(trigger, "kind", get_args(TriggerKind), f"{at}.trigger")),
        started_at=_instant(held, "started_at", at), step_id=step,
        status=cast(RunStatus, _one_of(held, "status", get_args(RunStatus), at)), payload=trigger.get("payload"),
        input=held.get("input"), hop=_whole(held.get("hop"), f"{at}.hop"),
        suspended_at=_instant_if(held, "suspended_at", at), staying=staying,
        waiting=None if waiting is None else _waiting(waiting, f"{at}.waiting"), asked=_counts(held, "asked", at),
        visits=visits, failures=_failures(lines, step), talked=_talked(lines, step if staying else None),
        acted=bool(visits),
    )  # fmt: skip


def _waiting(blob: object, at: str) -> Waiting:
    held = _object(blob, at)
    kind: Any = _one_of(held, "kind", ("timer", "event"), at)
    event = held.get("event")
    if event is not None and not isinstance(event, str):
        raise Unreadable(f"{at}.event is no text")
    return Waiting(
        kind=kind, key=_text(held, "key", at), until=_instant(held, "until", at), set_at=_instant(held, "set_at", at),
        event=event or "",
    )  # fmt: skip


def _outcomes(run: Object, at: str) -> Sequence[Object]:
    lines = run.get("outcomes")
    if not isinstance(lines, list):
        raise Unreadable(f"{at}.outcomes is no list")
    return [line for line in lines if isinstance(line, Mapping)]


def _failures(lines: Sequence[Object], step: str | None) -> int:
    """How often the model failed in a row at the step where the run is."""
    count = 0
    for line in reversed(lines):
        if line.get("status") != "deferred" or line.get("kind") not in TALKS or _get(line, "step_id") != step:
            break
        count += 1
    return count


def _talked(lines: Sequence[Object], stays: str | None) -> str:
    """The talk step that a run took last: where it stays, or what its lines say."""
    taken = (_get(line, "step_id") for line in reversed(lines) if line.get("kind") in TALKS)
    return stays or next((step for step in taken if isinstance(step, str)), "")


# ---- claims -------------------------------------------------------------------------------------------------------


def _claimed(claims: Mapping[str, datetime], runs: Sequence[Run], session: str) -> dict[str, Any]:
    """Claims in buckets, and those of lines that are said once."""
    known = {bucket_key(run.flow_id, run.anchor) for run in runs}
    known |= {key[:-1] for key in claims if key.endswith(":")}
    buckets: dict[str, Bucket] = {}
    sent: dict[str, datetime] = {}
    for key, at in sorted(claims.items(), key=lambda held: held[1]):
        splits = list(_splits(key, known, session))
        if key.endswith(f":{session}") or not splits:
            # A flow's claim whose nonce is the session's id reads the same: it is kept as both. And none is lost.
            sent[key] = at
        for place, nonce in splits:
            buckets[place] = buckets.get(place, Bucket()).with_claim(nonce, at)
    return {"buckets": buckets, "sent": sent}


def _splits(key: str, known: set[str], session: str) -> Iterator[tuple[str, str]]:
    """A claim's key as bucket and nonce: every way in which it may be meant where nothing tells.

    Flow ids, anchors and nonces may all hold colons. One bucket too many says nothing that the key does not say; one
    too few would let a flow run twice.
    """
    if key.endswith(":"):
        yield key[:-1], ""
        return
    places = [place for place in known if key.startswith(f"{place}:")]
    here = key.find(f":{session}:")
    if here > 0:
        places.append(key[: here + len(session) + 1])
    if not places and (timed := INSTANT.search(key)):
        places = [key[: timed.start()]]
    if not places:
        colons = [place for place, sign in enumerate(key) if sign == ":"][1:]
        places = [key[:place] for place in colons]
    for place in dict.fromkeys(places):
        yield place, key[len(place) + 1 :]


# ---- 3.x ----------------------------------------------------------------------------------------------------------


def _v3(blob: Object, session: str, flow_id_of: FlowIdOf, now: datetime) -> Imported:
    runs: tuple[Run, ...] = ()
    claims: dict[str, datetime] = {}
    flow = _id_of(_get(blob, "current_flow"))
    if flow:
        step, begun = _id_of(_get(blob, "current_step")), _entered(_get(blob, "current_flow"), now)
        runs = (_legacy(flow, step, session, begun),)
        claims[claim_key(flow, session, "")] = begun
    for held in _each(_get(blob, "flow_history")):
        if held.get("completed") and (id := _id_of(_get(held, "flow_id")) or _id_of(held) or _id_of(held.get("flow"))):
            claims.setdefault(claim_key(id, session, ""), _when(held, ("exited_at", "completed_at", "entered_at"), now))
    signals = blob.get("signals")
    triggers = signals.get("triggers") if isinstance(signals, Mapping) else None
    for key, fired in triggers.items() if isinstance(triggers, Mapping) else ():
        at = _when(fired if isinstance(fired, Mapping) else {"at": fired}, ("last_fired_at", "fired_at", "at"), now)
        if id := flow_id_of(str(key)):
            claims.setdefault(claim_key(id, session, ""), at)
    metadata = blob.get("metadata")
    return Imported(
        state=FlowState(runs=runs, **_claimed(claims, runs, session)), data=blob["data"], history=_history(blob),
        metadata=metadata if isinstance(metadata, Mapping) else {},
    )  # fmt: skip


def _legacy(flow: str, step: str, session: str, begun: datetime) -> Run:
    """The run that a 3.x session was in the middle of: it asks at its step, or begins."""
    return Run(
        id=run_id(flow, LEGACY), flow_id=flow, anchor=session, dedupe_key=claim_key(flow, session, ""),
        trigger_kind="message", trigger_key=LEGACY, started_at=begun, step_id=step or None,
        status="asking" if step else "running", visits={step: 1} if step else {}, acted=bool(step),
    )  # fmt: skip


def _id_of(value: object) -> str:
    """An id, bare or in a mapping."""
    value = value.get("id") if isinstance(value, Mapping) else value
    return value if isinstance(value, str) else ""


def _each(value: object) -> Iterator[Object]:
    yield from (held for held in value if isinstance(held, Mapping)) if isinstance(value, list) else ()


def _entered(value: object, now: datetime) -> datetime:
    return _when(value, ("entered_at",), now) if isinstance(value, Mapping) else now


def _when(held: Object, names: Sequence[str], now: datetime) -> datetime:
    """The first of these instants that is one, else now: old sessions have dates of all sorts."""
    for name in names:
        if (at := _as_instant(_get(held, name))) is not None:
            return at
    return now


# ---- shapes -------------------------------------------------------------------------------------------------------


def _history(blob: Object) -> tuple[Message, ...]:
    held = blob.get("history")
    if held is None:
        return ()
    if not isinstance(held, list):
        raise Unreadable("history is no list")
    try:
        is_events = bool(held) and all(isinstance(item, Mapping) and "kind" in item for item in held)
        return messages_from(events_to_history(held) if is_events else held, "import")
    except UsageError as problem:
        raise Unreadable(str(problem)) from None


def _get(held: Object, name: str) -> Any:
    """A value under its name, or under the same in camelCase."""
    if name in held:
        return held[name]
    first, *rest = name.split("_")
    return held.get(first + "".join(word.capitalize() for word in rest))


def _object(value: object, what: str) -> Object:
    if not isinstance(value, Mapping):
        raise Unreadable(f"{what} is no mapping")
    return value


def _list(blob: Object, name: str) -> Sequence[Any]:
    value = blob.get(name)
    if not isinstance(value, list):
        raise Unreadable(f"{name} is no list")
    return value


def _text(held: Object, name: str, at: str) -> str:
    value = _get(held, name)
    if not isinstance(value, str):
        raise Unreadable(f"{at}.{name} is no text")
    return value


def _one_of(held: Object, name: str, allowed: Sequence[str], at: str) -> str:
    value = _text(held, name, at)
    if value not in allowed:
        raise Unreadable(f"{at}.{name} is none of {', '.join(allowed)}")
    return value


def _whole(value: object, what: str) -> int:
    if type(value) is not int or value < 0:
        raise Unreadable(f"{what} is no whole number from 0 on")
    return value


def _counts(held: Object, name: str, at: str) -> Mapping[str, int]:
    counts = _object(held.get(name), f"{at}.{name}")
    for count in counts.values():
        _whole(count, f"{at}.{name}")
    return counts


def _instant(held: Object, name: str, at: str) -> datetime:
    value = _as_instant(_get(held, name))
    if value is None:
        raise Unreadable(f"{at}.{name} is no instant")
    return value


def _instant_if(held: Object, name: str, at: str = "it") -> datetime | None:
    return None if _get(held, name) is None else _instant(held, name, at)


def _as_instant(value: object) -> datetime | None:
    """ISO 8601 text with an offset, as all stored dates are."""
    if not isinstance(value, str):
        return None
    try:
        at = msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        return None
    return at if at.utcoffset() is not None else None
