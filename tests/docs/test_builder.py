"""The page for people who come from a builder has every method of it, each with an example that shows the feature."""

import os
import re
from pathlib import Path

import pytest

from gates.report import ROOT
from tests.docs.snippets import Block, blocks
from tests.docs.test_tables import quoted, rows

pytestmark = pytest.mark.docs

PAGE = "coming-from-a-builder.md"
SHARED = Path(os.environ.get("ONRECORD_SHARED") or ROOT.parent / "shared")
SEED = "004_*.txt"

METHODS = (
    "act", "appName", "build", "checkIn", "commentaryTemplates", "compaction", "configure", "fact", "injection",
    "instruction", "instructions", "maps", "maxIterations", "memory", "messageMiddleware", "outputFallback",
    "outputSchema", "rag", "recipe", "reliability", "selfExplain", "skill", "skillGraph", "skills", "steering",
    "system", "thinking", "thinkingHandler", "thinkingTemplates", "tool", "toolMiddleware", "toolProvider", "tools",
    "toolsFromActiveSkill", "watch", "window",
)  # fmt: skip
"""What decides, shows or remembers."""

HONESTY = (
    "answerLayer", "answerValidation", "claims", "findings", "inputsLayer", "limitsTravelWithTheAnswer",
    "namesAndNumbersFromEvidence", "ontology", "resultsLayer", "time", "toolChoice",
)  # fmt: skip
"""What a later issue builds."""

PLACEHOLDERS = {"T"}
ARGUMENTS = set(
    "options opts injection injections definition registry graph fn config n middleware observers string".split()
)
"""How the document names a method's one argument."""

LATER = (
    "AnswerStanding", "Claims", "Evidence", "Findings", "Inputs", "Limits", "Ontology", "Results", "Time", "ToolChoice",
    "Validate",
)  # fmt: skip
"""The features of the honesty layers, as the architecture names them."""


def seed() -> str:
    """The document of the builder, from its methods on."""
    found = sorted((SHARED / "seeds").glob(SEED))
    if not found:
        pytest.skip(f"the document of the builder is not here: {SHARED / 'seeds' / SEED}")
    text = found[0].read_text(encoding="utf-8")
    return text[text.index("\nMethods\n") :]


def methods(text: str) -> dict[str, str]:
    """Each method of the builder with what is said of it."""
    parts = re.split(r"^(\w+)\(\)\n\n(?=\1[(<])", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def parameters(about: str) -> set[str]:
    """What is listed as a parameter of a method, or as a field of one."""
    listed = re.search(r"\nParameters\n(.*?)\nReturns\n", about, re.DOTALL)
    found = re.findall(r"^([a-z][A-Za-z]*)\??$", "" if listed is None else listed[1], re.MULTILINE)
    return set(found)


def sections() -> dict[str, list[Block]]:
    """The blocks below each heading of the page, by the heading's anchor."""
    text = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    anchors = [re.sub(r"[^\w-]", "", name.lower().replace(" ", "-")) for name in parts[1::2]]
    return dict(zip(anchors, (list(blocks(part)) for part in parts[2::2]), strict=True))


def test_the_methods_are_those_of_the_builder() -> None:
    """Read from its own document."""
    assert sorted(methods(seed())) == sorted([*METHODS, *HONESTY])


def test_every_method_has_its_row() -> None:
    """In one of two tables, in order, and once."""
    for methods_, table in ((METHODS, "<!-- table: methods -->"), (HONESTY, "<!-- table: later -->")):
        assert [quoted([row[0]])[0] for row in rows(PAGE, table)] == list(methods_)


def test_every_row_has_an_example_that_shows_its_feature() -> None:
    """The section that it links to uses every name that the row names, and says what that printed."""
    held = sections()
    for row in rows(PAGE, "<!-- table: methods -->"):
        (anchor,) = re.findall(r"\(#([\w-]+)\)", row[2])
        code = "".join(block.text for block in held[anchor] if block.language == "python" and not block.skipped)
        names = {name for told in quoted([row[1]]) for name in re.findall(r"[A-Za-z_][\w.]*", told)} - PLACEHOLDERS
        assert not {name for name in names if not re.search(rf"\b{re.escape(name)}\b", code)}, row[0]
        assert any(block.title == "prints" and block.text.strip() for block in held[anchor]), row[0]


def test_every_option_that_the_builder_lists_is_spoken_of() -> None:
    """Those with names of their own: the others are the argument itself."""
    about, text = methods(seed()), (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    told = {(method, name) for method in METHODS for name in parameters(about[method]) - ARGUMENTS}
    assert ("skillGraph", "turnRouting") in told
    assert not {(method, name) for method, name in told if not re.search(rf"\b{name}\b", text)}


def test_what_comes_later_is_not_there_yet() -> None:
    """A layer that is built gets a row with an example."""
    parts = [path for part in ("honesty", "prompt") for path in (ROOT / "src/onrecord" / part).rglob("*.py")]
    held = "".join(path.read_text(encoding="utf-8") for path in parts)
    assert not [name for name in LATER if re.search(rf"^class {name}\b", held, re.MULTILINE)]
