"""Skills as they are served: by a host over a file, behind a wire, from process to process; by the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Answered, Ask
from onrecord.governance.rules import before_tool
from onrecord.host import Host
from onrecord.models.model import Model
from onrecord.skills import Keywords, Route, Skill, SkillGraph, SkillStep, Start
from onrecord.skills.skill_entries import ALL_BODIES, SkillMoved, TurnRouted
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import ScriptedModel
from onrecord.turn.moments import ALLOW
from tests.cli.agents import run
from tests.net.loopback import LAST_CHUNK, SSE_HEAD, Loopback, chunk, serving
from tests.providers.chat_server import delta, each, model_at, sse
from tests.skills.knowing import skill
from tests.turn.acting import tool

pytestmark = pytest.mark.integration

REFUNDS = Skill(
    "refunds", "Gives money back.", "Never pay back twice.", tools=(tool("find_order"), tool("pay_back")),
    steps=(SkillStep("find_order", "find what was bought"), SkillStep("pay_back", "give the money back")),
)  # fmt: skip


@before_tool
async def asks(turn: Any, called: Any) -> Any:
    """A person agrees before money leaves."""
    return Ask("Pay back?") if called.name == "pay_back" and turn.resumed is None else ALLOW


def agent(model: Model) -> Agent[Any, Any]:
    """As a process makes it anew."""
    graph = SkillGraph(
        [skill("triage", "lookup"), REFUNDS, skill("chat")],
        start=[Start("triage", match=Keywords(["broken"])), Start("chat", match=Keywords(["hello"]))],
        routes=[Route("triage", "refunds", on_tool="lookup")], continuity="conversation", scope_tools=True, check="off",
    )  # fmt: skip
    return Agent(model, instructions="Base.", features=[graph, asks])


def calls(name: str, args: str = "{}") -> bytes:
    """A reply of Chat Completions that calls a tool."""
    asked = {"index": 0, "id": f"c-{name}", "type": "function", "function": {"name": name, "arguments": args}}
    return SSE_HEAD + chunk(sse(delta(tool_calls=[asked]), delta(finish="tool_calls"))) + LAST_CHUNK


def says(text: str) -> bytes:
    """A reply with words."""
    return SSE_HEAD + chunk(sse(delta(text), delta(finish="stop"))) + LAST_CHUNK


def sent(server: Loopback) -> list[tuple[str, list[str]]]:
    """What each request had: its instructions after the base, and its tools."""
    out = []
    for asked in server.requests:
        body = json.loads(asked.body)
        system = body["messages"][0]["content"].removeprefix("Base.").strip().replace("\n\n", " | ")
        out.append((system, [each["function"]["name"] for each in body["tools"]]))
    return out


async def entries(store: SqliteStore, kind: type[Any]) -> list[Any]:
    """The entries of a kind in a session."""
    return [entry.body async for entry in store.entries("s") if isinstance(entry.body, kind)]


async def test_a_procedure_of_a_graph_goes_on_in_another_process_behind_a_real_wire(tmp_path: Path) -> None:
    """Killed while a person is asked: the cursor and its step are there again, and what is done stays done."""
    replies = [calls("lookup"), calls("find_order"), calls("pay_back"), says("Paid."), says("You are welcome.")]
    async with serving(each(*replies)) as server:
        async with Host(agent(model_at(server)), store=SqliteStore(tmp_path / "s.db", bodies=ALL_BODIES)) as host:
            paused = await host.turn("s", "my lamp is broken")
            assert paused.question is not None
        async with Host(agent(model_at(server)), store=SqliteStore(tmp_path / "s.db", bodies=ALL_BODIES)) as host:
            done = await host.turn("s", Answered(paused.question.key, approved=True))
            after = await host.turn("s", "thanks")
        told = sent(server)
    assert (done.text, after.text) == ("Paid.", "You are welcome.")
    hint = "You are carrying out the procedure 'refunds'"
    assert [(system.split(" | ")[0], hint in system) for system, _ in told] == [
        ("About triage.", False), ("Never pay back twice.", True), ("Never pay back twice.", True),
        ("Never pay back twice.", False), ("Never pay back twice.", False),
    ]  # fmt: skip
    assert [tools for _, tools in told] == [
        ["read_skill", "lookup"], ["read_skill", "skip_step", "find_order"], ["read_skill", "skip_step", "pay_back"],
        ["read_skill", "find_order", "pay_back"], ["read_skill", "find_order", "pay_back"],
    ]  # fmt: skip
    store = SqliteStore(tmp_path / "s.db", bodies=ALL_BODIES)
    moved = [(body.source, body.to, body.by) for body in await entries(store, SkillMoved)]
    assert moved == [("", "triage", "entry"), ("triage", "refunds", "route"), ("refunds", "refunds", "continuity")]
    assert [(body.by, body.to) for body in await entries(store, TurnRouted)] == [
        ("entry", "triage"), ("continuity", "refunds"),
    ]  # fmt: skip
    await store.close()


async def test_sessions_of_one_host_share_no_cursor() -> None:
    """Nor does another turn of the same session begin anew where a rule decides nothing."""
    held = agent(ScriptedModel(*["ok"] * 4))
    async with Host(held) as host:
        for session, said in (("one", "it is broken"), ("two", "hello"), ("one", "so?"), ("two", "so?")):
            await host.turn(session, said)
        ends = [entry.body.to for key in ("one", "two") for entry in [e async for e in host.store.entries(key)]
                if isinstance(entry.body, SkillMoved)]  # fmt: skip
    assert ends == ["triage", "triage", "chat", "chat"]


CLI = """
from onrecord import Agent
from onrecord.skills import Skill, Skills
from onrecord.testing import ScriptedModel, call

model = ScriptedModel(call("read_skill", id="lamps"), "It is a lamp.", "Bye.")
agent = Agent(model, name="Shop", features=[Skills(Skill("lamps", "Knows lamps.", "Speak of lamps."))])
"""


def test_a_chat_shows_that_a_skill_is_taken_up_and_its_record_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line reads the entries of skills without being told of them."""
    (tmp_path / "cli_shop.py").write_text(CLI, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    lines: Sequence[str] = ("what is this?", "bye")
    ran = run(capsys, monkeypatch, "chat", "cli_shop.py", "--store", "t.db", "--session", "s", stdin="\n".join(lines))
    assert (ran.code, ran.err) == (0, "")
    assert '  read_skill(id="lamps"): returned' in ran.out.splitlines()
    shown = run(capsys, monkeypatch, "record", "show", "t.db", "s")
    assert (shown.code, "skill.activated" in shown.out) == (0, True)
