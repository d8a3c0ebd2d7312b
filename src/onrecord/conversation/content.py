"""What messages are made of: text, media, context data, citations and marks.

Media has exactly one source. The rule is enforced when a value is made and at every decode, since both run
``__post_init__``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from onrecord.jsonio import Json

__all__ = (
    "Audio",
    "CallRef",
    "Citation",
    "File",
    "Image",
    "Mark",
    "Part",
    "Refusal",
    "Structured",
    "Text",
    "Thinking",
    "plain_text",
)


class Citation(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """Where a passage comes from; ``start`` and ``stop`` address the text of the part that carries it."""

    url: str
    title: str = ""
    start: int = 0
    stop: int = 0


class _Worded(Struct, frozen=True, gc=False):
    text: str


class Text(_Worded, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="text"):
    """Plain text, with the sources that the provider named for passages of it."""

    citations: tuple[Citation, ...] = ()


class Refusal(_Worded, frozen=True, gc=False, tag_field="type", tag="refusal"):
    """The model's own words for declining, where its wire keeps them apart from text."""


class Thinking(_Worded, frozen=True, gc=False, tag_field="type", tag="thinking"):
    """Reasoning in words. Never shown as the answer and never sent to another vendor."""


class CallRef(Struct, frozen=True, gc=False, tag_field="type", tag="call"):
    """The place of a tool call among a round's content; the call itself lives in `Round.calls`."""

    call: str


def _one_source(kind: str, **sources: object) -> None:
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise ValueError(f"{kind} needs exactly one source of {', '.join(sources)}; found {found}")


class Image(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="image"):
    """A picture from exactly one of ``url`` (may be a ``data:`` URL), ``data`` (bytes) or ``file_id`` (a provider's).

    ``media`` is its media type (default ``image/png`` for bytes); ``description`` stands in for models without eyes.
    """

    url: str | None = None
    data: bytes | None = None
    file_id: str | None = None
    media: str = ""
    detail: Literal["auto", "low", "high"] | None = None
    description: str = ""

    def __post_init__(self) -> None:
        _one_source("an image", url=self.url, data=self.data, file_id=self.file_id)


class Audio(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="audio"):
    """Sound from exactly one of ``data`` (bytes) or ``url``; ``format`` is ``wav`` or ``mp3``."""

    data: bytes | None = None
    url: str | None = None
    format: str = "wav"
    transcript: str = ""

    def __post_init__(self) -> None:
        _one_source("audio", data=self.data, url=self.url)


class File(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="file"):
    """A document from exactly one of ``data`` (bytes), ``url`` or ``file_id`` (a provider's)."""

    name: str = ""
    data: bytes | None = None
    url: str | None = None
    file_id: str | None = None
    media: str = ""

    def __post_init__(self) -> None:
        _one_source("a file", data=self.data, url=self.url, file_id=self.file_id)


Part = Text | Image | Audio | File
"""What a person or a tool can hand over."""


class Structured(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="structured"):
    """Context data that becomes text only when it is rendered: ``kind`` names its form (see `render`)."""

    kind: str
    text: str = ""
    payload: Json = None
    about: Mapping[str, str] = {}


class Mark(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, tag_field="type", tag="mark"):
    """A control token found in spoken text, at its place; ``raw`` is how the model wrote it."""

    kind: str
    raw: str
    value: Json = None
    hidden: bool = True


def plain_text(parts: object) -> str:
    """The words of parts, joined without a separator; media and marks contribute nothing."""
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, (tuple, list)):
        return ""
    return "".join(p.text for p in parts if isinstance(p, (Text, Refusal)))


def as_parts(content: str | tuple[Part, ...]) -> tuple[Part, ...]:
    """Content as parts: a string becomes one text."""
    return (Text(content),) if isinstance(content, str) else content
