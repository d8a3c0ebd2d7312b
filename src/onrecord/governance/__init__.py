"""Rules: small governing functions as features."""

from onrecord.governance.rules import Rule, after_tool, before_tool, on_input, on_output

__all__ = ("Rule", "after_tool", "before_tool", "on_input", "on_output")
