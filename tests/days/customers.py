"""What a thousand customers do in ten days, written down before the first of them begins."""

# ruff: noqa: S311  chance, not secrets
from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

__all__ = ("Act", "acts")

HOUR, DAY = 3600.0, 86400.0


class Act(Struct, frozen=True, kw_only=True):
    """At a time, in seconds since the first day began, a session gets an input: its kind, its key and more."""

    at: float
    session: str
    kind: str
    key: str
    text: str = ""
    silenced: str = ""
    busy: str = "queue"

    @property
    def row(self) -> tuple[str, str]:
        """What of it must not be lost."""
        return self.session, self.key


def acts(seed: int, sessions: int, days: float, step: float) -> list[Act]:
    """Everything, in order; times are whole steps, so that much happens at once."""
    found = list[Act]()
    for n in range(sessions):
        found += Customer(random.Random(f"{seed} customer {n}"), f"s{n}", days * DAY, step).acts()
    return sorted(found, key=lambda act: act.at)


class Customer:
    """One of them."""

    def __init__(self, chance: random.Random, session: str, end: float, step: float) -> None:
        self.chance, self.session, self.end, self.step, self.count = chance, session, end, step, 0

    def acts(self) -> list[Act]:
        """What they do; some of it arrives twice, as channels have it."""
        first = self.chance.uniform(0, 0.3 * self.end)
        some = [*self.shops(first), *self.asides(first), *self.parcels(first)]
        some = [act for act in some if act.at < self.end]
        again = [self.again(act) for act in some if self.chance.random() < 0.06]
        return [*some, *(act for act in again if act.at < self.end)]

    def again(self, act: Act) -> Act:
        """The same input once more, at once or later."""
        late = self.chance.choice([0, 0, self.step, 5 * HOUR])
        return Act(
            at=act.at + late, session=act.session, kind=act.kind, key=act.key, text=act.text, silenced=act.silenced
        )  # fmt: skip

    def act(self, at: float, kind: str, text: str = "", **more: Any) -> Act:
        """One act, on the grid."""
        self.count += 1
        return Act(at=at // self.step * self.step, session=self.session, kind=kind, key=f"{kind[0]}{self.count}",
                   text=text, **more)  # fmt: skip

    def shops(self, at: float) -> Iterator[Act]:
        """They want a quote and tell who they are, as far as they get; then they come back, or do not."""
        chance = self.chance
        yield self.act(at, "said", "How does it work? <<quote>>")
        words = ["I am Ana <<name=Ana>>", "A large one, and what is it? <<size=large asks>>", "Yes <<ok=yes>>"]
        if chance.random() < 0.3:
            words[2] = "No <<ok=no>>"
        for word in words[: chance.choice([0, 1, 2, 3, 3, 3])]:
            at += chance.choice([0.1, 0.5, 2, 8, 30]) * HOUR
            yield self.act(at, "said", word)
        for _ in range(chance.choice([0, 0, 1, 3])):
            at += chance.uniform(0.2, 3) * DAY
            yield self.act(at, "said", chance.choice(["Hello?", "Still there? <<look>>", "Hm <<asks>>"]))

    def asides(self, at: float) -> Iterator[Act]:
        """What comes up beside it."""
        chance = self.chance
        if chance.random() < 0.4:
            yield self.act(at + chance.uniform(0, 3) * DAY, "said", "Zeta is cheaper <<rival=Zeta>>")
        for _ in range(chance.choice([0, 0, 1, 2, 4])):
            yield self.act(at + chance.uniform(0, 7) * DAY, "said", "A discount? <<promo>>")
        if chance.random() < 0.25:
            yield self.act(at + chance.uniform(0, 6) * DAY, "said", "My money back <<refund>>")
        if chance.random() < 0.25:
            quiet = chance.choice(["closed", "closed+understand", "closed+skip"])
            yield self.act(at + chance.uniform(0, 5) * DAY, "said", "Anybody? <<rival=Beta>>", silenced=quiet)
        if chance.random() < 0.2:
            start = at + chance.uniform(0, 5) * DAY
            yield self.act(start, "said", "Wait")
            yield self.act(start, "said", "No, a discount <<promo>>", busy="supersede")
        if chance.random() < 0.2:
            yield self.act(at + chance.uniform(0, 5) * DAY, "started", "promo")

    def parcels(self, at: float) -> Iterator[Act]:
        """What the warehouse tells."""
        chance = self.chance
        for _ in range(chance.choice([0, 0, 1, 1, 2])):
            at += chance.uniform(0.1, 3) * DAY
            yield self.act(at, "happened", "shipped")
            if chance.random() < 0.6:
                yield self.act(at + chance.uniform(0.2, 2.5) * DAY, "happened", "delivered")
