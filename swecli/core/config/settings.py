"""The settings: every section and key that has an effect, with its default and what it allows."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from swecli.core.protocol.events import Mode

Protocol = Literal["openai-chat", "anthropic-messages"]

_MODEL_NAME = re.compile(r"[^/\s]+/\S+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD = re.compile(r"[A-Za-z0-9_.-]+")


def _model_name(value: str) -> str:
    if not _MODEL_NAME.fullmatch(value):
        raise ValueError('must be "provider/model", for example "anthropic/claude-sonnet-4-5"')
    return value


def _variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise ValueError("must be the name of an environment variable, never the key itself")
    return value


def _word(value: str) -> str:
    if not _WORD.fullmatch(value):
        raise ValueError("must be one word")
    return value


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+\S*", value):
        raise ValueError("must be an address that starts with http:// or https://")
    return value


def _header_names(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not text.isprintable():
            raise ValueError("must be header names with text values on one line")
    return value


Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=1_000)]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """Base of all sections. Values are taken as written: "10" is no number, true is no count."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AgentSettings(Section):
    """The agent's loop and its context window."""

    context_budget: Tokens | None = None
    """Tokens to use of the model's window; unset: what the model has."""
    max_output_tokens: Count | None = None
    """Tokens reserved for an answer; unset: by the model."""
    warn: Share = 0.80
    compact_trigger: Share = 0.95
    hard_block: Share = 0.98
    result_offload_threshold: Count = 4_096
    """Bytes of output of commands and servers that stay in the context; more is stored and read in parts."""
    max_steps: Count | None = None
    """Model calls in one turn; unset: no cap."""

    @model_validator(mode="after")
    def _ordered(self) -> AgentSettings:
        if not self.warn <= self.compact_trigger <= self.hard_block:
            raise ValueError(
                "warn, compact_trigger and hard_block must rise: "
                f"{self.warn:g}, {self.compact_trigger:g}, {self.hard_block:g} do not"
            )
        return self


class ModelSettings(Section):
    """The model that answers."""

    name: Annotated[str, AfterValidator(_model_name)] | None = None
    effort: Annotated[str, AfterValidator(_word)] | None = None
    """How much the model thinks, in the provider's word; unset: the provider's default."""
    first_token_timeout: Seconds = 300.0
    """Seconds until the first piece of an answer."""
    stall_timeout: Seconds = 120.0
    """Seconds between two pieces of an answer."""


class ProviderSettings(Section):
    """One provider under a name of the user's choice."""

    protocol: Protocol | None = None
    base_url: Annotated[str, AfterValidator(_url)] | None = None
    api_key_env: Annotated[str, AfterValidator(_variable)] | None = None
    headers: Annotated[dict[str, str], AfterValidator(_header_names)] = Field(default_factory=dict)
    window: Tokens | None = None
    """Context window of its models in tokens, where it can't be asked."""


class ApprovalSettings(Section):
    """What runs without a question. The rules' grammar belongs to the permission decision."""

    mode: Mode = "default"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class ToolSettings(Section):
    """The tools."""

    command_timeout: Seconds = 120.0
    """Seconds a shell command may run unless the model asks for another limit."""


class UiSettings(Section):
    """The terminal interface."""

    theme: Annotated[str, AfterValidator(_word)] = "auto"
    """A theme's name; "auto" follows the terminal."""


class Settings(Section):
    """All settings."""

    agent: AgentSettings = AgentSettings()
    model: ModelSettings = ModelSettings()
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    approval: ApprovalSettings = ApprovalSettings()
    tools: ToolSettings = ToolSettings()
    ui: UiSettings = UiSettings()
