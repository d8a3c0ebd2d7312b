"""OpenAI's Responses: replies as items, which go back whole in the next request. Other servers speak it too."""

from onrecord.providers.openai_responses.cards import Dialect, responses_card
from onrecord.providers.openai_responses.client import ResponsesModel, openai_responses

__all__ = ("Dialect", "ResponsesModel", "openai_responses", "responses_card")
