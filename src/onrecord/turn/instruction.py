"""Instruction: a piece of prompt text declared ahead, and the conditions under which it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct

from onrecord.conditions import is_async
from onrecord.declared import Declared
from onrecord.errors import ConfigurationError
from onrecord.models.request import Piece
from onrecord.tools.tool import Tool
from onrecord.turn.moments import Hooks, Rank

if TYPE_CHECKING:
    from onrecord.turn.agent_spec import AgentSpec
    from onrecord.turn.turn import Turn

__all__ = ("FACTS", "UNNAMED", "Instruction", "OnActivation", "OnReturn")

FACTS = ("action", "action_budget", "actions_remaining")
"""What templates may say: which request of the answer this is, how many there may be with tools, how many are left."""

_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_RAN = frozenset({"returned", "failed", "partial"})


UNNAMED = "instruction"
"""The name of those that were given none."""


_CHECKED = ("text", "name", "when", "rank", "cache", "only_if")


class _Worded(Struct, frozen=True, metaclass=Declared):
    text: str


class Instruction(_Worded, frozen=True, kw_only=True):
    """Text the model is told with every request.

    ``when`` is text for the model (``When <when>: <text>``); ``only_if`` is code, asked once per request: a function of
    the turn, `OnReturn` or `OnActivation`. One that raises does not hold, and the record says so. ``rank`` orders it
    among the system pieces (`Rank`: steering, facts, instructions), ``name`` says whose it is. ``cache`` advises
    vendors' prompt caches (None: ``always``, ``while_active`` with ``only_if``, ``never`` for a template).

    A ``template`` says ``{{action}}``, ``{{action_budget}}`` or ``{{actions_remaining}}`` as they are at each request;
    where there is no budget, and in the last request without tools, it is left out as a whole. ConfigurationError for
    a template with any other name, or one that is to be cached. An agent refuses two that were given one name, and one
    that waits for a tool which it does not have.

    As a feature: ``features=[Instruction("Be brief.")]``.
    """

    rank: int = Rank.INSTRUCTION
    when: str = ""
    only_if: Callable[[Turn], bool] | None = None
    name: str = UNNAMED
    cache: Literal["always", "never", "while_active"] | None = None
    template: bool = False

    def __post_init__(self) -> None:
        self._check()
        if not self.template:
            return
        for fact in _PLACEHOLDER.findall(f"{self.when} {self.text}"):
            if fact not in FACTS:
                raise ConfigurationError(
                    f"the template of {self.name!r} says {fact!r}, which nobody fills in",
                    hint=f"a template may say {', '.join(FACTS)}",
                )
        if self.cache not in (None, "never"):
            raise ConfigurationError(
                f"the template of {self.name!r} is another text with each request: it cannot be cached",
                hint="leave cache= out, or say cache='never'",
            )

    def _check(self) -> None:
        """What is declared wrongly would be told wrongly in every request."""
        text, name, when, rank, cache, asks = cast("tuple[object, ...]", tuple(getattr(self, f) for f in _CHECKED))
        if not isinstance(text, str) or not isinstance(when, str):
            raise ConfigurationError(
                f"an instruction is a text, and when= another: {name!r} has something else",
                hint="code goes into only_if=; for what only the turn knows, instructions= may be a function of it",
            )
        if asks is not None and (not callable(asks) or is_async(asks) or isinstance(asks, type)):
            given = (
                "class" if isinstance(asks, type) else "coroutine function" if callable(asks) else type(asks).__name__
            )
            raise ConfigurationError(
                f"only_if of {name!r} is a function of the turn, not a {given}",
                hint='it is asked before each request, and not awaited; OnReturn("price") holds behind a call of that '
                "tool; text for the model is when=",
            )
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"an instruction has a name, not {name!r}", hint="it says whose the text is")
        if not isinstance(rank, int) or isinstance(rank, bool):
            raise ConfigurationError(f"the rank of {name!r} is a number, not {rank!r}", hint="Rank.STEERING")
        if cache not in (None, "always", "never", "while_active"):
            raise ConfigurationError(f"cache= of {name!r} is always, never or while_active, not {cache!r}")

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(instructions=(self,), built=self._check_tools if self._waits_for else None)

    @property
    def _waits_for(self) -> str:
        """The tool without a call of which it never stands in a request; empty where there is none to name."""
        match self.only_if:
            case OnReturn(tool=str(tool)):
                return tool
            case OnActivation(by=by):
                return by
        return ""

    def _check_tools(self, tools: Mapping[str, Tool], /, *, may_be_more: bool) -> None:
        if may_be_more or self._waits_for in tools:
            return
        from difflib import get_close_matches  # every agent imports this module, and few mistype a name

        near = get_close_matches(self._waits_for, tools, n=1)
        there = f"its tools are {', '.join(tools) or 'none'}"
        raise ConfigurationError(
            f"the instruction {self.name!r} waits for a call of {self._waits_for!r}, which is no tool of this agent",
            hint=f"did you mean {near[0]!r}?" if near else there,
        )

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same text in every request."""
        return self.only_if is None and not self.template

    def piece(self, action: int = 0, budget: int = 0) -> Piece | None:
        """How it stands in a request: the ``action``-th of an answer that may have ``budget`` of them.

        None for a template without a budget; it is never rendered with a gap.
        """
        text, cache = f"When {self.when}: {self.text}" if self.when else self.text, self.cache
        if self.template:
            if not 0 < action <= budget:
                return None
            facts = dict(zip(FACTS, (action, budget, budget - action), strict=True))
            text, cache = _PLACEHOLDER.sub(lambda found: str(facts[found[1]]), text), "never"
        return Piece(
            source=self.name, text=text, rank=self.rank,
            cache=cache or ("always" if self.only_if is None else "while_active"),
        )  # fmt: skip


# ---- conditions ------------------------------------------------------------------------------------------------------


class _Tool(Struct, frozen=True, metaclass=Declared):
    tool: str | re.Pattern[str]


class OnReturn(_Tool, frozen=True):
    """Holds in the request right behind a batch of calls in which this tool ran: by name, or by a pattern.

    A call that was refused, cancelled or never run does not count.
    """

    def __call__(self, turn: Turn) -> bool:
        rounds = turn.rounds
        return bool(rounds) and any(call.status in _RAN and self._is(call.name) for call in rounds[-1].calls)

    def _is(self, name: str) -> bool:
        return name == self.tool if isinstance(self.tool, str) else self.tool.search(name) is not None


class _Activated(Struct, frozen=True, metaclass=Declared):
    id: str


class OnActivation(_Activated, frozen=True, kw_only=True):
    """Holds for the rest of a turn once the model has activated something by its id, from the next request on.

    That is a call of the tool ``by`` with this ``id`` among its arguments that returned.
    """

    by: str = "read_skill"

    def __call__(self, turn: Turn) -> bool:
        calls = (call for held in turn.rounds for call in held.calls if call.name == self.by)
        return any(call.status == "returned" and call.args.get("id") == self.id for call in calls)
