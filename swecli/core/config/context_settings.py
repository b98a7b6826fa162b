"""The settings of the context: when room is made, how, and what is kept."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from swecli.core.config.section import Count, Section, Share, Tokens

Strategy = Literal["chain", "truncation", "importance", "summarization"]
Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Pattern = Annotated[str, Field(min_length=1)]

ACTIONS = ("keep_turns", "keep_last", "until_file_changes", "head_tail", "offload_over", "never_drop")


class RetentionSettings(Section):
    """One rule about results in the context: what it is about (patterns with ``*`` and ``?``, all of them must match),
    and exactly one thing to do. The first rule that matches a result decides about it."""

    tool: Pattern = "*"
    """Name of the tool."""
    kind: Literal["result", "arguments"] = "result"
    """``arguments``: what the model wrote into finished calls that write files."""
    path: Pattern = "*"
    """The path or command that the call was about."""
    keep_turns: Count | None = None
    """Goes when its turn is so many turns ago."""
    keep_last: Count | None = None
    """Only the newest so many of them stay."""
    until_file_changes: bool = False
    """Goes when the file that it shows has been changed since."""
    head_tail: Count | None = None
    """What is longer than so many tokens keeps its beginning and end, half of them each."""
    offload_over: Count | None = None
    """What is longer than so many tokens leaves a reference."""
    never_drop: bool = False
    """Stays word for word in every compaction, that of a summary and the cutting of the oldest messages included."""

    def __str__(self) -> str:
        """The rule as people read it; also its name where something went by it."""
        about = [text for text in (self.tool, self.path) if text != "*"]
        about += [self.kind] if self.kind != "result" else []
        name = next((name for name in ACTIONS if getattr(self, name)), "")
        value = getattr(self, name, None)
        return f"{' '.join(about) or 'everything'}: {name}{'' if value is True else f' {value}'}"

    @model_validator(mode="after")
    def _one_action(self) -> RetentionSettings:
        given = [name for name in ACTIONS if getattr(self, name)]
        if len(given) != 1:
            found = f"not {' and '.join(given)}" if given else "none is there"
            raise ValueError(f"must have exactly one of {', '.join(ACTIONS)}: {found}")
        if self.kind == "arguments" and given[0] in ("until_file_changes", "head_tail"):
            raise ValueError(f"must not have {given[0]}: it is about results, and this rule is about arguments")
        return self


Amount = Annotated[Count | Share, Field(union_mode="left_to_right")]
"""A share of the effective window with a decimal point (0.1), or tokens without one."""


class ContextLimitSettings(Section):
    """The most that parts of the context may take of the effective window: a share (0.1) or tokens (4000). What is in
    every request is told when it is above its limit; results above theirs are stored and read in parts."""

    system: Amount | None = None
    """swecli's own prompt."""
    instructions: Amount | None = None
    """Instruction files of the project, and your own."""
    memory: Amount | None = None
    """Notes of earlier sessions."""
    skills: Amount | None = None
    """Skills in use."""
    tools: Amount | None = None
    """Descriptions of all tools."""
    tool_results: Amount | None = None
    """All results together."""
    tool_result: Amount | None = None
    """Each single result."""


class ServerClearingSettings(Section):
    """Anthropic's own clearing of old tool results (context editing), on its side of a request. Other providers have
    nothing like it."""

    enabled: bool = False
    """Whether it is asked for."""
    trigger_tokens: Tokens = 100_000
    """Tokens of a prompt from which on the provider clears."""
    keep_tool_uses: Count = 3
    """Newest calls whose results stay."""
    exclude_tools: Annotated[tuple[str, ...], Field(strict=False)] = ("memory",)
    """Tools whose results stay."""


class ContextSettings(Section):
    """How the context is kept within its window. Thresholds of the gate itself are in the section agent."""

    auto_compact: bool = True
    """False: no model is asked to compact and nothing is cleared unless the user says so."""
    strategy: Strategy = "chain"
    """How room is made: chain clears old results, then summarises, then cuts; truncation leaves out the oldest
    messages, importance those that score lowest, both without a model; summarization writes a summary at once."""
    warn: Share = 0.80
    """Share of the effective window from which on user and model are told."""
    target_tokens: Tokens | None = None
    """Tokens of a request from which on it is compacted in any case; unset: only the share counts."""
    keep_recent: Count = 10
    """Newest messages that stay word for word, as far as they have room."""
    keep_recent_tokens: Count | None = None
    """Tokens of the newest messages that stay word for word; unset: by the size of the window."""
    max_summary_tokens: Count | None = None
    """The longest summary; unset: by the size of the window."""
    user_message_score: Score = 1.0
    """Strategy importance: what a message of the user scores."""
    assistant_message_score: Score = 0.6
    """Strategy importance: what an answer scores; a short one scores two fifths of it."""
    tool_use_score: Score = 1.0
    """Strategy importance: what a message with tool calls scores."""
    min_score_threshold: Score = 0.3
    """Strategy importance: older messages that score less are left out."""
    retention: tuple[RetentionSettings, ...] = ()
    """Rules about what goes first and what stays, in order."""
    limits: ContextLimitSettings = ContextLimitSettings()
    """The most that single parts may take of the effective window; unset: no limit of their own."""
    server_clearing: ServerClearingSettings = ServerClearingSettings()
    """Anthropic's own clearing of old tool results, on its side of each request."""
