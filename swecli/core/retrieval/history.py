"""What git's record tells about files: which change together, which changed of late, and what was said about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from swecli.core.retrieval.index import Change, History
from swecli.core.retrieval.ranking import query_of

MOST_COMMITS: Final = 2_000
"""The newest, that are looked at."""
WIDEST: Final = 25
"""A commit that changes more files binds none of them together."""
_TOGETHER: Final = 10
_HALF_LIFE: Final = 150
"""Commits after which one counts half as much for churn."""
_MOST_WORDS: Final = 60
FORMAT: Final = "%x01%H%x02%s%n%b%x03"
ARGUMENTS: Final = (
    *("log", f"--max-count={MOST_COMMITS}", "--no-merges", "--no-renames", "--no-show-signature", "--no-ext-diff"),
    *("--no-textconv", "--no-color", "--no-notes", "--name-only", "-z", f"--format={FORMAT}", "HEAD", "--"),
)
"""Of git, for ``commits_of``."""


class Commit(Struct, frozen=True):
    id: str
    message: str
    paths: tuple[str, ...]


def commits_of(output: str) -> Iterator[Commit]:
    """The commits that git printed, newest first."""
    for piece in output.split("\x01")[1:]:
        identifier, _, rest = piece.partition("\x02")
        message, _, names = rest.partition("\x03")
        paths = tuple(name for name in names.strip("\0\n").split("\0") if name)
        yield Commit(identifier, message, tuple(path.strip("\n") for path in paths))


def history_of(commits: Iterable[Commit], present: Iterable[str]) -> History:
    """What the commits, newest first, tell about files that are present."""
    known = frozenset(present)
    churn: dict[str, float] = {}
    pairs: dict[str, dict[str, float]] = {}
    said: dict[str, Counter[str]] = {}
    changes: list[Change] = []
    head = ""
    for age, commit in enumerate(commits):
        head = head or commit.id
        paths = [path for path in dict.fromkeys(commit.paths) if path in known]
        weight = 0.5 ** (age / _HALF_LIFE)
        for path in paths:
            churn[path] = churn.get(path, 0.0) + weight
        if len(commit.paths) > WIDEST:
            continue
        _bind(pairs, paths, age)
        words = query_of(commit.message[:2_000]).terms
        if paths:
            changes.append(Change({word: max(1, round(min(10.0, 20 * worth))) for word, worth in words.items()}, paths))
        for path in paths:
            counts = said.setdefault(path, Counter())
            for word in words:
                counts[word] += 1
    together = {path: _strongest(others) for path, others in pairs.items()}
    kept = {path: dict(counts.most_common(_MOST_WORDS)) for path, counts in said.items()}
    return History(together, {path: value**0.5 for path, value in churn.items()}, kept, changes, head)


def _bind(pairs: dict[str, dict[str, float]], paths: Sequence[str], age: int) -> None:
    if len(paths) < 2:
        return
    weight = 0.5 ** (age / (4 * _HALF_LIFE)) / (len(paths) - 1)
    for path in paths:
        others = pairs.setdefault(path, {})
        for other in paths:
            if other != path:
                others[other] = others.get(other, 0.0) + weight


def _strongest(others: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(others.items(), key=lambda one: (-one[1], one[0]))[:_TOGETHER])
