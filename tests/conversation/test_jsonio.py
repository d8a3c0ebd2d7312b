"""JSON and digests: one canonical form, keyed and chained digests, and text that every wire can hold."""

import json
from typing import Any

import msgspec
import pytest

from onrecord.jsonio import (
    DEEPEST,
    canonical,
    chained,
    copies,
    digest,
    dumps,
    is_json,
    loads,
    misfit,
    own,
    read_object,
    writable,
)

pytestmark = pytest.mark.unit

CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


def nested(levels: int) -> str:
    """An object that is so many levels deep, itself included."""
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


def test_equal_values_have_equal_bytes() -> None:
    """In whatever order their keys came; compact, with other scripts as they are."""
    assert canonical({"b": 1, "a": {"d": 2, "c": "部屋"}}) == '{"a":{"c":"部屋","d":2},"b":1}'.encode()
    assert dumps({"b": 1, "a": [2]}) == b'{"b":1,"a":[2]}'


def test_a_digest_depends_on_its_key_and_its_bytes() -> None:
    """So that a text cannot be guessed from it without the session."""
    found = {digest(b"yes"), digest(b"no"), digest(b"yes", "k"), digest(b"yes", "l")}
    assert len(found) == 4
    assert all(len(each) == 24 for each in found)


def test_a_chain_vouches_for_everything_before_it() -> None:
    """For order, for the seam between what was and what came, and for the key."""
    one = chained("", b"a")
    found = [chained(one, b"b"), chained(chained("", b"b"), b"a"), chained(one + "b", b""), chained(one, b"b", "k")]
    assert len(set(found)) == len(found)
    assert chained(one, b"b") == found[0]


@pytest.mark.parametrize("text", ["[]", "7", "null", '"a"', "{", '{"a":1', "{} {}", "half \ud83d", nested(DEEPEST + 1)])
def test_what_is_no_object_is_not_read_as_one(text: str) -> None:
    """Nor is one that nests deeper than may be written again."""
    assert read_object(text) is None


def test_objects_are_read_down_to_the_deepest_level() -> None:
    """Nothing at all is an empty one, and many brackets side by side are no depth."""
    wide = '{"a":[' + ",".join(["[]"] * 2 * DEEPEST) + "]}"
    assert [read_object(text) for text in ("", "{}", "{ }", '{"a":1}')] == [{}, {}, {}, {"a": 1}]
    assert all(read_object(text) == loads(text) for text in (nested(DEEPEST), wide))


@pytest.mark.parametrize("text", ["{", "\ud83d", "[" * 100_000, b"\xff"])
def test_text_that_is_no_json_is_one_kind_of_error(text: str | bytes) -> None:
    """Malformed, no Unicode, or deeper than the interpreter goes."""
    with pytest.raises(msgspec.DecodeError):
        loads(text)


@pytest.mark.parametrize(
    ("value", "kept"),
    [({"a": [1, None, "x"]}, True), (object(), False), (CIRCLE, False), ("half \ud83d", False), ({1: 2}, True)],
    ids=["plain", "foreign", "circular", "half", "number"],
)
def test_what_can_be_kept_as_json_is_known_beforehand(value: object, kept: bool) -> None:
    """Whatever would be raised while it is written."""
    assert is_json(value) is kept


def test_a_value_of_ones_own_shares_no_object_and_no_list() -> None:
    """At every level, below lists and below objects."""
    value: dict[str, Any] = {"a": {"b": [1, {"c": [2]}]}, "d": [[3]], "e": "x"}
    mine = own(value)
    assert mine == value
    mine["a"]["b"][1]["c"].append(9)
    mine["d"][0].append(9)
    mine["a"]["f"] = 9
    mine["g"] = 9
    assert value == {"a": {"b": [1, {"c": [2]}]}, "d": [[3]], "e": "x"}


@pytest.mark.parametrize("inner", [1, [1], {"b": 1}])
def test_copies_of_a_value_share_nothing_with_each_other(inner: object) -> None:
    """Whether or not there is anything below the first level."""
    value: dict[str, Any] = {"a": inner}
    give, before = copies(value), json.dumps(value)
    one, other = give(), give()
    one["g"] = 9
    if isinstance(inner, list):
        one["a"].append(9)
    if isinstance(inner, dict):
        one["a"]["c"] = 9
    assert json.dumps(other) == json.dumps(give()) == json.dumps(value) == before


def test_half_of_a_pair_is_replaced_and_everything_else_kept() -> None:
    """Two halves that meet are the character that they make."""
    assert writable("plain") == "plain"
    assert writable("é 部屋 🙂") == "é 部屋 🙂"
    assert writable("a\ud83db") == "a\ufffdb"
    assert writable("\ud83d\ude42") == "🙂"


def test_a_value_that_does_not_fit_is_not_quoted() -> None:
    """Whatever it holds: only msgspec's own place is told, and nothing where there is none."""
    assert (
        misfit(msgspec.ValidationError("Expected `str`, got `int` - at `$.a`"))
        == "Expected `str`, got `int` - at `$.a`"
    )
    assert misfit(msgspec.ValidationError("Invalid enum value 'x - at `$.b`' - at `$.a`")) == "Invalid value - at `$.a`"
    assert misfit(msgspec.ValidationError("Invalid value 'x'")) == "Invalid value"
    assert misfit(msgspec.DecodeError("JSON is malformed: x")) == "not valid JSON"
    assert misfit(RecursionError()) == "nested too deeply"
