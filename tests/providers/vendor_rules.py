"""What vendors document about request bodies, as checks that share nothing with the library: the other side's view.

Each raises AssertionError with the rule that is broken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Body = Mapping[str, Any]

PORTABLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _object(text: str) -> None:
    assert isinstance(json.loads(text), dict), "arguments are an object"


# ---- Chat Completions -----------------------------------------------------------------------------------------------
CHAT_PARTS = {
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "system": {"text"},
    "developer": {"text"},
}


def chat(body: Body) -> None:
    """Roles and content as documented, and each call answered right behind the message that makes it."""
    open_calls: list[str] = []
    assert body["messages"], "there are messages"
    for message in body["messages"]:
        role, content = message["role"], message.get("content")
        if role == "tool":
            assert isinstance(content, str), "a result is text"
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls, "results come before anything else"
        if isinstance(content, list):
            assert content, "a list of parts is not empty"
            assert {part["type"] for part in content} <= CHAT_PARTS[role], role
        else:
            assert isinstance(content, str) or (role == "assistant" and message.get("tool_calls")), role
        if role == "assistant":
            assert content or message.get("tool_calls"), "an answer says something or calls"
            assert message.get("tool_calls") != [], "no empty list of calls"
        for call in message.get("tool_calls", ()):
            assert PORTABLE_NAME.fullmatch(call["function"]["name"]), "the name of a call"
            assert 0 < len(call["id"]) <= 40
            _object(call["function"]["arguments"])
            assert call["id"] not in open_calls, "ids are unique"
            open_calls.append(call["id"])
    assert not open_calls, "each call is answered"
    _names(tool["function"]["name"] for tool in body.get("tools", ()))


def _names(names: Iterator[str], form: re.Pattern[str] = PORTABLE_NAME) -> None:
    for name in names:
        assert form.fullmatch(name), "the name of a tool"


# ---- Responses ------------------------------------------------------------------------------------------------------
def responses(body: Body) -> None:
    """Items of known kinds, each call with one result behind it, nothing stored."""
    assert body["store"] is False
    assert body["input"], "there is input"
    asked: set[str] = set()
    answered: set[str] = set()
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "message":
            content, role = item["content"], item["role"]
            assert role in {"user", "assistant", "system", "developer"}
            assert content or isinstance(content, str), "a list of parts is not empty"
            if isinstance(content, list):
                kinds = {part["type"] for part in content}
                said = {"output_text", "refusal"}
                assert kinds <= (said if role == "assistant" else {"input_text", "input_image", "input_file"}), kinds
        elif kind == "function_call":
            assert item["call_id"] not in asked, "ids are unique"
            assert PORTABLE_NAME.fullmatch(item["name"])
            assert 0 < len(item["call_id"]) <= 64
            _object(item["arguments"])
            asked.add(item["call_id"])
        elif kind == "function_call_output":
            assert item["call_id"] in asked, "a result has its call before it"
            assert item["call_id"] not in answered, "one result each"
            assert item["output"] != [], "a list of parts is not empty"
            answered.add(item["call_id"])
        else:
            assert kind in {"reasoning", "web_search_call"}, kind
    assert asked == answered, "each call is answered"
    _names(tool["name"] for tool in body.get("tools", ()) if tool["type"] == "function")


# ---- Messages -------------------------------------------------------------------------------------------------------
MESSAGES_ID = re.compile(r"[A-Za-z0-9_-]+")
MESSAGES_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


def messages(body: Body) -> None:
    """Sides alternate from user to user; no blank text; results first and complete; four cache marks at most."""
    assert body["max_tokens"] > 0
    told = body["messages"]
    assert told[0]["role"] == told[-1]["role"] == "user"
    pending: list[str] = []
    known: set[str] = set()
    marks = 0
    for n, message in enumerate(told):
        assert message["role"] == ("user" if n % 2 == 0 else "assistant"), "sides alternate"
        blocks: Sequence[Mapping[str, Any]] = message["content"]
        assert blocks, "a message says something"
        kinds = [block["type"] for block in blocks]
        marks += sum("cache_control" in block for block in blocks)
        results = kinds.count("tool_result")
        assert all(kind == "tool_result" for kind in kinds[:results]), "results come first"
        assert sorted(block["tool_use_id"] for block in blocks[:results]) == sorted(pending), "each call is answered"
        pending = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert not known & set(pending), "ids are unique"
        assert len(set(pending)) == len(pending), "ids are unique"
        known |= set(pending)
        for block in blocks:
            _block(block, message["role"])
        if message["role"] == "assistant":
            thoughts = [i for i, kind in enumerate(kinds) if kind in {"thinking", "redacted_thinking"}]
            assert thoughts == list(range(len(thoughts))), "thinking comes first"
            assert len(thoughts) < len(kinds), "an answer is more than thinking"
    assert not pending
    for block in body.get("system", ()):
        assert block["text"].strip(), "no blank text"
        marks += "cache_control" in block
    for tool in body.get("tools", ()):
        marks += "cache_control" in tool
        assert MESSAGES_NAME.fullmatch(tool["name"])
    assert marks <= 4, "four marks at most"


def _block(block: Mapping[str, Any], role: str) -> None:
    match block["type"]:
        case "text":
            assert block["text"].strip(), "no blank text"
        case "tool_use":
            assert role == "assistant"
            assert MESSAGES_ID.fullmatch(block["id"])
            assert MESSAGES_NAME.fullmatch(block["name"])
            assert isinstance(block["input"], dict)
        case "tool_result":
            assert role == "user"
            content = block.get("content", "x")
            assert content != [], "a list of blocks is not empty"
            if block.get("is_error"):
                assert isinstance(content, str) or all(one["type"] == "text" for one in content)
            for one in content if isinstance(content, list) else ():
                _block(one, role)
        case "image" | "document":
            assert role == "user"
        case kind:
            assert kind in {"thinking", "redacted_thinking"}, kind
            assert role == "assistant"
            assert "cache_control" not in block


# ---- generateContent ------------------------------------------------------------------------------------------------
GOOGLE_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def google(body: Body) -> None:
    """From user to user; a content of calls is followed by one of as many responses, in order, and nothing else."""
    contents = body["contents"]
    assert contents[0]["role"] == contents[-1]["role"] == "user"
    calls: list[tuple[str, str]] = []
    for content in contents:
        parts = content["parts"]
        assert parts, "a content says something"
        responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
        assert len(responses) in {0, len(parts)}, "function responses stand alone"
        assert [(one["name"], one.get("id", "")) for one in responses] == calls, "each call is answered, in order"
        calls = [
            (part["functionCall"]["name"], part["functionCall"].get("id", ""))
            for part in parts
            if "functionCall" in part
        ]
        assert not calls or content["role"] == "model"
        for part in parts:
            if "text" in part and not part.get("thought"):
                assert part["text"].strip(), "no blank text"
            if "functionCall" in part:
                assert GOOGLE_NAME.fullmatch(part["functionCall"]["name"])
                assert isinstance(part["functionCall"]["args"], dict)
    assert not calls
    for tool in body.get("tools", ()):
        _names((one["name"] for one in tool.get("functionDeclarations", ())), GOOGLE_NAME)


RULES: Mapping[str, Callable[[Body], None]] = {
    "chat": chat, "responses": responses, "messages": messages, "google": google,
}  # fmt: skip
"""By the name of the wire."""
