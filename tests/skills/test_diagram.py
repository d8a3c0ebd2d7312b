"""Drawings of graphs as Mermaid flowcharts (specification §15.7; case 129)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.skills import AllOf, ByWords, Decide, Intent, Keywords, Pattern, Route, SkillGraph, Start
from tests.skills.knowing import skill

pytestmark = pytest.mark.unit

KEY = Keywords(["refund"])


def some(*ids: str) -> list[Any]:
    """Skills, by their ids."""
    return [skill(id) for id in ids]


def test_129_a_graph_is_drawn() -> None:
    """Dashed where only the model goes (case 129)."""
    drawn = SkillGraph(some("a", "b"), start="a", routes=[Route("a", "b")], check="off").to_mermaid()
    assert drawn.startswith("flowchart TD\n")
    assert "  start --> s0\n" in drawn
    assert "  s0 -.-> s1\n" in drawn


def test_a_drawing_says_what_takes_each_way() -> None:
    """By label, match, tool, status or guard; nothing in it breaks out of its caption."""
    start = [
        Start("a", match=Keywords(["one", "two", "three", "four"])), Start("b", match=AllOf([KEY, Pattern("<b>")])),
        Start("b", match=Intent('says "hi"')), Start("b", only_if=lambda _: True), Start("b", label="else"),
    ]  # fmt: skip
    routes = [
        Route("a", "b", on_tool="x", on_status="failed"), Route("a", "b", guard={"total": {"gt": 3}}),
        Route("b", "a", only_if=lambda _: True), Route("b", "a", label="back"),
    ]  # fmt: skip
    held = SkillGraph(some("a", "b"), start=start, routes=routes, loose=some("e"), check="off", classify=ByWords())
    drawn = held.to_mermaid()
    for caption in (
        'start -->|"one, two, three, …"| s0', 'start -->|"refund and #lt;b#gt;"| s1',
        'start -->|"says #quot;hi#quot;"| s1',
        'start -->|"if"| s1', 'start -->|"else"| s1', 's0 -->|"x failed"| s1', 's0 -->|"total gt 3"| s1',
        's1 -->|"if"| s0', 's1 -.->|"back"| s0', 's2(["e"])',
    ):  # fmt: skip
        assert caption in drawn
    entries = SkillGraph(some("a"), entries=["a"], check="off").to_mermaid()
    assert "  start -.-> s0\n" in entries


NODE = r's\d+(\["[^"`%\\]+"\]|\(\["[^"`%\\]+"\]\))|start\(\["turn begins"\]\)|d\d+\{"[^"`%\\]+"\}'
ARROW = r'(start|[sd]\d+) (-->|-\.->)(\|"[^"`%\\]+"\|)? [sd]\d+'
ODD = st.text(st.sampled_from(["a", " ", "\n", "\u2028", "\x00", *"\"'`#;%{}[]|<>&\\"]), max_size=6)


@given(label=ODD, word=ODD, value=ODD)
def test_whatever_a_caption_says_the_drawing_is_read(label: str, word: str, value: str) -> None:
    """Compared with Mermaid 11 once: quotes, directives, Markdown, entities and empty captions broke drawings."""
    start = [Start("a", label=label), Start("b", match=Keywords([word if word.strip() else "x"]))]
    routes = [Route("a", "b", label=label), Route("b", "a", guard={word or "key": {"eq": value}})]
    graphs = [
        SkillGraph(some("a", "b"), start=start, routes=routes, loose=some("e"), check="off"),
        SkillGraph(some("a", "b"), tree=Decide(lambda _: True, "a", "b", label=label), check="off"),
    ]
    for held in graphs:
        first, *lines, last = held.to_mermaid().split("\n")
        assert (first, last) == ("flowchart TD", "")
        assert all(re.fullmatch(rf"  ({NODE}|{ARROW})", line) and line.isprintable() for line in lines), lines
        assert not re.search(r"#(?!amp;|quot;|lt;|gt;|35;|96;|37;|92;)", "".join(lines))


def test_a_tree_is_drawn_with_its_decisions() -> None:
    """As diamonds."""
    tree = Decide(lambda _: True, "a", Decide(lambda _: True, "b", "a"), label="long?")
    drawn = SkillGraph(some("a", "b"), tree=tree, check="off").to_mermaid()
    for line in ('d0{"long?"}', "start --> d0", 'd0 -->|"yes"| s0', 'd0 -->|"no"| d1', 'd1{"?"}', 'd1 -->|"yes"| s1'):
        assert line in drawn
