"""Matching a message, and guards over results: as data, with what made them hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.errors import ConfigurationError
from onrecord.skills import AllOf, Intent, Keywords, Pattern, ToolOutcome, guards
from onrecord.skills.guards import OPERATORS, check_guard, guard_text, judged, unsatisfiable
from onrecord.skills.matching import StartIndex, compile_match

pytestmark = pytest.mark.unit


def found(match: Any, message: str) -> tuple[str, str] | None:
    """The witness and its keyword, if the message matches."""
    find = compile_match(match, "x")
    assert find is not None
    witness = find(message)
    return None if witness is None else (witness.text, witness.keyword)


@pytest.mark.parametrize(
    ("match", "message", "witness"),
    [
        (Keywords(["refund"]), "please Refund", ("Refund", "refund")),
        (Keywords(["refund"]), "refunds", None),
        (Keywords(["refund"]), "prerefund", None),
        (Keywords(["money  back"]), "MONEY\nback!", ("MONEY\nback", "money  back")),
        (Keywords(["c++"]), "in c++17", ("c++", "c++")),
        (Keywords(["#sale"]), "big#sale", ("#sale", "#sale")),
        (Keywords(["refund", "refund order"]), "a refund order", ("refund order", "refund order")),
        (Keywords(["devolução"]), "quero DEVOLUÇÃO", ("DEVOLUÇÃO", "devolução")),
        (Keywords(["a.b"]), "axb", None),
        (Pattern(r"\bINV-\d+"), "see inv-12", ("inv-12", "")),
        (Pattern(r"\bINV-\d+"), "see inv", None),
        (AllOf([Keywords(["refund"]), Pattern(r"\d+")]), "refund 12", ("refund", "refund")),
        (AllOf([Keywords(["refund"]), AllOf([Pattern(r"\d+")])]), "refund", None),
    ],
)
def test_a_match_and_its_witness(match: Any, message: str, witness: Any) -> None:
    """Whatever the case; words at their edges, where those are letters."""
    assert found(match, message) == witness


def test_the_keyword_that_is_told_is_the_one_that_was_found() -> None:
    """Whatever its length and place."""
    find = compile_match(Keywords(["pay", "money back", "bill", "payment"]), "x")
    assert find is not None
    for word in ("pay", "money back", "bill", "payment"):
        found = find(f"my {word.upper()}!")
        assert found is not None
        assert (found.keyword, found.text) == (word, word.upper())


def test_an_intent_matches_nothing_by_itself() -> None:
    """A classifier does."""
    assert compile_match(Intent("wants a refund"), "x") is None


@pytest.mark.parametrize(
    ("match", "told"),
    [
        (Keywords([]), "no list of words"),
        (Keywords([" "]), "no list of words"),
        (Pattern("("), "the pattern of x is no regular expression: missing"),
        (AllOf([]), "AllOf of x is empty"),
        (Intent(" "), "says nothing"),
        ("refund", "is a str"),
    ],
)
def test_a_match_that_could_not_match_is_refused(match: Any, told: str) -> None:
    """By where it stands."""
    with pytest.raises(ConfigurationError, match=told):
        compile_match(match, "x")


WORDS = st.sampled_from(["refund", "order", "c++", "money back", "é", "ſ", "K", "k", "s", "a_b", "-x", "++"])  # noqa: RUF001 - odd letters on purpose
MATCHES = st.one_of(
    st.lists(WORDS, min_size=1, max_size=3).map(Keywords),
    st.lists(st.lists(WORDS, min_size=1, max_size=2).map(Keywords), min_size=1, max_size=2).map(AllOf),
    st.just(Pattern("o")), st.just(Intent("x")), st.none(),
)  # fmt: skip


@given(st.lists(MATCHES, max_size=6), st.lists(st.one_of(WORDS, st.text(max_size=4)), max_size=5).map(" ".join))
def test_the_index_leaves_out_nothing_that_matches(matches: list[Any], message: str) -> None:
    """Whatever the letters; and what has no data is always tried."""
    candidates = StartIndex(matches).candidates(message)
    assert list(candidates) == sorted(candidates)
    for place, match in enumerate(matches):
        find = None if match is None else compile_match(match, "x")
        if match is None or (find is not None and find(message) is not None):
            assert place in candidates


# ---- guards ----------------------------------------------------------------------------------------------------------

RESULT = ToolOutcome(tool="price", status="returned", text='{"total": 12, "open": true, "city": "Lund"}')


def holds(guard: Any, outcome: ToolOutcome = RESULT) -> list[bool]:
    """Whether each condition holds."""
    check_guard(guard, "x")
    facts = {"status": outcome.status, "tool_name": outcome.tool, "result": outcome.text, "round": 2}
    return [row.passed for row in judged(guard, outcome, facts)]


@pytest.mark.parametrize(
    ("guard", "passed"),
    [
        ({"status": {"eq": "returned"}, "tool_name": {"ne": "other"}}, [True, True]),
        ({"total": {"gt": 11, "lte": 12}}, [True, True]),
        ({"total": {"lt": 12}}, [False]),
        ({"total": {"gte": "12"}}, [False]),
        ({"open": {"eq": 1}}, [False]),
        ({"open": {"gt": 0}}, [False]),
        ({"city": {"in": ["Lund", "Rome"]}}, [True]),
        ({"city": {"not_in": ["Lund"]}}, [False]),
        ({"city": {"gt": "Lima"}}, [True]),
        ({"nothing": {"ne": 1}}, [False]),
        ({"round": {"gte": 2}}, [True]),
    ],
)
def test_a_guard_reads_the_hop_or_a_field_of_the_result(guard: Any, passed: list[bool]) -> None:
    """Numbers compare with numbers; a field that is not there fulfils nothing."""
    assert holds(guard) == passed


@pytest.mark.parametrize("text", ["no json", "[1]", "12", ""])
def test_a_result_that_is_no_object_has_no_fields(text: str) -> None:
    """And raises nothing."""
    outcome = ToolOutcome(tool="price", status="returned", text=text)
    assert holds({"total": {"ne": 1}}, outcome) == [False]


def test_a_result_is_read_once_however_many_guards_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be long, and a skill may have many ways out."""
    read: list[str] = []

    def counting(text: str) -> Any:
        read.append(text)
        return {"total": 7}

    monkeypatch.setattr(guards, "loads", counting)
    outcome = ToolOutcome(tool="x", status="returned", text='{"total": 7}')
    for least in range(50):
        judged({"total": {"gt": least}, "other": {"eq": 1}}, outcome, {})
    assert len(read) == 1


def test_evidence_is_a_line() -> None:
    """However much was found."""
    (row,) = judged(
        {"result": {"eq": "x"}}, ToolOutcome(tool="t", status="returned", text="y" * 500), {"result": "y" * 500}
    )
    assert (len(row.actual), row.actual[-1]) == (80, "…")
    assert guard_text({"total": {"gt": 1}, "city": {"eq": "Lund"}}) == 'total gt 1, city eq "Lund"'


@pytest.mark.parametrize(
    ("guard", "told"),
    [
        ({}, "says nothing"),
        ([("status", "x")], "says nothing"),
        ({"status": {}}, "no condition"),
        ({"status": "failed"}, "no condition"),
        ({"status": {"is": "failed"}}, "unknown operator 'is'"),
        ({"status": {"in": "failed"}}, "not of its kind"),
        ({"status": {"eq": object()}}, "not of its kind"),
    ],
)
def test_a_guard_that_says_nothing_is_refused(guard: Any, told: str) -> None:
    """By where it stands."""
    with pytest.raises(ConfigurationError, match=told):
        check_guard(guard, "x")


@pytest.mark.parametrize(
    ("guard", "never"),
    [
        ({"status": {"eq": "failure"}}, True),
        ({"status": {"in": ["failed", "partial"], "ne": "failed"}}, False),
        ({"total": {"gt": 3, "lt": 3}}, True),
        ({"total": {"gte": 3, "lte": 3}}, False),
        ({"total": {"eq": 1, "gt": 3}}, True),
        ({"total": {"eq": 1, "in": [2]}}, True),
        ({"total": {"gt": 1, "lt": "a"}}, True),
        ({"total": {"gt": 1, "lt": 2.5}}, False),
        ({"tool_name": {"eq": "unknown"}}, True),
        ({"tool_name": {"eq": "price"}}, False),
        ({"current_skill": {"eq": "b"}}, True),
        ({"current_skill": {"ne": "b"}}, False),
    ],
)
def test_what_can_be_proved_of_a_guard(guard: Any, never: bool) -> None:
    """Whether no result at all could open it."""
    assert bool(unsatisfiable(guard, "a", frozenset({"price"}))) is never


VALUES = st.one_of(st.integers(-3, 3), st.booleans(), st.sampled_from(["", "a", "b"]))
CONDITIONS = st.dictionaries(
    st.sampled_from([op for op in OPERATORS if "in" not in op]), VALUES, min_size=1, max_size=3
)


@given(CONDITIONS, st.one_of(VALUES, st.floats(-3, 3, allow_nan=False)))
def test_a_guard_said_to_be_closed_is_closed(conditions: Any, value: Any) -> None:
    """Whatever the field holds."""
    if unsatisfiable({"x": conditions}, "a", None):
        outcome = ToolOutcome(tool="t", status="returned", text=json.dumps({"x": value}))
        assert not all(row.passed for row in judged({"x": conditions}, outcome, {}))
