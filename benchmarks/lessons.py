"""Lessons of recorded sessions: false and true ones, and what the gate for sentences refuses with and without lists."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from swecli.core.playbook.claims import ungrounded
from swecli.core.playbook.support import support
from swecli.lazy_pattern import lazy_pattern
from tests.core.playbook.sentences import DATA, sentences
from tests.core.playbook.sequences import lessons, sequences

Figure = tuple[str, float, str]
SEQUENCES = ("sequences", *(f"sequences_{which}" for which in ("second", "third", "fourth", "fifth")))
HELD_OUT = ("held_out", "held_out_second")
_NAME = lazy_pattern(
    r"`([^`]+)`|(?<![\w`])([\w.-]*(?:[/_]|\.[A-Za-z]|[a-z][A-Z]|::)[\w./:-]*\w)|\b([A-Z][A-Z0-9_]{2,})\b"
)
"""Code, a path, a compound word, a constant: by form alone, without a list."""


def run() -> Iterator[Figure]:
    for name in SEQUENCES:
        yield from _learned(name)
    for name in HELD_OUT:
        yield from _refused(name)


def _learned(name: str) -> Iterator[Figure]:
    false = true = wrong = right = 0
    for sequence in sequences(name):
        with tempfile.TemporaryDirectory() as folder:
            learned = [bullet.content for bullet in lessons(sequence, Path(folder))]
        matches = sum(bool(sequence.lesson) and sequence.lesson in content for content in learned)
        wrong += len(learned) - matches
        true, right = true + bool(sequence.lesson), right + bool(matches)
        false += not sequence.lesson
    yield f"{name}: false lessons", wrong, f"of {false} sessions without one"
    yield f"{name}: true lessons", right, f"of {true}"


def _refused(name: str) -> Iterator[Figure]:
    """Of advice and of facts: refused where every name must occur in the events, and by the gate."""
    happened = _events(name)
    for specific, kind in ((False, "advice"), (True, "facts")):
        texts = [one for one in sentences(name) if one.specific is specific]
        by_names = sum(not _grounded(one.text, happened[one.text]) for one in texts)
        by_gate = sum(bool(ungrounded(one.text, support(one.text, one.cited))) for one in texts)
        yield f"{name}: {kind} refused by names in the events alone", 100 * by_names / len(texts), "%"
        yield f"{name}: {kind} refused by the gate with its lists", 100 * by_gate / len(texts), "%"


def _grounded(content: str, events: str) -> bool:
    """Whether a sentence has names and all of them occur in the events."""
    names = [match[1] or match[2] or match[3] for match in _NAME.finditer(content)]
    return bool(names) and all(name.casefold() in events for name in names)


def _events(name: str) -> dict[str, str]:
    """All that happened in the project of each sentence, edits and reads too."""
    found: dict[str, str] = {}
    events: list[str] = []
    for line in (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        mark, _, text = line.partition(" ")
        if mark == "#":
            events = []
        elif mark == "!":
            events.append(text.casefold())
        else:
            found[text] = "\n".join(events)
    return found
