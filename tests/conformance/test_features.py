"""Features of every shape keep the promises of all, and the suite sees those that do not."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from onrecord.conversation.content import Mark
from onrecord.governance.rules import after_tool, before_tool, on_input, on_output
from onrecord.record.entry import Body, Entry
from onrecord.testing.conformance.feature import FeatureConformance, InertFeatureConformance, MakeFeature
from onrecord.turn.instruction import Instruction
from onrecord.turn.moments import ALLOW, Feature, Hooks, Watch
from onrecord.turn.plan import Bundle
from onrecord.turn.turn import Turn
from tests.session.folds import Listing
from tests.turn.acting import Named

pytestmark = pytest.mark.unit


class Greeted(Body, frozen=True, kw_only=True, tag="manners.greeted"):
    """That somebody was greeted."""

    who: str


class Passing:
    """A text filter that lets everything through."""

    def feed(self, item: str | Mark, /) -> list[str | Mark]:
        return [item]

    def close(self) -> list[str | Mark]:
        return []


async def same(turn: Turn, value: Any) -> Any:
    """A hook with nothing to say."""
    return value


async def allows(turn: Turn, value: Any) -> Any:
    """A verdict with nothing to say."""
    return ALLOW


async def nothing(turn: Turn) -> None:
    """Settles nothing."""


@before_tool
async def guards(turn: Turn, call: Any) -> Any:
    """A rule with nothing to say."""
    return ALLOW


RULES = [guards, after_tool(allows), on_input(allows), on_output(allows)]
EVERYWHERE = Hooks(
    on_input=allows, on_request=same, on_text=lambda _: Passing(), on_reply=same, before_tool=allows,
    after_tool=allows, on_output=allows, on_settle=nothing,
)  # fmt: skip


class TestInert(InertFeatureConformance):
    """A feature at every moment that has nothing to say."""

    @pytest.fixture(params=[*RULES, Watch(lambda _: None), Named("everywhere", EVERYWHERE)], ids=lambda f: f.name)
    def make_feature(self, request: pytest.FixtureRequest) -> MakeFeature:
        feature: Feature = request.param
        return lambda: feature


class TestSpeaking(FeatureConformance):
    """Features that change requests."""

    @pytest.fixture(params=[Instruction("Say please."), Bundle(name="b", version="1", features=(guards,))])
    def make_feature(self, request: pytest.FixtureRequest) -> MakeFeature:
        feature: Feature = request.param
        return lambda: feature


def greeter() -> Feature:
    """Files an entry of its own, folds it, and stores something elsewhere."""
    stored: set[object] = set()

    async def settles(turn: Turn) -> None:
        turn.note(Greeted(who="ana"))

    async def forget(what: object) -> None:
        stored.discard(what)

    folds = (Listing("manners.greeted", "tool.returned"), Listing("said", name="turn", scope="turn"))
    return Named(
        "greeter",
        Hooks(on_settle=settles, bodies=(Greeted,), folds=folds, forget=forget, manifest={"greets": True}),
    )  # fmt: skip


class TestStateful(FeatureConformance):
    """A feature with entries and folds of its own."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return greeter


class Growing(Listing):
    """A fold that changes the state it is given."""

    state = list[int]

    def start(self) -> Any:
        return []

    def apply(self, state: Any, entry: Entry, /) -> Any:
        state.append(entry.n)
        return state


def leaking() -> Feature:
    """Keeps something in itself, and lets it into a request."""
    seen: list[str] = []

    async def settles(turn: Turn) -> None:
        turn.note(Greeted(who=f"visitor {len(seen)}"))
        seen.append(turn.id)

    return Named("leaking", Hooks(on_settle=settles, bodies=(Greeted,)))


class Core(Body, frozen=True, kw_only=True, tag="plain"):
    """A kind without a namespace."""


WRONG: list[tuple[str, MakeFeature]] = [
    ("test_its_folds_are_pure", lambda: Named("x", Hooks(folds=(Growing("tool.returned"),)))),
    ("test_its_kinds_are_its_own", lambda: Named("x", Hooks(bodies=(Core,)))),
    ("test_an_inert_feature_changes_nothing", lambda: Instruction("Not inert.")),
]


@pytest.mark.parametrize(("promise", "make"), WRONG, ids=[promise for promise, _ in WRONG])
async def test_a_feature_that_breaks_a_promise_is_told(promise: str, make: MakeFeature) -> None:
    """The suite is not satisfied with anything."""
    suite = InertFeatureConformance()
    with pytest.raises(AssertionError):
        await getattr(suite, promise)(make)


async def test_a_feature_that_keeps_state_is_told() -> None:
    """What it did for one agent is seen by the other."""
    shared = leaking()
    with pytest.raises(AssertionError):
        await FeatureConformance().test_one_feature_serves_two_agents(lambda: shared)


def test_every_promise_is_an_async_test_with_a_sentence() -> None:
    """A suite reads as a specification."""
    promises = [f for name, f in inspect.getmembers(FeatureConformance) if name.startswith("test_")]
    assert len(promises) >= 10
    assert all(inspect.iscoroutinefunction(f) and f.__doc__ for f in promises)
