"""Model files by their head, and names of models: what is wrong is said before anything is loaded."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from onrecord.errors import ConfigurationError, MissingDependency
from onrecord.models.names import model_named
from onrecord.providers.local.client import local, named
from onrecord.providers.local.gguf import GgufHead, check_gguf, read_head
from tests.providers.gguf_files import WHEEL, fact, head, model_head, string

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(WHEEL))


def test_the_head_says_what_a_file_is() -> None:
    """Architecture, name and trained context, from the facts before the vocabulary."""
    assert read_head(model_head()) == GgufHead(architecture="qwen2", name="Small Model", context_tokens=32768)


@pytest.mark.parametrize(
    "data",
    [
        b"GGUF",
        head(count=4),
        head(fact("general.name", "x"), count=1)[:-1],
        head(fact("general.tags", ["x"]), count=1)[:-1],
        head(b"\x01\x00\x00\x00\x00\x00\x00\x00k\x63\x00\x00\x00", count=1),  # a kind of value nobody knows
        head(b"\x01\x00\x00\x00\x00\x00\x00\x00\xff", count=1),
        head(string("k") + pack("<I", 9) + pack("<IQ", 9, 1) * 5000, count=1),  # lists in lists
    ],
)
def test_a_head_that_is_not_understood_is_left_to_llama_cpp(data: bytes) -> None:
    """Cut off, unknown or undecodable: no facts, and no error of ours."""
    assert read_head(data) == GgufHead()


def test_facts_behind_some_kilobytes_of_others_are_found(tmp_path: Path) -> None:
    """Licences and descriptions stand before the vocabulary too."""
    file = tmp_path / "m.gguf"
    told = (
        fact("general.license", "x" * 20_000),
        fact("general.architecture", "llama"),
        fact("llama.context_length", 99),
    )
    file.write_bytes(head(*told))
    assert check_gguf(file).context_tokens == 99


def test_facts_read_before_the_head_ends_are_kept() -> None:
    """A head longer than what was read loses only its rest."""
    cut = head(fact("general.architecture", "llama"), fact("general.name", "Cut off"))[:-3]
    assert read_head(cut) == GgufHead(architecture="llama")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "it is empty"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"\n<!doctype html>", "a web page"),
        (b"PK\x03\x04", "a zip archive"),
        (b"something", "does not begin with the letters GGUF"),
    ],
)
def test_a_file_that_is_no_model_is_named_for_what_it_is(tmp_path: Path, data: bytes, told: str) -> None:
    """The usual wrong files are told apart."""
    file = tmp_path / "m.gguf"
    file.write_bytes(data)
    with pytest.raises(ConfigurationError, match=told) as caught:
        check_gguf(file)
    assert file.name not in caught.value.hint


@pytest.mark.parametrize(("architecture", "told"), [("clip", "image encoder"), ("bert", "embedding model")])
def test_models_that_cannot_chat_are_refused(tmp_path: Path, architecture: str, told: str) -> None:
    """Encoders and embedding models are GGUF files too; the hint names another file, not this one."""
    file = tmp_path / "m.gguf"
    file.write_bytes(model_head(architecture=architecture))
    with pytest.raises(ConfigurationError, match=told) as caught:
        check_gguf(file)
    assert str(file) not in caught.value.hint


def test_a_missing_file_is_answered_with_the_one_that_is_there(tmp_path: Path) -> None:
    """The hint is a name that works."""
    (tmp_path / "a broken one.gguf").touch()
    (tmp_path / "a folder.gguf").mkdir()
    (tmp_path / "there.gguf").write_bytes(model_head())
    with pytest.raises(ConfigurationError, match="there is no model file") as caught:
        model_named(f"local:{tmp_path}/mistyped.gguf")
    assert caught.value.hint == f"that folder has 'there.gguf': name it as model 'local:{tmp_path}/there.gguf'"


@pytest.mark.parametrize("name", ["nowhere/at/all.gguf", "."])
def test_a_missing_file_without_neighbours_says_what_to_name(name: str, tmp_path: Path) -> None:
    """Also for a folder."""
    with pytest.raises(ConfigurationError) as caught:
        check_gguf(tmp_path / name)
    assert "local:/path/to/model.gguf" in caught.value.hint


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A permission is a configuration error like the others."""

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(ConfigurationError, match="cannot be read: Permission denied") as caught:
        check_gguf(tmp_path / "m.gguf")
    assert caught.value.hint.startswith("see who may read it")


def test_a_name_is_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the card describes the file."""
    (tmp_path / "small.gguf").write_bytes(model_head())
    monkeypatch.chdir(tmp_path)
    card = named("local", "small.gguf").card
    assert (card.name, card.context_tokens) == ("local:small.gguf", 8192)
    assert card.about == "Small Model, run on this machine by llama.cpp."
    assert not card.images
    assert card.base_url is None


def test_a_small_context_of_the_model_is_all_it_gets(tmp_path: Path) -> None:
    """The default never exceeds what the model was trained for."""
    file = tmp_path / "m.gguf"
    file.write_bytes(model_head(context_tokens=2048))
    assert local(file).card.context_tokens == 2048
    assert local(file, context_tokens=512).card.context_tokens == 512


@pytest.mark.parametrize("wrong", [{"context_tokens": 0}, {"parallel": 0}, {"cores": -1}])
def test_numbers_that_make_no_sense(tmp_path: Path, wrong: dict[str, int]) -> None:
    """They are refused before the file is looked at."""
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        local(tmp_path / "m.gguf", **wrong)  # type: ignore[arg-type]  # the values are numbers


def test_a_later_part_names_the_first(tmp_path: Path) -> None:
    """A model in parts is named by its first part."""
    with pytest.raises(ConfigurationError, match="a later part") as caught:
        local(tmp_path / "big-00002-of-00003.gguf")
    assert caught.value.hint.endswith("big-00001-of-00003.gguf'")


def test_the_first_part_is_the_model(tmp_path: Path) -> None:
    """llama.cpp finds the others beside it."""
    file = tmp_path / "m-00001-of-00003.gguf"
    file.write_bytes(model_head())
    assert local(file).card.model == file.name


def test_no_name_at_all() -> None:
    """``local:`` alone names no file."""
    with pytest.raises(ConfigurationError, match="names no file"):
        model_named("local:")


def test_without_the_extra_the_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint is the command to run."""
    file = tmp_path / "m.gguf"
    file.write_bytes(model_head())
    monkeypatch.setattr("onrecord.providers.local.client.find_spec", lambda _: None)
    with pytest.raises(MissingDependency) as caught:
        model_named(f"local:{file}")
    assert caught.value.hint == 'pip install "onrecord[local]"'
