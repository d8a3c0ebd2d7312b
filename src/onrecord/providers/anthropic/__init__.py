"""Anthropic's Messages, the protocol of Claude and of vendors that offer the same address to its clients."""

from onrecord.providers.anthropic.cards import Rules, anthropic_card
from onrecord.providers.anthropic.client import AnthropicModel, anthropic

__all__ = ("AnthropicModel", "Rules", "anthropic", "anthropic_card")
