"""What a sentence costs: commentary of an entry, and the status after it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from benchmarks.in_process import Row, rows_of, table
from benchmarks.measure import by_turns, yardstick
from onrecord.conversation.content import CallRef, Text
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import Round, ToolCall
from onrecord.honesty import Commentary
from onrecord.record import kinds
from onrecord.record.entry import Body, Entry

__all__ = ("BUDGETS", "measured", "table")

BUDGETS: Mapping[str, tuple[str, float]] = {
    "a sentence": ("us", 5),
    "a sentence that shows content": ("us", 5),
    "a status": ("us", 5),
}
"""Unit and budget of each row, for each entry."""

ROUNDS = 400


def _entries() -> list[Entry]:
    """A turn with a call, as the loop files it, many times over."""
    now = datetime(2026, 9, 20, 12, tzinfo=UTC)
    held = ToolCall(id="t/answer/r0/c0", wire_id="w", name="price", raw_args='{"city":"Lisbon"}')
    asked = Round(id="t/answer/r0", content=(CallRef("t/answer/r0/c0"),), calls=(held,))
    bodies: list[Body] = [
        kinds.TurnOpened(input_kind="said", row="r", now=now, agent="desk"),
        kinds.TurnInput(input=Said("What does a room in Lisbon cost?"), now=now),
        kinds.ModelRequested(round="t/answer/r0", purpose="speak", model="openai:gpt-5"),
        kinds.ModelReplied(round=asked),
        kinds.ToolStarted(call=held.id, round=asked.id, name="price", args={"city": "Lisbon"}, key="k"),
        kinds.VerdictFiled(moment="after_tool", by="no_cards", verdict="allow", why="cut", call=held.id),
        kinds.ToolReturned(call=held.id, round=asked.id, name="price", status="returned", result=(Text("47"),)),
        kinds.ModelRequested(round="t/answer/r1", purpose="speak", model="openai:gpt-5"),
        kinds.ModelReplied(round=Round(id="t/answer/r1", content=(Text("It is 47 euros."),))),
        kinds.TextSaid(key="t/answer", text="It is 47 euros.", round="t/answer/r1"),
        kinds.TurnClosed(status="answered"),
    ]
    return [
        Entry(seq=n, n=n, turn="t", take=1, where="main", at=now, cause=None, body=body)
        for n, body in enumerate(bodies)
    ]


async def measured(blocks: int = 40) -> list[Row]:
    """Every row with a budget."""
    entries = _entries()
    plain, line = Commentary(), Commentary().follow()
    shows = Commentary(
        templates={
            "turn.input.said": "You: {{user_prompt}}", "tool.started": "{{tool_name}} for {{args.city}}",
            "tool.returned.returned": "{{tool_name}}: {{result}}", "verdict.allow": "{{by}}{{because}}",
            "said": "{{app_name}}: {{text}}",
        }
    )  # fmt: skip

    async def sentences() -> int:
        for _ in range(ROUNDS):
            for entry in entries:
                plain.sentence(entry)
        return ROUNDS * len(entries)

    async def content() -> int:
        for _ in range(ROUNDS):
            for entry in entries:
                shows.sentence(entry)
        return ROUNDS * len(entries)

    async def statuses() -> int:
        for _ in range(ROUNDS):
            for entry in entries:
                line.see(entry)
        return ROUNDS * len(entries)

    works = {
        "yardstick": yardstick, "a sentence": sentences, "a sentence that shows content": content, "a status": statuses,
    }  # fmt: skip
    return rows_of(await by_turns(works, blocks), BUDGETS)


if __name__ == "__main__":
    import asyncio

    print(table(asyncio.run(measured())))
