"""The example agent with its scripted customer ends with a booked room, twice in one session too."""

from pathlib import Path

import pytest

from examples import hotel
from onrecord import Session

pytestmark = pytest.mark.unit

CUSTOMER = Path(hotel.__file__).with_name("hotel_customer.txt")


async def play(lines: list[str], session: Session | None) -> tuple[list[str], Session | None]:
    """The replies to the lines, and the session after them."""
    said: list[str] = []
    for line in lines:
        result = await hotel.agent.turn(line, session=session)
        session = result.session
        said.append(result.text)
    return said, session


async def test_the_scripted_customer_books_a_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Price, a change of mind, a fact from the brief, a name, a yes, a code in the session's data, a goodbye."""
    monkeypatch.setattr(hotel, "crm", hotel.Crm())
    lines = CUSTOMER.read_text(encoding="utf-8").splitlines()
    said, session = await play(lines, None)
    assert session is not None
    assert session.data == {"booking": "H-1001"}
    assert "total: 280" in said[1]
    assert "H-1001" in said[-2]
    assert said[-1] == "You are welcome. Goodbye!"
    said, session = await play(lines, session)
    assert session is not None
    assert session.data == {"booking": "H-1002"}
    assert [held["city"] for held in hotel.crm.bookings.values()] == ["Porto", "Porto"]


async def test_the_rule_and_the_unknown_city(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are told as they are."""
    monkeypatch.setattr(hotel, "crm", hotel.Crm())
    said, _ = await play(
        [
            "Price in Oslo?",
            "Book a room in Porto for 20 nights for Bob Silva",
            "yes",
            "Book a room in Oslo for 2 nights",
        ],
        None,
    )
    assert "there is no hotel in Oslo" in said[0]
    assert "arranged by the reception" in said[2]
    assert hotel.crm.bookings == {}
