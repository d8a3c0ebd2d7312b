"""What is said of a request that cannot be sent and of a reply that broke its protocol: what it was, what to do."""

from __future__ import annotations

import pytest

from onrecord.errors import ErrorKind, ModelError
from onrecord.models.refusing import cannot_be_sent
from onrecord.models.reply_errors import reply_error
from onrecord.models.request import ProjectionIssue
from tests.models.requests import CARD
from tests.providers.wires import Wire, each_wire

pytestmark = pytest.mark.unit


def issue(what: str, unit: int = -1) -> ProjectionIssue:
    """Something that a wire cannot carry; of the request itself unless a unit is named."""
    return ProjectionIssue(unit=unit, what=what)


def test_every_issue_is_named_once_and_no_more_than_five() -> None:
    """In the order in which they were found; how many others there are is said."""
    error = cannot_be_sent(CARD, [issue("an image", 0), issue("a file", 1), issue("an image", 2)])
    assert str(error) == "'acme:m' cannot be sent this request: an image; a file"
    assert (error.kind, error.provider) == ("invalid", "acme")
    error = cannot_be_sent(CARD, [issue(f"thing {n}", n) for n in range(8)])
    assert str(error).endswith("thing 3; thing 4; and 3 more")


def test_what_helps_depends_on_what_is_refused() -> None:
    """Media can be shown otherwise; a setting cannot, and then the conversation is not spoken of."""
    told = cannot_be_sent(CARD, [issue("a file by URL: Chat Completions takes files as bytes", 0)]).hint or ""
    assert "Media" in told
    assert told.startswith("give its bytes, ")
    assert "bytes" not in (cannot_be_sent(CARD, [issue("code that Google ran", 0)]).hint or "")
    hint = cannot_be_sent(CARD, [issue("a seed"), issue("an image", 0)]).hint or ""
    assert "onrecord models NAME" in hint
    assert "Media" not in hint


@pytest.mark.parametrize("kind", ["invalid", "content", "context", "network", "overload"])
def test_a_reply_that_goes_wrong_says_what_helps(kind: ErrorKind) -> None:
    """By its kind, unless the wire knows better."""
    error = reply_error("acme", kind, "broke", started=True)
    assert (str(error), error.kind, error.started, bool(error.hint)) == ("acme broke", kind, True, True)
    assert reply_error("acme", kind, "broke", started=False, hint="raise max_tokens").hint == "raise max_tokens"


@each_wire
def test_a_server_of_another_protocol_is_told_with_the_way_out(wire: Wire) -> None:
    """As when a base URL leads to something else."""
    parser = wire.parser(wire.vendors[0])
    with pytest.raises(ModelError, match="not of its protocol") as caught:
        parser.feed(b'["of", "nobody"]')
    assert caught.value.kind == "invalid"
    assert "check the base URL" in (caught.value.hint or "")
