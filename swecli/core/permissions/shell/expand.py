"""Expansion of the tree's words to the arguments that a program would get."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import Struct, field

from swecli.core.permissions.facts import FileFacts
from swecli.core.permissions.git_facts import is_git_settings
from swecli.core.permissions.paths import inside, is_secret_in
from swecli.core.permissions.rules import NO_READ_RULES, ReadRules
from swecli.core.permissions.shell.syntax import (
    Command,
    Script,
    Segment,
    Simple,
    UnprovenError,
    Word,
    simple_commands,
)
from swecli.core.permissions.shell.tables import may_be_shown, tables
from swecli.core.permissions.shell.values import (
    MAX_VALUES,
    Array,
    Number,
    Value,
    Variables,
    changed,
    cut_name,
    is_question_to_git,
    range_of,
    sum_of,
    text_of,
)
from swecli.lazy_pattern import lazy_pattern

MAX_EXPANSIONS = 500
PROCESS = "/dev/fd/63"
"""Placeholder for a pipe to commands that are judged separately."""

_ANY_TEXT, _ANY_CHARACTER, _NO_DOT = "**", "??", "[!.]"
"""Wildcards among single characters."""
_BRACKET = lazy_pattern(r"\[[!^]?[A-Za-z0-9_.,+-]+\]")


NOWHERE_ELSE: frozenset[tuple[str, str]] = frozenset()


class Situation(Struct, frozen=True):
    """State at one point of the script. ``cwds`` are all possible current directories; empty if unknown. ``start`` is
    where the whole command starts."""

    facts: FileFacts
    roots: tuple[str, ...]
    home: str
    start: str
    cwds: tuple[str, ...]
    left: frozenset[tuple[str, str]] = NOWHERE_ELSE
    """The possible directories, each with one from which ``cd`` led there, empty where none did; empty if unknown."""
    variables: Variables = field(default_factory=lambda: {})
    piped: bool = False
    """Whether its input is the output of the previous command."""
    cut: bool = False
    """Whether the next command of the pipeline reads only the beginning of its output."""
    altered: str = ""
    """A variable that an earlier command, run because of a rule, sets and that programs may obey."""
    edited: frozenset[str] = frozenset()
    """Names that commands of the script may make, move or change: the parts of all paths among their words."""
    moved: bool = False
    """Whether an earlier git command of the script may change index, work tree or revisions."""
    effects_only: bool = False
    """Whether only what commands do is judged, not what they read."""
    rules: ReadRules = NO_READ_RULES
    """The user's rules about reading."""

    def object_to_reading(self, reason: str) -> None:
        """Raise ``UnprovenError`` about what a command reads, unless only its effects are judged."""
        if not self.effects_only:
            raise UnprovenError(reason, soft=True)

    def covered(self, path: str) -> bool:
        """Whether a rule of the user about reading covers a file."""
        return self.rules.covering(path) is not None

    def object_to_showing(self, path: str, sentence: str) -> None:
        """Raise ``UnprovenError`` about showing a file that may hold secrets or that a rule of the user covers, unless
        only effects are judged: ``sentence`` and a clause about it."""
        if self.effects_only:
            return
        rule = self.rules.covering(path)
        if rule is not None:
            raise UnprovenError(f"{sentence}, which your rule {rule.text} covers", soft=True, rule=rule)
        if is_secret_in(path, self.roots, self.facts.secret_names):
            raise UnprovenError(f"{sentence}, which may hold secrets", soft=True)


def expand(word: Word, situation: Situation) -> list[str | None]:
    """The arguments of one word; None is an argument with unknown text.

    Raises:
        UnprovenError: the expansion is unknown.
    """
    text = ""
    pattern: list[str] = []
    """Characters and wildcards."""
    globbing = word.has_glob
    unknown: list[str | None] = [None] if _all_quoted(word) else [None, None]
    """An unquoted word may become any number of arguments; two stand for more than one."""
    for segment in word.segments:
        if segment.kind == "process":
            return [PROCESS]
        if segment.change in ("[@]", "[*]"):
            return _elements(word, segment, situation)
        if segment.kind == "number":
            _check_numbers(segment, situation)
            value = sum_of(segment.text, situation.variables)
        elif segment.kind == "commands":
            shown = _shown_document(segment)
            values = _output(segment.script, situation) if shown is None else [shown]
            if values is not None and len(values) > 1 and len(word.segments) == 1 and not segment.quoted:
                return [*values]
            value = None if values is None or len(values) != 1 else _unsplit("(…)", values[0], quoted=segment.quoted)
        elif segment.kind == "variable" and not segment.quoted and _holds_wildcards(word, segment, situation):
            value, globbing = _value(segment, situation, quoted=True), True
            pattern += _pieces(value or "", active=True)
            text += value or ""
            continue
        else:
            value = _value(segment, situation, quoted=segment.quoted)
        if value is None:
            if globbing:
                raise UnprovenError("wildcards are mixed with a computed text")
            return unknown[:1] if len(word.segments) == 1 and is_sum(segment, situation) else [*unknown]
        text += value
        whole = len(word.segments) == 1
        pattern += _pieces(value, active=globbing and segment.kind == "text" and not segment.quoted, whole=whole)
    if not globbing:
        return [text]
    return _matches(text, pattern, situation)


def _holds_wildcards(word: Word, segment: Segment, situation: Situation) -> bool:
    """Whether the shell would expand the value of an unquoted variable to names, and do nothing else to it."""
    value = changed(text_of(situation.variables.get(segment.text)), segment.change)
    if value is None or not any(char in value for char in "*?[") or any(char in value for char in " \t\n\\"):
        return False
    return not any("[" in other.text for other in word.segments if other.kind == "text")


def _all_quoted(word: Word) -> bool:
    return all(segment.quoted for segment in word.segments if segment.kind in ("variable", "commands"))


def _elements(word: Word, segment: Segment, situation: Situation) -> list[str | None]:
    """The arguments of a word with ``${name[@]}``."""
    value = situation.variables.get(segment.text)
    if segment.text not in situation.variables:
        raise UnprovenError(f"the value of ${segment.text} is unknown")
    plain = [each for each in word.segments if each.kind != "text" or each.text]
    if not isinstance(value, Array) or len(plain) != 1 or not segment.quoted or segment.change != "[@]":
        return [None, None]
    return [*value.elements]


def is_number(value: Value) -> bool:
    """Whether arithmetic takes a variable's value as a number: the shell would evaluate anything else."""
    return isinstance(value, Number) or (isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value) is not None)


def is_sum(segment: Segment, situation: Situation) -> bool:
    """Whether a piece of a word, judged elsewhere, becomes a number."""
    match segment.kind:
        case "number":
            return True
        case "commands":
            return prints_number(segment.script)
        case "variable":
            named = segment.text in _NUMBERS and segment.text not in situation.variables
            value = situation.variables.get(segment.text)
            return named or segment.change.startswith("#") or (is_number(value) and not segment.change)
        case _:
            return False


_NUMBERS = frozenset(("?", "#", "$", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID"))
"""Parameters that the shell sets to numbers."""


def prints_number(script: Script | None) -> bool:
    """Whether all that the commands of a substitution print are numbers."""
    items = script.items if script is not None else ()
    return bool(items) and all(len(item.items) == 1 and _counts(item.items[0][1].commands) for item in items)


def _counts(commands: Sequence[Command]) -> bool:
    """Whether the last command of a pipeline prints one number, or nothing."""
    last = commands[-1]
    if not isinstance(last, Simple) or last.assignments:
        return False
    fed = len(commands) > 1
    for redirect in last.redirects:
        fed |= redirect.operator.startswith("<") and redirect.fd in ("", "0")
        if not redirect.operator.startswith("<") and (redirect.fd, redirect.operator) != ("2", ">"):
            return False
    match [word.literal for word in last.words]:
        case ["wc", "-l" | "-c" | "-w" | "-m"]:
            return fed
        case ["grep", "-c" | "-ic" | "-ci" | "-cE" | "-cv", str(pattern)]:
            return fed and not pattern.startswith("-")
        case ["grep", "-c" | "-ic" | "-ci" | "-cE" | "-cv", str(pattern), str(name)]:
            return not pattern.startswith("-") and not name.startswith("-")
        case ["git", "rev-list", *options]:
            return "--count" in options and "--left-right" not in options and "--cherry-mark" not in options
        case ["date", "+%s"] | ["nproc"]:
            return True
        case _:
            return False


def _output(script: Script | None, situation: Situation) -> list[str] | None:
    """The words that a substitution is known to become, each plain; None if they are not known."""
    commands = (
        [command for item in script.items for _, line in item.items for command in line.commands] if script else []
    )
    only = commands[0] if len(commands) == 1 else None
    if not isinstance(only, Simple) or only.assignments:
        return None
    if any(redirect.fd != "2" or redirect.operator != ">" for redirect in only.redirects):
        return None
    if [word.literal for word in only.words] == ["pwd"]:
        value = _value(Segment("variable", "PWD", quoted=True), situation, quoted=True)
        return None if value is None else [value]
    name = only.words[0].literal if only.words else None
    if name not in ("seq", "basename", "dirname", "git"):
        return None
    words = [argument for word in only.words for argument in expand(word, situation)]
    if name == "git":
        return git_answer(words, situation)
    if name == "seq":
        return range_of(words)
    cut = cut_name(words)
    return None if cut is None else [cut]


def _shown_document(segment: Segment) -> str | None:
    """The text of ``"$(cat <<'EOF' … )"``, which is known beforehand; None for any other substitution."""
    items = segment.script.items if segment.script is not None and segment.quoted else ()
    commands = [command for item in items for _, pipeline in item.items for command in pipeline.commands]
    only = commands[0] if len(commands) == 1 else None
    if not isinstance(only, Simple) or only.assignments or len(only.redirects) != 1:
        return None
    source = only.redirects[0]
    known = source.operator == "<<" and source.fd in ("", "0") and source.literal_body
    return source.body.rstrip("\n") if known and [word.literal for word in only.words] == ["cat"] else None


def asks_git(word: Word) -> bool:
    """Whether git may tell what the word stands for."""
    scripts = [segment.script for segment in word.segments if segment.kind == "commands" and segment.script is not None]
    return any(
        is_question_to_git([each.literal for each in command.words])
        for script in scripts
        for command in simple_commands(script)
    )


def git_answer(words: Sequence[str | None], situation: Situation) -> list[str] | None:
    """The lines that git prints, if it is asked about revisions, branches and folders and no earlier command of the
    script may change the answer. The words are judged elsewhere."""
    if not is_question_to_git(words) or situation.moved or situation.edited or situation.altered:
        return None
    if situation.cwds != (situation.start,) or situation.facts.git_problem(situation.start, situation.roots):
        return None
    lines = situation.facts.git_lines(situation.start, [word for word in words[1:] if word is not None])
    plain = lines is not None and 0 < len(lines) <= MAX_VALUES and all(map(_PLAIN.fullmatch, lines))
    return list(lines) if lines is not None and plain else None


_PLAIN = lazy_pattern(r"[\w./@][\w./@+=,-]*")


_BASED = lazy_pattern(r"\b[0-9]+#[0-9A-Za-z]+")


def _check_numbers(calculation: Segment, situation: Situation) -> None:
    """Raise unless the names in an arithmetic expression hold plain numbers, and its substitutions print such: the
    shell would evaluate anything else."""
    for name in re.findall(r"[A-Za-z_$][A-Za-z0-9_]*", _BASED.sub("0", calculation.text)):
        if not is_sum(Segment("variable", name.removeprefix("$")), situation):
            raise UnprovenError(f"the value of {name} may not be a number")
    if "@" in calculation.text and not prints_number(calculation.script):
        raise UnprovenError("what a substitution in arithmetic prints may not be a number")


def _value(segment: Segment, situation: Situation, *, quoted: bool) -> str | None:
    kind, text = segment.kind, segment.text
    if kind == "text":
        return text
    if kind == "home" or text == "HOME":
        if not situation.home:
            raise UnprovenError("the home directory is unknown")
        value: str | None = situation.home
        quoted = quoted or kind == "home"
    elif text == "PWD" and len(situation.cwds) == 1:
        value = situation.cwds[0]
    elif text in situation.variables:
        value = text_of(situation.variables[text])
    elif may_be_shown(text) or text == "BASH_REMATCH":
        return None
    else:
        raise UnprovenError(f"the value of ${text} is unknown")
    if segment.change.startswith("["):
        return None
    if segment.change.startswith("#["):
        array = situation.variables.get(text)
        return str(len(array.elements)) if isinstance(array, Array) and None not in array.elements else None
    value = changed(value, segment.change)
    return None if value is None else _unsplit(text or "HOME", value, quoted=quoted)


def _unsplit(name: str, value: str, *, quoted: bool) -> str:
    if not quoted and any(char in value for char in " \t\n*?["):
        raise UnprovenError(f"${name} is not quoted and would be split or expanded")
    if not quoted and not value:
        raise UnprovenError(f"${name} is empty and not quoted")
    return value


def _pieces(text: str, *, active: bool, whole: bool = False) -> list[str]:
    """Characters, and wildcards that match at least everything bash matches. ``whole``: the text is the whole word."""
    if not active:
        return list(text)
    pieces: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "*":
            pieces.append(_ANY_TEXT)
        elif char == "?":
            pieces.append(_ANY_CHARACTER)
        elif char == "[":
            bracket = _BRACKET.match(text, at)
            if bracket is None:
                if not whole:
                    raise UnprovenError("these brackets are not understood")
                pieces.append(_ANY_TEXT)  # as [[...slug]]: at most what the rest of the name may be
                slash = text.find("/", at)
                at = len(text) if slash < 0 else slash
                continue
            # ".[!.]*" are the hidden names without "..".
            pieces.append(_NO_DOT if bracket[0] in ("[!.]", "[^.]") else _ANY_CHARACTER)
            at = bracket.end() - 1
        else:
            pieces.append(char)
        at += 1
    return pieces


def _fits(pattern: Sequence[str], name: str) -> bool:
    """Whether a name matches, in time at most the product of both lengths."""
    at = position = 0
    star, resume = -1, 0
    while at < len(name):
        piece = pattern[position] if position < len(pattern) else ""
        if piece == _ANY_TEXT:
            star, resume = position, at
            position += 1
        elif piece in (_ANY_CHARACTER, name[at]) or (piece == _NO_DOT and name[at] != "."):
            at, position = at + 1, position + 1
        elif star >= 0:
            resume += 1
            at, position = resume, star + 1
        else:
            return False
    return all(piece == _ANY_TEXT for piece in pattern[position:])


def _matches(text: str, pattern: list[str], situation: Situation) -> list[str | None]:
    if len(situation.cwds) != 1:
        raise UnprovenError("wildcards appear where the current directory is uncertain")
    components = _components(pattern)
    paths = _walk(components, situation)
    if any(item.startswith("-") for item in paths):
        raise UnprovenError("the wildcards match a name that looks like an option")
    # With brackets or dots this may match more than bash does; bash then keeps the word literal.
    if not paths or "[" in text or any(path.rpartition("/")[2] in (".", "..") for path in paths):
        paths.append(text)
    return sorted(set(paths))  # pyright: ignore[reportReturnType]


def _components(pattern: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for piece in pattern:
        if piece == "/":
            parts.append([])
        else:
            parts[-1].append(piece)
    return parts


def _walk(components: list[list[str]], situation: Situation) -> list[str]:
    paths = [""]
    first_glob = next(index for index, component in enumerate(components) if _is_glob(component))
    for index, component in enumerate(components):
        last = index == len(components) - 1
        separator = "" if last else "/"
        if not _is_glob(component):
            paths = [path + "".join(component) + separator for path in paths]
            if index > first_glob:
                # Names after a wildcard must exist for it to match.
                paths = [path for path in paths if situation.facts.kind(_from(path, situation)) != "missing"]
            continue
        hidden = component[0] == "."
        following: list[str] = []
        for path in paths:
            folder = _from(path, situation)
            if inside(situation.facts.resolve(folder), situation.roots) is None:
                situation.object_to_reading("the wildcards look into a place outside the workspace")
                return []
            names = situation.facts.names(folder)
            if names is None:
                raise UnprovenError("the wildcards stand for too many files to judge")
            if hidden:
                names = (*names, ".", "..")
            following += [
                path + name + separator for name in names if name.startswith(".") == hidden and _fits(component, name)
            ]
        if len(following) > MAX_EXPANSIONS:
            raise UnprovenError("the wildcards stand for too many files to judge")
        paths = following
    return [path for path in paths if path]


def _is_glob(component: Sequence[str]) -> bool:
    return not {_ANY_TEXT, _ANY_CHARACTER, _NO_DOT}.isdisjoint(component)


def _from(path: str, situation: Situation) -> str:
    return path if path.startswith("/") else f"{situation.cwds[0]}/{path}"


_STREAMS = frozenset(("-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", PROCESS))


def check_name(text: str, situation: Situation) -> str:
    """Raise unless the name is inside the workspace, for commands that show no content. Returns the path."""
    resolved = ""
    for path in absolute(text, situation):
        resolved = situation.facts.resolve(path)
        if inside(resolved, situation.roots) is None:
            situation.object_to_reading(f"{text} is outside the workspace")
    return resolved


def check_entry(text: str, situation: Situation) -> None:
    """``check_name`` for commands that look at a link itself instead of following it."""
    folder, slash, name = text.rpartition("/")
    if name in ("", ".", ".."):
        check_name(text, situation)
    else:
        check_name(f"{folder}/." if slash else ".", situation)


def check_content(text: str, situation: Situation) -> None:
    """Raise unless it is an ordinary workspace file or directory, or missing, and not secret."""
    if text in _STREAMS:
        return
    for path in absolute(text, situation):
        resolved = _open_target(text, path, situation)
        if is_git_settings(resolved) and situation.facts.credentials_in(resolved):
            situation.object_to_reading(f"{text} may hold a password or token")
        if situation.facts.kind(resolved) == "other":
            raise UnprovenError(f"{text} is not an ordinary file")


def check_revision(text: str, situation: Situation) -> None:
    """Raise unless a word that git takes as revision or path stays inside the repository and is not secret."""
    if text.startswith(("/", "~")) or ".." in text.split("/"):
        check_content(text, situation)
        return
    path = text.rpartition(":")[2]
    if ".." in path.split("/"):
        check_content(path, situation)
    if is_secret_in("/" + path, ("/",), situation.facts.secret_names):
        situation.object_to_reading(f"{text} may hold secrets")
    for candidate in absolute(path, situation) if path != text else ():
        _object_to_rule(text, candidate, situation)
    for candidate in absolute(text, situation):
        _open_target(text, candidate, situation)


def _open_target(text: str, path: str, situation: Situation) -> str:
    """The target of ``path`` with links followed. Raises if it is outside the workspace or may be secret."""
    resolved = situation.facts.resolve(path)
    if inside(resolved, situation.roots) is None:
        situation.object_to_reading(f"{text} is outside the workspace")
    names = situation.facts.secret_names
    if is_secret_in(path, situation.roots, names) or is_secret_in(resolved, situation.roots, names):
        situation.object_to_reading(f"{text} may hold secrets")
    for each in dict.fromkeys((posixpath.normpath(path), resolved)):
        _object_to_rule(text, each, situation)
    return resolved


def _object_to_rule(text: str, path: str, situation: Situation) -> None:
    rule = None if situation.effects_only else situation.rules.covering(path)
    if rule is not None:
        raise UnprovenError(f"your rule {rule.text} covers {text}", soft=True, rule=rule)


def check_git_settings(name: str, situation: Situation) -> None:
    """Raise if git's settings, which the command shows, contain a password or token."""
    for path in situation.facts.git_settings(situation.start):
        if situation.facts.credentials_in(path):
            situation.object_to_reading(f"{name} may show a password or token of {path}")


def check_tree(text: str, situation: Situation, names: Sequence[str] = ("*",)) -> None:
    """Raise unless every link below a directory that has one of these names stays inside the workspace."""
    for path in absolute(text, situation):
        if not situation.effects_only and situation.facts.leads_outside(path, situation.roots, names):
            situation.object_to_reading(f"links below {text} may lead outside the workspace")


def absolute(text: str, situation: Situation) -> tuple[str, ...]:
    """Every absolute path that the text may mean; ``..`` is left to the file system.

    Raises:
        UnprovenError: the current directory is unknown.
    """
    if text.startswith("/"):
        return (text,)
    if not situation.cwds:
        raise UnprovenError(f"the directory of {text} is uncertain")
    return tuple(posixpath.join(cwd, text) for cwd in situation.cwds)


def looks_for_secrets(pattern: str, situation: Situation) -> bool:
    """Whether a name or wildcard pattern targets secret files rather than files in general."""
    name = pattern.rpartition("/")[2]
    if not name or pattern.startswith("!"):
        return False
    if any(fnmatchcase(example, name) for example in tables().lists["harmless_names"]):
        return False
    return any(fnmatchcase(example, name) for example in situation.facts.secret_names.examples)
