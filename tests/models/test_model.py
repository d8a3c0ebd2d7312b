"""Wrappers and scopes: what a preset adds, and where native output may be replayed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from msgspec.structs import replace

from onrecord.errors import ConfigurationError
from onrecord.models.chunks import Chunk, Finished
from onrecord.models.lanes import SLICE
from onrecord.models.model import Preset, extend, preset, scope_of
from onrecord.models.request import Request, Settings, Wire
from tests.models.requests import CARD, request, user

pytestmark = pytest.mark.unit


class Listening:
    """A model that keeps the settings it is asked with."""

    card = CARD

    def __init__(self) -> None:
        self.heard: list[Settings] = []
        self.limits: list[int] = []

    def wire(self, asked: Request, /) -> Wire:
        """Bytes of no meaning."""
        self.heard.append(asked.settings)
        return Wire(body=b"wire")

    def extend(self, asked: Request, /, limit: int = 1) -> int:
        """Nothing is left."""
        self.heard.append(asked.settings)
        self.limits.append(limit)
        return 0

    async def stream(self, asked: Request, /) -> AsyncGenerator[Chunk, None]:
        """The end."""
        self.heard.append(asked.settings)
        yield Finished()


async def test_a_preset_shows_and_sends_the_same_request() -> None:
    """Bytes, slices and reply are of one request, or a receipt would vouch for another."""
    model = Listening()
    held, asked = preset(model, temperature=0.2, seed=3), request(user("hi"))
    held.wire(asked)
    extend(held, asked)
    assert [chunk async for chunk in held.stream(asked)] == [Finished()]
    assert model.heard == [Settings(temperature=0.2, seed=3)] * 3
    assert model.limits == [SLICE]
    assert held.card is CARD


@pytest.mark.parametrize(
    ("own", "sent"),
    [
        (Settings(), Settings(temperature=0.2, max_tokens=9, extra={"a": 1})),
        (Settings(temperature=0.0), Settings(temperature=0.0, max_tokens=9, extra={"a": 1})),
        (Settings(seed=0, stop=()), Settings(temperature=0.2, max_tokens=9, seed=0, stop=(), extra={"a": 1})),
        (Settings(extra={"b": 2}), Settings(temperature=0.2, max_tokens=9, extra={"b": 2})),
    ],
)
def test_a_request_s_own_settings_win_field_by_field(own: Settings, sent: Settings) -> None:
    """Also where they are 0 or empty, which says something; only None and no extras say nothing."""
    held: Any = preset(Listening(), temperature=0.2, max_tokens=9, a=1)
    assert isinstance(held, Preset)
    assert held.with_settings(request(user("hi"), settings=own)).settings == sent


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"temperature": "hot"}, "temperature= of preset is not a number"),
        ({"stop": "END"}, r"stop= of preset is not a tuple of texts, such as \('END',\)"),
        ({"max_tokens": 0}, "max_tokens= of preset is not a whole number above 0"),
        ({"seed": 1.5}, "seed= of preset is not a whole number"),
        ({"thinking": True}, "thinking= of preset is not an effort"),
        ({"search": "yes"}, "search= of preset is not True or False"),
    ],
)
def test_a_preset_refuses_a_setting_of_another_type(setting: dict[str, Any], told: str) -> None:
    """By name, while the agent is made: a vendor would refuse it later, or take a text for a list of letters."""
    with pytest.raises(ConfigurationError, match=told):
        preset(Listening(), **setting)
    assert preset(
        Listening(), temperature=0, top_p=1, max_tokens=1, stop=("a",), seed=-1, thinking="none", search=False
    )


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("https://h/v1", "https://h/v1"),
        ("https://ana:pw@h/v1", "https://h/v1"),
        ("https://ana:p/w@d@h/v1", "https://h/v1"),
        ("ana:pw@h/v1", "h/v1"),
        ("https://h/v1?key=pw", "https://h/v1"),
        ("https://h/v1#pw", "https://h/v1"),
        ("https://ana:pw@h/v1?key=a@pw", "https://h/v1"),
    ],
)
def test_a_scope_names_the_endpoint_and_never_credentials(address: str, place: str) -> None:
    """It goes on record beside what may be replayed there."""
    scope = scope_of(replace(CARD, base_url=address), "s")
    assert scope == scope_of(replace(CARD, base_url=place), "s")
    assert "pw" not in scope
    assert scope != scope_of(replace(CARD, base_url=place), "t")
