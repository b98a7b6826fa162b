"""The Anthropic Messages protocol: requests and stream decoder."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from swecli.core.llm.answer_formats import closed, wanted_schema
from swecli.core.llm.json_values import JsonObject, as_int, as_list, as_object, as_text, is_object, parse_object
from swecli.core.llm.per_message import Translations
from swecli.core.llm.protocols.arguments import arguments_object, rewrite_id
from swecli.core.llm.protocols.base import (
    OTHER_ANSWER,
    SUMMARY,
    USUAL_OUTPUT,
    CallDraft,
    Decoder,
    Draft,
    OpaqueDraft,
    ReasoningDraft,
    Target,
    TextDraft,
    WireRequest,
    WireStop,
    dropped_thoughts,
    effort_changes,
    found_tools,
    newest_answer,
    read_cost,
    written_summary,
)
from swecli.core.llm.types import WEB_SEARCH, ModelRequest, ServerClearing, ToolSchema
from swecli.core.llm.web_searches import anthropic_result, anthropic_tool, possible_search, sources_of
from swecli.core.protocol.messages import (
    PDF,
    DocumentPart,
    DropReason,
    ImagePart,
    Message,
    OpaquePart,
    ProviderReport,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

API_VERSION = "2023-06-01"
CLEARING_BETA = "context-management-2025-06-27"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
EFFORT_BETA = "mid-conversation-output-config-2026-07-01"
DIAGNOSIS_BETA = "cache-diagnosis-2026-04-07"
DEFAULT_TTL = "5m"
"""Lifetime of the cache if a breakpoint does not name one."""
TOOL_CHANGE_BETAS = ("mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15")
COMPACT_BETA = "compact-2026-09-04"
CLEAR_AT_BETA = "mid-conversation-system-clear-at-2026-08-21"
MAX_BREAKPOINTS = 4
MOST_INSTRUCTIONS = 16_384
"""Characters of the instructions for a summary by the server (platform.claude.com, compaction-on-demand)."""
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32768}
"""Thinking budgets in tokens for models that accept a number instead of a word."""
_UNMARKABLE = ("thinking", "redacted_thinking")


def build_request(request: ModelRequest, target: Target, known: Translations | None = None) -> WireRequest:
    """The request body. At most four cache breakpoints: the system prompt's first, then the newest."""
    dialect = target.dialect
    limit = (
        request.max_output_tokens
        or target.max_output
        or dialect.default_max_tokens
        or USUAL_OUTPUT["anthropic-messages"]
    )
    system = [_text(block.text) for block in request.system if block.text]
    tools_by_call = found_tools(request) if dialect.tool_references and not target.capabilities.tool_changes else {}
    effort, changes = effort_changes(request, target)
    alone = (known or Translations()).of(request.messages, target, _alone)
    messages, ends = _messages(request, target, alone, tools_by_call, changes)
    body: JsonObject = {"model": target.origin.model, "max_tokens": limit, "stream": True}
    optional: list[str] = []
    betas: list[str] = []
    drops = target.lets_drop(request.messages)
    search = possible_search(request, target)
    # The API rejects a format together with citations, which results of a search always have.
    schema = (wish := request.answer_format) and wanted_schema(wish, request, target) if search is None else None
    form = closed(schema) if schema is not None else None
    config: JsonObject = {"format": {"type": "json_schema", "schema": form}} if form is not None else {}
    for extras in (_thinking_options(effort, limit, target, config, drops=drops), dialect.body):
        body.update(extras)
        optional.extend(extras)
    if drops and "thinking" in body:
        betas.append(BINDING_BETA)
    if changes:
        betas.append(EFFORT_BETA)
    if request.summarise is not None:
        body["compaction"] = {"type": "summarize", "instructions": request.summarise[:MOST_INSTRUCTIONS]}
    elif request.server_clearing is not None and request.tools:
        body["context_management"] = {"edits": [_clearing(request.server_clearing)]}
        betas.append(CLEARING_BETA)
        optional.append("context_management")
    if target.capabilities.diagnosis and request.tools:
        body["diagnostics"] = {"previous_message_id": newest_answer(request.messages, target)}
        betas.append(DIAGNOSIS_BETA)
        optional.append("diagnostics")
    referenced = {name for names in tools_by_call.values() for name in names}
    if request.first_tools:
        body["tools"] = [
            {**_tool(tool), **({"defer_loading": True} if tool.name in referenced else {})}
            for tool in request.first_tools
        ]
    if search is not None:
        body["tools"] = [*as_list(body.get("tools")), anthropic_tool(search)]
    if dialect.cache_control:
        marks = [block.breakpoint for block in request.system if block.text]
        wanted = [block for block, marked in zip(system, marks, strict=True) if marked][-2:]
        newest = [ends[index] for index in sorted(set(request.breakpoints)) if index in ends]
        room = MAX_BREAKPOINTS - len(wanted)
        for block in wanted:
            block["cache_control"] = _cache_mark(target)
        _mark(messages, newest[-room:], _cache_mark(target))
    if system:
        body["system"] = system
    body["messages"] = messages
    if any("clear_at" in message for message in messages):
        betas.append(CLEAR_AT_BETA)
    if request.summarise is not None or any(map(_is_summary, messages[:1])):
        betas.append(COMPACT_BETA)
    if request.announced:
        betas += TOOL_CHANGE_BETAS
    headers = {"anthropic-version": API_VERSION, **({"anthropic-beta": ",".join(betas)} if betas else {})}
    return WireRequest("/v1/messages", body, headers, tuple(optional))


def _cache_mark(target: Target) -> JsonObject:
    ttl = target.cache_ttl if target.cache_ttl in target.capabilities.cache_ttl else ""
    return {"type": "ephemeral", **({"ttl": ttl} if ttl not in ("", DEFAULT_TTL) else {})}


def _clearing(wish: ServerClearing) -> JsonObject:
    edit: JsonObject = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": wish.trigger_tokens},
        "keep": {"type": "tool_uses", "value": wish.keep_tool_uses},
    }
    return {**edit, "exclude_tools": list(wish.exclude_tools)} if wish.exclude_tools else edit


def _thinking_options(effort: str | None, limit: int, target: Target, config: JsonObject, *, drops: bool) -> JsonObject:
    """How much the model thinks, whether its thoughts arrive readable, what becomes of those that do not fit, and the
    other fields of ``output_config``."""
    style = target.dialect.effort
    word = target.dialect.efforts.get(effort, effort) if effort is not None else None
    out: JsonObject = {"output_config": config} if config else {}
    if style == "output_config":
        shown = target.capabilities.display and target.shows_thoughts
        thinking: JsonObject = {"type": "adaptive"}
        if shown:
            thinking["display"] = "summarized"
        if drops:
            thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        if word is not None:
            out["output_config"] = {"effort": word, **config}
        wanted = word is not None or target.capabilities.adaptive_thinking or drops
        return {**out, "thinking": thinking} if wanted else out
    if word is None or style == "none":
        return out
    budget = min(_BUDGETS.get(word, 0), limit - 1024)
    return {**out, "thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= 1024 else out


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


class _Alone(Struct, frozen=True):
    """The blocks of one message, whatever stands beside it, the last one that may carry a breakpoint, and the ids of
    calls of the server's tools; ``searched``: there are such calls or results of them."""

    blocks: list[JsonObject]
    markable: JsonObject | None
    calls: tuple[str, ...]
    searched: bool


def _alone(message: Message, target: Target) -> _Alone:
    return _described(_blocks(message, target, {}))


def _described(blocks: list[JsonObject]) -> _Alone:
    markable = next((block for block in reversed(blocks) if block.get("type") not in _UNMARKABLE), None)
    calls = tuple(as_text(block["id"]) for block in blocks if block.get("type") == "server_tool_use")
    searched = bool(calls) or any(block.get("type") == "web_search_tool_result" for block in blocks)
    return _Alone(blocks, markable, calls, searched)


def _messages(
    request: ModelRequest,
    target: Target,
    alone: Sequence[_Alone],
    tools_by_call: Mapping[str, tuple[str, ...]],
    changes: Mapping[int, str],
) -> tuple[list[JsonObject], dict[int, JsonObject]]:
    """Messages with adjacent ones of the same role merged and changes of the effort before their messages, and for each
    message of the request the last block that may carry a breakpoint. ``alone`` has what each message is by itself.

    Notes are system messages where the model reads them in mid-conversation: one has to follow a message of the user
    and to precede one of the assistant or end the list, so they wait for that place. Elsewhere, and if others can edit
    their text, they are blocks of the user's message.
    """
    out: list[JsonObject] = []
    ends: dict[int, JsonObject] = {}
    broken_off: set[str] = set()
    searched: set[int] = set()
    waiting: dict[int, Message] = {}
    overtaking: list[int] = []
    """Messages of the user's side that come later and stand before the waiting notes."""
    newest: JsonObject | None = None

    def say_waiting() -> None:
        made = _system_message(list(waiting.values()), target, request)
        out.append(made)
        if "clear_at" not in made:  # what the model will forget can't carry a breakpoint
            ends.update(dict.fromkeys((*waiting, *overtaking), as_object(as_list(made["content"])[-1])))
        waiting.clear()
        overtaking.clear()

    for index, message in enumerate(request.messages):
        if message.note and message.note != "quoted" and target.capabilities.system_messages:
            waiting[index] = message
            if newest is not None:
                ends[index] = newest
            continue
        made = alone[index]
        if tools_by_call and any(result.call_id in tools_by_call for result in message.tool_results):
            made = _described(_blocks(message, target, tools_by_call))
        if not made.blocks:
            continue
        if made.calls:
            following = request.messages[index + 1 : index + 2]
            if _is_broken_off(message, goes_on=not following or following[0].role == "assistant"):
                broken_off.update(made.calls)
        role = "assistant" if message.role == "assistant" or made.blocks[0].get("type") == SUMMARY else "user"
        if role == "assistant" and waiting:
            say_waiting()
        if index in changes:
            word = target.dialect.efforts.get(changes[index], changes[index])
            out.append({"role": "system", "content": list[object](), "output_config": {"effort": word}})
        if out and out[-1]["role"] == role and not _is_summary(out[-1]):
            out[-1]["content"] = [*as_list(out[-1]["content"]), *made.blocks]
        else:
            out.append({"role": role, "content": list[object](made.blocks)})
        if made.searched and role == "assistant":
            searched.add(len(out) - 1)
        if made.markable is not None:
            newest = ends[index] = made.markable
        if waiting:
            overtaking.append(index)
    if waiting:
        say_waiting()
    for position in searched:
        out[position]["content"] = _paired(as_list(out[position]["content"]), broken_off)
    return [message for message in out if message["content"] or message["role"] == "system"], ends


def _is_summary(message: JsonObject) -> bool:
    content = as_list(message["content"])
    return bool(content) and as_object(content[0]).get("type") == SUMMARY


def _mark(messages: list[JsonObject], blocks: Sequence[JsonObject], mark: JsonObject) -> None:
    """Set breakpoints at these blocks of the messages. They are usually among the newest ones."""
    left = {id(block) for block in blocks}
    for index in range(len(messages) - 1, -1, -1):
        if not left:
            break
        content = as_list(messages[index]["content"])
        if present := left.intersection(map(id, content)):
            marked = [
                {**as_object(block), "cache_control": mark} if id(block) in present else block for block in content
            ]
            messages[index]["content"] = marked
            left -= present


def _tool(tool: ToolSchema) -> JsonObject:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def _system_message(notes: Sequence[Message], target: Target, request: ModelRequest) -> JsonObject:
    """Notes as one system message, with the tools that they announce; for one step only, if all are, where the model
    knows how to forget it."""
    content = [block for note in notes for block in (*_tool_changes(note, request), _text(note.text))]
    message: JsonObject = {"role": "system", "content": content}
    if target.capabilities.clear_at and all(note.note == "this turn" for note in notes):
        message["clear_at"] = "next_user_message"
    return message


def _tool_changes(note: Message, request: ModelRequest) -> Iterator[JsonObject]:
    """The tools that a note withdraws, and the definitions of those that it announces."""
    for change in request.announced:
        if change.note != note.id:
            continue
        for name in change.removed:
            yield {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}
        for tool in (*(tool for tool in request.tools if tool.name in change.tools), *change.defined):
            yield {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": _tool(tool)}}


def _blocks(message: Message, target: Target, tools_by_call: Mapping[str, tuple[str, ...]]) -> list[JsonObject]:
    """Blocks of a message. An interrupted message has no signatures yet, so its thinking is not sent."""
    if (summary := written_summary(message, target)) is not None:
        return [dict(summary)]
    whole = message.response is None or message.response.complete
    unsigned = whole and target.dialect.unsigned_thinking
    made = (
        [_found(part, target, tools_by_call[part.call_id])]
        if isinstance(part, ToolResultPart) and part.call_id in tools_by_call
        else _cited(part, message, target)
        if isinstance(part, TextPart)
        else [block for block in (_block(part, message, target, unsigned),) if block is not None]
        for part in message.parts
    )
    return [block for blocks in made for block in blocks]


def _paired(content: Sequence[object], broken_off: Collection[str]) -> list[object]:
    """The content of an answer without calls of the server's tools that were ``broken_off`` before their results came,
    and results of searches without their call: the API rejects both."""
    blocks = [as_object(block) for block in content]
    calls = {as_text(block.get("id")) for block in blocks if block.get("type") == "server_tool_use"}
    results = {as_text(block.get("tool_use_id")) for block in blocks if "tool_use_id" in block}
    unanswered = set(broken_off) - results
    return [
        block
        for block in blocks
        if (block.get("type") != "server_tool_use" or block.get("id") not in unanswered)
        and (block.get("type") != "web_search_tool_result" or block.get("tool_use_id") in calls)
    ]


def _is_broken_off(message: Message, *, goes_on: bool) -> bool:
    """Whether calls of the server's tools in an answer may lack their results: it was cut, or paused and not
    continued."""
    response = message.response
    return response is not None and (not response.complete or (response.stop.kind == "pause" and not goes_on))


def _found(part: ToolResultPart, target: Target, names: tuple[str, ...]) -> JsonObject:
    """The result of a search as references, which the provider replaces by the descriptions."""
    return {
        "type": "tool_result",
        "tool_use_id": rewrite_id(part.call_id, target.dialect.tool_ids),
        "content": [{"type": "tool_reference", "tool_name": name} for name in names],
    }


def _block(part: object, message: Message, target: Target, unsigned: bool) -> JsonObject | None:
    """A content block; None for parts that must not or can't be sent: empty text, reasoning of another model or without
    a signature."""
    if isinstance(part, ReasoningPart):
        return _thinking(part, target, unsigned)
    if isinstance(part, ToolCallPart):
        return {
            "type": "tool_use",
            "id": rewrite_id(part.call_id, target.dialect.tool_ids),
            "name": part.name,
            "input": arguments_object(part.arguments, message),
        }
    if isinstance(part, ToolResultPart):
        return _tool_result(part, target)
    if isinstance(part, ImagePart):
        return _image(part)
    if isinstance(part, DocumentPart):
        return _document(part)
    if isinstance(part, OpaquePart):
        data = target.echo(part.opaque) or {}
        block = as_object(data.get("block"))
        sent = data.get("whole") and (block != _EMPTY or target.capabilities.binding)
        return dict(block) if sent else None
    return None


def _cited(part: TextPart, message: Message, target: Target) -> list[JsonObject]:
    """The text as it came: in several blocks if its sentences cite different sources."""
    if not part.text.strip() and not (part.text and _is_bound(message, target)):
        return []
    data = target.echo(part.opaque) or {}
    if citations := data.get("citations"):
        return [{**_text(part.text), "citations": citations}]
    spans = [as_object(span) for span in as_list(data.get("spans"))]
    lengths = [as_int(span.get("length")) or 0 for span in spans]
    if not spans or sum(lengths) != len(part.text):
        return [_text(part.text)]
    out: list[JsonObject] = []
    start = 0
    for span, length in zip(spans, lengths, strict=True):
        block = _text(part.text[start : start + length])
        start += length
        if length:
            out.append({**block, "citations": span["citations"]} if span.get("citations") else block)
    return out


_EMPTY: JsonObject = {"type": "text", "text": ""}
"""A block of text without any, which some answers have. It belongs to what later thoughts are bound to."""


def _is_bound(message: Message, target: Target) -> bool:
    """Whether later thoughts are bound to this answer, which must be sent exactly as it came."""
    made = message.response
    return target.capabilities.binding and made is not None and made.origin == target.origin


def _thinking(part: ReasoningPart, target: Target, unsigned: bool) -> JsonObject | None:
    data = target.echo(part.opaque)
    if data is None:
        return None
    if data.get("type") == "redacted_thinking":
        return dict(data)
    if not data.get("signature") and not unsigned:
        return None
    return {"type": "thinking", "thinking": part.text, **{key: data[key] for key in ("signature",) if key in data}}


def _tool_result(part: ToolResultPart, target: Target) -> JsonObject:
    attached = [*map(_image, part.images), *map(_document, part.documents)]
    content = [*([_text(part.text)] if part.text.strip() else []), *attached]
    out: JsonObject = {
        "type": "tool_result",
        "tool_use_id": rewrite_id(part.call_id, target.dialect.tool_ids),
    }
    if content:
        out["content"] = content if attached else part.text
    if part.is_error and not attached:  # the API refuses an error with anything but text
        out["is_error"] = True
    return out


def _image(image: ImagePart) -> JsonObject:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _document(document: DocumentPart) -> JsonObject:
    """https://platform.claude.com/docs/en/build-with-claude/pdf-support"""
    source = {"type": "base64", "media_type": PDF, "data": document.data}
    return {"type": "document", "source": source, **({"title": document.name} if document.name else {})}


NAME = "anthropic-messages"
CLEARED = "swecli_cleared_tokens"
"""Key of the figure for server-side clearing, stored with the usage."""

_STOPS: dict[str, WireStop] = {
    "end_turn": "end",
    "max_tokens": "length",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_use",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context",
    "compaction": "compaction",
}
_DROPS: dict[str, DropReason] = {
    "prefix_binding_mismatch": "prefix",
    "model_binding_mismatch": "model",
    "organization_binding_mismatch": "organization",
    "end_user_binding_mismatch": "user",
}
_EVENTS = frozenset(
    (
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "message",
        "ping",
        "error",
    )
)


class _Block:
    """One unfinished content block. ``draft`` exists once there is something to show or to keep."""

    def __init__(self, start: JsonObject) -> None:
        self.start = start
        self.kind = as_text(start.get("type"))
        self.draft: Draft | None = None
        self.input: list[str] = []
        self.citations = list(as_list(start.get("citations")))
        self.begin = 0
        """Where its text begins in the draft, which may continue the block before."""


class AnthropicDecoder(Decoder):
    """Decoder of a streamed message, or one whole ``message``."""

    _blocks: dict[int, _Block] | None = None
    _usage: JsonObject | None = None
    _searches: dict[str, int] | None = None
    """Parts of the server's searches, by the ids of their calls; None before the first call or result."""

    def on_message(self, message: JsonObject, name: str) -> bool:
        kind = as_text(message.get("type")) or name
        if kind == "message_start" and self.is_another(as_text(as_object(message.get("message")).get("id"))):
            self.fail("server", OTHER_ANSWER)
        elif kind == "message_start":
            self._start(as_object(message.get("message")))
        elif kind == "content_block_start":
            self._block_start(as_int(message.get("index")) or 0, as_object(message.get("content_block")))
        elif kind == "content_block_delta":
            self._block_delta(as_int(message.get("index")) or 0, as_object(message.get("delta")))
        elif kind == "content_block_stop":
            self._block_stop(as_int(message.get("index")) or 0)
        elif kind == "message_delta":
            self._merge_usage({**as_object(message.get("usage")), **_cleared(message)})
            self._report(message)
            self._stop(as_object(message.get("delta")))
        elif kind == "message_stop":
            self.on_whole()
        elif kind == "message":
            self._whole(message)
        return kind in _EVENTS

    def _start(self, message: JsonObject) -> None:
        self.answer.start(as_text(message.get("model")), as_text(message.get("id")))
        self._merge_usage(as_object(message.get("usage")))
        self._report(message)
        for index, block in enumerate(as_list(message.get("content"))):
            self._block_start(index, as_object(block))

    def _report(self, message: JsonObject) -> None:
        """Read what the provider says about the request: thoughts that it dropped, and the cause of a cache miss."""
        entries = map(as_object, as_list(message.get("input_transformations")))
        dropped = dropped_thoughts(
            (as_text(entry.get("reason")) for entry in entries if entry.get("type") == "thinking_dropped"), _DROPS
        )
        miss = as_object(as_object(message.get("diagnostics")).get("cache_miss_reason"))
        if dropped or miss:
            missed = as_int(miss.get("cache_missed_input_tokens"))
            self.answer.report_request(ProviderReport(dropped, miss=as_text(miss.get("type")), missed=missed))

    def _whole(self, message: JsonObject) -> None:
        self._start(message)
        self._merge_usage(_cleared(message))
        self._stop(message)
        self.on_whole()

    def on_done(self) -> None:
        """Handle OpenAI's mark, with which some gateways end a stream."""
        self.on_end()

    def on_end(self) -> None:
        """Handle a stream without ``message_stop``: its stop reason says that the model was done. Some proxies leave
        the event out, and Anthropic's SDKs don't miss it."""
        if self.answer.stop_raw is not None:
            self.on_whole()

    def on_whole(self) -> None:
        for index in list(self._open_blocks()):
            self._block_stop(index)
        if self._searches is not None:
            spans = (
                span
                for draft in self.answer.drafts
                if isinstance(draft, TextDraft)
                for span in as_list((draft.data or {}).get("spans"))
            )
            self.answer.cited(sources_of(item for span in spans for item in as_list(as_object(span).get("citations"))))
        self.answer.complete()

    def _open_blocks(self) -> dict[int, _Block]:
        if self._blocks is None:
            self._blocks = {}
        return self._blocks

    def _block_start(self, index: int, start: JsonObject) -> None:
        self._block_stop(index)
        block = self._open_blocks()[index] = _Block(start)
        if block.kind == "text":
            self._text(block, as_text(start.get("text")))
        elif block.kind == "thinking":
            self._thinking(block, as_text(start.get("thinking")), as_text(start.get("signature")))
        elif block.kind == "redacted_thinking":
            block.draft = self.answer.add(ReasoningDraft(hidden=True, data=dict(start)))
        elif block.kind == "tool_use":
            call = CallDraft(wire_id=as_text(start.get("id")) or None, name=as_text(start.get("name")))
            block.draft = self.answer.add(call)
            self.answer.call_text(call, "")
        else:
            note = as_text(start.get("name")) or block.kind
            block.draft = self.answer.add(OpaqueDraft(data={"block": dict(start), "whole": True}, note=note))
            if block.kind == "web_search_tool_result":
                self._searches = self._searches or {}
                part = self._searches.get(as_text(start.get("tool_use_id")), block.draft.index)
                self.answer.searched(part, *anthropic_result(start.get("content")))

    def _block_delta(self, index: int, delta: JsonObject) -> None:
        block = self._open_blocks().get(index)
        if block is None:
            block = self._open_blocks()[index] = _Block(_start_for(delta))
        kind = delta.get("type")
        if kind == "text_delta":
            self._text(block, as_text(delta.get("text")))
        elif kind == "thinking_delta":
            self._thinking(block, as_text(delta.get("thinking")), "")
        elif kind == "signature_delta":
            self._thinking(block, "", as_text(delta.get("signature")))
        elif kind == "input_json_delta":
            text = as_text(delta.get("partial_json"))
            if is_object(whole := delta.get("partial_json")):
                block.start["input"] = whole
                self.answer.changes += 1
            elif isinstance(block.draft, CallDraft):
                self.answer.call_text(block.draft, text)
            else:
                block.input.append(text)
                self.answer.changes += 1
        elif kind == "citations_delta" and block.kind == "text":
            block.citations.append(delta.get("citation"))
            self.answer.changes += 1
        elif kind == "compaction_delta" and isinstance(block.draft, OpaqueDraft):
            stored = as_object(block.draft.data.get("block"))
            stored["content"] = as_text(stored.get("content")) + as_text(delta.get("content"))
            stored.update({key: value for key, value in delta.items() if key not in ("type", "content")})
            self.answer.changes += 1
        elif isinstance(block.draft, OpaqueDraft):
            block.draft.data["whole"] = False

    def _text(self, block: _Block, text: str) -> None:
        if block.draft is None and text:
            block.draft = self.answer.text(text, self._fresh_text(block))
        elif isinstance(block.draft, TextDraft):
            self.answer.text(text, block.draft)

    def _fresh_text(self, block: _Block) -> TextDraft | None:
        """A separate part for each text block; with think tags the splitter decides. After a search, blocks are parts
        of one text, cut where sentences cite a source."""
        if self.answer.splits:
            return None
        last = self.answer.last
        if self._searches is not None and isinstance(last, TextDraft) and not last.refusal:
            block.begin = len(last.text)
            return last
        return self.answer.add(TextDraft())

    def _thinking(self, block: _Block, text: str, signature: str) -> None:
        if block.draft is None and (text or signature):
            block.draft = self.answer.add(ReasoningDraft())
        if isinstance(block.draft, ReasoningDraft):
            self.answer.reasoning(text, block.draft)
            if block.draft.data is None:
                block.draft.data = {"type": "thinking"}
                if "signature" in block.start:
                    block.draft.data["signature"] = ""
            if signature:
                block.draft.data["signature"] = as_text(block.draft.data.get("signature")) + signature
                self.answer.changes += 1

    def _block_stop(self, index: int) -> None:
        block = self._open_blocks().pop(index, None)
        if block is None:
            return
        if block.kind == "text" and block.draft is None and self._has_thought:
            self.answer.add(OpaqueDraft(data={"block": dict(_EMPTY), "whole": True}))
        elif isinstance(block.draft, CallDraft):
            given = block.start.get("input")
            if not block.draft.chunks and isinstance(given, str):
                self.answer.call_text(block.draft, given)
            elif not block.draft.chunks:
                block.draft.value = as_object(given)
            self.answer.close_call(block.draft)
        elif isinstance(block.draft, TextDraft):
            self._cite(block, block.draft)
        elif isinstance(block.draft, OpaqueDraft):
            self._close_opaque(block, block.draft)

    def _cite(self, block: _Block, draft: TextDraft) -> None:
        """Keep the citations of a block, and its length if its text consists of several."""
        length = len(draft.text) - block.begin
        if self._searches is None:
            if block.citations:
                draft.data = {"citations": block.citations}
            return
        span: JsonObject = {"length": length, **({"citations": block.citations} if block.citations else {})}
        spans = [*as_list((draft.data or {}).get("spans")), span]
        draft.data = {"spans": spans}

    def _close_opaque(self, block: _Block, draft: OpaqueDraft) -> None:
        if any(block.input):
            value = parse_object("".join(block.input))
            if value is None:
                draft.data["whole"] = False
            else:
                as_object(draft.data.get("block"))["input"] = value
        if block.kind == "server_tool_use" and block.start.get("name") == WEB_SEARCH:
            self._searches = self._searches or {}
            self._searches[as_text(block.start.get("id"))] = draft.index
            given = as_object(as_object(draft.data.get("block")).get("input"))
            self.answer.search(draft.index, as_text(given.get("query")))

    @property
    def _has_thought(self) -> bool:
        return any(isinstance(draft, ReasoningDraft) and draft.data is not None for draft in self.answer.drafts)

    def _stop(self, delta: JsonObject) -> None:
        reason = as_text(delta.get("stop_reason"))
        if not reason:
            return
        details = as_object(delta.get("stop_details"))
        detail = as_text(details.get("category")) or as_text(delta.get("stop_sequence")) or None
        self.answer.stop(reason, _STOPS.get(reason, "unknown"), detail)

    def _merge_usage(self, usage: JsonObject) -> None:
        """Merge usage counters: they are cumulative and partly repeated, so each replaces its predecessor."""
        if not usage:
            return
        known = self._usage = self._usage or {}
        known.update({key: value for key, value in usage.items() if value is not None})
        self.answer.report_usage(read_usage(known))


def _start_for(delta: JsonObject) -> JsonObject:
    """The block that a delta without a start must belong to."""
    kind = as_text(delta.get("type"))
    words = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}
    return {"type": words.get(kind, kind)}


def _cleared(message: JsonObject) -> JsonObject:
    """Tokens that the server's own clearing removed from the prompt, as one more usage figure."""
    edits = [as_object(edit) for edit in as_list(as_object(message.get("context_management")).get("applied_edits"))]
    tokens = [count for edit in edits if (count := as_int(edit.get("cleared_input_tokens"))) is not None]
    return {CLEARED: sum(tokens)} if tokens else {}


_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def read_usage(usage: JsonObject) -> Usage:
    """Usage in the neutral vocabulary: Anthropic counts the cached parts of the prompt separately."""
    read, write = as_int(usage.get("cache_read_input_tokens")), as_int(usage.get("cache_creation_input_tokens"))
    fresh = as_int(usage.get("input_tokens"))
    counted = [number for number in (fresh, read, write) if number is not None]
    output = as_int(usage.get("output_tokens"))
    for entry in map(as_object, as_list(usage.get("iterations"))):  # a summary is not in the other figures
        if entry.get("type") == SUMMARY:
            read = (read or 0) + (as_int(entry.get("cache_read_input_tokens")) or 0)
            write = (write or 0) + (as_int(entry.get("cache_creation_input_tokens")) or 0)
            counted = [*counted, *(as_int(entry.get(key)) or 0 for key in _PROMPT)]
            output = (output or 0) + (as_int(entry.get("output_tokens")) or 0)
    return Usage(
        input_total=sum(counted) if counted else None,
        cache_read=read,
        cache_write=write,
        output_total=output,
        reasoning=as_int(as_object(usage.get("output_tokens_details")).get("thinking_tokens")),
        cost=read_cost(usage),
        cleared=as_int(usage.get(CLEARED)),
        web_searches=as_int(as_object(usage.get("server_tool_use")).get("web_search_requests")),
        cache_write_1h=as_int(as_object(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")) or None,
    )
