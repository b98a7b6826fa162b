"""OpenAI Responses with what GPT-6 enforces: reasoning items whose prefix changed are withheld from the model, which
the response reports; ``configuration_update``; the cache's options, its blocks of 1,024 tokens, and its diagnosis.

Source: the types of openai 3.57 (``types/responses/response.py``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from swecli.core.llm.scripted import Piece, RequestFacts
from swecli.core.protocol.messages import StopKind, Usage
from tests.support.loopback import ProtocolName, Received
from tests.support.prompt_caches import BlockCache, Charged, canonical, size
from tests.support.strict_server import Lost
from tests.support.wire import Answering, Body
from tests.support.wire_responses import OpenAIResponses

FIELDS = frozenset(("prompt_cache_options", "configuration_update", "comparison_response_id"))
PREFIX, MODEL = "prefix_mismatch", "model_mismatch"


@dataclass(frozen=True)
class _Made:
    """What a reasoning item was made from."""

    model: str
    prefix: str


@dataclass
class ResponsesRules:
    """``fields`` are those that the server knows; ``lost`` are the reasoning items that it withheld."""

    fields: Collection[str] = FIELDS
    cache: BlockCache = field(default_factory=BlockCache)
    protocol: ProtocolName = "responses"
    lost: list[Lost] = field(default_factory=list)
    thoughts: int = 0
    """All reasoning items that came back."""
    made: dict[str, _Made] = field(default_factory=dict)
    """By id."""
    prompts: dict[str, Body] = field(default_factory=dict)
    """Requests by the id of their response."""
    compacted: list[dict[str, Any]] = field(default_factory=list)
    """The summaries that the server wrote."""

    def wire(self) -> StrictResponses:
        return StrictResponses(self)

    def refusal(self, number: int, received: Received) -> str:
        body = received.body
        options: Mapping[str, Any] = body.get("prompt_cache_options") or {}
        items: Sequence[Mapping[str, Any]] = body.get("input", [])
        if options and "prompt_cache_options" not in self.fields:
            return "Unknown parameter: 'prompt_cache_options'."
        if "comparison_response_id" in options and "comparison_response_id" not in self.fields:
            return "Unknown parameter: 'prompt_cache_options.comparison_response_id'."
        if options.get("ttl", "30m") not in ("30m", "12h"):
            return "Invalid value for 'prompt_cache_options.ttl'. Supported values are: '30m' and '12h'."
        triggers = [at for at, item in enumerate(items) if item.get("type") == "compaction_trigger"]
        if triggers and triggers != [len(items) - 1]:
            return "compaction_trigger must be the final input item."
        for item in items:
            if item.get("type") == "compaction" and item not in self.compacted:
                return "The encrypted content of the compaction item could not be verified."
        for at, item in enumerate(items):
            if item.get("type") == "configuration_update" and "configuration_update" not in self.fields:
                return f"Invalid value: 'configuration_update'. Supported values for input[{at}].type are: ..."
        withheld = self.withheld(body)
        self.thoughts += sum(item.get("type") == "reasoning" for item in items)
        self.lost += [Lost(number, entry["reason"], entry["id"]) for entry in withheld]
        return ""

    def withheld(self, body: Body) -> list[dict[str, Any]]:
        """The reasoning items that the model does not see, as the response reports them."""
        model, wrong = str(body.get("model")), list[dict[str, Any]]()
        items: list[dict[str, Any]] = body.get("input", [])
        for at, item in enumerate(items):
            made = self.made.get(str(item.get("id"))) if item.get("type") == "reasoning" else None
            if made is None:
                continue
            reason = MODEL if made.model != model else "" if made.prefix == prefix_of(body, at) else PREFIX
            if reason:
                wrong.append({"id": item["id"], "action": "removed", "reason": reason, "type": "reasoning"})
        return wrong

    def diagnosed(self, body: Body) -> dict[str, Any] | None:
        """The answer to ``comparison_response_id``; None if it was not asked."""
        asked = (body.get("prompt_cache_options") or {}).get("comparison_response_id")
        if asked is None:
            return None
        previous = self.prompts.get(asked)
        if previous is None:
            return {"type": "comparison_response_not_found"}
        if previous.get("tools") != body.get("tools"):
            return {"type": "cache_miss", "reason": "tools_changed", "cache_missed_tokens": size(previous)}
        earlier = [previous.get("instructions"), *previous.get("input", [])]
        if [body.get("instructions"), *body.get("input", [])][: len(earlier)] != earlier:
            return {"type": "cache_miss", "reason": "input_changed", "cache_missed_tokens": size(earlier)}
        return {"type": "cache_hit"}


def prefix_of(body: Body, end: int | None = None) -> str:
    """All that a reasoning item at ``end`` follows."""
    return canonical([body.get("instructions"), body.get("tools"), *body.get("input", [])[:end]])


class StrictResponses(OpenAIResponses):
    """One answer under the rules."""

    def __init__(self, rules: ResponsesRules) -> None:
        super().__init__()
        self._rules = rules
        self._charged = Charged(0, 0, 0)

    def objection(self, body: Body) -> str:
        other = ("configuration_update", "compaction_trigger", "compaction")
        plain = [item for item in body.get("input", []) if item.get("type") not in other]
        return super().objection({**body, "input": plain})

    def opening(self, answering: Answering) -> list[bytes]:
        self._charged = self._rules.cache.charge(answering.body, self.prefix(answering.body))
        self._rules.prompts[f"resp_{answering.number}"] = json.loads(json.dumps(answering.body))
        return super().opening(answering)

    def facts(self, body: Body) -> RequestFacts:
        facts = super().facts(body)
        return replace(facts, tools=facts.tools and not _compacts(body))

    def piece(self, piece: Piece, answering: Answering) -> list[bytes]:
        if _compacts(answering.body):
            return []
        if piece.kind == "reasoning":
            made = _Made(answering.model, prefix_of(answering.body))
            self._rules.made.setdefault(f"rs_{answering.number}", made)
        return super().piece(piece, answering)

    def closing(self, stop: StopKind, answering: Answering) -> list[bytes]:
        made: list[bytes] = []
        if _compacts(answering.body):
            name = f"cmp_{answering.number}"
            item = {"id": name, "type": "compaction", "encrypted_content": f"sealed-{name}"}
            self._rules.compacted.append(item)
            self._output.append(item)
            made = [
                self._event(f"response.output_item.{when}", {"output_index": 0, "item": item})
                for when in ("added", "done")
            ]
        charged = self._charged
        output = answering.usage.output_total if answering.usage else 1
        usage = Usage(input_total=charged.total, cache_read=charged.read, output_total=output)
        told = Answering(answering.body, answering.model, answering.number, usage, answering.headers)
        return [*made, *super().closing(stop, told)]

    def _response(self, answering: Answering, status: str) -> dict[str, Any]:
        response = super()._response(answering, status)
        if wrong := self._rules.withheld(answering.body):
            response["input_transformations"] = wrong
        diagnosed = self._rules.diagnosed(answering.body)
        if diagnosed is not None:
            response["prompt_cache_diagnostics"] = diagnosed
        return response


def _compacts(body: Body) -> bool:
    items = body.get("input", [])
    return bool(items) and items[-1].get("type") == "compaction_trigger"
