"""Files beside a ``SKILL.md``, as a model reads them: nothing outside, nothing hidden, nothing run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onrecord.errors import ConfigurationError
from onrecord.skills import Skills, skill_files, skills_from_folder
from onrecord.skills.skill_files import MOST_BYTES
from onrecord.testing import call
from tests.skills.knowing import answering, pick
from tests.turn.acting import results, texts

pytestmark = pytest.mark.unit

SECRET = "the secret outside"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two skills, their files, and something that nobody may read beside it."""
    held = tmp_path / "skills"
    for name in ("refunds", "orders"):
        (held / name / "references").mkdir(parents=True)
        (held / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: x\n---\nSee references/guide.md.\n")
        (held / name / "references" / "guide.md").write_text(f"The guide of {name}, with ümlauts.", encoding="utf-8")
    (tmp_path / "secret.md").write_text(SECRET)
    (held / "refunds" / ".env").write_text(SECRET)
    (held / "refunds" / ".hidden").mkdir()
    (held / "refunds" / ".hidden" / "x.md").write_text(SECRET)
    (held / "refunds" / "link.md").symlink_to(tmp_path / "secret.md")
    (held / "refunds" / "away").symlink_to(tmp_path)
    (held / "refunds" / "circle.md").symlink_to("circle.md")
    return held


async def read(folder: Path, path: str, skill: str = "refunds") -> tuple[str, str]:
    """What the tool came to: the status of the call, and what the model reads."""
    asked = call("read_skill_file", skill=skill, path=path)
    requests, result = await answering(asked, "done", tools=[skill_files(folder)])
    return results(result)[0][1], texts(requests[1])[0]


async def test_a_model_reads_what_a_skill_refers_to(folder: Path) -> None:
    """By the path that the instructions say, once they are read."""
    asked = call("read_skill_file", skill="orders", path="references/guide.md")
    features = [Skills(*skills_from_folder(folder))]
    requests, _ = await answering(pick("orders"), asked, "done", features=features, tools=[skill_files(folder)])
    assert texts(requests[2])[-1] == "The guide of orders, with ümlauts."


@pytest.mark.parametrize(
    "path",
    [
        "../../secret.md", "references/../../../secret.md", "/etc/hostname", "link.md", "away/secret.md", ".env",
        ".hidden/x.md", "references", "", ".", "..", "missing.md", "..\\..\\secret.md", "references/guide.md\x00",
        "../orders/references/guide.md", "~/secret.md", "references//..//..//..//secret.md", "x" * 300 + ".md",
        "x/" * 3000, "circle.md", "circle.md/x",
    ],
)  # fmt: skip
async def test_nothing_else_is_read(folder: Path, path: str) -> None:
    """The model learns which files there are; never what is elsewhere, nor where the folder is."""
    status, told = await read(folder, path)
    assert status == "failed"
    assert "its files are: references/guide.md" in told
    assert SECRET not in told
    assert "link.md" not in told.replace(path, "")
    assert str(folder) not in told


async def test_what_is_too_large_or_no_text_is_refused(folder: Path) -> None:
    """And a long list of files is cut."""
    (folder / "refunds" / "big.md").write_text("x" * (MOST_BYTES + 1))
    (folder / "refunds" / "logo.png").write_bytes(b"\x89PNG\xff")
    assert (await read(folder, "big.md"))[1].count(f"is larger than {MOST_BYTES} bytes") == 1
    assert "is not a text" in (await read(folder, "logo.png"))[1]
    for number in range(19):
        (folder / "orders" / f"f{number:02}.md").write_text("x")
    assert "…" not in (await read(folder, "none", "orders"))[1]
    for number in range(19, 30):
        (folder / "orders" / f"f{number:02}.md").write_text("x")
    told = (await read(folder, "none", "orders"))[1]
    assert told.count(".md") == 20
    assert "…" in told


async def test_a_file_that_cannot_be_read_is_named_without_its_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system says of it has the whole path."""

    def fails(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied", str(folder / "guide.md"))

    tool: Any = skill_files(folder)
    monkeypatch.setattr(Path, "read_text", fails)
    with pytest.raises(ValueError, match=r"^the file 'references/guide\.md' cannot be read: PermissionError$"):
        tool.handler({"skill": "refunds", "path": "references/guide.md"}, None)


async def test_files_are_named_in_one_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order in which a disk tells them: the same call reads the same."""
    for name in "cab":
        (folder / "orders" / f"{name}.md").write_text(name)
    told = list[str]()
    for order in (sorted, lambda found: sorted(found, reverse=True)):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "rglob", lambda path, pattern, *, order=order: order(path.glob(f"**/{pattern}")))
            told.append((await read(folder, "missing.md", "orders"))[1])
    assert told[0] == told[1]
    assert [told[0].index(f"{name}.md") for name in "abc"] == sorted(told[0].index(f"{name}.md") for name in "abc")


async def test_only_skills_have_files(folder: Path, tmp_path: Path) -> None:
    """A skill is one of those that there are; a folder that is a link to elsewhere is none."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "SKILL.md").write_text("x")
    (folder / "elsewhere").symlink_to(tmp_path / "elsewhere")
    assert [(await read(folder, "x", skill))[0] for skill in ("nobody", "elsewhere")] == ["invalid"] * 2
    with pytest.raises(ConfigurationError, match="there is no such folder"):
        skill_files(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigurationError, match="no folder in it has a SKILL") as caught:
        skill_files(tmp_path / "empty")
    assert "a folder named after it" in caught.value.hint


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.sampled_from(["..", ".", "references", "guide.md", "away", "link.md", "secret.md", "/", "", "\\"])
    )
)
def test_no_path_leads_out(folder: Path, parts: list[str]) -> None:
    """However it is put together."""
    tool: Any = skill_files(folder)
    try:
        told = tool.handler({"skill": "refunds", "path": "/".join(parts)}, None)
    except LookupError as refused:
        told = str(refused)
    assert SECRET not in told
