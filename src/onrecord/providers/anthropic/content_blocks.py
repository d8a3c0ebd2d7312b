"""Parts of messages and results as content blocks, and which blocks of a reply its vendor takes back. Pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence

from msgspec import Raw

from onrecord.conversation.content import File, Image, Part, Text
from onrecord.jsonio import Json
from onrecord.models.model import ModelCard
from onrecord.models.written_forms import is_path
from onrecord.providers.anthropic.message_events import Head, read_head

__all__ = ("block_of", "is_blank", "is_thought", "refused", "replayable", "text_block")

PDF = "application/pdf"
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_TEXTUAL = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_BASE64 = ";base64"


def is_blank(text: str) -> bool:
    """Whether a text says nothing; the protocol refuses blocks of such texts."""
    return not text or text.isspace()


def text_block(text: str) -> dict[str, Json]:
    """A text."""
    return {"type": "text", "text": text}


def block_of(part: Part) -> dict[str, Json] | None:
    """The block of a part that is not refused; None for a blank text."""
    if isinstance(part, Text):
        return None if is_blank(part.text) else text_block(part.text)
    if isinstance(part, Image):
        return {"type": "image", "source": _image_source(part)}
    if isinstance(part, File):
        named: dict[str, Json] = {"title": part.name} if part.name else {}
        return {"type": "document", "source": _file_source(part)} | named
    return None


def refused(part: Part, card: ModelCard) -> str:
    """Why no block can hold a part; empty when one can."""
    if isinstance(part, Text):
        return ""
    if isinstance(part, Image):
        if not card.images:
            return f"an image: {card.name!r} reads none"
        media, _, problem = _image_data(part)
        if problem or is_path(part.url):
            return problem or "an image by a URL that is the path of a file"
        return "" if media in _IMAGES | {""} else f"an image of type {media!r}: Messages takes JPEG, PNG, GIF and WebP"
    if isinstance(part, File):
        return _refused_file(part, card)
    return "audio: Messages takes none"


def _refused_file(part: File, card: ModelCard) -> str:
    if not card.files:
        return f"a file: {card.name!r} reads none"
    if part.data is None:
        return "a file by a URL that is the path of a file" if is_path(part.url) else ""
    media = part.media or PDF
    if media == PDF:
        return ""
    if not _is_textual(media):
        return f"a file of type {media!r}: Messages takes PDF and plain text"
    try:
        part.data.decode()
    except UnicodeDecodeError:
        return f"a file of type {media!r} that is not UTF-8"
    return ""


def _is_textual(media: str) -> bool:
    kind = media.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in _TEXTUAL or kind.endswith(("+json", "+xml"))


def _image_data(part: Image) -> tuple[str, str, str]:
    """Media type and base64 of an image that comes along, and what is wrong with it; empty for one elsewhere."""
    if part.data is not None:
        return part.media or "image/png", b64encode(part.data).decode(), ""
    url = part.url
    if url is None or url[:5].lower() != "data:":
        return "", "", ""
    about, comma, data = url[5:].partition(",")
    if not comma or not about.lower().endswith(_BASE64):
        return "", "", "an image by a data URL that is not base64"
    return about[: -len(_BASE64)].partition(";")[0].lower() or part.media or "image/png", data, ""


def _image_source(part: Image) -> dict[str, Json]:
    if part.file_id is not None:
        return {"type": "file", "file_id": part.file_id}
    media, data, _ = _image_data(part)
    if media:
        return {"type": "base64", "media_type": media, "data": data}
    return {"type": "url", "url": part.url}


def _file_source(part: File) -> dict[str, Json]:
    if part.file_id is not None:
        return {"type": "file", "file_id": part.file_id}
    if part.url is not None:
        return {"type": "url", "url": part.url}
    data, media = part.data or b"", part.media or PDF
    if media == PDF:
        return {"type": "base64", "media_type": PDF, "data": b64encode(data).decode()}
    return {"type": "text", "media_type": "text/plain", "data": data.decode()}


# ---- blocks of a reply --------------------------------------------------------------------------------------------


def is_thought(head: Head) -> bool:
    """Whether a block is the model's thinking, readable or sealed."""
    return head.type in _THOUGHTS


def replayable(items: Sequence[Raw]) -> tuple[int, Sequence[Raw]]:
    """The blocks of a reply as they can be sent back, and how many at the start are thinking; none where it has to
    be told in portable form.

    A reply must not end in thinking and no text may be blank: such blocks are left out. A call of a tool that the
    vendor runs and its result belong together: where only one of them is here, the vendor would refuse all.
    """
    heads = [read_head(item) for item in items]
    kept = [i for i, head in enumerate(heads) if head.type != "text" or not is_blank(head.text or "")]
    while kept and is_thought(heads[kept[-1]]):
        kept.pop()
    if not kept or _unpaired(heads[i] for i in kept):
        return 0, ()
    thoughts = next(n for n, i in enumerate(kept) if not is_thought(heads[i]))
    return thoughts, items if len(kept) == len(items) else [items[i] for i in kept]


def _unpaired(heads: Iterable[Head]) -> bool:
    asked: set[str | None] = set()
    answered: set[str | None] = set()
    for head in heads:
        kind = head.type or ""
        if kind in {"server_tool_use", "mcp_tool_use"}:
            asked.add(head.id)
        elif kind.endswith("_tool_result"):
            answered.add(head.tool_use_id)
    return asked != answered
