"""What is not mounted costs nothing: no byte, no entry, no import, no work (architecture §6; loop spec §33)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.transcript import messages_from
from onrecord.record.entry import kind_of
from onrecord.record.kinds import CORE_KINDS
from onrecord.testing import FakeEffects, ScriptedModel, call, reply, shown, wire
from onrecord.turn.moments import ALLOW, MOMENTS, Hooks, Watch
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, kinds, tool, turn

pytestmark = pytest.mark.unit


async def allow(*_: Any) -> Any:
    """Says nothing against it."""
    return ALLOW


async def same(turn: Turn, held: Any) -> Any:
    """Gives back what it got."""
    return held


async def nothing(turn: Turn) -> None:
    """Does nothing."""


class Through:
    """A text filter that lets everything through."""

    def feed(self, item: Any, /) -> list[Any]:
        return [item]

    def close(self) -> list[Any]:
        return []


INERT: dict[str, Hooks] = {
    "input": Hooks(on_input=allow),
    "request": Hooks(on_request=same, purposes=frozenset({"speak", "wrap_up", "judge", "consult"})),
    "text": Hooks(on_text=lambda _: Through()),
    "reply": Hooks(on_reply=same),
    "before_tool": Hooks(before_tool=allow),
    "after_tool": Hooks(after_tool=allow),
    "output": Hooks(on_output=allow),
    "settle": Hooks(on_settle=nothing),
}


def model() -> ScriptedModel:
    """Two rounds with tools, the wrap-up, then another turn."""
    return ScriptedModel(reply("Let me see. ", call("lookup", n=1)), call("lookup", n=2), "done", "later")


async def played(*features: Any) -> tuple[ScriptedModel, list[Any]]:
    """Two turns of one session under these features."""
    held, effects = model(), FakeEffects()
    agent: Agent[Any, Any] = Agent(held, tools=[tool()], instructions="Base.", features=features, rounds=2)
    first = await turn(agent, "one", effects=effects)
    second = await turn(agent, "two", session=first.session, effects=effects)
    return held, [*first.entries, *second.entries]


def sent(held: ScriptedModel) -> list[bytes | None]:
    """The exact bytes of each request."""
    return [r.wire.body if r.wire else None for r in held.requests]


def test_every_moment_has_an_inert_hook_here() -> None:
    """A new moment cannot ship without its proof."""
    assert tuple(INERT) == MOMENTS


@pytest.mark.parametrize("moment", MOMENTS)
async def test_an_inert_feature_changes_no_byte_of_any_request(moment: str) -> None:
    """Nor what a request shows, nor any entry but the manifest that names it."""
    plain, plain_entries = await played()
    held, entries = await played(Named("inert", INERT[moment]))
    assert sent(held) == sent(plain)
    assert None not in sent(held)
    assert [shown(r) for r in held.requests] == [shown(r) for r in plain.requests]
    assert [kind_of(e.body) for e in entries] == [kind_of(e.body) for e in plain_entries]
    assert [e.body for e in entries if not hasattr(e.body, "manifest")] == [
        e.body for e in plain_entries if not hasattr(e.body, "manifest")
    ]
    assert [(e.n, e.where, e.cause) for e in entries] == [(e.n, e.where, e.cause) for e in plain_entries]


async def test_all_of_them_together_change_nothing_either() -> None:
    """And a watcher beside them."""
    plain, _ = await played()
    held, _ = await played(*(Named(m, hooks) for m, hooks in INERT.items()), Watch(lambda _: None))
    assert sent(held) == sent(plain)


def test_an_inert_feature_changes_no_byte_on_a_real_wire() -> None:
    """The body of Chat Completions is the same to the last byte."""
    from onrecord.providers.openai_compatible import openai_compatible

    told = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "?"},
    ]
    conversation = Conversation.of(messages_from(told))
    chat = openai_compatible("http://localhost:1/v1", "m")
    features = [Named(m, hooks) for m, hooks in INERT.items()]
    bare: Agent[Any, Any] = Agent(chat, tools=[tool()], instructions="Base.")
    assert wire(bare.with_(features=features), conversation) == wire(bare, conversation)
    assert json.loads(wire(bare, conversation))["model"] == "m"


async def test_the_record_of_a_bare_agent_holds_core_kinds_only() -> None:
    """Features have kinds of their own; the core never files one."""
    core = {str(body.__struct_config__.tag) for body in CORE_KINDS}
    result = await turn(Agent(model(), tools=[tool()], rounds=2))
    assert set(kinds(result)) <= core
    assert len(core) == 24


async def test_what_is_not_used_leaves_no_entry() -> None:
    """A plain answer: opened, admitted, asked, replied, said, closed."""
    result = await turn(Agent(ScriptedModel("hi")))
    assert kinds(result) == ["turn.opened", "turn.input", "model.requested", "model.replied", "said", "turn.closed"]
