"""Shelves of people who have said very much: a turn costs as much as in the beginning."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.conversation.identity import SessionKey
from onrecord.memory import shelved_texts
from onrecord.memory.plain_shelf import PlainShelf
from onrecord.memory.ports import Kept, Shown
from onrecord.memory.ranking import by_words
from onrecord.stores import SqliteShelf, sqlite_shelf
from onrecord.testing.conformance.shelf import AT, HERS, found, kept, keys

pytestmark = pytest.mark.integration

WORDS = ("red car", "blue sky and red", "green", "blue blue", "the red red sea")


@pytest.mark.parametrize("in_file", [False, True], ids=["plain", "sqlite"])
async def test_a_long_life_is_searched_by_its_rare_words(
    tmp_path: Path, in_file: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that are in very many texts are looked for in the newest of them: turns would cost more and more."""
    monkeypatch.setattr(sqlite_shelf, "MOST_MATCHED", 40)
    monkeypatch.setattr(shelved_texts, "MOST_LOOKED_AT", 40)
    shelf = SqliteShelf(tmp_path / "shelf.db") if in_file else PlainShelf()
    await shelf.put(HERS, [kept("rare", "a zebra in the garden", sessions=("first",))])
    await shelf.put(HERS, [kept(f"{i}", "a dog in the garden", sessions=(f"{i % 7}",)) for i in range(200)])
    assert await found(shelf, "zebra", limit=3) == ["rare"]
    assert (await found(shelf, "a zebra in the garden", limit=3))[0] == "rare"
    assert len(await found(shelf, "a zebra in the garden", limit=3)) == 3
    newest = await found(shelf, "in the garden", limit=100)
    assert len(newest) == 40
    assert in_file is False or newest == [f"{i}" for i in range(199, 159, -1)]
    assert "rare" not in newest
    await shelf.close()


async def test_of_many_sessions_only_the_latest_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person has had many: the newest messages are in few of them."""
    shelf, looked_at, covers = PlainShelf(), list[Kept](), Shown.covers

    def counted(self: Shown, one: Kept) -> bool:
        looked_at.append(one)
        return covers(self, one)

    for i in range(400):
        await shelf.put(HERS, [kept(f"{i}", "a word", sessions=(f"s{i}",))])
    await shelf.put(HERS, [kept("7", "a word again", sessions=("s7",))])
    monkeypatch.setattr(Shown, "covers", counted)
    assert await keys(shelf, limit=3) == ["398", "399", "7"]
    assert len(looked_at) == 3


_puts = st.tuples(st.just("put"), st.sampled_from("abcdef"), st.sampled_from("rst"), st.sampled_from(WORDS))
_asks = st.tuples(
    st.just("ask"), st.integers(1, 4), st.sampled_from([Shown(), Shown("s"), Shown("r", AT)]), st.integers(0, 9)
)
_drops = st.tuples(st.just("drop"), st.sampled_from("abcdef"), st.just(""), st.just(""))


@given(st.lists(st.one_of(_puts, _puts, _asks, _drops, st.tuples(st.just("forget"), st.sampled_from("rst")))))
def test_a_plain_shelf_is_what_a_list_of_texts_says(steps: list[Any]) -> None:
    """Whatever is put, dropped and forgotten in whatever order: the newest are the same, and so is who shares words."""
    asyncio.run(_compared(steps))


async def _compared(steps: list[Any]) -> None:
    shelf, held, number = PlainShelf(), dict[str, Kept](), 0
    for what, *about in steps:
        if what == "put":
            number += 1
            key, of, text = about
            held.pop(key, None)
            at = AT + timedelta(days=number % 3 - 1)
            held[key] = kept(key, text, sessions=(of,), at=at, n=number)
            await shelf.put(HERS, [held[key]])
        elif what == "drop":
            held.pop(about[0], None)
            await shelf.put(HERS, [], drop=(about[0],))
        elif what == "forget":
            held = {key: one for key, one in held.items() if one.sessions != (about[0],)}
            await shelf.forget(SessionKey(about[0], tenant="t"))
        else:
            limit, apart, after = about
            seen = [one for one in held.values() if not apart.covers(one)]
            fresh = [one for one in seen if one.n > after]
            assert await shelf.newest(HERS, "episode", limit=limit, after=after, apart=apart) == fresh[-limit:]
            hits = await shelf.search(HERS, "episode", "red blue", limit=99, apart=apart)
            assert {one.kept.key for one in hits} == {one.key for one in seen if {"red", "blue"} & {*one.text.split()}}
            assert [one.score for one in hits] == sorted((one.score for one in hits), reverse=True)
            if apart == Shown():
                wanted = by_words(((one.n, Counter(one.text.split())) for one in seen), ["red", "blue"])
                assert {one.kept.n: round(one.score, 9) for one in hits} == {n: round(s, 9) for n, s in wanted.items()}
