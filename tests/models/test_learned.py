"""Learned refusals: what proves one, where it holds, and for how long."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from onrecord.errors import ModelError
from onrecord.models.classify_errors import answer_error, refused_by, stream_error
from onrecord.models.learned import KEEPS_S, MOST, Learned, proven, without_tools
from onrecord.models.request import Settings
from tests.models.requests import CARD, offer, request, user

pytestmark = pytest.mark.unit

NO_TOOLS = "registry.test/gemma does not support tools"
NOW = datetime(2026, 11, 30, tzinfo=UTC)
ASKED = request(user("hi"), offers=(offer(),))


def answered(message: str, status: int = 400) -> ModelError:
    """The error of an answer with these words."""
    body = json.dumps({"error": {"message": message}}).encode()
    return answer_error("acme", status, {}, body, now=NOW)


def test_a_refusal_is_believed_until_it_expires() -> None:
    """An hour, counted from the last proof."""
    learned = Learned()
    assert not learned
    learned.note(CARD, "tools", 100.0)
    assert learned.refusals(CARD, 100.0 + KEEPS_S - 1) == {"tools"}
    learned.note(CARD, "tools", 200.0)
    assert learned.refusals(CARD, 100.0 + KEEPS_S) == {"tools"}
    assert learned.refusals(CARD, 200.0 + KEEPS_S) == frozenset()
    assert not learned  # and is forgotten then


def test_two_refusals_of_one_model_expire_each_at_its_time() -> None:
    """Tools first, lists of parts later."""
    learned = Learned(keeps_s=10)
    learned.note(CARD, "tools", 0.0)
    learned.note(CARD, "arrays", 5.0)
    assert learned.refusals(CARD, 9.0) == {"tools", "arrays"}
    assert learned.refusals(CARD, 12.0) == {"arrays"}
    assert learned.refusals(CARD, 15.0) == frozenset()


@pytest.mark.parametrize("other", [{"model": "n"}, {"base_url": "http://other/v1"}, {"protocol": "openai-responses"}])
def test_what_one_model_refuses_says_nothing_about_others(other: dict[str, str]) -> None:
    """Another name, endpoint or protocol; the provider's own name does not matter."""
    learned = Learned()
    learned.note(CARD, "tools", 0.0)
    assert learned.refusals(replace(CARD, **other), 1.0) == frozenset()
    assert learned.refusals(replace(CARD, provider="alias"), 1.0) == {"tools"}


def test_what_is_remembered_is_bounded_and_can_be_forgotten() -> None:
    """The oldest goes first."""
    learned = Learned()
    cards = [replace(CARD, model=f"m{n}") for n in range(MOST + 5)]
    for card in cards:
        learned.note(card, "tools", 0.0)
    assert [bool(learned.refusals(card, 1.0)) for card in (cards[4], cards[5], cards[-1])] == [False, True, True]
    learned.forget(cards[-1])
    assert not learned.refusals(cards[-1], 1.0)
    assert repr(learned) == f"Learned({MOST - 1} of {MOST})"


@pytest.mark.parametrize(
    ("message", "refuses"),
    [
        (NO_TOOLS, "tools"),
        ("No endpoints found that support tool use. Try disabling it.", "tools"),
        ("`tool calling` is not supported with this model", "tools"),
        ("Unsupported param: tools", "tools"),
        ("messages[7]: invalid type: sequence, expected a string", "arrays"),
        ("messages.0.content: Input should be a valid string", "arrays"),
        ("Invalid schema for function 'price': invalid_function_parameters", ""),
        ("Failed to call a function. Please adjust your prompt.", ""),
        ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', ""),
        ("tool_choice 'required' is not supported", ""),
    ],
)
def test_only_words_about_the_model_as_such_are_a_proof(message: str, refuses: str) -> None:
    """A schema, a failed call, a missing option of a server or one choice are about this request alone."""
    assert refused_by(message) == refuses
    assert answered(message).refuses == refuses
    assert stream_error("acme", {"error": {"message": message}}).refuses == refuses
    assert proven(answered(message), ASKED, b"{}") == (refuses or None)


def test_a_refusal_says_what_to_do() -> None:
    """And quotes nothing."""
    error = answered(NO_TOOLS)
    assert "tools=False" in error.hint
    assert "gemma" not in f"{error} {error.hint}"
    assert "arrays=False" in answered("messages[7]: invalid type: sequence, expected a string").hint


@pytest.mark.parametrize("status", [401, 402, 429])
def test_what_is_about_the_account_proves_nothing(status: int) -> None:
    """A plan without tools may be changed within the hour."""
    assert answered(NO_TOOLS, status).refuses == ""


def test_a_request_without_tools_proves_nothing_about_them() -> None:
    """Hosted search counts as one."""
    assert proven(answered(NO_TOOLS), request(user("hi")), b"{}") is None
    assert proven(answered(NO_TOOLS), request(user("hi"), settings=Settings(search=True)), b"{}") == "tools"


def test_a_reply_that_had_begun_proves_nothing() -> None:
    """Who answers takes what was asked."""
    error = answered(NO_TOOLS)
    error.started = True
    assert proven(error, ASKED, b"{}") is None


def test_words_that_the_request_itself_held_prove_nothing() -> None:
    """Servers quote what they are sent: a message must not switch off the tools of everybody else."""
    quoting = json.dumps({"messages": [{"role": "user", "content": f"say: {NO_TOOLS}"}]}).encode()
    assert proven(answered(f"bad input: say: {NO_TOOLS}"), ASKED, quoting) is None
    assert proven(answered(NO_TOOLS), ASKED, b'{"messages":"we support other things"}') == "tools"


def test_tools_search_and_choice_go_together() -> None:
    """A request that has none of them stays the very same object."""
    plain = request(user("hi"), settings=Settings(seed=1))
    assert without_tools(plain) is plain
    asked = request(user("hi"), offers=(offer(),), choice="required", settings=Settings(search=True, seed=1))
    bare = without_tools(asked)
    assert (bare.offers, bare.choice, bare.settings) == ((), "auto", Settings(seed=1))
    assert bare.conversation is asked.conversation
    assert without_tools(replace(asked, settings=plain.settings)).settings is plain.settings
