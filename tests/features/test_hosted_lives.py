"""Lives of hosted agents that know and forget much, at random: builds and vendors change, people edit and erase.

Each message bears a word that is in no other. What was erased is in no file and in no request from then on.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord import Agent, Host, ModelError, Said, UsageError, tool
from onrecord.conversation.content import Text
from onrecord.conversation.identity import Identity
from onrecord.conversation.messages import AssistantMessage, UserMessage
from onrecord.conversation.transcript import messages_from
from onrecord.conversation.usage import Usage
from onrecord.governance import Budget
from onrecord.governance.budget import Limit
from onrecord.honesty import Commentary
from onrecord.host import Given
from onrecord.memory import Episodes, Facts, Memory, Recent, Summary
from onrecord.models.chunks import CallChunk, Chunk, Finished, TextChunk
from onrecord.models.model import scope_of
from onrecord.models.request import Request, Wire
from onrecord.prompt import Artifacts, CacheMarks, Compaction, RuntimeContext, Window
from onrecord.record.entry import Entry
from onrecord.session import Retention, refold
from onrecord.session.session import Session
from onrecord.skills import Engagement, Keywords, Route, Skill, SkillGraph, SkillStep, Start
from onrecord.stores import SqliteArtifacts, SqliteShelf, SqliteStore
from onrecord.testing import FakeEffects, ScriptedModel, shown
from tests.features.always import no_orphans
from tests.providers.vendor_rules import RULES
from tests.providers.wires import WIRES

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

MODELS = {wire: wire.make("http://127.0.0.1:9/v1", wire.vendors[-1]) for wire in WIRES}
WORD = re.compile(r"K\d+Z")
ACTS = ("say",) * 8 + ("edit", "remove", "import", "reset", "forget", "forget", "forget all", "expire") + ("build",) * 3


@tool
def look(what: str) -> str:
    """Looks."""
    return f"saw {what}, and rows " * (1 + len(what) % 9)


@tool
def one(what: str) -> str:
    """The first step."""
    return f"one {what}"


@tool
def two(what: str) -> str:
    """The second step."""
    return f"two {what}"


class Vendor:
    """A model on one of the wires: it says and calls what comes, with the word of the message that it answers."""

    def __init__(self, life: Life) -> None:
        self.life, self.real = life, life.rng.choice(list(MODELS.values()))
        self.card = self.real.card

    def wire(self, request: Request, /) -> Wire:
        return self.real.wire(replace(request, model=self.real))

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        """Anything: words, calls, nothing, or an error."""
        life, rng = self.life, self.life.rng
        life.check(request)
        usage = Usage(input_tokens=len(str(shown(request))) // 4, output_tokens=9)
        how = rng.choice(["words", "calls", "calls", "nothing", "server", "context"])
        if how in {"server", "context"}:
            raise ModelError("told by a test", kind=how)  # type: ignore[arg-type]  # both are kinds
        offered = [offer.tool.id for offer in request.offers]
        names = rng.choices(offered, k=rng.randint(1, 3)) if offered and how == "calls" else []
        if not names and how != "nothing":
            yield TextChunk(f"About {life.word}.")
        for n, name in enumerate(names):
            args = rng.choice([{"what": life.word}, {"id": "orders"}, {"reason": life.word}, {}])
            wire_id = rng.choice(["same", "", f"w{n}"])
            yield CallChunk(wire_id=wire_id, name=name, raw_args=json.dumps(args))
        yield Finished(finish="calls" if names else "stop", usage=usage)


def scribe() -> Any:
    """Who sums up: well, at length, not at all, or it fails."""
    return ScriptedModel(consult=["They met.", "", "x " * 9000, "They met again.", *["They met."] * 99])


class Life:
    """A session of a person, the files that it is kept in, and whatever build serves it now."""

    host: Host[Any, Any]

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng, self.folder, self.clock = random.Random(seed), folder, FakeEffects()  # noqa: S311 - a test's dice
        self.word, self.count, self.gone, self.requests = "", 0, set[str](), 0
        self.closing: list[Any] = []

    def agent(self, shelf: SqliteShelf, kept: SqliteArtifacts) -> Agent[Any, Any]:
        """Some build: what lets go of what was said is in all of them, the rest comes and goes, in any order."""
        rng = self.rng
        window = rng.choice([
            Window.last(rng.choice([1, 4]), slack=rng.choice([0, 3])), Window.budget(90, keep=rng.choice([1, 3])),
            Window.summarize(90, model=scribe(), keep=2), Compaction(90, keep=2),
            Window.by("odd", lambda seen: [at for at in range(-1, len(seen.units) + 2) if rng.random() < 0.5]),
        ])  # fmt: skip
        orders = Skill(
            "orders", "About orders.", "In this order.", tools=(one, two),
            steps=(SkillStep("one", "first"), SkillStep("two", "second")), on_skip=rng.choice(["advance", "hold"]),
            scoped=rng.random() < 0.5,
        )  # fmt: skip
        graph = SkillGraph(
            rng.sample([orders, Skill("refunds", "Gives back.", "Be kind.")], 2), check="off",
            start=[Start("orders", match=Keywords(["lamp"])), Start("refunds", match=Keywords(["back"]))],
            routes=[Route("orders", "refunds", on_tool="two"), Route("refunds", "orders")],
            continuity=rng.choice(["turn", "conversation"]), engagement=Engagement(rng.choice([1, 2])),
        )  # fmt: skip
        optional: list[Any] = [
            window, graph, RuntimeContext(providers=(lambda _: "rain",)), CacheMarks(), Budget(Limit(tokens=10**7)),
            Commentary(tell=lambda *_: None),
        ]  # fmt: skip
        strategies = (Recent(4), Facts(), Episodes(2), Summary(recent=2, size=4, model=scribe()))
        memory = Memory(shelf, tuple(rng.sample(strategies, 2)))
        features = [memory, Artifacts(60, store=kept), *rng.sample(optional, rng.randint(2, len(optional)))]
        rng.shuffle(features)
        return Agent(Vendor(self), name="a", instructions="You help.", tools=[look], features=features, rounds=4)

    async def build(self) -> None:
        """A newer build takes over what is on disk."""
        await self.close()
        shelf, kept = SqliteShelf(self.folder / "shelf.db"), SqliteArtifacts(self.folder / "kept.db")
        agent = self.agent(shelf, kept)
        store = SqliteStore(self.folder / "s.db", bodies=agent.plan.codec.kinds.values(), clock=self.clock.now)

        async def given(*_: Any) -> Given[Any]:
            return Given(owner=Identity(principal="ana"))

        self.host = Host(agent, store=store, effects=self.clock, given=given, retry=())
        self.closing = [self.host, store, shelf, kept]

    async def close(self) -> None:
        """Everything that is open."""
        for each in self.closing:
            await each.close()

    def check(self, request: Request) -> None:
        """It keeps the rules of every vendor, shows the message that it is about, and nothing that was erased."""
        self.requests += 1
        told = str(shown(request))
        assert not self.gone & set(WORD.findall(told))
        if request.purpose == "consult":
            return
        assert self.word in str(shown(request)["messages"])
        for wire, model in MODELS.items():
            body = json.loads(
                model.wire(replace(request, model=model, scope=scope_of(model.card, "s"), wire=None)).body
            )
            RULES[wire.name](body)
            if wire.name != "google" or '"id"' in json.dumps(body):
                no_orphans(wire, request)

    async def act(self, act: str) -> None:
        """One thing that people or the application do."""
        rng, host, held = self.rng, self.host, await self.host.store.load("s")
        messages: Sequence[Any] = () if held is None else held.conversation.messages
        calls = [(m, c) for m in messages if isinstance(m, AssistantMessage) for r in m.rounds for c in r.calls]
        self.count += 1
        word = f"K{self.count}Z"
        if act == "build":
            await self.build()
        elif act == "say":
            self.word = word
            await host.turn("s", Said(f"{rng.choice(['my lamp', 'money back', 'my name is Ana'])} {word}"))
        elif act == "edit" and calls:
            message, made = rng.choice(calls)
            await host.edit_result("s", message.id, made.id, (Text("edited"),), by="desk")
        elif act == "remove" and messages:
            await host.remove("s", rng.choice(messages).id, by="desk")
        elif act == "import":
            asked = [{"id": "same", "name": "look", "arguments": "{}"}, {"id": "x", "name": "lo ok", "arguments": "{"}]
            old: list[Any] = [
                {"role": "user", "content": word},
                {"role": "assistant", "content": "", "tool_calls": asked},
            ]
            await host.import_history("s", messages_from(old, f"h{self.count}-"), by="desk")
        elif act == "reset":
            await host.reset("s", by="desk")
        elif act == "forget" and messages:
            await self.forget(held, rng.choice(messages).id)
        elif act == "forget all":
            await host.erase("s", why="asked")
            self.buried({f"K{n}Z" for n in range(1, self.count)})
        elif act == "expire":
            self.clock.advance(seconds=100)
            await host.expire(Retention(entries=timedelta(seconds=rng.choice([0, 150]))))

    async def forget(self, held: Session | None, id: str) -> None:
        """A message with its turn: the words of people that are no more in the conversation are nowhere."""
        await self.host.erase("s", messages=[id], why="asked")
        after = await self.host.store.load("s")
        texts = [
            {word for m in each.conversation.messages if isinstance(m, UserMessage) for word in WORD.findall(m.text)}
            for each in (held, after) if each is not None
        ]  # fmt: skip
        self.buried(texts[0] - texts[1])

    def buried(self, words: set[str]) -> None:
        """They are in no file."""
        self.gone |= words
        for path in self.folder.iterdir():
            assert not {word for word in words if word.encode() in path.read_bytes()}, path.name

    async def judge(self) -> None:
        """The record folds to the session that is stored, and can be told."""
        held = await self.host.store.load("s")
        if held is not None:
            entries: list[Entry] = [entry async for entry in self.host.store.entries("s")]
            told = refold(held.key, entries, digest_key=held.digest_key)
            assert replace(told, version=held.version, owner=held.owner, slots={}) == replace(held, slots={})
            assert len(list(Commentary().sentences(entries))) <= len(entries)


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_in_a_life_its_promises_hold(seed: int, tmp_path: Path) -> None:
    """Requests are what every vendor takes, records fold, and what was erased is gone."""
    life = Life(seed, tmp_path)
    await life.build()
    for _ in range(30):
        with suppress(ModelError, UsageError):  # what people are told, and no more
            await life.act(life.rng.choice(ACTS))
        await life.judge()
    assert life.requests > 5
    await life.close()
