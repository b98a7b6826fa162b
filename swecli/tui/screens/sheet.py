"""What a screen lists and says at one step, and what its keys do. No widget: the one that shows it is its board."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.tui.keymap import Keymap
from swecli.tui.screens.entry import Entry, narrowed

NOTHING = (TextBlock("Nothing in the list has all of these words.", "dim"),)


class Board(Protocol):
    """What a sheet can ask of the screen that it is on."""

    @property
    def text(self) -> str:
        """What is typed."""
        ...

    @property
    def chosen(self) -> Entry | None:
        """The entry that is pointed at."""
        ...

    @property
    def keymap(self) -> Keymap: ...
    def show(self, name: str | None = None) -> None:
        """List and say everything anew; the entry of this name is chosen, or else the one that was."""
        ...

    def say(self, blocks: Sequence[DisplayBlock]) -> None:
        """Show this in place of what the sheet says, until something else is chosen."""
        ...

    def put(self, text: str) -> None:
        """Replace what is typed."""
        ...

    def enter(self, sheet: Sheet, text: str = "") -> None:
        """Go a step further, to another sheet on which this is typed."""
        ...

    def back(self) -> None:
        """Go back to the sheet before, as it was left."""
        ...

    def shows(self, sheet: Sheet) -> bool:
        """Whether this is the sheet that is on the board now."""
        ...

    def start(self, work: Callable[[], Coroutine[Any, Any, None]], group: str = "") -> None:
        """Run something beside the screen and as long as that is there; of a named group only the newest."""
        ...

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Do something later, if the same sheet is still there."""
        ...


class Sheet:
    """Subclasses fill ``entries`` and say what is done with them. ``board`` is there from ``begin`` on."""

    mark = "/ "
    """What stands before the line to type in."""
    reads = False
    """Whether there is nothing to choose, and what is said fills the screen, its end in sight."""
    leave = "goes back"
    """What Esc does on a sheet that is not the first."""
    board: Board

    def __init__(self, title: str, placeholder: str = "type to narrow") -> None:
        self.title = title
        self.placeholder = placeholder
        self.entries: Sequence[Entry] = ()
        self.trouble: Sequence[DisplayBlock] = ()
        """Why there is nothing to list, where that is a failure."""

    def begin(self) -> None:
        """The sheet has come to its board, or has come back to it."""

    # --- what is seen ---

    def headline(self, count: int, total: int) -> str:
        """The title, with how many of all entries are left."""
        return f"{self.title} · {count} of {total}" if count < total else f"{self.title} · {total}"

    def found(self, query: str) -> Sequence[Entry]:
        """What is left by what was typed."""
        return narrowed(self.entries, query)

    def said(self, entry: Entry | None, text: str) -> Sequence[DisplayBlock]:
        """What is shown below the list: a word on the entry, or why there is none."""
        if entry is None and self.trouble and not self.entries:
            return self.trouble
        lost = entry is None and bool(text.strip()) and bool(self.entries)
        return self.about(entry) or (NOTHING if lost else ())

    def about(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        """A word on the chosen entry, or on that there is none."""
        return ()

    def note(self, entry: Entry | None) -> str:
        """Which keys do what, besides the one that leaves: parts with " · " between them."""
        return "↑↓ choose"

    # --- what is done ---

    def typed(self, text: str) -> None:
        """What is in the line has changed, and the list with it."""

    def sent(self, entry: Entry | None, text: str) -> None:
        """Enter."""
        if entry is not None:
            self.choose(entry)

    def choose(self, entry: Entry) -> None:
        """Enter on an entry."""

    def remove(self, entry: Entry | None) -> None:
        """The key that takes an entry away."""

    def switch(self) -> None:
        """The key that changes to the other of two."""
