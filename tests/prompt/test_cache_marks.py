"""Cache marks: where they go, by which policies, and when they stop."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.messages import Round
from onrecord.conversation.usage import ModelUse, Usage
from onrecord.errors import ConfigurationError, FeatureConflict
from onrecord.models.fallback import Fallback
from onrecord.models.model import ModelCard
from onrecord.models.names import model_named
from onrecord.models.request import HeadMarks, Piece, Request, Span, View
from onrecord.prompt.cache_marks import CACHE_HITS, CacheHits, CacheMarks, boundaries
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import ModelReplied, ModelRequested, Noted
from onrecord.record.receipts import HeadMark, PieceMark, Receipt
from onrecord.testing import FakeEffects, ScriptedModel, raises, reply
from onrecord.testing.conformance.feature import FeatureConformance, InertFeatureConformance, MakeFeature
from onrecord.turn.instruction import Instruction
from onrecord.turn.moments import SLOTS, Hooks, Rank
from onrecord.turn.turn import Turn
from tests.models.requests import call as called
from tests.models.requests import context, request, said, settled, user
from tests.models.wired import chat, merging
from tests.turn.acting import Named, bodies, call, tool, turn

pytestmark = pytest.mark.unit


MARKS = ModelCard(provider="scripted", model="script", protocol="scripted", cache_marks=True)


def adding(*pieces: Piece) -> Named:
    """A feature that adds pieces."""

    async def hook(live: Turn, asked: Request) -> Request:
        return replace(asked, pieces=(*asked.pieces, *pieces))

    return Named("adding", Hooks(on_request=hook))


async def marked(*features: Any, answers: Sequence[Any] = ("ok",), **given: Any) -> list[View]:
    """The views of the requests of one turn."""
    model = ScriptedModel(*answers, card=MARKS)
    await turn(Agent(model, features=features, **given))
    return [asked.view for asked in model.requests]


async def system(*features: Any, **given: Any) -> int:
    """How many system texts the mark of a turn's request covers."""
    (view,) = await marked(*features, instructions="Base.", **given)
    return 0 if view.head is None else view.head.system


SKILL = Piece(source="skill", text="How to book.", rank=Rank.SKILL, cache="while_active")
VOLATILE = Piece(source="facts", text="It rains.", rank=Rank.FACT)


async def test_l139_the_mark_covers_the_longest_beginning_that_is_worth_it() -> None:
    """Base and skill, then a volatile text: the boundary is index 1, counted from 0 (case L139; ours counts texts).

    ``caching="off"`` leaves no mark.
    """
    assert await system(adding(SKILL, VOLATILE), CacheMarks()) == 2
    assert await system(adding(SKILL, VOLATILE), CacheMarks(caching="off")) == 0


async def in_use(*skills: Sequence[str], card: ModelCard = MARKS) -> list[bool]:
    """Whether requests of one turn are marked in which these skills are in use, one after the other."""
    left = [tuple(Piece(source=f"skill:{id}", text=id, rank=Rank.SKILL) for id in ids) for ids in skills]

    async def hook(live: Turn, asked: Request) -> Request:
        return replace(asked, pieces=(*asked.pieces, *left.pop(0)))

    answers = [*([call("lookup", n=n)] for n in range(len(skills) - 1)), "ok"]
    model = ScriptedModel(*answers, card=card)
    features: list[Any] = [Named("skills", Hooks(on_request=hook)), CacheMarks()]
    await turn(Agent(model, features=features, instructions="Base.", tools=[tool()], rounds=len(skills)))
    return [asked.view.head is not None for asked in model.requests]


async def test_l139_the_third_set_of_skills_in_five_requests_stops_marks() -> None:
    """Each beginning would be written and never read; they go on when skills stay (case L139)."""
    assert await in_use("a", "b", "c", "c", "c", "c", "c") == [True, True, False, False, False, True, True]
    assert await in_use("a", "a", "a", "b", "b", "a", "b") == [True] * 7
    assert await in_use("", "a", "", "b", "", "", "c") == [True] * 7
    assert await in_use("abc", "abc", "abc", "ab", "ab") == [True] * 5
    assert await in_use("a", "ab", "abc") == [True, True, False]


async def test_skills_of_a_model_that_takes_no_marks_change_nothing() -> None:
    """Its vendor caches by itself."""
    assert await in_use("a", "b", "c", card=replace(MARKS, cache_marks=False)) == [False] * 3


async def test_a_text_behind_a_volatile_one_is_not_covered() -> None:
    """A prefix ends at the first text that may change."""
    late = Instruction("Always the same.", rank=Rank.INSTRUCTION)
    assert await system(adding(VOLATILE), late, CacheMarks()) == 1
    assert await system(late, CacheMarks()) == 2


async def test_a_blank_text_parts_nothing() -> None:
    """It is not sent; marks count pieces, so it counts."""
    blank = Piece(source="blank", text="  ", rank=Rank.STEERING)
    assert await system(adding(blank, SKILL, VOLATILE), CacheMarks()) == 3


async def test_policies_by_source_win_over_those_of_pieces() -> None:
    """An instruction is known by its name, the agent's own instructions by ``instructions``."""
    mine = Instruction("It is monday.", name="day", rank=Rank.STEERING)
    assert await system(mine, CacheMarks(policies={"day": "never"})) == 1
    assert await system(mine, CacheMarks(policies={"instructions": "never"})) == 0
    assert await system(adding(VOLATILE), CacheMarks(policies={"facts": "always"})) == 2
    assert await system(Instruction("x", cache="never"), CacheMarks()) == 1


async def test_a_condition_that_holds_is_as_good_as_always_while_it_holds() -> None:
    """``while_active`` is what a text under a condition has by itself."""
    assert await system(Instruction("x", only_if=lambda _: True), CacheMarks()) == 2
    assert await system(Instruction("x", only_if=lambda _: False), CacheMarks()) == 1


async def test_until_caches_a_text_until_its_function_says_so() -> None:
    """It is asked before each request."""
    until = CacheMarks(policies={"instructions": lambda live: len(live.rounds) > 0})
    views = await marked(until, answers=([call("lookup")], "ok"), instructions="Base.", tools=[tool()])
    assert [view.head and view.head.system for view in views] == [1, 0]


async def test_a_function_that_raises_caches_nothing_and_is_noted() -> None:
    """The turn goes on."""
    model = ScriptedModel("ok", card=MARKS)
    feature = CacheMarks(policies={"instructions": lambda _: 1 / 0})  # type: ignore[dict-item,return-value]
    result = await turn(Agent(model, instructions="Base.", features=[feature]))
    assert model.requests[0].view.head is None
    assert [note.text for note in bodies(result, Noted)] == ["the policy of 'instructions' failed: ZeroDivisionError"]


async def test_tools_are_marked_where_there_are_any() -> None:
    """For as long as the feature says."""
    (view,) = await marked(CacheMarks(ttl="long"), tools=[tool()])
    assert view.head == HeadMarks(system=0, tools=True, ttl="long")
    (view,) = await marked(CacheMarks())
    assert (view.head, view.marks) == (None, (0,))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"caching": "maybe"}, "caching= of CacheMarks is 'on' or 'off', not 'maybe'"),
        ({"ttl": "1h"}, "ttl= of CacheMarks is 'short' or 'long', not '1h'"),
        ({"policies": {"x": "sometimes"}}, "the cache policy of 'x' is none: 'sometimes'"),
    ],
)
def test_what_is_no_policy_is_refused_when_it_is_declared(given: Any, told: str) -> None:
    """By name."""
    with pytest.raises(ConfigurationError) as refused:
        CacheMarks(**given)
    assert str(refused.value) == told


def test_one_feature_marks() -> None:
    """Two would say two things."""
    with pytest.raises(FeatureConflict, match="the feature 'cache_marks' is given twice"):
        Agent(ScriptedModel(), features=[CacheMarks(), CacheMarks(caching="off")])


# ---- the conversation ------------------------------------------------------------------------------------------------

TALK = (
    user("hi", id="u0"),
    said(settled("r0", calls=[called("r0", 0)]), settled("r1", "It is 7.")),
    user("and?", id="u1"),
    said(settled("r2", calls=[called("r2", 0)])),
)


def test_marks_stand_behind_the_last_unit_and_the_one_that_was_marked_before() -> None:
    """Units that end on the user's side: messages, and rounds with results; never words of the model."""
    assert boundaries(request(*TALK, own=4)) == (3, 4)
    assert boundaries(request(*TALK[:3], own=4)) == (1, 3)
    assert boundaries(request(*TALK[:2], own=3)) == (0, 1)
    assert boundaries(request(TALK[0], own=1)) == (0,)
    assert boundaries(request()) == ()


def test_a_text_of_the_turn_parts_what_lasts_from_what_does_not() -> None:
    """It stands in front of the turn's own rounds for this turn only."""
    told = Piece(source="brief", text="Ask for a date.", place="turn")
    assert boundaries(request(*TALK, own=4, pieces=(told,))) == (3, 4)
    assert boundaries(request(*TALK, own=3, pieces=(told,))) == (1, 4)
    assert boundaries(request(*TALK[:3], own=4, pieces=(told,))) == (3,)
    carried = request(*TALK[:3], own=4, carries=3, pieces=(told,))
    assert boundaries(carried) == (1,)


def test_marks_stay_inside_what_is_shown() -> None:
    """Behind a window's summary; where nothing is shown there is none."""
    asked = request(*TALK, own=4)
    cut = replace(asked, view=View(spans=(context("summary"), Span(2, 5))))
    assert boundaries(cut) == (3, 4)
    assert boundaries(replace(asked, view=View(spans=(context("summary"), Span(4, 5))))) == (4,)
    assert boundaries(replace(asked, view=View(spans=(context("summary"),)))) == ()


def test_a_call_that_nobody_answered_and_hoisted_text_hold_no_mark() -> None:
    """What a model alone said; and instructions, which go elsewhere on some wires."""
    asked = called("r", 0, status="asked", result=None)
    assert boundaries(request(user("q"), said(settled("r", calls=[asked])))) == (0,)
    assert boundaries(request(user("q"), context("be good", "system"))) == (0,)
    assert boundaries(request(user("q"), context("a fact", "data", id="c"))) == (0, 1)


def test_a_draft_with_its_correction_holds_a_mark() -> None:
    """The correction is shown behind it, on the user's side."""
    draft = replace(settled("r", "It is 7."), revised=(context("Say the unit.", id="v"),))
    assert boundaries(request(user("q"), said(draft), own=1)) == (0, 1)


# ---- off, and worth it -----------------------------------------------------------------------------------------------


async def test_off_sends_the_bytes_of_an_agent_without_the_feature() -> None:
    """And takes away what others marked."""

    async def marks(live: Turn, asked: Request) -> Request:
        return replace(asked, view=replace(asked.view, marks=(0,), head=HeadMarks(system=1)))

    other = Named("other", Hooks(on_request=marks, order={"request": SLOTS["request"]["MEDIA"]}))
    sent = []
    off = CacheMarks(caching="off")
    mounted: list[list[Any]] = [[], [off], [other, off], [CacheMarks()]]
    for features in mounted:
        model = merging([call("lookup")], "ok")
        await turn(Agent(model, instructions="Base.", tools=[tool()], features=features))
        sent.append(model.bodies)
    assert sent[0] == sent[1] == sent[2]
    assert sent[3] != sent[0]
    assert [body.replace(b',"mark":true', b"") for body in sent[3]] == sent[0]


async def test_a_model_whose_vendor_caches_by_itself_is_sent_the_same_bytes_and_no_receipt_tells_of_marks() -> None:
    """Chat Completions, say; and nothing that was never marked is counted as missed."""
    sent = []
    for features in ([], [CacheMarks()]):
        model = chat([call("lookup")], reply("ok", usage=Usage(input_tokens=100)))
        result = await turn(Agent(model, instructions="Base.", tools=[tool()], features=features))
        sent.append(model.bodies)
        receipts = [asked.receipt for asked in bodies(result, ModelRequested)]
        assert [(r.head, r.marks) for r in receipts if r] == [(None, ())] * 2
    assert sent[0] == sent[1]


async def test_marks_are_set_where_any_model_that_may_answer_takes_them() -> None:
    """The first one's wire leaves them out by itself."""
    first, other = chat(raises("overload", status=503)), merging("ok")
    await turn(Agent(Fallback(first, other), instructions="Base.", features=[CacheMarks()]))
    assert [b'"mark"' in body for body in (*first.bodies, *other.bodies)] == [False, True]


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("anthropic:claude-sonnet-4-5", True),
        ("openai:gpt-5", False),
        ("openai-responses:gpt-5", False),
        ("google:gemini-2.5-pro", False),
    ],
)
def test_l139_the_card_says_whose_vendor_wants_marks(name: str, takes: bool) -> None:
    """The strategy goes by the wire; the others cache what repeats (case L139, loop §19)."""
    assert model_named(name).card.cache_marks is takes


class TestOff(InertFeatureConformance):
    """Switched off, it has nothing to say."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: CacheMarks(caching="off")


class TestOn(FeatureConformance):
    """Switched on, it keeps the promises of all features."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return CacheMarks


def asked(model: str = "p:m", *, marks: bool = True, purpose: str = "speak") -> ModelRequested:
    """A request that is filed, with marks or without."""
    receipt = Receipt(head=HeadMark(system=1) if marks else None)
    return ModelRequested(round="r", purpose=purpose, model=model, receipt=receipt)


def replied(tokens: int, cached: int) -> ModelReplied:
    """A reply that cost so many tokens."""
    usage = Usage(input_tokens=tokens, cached_input_tokens=cached)
    use = ModelUse(provider="p", model="m", scope="", usage=usage, finish="stop", latency_ms=1)
    return ModelReplied(round=Round(id="r", content=(Text("x"),), use=use))


def folded(*happened: Body) -> CacheHits:
    """What the fold makes of these."""
    state = CACHE_HITS.start()
    for n, body in enumerate(happened):
        state = CACHE_HITS.apply(
            state, Entry(seq=n, n=n, turn="t", take=1, where="main", at=FakeEffects().now(), cause=None, body=body)
        )
    return state


def test_the_hit_rate_is_the_share_of_input_that_came_from_the_cache() -> None:
    """Over the last ten replies to marked requests; fewer than four say nothing."""
    hit = (asked(), replied(100, 40))
    assert folded(*hit * 3).rate is None
    assert folded(*hit * 4).rate == 0.4
    assert folded(asked(), replied(1000, 0), *hit * 10).rate == 0.4
    assert folded(*hit * 4, asked(marks=False), replied(100, 0)).rate == 0.4
    assert folded(*hit * 4, asked(), replied(0, 0)).rate == 0.4
    assert folded(*hit * 4, asked(purpose="consult"), replied(100, 0)).rate == 0.4


def test_below_three_tenths_marks_stop_and_are_tried_again_after_ten_requests() -> None:
    """Without a mark nothing is ever found, so nothing else would bring them back."""
    poor, bare = (asked(), replied(100, 29)), (asked(marks=False), replied(100, 0))
    assert folded(*(asked(), replied(100, 30)) * 4).pays("p:m")
    closed = folded(*poor * 4)
    assert not closed.pays("p:m")
    assert not folded(*poor * 4, *bare * 9).pays("p:m")
    again = folded(*poor * 4, *bare * 10)
    assert again == CacheHits(model="p:m")
    assert again.pays("p:m")


def test_another_model_begins_with_nothing_known() -> None:
    """Its vendor may cache well, and it has seen no skills yet."""
    mark = PieceMark(source="skill:a", rank=Rank.SKILL, digest="d")
    used = ModelRequested(round="r", purpose="speak", model="p:m", receipt=Receipt(pieces=(mark,)))
    assert folded(used).skills == folded(asked("q:n"), used).skills == (("skill:a",),)
    assert folded(used, asked("q:n")).skills == ()
    assert folded(used, *[asked()] * 5).skills == ()
    seen = CacheHits(model="p:m", skills=(("b",), ("c",)))
    assert (seen.changes("p:m", ("d",)), seen.changes("q:n", ("d",)), seen.changes("p:m", ("c",))) == (
        True,
        False,
        False,
    )
    poor = (asked(), replied(100, 0))
    closed = folded(*poor * 4)
    assert closed.pays("q:n")
    assert folded(*poor * 4, asked("q:n")) == CacheHits(model="q:n", marked=True)


async def test_marks_stop_in_a_session_whose_cache_never_hits() -> None:
    """Replies say what they cost; the fifth request goes out bare, and the record says how it went."""
    model = merging(*[reply("ok", usage=Usage(input_tokens=100))] * 6)
    agent: Agent[Any, Any] = Agent(model, features=[CacheMarks()])
    session = None
    for _ in range(6):
        session = (await turn(agent, session=session)).session
    assert [b'"mark"' in body for body in model.bodies] == [True] * 4 + [False] * 2
    plain = merging(*["ok"] * 6)
    session = None
    for _ in range(6):
        session = (await turn(Agent(plain), session=session)).session
    assert model.bodies[5] == plain.bodies[5]
    assert json.loads(plain.bodies[5])["entries"]
