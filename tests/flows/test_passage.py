"""Stretches of a prompt, joined beforehand as far as they are fixed."""

import pytest

from onrecord.flows.passage import Joined, passage
from onrecord.flows.template import compile_template

pytestmark = pytest.mark.unit


def joined(before: str, *texts: str) -> Joined:
    """Templates with commas between them."""
    return Joined(before, tuple(map(compile_template, texts)), ", ")


def test_a_passage_without_templates_is_one_text() -> None:
    """Joined when it is made, and given as it is."""
    made = passage(["a", joined(": ", "b", "c"), passage(["d"]), joined("!", "")])
    assert made.parts == ("a: b, cd",)
    assert made.render({}) is made.parts[0]
    assert passage([]).render({}) == ""


def test_templates_that_say_nothing_take_their_separators_with_them() -> None:
    """And what stands before all of them when none says anything."""
    made = passage(["a", joined(": ", "{{data.x}}", "b", "{{data.y}}"), joined(" - ", "{{data.y}}"), "."])
    assert made.render({"x": "1", "y": ""}) == "a: 1, b."
    assert made.render({"x": "", "y": "2"}) == "a: b, 2 - 2."
