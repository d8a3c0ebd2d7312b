"""Letting go: how features erase what they keep themselves, of an agent and of the agents below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from onrecord.turn.below import Below, Expire, Forget
from onrecord.turn.moments import Hooks

__all__ = ("letting_go",)

G = TypeVar("G", Forget, Expire)


def letting_go(
    mounted: Sequence[tuple[str, Hooks]], below: Sequence[Below]
) -> tuple[tuple[Forget, ...], tuple[Expire, ...]]:
    """How the features of an agent let go, then those of the agents below it."""
    forget: list[Forget] = [(name, h.forget) for name, h in mounted if h.forget is not None]
    expire: list[Expire] = [(name, h.expire) for name, h in mounted if h.expire is not None]
    return (
        _each_once([*forget, *(one for trait in below for one in trait.forget)]),
        _each_once([*expire, *(one for trait in below for one in trait.expire)]),
    )


def _each_once(given: Sequence[G]) -> tuple[G, ...]:
    """A feature may stand in several agents, and is asked once."""
    return tuple(one for place, one in enumerate(given) if all(one[1] != other for _, other in given[:place]))
