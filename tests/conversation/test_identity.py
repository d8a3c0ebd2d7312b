"""A session is named by a text, or by a text and a tenant, and by nothing else."""

from typing import Any

import pytest

from onrecord.conversation.identity import SessionKey, session_key
from onrecord.errors import UsageError

pytestmark = pytest.mark.unit

WRONG: Any = 7


def test_a_text_names_a_session_of_no_tenant() -> None:
    """A key is taken as it is."""
    key = SessionKey("s", tenant="t")
    assert session_key(key) is key
    assert session_key("s") == SessionKey("s", tenant="")
    assert session_key("s") != key


@pytest.mark.parametrize("given", [WRONG, None, SessionKey(WRONG), SessionKey("s", tenant=WRONG)])
def test_what_names_no_session_is_refused(given: Any) -> None:
    """Both halves of a name are texts; the error says what to give."""
    with pytest.raises(UsageError, match=r"named by a text, not by (int|NoneType)") as refused:
        session_key(given)
    assert "SessionKey(" in refused.value.hint
