"""What is said of a compaction names its figures; clearing is told in words of its own."""

from swecli.core.protocol.events import CompactionCompleted, CompactionStarted
from swecli.event_lines import completed_line, started_words


def test_a_compaction_says_percent_strategy_and_what_was_saved() -> None:
    assert started_words(CompactionStarted("k1", "auto", "chain", 24_580, 25_600)) == (
        "96% full, 24,580 tokens; old results first, then a summary"
    )
    done = CompactionCompleted("k1", (), 24_580, 5_400, 45, 12, ("summary",), "text", effective=25_600)
    assert completed_line(done) == (
        "Context compacted by a summary: 24,580 to 5,400 tokens, 19,180 saved (96% to 21% of the window); "
        "45 to 12 messages, 33 replaced. /compact undo restores it."
    )


def test_clearing_is_no_compaction() -> None:
    done = CompactionCompleted("k1", (), 151_000, 120_000, 45, 45, ("clearing",), effective=184_000, cleared=12)
    assert completed_line(done) == (
        "Old results cleared: 12 results and arguments, 151,000 to 120,000 tokens, 31,000 saved (82% to 65% of the "
        "window). /compact undo restores them."
    )


def test_events_of_an_earlier_version_have_no_window() -> None:
    assert started_words(CompactionStarted("k1", "auto", "chain", 900)).startswith("900 tokens; ")
    assert "%" not in completed_line(CompactionCompleted("k1", (), 900, 300, 20, 5, ("summary", "truncation")))
