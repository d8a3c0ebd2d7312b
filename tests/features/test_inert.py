"""A feature that is configured and has nothing to do changes no byte of any request on any wire, and no entry.

One that cannot be idle by its nature says in `idle` what it adds, and it is only that. What is not mounted is not
even imported. A new feature fails here until it is in the registry.
"""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import pytest
from msgspec.structs import replace

import onrecord
from onrecord.conversation.messages import Round
from onrecord.models.lanes import portable_id
from onrecord.models.model import scope_of
from onrecord.models.request import Request
from onrecord.record.entry import Entry, kind_of
from onrecord.record.kinds import ModelRequested
from tests.features.idle import ELSEWHERE, IDLE, Adds, Idle
from tests.features.talk import PLAIN, QUIET, Play, Talker, played
from tests.providers.wires import WIRES

pytestmark = pytest.mark.unit

FEATURES = ("governance", "prompt", "memory", "skills", "honesty", "telemetry", "flows", "host", "stores", "providers")
"""Packages that a bare agent does without."""

each_idle = pytest.mark.parametrize("idle", IDLE.values(), ids=IDLE)


def bodies_of(requests: Sequence[Request], adds: Adds) -> list[list[bytes]]:
    """Each request on every wire, without what a feature says that it adds."""
    told: list[list[bytes]] = []
    for wire in WIRES:
        model = wire.make("http://127.0.0.1:9/v1", wire.vendors[0])
        told.append([_plain_ids(model.wire(_on(request, model, adds)).body, request, adds) for request in requests])
    return told


def _plain_ids(body: bytes, request: Request, adds: Adds) -> bytes:
    """The body with calls numbered, where entries were added: their ids come from a turn's, and that from its place."""
    if adds == Adds():
        return body
    for place, unit in enumerate(request.conversation.units):
        for at in range(len(unit.calls) if isinstance(unit, Round) else 0):
            body = body.replace(portable_id(unit.id, at).encode(), b"call%d-%d" % (place, at))
    return body


def _on(request: Request, model: Any, adds: Adds) -> Request:
    return replace(
        request, model=model, scope=scope_of(model.card, "s"), wire=None,
        offers=tuple(offer for offer in request.offers if offer.tool.id not in adds.tools),
        pieces=tuple(piece for piece in request.pieces if piece.source not in adds.pieces),
        shape=None if adds.shape else request.shape,
    )  # fmt: skip


def told_by(entries: Sequence[Entry], adds: Adds) -> list[Any]:
    """The record: bodies without the manifest; kinds alone, without new ones, for what adds something to requests."""
    held = [entry.body for entry in entries if kind_of(entry.body) not in adds.kinds]
    if adds.tools or adds.pieces or adds.kinds:
        return [kind_of(body) for body in held if kind_of(body) != "piece.filed"]
    return [_alike(body) for body in held]


def _alike(body: Any) -> Any:
    """A body without the manifest, and without what a receipt says of a feature that had nothing to replace."""
    if isinstance(body, ModelRequested) and body.receipt is not None:
        return replace(body, receipt=replace(body.receipt, stand_ins=False, degrade=False))
    return replace(body, manifest={}) if hasattr(body, "manifest") else body


async def bare() -> Play:
    """The talk without any feature."""
    return await played(model=Talker(PLAIN), inputs=QUIET)


@each_idle
async def test_an_idle_feature_changes_no_byte_on_any_wire_and_no_entry(idle: Idle) -> None:
    """Or exactly what it says that it adds; what ran, what was said and what was streamed is the same, too."""
    plain, with_it = await bare(), await played(idle.make(), model=Talker(PLAIN), inputs=QUIET)
    some = slice(0, 1) if idle.adds.shape else slice(None)
    assert len(with_it.requests) == len(plain.requests) >= 10
    assert bodies_of(with_it.requests[some], idle.adds) == bodies_of(plain.requests[some], idle.adds)
    assert told_by(with_it.entries, idle.adds) == told_by(plain.entries, idle.adds)
    assert with_it.ran == plain.ran
    if not idle.adds.shape:
        assert [result.text for result in with_it.results] == [result.text for result in plain.results]
        assert idle.adds.holds or with_it.streamed == plain.streamed


@each_idle
async def test_what_a_feature_says_that_it_adds_is_there(idle: Idle) -> None:
    """In some request and in the record: nothing is left in this registry that is not so any more."""
    play = await played(idle.make(), model=Talker(PLAIN), inputs=QUIET)
    assert idle.adds.tools <= {offer.tool.id for request in play.requests for offer in request.offers}
    assert idle.adds.pieces <= {piece.source for request in play.requests for piece in request.pieces}
    assert idle.adds.kinds <= {kind_of(entry.body) for entry in play.entries}
    assert idle.adds.shape == (play.requests[0].shape is not None)


async def test_all_idle_features_together_change_nothing_either() -> None:
    """Those that add nothing, and of those that exclude each other one."""
    alone = {"compaction", "window, summing up", "window, by a plan", "artifacts, spending"}
    many = [idle.make() for name, idle in IDLE.items() if idle.adds == Adds() and name not in alone]
    plain, all_of_them = await bare(), await played(*many, model=Talker(PLAIN), inputs=QUIET)
    assert len(many) > 15
    assert bodies_of(all_of_them.requests, Adds()) == bodies_of(plain.requests, Adds())
    assert told_by(all_of_them.entries, Adds()) == told_by(plain.entries, Adds())


# ---- nothing is missing ---------------------------------------------------------------------------------------------


def features_of_the_library() -> Iterator[str]:
    """Every public class of the library that is a feature, or a trait that arms one."""
    for module in pkgutil.walk_packages(onrecord.__path__, "onrecord."):
        if module.name.split(".")[1] in {"testing", "cli", "__main__"}:
            continue
        held = import_module(module.name)
        for name, kind in vars(held).items():
            if inspect.isclass(kind) and kind.__module__ == module.name and not name.startswith("_"):
                is_protocol = getattr(kind, "_is_protocol", False)
                if not is_protocol and (_takes_a_spec(kind) or _arms_a_feature(kind)):
                    yield f"{module.name.removeprefix('onrecord.')}.{name}"


def _takes_a_spec(kind: type) -> bool:
    hooks = getattr(kind, "hooks", None)
    return callable(hooks) and list(inspect.signature(hooks).parameters) == ["self", "spec"]


def _arms_a_feature(kind: type) -> bool:
    arms = getattr(kind, "arms", None)
    return callable(arms) and hasattr(kind, "check") and inspect.signature(arms).return_annotation not in {"None", None}


def test_every_feature_of_the_library_is_in_the_registry() -> None:
    """A class with hooks, or a trait that mounts one, has to say here how it is when it has nothing to do."""
    found = set(features_of_the_library())
    assert "governance.budget.Budget" in found
    known = {name for idle in IDLE.values() for name in idle.of} | ELSEWHERE.keys()
    assert not found - known, "add these to tests/features/idle.py, and to active.py with what they promise"
    assert not known - found, "these are gone"


# ---- modules --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loaded() -> Mapping[str, Sequence[str]]:
    """What each agent loads, measured in one process and its forks."""
    if not hasattr(os, "fork"):
        pytest.skip("modules are measured in forks of one process")
    command = [sys.executable, "-m", "tests.features.modules"]
    got = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    told: Mapping[str, Sequence[str]] = json.loads(got.stdout)
    return told


def test_an_agent_without_features_loads_none(loaded: Mapping[str, Sequence[str]]) -> None:
    """Neither their packages nor those of wires, hosts and stores."""
    assert not [name for name in loaded["bare"] if name.split(".")[1:2] and name.split(".")[1] in FEATURES]


@pytest.mark.parametrize("name", IDLE)
def test_a_feature_loads_its_own_package_and_no_other(name: str, loaded: Mapping[str, Sequence[str]]) -> None:
    """Nor, with nothing to do, any library that the bare agent does without."""
    ours = {module.split(".")[1] for module in loaded[name] if module.startswith("onrecord.")}
    assert ours & set(FEATURES) <= IDLE[name].home
    others = {module.split(".")[0] for module in loaded[name]} - {"onrecord", *sys.stdlib_module_names}
    assert others <= LIBRARIES.get(name, frozenset())


LIBRARIES: Mapping[str, frozenset[str]] = {"otel": frozenset({"opentelemetry"})}
"""The libraries that features load because they are about them."""
