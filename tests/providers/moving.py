"""What each wire's server says and reads in the tests of moving: replies as vendors stream them, bodies taken apart.

The readers are written from the vendors' documents and share nothing with the library: they are the other side.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tests.providers.wires import sse

Event = dict[str, Any]
Item = tuple[str, ...]
"""``("user", text)``, ``("image",)``, ``("said", text)``, ``("call", name, args)`` or ``("result", text)``."""

CALLS = (("price", '{"city":"Lisbon"}'), ("price", '{"city":"Porto"}'))
THOUGHT = "They want two prices."
SOURCE = "https://hotels.example/lisbon"


class Kit(NamedTuple):
    """One wire's side: how it thinks and asks for two calls, says a text with a source, declines; how it reads a body.

    ``native`` are the words that only its own items hold; ``id_form`` is what it takes as the id of a call.
    """

    calls: Callable[[], bytes]
    cited: Callable[[str], bytes]
    refusal: Callable[[str], bytes]
    read: Callable[[Mapping[str, Any]], list[Item]]
    native: str
    id_form: re.Pattern[str]
    refuses: str = "refusal"
    """How the round of a refusal finishes."""


def _joined(events: Sequence[Event | str], *, named: bool = False) -> bytes:
    return b"".join(sse(*events, named=named))


def _paired(asked: Mapping[str, int], answered: Sequence[str], form: re.Pattern[str]) -> None:
    """Every result answers one call that came before it, every call has one result, and the ids are of the form."""
    assert sorted(asked) == sorted(answered), (asked, answered)
    assert len(set(answered)) == len(answered)
    for one in asked:
        assert form.fullmatch(one), one


# ---- Chat Completions -----------------------------------------------------------------------------------------------
def choice(finish: str | None = None, **said: Any) -> Event:
    """An event with one choice."""
    return {"model": "m-1", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def _chat_calls() -> bytes:
    calls = [
        {"index": n, "id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": args}}
        for n, (name, args) in enumerate(CALLS)
    ]
    return _joined([
        choice(reasoning_content=THOUGHT), choice(content="One moment."), choice(tool_calls=calls),
        choice("tool_calls"), "[DONE]",
    ])  # fmt: skip


def _chat_cited(text: str) -> bytes:
    source = {"type": "url_citation", "url_citation": {"url": SOURCE, "title": "L", "start_index": 0, "end_index": 6}}
    return _joined([choice(content=text), choice(annotations=[source]), choice("stop"), "[DONE]"])


def _chat_refusal(text: str) -> bytes:
    return _joined([choice(refusal=text), choice("stop"), "[DONE]"])


CHAT_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")


def _chat_read(body: Mapping[str, Any]) -> list[Item]:
    out: list[Item] = []
    asked: dict[str, int] = {}
    answered: list[str] = []
    for message in body["messages"]:
        content, role = message.get("content") or "", message["role"]
        if role == "tool":
            assert message["tool_call_id"] in asked
            answered.append(message["tool_call_id"])
            out.append(("result", content))
            continue
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            if part["type"] == "image_url":
                out.append(("image",))
            elif words := part.get("text", part.get("refusal")):
                out.append(({"user": "user", "assistant": "said"}.get(role, role), words))
        for call in message.get("tool_calls", ()):
            asked[call["id"]] = len(asked)
            out.append(("call", call["function"]["name"], call["function"]["arguments"]))
    _paired(asked, answered, CHAT_ID)
    return out


CHAT = Kit(
    _chat_calls, _chat_cited, _chat_refusal, _chat_read, native='"reasoning_content":"They want', id_form=CHAT_ID
)


# ---- Responses ------------------------------------------------------------------------------------------------------
def responses_stream(items: Sequence[Event], deltas: Sequence[Event] = ()) -> bytes:
    """A reply of these items; ``deltas`` come before they are done."""
    held: Event = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "m-1", "output": []}
    usage = {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
    }  # fmt: skip
    events: list[Event] = [{"type": "response.created", "response": held}]
    for at, item in enumerate(items):
        begun = item | ({"content": []} if item["type"] == "message" else {})
        events.append({"type": "response.output_item.added", "output_index": at, "item": begun})
        events += [delta for delta in deltas if delta["output_index"] == at]
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    done = held | {"status": "completed", "output": list(items), "usage": usage}
    events.append({"type": "response.completed", "response": done})
    return _joined([event | {"sequence_number": n} for n, event in enumerate(events)], named=True)


def message(*content: Event) -> Event:
    """An item with what the model said."""
    return {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": list(content)}


def _delta(kind: str, at: int, item: str, **fields: Any) -> Event:
    return {"type": f"response.{kind}", "item_id": item, "output_index": at, "content_index": 0, **fields}


def _responses_calls() -> bytes:
    thinking: Event = {
        "id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}],
        "encrypted_content": "gAAAA-sealed",
    }  # fmt: skip
    said: Event = {"type": "output_text", "text": "One moment.", "annotations": []}
    calls: list[Event] = [
        {
            "id": f"fc_{n}", "type": "function_call", "status": "completed", "call_id": f"call_{n}", "name": name,
            "arguments": args,
        }
        for n, (name, args) in enumerate(CALLS)
    ]  # fmt: skip
    deltas = [
        _delta("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta=THOUGHT),
        _delta("output_text.delta", 1, "msg_1", delta="One moment."),
        *(_delta("function_call_arguments.delta", 2 + n, f"fc_{n}", delta=args) for n, (_, args) in enumerate(CALLS)),
    ]
    return responses_stream([thinking, message(said), *calls], deltas)


def _responses_cited(text: str) -> bytes:
    source = {"type": "url_citation", "url": SOURCE, "title": "L", "start_index": 0, "end_index": 6}
    part: Event = {"type": "output_text", "text": text, "annotations": [source]}
    deltas = [
        _delta("output_text.delta", 0, "msg_1", delta=text),
        _delta("output_text.annotation.added", 0, "msg_1", annotation_index=0, annotation=source),
    ]
    return responses_stream([message(part)], deltas)


def _responses_refusal(text: str) -> bytes:
    part: Event = {"type": "refusal", "refusal": text}
    return responses_stream([message(part)], [_delta("refusal.delta", 0, "msg_1", delta=text)])


RESPONSES_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _responses_read(body: Mapping[str, Any]) -> list[Item]:
    out: list[Item] = []
    asked: dict[str, int] = {}
    answered: list[str] = []
    if body.get("instructions"):
        out.append(("system", body["instructions"]))
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "function_call":
            asked[item["call_id"]] = len(asked)
            out.append(("call", item["name"], item["arguments"]))
        elif kind == "function_call_output":
            assert item["call_id"] in asked
            answered.append(item["call_id"])
            out.append(("result", item["output"]))
        elif kind == "message":
            content = item["content"]
            role = {"user": "user", "assistant": "said"}.get(item["role"], item["role"])
            parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
            out += [
                ("image",) if part["type"] == "input_image" else (role, part.get("text") or part["refusal"])
                for part in parts
            ]
    _paired(asked, answered, RESPONSES_ID)
    return out


RESPONSES = Kit(
    _responses_calls, _responses_cited, _responses_refusal, _responses_read, native="gAAAA-sealed", id_form=RESPONSES_ID
)


# ---- Messages -------------------------------------------------------------------------------------------------------
def messages_blocks(stop: str, *blocks: tuple[Event, Sequence[Event]]) -> bytes:
    """A reply of these blocks, each with its deltas."""
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
    message: Event = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m-1", "stop_reason": None,
        "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    events: list[Event] = [{"type": "message_start", "message": message}]
    for at, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        events += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": at})
    ended = {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": 5},
    }
    return _joined([*events, ended, {"type": "message_stop"}], named=True)


def _messages_calls() -> bytes:
    thinking: tuple[Event, Sequence[Event]] = (
        {"type": "thinking", "thinking": "", "signature": ""},
        [{"type": "thinking_delta", "thinking": THOUGHT}, {"type": "signature_delta", "signature": "c2VhbGVk"}],
    )
    said = ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "One moment."}])
    calls: list[tuple[Event, Sequence[Event]]] = [
        (
            {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": {}},
            [{"type": "input_json_delta", "partial_json": args}],
        )
        for n, (name, args) in enumerate(CALLS)
    ]
    return messages_blocks("tool_use", thinking, said, *calls)


def _messages_cited(text: str) -> bytes:
    source = {
        "type": "web_search_result_location", "url": SOURCE, "title": "L", "encrypted_index": "x", "cited_text": "…",
    }  # fmt: skip
    deltas: list[Event] = [{"type": "citations_delta", "citation": source}, {"type": "text_delta", "text": text}]
    return messages_blocks("end_turn", ({"type": "text", "text": "", "citations": []}, deltas))


def _messages_refusal(text: str) -> bytes:
    return messages_blocks("refusal", ({"type": "text", "text": ""}, [{"type": "text_delta", "text": text}]))


MESSAGES_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _messages_read(body: Mapping[str, Any]) -> list[Item]:
    out: list[Item] = []
    asked: dict[str, int] = {}
    answered: list[str] = []
    system = body.get("system") or []
    out += [("system", block["text"]) for block in ([{"text": system}] if isinstance(system, str) else system)]
    roles = [message["role"] for message in body["messages"]]
    assert roles[0] == roles[-1] == "user"
    assert all(one != other for one, other in itertools.pairwise(roles)), roles
    for message in body["messages"]:
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match part["type"]:
                case "text":
                    assert part["text"].strip()
                    out.append(("user" if message["role"] == "user" else "said", part["text"]))
                case "image":
                    out.append(("image",))
                case "tool_use":
                    asked[part["id"]] = len(asked)
                    out.append(("call", part["name"], json.dumps(part["input"], separators=(",", ":"))))
                case "tool_result":
                    assert part["tool_use_id"] in asked
                    answered.append(part["tool_use_id"])
                    told = part["content"]
                    out.append(("result", told if isinstance(told, str) else "".join(one["text"] for one in told)))
                case other:
                    assert other in {"thinking", "redacted_thinking"}, other
    _paired(asked, answered, MESSAGES_ID)
    return out


MESSAGES = Kit(
    _messages_calls, _messages_cited, _messages_refusal, _messages_read, native="c2VhbGVk", id_form=MESSAGES_ID
)


# ---- generateContent ------------------------------------------------------------------------------------------------
def candidates(*parts: Sequence[Event], finish: str = "STOP", grounding: Event | None = None) -> bytes:
    """A reply whose events hold these parts."""
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    events: list[Event] = []
    for n, each in enumerate(parts):
        candidate: Event = {"content": {"parts": list(each), "role": "model"}, "index": 0}
        if n == len(parts) - 1:
            candidate["finishReason"] = finish
            if grounding is not None:
                candidate["groundingMetadata"] = grounding
        events.append({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m-1", "responseId": "r"})
    return _joined(events)


def _google_calls() -> bytes:
    calls: list[Event] = [{"functionCall": {"name": name, "args": json.loads(args)}} for name, args in CALLS]
    calls[0]["thoughtSignature"] = "c2lnbmVk"
    return candidates([{"text": THOUGHT, "thought": True}], [{"text": "One moment."}], calls)


def _google_cited(text: str) -> bytes:
    grounding: Event = {
        "webSearchQueries": ["lisbon"],
        "groundingChunks": [{"web": {"uri": SOURCE, "title": "L"}}],
        "groundingSupports": [
            {"segment": {"startIndex": 0, "endIndex": 6, "text": text[:6]}, "groundingChunkIndices": [0]}
        ],
    }
    return candidates([{"text": text}], grounding=grounding)


def _google_refusal(text: str) -> bytes:
    """Gemini has no words of its own for declining: what it says is text."""
    return candidates([{"text": text}])


GOOGLE_ID = re.compile(r"[A-Za-z0-9_#-]{1,64}")


def _google_read(body: Mapping[str, Any]) -> list[Item]:
    out: list[Item] = [("system", part["text"]) for part in body.get("systemInstruction", {}).get("parts", ())]
    asked: list[str] = []
    answered: list[str] = []
    roles = [entry["role"] for entry in body["contents"]]
    assert roles[0] == roles[-1] == "user"
    for entry in body["contents"]:
        kinds = {"functionResponse" in part for part in entry["parts"]}
        assert len(kinds) == 1, "function responses stand alone"
        for part in entry["parts"]:
            if part.get("thought"):
                continue
            if "functionCall" in part:
                call = part["functionCall"]
                asked.append(call["name"])
                out.append(("call", call["name"], json.dumps(call["args"], separators=(",", ":"))))
            elif "functionResponse" in part:
                answer = part["functionResponse"]
                answered.append(answer["name"])
                (told,) = answer["response"].values()
                out.append(("result", told if isinstance(told, str) else json.dumps(told, separators=(",", ":"))))
            elif "inlineData" in part or "fileData" in part:
                out.append(("image",))
            elif part.get("text"):
                out.append(("user" if entry["role"] == "user" else "said", part["text"]))
    assert sorted(asked) == sorted(answered)
    return out


GOOGLE = Kit(
    _google_calls, _google_cited, _google_refusal, _google_read, native="c2lnbmVk", id_form=GOOGLE_ID, refuses="stop"
)

KITS = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "google": GOOGLE}
