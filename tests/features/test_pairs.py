"""Every two features together keep each one's promises, in both orders of the list."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from onrecord.errors import ConfigurationError, OnrecordError
from onrecord.turn.plan import Bundle
from tests.features.active import ACTIVE, EXCLUDE
from tests.features.always import every_promise
from tests.features.idle import IDLE
from tests.features.talk import played

pytestmark = pytest.mark.unit


async def keep_their_promises(*names: str) -> None:
    """A talk with these features, in this order."""
    made, keeps = zip(*(ACTIVE[name]() for name in names), strict=True)
    play = await played(*made)
    every_promise(play)
    for name, promise in zip(names, keeps, strict=True):
        try:
            promise(play)
        except AssertionError as broken:
            broken.add_note(f"the promise of {name!r} among {names}")
            raise


@pytest.mark.parametrize("name", ACTIVE)
async def test_each_feature_keeps_its_promise_alone(name: str) -> None:
    """So that what breaks beside another is known to be about both."""
    await keep_their_promises(name)


def is_before(place: int, at: int) -> bool:
    """Whether the feature at one place of the registry is played in front of the other; else it comes behind it."""
    return (place + at) % 2 == (place < at)


@pytest.mark.parametrize("name", ACTIVE)
async def test_it_keeps_it_beside_every_other_and_so_does_the_other(name: str) -> None:
    """In front of half of them, and behind the other half when their turn comes; the other orders are played below."""
    broken: list[str] = []
    place = [*ACTIVE].index(name)
    for at, other in enumerate(ACTIVE):
        if other == name or not is_before(place, at) or frozenset({name, other}) in EXCLUDE:
            continue
        try:
            await keep_their_promises(name, other)
        except (AssertionError, OnrecordError) as error:
            broken.append(f"{name}, {other}: {type(error).__name__}: {error} {getattr(error, '__notes__', '')}")
    assert not broken, "\n".join(broken)


def test_each_pair_is_played_once() -> None:
    """In one order of the two."""
    size = len(ACTIVE)
    played = [{one, at} for one in range(size) for at in range(size) if one != at and is_before(one, at)]
    assert len(played) == len({frozenset(pair) for pair in played}) == size * (size - 1) // 2


@pytest.mark.parametrize("name", ACTIVE)
async def test_it_keeps_it_among_all_that_are_idle(name: str) -> None:
    """In front of them and behind them; there is one of each that there may be one of."""
    own = {feature.name for feature in ACTIVE[name]()[0].features}
    own |= {"window"} if name == "compaction" else set()
    every = [one.make() for which, one in IDLE.items() if which not in NOT_AMONG]
    idle = [each for each in every if own.isdisjoint(feature.name for feature in each.features)]
    assert len(idle) > 15
    for place in (0, len(idle)):
        made, promise = ACTIVE[name]()
        play = await played(*idle[:place], made, *idle[place:])
        every_promise(play)
        promise(play)


NOT_AMONG = frozenset({
    "typed", "compaction", "window, summing up", "window, by a plan", "artifacts, presenting", "artifacts, spending",
    "skill graph", "bundle",
})  # fmt: skip
"""Other forms of features that are there, and what changes answers."""


@pytest.mark.parametrize("seed", range(6))
async def test_all_of_them_at_once_keep_all_promises_in_any_order_and_its_reverse(seed: int) -> None:
    """So that every two stand in both orders among all the others."""
    chance = random.Random(seed)  # noqa: S311 - an order, the same at each run
    left_out = {sorted(pair)[seed % 2] for pair in EXCLUDE}
    names = [name for name in ACTIVE if name not in left_out]
    chance.shuffle(names)
    await keep_their_promises(*names)
    await keep_their_promises(*reversed(names))


@pytest.mark.parametrize("pair", EXCLUDE, ids="-".join)
async def test_pairs_that_exclude_each_other_are_refused_and_both_are_named(pair: frozenset[str]) -> None:
    """When the agent is built; no other pair is."""
    one, other = sorted(pair)
    with pytest.raises(ConfigurationError) as told:
        await played(ACTIVE[one]()[0], ACTIVE[other]()[0])
    assert all(name in str(told.value) for name in EXCLUDE[pair])


OFTEN = frozenset({
    "input rule", "call rule", "asking rule", "result rule", "output rule", "closing rule", "media", "choose",
    "commentary", "watch",
})  # fmt: skip
"""What an agent may have several of."""


@pytest.mark.parametrize("name", sorted(ACTIVE.keys() - OFTEN))
async def test_what_there_may_be_one_of_is_refused_when_it_comes_twice_and_both_sides_are_named(name: str) -> None:
    """Given by a bundle and by the agent itself, say."""
    held, again = ACTIVE[name]()[0], ACTIVE[name]()[0]
    outer = Bundle(name="outer", version="2", features=again.features)
    with pytest.raises(ConfigurationError) as told:
        await played(replace(held, dress={}), replace(again, features=(outer,), dress={}))
    assert re.search("twice|only one|two instructions", str(told.value))
    if name not in {"typed", "bundle"}:  # of the one there is an output, of the other its name
        assert "bundle 'outer' 2" in str(told.value)
        assert "the agent itself" in str(told.value)


@pytest.mark.parametrize("name", sorted(OFTEN))
async def test_what_there_may_be_several_of_works_twice(name: str) -> None:
    """Also under one name."""
    made, again = ACTIVE[name]()[0], ACTIVE[name]()[0]
    every_promise(await played(made, again))
