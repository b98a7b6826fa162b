"""Settings of a running session, as one value that is replaced when they change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from msgspec import Struct, field

from swecli.core.context_management.budget import BLOCK_ADVICE, COMPACT_ADVICE, Limits
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.permissions.types import Rule
from swecli.core.protocol.context_events import RotKind
from swecli.core.tools.run_command import TIMEOUT
from swecli.core.workspace.process_limit import PROCESSES


class TurnLimits(Struct, frozen=True):
    """Caps of one run; None = no cap."""

    max_steps: int | None = None
    max_tokens: int | None = None
    """Input and output tokens of the whole session."""
    max_price: Decimal | None = None
    """US dollars of the whole session. With an unknown price no further request is sent."""
    max_retries: int = 5


class SubagentOptions(Struct, frozen=True):
    """Limits of subagents. At most ``at_once`` work at the same time, each with ``max_steps`` requests, ``max_tokens``
    and ``max_price`` (US dollars) in total, None = no cap; ``result_tokens`` limits the report. ``model`` is used if
    the profile names none; None = the session's."""

    at_once: int = 4
    max_steps: int | None = 50
    max_tokens: int | None = 3_000_000
    max_price: Decimal | None = None
    result_tokens: int = 1_500
    model: str | None = None


class SentinelOptions(Struct, frozen=True):
    """Whether the context is watched, and the suggestions that the user has turned off."""

    enabled: bool = True
    silenced: tuple[RotKind, ...] = ()


class Adjustable(Struct, frozen=True):
    """Settings that a session adopts while it runs. A turn applies them from its next step on; running subagents adopt
    only the rules."""

    context_limits: Limits = Limits()
    advice: tuple[str, ...] = (COMPACT_ADVICE, *BLOCK_ADVICE)
    """Remedies for a full context, as clauses for the user."""
    compaction: CompactionOptions = CompactionOptions()
    limits: TurnLimits = TurnLimits()
    offload_threshold: int = 4_096
    """Most bytes of output that stay in the context."""
    process_limit: int = PROCESSES
    """Most simultaneous processes and threads of a command."""
    command_timeout: float = TIMEOUT
    tool_deferral: float = 0.1
    """Share of the effective window that tool descriptions may take before some are withheld."""
    subagents: SubagentOptions = SubagentOptions()
    attribution: bool = False
    """Whether commits name swecli and the model."""
    rules: tuple[Rule, ...] = ()
    """Rules from files and flags, without granted ones."""
    fallback: Sequence[str] = ()
    """Fallback models (``provider/name``), in order, while the user's own is overloaded."""
    side_models: Mapping[str, str] = field(default_factory=lambda: {})
    """Models for side work, by its name: "summary" and "small"."""
    sentinel: SentinelOptions = SentinelOptions()
    plans: Path | None = None
    """Folder of written plans in the project; None if none may be written."""


class Settings(Struct):
    """The settings of one session. ``now`` is read when it is needed; only ``take`` replaces it."""

    now: Adjustable = Adjustable()
    read: Callable[[], Adjustable] | None = None
    """Reads the settings again; called in a thread. None if nothing can be changed.

    Raises:
        ValueError: they can't be read; a sentence.
    """
    safe_mode: bool = False
    """Whether the user excluded everything from files except swecli's own settings."""
    tools_wait: float = 30.0
    """Longest wait of a request for expected tools, in seconds."""
    changed: list[Callable[[], None]] = field(default_factory=lambda: [])
    """Called after a change: by those who hold what they made from a setting."""

    def own(self) -> Settings:
        """These settings for one session, which others don't follow."""
        return Settings(self.now, self.read, self.safe_mode, self.tools_wait)

    def take(self, values: Adjustable) -> None:
        self.now = values
        for adopt in self.changed:
            adopt()
