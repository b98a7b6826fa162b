"""The quality gate of a compaction: facts to preserve from the removed content, and their share in its replacement.
Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from swecli.core.context_management.compaction.package import SessionFacts, constraints, remembered
from swecli.core.context_management.ledger import RESULT, Ledger
from swecli.core.context_management.work_log import newest_user_texts
from swecli.lazy_pattern import lazy_pattern

_IDENTIFIER = lazy_pattern(r"`([^`\n]{2,60})`|\b([\w.-]*(?:[/_]|\.\w|[a-z][A-Z])[\w./:-]*\w)\b")
"""A name in the user's text: between backticks, or a path, a dotted or a compound word."""
MOST_NAMED = 40
"""Newest names of the user that count."""
MOST_MISSING = 20
"""Most missing facts to list."""


class Quality(Struct, frozen=True):
    """Of ``anchors`` facts to preserve, ``kept`` survived, ``written`` of these in the model's own words; ``missing``
    lists the first lost ones."""

    anchors: int
    kept: int
    written: int
    missing: tuple[str, ...] = ()


def anchors_of(ledger: Ledger, removed: Collection[str], facts: SessionFacts) -> tuple[str, ...]:
    """Facts to preserve from these entries: demands of the user, changed files, checks that ran, open errors,
    decisions, todos, names in the user's text."""
    log, left, removed_ids = facts.work(ledger), ledger.left, set(removed)
    anchors = [anchor.text for anchor in constraints(ledger) if anchor.source in removed_ids]
    anchors += [file.path for file in log.files(left) if {"edited", "written"} & set(file.operations)]
    anchors += [command for command, _ in log.checks(left)]
    anchors += log.open_errors(left)
    anchors += log.decisions(left)
    anchors += [todo.text for todo in facts.todos if todo.status != "completed"]
    anchors += _typed(ledger, removed_ids)
    return tuple(dict.fromkeys(text for text in anchors if text.strip()))


def _typed(ledger: Ledger, removed: AbstractSet[str]) -> list[str]:
    """Names in the user's removed messages, the newest last."""
    names: list[str] = []
    for source, text in newest_user_texts(ledger):
        if source in removed:
            names += reversed(_identifiers(text))
        if len(names) >= MOST_NAMED:
            break
    return names[MOST_NAMED - 1 :: -1]


@remembered
def _identifiers(text: str) -> tuple[str, ...]:
    return tuple((match[1] or match[2]).strip() for match in _IDENTIFIER.finditer(text[:20_000]))


def graded(anchors: Sequence[str], text: str, summary: str = "") -> Quality:
    """Count the anchors in ``text``, the replacement of the removed content, and in the model's ``summary``."""
    there, wrote = _plain(text), _plain(summary)
    present = [anchor for anchor in anchors if _plain(anchor) in there]
    missing = tuple(anchor for anchor in anchors if _plain(anchor) not in there)
    written = sum(_plain(anchor) in wrote for anchor in present) if wrote else 0
    return Quality(len(anchors), len(present), written, missing[:MOST_MISSING])


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


_WORD = lazy_pattern(r"[\w./:-]{3,}")
MOST_SOURCES = 2
"""Most sources of one line, which are sent with it."""
CLOSE = 0.7
"""Least score of a further source, relative to the best one."""
MOST_ENTRIES = 2_000
"""Newest entries to examine."""
LEAST_SHARED = 2
"""Least significant words that a line and its source have in common."""
COMMON = 0.2
"""Share of the entries above which a common word is not significant."""


_CITED = lazy_pattern(r"(.*\S) \[([\w.]+(?:, [\w.]+)*)\]\s*")
"""A line with ids at its end."""


def cited(summary: str, ledger: Ledger, sources: Iterable[str]) -> str:
    """The summary with the ids of its sources at the end of each line that has some. A call and its result share one
    id."""
    lines = sources_of_lines(summary, ledger, sources)
    return "\n".join(f"{line} [{', '.join(ids)}]" if ids else line for line, ids in lines)


def sources_of_lines(summary: str, ledger: Ledger, sources: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each line of a summary with the ids of its source items: those cited at its end, then stripped from the line, or
    else those with most of its significant words. A heading or an empty line has none."""
    written = [_written(line, ledger) for line in summary.splitlines()]
    if all(ids or not line.strip() or line.startswith("#") for line, ids in written):
        return tuple(written)
    looked_at = [name for name in sources if name in ledger.entries][-MOST_ENTRIES:]
    by_line = _by_words([line for line, _ in written], ledger, looked_at)
    return tuple((line, ids or by_line[line]) for line, ids in written)


def _written(line: str, ledger: Ledger) -> tuple[str, tuple[str, ...]]:
    """The line without the ids at its end, and those of them whose items have a name of the line, if it has any."""
    match = _CITED.fullmatch(line)
    ids = tuple(match[2].split(", ")) if match else ()
    if match is None or not all(name in ledger.items or name in ledger.entries for name in ids):
        return line, ()
    names = [name.casefold() for name in _identifiers(match[1])]
    return match[1], tuple(
        identifier for identifier in ids if not names or any(name in _text_of(ledger, identifier) for name in names)
    )


def _text_of(ledger: Ledger, item: str) -> str:
    """Everything in an item, a call with its result, in lower case."""
    entries = (ledger.entries.get(name) for name in (item, item + RESULT))
    parts = [part for entry in entries if entry is not None for part in entry.parts]
    texts = (str(getattr(part, "text", "") or getattr(part, "arguments", "")) for part in parts)
    return " ".join(texts).casefold()


def _by_words(lines: Iterable[str], ledger: Ledger, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The items with most of a line's significant words, by line."""
    words = {name: _words(ledger, name) for name in names}
    often: dict[str, int] = {}
    for having in words.values():
        for word in having:
            often[word] = often.get(word, 0) + 1
    most = max(2, round(len(words) * COMMON))
    by_line: dict[str, tuple[str, ...]] = {}
    for line in lines:
        telling = {word for word in _split(line) if 0 < often.get(word, 0) <= most}
        if not telling or line.startswith("#"):
            by_line[line] = ()
            continue
        scores = {name: sum(1 / often[word] for word in telling & having) for name, having in words.items()}
        shared = {name: len(telling & having) for name, having in words.items()}
        needed = min(LEAST_SHARED, len(telling))
        best = sorted((name for name in scores if shared[name] >= needed), key=lambda name: -scores[name])
        close = [name for name in best if scores[name] >= CLOSE * scores[best[0]]]
        by_line[line] = tuple(dict.fromkeys(ledger.entries[name].item for name in close))[:MOST_SOURCES]
    return by_line


def _words(ledger: Ledger, name: str) -> set[str]:
    parts = ledger.entries[name].parts
    texts = (getattr(part, "text", "") or getattr(part, "arguments", "") for part in parts)
    return {word for text in texts for word in _split(str(text)[:50_000])}


def _split(text: str) -> set[str]:
    return {word.strip(".:-/").casefold() for word in _WORD.findall(text)}
