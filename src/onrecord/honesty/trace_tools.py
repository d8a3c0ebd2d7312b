"""The eleven tools that read a finished turn: each a function of its trace and the call's arguments.

Whatever is left out is said, and what is not on record is told as that, never as an empty result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onrecord.conversation.usage import Usage, total
from onrecord.honesty.sentences import took_ms
from onrecord.honesty.slices import slice_of
from onrecord.honesty.turn_trace import MOST_CHARS, Trace, part_of
from onrecord.jsonio import Json
from onrecord.record import kinds
from onrecord.record.entry import Entry, kind_of

__all__ = ("TOOLS", "Read", "gone")

Read = Callable[[Trace, Mapping[str, Any]], dict[str, Json]]
"""What a tool does with a trace; ``not_recorded`` in its result says what is missing."""

MOST_FOUND = 25
MOST_NODES = 100
MOST_DEEP = 20
MOST_LINES = 200

_LOST = frozenset({"context.evicted", "cost.limit_hit", "skill.rejected", "artifacts.refused", "artifacts.expired"})
_PROBLEMS = frozenset({"failed", "denied", "invalid", "absent", "partial", "not_run", "cancelled"})


def gone(why: str, **more: Json) -> dict[str, Json]:
    """The result of a tool that has nothing to go by."""
    return {"not_recorded": why, **more}


def _entry_of(trace: Trace, args: Mapping[str, Any]) -> Entry | None:
    return trace.find(int(args["entry"]))


def _no_entry(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    first, last = trace.entries[0].seq, trace.entries[-1].seq
    return gone(f"entry {args['entry']} is not one of this turn, whose entries lie between {first} and {last}")


# ---- what there is ---------------------------------------------------------------------------------------------------


def run_overview(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    tools = dict[str, dict[str, int]]()
    for _, body in trace.bodies(kinds.ToolReturned):
        held = tools.setdefault(body.name, {})
        held[body.status] = held.get(body.status, 0) + 1
    asked = trace.bodies(kinds.ModelRequested)
    end = trace.entries[-1].body
    told: dict[str, Json] = {
        "ended": end.status if isinstance(end, kinds.TurnClosed) else kind_of(end).removeprefix("turn."),
        "entries": {"first": trace.entries[0].seq, "last": trace.entries[-1].seq, "count": len(trace.entries)},
        "asked": trace.lines(trace.of(kinds.TurnInput), 1),
        "answered": trace.lines(trace.said(), MOST_FOUND),
        "models": list(dict.fromkeys(body.model for _, body in asked)),
        "model_calls": len(asked),
        "tools": tools,
        "rules": trace.lines(trace.of(kinds.VerdictFiled), MOST_FOUND),
        "problems": len(_problems(trace)),
    }
    if (usage := _usage(trace)) is not None:
        told["tokens"] = {"input": usage.input_tokens, "output": usage.output_tokens}
    return told


def _usage(trace: Trace) -> Usage | None:
    uses = (body.round.use for _, body in trace.bodies(kinds.ModelReplied))
    return total(use.usage for use in uses if use is not None and use.usage is not None)


def find_context_errors(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    found = _problems(trace)
    return {"found": trace.lines(found, MOST_FOUND), "total": len(found), "looked_at": len(trace.entries)}


def _problems(trace: Trace) -> list[Entry]:
    """What went wrong, was refused, was left out or is gone."""
    return [entry for entry in trace.entries if _is_problem(entry)]


def _is_problem(entry: Entry) -> bool:
    match entry.body:
        case kinds.ToolReturned(status=status):
            return status in _PROBLEMS
        case kinds.VerdictFiled(verdict=verdict):
            return verdict in {"deny", "revise", "stop"}
        case kinds.ModelRequested(receipt=receipt):
            return receipt is not None and bool(receipt.left_out)
        case kinds.ModelAttempted() | kinds.TurnFailed() | kinds.TurnInterrupted() | kinds.Erased():
            return True
        case body:
            return kind_of(body) in _LOST


def find_in_trace(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    wanted = str(args["text"]).casefold()
    hits = [e for e in trace.entries if wanted in f"{trace.sentence(e)}\n{trace.words(e)}".casefold()]
    return {"found": trace.lines(hits, MOST_FOUND), "total": len(hits), "looked_at": len(trace.entries)}


def read_narrative(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    told = [entry for entry in trace.entries if trace.sentence(entry)]
    start = int(args.get("start", 0))
    lines = [f"[{entry.seq}] {trace.sentence(entry)}" for entry in told[start : start + MOST_LINES]]
    return {"lines": lines, "start": start, "total": len(told)}


# ---- one entry, and what led to it -----------------------------------------------------------------------------------


def trace_node(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    entry = _entry_of(trace, args)
    if entry is None:
        return _no_entry(trace, args)
    chain = trace.record.why(entry.seq)
    led_to = [e.seq for e in trace.entries if e.cause == entry.n and e is not entry]
    return {
        **trace.line(entry), "kind": kind_of(entry.body), "where": entry.where, "take": entry.take,
        "caused_by": chain[-2].seq if len(chain) > 1 else None, "led_to": led_to[:MOST_FOUND],
    }  # fmt: skip


def trace_slice(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    entry = _entry_of(trace, args)
    if entry is None:
        return _no_entry(trace, args)
    depth = min(int(args.get("depth", MOST_DEEP)), MOST_DEEP)
    chain = trace.record.why(entry.seq)[-depth:]
    held = [e for e in slice_of(trace.record, entry.seq) if e.seq >= chain[0].seq]
    return {"slice": trace.lines(held[-MOST_NODES:], MOST_NODES), "total": len(held)}


def backtrack(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    said = trace.said()
    if not said:
        return gone("the agent said nothing in this turn")
    wanted = str(args["text"]).casefold()
    path = [e for e in slice_of(trace.record, said[-1].seq) if wanted in trace.words(e).casefold()]
    told: dict[str, Json] = {"path": trace.lines(path, MOST_FOUND), "total": len(path)}
    if not path:
        return gone("nothing that led to the answer holds these words, as far as it can be read", **told)
    return {"first": path[0].seq, **told}


def who_wrote(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    name = str(args["name"])
    if name.startswith("data."):
        key = name.removeprefix("data.")
        found = [e for e, body in trace.bodies(kinds.DataPatched) if key in body.patch or key in body.drop]
    elif name in _WRITERS:
        found = trace.of(*_WRITERS[name])
    else:
        return gone(f"nothing on record is called {name!r}", names=[*_WRITERS, "data.NAME"])
    return {"written_by": trace.lines(found[:MOST_NODES], MOST_NODES), "total": len(found)}


_WRITERS: Mapping[str, tuple[type[Any], ...]] = {
    "history": (
        kinds.TurnInput, kinds.ModelReplied, kinds.RoundSettled, kinds.ToolReturned, kinds.TextSaid,
        kinds.ContextAdded, kinds.HistoryChanged,
    ),
    "question": (kinds.TurnInput,),
    "answer": (kinds.ModelReplied, kinds.RoundSettled, kinds.VerdictFiled, kinds.TextSaid),
    "requests": (kinds.ModelRequested,),
    "data": (kinds.DataPatched,),
    "timers": (kinds.WakeArmed, kinds.WakeDisarmed),
}  # fmt: skip


def get_value(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    entry = _entry_of(trace, args)
    if entry is None:
        return _no_entry(trace, args)
    words, start = trace.words(entry), int(args.get("start", 0))
    if not words:
        return gone("this entry holds no text, or none that the conversation still has", **trace.line(entry))
    return {"entry": entry.seq, "text": part_of(words, MOST_CHARS, start), "start": start, "total_chars": len(words)}


# ---- calls -----------------------------------------------------------------------------------------------------------


def inspect_tool_call(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    entry = _entry_of(trace, args)
    if entry is None:
        return _no_entry(trace, args)
    call = getattr(entry.body, "call", "")
    if not call or not isinstance(call, str):
        return gone(f"entry {entry.seq} is about no call of a tool", calls=_calls(trace))
    about = [e for e in trace.entries if getattr(e.body, "call", "") == call]
    told: dict[str, Json] = {"entries": trace.lines(about, MOST_FOUND)}
    for e in about:
        if isinstance(e.body, (kinds.ToolStarted, kinds.ToolReturned)):
            told["tool"] = e.body.name
        if isinstance(e.body, kinds.ToolReturned):
            told |= _returned(e.body)
    return {
        **told, "arguments": part_of(trace.arguments(call), MOST_CHARS),
        "result": part_of(trace.result(call), MOST_CHARS),
    }  # fmt: skip


def _returned(body: kinds.ToolReturned) -> dict[str, Json]:
    told: dict[str, Json] = {"status": body.status}
    if (ms := took_ms(body)) is not None:
        told["took_ms"] = ms
    if body.spent is not None:
        told["tokens"] = {"input": body.spent.input_tokens, "output": body.spent.output_tokens}
    return told


def _calls(trace: Trace) -> list[Json]:
    return [entry.seq for entry in trace.of(kinds.ToolReturned)][:MOST_NODES]


def inspect_tool_run(trace: Trace, args: Mapping[str, Any]) -> dict[str, Json]:
    name = str(args["tool"])
    returned = trace.bodies(kinds.ToolReturned)
    found = [(e, body) for e, body in returned if body.name == name]
    if not found:
        called = dict.fromkeys(body.name for _, body in returned)
        return gone(f"{name!r} was not called in this turn", called=list(called))
    calls: list[Json] = [{**trace.line(e), **_returned(body)} for e, body in found[:MOST_NODES]]
    return {"calls": calls, "total": len(found), "inside": "what a tool did inside itself is not on this record"}


# ---- how they are described ------------------------------------------------------------------------------------------

_ENTRY: dict[str, Json] = {"entry": {"type": "integer", "description": "The number of an entry."}}
_TEXT: dict[str, Json] = {"text": {"type": "string", "minLength": 1, "description": "The words to look for."}}
_START: dict[str, Json] = {
    "start": {"type": "integer", "minimum": 0, "description": "Where to go on, where there was more."}
}

TOOLS: Mapping[str, tuple[Read, str, dict[str, Json], tuple[str, ...]]] = {
    "run_overview": (
        run_overview,
        "What an earlier turn of this conversation came to: question, answer, models, tools, rules, problems.",
        {},
        (),
    ),
    "find_context_errors": (
        find_context_errors,
        "What went wrong in an earlier turn: failed or denied calls, failed models, things left out or erased.",
        {},
        (),
    ),
    "find_in_trace": (find_in_trace, "The entries of an earlier turn that hold some words.", _TEXT, ("text",)),
    "trace_node": (
        trace_node, "One entry of an earlier turn, what caused it and what it led to.", _ENTRY, ("entry",)
    ),
    "trace_slice": (
        trace_slice,
        "All entries that led to one, in order.",
        {
            **_ENTRY,
            "depth": {"type": "integer", "minimum": 1, "maximum": MOST_DEEP, "description": "How many causes back."},
        },
        ("entry",),
    ),
    "backtrack": (
        backtrack,
        "Where some words of your answer come from: the entries that led to it and hold them, the first one first.",
        _TEXT,
        ("text",),
    ),
    "who_wrote": (
        who_wrote,
        "Which entries wrote something: history, question, answer, requests, data, data.NAME or timers.",
        {"name": {"type": "string", "minLength": 1, "description": "What was written."}},
        ("name",),
    ),
    "get_value": (get_value, "The whole text of an entry.", {**_ENTRY, **_START}, ("entry",)),
    "inspect_tool_call": (
        inspect_tool_call, "One call of a tool: arguments, result, rules. Name any entry of the call.", _ENTRY,
        ("entry",),
    ),
    "inspect_tool_run": (
        inspect_tool_run,
        "All calls of one tool in an earlier turn: status, time, what they spent.",
        {"tool": {"type": "string", "minLength": 1, "description": "The name of the tool."}},
        ("tool",),
    ),
    "read_narrative": (read_narrative, "An earlier turn told in sentences, in order.", _START, ()),
}  # fmt: skip
"""By name: what it does, what the model is told of it, its own parameters, and which of them it needs."""
