"""Context data, instructions and what surrounds a person's words, as the text that models read.

Everything here is pure and depends on the message alone, so a unit renders to the same bytes on every later request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from onrecord.conversation.content import Part, Structured, Text
from onrecord.conversation.messages import Authority, ContextMessage, UserMessage
from onrecord.jsonio import Json, dumps

__all__ = (
    "INVISIBLE",
    "OPENING",
    "UNSEEN",
    "context_text",
    "has_opening",
    "instruction",
    "prefixed",
    "preview",
    "request_text",
    "stamped",
    "unframed",
    "unframed_parts",
    "user_parts",
)

PREVIEW_CHARS = 480


def context_text(message: ContextMessage) -> str:
    """The text of a context message: its contents joined without a separator, data in the form its kind names.

    Empty where there is nothing but white space: vendors refuse such texts.
    """
    text = ""
    for item in message.content:
        if isinstance(item, Text):
            text += item.text
        else:
            text += _structured(item, follows=bool(text))
    return "" if text.isspace() else text


def request_text(message: ContextMessage) -> str:
    """`context_text` as requests show it: data does not look like an instruction."""
    text = context_text(message)
    return unframed(text) if message.authority == "data" else text


def instruction(text: str, authority: Authority) -> str:
    """An instruction inside the conversation, for wires that have no role for it: a user part that says what it is.

    Nothing in the text ends it. What others say is written by `unframed`, so it looks like none.
    """
    held = _ANY_EDGE.sub("&lt;", text) if has_opening(text) else text
    return f'<instruction from="application" authority="{authority}">\n{held}\n</instruction>'


OPENING = "[<\uff1c\ufe64]"
"""The sign that opens a tag, also in other widths, as an expression."""

INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    r"\uffa0\U000e0000-\U000e0fff"
)
"""Characters that look like nothing, as the inside of a set in an expression."""

UNSEEN = rf"[\s\x00-\x1f\x7f-\x9f{INVISIBLE}]"
"""A character of a tag that nobody sees, as an expression: also blanks and control codes."""

_ANY_EDGE = re.compile(rf"{OPENING}(?={UNSEEN}*(?:/{UNSEEN}*)?instruction\b)", re.IGNORECASE)
_BEGINNING = re.compile(rf"{OPENING}(?={UNSEEN}*instruction{UNSEEN}+from\b)", re.IGNORECASE)


def has_opening(text: str) -> bool:
    """Whether a text has a sign that opens a tag: few texts have one, and this is faster than any expression."""
    return "<" in text or (not text.isascii() and ("\uff1c" in text or "\ufe64" in text))


def unframed(text: str) -> str:
    """The text of a person, a tool or a source as requests show it: what would read as an `instruction` is not one."""
    return _BEGINNING.sub("&lt;", text) if has_opening(text) else text


def unframed_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The same for each text of a content; the very content where there is nothing of that kind."""
    if not any(isinstance(part, Text) and unframed(part.text) != part.text for part in parts):
        return parts
    return tuple(replace(part, text=unframed(part.text)) if isinstance(part, Text) else part for part in parts)


def user_parts(message: UserMessage) -> tuple[Part, ...]:
    """What the model reads of a person's message: the notice line, the reply line, then the content as admitted."""
    lines = ""
    if message.notice is not None:
        lines += f"[Notice from {message.notice}; the owner did not write this.]\n"
    if message.reply_to or message.reply_preview:
        shown = preview(message.reply_preview) or f"message {message.reply_to}"
        lines += f"[Replying to: {shown}]\n"
    parts = unframed_parts(message.content)
    return prefixed(parts, unframed(lines)) if lines else parts


def stamped(parts: tuple[Part, ...], at: datetime | None) -> tuple[Part, ...]:
    """The parts behind ``[YYYY-MM-DD HH:MM] ``, in the offset that ``at`` carries; unchanged without a time."""
    return parts if at is None else prefixed(parts, f"[{at:%Y-%m-%d %H:%M}] ")


def prefixed(parts: tuple[Part, ...], words: str) -> tuple[Part, ...]:
    """The parts with words in front: in the first text, or as a text of their own before media or nothing."""
    if parts and isinstance(first := parts[0], Text):
        return (replace(first, text=words + first.text), *parts[1:])
    return (Text(words), *parts)


def preview(text: str) -> str:
    """A text on one line of at most 480 characters: white space collapsed, a longer one cut and ended with ``…``."""
    flat = " ".join(text.split())
    return flat if len(flat) <= PREVIEW_CHARS else flat[: PREVIEW_CHARS - 1].rstrip() + "…"


# ---- structured context -------------------------------------------------------------------------------------------


def _structured(item: Structured, *, follows: bool) -> str:
    kind = item.kind.replace("_", "-")
    if kind == "runtime-context":
        return ("\n" if follows else "") + _runtime_context(item)
    render = _FORMS.get(kind)
    return render(item) if render is not None else _unnamed(item)


def _instruction_form(item: Structured) -> str:
    priority = item.about.get("priority")
    return f"Instruction [{priority}]:\n{item.text}" if priority else f"Instruction:\n{item.text}"


def _tagged_text(item: Structured) -> str:
    tag = item.about.get("tag", "context")
    return f"<{tag}>{item.text}</{tag}>"


def _domain_event(item: Structured) -> str:
    return _headed("Domain event", item.about.get("event_type", item.text), item.payload)


def _state_snapshot(item: Structured) -> str:
    return _headed("State snapshot", item.about.get("state_type", item.text), item.payload)


def _summary(item: Structured) -> str:
    lines = ["Summary:", item.text]
    if item.payload is not None:
        lines.append(_indented(item.payload))
    return "\n".join(lines)


def _reference(item: Structured) -> str:
    about = item.about
    line = f"Reference: {about.get('ref_type', '')} -> {about.get('target_id', '')}"
    note = about.get("note", item.text)
    return f"{line}\n{note}" if note else line


def _runtime_context(item: Structured) -> str:
    entries = [entry for entry in _sequence(item.payload) if isinstance(entry, Mapping)]
    return "\n".join(["[Context]", *(f"- {entry.get('source', '')}: {entry.get('text', '')}" for entry in entries)])


def _history_block(item: Structured) -> str:
    held = item.payload
    items = _sequence(held.get("items") if isinstance(held, Mapping) else held)
    return "\n".join(_history_item(one) for one in items)


def _history_item(item: Json) -> str:
    if not isinstance(item, Mapping):
        return _compact(item)
    kind = str(item.get("type", "")).replace("_", "-")
    if kind == "summary":
        lines = ["Summary:", str(item.get("text", ""))]
        window = item.get("window")
        if isinstance(window, Mapping):
            lines.append(f"Window: {_bound(window.get('from'))} -> {_bound(window.get('to'))}.")
        return "\n".join(lines)
    if kind == "reaction":
        return f"{item.get('reaction_type', '')}: {item.get('text', '')}"
    if kind == "domain-event":
        return _headed("Domain event", str(item.get("event_type", "")), item.get("payload"))
    return _action(item.get("action", item))


def _action(action: Json) -> str:
    kind = str(action.get("kind", "")).replace("_", "-") if isinstance(action, Mapping) else ""
    if kind == "text":
        return str(action.get("text", ""))
    if kind == "event":
        return f"{action.get('name', '')} {_compact(action.get('payload'))}"
    if kind in {"move-played", "move-executed"}:
        return f"{kind} {action.get('san', '')}"
    return _compact(action)


def _unnamed(item: Structured) -> str:
    """A kind that the table does not have, from a feature of somebody else: its name, its words, its data."""
    lines = [f"{item.kind}:"]
    if item.text:
        lines.append(item.text)
    if item.payload is not None:
        lines.append(_indented(item.payload))
    return "\n".join(lines)


_FORMS: Mapping[str, Callable[[Structured], str]] = {
    "text": lambda item: item.text,
    "instruction": _instruction_form,
    "tagged-text": _tagged_text,
    "domain-event": _domain_event,
    "state-snapshot": _state_snapshot,
    "summary": _summary,
    "reference": _reference,
    "history-block": _history_block,
}


def _headed(head: str, name: str, payload: Json) -> str:
    return f"{head}: {name}\n{_indented(payload)}"


def _indented(value: Json) -> str:
    return msgspec.json.format(dumps(value), indent=2).decode()


def _compact(value: Json) -> str:
    return dumps(value).decode()


def _bound(value: Json) -> str:
    return "?" if value is None or value == "" else str(value)


def _sequence(value: Json) -> Sequence[Json]:
    return value if isinstance(value, (list, tuple)) else ()
