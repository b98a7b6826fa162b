"""The invariant of a conversation's requests: each begins with the one before, and only something was appended.

The newest models sign their reasoning over everything before it, and every provider's cache is a prefix. A change of
what was sent needs a cause that the user can see: another model or window, or an event that rewrote the conversation (a
compaction, a clearing, an edit, a rewind, and the undo of each), all of which count as a rewrite of the ledger.
Anything else is a defect.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from swecli.core.context_management.cache import first_difference
from swecli.core.context_management.ledger import Ledger
from swecli.core.llm.types import ModelInfo, ModelRequest


class _Answered(Struct, frozen=True):
    request: ModelRequest
    model: str
    window: int | None
    rewrites: int


class PrefixGuard:
    """Compares each request of one conversation with the newest answered one. ``ledger`` counts the named changes;
    ``report`` gets the description of a change without a cause, as a clause."""

    def __init__(self, ledger: Ledger, report: Callable[[str], None]) -> None:
        self._ledger = ledger
        self._report = report
        self._newest: _Answered | None = None

    def check(self, request: ModelRequest, info: ModelInfo) -> None:
        """Report a change without a cause. Compares what is the same object in no time."""
        newest, now = self._newest, (info.ref, info.window, self._ledger.rewrites)
        if newest is None or (newest.model, newest.window, newest.rewrites) != now:
            return
        change = unexplained(newest.request, request)
        if change:
            self._report(change)

    def answered(self, request: ModelRequest, info: ModelInfo) -> None:
        self._newest = _Answered(request, info.ref, info.window, self._ledger.rewrites)


def unexplained(before: ModelRequest, now: ModelRequest) -> str:
    """The first change of what an earlier request sent, as a clause; empty if there was only an addition. Tools may
    join the end of their list and leave it: servers come and go."""
    if [block.text for block in before.system] != [block.text for block in now.system]:
        return "the system prompt changed"
    names = {tool.name for tool in now.tools}
    remaining = [tool for tool in before.tools if tool.name in names]
    if [tool.name for tool in remaining] != [tool.name for tool in now.tools[: len(remaining)]]:
        return "the order of the tools changed"
    position = first_difference(before.messages, now.messages)
    if position is None:
        return ""
    message = before.messages[position[0]]
    return f"a message that was sent before changed ({message.role} {message.id})"
