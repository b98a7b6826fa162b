"""A hook: its event, matcher, condition, command, and whether it may run here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from swecli.core.permissions.commands import words_match
from swecli.core.permissions.rules import RuleError, parse_rule
from swecli.core.permissions.shell.scan import ScanError
from swecli.core.permissions.shell.started import started
from swecli.core.permissions.types import Effects
from swecli.core.permissions.workspace_scripts import workspace_scripts
from swecli.lazy_pattern import lazy_pattern

HookEvent = Literal[
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "Notification",
]
EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
JUDGES: frozenset[HookEvent] = frozenset(("PreToolUse", "PermissionRequest"))
"""Events at which a call waits for the hook's decision; without one, the user decides."""
TIMEOUT = 60.0
"""Default time limit of a hook in seconds."""

HookSource = Literal["user", "project", "plugin"]
HookKind = Literal["command", "prompt", "http"]


class PluginPlace(Struct, frozen=True):
    """The plugin that a hook belongs to: its name, its folder, and the folder for what its programs keep. ``files`` are
    those of its folder that the command names, each with its SHA-256 when the session began."""

    name: str
    root: str
    data: str
    files: tuple[tuple[str, str], ...] = ()

    def expanded(self, text: str) -> str:
        """The text with the plugin's folders in place of its variables, where no shell could take them for more."""
        for name, value in self.variables.items():
            if _PLAIN.fullmatch(value):
                text = text.replace(f"${{{name}}}", value)
        return text

    @property
    def variables(self) -> dict[str, str]:
        return {"CLAUDE_PLUGIN_ROOT": self.root, "CLAUDE_PLUGIN_DATA": self.data}


_PLAIN = lazy_pattern(r"[A-Za-z0-9_./@+, -]+")


class Hook(Struct, frozen=True):
    """``matcher`` is as written, empty for everything; ``timeout`` is in seconds; ``origin`` names file and line.
    ``scripts`` are the workspace files that the command names, each with the SHA-256 that the user accepted."""

    event: HookEvent
    command: str
    matcher: str = ""
    timeout: float = TIMEOUT
    source: HookSource = "user"
    origin: str = ""
    scripts: tuple[tuple[str, str], ...] = ()
    condition: str = ""
    """A permission rule that limits the calls, in addition to the matcher."""
    background: bool = False
    """Work does not wait for the hook, and it decides nothing. The end of a session still waits for it."""
    waiting: str = ""
    """Why the hook may not run yet, as a clause (the user has not accepted it); empty if it may."""
    unconfirmed: bool = False
    """It waits for consent in a trusted folder; until then, calls that it would judge ask the user."""
    kind: HookKind = "command"
    """``command`` is a command for bash, a question to the model, or an address that gets the event."""
    headers: tuple[tuple[str, str], ...] = ()
    """Of a request; ``variables`` are those of the user's environment that they may contain."""
    variables: tuple[str, ...] = ()
    wakes: str | None = None
    """Of a background hook: what the model is told before the reason if it blocks; None: then nothing."""
    plugin: PluginPlace | None = None

    @property
    def action(self) -> tuple[str, str, str]:
        """What it does: two hooks with the same one run once."""
        return self.kind, self.command, self.plugin.root if self.plugin is not None else ""

    @property
    def deed(self) -> str:
        """What it does, for the user."""
        before = {"command": "", "prompt": "asks the model: ", "http": "sends the event to "}[self.kind]
        return f"{before}{self.command}"

    @property
    def judges(self) -> bool:
        """Whether a call waits for its decision, so that silence is not approval."""
        return self.event in JUDGES and not self.background

    @property
    def beside(self) -> bool:
        """Whether work does not wait for it."""
        return self.background and self.event != "SessionEnd"

    def matches(self, subjects: tuple[str, ...]) -> bool:
        """Whether the matcher accepts one of these names of the same thing; always true without names."""
        return not subjects or any(matches(self.matcher, subject) for subject in subjects)


_NAMES = lazy_pattern(r"[\w|, -]*")


def matches(matcher: str, subject: str) -> bool:
    """Names separated by ``|`` must match completely; anything else is a regular expression to search for. An invalid
    expression matches everything, so that a hook meant to stop something is not lost."""
    matcher = matcher.strip()
    if matcher in ("", "*"):
        return True
    if _NAMES.fullmatch(matcher):
        return subject in (name.strip() for name in re.split(r"[|,]", matcher))
    try:
        return re.search(matcher, subject) is not None
    except (re.error, RecursionError):
        return True


def matcher_problem(matcher: str) -> str:
    """The problem with a matcher as a clause; empty if it is valid."""
    if matcher.strip() in ("", "*"):
        return ""
    try:
        re.compile(matcher)
    except (re.error, RecursionError) as error:
        return f"the matcher {matcher!r} is not a regular expression ({error}), so it matches everything"
    return ""


def changed_script(hook: Hook, project: Path) -> str:
    """The first script that differs from the accepted one, or was not there then, as a clause; empty if there is none.
    Reads files."""
    if hook.kind != "command":
        return ""
    known, now = dict(hook.scripts), dict(workspace_scripts(hook.command, project))
    if hook.plugin is not None:
        known |= hook.plugin.files
        now |= plugin_files(hook.plugin, hook.command)
    for name in (*known, *now):
        if known.get(name) != now.get(name):
            return f"{name} has changed" if name in known else f"{name} is new"
    return ""


def plugin_files(place: PluginPlace, command: str) -> tuple[tuple[str, str], ...]:
    """Files of its plugin that a command names, each with the SHA-256 of its bytes. Reads files."""
    for name, value in place.variables.items():
        command = command.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return tuple((f"{place.name}/{name}", digest) for name, digest in workspace_scripts(command, Path(place.root)))


# The condition of a hook, ``if`` in settings: a permission rule that says which calls it is about. Pure, but for the
# words of a command.
#
# A hook may be there to stop something, so what can't be told counts as meant.


OF_CALLS: frozenset[HookEvent] = frozenset(("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"))
"""Events that concern a tool call."""


def problems(hook: Hook) -> Sequence[str]:
    """Parts of a hook without their apparent effect, as clauses."""
    late = "swecli waits for it anyway because it is ending" if hook.background and hook.event == "SessionEnd" else ""
    return [
        problem for problem in (matcher_problem(hook.matcher), _problem(hook.condition, hook.event), late) if problem
    ]


def _problem(condition: str, event: HookEvent) -> str:
    if not condition:
        return ""
    if event not in OF_CALLS:
        return f"its condition {condition!r} applies only to calls, so on {event} it never runs"
    try:
        parse_rule(condition)
    except RuleError as error:
        return f"its condition {condition!r} is not a permission rule ({error}), so it runs at every matching call"
    return ""


def holds(condition: str, tool: str, effects: Effects, roots: tuple[str, ...], home: str) -> bool:
    """Whether a condition applies to the call: for a command, whether any part of it matches."""
    try:
        pattern = parse_rule(condition)
    except RuleError:
        return True
    if pattern.tools and not pattern.matches_tool(tool):
        return False
    match pattern.kind:
        case "command":
            try:
                return any(words_match(pattern.at_home(home), command) for command in started(effects.command or ""))
            except ScanError:
                return True
        case "domain":
            host = (effects.network or "").lower().rstrip(".")
            return host == pattern.domain or host.endswith(f".{pattern.domain}")
        case "read" | "write" if pattern.path is not None:
            touched = effects.writes if pattern.kind == "write" else (*effects.reads, *effects.writes)
            path = pattern.path
            return any(path.matches(target, roots, home, wide=True) for target in touched)
        case _:
            return True
