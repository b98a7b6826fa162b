"""The purpose of a shell command, whether another one has the same purpose, and how it failed. Pure guesses from words,
used only to decide whether something is worth remembering."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from swecli.core.edit_distance import edit_distance
from swecli.lazy_pattern import lazy_pattern

_LOOKS: Final = frozenset(
    (
        *("awk", "basename", "cat", "cd", "cut", "date", "diff", "dirname", "du", "echo", "env", "fd", "file", "find"),
        *("git blame", "git branch", "git diff", "git grep", "git log", "git show", "git status", "grep", "head", "jq"),
        *("less", "ls", "printf", "ps", "pwd", "rg", "sed", "sleep", "sort", "stat", "tail", "test", "tree", "true"),
        *("type", "uniq", "wc", "which", "whoami"),
    )
)
"""Programs that only look: another way to look is not a fix. The same goes for inline programs."""

_INTENTS: Final = (
    ("lint", r"\b(ruff|flake8|pylint|eslint|clippy|golangci-lint|rubocop|shellcheck|lint)\b"),
    ("types", r"\b(mypy|pyright|basedpyright|tsc|typecheck|type-check|types)\b"),
    (
        "test",
        r"\b(pytest|unittest|tox|nox|nosetests|jest|vitest|mocha|ava|rspec|phpunit|ctest|trial|behave)\b"
        r"|\btests?\b|\bcheck\b|\bspecs?\b",
    ),
    ("format", r"\b(black|prettier|gofmt|rustfmt|isort|format|fmt)\b"),
    ("install", r"\b(install|add|sync|bootstrap|setup|ci)\b"),
    ("migrate", r"\b(migrate|migrations?|alembic|makemigrations)\b"),
    ("build", r"\b(build|compile|bundle|cmake|ninja|gradlew?|mvn|webpack|vite)\b"),
    ("run", r"\b(serve|runserver|start|dev)\b"),
)
_INTENT: Final = tuple((name, lazy_pattern(pattern)) for name, pattern in _INTENTS)
_OF_THEIR_OWN: Final = frozenset(
    (
        *("aws", "chmod", "cp", "curl", "docker", "gcloud", "gh", "git", "kubectl", "ln", "mkdir", "mv", "psql", "rm"),
        *("rsync", "scp", "ssh", "terraform", "touch", "wget"),
    )
)
"""Programs whose arguments may contain any of the words below by chance."""
_STRONG: Final = lazy_pattern(r"\b(pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|tests?)\b")
_WRAPPERS: Final = frozenset(
    (
        "sudo",
        "time",
        "env",
        "exec",
        "nice",
        "command",
        "npx",
        "pnpx",
        "bunx",
        "uvx",
        "pipx",
        "timeout",
        "nohup",
        "xvfb-run",
    )
)
_RUNNERS: Final = frozenset(
    ("poetry run", "uv run", "pipenv run", "hatch run", "pdm run", "rye run", "bundle exec", "pixi run", "npm exec")
)
_INTERPRETERS: Final = lazy_pattern(r"(?:python|node|ruby|perl|php|bash|sh|zsh|deno|bun)[\d.]*")
_ASSIGNMENT: Final = lazy_pattern(r"[A-Za-z_]\w*=")
_SEPARATORS: Final = lazy_pattern(r"\s*(?:&&|\|\||;|\n)\s*")
_PIPE: Final = lazy_pattern(r"\s\|&?\s.*$|\s2?>(?:&\d|>?\s*\S+)", re.DOTALL)
_PARTS: Final = lazy_pattern(r"[^A-Za-z0-9]+")


class Parsed(Struct, frozen=True):
    """``words`` of the last command in a line, without wrappers; ``operands`` are its paths and targets."""

    words: tuple[str, ...]
    intent: str
    looks: bool
    operands: frozenset[str]

    @property
    def targets(self) -> frozenset[str]:
        """Targets: the words after the program that do not name its purpose."""
        return frozenset(word for word in self.words[1:] if not word.startswith("-") and word not in _FOR)

    @property
    def parts(self) -> frozenset[str]:
        """Parts of its words that describe its subject."""
        return frozenset(
            part for word in self.words if not word.startswith("-") for part in _PARTS.split(word.casefold()) if part
        ) - {"run", "m", "exec", "py", "sh", "js", "bin"}


_FOR: Final = frozenset(("test", "tests", "run", "check", "build", "lint", "unit", "format", "typecheck", "install"))


def shown(command: str) -> str:
    """The command on one line, for a sentence."""
    return " ".join(command.split())


def parsed(command: str) -> Parsed:
    """The last command of a line, without redirections, wrappers and variables."""
    pieces = [piece for piece in _SEPARATORS.split(command.strip()) if piece]
    piece = next((part for part in reversed(pieces) if not _looks(_split(_PIPE.sub("", part)))), "")
    words = _unwrapped(_split(_PIPE.sub("", piece or (pieces[-1] if pieces else ""))))
    text = " ".join(word for word in words if not word.startswith("-")).casefold()
    if words and words[0] in _OF_THEIR_OWN:
        intent = ""
    else:
        intent = "test" if _STRONG.search(text) else next((name for name, told in _INTENT if told.search(text)), "")
    intent = intent or ("build" if words == ["make"] else "")
    return Parsed(tuple(words), intent, _looks(words), frozenset(filter(_is_operand, words[1:])))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _unwrapped(words: Sequence[str]) -> list[str]:
    rest = list(words)
    while rest:
        if _ASSIGNMENT.match(rest[0]) or rest[0] in _WRAPPERS or (rest[0].startswith("-") and len(rest) > 1):
            rest.pop(0)
        elif " ".join(rest[:2]) in _RUNNERS or (
            _INTERPRETERS.fullmatch(rest[0]) and rest[1:2] == ["-m"] and len(rest) > 2
        ):
            del rest[:2]
        else:
            break
    return rest


def _looks(words: Sequence[str]) -> bool:
    rest = _unwrapped(words)
    if not rest or rest[0] in _LOOKS or " ".join(rest[:2]) in _LOOKS:
        return True
    inline = _INTERPRETERS.fullmatch(rest[0]) and any(word in ("-c", "-e", "-") for word in rest[1:3])
    return bool(inline) or any(word.startswith("<<") for word in rest)


def _is_operand(word: str) -> bool:
    return not word.startswith("-") and ("/" in word or "." in word or ":" in word)


def same_intent(one: str, other: str) -> bool:
    """Whether two commands attempt the same thing."""
    a, b = parsed(one), parsed(other)
    if a.looks or b.looks or not a.words or not b.words:
        return False
    if a.intent or b.intent:
        targets = a.words[0] == b.words[0] and a.words[0] in RUN_TARGETS and a.intent != "install"
        return a.intent == b.intent and (a.intent not in ("run", "build", "install") or targets or _related(a, b))
    return _related(a, b)


_NOT_THERE: Final = lazy_pattern(
    r"no tests ran|collected 0 items|no tests found|no such file|not found|can't open file|cannot find module",
    re.IGNORECASE,
)


def asks_elsewhere(failed: str, worked: str, error: str) -> bool:
    """Whether the command that worked is the same one on another file, because the first file did not exist. That is no
    fix, unless the name was mistyped or the file is in another folder."""
    a, b = parsed(failed), parsed(worked)
    same = [word for word in a.words if word not in a.operands] == [word for word in b.words if word not in b.operands]
    if not same or a.operands == b.operands or _NOT_THERE.search(error) is None:
        return False
    removed, new = a.operands - b.operands, b.operands - a.operands
    return not all(any(_moved(operand, other) for other in new) for operand in removed) or not new


def _moved(path: str, other: str) -> bool:
    name, target = path.rstrip("/"), other.rstrip("/")
    if name.rpartition("/")[2] == target.rpartition("/")[2]:
        return True
    return _slipped(name, target) and min(len(name), len(target)) >= 4


def _slipped(name: str, other: str) -> bool:
    """Whether letters are missing, too many or swapped; another letter in a place, as of test_a and test_b, is another
    name."""
    longer = abs(len(name) - len(other))
    if longer:
        return longer <= 2 and longer == edit_distance(name, other, 2)
    return sorted(name) == sorted(other) and sum(one != new for one, new in zip(name, other, strict=True)) == 2


def instead_of_unknown(failed: str, worked: str) -> bool:
    """Whether a command may replace one whose purpose is unknown: a corrected typo, or a check or build instead of a
    missing script."""
    a, b = parsed(failed), parsed(worked)
    if a.looks or b.looks or not a.words or not b.words:
        return False
    program, other = (words[0].rpartition("/")[2] for words in (a.words, b.words))
    if len(program) >= 4 and 0 < edit_distance(program, other, 2) <= 2:
        return True
    script = "/" in a.words[0] or "." in a.words[0]
    return not a.intent and script and b.intent in ("test", "lint", "types", "build", "format", "run", "migrate")


_ASKS: Final = frozenset(
    (
        *("--version", "-V", "version", "--help", "-h", "help", "--collect-only", "--co", "--list", "--list-tests"),
        *("--dry-run", "list", "ls", "search", "show", "info", "outdated", "freeze", "which", "ps", "get", "describe"),
        *("view", "status", "log", "config", "whoami", "inspect", "doctor", "env", "--showconfig", "--fixtures"),
        *("history", "current", "tree", "why", "explain", "-l", "-n", "--markers", "--check", "--diff", "--noop"),
    )
)
"""First arguments, or options, of a command that only asks something."""
_SHELL_MARKS: Final = lazy_pattern(r"\|\||\||<<|\$\(|`|(?<!&)&\s*$|;\s*(?:true|echo|exit|:)\b")
_QUOTED: Final = lazy_pattern(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_SCRATCH: Final = lazy_pattern(r"(?:^|[\s=:])(?:/tmp/|/var/tmp/|/dev/shm/|~/)")


def proves_nothing(command: str, made: Collection[str] = ()) -> str:
    """Why the success of a command is no way to do something here, as a clause; empty if it may be. ``made`` are the
    files that the session created: a script among them was written for the moment."""
    bare = _QUOTED.sub("''", command)
    if _SHELL_MARKS.search(bare):
        return "its exit status is that of something else"
    about = parsed(command)
    if about.looks or any(_looks(_split(piece)) for piece in _SEPARATORS.split(bare)[-1:]):
        return "it only looks"
    options = [word for word in about.words[1:] if word.startswith("-")]
    plain = [word for word in about.words[1:] if not word.startswith("-")]
    if _ASKS.intersection((*plain[: 1 + (about.words[0] in _OF_THEIR_OWN)], *options)):
        return "it only asks something"
    if _SCRATCH.search(command):
        return "it is about a file outside of the project"
    if any(word.removeprefix("./") in made for word in about.words):
        return "it runs a script that was written for the moment"
    if any(_prepares(_split(piece)) for piece in _SEPARATORS.split(bare)[:-1]):
        return "it begins with what needs to be done once"
    return ""


_ONCE: Final = frozenset(
    ("apt", "apt-get", "brew", "chmod", "chown", "cp", "git", "kill", "ln", "mkdir", "mv", "rm", "touch")
)


def _prepares(words: Sequence[str]) -> bool:
    """Whether a command leaves behind what later ones need, so that these succeed without it."""
    rest = _unwrapped(words)
    return bool(rest) and (rest[0] in _ONCE or parsed(" ".join(rest)).intent == "install")


def starts_program(command: str) -> bool:
    """Whether a command runs, tests or builds something, rather than looking, installing or moving files."""
    about = parsed(command)
    if about.intent:
        return about.intent in ("run", "test", "build")
    return bool(about.words) and not about.looks and about.words[0] not in _OF_THEIR_OWN | _ONCE


def brings_what_was_missing(command: str) -> bool:
    """Whether a command may have removed the cause of errors about something that is not there."""
    words = parsed(command).words
    return words[:1] != () and (words[0] in _ONCE or not _BRINGS.isdisjoint(words[:3]))


_BRINGS: Final = frozenset(
    (
        "add",
        "bootstrap",
        "ci",
        "get",
        "i",
        "init",
        "install",
        "pull",
        "restore",
        "setup",
        "start",
        "sync",
        "up",
        "update",
    )
)


def lacks_something(error: str) -> bool:
    """Whether an error is about a program, a module or a version that is not there."""
    return _LACKS.search(error) is not None


_LACKS: Final = lazy_pattern(
    r"No module named|Cannot find module|command not found|: not found|executable file not found|\bspawn\b"
    r"|exit status 127|requires?\b|Unsupported engine|Could not find a version|cannot import name|refused|ECONNREFUSED"
    r"|EADDRINUSE",
    re.IGNORECASE,
)


def is_slip(failed: str, worked: str) -> bool:
    """Whether the command that failed was only mistyped: nobody types it again."""
    before, after = _split(failed), _split(worked)
    removed = [word for word in before if word not in after]
    come = [word for word in after if word not in before]
    return bool(removed) and all(any(_mistyped(word, other) for other in come) for word in removed)


def _mistyped(word: str, other: str) -> bool:
    """Whether a word is another one with letters wrong; not a plural or another version."""
    same = word.rstrip("s/0123456789.") == other.rstrip("s/0123456789.")
    return not same and min(len(word), len(other)) >= 4 and _slipped(word, other)


_NO_PROJECT: Final = (
    r"does not contain (?:main )?module|go\.mod file not found|cannot find main module"
    r"|could not find [`'\"]?Cargo\.toml|there is no POM in this directory|no makefile found"
)
_WITHOUT_PROJECT: Final = lazy_pattern(_NO_PROJECT, re.IGNORECASE)
"""Errors that another folder is an answer to."""
_PLACES: Final = frozenset(("-C", "--prefix", "--cwd", "--dir", "--directory", "--project", "-f", "--manifest-path"))
_OF_NPM: Final = r"npm (?:ERR!|error) code E(?!LIFECYCLE|404)[A-Z0-9]+"
_BY_NPM: Final = lazy_pattern(_OF_NPM)
_CHANGES_PROGRAM: Final = lazy_pattern(
    r"No module named|command not found|: not found|executable file not found|\bspawn\b|exit status 12[67]"
    r"|Permission denied|externally-managed|requires?\b|Unsupported engine|Could not find a version|No such file"
    r"|Missing script|script named|No rule to make target|does not contain recipe|how to build task|\btask\b"
    r"|\bsessions? not found|command \S+ (?:not found|is not defined)|no such command",
    re.IGNORECASE,
)
"""Errors that another program, interpreter or environment is an answer to."""


def explains(failed: str, worked: str, error: str) -> bool:
    """Whether what changed between two commands answers the error: a name in it is gone or has come, or another program
    runs the same where the program was at fault. Without an error, only a variable that was set."""
    before, after = _split(_CHANGED_FOLDER.sub("", failed)), _split(_CHANGED_FOLDER.sub("", worked))
    removed = [word for word in before if word not in after]
    come = [word for word in after if word not in before]
    if not error:
        return any(_ASSIGNMENT.match(word) for word in come)
    quoted = [match[1] for match in _IN_QUOTES.finditer(error)]
    bare = [name.strip(".,:") for name in _IN_QUOTES.sub(" ", error).split()]
    named = [*quoted, *(name for name in bare if len(name) > 1 and name.casefold() not in _ERROR_WORDS)]
    if "sudo" in come:
        return False
    telling = removed if lacks_something(error) else [*removed, *come]
    if any(_names_same(name, word) for name in named for word in telling):
        return not _asks_another(before, after)
    if _WITHOUT_PROJECT.search(error):
        return not removed and (not come or not _PLACES.isdisjoint(come))
    if _BY_NPM.search(error):
        return _other_program(before, after)
    if _CHANGES_PROGRAM.search(error):
        return _other_program(before, after) or _other_target(before, after)
    return not lacks_something(error) and _NOT_THERE.search(error) is not None and bool(removed or come)


def _other_program(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether something else runs the same: another program or wrapper, or the same one with a variable that says where
    things are. Another module in place of one that is not there is something else to run."""
    program, other = _program(before), _program(after)
    if "-m" in program and "-m" in other:
        return False
    come = [word for word in other if word not in program]
    return program != other and not all(_ASSIGNMENT.match(word) and not _PLACE.match(word) for word in come)


_PLACE: Final = lazy_pattern(r"\w*(?:PATH|HOME|ROOT|DIR|PREFIX)\w*=")


def _plain_words(words: Sequence[str]) -> list[str]:
    """Program and arguments without options, up to ``--``."""
    rest = _unwrapped(words)
    rest = rest[: rest.index("--")] if "--" in rest else rest
    return [word for word in rest if not word.startswith("-")]


def _other_target(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the same program runs another of the project's targets."""
    words, other = _plain_words(before), _plain_words(after)
    return words[:1] == other[:1] and words[:1] != [] and words[0] in RUN_TARGETS and words != other


def _asks_another(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the same program was given another subject in place of the one that failed; a target of the project is
    a way to do something and no subject."""
    words, other = _plain_words(before), _plain_words(after)
    if "-m" in before and "-m" in after and words[:1] != other[:1]:
        return True
    if _program(before) != _program(after) or words[:1] != other[:1] or words[:1] == [] or words[0] in RUN_TARGETS:
        return False
    removed, come = [w for w in words if w not in other], [w for w in other if w not in words]
    return bool(removed and come) and not any(_moved(name, new) for name in removed for new in come)


_CHANGED_FOLDER: Final = lazy_pattern(r"^\s*cd\s+\S+\s*(?:&&|;)")
"""A folder that isn't there is no failure of the command behind it."""
_IN_QUOTES: Final = lazy_pattern(r"['\"`]([^'\"`]+)['\"`]")
RUN_TARGETS: Final = frozenset(
    ("make", "just", "task", "npm", "pnpm", "yarn", "bun", "tox", "nox", "rake", "mix", "deno", "composer")
)
"""Programs that run what their argument names, so that its failure can be theirs."""
_ERROR_WORDS: Final = frozenset(
    (
        *("no", "not", "found", "command", "error", "module", "named", "cannot", "find", "is", "set", "to", "make"),
        *("rule", "target", "missing", "script", "unrecognized", "arguments", "argument", "option", "unknown", "file"),
        *("such", "or", "directory", "permission", "denied", "exit", "status", "tests", "ran", "collected", "items"),
        *("requires", "open", "import", "name", "from", "variable", "environment", "must", "be", "required", "a"),
    )
)


def _names_same(name: str, word: str) -> bool:
    """Whether a word of a command is, or contains as a part, a name in an error."""
    parts = {part for part in _PARTS.split(word.casefold()) if part}
    wanted = {part for part in _PARTS.split(name.casefold()) if part}
    return bool(wanted) and wanted <= parts


def _program(words: Sequence[str]) -> tuple[str, ...]:
    """What runs a command: its variables, wrappers and program."""
    rest = _unwrapped(words)
    return (*words[: len(words) - len(rest)], *rest[:1])


def _related(a: Parsed, b: Parsed) -> bool:
    common, both = a.parts & b.parts, a.parts | b.parts
    return bool(common) and len(common) >= 0.3 * len(both)


def differs(one: str, other: str) -> bool:
    return shown(one) != shown(other)


def begins(command: str, prefix: str) -> bool:
    """Whether a command equals the prefix, possibly with more arguments."""
    command, prefix = shown(command), shown(prefix)
    return bool(prefix) and (command == prefix or command.startswith(f"{prefix} "))


_NAME = r"[\w@./:+-]{1,40}"
_QUOTE = "['\"`\u2018\u2019\u201c\u201d]?"
_QUOTED_NAME = rf"{_QUOTE}{_NAME}{_QUOTE}"
_VARIABLE = rf"{_QUOTE}[A-Z][A-Z0-9_]{{2,39}}{_QUOTE}"
_SIGNATURES: Final = tuple(
    lazy_pattern(pattern, re.IGNORECASE if insensitive else 0)
    for pattern, insensitive in (
        (rf"No module named {_QUOTED_NAME}", False),
        (rf"Cannot find module ['\"]{_NAME}['\"]", False),
        (rf"(?:ImportError: )?cannot import name ['\"]{_NAME}['\"]", False),
        (rf"No rule to make target {_QUOTED_NAME}", False),
        (rf"Missing script: {_QUOTED_NAME}|script (?:named|not found) {_QUOTED_NAME}", True),
        (rf"does not contain recipes? {_QUOTED_NAME}|know how to build task {_QUOTED_NAME}", False),
        (rf"task {_QUOTED_NAME} (?:not found|does not exist|could not be found|is not defined)", True),
        (rf"(?:task|sessions?) not found: {_QUOTED_NAME}|command {_QUOTED_NAME} (?:not found|is not defined)", True),
        (rf"unrecognized arguments?: {_NAME}", True),
        (
            rf"(?:unknown|unexpected|invalid|no such|unrecognized) (?:option|flag|argument|command"
            rf"|subcommand)[: ]+{_QUOTED_NAME}",
            True,
        ),
        (rf"command not found: {_NAME}", False),
        (rf"{_NAME}: command not found", False),
        (rf"{_QUOTED_NAME}: executable file not found|\bspawn {_NAME} ENOENT", False),
        (rf"{_NAME}: (?:not found|No such file or directory|Permission denied)", False),
        (rf"can't open file ['\"]{_NAME}['\"]", False),
        (rf"(?:environment variable )?{_VARIABLE} (?:is not set|must be set|is required|not set)", False),
        (
            rf"[Ee]nvironment variables?(?: not found)?:? {_VARIABLE}|\bby setting {_VARIABLE}=|KeyError: {_VARIABLE}",
            False,
        ),
        (rf"Could not find a version that satisfies the requirement {_NAME}", False),
        (_NO_PROJECT, True),
        (_OF_NPM, False),
        (r"\berror\[E\d{4}\]", False),
        (r"\berror TS\d{3,5}\b", False),
        (r"\b(?:ENOENT|EACCES|EADDRINUSE|ECONNREFUSED|EPERM)\b", False),
        (r"Connection refused", True),
        (r"externally-managed-environment", False),
        (r"no tests ran|collected 0 items|No tests found", True),
        (r"requires? (?:a different )?(?:Python|Node|Go|Java|Ruby)(?: version)?:? ?[\w.<>=^~ ]{0,20}", False),
        (rf"Unsupported engine|Unknown compiler flag|unsupported option {_NAME}", True),
    )
)
_PLAIN_QUOTES: Final = str.maketrans("`\u2018\u2019\u201c\u201d", "'''\"\"")
_EXIT: Final = {126: "exit status 126", 127: "exit status 127"}
_LONGEST_SIGNATURE: Final = 70
_MOST_READ: Final = 20_000
_HYPHENS: Final = lazy_pattern(r"[-_ /.]+")


def signature(output: str, status: int | None = None) -> str:
    """Signature of a command's own failure, as opposed to a failure that it reports about its subject; empty if there
    is none.

    Only names and words of known messages are used: output is untrusted text, and none of its sentences may get into a
    prompt.
    """
    text = output if len(output) <= _MOST_READ else f"{output[: _MOST_READ // 2]}\n{output[-_MOST_READ // 2 :]}"
    for pattern in _SIGNATURES:
        match = pattern.search(text)
        if match is not None and _harmless_name(match[0]):
            return " ".join(match[0].translate(_PLAIN_QUOTES).split())[:_LONGEST_SIGNATURE]
    return _EXIT.get(status or 0, "")


def _harmless_name(text: str) -> bool:
    """Whether a message contains a name, and not a sentence disguised as one."""
    name = max(text.split(), key=len)
    return "://" not in text and len([part for part in _HYPHENS.split(name) if part]) <= 5


def is_usual(command: str) -> bool:
    """Whether most projects use this command for this purpose, so that it is not a lesson."""
    return bool(_USUAL.fullmatch(shown(command)))


_USUAL: Final = lazy_pattern(
    r"(?:(?:python3? -m )?pytest(?: -[qvx]+)*|(?:npm|yarn|pnpm|bun)(?: run)? (?:test|build|lint|install|start|dev)"
    r"|npm (?:ci|i)|yarn|cargo (?:test|build|check|clippy|fmt|run)|go (?:test|build|vet)(?: \./\.\.\.)?"
    r"|make(?: (?:test|check|build|all|lint))?|mvn (?:test|package)|(?:\./gradlew|gradle) (?:test|build)"
    r"|pip3? install -r requirements\.txt|pip3? install -e \.|bundle exec rspec|rspec|mix test|dotnet test|tox|nox"
    r"|ruff (?:check|format)(?: \.)?|mypy \.?|black \.?|git (?:status|pull|push|add -A|commit.*))"
)
