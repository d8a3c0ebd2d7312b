"""Features that tell how an answer came about.

Where things are:

- ``commentary``: entries as sentences, with ``templates`` over the facts of ``entry_facts`` and ``feature_facts``, in
  the ``languages``; ``status``: what an agent is doing now
- ``self_explain``: the feature; ``trace_tools``: its tools, over a ``turn_trace``; ``finished``: which turns there are
- both, and the command line: ``sentences``, ``slices``
"""

from onrecord.honesty.commentary import Commentary, Language
from onrecord.honesty.self_explain import SelfExplain
from onrecord.honesty.status import StatusLine

__all__ = ("Commentary", "Language", "SelfExplain", "StatusLine")
