"""A secret that a handler was lent, and puts wherever a handler can put something: no file, log or request holds it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.cli.record_file import exported
from onrecord.conversation.inputs import Answered, Ask
from onrecord.conversation.outgoing import ProgressDelta
from onrecord.governance import Credential, Credentials, NeedsCredential, Wanted, credential
from onrecord.governance.credentials import CredentialSettled
from onrecord.host import Host
from onrecord.record.entry import Body
from onrecord.record.kinds import Noted
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.turn.moments import Hooks
from tests.governance.test_credentials import SECRET, Vault, calling, nothing_leaked
from tests.turn.acting import Named, Result, bodies, texts
from tests.turn.pausing.asking import open_question

pytestmark = pytest.mark.integration


def holding(folder: Path, text: str) -> list[str]:
    """The files that hold it."""
    return [file.name for file in folder.iterdir() if text.encode() in file.read_bytes()]


class Seen(Body, frozen=True, kw_only=True, tag="desk.seen"):
    """A fact of a tool."""

    words: str


async def _asked_and_answered(host: Host[Any, Any], model: ScriptedModel, said: str) -> Result:
    """A turn over its question; neither half leaked anything."""
    paused = await host.turn("s", said)
    assert open_question(paused).text == "With [credential]?"
    done = await host.answer("s", Answered(open_question(paused).key, value="yes"))
    nothing_leaked(paused, model)
    nothing_leaked(done, model)
    return done


async def test_a_handler_that_keeps_it_anywhere_is_caught(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In session data, facts, a question or a name; under a host, over a pause, in all files. A note says so."""
    caplog.set_level(logging.DEBUG)

    async def keeps(args: Mapping[str, Any], ctx: ToolContext[Any]) -> ToolResult:
        secret = credential(ctx).secret
        ctx.set({"token": secret, "deep": [{secret: f"Bearer {secret}"}]})
        answer = await ctx.ask(Ask(f"With {secret}?", detail={"header": f"Bearer {secret}"}))
        return ToolResult(
            {"used": secret, "said": answer.value}, data={"also": secret}, facts=(Seen(words=f"with {secret}"),)
        )

    model = ScriptedModel([call("book")], "Booked.", [call("book")], "Again.")
    agent: Agent[Any, Any] = Agent(
        model, tools=[calling(keeps)],
        features=[Credentials(Vault(Credential(SECRET))), Named("desk", Hooks(bodies=(Seen,)))],
    )  # fmt: skip
    path = tmp_path / "talk.db"
    async with SqliteStore(path, bodies=[Seen, CredentialSettled]) as store, Host(agent, store=store) as host:
        assert holding(tmp_path, SECRET) == []
        await _asked_and_answered(host, model, "go")
        done = await _asked_and_answered(host, model, "again")
        held = await store.load("s")
        assert held is not None
        assert dict(held.data) == {
            "token": "[credential]", "deep": [{"[credential]": "Bearer [credential]"}], "also": "[credential]",
        }  # fmt: skip
        lines = b"".join(exported(held, [entry async for entry in store.entries("s")], agent.plan.codec))
    notes = [body.text for body in bodies(done, Noted)]
    assert [body.words for body in bodies(done, Seen)] == ["with [credential]"]
    assert notes == ["'book' put a credential into session data, facts: it was taken out"]
    assert SECRET.encode() not in lines
    assert holding(tmp_path, SECRET) == []
    assert SECRET not in caplog.text


async def test_a_secret_that_begins_like_another_leaves_no_end_of_it() -> None:
    """The longer one is looked for first: what is left of it would be half a secret."""
    sources = {"mail": SECRET, "calendar": f"{SECRET}-and-more"}

    async def issue(wanted: Wanted, /) -> Credential:
        return Credential(sources[wanted.service])

    async def tells(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        return f"with {credential(ctx, 'calendar').secret} and {credential(ctx, 'mail').secret}"

    model = ScriptedModel([call("book")], "Booked.")
    needs = tuple(NeedsCredential(service=name) for name in sources)
    tool = Tool("book", tells, "Books.", traits=needs)
    result = await Agent(model, tools=[tool], features=[Credentials(issue)]).turn("go")
    assert texts(model.requests[1]) == ["with [credential] and [credential]"]
    assert "and-more" not in repr(result.entries)


async def test_what_a_handler_says_while_it_runs_holds_no_secret() -> None:
    """Whoever reads along gets its words at once, also cut at their greatest length and from a thread."""
    seen: list[object] = []

    def says(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        ctx.progress(f"asking with {credential(ctx).secret}")
        return "said"

    needs = Tool("says", says, "Says.", traits=(NeedsCredential(service="calendar"),))
    agent = Agent(
        ScriptedModel(call("says"), "Done."), tools=[needs], features=[Credentials(Vault(Credential(SECRET)))]
    )
    async with agent.turn_stream("Go.") as stream:
        seen += [delta async for delta in stream]
    told = [one.message for one in seen if isinstance(one, ProgressDelta)]
    assert told == ["asking with [credential]"]
    assert SECRET not in repr(seen)
