"""What every shelf of memories promises, as tests: subclass `ShelfConformance` and say how to make a shelf.

```python
class TestMyShelf(ShelfConformance):
    @pytest.fixture
    def make_shelf(self, tmp_path):
        return lambda: MyShelf(tmp_path / "my.db")
```

``make_shelf`` returns a function that is called once in each test, for a shelf that holds nothing yet. The tests are
coroutines: they need pytest-asyncio.
"""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pytest
from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.memory.ports import Kept, Near, Shelf, Shown, Space, Vector

__all__ = ("MakeShelf", "ShelfConformance")

MakeShelf: TypeAlias = Callable[[], Shelf]

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
ANA = Identity(tenant="t", principal="ana")
HERS = Space(tenant="t", owner=ANA)

OTHERS = (
    Space(tenant="u", owner=ANA),
    Space(tenant="t", owner=Identity(tenant="u", principal="ana")),
    Space(tenant="t", owner=Identity(tenant="t", principal="bo")),
    Space(tenant="t", owner=Identity(principal="ana")),
    Space(tenant="t", owner=ANA, session="s"),
    Space(tenant="t", owner=ANA, memory="other"),
    Space(tenant="t", session="ana"),
    Space(),
)
"""Spaces that differ from hers in one thing."""


def kept(key: str, text: str = "", **about: Any) -> Kept:
    """Something to keep: an episode of session ``s`` unless it says otherwise."""
    given: dict[str, Any] = {"kind": "episode", "at": AT, "sessions": ("s",)} | about
    return Kept(key=key, text=text or f"text of {key}", **given)


def vector(*numbers: float, of: str = "test@2") -> Vector:
    """A vector of length 1."""
    return Vector(of, struct.pack(f"<{len(numbers)}f", *numbers))


@asynccontextmanager
async def opened(make: MakeShelf) -> AsyncIterator[Shelf]:
    """A shelf for one test, closed at its end."""
    shelf = make()
    try:
        yield shelf
    finally:
        await shelf.close()


async def keys(shelf: Shelf, space: Space = HERS, kind: Any = "episode", **about: Any) -> list[str]:
    """What is kept there, by key, the newest last."""
    return [one.key for one in await shelf.newest(space, kind, **{"limit": 100, **about})]


async def found(shelf: Shelf, text: str, space: Space = HERS, **about: Any) -> list[str]:
    """What a search finds, by key, the best first."""
    return [one.kept.key for one in await shelf.search(space, "episode", text, **{"limit": 100, **about})]


@pytest.mark.asyncio
class ShelfSearching:
    """How a shelf finds what is kept on it."""

    async def test_a_search_ranks_by_words(self, make_shelf: MakeShelf) -> None:
        """More and rarer words first, and shorter texts; no case, no accents; what shares no word is not found."""
        async with opened(make_shelf) as shelf:
            await shelf.put(HERS, [
                kept("one", "We talked about the invoice of March."), kept("two", "The invoice and the late delivery."),
                kept("three", "Café de Zürich, the delivery."), kept("four", "Nothing of the kind."),
                kept("short", "A zebra."), kept("long", "A zebra, between many other things that were told of it."),
            ])  # fmt: skip
            assert (await found(shelf, "late INVOICE delivery"))[0] == "two"
            assert await found(shelf, "cafe zurich") == ["three"]
            assert await found(shelf, "elephants") == []
            assert await found(shelf, "zebra") == ["short", "long"]
            assert len(await found(shelf, "the", limit=2)) == 2
            scores = [one.score for one in await shelf.search(HERS, "episode", "invoice delivery", limit=9)]
            assert scores == sorted(scores, reverse=True)

    async def test_what_others_say_ranks_nothing(self, make_shelf: MakeShelf) -> None:
        """A word that is rare with her counts as rare, however often others use it."""
        async with opened(make_shelf) as shelf:
            for place, space in enumerate(OTHERS):
                await shelf.put(space, [kept(f"{place}/{i}", f"the apple, number {i}") for i in range(40)])
            await shelf.put(HERS, [kept(f"p{i}", f"pear of day {i}") for i in range(8)])
            await shelf.put(HERS, [kept("apple", "apple of day 9"), kept("last", "pear of day 10")])
            assert (await found(shelf, "pear apple"))[0] == "apple"

    async def test_scripts_without_spaces_are_searched(self, make_shelf: MakeShelf) -> None:
        """A word inside a sentence is found."""
        async with opened(make_shelf) as shelf:
            await shelf.put(
                HERS,
                [
                    kept("zh", "我想取消明天的预订"),
                    kept("ja", "明日の予約をキャンセルしたい"),
                    kept("ko", "예약을 취소"),
                ],
            )
            assert await found(shelf, "取消预订") == ["zh"]
            assert await found(shelf, "予約") == ["ja"]
            assert await found(shelf, "예약을") == ["ko"]

    async def test_signs_that_are_no_letters_are_part_of_words(self, make_shelf: MakeShelf) -> None:
        """Vowel signs, tone marks; accents and vowel points, which people leave out, do not matter in any form."""
        texts = {
            "th": "ฉันต้องการยกเลิกการจองพรุ่งนี้", "hi": "मैं हिन्दी बोलता हूँ", "hm": "हिम गिर रहा है",
            "ta": "நான் தமிழ் பேசுகிறேன்", "ar": "كِتَابٌ جَدِيد", "nfd": "un cafe\u0301 noir", "de": "die Straße",
        }  # fmt: skip
        asked = {
            "ยกเลิก": "th",
            "हिन्दी": "hi",
            "हिम": "hm",
            "தமிழ்": "ta",
            "كتاب": "ar",
            "caf\u00e9": "nfd",
            "STRASSE": "de",
        }
        async with opened(make_shelf) as shelf:
            await shelf.put(HERS, [kept(k, text) for k, text in texts.items()])
            assert {word: await found(shelf, word) for word in asked} == {word: [key] for word, key in asked.items()}

    @pytest.mark.parametrize(
        "text",
        ["", " ", '"', "'", "a AND b OR NOT (c", "NEAR(a b)", "space : x", "*", "^a", "-", "\0", "🙂", "%", "a" * 9999],
    )
    async def test_a_question_is_words_and_nothing_else(self, make_shelf: MakeShelf, text: str) -> None:
        """No syntax of any search engine is read in it, and nothing in it fails."""
        async with opened(make_shelf) as shelf:
            await shelf.put(HERS, [kept("odd", text), kept("other", "zebra crossing")])
            assert "other" not in await found(shelf, text)

    async def test_what_is_shown_anyway_is_left_out(self, make_shelf: MakeShelf) -> None:
        """Of one session, from an instant on; it does not count against the limit."""
        async with opened(make_shelf) as shelf:
            days = [kept(f"d{day}", "same words", at=AT + timedelta(days=day)) for day in range(4)]
            await shelf.put(HERS, [*days, kept("r", "same words", sessions=("r",))])
            assert await keys(shelf, apart=Shown("s")) == ["r"]
            late = Shown("s", AT + timedelta(days=2))
            assert await keys(shelf, apart=late) == ["d0", "d1", "r"]
            assert await keys(shelf, apart=late, limit=2) == ["d1", "r"]
            assert sorted(await found(shelf, "same", apart=late)) == ["d0", "d1", "r"]

    async def test_what_is_near_is_found_though_it_shares_no_word(self, make_shelf: MakeShelf) -> None:
        """Beside what shares words; the nearer the better, and nothing that is further than it may be."""
        async with opened(make_shelf) as shelf:
            texts = {"near": "a feline", "nearer": "a tomcat", "far": "a lorry", "word": "the cat"}
            places = {"near": (0.8, 0.6), "nearer": (1.0, 0.0), "far": (-1.0, 0.0)}
            await shelf.put(
                HERS, [kept(k, text) for k, text in texts.items()], vectors={k: vector(*v) for k, v in places.items()}
            )
            asked = Near(vector(1.0, 0.0))
            assert await found(shelf, "cat", near=asked) == ["word", "nearer", "near", "far"]
            assert await found(shelf, "cat", near=replace(asked, least=0.5)) == ["word", "nearer", "near"]
            assert await found(shelf, "", near=replace(asked, least=0.9)) == ["nearer"]
            assert await found(shelf, "cat", near=asked, limit=2) == ["word", "nearer"]
            assert await found(shelf, "cat") == ["word"]
            assert await found(shelf, "cat", near=Near(vector(1.0, 0.0, of="other@2"))) == ["word"]
            assert await found(shelf, "cat", near=Near(vector(1.0, 0.0, 0.0))) == ["word"]
            assert await found(shelf, "", near=asked, apart=Shown("s")) == []
            scores = [one.score for one in await shelf.search(HERS, "episode", "cat", limit=9, near=asked)]
            assert scores == sorted(scores, reverse=True)
            assert 0 <= scores[-1] <= scores[0] <= 1

    async def test_a_vector_goes_with_its_text(self, make_shelf: MakeShelf) -> None:
        """It is overwritten, dropped, forgotten and let go of like the words; and it is in its space only."""
        asked = Near(vector(1.0, 0.0), least=0.5)
        async with opened(make_shelf) as shelf:
            for key in "abcd":
                await shelf.put(HERS, [kept(key, sessions=(key,))], vectors={key: vector(1.0, 0.0)})
            await shelf.put(HERS, [kept("a")], drop=["b"])
            assert await shelf.forget(SessionKey("c", tenant="t")) == 1
            for space in OTHERS:
                assert await found(shelf, "", space, near=asked) == []
            assert await found(shelf, "", near=asked) == ["d"]
            await shelf.put(HERS, [kept("d")], vectors={"d": vector(0.0, 1.0)})
            assert await found(shelf, "", near=asked) == []


@pytest.mark.asyncio
class ShelfConformance(ShelfSearching):
    """Keeps, finds and forgets, each space apart: give a subclass ``make_shelf``."""

    async def test_what_is_kept_comes_back_as_it_was(self, make_shelf: MakeShelf) -> None:
        """In the order in which it was kept, with numbers that count up."""
        given = [kept(k, role="user", turn="t1", upto=3, sessions=("s", "r")) for k in ("b", "a", "c")]
        async with opened(make_shelf) as shelf:
            await shelf.put(HERS, given[:2])
            await shelf.put(HERS, given[2:])
            held = await shelf.newest(HERS, "episode", limit=10)
            assert [replace(one, n=0) for one in held] == given
            numbers = [one.n for one in held]
            assert numbers == sorted(set(numbers))
            assert await keys(shelf, limit=2) == ["a", "c"]
            assert await keys(shelf, limit=0) == []
            assert await keys(shelf, after=numbers[0]) == ["a", "c"]

    async def test_a_key_is_there_once(self, make_shelf: MakeShelf) -> None:
        """The later takes the place of the earlier, as the newest; numbers are not used again."""
        async with opened(make_shelf) as shelf:
            await shelf.put(HERS, [kept("a", "one apple"), kept("b")])
            (first, _) = await shelf.newest(HERS, "episode", limit=10)
            await shelf.put(HERS, [kept("a", "two pears")])
            held = await shelf.newest(HERS, "episode", limit=10)
            assert [one.key for one in held] == ["b", "a"]
            assert held[1].n > first.n + 1
            assert await found(shelf, "apple") == []
            assert await found(shelf, "pears") == ["a"]

    async def test_keys_are_let_go_of(self, make_shelf: MakeShelf) -> None:
        """Together with what is kept in their place; a key that is not there is no matter."""
        async with opened(make_shelf) as shelf:
            await shelf.put(HERS, [kept("a"), kept("b")])
            await shelf.put(HERS, [kept("c")], drop=["a", "nothing"])
            assert await keys(shelf) == ["b", "c"]
            await shelf.put(HERS, [], drop=["b", "c"])
            assert await keys(shelf) == []
            assert await found(shelf, "text") == []

    async def test_kinds_are_apart(self, make_shelf: MakeShelf) -> None:
        """A kind is asked for, and no other comes back."""
        async with opened(make_shelf) as shelf:
            await shelf.put(HERS, [kept("m", kind="message"), kept("f", kind="fact"), kept("e")])
            assert await keys(shelf, kind="message") == ["m"]
            assert await keys(shelf, kind="summary") == []
            assert await found(shelf, "text") == ["e"]

    @pytest.mark.parametrize("other", range(len(OTHERS)))
    async def test_spaces_are_apart(self, make_shelf: MakeShelf, other: int) -> None:
        """Nothing crosses, whatever it is that differs: tenant, person, session or memory."""
        async with opened(make_shelf) as shelf:
            await shelf.put(HERS, [kept("a", "the blue bicycle")])
            await shelf.put(OTHERS[other], [kept("a", "the red bicycle")], drop=["a"])
            for space, text in ((HERS, "the blue bicycle"), (OTHERS[other], "the red bicycle")):
                assert [one.text for one in await shelf.newest(space, "episode", limit=9)] == [text]
                assert [one.kept.text for one in await shelf.search(space, "episode", "bicycle", limit=9)] == [text]

    async def test_a_session_is_forgotten(self, make_shelf: MakeShelf) -> None:
        """With everything that is made of its words, in every space of its tenant; what others said stays."""
        async with opened(make_shelf) as shelf:
            both = Space(tenant="t", session="s")
            await shelf.put(
                HERS, [kept("a"), kept("b", sessions=("r",)), kept("ab", kind="summary", sessions=("r", "s"))]
            )
            await shelf.put(both, [kept("own")])
            await shelf.put(OTHERS[0], [kept("theirs")])
            assert await shelf.forget(SessionKey("s", tenant="t")) == 3
            assert await keys(shelf) == ["b"]
            assert await keys(shelf, kind="summary") == []
            assert await keys(shelf, both) == []
            assert await keys(shelf, OTHERS[0]) == ["theirs"]
            assert await found(shelf, "text") == ["b"]
            assert await shelf.forget(SessionKey("s", tenant="t")) == 0

    async def test_a_person_is_forgotten(self, make_shelf: MakeShelf) -> None:
        """Whatever the tenant of the session and whichever memory; nobody else is."""
        async with opened(make_shelf) as shelf:
            for space in (HERS, *OTHERS):
                await shelf.put(space, [kept("a")])
            hers = [space for space in (HERS, *OTHERS) if space.owner == ANA]
            assert await shelf.forget(ANA) == len(hers) == 4
            for space in (HERS, *OTHERS):
                assert await keys(shelf, space) == ([] if space in hers else ["a"])

    async def test_what_is_old_goes(self, make_shelf: MakeShelf) -> None:
        """In one space, or in all of a memory; what is as old as the instant itself stays."""
        own = Space(tenant="u", memory=HERS.memory)
        async with opened(make_shelf) as shelf:
            for space in (HERS, own, replace(HERS, memory="other")):
                await shelf.put(space, [kept(f"d{day}", "words", at=AT + timedelta(days=day)) for day in range(4)])
            assert await shelf.expire(AT + timedelta(days=1), HERS) == 1
            assert await keys(shelf) == ["d1", "d2", "d3"]
            assert await found(shelf, "words") == ["d3", "d2", "d1"]
            assert await shelf.expire(AT + timedelta(days=3), HERS.memory) == 2 + 3
            assert await keys(shelf) == await keys(shelf, own) == ["d3"]
            assert len(await keys(shelf, replace(HERS, memory="other"))) == 4
            assert await shelf.expire(AT, HERS.memory) == 0

    async def test_a_person_is_forgotten_in_the_memories_of_others(self, make_shelf: MakeShelf) -> None:
        """What is made of their words goes, in whosever space it is; what others said there stays."""
        team, bo = Space(tenant="t", owner=Identity(principal="team")), Identity(tenant="t", principal="bo")
        async with opened(make_shelf) as shelf:
            told = {"hers": (ANA,), "his": (bo,), "theirs": (ANA, bo), "nobody": ()}
            await shelf.put(team, [kept(key, people=people) for key, people in told.items()])
            assert (await shelf.newest(team, "episode", limit=9))[2].people == (ANA, bo)
            assert await shelf.forget(ANA) == 2
            assert await keys(shelf, team) == ["his", "nobody"]
            assert sorted(await found(shelf, "text", team)) == ["his", "nobody"]

    async def test_many_write_at_once(self, make_shelf: MakeShelf) -> None:
        """Nothing is lost, and every number is one thing's."""
        async with opened(make_shelf) as shelf:
            async with asyncio.TaskGroup() as group:
                for i in range(20):
                    _ = group.create_task(shelf.put(HERS, [kept(f"k{i}"), kept("same")]))
            held = await shelf.newest(HERS, "episode", limit=100)
            assert len(held) == len({one.key for one in held}) == len({one.n for one in held}) == 21

    async def test_it_can_be_closed_twice(self, make_shelf: MakeShelf) -> None:
        """And before it was ever used."""
        shelf = make_shelf()
        await shelf.close()
        await shelf.close()
