"""What an agent is made of: slots, bundles, traits, options, folds, and what a record says of it (§6)."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from msgspec import Struct

from onrecord.agent import Agent
from onrecord.errors import ConfigurationError, FeatureConflict, ToolInvalid, UsageError
from onrecord.governance.rules import before_tool
from onrecord.models.request import Request
from onrecord.prompt.window.compaction import Compaction
from onrecord.prompt.window.window import Window
from onrecord.record.entry import Body, Entry
from onrecord.record.kinds import TurnOpened
from onrecord.testing import ScriptedModel, call
from onrecord.tools.tool import Tool
from onrecord.turn.instruction import Instruction
from onrecord.turn.moments import MOMENTS, SLOTS, Allow, Deny, Hooks, Rank
from onrecord.turn.options import Silenced
from onrecord.turn.plan import Bundle
from onrecord.turn.turn import Turn
from tests.turn.acting import Named, bodies, read, results, texts, tool, turn, verdicts

pytestmark = pytest.mark.unit


async def nothing(*_: Any) -> None:
    """A hook that does nothing."""


async def unchanged(_: Turn, request: Request) -> Request:
    """Of the request."""
    return request


def hooked(moment: Any, slot: int | None = None) -> Hooks:
    """Hooks with one hook at a moment, at this slot."""
    name = moment if moment.endswith("_tool") else f"on_{moment}"
    fields: dict[str, Any] = {name: nothing, "order": {} if slot is None else {moment: slot}}
    return Hooks(**fields)


# ---- slots -----------------------------------------------------------------------------------------------------------


def test_the_slots_are_published_in_the_order_in_which_they_stand() -> None:
    """A closed list of moments; in each the slots count upwards, and every moment has a place for rules."""
    assert tuple(SLOTS) == MOMENTS
    for slots in SLOTS.values():
        assert list(slots.values()) == sorted(slots.values())
        assert "RULES" in slots
    assert list(Rank) == sorted(Rank)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_hook_without_an_order_stands_among_the_rules(moment: Any) -> None:
    """And ties go by list position, in ``after_tool`` by reverse list position."""
    features = [
        Named("early", hooked(moment, 1)), Named("one", hooked(moment)),
        Named("two", hooked(moment, SLOTS[moment]["RULES"])), Named("last", hooked(moment, 999)),
    ]  # fmt: skip
    plan = Agent(ScriptedModel(), features=[features[3], *features[:3]]).plan
    ties = ["two", "one"] if moment == "after_tool" else ["one", "two"]
    assert [m.name for m in plan.on[moment]] == ["early", *ties, "last"]


def test_the_core_stands_at_its_published_slots() -> None:
    """A hook at the very slot of a gate stands behind it, and one at the slot of the cut behind that."""
    slots = (("before_tool", "ARGUMENTS"), ("after_tool", "CAP"))
    for moment, name in slots:
        at = SLOTS[moment][name]  # type: ignore[index] # a moment, one by one
        features = [Named(str(place), hooked(moment, at + place)) for place in (-1, 0, 1)]
        plan = Agent(ScriptedModel(), features=features).plan
        first, then = (
            (plan.before_gates, plan.behind_gates) if moment == "before_tool" else (plan.before_cap, plan.behind_cap)
        )
        assert ([m.name for m in first], [m.name for m in then]) == (["-1"], ["0", "1"])


def test_a_director_with_hooks_stands_before_the_features() -> None:
    """Its hooks are compiled first, among their slot."""

    class Leading:
        async def direct(self, turn: Turn, stage: Any, /) -> None: ...

        def hooks(self, spec: object) -> Hooks:
            return Hooks(on_settle=nothing)

    plan = Agent(ScriptedModel(), director=Leading(), features=[Named("f", Hooks(on_settle=nothing))]).plan
    assert [m.name for m in plan.on["settle"]] == ["Leading", "f"]


# ---- bundles ---------------------------------------------------------------------------------------------------------


async def test_188_a_bundle_is_flattened_where_it_stands() -> None:
    """Its features, tools and instructions act as if they were listed, and the record names its version (case 188)."""

    @before_tool
    async def first(turn: Turn, call: Any) -> Allow[Any]:
        return Allow(why="first")

    @before_tool
    async def inside(turn: Turn, call: Any) -> Allow[Any]:
        return Allow(why="inside")

    @before_tool
    async def last(turn: Turn, call: Any) -> Allow[Any]:
        return Allow(why="last")

    desk = Bundle(name="support-desk", version="1", features=(inside,), tools=(tool("lookup"),),
                  instructions=(Instruction("Be kind."),))  # fmt: skip
    outer = Bundle(name="all", version="2", features=(desk,))
    model = ScriptedModel(call("lookup"), "done")
    agent: Agent[Any, Any] = Agent(model, tools=[tool("escalate")], features=[first, outer, last])
    result = await turn(agent)
    assert [why for *_, why in verdicts(result)] == ["first", "inside", "last"]
    assert read(model.requests[0])["tools"] == ["escalate", "lookup"]
    assert read(model.requests[0])["system"] == "Be kind."
    (opened,) = bodies(result, TurnOpened)
    assert opened.manifest["bundles"] == {"all": "2", "support-desk": "1"}


def test_188_two_tools_of_one_id_are_refused_naming_both_sides() -> None:
    """A bundle's tool and the agent's own, two bundles' (one inside of another), a feature's (case O188)."""
    desk = Bundle(name="support-desk", version="1", tools=(tool("lookup"),))
    with pytest.raises(ToolInvalid, match="'lookup': one of the agent itself, one of bundle 'support-desk' 1"):
        Agent(ScriptedModel(), tools=[tool("lookup")], features=[desk])
    house = Bundle(name="house", version="2", tools=(tool("lookup"),))
    with pytest.raises(ToolInvalid, match="one of bundle 'support-desk' 1, one of bundle 'house' 2"):
        Agent(ScriptedModel(), features=[Bundle(name="all", version="1", features=(desk, house))])
    own = Named("finder", Hooks(tools=(tool("lookup"),)))
    with pytest.raises(ToolInvalid, match="one of feature 'finder', one of bundle 'house' 2"):
        Agent(ScriptedModel(), features=[own, house])


def test_188_there_is_no_policy_but_to_refuse() -> None:
    """Anything else is a misspelt parameter (case O188)."""
    skipping: Any = {"conflict": "skip"}
    with pytest.raises(ConfigurationError, match="Bundle has no argument 'conflict'"):
        Bundle(name="support-desk", version="1", **skipping)


@pytest.mark.parametrize(("version", "told"), [("1", "given twice"), ("2", "in version '1' and in version '2'")])
def test_a_bundle_comes_once(version: str, told: str) -> None:
    """Whatever stands in it, and wherever it stands; the versions say what happened."""
    inner = Bundle(name="desk", version="1")
    outer = Bundle(name="all", version="1", features=(inner, Bundle(name="desk", version=version)))
    with pytest.raises(FeatureConflict, match=f"bundle 'desk' is .*{told}"):
        Agent(ScriptedModel(), features=[outer])


@pytest.mark.parametrize("field", ["name", "version"])
@pytest.mark.parametrize("blank", ["", " ", None, 1])
def test_a_bundle_has_a_name_and_a_version(field: str, blank: Any) -> None:
    """They are what the record says of it."""
    with pytest.raises(ConfigurationError, match=f"a bundle has a {field}"):
        Bundle(**{"name": "desk", "version": "1", field: blank})


def test_features_that_cannot_stand_together_name_who_brings_them() -> None:
    """One window, and one of what there may be one of."""
    alone = Named("alone", Hooks(alone=True))
    desk = Bundle(name="desk", version="1", features=(alone, Window.last(4)))
    with pytest.raises(FeatureConflict, match="'alone' is given twice, by the agent itself and by bundle 'desk' 1"):
        Agent(ScriptedModel(), features=[alone, desk])
    with pytest.raises(FeatureConflict, match="'compaction' and 'window', of the agent itself and of bundle 'desk' 1"):
        Agent(ScriptedModel(), features=[Compaction(100), desk])
    with pytest.raises(FeatureConflict, match="found two of 'window', of the agent itself\nhint: leave one"):
        Agent(ScriptedModel(), features=[Window.last(4), Window.last(5)])
    with pytest.raises(FeatureConflict, match="'alone' is given twice, by the agent itself\n"):
        Agent(ScriptedModel(), features=[alone, alone])
    lone: Any = alone
    with pytest.raises(ConfigurationError, match="features= of bundle 'desk' takes several, not a Named"):
        Bundle(name="desk", version="1", features=lone)


@pytest.mark.parametrize(
    ("hooks", "what"),
    [
        (Hooks(on_request=unchanged, order={"request": SLOTS["request"]["WINDOW"]}), "can hold the window"),
        (Hooks(on_thinking=str), "rewrites thinking"),
        (Hooks(redact=lambda entry: entry), "redacts"),
    ],
)
def test_what_there_is_one_of_is_refused_by_name_and_side(hooks: Hooks, what: str) -> None:
    """Both features, and who brings each; one of them alone is fine."""
    desk = Bundle(name="desk", version="1", features=(Named("two", hooks),))
    told = f"only one feature {what}; found 'one' and 'two', of the agent itself and of .*desk"
    with pytest.raises(FeatureConflict, match=told):
        Agent(ScriptedModel(), features=[Named("one", hooks), desk])
    Agent(ScriptedModel(), features=[desk])


def test_185_one_tool_may_come_by_several_ways() -> None:
    """The same object is the same tool (cases 184, 185)."""
    shared = tool("lookup")
    desk = Bundle(name="desk", version="1", tools=(shared,))
    assert list(Agent(ScriptedModel(), tools=[shared, shared], features=[desk]).plan.tools) == ["lookup"]


# ---- traits ----------------------------------------------------------------------------------------------------------


class Tracked(Struct, frozen=True):
    """A trait whose feature denies calls of tools that carry it."""

    why: str = "tracked"

    def check(self, held: Tool) -> None:
        if held.id == "wrong":
            raise ToolInvalid("a wrong tool cannot be tracked")

    def arms(self) -> object:
        return Tracking()


class Tracking:
    """Reads `Tracked`."""

    name = "tracking"

    def hooks(self, spec: object) -> Hooks:
        async def look(turn: Turn, call: Any) -> Any:
            held = turn.plan.tools.get(call.name)
            return Deny("tracked") if held and any(isinstance(t, Tracked) for t in held.traits) else Allow()

        async def on_request(turn: Turn, request: Any) -> Any:
            from msgspec.structs import replace

            from onrecord.models.request import Piece

            kept = tuple(p for p in request.pieces if p.source != self.name)
            return replace(request, pieces=(*kept, Piece(source=self.name, text="tracking")))

        return Hooks(before_tool=look, on_request=on_request, tools=(tool("untrack"),))


async def test_a_trait_of_a_registered_tool_mounts_its_feature() -> None:
    """Once for all tools, under its own name, with everything it brings."""
    held = [tool("a", traits=(Tracked(),)), tool("b", traits=(Tracked(),)), tool("c")]
    model = ScriptedModel([call("a"), call("c")], "done")
    agent: Agent[Any, Any] = Agent(model, tools=held)
    result = await turn(agent)
    assert texts(model.requests[1]) == ["tracked", "c"]
    assert verdicts(result) == [("before_tool", "tracking", "deny", "tracked")]
    assert read(model.requests[1])["tools"] == ["a", "b", "c", "untrack"]
    assert [m.name for m in agent.plan.on["before_tool"]] == ["tracking"]


def test_a_mounted_feature_is_not_armed_again() -> None:
    """Whoever mounts it says how."""
    agent: Agent[Any, Any] = Agent(ScriptedModel(), tools=[tool(traits=(Tracked(),))], features=[Tracking()])
    assert [m.name for m in agent.plan.on["before_tool"]] == ["tracking"]


async def test_a_tool_met_with_a_trait_that_nobody_reads_is_refused() -> None:
    """A toolset may offer it; running it would ignore what it declares."""
    ran: list[int] = []

    class Shop:
        async def tools(self, ctx: object, /) -> list[Tool]:
            return [tool("sold", lambda *_: ran.append(1), traits=(Tracked(),))]

    model = ScriptedModel(call("sold"), "done")
    result = await turn(Agent(model, tools=[Shop()]))
    assert ran == []
    assert results(result) == [("sold", "denied")]
    assert texts(model.requests[1]) == [
        '{"error":"Permission denied: this tool needs \'tracking\', which is not part of this agent"}'
    ]


def test_a_trait_may_refuse_a_tool() -> None:
    """When it is declared."""
    with pytest.raises(ToolInvalid, match="a wrong tool cannot be tracked"):
        tool("wrong", traits=(Tracked(),))


# ---- options ---------------------------------------------------------------------------------------------------------


class Tone(Struct, frozen=True):
    """An option of a feature."""

    word: str


async def test_options_are_typed_values_for_one_turn() -> None:
    """Their owner reads them; the next turn knows nothing of them."""
    seen: list[Any] = []

    async def look(turn: Turn) -> None:
        seen.append(turn.option(Tone))

    agent: Agent[Any, Any] = Agent(
        ScriptedModel("a", "b"), features=[Named("tone", Hooks(on_settle=look, options=(Tone,)))]
    )
    first = await turn(agent, options=[Tone("kind")])
    await turn(agent, session=first.session)
    assert seen == [Tone("kind"), None]


async def test_an_option_without_an_owner_is_refused_before_anything_happens() -> None:
    """So is one given twice."""
    model = ScriptedModel()
    agent: Agent[Any, Any] = Agent(model)
    with pytest.raises(UsageError, match="option 'Tone' has no owner in this agent") as refused:
        await turn(agent, options=[Tone("x")])
    assert refused.value.hint == "it takes Silenced"
    with pytest.raises(UsageError, match="option 'Silenced' is given twice"):
        await turn(agent, options=[Silenced(), Silenced("again")])
    assert model.requests == []


async def test_a_silenced_turn_says_nothing_and_keeps_the_message() -> None:
    """Its mere presence decides; the person's words stay in the conversation."""
    model = ScriptedModel("hello")
    agent: Agent[Any, Any] = Agent(model)
    first = await turn(agent, "hi", options=[Silenced()])
    assert (first.status, first.llm_calls, first.messages) == ("silent", 0, ())
    await turn(agent, "again", session=first.session)
    assert [m["content"] for m in read(model.requests[0])["messages"]] == ["hi", "again"]


# ---- folds and bodies ------------------------------------------------------------------------------------------------


class Counted(Body, frozen=True, kw_only=True, tag="counter.counted"):
    """An entry body of a feature."""

    by: int = 1


class Counter:
    """Counts its own entries."""

    name, version, state, unfinished = "counter", 1, int, False
    kinds = frozenset({"counter.counted"})
    scope: Literal["session", "turn"] = "session"

    def start(self) -> int:
        return 0

    def apply(self, state: int, entry: Entry, /) -> int:
        return state + getattr(entry.body, "by", 0)


async def test_a_features_fold_is_live_within_the_turn_and_lives_on_in_the_session() -> None:
    """What it noted a moment ago is in its state already."""
    seen, fold = list[int](), Counter()

    async def settle(turn: Turn) -> None:
        turn.note(Counted(by=2))
        seen.append(turn.state(fold))

    feature = Named("counter", Hooks(on_settle=settle, folds=(fold,), bodies=(Counted,)))
    agent: Agent[Any, Any] = Agent(ScriptedModel("a", "b"), features=[feature])
    first = await turn(agent)
    await turn(agent, session=first.session)
    assert seen == [2, 4]


def test_two_folds_of_one_name_are_refused() -> None:
    """A name is a slot in the session."""
    features = [Named(n, Hooks(folds=(Counter(),))) for n in "ab"]
    with pytest.raises(FeatureConflict, match="two folds are named 'counter'"):
        Agent(ScriptedModel(), features=features)


def test_two_bodies_of_one_kind_are_refused() -> None:
    """A record must say which is meant."""

    class Again(Body, frozen=True, kw_only=True, tag="counter.counted"):
        """The same kind once more."""

    features = [Named("a", Hooks(bodies=(Counted,))), Named("b", Hooks(bodies=(Again,)))]
    with pytest.raises(ConfigurationError, match=r"two entry bodies are declared for the kind 'counter\.counted'"):
        Agent(ScriptedModel(), features=features)


# ---- what a record says of the agent ---------------------------------------------------------------------------------


async def test_the_manifest_names_what_the_agent_is_made_of() -> None:
    """Names only: no address, no directory, no text of an instruction."""
    agent: Agent[Any, Any] = Agent(
        ScriptedModel("x"), name="ana", instructions="canary", tools=[tool("lookup")], rounds=3,
        features=[Instruction("canary"), Named("mine", Hooks(manifest={"mine": {"v": 1}}))],
    )  # fmt: skip
    (opened,) = bodies(await turn(agent), TurnOpened)
    assert opened.manifest == {
        "agent": "ana", "model": "scripted:script", "director": "Solo", "rounds": 3, "tools": ["lookup"],
        "features": ["instruction", "mine"], "mine": {"v": 1},
    }  # fmt: skip
    assert agent.spec.manifest == opened.manifest
    assert agent.spec.digest != agent.with_(rounds=4).spec.digest
