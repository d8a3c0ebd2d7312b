"""Credentials: lent to a handler, asked for where consent is missing, and written down nowhere."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from onrecord.agent import Agent
from onrecord.conversation.identity import Identity, SessionKey
from onrecord.errors import ConfigurationError, ToolInvalid, UsageError
from onrecord.governance import Consent, Credential, Credentials, NeedsCredential, Wanted, credential
from onrecord.governance.credentials import CredentialSettled
from onrecord.record.kinds import Noted
from onrecord.session.codec import dumps_session
from onrecord.session.session import Session
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.turn.director import Stage
from onrecord.turn.turn import Turn
from tests.turn.acting import Result, bodies, results, texts, tool, turn, verdicts
from tests.turn.pausing.asking import Acting, answered, approve, checked, open_question

pytestmark = pytest.mark.unit

SECRET = "sk-canary-51c9"
URL = "https://login.example/consent?state=canary-url-51c9"
UNTIL = datetime(2027, 1, 1, tzinfo=UTC)


class Vault:
    """Issues in turn what it is given; a plain exception is raised."""

    def __init__(self, *gives: Any) -> None:
        self.gives, self.asked = list(gives), list[Wanted]()

    async def __call__(self, wanted: Wanted) -> Any:
        self.asked.append(wanted)
        given = self.gives.pop(0) if len(self.gives) > 1 else self.gives[0]
        if isinstance(given, Exception):
            raise given
        return given


def calling(handler: Any = None, **need: Any) -> Tool:
    """A tool that needs a calendar; it says which header it would send."""

    def sends(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        return f"sent with {credential(ctx).headers()['Authorization']}"

    traits = (NeedsCredential(service="calendar", **need),)
    return Tool("book", handler or sends, "Book a room.", traits=traits)


def nothing_leaked(result: Result, model: ScriptedModel) -> None:
    """Neither the secret nor an address is in an entry, the session or a request."""
    kept = b"".join(msgspec.json.encode(entry) for entry in result.entries)
    assert result.session is not None
    kept += dumps_session(result.session) + b"".join(model.wire(request).body for request in model.requests)
    for canary in (SECRET, "canary-url"):
        assert canary.encode() not in kept


async def test_a_credential_reaches_the_handler_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    """A result that repeats it is read without it; what is on the record is of what service it was, and until when."""
    caplog.set_level(logging.DEBUG)
    vault = Vault(Credential(SECRET, expires_at=UNTIL))
    model = ScriptedModel([call("book")], "Booked.")
    agent: Agent[Any, Any] = Agent(model, tools=[calling(scopes=("write",))], features=[Credentials(vault)])
    owner = Identity(tenant="t", principal="ana")
    result = await turn(agent, session=Session(key=SessionKey("s"), owner=owner))
    assert texts(model.requests[1]) == ["sent with Bearer [credential]"]
    assert vault.asked == [Wanted(service="calendar", scopes=("write",), identity=owner, tool="book")]
    assert bodies(result, CredentialSettled) == [
        CredentialSettled(
            service="calendar", tool="book", scopes=("write",), outcome="issued", scheme="Bearer", expires_at=UNTIL
        )
    ]
    nothing_leaked(result, model)
    assert SECRET not in caplog.text
    assert SECRET not in repr(Credential(SECRET))
    assert "canary" not in repr(Consent(url=URL))


async def test_an_error_that_repeats_it_is_read_without_it() -> None:
    """Exceptions of libraries are fond of headers."""

    def fails(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        raise RuntimeError(f"401 for {credential(ctx, 'calendar').headers()}")

    model = ScriptedModel([call("book")], "Oh.")
    features = [Credentials(Vault(Credential(SECRET)))]
    result = await turn(Agent(model, tools=[calling(fails)], features=features))
    assert "[credential]" in texts(model.requests[1])[0]
    nothing_leaked(result, model)


async def test_what_has_no_secret_in_it_is_not_touched() -> None:
    """Data, facts and results of a call that was lent one, and a secret so short that it stands everywhere."""

    def keeps(args: Mapping[str, Any], ctx: ToolContext[Any]) -> ToolResult:
        ctx.set({"room": {"name": "sk-12", "beds": [1, 2.5, None]}})
        return ToolResult({"beds": 2, "pin": "sk-12"})

    for secret in (SECRET, "sk-12"):
        features = [Credentials(Vault(Credential(secret)))]
        result = await turn(Agent(ScriptedModel([call("book")], "x"), tools=[calling(keeps)], features=features))
        assert result.session is not None
        assert dict(result.session.data) == {"room": {"name": "sk-12", "beds": [1, 2.5, None]}}
        assert (bodies(result, Noted), verdicts(result)) == ([], [])


async def test_what_a_director_does_gets_no_secret_back_either() -> None:
    """It would put it into the data of a flow."""
    got: list[Any] = []

    async def acts(turn: Turn, stage: Stage) -> None:
        done = await stage.act(calling(lambda _, ctx: {"used": credential(ctx).secret}), {}, key="book")
        got.append(done.value)
        await stage.speak(turn.spec.brief)

    features = [Credentials(Vault(Credential(SECRET)))]
    agent: Agent[Any, Any] = Agent(ScriptedModel("x"), tools=[calling()], features=features, director=Acting(acts))
    await turn(agent)
    assert got == [{"used": "[credential]"}]


async def test_a_secret_with_odd_letters_is_found_as_json_writes_it() -> None:
    """Inside a result that is an object, quotes and backslashes of a secret are escaped."""
    secret = 'sk-"canary\\\n-51c9'

    def handler(_: object, ctx: ToolContext[Any]) -> dict[str, Any]:
        return {"used": credential(ctx).secret, "more": [f"Bearer {credential(ctx).secret}"]}

    model = ScriptedModel([call("book")], "x")
    await turn(Agent(model, tools=[calling(handler)], features=[Credentials(Vault(Credential(secret)))]))
    assert texts(model.requests[1]) == ['{"used":"[credential]","more":["Bearer [credential]"]}']


async def test_consent_is_asked_of_the_person_and_the_address_is_theirs_alone() -> None:
    """Approved, the source is asked again, and the call runs once."""
    vault = Vault(Consent(url=URL, session="c1"), Credential(SECRET))
    model = ScriptedModel([call("book")], "Booked.")
    agent: Agent[Any, Any] = Agent(model, tools=[calling()], features=[Credentials(vault)])
    paused = await turn(agent)
    question = open_question(paused)
    assert (question.audience, question.by) == ("speaker", "credentials")
    assert question.detail == {"service": "calendar", "scopes": [], "consent": "c1"}
    assert paused.private == {"consent:calendar": URL}
    nothing_leaked(paused, model)
    done = await answered(agent, paused, approved=True)
    assert (done.text, texts(model.requests[1])) == ("Booked.", ["sent with Bearer [credential]"])
    nothing_leaked(done, model)
    checked(agent, paused, done)


async def test_consent_that_was_not_given_after_all_is_a_denial() -> None:
    """Nobody is asked twice in one call; and declined is declined."""
    for approved, heard in (
        (True, "the person has not given consent at 'calendar'"),
        (False, "Declined by a person."),
    ):
        model = ScriptedModel([call("book")], "Then not.")
        agent: Agent[Any, Any] = Agent(
            model, tools=[calling()], features=[Credentials(Vault(Consent(url=URL)))]
        )  # fmt: skip
        done = await answered(agent, await turn(agent), approved=approved)
        assert (texts(model.requests[1]), results(done)) == ([heard], [("book", "denied")])
        nothing_leaked(done, model)


async def test_g91_the_model_may_be_told_in_place_of_a_pause() -> None:
    """The result names the service and no address; the caller has it in ``private`` (case G91: no error at the end)."""
    model = ScriptedModel([call("book")], "Please connect your calendar.")
    agent: Agent[Any, Any] = Agent(
        model, tools=[calling(mode="tell-model")], features=[Credentials(Vault(Consent(url=URL)))]
    )
    result = await turn(agent)
    assert texts(model.requests[1]) == ["the person has not given consent at 'calendar'"]
    assert (result.status, result.private) == ("answered", {"consent:calendar": URL})
    nothing_leaked(result, model)


@pytest.mark.parametrize("given", [RuntimeError(SECRET), "a token", None])
async def test_a_source_that_fails_denies_the_call(given: Any) -> None:
    """And says nothing of what it raised, or gave."""
    model = ScriptedModel([call("book")], "Oh.")
    result = await turn(Agent(model, tools=[calling()], features=[Credentials(Vault(given))]))
    assert texts(model.requests[1]) == ["no credential of 'calendar' could be had"]
    assert bodies(result, CredentialSettled)[0].outcome == "failed"
    nothing_leaked(result, model)


async def test_it_is_issued_behind_every_rule() -> None:
    """A call that does not run is lent nothing; one that a rule asked about is lent it after the answer."""
    vault = Vault(Credential(SECRET))
    model = ScriptedModel([call("book")], "Booked.")
    agent: Agent[Any, Any] = Agent(model, tools=[calling()], features=[Credentials(vault), approve("book")])
    paused = await turn(agent)
    assert vault.asked == []
    assert (await answered(agent, paused, approved=True)).text == "Booked."
    assert len(vault.asked) == 1


async def test_a_handler_that_asks_is_lent_it_again() -> None:
    """It runs again from its top, in another take, where nothing of the first is left."""
    from onrecord.conversation.inputs import Ask

    async def asks(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        held = credential(ctx)
        await ctx.ask(Ask("Really?"))
        return held.headers()["Authorization"]

    vault = Vault(Credential(SECRET))
    model = ScriptedModel([call("book")], "Booked.")
    agent: Agent[Any, Any] = Agent(model, tools=[calling(asks)], features=[Credentials(vault)])
    done = await answered(agent, await turn(agent), value="yes")
    assert (texts(model.requests[1]), len(vault.asked)) == (["Bearer [credential]"], 2)
    nothing_leaked(done, model)


async def test_consent_that_was_withdrawn_while_a_handler_waited_is_a_denial() -> None:
    """Its own question was answered; it does not run again without what it needs."""
    from onrecord.conversation.inputs import Ask

    async def asks(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        return str((await ctx.ask(Ask("Really?"))).value)

    vault = Vault(Credential(SECRET), Consent(url=URL))
    model = ScriptedModel([call("book")], "Then not.")
    agent: Agent[Any, Any] = Agent(model, tools=[calling(asks)], features=[Credentials(vault)])
    done = await answered(agent, await turn(agent), value="yes")
    assert texts(model.requests[1]) == ["the person has not given consent at 'calendar'"]
    assert done.private == {"consent:calendar": URL}


async def test_a_hook_in_the_slot_of_credentials_that_asks_again_is_a_denial() -> None:
    """A handler was let go ahead once; whoever lends it something cannot put another question before it."""
    from onrecord.conversation.inputs import Ask
    from onrecord.turn.moments import SLOTS, Allow, Hooks
    from tests.turn.acting import Named

    given = [Allow(), Ask("Again?")]

    async def lends(turn: Any, call: Any) -> Any:
        return given.pop(0)

    async def asks(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        return str((await ctx.ask(Ask("Really?"))).value)

    hooks = Hooks(before_tool=lends, order={"before_tool": SLOTS["before_tool"]["CREDENTIALS"]})
    model = ScriptedModel([call("book")], "Then not.")
    agent: Agent[Any, Any] = Agent(model, tools=[tool("book", asks)], features=[Named("lends", hooks)])
    await answered(agent, await turn(agent), value="yes")
    assert "what this call was lent is not there any more" in texts(model.requests[1])[0]


async def test_what_a_call_was_not_lent_cannot_be_read() -> None:
    """Neither of another service, nor by a tool that needs none."""

    def other(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        return credential(ctx, "mail").scheme

    model = ScriptedModel([call("book"), call("plain")], "Oh.")
    plain = tool("plain", lambda _, ctx: credential(ctx).scheme)
    await turn(Agent(model, tools=[calling(other), plain], features=[Credentials(Vault(Credential(SECRET)))]))
    other_service, none_at_all = texts(model.requests[1])
    assert "this call was lent no credential of 'mail'" in other_service
    assert "this call was lent no credential" in none_at_all


async def test_a_tool_of_two_services_says_which_credential_it_reads() -> None:
    """Else it is told of how many it has to choose, and how."""
    told: list[str] = []

    def both(args: Mapping[str, Any], ctx: ToolContext[Any]) -> str:
        with pytest.raises(UsageError, match="lent credentials of 2 services") as unclear:
            credential(ctx)
        told.append(unclear.value.hint)
        return credential(ctx, "mail").scheme

    two = Tool("book", both, traits=(NeedsCredential(service="calendar"), NeedsCredential(service="mail")))
    model = ScriptedModel(call("book"), "Done.")
    await turn(Agent(model, tools=[two], features=[Credentials(Vault(Credential(SECRET)))]))
    assert told == ["credential(ctx, 'calendar') says which"]


def test_useless_configurations_are_refused() -> None:
    """A tool without a source, a source without a tool, a need without a service."""
    with pytest.raises(ConfigurationError, match="tool 'book' needs a credential, and nothing issues any") as missing:
        Agent(ScriptedModel(), tools=[calling()])
    assert "Credentials(your_source)" in missing.value.hint
    with pytest.raises(ConfigurationError, match="no tool that needs any"):
        Agent(ScriptedModel(), tools=[tool()], features=[Credentials(Vault(None))])
    with pytest.raises(ToolInvalid, match="a credential is of a service"):
        Tool("a", lambda *_: 1, traits=(NeedsCredential(service=""),))
