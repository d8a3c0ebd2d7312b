"""Tables of the documentation that name things of the code name all of them, and nothing else."""

import argparse
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import pytest

import onrecord
from gates.report import ROOT
from onrecord import errors
from onrecord.cli.failure import EXIT_CODES
from onrecord.cli.main import _parser
from onrecord.conversation.messages import CallStatus
from onrecord.flows import OUTCOME_MESSAGES, keys
from onrecord.flows.outcomes import END_REASONS
from onrecord.models.names import PROVIDERS
from onrecord.providers.openai_compatible import VENDORS
from onrecord.record.kinds import CORE_KINDS
from onrecord.timing import to_ms
from onrecord.turn.moments import MOMENTS, SLOTS
from onrecord.turn.result import Status

pytestmark = pytest.mark.docs

DOCS = ROOT / "docs"
OUTCOMES = {
    "cancelled",
    "duplicate-input",
    "not-taken",
    "provider-unavailable",
    "seen",
    "session-reset",
    "stale-answer",
}
"""Codes of lines, not of errors."""
INSIDE = {"cli", "__main__", "sync", "subturn", "lazy_names"}
"""Modules without a page of their own: the command line is not imported, the others are behind `Agent` and packages."""


def rows(page: str, after: str) -> list[list[str]]:
    """The cells of the first table behind a text, without its head."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert after in text, f"{page} has no {after!r}"
    table = re.search(r"^\|.*?\n\n", text[text.index(after) :] + "\n\n", re.MULTILINE | re.DOTALL)
    assert table is not None, f"{page} has no table behind {after!r}"
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[0].strip().splitlines()[2:]]


def quoted(cells: Iterable[str]) -> list[str]:
    """What stands in backquotes, in order."""
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_the_slot_table_is_that_of_the_code() -> None:
    """Moments, slots and their numbers, in order."""
    told = {
        moment.strip("` |"): {name: int(n) for name, n in (slot.split() for slot in slots.strip(" |").split(" · "))}
        for moment, slots in rows("concepts/moments.md", "<!-- table: slots -->")
    }
    assert told == {moment: dict(slots) for moment, slots in SLOTS.items()}
    assert [list(slots) for slots in told.values()] == [list(slots) for slots in SLOTS.values()]


def test_the_table_of_moments_has_all_eight() -> None:
    """In the order in which a turn meets them."""
    assert quoted(row[0] for row in rows("concepts/moments.md", "# Moments and slots")) == list(MOMENTS)


def test_the_table_of_kinds_has_all_kinds_of_the_core() -> None:
    """Kind and body, in the order of the code."""
    told = [quoted(row[:2]) for row in rows("guides/record.md", "<!-- table: kinds -->")]
    assert told == [[str(body.__struct_config__.tag), body.__name__] for body in CORE_KINDS]


def test_the_table_of_errors_has_every_class_and_its_code() -> None:
    """In the order of the module; the code of a model error ends with its kind."""
    told = [quoted(row[:2]) for row in rows("guides/errors.md", "<!-- table: errors -->")]
    public = [getattr(errors, name) for name in errors.__all__]
    classes = [each for each in public if isinstance(each, type) and issubclass(each, errors.OnrecordError)]
    classes.remove(errors.OnrecordError)
    assert sorted(told) == sorted(
        [c.__name__, f"{c.default_code}{'-…' * (c.default_code == errors.ModelError.default_code)}"] for c in classes
    )


def test_the_table_of_model_errors_has_every_kind() -> None:
    """In the order of the code."""
    told = quoted(row[0] for row in rows("guides/errors.md", "<!-- table: model error kinds -->"))
    assert told == list(get_args(errors.ErrorKind))


def test_the_table_of_codes_has_all_that_the_source_raises() -> None:
    """Codes beside those of the classes, in the order of the table: by class, then by name."""
    told = quoted(row[0] for row in rows("guides/errors.md", "<!-- table: codes -->"))
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    here = set(re.findall(r'code="([a-z-]+)"', source)) | set(re.findall(r'"((?:store|mcp)-[a-z-]+)"', source))
    assert set(told) == here - OUTCOMES
    assert told == sorted(told, key=lambda code: (code.startswith("store-"), code))


def test_the_table_of_models_has_every_provider_and_its_key() -> None:
    """In the order in which they are looked up, the stand-in last."""
    told = {
        quoted([row[0]])[0].partition(":")[0]: "".join(quoted([row[2]]))
        for row in rows("guides/providers.md", "<!-- table: providers -->")
    }
    keys = {name: vendor.key for name, vendor in VENDORS.items()} | {
        "openai": "OPENAI_API_KEY",
        "openai-responses": "OPENAI_API_KEY",
        "anthropic": "ANTHROPIC_API_KEY",
        "google": "GEMINI_API_KEY",
    }
    assert told == {name: keys.get(name, "") for name in PROVIDERS}


def test_the_table_of_endings_has_every_status() -> None:
    """Each of them in one row."""
    assert quoted(row[0] for row in rows("concepts/turn.md", "## How a turn can end")) == list(get_args(Status))


def test_the_table_of_results_has_every_status_of_a_call() -> None:
    """All but the one that a call has before it is settled."""
    told = quoted(row[1] for row in rows("guides/tools.md", "## What the model reads"))
    assert set(told) == set(get_args(CallStatus)) - {"asked"}


def test_the_table_of_exit_codes_is_that_of_the_help() -> None:
    """Number by number."""
    told = [row[0] for row in rows("guides/command-line.md", "| Exit code")]
    assert told == re.findall(r"^  (\d+) ", EXIT_CODES, re.MULTILINE)


def test_the_reference_shows_the_help_of_every_command() -> None:
    """Each once; that it is current is for the gate `help-pages`."""
    shown = re.findall(r'^```text title="(onrecord .*) --help"$', (DOCS / "reference/cli.md").read_text(), re.MULTILINE)
    assert sorted(shown) == sorted(commands("onrecord", _parser()))


def commands(name: str, parser: argparse.ArgumentParser) -> Iterable[str]:
    """The commands below a parser that have none below them."""
    below = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield name
    for word, one in (item for choices in below for item in choices.items()):
        yield from commands(f"{name} {word}", one)


def test_the_table_of_outcome_codes_has_all_of_them_with_their_sentences() -> None:
    """In the order of the code."""
    told = [
        (quoted([row[0].lstrip("| ")])[0], row[1])
        for row in rows("reference/flows.md", "<!-- table: outcome codes -->")
    ]
    assert told == list(OUTCOME_MESSAGES.items())


def test_the_table_of_keys_shows_what_the_code_makes() -> None:
    """Each format, made of the names of its parts."""
    at = datetime(2026, 9, 20, 10, tzinfo=UTC)
    step = keys.step_key("{run}", "{step}", "{visit}")  # type: ignore[arg-type]  # a placeholder in its place
    silence = keys.silence_key("{flow}", "{session}", at)
    made = [
        keys.run_id("{flow}", "{trigger}"), step, keys.message_key(step, 2), keys.idle_key("{trigger}"),
        keys.wake_key("{run}", "{step}", at), keys.start_key("{run}", at), keys.retry_key(step, at), silence,
        keys.claim_key("{flow}", "{anchor}", "{trigger}"), keys.claim_key("{flow}", "{anchor}", ""),
        keys.said_once_key("{flow}", "{step}", "{session}"),
    ]  # fmt: skip
    told = quoted(row[1] for row in rows("concepts/flows.md", "<!-- table: keys -->"))
    told = [key for key in told if "}" in key and key != "{ms}"]
    assert told == [key.replace(str(to_ms(at)), "{ms}") for key in made]


def test_the_table_of_ends_has_every_reason() -> None:
    """In the order of the code."""
    assert tuple(quoted(row[0] for row in rows("guides/flows-results.md", "| `ended` |"))) == END_REASONS


def test_the_table_of_top_level_names_has_all_of_them() -> None:
    """Each once."""
    told = quoted(row[0] for row in rows("reference/top-level.md", "<!-- table: top level -->"))
    assert sorted(told) == sorted(set(onrecord.__all__) - {"__version__"})


def test_every_public_module_is_in_the_reference() -> None:
    """Under a page of its own or of its package."""
    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    told = re.findall(r"^::: onrecord\.(\S+)$", pages, re.MULTILINE)
    here = {path.stem for path in (ROOT / "src/onrecord").iterdir() if path.suffix == ".py" or _is_package(path)}
    assert sorted({name.split(".")[0] for name in told} | INSIDE) == sorted(here - {"__init__"})


def _is_package(path: Path) -> bool:
    return path.is_dir() and (path / "__init__.py").exists()


def test_every_decision_is_in_the_list() -> None:
    """And the list names no other."""
    told = re.findall(r"\((\d{4}-[a-z0-9-]+\.md)\)", (DOCS / "decisions/index.md").read_text(encoding="utf-8"))
    assert told == sorted(path.name for path in (DOCS / "decisions").glob("0*.md"))


def test_extras_that_the_readme_names_exist() -> None:
    """As pip would look for them."""
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    told = {name for page in pages for name in re.findall(r"onrecord\[(\w+)\]", page.read_text(encoding="utf-8"))}
    assert told <= set(extras)
