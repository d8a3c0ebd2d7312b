"""The error of a request that a wire cannot carry: nothing was sent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from onrecord.errors import ModelError, UnsupportedThinkingError
from onrecord.models.model import ModelCard
from onrecord.models.request import ProjectionIssue

__all__ = ("THINKING_HINT", "cannot_be_sent")

THINKING_HINT = "`onrecord models NAME` says how a model can be asked to think; a card of your own may say otherwise"
_MOST = 5
_OF_THE_REQUEST = "ask without it, or choose a model that takes it; `onrecord models NAME` lists what one refuses"
_OF_THE_CONVERSATION = (
    "choose a model that takes it, or give the agent the features Media (words in its place) and Degrade (left out)"
)
# Compiled when used: every agent imports this, and few are refused anything.
_is_elsewhere = partial(re.search, r" by (a )?(URL|file id|data URL)\b| in a data: address ")


def cannot_be_sent(card: ModelCard, issues: Sequence[ProjectionIssue]) -> ModelError:
    """A ModelError of kind ``invalid`` that names the issues, each once and at most five, and says what to do.

    It is an UnsupportedThinkingError where one of them is how thinking was asked for.
    """
    named = tuple(dict.fromkeys(issue.what for issue in issues))
    more = f"; and {len(named) - _MOST} more" if len(named) > _MOST else ""
    told = f"{card.name!r} cannot be sent this request: {'; '.join(named[:_MOST])}{more}"
    if any(issue.about == "thinking" for issue in issues):
        return UnsupportedThinkingError(told, provider=card.provider, hint=THINKING_HINT)
    if any(issue.unit < 0 for issue in issues):
        hint = _OF_THE_REQUEST
    else:  # what is bytes is taken wherever its kind is
        hint = f"give its bytes, {_OF_THE_CONVERSATION}" if any(map(_is_elsewhere, named)) else _OF_THE_CONVERSATION
    return ModelError(told, kind="invalid", provider=card.provider, hint=hint)
