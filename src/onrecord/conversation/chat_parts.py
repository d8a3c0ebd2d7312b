"""Content parts in the shape that Chat-style histories keep them in, from and to our own."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import get_args

from onrecord.conversation.content import Audio, File, Image, Part, Refusal, Text
from onrecord.errors import UsageError
from onrecord.jsonio import Json, dumps

__all__ = ("content_of", "parts_from", "result_from", "said_from")


def parts_from(content: Json) -> tuple[Part, ...]:
    """A person's content: a string, None, or a list of text, ``image_url``, ``input_audio`` and ``file`` parts.

    Our own parts are accepted as they are. Raises UsageError or ValueError for anything else, and for a file without
    exactly one source.
    """
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, (list, tuple)):
        raise UsageError(f"content must be a string or a list of parts, got {type(content).__name__}")
    return tuple(_part(item) for item in content)


def said_from(content: Json, refusal: Json = None) -> tuple[Text | Refusal, ...]:
    """An assistant's words: text and refusal parts, then the refusal that stands beside the content."""
    words: list[Text | Refusal] = []
    if isinstance(content, (list, tuple)):
        words = [_word(item) for item in content]
    elif content is not None:
        words = [Text(string(content, "content"))]
    if refusal is not None:
        words.append(Refusal(string(refusal, "refusal")))
    return tuple(word for word in words if word.text)


def result_from(content: Json) -> tuple[Part, ...]:
    """A tool's result: a string as it is, Chat-shaped parts as parts, any other value as compact JSON text."""
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, (list, tuple)) and content and all(_is_part(item) for item in content):
        return parts_from(content)
    return (Text(dumps(content).decode()),)


def content_of(parts: Iterable[Part | Refusal]) -> str | list[dict[str, Json]]:
    """Our parts as Chat content: one string where all is text, a list otherwise."""
    held = list(parts)
    if all(isinstance(part, Text) for part in held):
        return "".join(part.text for part in held if isinstance(part, Text))
    return [_plain(part) for part in held]


def _is_part(item: object) -> bool:
    # A list of data may have types as well: in a part there is something under the name of its type.
    return isinstance(item, get_args(Part)) or (
        isinstance(item, Mapping)
        and item.get("type") in ("text", "image_url", "image_file", "input_audio", "file")
        and item["type"] in item
    )


def _part(item: Json) -> Part:
    if isinstance(item, (Text, Image, Audio, File)):
        return item
    if isinstance(item, str):
        return Text(item)
    if not isinstance(item, Mapping):
        raise UsageError(f"a content part must be an object, got {type(item).__name__}")
    match item.get("type"):
        case "text" | "input_text":
            return Text(string(item.get("text"), "text"))
        case "image_url":
            return _image(item)
        case "image_file":
            return Image(file_id=_source(_inner(item, "image_file"), "file_id"))
        case "input_audio":
            return _audio(item)
        case "file":
            return _file(item)
        case other:
            raise UsageError(f"a person's message cannot hold a content part of type {other!r}")


def _word(item: Json) -> Text | Refusal:
    if isinstance(item, (Text, Refusal)):
        return item
    if isinstance(item, str):
        return Text(item)
    if isinstance(item, Mapping):
        if item.get("type") in ("text", "output_text"):
            return Text(string(item.get("text"), "text"))
        if item.get("type") == "refusal":
            return Refusal(string(item.get("refusal"), "refusal"))
    found = item.get("type") if isinstance(item, Mapping) else type(item).__name__
    raise UsageError(f"an assistant's message cannot hold a content part of type {found!r}")


def _image(item: Mapping[str, Json]) -> Image:
    held = item.get("image_url")
    inner: Mapping[str, Json] = {"url": held} if isinstance(held, str) else _inner(item, "image_url")
    detail = inner.get("detail")
    return Image(
        url=_source(inner, "url"),
        detail=detail if detail in ("auto", "low", "high") else None,
        description=str(item.get("description", "")),
    )


def _audio(item: Mapping[str, Json]) -> Audio:
    inner = _inner(item, "input_audio")
    data = inner.get("data")
    return Audio(
        data=None if data is None else _bytes(string(data, "data"), "input_audio")[0],
        url=_source(inner, "url"),
        format=str(inner.get("format", "wav")),
        transcript=str(item.get("transcript", "")),
    )


def _file(item: Mapping[str, Json]) -> File:
    inner = _inner(item, "file")
    data, media = None, ""
    if inner.get("file_data") is not None:
        data, media = _bytes(string(inner["file_data"], "file_data"), "file")
    name = str(inner.get("filename", ""))
    url, file_id = _source(inner, "file_url"), _source(inner, "file_id")
    return File(name=name, data=data, url=url, file_id=file_id, media=media)


def _inner(item: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    held = item.get(key)
    if not isinstance(held, Mapping):
        raise UsageError(f"a part of type {key!r} must hold an object under {key!r}")
    return held


def _source(inner: Mapping[str, Json], key: str) -> str | None:
    value = inner.get(key)
    return None if value is None else string(value, key)


def string(value: Json, what: str) -> str:
    """The value, which is text. UsageError names ``what`` it should have been."""
    if not isinstance(value, str):
        raise UsageError(f"{what!r} must be a string, got {type(value).__name__}")
    return value


def _bytes(text: str, what: str) -> tuple[bytes, str]:
    media = ""
    if text.startswith("data:"):
        head, _, text = text.partition(",")
        media = head.removeprefix("data:").partition(";")[0]
    try:
        return b64decode(text, validate=True), media
    except ValueError:
        raise UsageError(f"the data of a part of type {what!r} is not base64") from None


def _plain(part: Part | Refusal) -> dict[str, Json]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Refusal(text=text):
            return {"type": "refusal", "refusal": text}
        case Image():
            return _plain_image(part)
        case Audio(data=data, url=url, format=form, transcript=transcript):
            source = {"url": url} if data is None else {"data": b64encode(data).decode()}
            held = {"type": "input_audio", "input_audio": {**source, "format": form}}
            return held | ({"transcript": transcript} if transcript else {})
        case File(name=name, data=data, url=url, file_id=file_id, media=media):
            if data is not None:
                encoded = b64encode(data).decode()
                source = {"file_data": f"data:{media};base64,{encoded}" if media else encoded}
            else:
                source = {"file_url": url} if file_id is None else {"file_id": file_id}
            return {"type": "file", "file": ({"filename": name} if name else {}) | source}


def _plain_image(part: Image) -> dict[str, Json]:
    if part.file_id is not None:
        return {"type": "image_file", "image_file": {"file_id": part.file_id}}
    url = part.url
    if part.data is not None:
        url = f"data:{part.media or 'image/png'};base64,{b64encode(part.data).decode()}"
    held: dict[str, Json] = {"type": "image_url", "image_url": {"url": url}}
    if part.detail is not None:
        held["image_url"]["detail"] = part.detail
    return held | ({"description": part.description} if part.description else {})
