"""``onrecord record`` and ``onrecord replay`` over what a chat left."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onrecord.agent import Agent
from onrecord.cli.terminal import Screen
from onrecord.cli.timeline import turn_lines
from onrecord.cli.why import last_answer, why_lines
from onrecord.conversation.inputs import approved
from onrecord.conversation.outgoing import TextDelta
from onrecord.governance.rules import on_output
from onrecord.record.entry import kind_of
from onrecord.record.record import Record
from onrecord.session.session import Session
from onrecord.stores.sqlite import SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import Allow, Answer, Revise
from tests.cli.agents import ASKING, Ran, run, started
from tests.turn.acting import tool

pytestmark = pytest.mark.integration

Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command in this process."""

    def ran(*arguments: str | Path, stdin: str = "") -> Ran:
        return run(capsys, monkeypatch, *arguments, stdin=stdin)

    return ran


async def _fill(path: Path) -> None:
    """Two sessions: one with a rule, a question, an answer and an interruption, one with a single message."""
    namespace: dict[str, Any] = {}
    exec(ASKING, namespace)  # noqa: S102  # the text of a test agent
    agent: Agent[Any, Any] = namespace["agent"]
    effects = FakeEffects()
    async with SqliteStore(path) as store:
        session: Session | str = "ana"
        for line in ("hello", "book it"):
            result = await agent.turn(line, session=session, effects=effects)
            session = await store.commit(result.change())
        assert isinstance(session, Session)
        assert session.question is not None
        effects.advance(minutes=5)
        answer = approved(session.question, by="boss", note="fine")
        result = await agent.turn(answer, session=session, effects=effects)
        session = await store.commit(result.change())
        stream = agent.turn_stream("linger", session=session, effects=effects)
        async for delta in stream:
            if isinstance(delta, TextDelta):
                break
        await stream.leave()
        await store.commit((await stream.result()).change())
        plain: Agent[Any, Any] = Agent(ScriptedModel("Good day."), name="Other", instructions="Greet.")
        await store.commit((await plain.turn("hi", session="bo", effects=effects)).change())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store's file with the sessions of `_fill`."""
    path = tmp_path / "talk.db"
    asyncio.run(_fill(path))
    return path


@pytest.fixture
def exported(store: Path, cli: Cli, tmp_path: Path) -> Path:
    """The record of ``ana``, exported."""
    path = tmp_path / "ana.jsonl"
    assert cli("record", "export", store, "ana", "-o", path).code == 0
    return path


def entries_of(store: Path, session: str = "ana") -> list[Any]:
    """The entries that a store holds."""

    async def read() -> list[Any]:
        async with SqliteStore(store) as opened:
            return [entry async for entry in opened.entries(session)]

    return asyncio.run(read())


# ---- show ------------------------------------------------------------------------------------------------------------


def test_without_a_session_a_store_lists_its_sessions(store: Path, cli: Cli) -> None:
    """A line each, or JSON lines."""
    ran = cli("record", "show", store)
    assert ran.code == 0, ran
    assert ran.out.splitlines()[0] == f"2 sessions in {store}"
    assert re.match(r"  ana  \d+ messages, \d+ entries, last on 2026-09-20", ran.out.splitlines()[1])
    listed = [json.loads(line) for line in cli("record", "show", store, "--json").out.splitlines()]
    assert [(one["session"], one["version"]) for one in listed] == [("ana", 4), ("bo", 1)]


def test_a_session_is_shown_entry_by_entry_as_a_tree(store: Path, cli: Cli) -> None:
    """A heading for each take, a line for each entry, rounds and calls hanging on what they belong to."""
    lines = cli("record", "show", store, "ana").out.splitlines()
    assert sum(bool(re.match(r" +\d+ ", line)) for line in lines) == len(entries_of(store))
    assert any(re.match(r"turn 2 · 2026-09-20 12:00:00 · paused", line) for line in lines)
    assert any(re.match(r"turn 2, resumed · 2026-09-20 12:05:00 · answered", line) for line in lines)
    assert any(re.search(r'  │ └ tool.started +book\(city="Porto"\)', line) for line in lines)
    assert any(re.search(r"turn.resumed +answered: yes, “fine” \(by boss\)", line) for line in lines)
    assert any(re.search(r"turn.interrupted +left; shown until then: “Well”", line) for line in lines)


def test_only_the_last_turns_are_shown_when_asked(store: Path, cli: Cli) -> None:
    """They keep their numbers."""
    ran = cli("record", "show", store, "ana", "--turns", "1")
    assert ran.out.splitlines()[0].startswith("turn 3 · ")


def test_entries_as_json_lines_are_the_stored_ones(store: Path, cli: Cli) -> None:
    """One object a line, with its kind."""
    told = [json.loads(line) for line in cli("record", "show", store, "ana", "--json").out.splitlines()]
    assert [(one["seq"], one["body"]["kind"]) for one in told] == [(e.seq, kind_of(e.body)) for e in entries_of(store)]


def test_the_only_session_need_not_be_named(store: Path, cli: Cli, exported: Path) -> None:
    """A record file has one; a store with several says which there are."""
    assert cli("record", "show", exported).out.splitlines() == cli("record", "show", store, "ana").out.splitlines()
    ran = cli("record", "why", store)
    assert ran.code == 2
    assert "2 sessions: say which" in ran.err
    assert "it holds 'ana', 'bo'" in ran.err


# ---- why -------------------------------------------------------------------------------------------------------------


def test_why_tells_the_message_the_texts_the_calls_and_the_answer(store: Path, cli: Cli) -> None:
    """Also what stood before a pause: who asked, and what the person answered."""
    said = next(e.seq for e in reversed(entries_of(store)) if kind_of(e.body) == "said")
    ran = cli("record", "why", store, "ana", str(said))
    assert ran.code == 0, ran
    expected = [
        r"^Why said \(\d+\): “I read: booked Porto”$",
        r"A person said “book it”\.",
        r"obedient:m was asked\.",
        r"instructions: “Do as you are told\.”|history: ",
        r"tools it could call: book, form, sure",
        r"It replied with a call: book\(city=\"Porto\"\)\.",
        r"The rule careful wanted a person to decide about the call",
        r"careful asked a person: “Book a room in Porto\?”",
        r"The person answered: yes, “fine” \(by boss\)\.",
        r"book\(city=\"Porto\"\) ran\.",
        r"book returned booked Porto",
        r"obedient:m was asked again, now with what came of book\.",
        r"It replied “I read: booked Porto”\.",
        r"That was said: “I read: booked Porto”",
    ]
    at = 0
    for pattern in expected:
        found = re.compile(pattern, re.MULTILINE).search(ran.out, at)
        assert found is not None, (pattern, ran.out)
        at = found.end()


def test_why_takes_last_a_number_or_nothing(store: Path, cli: Cli, exported: Path) -> None:
    """In a record file the session is left out, and a number is an entry."""
    last = cli("record", "why", store, "ana", "last").out
    assert cli("record", "why", store, "ana").out == last
    assert cli("record", "why", exported, "last").out == last
    assert cli("record", "why", exported).out == last
    assert cli("record", "why", exported, "1").out.startswith("Why turn.input (1)")


# ---- export and verify -----------------------------------------------------------------------------------------------


def test_an_export_verifies_alone_and_holds_no_digest_of_the_store(store: Path, cli: Cli, exported: Path) -> None:
    """Keys and digests are made anew: neither the store's key nor any digest under it is in the file."""
    assert cli("record", "verify", store, "ana").code == 0
    ran = cli("record", "verify", exported)
    assert ran.code == 0, ran
    assert ran.out.splitlines()[-1] == "verified"
    text = exported.read_text(encoding="utf-8")
    old = set(re.findall(r'"(?:digest|chain|offers|shape|before|after)":"([0-9a-f]{24})"', _dump(store)))
    assert len(old) > 5
    assert not [mark for mark in old if mark in text]
    assert _key(store) not in text


def _dump(store: Path) -> str:
    with sqlite3.connect(store) as connection:
        rows = connection.execute("select body from entries").fetchall()
    connection.close()
    return "\n".join(bytes(body).decode() for (body,) in rows)


def _key(store: Path) -> str:
    async def read() -> str:
        async with SqliteStore(store) as opened:
            session = await opened.load("ana")
            assert session is not None
            return session.digest_key

    return asyncio.run(read())


def test_an_export_can_go_to_standard_output(store: Path) -> None:
    """The lines and nothing else."""
    ran = started("record", "export", store, "bo")
    assert ran.code == 0, ran
    header = json.loads(ran.out.splitlines()[0])
    assert (header["onrecord"], header["format"], header["session"]) == ("record", 1, {"id": "bo"})
    assert len(ran.out.splitlines()) == header["entries"] + 1
    assert ran.err == ""


def test_every_changed_character_of_an_export_is_named_with_its_line(cli: Cli, exported: Path) -> None:
    """In a text, in a digest, in the header, in a seal; a line taken out, put elsewhere, or cut off."""
    lines = exported.read_text(encoding="utf-8").splitlines(keepends=True)
    request = next(n for n, line in enumerate(lines) if '"model.requested"' in line)
    said = next(n for n, line in enumerate(lines) if '"said"' in line and "Nothing" in line)
    chain = re.search(r'"chain":"([0-9a-f]+)"', lines[request])
    assert chain is not None
    damage: list[tuple[list[str], str]] = [
        (_with(lines, said, lines[said].replace("Nothing", "Anothing")), rf"line {said + 1} is not as it was written"),
        (
            _with(lines, request, lines[request].replace(chain[1], _other(chain[1]))),
            r"their chained digest does not match",
        ),
        (_with(lines, 0, lines[0].replace('"entries":', '"entries":1')), r"the header counts 1\d+ entries"),
        (lines[:said] + lines[said + 1 :], rf"entry {said - 1} is missing"),
        (lines[:-1], rf"the header counts {len(lines) - 1} entries, {len(lines) - 2} follow it"),
        (_with(lines, said, re.sub(r',"seal":"[^"]+"', "", lines[said])), rf"line {said + 1} has no seal"),
    ]
    for changed, told in damage:
        exported.write_text("".join(changed), encoding="utf-8")
        ran = cli("record", "verify", exported)
        assert ran.code == 1, (told, ran)
        assert re.search(told, ran.out), (told, ran)
        assert "does not verify" in ran.out
        shown = cli("record", "show", exported)
        assert "was changed since it was written" in shown.err


def _with(lines: list[str], place: int, line: str) -> list[str]:
    return [*lines[:place], line, *lines[place + 1 :]]


def _other(digest: str) -> str:
    return digest[:-1] + ("0" if digest[-1] != "0" else "1")


@pytest.mark.parametrize(
    ("kind", "old", "new", "told"),
    [
        ("said", "Nothing to do", "Anything to do", r"message 2 \(.*\) is not what the record folds to: shown"),
        ("piece.filed", "Do as", "Do us", r"text filed at \d+: its digest does not match its text"),
        ("tool.returned", "booked Porto", "booked Lyon", r"units up to \d+: their chained digest does not match"),
        ("turn.input", "book it", "bock it", r"is not what the record folds to: content"),
        ("tool.returned", "/r0", "/r9", r"entry \d+ \(tool.returned\) does not fold: .*not open"),
    ],
)
def test_a_changed_entry_of_a_store_is_named(store: Path, cli: Cli, kind: str, old: str, new: str, told: str) -> None:
    """Whether it changes what was said, what was sent, what a tool gave, or what holds the record together."""
    with sqlite3.connect(store) as connection:
        for place, body in connection.execute("select place, body from entries where kind=?", (kind,)).fetchall():
            changed = bytes(body).replace(old.encode(), new.encode())
            connection.execute("update entries set body=? where place=?", (changed, place))
    connection.close()
    ran = cli("record", "verify", store, "ana")
    assert ran.code == 1, ran
    assert re.search(told, ran.out), ran
    assert "Traceback" not in ran.err


def test_a_changed_message_of_a_store_is_found_by_replay_too(store: Path, cli: Cli) -> None:
    """The messages are stored apart from the entries: they are compared."""
    with sqlite3.connect(store) as connection:
        connection.execute("update messages set body=cast(replace(cast(body as text), 'book it', 'bock it') as blob)")
    connection.close()
    ran = cli("replay", store, "ana")
    assert ran.code == 1, ran
    assert "not the stored session" in ran.out
    assert "message 3" in ran.out


def test_an_export_of_a_changed_record_does_not_hide_the_change(store: Path, cli: Cli, tmp_path: Path) -> None:
    """Digests are made anew only where they were right."""
    with sqlite3.connect(store) as connection:
        connection.execute("update entries set body=cast(replace(cast(body as text), 'Do as', 'Do us') as blob)")
    connection.close()
    assert cli("record", "export", store, "ana", "-o", tmp_path / "a.jsonl").code == 0
    ran = cli("record", "verify", tmp_path / "a.jsonl")
    assert ran.code == 1
    assert "its digest does not match its text" in ran.out


def test_states_of_features_are_checked_with_their_agent(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it verify says what it left out; with it a wrong state is named."""
    (tmp_path / "cli_folding.py").write_text(FOLDING, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli("chat", "cli_folding.py", "--store", "f.db", stdin="hi\nho\n").code == 0
    plain = cli("record", "verify", "f.db")
    assert plain.code == 0
    assert "not checked: the state of 'counter'" in plain.out
    whole = cli("record", "verify", "f.db", "--agent", "cli_folding.py")
    assert whole.code == 0, whole
    assert "not checked" not in whole.out
    with sqlite3.connect("f.db") as connection:
        changed = """update sessions set state=cast(replace(cast(state as text), '"value":2', '"value":9') as blob)"""
        assert connection.execute(changed).rowcount == 1
    connection.close()
    wrong = cli("record", "verify", "f.db", "--agent", "cli_folding.py")
    assert wrong.code == 1, wrong
    assert "the state of feature 'counter' is not what the record folds to" in wrong.out


FOLDING = """
from onrecord import Agent
from onrecord.testing import ScriptedModel
from onrecord.turn.moments import Hooks


class Counter:
    name, version, state, kinds = "counter", 1, int, frozenset({"turn.input"})
    scope, unfinished = "session", False

    def start(self):
        return 0

    def apply(self, state, entry):
        return state + 1


class Counting:
    name = "counting"

    def hooks(self, spec):
        return Hooks(folds=(Counter(),))


def agent():
    return Agent(ScriptedModel("a", "b"), features=[Counting()])
"""


def test_bare_entries_are_read_but_their_digests_cannot_be_proved(store: Path, cli: Cli, tmp_path: Path) -> None:
    """JSON lines without a header: shown, explained, folded; verify says what it could not check."""
    bare = tmp_path / "bare.jsonl"
    bare.write_text(cli("record", "show", store, "ana", "--json").out, encoding="utf-8")
    assert "tool.started" in cli("record", "show", bare).out
    assert cli("replay", bare).code == 0
    ran = cli("record", "verify", bare)
    assert ran.code == 0, ran
    assert "not checked: receipts" in ran.out


# ---- replay ----------------------------------------------------------------------------------------------------------


def test_replay_shows_the_conversation_as_it_unfolds(store: Path, cli: Cli, exported: Path) -> None:
    """Messages, calls with their results, questions, interruptions; and whether it is what is stored."""
    for source in ((store, "ana"), (exported,)):
        ran = cli("replay", *source)
        assert ran.code == 0, ran
        lines = ran.out.splitlines()
        assert lines[:4] == ["> hello", "Nothing to do.", "> book it", "? Book a room in Porto? (asked by careful)"]
        assert '  book(city="Porto"): returned booked Porto' in lines
        assert "  [interrupted]" in lines
        assert re.search(r"\d+ entries fold to \d+ messages: the (stored|exported) session", lines[-1])


def test_replay_travels_to_an_entry(store: Path, cli: Cli) -> None:
    """The state as it was then: the open question, the messages; as JSON too."""
    paused = next(e.seq for e in entries_of(store) if kind_of(e.body) == "turn.paused")
    ran = cli("replay", store, "ana", "--at", str(paused))
    assert ran.code == 0, ran
    assert f"after entry {paused}: 3 messages" in ran.out
    assert "open question, by careful: Book a room in Porto?" in ran.out
    assert "I read" not in ran.out
    state = json.loads(cli("replay", store, "ana", "--at", str(paused), "--json").out)
    assert state["pending"]["question"]["text"] == "Book a room in Porto?"
    early = cli("replay", store, "ana", "--at", str(paused - 2))
    assert "a turn is running" in early.out


# ---- what cannot be read ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "told", "hint"),
    [
        (("record", "show", "../missing"), 2, "there is no file", "name a store's file"),
        (("record", "show", "talk.dbx"), 2, "there is no file", "did you mean 'talk.db'?"),
        (("record", "show", "."), 2, "is a folder", "name the store's file"),
        (("record", "show", "empty"), 1, "is empty", "export"),
        (("record", "show", "words"), 1, "neither a store nor a record", "export"),
        (("record", "show", "other.db"), 1, "belongs to another application", "not touched|file of its own"),
        (("record", "show", "talk.db", "anna"), 2, "holds no session 'anna'", "did you mean 'ana'?"),
        (("record", "show", "talk.db", "zzz"), 2, "holds no session 'zzz'", "it holds 'ana', 'bo'"),
        (("record", "show", "talk.db", "ana", "--tenant", "x"), 2, "holds no session 'ana'", "onrecord chat"),
        (("record", "show", "talk.db", "ana", "--turns", "0"), 2, "expected a number", "--help"),
        (("record", "why", "talk.db", "ana", "999"), 2, "there is no entry 999", "it holds 0 to"),
        (("record", "why", "talk.db", "ana", "first"), 2, "'first' is no entry", "'last'"),
        (("record", "export", "ana.jsonl"), 2, "is no store", "copy it"),
        (("record", "export", "talk.db", "ana", "-o", "talk.db"), 2, "is the store itself", "file of its own"),
        (("record", "export", "talk.db", "ana", "-o", "no/where"), 1, "No such file", "check the path"),
        (("record", "show", "ana.jsonl", "bo"), 2, "holds no session 'bo'", "it holds 'ana'"),
        (("replay", "talk.db", "ana", "--at", "999"), 2, "there is no entry 999", "it holds 0 to"),
        (("record", "verify", "newer.jsonl"), 1, "has format 99", "update onrecord"),
        (("record", "verify", "header.jsonl"), 1, "line 1: its header does not decode", "export it again"),
        (("record", "verify", "broken.jsonl"), 1, "line 3: a record line does not decode", "changed"),
        (("record", "verify", "short.jsonl"), 1, "line 3: a record line does not decode: not valid JSON", "cut short"),
        (("record", "verify", "talk.db", "ana", "--agent", "nowhere.py"), 2, "there is no file", "MODULE:AGENT"),
    ],
)
def test_what_cannot_be_read_is_a_line_and_a_hint(
    store: Path, exported: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...], code: int, told: str, hint: str,
) -> None:  # fmt: skip
    """On stderr, with the exit code that the help describes, and never a traceback."""
    folder = store.parent
    monkeypatch.chdir(folder)
    (folder / "empty").touch()
    (folder / "words").write_text("not a record\n", encoding="utf-8")
    with sqlite3.connect(folder / "other.db") as other:
        other.execute("create table t(a)")
    other.close()
    lines = exported.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "newer.jsonl").write_text(lines[0].replace('"format":1', '"format":99'), encoding="utf-8")
    (folder / "header.jsonl").write_text('{"onrecord":"record","format":1}\n', encoding="utf-8")
    (folder / "broken.jsonl").write_text("".join([*lines[:2], "[1]\n", *lines[3:]]), encoding="utf-8")
    (folder / "short.jsonl").write_text("".join(lines[:2]) + lines[2][:30], encoding="utf-8")
    ran = cli(*arguments)
    assert ran.code == code, ran
    assert told in ran.err, ran
    assert re.search(hint, ran.err), ran
    assert len(ran.err.splitlines()) == 2, ran
    assert "Traceback" not in ran.err


def test_reading_a_store_does_not_make_one(tmp_path: Path, cli: Cli) -> None:
    """A wrong path is told; no file appears there."""
    assert cli("record", "verify", tmp_path / "new.db", "x").code == 2
    assert list(tmp_path.iterdir()) == []


def test_rules_and_retries_and_the_rest_have_words() -> None:
    """A line and a sentence for what a rule did to an answer, and for a call of a tool that is not there."""

    @on_output
    async def shorter(turn: Any, answer: Answer) -> Any:
        return Revise("shorter, please") if len(answer.text) > 6 else Allow()

    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("nothing")], "Much too long.", "Short."), tools=[tool()], features=[shorter]
    )
    result = asyncio.run(agent.turn("hi", session="s", effects=FakeEffects()))
    text = "\n".join(turn_lines(result.entries, Screen()))
    assert "shorter: revise at output, shorter, please" in text
    assert "nothing absent" in text
    record: Record[None] = Record(result.entries, lambda _: None)
    told = "\n".join(why_lines(record, last_answer(record) or 0, Screen()))
    assert "The rule shorter sent back the answer: shorter, please." in told
    assert "nothing is not there, or found nothing:" in told
