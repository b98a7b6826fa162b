"""The settings: every section and key that has an effect, with its default and what it allows."""

from __future__ import annotations

from pydantic import Field, model_validator

from swecli.core.config.model_settings import ModelSettings, ModelsSettings, ProviderSettings
from swecli.core.config.section import Count, Seconds, Section, Share, Tokens, Word
from swecli.core.protocol.events import Mode


class AgentSettings(Section):
    """The agent's loop and its context window."""

    context_budget: Tokens | None = None
    """Tokens to use of the model's window; unset: what the model has."""
    max_output_tokens: Count | None = None
    """Tokens reserved for an answer; unset: by the model."""
    warn: Share = 0.80
    compact_trigger: Share = 0.95
    hard_block: Share = 0.98
    target_tokens: Tokens | None = None
    """Tokens of a request from which on it is compacted in any case; unset: only ``compact_trigger`` counts."""
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
        if self.target_tokens is not None and self.target_tokens > (self.context_budget or self.target_tokens):
            raise ValueError(f"target_tokens {self.target_tokens} is above context_budget {self.context_budget}")
        return self


class ApprovalSettings(Section):
    """What runs without a question. The rules' grammar belongs to the permission decision."""

    mode: Mode = "default"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    require_trust: bool = False
    """Whether one-shot runs start only in trusted workspaces."""


class ToolSettings(Section):
    """The tools."""

    command_timeout: Seconds = 120.0
    """Seconds a shell command may run unless the model asks for another limit."""


class UiSettings(Section):
    """The terminal interface."""

    theme: Word = "auto"
    """A theme's name; "auto" follows the terminal."""


class Settings(Section):
    """All settings."""

    agent: AgentSettings = AgentSettings()
    model: ModelSettings = ModelSettings()
    models: ModelsSettings = ModelsSettings()
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    approval: ApprovalSettings = ApprovalSettings()
    tools: ToolSettings = ToolSettings()
    ui: UiSettings = UiSettings()
