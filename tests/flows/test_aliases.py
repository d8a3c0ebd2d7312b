"""Names that no JSON Schema property may have travel under others."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.flows.aliases import aliases

pytestmark = pytest.mark.unit


def test_a_plain_name_travels_as_it_is() -> None:
    """Letters, digits, underscores and hyphens are taken by every vendor."""
    assert aliases(["name", "field-1", "A_b"], "f") == {"name": "name", "field-1": "field-1", "A_b": "A_b"}


def test_l3_an_unsafe_id_gets_the_prefix_and_a_number() -> None:
    """Case L3: ``sig:rival`` travels as ``f1``."""
    assert aliases(["sig:rival", "help"], "f") == {"sig:rival": "f1", "help": "help"}


def test_m18_an_alias_takes_no_name_in_use() -> None:
    """Case M18: ``field_1`` is a field of its own, so ``full name`` becomes ``field_2``."""
    assert aliases(["full name", "field_1"], "field_") == {"full name": "field_2", "field_1": "field_1"}


def test_a_taken_name_travels_under_an_alias() -> None:
    """However plain it is; and no alias is a taken name either."""
    assert aliases(["message", "a b"], "d", taken={"message", "d2"}) == {"message": "d1", "a b": "d3"}


@pytest.mark.parametrize("name", ["", "nome completo", "não", "a.b", "name\n", "x/y", "\u0661"])
def test_whatever_else_is_in_a_name_it_gets_an_alias(name: str) -> None:
    """Also a line end behind a plain name, and digits and letters of other scripts."""
    assert aliases([name], "d") == {name: "d1"}


@given(st.lists(st.sampled_from(["f1", "f2", "f3", "a b", "c:d", "é", "", "x"])), st.sets(st.sampled_from(["f1", "x"])))
def test_aliases_are_valid_and_never_meet(names: list[str], taken: set[str]) -> None:
    """One key each, all of them different, in the order of the names, and the same whenever asked."""
    made = aliases(names, "f", taken)
    assert list(made) == list(dict.fromkeys(names))
    assert len(set(made.values())) == len(made)
    assert all(re.fullmatch("[A-Za-z0-9_-]+", alias) for alias in made.values())
    assert taken.isdisjoint(made.values())
    assert made == aliases(names, "f", taken)
