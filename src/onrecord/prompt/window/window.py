"""Window: how much of a long conversation requests show, in units or in tokens that the provider counted."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from onrecord.declared import Declared, declared
from onrecord.errors import ConfigurationError, Unmeasurable, check_count
from onrecord.models.model import Model
from onrecord.models.names import as_model, check_model
from onrecord.models.request import Request, Span
from onrecord.prompt.window.evicted import Evicted, Kept, Pressure, Stayed
from onrecord.prompt.window.gaps import WINDOW_PLACE, WINDOWED, Gap, Windowed, safe_names
from onrecord.prompt.window.own_plan import WindowPlan, by_plan
from onrecord.prompt.window.planning import MOST_STRETCHES, Space
from onrecord.prompt.window.removing import Asked, make_room, shown, standing
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import SLOTS, Hooks
from onrecord.turn.turn import Turn

__all__ = ("Window",)

Strategy = Literal["last", "budget", "summarize", "by"]

TAKEN = frozenset(get_args(Strategy))
"""What a plan of the application cannot be called."""


class Window(Struct, frozen=True, kw_only=True, metaclass=Declared):
    """Shows the newest part of a long conversation.

    Make one with `Window.last`, `Window.budget` or `Window.summarize`; with `Window.by` the application decides.

    A *unit* is a message, or a round with all its results, so a call and its result are never parted. The newest
    ``keep`` units stay. So do, by name: the message that the turn is about (``current-request``), instructions of the
    application (``system-envelope``), a message whose turn waits for a person (``pending-check-in``, ``paused-tool``),
    a call without a result (``unresolved-tool-call``), the newest results of up to ``keep_last_tool_results`` tools
    behind the current request (``last-tool-result``), and what other features pin. What leaves is one stretch, the
    oldest that may; where it led the request a notice stands in its place, smaller than what left.

    A request that a model refuses as too long is made once more if something can leave: more than ``slack`` allows, and
    whatever was counted before.

    The conversation and the record keep everything. Each removal is a ``context.evicted`` entry, each time that room
    was wanted and nothing left a ``window.stayed`` one. What has left stays out, so requests between two removals
    begin with the same bytes.

    Raises ConfigurationError for numbers that make no sense, and for a summary by the agent's own model.
    """

    _example: ClassVar[str] = "Window.last(12), Window.budget(100_000) or Window.summarize(100_000, model='...')"

    strategy: Strategy
    keep: int
    tokens: int = 0
    model: Model | str | None = None
    slack: int = 0
    keep_last_tool_results: int | Literal[False] = 2
    called: str = ""
    plan: WindowPlan | None = None

    @classmethod
    @declared
    def last(cls, keep: int, *, slack: int = 0, keep_last_tool_results: int | Literal[False] = 2) -> Window:
        """Shows the newest ``keep`` units, and no model is asked.

        ``slack`` more may gather before anything leaves: the bytes that vendors cache then change once in so many
        units and not with each.
        """
        return cls(strategy="last", keep=keep, slack=slack, keep_last_tool_results=keep_last_tool_results)

    @classmethod
    @declared
    def budget(cls, tokens: int, *, keep: int = 6, keep_last_tool_results: int | Literal[False] = 2) -> Window:
        """Drops the oldest once the provider counted more than so many input tokens for the request before.

        Counted, never guessed: `Unmeasurable` when the provider reports nothing. One that reported and stops is told
        once, and from then on nothing is removed.
        """
        return cls(strategy="budget", keep=keep, tokens=tokens, keep_last_tool_results=keep_last_tool_results)

    @classmethod
    @declared
    def summarize(
        cls, tokens: int, *, model: Model | str, keep: int = 6, keep_last_tool_results: int | Literal[False] = 2
    ) -> Window:  # fmt: skip
        """As `budget`, but ``model``, another one than the agent's, sums up what leaves.

        Its calls are on the record with what they cost. A summary that fails, or is not smaller than what it stands
        for, leaves the window as it is; the same stretch is not paid for again.
        """
        return cls(
            strategy="summarize", keep=keep, tokens=tokens, model=model, keep_last_tool_results=keep_last_tool_results
        )

    @classmethod
    @declared
    def by(
        cls, name: str, plan: WindowPlan, *, keep: int = 1, keep_last_tool_results: int | Literal[False] = 2
    ) -> Window:  # fmt: skip
        """Goes by a plan of the application, which the record knows as ``window.{name}``.

        ``plan(look)`` is asked once for each request and gives the places of the units that leave, as `WindowLook`
        counts them; None for none. It may be async. It chooses, and the window removes as ever: who must stay stays and
        is told by name, as do the newest ``keep``; units beside each other leave together, with a notice if that is
        smaller. Nothing comes back. A plan that raises removes nothing: that is told (``plan-failed``), and it is asked
        again in the next turn.
        """
        return cls(strategy="by", keep=keep, called=name, plan=plan, keep_last_tool_results=keep_last_tool_results)

    def __post_init__(self) -> None:
        check_count("Window", "keep", self.keep)
        check_count("Window", "slack", self.slack, 0)
        if self.keep_last_tool_results is not False:
            check_count("Window", "keep_last_tool_results", self.keep_last_tool_results, 0)
        if self.strategy not in TAKEN:
            raise ConfigurationError(f"there is no window {self.strategy!r}", hint="Window.last(12)")
        if self.strategy == "by":
            self._check_plan()
        if self.strategy in {"last", "by"}:
            return
        check_count("Window", "tokens", self.tokens)
        if self.strategy == "summarize":
            check_model(
                "Window.summarize", self.model,
                hint="give a small one: Window.summarize(100_000, model='anthropic:claude-haiku-4-5')",
            )  # fmt: skip

    def _check_plan(self) -> None:
        if not callable(self.plan):
            raise ConfigurationError(
                f"the plan of Window.by is a function of what is shown, not a {type(self.plan).__name__}",
                hint="def plan(look): return range(len(look.units) - 12)",
            )
        name: object = self.called
        if not isinstance(name, str) or safe_names((name,)) != (name,) or name in TAKEN:
            raise ConfigurationError(
                f"Window.by cannot be called {name!r}",
                hint="a name of letters, digits, '_' and '-' that no other window has, such as 'no-small-talk'",
            )

    @property
    def name(self) -> str:
        """The feature's name."""
        return "window"

    def hooks(self, spec: AgentSpec) -> Hooks:
        model = None if self.model is None else as_model(self.model)
        if model is not None and spec.card is not None and model.card == spec.card:
            raise ConfigurationError(
                f"the summaries of Window would be written by the agent's own model {model.card.name!r}",
                hint="give a smaller one; Compaction takes the turn's own",
            )
        asked = Asked(
            by=f"window.{self.called or self.strategy}", keep=self.keep, pins=int(self.keep_last_tool_results),
            tokens=self.tokens, model=model,
        )  # fmt: skip

        async def shows(turn: Turn, request: Request) -> Request:
            return await self._windowed(turn, request, asked)

        about: dict[str, Any] = {"strategy": self.called or self.strategy, "keep": self.keep}
        about |= {"tokens": self.tokens} if self.tokens else {}
        about |= {"slack": self.slack} if self.slack else {}
        about |= {"model": model.card.name} if model is not None else {}
        return Hooks(
            on_request=shows, order={"request": SLOTS["request"]["WINDOW"]},
            purposes=frozenset({"speak", "wrap_up", "judge"}), folds=(WINDOWED,), bodies=(Evicted, Stayed, Pressure),
            manifest={"window": about},
        )  # fmt: skip

    async def _windowed(self, turn: Turn, request: Request, asked: Asked) -> Request:
        """The request with what is to be shown of it; the very request where that is everything."""
        size = len(request.conversation.units)
        if request.view.spans != (Span(0, size),):
            return request  # what is shown was chosen already
        gaps = await standing(turn, request, turn.state(WINDOWED).gaps)
        if turn.working.open is None:  # else a paused round is asked about, and nothing goes out
            gaps = await self._roomier(turn, request, gaps, asked)
        return replace(request, view=await shown(turn, request, gaps)) if gaps else request

    async def _roomier(self, turn: Turn, request: Request, gaps: tuple[Gap, ...], asked: Asked) -> tuple[Gap, ...]:
        """The gaps once room is made, where it is wanted."""
        if self.plan is not None:
            return await by_plan(turn, request, gaps, asked, self.plan)
        size, since, more, too_long = len(request.conversation.units), 0, False, turn.refused is not None
        for _ in range(MOST_STRETCHES):
            if not more and not self._wants_room(turn, turn.state(WINDOWED), Space.of(size, gaps), too_long=too_long):
                break
            gaps, since = await make_room(turn, request, gaps, asked, since=since)
            if not since:
                break
            # Nobody counted how much is enough, so all goes that may; but a summary of each stretch is paid.
            more, too_long = self.strategy == "budget", too_long and self.strategy == "last"
        return gaps

    def _wants_room(self, turn: Turn, state: Windowed, space: Space, *, too_long: bool) -> bool:
        """Whether too much is shown. Unmeasurable where that is to be counted, and nobody counts."""
        if self.strategy == "last":
            return space.count > self.keep + (0 if too_long else self.slack)
        if too_long and state.failed != turn.id:
            return True
        measured = state.measured
        if measured is None or state.failed == turn.id:
            return False
        if measured.counted:
            return measured.input_tokens > self.tokens
        if not state.counts:
            raise Unmeasurable(self.name, measured.provider)
        if not state.told:
            turn.note(Stayed(by=f"window.{self.strategy}", kept=(Kept(why="unmeasured"),)), where=WINDOW_PLACE)
        return False
