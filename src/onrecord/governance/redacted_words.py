"""What a redaction takes out of one text, or of one number."""

from __future__ import annotations

import re
from collections.abc import Iterable

from onrecord.conversation.required_text import required_text
from onrecord.governance.named_values import without_named
from onrecord.governance.seen_text import SeenText, looks_otherwise

__all__ = ("RedactedWords",)


class RedactedWords:
    """Texts as they may leave: ``word`` stands where ``patterns`` match, for values behind ``names``, and, without
    ``texts``, for every text.
    """

    def __init__(self, patterns: Iterable[re.Pattern[str]], names: frozenset[str], word: str, *, texts: bool) -> None:
        self._names, self._word, self._texts = names, word, texts
        # Each pattern with a text without which it need not be tried.
        self._searched = tuple((required_text(p.pattern) if p.flags == re.UNICODE else "", p) for p in patterns)

    def text(self, text: str) -> str:
        """A text by its patterns."""
        if not self._texts:
            return self._word if text else text
        for required, pattern in self._searched:
            if required in text:
                text = pattern.sub(self._put, text)
        return self._seen(text) if looks_otherwise(text) else text

    def _seen(self, text: str) -> str:
        """A text by its patterns as it looks: an accent apart, or a letter nobody sees, hides nothing."""
        seen = SeenText(text)
        for required, pattern in self._searched:
            if required not in seen.text:
                continue
            left, done = list[str](), 0
            for start, end in map(seen.span, pattern.finditer(seen.text)):
                if end > start >= done:  # a letter that stands for two is taken out once
                    left += [text[done:start], self._word]
                    done = end
            if left:
                text = "".join([*left, text[done:]])
                seen = SeenText(text)
        return text

    def prose(self, text: str) -> str:
        """A text that is no JSON: by the names that stand in it, too."""
        return self.text(without_named(text, self._names, self._put_behind) if self._names else text)

    def number(self, value: float) -> float | str:
        """A number of JSON: an account may be written as one."""
        if not self._texts:
            return value
        text = str(value)
        return value if self.text(text) == text else self._word

    def _put(self, _: re.Match[str]) -> str:
        return self._word  # as it is: in a template of `re` its backslashes would mean something

    def _put_behind(self, before: str) -> str:
        quote = _quote(before)
        return f"{before}{quote}{self._word}{quote}"


def _quote(before: str) -> str:
    """The quote of a name, as the text writes it, where the name is closed by it before its value."""
    found = _QUOTES.match(before)
    return found[0] if found and found[0] in before[found.end() :] else ""


_QUOTES = re.compile(r"""\\*["']""")
