"""The quality gate of a compaction: what has to be kept of what goes, and how much of it is in what takes its place.
Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from swecli.core.context_management.compaction.package import SessionFacts, constraints, remembered
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.work_log import user_texts

_IDENTIFIER = re.compile(r"`([^`\n]{2,60})`|\b([\w.-]*(?:[/_]|\.\w|[a-z][A-Z])[\w./:-]*\w)\b")
"""What a user typed as a name: between backticks, or a path, a dotted or a compound word."""
MOST_NAMED = 40
"""Names that the user typed which count, the newest."""
MOST_MISSING = 20
"""Missing things that are named."""


class Quality(Struct, frozen=True):
    """``anchors`` things to keep were found, ``kept`` of them are there, ``written`` of these in the model's own words;
    ``missing`` names the first of those that are not there."""

    anchors: int
    kept: int
    written: int
    missing: tuple[str, ...] = ()


def anchors_of(ledger: Ledger, removed: Collection[str], facts: SessionFacts) -> tuple[str, ...]:
    """What must not be lost with these entries: demands of the user, changed files, checks that ran, errors still open,
    decisions, todos, names that the user typed."""
    log = facts.work(ledger)
    found: list[str] = []
    found += [anchor.text for anchor in constraints(ledger) if anchor.source in removed]
    found += [file.path for file in log.files() if {"edited", "written"} & set(file.operations)]
    found += [command for command, _ in log.checks()]
    found += log.open_errors()
    found += [said.text for said in log.decided]
    found += [todo.text for todo in facts.todos if todo.status != "completed"]
    found += list(_typed(ledger, removed))[-MOST_NAMED:]
    return tuple(dict.fromkeys(text for text in found if text.strip()))


def _typed(ledger: Ledger, removed: Collection[str]) -> Iterator[str]:
    for source, text in user_texts(ledger):
        if source in removed:
            yield from _identifiers(text)


@remembered
def _identifiers(text: str) -> tuple[str, ...]:
    return tuple((match[1] or match[2]).strip() for match in _IDENTIFIER.finditer(text[:20_000]))


def graded(anchors: Sequence[str], text: str, summary: str = "") -> Quality:
    """How many of the anchors are in ``text``, which takes the place of what goes, and in the model's ``summary``."""
    there, wrote = _plain(text), _plain(summary)
    present = [anchor for anchor in anchors if _plain(anchor) in there]
    missing = tuple(anchor for anchor in anchors if _plain(anchor) not in there)
    written = sum(_plain(anchor) in wrote for anchor in present) if wrote else 0
    return Quality(len(anchors), len(present), written, missing[:MOST_MISSING])


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


_WORD = re.compile(r"[\w./:-]{3,}")
MOST_SOURCES = 2
"""Of one line: they are sent with it."""
CLOSE = 0.7
"""Share of the best one's score that another source needs to be named."""
MOST_ENTRIES = 2_000
"""Entries that are looked at, the newest."""
LEAST_SHARED = 2
"""Telling words that a line has in common with an entry, at the least."""
COMMON = 0.2
"""A word that more of the entries have tells nothing."""


_CITED = re.compile(r"(.*\S) \[([\w.]+(?:, [\w.]+)*)\]\s*")
"""A line that ends with ids."""


def cited(summary: str, ledger: Ledger, sources: Iterable[str]) -> str:
    """The summary with the ids of its sources at the end of each line that has some. A call and its result have one
    id."""
    lines = sources_of_lines(summary, ledger, sources)
    return "\n".join(f"{line} [{', '.join(ids)}]" if ids else line for line, ids in lines)


def sources_of_lines(summary: str, ledger: Ledger, sources: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each line of a summary with the ids of the items that it comes from: those at its end, which are no part of the
    line then, or else those that share most of its telling words. A heading or an empty line has none."""
    written = [_written(line, ledger) for line in summary.splitlines()]
    if all(ids or not line.strip() or line.startswith("#") for line, ids in written):
        return tuple(written)
    looked_at = [name for name in sources if name in ledger.entries][-MOST_ENTRIES:]
    found = _by_words([line for line, _ in written], ledger, looked_at)
    return tuple((line, ids or found[line]) for line, ids in written)


def _written(line: str, ledger: Ledger) -> tuple[str, tuple[str, ...]]:
    match = _CITED.fullmatch(line)
    ids = tuple(match[2].split(", ")) if match else ()
    known = all(name in ledger.items or name in ledger.entries for name in ids)
    return (match[1], ids) if match and known else (line, ())


def _by_words(lines: Iterable[str], ledger: Ledger, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The items that share most of a line's telling words, by line."""
    words = {name: _words(ledger, name) for name in names}
    often: dict[str, int] = {}
    for having in words.values():
        for word in having:
            often[word] = often.get(word, 0) + 1
    most = max(2, round(len(words) * COMMON))
    found: dict[str, tuple[str, ...]] = {}
    for line in lines:
        telling = {word for word in _split(line) if 0 < often.get(word, 0) <= most}
        if not telling or line.startswith("#"):
            found[line] = ()
            continue
        scores = {name: sum(1 / often[word] for word in telling & having) for name, having in words.items()}
        shared = {name: len(telling & having) for name, having in words.items()}
        needed = min(LEAST_SHARED, len(telling))
        best = sorted((name for name in scores if shared[name] >= needed), key=lambda name: -scores[name])
        close = [name for name in best if scores[name] >= CLOSE * scores[best[0]]]
        found[line] = tuple(dict.fromkeys(ledger.entries[name].item for name in close))[:MOST_SOURCES]
    return found


def _words(ledger: Ledger, name: str) -> set[str]:
    parts = ledger.entries[name].parts
    texts = (getattr(part, "text", "") or getattr(part, "arguments", "") for part in parts)
    return {word for text in texts for word in _split(str(text)[:50_000])}


def _split(text: str) -> set[str]:
    return {word.strip(".:-/").casefold() for word in _WORD.findall(text)}
