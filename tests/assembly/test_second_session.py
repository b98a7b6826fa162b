"""What 30 turns of a first session are worth to the second one, by the benchmark's own measure."""

from __future__ import annotations

from pathlib import Path

from benchmarks.memory_sessions import measure
from swecli.core.config.settings import MemorySettings


def test_the_second_session_goes_on_where_the_first_one_stopped(tmp_path: Path) -> None:
    figures = measure(tmp_path)
    assert figures["turns"] == 30
    assert all(figures[name] for name in ("goal", "open", "test"))
    assert 0 < figures["tokens"] <= MemorySettings().max_tokens
    assert 0 < figures["with"] <= 3 < figures["without"]
