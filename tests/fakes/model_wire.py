"""How the fake model writes an answer: the events of each API's stream, and the one document without streaming.

A stream is a sequence of steps: an event to send (`Event`), or a place where the answer waits (`PAUSE` between two pieces,
`GATE` in the middle of the text, `HANG` before the end). What waiting means is the server's business.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from tests.fakes.model_rules import Reply

PAUSE: Literal["pause"] = "pause"
GATE: Literal["gate"] = "gate"
HANG: Literal["hang"] = "hang"


class Event(NamedTuple):
    """One server-sent event; `name` may be empty, data is an object or the literal line of the API."""

    data: Mapping[str, Any] | str
    name: str = ""


Step = Event | Literal["pause", "gate", "hang"]


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:20]}"


def _text_steps(reply: Reply, make: Any) -> Iterator[Step]:
    """The pieces of the text as events made by `make(piece)`, with the waits between them."""
    middle = (len(reply.pieces) + 1) // 2
    for place, piece in enumerate(reply.pieces, 1):
        yield make(piece)
        if reply.delay:
            yield PAUSE
        if reply.gate and place == middle:
            yield GATE
    if reply.hang:
        yield HANG


# --- Anthropic messages ---------------------------------------------------------------------------------------------


def anthropic_document(reply: Reply, model: str) -> dict[str, Any]:
    """The answer of POST /v1/messages without streaming."""
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": "c2ln"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for call in reply.calls:
        blocks.append({"type": "tool_use", "id": _id("toolu"), "name": call.name, "input": dict(call.arguments)})
    return {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 100,
            "output_tokens": 10,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def anthropic_stream(reply: Reply, model: str) -> Iterator[Step]:
    """The events of POST /v1/messages with streaming."""
    document = anthropic_document(reply, model)

    def event(kind: str, **fields: Any) -> Event:
        return Event({"type": kind, **fields}, kind)

    yield event("message_start", message={**document, "content": [], "stop_reason": None})
    for index, block in enumerate(document["content"]):

        def delta(kind: str, *, at: int = index, **fields: Any) -> Event:
            return event("content_block_delta", index=at, delta={"type": kind, **fields})

        if block["type"] == "thinking":
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            yield event("content_block_start", index=index, content_block=empty)
            yield delta("thinking_delta", thinking=block["thinking"])
            yield delta("signature_delta", signature=block["signature"])
        elif block["type"] == "text":
            yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            yield from _text_steps(reply, lambda piece, send=delta: send("text_delta", text=piece))
        else:
            yield event("content_block_start", index=index, content_block={**block, "input": {}})
            yield delta("input_json_delta", partial_json=json.dumps(block["input"], ensure_ascii=False))
        yield event("content_block_stop", index=index)
    ending = {"stop_reason": document["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ending, usage={"output_tokens": 10})
    yield event("message_stop")


# --- OpenAI responses -----------------------------------------------------------------------------------------------


def responses_document(reply: Reply, model: str) -> dict[str, Any]:
    """The answer of POST /v1/responses without streaming."""
    items: list[dict[str, Any]] = []
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"type": "reasoning", "id": _id("rs"), "summary": summary, "encrypted_content": None})
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append(
            {"type": "message", "id": _id("msg"), "role": "assistant", "status": "completed", "content": content}
        )
    for call in reply.calls:
        item = {
            "type": "function_call",
            "id": _id("fc"),
            "call_id": _id("call"),
            "name": call.name,
            "arguments": json.dumps(dict(call.arguments), ensure_ascii=False),
            "status": "completed",
        }
        items.append({**item, "namespace": call.namespace} if call.namespace else item)
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 110,
    }
    return {
        "id": _id("resp"),
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": model,
        "output": items,
        "usage": usage,
    }


def responses_stream(reply: Reply, model: str) -> Iterator[Step]:
    """The events of POST /v1/responses with streaming."""
    document = responses_document(reply, model)
    number = -1

    def event(kind: str, **fields: Any) -> Event:
        nonlocal number
        number += 1
        return Event({"type": kind, "sequence_number": number, **fields}, kind)

    started = {key: value for key, value in document.items() if key != "usage"}
    yield event("response.created", response={**started, "status": "in_progress", "output": []})
    for index, item in enumerate(document["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            opened = {**item, "content": [], "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=opened)
            part = {"type": "output_text", "text": "", "annotations": []}
            yield event("response.content_part.added", **place, content_index=0, part=part)
            yield from _text_steps(
                reply,
                lambda piece, at=place: event("response.output_text.delta", **at, content_index=0, delta=piece),
            )
            yield event("response.output_text.done", **place, content_index=0, text=reply.text)
        elif item["type"] == "reasoning":
            yield event("response.output_item.added", output_index=index, item={**item, "summary": []})
            blank = {"type": "summary_text", "text": ""}
            yield event("response.reasoning_summary_part.added", **place, summary_index=0, part=blank)
            yield event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=reply.thinking)
            yield event("response.reasoning_summary_text.done", **place, summary_index=0, text=reply.thinking)
        else:
            opened = {**item, "arguments": "", "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=opened)
            yield event("response.function_call_arguments.delta", **place, delta=item["arguments"])
            yield event("response.function_call_arguments.done", **place, arguments=item["arguments"])
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=document)


# --- OpenAI chat completions ----------------------------------------------------------------------------------------


def _chat_calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": "call_" + uuid.uuid4().hex[:9],
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)},
        }
        for call in reply.calls
    ]


_CHAT_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def chat_document(reply: Reply, model: str) -> dict[str, Any]:
    """The answer of POST /v1/chat/completions without streaming."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = _chat_calls(reply)
    ending = "tool_calls" if reply.calls else "stop"
    return {
        "id": _id("chatcmpl"),
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": ending}],
        "usage": _CHAT_USAGE,
    }


def chat_stream(reply: Reply, model: str) -> Iterator[Step]:
    """The events of POST /v1/chat/completions with streaming. Usage stands in the last chunk and in one of its own."""
    base = {"id": _id("chatcmpl"), "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model}

    def chunk(delta: Mapping[str, Any], ending: str | None = None, **fields: Any) -> Event:
        return Event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": ending}], **fields})

    yield chunk({"role": "assistant", "content": ""})
    if reply.thinking:
        yield chunk({"reasoning_content": reply.thinking})
    yield from _text_steps(reply, lambda piece: chunk({"content": piece}))
    for index, call in enumerate(_chat_calls(reply)):
        yield chunk({"tool_calls": [{**call, "index": index}]})
    yield chunk({}, "tool_calls" if reply.calls else "stop", usage=_CHAT_USAGE)
    yield Event({**base, "choices": [], "usage": _CHAT_USAGE})
    yield Event("[DONE]")


# --- Gemini ---------------------------------------------------------------------------------------------------------

_GEMINI_USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}


def _gemini_calls(reply: Reply) -> list[dict[str, Any]]:
    return [{"functionCall": {"name": call.name, "args": dict(call.arguments)}} for call in reply.calls]


def _gemini(parts: list[dict[str, Any]], model: str, ending: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if ending:
        candidate["finishReason"] = ending
    return {
        "candidates": [candidate],
        "modelVersion": model,
        "responseId": _id("r"),
        "usageMetadata": _GEMINI_USAGE,
    }


def gemini_document(reply: Reply, model: str) -> dict[str, Any]:
    """The answer of :generateContent."""
    parts = ([{"text": reply.text}] if reply.text else []) + _gemini_calls(reply)
    return _gemini(parts, model, "STOP")


def gemini_stream(reply: Reply, model: str) -> Iterator[Step]:
    """The events of :streamGenerateContent?alt=sse."""
    if reply.thinking:
        yield Event(_gemini([{"text": reply.thinking, "thought": True}], model))
    yield from _text_steps(reply, lambda piece: Event(_gemini([{"text": piece}], model)))
    yield Event(_gemini(_gemini_calls(reply) or [{"text": ""}], model, "STOP"))
