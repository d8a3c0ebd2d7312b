"""Folders of ``SKILL.md``: the public format, its front matter, and folders that mean harm."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.errors import ConfigurationError
from onrecord.skills import Route, SkillStep, read_skill_folder, skills_from_folder
from onrecord.skills.front_matter import read_front_matter
from tests.turn.acting import tool

pytestmark = pytest.mark.unit

FULL = """\
---
# What a public skill has.
name: refunds
description: >-
  Gives money back.
  Use it for orders
  that went wrong.
license: Apache-2.0
compatibility: needs a till
metadata:
  author: "ana: the first"
  version: '1.0'
allowed-tools: Bash(git:*) Read
tools:
  - find_order
  - pay_back   # in this order
steps:
  - find_order: find what was bought
  - pay_back: "pay: once"
on-skip: hold
routes: [orders]
---

# Refunds

Mind the date.
"""


def put(root: Path, name: str, text: str) -> None:
    """A skill's file in its folder."""
    (root / name).mkdir()
    (root / name / "SKILL.md").write_text(text, encoding="utf-8")


def plain(name: str, more: str = "", body: str = "Text.") -> str:
    """The least that a skill has."""
    return f"---\nname: {name}\ndescription: About {name}.\n{more}---\n{body}\n"


def test_a_folder_is_read(tmp_path: Path) -> None:
    """The public keys, ours, and the text below; by name; other folders and files are left alone."""
    put(tmp_path, "refunds", FULL)
    put(tmp_path, "orders", plain("orders"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "README.md").write_text("not a skill")
    find, pay = tool("find_order"), tool("pay_back")
    held = read_skill_folder(tmp_path, [find, pay])
    orders, refunds = held.skills
    assert (orders.id, orders.text, orders.tools, orders.steps) == ("orders", "Text.", (), None)
    assert refunds.description == "Gives money back. Use it for orders that went wrong."
    assert refunds.text == "# Refunds\n\nMind the date."
    assert (refunds.tools, refunds.on_skip) == ((find, pay), "hold")
    assert refunds.steps == (SkillStep("find_order", "find what was bought"), SkillStep("pay_back", "pay: once"))
    assert held.routes == (Route("refunds", "orders"),)
    assert skills_from_folder(str(tmp_path), [find, pay]) == held.skills


WRONG: list[tuple[str, str]] = [
    (plain("a", "colour: red\n"), "a/SKILL.md: unknown key 'colour'"),
    (plain("b"), "the name 'b' is not that of its folder"),
    (plain("A b"), "not lower-case letters"),
    (plain("a--b"), "not lower-case letters"),
    (plain("a" * 65), "name has 65 characters, at most 64"),
    ("---\nname: a\n---\nText.", "description is missing"),
    ("---\ndescription: a\n---\nText.", "name is missing"),
    ("---\nname:\n  - a\ndescription: x\n---\nText.", "name is not a text"),
    ("---\nname: a\ndescription: " + "x" * 1025 + "\n---\nText.", "description has 1025 characters"),
    (plain("a", "compatibility: " + "x" * 501 + "\n"), "compatibility has 501 characters"),
    (plain("a", "license:\n  - x\n"), "license is not a text"),
    (plain("a", "metadata: x\n"), "metadata is a mapping"),
    (plain("a", "allowed-tools:\n  - Read: x\n"), "allowed-tools is one text"),
    (plain("a", "allowed-tools:\n  x: Read\n"), "allowed-tools is one text"),
    (plain("a", body="Text.\x00"), r"its text has the control character U\+0000"),
    (plain("a", body="\x1b[31mText."), r"its text has the control character U\+001B"),
    (plain("a", body=" "), "no instructions below"),
    (plain("a", "on-skip: [hold]\n"), "on-skip is 'advance' or 'hold'"),
    (plain("a", "tools:\n  - missing\n"), "tools names 'missing', which was not given"),
    (plain("a", "tools:\n  - one\n  - one\n"), "tools names 'one' twice"),
    (plain("a", "tools:\n"), "tools is a list of names"),
    (plain("a", "tools: one\nsteps: one\n"), "steps is a list"),
    (plain("a", "tools: one\nsteps:\n  - one\n"), "steps is a list"),
    (plain("a", "tools: one\nsteps:\n  - two: x\n"), "names the tool 'two', which is not one of its own"),
    (plain("a", "tools: one\nsteps:\n  - one:\n"), "step 1 has no note"),
    (plain("a", "on-skip: stop\n"), "on-skip is 'advance' or 'hold'"),
    (plain("a", "on-skip: hold\n"), "on_skip without steps"),
    (plain("a", "routes:\n  - b\n"), "routes names 'b', which is no skill of this folder"),
]


@pytest.mark.parametrize(("text", "told"), WRONG, ids=[told for _, told in WRONG])
def test_a_file_that_is_wrong_is_named_with_its_key(tmp_path: Path, text: str, told: str) -> None:
    """And nothing is read half."""
    put(tmp_path, "a", text)
    with pytest.raises(ConfigurationError, match=told.replace("(", r"\(")):
        read_skill_folder(tmp_path, [tool("one")])


@pytest.mark.parametrize("tools", ["Bash(git:*) Read", "\n  - Bash(git:*)\n  - Read", "[Bash(git:*), 'Read']", "[]"])
def test_allowed_tools_are_a_text_or_a_list_and_grant_nothing(tmp_path: Path, tools: str) -> None:
    """The public format has both."""
    put(tmp_path, "a", plain("a", f"allowed-tools: {tools}\n", body="One.\n\n\tTwo.\r\n"))
    (held,) = skills_from_folder(tmp_path, [tool("Read")])
    assert (held.tools, held.text) == ((), "One.\n\n\tTwo.")


@pytest.mark.parametrize("name", ["skill.md", "Skill.md", "SKILL.MD"])
def test_a_file_whose_name_is_written_otherwise_is_refused(tmp_path: Path, name: str) -> None:
    """It would be a skill on one system, and silently none on another."""
    put(tmp_path, "a", plain("a"))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / name).write_text(plain("b"))
    with pytest.raises(ConfigurationError, match=f"b/{name}: its name is not written 'SKILL.md'"):
        read_skill_folder(tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by its path outside of the folder, nor by what the system says of it."""
    put(tmp_path, "a", plain("a"))

    def read(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied", "/home/ana/skills/a/SKILL.md")

    monkeypatch.setattr(Path, "read_text", read)
    with pytest.raises(ConfigurationError, match=r"^a/SKILL\.md: it cannot be read: PermissionError$"):
        read_skill_folder(tmp_path)


def test_a_folder_without_skills_is_refused(tmp_path: Path) -> None:
    """It is another folder than was meant."""
    with pytest.raises(ConfigurationError, match="no such folder"):
        read_skill_folder(tmp_path / "none")
    with pytest.raises(ConfigurationError, match="no folder in it has a SKILL"):
        read_skill_folder(tmp_path)
    with pytest.raises(ConfigurationError, match="two tools have the id 'one'"):
        read_skill_folder(tmp_path, [tool("one"), tool("one", lambda *_: "x")])


# ---- folders that mean harm ------------------------------------------------------------------------------------------


def test_a_link_does_not_lead_outside(tmp_path: Path) -> None:
    """Neither a linked file nor a linked folder; one inside is fine."""
    inside, outside = tmp_path / "skills", tmp_path / "secret"
    inside.mkdir()
    outside.mkdir()
    (outside / "SKILL.md").write_text(plain("a"))
    (inside / "a").mkdir()
    (inside / "a" / "SKILL.md").symlink_to(outside / "SKILL.md")
    with pytest.raises(ConfigurationError, match="a link to a file outside"):
        read_skill_folder(inside)
    (inside / "a" / "SKILL.md").unlink()
    (inside / "a").rmdir()
    (inside / "a").symlink_to(outside)
    with pytest.raises(ConfigurationError, match="a link to a file outside"):
        read_skill_folder(inside)


def test_a_link_in_a_circle_or_to_nowhere_is_no_skill(tmp_path: Path) -> None:
    """It is left alone, as any folder without a file is."""
    put(tmp_path, "a", plain("a"))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "SKILL.md").symlink_to(tmp_path / "missing")
    assert [skill.id for skill in skills_from_folder(tmp_path)] == ["a"]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"---\nname: a\ndescription: \xff\n---\nx", "is not UTF-8"),
        (b"---\nname: a\n" + b"x" * 1_100_000, "larger than"),
        (b"---\n" + b"# x\n" * 40_000 + b"---\nx", "front matter is longer"),
        (b"\x00\x01", "does not begin with a line '---'"),
        (b"", "does not begin with a line '---'"),
    ],
)
def test_bytes_that_are_no_skill_are_refused(tmp_path: Path, data: bytes, told: str) -> None:
    """Before they cost anything."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "SKILL.md").write_bytes(data)
    with pytest.raises(ConfigurationError, match=told):
        read_skill_folder(tmp_path)


# ---- front matter ----------------------------------------------------------------------------------------------------


def front(text: str) -> Any:
    """The keys of a front matter."""
    return read_front_matter(f"---\n{text}\n---\nbody", "f")[0]


REFUSED_YAML = [
    ("a: &x y", "cannot begin with '&'"),
    ("a: *x", "cannot begin with '\\*'"),
    ("a: !!python/object:os.system x", "cannot begin with '!'"),
    ("a: {b: c}", "cannot begin with '{'"),
    ("a: [b: c]", "a list on one line"),
    ("a: [b, [c]]", "a list on one line"),
    ("a: [b", "a list on one line"),
    ("a: [b] c", "a list on one line"),
    ("a: [b,, c]", "a list on one line"),
    ("a: [&b c]", "a list on one line"),
    ("a: [{b: c}]", "a list on one line"),
    ("a:\n  - [b]", "cannot begin with '\\['"),
    ("a: |+\n  x", "cannot begin with '|'"),
    ("a: 'x", "a quoted text ends on its line"),
    ('a: "\\x41"', "a quoted text ends on its line"),
    ('a: "x" y', "a quoted text ends on its line"),
    ("a: b: c", "is ambiguous: quote it"),
    ("a: b\na: c", "the key 'a' comes twice"),
    ("a:\n  b:\n    c: d", "nesting goes one level deep"),
    ("a:\n  b: c\n    d: e", "is ambiguous|nesting goes one level deep"),
    ("a:\n  - - b", "an item of a list"),
    ("a:\n  - b\n  - c: d", "items of this list are of two kinds"),
    ("  a: b", "is indented, and belongs to nothing"),
    ("a:\n\t- b", "a tab or another control"),
    ("a: b\x85c", "a tab or another control"),
    ("just words", "a 'key: value' line is expected"),
    ("<<: *base", "a 'key: value' line is expected"),
    ("a: |\n    x\n  y", "indented less than its first"),
    ("a: >\n  x\n    y", "a folded text has one indentation"),
]


@pytest.mark.parametrize(("text", "told"), REFUSED_YAML, ids=[text for text, _ in REFUSED_YAML])
def test_what_is_not_read_is_refused_by_line(text: str, told: str) -> None:
    """Never read otherwise than it was meant."""
    with pytest.raises(ConfigurationError, match=rf"f:\d+: .*({told})"):
        front(text)


@pytest.mark.parametrize(
    "text",
    [f"a: [{'b   , ' * 60}{{}}]", f"a: [b{' ' * 30_000}!]", f"a: [{'b, ' * 15_000}&c]"],
    ids=["shared out", "one", "many"],
)
def test_a_list_that_is_none_is_refused_in_time(text: str) -> None:
    """Blanks between items belong to one of them or to none: nobody tries every way to share them out."""
    with pytest.raises(ConfigurationError, match="a list on one line"):
        front(text)


def test_a_long_run_of_blanks_is_no_comment() -> None:
    """It is read once, not from each of its places on."""
    assert front(f"a: b{' ' * 60_000}c") == {"a": f"b{' ' * 60_000}c"}
    assert front(f"a: b{' ' * 60_000}# c") == {"a": "b"}


READ_YAML = [
    "a: b",
    "a: b # c",
    "a: b#c",
    "a:",
    "a: # c",
    "a: no\nb: 1.0\nc: null\nd: 2026-01-01",
    "a: 'it''s'",
    'a: "x\\n\\"y\\""',
    "a: 'x' # c",
    "a: one\n  two\n  three",
    "a: |\n  x\n    y\n\n  z\n\nb: c",
    "a: |-\n  x\n",
    "a: >\n  x\n  y\n\n  z\n",
    "a: >-\n  x\n  y",
    "a:\n- b\n- c",
    "a:\n  - b\n  - c\nd: e",
    "a:\n  - b: c\n  - d: 'e: f'",
    "a:\n  b: c\n  d:\n  e: f\ng: h",
    "# c\n\na: b\n\n# d",
    "a: b c-d, e. (f)",
    "a: http://x/y",
    "a-b_c.d: e",
    "a: x:y",
    "a: Bash(git:*) Read",
    "a: é — ü",
    "a: x\n# c\nb: y",
    "a:\n  - b # c\n  - 'c # d'",
    "a:\n  - b\n    c\n  - d",
    "a: []",
    "a:\n  b:",
    "a: [b]",
    "a: [ b , c d,e ]  # f\nb: c",
    "a: [Bash(git:*), 'it''s, [x]', \"y\\n\", mcp__a-b/c.d]",
]


@pytest.mark.parametrize("text", READ_YAML)
def test_what_is_read_is_what_yaml_says(text: str) -> None:
    """Compared with a YAML library, which reads everything as a text here; an empty value is the empty text."""
    yaml = import_module("yaml")
    assert front(text) == yaml.load(text + "\n", Loader=yaml.BaseLoader)


LINES = st.sampled_from(
    [
        "a: b",
        "b: 'c'",
        "c:",
        "  d: e",
        "  - f",
        "- g",
        "  - h: i",
        "  more",
        "# x",
        "",
        "d: |",
        "d: >",
        'e: "x\\n"',
        "    deep",
    ]
)


@given(st.lists(LINES, max_size=7).map("\n".join))
def test_whatever_is_accepted_is_read_as_yaml_reads_it(text: str) -> None:
    """It may refuse more, and never reads otherwise."""
    yaml = import_module("yaml")
    try:
        held = front(text)
    except ConfigurationError:
        return
    assert held == (yaml.load(text + "\n", Loader=yaml.BaseLoader) or {})


FLOW = st.text(alphabet="ab,[]{}:#'\"&*!|>%@`-? .()\\", max_size=10)


@given(FLOW)
def test_a_list_on_one_line_is_read_as_yaml_reads_it(inside: str) -> None:
    """Whatever stands in it."""
    yaml = import_module("yaml")
    text = f"a: [{inside}]"
    try:
        held = front(text)
    except ConfigurationError:
        return
    assert held == yaml.load(text, Loader=yaml.BaseLoader)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else comes out of it, and never its content in the error."""
    told = ""
    try:
        read_front_matter(text, "f")
    except ConfigurationError as refused:
        told = str(refused)
    assert not told or told.startswith("f:")


def test_windows_line_ends_and_a_byte_order_mark_are_read() -> None:
    """As editors write them."""
    assert read_front_matter("\ufeff---\r\nname: a\r\n---\r\nx\r\ny", "f") == ({"name": "a"}, "x\ny")
    with pytest.raises(ConfigurationError, match="no second line '---'"):
        read_front_matter("---\nname: a", "f")
