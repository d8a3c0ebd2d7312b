"""Redaction of what only looks otherwise: accents apart, wide letters and signs, letters that nobody sees."""

from __future__ import annotations

import unicodedata

import pytest

from onrecord.governance import Redaction
from onrecord.record.kinds import Noted
from onrecord.record.leaving import body_leaving

pytestmark = pytest.mark.unit

LOOKS = {
    "accents apart": unicodedata.normalize("NFD", "Žižka-77"),
    "letters nobody sees": "\u200b".join("Žižka-77"),
    "a hyphen that is not shown": "Žiž\u00adka-77",
    "wide letters": "\uff3a\u030ciž\uff4b\uff41\uff0d\uff17\uff17",
    "a direction": "\u202eŽiž\u200fka-77\u202c",
    "a look": "Žižka\ufe0f-77",
    "an accent behind a letter nobody sees": "Z\u200b\u030cižka-77",
}


@pytest.mark.parametrize("written", LOOKS.values(), ids=LOOKS)
def test_a_pattern_finds_what_looks_like_it(written: str) -> None:
    """However a model or a guest writes it, people read the same; all else stays as it was written."""
    left = Redaction(patterns=[r"Žižka-\d+"]).text(f"é ½ {written} e\u0301 ❤\ufe0f")
    assert left.replace("\u202e", "").replace("\u202c", "") == "é ½ [redacted] e\u0301 ❤\ufe0f"
    assert Redaction(patterns=[r"Žižka-\d+"]).text("Žižka \u200b78") == "Žižka \u200b78"


def test_a_letter_that_stands_for_two_goes_whole() -> None:
    """A match may begin or end within it; a match of nothing takes nothing out."""
    assert Redaction(patterns=["af"]).text("aﬁ and ﬁt") == "[redacted] and ﬁt"
    assert Redaction(patterns=["f", "i"]).text("ﬁt") == "[redacted]t"
    assert Redaction(patterns=["if"]).text("ﬁﬁ") == "[redacted]"
    assert Redaction(patterns=["q*?"], word="").text("é\u200bé") == "é\u200bé"


@pytest.mark.parametrize(
    "written",
    [
        "card\uff1a4111",
        "card \u200b: 4111",
        "\u202ecard: 4111",
        "card\uff1d4111",
        "<\u202ecard>4111</\u202ecard>",
        "\uff43\uff41\uff52\uff44\uff1a4111",
    ],
)
def test_signs_behind_a_name_may_be_wide_or_unseen(written: str) -> None:
    """As keyboards of other languages write them; and nothing behind the value goes with it."""
    redaction = Redaction(names=["card"])

    def left(text: str) -> str:
        body = body_leaving(Noted(by="x", text=text), redaction)
        return body.text if isinstance(body, Noted) else ""

    assert "4111" not in left(written)
    assert left("card=4111 ❤\ufe0f and so on") == "card=[redacted] ❤\ufe0f and so on"
