"""How recalled texts stand in a request: data in a frame that names its source and that no text can leave."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ("framed", "unframed")

FRAMES = ("source", "memory", "recalled", "instruction", "context", "system", "developer", "user", "assistant", "tool")
"""Tags that this library or a model could take for the edge of something."""

# Also in other widths, and with blanks inside that nobody sees.
_GAP = (
    r"[\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]*"
)
_edge = re.compile(rf"[<\uff1c\ufe64](?={_GAP}(?:/{_GAP})?(?:{'|'.join(FRAMES)})\b)", re.IGNORECASE)
# What tokenizers of models take for the start of a message, such as <|im_start|> and [INST].
_control = re.compile("<(?=[|\uff5c])|\\[(?=/?INST\\])")
_blank = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_special = re.compile(r'[\x00-\x1f\x7f-\x9f\u2028\u2029&<>"]')


def unframed(text: str) -> str:
    """The text with the edges of frames in it written so that they are none: ``&lt;/source>``."""
    if "<" in text:
        text = _edge.sub("&lt;", text)
    if "<" in text or "[" in text:
        text = _control.sub(lambda found: "&lt;" if found.group() == "<" else "&#91;", text)
    return text


def framed(tag: str, about: Mapping[str, str], text: str) -> str:
    """A text in its frame; what is known about it stands in attributes, blank ones left out."""
    named = "".join([f' {name}="{_attribute(value)}"' for name, value in about.items() if value])
    return f"<{tag}{named}>\n{unframed(text)}\n</{tag}>"


def _attribute(value: str) -> str:
    if value.isalnum() or not _special.search(value):
        return value.strip()
    flat = _blank.sub(" ", value).strip()
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
