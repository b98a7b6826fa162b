"""Messages that wait for the running turn, shown above the editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.protocol.events import Queued

SHOWN = 3


class Waiting(Static):
    """The newest few, one line each."""

    DEFAULT_CSS = "Waiting { height: auto; color: $foreground-muted; text-style: $muted-style; display: none; }"

    def __init__(self) -> None:
        super().__init__("", id="queue", markup=False)
        self.queue: tuple[Queued, ...] = ()

    def show(self, queue: tuple[Queued, ...]) -> None:
        """Replace what is shown."""
        if queue != self.queue:
            self.queue = queue
            self.fit()

    def fit(self) -> None:
        """Cut the lines to the width that there is now."""
        queue = self.queue
        lines = [
            Content(f"{'↳ next step' if entry.steer else '⧗ after this turn'}: {safe_line(entry.text)}")
            for entry in queue[-SHOWN:]
        ]
        if len(queue) > SHOWN:
            lines.insert(0, Content(f"… {len(queue) - SHOWN} more"))
        width = max(1, self.app.size.width - 1)
        self.display = bool(queue)
        self.update(Content("\n").join([line.truncate(width, ellipsis=True) for line in lines]))
