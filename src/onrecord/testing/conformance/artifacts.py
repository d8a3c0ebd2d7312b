"""What every store of artifacts promises, as tests: subclass `ArtifactConformance` and say how to make a store.

```python
class TestMyArtifacts(ArtifactConformance):
    @pytest.fixture
    def make_artifacts(self, tmp_path):
        return lambda: MyArtifacts(tmp_path)
```

``make_artifacts`` returns a function that is called once in each test, for a store that holds nothing yet. The tests
are coroutines: they need pytest-asyncio.
"""

# ruff: noqa: S101  assert is the language of tests

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pytest
from msgspec.structs import replace

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.prompt.artifact_store import Artifact, ArtifactScope, ArtifactStore, checksum

__all__ = ("ANA", "AT", "HERS", "SECOND", "ArtifactConformance", "MakeArtifacts", "artifact", "put", "refs")

MakeArtifacts: TypeAlias = Callable[[], ArtifactStore]

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ANA = Identity(tenant="hotel", principal="ana")
HERS = ArtifactScope(session=SessionKey("s", tenant="t"), owner=ANA)

OTHERS = (
    ArtifactScope(session=SessionKey("s", tenant="u"), owner=ANA),
    ArtifactScope(session=SessionKey("r", tenant="t"), owner=ANA),
    ArtifactScope(session=SessionKey("s/below", tenant="t"), owner=ANA),
    ArtifactScope(session=SessionKey("s", tenant="t"), owner=Identity(tenant="hotel", principal="bo")),
    ArtifactScope(session=SessionKey("s", tenant="t"), owner=Identity(principal="ana")),
    ArtifactScope(session=SessionKey("s", tenant="t")),
    ArtifactScope(session=SessionKey("t", tenant="s"), owner=ANA),
    ArtifactScope(session=SessionKey("../..", tenant="/etc"), owner=Identity(principal="*")),
)
"""Scopes that are not hers, most of them by one thing."""


def artifact(ref: str, data: bytes = b"one", seconds: float = 0, **about: Any) -> Artifact:
    """An artifact of these bytes, made so many seconds later."""
    given: dict[str, Any] = {"kind": "k", "media_type": "text/plain", "created_at": AT + seconds * SECOND} | about
    return Artifact(ref=ref, bytes=len(data), checksum=checksum(data), **given)


async def put(store: ArtifactStore, ref: str, data: bytes = b"one", scope: ArtifactScope = HERS, **about: Any) -> None:
    """Stores these bytes."""
    await store.put(scope, artifact(ref, data, **about), data)


@asynccontextmanager
async def opened(make: MakeArtifacts) -> AsyncIterator[ArtifactStore]:
    """A store for one test; one that can be closed is, at its end."""
    store = make()
    try:
        yield store
    finally:
        close = getattr(store, "close", None)
        if close is not None:
            await close()


async def refs(store: ArtifactStore, scope: ArtifactScope = HERS) -> list[str]:
    """What is in a scope, the oldest first."""
    return [one.ref for one in await store.list(scope)]


@pytest.mark.asyncio
class ArtifactConformance:
    """Keeps, hands out and lets go, each scope apart: give a subclass ``make_artifacts``."""

    @pytest.mark.parametrize("data", [b"", b"\0\xff\n", "žluťoučký 東京 🦔".encode(), b"x" * 300_000])
    async def test_what_is_stored_comes_back_as_it_was(self, make_artifacts: MakeArtifacts, data: bytes) -> None:
        """To the byte, with all that is known of it."""
        held = artifact(
            "art_1", data, kind="tool-result/search", label="ž", turn="t", call="c", parents=("art_0",),
            expires_at=AT + SECOND / 1000,
        )  # fmt: skip
        async with opened(make_artifacts) as store:
            await store.put(HERS, held, data)
            assert await store.get(HERS, "art_1") == data
            assert await store.head(HERS, "art_1") == held
            assert list(await store.list(HERS)) == [held]

    @pytest.mark.parametrize("ref", ["", "art_2", "../art_1", "art_1\0", "ART_1", "%", "' or 1=1 --"])
    async def test_a_ref_that_names_nothing_is_none(self, make_artifacts: MakeArtifacts, ref: str) -> None:
        """Whatever is in it."""
        async with opened(make_artifacts) as store:
            assert (await store.head(HERS, "x"), await store.get(HERS, "x"), list(await store.list(HERS))) == (
                None, None, [],
            )  # fmt: skip
            await put(store, "art_1")
            assert (await store.head(HERS, ref), await store.get(HERS, ref)) == (None, None)

    async def test_what_is_stored_twice_is_there_once(self, make_artifacts: MakeArtifacts) -> None:
        """As the newest, as it was stored last."""
        async with opened(make_artifacts) as store:
            await put(store, "a", label="first")
            await put(store, "b", seconds=1)
            await put(store, "a", b"two", seconds=2, label="second")
            assert await refs(store) == ["b", "a"]
            held = await store.head(HERS, "a")
            assert (held and held.label, await store.get(HERS, "a")) == ("second", b"two")

    @pytest.mark.parametrize("other", range(len(OTHERS)))
    async def test_scopes_are_apart(self, make_artifacts: MakeArtifacts, other: int) -> None:
        """Nothing crosses, whatever it is that differs."""
        async with opened(make_artifacts) as store:
            await put(store, "a", b"hers")
            assert (await store.head(OTHERS[other], "a"), await store.get(OTHERS[other], "a")) == (None, None)
            await put(store, "a", b"theirs", OTHERS[other])
            assert [await store.get(scope, "a") for scope in (HERS, OTHERS[other])] == [b"hers", b"theirs"]
            assert (await refs(store), await refs(store, OTHERS[other])) == (["a"], ["a"])

    @pytest.mark.parametrize("what", [HERS.session, ANA], ids=["session", "person"])
    async def test_a_session_or_a_person_is_forgotten(
        self, make_artifacts: MakeArtifacts, what: SessionKey | Identity
    ) -> None:
        """A session of whoever it was, a person whatever the tenant of the session; all others stay. Again, too."""
        async with opened(make_artifacts) as store:
            for scope in (HERS, *OTHERS):
                await put(store, "a", scope=scope)
            for _ in range(2):
                await store.forget(what)
                for scope in (HERS, *OTHERS):
                    assert await refs(store, scope) == ([] if what in (scope.session, scope.owner) else ["a"])
            await put(store, "a")
            assert await refs(store) == ["a"]

    async def test_some_turns_of_a_session_are_forgotten(self, make_artifacts: MakeArtifacts) -> None:
        """With all that was made of what they stored; what another turn stored anew since is that one's."""
        async with opened(make_artifacts) as store:
            await put(store, "both", turn="t1")
            for ref, turn, parents in (
                ("one", "t1", ()), ("two", "t2", ()), ("both", "t2", ()), ("made", "t3", ("one",)),
                ("again", "t4", ("two", "made")), ("alone", "t4", ("two",)),
            ):  # fmt: skip
                await put(store, ref, turn=turn, parents=parents)
            await put(store, "one", scope=OTHERS[0], turn="t1")
            for _ in range(2):
                await store.forget(HERS.session, turns=["t1", "t0"])
                assert sorted(await refs(store)) == ["alone", "both", "two"]
                assert [await store.get(HERS, ref) is None for ref in ("one", "two")] == [True, False]
            await store.forget(HERS.session, turns=[])
            assert len(await refs(store)) == 3

    async def test_what_is_too_old_goes(self, make_artifacts: MakeArtifacts) -> None:
        """By when it was made, in all scopes; without an age, only what is over by itself."""
        async with opened(make_artifacts) as store:
            for scope in (HERS, OTHERS[0]):
                for n in range(3):
                    await put(store, f"a{n}", scope=scope, seconds=n)
            await put(store, "brief", seconds=2, expires_at=AT + 9 * SECOND)
            await store.expire(None, AT + 8 * SECOND)
            assert await refs(store) == ["a0", "a1", "a2", "brief"]
            await store.expire(None, AT + 9 * SECOND)
            assert await refs(store) == ["a0", "a1", "a2"]
            for _ in range(2):
                await store.expire(AT + SECOND, AT + 9 * SECOND)
                assert await refs(store) == await refs(store, OTHERS[0]) == ["a1", "a2"]
            await put(store, "a0", seconds=60)
            await put(store, "a1", seconds=60)  # stored anew, it is young again
            await store.expire(AT + 9 * SECOND, AT + 60 * SECOND)
            assert await refs(store) == ["a0", "a1"]

    async def test_what_is_over_does_not_outstay_the_next_one(self, make_artifacts: MakeArtifacts) -> None:
        """Nobody needs to tidy up in the scope where artifacts are made."""
        async with opened(make_artifacts) as store:
            await put(store, "brief", expires_at=AT + SECOND)
            await put(store, "next", seconds=2, expires_at=AT + 9 * SECOND)
            assert await refs(store) == ["next"]
            assert await store.get(HERS, "brief") is None

    async def test_many_write_at_once(self, make_artifacts: MakeArtifacts) -> None:
        """Parallel calls often give the same: each is stored, and nothing is lost."""
        async with opened(make_artifacts) as store:
            async with asyncio.TaskGroup() as group:
                for n in range(30):
                    group.create_task(put(store, f"a{n}", b"%d" % n, seconds=n))
                    group.create_task(put(store, "same", b"all", seconds=n))
            assert sorted(await refs(store)) == sorted([*(f"a{n}" for n in range(30)), "same"])
            assert [await store.get(HERS, f"a{n}") for n in range(30)] == [b"%d" % n for n in range(30)]
            assert await store.get(HERS, "same") == b"all"

    async def test_a_bundle_of_bytes_knows_whether_it_is_whole(self, make_artifacts: MakeArtifacts) -> None:
        """What comes back fits what is known of it; other bytes of the same length would not."""
        async with opened(make_artifacts) as store:
            await put(store, "a", b"one")
            held, data = await store.head(HERS, "a"), await store.get(HERS, "a")
            assert held is not None
            assert data is not None
            assert held.is_whole(data)
            assert not held.is_whole(b"two")
            bare = replace(held, checksum="")  # of one that says nothing of its bytes, their number is known
            assert (bare.is_whole(b"two"), bare.is_whole(b"four")) == (True, False)
