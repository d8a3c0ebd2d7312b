"""The example of flows books a room in each of its languages, calls a person, and follows up silence and check-out."""

from datetime import timedelta
from pathlib import Path

import pytest

from examples import booking
from onrecord import Session
from onrecord.conversation.inputs import Happened, Said, Woke
from onrecord.testing import FakeEffects

pytestmark = pytest.mark.unit

CUSTOMER = Path(booking.__file__).with_name("booking_customer.txt")


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch) -> booking.Desk:
    """An empty desk."""
    made = booking.Desk()
    monkeypatch.setattr(booking, "desk", made)
    return made


async def play(lines: list[str], session: Session | None = None) -> tuple[list[str], Session]:
    """The replies to the lines, and the session after them."""
    said: list[str] = []
    for line in lines:
        result = await booking.agent.turn(line, session=session)
        session = result.session
        said.append(" ".join(message.text for message in result.messages))
    assert session is not None
    return said, session


async def test_the_scripted_customer_books_a_room(desk: booking.Desk) -> None:
    """A price on the way, a fact, a correction, a yes; and the same again in the same session."""
    lines = CUSTOMER.read_text(encoding="utf-8").splitlines()
    said, session = await play(lines)
    assert "total: 280" in said[1]
    assert "7:00 to 10:30" in said[4]
    assert "Is that right?" in said[-3]
    assert said[-2] == "All right. ✓ H-1001: Lisbon, 2, Ana Costa"
    assert said[-1] == "You are welcome. Goodbye!"
    said, _ = await play(lines[2:], session)
    assert said[-2] == "All right. ✓ H-1002: Lisbon, 2, Ana Costa"
    assert [held["nights"] for held in desk.bookings.values()] == [2, 2]


@pytest.mark.parametrize(
    "lines",
    [
        ["Quero reservar um quarto em Lisboa", "três noites", "Ana Costa", "na verdade duas noites", "sim"],
        ["Quiero reservar una habitación en Lisboa", "tres noches", "Ana Costa", "en realidad dos noches", "sí"],
    ],
)
async def test_books_in_portuguese_and_spanish(desk: booking.Desk, lines: list[str]) -> None:
    """With a correction on the way."""
    said, session = await play(lines)
    assert "(city: Lisboa, nights: 2): total: 280" in said[-2]
    assert session.data["booking"] == "H-1001: Lisboa, 2, Ana Costa"
    assert len(desk.bookings) == 1


async def test_a_city_without_a_hotel_is_asked_for_again(desk: booking.Desk) -> None:
    """The action fails, says so, and nothing else has to be told twice."""
    said, _ = await play(["Book a room in Oslo for two nights for Ana Costa", "yes", "Porto", "yes"])
    assert said[1] == "All right. ✗ Oslo · ✓ Lisbon, Porto, Curitiba"
    assert said[3] == "All right. ✓ H-1001: Porto, 2, Ana Costa"


async def test_a_person_is_called_beside(desk: booking.Desk) -> None:
    """The booking goes on."""
    said, _ = await play(["I want to book a room", "can I talk to a human?", "Lisbon"])
    assert said[1:] == ["☎ +351 21 555 0100", "Noted: Lisbon. How many nights?"]
    assert len(desk.called) == 1


async def test_silence_and_check_out_are_followed_up() -> None:
    """A day after the last reply, two days after that, and two hours after an event."""
    effects = FakeEffects()
    result = await booking.agent.turn(Said("I want to book a room"), effects=effects)
    said: list[str] = []
    for _ in range(2):
        (wake,) = result.schedule
        effects.at = wake.at
        result = await booking.agent.turn(Woke(wake.key, at=wake.at), session=result.session, effects=effects)
        said += [message.text for message in result.messages]
    assert said == [
        "Hello again! Shall we go on?", "Hello again! This is my last message for now: write whenever you like.",
    ]  # fmt: skip
    gone = Happened("checked_out", key="stay-1")
    result = await booking.agent.turn(gone, session=result.session, effects=effects)
    (wake,) = result.schedule
    assert wake.at == effects.at + timedelta(hours=2)
    effects.at = wake.at
    result = await booking.agent.turn(Woke(wake.key, at=wake.at), session=result.session, effects=effects)
    assert [message.text for message in result.messages] == ["Hello again! Thank you! Please tell me how it was."]
