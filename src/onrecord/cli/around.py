"""What a chat says around its replies: what was before, how a turn ended."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from onrecord.agent import Agent
from onrecord.cli.asking import ANSWER
from onrecord.cli.hosted import shown_message
from onrecord.cli.outcome_words import outcome_texts, why_unanswered
from onrecord.cli.reply import Reply
from onrecord.cli.terminal import Screen, plural, quoted
from onrecord.conversation.content import plain_text
from onrecord.conversation.inputs import Answered, Said
from onrecord.conversation.messages import AssistantMessage, UserMessage
from onrecord.errors import OutputInvalid
from onrecord.honesty.sentences import answer_text
from onrecord.record.kinds import TextSaid, TurnInterrupted
from onrecord.session.session import Session
from onrecord.turn.result import TurnResult

__all__ = ("PROMPT", "recap", "show_end", "typed_before")

PROMPT = "> "


def recap(session: Session) -> str:
    """One line about what was said before."""
    messages = session.conversation.messages
    told = [f"{plural(len(messages), 'message')} so far"]
    if session.last_user_at is not None:
        told.append(f"last on {session.last_user_at.astimezone():%Y-%m-%d %H:%M}")
    for message in reversed(messages):
        if isinstance(message, (UserMessage, AssistantMessage)) and message.text.strip():
            who = "you" if isinstance(message, UserMessage) else "the agent"
            cut = " (interrupted)" if isinstance(message, AssistantMessage) and message.interrupted else ""
            told.append(f"{who} said {quoted(message.text, 60)}{cut}")
            break
    return " · ".join(told)


def typed_before(said: Said | Answered) -> str:
    """An input as it stood on the screen when it was typed."""
    if isinstance(said, Answered):
        return f"{ANSWER}{answer_text(said)}"
    return f"{PROMPT}{said.content if isinstance(said.content, str) else plain_text(said.content)}"


def show_end(agent: Agent[Any, Any], result: TurnResult[Any], reply: Reply, *, outcomes: bool = False) -> None:
    """What the stream did not show: blocks, media, and how the turn ended when not with an answer.

    ``outcomes``: and a sentence for each step that flows took, and for what started and ended.
    """
    screen = reply.screen
    for message in () if reply.said else result.messages:  # another process took the turn
        shown_message(screen, message)
    for entry in result.entries:
        if isinstance(entry.body, TextSaid):
            for block in entry.body.blocks:
                screen.line(f"\n---\n\n{block.text}")
            if entry.body.media and reply.said:
                screen.line(f"  [{entry.body.media}]", dim=True)
    if result.status == "interrupted":
        screen.line(_cut_short(result, said=reply.said), dim=True)
    elif result.status in {"silent", "ignored", "deferred"}:
        why = why_unanswered(result, _when)
        ended = "no answer" if result.status == "silent" else result.status
        screen.line(f"  {ended}{f': {why}' if why else ''}", dim=True)
    for told in outcome_texts(result, _when) if outcomes else ():
        screen.line(f"    {told}", dim=True)
    if result.status == "answered" and agent.spec.output is not str:
        _show_output(result, screen)


def _when(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}"


def _cut_short(result: TurnResult[Any], *, said: bool) -> str:
    body = result.entries[-1].body if result.entries else None
    if isinstance(body, TurnInterrupted) and body.cause == "conflict":
        return "  cut short: the session was changed elsewhere meanwhile; what was said is kept"
    return "  interrupted" if said else "  interrupted before anything was said"


def _show_output(result: TurnResult[Any], screen: Screen) -> None:
    """The typed value, where the text is not already it."""
    try:
        value, source = result.output, result.output_source
    except OutputInvalid as error:
        screen.line(f"  {error}", dim=True)
        return
    if source != "model":
        screen.line(f"  output ({source}): {value!r}", dim=True)
