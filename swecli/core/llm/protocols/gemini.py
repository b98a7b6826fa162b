"""Gemini's generateContent: requests and stream decoder."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from msgspec import Struct, structs

from swecli.core.llm.answer_formats import plain_schema, wanted_schema
from swecli.core.llm.errors import WireError
from swecli.core.llm.json_values import JsonObject, as_int, as_list, as_object, as_text
from swecli.core.llm.per_message import Translations
from swecli.core.llm.protocols.arguments import arguments_object
from swecli.core.llm.protocols.base import (
    CallDraft,
    Decoder,
    OpaqueDraft,
    ReasoningDraft,
    Target,
    TextDraft,
    WireRequest,
    WireStop,
)
from swecli.core.llm.types import ModelRequest
from swecli.core.llm.web_searches import possible_search, sources_of
from swecli.core.protocol.messages import (
    PDF,
    DocumentPart,
    ImagePart,
    Message,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

_BUDGETS = {"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24576}
"""Thinking budgets in tokens for models that accept a number."""


def build_request(request: ModelRequest, target: Target, known: Translations | None = None) -> WireRequest:
    """The request body; adjacent messages of one role form one content, as the API requires."""
    body: JsonObject = {}
    system = [{"text": block.text} for block in request.system if block.text]
    if system and target.dialect.system_role != "user":
        body["systemInstruction"] = {"parts": system}
    if request.tools:
        body["tools"] = [
            {
                "functionDeclarations": [
                    {
                        "name": tool.name,
                        "description": tool.description,
                        "parametersJsonSchema": dict(tool.parameters),
                    }
                    for tool in request.tools
                ]
            }
        ]
    if possible_search(request, target) is not None:
        body["tools"] = [*as_list(body.get("tools")), {"googleSearch": {}}]
        if request.tools:
            body["toolConfig"] = {"includeServerSideToolInvocations": True}
    config: JsonObject = {}
    if request.max_output_tokens is not None:
        config["maxOutputTokens"] = request.max_output_tokens
    if thinking := _thinking(request.effort, target):
        config["thinkingConfig"] = thinking
    if (wish := request.answer_format) and (schema := wanted_schema(wish, request, target)) is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = plain_schema(schema)
    if config:
        body["generationConfig"] = config
    contents = _contents(request, (known or Translations()).of(request.messages, target, _alone))
    if system and target.dialect.system_role == "user":
        contents[:1] = [{"role": "user", "parts": [*system, *as_list(contents[0]["parts"] if contents else ())]}]
    body["contents"] = contents
    model = quote(target.origin.model.removeprefix("models/"), safe="")
    return WireRequest(f"/models/{model}:streamGenerateContent?alt=sse", body)


def _thinking(effort: str | None, target: Target) -> JsonObject:
    dialect = target.dialect
    out: JsonObject = {"includeThoughts": True} if dialect.thoughts and target.shows_thoughts else {}
    if effort is not None and dialect.effort == "level":
        out["thinkingLevel"] = dialect.efforts.get(effort, effort).upper()
    elif effort in _BUDGETS and dialect.effort == "budget":
        out["thinkingBudget"] = _BUDGETS[effort]
    return out


class _Alone(Struct, frozen=True):
    """The parts of one message, whatever stands beside it, and the ids that the API gave its calls, by their own."""

    parts: list[JsonObject]
    given: dict[str, str]


def _alone(message: Message, target: Target) -> _Alone:
    given: dict[str, str] = {}
    return _Alone(
        _model_parts(message, target, given) if message.role == "assistant" else _user_parts(message, given), given
    )


def _contents(request: ModelRequest, alone: Sequence[_Alone]) -> list[JsonObject]:
    """Contents of the messages. Only ids that the API itself assigned to calls may be returned with a result."""
    out: list[JsonObject] = []
    given: dict[str, str] = {}
    for message, made in zip(request.messages, alone, strict=True):
        role = "model" if message.role == "assistant" else "user"
        given.update(made.given)
        parts = _user_parts(message, given) if given and message.role == "tool" else made.parts
        if not parts:
            continue
        if out and out[-1]["role"] == role:
            out[-1]["parts"] = [*as_list(out[-1]["parts"]), *parts]
        else:
            out.append({"role": role, "parts": list[object](parts)})
    return out


def _model_parts(message: Message, target: Target, given: dict[str, str]) -> list[JsonObject]:
    out: list[JsonObject] = []
    first_call = True
    for part in message.parts:
        if isinstance(part, TextPart | ReasoningPart):
            data = target.echo(part.opaque) or {}
            thought: JsonObject = {"thought": True} if isinstance(part, ReasoningPart) else {}
            if data or (part.text and not thought):
                out.append({"text": part.text, **thought, **data})
        elif isinstance(part, ToolCallPart):
            data = dict(target.echo(part.opaque) or {})
            call: JsonObject = {"name": part.name, "args": arguments_object(part.arguments, message)}
            if (call_id := data.pop("id", None)) is not None:
                given[part.call_id] = call["id"] = str(call_id)
            # The first call of each message must have one: another model's has none, nor one that was rejected, nor
            # one whose signature a gateway left out.
            if first_call and "thoughtSignature" not in data and target.dialect.signature_dummy:
                data["thoughtSignature"] = target.dialect.signature_dummy
            first_call = False
            out.append({"functionCall": call, **data})
        elif isinstance(part, OpaquePart) and (echo := target.echo(part.opaque)) is not None:
            out.append(echo)
    return out


def _user_parts(message: Message, given: dict[str, str]) -> list[JsonObject]:
    out: list[JsonObject] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text:
            out.append({"text": part.text})
        elif isinstance(part, ImagePart):
            out.append(_image(part))
        elif isinstance(part, DocumentPart):
            out.append(_document(part))
    for result in message.tool_results:
        out.append({"functionResponse": _result(result, given)})
        out.extend(map(_image, result.images))
        out.extend(map(_document, result.documents))
    return out


def _result(result: ToolResultPart, given: dict[str, str]) -> JsonObject:
    response: JsonObject = {
        "name": result.name,
        "response": {"error" if result.is_error else "output": result.text},
    }
    call_id = given.get(result.call_id)
    return {"id": call_id, **response} if call_id is not None else response


def _image(image: ImagePart) -> JsonObject:
    return {"inlineData": {"mimeType": image.media_type, "data": image.data}}


def _document(document: DocumentPart) -> JsonObject:
    """https://ai.google.dev/gemini-api/docs/document-processing"""
    return {"inlineData": {"mimeType": PDF, "data": document.data}}


NAME = "gemini-generate"

_STOPS: dict[str, WireStop] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "MALFORMED_FUNCTION_CALL": "malformed_tool_call",
    "UNEXPECTED_TOOL_CALL": "malformed_tool_call",
    "MALFORMED_TOOL_CALL": "malformed_tool_call",
    "MALFORMED_RESPONSE": "error",
    "CONTINUATION": "pause",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY"),
        "content_filter",
    ),
    **dict.fromkeys(("IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "content_filter"),
    **dict.fromkeys(("OTHER", "TOO_MANY_TOOL_CALLS", "NO_IMAGE", "IMAGE_OTHER"), "halted"),
}
_UNSIGNED = "MISSING_THOUGHT_SIGNATURE"
"""The stop reason that rejects the request: a call in it lacks its signature."""
_MARKS = frozenset(("thought", "thoughtSignature"))


class GeminiDecoder(Decoder):
    """Decoder of ``GenerateContentResponse`` pieces, or a whole one."""

    _grounding: JsonObject | None = None
    _usage: Usage | None = None

    @property
    def is_whole_answer(self) -> bool:
        return bool(self.answer.drafts)  # pieces without framing arrive as a list

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
            self._usage = read_usage(usage)
            self.answer.report_usage(self._usage)
        return known

    def on_end(self) -> None:
        if self.answer.stop_raw is not None:
            self.on_whole()

    def on_whole(self) -> None:
        if grounding := self._grounding:
            self._grounding = None
            self._tell_searches(grounding)
        self.answer.complete()

    def _tell_searches(self, grounding: JsonObject) -> None:
        """The queries and sources of an answer: Google tells them for all of it."""
        queries = [as_text(query) for query in as_list(grounding.get("webSearchQueries"))]
        pages = [as_object(as_object(chunk).get("web")) for chunk in as_list(grounding.get("groundingChunks"))]
        if not queries and not pages:
            return
        index = len(self.answer.drafts)
        self.answer.search(index, " · ".join(filter(None, queries)))
        self.answer.searched(index, sources_of(pages, "uri"))
        self.answer.report_usage(structs.replace(self._usage or Usage(), web_searches=len(queries) or None))

    def _candidate(self, candidate: JsonObject) -> None:
        for item in as_list(as_object(candidate.get("content")).get("parts")):
            self._part(as_object(item))
        if grounding := as_object(candidate.get("groundingMetadata")):
            self._grounding = {**(self._grounding or {}), **grounding}
        reason = as_text(candidate.get("finishReason"))
        if reason == _UNSIGNED and not self.closed:
            told = as_text(candidate.get("finishMessage")) or "a call in the conversation lacks its thought signature"
            self.fail_wire(WireError(200, f"{told} ({reason})", kind="bad_request"))
        elif reason:
            self.answer.stop(reason, _STOPS.get(reason, "unknown"), as_text(candidate.get("finishMessage")) or None)

    def _part(self, part: JsonObject) -> None:
        part = {key: value for key, value in part.items() if value is not None}  # gateways may write all fields
        signature = as_text(part.get("thoughtSignature"))
        data: JsonObject | None = {"thoughtSignature": signature} if signature else None
        if "functionCall" in part:
            self._call(as_object(part.get("functionCall")), data)
        elif isinstance(part.get("text"), str):
            self._text(as_text(part.get("text")), part.get("thought") is True, data)
        elif kind := next((key for key in part if key not in _MARKS), None):
            self.answer.add(OpaqueDraft(data=dict(part), note=kind))

    def _text(self, text: str, thought: bool, data: JsonObject | None) -> None:
        """Add text; a signed part stays separate, because it must be returned unchanged."""
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
