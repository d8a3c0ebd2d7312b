"""Values behind names go from texts that are no JSON, however those write them, in time that is of a text's length."""

from __future__ import annotations

import time
from typing import Any

import pytest

from onrecord.governance import Redaction
from tests.governance.test_redaction import acted, text_of

pytestmark = pytest.mark.unit

NAMES = ["password", "authorization", "señal", "straße"]
WRITTEN = {
    "JSON in a log": r"got {\"password\": \"canary\"}",
    "JSON in JSON in a log": r"got {\\\"password\\\": \\\"canary\\\"}",
    "a header in single quotes": "curl -H 'Authorization: Bearer canary' http://x",
    "a header in double quotes": 'curl -H "Authorization: Bearer canary" http://x',
    "an option": "run --password=canary",
    "an option and a word": "run --password canary --fast",
    "an option with one dash": "run -password=canary",
    "PHP": "array('password' => 'canary')",
    "Ruby": "{:password => 'canary'}",
    "Go": 'x; password := "canary"',
    "JavaScript": 'const a = {password: "canary"}',
    "names without quotes": "{user: 1, password: canary}",
    "a default with a type": 'def f(a, password: str = "canary"): ...',
    "a comparison": 'if password == "canary":',
    "a member that is set": 'd["password"] = "canary"',
    "bytes": "f(password=b'canary')",
    "three quotes": 'password="""a "b" canary"""',
    "doubled quotes": "password='it''s canary'",
    "backticks": "password=`canary`",
    "XML with a prefix": "<ns:password>canary</ns:password>",
    "XML with raw text": "<password><![CDATA[canary]]></password>",
    "XML with more in it": "<password><value>canary</value></password>",
    "YAML in a block": "a: 1\npassword: |\n  canary\n",
    "YAML as a list": "password:\n  - canary\n",
    "a part of a form": 'Content-Disposition: form-data; name="password"\r\n\r\ncanary\r\n',
    "another case": "PassWord=canary",
    "an accent apart": "sen\u0303al=canary",
    "an accent apart in JSON": '{"sen\u0303al": "canary"}',
    "a letter that folds to two": "Stra\u00dfe=canary",
    "two letters for it": "STRASSE=canary",
    "wide letters": "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44=canary",
    "what nobody sees": "pass\u200bword=canary",
    "what nobody sees in JSON": '{"pass\u00adword": "canary"}',
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
async def test_a_value_behind_a_name_goes(text: str) -> None:
    """From what a person says; the record keeps it."""
    result, seen = await acted(Redaction(names=NAMES), said=text)
    assert "canary" in text_of(list(result.entries))
    assert "canary" not in text_of(seen)


STAYS = [
    "no password here", "my-password=1", "passwords=1", "the <b>password</b> is", "Said: the password, or not",
    "una señal", "Stra\u00dfe 12", "password\n\nnext", "\u2474 password \u2474",
]  # fmt: skip


@pytest.mark.parametrize("text", STAYS)
def test_a_name_alone_takes_nothing_with_it(text: str) -> None:
    """Nor does a word that only begins or ends like one."""
    assert Redaction(names=NAMES)._words.prose(text) == text


def test_what_stands_beside_a_value_stays() -> None:
    """Signs between letters that are folded are kept as they are."""
    words = Redaction(names=NAMES)._words
    assert words.prose("sen\u0303al=canary; b=\u00dfü\u2474") == "sen\u0303al=[redacted]; b=\u00dfü\u2474"
    assert words.prose("x=\u00fc&pass\u200bword=a\u2474b&y=\u00df") == "x=\u00fc&pass\u200bword=[redacted]&y=\u00df"
    assert words.prose(r"{\"password\": \"canary\", \"b\": 1}") == r"{\"password\": \"[redacted]\", \"b\": 1}"


REPEATED = [
    "password ", "password: ", '"password": "', "<password ", "<password>", "password=(", '\\"', "\u00e9", "- ", " \t",
    "password\n", "{password:", "--password ", "password='''", "=>", "\u200b",
]  # fmt: skip


@pytest.mark.parametrize("part", REPEATED)
def test_no_text_takes_longer_than_its_length(part: str) -> None:
    """However long, and whatever is repeated in it."""
    words: Any = Redaction(names=NAMES)._words
    took = []
    for times in (2_000, 16_000):
        text = "password" + part * times + "password"
        began = time.process_time()
        words.prose(text)
        took.append(time.process_time() - began)
    assert took[1] < 0.05 + took[0] * 30
