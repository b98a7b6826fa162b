"""Every wire case decodes to what it means, however its bytes arrive and whatever is done to their framing."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from swecli.core.llm.framing import BodyParser
from swecli.core.llm.protocols.arguments import parse_arguments
from swecli.core.llm.protocols.base import CallDraft, Decoder, OpaqueDraft, ReasoningDraft, TextDraft
from swecli.core.llm.types import Failed, Finished, ReasoningDelta, StreamEvent, TextDelta, ToolArgsDelta, ToolCallDone
from swecli.core.protocol.messages import ReasoningPart, TextPart, ToolCallPart
from tests.core.llm.wire_cases import WireCase, all_cases, stream_cases

every_case = pytest.mark.parametrize("case", all_cases(), ids=str)
every_stream = pytest.mark.parametrize("case", stream_cases(), ids=str)


def run(case: WireCase) -> tuple[Decoder, list[StreamEvent]]:
    decoder, body = case.decoder(), BodyParser(case.headers.get("content-type", ""))
    events = [event for wire in body.feed(case.body) for event in decoder.feed(wire)]
    events += [event for wire in body.end() for event in decoder.feed(wire)]
    return decoder, events + decoder.end_of_body(body)


@every_case
def test_whole(case: WireCase) -> None:
    assert case.decode(case.body) == case.wanted


@every_case
def test_byte_by_byte(case: WireCase) -> None:
    assert case.decode(*(case.body[i : i + 1] for i in range(len(case.body)))) == case.wanted


@every_case
def test_random_splits(case: WireCase) -> None:
    randomness = random.Random(str(case))
    for _ in range(5):
        cuts = sorted(randomness.randrange(len(case.body) + 1) for _ in range(randomness.randrange(1, 12)))
        ends = [*cuts, len(case.body)]
        chunks = [case.body[start:end] for start, end in zip([0, *cuts], ends, strict=True)]
        assert case.decode(*chunks) == case.wanted


def sse_edits(body: bytes) -> dict[str, bytes]:
    lines = body.replace(b"\r\n", b"\n")
    return {
        "LF": lines,
        "CRLF": lines.replace(b"\n", b"\r\n"),
        "CR": lines.replace(b"\n", b"\r"),
        "BOM": b"\xef\xbb\xbf" + body,
        "comments": b": hi\n\n" + lines.replace(b"\n\n", b"\n: keep-alive\n\n:\n\n"),
        "ids and retries": b"retry: 10\n" + lines.replace(b"data:", b"id: 1\nunknown: x\ndata:"),
        "blank lines": b"\n\n" + lines.replace(b"\n\n", b"\n\n\n\n"),
        "no end": body.rstrip(b"\r\n"),
    }


def json_edits(body: bytes) -> dict[str, bytes]:
    return {
        "CRLF": body.replace(b"\n", b"\r\n"),
        "BOM": b"\xef\xbb\xbf" + body,
        "blank lines": b"\n" + body.replace(b"\n", b"\n\n"),
        "no end": body.rstrip(b"\n"),
    }


@every_stream
def test_edits_of_the_framing_that_keep_the_meaning(case: WireCase) -> None:
    edits = sse_edits(case.body) if case.framing == "sse" else json_edits(case.body)
    for name, body in edits.items():
        if case.name == "multi-line-data" and name == "ids and retries":
            continue
        assert case.decode(body) == case.wanted, name
        assert case.decode(*(body[i : i + 1] for i in range(len(body)))) == case.wanted, name


def may_be_complete(case: WireCase, body: bytes) -> bool:
    """Whether the bytes hold what ends a stream of this protocol."""
    text = body.decode("utf-8", "ignore")
    if case.protocol == "openai-chat":
        reasons = re.search(r'"finish_reason":"\w+"', text)
        return "[DONE]" in text or reasons is not None
    ends = {
        "anthropic-messages": '"message_stop"|"stop_reason":"',
        "openai-responses": '"response.completed"|"response.incomplete"',
        "gemini-generate": '"finishReason"|"blockReason"',
        "ollama-chat": '"done":true',
    }
    return re.search(ends[case.protocol], text) is not None


@every_stream
def test_cut_streams_are_never_complete(case: WireCase) -> None:
    size = len(case.body)
    whole = case.wanted
    for cut in sorted({*range(0, size, max(1, size // 40)), *range(max(0, size - 30), size)}):
        got = case.decode(case.body[:cut])
        assert got["outcome"] in ("completed", "truncated", "error")
        if got["outcome"] == "completed":
            assert may_be_complete(case, case.body[:cut]), cut
        if got["outcome"] == "error":
            assert whole["outcome"] == "error"
        assert whole["text"].startswith(got["text"])
        assert whole["reasoning"].startswith(got["reasoning"])


@every_stream
def test_events_tell_the_message(case: WireCase) -> None:
    decoder, events = run(case)
    last = events[-1]
    assert [isinstance(event, Finished | Failed) for event in events].index(True) == len(events) - 1
    message = last.message if isinstance(last, Finished | Failed) else None
    if message is None:
        assert not decoder.answer.drafts
        return
    assert message.response is not None
    assert message.response.complete == (isinstance(last, Finished) and not _cut(decoder))
    for index, part in enumerate(message.parts):
        if isinstance(part, TextPart):
            assert part.text == "".join(e.text for e in events if isinstance(e, TextDelta) and e.part == index)
        elif isinstance(part, ReasoningPart):
            assert part.text == "".join(e.text for e in events if isinstance(e, ReasoningDelta) and e.part == index)
        elif isinstance(part, ToolCallPart):
            told = "".join(e.text for e in events if isinstance(e, ToolArgsDelta) and e.part == index)
            assert told in (part.arguments, "")
            done = [e.call for e in events if isinstance(e, ToolCallDone) and e.part == index]
            assert done == ([part] if isinstance(last, Finished) else done[:1])
            assert part.call_id
    ids = [call.call_id for call in message.tool_calls]
    assert len(set(ids)) == len(ids)


def _cut(decoder: Decoder) -> bool:
    return bool(decoder.answer.calls) and decoder.answer.stop_kind in ("length", "content_filter")


@every_stream
def test_parts_keep_what_the_provider_wants_back(case: WireCase) -> None:
    decoder, _ = run(case)
    assert [describe(draft, case.protocol) for draft in decoder.answer.drafts] == case.expected["parts"]
    assert "".join(d.text for d in decoder.answer.drafts if isinstance(d, TextDraft) and d.refusal) == (
        case.expected["refusal"] or ""
    )
    assert decoder.answer.response_id == case.expected["response_id"]


def describe(draft: TextDraft | ReasoningDraft | CallDraft | OpaqueDraft, protocol: str) -> dict[str, Any]:
    """A part in the vocabulary of the cases, from what is kept for the next request."""
    data: dict[str, Any] = dict(draft.data or {})
    if isinstance(draft, OpaqueDraft):
        return describe_item(draft, data)
    if isinstance(draft, CallDraft):
        return describe_call(draft, data)
    if isinstance(draft, TextDraft):
        signature = {"signature": data["thoughtSignature"]} if "thoughtSignature" in data else {}
        return {"kind": "refusal" if draft.refusal else "text", "text": draft.text, **signature}
    detail = data.get("reasoning_details", data)
    if draft.hidden:
        more = {key: detail.get(key) for key in ("id", "format", "index")} if protocol == "openai-chat" else {}
        return {"kind": "opaque_reasoning", "data": detail["data"], **more}
    out: dict[str, Any] = {"kind": "reasoning", "text": draft.text}
    item = data.get("item", {})
    found = {
        "signature": detail.get("signature"),
        "id": item.get("id"),
        "encrypted": item.get("encrypted_content"),
    }
    return {**out, **{key: value for key, value in found.items() if value is not None}}


def describe_call(draft: CallDraft, data: dict[str, Any]) -> dict[str, Any]:
    signature = data.get("thoughtSignature") or data.get("extra_content", {}).get("google", {}).get("thought_signature")
    parsed = parse_arguments(draft.raw)
    return {
        "kind": "tool_call",
        "id": draft.wire_id,
        "name": draft.name,
        **({"signature": signature} if signature else {}),
        **({"item": data["call"]["id"]} if "call" in data else {}),
        "arguments_raw": None if draft.value is not None else draft.raw,
        "arguments": draft.value if draft.value is not None else parsed.value,
        "arguments_ok": draft.value is not None or parsed.ok,
    }


def describe_item(draft: OpaqueDraft, data: dict[str, Any]) -> dict[str, Any]:
    if "block" in data:
        block = data["block"]
        if block["type"] == "compaction":
            return {"kind": "compaction", "text": block["content"]}
        return {"kind": "server_item", "type": block["type"], "id": block.get("id"), "name": block.get("name")}
    item = data.get("item", {})
    return {"kind": "server_item", "type": item.get("type", draft.note), "id": item.get("id")}


def test_all_cases_are_there() -> None:
    assert len(all_cases()) == 158
    assert json.dumps([str(case) for case in all_cases()]).count("openai-chat/") == 98
