"""What the screen around the transcript knows of the session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from swecli.core.protocol.blocks import Todo
    from swecli.core.protocol.events import (
        ItemKind,
        PermissionRequested,
        QuestionAsked,
        Queued,
        RetryScheduled,
        SandboxChanged,
        TurnEnded,
    )

Request: TypeAlias = "PermissionRequested | QuestionAsked"


@dataclass(slots=True)
class Running:
    """An item that has begun and not ended. ``since`` is Unix seconds."""

    kind: ItemKind
    name: str
    title: str
    since: float
    executing: bool = False
    awaits: str = ""
    """What it waits for before it runs, as a clause."""

    @property
    def is_command(self) -> bool:
        """Whether it is a command that runs now, the model's or the user's own."""
        return (self.name == "run_command" and self.executing) or (self.kind == "user" and self.name == "shell")


@dataclass(slots=True)
class UiState:
    """State as ``reduction`` makes it of the session's events. Times are Unix seconds as the events carry them."""

    busy: bool = False
    turn_since: float = 0.0
    heard: float = 0.0
    """When something last came from the model or about it."""
    interrupting: bool = False
    retry: RetryScheduled | None = None
    retry_at: float = 0.0
    running: dict[str, Running] = field(default_factory=lambda: {})
    requests: list[Request] = field(default_factory=lambda: [])
    todos: tuple[Todo, ...] = ()
    queue: tuple[Queued, ...] = ()
    ended: TurnEnded | None = None
    sandbox: SandboxChanged | None = None
    changed: dict[str, None] = field(default_factory=lambda: {})
    """Files that tools changed in this run, in the order of their newest change."""
    last_answer: str = ""
    """Text of the newest finished answer of the main agent."""
