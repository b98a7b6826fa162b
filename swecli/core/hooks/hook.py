"""What a hook is: its event, the calls it is about, its condition, its command, and whether it may run here."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from swecli.core.permissions.commands import words_match
from swecli.core.permissions.rules import RuleError, parse_rule
from swecli.core.permissions.shell.scan import ScanError
from swecli.core.permissions.shell.unpack import started
from swecli.core.permissions.types import Effects

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
"""Events at which a call waits for a hook's word: one that comes to no word leaves it to the user."""
TIMEOUT = 60.0
"""Seconds that a hook may run unless it says otherwise."""

HookSource = Literal["user", "project"]


class Hook(Struct, frozen=True):
    """``matcher`` is as written, empty for everything; ``timeout`` is seconds; ``origin`` names file and line.
    ``scripts`` are the files of the workspace that the command names, each with the SHA-256 under which it may run."""

    event: HookEvent
    command: str
    matcher: str = ""
    timeout: float = TIMEOUT
    source: HookSource = "user"
    origin: str = ""
    scripts: tuple[tuple[str, str], ...] = ()
    condition: str = ""
    """A permission rule: which calls it is about, besides the matcher."""
    background: bool = False
    """Nobody waits for it, and it decides nothing; at the end of a session it is waited for all the same."""
    waiting: str = ""
    """Why it does not run, as a clause: the user has not consented to it. Empty where it may run."""
    unconfirmed: bool = False
    """It waits in a folder that the user trusts: what it was to judge is asked about meanwhile."""

    @property
    def judges(self) -> bool:
        """Whether a call waits for its word, so that its silence is none."""
        return self.event in JUDGES and not self.background

    @property
    def beside(self) -> bool:
        """Whether nobody waits for it."""
        return self.background and self.event != "SessionEnd"

    def matches(self, subjects: tuple[str, ...]) -> bool:
        """Whether the hook is about one of these names of the same thing; nothing to match is always matched."""
        return not subjects or any(matches(self.matcher, subject) for subject in subjects)


_NAMES = re.compile(r"[\w|, -]*")


def matches(matcher: str, subject: str) -> bool:
    """Names with ``|`` between them are compared as a whole; anything else is a regular expression that is searched
    for. An expression that is none matches everything: a hook that was to stop something must not be lost."""
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
    """What is wrong with a matcher, as a clause; empty where nothing is."""
    if matcher.strip() in ("", "*"):
        return ""
    try:
        re.compile(matcher)
    except (re.error, RecursionError) as error:
        return f"the matcher {matcher!r} is not a regular expression ({error}), so it matches everything"
    return ""


PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "SWECLI_PROJECT_DIR")
_PROJECT = re.compile(r"\$(?:\{(?:CLAUDE_PROJECT_DIR|SWECLI_PROJECT_DIR|PWD)(?::?[-?][^}]*)?\}"
                      r"|(?:CLAUDE_PROJECT_DIR|SWECLI_PROJECT_DIR|PWD)\b)")  # fmt: skip
_INTO = frozenset((">", ">>", ">|", "&>", "&>>"))
"""What makes the next word a file that is written to."""
LARGEST_SCRIPT = 5_000_000
"""Bytes of a file that is hashed; what is larger counts by its size alone."""


def workspace_scripts(command: str, project: Path) -> tuple[tuple[str, str], ...]:
    """The files of the workspace that a command names, relative to it, each with the SHA-256 of its bytes. A file that
    it only writes to by ``>`` or ``>>`` is none of them: it changes with every run. Reads files."""
    found: dict[str, str] = {}
    root = os.path.realpath(project)
    for word in _words(_PROJECT.sub(lambda _: str(project), command)):
        for name in (word, word.rpartition("=")[2]):
            path = os.path.normpath(os.path.join(project, os.path.expanduser(name)))
            inside = any(_inside(path, base) or _inside(os.path.realpath(path), base) for base in (str(project), root))
            if name and inside and os.path.isfile(path):
                found[os.path.relpath(path, project)] = file_hash(Path(path))
    return tuple(sorted(found.items()))


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _words(command: str) -> list[str]:
    try:
        words, written = _split(command, posix=True), _split(command, posix=False)
    except ValueError:
        return [word for word in re.split(r"[\s'\"`;&|()<>]+", command) if word]
    if len(words) != len(written):  # with a backslash they differ, and then no operator is told from a word for sure
        return words
    return [word for at, word in enumerate(words) if at == 0 or written[at - 1] not in _INTO]


def _split(command: str, *, posix: bool) -> list[str]:
    """Words and operators; as they are written, with their quotes, unless ``posix``."""
    lexer = shlex.shlex(command, posix=posix, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes; a text that no hash equals where it can't be read."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > LARGEST_SCRIPT:
                return f"{size} bytes"
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, ValueError) as error:
        return f"unreadable: {error}"


def changed_script(hook: Hook, project: Path) -> str:
    """The first script that is not what the user consented to; empty where all are. Reads files."""
    return next((name for name, known in hook.scripts if file_hash(project / name) != known), "")


# The condition of a hook, ``if`` in settings: a permission rule that says which calls it is about. Pure, but for the
# words of a command.
#
# A hook may be there to stop something, so what can't be told counts as meant.


OF_CALLS: frozenset[HookEvent] = frozenset(("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"))
"""Events that are about a call."""


def problems(hook: Hook) -> Sequence[str]:
    """What of a hook has not the effect that it seems to have, as clauses."""
    late = "swecli waits for it anyway because it is ending" if hook.background and hook.event == "SessionEnd" else ""
    return [one for one in (matcher_problem(hook.matcher), _problem(hook.condition, hook.event), late) if one]


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
    """Whether a hook with this condition is about the call: for a command, whether any part of it is meant."""
    try:
        pattern = parse_rule(condition)
    except RuleError:
        return True
    if pattern.tools and not pattern.matches_tool(tool):
        return False
    match pattern.kind:
        case "command":
            try:
                return any(words_match(pattern.at_home(home), one) for one in started(effects.command or "", {}))
            except ScanError:
                return True
        case "domain":
            host = (effects.network or "").lower().rstrip(".")
            return host == pattern.domain or host.endswith(f".{pattern.domain}")
        case "read" | "write" if pattern.path is not None:
            touched = effects.writes if pattern.kind == "write" else (*effects.reads, *effects.writes)
            path = pattern.path
            return any(path.matches(one, roots, home, wide=True) for one in touched)
        case _:
            return True
