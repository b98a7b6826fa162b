"""What is said of a compaction names its figures; clearing and suggestions are told in words of their own."""

from msgspec.structs import replace

from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import CompactionCompleted, CompactionStarted, ContextSuggested
from swecli.event_lines import completed_line, started_words, suggested_line


def test_a_compaction_says_percent_strategy_and_what_was_saved() -> None:
    assert started_words(CompactionStarted("k1", "auto", "chain", 24_580, 25_600)) == (
        "96% full, 24,580 tokens; old results first, then a summary"
    )
    done = CompactionCompleted("k1", (), 24_580, 5_400, 45, 12, ("summary",), "text", effective=25_600)
    assert completed_line(done) == (
        "Context compacted by a summary: 24,580 to 5,400 tokens, 19,180 saved (96% to 21% of the window); "
        "45 to 12 messages. Summary: “text”. /compact undo restores it."
    )
    costly = completed_line(replace(done, rewritten=5_400, thoughts=12))
    assert "; 5.4K tokens leave the cache; 12 thoughts of the model are lost. Summary: “text”. /compact" in costly
    view = (ViewEntry("summary", "k1", "text", ("u1", "t2", "t2.result")), ViewEntry("live", "u9"))
    assert "; 3 items replaced, 45 to 12 messages. " in completed_line(replace(done, view=view))


def test_of_a_summary_the_first_words_are_shown() -> None:
    done = CompactionCompleted("k1", (), 24_580, 5_400, 45, 12, ("summary",), effective=25_600)
    assert "Summary" not in completed_line(done)
    assert "Summary" not in completed_line(replace(done, summary="## Goal\n\n### Done\n"))
    text = "## Goal\n\n- Let users sign in \x1b[31mwith a password, and keep them signed in for a day " + "or so " * 50
    line = completed_line(replace(done, summary=f"{text}\n## Done\nNothing."))
    assert " Summary: “Let users sign in " in line
    assert "for a day or so …”. /compact undo" in line
    assert "\x1b" not in line
    assert "“It is done”. /compact" in completed_line(replace(done, summary="It is done."))
    assert "“It is done”. /compact" in completed_line(replace(done, summary="- It is done. [a5, t9.result]"))


def test_clearing_is_no_compaction() -> None:
    done = CompactionCompleted("k1", (), 151_000, 120_000, 45, 45, ("clearing",), effective=184_000, cleared=12)
    assert completed_line(done) == (
        "Old results cleared: 12 results and arguments, 151,000 to 120,000 tokens, 31,000 saved (82% to 65% of the "
        "window). /compact undo restores them."
    )


def test_events_of_an_earlier_version_have_no_window() -> None:
    assert started_words(CompactionStarted("k1", "auto", "chain", 900)).startswith("900 tokens; ")
    assert "%" not in completed_line(CompactionCompleted("k1", (), 900, 300, 20, 5, ("summary", "truncation")))


def test_a_suggestion_says_why_what_it_frees_and_how_to_hear_no_more_of_it() -> None:
    told = ContextSuggested("stale", "", 31_000, "52% is old and unused", "offload 14 stale outputs", 80_000, 49_000)
    assert suggested_line(told) == (
        "Suggestion: 52% is old and unused. /sentinel take: offload 14 stale outputs, -31K tokens; "
        "/sentinel silence: never suggest this again."
    )
    pin = ContextSuggested("repeated", "", 3, "said 3 times: “No tabs.”", "pin it", 80_000, 80_000)
    assert "/sentinel take: pin it; /sentinel silence" in suggested_line(pin)
