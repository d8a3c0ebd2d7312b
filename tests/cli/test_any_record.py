"""Whatever a record holds has words, folds, and survives an export."""

from __future__ import annotations

import io
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onrecord.cli.record_file import exported, read_record
from onrecord.cli.sources import Held
from onrecord.cli.terminal import Screen
from onrecord.cli.timeline import turn_lines
from onrecord.cli.unfolding import show_state, unfold
from onrecord.cli.verify import checks
from onrecord.cli.why import why_lines
from onrecord.conversation.identity import SessionKey
from onrecord.governance import Redaction
from onrecord.honesty.sentences import brief_of
from onrecord.honesty.slices import last_answer
from onrecord.record.entry import Body, Entry
from onrecord.record.jsonl import EntryCodec
from onrecord.record.leaving import leaving
from onrecord.record.record import Record
from onrecord.session.folding import land
from onrecord.session.session import Session
from tests.strategies import bodies, takes

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

some = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@st.composite
def records(draw: Any) -> tuple[Session, tuple[Entry, ...]]:
    """A session and the entries that made it."""
    session, entries = Session(key=SessionKey("s"), digest_key="k"), tuple[Entry, ...]()
    for _ in range(draw(st.integers(1, 3))):
        take = draw(takes(session))
        session, entries = land(session, take), entries + take
    return session, entries


def harmless(text: str) -> bool:
    """Whether nothing in it steers a terminal."""
    return not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in text)


@settings(max_examples=200, deadline=None)
@given(body=bodies)
def test_every_body_has_words(body: Body) -> None:
    """Of every kind, with anything in it."""
    assert isinstance(brief_of(body), str)


@some
@given(record=records())
def test_every_record_can_be_shown_explained_and_unfolded(record: tuple[Session, tuple[Entry, ...]]) -> None:
    """A line for each entry, a sentence for each cause, every state on the way; no control code gets through."""
    session, entries = record
    out = io.StringIO()
    screen = Screen(out)
    held = Held(path="x", key=session.key, digest_key="k", entries=entries, codec=EntryCodec(), session=session)
    for text in turn_lines(entries, screen, record=entries):
        screen.drawn(text)
    whole: Record[Any] = held.record()
    for seq in {last_answer(whole) or 0, entries[0].seq, entries[-1].seq}:
        for text in why_lines(whole, seq, screen):
            screen.drawn(text)
    assert unfold(held, screen) == 0, out.getvalue()
    show_state(whole.state_at(entries[len(entries) // 2].seq), 0, screen, as_json=False)
    assert harmless(out.getvalue())


@some
@given(record=records())
def test_every_record_verifies_before_and_after_its_export(
    record: tuple[Session, tuple[Entry, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The store's session and the file's digest of it both hold; with all texts taken out, the file's still does."""
    session, entries = record
    codec = EntryCodec()
    stored = Held(path="x", key=session.key, digest_key="k", entries=entries, codec=codec, session=session)
    assert [check.gaps for check in checks(stored) if check.gaps] == []
    path: Path = tmp_path_factory.mktemp("export") / "record.jsonl"
    for leaves in (leaving, Redaction(texts=False)):
        path.write_bytes(b"".join(exported(session, entries, codec, leaves)))
        file = read_record(str(path), codec)
        assert file.header is not None
        again = Held(
            path=str(path), key=file.header.session, digest_key=file.header.digest_key, entries=file.entries,
            codec=codec, header=file.header, broken=file.broken,
        )  # fmt: skip
        assert [check.gaps for check in checks(again) if check.gaps] == []
