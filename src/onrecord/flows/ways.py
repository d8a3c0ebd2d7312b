"""Ways out of a step: where a run can go from it, on which condition, and what no run can ever reach."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from onrecord.flows.flow import Flow
from onrecord.flows.predicates import Pred
from onrecord.flows.steps import END, Chain, Collect, Do, Goto, If, Next, Step, Talk, Wait, WaitEvent

__all__ = ("Way", "dead_steps", "ways_out")


class Way(Struct, frozen=True, kw_only=True):
    """One way out of a step.

    ``name`` is where it is declared: ``then``, ``else``, ``on_fail``, ``branches``. ``to`` is a step's id or ``end``;
    it is empty where the way leads to another flow. ``when`` and ``only_if`` are those of a branch.
    """

    name: str
    target: Next | None
    to: str
    when: str = ""
    only_if: Pred | None = None

    @property
    def flow(self) -> str:
        """The flow that starts at its end, as it is written; it may be a template."""
        return self.target.flow if isinstance(self.target, Chain) else ""

    @property
    def clears(self) -> tuple[str, ...]:
        """The fields that are forgotten on the way."""
        return tuple(self.target.clear) if isinstance(self.target, Goto) else ()


def ways_out(flow: Flow, step: Step) -> tuple[Way, ...]:
    """Every way a run can take from a step, in the order in which they are tried."""
    return tuple(_ways(flow, step))


def _ways(flow: Flow, step: Step) -> Iterator[Way]:
    if isinstance(step, (Talk, Collect)) or (isinstance(step, Wait) and step.else_ is not None):
        for branch in step.branches:
            if not isinstance(step, Wait) or not branch.when:  # while a run waits, the model is not asked
                to = _named(branch.then)
                yield Way(name="branches", target=branch.then, to=to, when=branch.when, only_if=branch.only_if)
    yield _then(flow, step)
    if isinstance(step, Do) and step.on_fail is not None:
        yield Way(name="on_fail", target=step.on_fail, to=_named(step.on_fail))
    if isinstance(step, Wait) and step.else_ is not None:
        yield Way(name="else", target=step.else_, to=_named(step.else_))
    if isinstance(step, (WaitEvent, If)):
        yield Way(name="else", target=step.else_, to=END if step.else_ is None else _named(step.else_))


def _then(flow: Flow, step: Step) -> Way:
    if step.then is not None:
        return Way(name="then", target=step.then, to=_named(step.then))
    follows = flow.after(step.id)
    return Way(name="then", target=None, to=END if follows is None else follows.id)


def _named(target: Next) -> str:
    if isinstance(target, Chain):
        return ""
    return target.step if isinstance(target, Goto) else target


def dead_steps(flow: Flow) -> tuple[str, ...]:
    """The ids of steps that no run of the flow can come to, in the order of the flow."""
    if not flow.steps:
        return ()
    reached, next_ones = set[str](), [flow.steps[0].id]
    while next_ones:
        id = next_ones.pop()
        step = flow.step(id)
        if step is not None and id not in reached:
            reached.add(id)
            next_ones += [way.to for way in ways_out(flow, step)]
    return tuple(step.id for step in flow.steps if step.id not in reached)
