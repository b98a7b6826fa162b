"""Which files' lines a git command shows: those of the revisions that it shows, not those of the work tree.

Git keeps what left the tree. So git itself lists the names, with the words of the command that choose revisions; what
it says about the layout is left out. Where git can't be asked in time, the command asks.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from swecli.core.permissions.facts import GitObject, Reach
from swecli.core.permissions.paths import is_secret, is_secret_in
from swecli.core.permissions.shell.expand import Situation, absolute, looks_for_secrets
from swecli.core.permissions.shell.searched import Texts, check_below, glob_takes
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.core.secret_names import is_test_key
from swecli.lazy_pattern import lazy_pattern

_PATCH_WORDS = """-p -u -U -c -L -W --patch --unified --cc --patch-with-stat --patch-with-raw --word-diff --color-words
  --function-context --binary --combined-all-paths --irreversible-delete --check"""
_NO_CONTENT_WORDS = """--stat --name-only --name-status --shortstat --numstat --summary --raw --dirstat -s --no-patch
  --quiet --compact-summary --dirstat-by-file --cumulative"""
_PATCH, _NO_CONTENT = frozenset(_PATCH_WORDS.split()), frozenset(_NO_CONTENT_WORDS.split())
_ONLY_WITH_PATCH = frozenset(
    ("git log", "git whatchanged", "git reflog", "git stash list", "git stash show", "git diff-tree")
)
_PATCH_BY_DEFAULT = frozenset(("git diff", "git show", "git diff-index", "git diff-files"))

_CHOOSING_WORDS = """-g -c -m -n -i -E -F -P -R --cc --all --merges --no-merges --first-parent --reverse --follow
  --full-diff --left-only --right-only --boundary --cherry --cherry-mark --cherry-pick --full-history --dense --sparse
  --simplify-merges --simplify-by-decoration --show-pulls --walk-reflogs --merge --regexp-ignore-case --basic-regexp
  --extended-regexp --fixed-strings --perl-regexp --all-match --invert-grep --do-walk --no-walk --ignore-missing --not
  --bisect --remove-empty --exclude-first-parent-only --root --ancestry-path --reflog --branches --tags --remotes
  --glob --exclude --since --after --until --before --since-as-filter --author --committer --grep --grep-reflog
  --max-count --skip --min-parents --max-parents --max-age --min-age --date-order --author-date-order --topo-order
  --left-right --diff-merges --cached --staged --merge-base --base --ours --theirs --include-untracked
  --only-untracked"""
_CHOOSING: Final = frozenset(_CHOOSING_WORDS.split())
"""Options that choose revisions or the sides of a comparison. Those that only narrow what is shown of them, and those
that find renamed files, are left out: without them git lists more names."""
_WIDENING = frozenset(("--all", "--branches", "--tags", "--remotes", "--glob", "--reflog", "-g", "--walk-reflogs"))
_ONLY_NAMES = ("--no-renames", "--no-relative", "--no-ext-diff", "--no-textconv", "--name-only", "-z")
_COPIES = frozenset(("-C", "--find-copies", "--find-copies-harder"))
_OF_WORK_TREE = frozenset(("git diff", "git diff-files"))
_RANGE = lazy_pattern(r"\.\.|^\^|\^[!@]$|\^-\d*$")
_COLON = lazy_pattern(r"\{[^}]*\}|(:)")


class GitWords(Struct, frozen=True):
    """The words of a git command behind its name. ``sequence`` has all of them in order, options with their values,
    operands without a name; ``paths`` limit it, and without any all files count."""

    options: Collection[str] = ()
    texts: Texts = ()
    sequence: Texts = ()
    revisions: Sequence[str] = ()
    paths: Sequence[str] = ()


def check_git(name: str, words: GitWords, situation: Situation) -> None:
    """Raise ``UnprovenError`` if a git command shows lines of a file that may hold secrets or that a rule about reading
    covers, or that is unknown."""
    options, texts, revisions, paths = words.options, words.texts, words.revisions, words.paths
    if situation.effects_only:
        return
    if name == "git cat-file" and {"-p", "-t", "-s", "-e"}.isdisjoint(options) and len(revisions) < 2:
        return
    if name != "git cat-file" and not _shows_lines(name, set(options), texts):
        return
    for path in paths:
        _check_pathspec(path, situation)
    limits = [path for path in paths if not path.startswith((":!", ":^"))]
    if situation.moved:
        _check_all(name, paths, limits, situation)
    if not _COPIES.isdisjoint(options):
        _check_tracked(name, (), (), situation, all_of_them=True)
    if name == "git cat-file":
        if "-p" in options or "blob" in revisions:
            objects = [word for word in revisions if word not in ("blob", "commit", "tag", "tree")]
            _chosen(name, options, objects, situation)
    elif name == "git grep":
        _check_grep(options, revisions, paths, limits, situation)
    elif not revisions and name in _OF_WORK_TREE and {"--cached", "--staged", "--merge-base"}.isdisjoint(options):
        _check_tracked(name, paths, limits, situation)
    elif any(option == "-L" for option, _ in texts):
        for option, value in texts:
            if option == "-L":
                file = value.rpartition(":")[2]
                _check_names(name, ("log", "--follow", "--format=", "--name-only", "-z", "--", file), situation)
    elif not (all(map(_OF_HEAD.fullmatch, revisions)) and _shows_nothing(name, options, revisions, situation)):
        chosen = _chosen(name, options, revisions, situation)
        if chosen is not None:
            limited = () if name.startswith("git stash") else ("--", *paths)
            listed = (*_listing(name, words, chosen), *limited)
            if not _shows_nothing(name, options, revisions, situation):
                _check_names(name, listed, situation, _inner_paths(revisions))


def _shows_lines(name: str, given: set[str], texts: Texts) -> bool:
    if name == "git grep":
        return True
    if _PATCH & given:
        return name in _ONLY_WITH_PATCH | _PATCH_BY_DEFAULT
    if name in _PATCH_BY_DEFAULT:
        return not _NO_CONTENT & given
    if name == "git stash show":  # any option, or a setting, makes it print changes
        return not _NO_CONTENT & given
    merges = any(option == "--diff-merges" and value not in ("off", "none") for option, value in texts)
    return name in _ONLY_WITH_PATCH and merges and not _NO_CONTENT & given


def _listing(name: str, words: GitWords, chosen: Mapping[str, str]) -> Iterator[str]:
    """The words of the git command that lists names, with all that chooses revisions in its order: ``--not`` concerns
    what follows it, and ``-g`` as well. ``chosen`` has the revisions, and how to write them."""
    command = name.removeprefix("git ").split()
    yield from ["log", "--full-history"] if command == ["whatchanged"] else command
    if command[0] in ("log", "show", "whatchanged"):
        yield "--no-show-signature"
    if command[0] in ("log", "show", "whatchanged", "reflog") or command == ["stash", "list"]:
        yield "--format="
    if command == ["diff-tree"]:
        yield from ("-r", "--no-commit-id")
    yield from _ONLY_NAMES[1 if "--follow" in words.options else 0 :]
    for option, value in words.sequence:
        if not option and value in chosen:
            yield chosen[value]
        elif option in _CHOOSING:
            yield f"{option}{'=' if option.startswith('--') and value else ''}{value}"
        elif re.fullmatch(r"-\d+", option):
            yield option


# --- revisions -----------------------------------------------------------------------------------------------------


def path_in_revision(word: str) -> str | None:
    """The path in a word such as ``HEAD:src/main.py`` or ``:0:README.md``; None if it names a revision."""
    if word.startswith((":/", ":(", ":!", ":^")):
        return None
    if match := re.match(r":[0-3]:", word):
        return word[match.end() :]
    colon = next((match for match in _COLON.finditer(word) if match[1]), None)
    return None if colon is None else word[colon.end() :]


def _chosen(
    name: str, options: Collection[str], revisions: Sequence[str], situation: Situation
) -> dict[str, str] | None:
    """The words of the revisions whose changes are shown, and how to write them; None if only contents are shown that
    the words name.

    Raises:
        UnprovenError: a content is shown whose name is unknown or may not be shown.
    """
    words = list(revisions)
    if name == "git reflog" and words[:1] == ["show"]:
        words.pop(0)
    named = [word for word in words if path_in_revision(word) is not None]
    for path in _inner_paths(words):
        _object_to(name, posixpath.join(situation.start, path), situation)
        _object_to(name, posixpath.join(_top(situation), path), situation)
    by_name = name in ("git show", "git cat-file")  # these print what such a word names, or only the names in it
    single = [word for word in words if _RANGE.search(word) is None and not (by_name and word in named)]
    kinds = _objects(name, single, situation)
    for word, git_object in zip(single, kinds, strict=True):
        if git_object.kind == "blob" and word not in named:
            _check_blob(name, word, git_object, situation)
    if name == "git cat-file":
        return None
    ranges = [word for word in words if word not in single and not (by_name and word in named)]
    contents = [git_object for git_object in kinds if git_object.kind in ("blob", "tree")]
    if name == "git show":
        # Behind a tag git would print its text among the names.
        shown = {
            word: git_object.hash for word, git_object in zip(single, kinds, strict=True) if git_object.kind == "commit"
        }
        shown |= dict(zip(ranges, ranges, strict=True))
        only_contents = not shown and _WIDENING.isdisjoint(options) and bool(named or contents)
        return None if only_contents else shown
    if name == "git diff" and kinds and all(git_object.kind == "blob" for git_object in kinds) and not ranges:
        return None
    return dict(zip(words, words, strict=True))


def _inner_paths(words: Sequence[str]) -> list[str]:
    return [path for word in words if (path := path_in_revision(word))]


def _objects(name: str, words: Sequence[str], situation: Situation) -> tuple[GitObject, ...]:
    known = situation.facts.objects(situation.start, words) if words else ()
    if known is None:
        raise _unknown(name, situation)
    return known


def _check_blob(name: str, word: str, git_object: GitObject, situation: Situation) -> None:
    """Raise unless the content with this hash is that of a tracked file that may be shown."""
    names = situation.facts.names_of_blob(situation.start, git_object.hash)
    if not names:
        rule = next(iter(situation.rules.rules), None)
        raise UnprovenError(f"{name} would show {word}, a content whose file name is unknown", soft=True, rule=rule)
    for path in names:
        situation.object_to_showing(path, f"{name} may show {_short(path, situation)}")


def _unknown(name: str, situation: Situation) -> UnprovenError:
    rule = next(iter(situation.rules.rules), None)
    what = "may hold secrets" if rule is None else f"may hold secrets or your rule {rule.text} covers"
    return UnprovenError(f"{name} may show files of the history that {what}", soft=True, git_knows=True, rule=rule)


# --- names ---------------------------------------------------------------------------------------------------------


_REACHED = lazy_pattern(r"\^?(?:@|[A-Za-z][\w./-]*)?(?:[~^]\d*|[@^]\{[^}:]*\}|\^[!@])*")
"""A revision by its name: what it leads to belongs to the history. A hash may lead to what nothing else does."""
_OF_HEAD = lazy_pattern(r"(?:HEAD|@)(?:[~^]\d*|@\{[^}:]*\})*")
"""A commit, and no content."""
_BY_HASH = lazy_pattern(r"(?:^|[.^/-]g?)[0-9a-fA-F]{4,64}(?:$|[~^@.])|_HEAD|worktree")


def _shows_nothing(name: str, options: Collection[str], revisions: Sequence[str], situation: Situation) -> bool:
    """Whether the command can't show a file that may not be shown, as none in the whole history is one: known without
    starting git."""
    ends = [end for word in revisions for end in re.split(r"\.{2,3}", word)]
    if not all(_REACHED.fullmatch(end) and not _BY_HASH.search(end) for end in ends):
        return False
    about = (situation.rules.rules, situation.roots, situation.facts.secret_names)
    kept_back = situation.facts.kept_back(situation.start, about, lambda path: _may_object(path, situation))
    if kept_back is None or kept_back:
        return False
    if name in _PATCH_BY_DEFAULT - {"git show"} or "--no-index" in options:
        tracked = situation.facts.tracked_files(situation.start)
        return tracked is not None and not any(_may_object(path, situation) for path in tracked)
    return True


def _check_names(name: str, arguments: Sequence[str], situation: Situation, below: Sequence[str] = ()) -> None:
    """Raise if one of the names that git lists for these words may not be shown. They may be those ``below`` some
    folders, whose trees are compared."""
    names = situation.facts.names_shown(situation.start, arguments)
    if names is None:
        raise _unknown(name, situation)
    top = _top(situation)
    paths = [
        posixpath.normpath(posixpath.join(top, folder, each.lstrip("\n")))
        for each in dict.fromkeys(names)
        for folder in ("", *below)
    ]
    # A rule comes first: consent to showing a secret must not include what it covers.
    for path in (*filter(situation.covered, paths), *(path for path in paths if _may_object(path, situation))):
        _object_to(name, path, situation)


def _object_to(name: str, path: str, situation: Situation) -> None:
    situation.object_to_showing(posixpath.normpath(path), f"{name} may show {_short(path, situation)}")


def _short(path: str, situation: Situation) -> str:
    return posixpath.relpath(path, situation.start)


def _top(situation: Situation) -> str:
    return situation.facts.repository(situation.start)


def _check_tracked(
    name: str, paths: Sequence[str], limits: Sequence[str], situation: Situation, *, all_of_them: bool = False
) -> None:
    """Raise if the tracked files within the limits include one that may not be shown. A diff shows ``all_of_them``
    only where it looks for the origin of copies."""
    tracked = situation.facts.tracked_files(situation.start)
    if tracked is None:
        raise UnprovenError("git may track files that hold secrets here", soft=True)
    shown = [path for path in tracked if _may_object(path, situation)]
    shown = [path for path in shown if not _left_out(path, paths, limits, situation)]
    if shown and name == "git diff" and not all_of_them:  # perhaps none of them has changed
        _check_names(name, ("diff", *_ONLY_NAMES, "--", *paths), situation)
        return
    for path in (*filter(situation.covered, shown), *shown):
        _object_to(name, path, situation)


def _may_object(path: str, situation: Situation) -> bool:
    if situation.rules.covering(path) is not None:
        return True
    return is_secret_in(path, situation.roots, situation.facts.secret_names) and not is_test_key(path)


def _check_grep(
    options: Collection[str],
    revisions: Sequence[str],
    paths: Sequence[str],
    limits: Sequence[str],
    situation: Situation,
) -> None:
    """Raise if ``git grep`` searches a file that may not be shown."""
    name, top = "git grep", _top(situation)
    trees = _objects(name, revisions, situation)
    if all(git_object.kind == "missing" for git_object in trees):  # such a word is a path
        _check_tracked(name, paths, limits, situation)
    for word, git_object in zip(revisions, trees, strict=True):
        if git_object.kind == "blob" and path_in_revision(word) is None:
            _check_blob(name, word, git_object, situation)
        if git_object.kind not in ("commit", "tree"):
            continue
        names = situation.facts.names_shown(
            situation.start, ("ls-tree", "-r", "--full-tree", "--name-only", "-z", git_object.hash)
        )
        if names is None:
            raise _unknown(name, situation)
        below = path_in_revision(word) or ""
        paths_below = [posixpath.join(top, below, each) for each in names]
        for path in (*filter(situation.covered, paths_below), *paths_below):
            if _may_object(path, situation) and not _left_out(path, paths, limits, situation):
                _object_to(name, path, situation)
    if {"--untracked", "--no-exclude-standard"} & set(options):
        reach = Reach(ignored="--no-exclude-standard" in options)
        check_below(name, limits or ["."], reach, lambda path: not _excluded(path, paths, situation), situation)


def _check_all(name: str, paths: Sequence[str], limits: Sequence[str], situation: Situation) -> None:
    """Raise if a file within the limits may not be shown that an earlier git command of the script may have staged,
    committed or checked out: any that git tracks, tracked once, or would add."""
    _check_tracked(name, paths, limits, situation, all_of_them=True)
    check_below(
        name, limits or ["."], Reach(ignored=False), lambda path: not _excluded(path, paths, situation), situation
    )
    _check_names(name, ("log", "--all", "--full-history", "--format=", *_ONLY_NAMES, "--", *paths), situation)


def _left_out(path: str, paths: Sequence[str], limits: Sequence[str], situation: Situation) -> bool:
    return _excluded(path, paths, situation) or (
        bool(limits) and not any(_covers(limit, path, situation) for limit in limits)
    )


# --- paths ---------------------------------------------------------------------------------------------------------


def _check_pathspec(text: str, situation: Situation) -> None:
    """Raise if the wildcards of a git path target files with secrets rather than files in general."""
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
            if glob_takes(normal.lstrip("/"), secret.lstrip("/"), loose=True, fold=False):
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
