"""Gemini generateContent: decoder. There is no end marker: a finish reason makes the answer whole."""

from __future__ import annotations

from swecli.core.llm.json_values import JsonObject, as_int, as_list, as_object, as_text
from swecli.core.llm.protocols.answer import WireStop
from swecli.core.llm.protocols.base import Decoder
from swecli.core.llm.protocols.drafts import CallDraft, OpaqueDraft, ReasoningDraft, TextDraft
from swecli.core.protocol.usage import Usage

NAME = "gemini-generate"

_STOPS: dict[str, WireStop] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "MALFORMED_FUNCTION_CALL": "malformed_tool_call",
    "UNEXPECTED_TOOL_CALL": "malformed_tool_call",
    "MALFORMED_RESPONSE": "error",
    "CONTINUATION": "pause",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY"),
        "content_filter",
    ),
}
_MARKS = frozenset(("thought", "thoughtSignature"))


class GeminiDecoder(Decoder):
    """Pieces of a ``GenerateContentResponse``."""

    def on_message(self, message: JsonObject, name: str) -> bool:
        known = "candidates" in message or "usageMetadata" in message or "promptFeedback" in message
        if known:
            self.answer.start(as_text(message.get("modelVersion")), as_text(message.get("responseId")))
        candidates = [as_object(item) for item in as_list(message.get("candidates"))]
        for candidate in candidates:
            if as_int(candidate.get("index")) in (None, 0):
                self._candidate(candidate)
        blocked = as_text(as_object(message.get("promptFeedback")).get("blockReason"))
        if blocked and not candidates:
            self.answer.stop("SAFETY", "content_filter", f"prompt:{blocked}")
        if usage := as_object(message.get("usageMetadata")):
            self.answer.report_usage(read_usage(usage))
        return known

    def on_end(self) -> None:
        if self.answer.stop_raw is not None:
            self.answer.complete()

    def _candidate(self, candidate: JsonObject) -> None:
        for item in as_list(as_object(candidate.get("content")).get("parts")):
            self._part(as_object(item))
        if reason := as_text(candidate.get("finishReason")):
            self.answer.stop(reason, _STOPS.get(reason, "unknown"), as_text(candidate.get("finishMessage")) or None)

    def _part(self, part: JsonObject) -> None:
        signature = as_text(part.get("thoughtSignature"))
        data: JsonObject | None = {"thoughtSignature": signature} if signature else None
        if "functionCall" in part:
            self._call(as_object(part.get("functionCall")), data)
        elif isinstance(part.get("text"), str):
            self._text(as_text(part.get("text")), part.get("thought") is True, data)
        elif kind := next((key for key in part if key not in _MARKS), None):
            self.answer.add(OpaqueDraft(data=dict(part), note=kind))

    def _text(self, text: str, thought: bool, data: JsonObject | None) -> None:
        """A signed part stays a part of its own, as it must go back as it came."""
        if thought:
            last = self.answer.last
            fresh = data is not None or (isinstance(last, ReasoningDraft) and last.data is not None)
            draft = self.answer.add(ReasoningDraft(summary=True, data=data)) if fresh else None
            self.answer.reasoning(text, draft, summary=True)
        elif data is not None:
            self.answer.text(text, self.answer.add(TextDraft(data=data)))
        else:
            self.answer.text(text)

    def _call(self, function: JsonObject, data: JsonObject | None) -> None:
        call_id = as_text(function.get("id"))
        call = self.answer.add(CallDraft(wire_id=call_id or None, name=as_text(function.get("name"))))
        call.value = as_object(function.get("args"))
        if call_id:
            data = {**(data or {}), "id": call_id}
        call.data = data
        self.answer.close_call(call)


def read_usage(usage: JsonObject) -> Usage:
    """Usage in the neutral vocabulary: thoughts count as output, results of Google's own tools as input."""
    prompt, tools = as_int(usage.get("promptTokenCount")), as_int(usage.get("toolUsePromptTokenCount"))
    answer, thoughts = as_int(usage.get("candidatesTokenCount")), as_int(usage.get("thoughtsTokenCount"))
    return Usage(
        input_total=None if prompt is None and tools is None else (prompt or 0) + (tools or 0),
        cache_read=as_int(usage.get("cachedContentTokenCount")),
        output_total=None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0),
        reasoning=thoughts,
    )
