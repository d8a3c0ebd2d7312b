"""Whatever an application declares: a wrong value, name or number of arguments is a ConfigurationError with a hint."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Struct

from onrecord import Agent, ConfigurationError, Instruction, OnrecordError, Toolbox, Typed, Watch, preset, tool
from onrecord.conversation.identity import SessionKey
from onrecord.declared import Declared, declared
from onrecord.governance import (
    Budget,
    CheckIn,
    Consent,
    Credential,
    Credentials,
    Limit,
    NeedsCheckIn,
    NeedsCredential,
    Permissions,
    Policy,
    Redaction,
    after_tool,
    ask_fields,
    ask_human,
    before_tool,
    credential,
    halt_of,
    on_input,
    on_output,
    request_input,
    spent,
)  # fmt: skip
from onrecord.honesty import Commentary, SelfExplain
from onrecord.mcp_bridge import Http, Limits, McpTools, Stdio
from onrecord.memory import (
    Corpus,
    Document,
    Episodes,
    Fact,
    Facts,
    HashingEmbedder,
    Memory,
    PlainShelf,
    Recent,
    Retrieve,
    Summary,
    by_heading,
    by_paragraph,
    cited,
    document_id,
    fixed,
    load,
    load_folder,
    served,
    whole,
)  # fmt: skip
from onrecord.models.breaker import Breaker
from onrecord.models.call_rules import CallRule
from onrecord.models.fallback import Fallback
from onrecord.models.prices import Price, Prices
from onrecord.models.retry import Reliable
from onrecord.prompt import (
    Artifacts,
    CacheMarks,
    Choose,
    Compaction,
    ContextReader,
    ContextRegistry,
    Degrade,
    FileArtifacts,
    Media,
    MemoryArtifacts,
    PromptBudget,
    RuntimeContext,
    Thinking,
    Window,
)  # fmt: skip
from onrecord.session.session import Session
from onrecord.skills import (
    AllOf,
    BySimilarity,
    Closeness,
    Decide,
    Engagement,
    Escalation,
    Intent,
    Keywords,
    Pattern,
    Route,
    Skill,
    SkillGraph,
    SkillRegistry,
    Skills,
    SkillStep,
    Start,
    offered_with,
    read_skill_folder,
    skill_files,
    skills_from_folder,
)  # fmt: skip
from onrecord.testing import ScriptedModel
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import StaticTools, gated, prefixed
from onrecord.turn.instruction import OnActivation, OnReturn
from onrecord.turn.plan import Bundle

if TYPE_CHECKING:
    import decimal
    from collections import OrderedDict

pytestmark = pytest.mark.unit


@tool
def f() -> str:
    """Do it."""
    return "done"


def plain(*_: Any) -> None:
    """Any function."""


MODEL, A, B = ScriptedModel("x"), Skill("a", "About a.", "Do a."), Skill("b", "About b.", "Do b.")
ANY: Any = ["x"]
CORPUS = Corpus([])
POLICY = Policy(name="p", tools=("f",))


Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def case(make: Callable[..., Any], *args: Any, **named: Any) -> Case:
    """How a thing is made rightly."""
    return make, args, named


RIGHT = [
    case(Agent, MODEL), case(Bundle, name="a", version="1"), case(Instruction, "x"), case(OnReturn, "f"),
    case(OnActivation, "a"), case(Watch, plain), case(Typed), case(Toolbox), case(Tool, "t", plain),
    case(gated, [f], plain), case(prefixed, [f], "x"), case(StaticTools, [f]), case(preset, MODEL),
    case(before_tool, plain), case(after_tool, plain), case(on_input, plain), case(on_output, plain),
    case(Budget, turn=Limit(tokens=3)), case(Limit, tokens=3), case(Policy, name="p", tools=("f",)),
    case(Permissions, policies=[POLICY]), case(CheckIn), case(NeedsCheckIn), case(NeedsCredential, service="s"),
    case(Consent, url="https://x.y"), case(Credential, "s"), case(Credentials, plain), case(Redaction, patterns=["x"]),
    case(ask_human),
    case(Window, strategy="last", keep=3), case(Window.last, 3), case(Window.budget, 3),
    case(Window.summarize, 3, model=MODEL), case(Artifacts), case(CacheMarks), case(Choose, plain),
    case(Compaction, 100), case(ContextRegistry), case(ContextReader), case(MemoryArtifacts), case(PromptBudget, 10),
    case(RuntimeContext), case(Thinking, 10), case(Degrade), case(Media), case(FileArtifacts, "x"),
    case(AllOf, [Keywords(["a"])]), case(BySimilarity, plain), case(Closeness), case(Decide, bool, "a", "b"),
    case(Engagement), case(Escalation, MODEL), case(Intent, "x"), case(Keywords, ["a"]), case(Pattern, "x"),
    case(Route, "a", "b"), case(Skill, "a", "d", "t"), case(SkillGraph, [A, B], start="a", check="off"),
    case(SkillRegistry, [A]), case(SkillStep, "f", "n"), case(Skills, A), case(Start, "a"),
    case(offered_with, "a", [f]),
    case(Corpus, []), case(Corpus.of, [Document("h.md", "x")]), case(Document, "a", "b"),
    case(Episodes, half_life=timedelta(1)), case(Facts), case(Fact, "a", "b"), case(HashingEmbedder),
    case(Memory, PlainShelf(), [Recent()]), case(Recent), case(Summary), case(Retrieve, CORPUS), case(by_heading),
    case(by_paragraph), case(fixed), case(Commentary), case(SelfExplain), case(Http, "https://x.y"),
    case(Stdio, ("a",)), case(Limits), case(McpTools, Http("https://x.y"), name="m"), case(Reliable, MODEL),
    case(Breaker), case(CallRule, only_if=plain, then="ok"), case(Fallback, MODEL, MODEL), case(Prices, {}),
    case(Price, input=1, output=1), case(ask_fields, Struct), case(credential, None), case(halt_of, []),
    case(request_input, None, "x", []), case(spent, Session(key=SessionKey("s"))), case(cited, "x", []),
    case(document_id, "x"), case(load, "no.md"), case(load_folder, "no"), case(served, []),
    case(whole, Document("a", "b")), case(read_skill_folder, "no"), case(skills_from_folder, "no"),
    case(skill_files, "no"),
]  # fmt: skip
NAMED = [pytest.param(*one, id=getattr(one[0], "__qualname__", "")) for one in RIGHT]


class Other:
    """An object of no use to anybody."""


class Closed:
    """A class given where an object of it is meant."""


WRONG: tuple[Any, ...] = (12, -1, "a", [], ["x"], {"a": 1}, Other(), Closed)
TAKES_ALL = {("Agent", "context"), ("Agent", "output"), ("Corpus", "matrix"), ("Typed", "canned")}
"""What may be anything at all, as far as its type says."""


def parameters(make: Callable[..., Any]) -> tuple[str, ...]:
    """The names that it takes."""
    if isinstance(make, Declared):
        return make.__struct_fields__
    return tuple(
        p.name for p in inspect.signature(make).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    )


def made(make: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What it makes, in an agent where it is a feature."""
    held = make(*args, **named)
    held = asyncio.run(held) if inspect.iscoroutine(held) else held
    if callable(getattr(held, "hooks", None)):
        Agent(MODEL, tools=[f], features=[held])
    return held


@pytest.mark.parametrize(("make", "args", "named"), NAMED)
def test_a_wrong_value_is_named(make: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Of every argument: each wrong value raises an error of the library, or is a right one; some are wrong."""
    owner = getattr(make, "__qualname__", "")
    for at, name in enumerate(parameters(make)):
        told = []
        for wrong in WRONG[:-1] if name == "splitter" else WRONG:  # a class can be called, and raises as it likes
            given = [*args]
            if at < len(args):
                given[at] = wrong
            try:
                made(make, tuple(given), named if at < len(args) else {**named, name: wrong})
            except OnrecordError as error:
                told.append(str(error))
        assert told or (owner, name) in TAKES_ALL, f"{owner} takes anything for {name}="


ODD: tuple[Any, ...] = (None, range(3), b"x", 10**5000, -(10**5000), float("nan"), "\ud800", timedelta.max)


@pytest.mark.parametrize(("make", "args", "named"), NAMED)
def test_an_odd_value_is_taken_or_named(make: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Also one that only looks as if it fitted: nothing raises a bare error of Python."""
    for at, name in enumerate(parameters(make)):
        for odd in ODD:
            given = [*args]
            if at < len(args):
                given[at] = odd
            with suppress(OnrecordError):
                made(make, tuple(given), named if at < len(args) else {**named, name: odd})


@pytest.mark.parametrize(("make", "args", "named"), NAMED)
def test_a_wrong_call_is_named(make: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """An argument that nobody knows, one too many without a name, and none at all where one is needed."""
    owner = getattr(make, "__qualname__", "")
    if make is not preset:  # it hands on what only the vendor knows
        with pytest.raises(ConfigurationError, match=f"{owner} has no argument 'nonsense'") as caught:
            made(make, args, {**named, "nonsense": 1})
        assert caught.value.hint
    if make is not Skills and make is not Fallback and make is not Reliable:  # these take any number
        with pytest.raises(ConfigurationError, match=f"{owner} takes .*without a name"):
            made(make, (*args, *[None] * 9), {})
    if args and make not in (Skills, SkillRegistry, before_tool, after_tool, on_input, on_output):
        with pytest.raises(OnrecordError):
            made(make, (), {})


def slip(make: Any) -> Any:
    """The same, for a call that a type checker would refuse."""
    return make


@pytest.mark.parametrize(
    ("make", "told", "hint"),
    [
        (lambda: slip(Window)(12), "Window takes no argument without a name", "Window.last(12)"),
        (lambda: slip(Bundle)("a", "1"), "Bundle takes no argument without a name", "Bundle(name=, version="),
        (lambda: slip(Bundle)(name="a", version="1", instructions=ANY), "a list of Instruction, not", "Bundle("),
        (lambda: slip(SkillGraph)(A), "skills= of SkillGraph is a list of Skill", "skills=[...]"),
        (lambda: slip(SkillGraph)([A], start="a", engagement=3), "engagement= of SkillGraph is an Engagement", ""),
        (lambda: slip(SkillGraph)([A], start="a", engagement=Engagement), "not the class", "Engagement(...)"),
        (lambda: slip(Permissions)(["f"]), "roles= of Permissions is a dict", "Permissions(roles, role,"),
        (lambda: slip(Permissions)(polices=[POLICY]), "no argument 'polices'", "did you mean policies=?"),
        (lambda: slip(Corpus)([Document("a", "b")]), "these are documents", "await Corpus.of(documents)"),
        (lambda: slip(Budget)(turn=5), "a Budget takes a Limit, not int", "Budget(turn=Limit("),
        (lambda: slip(Agent)(MODEL, tools=[ask_human]), "'ask_human' in tools= is neither", "tools=[ask_human(...)]"),
        (lambda: slip(Policy)(name="p", tools="f"), "a tuple of tools", ""),
        (lambda: slip(Permissions)(check=lambda: None), "a function of one argument or None, not one that takes", ""),
        (lambda: slip(NeedsCheckIn)(lambda _: True), "a function of two arguments, not one that takes others", ""),
        (lambda: slip(Instruction)("x", only_if=lambda: True), "a plain function of one argument", "Instruction("),
        (lambda: slip(Thinking)(9, handler=lambda: ""), "plain function of one argument or None,", ""),
        (lambda: slip(RuntimeContext)(providers=(lambda: "x",)), "function of one argument, not one with", ""),
        (lambda: slip(Budget)(tokens=5), "no argument 'tokens'", "Budget(turn, session=, prices=,"),
        (lambda: slip(Agent)(MODEL, tools=[A]), "'Skill' in tools= is neither", "Skills(...)"),
        (lambda: slip(Agent)(MODEL, features=[A]), "'Skill' in features= is no feature", "Skills(...)"),
        (lambda: slip(SelfExplain)(entries=PlainShelf()), "a function that reads them", "entries=store.entries"),
        (lambda: slip(BySimilarity)(HashingEmbedder()), "async function of texts", "lambda texts: embedder.embed("),
        (lambda: slip(Instruction)(5), "an instruction is a text", "instructions= may be a function"),
        (lambda: slip(on_output)(plain, revisions=-1), "revisions of on_output is a whole number from 0 on", ""),
        (lambda: slip(Instruction)("x", only_if=OnReturn), "not a class", "OnReturn("),
    ],
)  # fmt: skip
def test_the_commonest_slips(make: Callable[[], Any], told: str, hint: str) -> None:
    """Say what to write instead."""
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert told in str(caught.value)
    assert hint in caught.value.hint


def test_a_function_may_take_more_than_it_is_called_with() -> None:
    """By a default, as any arguments, as a method, or as part of another."""

    class Says:
        def once(self, turn: object, more: int = 1) -> bool:
            return bool(turn) or bool(more)

    for only_if in (lambda *_: True, Says().once, partial(Says.once, Says())):
        assert Instruction("x", only_if=only_if).text == "x"


def test_a_value_is_never_quoted() -> None:
    """It may be a secret."""
    with pytest.raises(ConfigurationError) as caught:
        slip(Credential)({"key": "sk-secret"})
    assert "sk-secret" not in f"{caught.value}{caught.value.hint}"


def test_what_can_be_read_once_is_left_to_whoever_reads_it() -> None:
    """Its elements are not looked at: nothing would be left of them. Those of a list are."""

    @declared
    def later(items: Iterable[int]) -> Iterable[int]:
        return items

    assert list(later(iter([1, 2]))) == [1, 2]
    with pytest.raises(ConfigurationError, match=r"items= of .*later is a list of whole number, not one with str"):
        later(slip(["one"]))


def test_a_mapping_is_no_list() -> None:
    """Though its names could be read as one."""
    with pytest.raises(ConfigurationError, match="tools= of Policy is a list of text, not dict"):
        Policy(name="p", tools=slip({"f": True}))


def test_what_an_own_function_raises_stays_what_it_is() -> None:
    """A fault of the application is no wrong value."""

    def broken(document: Document) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(Corpus.of([Document("h.md", "x")], splitter=broken))


def test_what_only_type_checkers_import_takes_anything_and_hides_nothing_else() -> None:
    """Its name may be followed by brackets; the other annotations beside it are read."""

    class Mine(Struct, metaclass=Declared):
        odd: OrderedDict[str, int]
        kind: type[OrderedDict[str, int]] | None = None
        count: int = 0

    assert slip(Mine)({"what": "ever"}, kind=int).count == 0
    with pytest.raises(ConfigurationError, match="count= of Mine is a whole number, not str"):
        slip(Mine)(1, count="x")


def test_a_class_whose_annotations_nobody_can_read_is_not_checked() -> None:
    """It works all the same."""

    class Mine(Struct, metaclass=Declared):
        odd: decimal.Decimal
        count: int = 0

    assert slip(Mine)(1, count="x").count == "x"


def test_every_feature_is_in_the_table() -> None:
    """And every struct that says of itself that it is declared."""
    known = {make for make, _, _ in RIGHT}
    packages = ("onrecord", *(f"onrecord.{name}" for name in PACKAGES))
    assert {name for package in packages for name in _declared_in(package, known)} == OTHERWISE


PACKAGES = ("governance", "prompt", "skills", "memory", "honesty", "mcp_bridge")
OTHERWISE = {"Rule"}
"""Made by decorators alone."""


def _declared_in(package: str, known: set[Any]) -> Iterator[str]:
    module = import_module(package)
    for name in module.__all__:
        held = getattr(module, name)
        if isinstance(held, type) and held not in known:
            is_feature = callable(getattr(held, "hooks", None)) and not getattr(held, "_is_protocol", False)
            if is_feature or (issubclass(held, Struct) and isinstance(held, Declared)):
                yield name
