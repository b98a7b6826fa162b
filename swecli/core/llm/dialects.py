"""Dialects: differences between hosts and models within one protocol, as data (``dialects.toml``)."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.images import ImageLimits
from swecli.core.llm.json_values import JsonObject
from swecli.core.llm.protocols.arguments import IdAlphabet
from swecli.core.llm.text import ThinkTags

EffortStyle = Literal[
    "none", "reasoning_effort", "reasoning", "thinking", "enable_thinking", "output_config", "budget", "level", "think"
]
"""Field from which a host reads the reasoning effort."""


class Dialect(Struct, frozen=True):
    """The quirks of one host and model. The defaults apply to an unknown host."""

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer", "user"] = "system"
    """``user``: the model has no system message, so its text begins the first user message."""
    include_usage: bool = True
    """Ask for usage with ``stream_options``."""
    reasoning_field: str = "reasoning_content"
    """Field for returned reasoning, if the answer did not show it."""
    echo_reasoning: Literal["must", "may", "never"] = "may"
    """``must``: every assistant message with calls carries the reasoning field, even an empty one."""
    unsigned_thinking: bool = True
    """Accepts returned thinking blocks without a signature."""
    effort: EffortStyle = "none"
    efforts: dict[str, str] = field(default_factory=lambda: {})
    """The host's words for swecli's effort levels, if different."""
    prompt_cache_key: bool = False
    cache_control: bool = False
    """Accepts Anthropic's cache breakpoints in chat content parts."""
    cache_results: bool = False
    """Accepts them in results and answers too. LiteLLM's proxies refuse a request with one in a result."""
    session_header: str = ""
    """Header that keeps a conversation on one server."""
    tool_ids: IdAlphabet = "any"
    tool_result_name: bool = False
    assistant_after_tool: bool = False
    """A user message must not follow a tool result directly."""
    merge_roles: bool = False
    """Adjacent messages of one role become one message."""
    tool_references: bool = False
    """A tool result can define tools instead of the start of the request, so that tools found later preserve the
    cache."""
    think_tags: ThinkTags = "keep"
    tool_calls: Literal["native", "auto", "text"] = "native"
    """``auto``: calls written as text count too; ``text``: the model has no tool support, so the prompt describes the
    tools."""
    default_max_tokens: int | None = None
    """Limit if neither the request nor the catalogue has one."""
    signature_dummy: str = ""
    """Signature for a call by another model."""
    thoughts: bool = False
    """Ask for readable thoughts."""
    body: JsonObject = field(default_factory=lambda: {})
    """Sent with every request."""
    format_with_tools: Literal["always", "last", "never"] = "always"
    """Requests with tools that may ask for an answer by a schema. ``last``: those after which no call is wanted,
    because the schema prevents calls."""
    search_with_tools: bool = True
    """Takes the provider's web search in requests with other tools."""
    images: ImageLimits = ImageLimits()
    """Images that the host accepts."""


class _Rule(Struct, frozen=True):
    """Scope of some quirks: names, shell patterns with a ``*``, or lists of them."""

    quirks: dict[str, Any]
    protocol: str = ""
    host: str | tuple[str, ...] = "*"
    model: str | tuple[str, ...] = "*"

    def applies(self, protocol: str, host: str, model: str) -> bool:
        return self.protocol in ("", protocol) and _matches(host, self.host) and _matches(model, self.model)


def _matches(name: str, patterns: str | tuple[str, ...]) -> bool:
    several = (patterns,) if isinstance(patterns, str) else patterns
    return any(name == pattern or ("*" in pattern and fnmatchcase(name, pattern)) for pattern in several)


def find_dialect(protocol: str, host: str, model: str) -> Dialect:
    """The dialect of ``model`` at ``host``: all matching rules, later ones over earlier ones."""
    dialect = Dialect()
    for rule in _rules():
        if rule.applies(protocol, host.lower(), model.lower()):
            dialect = replace(dialect, **rule.quirks)
    return dialect


@cache
def _rules() -> tuple[_Rule, ...]:
    """The rules of ``dialects.toml``, with quirks next to their scope."""
    data = Path(__file__).with_name("dialects.toml").read_bytes()
    tables = msgspec.toml.decode(data, type=dict[Literal["rule"], tuple[dict[str, Any], ...]])["rule"]
    own = set(_Rule.__struct_fields__) - {"quirks"}
    rules: list[_Rule] = []
    for table in tables:
        quirks = {key: value for key, value in table.items() if key not in own}
        known = msgspec.convert(quirks, Dialect)
        rules.append(msgspec.convert({**table, "quirks": {key: getattr(known, key) for key in quirks}}, _Rule))
    return tuple(rules)


_SWITCH = ("none", "high")
"""Efforts of a model whose thinking is only on or off."""
_BY_STYLE: Mapping[EffortStyle, tuple[str, ...] | None] = {
    "none": (),
    "thinking": _SWITCH,
    "enable_thinking": _SWITCH,
    "think": _SWITCH,
    "budget": ("low", "medium", "high"),
    "level": ("low", "medium", "high"),
    "output_config": ("low", "medium", "high"),
}
_CERTAIN = ("none", "thinking", "enable_thinking", "think")
"""Styles with fixed words, whatever a list of models says."""


def offered(style: EffortStyle, listed: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Effort words for a model whose host uses this ``style``; ``listed`` are the catalogue's. Empty: it takes none.
    None: unknown."""
    if style in _CERTAIN or listed is None:
        return () if listed == () else _BY_STYLE.get(style)
    return listed
