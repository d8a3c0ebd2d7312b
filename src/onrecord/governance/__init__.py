"""What an agent may do, and whom it asks: rules, permissions, check-ins, credentials, budgets, redaction.

Each is a feature for ``features=[...]``, or a trait or tool for ``tools=[...]``. The names are loaded on first use, so
that an agent with a rule loads no more than that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onrecord.lazy_names import lazy_names

if TYPE_CHECKING:
    from onrecord.governance.approvals import CheckIn as CheckIn
    from onrecord.governance.approvals import NeedsCheckIn as NeedsCheckIn
    from onrecord.governance.budget import Budget as Budget
    from onrecord.governance.budget import Limit as Limit
    from onrecord.governance.budget import spent as spent
    from onrecord.governance.collect import ask_fields as ask_fields
    from onrecord.governance.collect import ask_human as ask_human
    from onrecord.governance.collect import request_input as request_input
    from onrecord.governance.credentials import Consent as Consent
    from onrecord.governance.credentials import Credential as Credential
    from onrecord.governance.credentials import Credentials as Credentials
    from onrecord.governance.credentials import CredentialSource as CredentialSource
    from onrecord.governance.credentials import NeedsCredential as NeedsCredential
    from onrecord.governance.credentials import Wanted as Wanted
    from onrecord.governance.credentials import credential as credential
    from onrecord.governance.permissions import Asked as Asked
    from onrecord.governance.permissions import Permissions as Permissions
    from onrecord.governance.permissions import Policy as Policy
    from onrecord.governance.redaction import Redaction as Redaction
    from onrecord.governance.rules import Rule as Rule
    from onrecord.governance.rules import after_tool as after_tool
    from onrecord.governance.rules import before_tool as before_tool
    from onrecord.governance.rules import on_input as on_input
    from onrecord.governance.rules import on_output as on_output
    from onrecord.governance.sequence import halt_of as halt_of

_HOMES: dict[str, str] = {
    **dict.fromkeys(("CheckIn", "NeedsCheckIn"), "approvals"),
    **dict.fromkeys(("Budget", "Limit", "spent"), "budget"),
    **dict.fromkeys(("ask_fields", "ask_human", "request_input"), "collect"),
    **dict.fromkeys(
        ("Consent", "Credential", "CredentialSource", "Credentials", "NeedsCredential", "Wanted", "credential"),
        "credentials",
    ),
    **dict.fromkeys(("Asked", "Permissions", "Policy"), "permissions"),
    "Redaction": "redaction",
    **dict.fromkeys(("Rule", "after_tool", "before_tool", "on_input", "on_output"), "rules"),
    "halt_of": "sequence",
}

__all__ = tuple(sorted(_HOMES))

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
