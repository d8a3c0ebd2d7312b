"""The guide "Providers" says what four models take and every way in which one is refused: neither more nor less."""

from __future__ import annotations

import ast
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gates.report import ROOT
from onrecord.cli.refusals import MEDIA, WISHES, refusals
from onrecord.conversation.content import Image
from onrecord.models.model import Model
from onrecord.models.names import model_named
from onrecord.models.request import HeadMarks, Request, Settings
from tests.docs.test_tables import quoted, rows
from tests.models.requests import call, request, said, settled, system, user

pytestmark = pytest.mark.docs

PAGE = "guides/providers.md"
FOUR = ("openai:gpt-5-mini", "openai-responses:gpt-5-mini", "anthropic:claude-sonnet-4-5", "google:gemini-3.8-flash")
WIRES = ("openai_chat", "openai_responses", "anthropic", "google")
PICTURE = b"a picture in a result"


def body(model: Model, asked: Request) -> dict[str, Any]:
    """What would be sent."""
    held: dict[str, Any] = json.loads(model.wire(asked).body)
    return held


def media_of_results(model: Model) -> str:
    """Where a picture stands that a tool returned."""
    calls = [call("r0", 0, result=(Image(data=PICTURE),))]
    held = body(model, request(user("hi"), said(settled("r0", calls=calls))))
    (path,) = _paths(held, b64encode(PICTURE).decode())
    return "in the result" if {"output", "tool_result", "functionResponse"} & set(path) else "behind the results"


def _paths(held: Any, wanted: str, *path: str) -> Iterator[tuple[str, ...]]:
    """The names above each string that holds another, with the types of the objects on the way."""
    if isinstance(held, str):
        if wanted in held:
            yield path
    elif isinstance(held, list):
        for one in held:
            yield from _paths(one, wanted, *path)
    elif isinstance(held, Mapping):
        kind = str(held.get("type", ""))
        for name, one in held.items():
            yield from _paths(one, wanted, *path, kind, name)


def takes_marks(model: Model) -> str:
    """Whether a cache mark changes what is sent."""
    asked = request(user("hi"), pieces=(system("Be brief."),))
    marked = replace(asked, view=replace(asked.view, head=HeadMarks(system=1)))
    return "yes" if body(model, asked) != body(model, marked) else "not needed"


def taken(model: Model, name: str) -> str:
    """One row's cell: whether the model takes it, refuses it, or is asked as if nobody had said it."""
    if name in refusals(model):
        return "no"
    if name not in WISHES:
        return "yes"
    plain = {key: value for key, value in WISHES[name].items() if key not in {"settings", "choice"}}
    asked, bare = request(user("hi"), **WISHES[name]), request(user("hi"), **plain)
    return "yes" if body(model, asked) != body(model, bare) else "left out"


def cells(name: str) -> list[str]:
    """A row of the table as the code has it."""
    models = [model_named(one) for one in FOUR]
    match name:
        case "media in a tool result":
            return [media_of_results(model) for model in models]
        case "typed output":
            return [{"native": "enforced", "prompt": "asked in words"}[model.card.structured] for model in models]
        case "typed output beside tools":
            return ["yes" if model.card.structured_with_tools else "no" for model in models]
        case "cache marks":
            return [takes_marks(model) for model in models]
    return [taken(model, name) for model in models]


OTHERS = ("media in a tool result", "typed output", "typed output beside tools", "cache marks")


@pytest.mark.parametrize("name", [*MEDIA, *WISHES, *OTHERS])
def test_the_table_of_what_four_models_take_is_that_of_their_wires(name: str) -> None:
    """Row by row, as their projections have it."""
    told = {row[0].strip("| "): [cell.strip(" |") for cell in row[1:]] for row in rows(PAGE, "<!-- table: wires -->")}
    assert told[name] == cells(name)


def test_the_table_of_what_four_models_take_has_all_rows_and_names_the_four() -> None:
    """Neither more nor less."""
    text = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    head = text[text.index("<!-- table: wires -->") :].split("\n")[2]
    assert tuple(quoted([head])) == FOUR
    told = [row[0].strip("| ") for row in rows(PAGE, "<!-- table: wires -->")]
    assert sorted(told) == sorted([*MEDIA, *WISHES, *OTHERS])


# ---- refusals -----------------------------------------------------------------------------------------------------

# Google's sentence about thinking is put together of the reasons in `thinking_levels`, which are taken from there.
TELLING = re.compile(r".*refus.*|_image_data|why_not_thinking|lost|_lost|lost_of")
GAP = "…"


def words_of(tree: ast.AST) -> Iterator[str]:
    """What the functions that tell of refusals yield, return and build, with gaps where something is filled in."""
    for assigned in ast.walk(tree):
        if isinstance(assigned, ast.Assign) and [getattr(name, "id", "") for name in assigned.targets] == ["_NAMED"]:
            yield from _texts(assigned.value)
        if isinstance(assigned, ast.Call) and ast.unparse(assigned.func) == "self._lost.append":
            yield from _texts(assigned.args[0])
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or not TELLING.fullmatch(function.name):
            continue
        for statement in ast.walk(function):
            if isinstance(statement, (ast.Yield, ast.Return)) and statement.value is not None:
                yield from _texts(statement.value)


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(one.value) if isinstance(one, ast.Constant) else GAP for one in node.values)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and " " in node.value:
            yield node.value
    else:
        for below in ast.iter_child_nodes(node):
            yield from _texts(below)


@cache
def in_the_code() -> tuple[str, ...]:
    """Every sentence with which a wire refuses something."""
    found: dict[str, None] = {}
    source = ROOT / "src/onrecord"
    paths = [path for wire in WIRES for path in sorted((source / "providers" / wire).glob("*.py"))]
    for path in (*paths, source / "models/written_forms.py"):
        told = words_of(ast.parse(path.read_text(encoding="utf-8")))
        before = f"thinking {GAP}: {GAP} " if path.stem == "thinking_levels" else ""
        found |= dict.fromkeys(before + one for one in told if re.search(r"\w", one))
    return tuple(
        one for one in found if one not in {f"thinking {GAP}: {GAP} {GAP}", f"thinking {GAP}: {GAP}", "try again"}
    )


def fits(template: str, told: str) -> bool:
    """Whether a sentence with gaps is that of the guide, which fills some of them in."""
    return re.fullmatch(".+".join(map(re.escape, template.split(GAP))), told) is not None


def test_every_refusal_of_the_code_stands_in_the_guide() -> None:
    """In its own words."""
    told = quoted(row[0] for row in rows(PAGE, "<!-- table: refusals -->"))
    missing = [one for one in in_the_code() if not any(fits(one, held) for held in told)]
    assert not missing


def test_every_refusal_of_the_guide_is_one_of_the_code() -> None:
    """None that was reworded or is gone."""
    told = quoted(row[0] for row in rows(PAGE, "<!-- table: refusals -->"))
    assert not [held for held in told if not any(fits(one, held) for one in in_the_code())]


def test_the_drawing_and_the_page_name_the_same_wires() -> None:
    """One conversation, four wires."""
    drawn = Path(ROOT / "docs/images/wires.svg").read_text(encoding="utf-8")
    assert all(name in drawn for name in ("Chat Completions", "Responses", "Messages", "generateContent"))
    assert "wires.svg" in (ROOT / "docs" / PAGE).read_text(encoding="utf-8")


def test_settings_are_all_in_the_table() -> None:
    """Each setting that is not the same for all four."""
    asked = {name for fields in WISHES.values() for name in _given(fields.get("settings", Settings()))}
    assert asked == set(Settings.__struct_fields__) - {"max_tokens", "extra"}


def _given(settings: Settings) -> Iterator[str]:
    return (name for name in settings.__struct_fields__ if getattr(settings, name) not in (None, {}))
