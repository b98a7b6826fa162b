"""Events as lines of text."""

from __future__ import annotations

import pytest

from swecli.core.protocol.events import Event, Notice
from swecli.event_lines import trouble_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("MCP server x did not start: it was not found", "MCP server x did not start: it was not found. See /mcp."),
        ("The server stopped.", "The server stopped. See /mcp."),
    ],
)
def test_a_notice_and_what_to_do_are_separate_sentences(text: str, line: str) -> None:
    assert trouble_line(Event(1, 0.0, "s", 0, Notice(text, "warning", "", "See /mcp."))) == f"warning: {line}"
