"""What shows of living values, in digests and in files: nothing that a stranger must not read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from onrecord.agent import Agent
from onrecord.conversation.inputs import Ask
from onrecord.models.model import ModelCard, scope_of
from onrecord.models.request import Request
from onrecord.providers.openai_compatible import openai_compatible
from onrecord.record.kinds import TurnPaused, VerdictFiled
from onrecord.session.codec import dumps_session
from onrecord.testing import FakeEffects, ScriptedModel, call
from onrecord.turn.moments import Allow, Hooks
from tests.turn.acting import Named, bodies, tool, turn

if TYPE_CHECKING:
    from tests.privacy.conftest import Canary

pytestmark = pytest.mark.unit


async def test_living_values_show_no_content(canary: Canary) -> None:
    """Agents, sessions, conversations, requests, results, streams, models and keys in a log or a debugger's list."""
    requests: list[Request] = []

    async def sees(_: Any, request: Request) -> Request:
        requests.append(request)
        return request

    model = ScriptedModel([canary.text, call("lookup", word=canary.text)], canary.text, canary.text)
    agent = Agent(
        model, instructions=canary.text, tools=[tool(handler=lambda *_: canary.text)],
        features=[Named("sees", Hooks(on_request=sees))],
    )  # fmt: skip
    result = await turn(agent, canary.text)
    assert result.session is not None
    stream = agent.turn_stream(canary.text)
    for what in (agent, agent.plan, result, result.session, result.session.conversation, stream, *requests, model):
        canary.absent_from(type(what).__name__, what)
    with_key = openai_compatible("http://127.0.0.1:9/v1", "m", api_key=canary.text, headers={"x-key": canary.text})
    for what in (with_key, with_key.card, Agent(with_key), Agent(with_key).spec.manifest):
        canary.absent_from(type(what).__name__, what)


async def test_what_is_private_of_a_question_is_on_the_result_alone(canary: Canary) -> None:
    """In no entry, no state, no repr."""

    async def asks(args: Mapping[str, Any], ctx: Any) -> None:
        await ctx.ask(Ask("May I?", private={"url": canary.text}))

    result = await turn(Agent(ScriptedModel([call("lookup")]), tools=[tool(handler=asks)]))
    assert result.session is not None
    assert result.private == {"url": canary.text}
    assert bodies(result, TurnPaused)
    canary.absent_from("a result", result)
    canary.absent_from("entries", result.entries)
    canary.absent_from("a session", dumps_session(result.session))
    canary.absent_from("a question", Ask("May I?", private={"url": canary.text}))


def test_where_a_model_lives_is_told_without_secrets(canary: Canary) -> None:
    """The scope of native output is on the record of every round."""
    for form in ("https://user:{}@host/v1", "https://host/v1?key={}", "https://host/v1#{}"):
        card = ModelCard(provider="p", model="m", protocol="x", base_url=form.replace("{}", canary.text))
        scope = scope_of(card, "s")
        canary.absent_from("a scope", scope)
        assert "https://host/v1" in scope


async def test_digests_are_keyed_by_their_session() -> None:
    """A short text cannot be guessed from its digest, nor recognised in another session."""

    async def rewrites(*_: Any) -> Allow[Any]:
        return Allow({"pin": "4711"}, "changed")

    effects = FakeEffects()
    held: list[str] = []
    for session in ("one", "two"):
        agent = Agent(
            ScriptedModel([call("lookup", pin="1234")], "done"), instructions="short", tools=[tool()],
            features=[Named("rule", Hooks(before_tool=rewrites))],
        )  # fmt: skip
        result = await turn(agent, session=session, effects=effects)
        filed = next(v for v in bodies(result, VerdictFiled) if v.before)
        digests = [filed.before, filed.after]
        digests += [getattr(e.body, "digest", "") for e in result.entries if getattr(e.body, "digest", "")]
        held += digests
        for text in ("short", "1234", "4711", '{"pin":"1234"}', '{"pin":"4711"}'):
            for size in (12, 16, 32, 64):
                assert hashlib.blake2b(text.encode(), digest_size=size).hexdigest()[:24] not in digests
    assert len(set(held)) == len(held)


async def test_a_session_written_down_holds_no_key_of_its_model(canary: Canary) -> None:
    """Settings are recorded; keys and headers never are."""
    result = await turn(Agent(ScriptedModel("x", card=_card(canary.text))), "hi")
    assert result.session is not None
    canary.absent_from("a session", dumps_session(result.session))
    canary.absent_from("entries", msgspec.json.encode([e.body for e in result.entries]))


def _card(secret: str) -> ModelCard:
    return ModelCard(provider="p", model="m", protocol="x", base_url=f"https://user:{secret}@host/v1")
