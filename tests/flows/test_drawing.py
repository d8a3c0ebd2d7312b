"""Drawings of flows: every trigger, step and way is in them, and no text ever breaks one."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.flows.captions import cut
from onrecord.flows.drawing import Arrow, Box, Drawing, drawn, to_dot, to_mermaid
from onrecord.flows.flow import Flow
from onrecord.flows.steps import Branch, Chain, Collect, Do, Goto, If, Say, Talk, Wait, WaitEvent
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence

pytestmark = pytest.mark.unit


def ways(drawing: Drawing) -> list[tuple[str, str, str]]:
    """Arrows as (first line of the box they leave, first line of the box they reach, text)."""
    boxes = {box.id: box.lines[0] for frame in drawing.frames for box in frame.boxes}
    boxes |= {box.id: box.lines[0] for box in drawing.boxes}
    arrows = [arrow for frame in drawing.frames for arrow in frame.arrows] + list(drawing.arrows)
    return [(boxes[arrow.source], boxes[arrow.target], arrow.text) for arrow in arrows]


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def test_every_kind_of_step_has_a_shape_of_its_own() -> None:
    """In Mermaid by its brackets, in DOT by its shape."""
    flow = Flow(
        "f",
        steps=[
            Talk("Hello"), Collect("name"), Say("Bye"), Do("book"), Wait("2d"), WaitEvent("paid"),
            If({"known": ["name"]}),
        ],
    )  # fmt: skip
    mermaid, dot = to_mermaid([flow]), to_dot([flow])
    for at, (before, behind, shape) in enumerate(
        [
            ("(", ")", "box"), ("[/", "/]", "parallelogram"), ("[", "]", "box"), ("[[", "]]", "component"),
            ("{{", "}}", "hexagon"), (">", "]", "cds"), ("{", "}", "diamond"),
        ]
    ):  # fmt: skip
        assert re.search(rf'^    f0s{at}{re.escape(before)}"[^"]*"{re.escape(behind)}$', mermaid, re.MULTILINE)
        assert f"    f0s{at} [shape={shape}, " in dot


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        (OnMessage("wants a room", "asks for a price"), "message: “wants a room”, “asks for a price”"),
        (OnMessage("wants a room in a hotel", "asks for a price"), "message: “wants a room in a hotel” and 1 more"),
        (OnMessage(), "any other message"),
        (OnMessage(repeat="always", only_if="is_member"), "any other message, if is_member, always"),
        (OnMention("has a birthday", repeat=Cooldown("30d")), "mention: “has a birthday”, once in 30d"),
        (OnMention(only_if=lambda _: True), "every message, judged by code, if code says so"),
        (OnSilence("24h", business_hours=True), "silence of 24h, in business hours"),
        (OnSilence(timedelta(hours=25, milliseconds=5)), "silence of 1d 1h 5ms"),
        (OnEvent("paid"), "event paid"),
        (OnEvent("paid", after=timedelta(), repeat="once"), "event paid, after 0s, once"),
    ],
)  # fmt: skip
def test_a_trigger_leads_to_the_first_step(trigger: OnMessage | OnMention | OnSilence | OnEvent, text: str) -> None:
    """Its box says what starts a run, and how often where that is not usual."""
    drawing = drawn([Flow("f", on=[trigger], steps=[Say("a", id="a"), Say("b", id="b")])])
    assert (text, "a", "") in ways(drawing)
    assert drawing.frames[0].boxes[0] == Box("f0t0", "trigger", (text,))


def test_a_flow_without_triggers_is_started_by_hand() -> None:
    """It has one way in all the same; a flow without steps has nothing behind it."""
    drawing = drawn([Flow("f", steps=[Say("a", id="a")]), Flow("empty")])
    assert ("by hand, or from another flow", "a", "") in ways(drawing)
    assert drawing.frames[1].boxes == (Box("f1t0", "trigger", ("by hand, or from another flow",)),)
    assert drawing.frames[1].arrows == ()


def test_every_way_out_of_a_step_is_an_arrow_that_says_when_it_is_taken() -> None:
    """Branches, the way a reply, a failure or a closed gate leads, and what is forgotten on the way."""
    flow = Flow(
        "f",
        steps=[
            Collect("city", id="ask", branches=[
                Branch("gives up", then="bye"), Branch(only_if={"equals": {"city": "Porto", "ok": True}}, then="book"),
                Branch("is angry", only_if="is_member", then="end"),
            ]),
            If({"silenced": False}, id="gate", else_=Goto("ask", clear=["city", "ok"])),
            Do("reserve", id="book", on_fail="bye"),
            WaitEvent("paid", id="payment", up_to="2d", else_="bye"),
            Wait("2d", id="pause", else_="ask", branches=[Branch(only_if="is_member", then="end")]),
            Wait("1h", id="rest", branches=[Branch(only_if="is_member", then="ask")]),
            Say("Bye", id="bye", label="Says goodbye"),
        ],
    )  # fmt: skip
    assert ways(drawn([flow]))[1:] == [
        ("ask", "Says goodbye", "“gives up”"),
        ("ask", "book", "if city is Porto and ok is true"),
        ("ask", "end", "“is angry”, if is_member"),
        ("ask", "gate", ""),
        ("gate", "book", "yes"),
        ("gate", "ask", "no, clears city, ok"),
        ("book", "payment", ""),
        ("book", "Says goodbye", "it fails"),
        ("payment", "pause", "paid"),
        ("payment", "Says goodbye", "not in time"),
        ("pause", "end", "a reply, if is_member"),
        ("pause", "rest", "no reply"),
        ("pause", "ask", "a reply"),
        ("rest", "Says goodbye", ""),  # without an else nobody's reply is looked at, and no branch judged
        ("Says goodbye", "end", ""),
    ]


@pytest.mark.parametrize(
    ("on_end", "text"), [("end", "end"), ("reset", "begins again"), ("stay", "stays with its last talk")]
)
def test_the_end_of_a_flow_says_what_follows_it(on_end: str, text: str) -> None:
    """A flow that begins again has an arrow back to its first step, dashed as every start of a run."""
    flow = Flow("f", steps=[Talk("a", id="a")], on_end=on_end)  # type: ignore[arg-type]  # one of the three
    frame = drawn([flow]).frames[0]
    assert Box("f0z", "end", (text,)) in frame.boxes
    assert (Arrow("f0z", "f0s0", is_start=True) in frame.arrows) == (on_end == "reset")


def test_a_flow_that_never_ends_has_no_end_in_its_drawing() -> None:
    """Nothing would lead there."""
    flow = Flow("f", steps=[Talk("a", id="a", then="a")])
    assert not any(box.kind == "end" for box in drawn([flow]).frames[0].boxes)


def test_a_chain_is_a_dashed_arrow_to_the_first_step_of_the_other_flow() -> None:
    """Or to a box with its name, where the flow is not drawn, or known only when the run is there; one box for all."""
    one = Flow("one", steps=[Do("a", id="a", on_fail=Chain("two")), Talk(id="b", then=Chain("{{data.next}}"))])
    two = Flow("two", steps=[Talk(id="c", branches=[Branch("more", then=Chain("two"))], then=Chain("gone"))])
    three = Flow("three", steps=[Say("x", id="d", then=Chain("gone", input={"a": 1}))])
    drawing = drawn([one, two, three])
    assert ways(drawing)[-5:] == [
        ("a", "c", "it fails"),
        ("b", "flow {{data.next}}", ""),
        ("c", "c", "“more”"),
        ("c", "flow gone", ""),
        ("d", "flow gone", ""),
    ]
    assert all(arrow.is_start for arrow in drawing.arrows)
    assert [box.id for box in drawing.boxes] == ["x0", "x1"]
    assert 'f0s0 -.->|"it fails"| f1s0\n' in to_mermaid([one, two, three])
    assert 'f0s0 -> f1s0 [label="it fails", style=dashed];' in to_dot([one, two, three])


def test_a_flow_that_would_not_validate_is_drawn_as_far_as_it_goes() -> None:
    """A step that there is not is a box that says so, once: an editor draws what is still being written."""
    flow = Flow("f", steps=[Do("a", id="a", then="nowhere", on_fail="nowhere"), Say("x", id="a")])
    drawing = drawn([flow])
    assert ways(drawing)[1:3] == [("a", "there is no step nowhere", ""), ("a", "there is no step nowhere", "it fails")]
    assert sum(box.kind == "missing" for box in drawing.frames[0].boxes) == 1


def test_equal_flows_have_equal_drawings() -> None:
    """A drawing depends on nothing but what was declared, so that it can be kept and compared."""

    def flows() -> list[Flow]:
        return [Flow("f", name="F", on=[OnMessage("x")], steps=[Talk("Hi"), Say("there")])]

    assert drawn(flows()) == drawn(flows())
    assert to_mermaid(flows()) == to_mermaid(flows())
    assert to_dot(flows()) == to_dot(flows())


def test_long_texts_are_cut_and_lines_joined() -> None:
    """A label is short, whatever a prompt is."""
    box = drawn([Flow("f", steps=[Talk("word\n" * 5000, id="a")])]).frames[0].boxes[1]
    assert box.lines == ("a", f"talks: {'word ' * 7}word…")


# ---- nothing breaks it -----------------------------------------------------------------------------------------------

LABEL = r'"(?:[^"#&<>;:`{}\[\]()|\\*~^$%=@\n]|[()]|#\d+;|<br/>)*"'
ID = r"[fx]\d+(?:[stz]\d*)?"
MERMAID = re.compile(
    rf"flowchart TD|  subgraph f\d+\[{LABEL}\]|  end"
    rf"| +{ID}(?:\(\[|\(\(|\(|\[\[|\[/|\[|\{{\{{|\{{|>){LABEL}(?:\]\)|\)\)|\)|\]\]|/\]|\\\]|\]|\}}\}}|\}})"
    rf"| +{ID} (?:-->|-\.->)(?:\|{LABEL}\|)? {ID}"
)
STRING = r'"(?:[^"\\\n]|\\[\\"n])*"'
DOT = re.compile(
    rf"digraph flows \{{|  (?:graph|node|edge) \[[a-zA-Z=, \"]+\];"
    rf"|  subgraph cluster_f\d+ \{{|    label={STRING};| *\}}"
    rf'| +{ID} \[shape=[a-z]+, (?:style="[a-z]+", )?label={STRING}\];'
    rf"| +{ID} -> {ID} \[(?:label={STRING}(?:, style=dashed)?|style=dashed)?\];"
)

HOSTILE = (
    '"]; click f0s0 "javascript:alert(1)"', "1. one", "- two", "# three", "<script>alert(1)</script>", "end", "",
    '%%{init: {"theme": "x"}}%%', "style f0 fill:#fff;", "classDef a:b#c;", "`code`", "$$x^2$$", r"\n\N\G\l\\", "---",
    "www.example.com", "ﬂ°lt¶ß", "a\nb\r\n\tc\x1b[31m\u202eright\x00", "日本語 नमस्ते עברית 👩\u200d👩\u200d👧", "\ud800",
    "&lt;&#34;&amp;", "[x](y) ![i](j)", "_a_ *b* ~c~ a_b", "fa:fa-user", "}} }] {{ {% }", "|", "@{shape: x}", "===",
    "subgraph x", "a --> b", "\u2028\u2029\x85", "x" * 500, "digraph { a -> b }", "label=<b>",
)  # fmt: skip


def spread(text: str) -> list[Flow]:
    """Flows that have the text wherever text can stand."""
    first = Flow(
        text, name=text, on=[OnMessage(text, only_if=text), OnMention(text), OnEvent(text), OnSilence(text)],
        steps=[
            Talk(text, id=text, label=text, branches=[Branch(text, only_if={text: text}, then=Chain(text))]),
            Collect(text, id=f"c{text}"), Say(text, id=f"s{text}", media=text), Do(text, id=f"d{text}", on_fail=text),
            Wait(text, id=f"w{text}", else_=Goto(text, clear=[text])), WaitEvent(text, id=f"e{text}", up_to=text),
            If({"equals": {text: text}, "known": [text]}, id=f"i{text}", else_=f"missing {text}"),
        ],
        on_end="reset",
    )  # fmt: skip
    return [first, Flow(f"other {text}", steps=[Say(text, then=Chain(f"{{{{{text}}}}}"))])]


def read_mermaid(label: str) -> list[str]:
    """The lines that a label shows: numbered characters are what HTML makes of them."""
    return [html.unescape(line.replace("#", "&#")) for line in label.split("<br/>")]


def read_dot(label: str) -> list[str]:
    """The lines that a string shows."""
    lines = re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], label).split("\n")
    return [html.unescape(line) for line in lines]


def shown(lines: Sequence[str]) -> list[str]:
    """Lines as they are to be seen: cut, and with a mark in place of what would steer a screen."""
    return [
        "".join(char if char.isprintable() or char in "\u200c\u200d" else "\ufffd" for char in cut(line, 60))
        for line in lines
    ]


def holds_its_form(text: str) -> None:
    """Every line of both drawings is one of those there are, and their labels read as what was declared."""
    flows = spread(text)
    drawing = drawn(flows)
    boxes = [box for frame in drawing.frames for box in frame.boxes] + list(drawing.boxes)
    arrows = [arrow for frame in drawing.frames for arrow in frame.arrows] + list(drawing.arrows)
    told = [shown(box.lines) for box in boxes], [shown([arrow.text]) for arrow in arrows if arrow.text]
    for written, form, box, arrow, read in (
        (to_mermaid(flows), MERMAID, rf'^ +{ID}[^ "]+"(.*)"[^"]+$', r'>\|"(.*)"\|', read_mermaid),
        (to_dot(flows), DOT, rf'^ +{ID} \[.*, label="(.*)"\];$', rf'^ +{ID} -> {ID} \[label="(.*)"', read_dot),
    ):
        lines = written.removesuffix("\n").split("\n")
        for line in lines:
            assert form.fullmatch(line), line
        whole = "\n".join(lines)
        assert [read(label) for label in re.findall(box, whole, re.MULTILINE)] == told[0]
        assert [read(label) for label in re.findall(arrow, whole, re.MULTILINE)] == told[1]
        written.encode()


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_breaks_a_drawing(text: str) -> None:
    """What means something to Mermaid, Markdown, HTML, Graphviz or a terminal is only ever shown."""
    holds_its_form(text)


@given(st.text(st.characters()))
def test_any_text_can_stand_anywhere(text: str) -> None:
    """Also texts that nobody thought of, halves of surrogate pairs among them."""
    holds_its_form(text)


def test_ordinary_words_stay_readable() -> None:
    """In the language of the customers, with the marks that sentences have: what need not be escaped is not."""
    flow = Flow("f", steps=[Say("Olá, João! Qual é o seu nome_todo? 名前", id="ask_name")])
    assert '"ask_name<br/>says “Olá, João! Qual é o seu nome_todo? 名前”"' in to_mermaid([flow])
