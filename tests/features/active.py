"""Every feature with something to do in the talk, and what it promises: alone, and beside any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.features.active_knowing import commentary, memory, retrieve, self_explain, skill_graph, skills, watch
from tests.features.active_prompt import (
    artifacts,
    bundle,
    cache_marks,
    choose,
    compaction,
    context,
    instructions,
    media,
    prompt_budget,
    thinking,
    typed,
    window,
)
from tests.features.active_rules import (
    asking_rule,
    budget,
    call_rule,
    check_in,
    closing_rule,
    credentials,
    input_rule,
    output_rule,
    permissions,
    redaction,
    result_rule,
)
from tests.features.promises import Active

__all__ = ("ACTIVE", "EXCLUDE")

EXCLUDE: Mapping[frozenset[str], tuple[str, str]] = {
    frozenset({"window", "compaction"}): ("window", "compaction"),
    frozenset({"skills", "skill graph"}): ("Skills", "SkillGraph"),
}
"""The pairs that one agent cannot have, with the words by which the error names both."""


ACTIVE: Mapping[str, Callable[[], Active]] = {
    "input rule": input_rule, "call rule": call_rule, "asking rule": asking_rule, "result rule": result_rule,
    "output rule": output_rule, "closing rule": closing_rule, "permissions": permissions, "check-in": check_in,
    "credentials": credentials, "budget": budget, "redaction": redaction, "window": window, "compaction": compaction,
    "artifacts": artifacts, "context": context, "cache marks": cache_marks, "prompt budget": prompt_budget,
    "thinking": thinking, "media": media, "choose": choose, "instructions": instructions,
    "bundle": bundle, "typed": typed, "memory": memory,
    "retrieve": retrieve, "skills": skills, "skill graph": skill_graph, "self-explain": self_explain,
    "commentary": commentary, "watch": watch,
}  # fmt: skip
"""Every feature at work, by a name of this registry."""
