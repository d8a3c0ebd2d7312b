"""Templates: what is filled in, what stays as it is written, and how a gap is closed."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.flows.template import compile_template, render_deep
from tests.strategies import json_values

pytestmark = pytest.mark.unit


def rendered(text: str, data: Any = None, context: Any = None, input: Any = None) -> str:
    """One text, rendered."""
    return compile_template(text).render({} if data is None else data, context, input)


def test_a_misspelt_path_stays_visible() -> None:
    """A6: nothing is there, so both placeholders stay as they are written."""
    text = "Hi {{context.leed.name}} {{data.company}}"
    assert rendered(text, context={"lead": {}}) == text


def test_a_null_at_the_end_of_a_path_stays() -> None:
    """A7: a field that collected nothing keeps its braces."""
    assert rendered("Hi {{data.name}}", {"name": None}) == "Hi {{data.name}}"


def test_nothing_is_tidied_where_nothing_was_blank() -> None:
    """A10: the author's own spaces are the author's business."""
    assert rendered("  - a  b {{data.name}} ,", {"name": "Bo"}) == "  - a  b Bo ,"


def test_a_list_is_joined_and_an_object_is_json() -> None:
    """A11: items with a comma between them, objects as compact JSON."""
    assert rendered("{{input.tags}} {{input.o}}", input={"tags": ["a", "b"], "o": {"k": 1}}) == 'a, b {"k":1}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi {{context.lead.name}}, ok?", "Hi, ok?"),
        ("Hi, {{context.lead.name}}!", "Hi!"),
        ("Hi, {{context.lead.name}}, ok?", "Hi, ok?"),
        ("{{data.g}}, {{data.n}}! Ok?", "Ok?"),
        ("a {{data.g}} b", "a b"),
        ("a\t{{data.g}}\tb", "a b"),
        ("  {{data.g}}, then", "  then"),
        ("one\n{{data.g}}: two\nthree {{data.n}}", "one\ntwo\nthree"),
        ("{{data.g}},", ","),
        ("x\n, \ny {{data.g}}", "x\n,\ny"),
        ("so{{data.g}} …", "so…"),
        ("a, {{data.g}}; {{data.n}}. b", "a. b"),
        ("{{data.list}}.", "."),
    ],
)
def test_a_blank_leaves_no_hole_in_the_sentence(text: str, expected: str) -> None:
    """An empty text or list, and a path through null, vanish with the spaces and marks that stood for them."""
    assert rendered(text, {"g": "", "n": "", "list": []}, {"lead": None}) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("as is {{data.x}}", "as is {{data.x}}"),
        (30, "30"),
        (30.0, "30"),
        (1.5, "1.5"),
        (True, "true"),
        (False, "false"),
        ([1, True, "b", None, {"k": None}], '1, true, b, {"k":null}'),
        (("a", ["b", "c"]), "a, b, c"),
        (datetime(2026, 1, 5, tzinfo=UTC), "2026-01-05T00:00:00Z"),
        (Decimal("1.50"), "1.50"),
    ],
)
def test_each_kind_of_value_has_its_text(value: object, expected: str) -> None:
    """Texts as they are, numbers without a needless point, booleans in lower case, dates as JSON has them."""
    assert rendered("{{data.v}}", {"v": value}) == expected


def test_a_number_too_long_to_be_written_is_infinite() -> None:
    """Python writes no whole number of more than 4300 digits; a text must not fail over it."""
    assert rendered("{{data.v}} {{data.w}}", {"v": 10**5000, "w": -(10**5000)}) == "inf -inf"


class Colour(Enum):
    RED = "red"


@dataclass
class Lead:
    """A host's own object."""

    name: str
    tags: list[str]
    colour: Colour = Colour.RED

    @property
    def broken(self) -> str:
        raise RuntimeError("no")

    @property
    def _secret(self) -> str:
        return "secret"

    def save(self) -> None:
        """Something that a text must not reach."""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("context.lead.name", "Rui"),
        ("context.lead.tags.1", "b"),
        ("context.lead.tags", "a, b"),
        ("context.lead.colour", "red"),
        ("context.lead", '{"name":"Rui","tags":["a","b"],"colour":"red"}'),
    ],
)
def test_a_path_walks_objects_lists_and_the_hosts_own_values(path: str, expected: str) -> None:
    """By key, by index and by attribute."""
    assert rendered(f"{{{{{path}}}}}", context={"lead": Lead("Rui", ["a", "b"])}) == expected


@pytest.mark.parametrize(
    "path",
    [
        "context.lead._secret", "context.lead.__class__", "context.lead.broken", "context.lead.save",
        "context.lead.tags.2", "context.lead.tags.-1", "context.lead.tags.99999999999999999999",
        "context.lead.tags.append", "context.lead.name.upper", "context.n.real", "data.lead", "fields", "nothing.x",
        "data..x", "context.lead.", "input.x", "context.lead.tags.²",
    ],
)  # fmt: skip
def test_what_leads_nowhere_stays_as_it_is_written(path: str) -> None:
    """Private names, methods, failing properties, wrong indexes and unknown roots: nothing raises, nothing leaks."""
    text = f"a {{{{ {path} }}}}, b"
    assert rendered(text, {}, {"lead": Lead("Rui", ["a", "b"]), "n": 1}) == text


@pytest.mark.parametrize(
    "text",
    ["", "plain", "{data.x}", "{{ }}", "{{}}", "{{data.x", "{{data x}}", "}}{{", "{{{{", "{{data.x} }", "{{{data.x}}}"],
)
def test_a_text_without_a_placeholder_is_static(text: str) -> None:
    """It is returned as it is, the very same object, whatever there is to fill in."""
    made = compile_template(text)
    assert made.is_static
    assert made.render({"x": 1}) is made.text
    assert made.text == text


def test_spaces_inside_the_braces_are_free() -> None:
    """Around the path, not within it."""
    assert rendered("{{ data.x }}{{data.x}}{{\tdata.x  }}", {"x": 1}) == "111"


def test_a_value_that_is_too_deep_stays_a_placeholder() -> None:
    """A list of lists of lists without end is no text."""
    value: list[Any] = []
    value.append(value)
    assert rendered("{{data.v}}", {"v": value}) == "{{data.v}}"
    assert rendered("{{data.v}}", {"v": [{"k": object()}]}) == "{{data.v}}"


def test_values_are_not_rendered_again() -> None:
    """What a customer wrote stays a text, braces and all."""
    assert rendered("{{data.x}}", {"x": "{{context.secret}}"}, {"secret": "s"}) == "{{context.secret}}"


def test_every_text_of_a_value_is_rendered_and_nothing_else_is_built_anew() -> None:
    """At any depth; a part without a placeholder is the same object afterwards."""
    still = {"k": ["no braces", 1, None]}
    value = {"list": ["{{data.name}}", still], "n": 1, "{{data.name}}": "key"}
    made = render_deep(value, {"name": "Ana"})
    assert made == {"list": ["Ana", still], "n": 1, "{{data.name}}": "key"}
    assert made["list"][1] is still
    assert render_deep(still, {"name": "Ana"}) is still
    assert render_deep(("{{data.name}}",), {"name": "Ana"}) == ["Ana"]


@pytest.mark.parametrize("piece", ["{", "{{", "{{ ", "{{a ", "}}", " ", "{{data.x}}", ",", " ,"])
def test_long_hostile_texts_take_linear_time(piece: str) -> None:
    """A quarter of a million of them are compiled and tidied at once: a quadratic scan would run into the timeout."""
    text = piece * 250_000 + "{{data.x}}"
    assert compile_template.__wrapped__(text).render({"x": ""}) is not None


@given(st.text(alphabet=st.sampled_from("{} .,;:!?…datx\n\t")), json_values, json_values)
def test_rendering_never_raises(text: str, data: object, context: object) -> None:
    """Whatever the text and the values are; the second time gives the same."""
    held = {"x": data, "t": {"d": data}}
    assert rendered(text, held, context) == rendered(text, held, context)


SYNTAX = re.compile(r"\{\{\s*([^}\s]+)\s*\}\}")


@given(st.lists(st.sampled_from(["{{data.x}}", "{{ data.x }}", "data.x", " a", ", ", "\n", "}}", "{{", "{", "}"])))
def test_placeholders_are_found_where_the_syntax_has_them(pieces: list[str]) -> None:
    """The scanner, which never looks twice, agrees with the pattern of the specification, which may."""
    text = "".join(pieces)
    expected = SYNTAX.sub(lambda found: "v" if found[1] == "data.x" else found[0], text)
    assert rendered(text, {"x": "v"}) == expected
