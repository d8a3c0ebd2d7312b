"""A session with a text of its own wherever one can be, and what of it can still be found."""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Raw, json
from msgspec.structs import replace

from onrecord.conversation.content import Structured, Text, Thinking
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Question, Said, Woke, row_key
from onrecord.conversation.messages import ContextMessage, Continuation, Round, ToolCall
from onrecord.conversation.outgoing import Outgoing, Wake
from onrecord.errors import ModelError
from onrecord.record import kinds
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import Pending
from onrecord.session.codec import dumps_session
from onrecord.session.folding import land, refold
from onrecord.session.inbox import Row, outgoing_row
from onrecord.session.session import Session, SlotState
from onrecord.session.store import Change, Store
from onrecord.testing.conformance.asking import loaded, record
from onrecord.testing.conformance.samples import AT, changed, entries_of

__all__ = ("Canary", "canaries", "cut_short", "everything", "folds", "waiting", "where")


class Canary:
    """Makes texts that can be looked for, each once."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self, name: str) -> str:
        self.made.append(f"canary-{name}-51c9")
        return self.made[-1]


def everything(session: Session, canary: Canary, *, at: datetime = AT) -> Change:
    """A turn that leaves a text of its own wherever a turn can leave one, and pauses."""
    name = f"{session.key.id}:said::m{session.seq}~{session.seq}"
    call = ToolCall(
        id=f"{name}/main/r0/c0", wire_id="w", name="pay", raw_args=json.encode({"a": canary("raw-args")}).decode(),
        args={"a": canary("args")},
    )  # fmt: skip
    spoken = Round(
        id=f"{name}/main/r0", content=(Thinking(canary("thinking")), Text(canary("reply"))), calls=(call,),
        continuation=Continuation(protocol="p", scope="s", items=(Raw(json.encode(canary("native"))),)),
        before=(ContextMessage(id="x", content=(Text(canary("before")),)),),
    )  # fmt: skip
    said = Said(canary("message"), key=f"m{session.seq}", reply_preview=canary("preview"))
    receipt = kinds.Receipt(
        pieces=(kinds.PieceMark(source="i", rank=1, digest="d1"),),
        spans=(kinds.SpanMark(insert=ContextMessage(id="i", content=(Text(canary("insert")),))),),
        swaps=(kinds.SwapMark(unit=0, call=0, shows=(Text(canary("swap")),)),), settings={"s": canary("setting")},
    )  # fmt: skip
    question = Question(key=f"{name}/q0", text=canary("question"), by="rule", detail=canary("detail"))
    bodies: tuple[Body, ...] = (
        kinds.TurnOpened(input_kind="said", row=f"said::m{session.seq}", now=AT, manifest={"m": canary("manifest")}),
        kinds.TurnInput(input=said, now=AT),
        kinds.ContextAdded(content=(Structured(kind="k", text=canary("context"), payload=canary("payload")),)),
        kinds.PieceFiled(digest="d1", text=canary("piece"), source="i"),
        kinds.ModelRequested(round=spoken.id, purpose="speak", model="m", receipt=receipt),
        kinds.ModelReplied(round=spoken, shown=canary("shown")),
        kinds.ToolStarted(call=call.id, round=spoken.id, name="pay", args={"a": canary("started")}, key="k"),
        kinds.ToolReturned(call=call.id, round=spoken.id, name="pay", status="returned",
                           result=(Text(canary("result")),)),
        kinds.VerdictFiled(moment="input", by="r", verdict="allow", why=canary("why"), data={"v": canary("verdict")},
                           before_text=canary("was"), after_text=canary("became")),
        kinds.TextSaid(key=f"{name}/main", text=canary("said"), round=spoken.id),
        kinds.DataPatched(patch={f"p{session.seq}": canary("data")}),
        kinds.WakeArmed(wake=Wake(key="wake", at=AT, payload=canary("armed"))),
        kinds.Noted(by="n", text=canary("note")),
        kinds.TurnPaused(pending=Pending(turn=name, row=f"said::m{session.seq}", input=said, now=AT, key="main",
                                         place="r0", question=question, data={"q": canary("pending")})),
    )  # fmt: skip
    made = changed(session, entries_of(session, bodies, turn=name, at=at))
    slots = {
        **made.session.slots, "feature": SlotState(1, {"s": canary("slot")}),
        "summary": SlotState(1, {"s": canary("summary")}, quotes=True),
    }  # fmt: skip
    wake = Woke("wake", at=AT, payload=canary("wake"))
    rows = (
        Row(session=session.key, box="in", key=row_key(wake, ""), body=wake, due=AT + timedelta(days=9000)),
        outgoing_row(session.key, Outgoing(key=f"{name}/main", text=canary("outgoing"), media=canary("media"))),
    )  # fmt: skip
    return replace(made, session=replace(made.session, slots=slots), put=rows)


def cut_short(session: Session, canary: Canary) -> Change:
    """A turn that was interrupted, and failed before: what was shown until then, and what came of hearing it."""
    name = f"{session.key.id}:said::m{session.seq}~{session.seq}"
    opened = kinds.TurnOpened(input_kind="said", row=f"said::m{session.seq}", now=AT)
    said = kinds.TurnInput(input=Said(canary("unheard")), now=AT)
    heard = kinds.TurnInterrupted(
        id=f"{name}/i", cause=canary("cause"), of=name, shown=(Text(canary("cut")),), receipt={"r": canary("heard")}
    )  # fmt: skip
    ended = changed(session, entries_of(session, (opened, said, heard), turn=name))
    failed = kinds.TurnFailed(code=ModelError.default_code, error="ModelError", shown=(Text(canary("failed")),))
    more = entries_of(ended.session, (opened, failed), turn=f"{name}f")
    return replace(changed(ended.session, more), entries=(*ended.entries, *more), kept=0,
                   messages=tuple(land(ended.session, more).conversation.messages))  # fmt: skip


async def waiting(store: Store, key: SessionKey, canary: Canary, question: str = "") -> None:
    """Rows of a session that wait: a message with options, and an answer to a question."""
    options = Raw(json.encode([canary("options")]))
    said = Said(canary("waiting"), key="w")
    await store.put(Row(session=key, box="in", key=row_key(said, ""), body=said, options=options))
    answer = Answered(question or "q", note=canary("answer"))
    await store.put(Row(session=key, box="in", key=row_key(answer, ""), body=answer))


async def canaries(store: Store, key: SessionKey, made: Sequence[str]) -> list[str]:
    """Which texts a reader of this session can still find."""
    session, rows = await store.load(key), [*await store.rows("in", key), *await store.rows("out", key)]
    seen = [b"" if session is None else dumps_session(session), *(json.encode(row) for row in rows)]
    seen += [json.encode(entry) for entry in await record(store, key)]
    return [text for text in made if any(text.encode() in each for each in seen)]


async def folds(store: Store, key: SessionKey | str) -> Session:
    """The stored session, which is what its record folds to."""
    session = await loaded(store, key)
    entries = await record(store, key)
    assert [entry.seq for entry in entries] == list(range(session.seq))
    told = refold(session.key, entries, digest_key=session.digest_key)
    known = {"version": session.version, "owner": session.owner, "parent": session.parent}
    assert dumps_session(replace(told, **known)) == dumps_session(session)
    return session


def where(entry: Entry) -> tuple[Any, ...]:
    """The place of an entry."""
    return entry.seq, entry.n, entry.turn, entry.take, entry.where, entry.at, entry.cause
