"""Where artifacts are kept: by scope, for as long as there is room, until somebody is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import StoreError
from onrecord.prompt.artifact_stores import Artifact, ArtifactScope, ArtifactStore, FileArtifacts, MemoryArtifacts
from tests.prompt.placing import DAY, SCOPE

pytestmark = pytest.mark.unit


def artifact(ref: str, size: int = 3, seconds: int = 0) -> Artifact:
    """An artifact of some size, made so many seconds later."""
    return Artifact(ref=ref, kind="k", media_type="text/plain", bytes=size, created_at=DAY + timedelta(seconds=seconds))


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    """Each store."""
    return MemoryArtifacts() if request.param == "memory" else FileArtifacts(tmp_path / "artifacts")


async def test_a_store_keeps_by_scope(store: ArtifactStore) -> None:
    """Put, read, list, replaced; nothing of anybody else."""
    other = ArtifactScope(tenant="t", principal="bo", session="s2")
    assert (await store.head(SCOPE, "a"), await store.get(SCOPE, "a"), list(await store.list(SCOPE))) == (
        None,
        None,
        [],
    )
    await store.put(SCOPE, artifact("a"), b"one")
    await store.put(SCOPE, artifact("b", seconds=1), b"two")
    await store.put(other, artifact("a"), b"bo's")
    assert await store.get(SCOPE, "a") == b"one"
    assert await store.head(SCOPE, "b") == artifact("b", seconds=1)
    assert [one.ref for one in await store.list(SCOPE)] == ["a", "b"]
    assert await store.get(other, "b") is None


@pytest.mark.parametrize("what", [SessionKey("s", tenant="t"), Identity(tenant="t", principal="ana")])
async def test_a_store_forgets_a_session_or_a_person(store: ArtifactStore, what: SessionKey | Identity) -> None:
    """All of it, again and again; others stay."""
    other = ArtifactScope(tenant="u", principal="ana", session="s")
    for each in (SCOPE, other):
        await store.put(each, artifact("a"), b"one")
    for _ in range(2):
        await store.forget(what)
    assert await store.get(SCOPE, "a") is None
    assert await store.get(other, "a") == b"one"


async def test_memory_drops_the_oldest() -> None:
    """By size, by number; never the newest, however large."""

    async def left(store: ArtifactStore, sizes: Sequence[int]) -> list[str]:
        for number, size in enumerate(sizes):
            await store.put(SCOPE, artifact(f"{number}", size), b"x" * size)
        return [one.ref for one in await store.list(SCOPE)]

    assert await left(MemoryArtifacts(max_bytes=10), [4, 4, 4]) == ["1", "2"]
    assert await left(MemoryArtifacts(max_count=2), [4, 4, 4]) == ["1", "2"]
    assert await left(MemoryArtifacts(max_bytes=10), [4, 40]) == ["1"]


def names(folder: Path) -> list[str]:
    """What stands in a folder."""
    return [path.name for path in folder.iterdir()]


async def test_files_cannot_be_led_astray(tmp_path: Path) -> None:
    """Names are digests; a disk that fails is a StoreError without a path."""
    store = FileArtifacts(tmp_path / "artifacts")
    wild = ArtifactScope(tenant="../..", principal="/etc", session="..")
    await store.put(wild, artifact("../../x"), b"one")
    assert await store.get(wild, "../../x") == b"one"
    assert names(tmp_path) == ["artifacts"]
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="artifacts cannot be kept in 'file': NotADirectoryError") as raised:
        await FileArtifacts(tmp_path / "file").put(SCOPE, artifact("a"), b"one")
    assert str(tmp_path) not in str(raised.value)
