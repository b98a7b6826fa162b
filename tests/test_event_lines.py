"""Events as lines of text."""

from __future__ import annotations

import pytest

from swecli.core.context_management.note_topics import INSTRUCTIONS, LESSONS, MEMORY_NEWS, MODE, SKILL_NEWS
from swecli.core.protocol.context_events import ContextEdited, ViewEntry
from swecli.core.protocol.events import (
    Event,
    ItemCompleted,
    ItemStarted,
    Notice,
    RetryScheduled,
    ScratchpadChanged,
    SessionStarted,
    TurnEnded,
)
from swecli.core.protocol.messages import TextPart
from swecli.event_lines import EventLines, trouble_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("MCP server x did not start: it was not found", "MCP server x did not start: it was not found. See /mcp."),
        ("The server stopped.", "The server stopped. See /mcp."),
    ],
)
def test_a_notice_and_what_to_do_are_separate_sentences(text: str, line: str) -> None:
    assert trouble_line(Event(1, 0.0, "s", 0, Notice(text, "warning", "", "See /mcp."))) == f"warning: {line}"


def test_an_automatic_choice_is_told_where_other_remarks_are_not() -> None:
    assert trouble_line(Event(1, 0.0, "s", 0, Notice("sonnet is a/b.", topic="choice"))) == "note: sonnet is a/b."
    assert trouble_line(Event(1, 0.0, "s", 0, Notice("Model: a/b"))) == ""


@pytest.mark.parametrize(("delay", "when"), [(0.02, "now"), (7.0, "in 7 s")])
def test_a_retry_says_when(delay: float, when: str) -> None:
    retry = RetryScheduled(1, 5, delay, "overloaded", "Too busy")
    assert trouble_line(Event(1, 0.0, "s", 0, retry)) == f"retry 1 of 5 {when}: Too busy"


def test_a_note_on_what_has_changed_in_files_is_told_and_one_on_the_mode_is_not() -> None:
    said: list[str] = []
    lines = EventLines(said.append)
    topics = (f"{INSTRUCTIONS}AGENTS.md", f"{MEMORY_NEWS}/memories/a.md", SKILL_NEWS, LESSONS, MODE)
    for number, topic in enumerate(topics):
        for body in (ItemStarted(f"n{number}", "note", topic, f"About {topic}"), ItemCompleted(f"n{number}", "ok")):
            lines.event(Event(1, 0.0, "s", 0, body))
    assert said == [f"About {topic}" for topic in topics[:-1]]


def test_a_stored_session_shows_what_only_the_model_read() -> None:
    bodies = (
        SessionStarted("/w", "a/b", "default", "1", environment="<environment>\nDate: today\n</environment>"),
        ItemStarted("n1", "note", "presence", "Presence"),
        ItemCompleted("n1", "ok", (TextPart("Nobody can answer."),)),
        ScratchpadChanged("remember"),
        ContextEdited((), (ViewEntry("stub", "t1", text="left out"),)),
        ContextEdited((), (ViewEntry("stub", "t1", text="left out"),)),
    )
    said: dict[bool, list[str]] = {True: [], False: []}
    for past, found in said.items():
        lines = EventLines(found.append, past=past)
        for body in bodies:
            lines.event(Event(1, 0.0, "s", 0, body))
    for text in ("  Date: today", "  Nobody can answer.", "  remember", "  left out"):
        assert (said[True].count(text), said[False].count(text)) == (1, 0), text


@pytest.mark.parametrize("reason", ["The server broke off. Try again.", "The server broke off. Try again"])
def test_the_line_of_a_turns_end_has_one_full_stop(reason: str) -> None:
    said: list[str] = []
    lines = EventLines(said.append)
    lines.event(Event(1, 0.0, "s", 0, TurnEnded("error", reason)))
    assert said == ["Turn error: The server broke off. Try again."]
