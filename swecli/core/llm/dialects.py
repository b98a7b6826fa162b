"""Dialects: how hosts and models differ within one protocol, as data (``dialects.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from swecli.core.llm.json_values import JsonObject, as_list, as_object, as_text
from swecli.core.llm.protocols.arguments import IdAlphabet
from swecli.core.llm.text import ThinkTags

EffortStyle = Literal[
    "none", "reasoning_effort", "reasoning", "thinking", "enable_thinking", "output_config", "budget", "level", "think"
]
"""Where a host reads the reasoning effort from."""


@dataclass(frozen=True, slots=True)
class Dialect:
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


@dataclass(frozen=True, slots=True)
class _Rule:
    protocol: str
    hosts: tuple[str, ...]
    models: tuple[str, ...]
    quirks: dict[str, Any]

    def applies(self, protocol: str, host: str, model: str) -> bool:
        return (
            self.protocol in ("", protocol)
            and any(fnmatchcase(host, pattern) for pattern in self.hosts)
            and any(fnmatchcase(model, pattern) for pattern in self.models)
        )


def find_dialect(protocol: str, host: str, model: str) -> Dialect:
    """The dialect of ``model`` at ``host``: all rules that apply, later ones over earlier ones."""
    dialect = Dialect()
    for rule in _rules():
        if rule.applies(protocol, host.lower(), model.lower()):
            dialect = replace(dialect, **rule.quirks)
    return dialect


@cache
def _rules() -> tuple[_Rule, ...]:
    text = files("swecli.core.llm").joinpath("dialects.toml").read_text("utf-8")
    return tuple(_rule(as_object(item)) for item in as_list(tomllib.loads(text).get("rule")))


def _rule(table: JsonObject) -> _Rule:
    known = {item.name for item in fields(Dialect)}
    quirks = {key: value for key, value in table.items() if key not in ("protocol", "host", "model")}
    if unknown := quirks.keys() - known:
        raise ValueError(f"dialects.toml: unknown quirk {sorted(unknown)}")
    return _Rule(as_text(table.get("protocol")), _patterns(table.get("host")), _patterns(table.get("model")), quirks)


def _patterns(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(as_text(item) for item in as_list(value)) or ("*",)


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
