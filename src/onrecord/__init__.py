"""onrecord: conversational LLM agents on the record.

The names below are loaded on first use; importing the package runs nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onrecord.lazy_names import lazy_names

if TYPE_CHECKING:
    from onrecord.agent import Agent as Agent
    from onrecord.conversation.content import Audio as Audio
    from onrecord.conversation.content import File as File
    from onrecord.conversation.content import Image as Image
    from onrecord.conversation.content import Mark as Mark
    from onrecord.conversation.content import Text as Text
    from onrecord.conversation.conversation import Conversation as Conversation
    from onrecord.conversation.identity import Identity as Identity
    from onrecord.conversation.identity import SessionKey as SessionKey
    from onrecord.conversation.inputs import Answered as Answered
    from onrecord.conversation.inputs import Ask as Ask
    from onrecord.conversation.inputs import AskField as AskField
    from onrecord.conversation.inputs import Happened as Happened
    from onrecord.conversation.inputs import Input as Input
    from onrecord.conversation.inputs import Said as Said
    from onrecord.conversation.inputs import Started as Started
    from onrecord.conversation.inputs import Woke as Woke
    from onrecord.conversation.inputs import approved as approved
    from onrecord.conversation.inputs import declined as declined
    from onrecord.conversation.messages import ToolCall as ToolCall
    from onrecord.conversation.outgoing import TextDelta as TextDelta
    from onrecord.errors import ConfigurationError as ConfigurationError
    from onrecord.errors import ModelError as ModelError
    from onrecord.errors import OnrecordError as OnrecordError
    from onrecord.errors import OutputInvalid as OutputInvalid
    from onrecord.errors import TurnError as TurnError
    from onrecord.errors import UsageError as UsageError
    from onrecord.governance.rules import after_tool as after_tool
    from onrecord.governance.rules import before_tool as before_tool
    from onrecord.governance.rules import on_input as on_input
    from onrecord.governance.rules import on_output as on_output
    from onrecord.host import Given as Given
    from onrecord.host import Host as Host
    from onrecord.models.model import preset as preset
    from onrecord.session.session import Session as Session
    from onrecord.tools.declare import Toolbox as Toolbox
    from onrecord.tools.declare import tool as tool
    from onrecord.tools.tool import Tool as Tool
    from onrecord.tools.tool import ToolContext as ToolContext
    from onrecord.tools.tool import ToolResult as ToolResult
    from onrecord.turn.answer import Typed as Typed
    from onrecord.turn.instruction import Instruction as Instruction
    from onrecord.turn.moments import Allow as Allow
    from onrecord.turn.moments import Answer as Answer
    from onrecord.turn.moments import Deny as Deny
    from onrecord.turn.moments import Returned as Returned
    from onrecord.turn.moments import Revise as Revise
    from onrecord.turn.moments import Stop as Stop
    from onrecord.turn.moments import Watch as Watch
    from onrecord.turn.options import Silenced as Silenced
    from onrecord.turn.result import TurnResult as TurnResult
    from onrecord.turn.turn import Turn as Turn

__version__ = "0.1.0"

_HOMES: dict[str, str] = {
    "Agent": "agent",
    **dict.fromkeys(("Audio", "File", "Image", "Mark", "Text"), "conversation.content"),
    "Conversation": "conversation.conversation",
    **dict.fromkeys(("Identity", "SessionKey"), "conversation.identity"),
    **dict.fromkeys(
        ("Answered", "Ask", "AskField", "Happened", "Input", "Said", "Started", "Woke", "approved", "declined"),
        "conversation.inputs",
    ),
    "ToolCall": "conversation.messages",
    "TextDelta": "conversation.outgoing",
    **dict.fromkeys(
        ("ConfigurationError", "ModelError", "OnrecordError", "OutputInvalid", "TurnError", "UsageError"), "errors"
    ),
    **dict.fromkeys(("after_tool", "before_tool", "on_input", "on_output"), "governance.rules"),
    **dict.fromkeys(("Given", "Host"), "host"),
    "preset": "models.model",
    "Session": "session.session",
    **dict.fromkeys(("Toolbox", "tool"), "tools.declare"),
    **dict.fromkeys(("Tool", "ToolContext", "ToolResult"), "tools.tool"),
    "Typed": "turn.answer",
    "Instruction": "turn.instruction",
    **dict.fromkeys(("Allow", "Answer", "Deny", "Returned", "Revise", "Stop", "Watch"), "turn.moments"),
    "Silenced": "turn.options",
    "TurnResult": "turn.result",
    "Turn": "turn.turn",
}

__all__ = tuple(sorted((*_HOMES, "__version__")))

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
