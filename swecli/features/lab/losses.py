"""What compactions of a replay took away and the session would have needed."""

from __future__ import annotations

from swecli.core.context_management.compaction.clearing import target_of
from swecli.core.context_management.compaction.package import constraints
from swecli.core.context_management.ledger import Ledger
from swecli.core.llm.types import (
    ModelRequest,
)
from swecli.core.protocol.messages import Message, ToolCallPart

REREAD = frozenset(("read_file", "search", "list_files", "run_command", "web_fetch"))
"""Tools with calls that can repeat the content of an earlier result."""


class Losses:
    """What the requests of one replay lack."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seen: dict[tuple[str, str], str] = {}
        """Subject of a call -> the newest item with its answer."""
        self.lost: set[str] = set()
        """Constraints of the user and changed paths missing from some request."""
        self.needed_again = 0
        """Calls for removed content."""

    def check(self, request: ModelRequest) -> None:
        """Note what a request after a compaction lacks."""
        ledger = self._ledger
        text = _folded(" ".join(map(_words_of, request.messages)))
        anchors = {anchor.text for anchor in constraints(ledger)}
        anchors |= {change.path.rpartition("/")[2] for change in ledger.changes}
        self.lost |= {anchor for anchor in anchors if _folded(anchor) not in text}

    def look_back(self, call: ToolCallPart, item: str) -> None:
        """Count a call that requests content that the model had and lost."""
        key = (call.name, target_of(call))
        known = self._seen.get(key)
        if call.name not in REREAD or known == item:
            return
        self.needed_again += known is not None and known not in self._ledger.live_items()
        self._seen[key] = item


def _words_of(message: Message) -> str:
    calls = (call.arguments for call in message.tool_calls)
    return " ".join((message.text, *calls, *(result.text for result in message.tool_results)))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
