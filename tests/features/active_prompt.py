"""What decides what requests show, at work, and what it promises."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from onrecord.conversation.messages import ContextMessage
from onrecord.conversation.render import context_text
from onrecord.errors import OutputInvalid
from onrecord.governance import before_tool
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
from onrecord.record.kinds import TurnOpened
from onrecord.turn.answer import Typed
from onrecord.turn.instruction import Instruction, OnReturn
from onrecord.turn.moments import Allow, Rank
from onrecord.turn.plan import Bundle
from tests.features.always import shown_units
from tests.features.idle import Words
from tests.features.promises import Active, everything, system_of
from tests.features.talk import CARD, LONG, Made, Play, Talker, said_last

__all__ = (
    "artifacts",
    "bundle",
    "cache_marks",
    "choose",
    "compaction",
    "context",
    "instructions",
    "media",
    "prompt_budget",
    "thinking",
    "typed",
    "window",
)


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
