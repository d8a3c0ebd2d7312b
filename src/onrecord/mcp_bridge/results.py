"""What a server answers a call, as the result of a tool: text, pictures, values, errors. It has no authority."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET

from onrecord.conversation.content import Audio, File, Image, Part, Text
from onrecord.jsonio import Json, dumps, loads
from onrecord.mcp_bridge.limits import Limits
from onrecord.mcp_bridge.shown_words import clean, named, without
from onrecord.tools.result_text import cut
from onrecord.tools.tool import ToolResult

__all__ = ("IMAGES", "Media", "result_of")

Media = Literal["image", "audio", "file"]
"""A kind of content that models are shown as it is; others are told in words."""

IMAGES: tuple[Media, ...] = ("image",)

_WORDLESS = "The tool failed and says nothing about it."


def result_of(
    raw: Mapping[str, Any], limits: Limits, *, accepts: Collection[Media] = IMAGES, secrets: Sequence[str] = ()
) -> ToolResult:
    """The result of a call from the JSON that the server answered.

    Content becomes text and media in its order. A structured value stands for texts that say the same, and behind
    texts that say something else. Links are told and never followed. No secret is repeated.
    """
    blocks = raw.get("content")
    blocks = blocks if isinstance(blocks, list) else []
    parts = [_part(block, limits, accepts) for block in blocks[: limits.parts]]
    if len(blocks) > limits.parts:
        parts.append(Text(f"[{len(blocks) - limits.parts} more parts left out]"))
    parts = [Text(without(part.text, secrets)) if isinstance(part, Text) else part for part in parts]
    structured = raw.get("structuredContent", UNSET)
    if structured is not UNSET:
        hidden = _hidden(structured, secrets)
        texts = [part.text for part in parts if isinstance(part, Text)]
        if len(texts) == len(parts) and _says_no_more(texts, structured, hidden):
            if raw.get("isError") is not True:
                return ToolResult(texts[0] if _wraps(structured, texts) else hidden)
            parts = []
        parts.append(Text(without(_compact(structured), secrets)))
    parts = _within(parts, limits.result)
    if raw.get("isError") is True:
        return _failed(parts)
    if not parts:
        return ToolResult()
    return ToolResult(parts[0].text if len(parts) == 1 and isinstance(parts[0], Text) else tuple(parts))


def _within(parts: Sequence[Part], most: int) -> list[Part]:
    """The parts with so many characters of text together. One text alone is cut where every tool's is."""
    kept, left = list[Part](), most
    for part in parts:
        if isinstance(part, Text) and len(parts) > 1:
            if left > 0:
                kept.append(Text(cut(part.text, left)))
            left -= len(part.text)
        else:
            kept.append(part)
    return kept


def _failed(parts: Sequence[Part]) -> ToolResult:
    words = "\n".join(part.text for part in parts if isinstance(part, Text)).strip()
    media = tuple(part for part in parts if not isinstance(part, Text))
    told = {"error": words or _WORDLESS}
    return ToolResult((Text(_compact(told)), *media) if media else told, status="failed")


def _compact(value: Json) -> str:
    try:
        return dumps(value).decode()
    except (ValueError, RecursionError):  # half a character, or more levels than this interpreter goes down
        return "[a value that cannot be shown]"


def _hidden(value: Json, secrets: Sequence[str]) -> Json:
    if not secrets:
        return value
    text = _compact(value)
    return value if all(secret not in text for secret in secrets) else without(text, secrets)


def _wraps(value: Json, texts: Sequence[str]) -> bool:
    """Whether the value only holds one text, as servers make of a function that returns one."""
    return len(texts) == 1 and isinstance(value, Mapping) and isinstance(value.get("result"), str)


def _says_no_more(texts: Sequence[str], value: Json, hidden: Json) -> bool:
    """Whether texts are just this value, whole or item by item, as servers add them for clients of old."""
    if all(_says(text, value) or text == hidden for text in texts):
        return True
    inner = value["result"] if isinstance(value, Mapping) and value.keys() == {"result"} else value
    if all(_says(text, inner) for text in texts):
        return True
    return isinstance(inner, list) and len(inner) == len(texts) and all(map(_says, texts, inner))


def _says(text: str, value: Json) -> bool:
    """Whether a text is this value as JSON, or the text that the value is."""
    try:
        return text == value or bool(loads(text) == value)
    except ValueError:
        return False


# ---- content ---------------------------------------------------------------------------------------------------------


def _part(block: object, limits: Limits, accepts: Collection[Media]) -> Part:
    if not isinstance(block, Mapping):
        return Text("[a part that is no content]")
    kind = block.get("type")
    if kind == "text":
        return Text(str(block.get("text", "")))
    if kind in ("image", "audio"):
        return _media(block.get("data"), block.get("mimeType"), "", limits, accepts)
    if kind == "resource_link":
        label = " ".join(clean(str(block.get(word) or ""), 300, lines=1) for word in ("name", "uri")).strip()
        return Text(f"[link, not followed: {label}]")
    held = block.get("resource")
    if kind == "resource" and isinstance(held, Mapping):
        uri = clean(str(held.get("uri") or ""), 300, lines=1)
        if isinstance(held.get("text"), str):
            return Text(f"[resource {uri}]\n{held['text']}")
        return _media(held.get("blob"), held.get("mimeType"), uri, limits, accepts)
    return Text(f"[a part of an unknown kind, {named(kind)}]")


def _media(data: object, told: object, uri: str, limits: Limits, accepts: Collection[Media]) -> Part:
    """Media where it is what it says, small enough, and wanted; else words about it.

    What a picture or sound is, its first bytes say: a provider that is sent another refuses the whole conversation.
    """
    media = clean(told, 100, lines=1).lower() if isinstance(told, str) else ""
    if not isinstance(data, str):
        return Text(f"[{media or 'data'} left out: there is none]")
    if len(data) > limits.media * 4 // 3 + 4:
        return Text(f"[{media or 'data'} left out: it has more than {limits.media} bytes]")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Text(f"[{media or 'data'} left out: it is no base64]")
    if len(content) > limits.media:
        return Text(f"[{media or 'data'} left out: it has more than {limits.media} bytes]")
    is_a = _kind(content)
    if is_a.startswith("image/") and "image" in accepts:
        return Image(data=content, media=is_a)
    if is_a.startswith("audio/") and "audio" in accepts:
        return Audio(data=content, format=is_a.removeprefix("audio/"))
    if "file" in accepts and content:
        return File(name=uri.rsplit("/", 1)[-1][:100], data=content, media=media)
    return Text(f"[{media or 'data'} of {len(content)} bytes left out{': ' + uri if uri else ''}]")


def _kind(content: bytes) -> str:
    """The media type that the first bytes show, of those that models take; empty for others."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    riff = content[8:12] if content.startswith(b"RIFF") else b""
    if riff == b"WEBP":
        return "image/webp"
    if riff == b"WAVE":
        return "audio/wav"
    return "audio/mp3" if content.startswith((b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")) else ""
