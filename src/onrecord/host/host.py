"""Host: runs an agent for many sessions over a store. What it accepted is taken, once, whatever crashes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, cast

from onrecord.agent import Agent, C
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Input, Interruption
from onrecord.conversation.outgoing import Delta
from onrecord.errors import ConfigurationError
from onrecord.host.desk import Desk, Told, named
from onrecord.host.health import Health, health_of
from onrecord.host.host_stream import HostStream
from onrecord.host.hot import HotSessions
from onrecord.host.keeping import Keeping
from onrecord.host.live import LiveItem, Place
from onrecord.host.open_toolsets import OpenToolsets
from onrecord.host.questions import SPEAKER, Caller, check_audience, said_by
from onrecord.host.running import Asked, Ticket
from onrecord.host.setup import LADDER, Deliver, Give, Setup, check_parts, is_count
from onrecord.session.inbox import Busy, Row
from onrecord.session.memory_store import MemoryStore
from onrecord.session.store import Store
from onrecord.turn.effects import Effects, PlainEffects
from onrecord.turn.plan import Plan
from onrecord.turn.result import O, TurnResult
from onrecord.turn.turn import Turn

__all__ = ("Host",)

_PLAIN = PlainEffects()


class Host(Keeping, Generic[C, O]):
    """Runs ``agent`` for many sessions over ``store`` (default: in memory).

    ``given`` supplies context, options and history to turns that nobody is there to give them to; ``agents`` are
    others that a message may ask for by name; ``deliver`` carries messages out. ``retry`` are the seconds until a turn
    whose model failed is tried again, rung by rung (empty: it fails for good); ``turns`` is how many run here at once,
    ``hot`` how many sessions are kept ready. A lease lasts ``lease_s`` seconds and is renewed while its turn runs; what
    other processes put is seen within ``poll_s``. Several hosts, in any number of processes, may share a store; one
    that serves a single session (``only``) leaves what waits in others alone.

    It begins to serve when it is first used, and belongs to the event loop of that moment. Close it, or use it with
    ``async with``: then running turns end, and what waits is left to the next host.
    """

    def __init__(
        self, agent: Agent[C, O], *, store: Store | None = None, given: Give | None = None,
        agents: Mapping[str, Agent[Any, Any]] | None = None, deliver: Deliver | None = None,
        retry: Sequence[float] = LADDER, turns: int = 64, hot: int = 256, lease_s: float = 15.0, poll_s: float = 1.0,
        only: SessionKey | str | None = None, effects: Effects = _PLAIN,
    ) -> None:  # fmt: skip
        check_parts(agent, store, given, deliver)
        self.agent = agent
        self.store: Store = MemoryStore(bodies=agent.plan.codec.kinds.values()) if store is None else store
        if not is_count(hot, 0):
            raise ConfigurationError("hot= of a host is how many sessions are kept ready, from 0 on")
        plans = _plans(agents)
        self._setup = Setup(
            plan=agent.plan, plans=plans, store=self.store, effects=effects, name=effects.nonce(), given=given,
            deliver=deliver, retry=_ladder(retry), turns=turns, lease_s=lease_s, poll_s=poll_s,
            only=None if only is None else named(only),
        )  # fmt: skip
        self._toolsets = OpenToolsets(self._setup)
        self._desk = Desk(self._setup, HotSessions(hot, left=self._toolsets.left))

    # ---- inputs

    async def send(
        self, session: SessionKey | str, input: str | Input, *, busy: Busy = "queue", context: C | None = None,
        options: Sequence[object] = (),
    ) -> Ticket[O]:  # fmt: skip
        """Accepts an input: once this returns, it survives any crash.

        While a turn of the session runs, ``queue`` waits for it, ``supersede`` interrupts the messages before this
        one, ``reject`` raises SessionBusy. Wakes, events and answers are never superseded. An input with the key of
        one that waits is that one. A `Woke` with an ``at`` is taken then. ``options`` are stored with it; ``context``
        is not: it serves the first take, if that is here. Later ones have what ``given`` gives.
        """
        return await self._desk.send(session, input, busy, Asked(context=context, options=tuple(options)))

    async def turn(
        self, session: SessionKey | str, input: str | Input, *, context: C | None = None,
        options: Sequence[object] = (), history: Any = None, busy: Busy = "queue",
    ) -> TurnResult[O]:  # fmt: skip
        """Accepts an input and waits for its turn. Leaving early does not stop it: the turn is the host's.

        ``context`` and ``history`` serve the first take, if that is here; see `send`.
        Raises what `Agent.turn` raises. After a ModelError without ``result`` the input is still accepted, and tried
        again by and by.
        """
        asked = Asked(context=context, options=tuple(options), history=history)
        ticket = await self._desk.send(session, input, busy, asked)
        return cast(TurnResult[O], await ticket.result())

    def turn_stream(
        self, session: SessionKey | str, input: str | Input, *, context: C | None = None,
        options: Sequence[object] = (), history: Any = None, busy: Busy = "queue",
    ) -> HostStream[O]:  # fmt: skip
        """The same turn, read while it runs. Leaving the stream early lets the turn go on."""

        async def run(emit: Callable[[Delta], None], began: Callable[[Turn], None]) -> TurnResult[O]:
            asked = Asked(context=context, options=tuple(options), history=history, emit=emit)
            ticket = await self._desk.send(session, input, busy, asked)
            return cast(TurnResult[O], await ticket.result())

        return HostStream(run)

    def turn_sync(self, session: SessionKey | str, input: str | Input, **given: Any) -> TurnResult[O]:
        """`turn` for code without an event loop. The host then belongs to the loop in the background."""
        from onrecord.sync import run

        return run(self.turn(session, input, **given))

    def turn_stream_sync(
        self, session: SessionKey | str, input: str | Input, **given: Any
    ) -> Iterator[str | TurnResult[O]]:
        """Pieces of text as they arrive, and last the result."""
        from onrecord.sync import stream

        return stream(lambda: self.turn_stream(session, input, **given))

    async def answer(
        self, session: SessionKey | str, answer: Answered, *, caller: Caller = SPEAKER, context: C | None = None
    ) -> TurnResult[O]:
        """Answers the open question of a paused turn. UsageError for a caller it is not put to.

        Who answered is the caller, whatever ``answer.by`` says: the record and the tools read ``caller.name``. Only
        where no caller is named does ``by`` stand. An `Answered` given to `turn` or `send` is not checked.
        """
        await check_audience(self.store, session, answer, caller)
        return await self.turn(session, said_by(answer, caller), context=context)

    async def interrupt(self, session: SessionKey | str, by: Interruption) -> Told:
        """Stops the turn that ``by.turn`` names, or the running one. Waits until that is stored.

        ``recorded``; ``seen`` for an interruption with an id that came before; ``unknown`` for a turn that is not
        running and not in the conversation. Of a turn that closed before its words were heard, ``by.heard`` says how
        far they were.
        """
        return await self._desk.interrupt(session, by)

    # ---- what waits

    async def pending(self, session: SessionKey | str) -> list[Row]:
        """The rows of a session's inbox: running, waiting, timed and parked ones."""
        return await self._desk.pending(session)

    async def cancel_pending(self, session: SessionKey | str, keys: Sequence[str] | None = None) -> int:
        """Deletes inputs that nobody has begun to take (None: all of the session; timers included). How many."""
        return await self._desk.cancel(session, keys)

    def live(
        self,
        session: SessionKey | str,
        *,
        after: int = -1,
        place: Place | None = None,
        redacted: bool = True,
    ) -> AsyncGenerator[LiveItem, None]:
        """What happens in a session: committed entries behind number ``after``, and running text, until closed.

        After a reconnect give the last ``entry.seq`` and the last `Progress.place`: nothing is missing, and nothing
        comes twice. Of turns that other processes run only committed entries come. Entries, and calls that run, look
        as the `Redaction` of the agents says, and reasoning is left out where there is one; ``redacted=False`` is for
        readers who may see the record. What is being said goes as it is said: output rules decide about that.
        """
        return self._desk.live(session, after, place, redacted=redacted)

    # ---- its life

    async def work(self, *, once: bool = False) -> None:
        """Serves what is due until the host is closed: for processes that do nothing else.

        ``once``: until nothing is due and nothing runs here. Then a store that fails is told with its StoreError.
        """
        worker = self._desk.start()
        await (worker.settled() if once else self._desk.closed.wait())

    async def health(self) -> Health:
        """What runs, waits and was done here, in numbers. Counts up to 10,000 rows of each box."""
        return await health_of(self._setup, self._desk.worker)

    async def close(self, *, drain_s: float = 30.0) -> None:
        """Takes no more rows, lets running turns end within ``drain_s`` seconds, gives the others back.

        The store stays open: it may serve others. What toolsets keep open is closed. Safe to call twice.
        """
        await self._desk.close(drain_s)
        await self._toolsets.close()

    async def __aenter__(self) -> Self:
        self._desk.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _plans(agents: object) -> dict[str, Plan]:
    """Plans by the names that messages ask for."""
    if agents is None:
        return {}
    if not isinstance(agents, Mapping) or not all(isinstance(one, Agent) for one in agents.values()):
        raise ConfigurationError("agents= of a host are agents by name", hint='write agents={"sales": Agent(...)}')
    return {name: other.plan for name, other in agents.items()}


def _ladder(retry: object) -> tuple[float, ...]:
    if not isinstance(retry, Sequence):
        raise ConfigurationError("retry= of a host are seconds, rung by rung", hint="write retry=(60, 300)")
    return tuple(retry)
