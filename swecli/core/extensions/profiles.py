"""Agent profiles: a subagent's prompt, tools, model and mode.

The format is that of Claude Code's agents. A profile never grants more than the session that starts it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from swecli.core.extensions.front_matter import FrontMatter, Problem, is_true, read_front_matter
from swecli.core.extensions.skills import described, model_of, unknown_fields
from swecli.core.extensions.sources import FoundFile, Origin, Source, as_name, is_name
from swecli.core.permissions.types import tightest
from swecli.core.protocol.modes import MODES, Mode

_KNOWN = frozenset(
    (
        *("name", "description", "tools", "disallowedTools", "disallowed-tools", "model", "permissionMode", "mode"),
        *("color", "worktree", "isolation"),
    )
)

_MODES: MappingProxyType[str, Mode | None] = MappingProxyType(
    {
        **dict.fromkeys(("", "inherit", "subagent", "primary", "all")),
        **{mode: mode for mode in MODES},
        "acceptedits": "accept-edits",
    }
)

_TOOLS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "read": ("read_file",),
        "ls": ("list_files",),
        "list": ("list_files",),
        "glob": ("list_files",),
        "grep": ("search",),
        "bash": ("run_command", "job"),
        "bashoutput": ("job",),
        "killshell": ("job",),
        "edit": ("edit_file", "apply_patch"),
        "multiedit": ("edit_file", "apply_patch"),
        "patch": ("apply_patch",),
        "write": ("write_file",),
        "webfetch": ("web_fetch",),
        "websearch": ("web_search",),
        "todowrite": ("update_todos",),
        "askuserquestion": ("ask_user",),
        "skill": ("skill",),
    }
)
"""Tools of Claude Code and OpenCode, and our equivalents. If a tool has several, those available to the model count."""

NEVER = frozenset(("task", "agent", "ask_user"))
"""Tools that subagents never get: they start no other subagents and talk only to the agent that started them."""


class AgentProfile(Struct, frozen=True):
    """``tools`` are names from the file, None for all; ``mode`` None and ``model`` empty mean the session's.
    ``worktree`` gives the subagent its own git worktree."""

    name: str
    description: str
    prompt: str
    origin: Origin
    tools: tuple[str, ...] | None = None
    disallowed: tuple[str, ...] = ()
    model: str = ""
    mode: Mode | None = None
    worktree: bool = False
    problems: tuple[Problem, ...] = ()


class ResolvedProfile(Struct, frozen=True):
    """A profile as it applies in a session. ``tools`` are names of the session's tools, in its order; ``missing`` are
    names that the session lacks; ``model`` is empty for the session's own."""

    name: str
    prompt: str
    tools: tuple[str, ...]
    model: str
    mode: Mode
    missing: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_profile(file: FoundFile) -> AgentProfile | None:
    """The profile in a file; None without front matter, or without a name in it or the path: a folder of agents may
    hold other texts."""
    front = read_front_matter(file.text)
    if not front.fields:
        return None
    problems = [*file.problems, *front.problems, *unknown_fields(front, _KNOWN)]
    name = front.text("name")
    if not is_name(name):
        usable = as_name(name) or as_name("-".join(file.stem))
        if name:
            line = front.lines.get("name", 1)
            problems.append(Problem(line, f"{name!r} is not an agent's name; it is called {usable}"))
        name = usable
    if not name:
        return None
    if not front.text("description"):
        problems.append(Problem(1, "has no description, so the model can't tell when to use it"))
    prompt = front.body.strip()
    if not prompt:
        problems.append(Problem(0, "has no prompt: there is no text after the front matter"))
    wanted = front.text("permissionMode") or front.text("mode")
    key = wanted.replace("_", "-").lower()
    key = key if key in _MODES else key.replace("-", "")
    if key not in _MODES:
        line = front.lines.get("permissionMode", front.lines.get("mode", 1))
        problems.append(Problem(line, f"mode {wanted!r} is not available to agents; they work in the session's mode"))
    isolation = front.text("isolation")
    if isolation not in ("", "worktree"):
        problems.append(
            Problem(front.lines.get("isolation", 1), f"unknown isolation {isolation!r}; only worktree is supported")
        )
    tools, refused = _tools(front)
    return AgentProfile(
        name,
        described(front),
        prompt,
        file.origin,
        tools,
        refused,
        model_of(front),
        _MODES.get(key),
        front.flag("worktree") or isolation == "worktree",
        tuple(problems),
    )


def _tools(front: FrontMatter) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The named tools, None for all, and the refused ones. OpenCode writes both as one mapping, ``bash: false``: only
    ``"*": false`` limits an agent to those that are true."""
    refused = front.words("disallowedTools") or front.words("disallowed-tools") or ()
    tools = front.fields.get("tools")
    if not isinstance(tools, dict):
        return front.words("tools"), refused
    on = tuple(name for name, value in tools.items() if is_true(value))
    off = tuple(name for name in tools if name not in on)
    return (on, refused) if "*" in off else (None, (*refused, *off))


def resolve_profile(profile: AgentProfile, *, tools: Sequence[str], mode: Mode) -> ResolvedProfile:
    """Apply the profile to a session with these tools and this mode."""
    problems = list(profile.problems)
    wanted, unknown = tuple(tools), list[str]()
    if profile.tools is not None:
        wanted, unknown = _named(profile.tools, tools)
        if unknown:
            problems.append(Problem(0, f"tools not available here: {', '.join(unknown)}"))
    refused, _ = _named(profile.disallowed, tools)
    allowed = tuple(name for name in tools if name in wanted and name not in refused and name not in NEVER)
    own = tightest(profile.mode, mode)
    return ResolvedProfile(profile.name, profile.prompt, allowed, profile.model, own, tuple(unknown), tuple(problems))


def _named(texts: Sequence[str], tools: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """The matching tools, and names that match none."""
    matched: list[str] = []
    unknown: list[str] = []
    for text in texts:
        name = text.partition("(")[0].strip()
        if name == "*":
            matched += tools
            continue
        prefix = name.removesuffix("__*").removesuffix("*")
        meant = [tool for tool in tools if tool == name or (name.startswith("mcp__") and _of_server(tool, prefix))]
        meant = meant or [tool for tool in _TOOLS.get(name.lower(), ()) if tool in tools]
        if not meant and name.lower() not in NEVER:
            unknown.append(name)
        matched += meant
    return tuple(dict.fromkeys(matched)), unknown


def _of_server(tool: str, prefix: str) -> bool:
    return tool == prefix or tool.startswith(f"{prefix}__")


BUILT_IN = "built in"


@cache
def built_in_profiles() -> tuple[AgentProfile, ...]:
    """Built-in profiles; a file with the same name replaces one."""
    folder = Path(__file__).parent / "agents"
    source = Source("agents", folder, BUILT_IN)
    profiles: list[AgentProfile] = []
    for path in sorted(folder.glob("*.md")):
        origin = Origin(path, BUILT_IN, source)
        profile = read_profile(FoundFile(origin, (path.stem,), path.read_text(encoding="utf-8")))
        assert profile is not None  # a file of ours
        profiles.append(profile)
    return tuple(profiles)
