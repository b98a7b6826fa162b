"""OpenAI Chat Completions: requests and stream decoder."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from swecli.core.llm.answer_formats import openai_format, wanted_schema
from swecli.core.llm.json_values import (
    JsonObject,
    as_int,
    as_items,
    as_list,
    as_object,
    as_text,
    compact,
    is_list,
    is_object,
)
from swecli.core.llm.per_message import Translations
from swecli.core.llm.protocols.arguments import arguments_text, is_whole, rewrite_id
from swecli.core.llm.protocols.base import (
    CallDraft,
    Decoder,
    ReasoningDraft,
    Target,
    TextDraft,
    WireRequest,
    WireStop,
    first_int,
    read_cost,
)
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import (
    PDF,
    DocumentPart,
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)


def build_request(request: ModelRequest, target: Target, known: Translations | None = None) -> WireRequest:
    """The request body. Keys are in a fixed order with the messages last, so that the bytes for a longer history begin
    with those of the shorter one."""
    dialect = target.dialect
    body: JsonObject = {"model": target.origin.model, "stream": True}
    optional: list[str] = []
    if dialect.include_usage:
        body["stream_options"] = {"include_usage": True}
        optional.append("stream_options")
    if target.tells_progress:
        body["return_progress"] = True
        optional.append("return_progress")
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    schema = (wish := request.answer_format) and wanted_schema(wish, request, target)
    if schema is not None and (form := openai_format(schema)) is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": form}
        optional.append("response_format")
    limit = request.max_output_tokens or dialect.default_max_tokens
    if limit is not None:
        body[dialect.max_tokens_field] = limit
        optional.append(dialect.max_tokens_field)
    for extras in (_effort(request.effort, target) if request.effort is not None else {}, dialect.body):
        body.update(extras)
        optional.extend(extras)
    if dialect.prompt_cache_key and request.session:
        body["prompt_cache_key"] = request.session
        optional.append("prompt_cache_key")
    body["messages"] = _messages(request, target, (known or Translations()).of(request.messages, target, _alone))
    headers = {dialect.session_header: request.session} if dialect.session_header and request.session else {}
    return WireRequest("/chat/completions", body, headers, tuple(optional))


def _effort(effort: str, target: Target) -> JsonObject:
    dialect = target.dialect
    word = dialect.efforts.get(effort, effort)
    if dialect.effort == "reasoning_effort":
        return {"reasoning_effort": word}
    if dialect.effort == "reasoning":
        return {"reasoning": {"effort": word}}
    if dialect.effort == "thinking":
        return {"thinking": {"type": "disabled" if word == "none" else "enabled"}}
    if dialect.effort == "enable_thinking":
        return {"enable_thinking": word != "none"}
    return {}


class _Alone(Struct, frozen=True):
    """The messages in place of one, whatever stands beside it, and what is attached to its results."""

    messages: list[JsonObject]
    attached: list[JsonObject] = []


def _alone(message: Message, target: Target) -> _Alone:
    if message.role == "tool":
        results = message.tool_results
        return _Alone([_tool_result(result, target) for result in results], _pictures(results, target))
    if message.role == "user":
        return _Alone([{"role": "user", "content": _user_content(message, False)}])
    assistant = _assistant(message, target)
    return _Alone([assistant] if assistant is not None else [])


def _messages(request: ModelRequest, target: Target, alone: Sequence[_Alone]) -> list[JsonObject]:
    """All messages; ``alone`` has those of each message by itself. Tool messages can't contain images and files: they
    follow the results of an answer in a user message."""
    out = _system(request, target)
    dialect, messages = target.dialect, request.messages
    marks = frozenset(request.breakpoints if dialect.cache_control else ())
    attached: list[JsonObject] = []
    for index, message in enumerate(messages):
        made = alone[index]
        if message.note:
            _append_note(out, message.text, index in marks, target)
        elif index in marks and message.role == "user":
            out.append({"role": "user", "content": _user_content(message, True)})
        else:
            out.extend(made.messages)
            is_marked = index in marks and dialect.cache_results and made.messages
            if is_marked and (text := message.text or as_text(out[-1]["content"])):
                out[-1] = {**out[-1], "content": [_text_part(text, True)]}
        attached += made.attached
        if message.role == "tool" and (attached or dialect.assistant_after_tool):
            following = messages[index + 1].role if index + 1 < len(messages) else ""
            if attached and following != "tool":
                out += _apart(target)
                out.append({"role": "user", "content": attached})
                attached = []
            if following == "user":
                out += _apart(target)
    return _merged(out) if dialect.merge_roles or dialect.system_role == "user" else out


def _apart(target: Target) -> list[JsonObject]:
    """What stands between results and a message of the user for templates that want an answer there."""
    return [{"role": "assistant", "content": "Continuing."}] if target.dialect.assistant_after_tool else []


def _merged(messages: list[JsonObject]) -> list[JsonObject]:
    """The messages with adjacent ones of the user or the assistant in one. Calls end a message: results follow them."""
    out: list[JsonObject] = []
    for message in messages:
        last = out[-1] if out else {}
        if last.get("role") != message["role"] or message["role"] == "tool" or "tool_calls" in last:
            out.append(message)
            continue
        contents = [item["content"] for item in (last, message) if item.get("content")]
        if all(isinstance(content, str) for content in contents):
            content: object = "\n\n".join(map(as_text, contents)) or None
        else:
            content = [part for item in contents for part in (item if is_list(item) else [_text_part(as_text(item))])]
        out[-1] = {**last, **message, "content": content}
    return out


def _system(request: ModelRequest, target: Target) -> list[JsonObject]:
    blocks = [block for block in request.system if block.text]
    if not blocks:
        return []
    role = target.dialect.system_role
    if not target.dialect.cache_control:
        return [{"role": role, "content": "\n\n".join(block.text for block in blocks)}]
    content = [_text_part(block.text, block.breakpoint) for block in blocks]
    return [{"role": role, "content": content}]


def _text_part(text: str, marked: bool = False) -> JsonObject:
    part: JsonObject = {"type": "text", "text": text}
    return {**part, "cache_control": {"type": "ephemeral"}} if marked else part


def _attached(part: ImagePart | DocumentPart) -> JsonObject:
    """https://developers.openai.com/api/docs/guides/file-inputs: the data of a file needs a name."""
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}
    file = {"filename": part.name or "document.pdf", "file_data": f"data:{PDF};base64,{part.data}"}
    return {"type": "file", "file": file}


def _user_content(message: Message, marked: bool) -> str | list[JsonObject]:
    """Text as a string, which every host accepts; a list only with images, files or a breakpoint."""
    has_attached = any(isinstance(part, ImagePart | DocumentPart) for part in message.parts)
    if not has_attached and not marked:
        return message.text
    content = [
        _text_part(part.text) if isinstance(part, TextPart) else _attached(part)
        for part in message.parts
        if isinstance(part, ImagePart | DocumentPart) or (isinstance(part, TextPart) and part.text)
    ]
    if marked and content:
        content[-1] = {**content[-1], "cache_control": {"type": "ephemeral"}}
    return content


def _pictures(results: Sequence[ToolResultPart], target: Target) -> list[JsonObject]:
    """Images and files of results, those of each after its name."""
    out: list[JsonObject] = []
    for result in results:
        if result.images or result.documents:
            kind = "Images" if result.images else "Files"
            out.append(_text_part(f"{kind} returned by {result.name} ({_id(result.call_id, target)}):"))
            out.extend(map(_attached, (*result.images, *result.documents)))
    return out


def _tool_result(result: ToolResultPart, target: Target) -> JsonObject:
    message: JsonObject = {"role": "tool", "tool_call_id": _id(result.call_id, target)}
    if target.dialect.tool_result_name:
        message["name"] = result.name
    message["content"] = result.text
    return message


def _id(call_id: str, target: Target) -> str:
    return rewrite_id(call_id, target.dialect.tool_ids)


def _assistant(message: Message, target: Target) -> JsonObject | None:
    """The assistant message; None if it has nothing to send."""
    text, calls = message.text, [_call(call, message, target) for call in message.tool_calls]
    if not text and not calls:
        return None
    out: JsonObject = {"role": "assistant", "content": text or None}
    _echo_reasoning(message, target, out)
    texts = (part for part in message.parts if isinstance(part, TextPart) and part.opaque is not None)
    extras = [as_object((target.echo(part.opaque) or {}).get("extra_content")) for part in texts]
    if signed := [extra for extra in extras if extra]:
        out["extra_content"] = signed[-1]
    if calls:
        out["tool_calls"] = calls
    return out


def _call(call: ToolCallPart, message: Message, target: Target) -> JsonObject:
    out: JsonObject = {
        "id": _id(call.call_id, target),
        "type": "function",
        "function": {
            "name": call.name,
            "arguments": arguments_text(call.arguments, message),
        },
    }
    if extra := as_object((target.echo(call.opaque) or {}).get("extra_content")):
        out["extra_content"] = extra
    return out


def _echo_reasoning(message: Message, target: Target, out: JsonObject) -> None:
    """Return reasoning to its source field: details unmodified and in order, else the field by its name."""
    dialect = target.dialect
    if dialect.echo_reasoning == "never":
        return
    details: list[JsonObject] = []
    told: list[str] = []
    blocks: list[JsonObject] = []
    texts: dict[str, list[str]] = {}
    for part in message.parts:
        if not isinstance(part, ReasoningPart):
            continue
        data = target.echo(part.opaque)
        if data is None:
            continue
        if detail := as_object(data.get("reasoning_details")):
            details.append(_detail(detail, part.text))
            told.append(part.text)
            continue
        if block := as_object(data.get("thinking_blocks")):
            blocks.append({**block, "thinking": part.text} if block.get("type") == "thinking" else block)
        if part.text or not block:
            texts.setdefault(as_text(data.get("field")) or dialect.reasoning_field, []).append(part.text)
    if details:
        out["reasoning_details"] = details
        if dialect.echo_reasoning == "must" and message.tool_calls:  # a gateway may drop the details on the way
            out[dialect.reasoning_field] = "".join(told)
        return
    if blocks:
        out["thinking_blocks"] = blocks
    for name, pieces in texts.items():
        if name == "thinking":
            thinking: JsonObject = {"type": "thinking", "thinking": [_text_part("".join(pieces))]}
            out["content"] = [thinking, *([_text_part(message.text)] if message.text else [])]
        else:
            out[name] = "".join(pieces)
    if not texts and dialect.echo_reasoning == "must" and message.tool_calls:
        out[dialect.reasoning_field] = ""


def _detail(detail: JsonObject, text: str) -> JsonObject:
    """The original detail, with its text (which arrived in pieces) in the original place."""
    key = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(as_text(detail.get("type")))
    if key is None or (not text and key not in detail):
        return detail
    return {**detail, key: text}


def _append_note(out: list[JsonObject], text: str, marked: bool, target: Target) -> None:
    """Append a note to the newest message of the user or a tool: some templates demand alternating roles, and others
    drop the reasoning before a new message of the user."""
    last = out[-1] if out else {}
    role, content = last.get("role"), last.get("content")
    if role not in ("user", "tool"):
        out.append({"role": "user", "content": [_text_part(text, True)] if marked else text})
        return
    marked = marked and (role == "user" or target.dialect.cache_results)
    if is_list(content) or marked:
        parts = content if is_list(content) else [_text_part(as_text(content))] if content else []
        out[-1] = {**last, "content": [*parts, _text_part(text, marked)]}
    else:
        out[-1] = {**last, "content": f"{as_text(content)}\n\n{text}" if content else text}


NAME = "openai-chat"

_STOPS: dict[str, WireStop] = {
    "stop": "end",
    "end_turn": "end",
    "eos": "end",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "stop_sequence": "stop_sequence",
    "tool_call": "tool_use",
    "tool_calls": "tool_use",
    "tool_use": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "refusal": "refusal",
    "model_context_window_exceeded": "context",
    "malformed_function_call": "malformed_tool_call",
    "function_call_filter: malformed_function_call": "malformed_tool_call",
    "abort": "error",
    "insufficient_system_resource": "error",
}
"""Reasons in lower case. Any other with the word "error" is one."""
_NO_REASON = ("", "null", "none")
"""Some gateways write a missing reason as text."""
_PLAIN_REASONING = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "thinking_content", "thought")
_TEXT_FIELDS = frozenset(("role", "content"))
_STRUCTURED = ("reasoning_details", "thinking_blocks")
"""Fields with reasoning in parts, each of which is returned as a whole."""
_CACHED = ("prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens", "cache_read_input_tokens")
"""DeepSeek's and Moonshot's words, Mistral's, and Anthropic's in gateways."""


class ChatDecoder(Decoder):
    """Decoder of ``chat.completion.chunk`` pieces, or one whole ``chat.completion``."""

    _reasoning_field = ""
    _calls: _CallTracker | None = None
    _whole = False

    @property
    def is_whole_answer(self) -> bool:
        return self._whole

    @property
    def ends_with_calls(self) -> bool:
        """NVIDIA's servers end some answers with calls without stop reason and mark. An empty object may stand for
        arguments to come."""
        whole = all(call.name and _is_ended(call) and call.raw.strip() != "{}" for call in self.answer.calls)
        return isinstance(self.answer.last, CallDraft) and whole

    def on_message(self, message: JsonObject, name: str) -> bool:
        choices = [as_object(item) for item in as_list(message.get("choices"))]
        known = "choices" in message or "usage" in message
        if known:
            self.answer.start(as_text(message.get("model")), as_text(message.get("id")))
        progress = as_object(message.get("prompt_progress"))
        read, total = as_int(progress.get("processed")), as_int(progress.get("total"))
        if read is not None and total is not None and 0 <= read <= total:
            self.answer.report_progress(read, total)
        for choice in choices:
            if as_int(choice.get("index")) in (None, 0):
                self._choice(choice)
        for holder in (message, *choices[:1], as_object(message.get("x_groq"))):
            if usage := as_object(holder.get("usage")):
                self.answer.report_usage(read_usage(usage))
                break
        for choice in choices[:1]:
            if choice.get("error") and not message.get("error"):
                message["error"] = choice["error"]
        if self.answer.stop_kind == "error" and not message.get("error"):
            message["error"] = {"message": f"the answer ended with finish reason {self.answer.stop_raw!r}"}
        return known

    def on_done(self) -> None:
        self.answer.complete()

    def on_end(self) -> None:
        if self.answer.stop_raw is not None:
            self.answer.complete()

    def _choice(self, choice: JsonObject) -> None:
        delta = as_object(choice.get("delta"))
        if not self.answer.drafts and not any(delta.get(key) for key in delta.keys() - {"role"}):
            whole = as_object(choice.get("message"))  # a whole answer instead of a stream
            self._whole, delta = bool(whole), whole or delta
        if delta.keys() <= _TEXT_FIELDS and not choice.get("finish_reason"):
            self._content(delta.get("content"))  # as nearly every event of a long answer
            return
        self._reasoning(delta)
        for block in as_list(delta.get("thinking_blocks")):
            self._thinking_block(as_object(block))
        self._content(delta.get("content"))
        if extra := as_object(delta.get("extra_content")):
            self._signed_text(extra)
        if refusal := as_text(delta.get("refusal")):
            self.answer.refusal(refusal)
        tracker = self._calls = self._calls or _CallTracker(self)
        for index, item in enumerate(as_items(delta.get("tool_calls"))):
            tracker.feed(as_object(item), first=index == 0)
        if legacy := as_object(delta.get("function_call")):
            tracker.feed({"index": 0, "function": legacy})
        reason = as_text(choice.get("finish_reason"))
        if reason.lower() not in _NO_REASON:
            word = reason.lower()
            self.answer.stop(reason, _STOPS.get(word, "error" if "error" in word else "unknown"))

    def _signed_text(self, extra: JsonObject) -> None:
        """Store Gemini's signature of the text so far, which is returned with the message."""
        last = self.answer.last
        draft = last if isinstance(last, TextDraft) else self.answer.add(TextDraft())
        draft.data = {"extra_content": extra}

    def _content(self, content: object) -> None:
        """Process a string, Mistral's list of text and thinking, or the value of JSON text, which Cloudflare parses."""
        if is_object(content) and content and content.keys().isdisjoint(("type", "text", "refusal")):
            content = compact(content)
        if isinstance(content, str):
            if content:
                self.answer.text(content)
            return
        for item in as_items(content):
            part = as_object(item)
            if part.get("type") == "thinking":
                for text in _texts(part.get("thinking")):
                    self._plain_reasoning("thinking", text)
            elif isinstance(part.get("text"), str):
                self.answer.text(as_text(part.get("text")))
            elif refusal := as_text(part.get("refusal")):
                self.answer.refusal(refusal)

    def _reasoning(self, delta: JsonObject) -> None:
        """Process reasoning, which several fields may repeat; ``reasoning_details`` first, because only they can be
        echoed."""
        details = [as_object(item) for item in as_list(delta.get("reasoning_details"))]
        for detail in details:
            self._detail(detail)
        if any(_detail_text(detail) for detail in details):
            return
        fields = (self._reasoning_field, *_PLAIN_REASONING)
        name = next((item for item in fields if item and as_text(delta.get(item))), "")
        if name:
            self._reasoning_field = name
            # Mistral's list has the name "thinking" too, and is returned in another form.
            self._plain_reasoning("" if name == "thinking" else name, as_text(delta.get(name)))

    def _plain_reasoning(self, name: str, text: str) -> None:
        last = self.answer.last
        detailed = isinstance(last, ReasoningDraft) and not (last.data or {}).keys().isdisjoint(_STRUCTURED)
        fresh = ReasoningDraft() if detailed else None
        draft = self.answer.reasoning(text, self.answer.add(fresh) if fresh is not None else None)
        if draft.data is None:
            draft.data = {"field": name}

    def _thinking_block(self, block: JsonObject) -> None:
        """Store what LiteLLM relays of Anthropic's thinking, which is returned with the message: the signature of the
        reasoning, whose text also arrives in its own field, or an encrypted block."""
        if block.get("type") == "redacted_thinking":
            self.answer.add(ReasoningDraft(hidden=True, data={"thinking_blocks": dict(block)}))
        elif signature := as_text(block.get("signature")):
            last = self.answer.last
            draft = last if isinstance(last, ReasoningDraft) else self.answer.add(ReasoningDraft(hidden=True))
            data = draft.data = draft.data or {}
            known = as_text(as_object(data.get("thinking_blocks")).get("signature"))
            data["thinking_blocks"] = {"type": "thinking", "signature": known + signature}
            self.answer.changes += 1

    def _detail(self, detail: JsonObject) -> None:
        """Join the pieces of one detail by index; other data of a piece is kept."""
        kind, text = as_text(detail.get("type")), _detail_text(detail)
        draft = self._same_detail(detail)
        if draft is None:
            hidden = kind not in ("reasoning.text", "reasoning.summary")
            draft = self.answer.add(
                ReasoningDraft(
                    summary=kind == "reasoning.summary", hidden=hidden, data={"reasoning_details": dict(detail)}
                )
            )
        else:
            whole = as_object(as_object(draft.data).get("reasoning_details"))
            key = "summary" if kind == "reasoning.summary" else "text"
            whole.update({name: value for name, value in detail.items() if value is not None and name != key})
        self.answer.changes += 1
        if text:
            self.answer.reasoning(text, draft)

    def _same_detail(self, detail: JsonObject) -> ReasoningDraft | None:
        """The part that this piece continues: the latest one, if type and index agree."""
        last = next((item for item in reversed(self.answer.drafts) if isinstance(item, ReasoningDraft)), None)
        known = as_object((last.data or {}).get("reasoning_details")) if last is not None else {}
        if last is None or not known or last.hidden or known.get("type") != detail.get("type"):
            return None
        return last if known.get("index") == detail.get("index") else None


class _CallTracker:
    """Assigns each piece to its call."""

    def __init__(self, decoder: Decoder) -> None:
        self._answer = decoder.answer
        self._by_index: dict[int, CallDraft] = {}
        self._by_id: dict[str, CallDraft] = {}
        self._last: CallDraft | None = None

    def feed(self, piece: JsonObject, first: bool = True) -> None:
        """Add a piece; ``first``: it is the first one of its event."""
        function = as_object(piece.get("function")) or piece
        index, call_id, name = _place(piece.get("index")), as_text(piece.get("id")), as_text(function.get("name"))
        arguments = function.get("arguments")
        text = as_text(arguments)
        extra = as_object(piece.get("extra_content"))
        if not (call_id or name or text or is_object(arguments) or is_list(arguments) or extra):
            return  # some servers send all fields of a call, empty, with each piece of text
        call = self._find(index, call_id, name, text, is_object(arguments), first)
        if (call_id or not name or index is not None) and _repeats(call, text):
            return
        if call.wire_id is None and call_id:
            call.wire_id = call_id
            self._by_id[call_id] = call
        if index is not None:
            self._by_index[index] = call
        self._last = call
        _name(call, name, fragment=not call_id)
        if extra:
            call.data = {"extra_content": extra}
        if is_object(arguments) or is_list(arguments):
            call.value = as_object(arguments)
        elif text.lstrip().startswith("{"):
            _drop_placeholder(call)
        self._answer.call_text(call, text)

    def _find(self, index: int | None, call_id: str, name: str, text: str, whole: bool, first: bool) -> CallDraft:
        if index is not None:
            known = self._by_index.get(index)
            if known is not None and call_id and known.wire_id not in (None, call_id):
                known = self._by_id.get(call_id, known)  # the index is the same for all calls
        elif call_id:
            known = self._by_id.get(call_id)
            if known is None and text and not name:
                known = self._last  # some servers give each piece an id of its own
        else:
            known = self._last if first or not name else None
        if known is None or self._begins_another(known, call_id, name, text, whole, index is not None):
            return self._answer.add(CallDraft())
        return known

    def _begins_another(self, known: CallDraft, call_id: str, name: str, text: str, whole: bool, placed: bool) -> bool:
        """Whether a piece with a reused or missing index begins another call: another id with a name, or a name and
        arguments after a complete call, even with the id of that one. The same piece at the same place does not."""
        if not name:
            return False
        if call_id and known.wire_id:
            if call_id != known.wire_id:
                return True
            return (
                text.lstrip().startswith("{") and _is_ended(known) and not _repeats(known, text) and known.raw != "{}"
            )
        if placed and known.name == name and _repeats(known, text):
            return False
        return (bool(text) or whole) and (known.value is not None or _is_ended(known))


def _is_ended(call: CallDraft) -> bool:
    """Whether the arguments received as text are complete. The first look, at the end only, is cheap."""
    return bool(call.chunks) and call.chunks[-1].rstrip().endswith("}") and is_whole(call.raw)


def _repeats(call: CallDraft, text: str) -> bool:
    """Whether ``text`` is the whole of the arguments once more."""
    return text.startswith("{") and text.endswith("}") and _is_ended(call) and call.raw == text


def _drop_placeholder(call: CallDraft) -> None:
    """Drop an empty object that stood for arguments to come: no JSON text goes on after it."""
    if call.value is not None and not call.value:
        call.value = None
    if call.chunks == ["{}"]:
        call.chunks.clear()


def _place(index: object) -> int | None:
    """The index of a call, which some servers write as text."""
    return int(index) if isinstance(index, str) and index.isdecimal() and len(index) < 10 else as_int(index)


def _name(call: CallDraft, name: str, fragment: bool) -> None:
    """Set the name: some hosts repeat it in each piece; a few send it in pieces before the arguments."""
    if not name or name == call.name:
        return
    if not call.name or name.startswith(call.name):
        call.name = name
    elif fragment and not call.chunks and call.value is None:
        call.name += name


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    return [text for item in as_list(value) if (text := as_text(as_object(item).get("text")))]


def _detail_text(detail: JsonObject) -> str:
    kind = as_text(detail.get("type"))
    return as_text(detail.get("summary" if kind == "reasoning.summary" else "text"))


def read_usage(usage: JsonObject) -> Usage:
    """Usage in the neutral vocabulary. If the total shows that reasoning is not part of the completion, it is added."""
    prompt, output = as_int(usage.get("prompt_tokens")), as_int(usage.get("completion_tokens"))
    details = as_object(usage.get("prompt_tokens_details"))
    finer = as_object(usage.get("completion_tokens_details"))
    reasoning = first_int(finer.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    total = as_int(usage.get("total_tokens"))
    if reasoning and output is not None and prompt is not None and prompt + output + reasoning == total:
        output += reasoning
    return Usage(
        input_total=prompt,
        cache_read=first_int(
            details.get("cached_tokens"),
            *(usage.get(key) for key in _CACHED),
        ),
        cache_write=first_int(
            details.get("cache_write_tokens"),
            details.get("cache_creation_input_tokens"),
            details.get("cache_creation_tokens"),
            usage.get("cache_creation_input_tokens"),
        ),
        output_total=output,
        reasoning=reasoning,
        cost=read_cost(usage),
    )
