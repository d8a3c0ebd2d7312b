"""What redaction does not look at cannot hold words; whatever is not known well enough is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from msgspec import Struct

from onrecord.conversation.usage import Usage
from onrecord.governance.redaction import Redaction
from onrecord.governance.worded_fields import worded_fields
from onrecord.jsonio import Json
from onrecord.record import kinds
from onrecord.record.entry import Body, Entry
from onrecord.record.receipts import PieceMark, Receipt

pytestmark = pytest.mark.unit

NOW = datetime(2026, 9, 20, tzinfo=UTC)


class Leaf(Struct):
    """A type that is not the library's."""

    number: int


class Sample(Struct):
    """A field of every sort."""

    text: str
    fixed: str
    fixed_list: tuple[str, ...]
    perhaps: str | None
    number: int
    numbers: tuple[float, ...]
    when: datetime | None
    word: Literal["a", "b"]
    words: tuple[Literal["a"], ...]
    anything: Any
    json: Json
    data: bytes
    usage: Usage
    uses: Mapping[Literal["a"], Usage]
    leaf: Leaf


class Unreadable(Struct):
    """Its annotation names what is not there at run time."""

    number: Nowhere  # type: ignore[name-defined]  # noqa: F821 - the point of it


class Nested(Body, frozen=True, kw_only=True, tag="tests.nested"):
    """A body inside a body, without an end."""

    inner: tuple[Nested, ...] = ()
    n: int = 0
    text: str = ""


def fixed(kind: type) -> frozenset[str]:
    """Two fields that are left where they are texts."""
    return frozenset({"fixed", "fixed_list"})


def test_fields_without_words_are_left_out() -> None:
    """Numbers, instants, fixed words and texts, and types of the library made of these; of others nothing is known."""
    looked_at = worded_fields(Sample, fixed)
    assert looked_at == ("text", "fixed_list", "perhaps", "anything", "json", "data", "leaf")


def test_of_a_type_that_cannot_be_read_all_is_looked_at() -> None:
    """More is taken out, and not less."""
    assert worded_fields(Unreadable, fixed) == ("number",)


def test_the_librarys_own_types() -> None:
    """Digests, ranks and names of pieces are left; what a request showed besides history is not."""
    fixed_names = frozenset({"source", "digest", "place"})
    assert worded_fields(PieceMark, lambda _: fixed_names) == ()
    assert {"spans", "swaps", "left_out"} <= set(worded_fields(Receipt, lambda _: fixed_names))


def _entry(body: Body) -> Entry:
    return Entry(seq=0, n=0, turn="t", take=1, where="main", at=NOW, cause=None, body=body)


def test_a_type_within_itself_is_looked_at_to_the_end() -> None:
    """However deep."""
    redacted = Redaction(patterns=["secret"])(_entry(Nested(inner=(Nested(inner=(Nested(text="a secret"),)),))))
    assert "secret" not in str(redacted.body)
    assert "[redacted]" in str(redacted.body)


def test_a_manifest_is_looked_at_for_each_redaction_and_each_manifest() -> None:
    """It is looked at once for all turns of an agent, and two agents are not taken for each other."""
    told = [{"agent": "secret", "n": n} for n in range(100)]
    for word in ("[one]", "[other]"):
        redaction = Redaction(patterns=["secret"], word=word)
        for manifest in (*told, told[0]):
            opened = kinds.TurnOpened(input_kind="said", row="r", now=NOW, manifest=manifest)
            body = redaction(_entry(opened)).body
            assert isinstance(body, kinds.TurnOpened)
            assert body.manifest == {"agent": word, "n": manifest["n"]}
