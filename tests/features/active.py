"""Every feature with something to do in the talk, and what it promises: alone, and beside any other."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from onrecord.conversation.content import Text, plain_text
from onrecord.conversation.inputs import Ask, Said
from onrecord.conversation.messages import ContextMessage
from onrecord.conversation.render import context_text
from onrecord.errors import OutputInvalid
from onrecord.governance import (
    Budget,
    CheckIn,
    Credential,
    Credentials,
    Limit,
    NeedsCheckIn,
    NeedsCredential,
    Permissions,
    Policy,
    Redaction,
    after_tool,
    before_tool,
    credential,
    on_input,
    on_output,
)
from onrecord.governance.budget import spent
from onrecord.governance.ledger import Ticked
from onrecord.honesty import Commentary, SelfExplain
from onrecord.memory import Corpus, Document, Facts, Memory, PlainShelf, Recent, Retrieve
from onrecord.memory.documents import passages_of
from onrecord.models.request import Request
from onrecord.prompt import (
    Artifacts,
    CacheMarks,
    Choose,
    Compaction,
    Degrade,
    Media,
    PromptBudget,
    RuntimeContext,
    Thinking,
    Window,
)
from onrecord.prompt.artifact_entries import ArtifactMinted
from onrecord.prompt.window.evicted import Evicted, Pressure
from onrecord.record.entry import kind_of
from onrecord.record.kinds import ModelReplied, ToolReturned, TurnOpened, TurnPaused
from onrecord.skills import Keywords, Skill, SkillGraph, Skills, Start
from onrecord.telemetry import Logs
from onrecord.testing import shown
from onrecord.tools.tool import Tool
from onrecord.turn.answer import Typed
from onrecord.turn.instruction import Instruction, OnReturn
from onrecord.turn.moments import Allow, Deny, Rank, Watch
from onrecord.turn.plan import Bundle
from tests.features.always import shown_units
from tests.features.idle import Words, with_trait
from tests.features.talk import CARD, LONG, REFUND, USED, Made, Play, Talker, said_last

__all__ = ("ACTIVE", "EXCLUDE", "Active")

Active = tuple[Made, Callable[[Play], None]]
"""A feature at work, and its promise: a check of a talk that was had with it."""

EXCLUDE: Mapping[frozenset[str], tuple[str, str]] = {
    frozenset({"window", "compaction"}): ("window", "compaction"),
    frozenset({"skills", "skill graph"}): ("Skills", "SkillGraph"),
}
"""The pairs that one agent cannot have, with the words by which the error names both."""


def everything(requests: list[Request]) -> str:
    """All that some requests show."""
    return "".join(str(shown(request)) for request in requests)


def system_of(request: Request) -> str:
    """The system text of a request."""
    return str(shown(request)["system"])


def statuses(play: Play, tool: str) -> list[str]:
    """How the calls of a tool ended."""
    return [body.status for body in play.bodies(ToolReturned) if body.name == tool]


def times(play: Play, tool: str) -> int:
    """How often a tool ran."""
    return sum(name == tool for name, _ in play.ran)


# ---- rules and permissions ------------------------------------------------------------------------------------------


def input_rule() -> Active:
    """Masks a card number, and lets nobody drop a table."""

    @on_input
    def no_cards(turn: Any, input: Any) -> Any:
        if not isinstance(input, Said):
            return Allow()
        if "drop table" in plain_text(input.content):
            return Deny("no deleting")
        if "4111-1111" not in (words := plain_text(input.content)):
            return Allow()
        return Allow(replace(input, content=(Text(words.replace("4111-1111", "[card]")),)), "a card number")

    def keeps(play: Play) -> None:
        assert "[card]" in everything(play.of("#1"))
        assert "4111" not in everything(play.model.requests) + play.streamed
        assert not play.of("#5")
        assert [result.status for result in play.results].count("refused") >= 1

    return Made(features=(no_cards,)), keeps


def call_rule() -> Active:
    """Lets nothing be removed."""

    @before_tool
    async def no_removing(turn: Any, call: Any) -> Any:
        return Deny("no removing") if call.name == "rm" else Allow()

    def keeps(play: Play) -> None:
        assert times(play, "rm") == 0
        assert statuses(play, "rm") == ["denied"]

    return Made(features=(no_removing,)), keeps


def asking_rule() -> Active:
    """Asks before mail is sent."""

    @before_tool
    def sure(turn: Any, call: Any) -> Any:
        return Ask("Send it?") if call.name == "mail" and turn.resumed is None else Allow()

    def keeps(play: Play) -> None:
        asked = [body for body in play.bodies(TurnPaused) if body.pending.question.by == "sure"]
        assert len(asked) == times(play, "mail") == 1

    return Made(features=(sure,)), keeps


def result_rule() -> Active:
    """Takes a token out of results."""

    @after_tool
    def no_tokens(turn: Any, returned: Any) -> Any:
        parts = tuple(
            replace(part, text=part.text.replace("abc123", "[cut]")) if isinstance(part, Text) else part
            for part in returned.content
        )
        return Allow() if parts == returned.content else Allow(replace(returned, content=parts), "a token")

    def keeps(play: Play) -> None:
        assert "[cut]" in everything(play.of("#2")) or play.bodies(ArtifactMinted)
        assert "abc123" not in everything(play.model.requests) + play.streamed + str(play.bodies(TurnPaused))
        assert "abc123" not in str([args for name, args in play.ran if name == "count"])

    return Made(features=(no_tokens,)), keeps


def output_rule() -> Active:
    """Lets no promise out."""

    @on_output
    def no_promises(turn: Any, answer: Any) -> Any:
        return Deny("a promise") if "guarantee" in answer.text else Allow()

    def keeps(play: Play) -> None:
        assert "guarantee" not in play.streamed
        assert play.of("#4")
        assert "guarantee" not in everything(play.requests)
        assert "refused" in [result.status for result in play.results]

    return Made(features=(no_promises,)), keeps


def closing_rule() -> Active:
    """Signs every answer."""

    @on_output
    def signed(turn: Any, answer: Any) -> Any:
        return Allow(replace(answer, text=answer.text + " (the desk)"), "signed")

    def keeps(play: Play) -> None:
        said = [result.text for result in play.results if result.status == "answered"]
        assert said
        assert all(text.endswith(" (the desk)") and text.count("(the desk)") == 1 for text in said)

    return Made(features=(signed,)), keeps


def permissions() -> Active:
    """Nobody may remove anything, nor see that it could be."""
    policy = Policy(name="no-rm", tools=("rm",), then="deny")

    def keeps(play: Play) -> None:
        assert times(play, "rm") == 0
        assert statuses(play, "rm") == ["denied"]
        assert not any(offer.tool.id == "rm" for request in play.requests for offer in request.offers)

    return Made(features=(Permissions(policies=(policy,)),)), keeps


def check_in() -> Active:
    """A person lets each payment go ahead."""

    def keeps(play: Play) -> None:
        (asked,) = (body for body in play.bodies(TurnPaused) if body.pending.question.by == "check-in")
        assert [args for name, args in play.ran if name == "pay"] == [{"amount": 200}]
        assert asked.pending.question.detail["will_do"]["args"] == {"amount": "200"}

    return Made(features=(CheckIn(),), dress={"pay": with_trait(NeedsCheckIn("always"))}), keeps


def credentials() -> Active:
    """Lends mail a secret, which its handler repeats."""

    async def source(wanted: Any) -> Credential:
        return Credential("s3cr3t-value")

    def dress(tool: Tool) -> Tool:
        handler = tool.handler

        async def run(args: Any, ctx: Any) -> str:
            return f"{await handler(args, ctx)} with {credential(ctx).secret}"

        return with_trait(NeedsCredential(service="mail"))(replace(tool, handler=run))

    def keeps(play: Play) -> None:
        assert times(play, "mail") == 1
        assert statuses(play, "mail") == ["returned"]
        assert "s3cr3t" not in everything(play.model.requests) + play.streamed + str(play.watched)

    return Made(features=(Credentials(source),), dress={"mail": dress}), keeps


def budget() -> Active:
    """Counts every call of a model."""

    def keeps(play: Play) -> None:
        ticks, replies = play.bodies(Ticked), play.bodies(ModelReplied)
        assert len(ticks) == len(replies)
        counted = [spent(session).tokens_input for session in play.sessions.values()]
        assert sum(counted) == len(replies) * USED.input_tokens

    return Made(features=(Budget(Limit(tokens=10**6)),)), keeps


def redaction() -> Active:
    """Nobody outside sees the word ``zebra``."""

    def keeps(play: Play) -> None:
        assert "zebra" in str(play.entries)
        assert len(play.watched) == len(play.entries)
        assert "zebra" not in str([entry.body for entry in play.watched])

    return Made(features=(Redaction(patterns=["(?i)zebra"]),)), keeps


# ---- prompt ---------------------------------------------------------------------------------------------------------


def window() -> Active:
    """Six units, and who must stay."""

    def keeps(play: Play) -> None:
        assert play.bodies(Evicted)
        (last,) = play.of("#7")
        assert 0 not in shown_units(last)
        assert len(shown_units(last)) <= 6 + 2  # and the last results of two tools

    return Made(features=(Window.last(6),)), keeps


def compaction() -> Active:
    """Sums up what is older."""

    def keeps(play: Play) -> None:
        (last,) = play.of("#7")
        assert "summarised" in [body.how for body in play.bodies(Evicted)]
        inserts = [context_text(span) for span in last.view.spans if isinstance(span, ContextMessage)]
        assert sum("[Conversation Summary]" in text for text in inserts) == 1
        assert 0 not in shown_units(last)

    return Made(features=(Compaction(250, keep=2),)), keeps


def artifacts() -> Active:
    """Stores what is long, and ``count`` spends the ticket."""
    held = Artifacts(200)

    def keeps(play: Play) -> None:
        minted = [body for body in play.bodies(ArtifactMinted) if body.what == "tool-result/look"]
        assert len(minted) == 1
        assert LONG[:60] not in everything(play.requests)
        assert minted[0].ref in everything(play.of("#2"))
        (rows,) = (args["rows"] for name, args in play.ran if name == "count")
        assert rows.startswith(LONG[:60])

    return Made(features=(held,), dress={"count": held.wants(rows="tool-result/look")}), keeps


def context() -> Active:
    """It rains."""

    def sky(key: Any) -> str:
        return "rain"

    def keeps(play: Play) -> None:
        for request in play.requests:
            told = [piece.text for piece in request.pieces if piece.place == "turn"]
            assert [text for text in told if "rain" in text] == ["[Context]\n- sky: rain"]

    return Made(features=(RuntimeContext(providers=(sky,)),)), keeps


def cache_marks() -> Active:
    """Marks what comes again, for the vendor that wants to be told."""

    def keeps(play: Play) -> None:
        marked = [request for request in play.requests if request.model.card.cache_marks]
        assert len(marked) > 5
        for request in marked:
            head = request.view.head
            assert head is not None
            assert head.tools
            system = [piece for piece in request.pieces if piece.place == "system"]
            assert head.system >= 1
            assert all(piece.cache in {"always", "while_active"} for piece in system[: head.system])
            assert set(request.view.marks) <= set(shown_units(request))

    return Made(features=(CacheMarks(),)), keeps


def prompt_budget() -> Active:
    """Tells of every request that its system text is too long."""

    def keeps(play: Play) -> None:
        told = [body for body in play.bodies(Pressure) if body.slot == "system-prompt"]
        assert [body.projected for body in told] == [len(system_of(request)) for request in play.requests]

    return Made(features=(PromptBudget(3),)), keeps


def thinking() -> Active:
    """Asks for thought, and keeps nothing of it."""

    def keeps(play: Play) -> None:
        assert all(request.settings.thinking == 1024 for request in play.requests)
        assert "ponder" not in play.streamed + str(play.entries)

    return Made(features=(Thinking(1024, handler=lambda _: ""),)), keeps


def media() -> Active:
    """Every request may show pictures by their words, and leave out what cannot be sent."""

    def keeps(play: Play) -> None:
        assert all(request.view.stand_ins and request.view.degrade for request in play.requests)

    return Made(features=(Media(), Degrade())), keeps


def choose() -> Active:
    """Another model looks."""
    other = Talker(replace(CARD, model="two", cache_marks=False))

    def chosen(turn: Any, request: Request) -> Any:
        if not said_last(request).startswith("#2"):
            return None
        other.requests = getattr(request.model, "requests", [])
        return other

    def keeps(play: Play) -> None:
        models = {request.model.card.model for request in play.of("#2")}
        assert models == {"two"}
        assert {request.model.card.model for request in play.of("#7")} == {"one"}

    return Made(features=(Choose(chosen),)), keeps


# ---- instructions ---------------------------------------------------------------------------------------------------


def instructions() -> Active:
    """A fact, an instruction, one behind a look and one with numbers, in the order of their ranks."""
    features = (
        Instruction("Be brief.", name="brief"),
        Instruction("It is noon.", rank=Rank.FACT, name="noon"),
        Instruction("You looked.", only_if=OnReturn("look"), name="looked"),
        Instruction("Action {{action}}/{{action_budget}}.", template=True, name="left"),
    )

    def keeps(play: Play) -> None:
        for request in play.requests:
            text = system_of(request)
            assert 0 <= text.index("You help.") < text.index("It is noon.") < text.index("Be brief.")
        assert [request for request in play.requests if "You looked." in system_of(request)] == play.of("#2")[1:2]
        told = [re.findall(r"Action (\d+)/(\d+)\.", system_of(request)) for request in play.of("#2")]
        assert told == [[(str(number), "6")] for number in range(1, len(told) + 1)]

    return Made(features=features), keeps


def bundle() -> Active:
    """A text and a rule that come together."""
    seen: list[str] = []

    @before_tool
    def counts(turn: Any, call: Any) -> Any:
        seen.append(call.name)
        return Allow()

    def keeps(play: Play) -> None:
        assert all("A bundle." in system_of(request) for request in play.requests)
        assert {body.manifest["bundles"]["desk"] for body in play.bodies(TurnOpened)} == {"1"}
        assert {name for name, _ in play.ran} <= set(seen)

    return Made(features=(Bundle(name="desk", version="1", features=(Instruction("A bundle."), counts)),)), keeps


def typed() -> Active:
    """Answers are values of a type, or it is said who broke them."""

    def keeps(play: Play) -> None:
        for result in play.results:
            if result.status != "answered":
                continue
            try:
                assert isinstance(result.output, Words)
            except OutputInvalid as unmet:
                assert "rewrote it" in str(unmet)  # noqa: PT017 - only where another rule did that
                assert result.text.endswith("(the desk)")

    return Made(features=(Typed(),), given={"output": Words}), keeps


# ---- memory and skills ----------------------------------------------------------------------------------------------


def data_of(request: Request) -> list[str]:
    """What a request shows as data."""
    return [context_text(span) for span in request.view.spans if isinstance(span, ContextMessage)]


def memory() -> Active:
    """Knows a person from one conversation to the next."""

    def keeps(play: Play) -> None:
        (asked,) = play.of("#8")
        (told,) = (text for text in data_of(asked) if text.startswith("[Remembered]"))
        assert "name: Ana" in told
        assert told.count("<memory ") == told.count("</memory>") >= 1
        assert "Remembered" not in system_of(asked)

    return Made(features=(Memory(PlainShelf(), (Facts(), Recent(4))),)), keeps


def retrieve() -> Active:
    """Shows a passage about zebras while a turn is about them."""
    text = "Zebras are allowed in the garden."
    corpus = Corpus(passages_of(Document("garden", text), [(0, len(text))]))

    def keeps(play: Play) -> None:
        told = [[one for one in data_of(request) if one.startswith("[Sources]")] for request in play.of("#2")]
        assert len(told) >= 2
        assert told == [told[0]] * len(told)
        assert [one.count("<source ") for one in told[0]] == [1]
        assert all("the garden." not in system_of(request) for request in play.requests)

    return Made(features=(Retrieve(corpus),)), keeps


REFUNDS = Skill("refunds", "How to refund.", "Ask for the order.", tools=(REFUND,), scoped=True)


def skills() -> Active:
    """The model takes a skill up, and has its tool from then on."""

    def keeps(play: Play) -> None:
        requests = play.of("#3")
        offered = [any(offer.tool.id == "refund" for offer in request.offers) for request in requests]
        assert offered == [False] + [True] * (len(requests) - 1)
        assert ["Ask for the order." in system_of(request) for request in requests] == offered
        assert times(play, "refund") == 1
        assert not any("Ask for the order." in system_of(request) for request in play.of("#7"))

    return Made(features=(Skills(REFUNDS),)), keeps


def skill_graph() -> Active:
    """A message about refunds begins at the skill for them."""
    graph = SkillGraph(
        [REFUNDS], start=[Start("refunds", match=Keywords(["refunds"]))], scope_tools=True, check="off"
    )  # fmt: skip

    def keeps(play: Play) -> None:
        assert all("Ask for the order." in system_of(request) for request in play.of("#3"))
        assert times(play, "refund") == 1
        for request in (*play.of("#2"), *play.of("#7")):
            assert "Ask for the order." not in system_of(request)
            assert not any(offer.tool.id == "refund" for offer in request.offers)

    return Made(features=(graph,)), keeps


# ---- those who tell -------------------------------------------------------------------------------------------------


def self_explain() -> Active:
    """The model reads what it did."""
    plays: list[Play] = []

    def entries(key: Any, /, *, after: int = -1) -> Any:
        return plays[0].store.entries(key, after=after)

    def keeps(play: Play) -> None:
        assert statuses(play, "run_overview") == ["returned"]
        assert "abc123" not in everything(play.of("#6")) or "abc123" in everything(play.of("#2"))

    return Made(features=(SelfExplain(entries=entries),), began=plays.append), keeps


def commentary() -> Active:
    """Tells of every entry as it may be seen, and shows no words of anybody."""
    told: list[str] = []

    def keeps(play: Play) -> None:
        assert told == list(Commentary().sentences(play.watched))
        assert "zebra" not in "".join(told)

    return Made(features=(Commentary(tell=lambda sentence, _: told.append(sentence)),)), keeps


def watch() -> Active:
    """Sees every entry once, in order; beside it a log, of which tests/telemetry tell."""
    seen: list[Any] = []

    def keeps(play: Play) -> None:
        assert seen == play.watched
        assert [kind_of(entry.body) for entry in seen] == [kind_of(entry.body) for entry in play.entries]

    return Made(features=(Watch(seen.append, name="inside"), Logs())), keeps


ACTIVE: Mapping[str, Callable[[], Active]] = {
    "input rule": input_rule, "call rule": call_rule, "asking rule": asking_rule, "result rule": result_rule,
    "output rule": output_rule, "closing rule": closing_rule, "permissions": permissions, "check-in": check_in,
    "credentials": credentials, "budget": budget, "redaction": redaction, "window": window, "compaction": compaction,
    "artifacts": artifacts, "context": context, "cache marks": cache_marks, "prompt budget": prompt_budget,
    "thinking": thinking, "media": media, "choose": choose, "instructions": instructions,
    "bundle": bundle, "typed": typed, "memory": memory,
    "retrieve": retrieve, "skills": skills, "skill graph": skill_graph, "self-explain": self_explain,
    "commentary": commentary, "watch": watch,
}  # fmt: skip
"""Every feature at work, by a name of this registry."""
