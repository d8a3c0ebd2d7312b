"""The error of a request that its model cannot be sent, before anything is."""

from __future__ import annotations

from collections.abc import Sequence

from onrecord.errors import ModelError, UnsupportedThinkingError
from onrecord.models.model import ModelCard
from onrecord.models.request import ProjectionIssue

__all__ = ("MOST_NAMED", "THINKING_HINT", "cannot_be_sent")

MOST_NAMED = 5
"""So many things are named in one error; the receipt, or the wire itself, has them all."""

THINKING_HINT = "`onrecord models` says what each model can do; a card of your own may say otherwise"


def cannot_be_sent(card: ModelCard, issues: Sequence[ProjectionIssue]) -> ModelError:
    """ModelError of kind ``invalid`` that names what is in the way.

    UnsupportedThinkingError, which is one, where that is the thinking that was asked for.
    """
    named = sorted({issue.what for issue in issues})
    told = "; ".join(named[:MOST_NAMED]) + (f"; and {len(named) - MOST_NAMED} more" if named[MOST_NAMED:] else "")
    if any(issue.about == "thinking" for issue in issues):
        return UnsupportedThinkingError(
            f"model {card.name!r} cannot be asked to think so: {told}", provider=card.provider, hint=THINKING_HINT
        )
    if all(issue.unit < 0 for issue in issues):
        what, hint = "request", "choose a model that takes it, or leave it out of the settings"
    else:
        what, hint = "conversation", "use a model whose wire carries it, or take it out of the conversation"
    return ModelError(
        f"model {card.name!r} cannot be sent this {what}: {told}", kind="invalid", provider=card.provider, hint=hint
    )
