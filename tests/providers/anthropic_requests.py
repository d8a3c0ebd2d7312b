"""Requests as Messages bodies, and a projection without lanes to compare them with."""

from __future__ import annotations

import itertools
import json
from typing import Any

from onrecord.conversation.messages import ContextMessage, Unit
from onrecord.conversation.render import context_text
from onrecord.models.model import ModelCard
from onrecord.models.request import Request
from onrecord.models.unit_bytes import in_words
from onrecord.providers.anthropic.cards import Rules, anthropic_card, rules_of
from onrecord.providers.anthropic.project import AnthropicProjection
from tests.models import fresh

BUDGET, ADAPTIVE, NONE = "claude-sonnet-4-5", "claude-opus-4-8", "claude-3-5-haiku-latest"


def projection(model: str = BUDGET, rules: Rules | None = None, **fields: Any) -> AnthropicProjection:
    """Messages for a model."""
    card: ModelCard = anthropic_card(model, **fields)
    return AnthropicProjection(card, rules or rules_of(model))


def body_of(asked: Request, wire: AnthropicProjection | None = None) -> dict[str, Any]:
    """A body as what it means."""
    held: dict[str, Any] = json.loads((wire or projection()).wire(asked).body)
    return held


def bytes_of(unit: Unit, wire: AnthropicProjection | None = None, scope: str = "") -> str:
    """One unit on the wire, each run behind the side it is on."""
    return " ".join(f"{kind}:{body.decode()}" for kind, body in (wire or projection()).runs(unit, scope))


def words(asked: Request, wire: AnthropicProjection | None = None) -> list[str]:
    """Side and words of each entry."""
    return [
        f"{entry['role']}: " + " | ".join(str(block.get("text", block["type"])) for block in entry["content"])
        for entry in body_of(asked, wire)["messages"]
    ]


def fresh_body(wire: AnthropicProjection, asked: Request) -> bytes:
    """The body of a request, every unit encoded anew and the entries put together one by one."""
    pieces = sorted(asked.pieces, key=lambda piece: piece.rank)
    by_place: dict[str, list[str]] = {"system": [], "turn": [], "trailing": []}
    for piece in pieces:
        by_place[piece.place] += [piece.text] if piece.text.strip() else []
    system, runs, leading = by_place["system"], list[Any](), True
    shown, turn_at = fresh._shown(asked)
    for at, (unit, index) in enumerate([*shown, (None, None)]):
        if at == turn_at and (parts := fresh._turn_parts(asked, by_place["turn"])):
            leading = False
            runs += wire.user(in_words(parts, wire) if asked.view.stand_ins else parts)
        if unit is None:
            break
        if leading and isinstance(unit, ContextMessage) and unit.authority != "data":
            system += [text] if (text := context_text(unit)) else []
            continue
        if index is not None or not isinstance(unit, ContextMessage) or context_text(unit):
            leading = False
        if index is None or index != asked.carries:
            runs += fresh._runs(wire, asked, unit, index)
    runs += [wire.context("data", text) for text in by_place["trailing"]]
    return _joined(wire, asked, system, runs)


def _joined(wire: AnthropicProjection, asked: Request, system: list[str], runs: list[Any]) -> bytes:
    early = b'{"type":"text","text":"(earlier messages are not shown)"}'
    go_on = b'{"type":"text","text":"(continue)"}'
    entries: list[tuple[str, list[bytes]]] = []
    last = ""
    for kind, body in runs:
        side = "user" if kind == "user" else "assistant"
        if not entries and side != "user":
            entries.append(("user", [early]))
        if kind == "thought" and last == "model":
            entries.append(("user", [go_on]))
        if not entries or entries[-1][0] != side:
            entries.append((side, []))
        entries[-1][1].append(body)
        last = kind
    if entries and entries[-1][0] != "user":
        entries.append(("user", [go_on]))
    head, tail = wire.frame(asked, system, empty=not runs)
    shown = (b'{"role":"%b","content":[%b]}' % (side.encode(), b",".join(held)) for side, held in entries)
    return head + b",".join(shown) + tail


def check_rules(body: bytes) -> None:
    """What the protocol demands of any body."""
    entries = json.loads(body)["messages"]
    roles = [entry["role"] for entry in entries]
    assert roles[0] == roles[-1] == "user"
    assert all(one != other for one, other in itertools.pairwise(roles))
    due: list[str] = []
    marks = body.count(b'"cache_control"')
    assert marks <= 4
    for entry in entries:
        blocks = entry["content"]
        assert blocks
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        kinds = [block["type"] for block in blocks]
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert answered == due  # each call is answered at once
        assert "tool_result" not in kinds[len(answered) :]  # and before anything else is said
        due = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert entry["role"] == "assistant" or not due
        assert "thinking" not in kinds or kinds[0] == "thinking"
        assert kinds[-1] != "thinking"
    assert not due
