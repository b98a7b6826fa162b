"""Dialects: how hosts and models differ within one protocol, as data (``dialects.toml``)."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.llm.json_values import JsonObject
from swecli.core.llm.protocols.arguments import IdAlphabet
from swecli.core.llm.text import ThinkTags

EffortStyle = Literal[
    "none", "reasoning_effort", "reasoning", "thinking", "enable_thinking", "output_config", "budget", "level", "think"
]
"""Where a host reads the reasoning effort from."""


class Dialect(Struct, frozen=True):
    """The quirks of one host and model. The defaults are those of an unknown host."""

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer"] = "system"
    include_usage: bool = True
    """Ask for usage with ``stream_options``."""
    reasoning_field: str = "reasoning_content"
    """Where reasoning goes back, if the answer did not show it."""
    echo_reasoning: Literal["must", "may", "never"] = "may"
    """``must``: every assistant message with calls carries the reasoning field, an empty one too."""
    unsigned_thinking: bool = True
    """Takes thinking blocks back that came without a signature."""
    effort: EffortStyle = "none"
    efforts: dict[str, str] = field(default_factory=lambda: {})
    """The host's words for our words for effort, where they differ."""
    prompt_cache_key: bool = False
    cache_control: bool = False
    """Takes Anthropic's cache breakpoints in chat content parts."""
    session_header: str = ""
    """Header that keeps a conversation on one server."""
    tool_ids: IdAlphabet = "any"
    tool_result_name: bool = False
    assistant_after_tool: bool = False
    """A user message must not follow a tool result directly."""
    tool_references: bool = False
    """Tools can be named in a result instead of standing at the beginning: those that are found later leave the cache
    as it is."""
    think_tags: ThinkTags = "keep"
    tool_calls: Literal["native", "auto", "text"] = "native"
    """``auto``: calls that are written as text count too; ``text``: the model knows no tools, so they are described
    in the prompt."""
    default_max_tokens: int | None = None
    """Sent where neither the request nor the catalogue names a limit."""
    signature_dummy: str = ""
    """Stands in for the signature of a call that another model made."""
    thoughts: bool = False
    """Ask for readable thoughts."""
    body: JsonObject = field(default_factory=lambda: {})
    """Sent with every request."""


class _Rule(Struct, frozen=True):
    """Where some quirks apply; shell patterns, or lists of them."""

    quirks: dict[str, Any]
    protocol: str = ""
    host: str | tuple[str, ...] = "*"
    model: str | tuple[str, ...] = "*"

    def applies(self, protocol: str, host: str, model: str) -> bool:
        return self.protocol in ("", protocol) and _matches(host, self.host) and _matches(model, self.model)


def _matches(name: str, patterns: str | tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in ((patterns,) if isinstance(patterns, str) else patterns))


def find_dialect(protocol: str, host: str, model: str) -> Dialect:
    """The dialect of ``model`` at ``host``: all rules that apply, later ones over earlier ones."""
    dialect = Dialect()
    for rule in _rules():
        if rule.applies(protocol, host.lower(), model.lower()):
            dialect = replace(dialect, **rule.quirks)
    return dialect


@cache
def _rules() -> tuple[_Rule, ...]:
    """The rules of ``dialects.toml``, where quirks stand beside what they apply to."""
    data = files("swecli.core.llm").joinpath("dialects.toml").read_bytes()
    tables = msgspec.toml.decode(data, type=dict[Literal["rule"], tuple[dict[str, Any], ...]])["rule"]
    own = set(_Rule.__struct_fields__) - {"quirks"}
    rules: list[_Rule] = []
    for table in tables:
        quirks = {key: value for key, value in table.items() if key not in own}
        known = msgspec.convert(quirks, Dialect)
        rules.append(msgspec.convert({**table, "quirks": {key: getattr(known, key) for key in quirks}}, _Rule))
    return tuple(rules)


_SWITCH = ("none", "high")
"""Where thinking can be on or off."""
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
"""Styles that leave no other words, whatever a list of models says."""


def offered(style: EffortStyle, listed: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The words for a model whose host reads them in this ``style``; ``listed`` are those of the catalogue. Empty: it
    takes none. None: nobody knows."""
    if style in _CERTAIN or listed is None:
        return () if listed == () else _BY_STYLE.get(style)
    return listed
