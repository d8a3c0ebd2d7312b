"""What the two calls of a flow agent are told."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from onrecord.flows.fields import fields_of
from onrecord.flows.flow import Flow, FlowInstruction
from onrecord.flows.prompts import Prompts, Told
from onrecord.flows.steps import Collect, Talk
from onrecord.flows.triggers import OnEvent, OnMention, OnMessage
from onrecord.flows.understand import ToJudge

pytestmark = pytest.mark.unit

FIELDS = fields_of({
    "name": {"type": "string", "ask": "Ask who they are, {{context.tone}}."},
    "size": {"type": "string", "enum": ["1-10", "11-50"], "about": "Size of the team", "ask": "Ask the size."},
    "ok": {"type": "boolean"},
})  # fmt: skip
WHO = Collect("name", "size", id="who", prompt="Find out who this is, for {{context.brand}}.")
HELP = Talk("Ask how to help.", id="help")
INTAKE = Flow(
    "intake", name="Intake", description="Gets to know {{context.brand}}'s customers.", steps=[WHO, HELP],
    on=[OnMessage("asks for {{context.brand}}", "asks price", "!only thanks")],
    instructions=[FlowInstruction("Say {{context.brand}}.", kind="must")],
)  # fmt: skip
PLAIN = Flow("plain", on=[OnMessage("wants to buy")], steps=[HELP])
CONTEXT = {"brand": "Zeta", "tone": "lightly"}


def prompts(**more: Any) -> Prompts:
    """The prompts of the flows above."""
    return Prompts(flows=[INTAKE, PLAIN], fields=FIELDS, **more)


def speak(made: Prompts | None = None, **told: Any) -> list[str]:
    """What a speaker is told in the step ``who``, unless told otherwise."""
    usual: dict[str, Any] = {
        "name": "Ana", "flow": INTAKE, "step": WHO, "guideline": "Find out who this is.", "text": "Hi there",
        "context": CONTEXT,
    }  # fmt: skip
    return (made or prompts()).speak(Told(**(usual | told)))


def understand(asked: ToJudge, made: Prompts | None = None, data: Mapping[str, Any] | None = None) -> list[str]:
    """What the model is told that judges ``Hello, you``."""
    return (made or prompts()).understand(asked, name="Ana", text="Hello, you", data=data or {}, context=CONTEXT)


def headings(sections: Sequence[str]) -> list[str]:
    """The headings of sections; each has one."""
    return [section.splitlines()[0].removeprefix("## ") for section in sections]


def section(sections: Sequence[str], heading: str) -> str:
    """What stands below a heading; empty without it."""
    found = [each for each in sections if each.startswith(f"## {heading}")]
    return found[0].partition("\n")[2] if found else ""


# ---- the stable half -------------------------------------------------------------------------------------------------


def test_m2_identity_and_knowledge_are_the_stable_half() -> None:
    """Case M2: untemplated, both are in the system half and not in the turn's text."""
    made = prompts(persona="Warm and brief.", goal="Book rooms.", knowledge={"hours": "9-17"})
    assert made.system("Ana") == (
        '## Identity\nYou are "Ana". Always refer to yourself by this name.\nWarm and brief.\nYour goal: Book rooms.'
        "\n\n## Knowledge base\n- hours: 9-17"
    )
    assert made.system("Ana") is made.system("Ana")
    assert not any("Identity" in each or "9-17" in each for each in (*speak(made), *understand(ToJudge(), made)))


@pytest.mark.parametrize("text", ["persona", "goal"])
def test_m2_a_templated_identity_moves_into_the_turn(text: str) -> None:
    """Case M2: only the knowledge stays; without any there is no system half."""
    made = prompts(**{text: "Of {{context.brand}}."}, knowledge={"hours": "9-17"})
    assert made.system("Ana") == "## Knowledge base\n- hours: 9-17"
    assert prompts(**{text: "Of {{context.brand}}."}).system("Ana") == ""
    for sections in (speak(made), understand(ToJudge(), made)):
        assert sections[0].startswith('## Identity\nYou are "Ana". Always refer to yourself by this name.\n')
        assert sections[0].endswith("Of Zeta.")


def test_m2_with_neither_the_name_alone_is_the_identity() -> None:
    """Case M2: it is in the system half."""
    assert prompts().system("Ana") == '## Identity\nYou are "Ana". Always refer to yourself by this name.'


# ---- understand ------------------------------------------------------------------------------------------------------

RIVAL = Flow(
    "sig:rival", name="Rival", description="A rival came up.",
    on=[OnMention("names {{context.brand}}'s rivals", "compares", "!is one", extract={
        "quote": {"type": "string", "description": "Their words"},
        "tags": {"type": "array", "items": {"type": "string"}},
    })],
)  # fmt: skip
WHOLE = ToJudge(
    floor=INTAKE, floor_step=WHO, pending=(FIELDS["size"],), candidates=(INTAKE, PLAIN), mentions=(RIVAL,),
    branches=(("r/who/0", "Do they like Zeta?"), ("r/who/2", "Do they leave?")), fields=(FIELDS["size"],),
    asks=True,
)  # fmt: skip


def test_sections_of_the_understand_call_stand_in_their_order() -> None:
    """With everything there is to judge, and a templated identity first."""
    assert headings(understand(WHOLE, prompts(goal="{{context.brand}}"), {"name": "Jo"})) == [
        "Identity", "Task", "Current flow", "Already known", "Flows the customer may want",
        "Things the customer may mention", "Questions about this message", "Details the customer may have given",
        "Customer's latest message", "Output",
    ]  # fmt: skip


def test_sections_without_anything_to_judge_are_left_out() -> None:
    """A question alone has no other section."""
    asked = ToJudge(branches=(("r/who/0", "Do they?"),))
    assert headings(understand(asked)) == [
        "Task", "Questions about this message", "Customer's latest message", "Output"
    ]  # fmt: skip


def test_the_current_flow_is_told_with_its_step_and_what_that_still_wants() -> None:
    """Rendered; it is scored like any other when it is among the candidates."""
    assert section(understand(WHOLE), "Current flow") == (
        '"Intake" (intake)\nGets to know Zeta\'s customers.\nCurrent step: who — Find out who this is, for Zeta.\n'
        "- size (string) [1-10 | 11-50]: Size of the team\nThe current flow is scored like any other."
    )
    bare = ToJudge(floor=PLAIN, floor_step=Collect("name", id="who"), fields=(FIELDS["size"],))
    assert section(understand(bare), "Current flow") == '"plain" (plain)\nCurrent step: who'


def test_the_current_flow_goes_by_its_alias() -> None:
    """So that the model finds it among the scores; fields go by theirs."""
    names = fields_of({"full name": {"type": "string"}})
    flow = Flow("a:b", name="AB", on=[OnEvent("x")], steps=[HELP])
    asked = ToJudge(
        floor=flow, floor_step=HELP, pending=(names["full name"],), candidates=(flow,), fields=(names["full name"],)
    )
    sections = understand(asked)
    assert section(sections, "Current flow").startswith('"AB" (f1)\n')
    assert "\n- d1 (string)\n" in section(sections, "Current flow")
    assert "\n1. f1 — AB\n" in section(sections, "Flows")
    assert section(sections, "Details").endswith("\n- d1 (string)")


def test_l6_phrases_and_exclusions_of_a_candidate() -> None:
    """Case L6: under its number; then the bands."""
    told = section(understand(WHOLE), "Flows the customer may want")
    assert (
        "1. intake — Intake: Gets to know Zeta's customers.\n   The customer: asks for Zeta; asks price\n"
        "   Score 0 when: only thanks\n2. plain — plain\n   The customer: wants to buy\n\n"
    ) in told
    assert told.endswith(
        "- 90-100: explicit keywords + clear intent\n- 70-89: strong contextual evidence + relevant keywords\n"
        "- 50-69: moderate relevance\n- 30-49: weak connection or ambiguous\n- 0-29: minimal/none"
    )


def test_l6_phrases_and_exclusions_of_a_mention() -> None:
    """Case L6: with the values that come with it."""
    assert section(understand(WHOLE), "Things the customer may mention").endswith(
        "- f1 — Rival: A rival came up.\n  Counts when: names Zeta's rivals; compares\n  Does not count when: is one\n"
        "  When true, also extract:\n  - quote (string): Their words\n  - tags (list of string)"
    )


def test_a_flow_without_phrases_has_no_line_of_them() -> None:
    """The floor's flow may have been started by an event."""
    flow = Flow("e", on=[OnEvent("entered")], steps=[HELP])
    told = section(understand(ToJudge(floor=flow, candidates=(flow, PLAIN))), "Flows the customer may want")
    assert "1. e — e\n2. plain" in told


def test_questions_are_numbered() -> None:
    """In the order they were given."""
    assert section(understand(WHOLE), "Questions about this message") == (
        "- q1: Do they like Zeta?\n- q2: Do they leave?"
    )


def test_l7_the_message_stands_between_quotes_as_it_was_written() -> None:
    """Case L7: untouched, and nothing of the history beside it."""
    made = prompts()
    got = made.understand(ToJudge(), name="Ana", text=' "hi"\n{{context.brand}} ', data={}, context=CONTEXT)
    assert section(got, "Customer's latest message") == '"""\n "hi"\n{{context.brand}} \n"""'
    assert headings(made.understand(ToJudge(), name="Ana", text=" ", data={})) == ["Task", "Output"]


def test_l8_known_fields_are_told_as_json() -> None:
    """Case L8: declared ones that are known, in the order they were declared."""
    data = {"ok": False, "ghost": 1, "size": "", "name": 'Jo "é"'}
    assert section(understand(WHOLE, data=data), "Already known") == '- name: "Jo \\"é\\""\n- ok: false'


def test_the_output_says_one_line_for_each_section_there_is() -> None:
    """And ends in the skeleton."""
    told = section(understand(WHOLE), "Output")
    assert re.findall('^- "([a-z]+)": ', told, re.MULTILINE) == [
        "flows", "mentions", "extract", "branches", "fields", "asks"
    ]  # fmt: skip
    assert told.endswith('"fields":{"size":null},"asks":false}')
    assert re.findall('^- "([a-z]+)": ', section(understand(ToJudge(candidates=(PLAIN,))), "Output"), re.MULTILINE) == [
        "flows"
    ]


# ---- speak -----------------------------------------------------------------------------------------------------------


def test_m3_sections_of_the_speak_call_stand_in_their_order() -> None:
    """Case M3: with everything that can be told."""
    sections = speak(
        prompts(persona="{{context.brand}}"), pending=(FIELDS["size"],), data={"name": "Jo"}, said=(("Hello", None),),
        instructions=(FlowInstruction("Be brief."),), offers_tools=True,
    )  # fmt: skip
    assert headings(sections) == [
        "Identity", "Flow", "Guideline for your reply (adapt to the conversation)", "Still to collect", "Already known",
        "Instructions", "Customer's latest message", "Already sent", "Response format", "Tools",
    ]  # fmt: skip


def test_a_speaker_is_told_its_flow_and_guideline() -> None:
    """Rendered; a flow without a description is its name."""
    sections = speak()
    assert section(sections, "Flow") == "Intake: Gets to know Zeta's customers."
    assert section(sections, "Guideline") == "Find out who this is."
    assert section(speak(flow=PLAIN), "Flow") == "plain"


def test_templates_may_use_the_run_s_input() -> None:
    """In what is told to a speaker."""
    rule = FlowInstruction("They are at {{input.stage}}.")
    assert section(speak(instructions=(rule,), input={"stage": "offer"}), "Instr").endswith(" They are at offer.")


def test_k5_before_a_fixed_question_only_what_was_asked_is_answered() -> None:
    """Case K5: the question ends the guideline as it goes out; no field is collected or read."""
    sections = speak(pending=(FIELDS["name"],), fixed_after="And your name, {{name}}?")
    assert section(sections, "Guideline").endswith(
        'this question goes out word for word, so do not ask it or anything like it:\n"And your name, {{name}}?"'
    )
    assert "Still to collect" not in headings(sections)
    assert '"name"' not in section(sections, "Response format")


def test_pending_fields_are_told_with_how_to_ask_for_them() -> None:
    """A step's own wording goes before the field's; one without any has no such line."""
    told = section(
        speak(pending=(FIELDS["name"], FIELDS["size"], FIELDS["ok"]), asks={"size": "How many in Zeta?"}),
        "Still to collect",
    )
    assert told.endswith(
        "- name (string)\n  How to ask: Ask who they are, lightly.\n- size (string) [1-10 | 11-50]: Size of the team\n"
        "  How to ask: How many in Zeta?\n- ok (boolean)"
    )


def test_what_is_known_is_never_asked_again() -> None:
    """The idle speaker is told nothing of it."""
    assert section(speak(data={"name": "Jo"}), "Already known") == (
        'This is settled. Never ask for any of it again.\n- name: "Jo"'
    )
    assert "Already known" not in headings(speak(data={"name": ""}))
    assert "Already known" not in headings(speak(flow=None, step=None, data={"name": "Jo"}))


def test_m4_instructions_stand_in_the_order_given_with_their_conditions() -> None:
    """Case M4: agent, flow, step; duplicates stay, what renders to nothing goes, ``when`` is not rendered."""
    never = FlowInstruction("Never name {{context.brand}}'s rivals.", kind="never", when="asks about {{rivals}}")
    rules = (
        never,
        *INTAKE.instructions,
        FlowInstruction(" Offer a call. ", when=["is lost", "!is angry", "is new", " ! left"]),
        FlowInstruction("Be calm.", when="!is happy"),
        FlowInstruction("{{context.nothing}}"),
        never,
    )
    told = section(
        speak(prompts(instructions=[never]), instructions=rules, context={**CONTEXT, "nothing": ""}), "Instr"
    )
    line = "- [never] [Always] Never name Zeta's rivals. (apply only when: asks about {{rivals}})"
    assert told.splitlines() == [
        line,
        "- [must] [Always] Say Zeta.",
        "- [should] [Always] Offer a call. (apply only when: is lost OR is new; never when: is angry OR left)",
        "- [should] [Always] Be calm. (never when: is happy)",
        line,
    ]
    assert "Instructions" not in headings(speak())


def test_the_message_is_told_trimmed_and_in_quotes() -> None:
    """An empty one is not told at all."""
    assert section(speak(text="  Hi there\n"), "Customer's latest message") == '"Hi there"'
    assert not {"Customer's latest message", "Situation"} & set(headings(speak(text=" ")))


def test_h2_without_a_message_the_assistant_speaks_first() -> None:
    """Case H2, the part of the prompt."""
    told = section(speak(text=None, situation="speak_first"), "Situation")
    assert told.startswith("There is no new message from the customer. You speak first: ")


def test_a_retry_answers_the_message_that_still_waits() -> None:
    """The last one of the conversation."""
    told = section(speak(text=None, situation="answer_pending"), "Situation")
    assert "no answer yet" in told
    assert "speak first" not in told


def test_m16_what_was_just_sent_is_not_to_be_repeated() -> None:
    """Case M16: after the customer's message, with the slug of what went with it."""
    sections = speak(said=(("A", None), ("See this", "menu")))
    assert section(sections, "Already sent").endswith('- "A"\n- "See this" [media: menu]')
    names = headings(sections)
    assert names.index("Already sent") == names.index("Customer's latest message") + 1


def test_m17_the_idle_speaker_has_its_prompt_and_no_flow() -> None:
    """Case M17: also where that prompt is empty."""
    sections = speak(flow=None, step=None, guideline="Help as you can.")
    assert headings(sections)[0].startswith("Guideline")
    assert section(sections, "Guideline") == "Help as you can."
    assert not {"Flow", "Still to collect"} & set(headings(sections))
    assert headings(speak(flow=None, step=None, guideline=""))[0].startswith("Guideline")


def test_the_format_names_each_pending_field() -> None:
    """Under its key in the envelope; without any only the message."""
    odd = fields_of({"full name": {"type": "string"}})["full name"]
    told = section(speak(pending=(odd, FIELDS["size"])), "Response format")
    ends = "The value the customer gave, or null when they did not give one."
    assert f'\n- "field_1": full name (string). {ends}\n' in told
    assert f'\n- "size": size (string) [1-10 | 11-50]: Size of the team. {ends}\n' in told
    assert '"field_9": full name' in section(speak(pending=(odd,), wire={"full name": "field_9"}), "Response format")
    assert section(speak(), "Response format").splitlines()[-1].startswith('- "message": ')


def test_tools_are_spoken_of_where_there_are_any() -> None:
    """Wrapping up is said by the loop."""
    assert "Tools" in headings(speak(offers_tools=True))
    assert "Tools" not in headings(speak())


def test_what_a_customer_wrote_is_never_rendered() -> None:
    """Braces in a message, in data and in what was sent stay braces."""
    sections = speak(
        text="{{context.brand}}", data={"name": "{{context.brand}}"}, said=(("{{context.brand}}", None),),
        guideline="Greet {{context.brand}}.", pending=(FIELDS["size"],), asks={"size": "{{context.brand}}?"},
    )  # fmt: skip
    for heading in ("Customer's latest message", "Already known", "Already sent", "Guideline", "Still to collect"):
        assert "{{context.brand}}" in section(sections, heading)


def test_any_number_of_instructions_may_come_and_go() -> None:
    """What is compiled of them is bounded and belongs to each of them alone."""
    made = prompts()
    for number in range(5000):
        rule = FlowInstruction(f"Rule {number}.")
        assert section(speak(made, instructions=(rule,)), "Instructions").endswith(f"Rule {number}.")


def test_what_a_question_was_rendered_to_is_not_rendered_again() -> None:
    """What a customer told may stand in it."""
    asked = ToJudge(branches=(("r/s/0", "Is it {{context.brand}}?"),))
    assert section(understand(asked), "Questions about this message") == "- q1: Is it {{context.brand}}?"
