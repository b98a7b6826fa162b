"""Kinds of subagents and their tasks: what each is told, and which of the session's tools it gets."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.extensions.profiles import NEVER, resolve_profile
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.permissions.types import tightest
from swecli.core.protocol.events import Mode
from swecli.core.tools.registry import ToolRegistry


class AgentProfile(Struct, frozen=True):
    """A subagent's prompt and resources. ``tools`` are tool names, None for all; ``mode`` None and ``model`` empty mean
    the session's own. ``worktree``: it works in a git work tree of its own."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    disallowed: tuple[str, ...] = ()
    model: str = ""
    mode: Mode | None = None
    worktree: bool = False

    def mode_in(self, session: Mode) -> Mode:
        """Its mode in a session with this one: never a looser one."""
        return tightest(self.mode, session)


class AgentTask(Struct, frozen=True):
    """A task for a subagent. ``agent`` names its profile; with ``background`` the call ends when the work begins; with
    ``worktree`` it gets its own git worktree even if the profile does not ask for one."""

    title: str
    prompt: str
    agent: str
    background: bool = False
    worktree: bool = False


def agent_profiles(files: ExtensionFiles, registry: ToolRegistry) -> list[AgentProfile]:
    """The present profiles, with the tools that each gets in this session."""
    profiles: list[AgentProfile] = []
    for profile in files.profiles.values():
        made = resolve_profile(profile, tools=registry.names(), mode="auto")
        tools = (*made.tools, *made.missing) if profile.tools is not None or profile.disallowed else None
        given = AgentProfile(
            profile.name, profile.description, profile.prompt, tools, model=profile.model, mode=profile.mode
        )
        profiles.append(replace(given, worktree=profile.worktree))
    return profiles


def tools_of(profile: AgentProfile, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The session's tools available to a subagent, in their order, and unknown names in its profile."""
    wanted = names if profile.tools is None else profile.tools
    unknown = tuple(name for name in (*wanted, *profile.disallowed) if name not in names and name not in NEVER)
    available = tuple(name for name in names if name in wanted and name not in profile.disallowed and name not in NEVER)
    return available, unknown
