"""Who may answer: a question is put to an audience, and no front end can forget that."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from onrecord.conversation.identity import SessionKey, session_key
from onrecord.conversation.inputs import Answered
from onrecord.errors import UsageError
from onrecord.session.session import Session
from onrecord.session.store import Store
from onrecord.turn.above import check_reachable
from onrecord.turn.answering import check_answer

__all__ = ("SPEAKER", "Caller", "check_audience", "check_fit", "said_by")


class _Who(Struct, frozen=True):
    name: str


class Caller(_Who, frozen=True, kw_only=True):
    """Who answers, as the front end knows them, and the audiences they belong to."""

    audiences: frozenset[str] = frozenset({"speaker"})


SPEAKER = Caller("the speaker")
"""Whoever speaks in the session: all that is known of a caller nobody named."""


def said_by(answer: Answered, caller: Caller) -> Answered:
    """The answer under the name of its caller: a front end knows who that is, and an answer only claims it."""
    return answer if caller is SPEAKER else replace(answer, by=caller.name)


async def check_fit(store: Store, session: SessionKey, answer: Answered, known: Session | None = None) -> None:
    """UsageError for an answer that does not fit the open question, before it is accepted: it could not be taken."""
    held = await store.load(session, known=known)
    if held is not None and held.question is not None and held.question.key == answer.key:
        check_reachable(held, None)
        check_answer(held.question, answer)


async def check_audience(store: Store, session: SessionKey | str, answer: Answered, caller: Caller) -> None:
    """UsageError unless the open question is put to somebody like the caller. A stale answer is left to its turn."""
    held = await store.load(session_key(session))
    question = None if held is None else held.question
    if question is None or question.key != answer.key or question.audience in caller.audiences:
        return
    raise UsageError(
        f"the open question is put to {question.audience!r}, which {caller.name!r} is not",
        code="not-the-audience",
        hint="somebody of that audience has to answer",
    )
