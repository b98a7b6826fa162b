"""The rule grammar: ``Tool`` or ``Tool(pattern)``.

- ``Bash(git log *)``: words of one simple command; words are compared exactly, ``*`` as a whole word at the end
  stands for any further words, also none.
- ``Read(glob)``, ``Edit(glob)``: gitignore syntax, relative to the workspace; ``~/`` is the home directory and
  ``//`` starts an absolute path. They hold for every tool that reads or writes such a path.
- ``WebFetch(domain:host)``: the host or anything below it.
- ``mcp__server`` or ``mcp__server__tool``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from swecli.core.permissions.paths import inside, within_text
from swecli.core.permissions.types import Call, Policy, Rule, RuleEffect

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Kind = Literal["tool", "command", "read", "write", "domain"]

READERS = ("read_file", "list_files", "search")
WRITERS = ("edit_file", "write_file", "apply_patch")
ALIASES: dict[str, tuple[str, ...]] = {
    "Bash": ("run_command",),
    "Read": READERS,
    "Edit": WRITERS,
    "Write": WRITERS,
    "MultiEdit": WRITERS,
    "Grep": ("search",),
    "Glob": ("list_files",),
    "LS": ("list_files",),
    "WebFetch": ("web_fetch",),
    "TodoWrite": ("update_todos",),
    "AskUserQuestion": ("ask_user",),
}
"""Names that other agents use for the same tools."""

_SHAPE = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)(?:\((.*)\))?", re.DOTALL)
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*")
_MCP = re.compile(r"mcp__[A-Za-z0-9_.-]+")
_GIT_SPECIAL = re.compile(r"([\\*?\[\]!#])")


class RuleError(ValueError):
    """The rule can't be understood; the message says why."""


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """An invalid rule, for the user to see."""

    rule: Rule
    message: str


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A gitignore pattern and what it is relative to."""

    base: Literal["workspace", "home", "absolute"]
    text: str

    def matches(self, path: str, roots: Sequence[str], home: str, *, fold: bool) -> bool:
        """Whether the absolute ``path`` falls under the pattern; ``fold`` ignores case too."""
        if self.base == "absolute":
            bases: tuple[str, ...] = ("/",)
        elif self.base == "home":
            bases = (home,) if home else ()
        else:
            bases = tuple(roots)
        for base in bases:
            if inside(path, (base,)) is None:
                continue
            relative = path[len(base) :].strip("/")
            if not relative:
                continue
            if _spec(self.text).match_file(relative):
                return True
            if fold and _spec(self.text.casefold()).match_file(relative.casefold()):
                return True
        return False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed rule."""

    tools: tuple[str, ...]
    kind: Kind
    words: tuple[str, ...] = ()
    rest: bool = False
    """Whether further words may follow ``words``."""
    path: PathPattern | None = None
    domain: str = ""

    def matches_words(self, argv: Sequence[str]) -> bool:
        """Whether a simple command, given by its words, falls under a command rule."""
        if self.kind != "command":
            return False
        count = len(self.words)
        return tuple(argv[:count]) == self.words and (self.rest or len(argv) == count)

    def matches_tool(self, tool: str) -> bool:
        return any(tool == name or (name.startswith("mcp__") and tool.startswith(name + "__")) for name in self.tools)


@lru_cache(maxsize=512)
def _spec(text: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([text])


@lru_cache(maxsize=1024)
def parse_rule(text: str) -> Pattern:
    """The pattern of a rule's text.

    Raises:
        RuleError: it is no rule.
    """
    if any(ord(char) < 32 or ord(char) == 127 or 0xD800 <= ord(char) < 0xE000 for char in text):
        raise RuleError("a rule is one line without control characters")
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise RuleError("expected Tool or Tool(pattern)")
    name, pattern = match.group(1), match.group(2)
    if name.startswith("mcp__"):
        if pattern is not None or not _MCP.fullmatch(name):
            raise RuleError("an MCP rule is mcp__server or mcp__server__tool, without a pattern")
        return Pattern((name,), "tool")
    tools = ALIASES.get(name, (name,))
    if pattern is None:
        return Pattern(tools, "tool")
    if not pattern.strip():
        raise RuleError("the pattern is empty; write the tool's name alone to mean every call of it")
    if tools == ("run_command",):
        return _command(tools, pattern)
    if tools == ("web_fetch",):
        return _domain(tools, pattern)
    if name in ("Read", "Grep", "Glob", "LS") or name in READERS:
        return Pattern(() if name == "Read" else tools, "read", path=_path(pattern))
    if name in ("Edit", "Write", "MultiEdit") or name in WRITERS:
        return Pattern(() if name == "Edit" else tools, "write", path=_path(pattern))
    raise RuleError(f"{name} takes no pattern; patterns are for commands, files and web hosts")


def _command(tools: tuple[str, ...], pattern: str) -> Pattern:
    if pattern.strip() == "*":
        return Pattern(tools, "command", rest=True)
    text = re.sub(r":\*$", " *", pattern.strip())
    rest = text.endswith(" *")
    try:
        words = shlex.split(text[:-2] if rest else text)
    except ValueError as error:
        raise RuleError(f"the command can't be split into words: {str(error).lower()}") from error
    if not words:
        raise RuleError("the command is empty")
    if any(char in words[0] for char in "*?[]"):
        raise RuleError("the first word of a command must be written out, without wildcards")
    if any(word == "*" for word in words[1:]):
        raise RuleError("* stands for the rest of the command, so it can only be the last word")
    return Pattern(tools, "command", tuple(words), rest)


def _domain(tools: tuple[str, ...], pattern: str) -> Pattern:
    head, colon, host = pattern.strip().partition(":")
    host = host.strip().lower().removeprefix("*.").rstrip(".")
    if head != "domain" or not colon or not _HOST.fullmatch(host):
        raise RuleError("expected WebFetch(domain:host)")
    return Pattern(tools, "domain", domain=host)


def _path(pattern: str) -> PathPattern:
    text = pattern.strip()
    base: Literal["workspace", "home", "absolute"] = "workspace"
    if text.startswith("//"):
        base, text = "absolute", text[1:]
    elif text.startswith("~/"):
        base, text = "home", text[1:]
    if text.startswith(("!", "#")):
        raise RuleError("a path pattern can't start with ! or #; write \\! or \\# for such a name")
    if ".." in text.split("/"):
        raise RuleError("a path pattern can't contain ..")
    text = text.removeprefix("./") or text
    try:
        spec = _spec(text)
    except ValueError as error:
        raise RuleError(f"no gitignore pattern: {error}") from error
    if not any(part.include for part in spec.patterns):
        raise RuleError("the path pattern matches nothing")
    return PathPattern(base, text)


def check_rules(rules: Iterable[Rule], tools: Collection[str] | None = None) -> tuple[RuleProblem, ...]:
    """Every rule that can't be understood. With ``tools`` a rule for an unknown tool is a problem too."""
    problems: list[RuleProblem] = []
    for rule in rules:
        try:
            pattern = parse_rule(rule.text)
        except RuleError as error:
            problems.append(RuleProblem(rule, f"{rule.text}: {error}."))
            continue
        known = tools is None or not pattern.tools or any(name in tools for name in pattern.tools)
        if not known and not pattern.tools[0].startswith("mcp__"):
            problems.append(RuleProblem(rule, f"{rule.text}: there is no tool of this name."))
    return tuple(problems)


def active_rules(policy: Policy, effect: RuleEffect) -> tuple[Rule, ...]:
    """The rules of one list that count; a project can only tighten until its folder is trusted."""
    trusted = policy.trust in ("trusted", "session")
    return tuple(
        rule
        for rule in policy.rules
        if rule.effect == effect and not (effect == "allow" and rule.scope == "project" and not trusted)
    )


def is_valid(rule: Rule) -> bool:
    """Whether the rule can be understood."""
    try:
        parse_rule(rule.text)
    except RuleError:
        return False
    return True


def matches_call(rule: Rule, call: Call, home: str) -> bool:
    """Whether a rule speaks about this call. Command patterns are not judged here: they need the command's
    words. An allow rule must cover everything that the call touches; a deny or ask rule fires on any of it."""
    try:
        pattern = parse_rule(rule.text)
    except RuleError:
        return False
    if pattern.tools and not pattern.matches_tool(call.tool):
        return False
    if pattern.kind == "tool":
        return True
    if pattern.kind == "domain":
        host = (call.effects.network or "").lower().rstrip(".")
        return bool(host) and (host == pattern.domain or host.endswith("." + pattern.domain))
    if pattern.kind in ("read", "write") and pattern.path is not None:
        return _matches_paths(rule, pattern.kind == "write", pattern.path, call, home)
    return False


def _matches_paths(rule: Rule, writing: bool, pattern: PathPattern, call: Call, home: str) -> bool:
    effects = call.effects
    if rule.effect == "allow":
        if effects.command is not None or effects.network is not None or (effects.writes and not writing):
            return False
        touched = effects.writes if writing else effects.reads
        if writing and any(path not in effects.writes for path in effects.reads):
            # A call that also reads elsewhere needs consent for that as well.
            return False
        return bool(touched) and all(pattern.matches(path, call.roots, home, fold=False) for path in touched)
    touched = effects.writes if writing else (*effects.reads, *effects.writes)
    candidates = (*touched, *given_paths(call, home))
    return bool(touched) and any(pattern.matches(path, call.roots, home, fold=True) for path in candidates)


def given_paths(call: Call, home: str) -> tuple[str, ...]:
    """The paths as the model wrote them, made absolute by their text alone (links not followed)."""
    found: list[str] = []
    for key in ("path", "file_path", "paths", "old_path", "new_path", "directory"):
        value = call.arguments.get(key)
        values: list[object] = list(value) if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownArgumentType]
        found.extend(within_text(item, call.cwd, home) for item in values if isinstance(item, str) and item)
    return tuple(found)


def path_rule(tool: Literal["Read", "Edit"], path: str, roots: Sequence[str]) -> str:
    """The narrowest rule for one file: anchored at the workspace, or absolute outside of it."""
    root = inside(path, roots)
    relative = "/" + path[len(root) :].strip("/") if root is not None else "/" + path
    escaped = _GIT_SPECIAL.sub(r"\\\1", relative)
    return f"{tool}({escaped})"


def words_rule(words: Sequence[str], *, rest: bool = False) -> str:
    """The rule for exactly this command, or for it with anything after it."""
    return f"Bash({shlex.join(words)}{' *' if rest else ''})"
