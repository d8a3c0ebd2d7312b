"""Summaries, facts and episodes: what each keeps of a conversation, and what it costs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, get_args

import pytest

from onrecord.conversation.identity import Identity
from onrecord.errors import UsageError
from onrecord.jsonio import dumps
from onrecord.memory import Episodes, Fact, Facts, PlainShelf, Recent, Summary
from onrecord.memory.facts import facts_in
from onrecord.memory.ports import Kept, KeptKind, Space
from onrecord.record.kinds import ModelRequested, Noted
from onrecord.testing import ScriptedModel, raises
from tests.memory.remembering import AT, ana, kept_by, recalled_in, remembering, session, shown_data, told

pytestmark = pytest.mark.unit

HERS = Space(owner=ana)


async def texts(shelf: PlainShelf, kind: Any) -> list[str]:
    """What is on a shelf, of one kind."""
    return [one.text for one in await shelf.newest(HERS, kind, limit=99)]


def noted(result: Any) -> list[str]:
    """What a turn notes."""
    return [entry.body.text for entry in result.entries if isinstance(entry.body, Noted)]


# ---- summaries -------------------------------------------------------------------------------------------------------


async def test_what_is_older_is_summed_up_when_there_is_enough_of_it() -> None:
    """In one call, of all but the recent messages; the call is on the record, and so is what came of it."""
    shelf = PlainShelf()
    agent, model, _ = remembering(
        Summary(recent=2, size=4), answers=["a1", "a2", "a3"], consult=["She counts."], shelf=shelf
    )
    for day in range(2):
        await told(agent, f"q{day + 1}", session(f"s{day}"), day=day)
    result = await told(agent, "q3", session("s2"), day=2)
    assert model.calls == ["speak", "speak", "speak", "consult"]
    assert shown_data(model.requests[3]) == ["[user]: q1\n[assistant]: a1\n[user]: q2\n[assistant]: a2"]
    assert [e.body.purpose for e in result.entries if isinstance(e.body, ModelRequested)] == ["speak", "consult"]
    assert result.llm_calls == 2
    assert await texts(shelf, "summary") == ["She counts."]
    assert list(kept_by(result)[0].keys) == ["message", "summary"]


async def test_a_summary_takes_the_place_of_the_one_before() -> None:
    """It is told the earlier one, covers what came since, and both sessions' words are in it."""
    shelf = PlainShelf()
    agent, model, _ = remembering(
        Summary(recent=1, size=2), answers=["a1", "a2", "a3"], consult=["first", "second"], shelf=shelf
    )
    for day in range(3):
        await told(agent, f"q{day + 1}", session(f"s{day}"), day=day)
    asked = [data for request in model.requests if request.purpose == "consult" for data in shown_data(request)]
    assert asked == ["[user]: q1\n[assistant]: a1\n[user]: q2", "[summary]: first\n[assistant]: a2\n[user]: q3"]
    (held,) = await shelf.newest(HERS, "summary", limit=9)
    assert (held.text, held.sessions) == ("second", ("s0", "s1", "s2"))


async def test_the_summary_and_the_last_messages_are_shown() -> None:
    """In this order; the summary without a day, since its words are of many."""
    agent, model, _ = remembering(Summary(recent=1, size=2), answers=["a1", "a2", "ok"], consult=["sum"] * 3)
    for day in range(3):
        await told(agent, f"q{day + 1}", session(f"s{day}"), day=day)
    speaking = [request for request in model.requests if request.purpose == "speak"]
    (data,) = shown_data(speaking[2])
    assert data.index("sum") < data.index("a2")
    assert '<memory kind="summary">' in data
    assert "q2" not in data


async def test_a_summary_that_fails_is_tried_again_later() -> None:
    """The answer stands, the record says why there is none, and nothing is lost."""
    shelf = PlainShelf()
    agent, _, _ = remembering(
        Summary(recent=1, size=2),
        Facts(),
        answers=["a1", "a2", "a3"],
        consult=[raises("rate"), "", "third"],
        shelf=shelf,
    )
    assert noted(await told(agent, "My name is Ana", session("s0"))) == []
    assert noted(await told(agent, "q2", session("s1"))) == ["summary learned nothing: model-rate"]
    assert await texts(shelf, "fact") == ["name: Ana"]
    assert noted(await told(agent, "q3", session("s2"))) == []
    assert await texts(shelf, "summary") == []
    agent, _, _ = remembering(Summary(recent=1, size=2), answers=["a4"], consult=["fourth"], shelf=shelf)
    await told(agent, "q4", session("s3"))
    assert await texts(shelf, "summary") == ["fourth"]


async def test_another_model_may_be_asked() -> None:
    """A small one, say."""
    small = ScriptedModel(consult=["brief"])
    agent, model, _ = remembering(Summary(recent=1, size=2, model=small), answers=["a1", "a2"])
    for day in range(2):
        await told(agent, "q", session(f"s{day}"))
    assert (model.calls, small.calls) == (["speak", "speak"], ["consult"])


async def test_a_script_that_has_run_out_is_a_test_of_yours_gone_wrong() -> None:
    """It is not taken for a model that failed."""
    agent, _, _ = remembering(Facts(by="model"), answers=["ok"])
    assert noted(await told(agent, "hi", session())) == ["settle failed: ScriptEnded"]


# ---- facts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("My name is Ana and I live in São Paulo.", ["name: Ana", "home: São Paulo"]),
        ("call me Bo, please", ["name: Bo"]),
        ("Meu nome é Rui e moro em Faro", ["name: Rui", "home: Faro"]),
        ("Me llamo Eva; prefiero el tren", ["name: Eva", "preference: el tren"]),
        ("I work at  a bank!", ["work: a bank"]),
        ("I'm allergic to nuts, remember that I travel on Mondays.", ["allergy: nuts", "note: I travel on Mondays"]),
        ("My name is", []),
        ("Nothing about me", []),
        ("", []),
        ("What do I prefer? Where do I live in winter, and why? Do I work at night?", []),
        ("Do you remember that I like soup? O que prefiro? ¿Dónde vivo en verano?", []),
        ("Please call me when the room is ready.", []),
        ("My name is Ana, can you help? I live in Porto, right?", ["name: Ana", "home: Porto"]),
    ],
)
def test_patterns_find_what_is_said_in_so_many_words(text: str, facts: list[str]) -> None:
    """In three languages, and nothing beyond."""
    assert [f"{fact.about.split()[0]}: {fact.text}" for fact in facts_in(text)] == facts


@pytest.mark.parametrize("opening", ["I prefer", "My name is", "remember that"])
def test_a_long_run_of_blanks_is_read_in_time(opening: str) -> None:
    """As long as a message may be, with nothing behind it at which a value could end."""
    assert facts_in(f"{opening}{' ' * 3000}{'x' * 900}") == []


async def test_a_later_fact_takes_the_place_of_an_earlier_one() -> None:
    """About the same thing; the same again is there once, and that session's."""
    shelf = PlainShelf()
    agent, model, _ = remembering(Facts(), answers=["ok"] * 4, shelf=shelf)
    await told(agent, "I live in Porto", session("one"))
    second = await told(agent, "I live in Faro", session("two"))
    third = await told(agent, "I live in Faro", session("three"))
    await told(agent, "hi", session("four"))
    assert await texts(shelf, "fact") == ["home: Faro"]
    assert (len(kept_by(second)), len(kept_by(third))) == (1, 1)
    assert [held.sessions for held in await shelf.newest(HERS, "fact", limit=9)] == [("three",)]
    assert "Porto" not in shown_data(model.requests[3])[0]


async def test_a_function_of_yours_finds_facts() -> None:
    """A blank text takes a fact away; only so many are kept, the newest."""

    def extract(text: str) -> list[Fact]:
        about, _, value = text.partition("=")
        return [Fact(about, value)] if "=" in text else []

    shelf = PlainShelf()
    agent, _, _ = remembering(Facts(by=extract, most=2), answers=["ok"] * 5, shelf=shelf)
    for text in ("a=1", "B =2", "c=3", "nothing"):
        await told(agent, text, session(text))
    assert await texts(shelf, "fact") == ["b: 2", "c: 3"]
    result = await told(agent, "c=", session("five"))
    assert await texts(shelf, "fact") == ["b: 2"]
    assert len(kept_by(result)[0].dropped) == 1


async def test_a_function_that_finds_something_else_is_told() -> None:
    """The turn stands; the note says what failed."""
    agent, _, _ = remembering(Facts(by=lambda _: ["x"]), answers=["ok"])  # type: ignore[list-item]  # wrong on purpose
    result = await told(agent, "hi", session())
    assert noted(result) == [f"settle failed: {UsageError.__name__}"]


async def test_a_model_finds_facts() -> None:
    """It is told what there are facts about and what was said, as data, and only what it changes is kept."""
    shelf = PlainShelf()
    replies = [
        '{"facts": [{"about": "Pet", "text": "a cat  called Mia"}, {"about": "town", "text": "Lund"}]}',
        'Sure: {"facts": [{"about": "pet", "text": "two cats"}, {"about": "town", "text": ""}]}',
    ]
    agent, model, _ = remembering(Facts(by="model"), answers=["ok", "ok"], consult=replies, shelf=shelf)
    await told(agent, "I have a cat", session("one"))
    assert await texts(shelf, "fact") == ["pet: a cat called Mia", "town: Lund"]
    await told(agent, "Now two!", session("two"))
    asked = [request for request in model.requests if request.purpose == "consult"]
    assert shown_data(asked[0]) == ["[user]: I have a cat\n[assistant]: ok"]
    assert shown_data(asked[1]) == ["[known about] pet\n[known about] town\n[user]: Now two!\n[assistant]: ok"]
    assert asked[0].shape is not None
    assert asked[0].shape.name == "facts"
    (held,) = await shelf.newest(HERS, "fact", limit=9)
    assert (held.text, held.sessions) == ("pet: two cats", ("two",))


@pytest.mark.parametrize(
    "reply", ["", "none", "{", '{"facts": 3}', '{"facts": [3, {"about": 1}, {"about": " ", "text": "x"}]}', '["facts"]']
)
async def test_a_model_that_writes_something_else_finds_nothing(reply: str) -> None:
    """And breaks nothing."""
    agent, _, _ = remembering(Facts(by="model"), answers=["ok"], consult=[reply])
    result = await told(agent, "hi", session())
    assert (result.text, noted(result), kept_by(result)) == ("ok", [], [])


async def test_a_session_that_is_forgotten_takes_what_a_model_made_of_it() -> None:
    """A summary of both. A later fact is made without a word of the earlier one, and stays."""
    shelf = PlainShelf()
    one = '{"facts": [{"about": "pet", "text": "%s"}]}'
    agent, model, _ = remembering(
        Facts(by="model"), Summary(recent=1, size=3), answers=["a", "b"], consult=[one % "cat", one % "cats", "both"],
        shelf=shelf,
    )  # fmt: skip
    await told(agent, "x", session("one"))
    await told(agent, "y", session("two"))
    assert (await texts(shelf, "fact"), await texts(shelf, "summary")) == (["pet: cats"], ["both"])
    await shelf.forget(session("one").key)
    assert (await texts(shelf, "fact"), await texts(shelf, "summary")) == (["pet: cats"], [])
    asked = [request for request in model.requests if request.purpose == "consult"]
    assert shown_data(asked[1]) == ["[known about] pet\n[user]: y\n[assistant]: b"]
    assert await texts(shelf, "message") == ["y", "b"]
    await shelf.forget(session("two").key)
    assert await texts(shelf, "fact") == []


# ---- episodes --------------------------------------------------------------------------------------------------------


async def test_exchanges_that_fit_are_shown() -> None:
    """Whole, the best first, no more than asked for."""
    agent, model, _ = remembering(Episodes(1), answers=["By train.", "At noon.", "ok"])
    await told(agent, "How do I get to Lund?", session("one"))
    await told(agent, "When is lunch?", session("two"), day=1)
    await told(agent, "the way to LUND again", session("three"), day=2)
    (data,) = shown_data(model.requests[2])
    assert "user: How do I get to Lund?\nassistant: By train." in data
    assert "lunch" not in data


async def test_age_may_count() -> None:
    """With a half life an older exchange needs to fit better."""
    for half_life, first in ((None, "old"), (timedelta(days=1), "new")):
        agent, model, _ = remembering(Episodes(1, half_life=half_life), answers=["old", "new", "ok"])
        await told(agent, "trains to lund and malmö", session("one"))
        await told(agent, "trains or planes", session("two"), day=9)
        await told(agent, "trains lund malmö", session("three"), day=9)
        assert f"assistant: {first}" in shown_data(model.requests[2])[0]


async def test_age_shows_no_more_than_the_top() -> None:
    """More are looked at, and of those the best are shown."""
    agent, model, _ = remembering(Episodes(2, half_life=timedelta(days=1)), answers=["ok"] * 5)
    for day in range(5):
        await told(agent, f"trains on day {day}", session(f"s{day}"), day=day + 1)
    (data,) = shown_data(model.requests[4])
    assert [f"day {day}" in data for day in range(4)] == [False, False, True, True]


async def test_an_exchange_that_faded_is_not_recalled() -> None:
    """Three days of a half life of one leave an eighth (seed 004, ``minScore`` of ``decay``)."""
    for min_worth, shown in ((0.1, True), (0.2, False)):
        agent, model, _ = remembering(Episodes(half_life=timedelta(days=1), min_worth=min_worth), answers=["old", "ok"])
        await told(agent, "trains to lund", session("one"))
        await told(agent, "trains to lund", session("two"), day=3)
        assert bool(shown_data(model.requests[1])) is shown


async def test_what_nobody_said_is_no_episode() -> None:
    """A turn without a message leaves its answer to other strategies."""
    from onrecord.conversation.inputs import Happened

    shelf = PlainShelf()
    agent, _, _ = remembering(Episodes(), Facts(), Recent(3), answers=["done"], shelf=shelf)
    await told(agent, Happened("paid", key="k"), session())
    assert (await texts(shelf, "episode"), await texts(shelf, "message")) == ([], ["done"])


async def test_a_turn_in_which_nobody_spoke_leaves_nothing() -> None:
    """Not even an entry."""
    from onrecord.conversation.inputs import Happened
    from onrecord.turn.options import Silenced

    agent, _, _ = remembering(Episodes(), Facts(), Recent(3))
    result = await agent.turn(Happened("paid", key="k"), session="new", options=[Silenced("night")])
    assert (result.status, kept_by(result)) == ("silent", [])


async def test_an_answer_may_be_missing() -> None:
    """A message that nobody answered is kept by itself."""
    from onrecord.turn.options import Silenced

    shelf = PlainShelf()
    agent, _, _ = remembering(Episodes(), Recent(3), shelf=shelf)
    await agent.turn("hello?", session=session(), options=[Silenced("closed")])
    assert (await texts(shelf, "episode"), await texts(shelf, "message")) == (["user: hello?"], ["hello?"])


async def test_a_memory_that_is_shared_forgets_each_of_its_people() -> None:
    """Whosever it is: what one of them said goes with them, and a summary of both goes with either."""
    team = Identity(principal="team")
    shelf = PlainShelf()
    agent, _, _ = remembering(
        Summary(recent=1, size=2), Facts(by=lambda text: [Fact(text, text)]), Episodes(), answers=["a", "b"],
        consult=["both"], shelf=shelf, whose=lambda _: team,
    )  # fmt: skip
    await told(agent, "hers", session("one", "ana"))
    await told(agent, "his", session("two", "bo"))
    space = Space(owner=team)
    assert [one.text for one in await shelf.newest(space, "summary", limit=9)] == ["both"]
    await shelf.forget(ana)
    left = [one.text for kind in get_args(KeptKind) for one in await shelf.newest(space, kind, limit=9)]
    assert left == ["his", "b", "his: his", "user: his\nassistant: b"]
    await shelf.forget(team)
    assert [one for kind in get_args(KeptKind) for one in await shelf.newest(space, kind, limit=9)] == []


async def test_summaries_of_turns_that_settle_side_by_side_go_with_the_next() -> None:
    """None of them is left behind for ever; and one is as old as its oldest words."""
    shelf = PlainShelf()
    for key, upto in (("summary-1-2", 2), ("summary-1-4", 4)):
        await shelf.put(HERS, [Kept(key=key, kind="summary", text=key, at=AT, sessions=("s",), upto=upto)])
    agent, model, _ = remembering(
        Summary(recent=1, size=2), answers=["a", "b", "c"], consult=["whole"] * 2, shelf=shelf
    )
    for day in (1, 2, 3):
        await told(agent, f"q{day}", session(f"s{day}"), day=day)
    (held,) = await shelf.newest(HERS, "summary", limit=9)
    assert (held.text, held.at) == ("whole", AT)
    assert "[summary]: summary-1-4" in "".join(shown_data(next(r for r in model.requests if r.purpose == "consult")))


async def test_a_reply_of_many_and_long_facts_is_cut_to_what_is_kept() -> None:
    """The last of them, each to its size; of those about one thing the last counts, also one that takes it away."""
    shelf = PlainShelf()
    listed = [{"about": "thing " + "x" * 99 + str(n), "text": "y" * 5000} for n in range(50)]
    listed += [{"about": "pet", "text": "a cat"}, {"about": "pet", "text": ""}]
    listed += [{"about": "town", "text": ""}, {"about": "town", "text": "Lund"}]
    agent, _, _ = remembering(
        Facts(by="model", most=3), answers=["ok", "ok"], shelf=shelf,
        consult=['{"facts": [{"about": "town", "text": "Faro"}]}', dumps({"facts": listed}).decode()],
    )  # fmt: skip
    await told(agent, "x", session("one"))
    (kept,) = kept_by(await told(agent, "y", session("two")))
    assert set(kept.dropped).isdisjoint(kept.keys["fact"])
    held = await texts(shelf, "fact")
    assert [len(text) for text in held] == [60 + 2 + 400] * 2 + [len("town: Lund")]
    assert held[-1] == "town: Lund"


async def test_facts_that_turns_side_by_side_left_beyond_the_most_go_with_the_next() -> None:
    """The oldest first; what is never shown is not kept either."""
    shelf = PlainShelf()
    for n in range(4):
        await shelf.put(HERS, [Kept(key=f"fact-{n}", kind="fact", text=f"{n}: x", at=AT, sessions=("s",))])
    agent, _, _ = remembering(Facts(most=2), answers=["ok"], shelf=shelf)
    await told(agent, "My name is Ana", session("one"))
    assert await texts(shelf, "fact") == ["3: x", "name: Ana"]


async def test_an_exchange_of_a_later_time_counts_as_one_of_today() -> None:
    """A clock that was put back makes nothing more than new."""
    agent, _, _ = remembering(Episodes(half_life=timedelta(days=1)), answers=["a", "b", "c"])
    await told(agent, "red apples", session("one"), day=9)
    await told(agent, "apples, red apples and more red apples", session("two"), day=0)
    (recalled,) = recalled_in(await told(agent, "red apples", session("three"), day=0))
    scores = [one.score or 0 for one in recalled.served]
    assert max(scores) < 2 * min(scores)
