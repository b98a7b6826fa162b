"""Of whole sessions of commands: no false lesson, and nearly all true ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.playbook.sequences import lessons, sequences

SETS = [
    ("sequences", 170, 22),
    ("sequences_second", 75, 12),
    ("sequences_third", 80, 33),
    ("sequences_fourth", 30, 11),
    ("sequences_fifth", 30, 10),
]
"""By name: sessions that teach nothing, and lessons that are learned."""


@pytest.mark.parametrize(("name", "false", "true"), SETS)
def test_no_false_lesson_is_learned_and_the_true_ones_are(name: str, false: int, true: int, tmp_path: Path) -> None:
    wrong: list[str] = []
    right = nothing = 0
    for number, sequence in enumerate(sequences(name)):
        project = tmp_path / (str(number) if "@ " in sequence.text else "empty")
        project.mkdir(exist_ok=True)
        learned = [bullet.content for bullet in lessons(sequence, project)]
        matches = [content for content in learned if sequence.lesson and sequence.lesson in content]
        right += bool(matches)
        nothing += not sequence.lesson
        wrong += [f"{sequence.kind}: {sequence.text}: {content}" for content in learned if content not in matches]
    assert wrong == []
    assert nothing >= false
    assert right >= true
