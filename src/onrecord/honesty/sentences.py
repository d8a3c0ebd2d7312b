"""Entries as people read them: what each one says, in a few words and as a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import to_builtins

from onrecord.conversation.content import plain_text
from onrecord.conversation.display import labelled
from onrecord.conversation.inputs import Answered, Happened, Input, Said, Started
from onrecord.conversation.messages import Round
from onrecord.conversation.outgoing import Outcome
from onrecord.conversation.short import cut, plural, quoted
from onrecord.jsonio import Json, dumps, loads
from onrecord.models.model import scope_parts
from onrecord.record import kinds
from onrecord.record.entry import Body, UnknownBody, kind_of
from onrecord.session.erasure import reason_of

__all__ = (
    "answer_text",
    "brief_of",
    "call_text",
    "context_words",
    "input_text",
    "json_of",
    "place_of",
    "replied_by",
    "reply_text",
    "request_text",
    "result_text",
    "took_ms",
    "units_shown",
)


def call_text(name: str, args: Mapping[str, Json], limit: int = 0) -> str:
    """A call as one would write it: ``price(city="Lisbon", nights=2)``."""
    inside = ", ".join(f"{key}={dumps(value).decode()}" for key, value in args.items())
    return f"{name}({cut(inside, limit)})"


def brief_of(body: Body) -> str:
    """What an entry says, in one line."""
    of_feature = _OF_FEATURES.get(kind_of(body).partition(".")[0])
    if of_feature is not None and (told := of_feature(_builtins_of(body))):
        return told
    if isinstance(body, UnknownBody):
        return bytes(body.raw).decode(errors="replace")
    tell = _BRIEFS.get(type(body))
    return tell(body) if tell is not None else _fields(body)


def input_text(input: Input) -> str:
    """What came in."""
    match input:
        case Said(content=content):
            return quoted(content if isinstance(content, str) else labelled(content))
        case Answered():
            return answer_text(input)
        case Happened(name=name, payload=payload):
            return f"event {name}{_detail(payload)}"
        case Started(name=name, input=given):
            return f"{name} started by hand{_detail(given)}"
        case _:
            return f"wake {input.key}{_detail(getattr(input, 'payload', None))}"


def answer_text(answer: Answered) -> str:
    """What a person answered."""
    told = {True: ["yes"], False: ["no"], None: []}[answer.approved]
    if answer.value is not None:
        told.append(quoted(answer.value) if isinstance(answer.value, str) else dumps(answer.value).decode())
    if answer.note:
        told.append(quoted(answer.note))
    return f"{', '.join(told) or 'nothing'}{f' (by {answer.by})' if answer.by else ''}"


def reply_text(settled: Round) -> str:
    """What a model replied: its words, then its calls; empty where there are neither."""
    told = [quoted(settled.text)] if settled.text.strip() else []
    told += [call_text(c.name, c.args) if c.args or c.raw_args in {"", "{}"} else f"{c.name}({c.raw_args})"
             for c in settled.calls]  # fmt: skip
    return ", ".join(told)


def replied_by(settled: Round) -> str:
    """The model that gave a reply, as names are written; empty where the record does not say.

    Of models that stand in for each other it may be another one than the first, which the request names.
    """
    parts = None if settled.use is None else scope_parts(settled.use.scope)
    return "" if parts is None else f"{parts[0]}:{parts[2]}"


def units_shown(receipt: kinds.Receipt) -> int:
    """How many units of the conversation a request showed; what was inserted between them is none."""
    return sum(s.stop - s.start for s in receipt.spans if s.insert is None)


def request_text(body: kinds.ModelRequested) -> str:
    """Who was asked, and with what."""
    told = [body.model]
    if body.purpose != "speak":
        told.append(body.purpose.replace("_", "-"))
    if (receipt := body.receipt) is not None:
        shown = units_shown(receipt)
        told.append(plural(len(receipt.pieces), "piece"))
        told.append(
            "history erased"
            if receipt.erased
            else f"{shown} of {plural(receipt.units, 'unit')}"
            if shown != receipt.units
            else plural(shown, "unit")
        )
        if inserted := sum(s.insert is not None for s in receipt.spans):
            told.append(plural(inserted, "insert"))
        if receipt.choice != "auto":
            told.append(f"choice {receipt.choice}")
    return ", ".join(told)


def place_of(line: Outcome) -> str:
    """Which step of which flow an outcome is about; empty for one of no flow."""
    return "/".join(str(name) for name in (line.about.get("flow_id"), line.about.get("step_id")) if name)


def context_words(body: kinds.ContextAdded) -> str:
    """What was put into the conversation."""
    return quoted("; ".join(part.text for part in body.content if part.text))


def took_ms(body: kinds.ToolReturned) -> int | None:
    """How long a call ran; None for one that did not."""
    if body.started_at is None or body.ended_at is None:
        return None
    return round((body.ended_at - body.started_at).total_seconds() * 1000)


def result_text(body: kinds.ToolReturned) -> str:
    """What the model reads of a call."""
    return labelled(body.result) or "nothing"


def _opened(b: kinds.TurnOpened) -> str:
    return f"{b.agent or 'an agent'} takes {'a message' if b.input_kind == 'said' else f'input {b.input_kind!r}'}"


def _returned(b: kinds.ToolReturned) -> str:
    took = "" if (ms := took_ms(b)) is None else f" after {ms} ms"
    notes = "".join(f" [{note.by}: {note.text}]" for note in b.notes)
    return f"{b.name} {b.status}{took}: {result_text(b)}{notes}"


def _replied(b: kinds.ModelReplied) -> str:
    cost = ""
    if b.round.use is not None and (usage := b.round.use.usage) is not None:
        cost = f" ({usage.input_tokens} tokens in, {usage.output_tokens} out)"
    return (reply_text(b.round) or "nothing") + cost


def _verdict(b: kinds.VerdictFiled) -> str:
    changed = " with another value" if b.after and b.after != b.before else ""
    return f"{b.by}: {b.verdict}{changed} at {b.moment}{f', {b.why}' if b.why else ''}"


def _attempted(b: kinds.ModelAttempted) -> str:
    status = f" (status {b.status})" if b.status else ""
    left = "".join(f"; without {mark.what}" for mark in b.left_out)
    at = f" at {b.model}" if b.model else ""
    return f"attempt {b.attempt}{at} failed: {b.error}{status}; the next one after {b.wait_s:g} s{left}"


def _cut(b: kinds.TurnInterrupted | kinds.TurnFailed) -> str:
    what = b.cause if isinstance(b, kinds.TurnInterrupted) else f"{b.error} ({b.code})"
    return f"{what}; shown until then: {quoted(plain_text(b.shown))}" if b.shown else f"{what}; nothing was shown"


def _outcome(b: kinds.OutcomeFiled) -> str:
    line = b.line
    leads = f"→ {line.next}" if line.next else ""
    return " ".join(filter(None, (place_of(line), line.kind, line.status, line.code, line.message, leads)))


def _builtins_of(body: Body) -> Any:
    """The fields of a body, also of one that nothing here declares."""
    return json_of(bytes(body.raw)) if isinstance(body, UnknownBody) else to_builtins(body)


def _run(told: Any) -> str:
    """An entry of flows: which run it is about, and where that stands or why it ended. Empty for other fields."""
    run = told.get("run") if isinstance(told, Mapping) else None
    if isinstance(run, str):
        return f"{run} {told.get('reason') or ''}".rstrip()
    if not isinstance(run, Mapping) or not isinstance(run.get("id"), str):
        return ""
    step = f" at {run['step_id']}" if run.get("step_id") else ""
    return f"{run['id']} {run.get('status') or 'running'}{step}"


_ABORT = {"abort": "no further call is made", "warn": "only told"}


def _cost(told: Any) -> str:
    """An entry of a budget: what was spent so far, or which limit was crossed. Empty for other fields."""
    match told:
        case {"what": str(what), "per": str(per), "limit": limit, "actual": actual, "action": str(action)}:
            return f"{what} of the {per}: {actual} is more than {limit}; {_ABORT.get(action, action)}"
        case {"provider": str(provider), "model": str(model), **more}:
            paid = more.get("estimated_usd")
            price = "no price" if paid is None else f"{paid:.4g} dollars"
            read, written = more.get("tokens_input", 0), more.get("tokens_output", 0)
            return f"{provider}:{model}: {read} tokens in, {written} out, {price}"
    return ""


_OF_FEATURES: Mapping[str, Callable[[Any], str]] = {"run": _run, "cost": _cost}
"""Features whose entries are told in words, by how their kinds begin; no feature is imported for it."""


def json_of(raw: bytes) -> Json:
    """What stands in a body that nothing here declares; None when it cannot be read."""
    try:
        return loads(raw)
    except (ValueError, RecursionError):
        return None


def _context(b: kinds.ContextAdded) -> str:
    return f"{b.authority} by {b.writer or 'the application'}: {context_words(b)}"


def _history(b: kinds.HistoryChanged) -> str:
    why = reason_of(b) if b.op == "erase" else ""
    return " ".join(filter(None, (f"{b.op}: {why}" if why else b.op, b.message, b.call, b.by and f"by {b.by}")))


_BRIEFS: Mapping[type[Body], Callable[[Any], str]] = {
    kinds.TurnOpened: _opened,
    kinds.TurnInput: lambda b: input_text(b.input),
    kinds.TurnPaused: lambda b: f"{b.pending.question.by} asks: {quoted(b.pending.question.text)}",
    kinds.TurnResumed: lambda b: f"answered: {answer_text(b.answer)}",
    kinds.TurnInterrupted: _cut,
    kinds.TurnFailed: _cut,
    kinds.TurnClosed: lambda b: b.status,
    kinds.ModelRequested: request_text,
    kinds.ModelAttempted: _attempted,
    kinds.ModelReplied: _replied,
    kinds.RoundSettled: lambda b: reply_text(b.round) or "nothing",
    kinds.ToolStarted: lambda b: call_text(b.name, b.args),
    kinds.ToolReturned: _returned,
    kinds.VerdictFiled: _verdict,
    kinds.OutcomeFiled: _outcome,
    kinds.TextSaid: lambda b: f"{quoted(b.text)}{' (no model wrote it)' if b.verbatim else ''}",
    kinds.DataPatched: lambda b: " ".join((dumps(b.patch).decode(), *(f"without {name}" for name in b.drop))),
    kinds.WakeArmed: lambda b: f"{b.wake.key} at {b.wake.at:%Y-%m-%d %H:%M:%S%z}",
    kinds.WakeDisarmed: lambda b: str(b.key),
    kinds.ContextAdded: _context,
    kinds.HistoryChanged: _history,
    kinds.PieceFiled: lambda b: f"{b.source or 'text'}: {quoted(b.text)}",
    kinds.Noted: lambda b: f"{b.by}: {b.text}{_detail(b.about or None)}",
    kinds.Erased: lambda b: f"{b.was} was erased: {b.why}",
}


def _detail(value: object) -> str:
    return "" if value is None else f" {dumps(value).decode()}"


def _fields(body: Body) -> str:
    """A feature's own body: its fields as they are."""
    told: Iterable[tuple[str, object]] = ((name, getattr(body, name)) for name in body.__struct_fields__)
    return ", ".join(f"{name}={value!r}" for name, value in told)
