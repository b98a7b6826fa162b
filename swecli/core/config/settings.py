"""The settings: every section and key that has an effect, with its default and what it allows."""

from __future__ import annotations

from pydantic import Field

from swecli.core.config.checkpoint_settings import CheckpointSettings
from swecli.core.config.context_settings import ContextSettings
from swecli.core.config.key_settings import KeySettings
from swecli.core.config.model_settings import ModelSettings, ModelsSettings, ProviderSettings
from swecli.core.config.sandbox_settings import SandboxSettings
from swecli.core.config.section import Count, Seconds, Section, Share, Tokens
from swecli.core.config.ui_settings import UiSettings
from swecli.core.protocol.events import Mode


class AgentSettings(Section):
    """The agent's loop and the limits of its context window."""

    context_budget: Tokens | None = None
    """Tokens to use of the model's window; unset: what the model has."""
    max_output_tokens: Count | None = None
    """Tokens reserved for an answer; unset: by the model."""
    compact_trigger: Share = 0.95
    """Share of the effective window at which swecli makes room by itself."""
    hard_block: Share = 0.98
    """Share of the effective window from which on nothing is sent until there is room."""
    result_offload_threshold: Count = 4_096
    """Bytes of output of commands and servers that stay in the context; more is stored and read in parts."""
    max_steps: Count | None = None
    """Model calls in one turn; unset: no cap."""


class ApprovalSettings(Section):
    """What runs without a question. The rules' grammar belongs to the permission decision."""

    mode: Mode = "default"
    """default asks before every change, accept-edits edits files of the workspace unasked, plan changes nothing, auto
    also runs commands where the sandbox contains them."""
    allow: tuple[str, ...] = ()
    """Rules about what runs without a question, such as Bash(npm test *)."""
    ask: tuple[str, ...] = ()
    """Rules about what is asked about in any case; they win over allow."""
    deny: tuple[str, ...] = ()
    """Rules about what never runs; they win over all others."""
    require_trust: bool = False
    """Whether one-shot runs start only in trusted workspaces."""


class ToolSettings(Section):
    """The tools."""

    command_timeout: Seconds = 120.0
    """Seconds a shell command may run unless the model asks for another limit."""
    web_fetch: bool = True
    """Whether pages of the web can be fetched; each host is asked about, or allowed by WebFetch(domain:host)."""


class Settings(Section):
    """All settings."""

    agent: AgentSettings = AgentSettings()
    context: ContextSettings = ContextSettings()
    model: ModelSettings = ModelSettings()
    models: ModelsSettings = ModelsSettings()
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    approval: ApprovalSettings = ApprovalSettings()
    sandbox: SandboxSettings = SandboxSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    tools: ToolSettings = ToolSettings()
    ui: UiSettings = UiSettings()
    keys: KeySettings = KeySettings()
