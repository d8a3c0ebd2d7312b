import logging
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.privacy.conftest import Canary

pytestmark = pytest.mark.unit


def test_the_canary_is_seen_in_exceptions_and_bytes(canary: "Canary") -> None:
    """The check itself works: in messages, attributes, causes and bytes."""
    error = ValueError("broken")
    error.__cause__ = KeyError(canary.text)
    held = ValueError("broken")
    held.__dict__["content"] = canary.text
    for seen in (ValueError(canary.text), error, held, canary.text.encode(), {"key": canary.text}):
        with pytest.raises(AssertionError, match="the canary got into a place"):
            canary.absent_from("a place", seen)
    canary.absent_from("a place", ValueError("broken"))


def test_the_canary_is_seen_in_logs(canary: "Canary", caplog: pytest.LogCaptureFixture) -> None:
    """A log line that holds the canary would fail its test; here it is caught and cleared."""
    logging.getLogger("sample").debug("text %s", canary.text)
    (record,) = caplog.get_records("call")
    with pytest.raises(AssertionError, match="a log line"):
        canary.absent_from("a log line", record.getMessage())
    caplog.clear()
