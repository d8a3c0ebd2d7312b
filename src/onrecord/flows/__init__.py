"""Flows: who has the floor, step by step, across turns and timers."""

from onrecord.flows.actions import Defer, Failed, Ok, Skipped
from onrecord.flows.direct import Flows
from onrecord.flows.drawing import Drawing, drawn, to_dot, to_mermaid
from onrecord.flows.fields import Field, coerce_field, merge_field_groups
from onrecord.flows.flow import Event, Flow, Idle
from onrecord.flows.flow_json import from_spec, to_spec
from onrecord.flows.flow_options import Anchor, Claims, FlowOptions
from onrecord.flows.history_events import (
    assistant_message,
    events_to_history,
    history_to_events,
    system_message,
    tool_message,
    user_message,
)
from onrecord.flows.instructions import FlowInstruction
from onrecord.flows.migrate import check_session, import_change, import_session
from onrecord.flows.outcomes import OUTCOME_MESSAGES
from onrecord.flows.predicates import PredContext
from onrecord.flows.spec_schema import flow_spec_schema
from onrecord.flows.state import FlowState, Run, Waiting
from onrecord.flows.steps import Branch, Chain, Collect, Do, Goto, If, Say, Talk, Wait, WaitEvent
from onrecord.flows.triggers import Cooldown, OnEvent, OnMention, OnMessage, OnSilence
from onrecord.flows.validate import Registries, validate_flow

__all__ = (
    "OUTCOME_MESSAGES",
    "Anchor",
    "Branch",
    "Chain",
    "Claims",
    "Collect",
    "Cooldown",
    "Defer",
    "Do",
    "Drawing",
    "Event",
    "Failed",
    "Field",
    "Flow",
    "FlowInstruction",
    "FlowOptions",
    "FlowState",
    "Flows",
    "Goto",
    "Idle",
    "If",
    "Ok",
    "OnEvent",
    "OnMention",
    "OnMessage",
    "OnSilence",
    "PredContext",
    "Registries",
    "Run",
    "Say",
    "Skipped",
    "Talk",
    "Wait",
    "WaitEvent",
    "Waiting",
    "assistant_message",
    "check_session",
    "coerce_field",
    "drawn",
    "events_to_history",
    "flow_spec_schema",
    "from_spec",
    "history_to_events",
    "import_change",
    "import_session",
    "merge_field_groups",
    "system_message",
    "to_dot",
    "to_mermaid",
    "to_spec",
    "tool_message",
    "user_message",
    "validate_flow",
)
