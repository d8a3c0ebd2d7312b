"""What a sentence about an entry may say: for each kind its facts, and which of several sentences fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from onrecord.conversation.content import plain_text
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import Round
from onrecord.conversation.short import quoted
from onrecord.honesty.fact_readers import Fact, Facts, Words, at_path, because, field, named, shown, word
from onrecord.honesty.feature_facts import FEATURE_FACTS, FEATURE_VARIANTS
from onrecord.honesty.sentences import (
    answer_text,
    brief_of,
    call_text,
    context_words,
    input_text,
    place_of,
    replied_by,
    reply_text,
    result_text,
    took_ms,
)
from onrecord.record import kinds

__all__ = ("FACTS", "VARIANTS")


# ---- what is more than a field ---------------------------------------------------------------------------------------


def _brief(body: Any, words: Words) -> str:
    return brief_of(body)


def _prompt(body: Any, words: Words) -> str:
    input = body.input
    return plain_text(input.content) if isinstance(input, Said) else ""


def _took(body: Any, words: Words) -> str:
    return shown(took_ms(body))


def _answer(body: Any, words: Words) -> str:
    return answer_text(body.answer)


def _tools(body: Any, words: Words) -> str:
    return ", ".join(dict.fromkeys(call.name for call in body.round.calls))


def _reply(body: Any, words: Words) -> str:
    """A model's words and calls."""
    settled: Round = body.round
    calls = {0: "", 1: words["with a call"]}.get(len(settled.calls), words["with calls"])
    return f"{calls}{reply_text(settled) or words['nothing']}"


def _tokens(name: str) -> Fact:
    def counted(body: Any, words: Words) -> str:
        use = body.round.use
        return "" if use is None or use.usage is None else str(getattr(use.usage, name))

    return counted


def _place(body: Any, words: Words) -> str:
    """Which step of which flow, or what else a line is about."""
    return place_of(body.line) or body.line.kind


def _about(name: str) -> Fact:
    return lambda body, _words: shown(body.line.about.get(name))


def _names(body: Any, words: Words) -> str:
    return ", ".join((*body.patch, *body.drop))


def _detail(body: Any, words: Words) -> str:
    """What came with an event, a start or a timer, behind a colon; or nothing."""
    held = at_path(body, "input", "payload")
    held = at_path(body, "input", "input") if held is None else held
    return "" if held is None else f": {shown(held)}"


def _value(body: Any, words: Words) -> str:
    """What a person answered with, as text or JSON."""
    return quoted(shown(body.answer.value)) if body.answer.value is not None else words["nothing"]


_INPUT: Facts = {
    "user_prompt": _prompt,
    "name": field("input", "name"),
    "key": field("input", "key"),
    "detail": _detail,
    "came_in": lambda body, _words: input_text(body.input),
}
FACTS: Final[Mapping[str, Facts]] = {
    "turn.opened": {"agent": named("the agent", "agent"), "input_kind": field("input_kind")},
    "turn.input": _INPUT,
    "turn.paused": {
        "by": field("pending", "question", "by"),
        "question": field("pending", "question", "text"),
        "audience": field("pending", "question", "audience"),
    },
    "turn.resumed": {
        "answer": _answer,
        "value": _value,
        "by": field("answer", "by"),
        "note": field("answer", "note"),
        "noted": because("answer", "note"),
    },
    "turn.interrupted": {"cause": field("cause"), "brief": _brief},
    "turn.failed": {"error": field("error"), "code": field("code"), "brief": _brief},
    "turn.closed": {"status": word("closed", "status")},
    "model.requested": {"model": named("the model", "model"), "purpose": field("purpose"), "round": field("round")},
    "model.attempted": {
        "model": named("the model", "model"),
        "error": field("error"),
        "attempt": field("attempt"),
        "status": field("status"),
        "wait": field("wait_s"),
        "brief": lambda body, _words: (brief := brief_of(body))[:1].upper() + brief[1:],
    },
    "model.replied": {
        "tools": _tools,
        "text": lambda body, _words: body.round.text if body.shown is None else body.shown,
        "reply": _reply,
        "replied_by": lambda body, _words: replied_by(body.round),
        "model": named("the model", "round", "use", "model"),
        "input_tokens": _tokens("input_tokens"),
        "output_tokens": _tokens("output_tokens"),
    },
    "round.settled": {"tools": _tools, "reply": lambda body, words: reply_text(body.round) or words["nothing"]},
    "tool.started": {
        "tool_name": field("name"),
        "args": field("args"),
        "call": lambda body, _words: call_text(body.name, body.args),
    },
    "tool.returned": {
        "tool_name": field("name"),
        "status": word("call", "status"),
        "result": lambda body, _words: result_text(body),
        "took_ms": _took,
    },
    "verdict": {
        "by": field("by"),
        "what": word("moment", "moment"),
        "moment": field("moment"),
        "why": field("why"),
        "because": because("why"),
    },
    "outcome": {
        "place": _place,
        "flow": _about("flow_id"),
        "step": _about("step_id"),
        "kind": field("line", "kind"),
        "status": word("outcome", "line", "status"),
        "code": field("line", "code"),
        "message": field("line", "message"),
        "because": because("line", "message"),
        "next": field("line", "next"),
        "until": field("line", "until"),
    },
    "said": {"text": field("text"), "media": field("media")},
    "data.patched": {"names": _names, "values": field("patch")},
    "wake.armed": {"key": field("wake", "key"), "at": field("wake", "at")},
    "wake.disarmed": {"key": field("key")},
    "context.added": {
        "writer": named("the application", "writer"),
        "authority": field("authority"),
        "text": lambda body, _words: context_words(body),
        "brief": _brief,
    },
    "history.changed": {"op": field("op"), "by": field("by"), "brief": _brief},
    "piece.filed": {"source": field("source"), "text": field("text")},
    "note": {"by": field("by"), "text": field("text"), "about": field("about")},
    "erased": {"was": field("was"), "why": field("why"), "because": because("why")},
    **FEATURE_FACTS,
}
"""The facts of each kind. ``app_name`` is one everywhere, and ``args.NAME`` where ``args`` is."""


# ---- which sentence --------------------------------------------------------------------------------------------------


def _resumed(body: kinds.TurnResumed) -> str:
    if body.answer.expired:
        return "expired"
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
    **FEATURE_VARIANTS,
}
"""For kinds of which several things are said: which of them, as the last part of the template's key; empty: none."""
