"""Decoding of recorded responses, for bug reports and external checks: JSON lines in, JSON lines out."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator

from swecli.core.llm.errors import WireError, read_body
from swecli.core.llm.framing import BodyParser
from swecli.core.llm.json_values import JsonObject, as_int, as_object, as_text, is_list, is_object, parse_json
from swecli.core.llm.protocols.arguments import parse_arguments
from swecli.core.llm.protocols.base import Answer, CallDraft, Decoder, ReasoningDraft, TextDraft
from swecli.core.llm.protocols.registry import decoder_for
from swecli.core.protocol.messages import Origin


def decode_batch(lines: Iterable[str]) -> Iterator[str]:
    """One result line for each non-blank input line; a bad line gives ``outcome`` ``invalid``.

    Input: ``{id, protocol, host, model, status, headers, chunks: [base64]}``. Output: ``{id, outcome, text, reasoning,
    tool_calls, stop, usage, error}``.
    """
    for line in lines:
        if line.strip():
            yield json.dumps(_decode_line(line), ensure_ascii=True)


def _decode_line(line: str) -> JsonObject:
    try:
        record = parse_json(line)
    except ValueError as error:
        return _invalid(None, f"not JSON: {error}")
    if not is_object(record):
        return _invalid(None, "not a JSON object")
    fields = record
    chunks = fields.get("chunks")
    if not is_list(chunks) or not all(isinstance(item, str) for item in chunks):
        return _invalid(fields.get("id"), "chunks: not a list of strings")
    try:
        data = [base64.b64decode(as_text(item), validate=True) for item in chunks]
    except ValueError as error:
        return _invalid(fields.get("id"), f"chunks: {error}")
    headers = {name.lower(): str(value) for name, value in as_object(fields.get("headers")).items()}
    status = as_int(fields.get("status"))
    protocol = as_text(fields.get("protocol"))
    try:
        decoder = decoder_for(protocol, Origin(protocol, as_text(fields.get("host")), as_text(fields.get("model"))))
    except ValueError as error:
        return _invalid(fields.get("id"), str(error))
    return {"id": fields.get("id"), **decode(decoder, 200 if status is None else status, headers, data)}


def decode(decoder: Decoder, status: int, headers: dict[str, str], chunks: Iterable[bytes]) -> JsonObject:
    """A response in plain values. Header names are in lower case."""
    if not 200 <= status < 300:
        error = read_body(status, headers, b"".join(chunks), host=decoder.answer.origin.host)
        return _result(decoder.answer, "error", error)
    body = BodyParser(headers.get("content-type", ""))
    for chunk in chunks:
        for event in body.feed(chunk):
            decoder.feed(event)
    for event in body.end():
        decoder.feed(event)
    decoder.end_of_body(body)
    answer = decoder.answer
    return _result(answer, answer.outcome, answer.error)


def _result(answer: Answer, outcome: str, error: WireError | None) -> JsonObject:
    usage = answer.usage
    return {
        "outcome": outcome,
        "text": "".join(draft.text for draft in answer.drafts if isinstance(draft, TextDraft) and not draft.refusal),
        "reasoning": "".join(draft.text for draft in answer.drafts if isinstance(draft, ReasoningDraft)),
        "tool_calls": [_call(call) for call in answer.calls],
        "stop": {"raw": answer.stop_raw, "kind": answer.stop_kind, "detail": answer.stop_detail},
        "usage": None
        if usage is None
        else {
            "input_total": usage.input_total,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "output_total": usage.output_total,
            "reasoning": usage.reasoning,
        },
        "error": None
        if error is None
        else {
            "status": error.status,
            "type": error.type,
            "code": error.code,
            "message": error.message,
            "kind": error.kind,
        },
    }


def _call(call: CallDraft) -> JsonObject:
    if call.value is not None:
        return {"id": call.wire_id, "name": call.plain_name, "arguments": call.value, "arguments_raw": None}
    parsed = parse_arguments(call.raw)
    return {"id": call.wire_id, "name": call.plain_name, "arguments": parsed.value, "arguments_raw": call.raw}


def _invalid(identity: object, message: str) -> JsonObject:
    error: JsonObject = {"status": None, "type": None, "code": None, "message": message, "kind": "bad_request"}
    return {
        "id": identity,
        "outcome": "invalid",
        "text": "",
        "reasoning": "",
        "tool_calls": [],
        "stop": {"raw": None, "kind": None, "detail": None},
        "usage": None,
        "error": error,
    }
