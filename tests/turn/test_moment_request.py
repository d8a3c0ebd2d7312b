"""The moment ``request``: pieces, models, stops; and who may change what (architecture §6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from onrecord.agent import Agent
from onrecord.errors import FeatureConflict, FeatureFailed, LimitReached, MissingDependency, UsageError
from onrecord.models.model import ModelCard
from onrecord.models.request import Piece, Reading, Request, Shape
from onrecord.record.kinds import ModelRequested, Noted
from onrecord.testing import ScriptedModel, call
from onrecord.turn.director import Query, Stage
from onrecord.turn.instruction import Instruction
from onrecord.turn.moments import SLOTS, Hooks, Rank, Stop
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, kinds, read, results, tool, turn, verdicts

pytestmark = pytest.mark.unit

PLAIN = Shape(name="plain", schema={"type": "object"}, read=lambda r: Reading(text=r.text, value=r.text))


def on_request(change: Callable[[Request], Any], name: str = "mine", slot: str = "RULES", **more: Any) -> Named:
    """A request hook as a feature."""

    async def hook(turn: Turn, request: Request) -> Any:
        return change(request)

    return Named(name, Hooks(on_request=hook, order={"request": SLOTS["request"][slot]}, **more))


def adding(name: str, rank: int = Rank.FACT, slot: str = "RULES") -> Named:
    """A feature that adds a system piece."""

    def change(request: Request) -> Request:
        return replace(request, pieces=(*request.pieces, Piece(source=name, text=name, rank=rank)))

    return on_request(change, name, slot)


async def system(*features: Any, **given: Any) -> str:
    """The system text of the one request of a turn."""
    model = ScriptedModel("done")
    await turn(Agent(model, features=features, **given))
    text: str = read(model.requests[0])["system"]
    return text


async def test_c39_system_pieces_are_joined_by_a_blank_line_in_rank_order() -> None:
    """Instructions first, an empty text leaves no trace (case C39)."""
    assert (
        await system(Instruction("B", rank=Rank.STEERING), Instruction("", rank=Rank.FACT), instructions="A")
        == "A\n\nB"
    )
    assert await system(adding("fact"), Instruction("B", rank=Rank.STEERING), instructions="A") == "A\n\nB\n\nfact"


async def test_equal_ranks_keep_their_arrival() -> None:
    """Hooks run in slot order, then in list order."""
    features = [adding("r1"), adding("m", slot="MEMORY"), adding("r2"), adding("d", slot="DECORATE")]
    assert await system(*features) == "m\n\nr1\n\nr2\n\nd"


async def test_a_feature_takes_back_its_own_pieces() -> None:
    """Whatever it added before."""

    def again(request: Request) -> Request:
        kept = tuple(p for p in request.pieces if p.source != "mine")
        return replace(request, pieces=(*kept, Piece(source="mine", text="new")))

    assert await system(adding("mine", slot="MEMORY"), on_request(again)) == "new"


@pytest.mark.parametrize(
    "change",
    [
        lambda r: replace(r, pieces=()),
        lambda r: replace(r, pieces=tuple(replace(p, text="mine now") for p in r.pieces)),
    ],
)
async def test_a_feature_changes_no_piece_of_another(change: Callable[[Request], Request]) -> None:
    """Removing and rewriting are the same breach, found by identity."""
    with pytest.raises(
        FeatureFailed, match="feature 'mine' failed at request: it removed or replaced a piece of 'other'"
    ):
        await system(adding("other", slot="MEMORY"), on_request(change))


async def test_reordering_pieces_is_no_change() -> None:
    """Their order follows from place and rank, whatever a hook returns."""

    def shuffle(request: Request) -> Request:
        return replace(request, pieces=tuple(reversed(request.pieces)))

    assert await system(adding("b"), on_request(shuffle), instructions="A") == "A\n\nb"


async def test_only_the_choose_slot_changes_the_model() -> None:
    """The record says which model answered, and the scope is that model's."""
    big = ScriptedModel("from big", card=ModelCard(provider="p", model="big", protocol="scripted"))
    small = ScriptedModel("from small")

    def choose(request: Request) -> Request:
        return replace(request, model=big)

    result = await turn(Agent(small, features=[on_request(choose, slot="CHOOSE")]))
    assert result.text == "from big"
    assert [b.model for b in bodies(result, ModelRequested)] == ["p:big"]
    assert '"big"' in big.requests[0].scope
    assert small.requests == []
    with pytest.raises(FeatureFailed, match="it changed the model outside the CHOOSE slot"):
        await turn(Agent(small, features=[on_request(choose, slot="RULES")]))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda _: None, "it returned NoneType, not a Request or Stop"),
        (lambda _: "text", "it returned str, not a Request or Stop"),
    ],
)
async def test_a_hook_that_raises_or_breaks_its_contract_fails_the_turn_by_name(
    change: Callable[[Request], Any], problem: str
) -> None:
    """Nothing was sent; the turn's entries are kept on the error."""
    model = ScriptedModel()
    with pytest.raises(FeatureFailed) as failed:
        await turn(Agent(model, features=[on_request(change)]))
    assert str(failed.value) == f"feature 'mine' failed at request: {problem}"
    assert model.requests == []


async def test_what_a_hook_raises_keeps_its_hint() -> None:
    """A missing package says what to install, however deep it was missed."""

    def missing(_: Request) -> Request:
        raise MissingDependency("vectors need 'numpy'", hint="pip install 'onrecord[retrieval]'")

    with pytest.raises(FeatureFailed) as failed:
        await turn(Agent(ScriptedModel(), features=[on_request(missing)]))
    assert failed.value.hint.endswith("; pip install 'onrecord[retrieval]'")
    assert failed.value.result is not None
    assert failed.value.result.status == "failed"
    assert kinds(failed.value.result) == ["turn.opened", "turn.input", "turn.failed"]


async def test_a_hooks_own_turn_error_is_the_turns() -> None:
    """A budget says that its limit was reached; nobody hides it."""

    def spent(request: Request) -> Request:
        raise LimitReached("the budget of this session is used up")

    with pytest.raises(LimitReached) as failed:
        await turn(Agent(ScriptedModel(), features=[on_request(spent)]))
    assert failed.value.result is not None


async def test_a_stop_ends_the_turn_before_the_request() -> None:
    """Nothing is sent any more; the reason is on the record."""
    stop = on_request(lambda r: Stop("enough") if r.where != "main/r0" else r)
    model = ScriptedModel(call("lookup"))
    result = await turn(Agent(model, tools=[tool()], features=[stop]))
    assert model.calls == ["speak"]
    assert verdicts(result) == [("request", "mine", "stop", "enough")]
    assert (result.status, result.text) == ("silent", "")
    assert results(result) == [("lookup", "returned")]


async def test_a_stop_with_wrap_up_allows_one_last_request_without_tools() -> None:
    """The model still tells what was done."""
    stop = on_request(lambda r: Stop("enough", wrap_up=True) if r.purpose == "speak" and r.where != "main/r0" else r)
    model = ScriptedModel(call("lookup"), "told")
    result = await turn(Agent(model, tools=[tool()], features=[stop]))
    assert [(r.purpose, read(r)["tools"]) for r in model.requests] == [("speak", ["lookup"]), ("wrap_up", [])]
    assert result.text == "told"


async def test_a_stop_of_the_wrap_up_itself_ends_it() -> None:
    """Two features may stop in a row; the turn ends all the same."""
    stop = on_request(lambda r: Stop("no", wrap_up=True) if r.where != "main/r0" else r)
    model = ScriptedModel(call("lookup"))
    result = await turn(Agent(model, tools=[tool()], features=[stop]))
    assert model.calls == ["speak"]
    assert result.status == "silent"


async def test_turn_stop_from_another_moment_is_the_same_stop() -> None:
    """The first stop stands; calls that were asked for and did not run say so."""

    async def halting(turn: Turn, settled: Any) -> Any:
        turn.stop(Stop("first"))
        turn.stop(Stop("second", wrap_up=True))
        return settled

    model = ScriptedModel(["beside", call("lookup")])
    result = await turn(Agent(model, tools=[tool()], features=[Named("halt", Hooks(on_reply=halting))]))
    assert results(result) == [("lookup", "not_run")]
    assert result.text == "beside"
    assert model.calls == ["speak"]


# ---- purposes --------------------------------------------------------------------------------------------------------


class Asking(Struct):
    """A director that judges, then speaks; and what the judge said."""

    said: list[str] = []

    async def direct(self, turn: Turn, stage: Stage, /) -> None:
        query = Query(key="understand", pieces=(Piece(source="q", text="Q", place="trailing"),), shape=PLAIN)
        self.said.append(await stage.judge(query))
        self.said.append(await turn.consult(replace(query, key="c"), where="main"))
        await stage.speak(turn.spec.brief)


async def test_request_hooks_run_for_their_purposes_alone() -> None:
    """Speaking and wrapping up by default; judge on request; consult never."""
    seen: dict[str, list[str]] = {"plain": [], "all": []}

    def look(name: str, **more: Any) -> Named:
        def change(request: Request) -> Request:
            seen[name].append(request.purpose)
            return request

        return on_request(change, name, **more)

    purposes = frozenset({"speak", "judge", "consult"})
    model, asking = ScriptedModel(call("lookup"), "done", judge=["J"], consult=["C"]), Asking(said=[])
    features = [look("plain"), look("all", purposes=purposes)]
    await turn(Agent(model, tools=[tool()], features=features, director=asking, rounds=1))
    assert model.calls == ["judge", "consult", "speak", "wrap_up"]
    assert seen == {"plain": ["speak", "wrap_up"], "all": ["judge", "speak"]}
    assert asking.said == ["J", "C"]


async def test_silent_calls_have_no_tools_and_know_who_is_speaking_only_when_judging() -> None:
    """A judge reads the instructions, a consult its own pieces alone."""
    model = ScriptedModel("done", judge=["J"], consult=["C"])
    result = await turn(Agent(model, tools=[tool()], instructions="I am Ana.", director=Asking(said=[])))
    judged, consulted, spoken = (read(r) for r in model.requests)
    assert (judged["system"], consulted["system"], spoken["system"]) == ("I am Ana.", "", "I am Ana.")
    assert (judged["tools"], consulted["tools"], spoken["tools"]) == ([], [], ["lookup"])
    assert judged["trailing"] == consulted["trailing"] == ["Q"]
    assert [b.purpose for b in bodies(result, ModelRequested)] == ["judge", "consult", "speak"]
    assert result.llm_calls == 3


async def test_a_stopped_judge_is_a_usage_error() -> None:
    """There is no value to go on with, and none is made up."""
    stop = on_request(lambda _: Stop("enough"), purposes=frozenset({"judge"}))
    with pytest.raises(UsageError, match="a silent call was stopped: enough") as failed:
        await turn(Agent(ScriptedModel(), features=[stop], director=Asking(said=[])))
    assert failed.value.code == "stopped"


async def test_a5_one_feature_holds_the_window() -> None:
    """Two that decide what is shown are refused by name (case A5)."""
    one, two = (on_request(lambda r: r, name, "WINDOW") for name in ("summaries", "sliding"))
    with pytest.raises(FeatureConflict, match="only one feature can hold the window; found 'summaries' and 'sliding'"):
        Agent(ScriptedModel(), features=[one, two])


# ---- instructions ----------------------------------------------------------------------------------------------------


async def test_an_instruction_with_a_condition_is_shown_while_it_holds() -> None:
    """Asked once per request; among its rank it keeps its place."""
    asked: list[int] = []

    def late(turn: Turn) -> bool:
        asked.append(len(turn.rounds))
        return bool(turn.rounds)

    model = ScriptedModel(call("lookup"), "done")
    features = [Instruction("Later.", only_if=late, rank=Rank.STEERING), Instruction("Always.", rank=Rank.FACT)]
    await turn(Agent(model, tools=[tool()], features=features, instructions="Base."))
    assert [read(r)["system"] for r in model.requests] == ["Base.\n\nAlways.", "Base.\n\nLater.\n\nAlways."]
    assert asked == [0, 1]


async def test_when_is_text_for_the_model() -> None:
    """It is never code."""
    assert (
        await system(Instruction("Offer a room.", when="they want to stay")) == "When they want to stay: Offer a room."
    )


async def test_112_a_condition_that_raises_leaves_its_instruction_out_and_says_so() -> None:
    """The turn goes on, and the record names what failed (case 112)."""
    broken = Instruction("Never.", only_if=lambda _: 1 / 0 > 0, name="broken")
    model = ScriptedModel("done")
    result = await turn(Agent(model, features=[broken], instructions="Base."))
    assert read(model.requests[0])["system"] == "Base."
    assert [(n.by, n.text) for n in bodies(result, Noted)] == [("broken", "only_if failed: ZeroDivisionError")]
