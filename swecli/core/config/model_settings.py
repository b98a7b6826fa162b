"""The settings of models and of the providers that serve them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from swecli.core.config.section import Count, Seconds, Section, Tokens, Word

Protocol = Literal["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate", "ollama-chat"]

_MODEL = re.compile(r"[^/\s]+/\S+")
_REFERENCE = re.compile(r"[A-Za-z0-9_.-]+|[^/\s]+/\S+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _model(value: str) -> str:
    if not _MODEL.fullmatch(value):
        raise ValueError('must be "provider/model", for example "anthropic/claude-sonnet-5-5"')
    return value


def _reference(value: str) -> str:
    if not _REFERENCE.fullmatch(value):
        raise ValueError('must be "provider/model" or an alias, for example "anthropic/claude-sonnet-5-5"')
    return value


def _variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise ValueError("must be the name of an environment variable, never the key itself")
    return value


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+\S*", value):
        raise ValueError("must be an address that starts with http:// or https://")
    return value


def _header_names(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not _HEADER.fullmatch(name) or not text.isprintable():
            raise ValueError("must be header names with text values on one line")
    return value


Model = Annotated[str, AfterValidator(_model)]
"""``provider/model``."""
Reference = Annotated[str, AfterValidator(_reference)]
"""``provider/model``, an alias, or one of the names main, summary and small."""


class ModelSettings(Section):
    """The models by their roles, and how long to wait for an answer."""

    name: Reference | None = None
    """The main model: it answers."""
    summary: Reference | None = None
    """Writes summaries when the context is compacted; unset: the main model."""
    small: Reference | None = None
    """Answers questions beside the conversation; unset: the main model."""
    fallback: tuple[Reference, ...] = ()
    """Asked in this order while the main model is overloaded or out of quota for the moment."""
    effort: Word | None = None
    """How much the main model thinks, in the provider's word; unset: the provider's default."""
    first_token_timeout: Seconds | None = None
    """Seconds until the first piece of an answer; unset: 10 minutes, for a local server an hour."""
    stall_timeout: Seconds = 120.0
    """Seconds between two pieces of an answer."""


Dollars = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
"""US dollars for a million tokens."""


class PriceSettings(Section):
    """What a model costs. A cache rate that is unset is that of the input."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None


class ModelsSettings(Section):
    """What is said of single models."""

    aliases: dict[Word, Model] = Field(default_factory=dict)
    """Short names."""
    effort: dict[Model, Word] = Field(default_factory=dict)
    """How much each thinks; comes before ``model.effort``."""
    window: dict[Model, Tokens] = Field(default_factory=dict)
    """Context windows; come before everything else that is known of them."""
    price: dict[Model, PriceSettings] = Field(default_factory=dict)
    """Prices; come before the catalogue, but not before what a provider reports."""


class DialectSettings(Section):
    """How a server differs from the usual form of its protocol. What is unset is as for servers of its kind."""

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    system_role: Literal["system", "developer"] | None = None
    include_usage: bool | None = None
    reasoning_field: Word | None = None
    echo_reasoning: Literal["must", "may", "never"] | None = None
    effort: (
        Literal[
            "none",
            "reasoning_effort",
            "reasoning",
            "thinking",
            "enable_thinking",
            "output_config",
            "budget",
            "level",
            "think",
        ]
        | None
    ) = None
    prompt_cache_key: bool | None = None
    cache_control: bool | None = None
    session_header: Word | None = None
    tool_ids: Literal["any", "alnum9", "token40", "token64"] | None = None
    parse_arguments: bool | None = None
    tool_result_name: bool | None = None
    assistant_after_tool: bool | None = None
    think_tags: Literal["keep", "split", "opened"] | None = None
    tool_calls: Literal["native", "auto", "text"] | None = None
    body: dict[str, Any] | None = None
    """Sent with every request."""

    @property
    def given(self) -> dict[str, Any]:
        """The flags that are set."""
        return {name: value for name, value in self if value is not None}


class ProviderSettings(Section):
    """One provider under a name of the user's choice."""

    protocol: Protocol | None = None
    """The protocol that the server speaks."""
    base_url: Annotated[str, AfterValidator(_url)] | None = None
    """Address of its API."""
    api_key_env: Annotated[str, AfterValidator(_variable)] | None = None
    """Name of the environment variable that holds the key; never the key itself."""
    headers: Annotated[dict[str, str], AfterValidator(_header_names)] = Field(default_factory=dict)
    """Headers of every request."""
    window: Tokens | None = None
    """Context window of its models in tokens, where it can't be asked."""
    max_output: Count | None = None
    """The longest answer of its models in tokens."""
    dialect: DialectSettings = DialectSettings()
    """How the server differs from the usual form of its protocol."""
