"""Values by type and pattern, from words alone: tables of what is found, and of what is left alone."""

from typing import Any

import pytest

from onrecord.providers.offline.overlap import fold, likeness, roots, sentences
from onrecord.providers.offline.parameters import parameters_of
from onrecord.providers.offline.scene import Line
from onrecord.providers.offline.values import Hearing, find_values, read_words
from onrecord.providers.offline.wording import is_no, is_yes, language_of

pytestmark = pytest.mark.unit

S = {"type": "string"}
INT = {"type": "integer"}
DATE = {"type": "string", "format": "date"}
NULLABLE = {"anyOf": [{"type": "null"}, {"type": "integer", "maximum": 9}]}
BED = {"type": "string", "enum": ["single", "double", "double suite"]}


def read(text: str, **properties: Any) -> dict[str, Any]:
    """What one text gives for these properties."""
    schema = {
        "type": "object",
        "properties": properties,
        "$defs": {"City": {"type": "string", "description": "a city"}},
    }
    return read_words(parameters_of(schema), text)


FOUND: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("three nights for 2 guests", {"nights": INT, "guests": INT}, {"nights": 3, "guests": 2}),
    ("duas noites para 3 hóspedes", {"nights": INT, "guests": INT}, {"nights": 2, "guests": 3}),
    ("about 12.5 kg", {"weight": {"type": "number"}}, {"weight": 12.5}),
    ("12.5", {"nights": INT}, {}),
    ("room 14 costs 7 and 8", {"nights": INT}, {}),
    ("in 2026", {"nights": INT}, {}),
    ("7 nights", {"nights": NULLABLE}, {"nights": 7}),
    ("12 nights", {"nights": NULLABLE}, {}),
    ("on 2026-05-03", {"day": DATE, "nights": INT}, {"day": "2026-05-03"}),
    ("am 3 May 2026", {"day": DATE}, {"day": "2026-05-03"}),
    ("3 de maio de 2026", {"day": DATE}, {"day": "2026-05-03"}),
    ("May 3rd, 2026", {"day": DATE}, {"day": "2026-05-03"}),
    ("tomorrow", {"day": DATE}, {}),
    ("05/06/2026", {"day": DATE}, {}),
    ("2026-13-40", {"day": DATE}, {}),
    ("mail ana@example.com now", {"email": S}, {"email": "ana@example.com"}),
    ("mail ana@example.com now", {"email": S, "other_email": S}, {"email": "ana@example.com"}),
    ("see https://e.test/a?b=1.", {"url": S}, {"url": "https://e.test/a?b=1"}),
    ("call +351 912 345 678", {"phone": S}, {"phone": "+351 912 345 678"}),
    ("my order is AB-1234", {"order_id": S}, {"order_id": "AB-1234"}),
    ("código RES42", {"codigo": S}, {"codigo": "RES42"}),
    ("my order of 2026-05-03", {"order_id": S}, {}),
    ("a double suite please", {"bed": BED}, {"bed": "double suite"}),
    ("a DOUBLE bed", {"bed": BED}, {"bed": "double"}),
    ("a dubble", {"bed": BED}, {}),
    ("with breakfast", {"breakfast": {"type": "boolean"}}, {"breakfast": True}),
    ("without any breakfast", {"breakfast": {"type": "boolean"}}, {"breakfast": False}),
    ("sem café", {"breakfast": {"type": "boolean"}}, {}),
    ("from Rome to Rio de Janeiro", {"from": S, "to": S}, {"from": "Rome", "to": "Rio de Janeiro"}),
    ("In May I go to Oslo", {"city": S}, {"city": "Oslo"}),
    ("in lisbon for two nights", {"city": S, "nights": INT}, {"city": "lisbon", "nights": 2}),
    ("on Monday, please", {"city": S}, {}),
    ("my name is ana maria", {"name": S}, {"name": "ana maria"}),
    ("a nombre de Luis Pérez", {"name": S, "city": S}, {"name": "Luis Pérez"}),
    ("for Ana Costa in Porto", {"name": S, "city": S}, {"name": "Ana Costa", "city": "Porto"}),
    ("I am hungry", {"name": S}, {}),
    ('note "be kind"', {"note": S}, {"note": "be kind"}),
    ("cities Lisbon in Porto", {"city": {"$ref": "#/$defs/City"}}, {"city": "Porto"}),
    ("a single and a double suite", {"beds": {"type": "array", "items": BED}}, {"beds": ["single", "double suite"]}),
    ("add 2, 3 and 5", {"numbers": {"type": "array", "items": INT}}, {"numbers": [2, 3, 5]}),
    ("in Oslo, 2 nights", {"stay": {"type": "object", "properties": {"city": S, "nights": INT}}},
     {"stay": {"city": "Oslo", "nights": 2}}),
    ("x1", {"part": {"type": "string", "pattern": "^[a-z][0-9]$"}}, {"part": "x1"}),
    ("anything", {"odd": {"type": "file"}}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "properties", "expected"), FOUND)
def test_read_words(text: str, properties: dict[str, Any], expected: dict[str, Any]) -> None:
    """What stands there is found once; what needs a guess, a clock or a second reading is not."""
    assert read(text, **properties) == expected


ANSWERS: list[tuple[str, dict[str, Any], Any]] = [
    ("Ana Costa", S, "Ana Costa"),
    ("it's for Ana.", S, "Ana"),
    ("no", S, None),
    ("Thanks, bye!", S, None),
    ("which one?", S, None),
    ("seven words are too many for names", S, None),
    ("4", INT, 4),
    ("yes", {"type": "boolean"}, True),
    ("no", {"type": "boolean"}, False),
    ("red, green and blue", {"type": "array", "items": S}, ["red", "green", "blue"]),
]


@pytest.mark.parametrize(("text", "schema", "expected"), ANSWERS)
def test_an_answer_is_read_freely(text: str, schema: dict[str, Any], expected: Any) -> None:
    """A text that answers the question for a value; courtesy and counter-questions are no values."""
    (one,) = parameters_of({"properties": {"guest": schema}})
    assert read_words([one], text, one).get("guest") == expected


@pytest.mark.parametrize(("texts", "schema", "expected"), [
    (("search for retry policy",), S, "retry policy"),
    (("search for retry policy", "search"), S, None),
    (("on 2026-05-03", "go on"), DATE, "2026-05-03"),
    (("on 2026-05-03", "no, tomorrow"), DATE, None),
    (("on Friday", "on 2026-05-03"), DATE, "2026-05-03"),
    (("3 nights", "go on"), INT, 3),
])  # fmt: skip
def test_what_older_lines_still_give(texts: tuple[str, ...], schema: dict[str, Any], expected: Any) -> None:
    """Values of a type, but no free text; and no date behind a day that only a clock could date."""
    (one,) = parameters_of({"properties": {"query": schema}, "required": ["query"]})
    lines = [Line(who="person", text=text) for text in texts]
    assert find_values([one], lines, Hearing()).get("query") == expected


@pytest.mark.parametrize(("text", "yes", "no"), [
    ("Yes, please", True, False), ("ok go ahead", True, False), ("sim", True, False), ("Sí, claro", True, False),
    ("yes?", False, False), ("yes but later", False, False), ("not yes", False, False), ("", False, False),
    ("no", False, True), ("não", False, True), ("please never mind", False, True), ("don't", False, True),
    ("是的", True, False), ("perhaps", False, False),
])  # fmt: skip
def test_yes_and_no(text: str, yes: bool, no: bool) -> None:
    """A yes with doubt is none."""
    assert (is_yes(text), is_no(text)) == (yes, no)


@pytest.mark.parametrize(("texts", "language"), [
    (["What is the price?"], "en"), (["Quanto custa um quarto?"], "pt"), (["¿Cuánto cuesta el cuarto?"], "es"),
    (["Lisbon", "Quero um quarto"], "pt"), ([], "en"), (["東京"], "en"), (["y"], "en"), (["y", "Quero isso"], "pt"),
])  # fmt: skip
def test_language(texts: list[str], language: str) -> None:
    """The newest text whose small words tell."""
    assert language_of(texts) == language


def test_words_compare_across_forms_and_languages() -> None:
    """Plurals, verb forms, everyday words of three languages, identifiers, scripts without spaces."""
    assert roots("get_prices") == roots("getPrice") == roots("price")
    assert roots("Booking rooms") == roots("reservar quartos")
    assert roots("宿泊料金") == ["宿泊", "泊料", "料金"]
    assert fold("São Ímpar") == "sao impar"
    assert likeness("cancellation", ["cancellations"]) == 0.7
    assert likeness("abcd", ["wxyz"]) == 0.0
    assert sentences("From 7.30 to 9. Then tea!\nBye") == ["From 7.30 to 9.", "Then tea!", "Bye"]


def test_schemas_with_references_and_alternatives() -> None:
    """Behind $ref, anyOf with null, lists of types, allOf; references that lead nowhere are empty."""
    schema = {
        "properties": {
            "a": {"$ref": "#/$defs/A"},
            "b": {"type": ["null", "boolean"]},
            "c": {"allOf": [{"properties": {"x": INT}, "required": ["x"]}, {"properties": {"y": S}}]},
            "d": {"$ref": "#/$defs/none"},
            "e": {"$ref": "#/$defs/loop"},
        },
        "required": ["d"],
        "$defs": {"A": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}},
    }
    found = {one.name: one for one in parameters_of(schema)}
    assert [found[name].kind for name in "abcde"] == ["number", "boolean", "any", "any", "any"]
    assert found["c"].schema["required"] == ["x"]
    assert next(iter(found)) == "d"
