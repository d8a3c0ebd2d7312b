"""Random talks: an agent that can do everything, and a session that meets it in every way, entry by entry on record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Literal, TypeVar, cast

from msgspec import json
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Text
from onrecord.conversation.conversation import Conversation, units_of
from onrecord.conversation.identity import SessionKey
from onrecord.conversation.inputs import Answered, Ask, Happened, Input, Interruption, Said, Woke
from onrecord.conversation.messages import AssistantMessage, Round, ToolCall, UserMessage
from onrecord.conversation.outgoing import Delta, Outcome, TextDelta
from onrecord.errors import ModelError, TurnError
from onrecord.governance.rules import after_tool, before_tool, on_input, on_output
from onrecord.jsonio import Json
from onrecord.record.entry import Entry
from onrecord.record.kinds import ContextAdded, TurnOpened
from onrecord.session import pack, refold, unpack
from onrecord.session.codec import dumps_session
from onrecord.session.history import edit_result, import_messages, interrupt_closed, remove_message, reset
from onrecord.session.session import Session
from onrecord.session.store import Change, Store
from onrecord.testing import FakeEffects, ScriptedModel, call, raises
from onrecord.tools.tool import ToolContext
from onrecord.turn.director import Brief, Stage
from onrecord.turn.moments import Allow, Answer, Deny, Hooks, Returned, Revise
from onrecord.turn.result import TurnResult
from onrecord.turn.take import Order, take
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, tool
from tests.turn.pausing.asking import Acting, asks, sizes

__all__ = ("Names", "Talk", "everything", "plain")

T = TypeVar("T")
AT = FakeEffects().at

TOOLS = ("look", "look", "note", "boom", "form", "order", "sizes", "pay", "never", "gone", "halt", "stop")
WORDS = ("Fine.", "It is 7.", "secret", "", "Two words")


class Names:
    """A fold that lists the tools that returned."""

    version, state = 1, list[str]
    kinds = frozenset({"tool.returned"})

    def __init__(self, name: str, scope: Literal["session", "turn"] = "session", *, unfinished: bool = False) -> None:
        self.name, self.unfinished = name, unfinished
        self.scope: Literal["session", "turn"] = scope

    def start(self) -> list[str]:
        return []

    def apply(self, state: list[str], entry: Entry, /) -> list[str]:
        return [*state, getattr(entry.body, "name", "")]


def told(turn: Turn) -> Mapping[str, Any]:
    """What this take's draw says about questions."""
    return cast(Mapping[str, Any], turn.context)


@before_tool
async def guarding(turn: Turn, call: ToolCall) -> Allow[Mapping[str, Json]] | Deny | Ask:
    """Asks, denies, halts or rewrites, by the tool's name."""
    match call.name:
        case "pay":
            return Ask("Pay?", on_message=told(turn)["on_message"])
        case "never":
            return Deny("never")
        case "halt":
            return Deny("enough", halt=True)
        case "look":
            return Allow({**call.args, "seen": True}, "marked")
    return Allow()


@on_output
async def judging(turn: Turn, answer: Answer) -> Allow[Answer] | Deny | Revise:
    """Refuses secrets, wants no sevens, and rewrites pairs of words."""
    if "secret" in answer.text:
        return Deny("a secret")
    if "7" in answer.text:
        return Revise("no sevens")
    if "Two" in answer.text:
        return Allow(replace(answer, text="Rewritten."), "shorter")
    return Allow()


@on_input
async def admitting(turn: Turn, given: Input) -> Allow[Input] | Deny:
    """Denies what is rude."""
    return Deny("rude") if getattr(given, "content", "") == "rude" else Allow()


async def batching(turn: Turn, held: Round) -> Round | Ask:
    """Asks about a whole batch where the talk says so."""
    asking = told(turn)["batch"] and held.calls and turn.resumed is None and turn.session.pending is None
    return Ask("All of it?") if asking else held


def note(args: object, ctx: ToolContext[Any]) -> str:
    """Keeps something."""
    ctx.set({"notes": [*ctx.data.get("notes", []), ctx.key]})
    return "noted"


def boom(args: object, ctx: object) -> None:
    """Fails."""
    raise RuntimeError("boom")


async def stop(args: object, ctx: Any) -> str:
    """A person stops the turn while this runs."""
    ctx.turn.interrupt(Interruption(id=f"{ctx.turn.id}/i", turn=ctx.turn.id))
    return "stopping"


@after_tool
async def adding(turn: Turn, returned: Returned) -> Allow[Returned]:
    """Puts text into the conversation while calls run."""
    if returned.call.name == "note":
        turn.note(ContextAdded(content=(Text("noted"),), writer="adding"))
    return Allow()


async def errands(turn: Turn, stage: Stage) -> None:
    """Says a line, acts, speaks twice, and notes something in between; each verb may ask."""
    stage.outcome(Outcome(kind="errand", status="started"))
    await stage.say("One moment.", key="main/first")
    for verb, errand in (("look", tool("look")), ("order", tool("order", asks())), ("pay", tool("pay"))):
        if (await stage.act(errand, {}, key=verb)).asked is not None:
            return
    if (await stage.speak(Brief(key="main"))).asked is not None:
        return
    if turn.answer is None:
        turn.note(ContextAdded(content=(Text("between"),), writer="errands"))
    await stage.speak(Brief(key="again", rounds=1))


def everything(model: ScriptedModel, *, held: bool, directed: bool) -> Agent[Any, str]:
    """An agent with every way to answer, ask, deny, fail and stop; ``held`` also judges its answers."""
    tools = [
        tool("look", read_only=True), tool("note", note), tool("boom", boom), tool("form", lambda *_: Ask("Form?")),
        tool("order", asks()), tool("sizes", sizes), tool("pay"), tool("never"), tool("halt"), tool("stop", stop),
    ]  # fmt: skip
    folds = (Names("returned"), Names("turn", "turn"), Names("ever", unfinished=True))
    features: list[Any] = [guarding, adding, admitting, Named("batches", Hooks(on_reply=batching, folds=folds))]
    return Agent(
        model, tools=tools, features=[*features, judging] if held else features, instructions="Be kind.",
        director=Acting(errands) if directed else None,
    )  # fmt: skip


def plain(session: Session) -> object:
    """Everything that a session is, in no order of names."""
    return json.decode(dumps_session(session))


class Talk:
    """A session to which a drawn seed happens. ``entries`` is its whole record, ``session`` where it stands."""

    def __init__(self, seed: int, store: Store | None = None) -> None:
        self.random, self.store = Random(seed), store  # noqa: S311 - a talk is drawn, not a secret
        self.model = ScriptedModel()
        self.agent = everything(self.model, held=self.chance(2), directed=self.chance(3))
        self.session: Session | None = None
        self.entries: list[Entry] = []
        self.keys: list[str] = []
        self.outside: set[str] = set()
        self.steps: list[Callable[[], Any]] = [self.says] * 3 + [self.happens] + [self.answers] * 3

    @property
    def held(self) -> Session:
        """The session, once there is one."""
        assert self.session is not None
        return self.session

    async def step(self) -> None:
        """One thing that happens to the session."""
        await self.any_of(self.steps)()
        if self.session is not None and self.chance(4):
            self.session = unpack(pack(self.session))

    def chance(self, of: int) -> bool:
        """True once in so many times."""
        return self.random.randrange(of) == 0

    def any_of(self, choices: Sequence[T]) -> T:
        """One of them."""
        return self.random.choice(choices)

    # ---- inputs

    async def says(self) -> None:
        """A person writes; now and then what was written before comes again."""
        if self.keys and self.chance(6):
            before = self.session
            result = await self.take(Said("again", key=self.any_of(self.keys)))
            assert result is not None
            assert (result.status, result.changed, result.session) == ("ignored", False, before)
            return
        text = self.any_of(["hi"] * 7 + ["rude"])
        key = f"m{len(self.entries)}" if self.chance(2) else None
        await self.take(Said(text, key=key))

    async def happens(self) -> None:
        """Something other than a message arrives."""
        key = f"e{len(self.entries)}"
        await self.take(Happened("rain", key=key) if self.chance(2) else Woke("w"))

    async def answers(self) -> None:
        """A person answers the open question, or one that is not open."""
        question = None if self.session is None else self.session.question
        approved = self.any_of([True, True, True, False, None if question is None or not question.decision else True])
        given = Answered(question.key if question else "s/q9", approved=approved, value="XL", by="ana")
        result = await self.take(given)
        assert question or (result and result.status == "ignored")

    async def take(self, input: Input) -> TurnResult[Any] | None:
        """One take, read along or not; what came of it is kept and checked. None where the model failed unseen."""
        self.model.add(*self.script())
        context = {
            "on_message": self.any_of(["hold", "drop", "answer"]),
            "batch": self.chance(6),
        }
        turns: list[Turn] = []
        order = Order(
            input=input, session=self.session or SessionKey("s"), context=context, began=turns.append,
            emit=partial(self.reads, turns) if self.chance(2) else None, history=self.elsewhere(input),
        )  # fmt: skip
        try:
            result = await take(self.agent.plan, order, FakeEffects())
        except (TurnError, ModelError) as failed:
            if failed.result is None:
                return None
            result = failed.result
        finally:
            self.model._queues["speak"].clear()
        if result.changed:
            self.learn(input)
            await self.keep(result.change())
        return result

    def reads(self, turns: list[Turn], delta: Delta) -> None:
        """A reader, who now and then stops the turn in the middle of its words."""
        if isinstance(delta, TextDelta) and self.chance(12):
            turns[0].interrupt(Interruption(id=f"i{self.random.randrange(9)}", turn=turns[0].id, cause="left"))

    def elsewhere(self, input: Input) -> Conversation | None:
        """A history of the caller's, for some turns from their beginning to their end."""
        pending = self.session.pending if self.session else None
        answers = isinstance(input, Answered) or (pending and pending.question.on_message == "answer")
        may = pending is not None and pending.outside if answers else self.chance(8)
        return Conversation.of([UserMessage(id="h0", content=(Text("earlier"),))]) if may else None

    def learn(self, input: Input) -> None:
        """A key that the session knows from now on."""
        key = getattr(input, "key", None)
        if isinstance(input, Said) and key is not None:
            self.keys.append(key)

    def script(self) -> list[Any]:
        """What the model says in one take, with an end at which it always answers."""
        return [*(self.reply() for _ in range(self.random.randrange(4))), *["Enough."] * 12]

    def reply(self) -> Any:
        """One reply: words, calls behind words, a failure."""
        calls: list[Any] = [call(self.any_of(TOOLS), n=1) for _ in range(self.random.randint(1, 3))]
        kinds = [self.any_of(WORDS), calls, calls, [self.any_of(WORDS), *calls]]
        return self.any_of([raises("rate"), ["He", raises("network")]] if self.chance(12) else kinds)

    # ---- history

    def may_change_history(self) -> None:
        """From now on messages may also be edited, removed, imported and reset, and heard only in part."""
        self.steps += [self.edits, self.removes, self.imports, self.resets, self.was_heard]

    async def edits(self) -> None:
        """Another result for some call."""
        found = [
            (m.id, c.id)
            for m in (self.session.conversation.messages if self.session else ())
            if isinstance(m, AssistantMessage)
            for r in m.rounds
            for c in r.calls
        ]
        if found:
            message, called = self.any_of(found)
            await self.changes(edit_result, message, called, (Text("edited"),))

    async def removes(self) -> None:
        """A message less."""
        if self.session is not None and len(self.session.conversation.messages):
            ids = [m.id for m in self.session.conversation.messages]
            await self.changes(remove_message, self.any_of(ids))

    async def imports(self) -> None:
        """A message from elsewhere."""
        if self.session is not None:
            await self.changes(import_messages, [UserMessage(id=f"old{len(self.entries)}", content=(Text("old"),))])

    async def resets(self) -> None:
        """Everything forgotten, seldom."""
        if self.session is not None and self.chance(4):
            await self.changes(reset)

    async def changes(self, change: Callable[..., Change], *what: object) -> None:
        """A change of history by a person."""
        await self.keep(change(self.held, *what, by="ana", at=AT, folds=self.agent.plan.folds))

    async def was_heard(self) -> None:
        """An answer that was spoken over, learned late."""
        said = (
            [m for m in self.session.conversation.messages if isinstance(m, AssistantMessage)] if self.session else []
        )
        if said:
            message = self.any_of(said)
            heard = self.random.randrange(4)
            id = f"late{self.random.randrange(4)}"
            by = Interruption(id=id, turn=message.turn, heard=heard)
            change = interrupt_closed(self.held, by, at=AT, folds=self.agent.plan.folds)
            if change is not None:
                await self.keep(change)

    # ---- what must hold

    async def keep(self, change: Change) -> None:
        """The change is stored, and everything that must hold of a session and its record does."""
        self.entries += change.entries
        self.outside |= {e.turn for e in change.entries if isinstance(e.body, TurnOpened) and e.body.outside}
        self.session = change.session if self.store is None else await self.store.commit(change)
        told = refold(self.held.key, self.entries, self.agent.plan.folds, digest_key=self.held.digest_key)
        assert plain(replace(told, version=self.held.version)) == plain(self.held)
        messages = list(self.held.conversation.messages)
        assert [unit for m in messages for unit in units_of(m)] == list(self.held.conversation.units)
        assert list(told.conversation.units) == list(self.held.conversation.units)
        assert [entry.seq for entry in self.entries] == list(range(self.held.seq))
        assert len({(e.turn, e.n) for e in self.entries}) == len(self.entries)
        assert len({m.id for m in messages}) == len(messages)
