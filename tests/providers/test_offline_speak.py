"""The stand-in plays "speak": one question in the customer's language, values in the envelope, tools where they fit."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.conversation.content import Text
from onrecord.conversation.messages import Round, ToolCall
from onrecord.models.chunks import CallChunk, Finished, TextChunk
from onrecord.providers.offline.client import reply_chunks
from tests.providers.flow_requests import (
    CITY,
    NAME,
    NIGHTS,
    OK,
    PRICE,
    STAY,
    called,
    field_line,
    offered,
    speak_request,
    spoken,
)

pytestmark = pytest.mark.unit

KNOWN = {"city": "Lisbon", "nights": 3, "name": "Ana Costa"}
CONFIRM = "Lisbon, 3 nights, Ana Costa. Is that right?"
QUOTE = "Quote the price of the stay, and ask whether it is right."


def said(*lines: str, **more: Any) -> str:
    """The words of a reply."""
    words: str = spoken(*lines, **more)["message"]
    return words


@pytest.mark.parametrize(
    ("text", "known", "pending", "expected"),
    [
        ("I want a room", {}, STAY, "Which city?"),
        ("Quero um quarto", {}, STAY, "Qual cidade?"),
        ("Quiero una habitación", {}, STAY, "¿Qué ciudad?"),
        ("Hello!", {}, STAY, "Hello! Which city?"),
        ("Quero um quarto em Lisboa", {"city": "Lisboa"}, {"nights": NIGHTS}, "Anotado: Lisboa. Quantas noites?"),
        ("Two nights, please", {"nights": 2}, {"name": NAME}, "Noted: 2 nights. What is the name, please?"),
        ("Una noche, por favor", {"nights": 1}, {"name": NAME}, "Anotado: 1 noche. ¿Cuál es el nombre, por favor?"),
    ],
)
def test_asks_for_the_first_missing_field_in_the_customers_language(
    text: str, known: dict[str, Any], pending: Any, expected: str
) -> None:
    """After it noted what the message gave; one field at a time."""
    assert said(text, known=known, pending=pending) == expected


def field(kind: str, ask: str = "", about: str = "", **more: Any) -> dict[str, Any]:
    """A field of a test."""
    return {"type": kind, "ask": ask} | ({"description": about} if about else {}) | more


QUESTIONS = [
    ("team", field("string", "Ask which team they work for."), "Please tell me which team you work for."),
    ("team", field("string", "Ask the customer about their team; be light."), "Please tell me your team."),
    ("team", field("string", "Which team is yours?"), "Which team is yours?"),
    ("team", field("string", "Qual é o seu time?", "the team"), "I still need “the team”. What is it?"),
    ("team", field("string", "", "The team they play in."), "I still need “The team they play in”. What is it?"),
    ("home_team", field("string"), "I still need “home team”. What is it?"),
    ("size", field("string", "Ask the size; offer the bands.", enum=["1-10", "11+"]),
     "Please tell me the size (1-10, 11+)."),
    ("dog", field("boolean", "Ask whether they have a dog."), "Please tell me whether you have a dog: yes or no?"),
    ("dog", field("boolean", "", "Has a dog."), "“Has a dog”: yes or no?"),
    ("email", field("string", "Get the mail address."), "What is the email address?"),
    ("company_name", field("string", "Ask the company."), "Which company?"),
    ("guests", field("integer", "Ask how many come."), "How many guests?"),
]  # fmt: skip


@pytest.mark.parametrize(("slug", "one", "expected"), QUESTIONS)
def test_an_order_to_ask_becomes_a_question(slug: str, one: dict[str, Any], expected: str) -> None:
    """The author's own question, the everyday one, what is to be asked, or the field's description; never the order."""
    assert said("Hello what is this for", pending={slug: one}).endswith(expected)


def test_an_order_in_another_language_is_not_read_out() -> None:
    """Neither is it translated: the field's description stands for it."""
    one = field("string", "Ask which team they work for.", "Time em que trabalha.")
    assert said("Quero entrar", pending={"team": one}) == "Ainda preciso de “Time em que trabalha”. Qual é?"
    assert said("Quero entrar", pending={"team": field("string", "Pergunte qual é o time.")}) == (
        "Diga-me, por favor, qual é o time."
    )


def test_reads_what_it_asked_for_and_no_more() -> None:
    """A message that answered an earlier step gives the next step nothing."""
    assert spoken("x", "What is the name, please?", "Bia", pending={"name": NAME})["name"] == "Bia"
    assert spoken("x", "Which city?", "Porto", known={"city": "Porto"}, pending={"name": NAME})["name"] is None
    assert spoken("Sou a Ana, duas noites em Lisboa", pending=STAY) == {
        "message": "Anotado: Lisboa, 2 noites, Ana.", "city": "Lisboa", "nights": 2, "name": "Ana",
    }  # fmt: skip
    assert spoken("Me chamo Ana", pending={"name": NAME, "city": CITY}) == {
        "message": "Anotado: Ana. Qual cidade?", "name": "Ana", "city": None,
    }  # fmt: skip


def test_an_address_may_be_any_words_and_a_text_is_taken_where_it_was_asked_for() -> None:
    """What nothing in its spelling tells apart is never picked out of another message."""
    street, note = field("string", "Ask for the street.", "Street it goes to."), field("string", "Ask for a note.")
    asked = ("x", "Please tell me the street.", "12 Main Street, please")
    assert spoken(*asked, pending={"address": street})["address"] == "12 Main Street"
    assert spoken("I write about the dog", pending={"note": note, "city": CITY})["note"] is None
    said_note = ("x", "Please tell me a note.", "Mind the dog. It bites.")
    assert spoken(*said_note, pending={"note": note})["note"] == "Mind the dog. It bites"


def test_a_field_with_a_name_that_json_cannot_carry_comes_back_under_its_own() -> None:
    """The names of the envelope are those of the schema, in the order of the text."""
    pending = {"field_1": NIGHTS}
    request = speak_request("x", "How many nights?", "two", pending=pending)
    text = request.pieces[0].text.replace(f"- {field_line('field_1', NIGHTS)}\n", f"- {field_line('número', NIGHTS)}\n")
    piece = type(request.pieces[0])(source="flows", text=text, place="turn")
    changed = type(request)(**{f: getattr(request, f) for f in request.__struct_fields__} | {"pieces": (piece,)})
    got = json.loads("".join(c.text for c in reply_chunks(changed, "rules") if isinstance(c, TextChunk)))
    assert got == {"message": "Noted: número: 2.", "field_1": 2}


REPLIES: list[tuple[str, Any, str]] = [
    ("yes", True, "All right."),
    ("sim", True, "Certo."),
    ("Sí, adelante", True, "De acuerdo."),
    ("no", False, "All right, not like that. What should be different?"),
    ("actually two nights", False, "All right. How many nights?"),
    ("na verdade duas noites", False, "Certo. Quantas noites?"),
    ("yes, but for 2 nights", False, "All right. How many nights?"),
    ("change the city please", False, "All right. Which city?"),
    ("hm", None, CONFIRM),
    ("yes?", None, CONFIRM),
]


@pytest.mark.parametrize(("text", "ok", "expected"), REPLIES)
def test_a_confirmation_takes_a_clear_yes_and_a_correction_is_a_no(text: str, ok: bool | None, expected: str) -> None:
    """What was corrected is asked for again; doubt sums up again."""
    got = spoken("x", CONFIRM, text, known=KNOWN, pending={"ok": OK})
    assert got["ok"] is ok
    assert got["message"].endswith(expected)


def test_a_yes_to_something_else_confirms_nothing() -> None:
    """Neither one before the question, nor one that answers another question, nor one that comes with a new value."""
    for before, text in [
        ("Which city?", "yes, Lisbon"),
        ("Hello.", "yes"),
        ("What is the name, please?", "Yes, Ana Costa"),
    ]:
        assert spoken("x", before, text, known=KNOWN, pending={"ok": OK})["ok"] is None
    assert spoken("yes, I want a room", known=KNOWN, pending={"ok": OK})["ok"] is None
    got = spoken("x", CONFIRM, "sim, duas noites", known={"city": "Lisbon"}, pending={"nights": NIGHTS, "ok": OK})
    assert got == {"message": "Lisbon, 2 noites. Está certo?", "nights": 2, "ok": None}


def test_an_authors_fixed_question_for_a_yes_is_answered_too() -> None:
    """One that no everyday wording has, with the collected values in it."""
    fixed = "Shall I book 3 nights in Lisbon for Ana Costa?"
    assert spoken("x", fixed, "go ahead", known=KNOWN, pending={"ok": OK})["ok"] is True
    other = "Please tell me whether you want breakfast: yes or no?"
    assert spoken("x", other, "yes", known=KNOWN, pending={"ok": OK})["ok"] is None
    dog = field("boolean", "Ask whether they bring a dog.")
    assert spoken("x", "Please tell me whether you bring a dog: yes or no?", "no", pending={"dog": dog})["dog"] is False


# ---- tools -----------------------------------------------------------------------------------------------------------

BOOK = offered(
    "book_room", "Book the room.", {"city": {"type": "string"}, "name": {"type": "string"}}, destructive=True
)


def returned(value: object, *, name: str = "price", status: Any = "returned") -> Round:
    """A round of this brief with one call."""
    call = ToolCall(
        id="c", wire_id="w", name=name, raw_args='{"city":"Lisbon","nights":3}', result=(Text(json.dumps(value)),),
        status=status,
    )  # fmt: skip
    return Round(id="own", calls=(call,))


def test_a_guideline_calls_the_tool_it_speaks_of_with_what_is_known() -> None:
    """Though the message has no word for it; a value of the message for another field is no argument."""
    made = called(
        "x", "What is the name, please?", "Ana Costa", known=KNOWN, pending={"ok": OK}, prompt=QUOTE, offers=(PRICE,)
    )
    assert made == ("price", {"city": "Lisbon", "nights": 3})


def test_a_corrected_value_goes_into_the_call() -> None:
    """The value of this message before anything that was said earlier."""
    made = called(
        "three nights in Lisbon", CONFIRM, "na verdade duas noites", known={"city": "Lisbon", "name": "Ana Costa"},
        pending={"nights": NIGHTS, "ok": OK}, prompt=QUOTE, offers=(PRICE,),
    )  # fmt: skip
    assert made == ("price", {"city": "Lisbon", "nights": 2})


def test_a_message_calls_the_tool_it_asks_for() -> None:
    """With its own values before the known ones."""
    asked = ("x", CONFIRM, "How much is it in Porto?")
    assert called(*asked, known=KNOWN, pending={"ok": OK}, offers=(PRICE,)) == ("price", {"city": "Porto", "nights": 3})


def test_speaks_from_results_then_asks() -> None:
    """No call is made twice in one reply."""
    got = spoken(
        "x", "What is the name, please?", "Ana Costa", known=KNOWN, pending={"ok": OK}, prompt=QUOTE, offers=(PRICE,),
        units=(returned({"total": 420}),),
    )  # fmt: skip
    assert got == {"message": f"From price (city: Lisbon, nights: 3): total: 420. {CONFIRM}", "ok": None}


def test_a_tool_whose_arguments_are_still_asked_for_waits() -> None:
    """The step's own question goes first; without offers, and in a wrap-up, nothing is called at all."""
    assert said("What is the price?", pending=STAY, offers=(PRICE,)).endswith("Which city?")
    assert "Is that right?" in said("x", "Name?", "Ana", known=KNOWN, pending={"ok": OK}, prompt=QUOTE)
    request = speak_request("Ana", known=KNOWN, pending={"ok": OK}, prompt=QUOTE, offers=(PRICE,))
    wrapped = type(request)(**{f: getattr(request, f) for f in request.__struct_fields__} | {"purpose": "wrap_up"})
    assert not any(isinstance(chunk, CallChunk) for chunk in reply_chunks(wrapped, "rules"))


def test_what_cannot_be_undone_waits_for_a_yes_in_a_flow_too() -> None:
    """It names the call and asks; after the yes it calls, and asks for nothing of which the result may be the value."""
    pending = {"booking": field("string", "Book the room with the tool.")}
    step: dict[str, Any] = {"known": KNOWN, "pending": pending, "prompt": "Book the room.", "offers": (BOOK,)}
    question = said("x", "What is the name, please?", "Ana Costa", **step)
    assert "I am about to run book_room (city: Lisbon, name: Ana Costa)" in question
    assert called("x", question, "yes", **step) == ("book_room", {"city": "Lisbon", "name": "Ana Costa"})
    assert said("x", question, "no", **step).startswith("All right, I did not run book_room.")
    done = said("x", question, "yes", units=(returned({"code": "H-1"}, name="book_room"),), **step)
    assert done.endswith("code: H-1.")


# ---- answers and guidelines ------------------------------------------------------------------------------------------

FACTS = (
    '## Identity\nYou are "Ana".\n\n## Knowledge base\n- breakfast:\n  - hours: 7:00 to 10:30\n- pets: welcome in Porto'
)


def test_answers_from_the_knowledge_base_and_goes_on_asking() -> None:
    """A question in place of an answer; what no fact tells is not made up."""
    assert said("x", "Which city?", "When is breakfast?", pending=STAY, facts=FACTS) == (
        "My brief says: “breakfast hours: 7:00 to 10:30” Which city?"
    )
    assert said("x", "Which city?", "Do you have a pool?", pending=STAY, facts=FACTS).endswith(
        "found no rule for that. Which city?"
    )


def test_in_front_of_a_fixed_question_it_only_answers() -> None:
    """It asks nothing, whatever the author's question is."""
    prompt = (
        'Answer what was asked, ask nothing. This question goes out word for word, so do not ask it:\n"Which city?"'
    )
    assert said("When is breakfast?", prompt=prompt, facts=FACTS) == "My brief says: “breakfast hours: 7:00 to 10:30”"
    assert said("Book a room", prompt=prompt, facts=FACTS, offers=(PRICE,)) == "All right."


GUIDED: list[tuple[str, str]] = [
    ("Tell them that the code is H-1001, and say goodbye.", "The code is H-1001. Goodbye!"),
    ("Let them know: their room is ready.", "Your room is ready."),
    ("Apologise, then ask what went wrong.", "I am sorry about that. Please tell me what went wrong."),
    ("Ask how to help.", "What can I do for you?"),
    ("Thank the customer.", "Thank you!"),
    ("Pick the conversation up lightly.", "There is nothing open that I could do with that."),
]


@pytest.mark.parametrize(("prompt", "expected"), GUIDED)
def test_a_guideline_is_carried_out_where_a_rule_can_and_never_read_out(prompt: str, expected: str) -> None:
    """Courtesies, a question, a statement that is spelled out."""
    assert said("ok", prompt=prompt) == expected


LAST = "Olá de novo! Esta é a minha última mensagem por agora: escreva quando quiser."


@pytest.mark.parametrize(
    ("lines", "prompt", "pending", "expected"),
    [
        (("two nights", "Noted."), "Pick the conversation up lightly.", {}, "Hello again! Shall we go on?"),
        (("duas noites", "Certo."), "Última tentativa.", {}, LAST),
        (("duas noites", "Certo."), "Remind them.", {"city": CITY}, "Olá de novo! Qual cidade?"),
        (("thanks", "Bye!"), "Thank them for the stay, and ask how it was.", {},
         "Hello again! Thank you! Please tell me how it was."),
    ],
)  # fmt: skip
def test_speaks_first_when_there_is_no_message(lines: Any, prompt: str, pending: Any, expected: str) -> None:
    """In the language of the conversation; what was said long ago answers nothing now."""
    assert said(*lines, first=True, prompt=prompt, pending=pending) == expected


def test_the_idle_speaker_is_the_plain_stand_in_in_an_envelope() -> None:
    """It greets, quotes, calls tools, and says what it is."""
    assert said("Hello!", flow="").startswith("Hello! What can I do for you?")
    assert said("When is breakfast?", flow="", facts=FACTS).startswith("My brief says:")
    assert "not a language model" in said("Are you a robot?", flow="")
    assert called("price in Porto for 2 nights", flow="", offers=(PRICE,)) == ("price", {"city": "Porto", "nights": 2})


WORDS = st.sampled_from(
    ["actually", "two nights", "Lisbon", "Ana Costa", "no,", "yes", "?", "price", "how much", "hello", "## Flow", '"']
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(WORDS | st.text(max_size=8), max_size=6).map(" ".join), min_size=1, max_size=3),
    st.text(max_size=60) | st.sampled_from([QUOTE, "Tell them", "Ask", "Ask which?", "and then"]),
    st.booleans(),
)
def test_any_request_gets_words_or_a_call_and_the_same_again(lines: list[str], prompt: str, first: bool) -> None:
    """The message is never blank, values have their types, and nothing is ever raised."""
    pending = {"nights": NIGHTS, "ok": OK}
    request = speak_request(
        *lines, known={"city": "Lisbon"}, pending=pending, prompt=prompt, first=first, offers=(PRICE,)
    )
    got = list(reply_chunks(request, "rules"))
    assert got == list(reply_chunks(request, "rules"))
    assert isinstance(got[-1], Finished)
    if not isinstance(got[0], CallChunk):
        held = json.loads("".join(c.text for c in got if isinstance(c, TextChunk)))
        assert list(held) == ["message", "nights", "ok"]
        assert held["message"].strip()
        assert held["nights"] is None or type(held["nights"]) is int
        assert held["ok"] in {None, True, False}
