"""Media in turns: each request is adapted to the model that gets it, and what it cannot be sent is told."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.conversation.content import Audio, Image, Text
from onrecord.conversation.inputs import Said
from onrecord.conversation.messages import UserMessage
from onrecord.errors import ModelError
from onrecord.models.chunks import Chunk, NativeItem
from onrecord.models.model import preset
from onrecord.models.request import Piece, Request
from onrecord.prompt.media import Degrade, Media
from onrecord.prompt.model_choice import Choose
from onrecord.record.kinds import ModelRequested
from onrecord.record.receipts import LeftMark
from onrecord.session.folding import record_of
from onrecord.testing import ScriptedModel, reply
from onrecord.testing.conformance.feature import FeatureConformance, MakeFeature
from onrecord.turn.director import Query, Stage
from onrecord.turn.receipt import rebuild
from onrecord.turn.turn import Turn
from tests.models.wired import WiredModel, chat
from tests.turn.acting import bodies, call, tool, turn
from tests.turn.test_moment_request import PLAIN

pytestmark = pytest.mark.unit

SPOKEN = Audio(data=b"wav", transcript="Is it open?")
CAT = Image(url="https://h/cat.png", description="a cat")


class Judging:
    """Judges, then speaks."""

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        """Two calls."""
        await stage.judge(Query(key="mood", pieces=(Piece(source="q", text="Q", place="trailing"),), shape=PLAIN))
        await stage.speak(turn.spec.brief)


def shown(model: WiredModel, at: int = -1) -> list[Any]:
    """The messages of a request, as their contents."""
    return [message["content"] for message in json.loads(model.bodies[at])["messages"]]


async def test_e20_media_is_prepared_for_each_model_that_is_asked_and_never_changed() -> None:
    """A turn begins with a model that hears and goes on with one that does not (case E20)."""
    hears = chat([call("lookup")], model="audio-model", audio=True)
    reads = chat("Yes.", model="text-model", audio=False)
    choose = Choose(lambda live, _: reads if live.rounds else None)
    said = Said((Text("listen: "), SPOKEN))
    result = await turn(Agent(hears, tools=[tool()], features=[choose, Media()]), said)
    assert [part["type"] for part in shown(hears)[0]] == ["text", "input_audio"]
    assert shown(reads)[0] == "listen: \nIs it open?"
    assert result.session is not None
    asked = result.session.conversation.messages[0]
    assert isinstance(asked, UserMessage)
    assert asked.content == said.content


async def test_pictures_that_tools_return_are_shown_in_words() -> None:
    """In the request after the call; the session keeps the picture."""
    model = chat([call("lookup")], "done", images=False)
    result = await turn(Agent(model, tools=[tool(handler=lambda *_: CAT)], features=[Media()]))
    assert shown(model)[-1] == "[Image: a cat]"
    assert result.status == "answered"


async def test_without_the_feature_such_a_request_fails_before_it_is_sent() -> None:
    """By what it is, and for which model."""
    model = chat("never", images=False)
    with pytest.raises(ModelError, match="cannot be sent this request: an image: 'acme:m' reads none"):
        await turn(Agent(model), Said((CAT,)))
    assert model.bodies == []


@pytest.mark.parametrize("feature", [Media(), Degrade()])
async def test_mounted_and_idle_they_send_the_same_bytes(feature: Any) -> None:
    """With no media, and with media that the model takes."""
    sent = []
    for features in ([], [feature]):
        model = chat([call("lookup")], "done", audio=True)
        await turn(Agent(model, tools=[tool()], instructions="Be kind.", features=features), Said((SPOKEN, CAT)))
        sent.append(model.bodies)
    assert sent[0] == sent[1]


class TestBoth(FeatureConformance):
    """They keep the promises of all features."""

    @pytest.fixture(params=[Media, Degrade])
    def make_feature(self, request: pytest.FixtureRequest) -> MakeFeature:
        made: MakeFeature = request.param
        return made


class Instead:
    """A model in front of two: it asks the second, as a fail-over does."""

    def __init__(self, first: WiredModel, second: WiredModel) -> None:
        self.first, self.second = first, second
        self.card, self.wire = first.card, first.wire

    async def stream(self, request: Request, /) -> AsyncGenerator[Chunk, None]:
        async for chunk in self.second.stream(replace(request, wire=None)):
            yield chunk


async def test_a_model_that_answers_in_the_place_of_another_is_sent_words_where_it_needs_them() -> None:
    """What a request shows is settled where its bytes are made."""
    second = chat("Yes.", model="deaf", audio=False)
    result = await turn(Agent(Instead(chat(audio=True), second), features=[Media()]), Said((SPOKEN,)))
    assert (shown(second), result.text) == (["Is it open?"], "Yes.")


# ---- degrading -------------------------------------------------------------------------------------------------------


async def test_degrade_sends_what_is_left_and_the_receipt_says_what_is_not() -> None:
    """The words go out; the entry of the request names the model's limit and the unit."""
    model = chat("Hello.", images=False)
    result = await turn(Agent(model, features=[Degrade()]), Said((Text("hi"), CAT)))
    assert shown(model) == [[{"type": "text", "text": "hi"}]]
    (asked,) = bodies(result, ModelRequested)
    assert asked.receipt is not None
    assert asked.receipt.left_out == (LeftMark(unit=0, what="an image: 'acme:m' reads none"),)


async def test_what_is_wrong_with_the_request_itself_is_refused_all_the_same() -> None:
    """A setting that the wire decides is no part of the conversation."""
    model = preset(chat("never"), messages=[])
    with pytest.raises(ModelError, match="settings with an extra field 'messages'"):
        await turn(Agent(model, features=[Degrade()]))


async def test_words_come_before_leaving_out() -> None:
    """With both features nothing is left out that has words."""
    model = chat("Hello.", images=False)
    result = await turn(Agent(model, features=[Degrade(), Media()]), Said((CAT,)))
    (asked,) = bodies(result, ModelRequested)
    assert (shown(model), asked.receipt and asked.receipt.left_out) == (["[Image: a cat]"], ())


async def test_a_result_that_is_left_out_is_no_promise_of_media_below() -> None:
    """The tool message says nothing of what does not follow."""
    model = chat([call("lookup")], "done", images=False)
    await turn(Agent(model, tools=[tool(handler=lambda *_: (Text("found"), CAT))], features=[Degrade()]))
    assert shown(model)[-1] == "found"
    assert len(shown(model)) == 3


async def switched(*features: Any) -> tuple[WiredModel, Any]:
    """A reply with something that only its own vendor can read, then a request to another vendor."""
    odd = NativeItem(raw=Raw(b'{"role":"assistant","content":"seen"}'), lost="an item of type 'video_call'")
    first = ScriptedModel(reply("seen", odd))
    second = chat("ok")
    agent: Agent[Any, Any] = Agent(first, features=features)
    begun = await turn(agent, "look", session="s")
    return second, await turn(agent.with_(model=second), "and?", session=begun.session)


async def test_c12_what_only_its_own_vendor_can_read_is_refused_by_name_before_anything_is_sent() -> None:
    """The item is told; nothing reaches the other vendor (case C12)."""
    with pytest.raises(ModelError, match="cannot be sent this request: an item of type 'video_call'") as failed:
        await switched()
    assert (failed.value.kind, failed.value.provider) == ("invalid", "acme")


async def test_with_degrade_its_portable_part_goes_to_the_other_vendor() -> None:
    """And the receipt says what stayed behind."""
    second, result = await switched(Degrade())
    assert shown(second) == ["look", "seen", "and?"]
    (asked,) = bodies(result, ModelRequested)
    assert asked.receipt is not None
    assert asked.receipt.left_out == (LeftMark(unit=1, what="an item of type 'video_call'"),)


async def test_a_request_in_words_is_rebuilt_from_the_record_as_it_was_sent() -> None:
    """The receipt keeps how it was shown."""
    model = chat("Hello.", images=False)
    result = await turn(Agent(model, features=[Media(), Degrade()]), Said((Text("hi"), CAT)))
    assert result.session is not None
    seq = next(entry.seq for entry in result.entries if isinstance(entry.body, ModelRequested))
    rebuilt = rebuild(record_of(result.session, result.entries), seq)
    assert model.wire(rebuilt.request(model)).body == model.bodies[0]


async def test_judgements_read_media_in_words_too_and_are_asked_of_the_chosen_model() -> None:
    """A director's silent call sees the same conversation as the answer."""
    reads = chat("Yes.", model="text-model", audio=False, judge=["J"])
    agent: Agent[Any, Any] = Agent(
        chat(model="audio-model", audio=True), director=Judging(), features=[Choose(lambda *_: reads), Media()]
    )
    result = await turn(agent, Said((Text("listen: "), SPOKEN)))
    assert (result.text, reads.calls) == ("Yes.", ["judge", "speak"])
    assert [shown(reads, at)[0] for at in (0, 1)] == ["listen: \nIs it open?"] * 2


async def test_a_judgement_leaves_out_what_its_model_cannot_be_sent() -> None:
    """With `Degrade`; its receipt says so."""
    model = chat("Yes.", judge=["J"], images=False)
    result = await turn(Agent(model, director=Judging(), features=[Degrade()]), Said((Text("look"), CAT)))
    receipts = [body.receipt for body in bodies(result, ModelRequested)]
    assert [len(receipt.left_out) for receipt in receipts if receipt is not None] == [1, 1]
