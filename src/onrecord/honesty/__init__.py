"""Features that tell how an answer came about."""

from onrecord.honesty.commentary import Commentary, Language
from onrecord.honesty.self_explain import SelfExplain
from onrecord.honesty.status import StatusLine

__all__ = ("Commentary", "Language", "SelfExplain", "StatusLine")
