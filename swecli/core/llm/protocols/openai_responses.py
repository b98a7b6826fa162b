"""OpenAI Responses: requests and stream decoder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from msgspec import structs

from swecli.core.llm.answer_formats import openai_format, wanted_schema
from swecli.core.llm.errors import read_error
from swecli.core.llm.json_values import JsonObject, as_int, as_list, as_object, as_text, is_list
from swecli.core.llm.per_message import Translations
from swecli.core.llm.protocols.arguments import arguments_object, arguments_text, rewrite_id
from swecli.core.llm.protocols.base import (
    OTHER_ANSWER,
    SEARCH,
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
    first_int,
    found_tools,
    newest_answer,
    read_cost,
    written_summary,
)
from swecli.core.llm.types import ModelRequest, ToolSchema, WebSearch
from swecli.core.llm.web_searches import is_billed, openai_action, openai_tool, possible_search, sources_of
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


def build_request(request: ModelRequest, target: Target, known: Translations | None = None) -> WireRequest:
    dialect = target.dialect
    body: JsonObject = {"model": target.origin.model}
    instructions = "\n\n".join(block.text for block in request.system if block.text)
    if instructions:
        body["instructions"] = instructions
    tools_by_call = found_tools(request) if dialect.tool_references else {}
    later = {name for names in tools_by_call.values() for name in names}
    if request.first_tools:
        body["tools"] = [
            _search(tool) if dialect.tool_references and tool.name == SEARCH else _function(tool)
            for tool in request.first_tools
            if tool.name not in later
        ]
    search = possible_search(request, target)
    body["store"] = False
    body["stream"] = True
    body["include"] = ["reasoning.encrypted_content"]
    optional = ["store", "include"]
    if search is not None:
        optional.extend(_add_search(body, search, request))
    reasoning: JsonObject = {}
    effort, changes = effort_changes(request, target)
    if effort is not None and dialect.effort == "reasoning":
        reasoning["effort"] = dialect.efforts.get(effort, effort)
        optional.append("reasoning.effort")
    if dialect.thoughts and target.shows_thoughts:
        reasoning["summary"] = "auto"
        optional.append("reasoning.summary")
    if reasoning:
        body["reasoning"] = reasoning
        optional.append("reasoning")
    schema = (wish := request.answer_format) and wanted_schema(wish, request, target)
    if schema is not None and (form := openai_format(schema)) is not None:
        body["text"] = {"format": {"type": "json_schema", **form}}
        optional.append("text")
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
        optional.append("max_output_tokens")
    if dialect.prompt_cache_key and request.session:
        body["prompt_cache_key"] = request.session
        optional.append("prompt_cache_key")
    options = _cache_options(request, target)
    if options:
        body["prompt_cache_options"] = options
    if options and not request.prewarm:  # without it the request would be answered, and the answer billed
        optional += ["prompt_cache_options", *(f"prompt_cache_options.{name}" for name in options)]
    alone = (known or Translations()).of(request.messages, target, _alone)
    body["input"] = _input(request, target, alone, tools_by_call, changes)
    if request.summarise is not None:  # takes no instructions
        body["input"] = [*as_list(body["input"]), {"type": "compaction_trigger"}]
    return WireRequest("/responses", body, optional=tuple(optional))


def _add_search(body: JsonObject, search: WebSearch, request: ModelRequest) -> list[str]:
    """Offer the provider's search. The rest of the turn's searches is no part of the prompt, so that the cache holds.
    Returns the names of optional fields."""
    body["tools"] = [*as_list(body.get("tools")), openai_tool(search)]
    body["include"] = [*as_list(body["include"]), "web_search_call.action.sources"]
    if search.left > 0:
        body["max_tool_calls"] = search.left
        return ["max_tool_calls"]
    functions: list[JsonObject] = [{"type": "function", "name": tool.name} for tool in request.tools]
    body["tool_choice"] = {"type": "allowed_tools", "mode": "auto", "tools": functions} if functions else "none"
    return ["tool_choice"]


def _cache_options(request: ModelRequest, target: Target) -> JsonObject:
    """The lifetime of the cache, if not the default one, and the answer with whose request the provider compares this
    one to say why it missed the cache."""
    can = target.capabilities
    options: JsonObject = {}
    if not can.prompt_cache_options:
        return options
    if target.cache_ttl in can.cache_ttl[1:]:
        options["ttl"] = target.cache_ttl
    newest = newest_answer(request.messages, target) if can.diagnosis and request.tools else None
    if request.prewarm:
        options["prewarm"] = True
    elif newest is not None:
        options["comparison_response_id"] = newest
    return options


def _function(tool: ToolSchema) -> JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": False,
    }


def _search(tool: ToolSchema) -> JsonObject:
    """The protocol's own tool search: found tools are added at its result."""
    return {
        "type": "tool_search",
        "execution": "client",
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def _searched(result: ToolResultPart, target: Target, tools: Sequence[ToolSchema]) -> JsonObject:
    return {
        "type": "tool_search_output",
        "execution": "client",
        "call_id": rewrite_id(result.call_id, target.dialect.tool_ids),
        "status": "completed",
        "tools": [{**_function(tool), "defer_loading": True} for tool in tools],
    }


def _alone(message: Message, target: Target) -> list[JsonObject]:
    """The items in place of one message, whatever stands beside it."""
    if message.role == "assistant":
        return _assistant(message, target)
    if message.role == "tool":
        return [_result(result, target) for result in message.tool_results]
    if (summary := written_summary(message, target)) is not None:
        return [summary]
    content = _content(message)
    return [{"role": "user", "content": content}] if content else []


def _input(
    request: ModelRequest,
    target: Target,
    alone: Sequence[Sequence[JsonObject]],
    tools_by_call: Mapping[str, tuple[str, ...]],
    changes: Mapping[int, str],
) -> list[JsonObject]:
    """All items; ``alone`` are those of each message by itself."""
    out: list[JsonObject] = []
    tools = {tool.name: tool for tool in request.tools}
    later = {name for names in tools_by_call.values() for name in names}
    for index, message in enumerate(request.messages):
        if message.role == "tool" and target.dialect.tool_references:
            out.extend(
                _searched(result, target, [tools[name] for name in tools_by_call.get(result.call_id, ())])
                if result.name == SEARCH
                else made
                for result, made in zip(message.tool_results, alone[index], strict=True)
            )
        elif message.note:
            names = next(
                (announcement.tools for announcement in request.announced if announcement.note == message.id), ()
            )
            joined = [_function(tools[name]) for name in names if name in tools and name not in later]
            if joined:
                out.append({"type": "additional_tools", "role": "developer", "tools": joined})
            _append_note(out, message, target)
        elif alone[index]:
            if index in changes:
                word = target.dialect.efforts.get(changes[index], changes[index])
                out.append({"type": "configuration_update", "reasoning": {"effort": word}})
            out.extend(alone[index])
    return _once_each(out)


def _append_note(out: list[JsonObject], message: Message, target: Target) -> None:
    """Append a note: as a message of the developer where the model reads one in the middle of a conversation, else to
    the newest message of the user or result of a call. A message of the user in between would end the turn, and with
    it the use of its reasoning."""
    last = out[-1] if out else {}
    if target.capabilities.system_messages and message.note != "quoted":
        out.append({"role": "developer", "content": [_text(message.text)]})
    elif last.get("role") == "user":
        out[-1] = {**last, "content": [*as_list(last["content"]), _text(message.text)]}
    elif last.get("type") == "function_call_output":
        output = last["output"]
        text = f"{output}\n\n{message.text}" if output else message.text
        out[-1] = {**last, "output": [*output, _text(message.text)] if is_list(output) else text}
    else:
        out.append({"role": "user", "content": [_text(message.text)]})


def _once_each(items: Sequence[JsonObject]) -> list[JsonObject]:
    """The items with each id once, because the API rejects an input that repeats one: some gateways number the items of
    each answer alike. A repeated id is left out, and with it an item that needs one; without its reasoning, the rest of
    an answer has no ids."""
    out: list[JsonObject] = []
    seen: set[str] = set()
    bereft = False
    for item in items:
        name, kind = as_text(item.get("id")), item.get("type")
        again = name in seen
        bereft = again if kind == "reasoning" else bereft and kind in _KINDS
        if again and kind not in ("message", "function_call"):
            continue
        if name and (again or bereft):
            item = {key: value for key, value in item.items() if key != "id"}
        elif name:
            seen.add(name)
        out.append(item)
    return out


def _text(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}


def _image(image: ImagePart) -> JsonObject:
    return {"type": "input_image", "image_url": f"data:{image.media_type};base64,{image.data}"}


def _document(document: DocumentPart) -> JsonObject:
    """https://developers.openai.com/api/docs/guides/file-inputs: data needs a name."""
    name = document.name or "document.pdf"
    return {"type": "input_file", "filename": name, "file_data": f"data:{PDF};base64,{document.data}"}


def _content(message: Message) -> list[JsonObject]:
    out: list[JsonObject] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.text:
            out.append(_text(part.text))
        elif isinstance(part, ImagePart):
            out.append(_image(part))
        elif isinstance(part, DocumentPart):
            out.append(_document(part))
    return out


def _assistant(message: Message, target: Target) -> list[JsonObject]:
    """Items in order. Reasoning waits for the item it belongs to: alone it is refused. An item whose reasoning can't be
    returned is sent without its id, from which the server would know that reasoning is missing."""
    out: list[JsonObject] = []
    waiting: list[JsonObject] = []
    bereft = False
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            item = as_object((target.echo(part.opaque) or {}).get("item"))
            bereft = not (item.get("encrypted_content") or item.get("content"))
            if not bereft:
                waiting.append(item)
            continue
        item = _item(part, message, target)
        if item is not None:
            if bereft:
                item = {key: value for key, value in item.items() if key != "id"}
            out.extend((*waiting, item))
            waiting.clear()
    return out


def _item(part: object, message: Message, target: Target) -> JsonObject | None:
    if isinstance(part, TextPart):
        if not part.text:
            return None
        envelope = as_object((target.echo(part.opaque) or {}).get("message"))
        return {
            "type": "message",
            "role": "assistant",
            **envelope,
            "content": [{"type": "output_text", "text": part.text, "annotations": []}],
        }
    if isinstance(part, ToolCallPart):
        envelope = as_object((target.echo(part.opaque) or {}).get("call"))
        if target.dialect.tool_references and part.name == SEARCH:
            return {
                "type": "tool_search_call",
                "status": "completed",
                **envelope,
                "execution": "client",
                "call_id": rewrite_id(part.call_id, target.dialect.tool_ids),
                "arguments": arguments_object(part.arguments, message),
            }
        return {
            "type": "function_call",
            **envelope,
            "call_id": rewrite_id(part.call_id, target.dialect.tool_ids),
            "name": part.name,
            "arguments": arguments_text(part.arguments, message),
        }
    if isinstance(part, OpaquePart):
        item = as_object((target.echo(part.opaque) or {}).get("item"))
        return item if as_text(item.get("type")) else None
    return None


def _result(result: ToolResultPart, target: Target) -> JsonObject:
    output: object = result.text
    if attached := [*map(_image, result.images), *map(_document, result.documents)]:
        output = [*([_text(result.text)] if result.text else []), *attached]
    return {
        "type": "function_call_output",
        "call_id": rewrite_id(result.call_id, target.dialect.tool_ids),
        "output": output,
    }


NAME = "openai-responses"

_INCOMPLETE: dict[str, WireStop] = {
    "": "length",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "max_messages": "length",
    "steered": "pause",
}
_DROPS: dict[str, DropReason] = {
    "prefix_mismatch": "prefix",
    "model_mismatch": "model",
    "organization_mismatch": "organization",
    "end_user_mismatch": "user",
}
_STATUSES: dict[str, WireStop] = {"completed": "end", "complete": "end", "cancelled": "error"}
_KINDS = frozenset(("message", "reasoning", "function_call"))
"""Kinds of items that arrive in pieces."""
_TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")


class _Item:
    """One unfinished output item."""

    def __init__(self, start: JsonObject) -> None:
        self.start = start
        self.kind = as_text(start.get("type"))
        self.drafts: list[Draft] = []
        self.streamed: dict[tuple[int, bool], str] = {}
        """Text by its place in the content; refusals separately."""
        self.section: int | None = None
        self.final: JsonObject = {}
        self.done = False

    def is_other(self, final: JsonObject) -> bool:
        """Whether ``final`` is another item at the place of this finished one."""
        known = self.final
        if known.get("type") != final.get("type") or known.get("call_id") != final.get("call_id"):
            return True
        return known.get("id") != final.get("id") and known.get("content") != final.get("content")

    def repeats(self, final: JsonObject) -> bool:
        """Whether ``final`` is the call of this finished item once more."""
        return all(self.final.get(key) == final.get(key) for key in ("name", "arguments"))

    @property
    def draft(self) -> Draft | None:
        return self.drafts[-1] if self.drafts else None


class ResponsesDecoder(Decoder):
    """Decoder of a streamed response's typed events, or one whole ``response``."""

    _items: dict[int, _Item] | None = None
    """The newest item at each place."""
    _every: list[_Item] | None = None

    def on_message(self, message: JsonObject, name: str) -> bool:
        kind = as_text(message.get("type")) or name
        if message.get("object") == "response":
            self.answer.start(as_text(message.get("model")), as_text(message.get("id")))
            self._finish(message, f"response.{as_text(message.get('status')) or 'completed'}")
            return True
        if not kind.startswith("response."):
            return kind == "error"
        response = as_object(message.get("response"))
        if kind == "response.created" and self.is_another(as_text(response.get("id"))):
            self.fail("server", OTHER_ANSWER)
            return True
        if response:
            self.answer.start(as_text(response.get("model")), as_text(response.get("id")))
            self._report(response)
        index = as_int(message.get("output_index"))
        if kind in _TERMINAL:
            self._finish(response, kind)
        elif kind == "response.output_item.added":
            self._added(index, as_object(message.get("item")))
        elif kind == "response.output_item.done":
            self._done(self._place(index), as_object(message.get("item")))
        elif kind.endswith(".delta"):
            self._delta(kind, index, message)
        elif kind == "response.function_call_arguments.done":
            self._arguments(self._item(index, "function_call"), as_text(message.get("arguments")))
        elif kind in ("response.output_text.done", "response.refusal.done"):
            refusal = kind == "response.refusal.done"
            whole = as_text(message.get("refusal" if refusal else "text"))
            item = self._item(index, "message")
            if whole and not item.done:
                spot = (as_int(message.get("content_index")) or 0, refusal)
                self._settle_text(item, {**item.streamed, spot: whole}, refusal)
        return True

    def _report(self, response: JsonObject) -> None:
        """Read what the provider says about the request: reasoning that it withheld, and the cause of a cache miss.
        Reasoning of earlier turns that the model does not see anyway is no loss."""
        entries = map(as_object, as_list(response.get("input_transformations")))
        dropped = dropped_thoughts((as_text(entry.get("reason")) for entry in entries), _DROPS)
        told = as_object(response.get("prompt_cache_diagnostics"))
        miss = "" if told.get("type") == "cache_hit" else as_text(told.get("reason")) or as_text(told.get("type"))
        if dropped or miss:
            missed = as_int(told.get("cache_missed_tokens"))
            self.answer.report_request(ProviderReport(dropped, miss=miss, missed=missed))

    def _known(self) -> dict[int, _Item]:
        if self._items is None:
            self._items = {}
        return self._items

    def _place(self, index: int | None) -> int:
        """The place of an event; without an index it belongs to the newest item."""
        return index if index is not None else max(self._known(), default=0)

    def _item(self, index: int | None, kind: str) -> _Item:
        """The item that an event of this kind continues. Some gateways give items of several kinds one place."""
        position = self._place(index)
        item = self._known().get(position)
        if item is not None and item.kind in _KINDS and item.kind != kind:
            item = next((other for other in reversed(self._all()) if other.kind == kind and not other.done), None)
            position = max(self._known()) + 1
        return item if item is not None else self._new(position, {"type": kind})

    def _all(self) -> list[_Item]:
        if self._every is None:
            self._every = []
        return self._every

    def _new(self, position: int, start: JsonObject) -> _Item:
        item = self._known()[position] = _Item(start)
        self._all().append(item)
        return item

    def _added(self, index: int | None, start: JsonObject) -> None:
        position = index if index is not None else max(self._known(), default=-1) + 1
        item = self._new(position, start)
        if item.kind == "function_call" or _is_search(start):
            self._call(item)
        elif item.kind == "reasoning":
            item.drafts.append(self.answer.add(ReasoningDraft(summary=True)))
        elif item.kind != "message":
            self._keep(item)
        else:
            self.answer.changes += 1

    def _keep(self, item: _Item) -> OpaqueDraft:
        draft = self.answer.add(OpaqueDraft(data={"item": dict(item.start)}, note=item.kind))
        item.drafts.append(draft)
        return draft

    def _call(self, item: _Item) -> CallDraft:
        if isinstance(item.draft, CallDraft):
            return item.draft
        name = SEARCH if _is_search(item.start) else as_text(item.start.get("name"))
        draft = CallDraft(wire_id=as_text(item.start.get("call_id")) or None, name=name)
        call = self.answer.add(draft)
        item.drafts.append(call)
        self.answer.call_text(call, as_text(item.start.get("arguments")))
        return call

    def _delta(self, kind: str, index: int | None, message: JsonObject) -> None:
        text = as_text(message.get("delta"))
        if kind == "response.output_text.delta":
            self._text(self._item(index, "message"), text, as_int(message.get("content_index")), refusal=False)
        elif kind == "response.refusal.delta":
            self._text(self._item(index, "message"), text, as_int(message.get("content_index")), refusal=True)
        elif kind == "response.function_call_arguments.delta":
            self.answer.call_text(self._call(self._item(index, "function_call")), text)
        elif kind == "response.reasoning_summary_text.delta":
            self._reasoning(self._item(index, "reasoning"), text, as_int(message.get("summary_index")), summary=True)
        elif kind == "response.reasoning_text.delta":
            self._reasoning(self._item(index, "reasoning"), text, as_int(message.get("content_index")), summary=False)

    def _text(self, item: _Item, text: str, position: int | None, refusal: bool) -> None:
        spot = (position or 0, refusal)
        item.streamed[spot] = item.streamed.get(spot, "") + text
        draft = item.draft
        if not (isinstance(draft, TextDraft) and draft.refusal == refusal):
            if not text:
                return
            if refusal or not self.answer.splits:
                draft = self.answer.add(TextDraft(refusal=refusal))
                item.drafts.append(draft)
        self.answer.text(text, draft if isinstance(draft, TextDraft) else None)

    def _settle_text(self, item: _Item, texts: dict[tuple[int, bool], str], refusal: bool) -> None:
        """Apply the finished text: missing parts of the deltas are added, differing ones replaced."""
        if self.answer.splits:
            return
        drafts = [draft for draft in item.drafts if isinstance(draft, TextDraft) and draft.refusal == refusal]
        whole = "".join(text for (_, kind), text in sorted(texts.items()) if kind == refusal)
        streamed = "".join(draft.text for draft in drafts)
        if whole.startswith(streamed):
            self._text(item, whole[len(streamed) :], None, refusal)
        elif drafts:
            drafts[0].replace(whole)
            for rest in drafts[1:]:
                rest.replace("")
        item.streamed = texts

    def _reasoning(self, item: _Item, text: str, section: int | None, summary: bool) -> None:
        draft = item.draft
        if not isinstance(draft, ReasoningDraft):
            draft = self.answer.add(ReasoningDraft(summary=summary))
            item.drafts.append(draft)
        if not draft.chunks:
            draft.summary = summary
        if draft.chunks and section != item.section:
            text = "\n\n" + text
        item.section = section
        self.answer.reasoning(text, draft)

    def _arguments(self, item: _Item, whole: str) -> None:
        """Add the part of the finished item's arguments that the deltas lacked."""
        call = self._call(item)
        raw = call.raw
        if whole.startswith(raw):
            self.answer.call_text(call, whole[len(raw) :])
        elif whole and not call.done:
            call.chunks = [whole]

    def _done(self, position: int, final: JsonObject) -> None:
        item = self._announced(final) or self._known().get(position)
        kind = as_text(final.get("type"))
        if item is not None and item.kind != kind and {item.kind, kind} <= _KINDS:
            nameless = (
                other for other in self._all() if other.kind == kind and not (other.done or "id" in other.start)
            )
            item, position = next(nameless, None), max(self._known()) + 1
        if item is None or (item.done and item.is_other(final)):
            self._added(position, {key: value for key, value in final.items() if key != "arguments"})
            item = self._known()[position]
        if item.done:
            return
        item.done, item.final = True, final
        kind = kind or item.kind
        if kind == "message":
            self._done_message(item, final)
        elif kind == "reasoning":
            self._done_reasoning(item, final)
        elif kind == "function_call" or _is_search(final):
            self._done_call(item, final)
        elif isinstance(item.draft, OpaqueDraft):
            item.draft.data["item"] = dict(final)
            self.answer.changes += 1
            if kind == "web_search_call":
                target, sources = openai_action(final)
                self.answer.search(item.draft.index, target)
                problem = "failed" if final.get("status") == "failed" else ""
                self.answer.searched(item.draft.index, sources, problem)

    def _announced(self, final: JsonObject) -> _Item | None:
        """The item with the identity of this finished one: an open one, or the same call, which must not run twice."""
        for name in ("call_id", "id"):
            if wanted := as_text(final.get(name)):
                for item in self._all():
                    same = item.start.get(name) == wanted and item.kind == final.get("type")
                    if same and (not item.done or (name == "call_id" and item.repeats(final))):
                        return item
        return None

    def _done_message(self, item: _Item, final: JsonObject) -> None:
        for whole, refusal in zip(_message_texts(final), (False, True), strict=True):
            if whole:
                self._settle_text(item, {(0, refusal): whole}, refusal)
        envelope = {key: final[key] for key in ("id", "status", "phase") if final.get(key) is not None}
        for draft in item.drafts[:1]:
            draft.data = {"message": envelope}

    def _done_reasoning(self, item: _Item, final: JsonObject) -> None:
        raw, summary = (_sections(final.get(key)) for key in ("content", "summary"))
        draft = item.draft
        if not isinstance(draft, ReasoningDraft):
            draft = self.answer.add(ReasoningDraft())
            item.drafts.append(draft)
        if not draft.chunks:
            draft.summary = not raw
        whole = summary if draft.summary else raw
        if whole.startswith(draft.text):
            self.answer.reasoning(whole[len(draft.text) :], draft)
        elif whole:
            draft.replace(whole)
        draft.data = {"item": dict(final)}
        self.answer.changes += 1

    def _done_call(self, item: _Item, final: JsonObject) -> None:
        call = self._call(item)
        call.name = as_text(final.get("name")) or call.name
        call.wire_id = call.wire_id or as_text(final.get("call_id")) or None
        given = final.get("arguments")
        self._arguments(item, json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else as_text(given))
        call.data = {"call": {key: final[key] for key in ("id", "status") if final.get(key) is not None}}
        self.answer.close_call(call)

    def _finish(self, response: JsonObject, kind: str) -> None:
        output = [as_object(final) for final in as_list(response.get("output"))]
        if not any(item.done for item in self._known().values()):
            for position, final in enumerate(output):
                self._done(position, final)
        else:
            self._add_missing_calls(output)
        usage, searches = as_object(response.get("usage")), self._searches(response)
        if usage or searches:
            self.answer.report_usage(structs.replace(read_usage(usage), web_searches=searches))
        status = as_text(response.get("status")) or kind.removeprefix("response.").replace("done", "completed")
        if status == "failed" or response.get("error"):
            self.answer.stop("failed", "error")
            error = {"error": response.get("error") or {"message": "the response failed"}}
            self.fail_wire(read_error(error, host=self.answer.origin.host))
        elif status == "incomplete":
            reason = as_text(as_object(response.get("incomplete_details")).get("reason"))
            self.answer.stop(reason or status, _INCOMPLETE.get(reason, "unknown"), "incomplete")
            self.answer.complete()
        else:
            self.answer.stop(status, _STATUSES.get(status, "unknown"))
            self.answer.cited(sources_of(annotation for item in self._all() for annotation in _annotations(item.final)))
            self.answer.complete()

    def _searches(self, response: JsonObject) -> int | None:
        """Number of billed searches, as reported or counted; None without any."""
        told = as_object(as_object(response.get("tool_usage")).get("web_search")).get("num_requests")
        items = [item.final for item in self._all() if item.final.get("type") == "web_search_call"]
        counted = sum(map(is_billed, items))
        return as_int(told) or counted or None

    def _add_missing_calls(self, output: Sequence[JsonObject]) -> None:
        """Add calls of the finished response that no event announced. If the known ones have other ids in it, nothing
        is certain, and no call may run twice."""
        known = {call.wire_id for call in self.answer.calls}
        calls = [item for item in output if item.get("type") == "function_call" and as_text(item.get("call_id"))]
        missing = [item for item in calls if item["call_id"] not in known]
        if len(missing) == len(calls) - len(self.answer.calls):
            for item in missing:
                self._done(max(self._known(), default=-1) + 1, item)


def _is_search(item: JsonObject) -> bool:
    """Whether the model searches for tools and leaves it to swecli; a provider's own search is kept unchanged."""
    return item.get("type") == "tool_search_call" and item.get("execution") == "client"


def _sections(parts: object) -> str:
    texts = (as_text(as_object(part).get("text")) for part in as_list(parts))
    return "\n\n".join(text for text in texts if text)


def _annotations(item: JsonObject) -> list[object]:
    """Citations in the texts of a message."""
    return [note for part in as_list(item.get("content")) for note in as_list(as_object(part).get("annotations"))]


def _message_texts(item: JsonObject) -> tuple[str, str]:
    parts = [as_object(part) for part in as_list(item.get("content"))]
    text = "".join(as_text(part.get("text")) for part in parts if part.get("type") in ("output_text", "text"))
    return text, "".join(as_text(part.get("refusal")) for part in parts)


def read_usage(usage: JsonObject) -> Usage:
    details = as_object(usage.get("input_tokens_details"))
    write = details.get("cache_write_tokens")
    if isinstance(write, dict):
        write = sum(
            number for value in as_object(details.get("cache_write_tokens")).values() if (number := as_int(value))
        )
    return Usage(
        input_total=as_int(usage.get("input_tokens")),
        cache_read=as_int(details.get("cached_tokens")),
        cache_write=first_int(write),
        output_total=as_int(usage.get("output_tokens")),
        reasoning=as_int(as_object(usage.get("output_tokens_details")).get("reasoning_tokens")),
        cost=read_cost(usage),
    )
