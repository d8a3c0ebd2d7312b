"""Check-ins: a tool that wants a person's word before it runs says so itself, and shows what the person should know."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from onrecord.conversation.inputs import Ask
from onrecord.conversation.messages import ToolCall
from onrecord.declared import Declared
from onrecord.errors import ConfigurationError
from onrecord.governance.evidence import Scorer, minimal_evidence, standard_evidence
from onrecord.jsonio import Json, is_json, own
from onrecord.tools.tool import Tool
from onrecord.tools.traits import traits_of
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.contained import ends_take
from onrecord.turn.moments import ALLOW, SLOTS, Allow, Hooks
from onrecord.turn.turn import Turn

__all__ = ("CheckIn", "NeedsCheckIn")

Demand = Literal["always"] | Callable[[Mapping[str, Json], Turn], bool | Awaitable[bool]]
Evidence = Literal["standard", "minimal"] | Callable[[Turn, ToolCall], Mapping[str, Json]]


class _OnlyIf(Struct, frozen=True, metaclass=Declared):
    only_if: Demand = "always"


class NeedsCheckIn(_OnlyIf, frozen=True, kw_only=True):
    """A trait: a person has to let each call of this tool go ahead, or those for which ``only_if(args, turn)`` holds.

    The arguments are the ones that would run, after every rule. An ``only_if`` that raises holds: what cannot be judged
    is a person's to judge. ``question`` is what the person reads (empty: made of the call), ``screen`` names the form
    of an application that shows it.
    """

    question: str = ""
    screen: str = ""

    def check(self, tool: Tool, /) -> None:
        """It stands on any tool."""

    def arms(self) -> object:
        return CheckIn()

    async def trips(self, turn: Turn, args: Mapping[str, Json]) -> bool:
        """Whether this call needs a person."""
        if not callable(self.only_if):
            return True
        try:
            said = self.only_if(args, turn)
            return bool(await said if inspect.isawaitable(said) else said)
        except BaseException as error:
            if ends_take(error):
                raise
            return True


class CheckIn(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """Asks a person before a tool with `NeedsCheckIn` runs. Mounted by such a tool itself; by hand to say more.

    ``evidence`` is what the question shows besides the call: ``standard`` what the call will do, what was read before
    it, which of that speaks of the same things, and what ran so far in the turn; ``minimal`` the first of these; or a
    function of turn and call that makes a JSON object. ``scorer(call, text)`` says how much a text speaks of the call,
    in the place of the words that they share. ``audience`` is who may answer, ``expires_s`` how long the question
    waits (None: for ever). It stands behind every rule and check of arguments, so nothing that a person has
    let pass is changed afterwards. ConfigurationError when no tool needs it.
    """

    evidence: Evidence = "standard"
    audience: str = "approver"
    expires_s: float | None = None
    scorer: Scorer | None = None

    def __post_init__(self) -> None:
        if self.evidence not in ("standard", "minimal") and not callable(self.evidence):
            raise ConfigurationError(
                "evidence= of CheckIn is 'standard', 'minimal' or a function of turn and call",
                hint="def evidence(turn, call): return what the person is shown, as a JSON object",
            )
        if self.scorer is not None and self.evidence != "standard":
            raise ConfigurationError(
                "scorer= of CheckIn ranks standard evidence, and evidence= asks for another one",
                hint="leave one of them out",
            )
        Ask("", audience=self.audience, expires_s=self.expires_s)  # whatever it does not take, it refuses

    @property
    def name(self) -> str:
        """The feature's name."""
        return "check-in"

    def hooks(self, spec: AgentSpec) -> Hooks:
        return Hooks(
            before_tool=self._ask, built=_check_needed, order={"before_tool": SLOTS["before_tool"]["CHECK_IN"]},
            alone=True,
        )  # fmt: skip

    async def _ask(self, turn: Turn, call: ToolCall) -> Allow[Any] | Ask:
        tool = turn.tools.get(call.name)
        if tool is None:
            return ALLOW
        for trait in traits_of((tool,), NeedsCheckIn):
            if await trait.trips(turn, own(call.args)):  # it may change what it gets
                text = trait.question or f"Run {call.name}?"
                detail = self._shown(turn, tool, call)
                if trait.screen:
                    detail = {**detail, "screen": trait.screen}
                return Ask(text, detail=detail, audience=self.audience, expires_s=self.expires_s)
        return ALLOW

    def _shown(self, turn: Turn, tool: Tool, call: ToolCall) -> Mapping[str, Json]:
        """What the person is shown. Evidence that cannot be made or kept leaves the call itself."""
        least = minimal_evidence(tool, call)
        try:
            if callable(self.evidence):
                made = self.evidence(turn, call)
                return {**least, "more": made} if is_json(made) else least
            return least if self.evidence == "minimal" else standard_evidence(turn, tool, call, self.scorer)
        except BaseException as error:
            if ends_take(error):
                raise
            return least


def _check_needed(tools: Mapping[str, Tool], /, *, may_be_more: bool) -> None:
    if may_be_more or any(traits_of(tools.values(), NeedsCheckIn)):
        return
    raise ConfigurationError(
        "CheckIn has no tool to ask about", hint='give one traits=(NeedsCheckIn("always"),), or leave CheckIn out'
    )
