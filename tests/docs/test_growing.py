"""The guide in which an agent grows: every step is one line, and its end is the example of the repository."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

import pytest

from gates.report import ROOT
from onrecord import Agent, approved, declined
from onrecord.testing import ScriptedModel, call, shown
from tests.docs.snippets import blocks

pytestmark = pytest.mark.docs

PAGE = (ROOT / "docs/guides/growing.md").read_text(encoding="utf-8")
STEPS = (
    "A rule", "Permissions", "A person who approves", "Redaction", "A window", "Instructions", "Skills", "A memory",
    "Documents", "Long results", "A budget", "Commentary", "Self-explanation",
)  # fmt: skip


def sections() -> dict[str, str]:
    """What stands below each heading."""
    parts = re.split(r"^## (.*)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_each_step_is_one_line_and_shows_what_it_does() -> None:
    """One addition to the list, then what is seen of it."""
    held = sections()
    assert list(held) == [
        "Plain", "Tools", *STEPS, "A bundle", "In one file", "Killed while a person is asked", "Further"
    ]  # fmt: skip
    for name in STEPS:
        told = list(blocks(held[name]))
        assert sum(block.text.count("\nfeatures +=") for block in told) == 1, name
        assert any(block.title == "prints" for block in told), name


def test_the_whole_agent_is_the_example_of_the_repository() -> None:
    """Letter by letter, so that whoever copies one has the other."""
    (shown,) = [block.text for block in blocks(PAGE) if block.title == "support_governed.py"]
    assert shown == (ROOT / "examples/support_governed.py").read_text(encoding="utf-8")


@pytest.fixture
def example() -> ModuleType:
    """The example as a module of its own: what it paid and remembers is this test's."""
    spec = spec_from_file_location("support_governed", ROOT / "examples/support_governed.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_runs_on_the_stand_in(example: ModuleType) -> None:
    """What its first lines promise: an order without its card, a small refund at once, an answer from a document."""
    agent: Agent[object, str] = example.agent
    assert agent.turn_sync("What is order A-17?").text == "From find_order (order: A-17): lamp: Orion, euros: 90."
    assert "30 euros of order A-17 are on their way" in agent.turn_sync("Refund 30 euros of order A-17").text
    assert agent.turn_sync("How long does delivery take?").text == "My brief says: “Delivery takes two days.”"


def test_the_example_pays_a_large_refund_once_and_only_when_a_person_says_so(example: ModuleType) -> None:
    """Declined nothing is paid; approved it is, and a second approval is ignored."""
    agent: Agent[object, str] = example.agent
    paused = agent.turn_sync("Refund 80 euros of order A-17")
    assert paused.question is not None
    refused = agent.turn_sync(declined(paused.question, by="Maria"), session=paused.session)
    assert (refused.status, example.paid) == ("answered", {})

    answer = approved(paused.question, by="Maria")
    done = agent.turn_sync(answer, session=paused.session)
    assert (done.status, len(example.paid)) == ("answered", 1)
    assert agent.turn_sync(answer, session=done.session).status == "ignored"
    assert len(example.paid) == 1


def test_the_example_offers_prices_to_its_staff_alone(example: ModuleType) -> None:
    """And runs no call of anybody else."""
    for who, offered in (("a guest", False), ("staff", True)):
        model = ScriptedModel([call("change_price", lamp="Orion", euros=1)], "Done.")
        result = example.agent.with_(model=model).turn_sync("Make it cheaper.", context=who)
        assert ("change_price" in shown(model.requests[0])["tools"]) is offered
        (made,) = result.session.conversation.units[1].calls
        assert made.status == ("returned" if offered else "denied")
