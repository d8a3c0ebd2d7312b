"""Facts of the entries that features file: read by the names of their fields, so that no feature is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from onrecord.honesty.fact_readers import Facts, Words, at_path, field, named, shown, word

__all__ = ("FEATURE_FACTS", "FEATURE_VARIANTS")


def _fields(*names: str) -> Facts:
    return {name: field(name) for name in names}


def _list(name: str) -> Callable[[Any, Words], str]:
    """Names, with commas between them."""
    return lambda body, _words: ", ".join(map(shown, at_path(body, name) or ()))


def _count(name: str) -> Callable[[Any, Words], str]:
    return lambda body, _words: str(len(at_path(body, name) or ()))


_RUN: Facts = {
    "flow": lambda body, _words: shown(at_path(body, "run", "flow_id") or at_path(body, "flow")),
    "step": field("run", "step_id"),
    "status": field("run", "status"),
    "reason": field("reason"),
}
_STEP: Facts = _fields("skill", "step", "total", "tool", "note")

FEATURE_FACTS: Final[Mapping[str, Facts]] = {
    "run.started": _RUN,
    "run.moved": _RUN,
    "run.ended": _RUN,
    "run.released": _RUN,
    "run.sent_once": {"key": field("key")},
    "run.held": {},
    "run.imported": {},
    "cost.tick": {
        "model": named("the model", "model"),
        "purpose": field("purpose"),
        "input_tokens": field("tokens_input"),
        "output_tokens": field("tokens_output"),
        "usd": field("estimated_usd"),
        "turn_usd": field("cumulative", "estimated_usd"),
        "session_usd": field("session", "estimated_usd"),
    },
    "cost.limit_hit": {
        "what": word("limit", "what"),
        "per": word("per", "per"),
        "limit": field("limit"),
        "actual": field("actual"),
    },
    "context.evicted": {
        "first": field("first"),
        "last": field("last"),
        "before": field("before"),
        "after": field("after"),
    },
    "window.stayed": _fields("by", "measured", "cap"),
    "context.budget_pressure": _fields("slot", "unit", "cap", "projected"),
    "context.snapshot": {},
    "skill.activated": _fields("skill"),
    "skill.rejected": {**_fields("requested", "current"), "allowed": _list("allowed")},
    "skill.proposed": _fields("skill", "reason"),
    "skill.moved": _fields("source", "to", "by", "witness", "keyword"),
    "skill.route_conflict": {"winner": field("winner", "to"), **_fields("source")},
    "skill.reroute_superseded": _fields("volunteered", "won", "source", "by"),
    "skill.turn_routed": {
        **_fields(
            "by", "source", "to", "scorer", "gap", "witness", "keyword", "dropped", "decider", "picked", "failed"
        ),
        "offered": _list("offered"),
    },
    "skill.classified": _fields("model", "choice", "latency_ms"),
    "skill.step_advanced": _STEP,
    "skill.step_skipped": {**_STEP, **_fields("reason", "policy")},
    "skill.steps_unfinished": {**_fields("skill", "total"), "remaining": _list("remaining")},
    "skill.escalated": _fields("source", "to", "refusals", "after_refusals"),
    "map.engaged": _fields("map", "by", "at", "witness"),
    "map.parked": _fields("map", "by", "at", "idle"),
    "tools.effect": _fields("effect", "outcome", "tool", "target", "reason", "refusal"),
    "credential.settled": _fields("service", "tool", "scheme", "error", "expires_at"),
    "artifacts.minted": _fields("ref", "what", "media_type", "bytes", "label"),
    "artifacts.resolved": _fields("ref", "what", "bytes", "via", "tool"),
    "artifacts.expired": _fields("ref"),
    "artifacts.refused": _fields("op", "reason", "ref", "tool"),
    "artifacts.presented": _fields("ref", "what", "shown_as"),
    "memory.recalled": {
        **_fields("feature", "considered", "chars", "missed"),
        "count": _count("served"),
        "rejected": _count("rejected"),
    },
    "memory.kept": _fields("feature"),
}


def _routed(body: Any) -> str:
    """How a turn found the skill it begins with; ``none`` also where it found none."""
    by = shown(at_path(body, "by"))
    return by if by == "menu" or at_path(body, "to") else "none"


FEATURE_VARIANTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "run.ended": lambda body: shown(at_path(body, "reason")),
    "cost.limit_hit": lambda body: shown(at_path(body, "action")),
    "context.evicted": lambda body: shown(at_path(body, "how")),
    "skill.moved": lambda body: "stayed" if at_path(body, "source") == at_path(body, "to") else "",
    "skill.turn_routed": _routed,
    "skill.steps_unfinished": lambda body: shown(at_path(body, "action")),
    "map.engaged": lambda body: "again" if at_path(body, "reengaged") else "",
    "tools.effect": lambda body: shown(at_path(body, "outcome")),
    "credential.settled": lambda body: shown(at_path(body, "outcome")),
    "artifacts.refused": lambda body: shown(at_path(body, "op")),
    "memory.recalled": lambda body: "" if at_path(body, "served") else "nothing",
}
