"""Events of a session as spans and measurements, named by OpenTelemetry's conventions for generative AI (1.37 and
later, in development): https://opentelemetry.io/docs/specs/semconv/gen-ai/. What they have no name for begins with
``swecli.``.

    session -> invoke_agent swecli (a turn) -> chat MODEL (a request), execute_tool NAME -> invoke_agent PROFILE ...

Without ``content`` no text of the user, the model or a file is in them, and no path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from opentelemetry import trace  # pyright: ignore[reportMissingImports] - of the extra otel
from opentelemetry.trace import SpanKind, Status, StatusCode  # pyright: ignore[reportMissingImports]

from swecli import __version__
from swecli.core.protocol.events import (
    AgentStarted,
    CompactionCompleted,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ModelResponded,
    PermissionRequested,
    PermissionResolved,
    RetryScheduled,
    SideAnswered,
    StepEnded,
    StepStarted,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart, Usage

MOST_TEXT = 32_000
"""Characters of one text."""
_PROVIDERS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "api.mistral.ai": "mistral_ai",
    "api.groq.com": "groq",
    "api.deepseek.com": "deepseek",
    "api.x.ai": "x_ai",
    "api.perplexity.ai": "perplexity",
    "api.cohere.com": "cohere",
}
"""Names of the conventions by host."""
_BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Both as the conventions recommend."""

Attributes = Mapping[str, Any]


class Spans:
    """The open spans of a session. ``tracer`` and ``meter`` are OpenTelemetry's. ``content`` masks the secrets of
    a text that is sent; None: no text is sent."""

    def __init__(
        self, tracer: Any, meter: Any, session: str, *, content: Callable[[str], str] | None, resumed: bool
    ) -> None:
        self._tracer = tracer
        self._content = content
        self._common = {"gen_ai.conversation.id": session}
        self._session = tracer.start_span("session", attributes={**self._common, "swecli.session.resumed": resumed})
        self._turns: dict[str, Any] = {}
        """Turns by agent."""
        self._tools: dict[str, Any] = {}
        """Calls by item."""
        self._callers: dict[str, tuple[str, str]] = {}
        """Item of the call and profile, by subagent."""
        self._steps: dict[str, int] = {}
        """When the newest request of an agent began, in nanoseconds."""
        self._texts: dict[str, str] = {}
        """The user's newest text by agent, with ``content``."""
        self._asked: dict[str, tuple[str, str]] = {}
        """Item and tool by request for permission."""
        self._models: dict[str, dict[str, str]] = {}
        """Attributes of the model by agent."""
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens of a request", explicit_bucket_boundaries_advisory=_BUCKETS
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "Duration of a request",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._cached = meter.create_counter("swecli.tokens.cached", "{token}", "Input tokens from the prompt cache")
        self._cost = meter.create_counter("swecli.cost", "{USD}", "Cost of requests in US dollars")
        self._approvals = meter.create_counter("swecli.approvals", "{approval}", "Answered requests for approval")
        self._compactions = meter.create_counter("swecli.compactions", "{compaction}", "Compactions of the context")

    def add(self, event: Event) -> None:
        body, agent, at = event.body, event.agent, int(event.ts * 1e9)
        match body:
            case TurnStarted():
                self._begin_turn(agent, at)
            case AgentStarted(agent=name, item=item, profile=profile):
                self._callers[name] = item, profile
            case StepStarted():
                self._steps[agent] = at
            case ModelResponded():
                self._request(agent, body, at)
            case StepEnded(cost=cost):
                self._spent(cost, self._models.get(agent, {}))
            case SideAnswered(model=model, usage=usage, cost=cost):
                named = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model.partition("/")[2] or model}
                self._used(usage, named)
                self._spent(cost, named)
            case ItemStarted() | ItemCheckpointed() | ItemCompleted():
                self._item(agent, body, at)
            case PermissionRequested(request=request, item=item, tool=tool):
                self._asked[request] = item, tool
            case PermissionResolved():
                self._resolved(body, at)
            case RetryScheduled(attempt=attempt, kind=kind):
                if (turn := self._turns.get(agent)) is not None:
                    turn.add_event("swecli.retry", {"swecli.attempt": attempt, "error.type": kind}, at)
            case CompactionCompleted(tokens_before=before, tokens_after=after):
                self._compactions.add(1)
                self._session.add_event("swecli.compaction", {"swecli.before": before, "swecli.after": after}, at)
            case TurnEnded(outcome=outcome, usage=usage, error_kind=kind):
                self._end_turn(agent, outcome, usage, kind, at)
            case _:
                return

    def _begin_turn(self, agent: str, at: int) -> None:
        item, profile = self._callers.get(agent, ("", "swecli"))
        around = self._tools.get(item, self._session)
        named = {
            **self._common,
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": profile,
            "gen_ai.agent.id": agent,
            "gen_ai.agent.version": __version__,
        }
        self._turns[agent] = self._begin(f"invoke_agent {profile}", around, named, at)

    def _begin(
        self, name: str, around: Any, attributes: Attributes, at: int, kind: SpanKind = SpanKind.INTERNAL
    ) -> Any:
        context = trace.set_span_in_context(around)
        return self._tracer.start_span(name, context, kind, attributes=dict(attributes), start_time=at)

    def _request(self, agent: str, answer: ModelResponded, at: int) -> None:
        origin = answer.origin
        model = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _PROVIDERS.get(origin.host, origin.host.partition(":")[0]),
            "gen_ai.request.model": origin.model,
        }
        self._models[agent] = model
        took = answer.duration_ms
        begun = at - took * 1_000_000 if took is not None else self._steps.get(agent, at)
        host, _, port = origin.host.partition(":")
        more: dict[str, Any] = {
            "server.address": host,
            "gen_ai.response.finish_reasons": [answer.stop.raw or answer.stop.kind or "unknown"],
        }
        if port.isdecimal():
            more["server.port"] = int(port)
        if answer.response_id:
            more["gen_ai.response.id"] = answer.response_id
        if answer.first_token_ms is not None:
            more["gen_ai.response.time_to_first_chunk"] = answer.first_token_ms / 1000
        usage = answer.usage or Usage()
        counted = {
            "gen_ai.usage.input_tokens": usage.input_total,
            "gen_ai.usage.output_tokens": usage.output_total,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
        }
        more |= {name: value for name, value in counted.items() if value is not None}
        around = self._turns.get(agent, self._session)
        span = self._begin(f"chat {origin.model}", around, {**self._common, **model, **more}, begun, SpanKind.CLIENT)
        if self._content and (text := self._texts.get(agent)):
            span.set_attribute("gen_ai.input.messages", _message("user", self._content(text)))
        if not answer.complete:
            span.set_attribute("error.type", "incomplete")
            span.set_status(Status(StatusCode.ERROR))
        span.end(at)
        self._seconds.record(max(0, at - begun) / 1e9, model)
        self._used(answer.usage, model)

    def _used(self, usage: Usage | None, model: Attributes) -> None:
        if usage is None:
            return
        for kind, count in (("input", usage.input_total), ("output", usage.output_total)):
            if count is not None:
                self._tokens.record(count, {**model, "gen_ai.token.type": kind})
        if usage.cache_read:
            self._cached.add(usage.cache_read, dict(model))

    def _spent(self, cost: str | None, model: Attributes) -> None:
        try:
            dollars = float(Decimal(cost)) if cost is not None else 0.0
        except InvalidOperation:
            return
        if dollars > 0:
            self._cost.add(dollars, dict(model))

    def _item(self, agent: str, body: ItemStarted | ItemCheckpointed | ItemCompleted, at: int) -> None:
        match body:
            case ItemStarted(item=item, kind="tool", name=name):
                named = {
                    **self._common,
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": name,
                    "gen_ai.tool.type": "extension" if name.startswith("mcp__") else "function",
                }
                self._tools[item] = self._begin(
                    f"execute_tool {name}", self._turns.get(agent, self._session), named, at
                )
            case ItemCheckpointed(item=item, part=ToolCallPart() as call) if item in self._tools:
                self._tools[item].set_attribute("gen_ai.tool.call.id", call.call_id)
                if self._content:
                    self._tools[item].set_attribute(
                        "gen_ai.tool.call.arguments", self._content(call.arguments)[:MOST_TEXT]
                    )
            case ItemCompleted(item=item, status=status) if item in self._tools:
                span = self._tools.pop(item)
                result = next((part.text for part in body.parts if isinstance(part, ToolResultPart)), "")
                if self._content and result:
                    span.set_attribute("gen_ai.tool.call.result", self._content(result)[:MOST_TEXT])
                if status != "ok":
                    span.set_attribute("error.type", status)
                    span.set_status(Status(StatusCode.ERROR))
                span.end(at)
            case ItemCompleted() if self._content:
                text = "\n".join(part.text for part in body.parts if isinstance(part, TextPart))
                if text and body.item.startswith("u"):
                    self._texts[agent] = text
                elif text and (turn := self._turns.get(agent)) is not None:
                    turn.set_attribute("gen_ai.output.messages", _message("assistant", self._content(text)))
            case _:
                return

    def _resolved(self, body: PermissionResolved, at: int) -> None:
        item, tool = self._asked.pop(body.request, ("", ""))
        told = {"swecli.choice": body.choice, "swecli.by": body.by, "gen_ai.tool.name": tool}
        self._approvals.add(1, told)
        if item in self._tools:
            self._tools[item].add_event("swecli.approval", told, at)

    def _end_turn(self, agent: str, outcome: str, usage: Usage | None, kind: str, at: int) -> None:
        turn = self._turns.pop(agent, None)
        if turn is None:
            return
        turn.set_attribute("swecli.outcome", outcome)
        if usage is not None and usage.input_total is not None:
            turn.set_attribute("gen_ai.usage.input_tokens", usage.input_total)
        if usage is not None and usage.output_total is not None:
            turn.set_attribute("gen_ai.usage.output_tokens", usage.output_total)
        if outcome in ("error", "limit", "blocked"):
            turn.set_attribute("error.type", kind or outcome)
            turn.set_status(Status(StatusCode.ERROR))
        turn.end(at)

    def end(self) -> None:
        """End everything that is still open."""
        for span in (*self._tools.values(), *self._turns.values(), self._session):
            span.end()


def _message(role: str, text: str) -> str:
    """A message as the conventions write it."""
    parts = [{"type": "text", "content": text[:MOST_TEXT]}]
    return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)
