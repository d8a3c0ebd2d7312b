"""What a sentence about an entry may say: for each kind its facts, and which of several sentences fits.

A fact is a function of the body and of the words of a language. Entries of features are read by the names of their
fields, so that a record reads the same whether or not the feature that filed it is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from onrecord.conversation.content import plain_text
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import Round
from onrecord.honesty.sentences import answer_text, brief_of, call_text, input_text, reply_text, result_text
from onrecord.jsonio import dumps
from onrecord.record import kinds

__all__ = ("FACTS", "VARIANTS", "Fact", "Facts", "Words", "fields_of", "shown")

Words = Mapping[str, str]
"""The words of a language for what is one of a few, such as a moment or a status."""

Fact = Callable[[Any, Words], str]
Facts = Mapping[str, Fact]


def shown(value: object) -> str:
    """A value as a person reads it: a text as it is, a number short, a time to the second, anything else as JSON."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.6g}"
        case int():
            return str(value)
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S%z}"
        case _:
            try:
                return dumps(value).decode()
            except (TypeError, ValueError):
                return type(value).__name__


def _at(value: Any, *path: str) -> Any:
    """A field of a field, of a body or of the JSON that it was stored as; None where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value


def _field(*path: str) -> Fact:
    return lambda body, _words: shown(_at(body, *path))


def _word(group: str, *path: str) -> Fact:
    """The language's word for what a field says; the field itself where the language has none."""

    def worded(body: Any, words: Words) -> str:
        said = shown(_at(body, *path))
        return words.get(f"{group}.{said}", said)

    return worded


def _named(word: str, *path: str) -> Fact:
    """A name, or the language's word for somebody without one."""
    return lambda body, words: shown(_at(body, *path)) or words[word]


def _because(*path: str) -> Fact:
    """``: `` and a reason, or nothing."""
    return lambda body, _words: f": {why}" if (why := shown(_at(body, *path))) else ""


def fields_of(body: type[Any]) -> Facts:
    """The fields of a body as facts."""
    return {name: _field(name) for name in body.__struct_fields__}


# ---- what is more than a field ---------------------------------------------------------------------------------------


def _brief(body: Any, words: Words) -> str:
    return brief_of(body)


def _prompt(body: Any, words: Words) -> str:
    input = body.input
    return plain_text(input.content) if isinstance(input, Said) else ""


def _took(body: Any, words: Words) -> str:
    if body.started_at is None or body.ended_at is None:
        return ""
    return f"{(body.ended_at - body.started_at).total_seconds() * 1000:.0f}"


def _answer(body: Any, words: Words) -> str:
    return answer_text(body.answer)


def _tools(body: Any, words: Words) -> str:
    return ", ".join(dict.fromkeys(call.name for call in body.round.calls))


def _reply(body: Any, words: Words) -> str:
    """A model's words and calls."""
    settled: Round = body.round
    calls = {0: "", 1: "with a call: "}.get(len(settled.calls), "with calls: ")
    return f"{calls}{reply_text(settled)}"


def _tokens(name: str) -> Fact:
    def counted(body: Any, words: Words) -> str:
        use = body.round.use
        return "" if use is None or use.usage is None else str(getattr(use.usage, name))

    return counted


def _place(body: Any, words: Words) -> str:
    """Which step of which flow, or what else a line is about."""
    line = body.line
    return "/".join(shown(line.about.get(name)) for name in ("flow_id", "step_id") if line.about.get(name)) or line.kind


def _about(name: str) -> Fact:
    return lambda body, _words: shown(body.line.about.get(name))


def _names(body: Any, words: Words) -> str:
    return ", ".join((*body.patch, *body.drop))


_INPUT: Facts = {
    "user_prompt": _prompt,
    "name": _field("input", "name"),
    "key": _field("input", "key"),
    "came_in": lambda body, _words: input_text(body.input),
}
_RUN: Facts = {
    "flow": lambda body, _words: shown(_at(body, "run", "flow_id") or _at(body, "flow")),
    "step": _field("run", "step_id"),
    "status": _field("run", "status"),
    "reason": _field("reason"),
}

FACTS: Final[Mapping[str, Facts]] = {
    "turn.opened": {"agent": _named("the agent", "agent"), "input_kind": _field("input_kind")},
    "turn.input": _INPUT,
    "turn.paused": {
        "by": _field("pending", "question", "by"),
        "question": _field("pending", "question", "text"),
        "audience": _field("pending", "question", "audience"),
    },
    "turn.resumed": {"answer": _answer, "by": _field("answer", "by"), "note": _field("answer", "note")},
    "turn.interrupted": {"cause": _field("cause"), "brief": _brief},
    "turn.failed": {"error": _field("error"), "code": _field("code"), "brief": _brief},
    "turn.closed": {"status": _word("closed", "status")},
    "model.requested": {"model": _named("the model", "model"), "purpose": _field("purpose"), "round": _field("round")},
    "model.attempted": {
        "model": _named("the model", "model"),
        "error": _field("error"),
        "attempt": _field("attempt"),
        "status": _field("status"),
        "wait": _field("wait_s"),
        "brief": lambda body, _words: (brief := brief_of(body))[:1].upper() + brief[1:],
    },
    "model.replied": {
        "tools": _tools,
        "text": lambda body, _words: body.round.text if body.shown is None else body.shown,
        "reply": _reply,
        "model": _named("the model", "round", "use", "model"),
        "input_tokens": _tokens("input_tokens"),
        "output_tokens": _tokens("output_tokens"),
    },
    "round.settled": {"tools": _tools, "reply": lambda body, _words: reply_text(body.round)},
    "tool.started": {
        "tool_name": _field("name"),
        "args": _field("args"),
        "call": lambda body, _words: call_text(body.name, body.args),
    },
    "tool.returned": {
        "tool_name": _field("name"),
        "status": _word("call", "status"),
        "result": lambda body, _words: result_text(body),
        "took_ms": _took,
    },
    "verdict": {
        "by": _field("by"),
        "what": _word("moment", "moment"),
        "moment": _field("moment"),
        "why": _field("why"),
        "because": _because("why"),
    },
    "outcome": {
        "place": _place,
        "flow": _about("flow_id"),
        "step": _about("step_id"),
        "kind": _field("line", "kind"),
        "status": _word("outcome", "line", "status"),
        "code": _field("line", "code"),
        "message": _field("line", "message"),
        "because": _because("line", "message"),
        "next": _field("line", "next"),
        "until": _field("line", "until"),
    },
    "said": {"text": _field("text"), "media": _field("media")},
    "data.patched": {"names": _names, "values": _field("patch")},
    "wake.armed": {"key": _field("wake", "key"), "at": _field("wake", "at")},
    "wake.disarmed": {"key": _field("key")},
    "context.added": {
        "writer": _named("the application", "writer"),
        "authority": _field("authority"),
        "brief": _brief,
    },
    "history.changed": {"op": _field("op"), "by": _field("by"), "brief": _brief},
    "piece.filed": {"source": _field("source"), "text": _field("text")},
    "note": {"by": _field("by"), "text": _field("text"), "about": _field("about")},
    "erased": {"was": _field("was"), "why": _field("why"), "because": _because("why")},
    # Of features.
    "run.started": _RUN,
    "run.moved": _RUN,
    "run.ended": _RUN,
    "run.released": _RUN,
    "run.sent_once": {"key": _field("key")},
    "run.held": {},
    "run.imported": {},
    "cost.tick": {
        "model": _named("the model", "model"),
        "purpose": _field("purpose"),
        "input_tokens": _field("tokens_input"),
        "output_tokens": _field("tokens_output"),
        "usd": _field("estimated_usd"),
        "turn_usd": _field("cumulative", "estimated_usd"),
        "session_usd": _field("session", "estimated_usd"),
    },
    "cost.limit_hit": {
        "what": _word("limit", "what"),
        "per": _word("per", "per"),
        "limit": _field("limit"),
        "actual": _field("actual"),
    },
    "context.evicted": {
        "first": _field("first"),
        "last": _field("last"),
        "before": _field("before"),
        "after": _field("after"),
    },
}
"""The facts of each kind. ``app_name`` is one everywhere, and ``args.NAME`` where ``args`` is."""


# ---- which sentence --------------------------------------------------------------------------------------------------


def _resumed(body: kinds.TurnResumed) -> str:
    return {True: "approved", False: "declined", None: ""}[body.answer.approved]


def _asked(body: kinds.ModelRequested) -> str:
    if body.purpose != "speak":
        return body.purpose
    return "" if body.round.endswith("/r0") else "again"


def _replied(body: kinds.ModelReplied) -> str:
    if body.purpose in {"judge", "consult"}:
        return body.purpose
    return "tools" if body.round.calls else ""


def _verdict(body: kinds.VerdictFiled) -> str:
    return "changed" if body.verdict == "allow" and body.after and body.after != body.before else body.verdict


def _said(body: kinds.TextSaid) -> str:
    if not body.text.strip():
        return "elsewhere"
    return "verbatim" if body.verbatim else ""


VARIANTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "turn.input": lambda body: str(body.input.__struct_config__.tag),
    "turn.resumed": _resumed,
    "turn.closed": lambda body: str(body.status),
    "model.requested": _asked,
    "model.replied": _replied,
    "tool.returned": lambda body: str(body.status),
    "verdict": _verdict,
    "outcome": lambda body: str(body.line.status),
    "said": _said,
    "history.changed": lambda body: str(body.op),
    "run.ended": lambda body: shown(_at(body, "reason")),
    "cost.limit_hit": lambda body: shown(_at(body, "action")),
    "context.evicted": lambda body: shown(_at(body, "how")),
}
"""For kinds of which several things are said: which of them, as the last part of the template's key; empty: none."""
