"""Every way out of the record: what a redaction takes out turns up in none of them, and the record keeps it.

One place decides (`onrecord.record.leaving`). Whoever adds a way out adds it to `WAYS` here.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onrecord.agent import Agent
from onrecord.cli.main import main
from onrecord.conversation.content import Citation
from onrecord.conversation.inputs import Answered, Ask, Said
from onrecord.conversation.outgoing import (
    CallDelta,
    ChildDelta,
    CitationDelta,
    ProgressDelta,
    ReasoningDelta,
    TextDelta,
)
from onrecord.governance import Redaction, before_tool, on_input
from onrecord.host import Committed, Host, Progress
from onrecord.host.live import _left, _shown
from onrecord.models.chunks import CitationChunk, ThinkingChunk
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import ENDS, Noted, VerdictFiled
from onrecord.record.leaving import leaves_by
from onrecord.stores.sqlite import SqliteStore
from onrecord.telemetry import Logs
from onrecord.testing import ScriptedModel, call, reply
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.turn.moments import ALLOW, Allow, Hooks, Watch
from tests.turn.acting import Named

pytestmark = pytest.mark.integration

AT = datetime(2026, 11, 30, tzinfo=UTC)
CANARY = "canary-4111-7f3a91"
SECRET_NAME = "canary-by-name"
"""What is taken out by a pattern, and what by the name of its member."""


class Visited(Body, frozen=True, kw_only=True, tag="desk.visited"):
    """A body of a feature, which nobody but its agent declares."""

    words: str
    held: Mapping[str, str] = {}


async def _pay(args: Mapping[str, Any], ctx: ToolContext[Any]) -> ToolResult:
    turn = ctx.turn  # type: ignore[attr-defined]
    turn.note(Visited(words=f"saw {CANARY}", held={"card": SECRET_NAME}))
    answer = await ctx.ask(Ask(f"Pay from {CANARY}?", detail={"card": SECRET_NAME, "more": [CANARY]}))
    ctx.set({"last": CANARY, "card": SECRET_NAME})
    return ToolResult({"card": SECRET_NAME, "said": answer.value, "told": f"paid from {CANARY}"})


@on_input
def masks(turn: Any, given: Any) -> Any:
    """A change, whose texts are for the record alone."""
    if isinstance(given, Said) and "[x]" not in str(given.content):
        return Allow(msgspec.structs.replace(given, content=f"{given.content} [x]"), f"marked {CANARY}")
    return ALLOW


@before_tool
def adds(turn: Any, asked: Any) -> Any:
    """Another one, over arguments."""
    return Allow({**asked.args, "card": SECRET_NAME}, "added")


def desk(*features: Any) -> Agent[Any, Any]:
    """An agent that meets the canary in every kind of entry: messages, calls, results, questions, data, its own."""
    model = ScriptedModel(
        reply(ThinkingChunk(f"On {CANARY}."), f"I think of {CANARY}. ", call("pay", card=SECRET_NAME, to=CANARY)),
        f"Paid from {CANARY}.", "Yes.",
    )  # fmt: skip
    return Agent(
        model, name="Desk", instructions=f"Keep {CANARY} to yourself.", tools=[Tool("pay", _pay, f"Pays {CANARY}.")],
        features=[masks, adds, Named("visits", Hooks(bodies=(Visited,))), *features],
    )  # fmt: skip


REDACTION = Redaction(patterns=[r"canary-4111-\w+"], names=["card"])


async def played(path: Path, *features: Any) -> None:
    """Two turns, one of which waits for an answer."""
    async with SqliteStore(path, bodies=[Visited]) as store, Host(desk(*features), store=store) as host:
        paused = await host.turn("ana", f"Use {CANARY}.")
        assert paused.question is not None
        await host.turn("ana", Answered(paused.question.key, value=f"yes, {CANARY}", by="ana"))
        await host.turn("ana", f"And {CANARY}?")


def clean(what: str, seen: str) -> None:
    """Neither canary is in it."""
    for canary in (CANARY, SECRET_NAME):
        assert canary not in seen, f"{canary} got out by {what}: ...{seen[max(0, seen.index(canary) - 200) :][:300]}"


def text(seen: object) -> str:
    """All there is."""
    return f"{msgspec.json.encode(seen, enc_hook=repr).decode()} {seen!r}"


async def test_watchers_logs_and_telemetry(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever hangs on a watcher; and the record keeps all of it."""
    caplog.set_level(logging.DEBUG)
    seen: list[Entry] = []
    await played(tmp_path / "talk.db", REDACTION, Watch(seen.append), Logs())
    clean("a watcher", text(seen))
    clean("a log", "".join(logging.Formatter().format(one) for one in caplog.records))
    async with SqliteStore(tmp_path / "talk.db", bodies=[Visited]) as store:
        kept = text([entry async for entry in store.entries("ana")])
    assert kept.count(CANARY) > 20
    assert kept.count(SECRET_NAME) > 5


async def live(host: Host[Any, Any], *, redacted: bool) -> AsyncIterator[str]:
    """What a reader sees, until the third turn ended."""
    ends = 0
    async for item in host.live("ana", redacted=redacted):
        said = isinstance(item, Progress)
        yield "" if isinstance(item, Progress) and item.text and len(item.items) == 1 else text(item)
        ends += isinstance(item, Committed) and isinstance(item.entry.body, ENDS)
        if ends == 3 and not said:
            return


@pytest.mark.parametrize("redacted", [True, False])
async def test_readers_of_a_live_session(tmp_path: Path, redacted: bool) -> None:
    """Entries and calls; whoever may see the record says so, and even then no text of a verdict comes."""
    path = tmp_path / "talk.db"
    await played(path, REDACTION)
    async with SqliteStore(path, bodies=[Visited]) as store, Host(desk(REDACTION), store=store) as host:
        seen = "".join([one async for one in live(host, redacted=redacted)])
    if redacted:
        clean("host.live", seen)
    assert (CANARY in seen) is not redacted
    assert "before_text" not in seen.partition(" Committed")[0]


async def test_calls_and_reasoning_while_they_run(tmp_path: Path) -> None:
    """Under a redaction the sign of a call is redacted like its entry, by whichever agent; reasoning does not come."""
    signs: dict[bool, list[object]] = {True: [], False: []}
    for redacted, items in signs.items():
        path = tmp_path / f"{redacted}.db"
        async with (
            SqliteStore(path, bodies=[Visited]) as store,
            Host(desk(), store=store, agents={"other": desk(REDACTION)}) as host,
        ):
            reading = host.live("ana", redacted=redacted)
            asked = await host.send("ana", "Pay.")
            async for item in reading:
                if isinstance(item, Progress):
                    items += [one for one in item.items if not isinstance(one, TextDelta)]
                elif isinstance(item, Committed) and isinstance(item.entry.body, ENDS):
                    break
            await asked.result()
    kinds = {redacted: {type(one) for one in items} for redacted, items in signs.items()}
    assert kinds == {True: {CallDelta}, False: {CallDelta, ReasoningDelta}}
    clean("a live call", text(signs[True]))
    assert CANARY in text(signs[False])


async def test_other_live_signs_are_redacted_too(tmp_path: Path) -> None:
    """What a handler says of its progress, calls of an agent below, and sources: each comes whole."""

    async def look(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        ctx.progress(f"card={SECRET_NAME}, for {CANARY}")
        await asyncio.sleep(0.01)  # readers read meanwhile
        return "seen"

    below = Agent(
        ScriptedModel(call("look", card=SECRET_NAME, to=CANARY), "Seen."), name="below",
        tools=[Tool("look", look, "Looks.")],
    )  # fmt: skip
    source = CitationChunk((Citation(url=f"https://example.org/{CANARY}", title=f"About {CANARY}"),))
    model = ScriptedModel([call("below", message="Look."), call("look")], reply("Done.", source))
    agent = Agent(model, tools=[below.as_tool(), Tool("look", look, "Looks.")], features=[REDACTION])
    signs: dict[bool, list[object]] = {True: [], False: []}
    async with SqliteStore(tmp_path / "talk.db") as store, Host(agent, store=store) as host:

        async def read(redacted: bool) -> None:
            async for item in host.live("ana", redacted=redacted):
                if isinstance(item, Progress):
                    signs[redacted] += [one for one in item.items if not isinstance(one, TextDelta)]
                elif isinstance(item, Committed) and isinstance(item.entry.body, ENDS):
                    return

        readers = [asyncio.create_task(read(redacted)) for redacted in signs]
        await asyncio.sleep(0)
        await host.turn("ana", "Look.")
        await asyncio.gather(*readers)
    kinds = {redacted: {type(one) for one in items} for redacted, items in signs.items()}
    assert kinds[True] == kinds[False] == {CallDelta, ProgressDelta, ChildDelta, CitationDelta}
    clean("a live sign", text(signs[True]))
    assert text(signs[False]).count(CANARY) > 3


def test_what_cannot_be_redacted_is_shown_to_no_reader(caplog: pytest.LogCaptureFixture) -> None:
    """A log says that something is missing, and not what."""

    def broken(entry: Entry) -> Entry:
        raise RuntimeError(CANARY)

    entry = Entry(seq=7, n=0, turn="t", take=0, where="main", at=AT, cause=None, body=Noted(by="x", text=CANARY))
    assert _left(partial(broken, entry), "entry 7") is None
    sign = CallDelta(id="c", name="pay", status="asked", args={"to": CANARY})
    left = _shown(Progress(turn="t", take=0, at=0, items=(TextDelta("Hi"), sign)), broken)
    assert left is not None
    assert left.items == (TextDelta("Hi"),)
    assert _shown(Progress(turn="t", take=0, at=0, items=(sign,)), broken) is None
    assert caplog.text.count("shown to no reader") == 3
    clean("a log", caplog.text)


def test_several_redactions_all_count() -> None:
    """And the texts of verdicts never leave, under none of them."""
    body = VerdictFiled(moment="input", by="x", verdict="deny", why="one two", before_text="one", after_text="two")
    entry = Entry(seq=7, n=0, turn="t", take=0, where="main", at=AT, cause=None, body=body)
    first, second = (Redaction(patterns=[word], word="-") for word in ("one", "two"))
    told = [leaves_by(held)(entry).body for held in ((first, None, second), (first,), ())]
    assert [(one.why, one.before_text, one.after_text) for one in told if isinstance(one, VerdictFiled)] == [
        ("- -", "", ""), ("- two", "", ""), ("one two", "", ""),
    ]  # fmt: skip


Ran = Callable[..., str]


@pytest.fixture
def ran(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ran:
    """The command line in this process: all it prints."""

    def run(*arguments: str | Path, stdin: str = "") -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = main([str(one) for one in arguments])
        told = capsys.readouterr()
        assert code == 0, told.err
        return told.out + told.err

    return run


BY_OPTION = ("--redact", r"canary-4111-\w+", "--redact-name", "card")
BY_AGENT = ("--agent", "tests.privacy.test_every_way_out:AGENT")
AGENT = desk(REDACTION)


@pytest.fixture
async def kept(tmp_path: Path) -> Path:
    """A store whose agent redacted nothing."""
    await played(tmp_path / "talk.db")
    return tmp_path / "talk.db"


WAYS = [
    ("record", "show"), ("record", "show", "--full"), ("record", "show", "--json"), ("record", "why"),
    ("record", "why", "--full"), ("record", "export"), ("replay",),
    ("replay", "--at", "20"), ("replay", "--at", "20", "--json"),
]  # fmt: skip


@pytest.mark.parametrize("options", [BY_OPTION, BY_AGENT], ids=["options", "agent"])
def test_the_command_line(kept: Path, ran: Ran, options: tuple[str, ...]) -> None:
    """Shown, explained and exported; without a redaction the canary is there, so that these tests can fail."""
    for way in WAYS:
        command = tuple(word for word in way if word in {"record", "show", "why", "export", "replay"})
        clean(" ".join(way), ran(*command, kept, "ana", *way[len(command) :], *options))
    assert CANARY in ran("record", "show", kept, "ana", "--json")
    for command in (("show", "--json"), ("export",)):
        told = ran("record", command[0], kept, "ana", *command[1:])
        assert "before_text" not in told  # whatever is redacted, these are for the record alone
    bare = ran("record", "show", kept, "ana", "--json", "--no-texts")
    clean("--no-texts", bare)
    assert '"name":"pay"' in bare


def quiet(*features: Any) -> Agent[Any, Any]:
    """An agent that meets the canary in its instructions alone, and says nothing of it."""
    return Agent(ScriptedModel("Yes.", "Yes."), instructions=f"Keep {CANARY} to yourself.", features=list(features))


GUARDED, PLAIN = quiet(REDACTION), quiet()


def test_a_chat_that_shows_its_record(ran: Ran) -> None:
    """``/why`` and ``/record``, as the agent's redaction says."""
    for name in ("GUARDED", "PLAIN"):
        told = ran("chat", f"tests.privacy.test_every_way_out:{name}", stdin="hi\n/why\n/record\n")
        assert "instructions" in told
        assert (CANARY in told) is (name == "PLAIN")


@pytest.mark.parametrize("options", [BY_OPTION, BY_AGENT, ("--no-texts",)], ids=["options", "agent", "no texts"])
def test_a_redacted_export_verifies(kept: Path, ran: Ran, options: tuple[str, ...]) -> None:
    """It folds, and its digests prove the texts that are in it; none of them is one of the store's."""
    target = kept.with_name("out.jsonl")
    ran("record", "export", kept, "ana", "-o", target, *options)
    clean("an export", target.read_text())
    told = ran("record", "verify", target)
    assert told.endswith("verified\n")
    assert "redacted when it was exported" in told
    assert "3 requests rebuilt, every digest proved" in told
    for command in (("record", "show"), ("record", "why"), ("replay",)):
        clean(f"{command} of an export", ran(*command, target))
