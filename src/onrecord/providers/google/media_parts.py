"""Media as parts of Google's wire: bytes inline, addresses and uploaded files by name."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import unquote_to_bytes

from onrecord.conversation.content import Audio, File, Image
from onrecord.jsonio import Json

__all__ = ("Media", "in_results", "media_part", "named_media", "opened")

Media = Image | Audio | File

_IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
"""What may stand inside a function's response, by media type."""

_BY_ENDING = {
    "aac": "audio/aac", "aiff": "audio/aiff", "css": "text/css", "csv": "text/csv", "flac": "audio/flac",
    "gif": "image/gif", "heic": "image/heic", "heif": "image/heif", "htm": "text/html", "html": "text/html",
    "jpeg": "image/jpeg", "jpg": "image/jpeg", "json": "application/json", "md": "text/markdown",
    "mp3": "audio/mp3", "ogg": "audio/ogg", "pdf": "application/pdf", "png": "image/png", "txt": "text/plain",
    "wav": "audio/wav", "webp": "image/webp", "xml": "text/xml",
}  # fmt: skip


def named_media(part: Media) -> str:
    """The media type of a part: stated, by the ending of its address, or what its kind mostly is; may be empty."""
    if isinstance(part, Audio):
        return f"audio/{part.format}"
    if part.media:
        return part.media
    if part.url is not None:
        path = part.url.split("?", 1)[0].split("#", 1)[0]
        return _BY_ENDING.get(path.rpartition("/")[2].rpartition(".")[2].lower(), "")
    if part.file_id is not None:
        return ""
    return "image/png" if isinstance(part, Image) else "application/pdf"


def opened(url: str) -> tuple[str, str] | None:
    """Media type and base64 of a ``data:`` address; None for any other, and for one that holds nothing."""
    if not url.startswith("data:"):
        return None
    about, comma, data = url[5:].partition(",")
    media, *options = about.split(";")
    held = data if "base64" in options else b64encode(unquote_to_bytes(data)).decode()
    return (media or "text/plain", held) if comma and held else None


def media_part(part: Media, base_url: str) -> dict[str, Json]:
    """A part with its bytes, its address, or the address that Google's store has it at."""
    if part.url is not None and (inline := opened(part.url)) is not None:
        return {"inlineData": {"mimeType": inline[0], "data": inline[1]}}
    if part.data is not None:
        return {"inlineData": {"mimeType": named_media(part), "data": b64encode(part.data).decode()}}
    media = named_media(part)
    held = part.url if part.url is not None else _stored(part, base_url)
    return {"fileData": ({"mimeType": media} if media else {}) | {"fileUri": held}}


def in_results(part: Media) -> bool:
    """Whether a part may stand inside a function's response: bytes of a few types."""
    if part.url is not None:
        inline = opened(part.url)
        return inline is not None and inline[0] in _IN_RESULTS
    return part.data is not None and named_media(part) in _IN_RESULTS


def _stored(part: Media, base_url: str) -> str:
    named = "" if isinstance(part, Audio) else part.file_id or ""
    if "://" in named:
        return named
    return f"{base_url.rstrip('/')}/{named if named.startswith('files/') else f'files/{named}'}"
