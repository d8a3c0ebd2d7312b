"""Rules, permissions and people at work, and what they promise."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from onrecord.conversation.content import Text, plain_text
from onrecord.conversation.inputs import Ask, Said
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
from onrecord.prompt.artifact_entries import ArtifactMinted
from onrecord.record.kinds import ModelReplied, TurnPaused
from onrecord.tools.tool import Tool
from onrecord.turn.moments import Allow, Deny
from tests.features.idle import with_trait
from tests.features.promises import Active, everything, statuses, times
from tests.features.talk import USED, Made, Play

__all__ = (
    "asking_rule",
    "budget",
    "call_rule",
    "check_in",
    "closing_rule",
    "credentials",
    "input_rule",
    "output_rule",
    "permissions",
    "redaction",
    "result_rule",
)


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
