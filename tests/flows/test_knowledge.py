"""What an agent knows, as a section of its prompt."""

import pytest

from onrecord.flows.knowledge import knowledge_section

pytestmark = pytest.mark.unit


def test_knowledge_is_nested_bullets() -> None:
    """Two spaces a level; flat lists on one line, lists with maps numbered; what is no text is JSON."""
    assert knowledge_section({
        "hours": "9-17\nclosed on Sunday", "rooms": [{"name": "Suite", "beds": 2}, "floor"], "tags": ["a", 1, True],
        "place": {"city": "Rio", "map": {"x": 1.5}}, "pets": False, "none": None, "nested": [["a"], "b"],
    }) == (
        "## Knowledge base\n- hours: 9-17\n  closed on Sunday\n- rooms:\n  - 1:\n    - name: Suite\n    - beds: 2\n"
        "  - 2: floor\n- tags: a, 1, true\n- place:\n  - city: Rio\n  - map:\n    - x: 1.5\n- pets: false\n"
        '- none: null\n- nested: ["a"], b'
    )  # fmt: skip


def test_knowledge_may_be_a_text_or_nothing() -> None:
    """A text stands as it is."""
    assert knowledge_section(" We open at 9. \n") == "## Knowledge base\nWe open at 9."
    assert knowledge_section(None) == knowledge_section({}) == knowledge_section(" ") == ""
