"""Anthropic Messages with the rules of preserved thinking: thoughts signed over their prefix, refused or dropped
where it changed; system messages and their places; readable thoughts only on demand; the diagnosis of cache misses;
summaries by the server.

Sources: platform.claude.com, preserved-thinking and its pages, mid-conversation-system-messages, cache-diagnostics;
the types of anthropic 2.14.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from msgspec.structs import replace

from swecli.core.llm.json_values import as_object, parse_object
from swecli.core.llm.scripted import Piece, RequestFacts
from swecli.core.protocol.messages import StopKind
from tests.support.loopback import ProtocolName, Received
from tests.support.prompt_caches import AnthropicCache, Charged, canonical, size
from tests.support.strict_server import Lost
from tests.support.wire import Answering, Body, without_cache_marks
from tests.support.wire_anthropic import AnthropicMessages

BINDING = "thinking-binding-controls-2026-08-01"
CLEAR_AT = "mid-conversation-system-clear-at-2026-08-21"
EFFORT = "mid-conversation-output-config-2026-07-01"
COMPACT = "compact-2026-09-04"
TOOL_CHANGES = "mid-conversation-tool-changes-2026-07-01"
FIELDS = frozenset(("display", "block_binding", "ttl", "diagnostics", "system", "clear_at", "effort", "tool_changes"))
"""What a server of the vendor knows."""
THOUGHTS = ("thinking", "redacted_thinking")
SEARCH_RESULT = "web_search_tool_result"
PREFIX, MODEL = "prefix_binding_mismatch", "model_binding_mismatch"
DIFFERENT = (
    "messages.{at}.content.{place}: Invalid `signature` in `thinking` block. The block is bound to a different "
    'conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


Search = Literal["all", "call", "result"]


@dataclass
class AnthropicRules:
    """``enforced``: the account is younger than the rule, so that the check needs no control. ``fields`` are those that
    the server knows. ``readers``: the models whose thoughts a model reads besides its own. ``omits``: thoughts arrive
    without text unless asked for. ``redacted`` and ``empty_text`` are numbers of requests (from 1) whose answers have
    their thought redacted, or begin with an empty text block. ``searches`` tells what of a web search an answer has, by
    the number of its request: all of it behind the first thought, the call at its end, or the result at its beginning.
    ``rewrite`` is what a proxy makes of requests."""

    enforced: bool = True
    fields: Collection[str] = FIELDS
    readers: Mapping[str, Collection[str]] = field(default_factory=lambda: {})
    omits: bool = True
    redacted: Collection[int] = ()
    empty_text: Collection[int] = ()
    searches: Mapping[int, Search] = field(default_factory=lambda: {})
    rewrite: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    cache: AnthropicCache = field(default_factory=AnthropicCache)
    protocol: ProtocolName = "anthropic"
    lost: list[Lost] = field(default_factory=list)
    """Thoughts that the server dropped, and those that the client left out of an answer that it sent back."""
    thoughts: int = 0
    """All thoughts that came back in requests which were not refused."""
    dropping: list[int] = field(default_factory=list)
    """Numbers of the requests with ``drop_block``."""
    answers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Signatures of an answer's thoughts, by the rest of its content."""
    prompts: dict[str, Body] = field(default_factory=dict)
    """Requests with ``diagnostics``, by the id of their answer."""
    summarised: dict[str, tuple[str, list[dict[str, Any]]]] = field(default_factory=dict)
    """Text and messages of the summaries that the server wrote, by their signatures."""

    def wire(self) -> StrictMessages:
        return StrictMessages(self)

    def seen(self, body: Body) -> Body:
        return self.rewrite(json.loads(json.dumps(body))) if self.rewrite is not None else body

    def refusal(self, number: int, received: Received) -> str:
        body = self.seen(received.body)
        betas = received.headers.get("anthropic-beta", "")
        messages = body.get("messages", [])
        wrong = self._unknown(body, betas) or _misplaced(messages) or _unpaired(messages)
        wrong = wrong or self._wrong_summary(body, betas)
        if wrong:
            return wrong
        drops = _drops(body)
        dropped, allowed = self.examine(body)
        mismatch = [path for path, reason in dropped if reason == PREFIX]
        if mismatch and not drops and self.enforced:
            _, at, _, place = mismatch[0].split(".")
            return DIFFERENT.format(at=at, place=place)
        if drops:
            self.dropping.append(number)
        checked = drops or self.enforced
        self.lost += [Lost(number, reason, path) for path, reason in dropped if checked or reason == MODEL]
        self.lost += [Lost(number, "left out") for _ in range(self._left_out(body))]
        self.thoughts += allowed + len(dropped)
        return ""

    def examine(self, body: Body) -> tuple[list[tuple[str, str]], int]:
        """Invalid thoughts as path and reason, and the number of valid ones."""
        model, wrong, valid = str(body.get("model")), list[tuple[str, str]](), 0
        messages: list[dict[str, Any]] = body.get("messages", [])
        for at, message in enumerate(messages):
            content = _content(message)
            for place, block in enumerate(content):
                if block.get("type") not in THOUGHTS:
                    continue
                maker, _, digest = str(block.get("signature") or block.get("data")).rpartition(".")
                if maker != model and maker not in self.readers.get(model, ()):
                    wrong.append((f"messages.{at}.content.{place}", MODEL))
                elif all(
                    digest != prefix_digest(body, before, content[:place]) for before in self.stood_for(messages[:at])
                ):
                    wrong.append((f"messages.{at}.content.{place}", PREFIX))
                else:
                    valid += 1
        return wrong, valid

    def stood_for(self, messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
        """The messages, and what the summaries at their beginning stand for."""
        yield messages
        while messages and (block := _summary_in(messages[0])) is not None:
            messages = [*self.summarised[block["signature"]][1], *messages[1:]]
            yield messages

    def _wrong_summary(self, body: Body, betas: str) -> str:
        messages: list[dict[str, Any]] = body.get("messages", [])
        blocks = [at for at, message in enumerate(messages) if _summary_in(message) is not None]
        if (blocks or "compaction" in body) and COMPACT not in betas:
            return f"compaction: requires anthropic-beta: {COMPACT}"
        if len(blocks) > 1 or blocks not in ([], [0]):
            return "compaction_block_misplaced: exactly one compaction block, first in messages"
        if blocks:
            block = without_cache_marks(_summary_in(messages[0]) or {})
            known = self.summarised.get(str(block.get("signature")))
            if known is None or known[0] != block.get("content") or set(block) != {"type", "content", "signature"}:
                return "compaction_signature_invalid: the block was changed"
        if "compaction" not in body:
            return ""
        if "context_management" in body or "format" in (body.get("output_config") or {}):
            return "compaction: cannot be combined with context_management or output_config.format"
        if any(block.get("type") == "tool_use" for block in _content(messages[-1] if messages else {})):
            return "compaction: the last assistant turn ends in a tool call with no result yet"
        return ""

    def _left_out(self, body: Body) -> int:
        """Thoughts of answers in the request without which they came back."""
        model, missing = str(body.get("model")), 0
        for message in body.get("messages", []):
            if message.get("role") != "assistant":
                continue
            content = _content(message)
            there = {str(block.get("signature") or block.get("data")) for block in content}
            rest = canonical(without_cache_marks([block for block in content if block.get("type") not in THOUGHTS]))
            signed = [name for name in self.answers.get(rest, ()) if name.rpartition(".")[0] == model]
            missing += sum(name not in there for name in signed)
        return missing

    def _unknown(self, body: Body, betas: str) -> str:
        thinking: Mapping[str, Any] = body.get("thinking") or {}
        extra = "Extra inputs are not permitted"
        for name, beta in (("display", ""), ("block_binding", BINDING)):
            if name in thinking and (name not in self.fields or beta not in betas):
                return f"thinking.{thinking.get('type')}.{name}: {extra}"
        if "block_binding" in thinking and thinking.get("type") == "disabled":
            return f"thinking.disabled.block_binding: {extra}"
        if "diagnostics" in body and "diagnostics" not in self.fields:
            return f"diagnostics: {extra}"
        if "ttl" not in self.fields and '"ttl"' in json.dumps(body):
            return f"system.0.cache_control.ephemeral.ttl: {extra}"
        for at, message in enumerate(body.get("messages", [])):
            if message.get("role") == "system" and "system" not in self.fields:
                return f"messages.{at}: role 'system' is not supported on this model"
            for name, key, beta in (("clear_at", "clear_at", CLEAR_AT), ("effort", "output_config", EFFORT)):
                if key in message and (name not in self.fields or beta not in betas):
                    return f"messages.{at}.{key}: {extra}"
            changes = [block for block in _content(message) if block.get("type") in ("tool_addition", "tool_removal")]
            if changes and ("tool_changes" not in self.fields or TOOL_CHANGES not in betas):
                return f"messages.{at}.content.0: Input tag 'tool_addition' found using 'type' does not match"
        return ""

    def diagnosed(self, body: Body) -> dict[str, Any] | None:
        """The answer to ``diagnostics``; None if it was not asked."""
        asked = body.get("diagnostics")
        if not isinstance(asked, dict):
            return None
        before = asked.get("previous_message_id")
        if before is None:
            return {"cache_miss_reason": None}
        previous = self.prompts.get(before)
        if previous is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        return {"cache_miss_reason": _difference(previous, body)}


def _difference(previous: Body, body: Body) -> dict[str, Any] | None:
    plain, known = without_cache_marks(dict(body)), without_cache_marks(dict(previous))
    for name in ("model", "system", "tools"):
        if plain.get(name) != known.get(name):
            return {"type": f"{name}_changed", "cache_missed_input_tokens": size(known)}
    earlier = known["messages"]
    if plain["messages"][: len(earlier)] != earlier:
        return {"type": "messages_changed", "cache_missed_input_tokens": size(earlier)}
    others = ("thinking", "tool_choice", "output_config")
    return {"type": "unavailable"} if any(plain.get(name) != known.get(name) for name in others) else None


def prefix_digest(body: Body, messages: Sequence[Mapping[str, Any]], content: Sequence[Any]) -> str:
    """Of all before a block: system prompt, tools that are not deferred, messages, and the blocks before it."""
    tools = [tool for tool in body.get("tools", []) if not tool.get("defer_loading")]
    earlier: list[dict[str, Any]] = []
    for message in (*messages, *([{"role": "assistant", "content": content}] if content else [])):
        if earlier and message["role"] == "assistant" == earlier[-1]["role"]:  # an answer that was continued
            earlier[-1] = {**earlier[-1], "content": [*earlier[-1]["content"], *_content(message)]}
        else:
            earlier.append({**message, "content": _content(message)})
    whole = [_content({"content": body.get("system", [])}), tools, earlier]
    return sha256(canonical(without_cache_marks(whole)).encode()).hexdigest()[:32]


def _content(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content", [])
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _summary_in(message: Mapping[str, Any]) -> dict[str, Any] | None:
    return next((block for block in _content(message) if block.get("type") == "compaction"), None)


def _drops(body: Body) -> bool:
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    return binding.get("prefix_mismatch_behavior") == "drop_block"


def _misplaced(messages: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with the places of system messages; one that only changes the effort may be anywhere."""
    for at, message in enumerate(messages):
        content = _content(message)
        if message.get("role") != "system" or (not content and message.get("output_config")):
            continue
        if not content:
            return f"messages.{at}: system message has neither content nor output_config"
        if at == 0 or messages[at - 1].get("role") != "user":
            return f"messages.{at}: a system message must follow a user message"
        if at + 1 < len(messages) and messages[at + 1].get("role") != "assistant":
            return f"messages.{at}: a system message must be last or precede an assistant message"
        if message.get("clear_at", "never") != "never" and any(
            block.get("type") != "text" or "cache_control" in block for block in content
        ):
            return f"messages.{at}: a message with clear_at has only text"
    return ""


def _unpaired(messages: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with calls of the server's tools: each has its result in the same answer, except at the end of the
    conversation, where the server goes on with it."""
    for at, message in enumerate(messages):
        content = _content(message)
        calls = [block["id"] for block in content if block.get("type") == "server_tool_use"]
        results = [block["tool_use_id"] for block in content if block.get("type") == SEARCH_RESULT]
        following = messages[at + 1 :]
        goes_on = bool(following) and following[0].get("role") == "assistant"
        before = messages[at - 1] if at else {}
        earlier = [block["id"] for block in _content(before) if block.get("type") == "server_tool_use"]
        if following and not goes_on and (missing := [name for name in calls if name not in results]):
            return f"messages.{at}: `web_search` tool use with id `{missing[0]}` was found without a `{SEARCH_RESULT}`"
        if lone := [name for name in results if name not in (*calls, *earlier)]:
            return f"messages.{at}: unexpected `tool_use_id` found in `{SEARCH_RESULT}` blocks: {lone[0]}"
    return ""


def _unoffered(body: Body) -> str:
    """What is wrong with changes of tools: one withdraws only what is offered, and adds only what is not."""
    offered = {tool["name"] for tool in body.get("tools", []) if "name" in tool}
    for at, message in enumerate(body.get("messages", [])):
        for block in _content(message):
            match block:
                case {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}:
                    if name not in offered:
                        return f"messages.{at}: tool_removal: '{name}' is not available"
                    offered.remove(name)
                case {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": name}}}:
                    if name in offered:
                        return f"messages.{at}: tool_addition: '{name}' is available already"
                    offered.add(name)
                case _:
                    pass
    return ""


class StrictMessages(AnthropicMessages):
    """One answer under the rules."""

    def __init__(self, rules: AnthropicRules) -> None:
        super().__init__()
        self._rules = rules
        self._content: list[dict[str, Any]] = []
        self._signature = ""
        self._shown = True
        self._offset = 0
        self._charged = Charged(0, 0, 0)
        self._summary = ""

    def facts(self, body: Body) -> RequestFacts:
        """Calls behind a summary count too: no id comes twice in a conversation."""
        *_, whole = self._rules.stood_for(body.get("messages", []))
        calls = super().facts({**body, "messages": whole}).calls
        tools = bool(body.get("tools")) and "compaction" not in body
        return replace(super().facts(body), calls=calls, tools=tools)

    def objection(self, body: Body) -> str:
        messages = [message for message in body.get("messages", []) if message.get("role") != "system"]
        empty = {"type": "text", "text": ""}
        sent_back = [
            {**message, "content": [block for block in _content(message) if without_cache_marks(block) != empty]}
            if message.get("role") == "assistant"
            else message
            for message in messages
        ]
        if sent_back and _summary_in(sent_back[0]) is not None:
            sent_back[0] = {"role": "user", "content": "summary"}
        return super().objection({**body, "messages": sent_back})

    def opening(self, answering: Answering) -> list[bytes]:
        rules, body = self._rules, self._rules.seen(answering.body)
        thinking: Mapping[str, Any] = body.get("thinking") or {}
        self._charged = rules.cache.charge(body)
        self._shown = not rules.omits or thinking.get("display") == "summarized"
        self._sign(answering)
        message = {
            "id": f"msg_{answering.number}",
            "type": "message",
            "role": "assistant",
            "model": answering.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0}
            if "compaction" in body
            else {**self._input(answering), "output_tokens": 1},
            **self._reports(answering, body),
        }
        if "diagnostics" in body:
            rules.prompts[str(message["id"])] = body
        opened = [event({"type": "message_start", "message": message}), event({"type": "ping"})]
        if rules.searches.get(answering.number) == "result":
            opened += self._say(_found(answering.number - 1))
            self._sign(answering)
        return opened

    def _sign(self, answering: Answering) -> None:
        """Sign the next thought, behind all that the answer has so far."""
        body = self._rules.seen(answering.body)
        self._signature = f"{answering.model}.{prefix_digest(body, body.get('messages', []), self._content)}"

    def _say(self, *blocks: Mapping[str, Any]) -> list[bytes]:
        """Whole blocks of the server's own."""
        events = self._close()
        for block in blocks:
            at = len(self._content)
            self._content.append(dict(block))
            events += _whole(at, block)
        self._offset += len(blocks)
        return events

    def _searched(self, answering: Answering) -> list[bytes]:
        """A whole search behind the first thought, and another thought about its result."""
        events = self._say(_asked(answering.number), _found(answering.number))
        self._sign(answering)
        thought = {"type": "thinking", "thinking": "I have it.", "signature": self._signature}
        return [*events, *self._say(thought)]

    def piece(self, piece: Piece, answering: Answering) -> list[bytes]:
        number = answering.number
        if "compaction" in answering.body:
            self._summary += piece.text
            return []
        if piece.kind == "reasoning" and number in self._rules.redacted:
            return self._redacted()
        events: list[bytes] = []
        if piece.kind != "reasoning" and self._rules.searches.get(number) == "all" and not self._offset:
            events = self._searched(answering)
        if piece.kind != "reasoning" and number in self._rules.empty_text and not self._offset:
            self._offset = 1
            at = piece.part
            events = [*self._close(), *_whole(at, {"type": "text", "text": ""})]
            self._content.append({"type": "text", "text": ""})
        self._note(piece)
        shifted = Piece(piece.kind, piece.part + self._offset, piece.text, piece.name, piece.call_id)
        if piece.kind == "reasoning" and not self._shown:
            opened = [self._start(shifted)] if self._open is None else []
            return [*events, *opened]
        return [*events, *super().piece(shifted, answering)]

    def closing(self, stop: StopKind, answering: Answering) -> list[bytes]:
        if "compaction" in answering.body:
            return self._summarised(answering)
        called = self._say(_asked(answering.number)) if self._rules.searches.get(answering.number) == "call" else []
        rest = [block for block in self._content if block["type"] not in THOUGHTS]
        for block in rest:
            if block["type"] == "tool_use":
                block["input"] = as_object(parse_object(block["input"] or "{}"))
        if any(block["type"] in THOUGHTS for block in self._content):
            self._rules.answers[canonical(rest)] = (self._signature,)
        return [*called, *super().closing(stop, answering)]

    def _summarised(self, answering: Answering) -> list[bytes]:
        """The block alone, whole, and its usage apart from the answer's."""
        signature = f"summary-{answering.number}"
        self._rules.summarised[signature] = (self._summary, without_cache_marks(answering.body["messages"]))
        block = {"type": "compaction", "content": self._summary, "signature": signature}
        iteration = {"type": "compaction", **self._input(answering), "output_tokens": len(self._summary) // 4}
        usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [iteration]}
        delta = {"stop_reason": "compaction" if self._summary else "end_turn", "stop_sequence": None}
        return [
            *(_whole(0, block) if self._summary else []),
            event({"type": "message_delta", "delta": delta, "usage": usage}),
            event({"type": "message_stop"}),
        ]

    def _redacted(self) -> list[bytes]:
        if self._content:
            return []
        block = {"type": "redacted_thinking", "data": self._signature}
        self._content.append(block)
        return _whole(0, block)

    def _note(self, piece: Piece) -> None:
        last = self._content[-1] if self._content else {}
        match piece.kind:
            case "reasoning":
                if last.get("type") != "thinking":
                    last = {"type": "thinking", "thinking": "", "signature": self._signature}
                    self._content.append(last)
                last["thinking"] += piece.text if self._shown else ""
            case "text":
                if last.get("type") != "text" or not last["text"]:
                    last = {"type": "text", "text": ""}
                    self._content.append(last)
                last["text"] += piece.text
            case "start":
                self._content.append({"type": "tool_use", "id": piece.call_id, "name": piece.name, "input": ""})
            case "arguments":
                last["input"] += piece.text
            case _:
                pass

    def _close(self) -> list[bytes]:
        if self._open is None:
            return []
        (index, kind), self._open = self._open, None
        signature = {"type": "signature_delta", "signature": self._signature}
        signed = [event({"type": "content_block_delta", "index": index, "delta": signature})]
        return [*(signed if kind == "reasoning" else []), event({"type": "content_block_stop", "index": index})]

    def _input(self, answering: Answering) -> dict[str, Any]:
        charged = self._charged
        return {
            "input_tokens": charged.plain,
            "cache_read_input_tokens": charged.read,
            "cache_creation_input_tokens": charged.written,
            "cache_creation": {
                "ephemeral_5m_input_tokens": charged.written - charged.hour,
                "ephemeral_1h_input_tokens": charged.hour,
            },
        }

    def _reports(self, answering: Answering, body: Body) -> dict[str, Any]:
        """What the answer says about the request: dropped thoughts, and why the cache missed."""
        reports: dict[str, Any] = {}
        if BINDING in answering.headers.get("anthropic-beta", ""):
            wrong, _ = self._rules.examine(body)
            checked = self._rules.enforced or _drops(body)
            reports["input_transformations"] = [
                {
                    "type": "thinking_dropped" if checked or reason == MODEL else "thinking_mismatch_allowed",
                    "path": path,
                    "reason": reason,
                }
                for path, reason in wrong
            ]
        diagnosed = self._rules.diagnosed(body)
        return reports if diagnosed is None else {**reports, "diagnostics": diagnosed}


def _asked(number: int) -> dict[str, Any]:
    """The call of a web search."""
    return {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {"query": "so?"}}


def _found(number: int) -> dict[str, Any]:
    page = {"type": "web_search_result", "url": "https://docs.example.org/a", "title": "A page"}
    result = {**page, "encrypted_content": f"SECRET{number}", "page_age": None}
    return {"type": SEARCH_RESULT, "tool_use_id": f"srvtoolu_{number}", "content": [result]}


def event(data: Mapping[str, Any]) -> bytes:
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return f"event: {data['type']}\ndata: {text}\n\n".encode()


def _whole(index: int, block: Mapping[str, Any]) -> list[bytes]:
    return [
        event({"type": "content_block_start", "index": index, "content_block": block}),
        event({"type": "content_block_stop", "index": index}),
    ]
