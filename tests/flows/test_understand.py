"""What the understand call asks for, and how its reply is read."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.conversation.content import Text
from onrecord.conversation.messages import Round
from onrecord.flows.fields import FieldSpec, fields_of
from onrecord.flows.flow import Flow
from onrecord.flows.steps import Branch, Collect
from onrecord.flows.triggers import OnMention, OnMessage
from onrecord.flows.understand import Judged, ToJudge, frame_of, understand_shape
from tests.strategies import json_values

pytestmark = pytest.mark.unit

FIELDS = fields_of({
    "company": {"type": "string"},
    "size": {"type": "string", "enum": ["1-10", "11-50"], "about": "Size of the team"},
    "full name": {"type": "string"},
})  # fmt: skip
TEAM = Collect(
    "size", id="team", branches=[Branch("Do they give up?", then="end"), Branch("Are they angry?", then="end")]
)
INTAKE = Flow("intake", on=[OnMessage("wants to know how it works")], steps=[TEAM])
BUY = Flow("buy", on=[OnMessage("wants to buy")])
HUMAN = Flow("human", on=[OnMention("asks for a person")])
RIVAL = Flow(
    "rival", on=[OnMention("names a rival", extract={"quote": {"type": "string", "description": "Their words"}})]
)
BRANCHES = (("intake#m1/team/0", "Do they give up?"), ("intake#m1/team/1", "Are they angry?"))

ASKED = ToJudge(
    floor=INTAKE, floor_step=TEAM, candidates=(INTAKE, BUY), mentions=(HUMAN, RIVAL), branches=BRANCHES,
    fields=(FIELDS["company"], FIELDS["size"]),
)  # fmt: skip


def read(reply: object, asked: ToJudge = ASKED) -> Judged:
    """What is read in a reply: a text, or an object that the model wrote."""
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return understand_shape(asked).read(Round(id="r", content=(Text(text),))).value


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object in a schema."""
    if schema.get("type") == "object":
        yield schema
        for each in schema["properties"].values():
            yield from objects(each)


# ---- the schema ------------------------------------------------------------------------------------------------------


def test_l1_sections_in_order_closed_required_and_nullable() -> None:
    """Case L1: only what is judged, questions as ``q1`` and ``q2``, every key one that all vendors take."""
    schema: Any = understand_shape(ASKED).schema
    sections = schema["properties"]
    assert list(sections) == ["flows", "mentions", "extract", "branches", "fields"]
    assert list(sections["flows"]["properties"]) == ["intake", "buy"]
    assert list(sections["mentions"]["properties"]) == ["human", "rival"]
    assert list(sections["extract"]["properties"]) == ["rival"]
    assert list(sections["branches"]["properties"]) == ["q1", "q2"]
    assert sections["fields"]["properties"] == {
        "company": {"type": ["string", "null"]},
        "size": {"type": ["string", "null"], "description": "Size of the team", "enum": ["1-10", "11-50", None]},
    }
    for each in objects(schema):
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])
        for key, value in each["properties"].items():
            assert re.fullmatch("[A-Za-z0-9_-]+", key)
            assert value["type"] == "object" or value["type"][1] == "null"
    assert (sections["flows"]["properties"]["buy"], sections["mentions"]["properties"]["rival"]) == (
        {"type": ["integer", "null"]}, {"type": ["boolean", "null"]}
    )  # fmt: skip
    assert "ask" not in json.dumps(schema)


def test_k8_asks_is_judged_only_where_a_question_is_fixed() -> None:
    """Case K8: the last section, and only when it is wanted."""
    asked = ToJudge(candidates=(BUY,), asks=True)
    assert list(understand_shape(asked).schema["properties"]) == ["flows", "asks"]
    assert understand_shape(asked).schema["properties"]["asks"] == {"type": ["boolean", "null"]}


def test_l2_the_skeleton_has_exactly_the_keys_of_the_schema() -> None:
    """Case L2: compact JSON whose placeholders no model can take for values; it ends the prompt."""
    asked = ToJudge(candidates=(BUY, INTAKE), mentions=(RIVAL,), branches=BRANCHES[:1], fields=(FIELDS["company"],))
    skeleton = (
        '{"flows":{"buy":0,"intake":0},"mentions":{"rival":false},"extract":{"rival":{"quote":null}},'
        '"branches":{"q1":false},"fields":{"company":null}}'
    )
    assert frame_of(asked).output.endswith("\n" + skeleton)
    whole = ToJudge(fields=(FIELDS["size"], FIELDS["full name"]), asks=True)
    assert frame_of(whole).output.endswith('\n{"fields":{"size":null,"d1":null},"asks":false}')


def test_l3_an_unsafe_flow_id_travels_under_an_alias_and_comes_back() -> None:
    """Case L3: the same alias wherever the flow stands."""
    flow = Flow("sig:rival", name="Rival", on=[OnMention("names a rival", extract={"their words": {"type": "string"}})])
    asked = ToJudge(mentions=(flow,), candidates=(Flow("f2", on=[OnMessage("a")]), Flow("é", on=[OnMessage("b")])))
    sections: Any = understand_shape(asked).schema["properties"]
    assert list(sections["flows"]["properties"]) == ["f2", "f1"]
    assert list(sections["mentions"]["properties"]) == ["f3"]
    assert list(sections["extract"]["properties"]["f3"]["properties"]) == ["d1"]
    judged = read({"flows": {"f1": 7}, "mentions": {"f3": True}, "extract": {"f3": {"d1": "a Zeta"}}}, asked)
    assert (judged.scores, judged.mentions) == ({"é": 7}, {"sig:rival": True})
    assert judged.extracts == {"sig:rival": {"their words": "a Zeta"}}
    alone = ToJudge(mentions=(flow,))
    assert read({"mentions": {"f1": True}}, alone).mentions == {"sig:rival": True}


def test_an_unsafe_slug_travels_under_an_alias_and_comes_back() -> None:
    """Fields are called ``d1``, ``d2`` and so on."""
    asked = ToJudge(fields=(FIELDS["full name"], FIELDS["size"]))
    assert list(understand_shape(asked).schema["properties"]["fields"]["properties"]) == ["d1", "size"]
    assert read({"fields": {"d1": "Jo Doe"}}, asked).fields == {"full name": "Jo Doe"}


def test_a_flow_that_may_be_wanted_and_mentioned_has_one_name() -> None:
    """Its phrases are those of each trigger."""
    both = Flow("a b", on=[OnMessage("wants it"), OnMention("names it")])
    frame = frame_of(ToJudge(candidates=(both,), mentions=(both,)))
    assert frame.flow_names == {"a b": "f1"}
    assert "The customer: wants it" in frame.candidates.render({})
    assert "Counts when: names it" in frame.mentions.render({})


def test_the_phrases_are_those_of_the_first_trigger_that_has_some() -> None:
    """A catch-all before it says nothing that a model could judge."""
    flow = Flow("x", on=[OnMessage(), OnMessage("wants it"), OnMessage("never read")])
    lines = frame_of(ToJudge(candidates=(flow,))).candidates.render({})
    assert "wants it" in lines
    assert "never read" not in lines


# ---- when it is asked ------------------------------------------------------------------------------------------------


def test_l5_with_nothing_to_judge_there_is_no_call() -> None:
    """Case L5: the floor's own flow and ``asks`` are no reason; anything else is."""
    assert not ToJudge().needs_a_call
    assert not ToJudge(asks=True).needs_a_call
    assert not ToJudge(floor=INTAKE, candidates=(INTAKE,), asks=True).needs_a_call
    for more in (
        ToJudge(floor=INTAKE, candidates=(INTAKE, BUY)),
        ToJudge(candidates=(BUY,)),
        ToJudge(floor=INTAKE, mentions=(HUMAN,)),
        ToJudge(floor=INTAKE, branches=BRANCHES),
        ToJudge(floor=INTAKE, fields=(FIELDS["size"],)),
    ):
        assert more.needs_a_call


# ---- the reply -------------------------------------------------------------------------------------------------------


def test_c10_scores_are_numbers_or_numeric_texts_from_0_to_100() -> None:
    """Case C10: others are dropped; those beyond the limits are brought inside."""
    reply = {"flows": {"buy": "85", "intake": "high", "a": 250, "b": -3, "c": None, "d": True, "e": "1e999", "f": 49.5}}
    assert read(reply).scores == {"buy": 85, "a": 100, "b": 0, "f": 49.5}


def test_l9_truths_are_read_from_words_and_sections_of_another_type_are_empty() -> None:
    """Case L9: extracts given as a text are dropped, and so are fields."""
    judged = read({
        "mentions": {"rival": "sim", "human": "maybe"}, "branches": {"q1": "yes", "q2": False},
        "extract": {"rival": "quote"}, "fields": "company", "flows": [1], "asks": "no",
    })  # fmt: skip
    assert judged.mentions == {"rival": True}
    assert judged.branches == {"intake#m1/team/0": True, "intake#m1/team/1": False}
    assert (judged.extracts, judged.fields, judged.scores) == ({}, {}, {})
    assert judged.asks is False
    assert judged.usable


def test_l10_questions_come_back_under_their_addresses() -> None:
    """Case L10, the part of the reply: they never travel."""
    assert read({"branches": {"q2": True}}).branches == {"intake#m1/team/1": True}
    other = ToJudge(branches=(("other#1/a/3", "Is it?"),))
    assert read({"branches": {"q1": True}}, other).branches == {"other#1/a/3": True}


def test_values_are_kept_as_given_and_empty_ones_dropped() -> None:
    """Fields are typed later, extracts never."""
    judged = read({
        "fields": {"company": 7, "size": None, "ghost": "", "full name": False},
        "extract": {"rival": {"quote": "", "n": 0, "list": [], "ok": False, "none": None}},
    })  # fmt: skip
    assert judged.fields == {"company": 7, "full name": False}
    assert judged.extracts == {"rival": {"n": 0, "ok": False}}


@pytest.mark.parametrize("reply", ["no idea", "", "{}", '{"message":"Hi"}', '["flows"]', '{"flows":'])
def test_c11_a_reply_without_any_section_judges_nothing(reply: str) -> None:
    """Case C11: and says so."""
    assert read(reply) == Judged(usable=False)


def test_an_answer_among_words_or_in_a_fence_is_read() -> None:
    """The first object with a section in it."""
    assert read('Sure: {"note":1} ```json\n{"flows":{"buy":90}}\n```').scores == {"buy": 90}


def test_an_absent_section_is_not_judged() -> None:
    """``asks`` that nobody judged is neither true nor false."""
    judged = read({"flows": {}})
    assert judged.asks is None
    assert judged == Judged()


@given(
    st.dictionaries(st.sampled_from(["flows", "mentions", "extract", "branches", "fields", "asks", "x"]), json_values)
)
def test_any_answer_is_read(reply: dict[str, Any]) -> None:
    """Reading never fails, and what it gives has the types it promises."""
    judged = read(reply)
    assert all(0 <= score <= 100 for score in judged.scores.values())
    assert all(isinstance(held, bool) for held in (*judged.mentions.values(), *judged.branches.values()))
    assert judged.asks in (None, True, False)


# ---- compiled once ---------------------------------------------------------------------------------------------------


def test_the_same_things_to_judge_have_the_same_shape() -> None:
    """So that providers can keep what they made of it; other addresses share the schema."""
    again = ToJudge(
        candidates=(INTAKE, BUY), mentions=(HUMAN, RIVAL), branches=BRANCHES, fields=(FIELDS["company"], FIELDS["size"])
    )
    assert understand_shape(again) is understand_shape(ASKED)
    later = ToJudge(
        candidates=(INTAKE, BUY), mentions=(HUMAN, RIVAL), fields=(FIELDS["company"], FIELDS["size"]),
        branches=(("intake#m2/team/0", "Do they give up?"), ("intake#m2/team/1", "Are they angry?")),
    )  # fmt: skip
    assert understand_shape(later) is not understand_shape(ASKED)
    assert understand_shape(later).schema is understand_shape(ASKED).schema
    assert understand_shape(ToJudge(candidates=(BUY, INTAKE))) is not understand_shape(
        ToJudge(candidates=(INTAKE, BUY))
    )


def test_flows_of_another_agent_with_the_same_ids_are_other_flows() -> None:
    """What is compiled is kept by the flow itself, not by its name."""
    other = Flow("rival", on=[OnMention("names a rival", extract={"who": {"type": "string"}})])
    assert frame_of(ToJudge(mentions=(RIVAL,))).extract_names == {"rival": {"quote": "quote"}}
    assert frame_of(ToJudge(mentions=(other,))).extract_names == {"rival": {"who": "who"}}


def test_what_is_kept_is_bounded() -> None:
    """Many agents, sessions and questions fill no memory: shapes are built anew, and work."""
    for number in range(600):
        fields = (FieldSpec(slug=f"field {number}"),)
        asked = ToJudge(fields=fields, branches=((f"run{number}/a/0", "Is it?"),))
        assert read({"fields": {"d1": number}}, asked).fields == {f"field {number}": number}
        again = ToJudge(candidates=(BUY,), branches=((f"run{number}/a/0", "Is it?"),))
        assert read({"branches": {"q1": True}}, again).branches == {f"run{number}/a/0": True}
