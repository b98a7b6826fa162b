"""What a command line may read that a git command of the same line brings back from the history.

The other checks look at the files as they are now. ``git switch old; cat */*`` reads what is only there by then, and so
do loops, functions and commands in the background; the order of the commands is therefore left out of account.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from swecli.core.permissions.paths import inside, is_secret_in, within_text
from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.shell.destructive import Place
from swecli.core.permissions.shell.readers import is_given_names, moves_work_tree, prints_content, reads_all_below
from swecli.core.permissions.shell.started import Started
from swecli.core.permissions.types import Rule
from swecli.core.secret_names import is_test_key


class BroughtBack(Struct, frozen=True):
    """``reason`` is a clause; ``rule`` covers the file, or it may hold secrets. ``git_knows``: git did not say in time
    what the history holds."""

    reason: str
    rule: Rule | None = None
    git_knows: bool = False


def brought_back(items: Sequence[Started], rules: ReadRules, place: Place) -> BroughtBack | None:
    """A file that may not be read without a question, is missing now, and may be read after a git command of the line
    has brought it back."""
    moving = next((item for item in items if moves_work_tree(item)), None)
    if moving is None:
        return None
    readers = [(item, patterns) for item in items if item.name != "git" and (patterns := _patterns(item, place))]
    if not readers:
        return None
    rule = next(iter(rules.rules), None)
    for base in place.bases:
        names = place.facts.history(base)
        if names is None:
            reason = f"{readers[0][0].name} may read what an earlier git command brings back from the history"
            return BroughtBack(reason, rule, git_knows=True)
        top = place.facts.repository(base)
        for name in sorted(names):
            path = posixpath.join(top, name)
            covering = rules.covering(path)
            if covering is None and (
                is_test_key(path) or not is_secret_in(path, place.roots, place.facts.secret_names)
            ):
                continue
            if place.facts.kind(path) != "missing":
                continue  # judged as it is
            item = next((item for item, patterns in readers if any(_takes(each, path) for each in patterns)), None)
            if item is not None:
                why = "may hold secrets" if covering is None else f"your rule {covering.text} covers"
                shown = posixpath.relpath(path, base)
                back = "which an earlier git command may bring back and which"
                return BroughtBack(f"{item.name} may read {shown}, {back} {why}", covering)
    return None


_ANYTHING = ""


def _patterns(item: Started, place: Place) -> list[str]:
    """The paths of files that the command may print without naming them, as patterns; a folder stands for all below."""
    below = reads_all_below(item)
    if not below and not prints_content(item):
        return []
    if is_given_names(item):
        return [_ANYTHING]
    words = [word for word in (*item.words[1:], *item.found.reads) if not word.text.startswith("-")]
    wild = [word for word in words if word.glob]
    if any(not word.known for word in words):
        return [_ANYTHING]
    if below:
        return list(_absolute([word.text for word in words], place)) or list(place.bases)
    return list(_absolute([word.text for word in wild], place))


def _absolute(texts: Sequence[str], place: Place) -> Iterator[str]:
    for base in place.bases:
        for text in texts:
            yield within_text(text, base, place.home)


def _takes(pattern: str, path: str) -> bool:
    """Whether wildcards of the shell, part by part, take a path or a folder above it."""
    if pattern == _ANYTHING or inside(path, (pattern,)) is not None:
        return True
    parts, wanted = path.split("/"), pattern.split("/")
    if any(sign in pattern for sign in "{(") or "**" in pattern:
        return True
    return len(wanted) <= len(parts) and all(
        fnmatchcase(part, want) and (not part.startswith(".") or want.startswith("."))
        for part, want in zip(parts, wanted, strict=False)
    )
