"""Agent profiles: what a subagent is told, which tools it has, which model answers for it, in which mode it works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swecli.core.protocol.events import Mode

NEVER: Final = frozenset(("task", "ask_user"))
"""A subagent starts no subagents, and talks to nobody but the agent that started it."""
_ORDER: Final[tuple[Mode, ...]] = ("plan", "default", "accept-edits", "auto")
"""The modes, the tightest first."""


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """``tools`` are names of tools, None for all; ``mode`` is None for that of the session, ``model`` empty for that
    of the session. ``worktree``: it works in a git work tree of its own."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    disallowed: tuple[str, ...] = ()
    model: str = ""
    mode: Mode | None = None
    worktree: bool = False


def tightest(own: Mode | None, session: Mode) -> Mode:
    """The mode of a subagent: never looser than that of the session."""
    return session if own is None or _ORDER.index(own) > _ORDER.index(session) else own


def tools_of(profile: AgentProfile, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a subagent has of the session's tools, in their order; and names of the profile that there are none of."""
    wanted = names if profile.tools is None else profile.tools
    unknown = tuple(name for name in (*wanted, *profile.disallowed) if name not in names and name not in NEVER)
    kept = tuple(name for name in names if name in wanted and name not in profile.disallowed and name not in NEVER)
    return kept, unknown


_READING: Final = ("read_file", "list_files", "search", "read_result", "recall")

BUILT_IN: Final[tuple[AgentProfile, ...]] = (
    AgentProfile(
        "explore",
        "Finds out how something works or where something is, by searching and reading only. For questions that would "
        "take many searches, whose results you don't need yourself.",
        """You answer one question about a code base. You only search and read.

Search widely at first (other names for the same thing, tests, configuration, documentation), several searches at \
once, then read the places that matter. Stop when you can answer.

End with the answer first, then the evidence: each place as `path:line` with a few words on what is there. Quote code \
only where its exact wording matters. Say what you looked for and did not find.""",
        tools=_READING,
        mode="plan",
    ),
    AgentProfile(
        "general",
        "Works on a task of several steps by itself, with all tools, and reports what it did. For work that can be "
        "described completely in one message.",
        """Do the whole task and check it: where something is open, take the sensible option and say so.

End with a report: what you found or changed, with `path:line`, how it was checked and how that ended, and what is \
still open. Give facts, not the story of your search.""",
    ),
    AgentProfile(
        "review",
        "Reviews a change (a diff, a branch or a commit) for defects and reports them by severity, without changing "
        "anything. For a second look before code is handed over.",
        """You review a change. You change nothing.

Read the diff, then the code around it: callers of what changed, its tests, what else depends on the same assumption. \
Look for what breaks: wrong results, cases not thought of (empty, large, concurrent, failing), lost data, broken \
callers, security, missing or weakened tests. Follow a suspicion until you can show it or drop it.

Report only what you can point to. For each finding: severity (blocker, major, minor), `path:line`, what goes wrong \
and when, and how to fix it. The gravest first. Leave out style that tools check, and praise. If nothing is wrong, \
say so, and name what you checked.""",
        tools=(*_READING, "run_command", "job"),
        mode="plan",
    ),
)
