"""Whole conversations of flows with the stand-in, through a real agent: nothing but what a customer writes is given."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord import Agent, Session, ToolContext, tool
from onrecord.conversation.inputs import Happened, Input, Said, Woke
from onrecord.flows import (
    Branch,
    Collect,
    Do,
    Field,
    Flow,
    Flows,
    Goto,
    Idle,
    If,
    Ok,
    OnEvent,
    OnMention,
    OnMessage,
    OnSilence,
    Say,
    Talk,
    Wait,
)  # fmt: skip
from onrecord.testing import FakeEffects
from onrecord.turn.result import TurnResult

pytestmark = pytest.mark.unit


@dataclass
class Stay:
    """What a room needs."""

    city: Annotated[str, Field(about="City to stay in.", ask="Ask which city they want.")]
    nights: Annotated[int, Field(about="Number of nights.", ask="Ask how many nights they stay.")]
    name: Annotated[str, Field(about="Name of the guest.", ask="Ask under which name to book.")]
    ok: Annotated[bool, Field(ask="Sum up in one line and ask if it is right.")]


@tool(read_only=True)
def price(city: Annotated[str, "City to stay in."], nights: Annotated[int, "Number of nights."]) -> dict[str, Any]:
    """Price of a stay in a city."""
    return {"total": 100 * nights, "in": city}


class Desk:
    """A session of a flow agent, its clock, and what the Do action booked."""

    def __init__(self, *flows: Flow, idle: Any = Idle(), **more: Any) -> None:  # noqa: B008 - a frozen value
        self.booked: list[dict[str, Any]] = []

        @tool
        def book(ctx: ToolContext[object]) -> Ok:
            """Books what was collected."""
            self.booked.append({name: ctx.data[name] for name in ("city", "nights", "name")})
            return Ok()

        self.director = Flows(*flows, fields=Stay, actions=[book], events=["checked_out"], idle=idle, **more)
        self.agent: Agent[object, str] = Agent("offline", name="Ana", tools=[price], director=self.director)
        self.effects = FakeEffects()
        self.session: Session | None = None
        self.last: TurnResult[str] | None = None

    async def turn(self, given: Input) -> str:
        """One turn a minute; everything that was said in it."""
        self.effects.advance(minutes=1)
        self.last = await self.agent.turn(given, session=self.session, effects=self.effects)
        self.session = self.last.session
        return " ".join(message.text for message in self.last.messages)

    async def talk(self, *lines: str) -> list[str]:
        """A customer's lines, one turn each."""
        return [await self.turn(Said(line)) for line in lines]

    async def wake(self) -> str:
        """The clock moves on to the next wake, and it fires."""
        assert self.last is not None
        wake = min(self.last.schedule, key=lambda held: held.at)
        self.effects.at = wake.at
        return await self.turn(Woke(wake.key, at=wake.at))


def corrected(step: str, *more: str) -> list[Branch]:
    """Exits for what the customer takes back: forget it, and read the same message again."""
    return [
        Branch(f"the customer changes the {what}", then=Goto(step, clear=[slug, *more]))
        for slug, what in {"city": "city", "nights": "number of nights", "name": "name"}.items()
    ]


BOOKING = Flow(
    "booking",
    description="Books a room for some nights.",
    on=[OnMessage("wants to book a room", "quer reservar um quarto", "quiere reservar una habitación")],
    steps=[
        Collect("city", "nights", "name", id="stay", max_asks=9, branches=corrected("stay")),
        Collect(
            "city", "nights", "name", "ok", id="confirm", max_asks=9, tools=["price"],
            prompt="Quote the price, sum up, and ask if it is right.", branches=corrected("confirm", "ok"),
        ),
        If({"equals": {"ok": True}}, id="agreed", else_=Goto("confirm", clear=["ok"])),
        Do("book"),
        Say("✓ {{data.city}} {{data.nights}} {{data.name}}"),
    ],
    tools=[],
)  # fmt: skip


SEVILLA = "De price (city: Sevilla, nights: 2): total: 200, in: Sevilla. "

BOOKINGS = [
    pytest.param(
        ["Hello!", "I want to book a room in Lisbon", "three nights please", "Ana Costa", "actually two nights", "yes"],
        [
            "Noted: Lisbon. How many nights?",
            "Noted: 3 nights. What is the name, please?",
            "From price (city: Lisbon, nights: 3): total: 300, in: Lisbon. Lisbon, 3 nights, Ana Costa. Is that right?",
            "From price (city: Lisbon, nights: 2): total: 200, in: Lisbon. Lisbon, Ana Costa, 2 nights. Is that right?",
            "All right. ✓ Lisbon 2 Ana Costa",
        ],
        {"city": "Lisbon", "nights": 2, "name": "Ana Costa"},
        id="English, corrected when asked whether it is right",
    ),
    pytest.param(
        [
            "Olá!",
            "Quero reservar um quarto",
            "no Porto",
            "três noites",
            "na verdade duas noites",
            "João da Silva",
            "sim",
        ],
        [
            "Qual cidade?",
            "Anotado: Porto. Quantas noites?",
            "Anotado: 3 noites. Qual é o nome, por favor?",
            "Anotado: 2 noites. Qual é o nome, por favor?",
            "De price (city: Porto, nights: 2): total: 200, in: Porto. Porto, 2 noites, João da Silva. Está certo?",
            "Certo. ✓ Porto 2 João da Silva",
        ],
        {"city": "Porto", "nights": 2, "name": "João da Silva"},
        id="Portuguese, corrected while the name is asked for",
    ),
    pytest.param(
        [
            "¡Hola!",
            "Quiero reservar una habitación en Madrid para dos noches",
            "Me llamo Ana Costa",
            "no, en Sevilla",
            "no",
            "tres",
            "sí, adelante",
        ],
        [
            "Anotado: Madrid, 2 noches. ¿Cuál es el nombre, por favor?",
            "De price (city: Madrid, nights: 2): total: 200, in: Madrid. Madrid, 2 noches, Ana Costa. ¿Está bien así?",
            SEVILLA + "2 noches, Ana Costa, Sevilla. ¿Está bien así?",
            "De acuerdo, así no. ¿Qué debo cambiar?",
            SEVILLA.replace("2", "3") + "Sevilla, Ana Costa, 3 noches. ¿Está bien así?",
            "De acuerdo. ✓ Sevilla 3 Ana Costa",
        ],
        {"city": "Sevilla", "nights": 3, "name": "Ana Costa"},
        id="Spanish, corrected twice, once by a no",
    ),
]


@pytest.mark.parametrize(("lines", "replies", "booked"), BOOKINGS)
async def test_books_a_room_with_a_correction_on_the_way(
    lines: list[str], replies: list[str], booked: dict[str, Any]
) -> None:
    """Collect, correct, price by tool, confirm, book by action, once; the greeting is the idle speaker's."""
    desk = Desk(BOOKING, lone_flow="score")
    said = await desk.talk(*lines)
    assert said[1:] == replies
    assert desk.booked == [booked]
    assert desk.session is not None
    assert desk.director.state(desk.session).runs == ()


async def test_a_correction_without_an_exit_goes_round_by_the_yes_that_it_is_not() -> None:
    """The classic loop: what is no yes is a no, the gate forgets, and the step asks again."""
    loop = Flow(
        "booking",
        on=[OnMessage("wants to book a room")],
        steps=[
            Collect("city", "nights", id="stay"),
            Collect("ok", id="check"),
            If({"equals": {"ok": True}}, else_=Goto("stay", clear=["nights", "ok"])),
            Say("✓ {{data.city}} {{data.nights}}"),
        ],
    )
    desk = Desk(loop)
    said = await desk.talk("I want to book a room in Lisbon for three nights", "actually two nights", "two", "yes")
    assert said == [
        "Lisbon, 3 nights. Is that right?",
        "All right. How many nights?",
        "Lisbon, 2 nights. Is that right?",
        "All right. ✓ Lisbon 2",
    ]


async def test_a_question_on_the_way_is_answered_and_the_step_goes_on() -> None:
    """From the knowledge base, by the tool that the message asks for, or plainly not."""
    desk = Desk(BOOKING, knowledge={"breakfast": "7:00 to 10:30"})
    said = await desk.talk("Book a room", "When is breakfast?", "Do you have a pool?", "Lisbon")
    assert said[1] == "My brief says: “breakfast: 7:00 to 10:30” Which city?"
    assert said[2].endswith("found no rule for that. Which city?")
    assert said[3] == "Noted: Lisbon. How many nights?"


async def test_an_authors_fixed_question_goes_out_alone_unless_something_was_asked() -> None:
    """In front of it an answer asks nothing itself."""
    fixed = Flow(
        "form",
        on=[OnMessage()],
        steps=[Collect("city", question="In which city would you like to stay?"), Say("✓ {{data.city}}")],
    )
    desk = Desk(fixed, knowledge={"breakfast": "7:00 to 10:30"})
    said = await desk.talk("hi", "Lisbon")
    assert said == ["In which city would you like to stay?", "✓ Lisbon"]
    curious = Desk(fixed, knowledge={"breakfast": "7:00 to 10:30"})
    (both,) = await curious.talk("When is breakfast?")
    assert both == "My brief says: “breakfast: 7:00 to 10:30” In which city would you like to stay?"


async def test_a_mention_runs_beside_the_flow_that_asks() -> None:
    """And the flow is asking still."""
    person = Flow("person", on=[OnMention("asks for a human")], steps=[Say("Calling someone.")])
    desk = Desk(BOOKING, person)
    said = await desk.talk("I want to book a room", "Can I talk to a human?", "Lisbon")
    assert said == ["Which city?", "Calling someone.", "Noted: Lisbon. How many nights?"]


async def test_another_wish_takes_the_floor_and_gives_it_back() -> None:
    """The first flow waits until the second has ended."""
    complaint = Flow(
        "complaint",
        on=[OnMessage("wants to complain about something broken")],
        steps=[Talk("Apologise."), Say("✓")],
    )
    desk = Desk(BOOKING, complaint)
    said = await desk.talk("I want to book a room", "I want to complain, the shower is broken", "Lisbon")
    assert said == ["Which city?", "I am sorry about that. ✓", "Noted: Lisbon. How many nights?"]


NUDGE = Flow(
    "nudge",
    on=[OnSilence("24h")],
    steps=[Talk("Pick the conversation up lightly."), Wait("2d", else_="end"), Talk("Last try, short.")],
)


@pytest.mark.parametrize(
    ("line", "question", "first", "last"),
    [
        ("I want to book a room", "Which city?", "Hello again! Shall we go on?",
         "Hello again! This is my last message for now: write whenever you like."),
        ("Quero reservar um quarto", "Qual cidade?", "Olá de novo! Vamos continuar?",
         "Olá de novo! Esta é a minha última mensagem por agora: escreva quando quiser."),
        ("Quiero reservar una habitación", "¿Qué ciudad?", "¡Hola de nuevo! ¿Seguimos?",
         "¡Hola de nuevo! Este es mi último mensaje por ahora: escriba cuando quiera."),
    ],
)  # fmt: skip
async def test_follows_up_a_silence_in_the_customers_language(line: str, question: str, first: str, last: str) -> None:
    """After a day, and for the last time two days later; whoever writes then finds the booking where it was."""
    desk = Desk(BOOKING, NUDGE)
    assert await desk.talk(line) == [question]
    assert await desk.wake() == first
    assert await desk.wake() == last
    (reply,) = await desk.talk("Porto")
    assert "Porto" in reply
    assert desk.session is not None
    assert desk.session.data["city"] == "Porto"


async def test_an_answer_to_the_nudge_goes_back_to_the_booking() -> None:
    """The second message never goes out."""
    desk = Desk(BOOKING, NUDGE)
    await desk.talk("Quero reservar um quarto")
    await desk.wake()
    assert await desk.talk("sim", "Porto") == ["Qual cidade?", "Anotado: Porto. Quantas noites?"]


async def test_an_event_is_followed_up() -> None:
    """By what its guideline says, as far as a rule can do it."""
    thanks = Flow(
        "thanks",
        on=[OnEvent("checked_out", after="2h")],
        steps=[Talk("Thank them for the stay, and ask how it was.")],
    )
    desk = Desk(thanks)
    await desk.talk("Hello, what a nice place this is", "thanks")
    await desk.turn(Happened("checked_out", key="e1"))
    assert await desk.wake() == "Hello again! Thank you! Please tell me how it was."


YES = ["yes", "sim", "sí, adelante", "ok", "yes please"]
LINES = [
    *YES, "I want to book a room in Lisbon", "quero reservar um quarto no Porto", "three nights", "actually two nights",
    "na verdade em Coimbra", "Ana Costa", "Bob Silva instead", "no", "hm", "yes, but four nights", "ok let's do Porto",
    "How much is it in Faro?", "Is breakfast included?", "change the name please", "Lisbon, 2 nights, for Ana Costa",
    "thanks", "no, 5", "Hello!",
]  # fmt: skip
QUESTIONS = ("Is that right?", "Está certo?", "¿Está bien así?")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=9))
async def test_nothing_is_booked_but_what_was_summed_up_and_agreed_to(lines: list[str]) -> None:
    """Whatever is said in whatever order: the reply before named the values and asked; the answer was a plain yes."""
    desk = Desk(BOOKING, NUDGE, lone_flow="score")
    before = ""
    for line in ["I want to book a room", *lines]:
        count = len(desk.booked)
        (reply,) = await desk.talk(line)
        assert reply.strip()
        if len(desk.booked) > count:
            assert before.endswith(QUESTIONS)
            assert line in YES or (line == "ok let's do Porto" and desk.booked[-1]["city"] == "Porto")
            assert all(str(value) in before for value in desk.booked[-1].values())
        before = reply
