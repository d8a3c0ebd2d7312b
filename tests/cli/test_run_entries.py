"""What flows filed, as people read it in the record."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Raw

from onrecord.conversation.outgoing import Outcome
from onrecord.honesty.sentences import brief_of
from onrecord.record.entry import UnknownBody
from onrecord.record.kinds import OutcomeFiled
from tests.cli.agents import Cli
from tests.cli.flow_agents import STAYS

pytestmark = pytest.mark.integration


def test_the_record_names_runs_and_steps(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file, whose reader knows no flows, and in the chat that filed it."""
    (tmp_path / "flow_stays.py").write_text(STAYS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    said = "hello\n/record\nPorto, two nights\n"
    chat = cli("chat", "flow_stays.py:agent", "--store", "talk.db", "--session", "ana", stdin=said)
    shown = cli("record", "show", "talk.db", "ana")
    run, words = "", list[str]()
    for ran in (chat, shown):
        told = [line.split(" ms  ")[1].split(maxsplit=1) for line in ran.out.splitlines() if " ms  " in line]
        words = [text for kind, text in told if kind.startswith(("run.", "outcome"))]
        run = words[0].partition(" ")[0]
        assert run.startswith("booking#")
        first = [f"{run} running", "booking run started", "booking/ask collect ok", f"{run} asking at ask"]
        assert words[:4] == first
    assert words[4:] == [
        "booking/ask collect ok",
        "booking/reserve do ok",
        "booking/breath wait ok inline-delay a short wait rides on the next message",
        "booking/booked say ok → end",
        f"{run} end",
        "booking/booked run ended end",
    ]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b'{"kind":"run.moved","run":{"id":"f#1","status":"waiting","step_id":"w"}}', "f#1 waiting at w"),
        (b'{"kind":"run.ended","run":"f#1"}', "f#1"),
        (b'{"kind":"run.held","held":null}', '{"kind":"run.held","held":null}'),
        (b'{"kind":"run.moved","run":{"id":7}}', '{"kind":"run.moved","run":{"id":7}}'),
        (b'{"kind":"run.moved","run":', '{"kind":"run.moved","run":'),
        (b'{"kind":"other","run":"f#1"}', '{"kind":"other","run":"f#1"}'),
    ],
)
def test_what_reads_otherwise_is_shown_as_it_is(raw: bytes, told: str) -> None:
    """An entry of another version, or of somebody else."""
    kind = raw.split(b'"')[3].decode()
    assert brief_of(UnknownBody(was=kind, raw=Raw(raw))) == told


def test_a_line_of_no_step_is_told_as_before() -> None:
    """A director of somebody's own may file lines about anything."""
    assert brief_of(OutcomeFiled(line=Outcome(kind="talk", status="deferred", code="later"))) == "talk deferred later"
