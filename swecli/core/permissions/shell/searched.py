"""Files that a command reads from a tree: whether a search, or git, may show lines from files with secrets."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase

from swecli.core.permissions.facts import Reach
from swecli.core.permissions.paths import is_secret
from swecli.core.permissions.shell.expand import Situation, absolute, looks_for_secrets
from swecli.core.permissions.shell.syntax import UnprovenError

Texts = Sequence[tuple[str, str]]
"""Options with their values, in order."""

_RIPGREP_ALL = frozenset(("-u", "--unrestricted"))
_RIPGREP_HIDDEN = frozenset(("-.", "--hidden", *_RIPGREP_ALL))
_RIPGREP_TYPES = {
    "py": ".py .pyi",
    "python": ".py .pyi",
    "js": ".js .jsx .mjs .cjs .vue",
    "ts": ".ts .tsx .mts .cts",
    "typescript": ".ts .tsx .mts .cts",
    "rust": ".rs",
    "go": ".go",
    "java": ".java",
    "c": ".c .h",
    "cpp": ".c .h .cc .hh .cpp .hpp .cxx .hxx .inl",
    "css": ".css .scss",
    "html": ".htm .html .ejs",
    "md": ".md .markdown .mdown .mkd .mkdn .mdx",
    "markdown": ".md .markdown .mdown .mkd .mkdn .mdx",
}
"""Endings of ripgrep's commonest types; any other type counts as everything."""

_PATCH_WORDS = """-p -u -U -c -L -W --patch --unified --cc --patch-with-stat --patch-with-raw --word-diff --color-words
  --function-context --binary --combined-all-paths --irreversible-delete"""
_NO_CONTENT_WORDS = """--stat --name-only --name-status --shortstat --numstat --summary --raw --dirstat -s --no-patch
  --quiet --compact-summary --dirstat-by-file --cumulative"""
_PATCH, _NO_CONTENT = frozenset(_PATCH_WORDS.split()), frozenset(_NO_CONTENT_WORDS.split())
_ONLY_WITH_PATCH = frozenset(
    ("git log", "git whatchanged", "git reflog", "git stash list", "git stash show", "git diff-tree", "git rev-list")
)
_PATCH_BY_DEFAULT = frozenset(("git diff", "git show", "git diff-index", "git diff-files"))


def check_grep(options: Collection[str], texts: Texts, operands: Sequence[str], situation: Situation) -> None:
    """Raise if a recursive grep over these operands reads a secret.

    Raises:
        UnprovenError: it does, or that is unknown.
    """
    pruned = tuple(value.rstrip("/") for option, value in texts if option == "--exclude-dir")
    chosen = [(option, value) for option, value in texts if option in ("--include", "--exclude")]

    def read(path: str) -> bool:
        verdict = not chosen or chosen[0][0] == "--exclude"
        for option, pattern in chosen:
            if fnmatchcase(posixpath.basename(path), pattern):
                verdict = option == "--include"
        return verdict

    _check("grep", operands or ["."], Reach(pruned=pruned), read, situation)


def check_ripgrep(options: Collection[str], texts: Texts, operands: Sequence[str], situation: Situation) -> None:
    """Raise if ripgrep over these operands reads a secret. It skips hidden and ignored files unless a glob or an option
    asks for them.

    Raises:
        UnprovenError: it does, or that is unknown.
    """
    if not operands and situation.piped:
        return
    globs = [(option == "--iglob", value) for option, value in texts if option in ("-g", "--glob", "--iglob")]
    wanted = any(not value.startswith("!") for _, value in globs)
    types = [value for option, value in texts if option in ("-t", "--type")]
    redefined = any(option in ("--type-add", "--type-clear") for option, _ in texts)
    known = not redefined and all(name in _RIPGREP_TYPES for name in types)
    endings = tuple(ending for name in types for ending in _RIPGREP_TYPES.get(name, "").split()) if known else ()
    ignored = wanted or bool(_RIPGREP_ALL & set(options)) or any(one.startswith("--no-ignore") for one in options)
    reach = Reach(
        hidden=wanted or bool(_RIPGREP_HIDDEN & set(options)),
        ignored=ignored,
        pruned=tuple(
            found[1]
            for _, value in globs
            if (found := re.fullmatch(r"!(?:\*\*/)?([^/{}\[\]]+?)(?:/(?:\*\*)?)?", value))
        ),
    )

    def read(path: str) -> bool:
        if types and endings and not path.casefold().endswith(endings):
            return False
        verdict = not wanted
        for fold, value in globs:
            bare = value.removeprefix("!")
            if _glob_takes(bare, path.casefold() if fold else path, loose=not value.startswith("!"), fold=fold):
                verdict = not value.startswith("!")
        return verdict

    _check("rg", operands or ["."], reach, read, situation)


def check_listed(
    name: str, predicates: Sequence[str], starts: Sequence[str], situation: Situation, reach: Reach | None = None
) -> None:
    """Raise if a command that reads the files find lists gets a secret.

    Raises:
        UnprovenError: it does, or that is unknown.
    """
    alternatives = {"-o", "-or", ",", "!", "-not"} & set(predicates)
    names = [
        (word == "-iname", predicates[at + 1])
        for at, word in enumerate(predicates[:-1])
        if word in ("-name", "-iname") and not alternatives
    ]

    def read(path: str) -> bool:
        base = posixpath.basename(path)
        return all(fnmatchcase(base.casefold() if fold else base, p.casefold() if fold else p) for fold, p in names)

    _check(name, starts or ["."], reach or Reach(), read, situation)


def check_trees(name: str, operands: Sequence[str], situation: Situation) -> None:
    """Raise if a command that compares whole trees reads a secret.

    Raises:
        UnprovenError: it does, or that is unknown.
    """
    _check(name, operands, Reach(), lambda path: True, situation)


def _check(name: str, starts: Sequence[str], reach: Reach, read: Callable[[str], bool], situation: Situation) -> None:
    if situation.effects_only:
        return
    for start in starts:
        for path in absolute(start, situation):
            found = situation.facts.secrets_below(path, reach)
            if found is None:
                raise UnprovenError(f"{start} is too large to check for secrets", soft=True)
            first = next((secret for secret in found if read(secret)), None)
            if first is not None:
                shown = posixpath.relpath(first, posixpath.normpath(path))
                raise UnprovenError(
                    f"{name} would read {shown}, which may hold secrets; exclude it with an option", soft=True
                )


def _glob_takes(pattern: str, path: str, *, loose: bool, fold: bool) -> bool:
    """Whether a glob may match a path. ``loose`` errs towards yes, otherwise towards no."""
    text = pattern.casefold() if fold else pattern
    expression, at, depth = "", 0, 0
    while at < len(text):
        char = text[at]
        if text.startswith("**", at):
            expression, at = expression + ".*", at + (3 if text.startswith("**/", at) else 2)
            continue
        if char == "*":
            expression += ".*" if loose else "[^/]*"
        elif char == "?":
            expression += "."
        elif char == "[" and (end := text.find("]", at + 2)) > 0:
            expression, at = expression + ("." if loose else "(?!)"), end
        elif char == "{":
            expression, depth = expression + "(?:", depth + 1
        elif char == "}" and depth:
            expression, depth = expression + ")", depth - 1
        elif char == "," and depth:
            expression += "|"
        else:
            expression += re.escape(char)
        at += 1
    expression += ")" * depth
    return re.search(rf"(?:^|/)(?:{expression.lstrip('/')})$", path, re.DOTALL) is not None


# --- git -----------------------------------------------------------------------------------------------------------


_COMPARES = frozenset(("--cached", "--staged", "--merge-base"))
_LAYOUT_WORDS = """-p -u -U -W -w -b --patch --unified --function-context --stat --numstat --shortstat --summary
  --patch-with-stat --no-ext-diff --no-textconv --no-color --no-renames --minimal --patience --histogram"""
_LAYOUT = frozenset(_LAYOUT_WORDS.split())
"""Options of ``git diff`` that do not change which files it shows."""


def check_git(
    name: str, options: Collection[str], revisions: Sequence[str], paths: Sequence[str], situation: Situation
) -> None:
    """Raise if a git command shows lines of a file that may hold secrets. ``paths`` limits it to some files; empty
    means all tracked files.

    Raises:
        UnprovenError: it does, or that is unknown.
    """
    given = set(options)
    shows = (
        name == "git grep"
        or (name in _PATCH_BY_DEFAULT and (not _NO_CONTENT & given or bool(_PATCH & given)))
        or (name in _ONLY_WITH_PATCH and bool(_PATCH & given))
    )
    if not shows or situation.effects_only:
        return
    for path in paths:
        check_pathspec(path, situation)
    tracked = situation.facts.tracked_secrets(situation.start)
    if tracked is None:
        raise UnprovenError("git may track files that hold secrets here", soft=True)
    limits = [path for path in paths if not path.startswith((":!", ":^"))]
    for secret in tracked:
        if _excluded(secret, paths, situation) or (
            limits and not any(_covers(one, secret, situation) for one in limits)
        ):
            continue
        known = name == "git diff" and given <= _COMPARES | _LAYOUT
        if known and _shows_no_secret((*sorted(_COMPARES & given), *revisions), situation):
            return
        raise UnprovenError(f"{name} may show {secret}, which may hold secrets", soft=True, git_knows=known)
    if name == "git grep" and {"--untracked", "--no-exclude-standard"} & given:
        reach = Reach(ignored="--no-exclude-standard" in given)
        _check(name, limits or ["."], reach, lambda path: not _excluded(path, paths, situation), situation)


def _shows_no_secret(arguments: Sequence[str], situation: Situation) -> bool:
    """Whether git has said that a diff shows no file that may hold secrets, whatever paths it is limited to."""
    names = situation.facts.diff_names(situation.start, arguments)
    return names is not None and not any(is_secret(f"/{name}", situation.facts.secret_names) for name in names)


def check_pathspec(text: str, situation: Situation) -> None:
    """Raise if the wildcards of a git path target files with secrets rather than files in general.

    Raises:
        UnprovenError: they do.
    """
    if text.startswith((":!", ":^")):
        return
    bare = re.sub(r"^:(?:\([^)]*\)|/)", "", text)
    name = bare.rpartition("/")[2]
    if re.search(r"[*?\[\\]", bare) is None or not name.strip("*"):
        return
    if is_secret("/" + name, situation.facts.secret_names) or looks_for_secrets(name.casefold(), situation):
        raise UnprovenError(f"{text} may stand for files that hold secrets", soft=True)


def _covers(limit: str, secret: str, situation: Situation) -> bool:
    """Whether a git path may match a file; magic words count as yes."""
    if limit.startswith(":"):
        return True
    for path in absolute(limit, situation):
        normal = posixpath.normpath(path)
        if re.search(r"[*?\[\\]", limit) is not None:
            if _glob_takes(normal.lstrip("/"), secret.lstrip("/"), loose=True, fold=False):
                return True
        elif secret == normal or secret.startswith(normal.rstrip("/") + "/"):
            return True
    return False


def _excluded(secret: str, paths: Sequence[str], situation: Situation) -> bool:
    """Whether one of the paths excludes the file by its plain name or folder."""
    for text in paths:
        bare = text[2:] if text.startswith((":!", ":^")) else ""
        if bare and re.search(r"[*?\[\\:(]", bare) is None:
            for path in absolute(bare, situation):
                normal = posixpath.normpath(path)
                if secret == normal or secret.startswith(normal.rstrip("/") + "/"):
                    return True
    return False
