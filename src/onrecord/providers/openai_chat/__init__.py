"""OpenAI Chat Completions, the protocol most servers speak: see `onrecord.providers.openai_compatible` for others."""

from onrecord.providers.openai_chat.cards import Dialect, openai_card
from onrecord.providers.openai_chat.client import ChatModel, openai

__all__ = ("ChatModel", "Dialect", "openai", "openai_card")
