"""The rule grammar: ``Tool`` or ``Tool(pattern)``.

- ``Bash(git log *)``: words of one simple command; words are compared exactly, ``*`` as a whole word stands for any
  words or none, within a word for any characters, and at the end of a plain word (``Bash(git log*)``) also for what
  follows. A quoted ``*`` is literal. In deny and ask rules ``*`` matches any text, blanks included, and a program's
  name alone matches all its calls.
- ``Read(glob)``, ``Edit(glob)``: gitignore syntax, relative to the workspace; ``~/`` is the home directory and
  ``//`` starts an absolute path. They apply to every tool that reads or writes such a path.
- ``WebFetch(domain:host)``: the host or anything below it. ``WebSearch`` is every search with the user's search engine.
- ``mcp__server`` or ``mcp__server__tool``.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.braces import without_braces
from swecli.core.permissions.paths import inside, within_text
from swecli.core.permissions.types import Call, Policy, Rule, RuleEffect
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Kind = Literal["tool", "command", "read", "write", "domain"]

READERS = ("read_file", "list_files", "search")
WRITERS = ("edit_file", "write_file", "apply_patch", "memory")
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
    "WebSearch": ("web_search",),
    "TodoWrite": ("update_todos",),
    "AskUserQuestion": ("ask_user",),
}
"""Tool names used by other agents."""
_NAMES = {name.casefold(): name for name in ALIASES} | {
    "shell": "Bash",
    "run_shell_command": "Bash",
    "fetch": "WebFetch",
}

_SHAPE = lazy_pattern(r"([A-Za-z][A-Za-z0-9_.-]*(?:__\*)?)(?:\((.*)\))?", re.DOTALL)
_HOST = lazy_pattern(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*")
_MCP = lazy_pattern(r"mcp__[A-Za-z0-9_.-]+(?:__\*)?")
ANY_WORDS = "\0"
"""``*`` in a parsed command: neither a command's words nor a rule's text can contain it."""
_OPERATORS = lazy_pattern(r"[|&;<>`()]|\$[({]")
_OTHER_GRAMMAR = lazy_pattern(r"\^|\.\0|/.*/$|[a-z]+:")
"""Start of a word in other grammars: regular expressions, and prefixes such as ``regex:`` or ``prefix:``."""
_GIT_SPECIAL = lazy_pattern(r"([\\*?\[\]{}!#])")


class RuleError(ValueError):
    """The rule is invalid; the message says why."""


class RuleProblem(Struct, frozen=True):
    rule: Rule
    message: str


class PathPattern(Struct, frozen=True):
    """A gitignore pattern and its base."""

    base: Literal["workspace", "home", "absolute"]
    text: str

    def matches(self, path: str, roots: Sequence[str], home: str, *, wide: bool) -> bool:
        """Whether the absolute ``path`` matches. ``wide`` is the reading of deny and ask rules: case is ignored, and a
        leading ``/`` means both the workspace and the file system root."""
        if wide and self.base == "workspace" and self.text.startswith("/"):
            anywhere = PathPattern("absolute", self.text)
            if anywhere.matches(path, roots, home, wide=True):
                return True
        for base in self.bases(roots, home):
            if inside(path, (base,)) is None:
                continue
            relative = path[len(base) :].strip("/")
            if not relative:
                continue
            if any(each.search(relative) for each in _expressions(self.text, wide)):
                return True
        return False

    def bases(self, roots: Sequence[str], home: str) -> Sequence[str]:
        """The folders to which the text is relative."""
        if self.base == "absolute":
            return ("/",)
        return tuple(roots) if self.base == "workspace" else (home,) if home else ()


class Pattern(Struct, frozen=True):
    tools: tuple[str, ...]
    kind: Kind
    words: tuple[str, ...] = ()
    rest: bool = False
    """Whether further words may follow ``words``; there ``ANY_WORDS`` is a wildcard."""
    path: PathPattern | None = None
    domain: str = ""

    def matches_words(self, argv: Sequence[str], *, wide: bool = False) -> bool:
        """Whether the words of a simple command match a command rule. ``wide`` is the reading of deny and ask rules: a
        wildcard also matches blanks, and a name alone matches all calls of the program."""
        if self.kind != "command":
            return False
        if _words_match((*self.words, ANY_WORDS) if self.rest else self.words, argv):
            return True
        if not wide:
            return False
        if self.only_program and tuple(argv[:1]) == self.words:
            return True
        text = " ".join(argv)
        wanted = " ".join(self.words)
        return ANY_WORDS in wanted and any(
            word_matches(text, form) for form in (wanted, f"{wanted} {ANY_WORDS}")[: 1 + self.rest]
        )

    @property
    def only_program(self) -> bool:
        return len(self.words) == 1 and not self.rest

    def at_home(self, home: str) -> Pattern:
        """The pattern with a leading ``~/`` of its words expanded."""
        if not home or not any(word.startswith("~/") for word in self.words):
            return self
        return replace(self, words=tuple(home + word[1:] if word.startswith("~/") else word for word in self.words))

    def matches_tool(self, tool: str) -> bool:
        return any(tool == name or (name.startswith("mcp__") and tool.startswith(name + "__")) for name in self.tools)


def _words_match(wanted: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether words match a pattern; a wildcard alone stands for any number of them."""
    at = word = mark = 0
    star = -1
    while word < len(argv):
        if at < len(wanted) and wanted[at] == ANY_WORDS:
            star, mark, at = at, word, at + 1
        elif at < len(wanted) and word_matches(argv[word], wanted[at]):
            at, word = at + 1, word + 1
        elif star >= 0:
            mark += 1
            at, word = star + 1, mark
        else:
            return False
    return all(wanted_word == ANY_WORDS for wanted_word in wanted[at:])


def word_matches(text: str, wanted: str) -> bool:
    if ANY_WORDS not in wanted:
        return text == wanted
    return fnmatchcase(text, re.sub(r"[\[?*]", r"[\g<0>]", wanted).replace(ANY_WORDS, "*"))


@lru_cache(maxsize=512)
def glob_spec(text: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(without_braces(text))


@lru_cache(maxsize=512)
def _expressions(text: str, wide: bool) -> tuple[re.Pattern[str], ...]:
    """The expressions of a gitignore pattern: a rule is compared with every file of a tree, and this way in a
    microsecond."""
    patterns = (cast("re.Pattern[str] | None", part.regex) for part in glob_spec(text).patterns if part.include)
    return tuple(re.compile(each.pattern, re.IGNORECASE if wide else 0) for each in patterns if each is not None)


@lru_cache(maxsize=1024)
def parse_rule(text: str) -> Pattern:
    """The parsed pattern of a rule's text. Raises ``RuleError`` if it is invalid."""
    if any(ord(char) < 32 or ord(char) == 127 or 0xD800 <= ord(char) < 0xE000 for char in text):
        raise RuleError("a rule is one line without control characters")
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise RuleError("expected Tool or Tool(pattern)")
    name, pattern = match.group(1), match.group(2)
    if name.startswith("mcp__"):
        if pattern is not None or not _MCP.fullmatch(name):
            raise RuleError("an MCP rule is mcp__server, mcp__server__* or mcp__server__tool, without a pattern")
        name = name.removesuffix("__*")
        return Pattern((name,), "tool")
    name = _NAMES.get(name.casefold(), name)
    tools = ALIASES.get(name, (name,))
    if pattern is None:
        return Pattern(tools, "tool")
    if not pattern.strip():
        raise RuleError("the pattern is empty; write only the tool's name to match every call")
    if tools == ("run_command",):
        return _command(tools, pattern)
    if tools == ("web_fetch",):
        return _domain(tools, pattern)
    if name in ("Read", "Grep", "Glob", "LS") or name in READERS:
        return Pattern(() if name == "Read" else tools, "read", path=_path(pattern))
    if name in ("Edit", "Write", "MultiEdit") or name in WRITERS:
        return Pattern(() if name == "Edit" else tools, "write", path=_path(pattern))
    raise RuleError(f"{name} takes no pattern; patterns are for commands, files and web hosts")


def valid_pattern(rule: Rule) -> Pattern | None:
    """The parsed pattern of a rule's text; None if it is invalid."""
    try:
        return parse_rule(rule.text)
    except RuleError:
        return None


def rule_pattern(rule: Rule) -> Pattern:
    """The parsed pattern of a rule in its list.

    Raises:
        RuleError: the rule is invalid, or an allow rule without a program name.
    """
    pattern = parse_rule(rule.text)
    if rule.effect == "allow" and pattern.words and pattern.words[0].startswith(ANY_WORDS):
        raise RuleError("the first word of a rule that allows must name the program")
    return pattern


_STARTING = {
    **dict.fromkeys(("find", "gfind"), ". -exec x {} +"),
    **dict.fromkeys(("fd", "fdfind"), "x -x x"),
    **dict.fromkeys(("xargs", "parallel", "env", "nohup", "nice", "watch", "setsid", "stdbuf", "npx", "uvx"), "x"),
    **dict.fromkeys(("sh", "bash", "zsh", "dash", "fish", "python", "python3"), "-c x"),
    **dict.fromkeys(("node", "perl", "ruby", "bun"), "-e x"),
    "timeout": "1 x",
}
"""Programs with words, ``x`` for any, with which they start any other program or code."""


def starts_others(pattern: Pattern) -> str:
    """What a rule for a command also covers because its program starts others, as a clause; empty for any other rule.
    What swecli always asks about, such as removing files, still asks."""
    if not pattern.words:
        return ""
    calls = ((program, *words.split()) for program, words in _STARTING.items())
    call = next((call for call in calls if pattern.matches_words(call)), None)
    if call is None:
        return ""
    program, option = call[0], next((word for word in call[1:] if word.startswith("-")), "")
    return f"{program}{f' {option}' if option else ''} can start any program or code, and this rule covers that, too"


def _command(tools: tuple[str, ...], pattern: str) -> Pattern:
    marked, bare = _marked(re.sub(r":\*$", " *", pattern.strip()))
    try:
        words = shlex.split(marked)
    except ValueError as error:
        raise RuleError(f"cannot split the command into words: {str(error).lower()}") from error
    words = [re.sub(f"{ANY_WORDS}+", ANY_WORDS, word) for word in words]
    last = words[-1] if words else ""
    rest = last.endswith(ANY_WORDS) and "/" not in last
    while words and words[-1] == ANY_WORDS:
        words.pop()
    if not words:
        return Pattern(tools, "command", rest=True)
    _check_words(words, bare)
    return Pattern(tools, "command", tuple(words), rest)


def _marked(text: str) -> tuple[str, str]:
    """The text with each unquoted ``*`` as ``ANY_WORDS``, and its unquoted part."""
    out: list[str] = []
    bare: list[str] = []
    quote, escaped = "", False
    for char in text:
        plain = not quote and not escaped
        out.append(ANY_WORDS if plain and char == "*" else char)
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif quote:
            if quote == '"' and char in "$`":
                bare.append(char)
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            bare.append(char)
    return "".join(out), "".join(bare)


def _check_words(words: Sequence[str], bare: str) -> None:
    """Reject words that no simple command can have: such a rule would never match."""
    name = words[0]
    if operator := _OPERATORS.search(bare):
        raise RuleError(f"a rule matches one simple command, without {operator.group()}")
    if "$" in bare:
        raise RuleError("$ is expanded when the command runs; write the words out")
    if re.match(r"[A-Za-z_][A-Za-z0-9_]*=", name):
        raise RuleError("a rule starts with the program, without assignments before it")
    if any(char in name for char in "?]") or ("[" in name and name not in ("[", "[[")):
        raise RuleError("the program must be written out; the only wildcard is *")
    if " " in name and "/" not in name:
        raise RuleError("the program's name contains a space; leave out the quotes")
    if any(_OTHER_GRAMMAR.match(word) for word in (name, *(word for word in words if word == f".{ANY_WORDS}"))):
        raise RuleError("a command rule lists words, with * for any; this looks like another syntax")


def _domain(tools: tuple[str, ...], pattern: str) -> Pattern:
    head, colon, host = pattern.strip().partition(":")
    if (head, host.strip()) == ("domain", "*"):
        return Pattern(tools, "tool")
    host = host.strip().lower().removeprefix("*.").rstrip(".")
    if head != "domain" or not colon or not _HOST.fullmatch(host):
        raise RuleError("expected WebFetch(domain:host)")
    return Pattern(tools, "domain", domain=host)


def _path(pattern: str) -> PathPattern:
    text = pattern.strip()
    base: Literal["workspace", "home", "absolute"] = "workspace"
    if text.startswith("//"):
        base, text = "absolute", text[1:]
    elif match := re.match(r"(?:~|\$HOME|\$\{HOME\})(?=/)", text):
        base, text = "home", text[match.end() :]
    if text.startswith(("!", "#")):
        raise RuleError("a path pattern can't start with ! or #; write \\! or \\# for such a name")
    if text in (".", "~"):
        base, text = "home" if text == "~" else base, "**"
    if ".." in text.split("/"):
        raise RuleError("a path pattern can't contain ..")
    text = text.removeprefix("./") or text
    try:
        spec = glob_spec(text)
    except ValueError as error:
        raise RuleError(f"invalid gitignore pattern: {error}") from error
    if not any(part.include for part in spec.patterns):
        raise RuleError("the path pattern matches nothing")
    return PathPattern(base, text)


def check_rules(rules: Iterable[Rule]) -> tuple[RuleProblem, ...]:
    """Problems of all invalid rules."""
    problems: list[RuleProblem] = []
    for rule in rules:
        try:
            rule_pattern(rule)
        except RuleError as error:
            problems.append(RuleProblem(rule, f"{rule.text}: {error}."))
    return tuple(problems)


def unknown_tool(pattern: Pattern, tools: Collection[str]) -> str:
    """What a rule calls a tool although none of ``tools`` has that name; empty if one has, or if an MCP server may."""
    named = pattern.tools
    known = not named or any(name in tools or name.startswith("mcp__") for name in named)
    return "" if known else named[0]


def active_rules(policy: Policy, effect: RuleEffect) -> tuple[Rule, ...]:
    """The rules of one list that count; an untrusted project can only tighten."""
    trusted = policy.trust in ("trusted", "session")
    return tuple(
        rule
        for rule in policy.rules
        if rule.effect == effect and not (effect == "allow" and rule.scope == "project" and not trusted)
    )


@lru_cache(maxsize=32)
def _comparisons(
    rules: tuple[Rule, ...], roots: tuple[str, ...], home: str
) -> tuple[tuple[Rule, str, tuple[re.Pattern[str], ...]], ...]:
    """What ``PathPattern.matches`` compares for each rule: the beginning of a path and expressions for its rest. Every
    file of a tree is compared."""
    comparisons: list[tuple[Rule, str, tuple[re.Pattern[str], ...]]] = []
    for rule in rules:
        pattern = parse_rule(rule.text).path
        if pattern is None:
            continue
        bases = list(pattern.bases(roots, home))
        if pattern.base == "workspace" and pattern.text.startswith("/"):
            bases.append("/")
        expressions = _expressions(pattern.text, True)
        comparisons += [(rule, f"{base.rstrip('/')}/", expressions) for base in bases]
    return tuple(comparisons)


_ANY_NAMES = ("\x7f", "a0.b")
"""Two names that are unlikely to exist: a pattern with both has every name."""


class ReadRules(Struct, frozen=True):
    """Deny and ask rules about reading, for tools and commands that read many files. ``roots`` are the resolved
    workspace directories."""

    rules: tuple[Rule, ...] = ()
    roots: tuple[str, ...] = ()
    home: str = ""

    def hidden(self, paths: Iterable[str], start: str) -> set[str]:
        """The absolute paths that a call for ``start`` must not show.

        Rules that cover ``start`` itself were already agreed to.
        """
        rules = [rule for rule in self.rules if not self._covers(rule, start)]
        return {path for path in set(paths) if any(self._covers(rule, path) for rule in rules)}

    def covering(self, path: str) -> Rule | None:
        """The first rule that covers an absolute path."""
        for rule, prefix, expressions in _comparisons(self.rules, self.roots, self.home):
            if path.startswith(prefix) and any(each.search(path[len(prefix) :].strip("/")) for each in expressions):
                return rule
        return None

    def covers_folder(self, path: str) -> bool:
        """Whether everything in a folder is covered, also what is not there yet."""
        first = self.covering(f"{path}/{_ANY_NAMES[0]}")
        return first is not None and self.covering(f"{path}/{_ANY_NAMES[1]}") is not None

    def elsewhere(self) -> Iterator[tuple[Rule, str]]:
        """Rules about places outside the workspace, each with the folder that has all that it covers, or with the
        file."""
        for rule in self.rules:
            pattern = parse_rule(rule.text).path
            if pattern is None or pattern.base == "workspace" or (pattern.base == "home" and not self.home):
                continue
            text = (
                pattern.text
                if pattern.text.startswith("/") or "/" not in pattern.text.rstrip("/")
                else f"/{pattern.text}"
            )
            plain = re.split(r"[*?\[\]{}\\]", text)[0]
            plain = plain if plain == text else plain.rpartition("/")[0]
            yield (
                rule,
                posixpath.normpath(posixpath.join(self.home if pattern.base == "home" else "/", plain.strip("/"))),
            )

    @property
    def note(self) -> str:
        """What is left out, as a clause, or empty. It depends on the rules alone, so it reveals nothing about hidden
        files."""
        return f"files covered by {' or '.join(rule.text for rule in self.rules)} are left out" if self.rules else ""

    def _covers(self, rule: Rule, path: str) -> bool:
        pattern = parse_rule(rule.text).path
        return pattern is not None and pattern.matches(path, self.roots, self.home, wide=True)


NO_READ_RULES = ReadRules()


def read_rules(policy: Policy, roots: tuple[str, ...], tool: str = "") -> ReadRules:
    """The rules about reading that count: those for any tool that reads, or only those that also hold for ``tool``."""
    asks = () if policy.yolo else active_rules(policy, "ask")
    rules = (*active_rules(policy, "deny"), *asks)
    return ReadRules(tuple(rule for rule in rules if _keeps_unread(rule, tool)), roots, policy.home)


def _keeps_unread(rule: Rule, tool: str) -> bool:
    pattern = valid_pattern(rule)
    if pattern is None or pattern.kind != "read" or pattern.path is None:
        return False
    return (not pattern.tools or tool in pattern.tools) if tool else pattern.tools != ("list_files",)


def is_valid(rule: Rule) -> bool:
    try:
        rule_pattern(rule)
    except RuleError:
        return False
    return True


def matches_tool(rule: Rule, tool: str) -> bool:
    """Whether a rule matches all calls of a tool."""
    pattern = valid_pattern(rule)
    return pattern is not None and pattern.kind == "tool" and pattern.matches_tool(tool)


def matches_call(rule: Rule, call: Call, home: str) -> bool:
    """Whether a rule matches this call. Command patterns need the command's words and are judged elsewhere. An allow
    rule must cover everything that the call touches; a deny or ask rule matches any part of it."""
    pattern = valid_pattern(rule)
    if pattern is None or (pattern.tools and not pattern.matches_tool(call.tool)):
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
            # A call that also reads elsewhere needs consent for that too.
            return False
        return bool(touched) and all(pattern.matches(path, call.roots, home, wide=False) for path in touched)
    touched = effects.writes if writing else (*effects.reads, *effects.writes)
    candidates = (*touched, *given_paths(call, home))
    return bool(touched) and any(pattern.matches(path, call.roots, home, wide=True) for path in candidates)


PATH_ARGUMENTS = ("path", "file_path", "paths", "old_path", "new_path", "directory")
"""Arguments of tools that name files."""


def given_paths(call: Call, home: str) -> tuple[str, ...]:
    """The paths as the model wrote them, made absolute by text alone (links not followed)."""
    paths: list[str] = []
    for key in PATH_ARGUMENTS:
        value = call.arguments.get(key)
        values: list[object] = list(value) if isinstance(value, (list, tuple)) else [value]  # pyright: ignore[reportUnknownArgumentType]
        paths.extend(within_text(item, call.cwd, home) for item in values if isinstance(item, str) and item)
    return tuple(paths)


def path_rule(tool: Literal["Read", "Edit"], path: str, roots: Sequence[str]) -> str:
    """The narrowest rule for one file: anchored at the workspace, or absolute outside it."""
    root = inside(path, roots)
    relative = "/" + path[len(root) :].strip("/") if root is not None else "/" + path
    escaped = _GIT_SPECIAL.sub(r"\\\1", relative)
    return f"{tool}({escaped})"


def words_rule(words: Sequence[str], *, rest: bool = False) -> str:
    """The rule for exactly this command, or with ``rest`` for it and any further words."""
    return f"Bash({shlex.join(words)}{' *' if rest else ''})"
