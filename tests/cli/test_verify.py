"""``onrecord record export`` and ``verify``: what is proved, and what every change is called."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from onrecord.cli.sources import Held
from onrecord.cli.verify import Check, checks, gap_lines
from onrecord.conversation.conversation import Conversation
from onrecord.record.entry import Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.session.session import Session
from onrecord.testing.conformance.samples import turn
from tests.cli.agents import Cli, started, stored

pytestmark = pytest.mark.integration

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
    session = stored(store, "ana")
    assert session is not None
    assert session.digest_key not in text


def _dump(store: Path) -> str:
    with sqlite3.connect(store) as connection:
        rows = connection.execute("select body from entries").fetchall()
    connection.close()
    return "\n".join(bytes(body).decode() for (body,) in rows)


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
        ([*lines, lines[-1]], rf"the header counts {len(lines) - 1} entries, {len(lines)} follow it"),
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
    """Without it verify says what it left out; with it a wrong one is named, one that ends with its turn is none."""
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


class Fleeting(Counter):
    name, scope = "fleeting", "turn"


class Counting:
    name = "counting"

    def hooks(self, spec):
        return Hooks(folds=(Counter(), Fleeting()))


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


def test_sealed_lines_without_their_header_are_a_gap(cli: Cli, exported: Path) -> None:
    """Whoever takes the header out must not get a file that verifies: every reading command says so."""
    lines = exported.read_text(encoding="utf-8").splitlines(keepends=True)
    partly = [re.sub(r',"seal":"[^"]+"', "", line) for line in lines[1:-1]] + lines[-1:]
    for left in (lines[1:], partly):
        exported.write_text("".join(left), encoding="utf-8")
        ran = cli("record", "verify", exported)
        assert ran.code == 1, ran
        assert "its header line is missing" in ran.out
        assert "does not verify" in ran.out
        for arguments, code in ((("record", "show"), 0), (("record", "why"), 0), (("replay",), 1)):
            told = cli(*arguments, exported)
            assert told.code == code, told
            assert "was changed since it was written: its header line is missing" in told.err


def test_144_a_file_of_two_records_or_of_half_a_one_is_refused(store: Path, cli: Cli, exported: Path) -> None:
    """One record per file, to its last line; what was cut off is counted (case 144)."""
    lines = exported.read_text(encoding="utf-8").splitlines(keepends=True)
    other = exported.with_name("bo.jsonl")
    assert cli("record", "export", store, "bo", "--output", other).code == 0
    exported.write_text("".join(lines[:-2]), encoding="utf-8")
    ran = cli("record", "verify", exported)
    assert ran.code == 1, ran
    assert f"{len(lines) - 1} entries" in ran.out
    assert "does not verify" in ran.out
    exported.write_text("".join(lines) + other.read_text(encoding="utf-8"), encoding="utf-8")
    ran = cli("record", "verify", exported)
    assert ran.code != 0, ran
    assert f"line {len(lines) + 1}" in ran.out + ran.err


def found(session: Session, entries: tuple[Entry, ...]) -> str:
    """Every gap that verifying names."""
    held = Held(path="x", key=session.key, digest_key="k1", entries=entries, codec=EntryCodec(), session=session)
    return "\n".join(gap for check in checks(held) for gap in check.gaps)


def test_numbers_places_causes_and_messages_that_do_not_fit_are_named() -> None:
    """One of them wrong at a time."""
    change = turn("s")
    session, entries = change.session, change.entries
    messages = session.conversation.messages
    assert found(session, entries) == ""

    def with_third(**changes: int) -> tuple[Entry, ...]:
        return (*entries[:3], replace(entries[3], **changes), *entries[4:])

    assert "entry 3 is missing: entry 9 stands in its place" in found(session, with_third(seq=9))
    assert "entry 3 has the place 2 of another entry of its turn" in found(session, with_third(n=2))
    assert "entry 3 names a cause, 99, that its turn does not have" in found(session, with_third(cause=99))
    ahead = replace(session, seq=len(entries) + 2)
    assert f"the session goes on at entry {len(entries) + 2}, the record ends before {len(entries)}" in (
        found(ahead, entries)
    )
    longer = replace(session, conversation=Conversation.of([*messages, replace(messages[0], id="m")]))
    assert found(longer, entries) == "3 messages are stored, the record folds to 2"


def test_of_very_many_gaps_the_first_are_named_and_the_rest_counted() -> None:
    """Nothing is counted where all are named."""
    gaps = tuple(f"gap {n}" for n in range(21))
    assert list(gap_lines(Check("x", gaps[:20]))) == list(gaps[:20])
    assert list(gap_lines(Check("x", gaps))) == [*gaps[:20], "and 1 more"]
