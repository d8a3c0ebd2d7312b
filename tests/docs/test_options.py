"""Whatever an application may say of a governed agent is told in a guide, beside what it is said of."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module

import pytest

from gates.report import ROOT

pytestmark = pytest.mark.docs

PAGES = {
    "governance": ("rules", "asking", "reliability"),
    "prompt": ("context", "several-models", "sessions"),
    "skills": ("skills",),
    "memory": ("memory",),
    "mcp_bridge": ("mcp",),
    "honesty": ("commentary",),
}
HANDED_OUT = {
    "governance": {"Rule"},
    "prompt": {"Wants"},
    "skills": {"Candidate", "SkillFolder", "ToolOutcome"},
    "memory": {
        "Heading", "Hit", "Indexed", "Kept", "MemoryKept", "MemoryRecalled", "NumpyIndex", "Passage", "Rejected",
        "Served", "Space",
    },
    "mcp_bridge": {"ServerFailed"},
    "honesty": {"Language", "StatusLine"},
}  # fmt: skip
"""What an application is given, or hands on as it is: it says nothing there that a guide could explain."""

READ = {"Asked", "Wanted", "WindowLook", "WindowUnit", "Finding", "Hop", "Move"}
"""What functions of the application are given: a guide names them, and the reference has their fields."""

BESIDE = {
    "Corpus": {"documents", "indexed", "matrix"},
    "ContextRegistry": {"source_key"},
    "ContextUpdate": {"context_id", "created_at", "id", "metadata", "source", "strategy", "text"},
    "Document": {"headings", "pages"},
    "SkillStep": {"consumes", "produces"},
    "document_id": {"name"},
    "fixed": {"size"},
    "load": {"id", "url"},
}
"""Options for loaders, tests and bridges of other systems, and those that `Skill` has too: the reference tells them."""


def guide(package: str) -> str:
    """The pages that a package is explained on."""
    return "\n".join((ROOT / f"docs/guides/{page}.md").read_text(encoding="utf-8") for page in PAGES[package])


def public(package: str) -> Iterator[str]:
    """What is imported from there to say something."""
    for name in import_module(f"onrecord.{package}").__all__:
        if name not in HANDED_OUT[package]:
            yield name


def options(made: object) -> Iterator[str]:
    """What can be said by name alone."""
    for one in inspect.signature(made).parameters.values():  # type: ignore[arg-type] # whatever is called
        if one.kind is one.KEYWORD_ONLY:
            yield one.name


@pytest.mark.parametrize("package", PAGES)
def test_every_public_name_stands_in_a_guide(package: str) -> None:
    """Where what it belongs to is explained, so that nobody has to find it in the reference first."""
    told = guide(package)
    assert [name for name in public(package) if not re.search(rf"\b{name}\b", told)] == []


@pytest.mark.parametrize("package", PAGES)
def test_every_option_is_told_in_a_guide(package: str) -> None:
    """As code: where it is given, or quoted."""
    told, module = guide(package), import_module(f"onrecord.{package}")
    untold = {
        f"{name}({option}=)"
        for name in public(package)
        if name not in READ and callable(getattr(module, name)) and not hasattr(getattr(module, name), "_is_protocol")
        for option in options(getattr(module, name))
        if option not in BESIDE.get(name, ()) and not re.search(rf"`[^`\n]*\b{option}\b[^`\n]*`|\b{option}=", told)
    }
    assert untold == set()
