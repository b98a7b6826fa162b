"""A value for one setting: checked while it is typed, or picked where there are few, and written to a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.tui.screens.entry import Entry
from swecli.tui.screens.ports import FileName, Setting, SettingsPort, Written
from swecli.tui.screens.sheet import Sheet

PAUSE = 0.12
"""Seconds after a key before what is typed is checked."""


class ValueSheet(Sheet):
    """Begins with one of the two files; ``written`` gets what was written to which."""

    def __init__(
        self,
        port: SettingsPort,
        setting: Setting,
        file: FileName,
        written: Callable[[Written, Setting, FileName], None],
    ) -> None:
        super().__init__("Settings", "type to narrow" if setting.choices else "a value; none takes it out of the file")
        self.mark = f"{setting.name} = "
        self.leave = "leaves it as it is"
        self._port = port
        self._setting = setting
        self._file: FileName = file
        self._written = written
        self._refused = ""

    def begin(self) -> None:
        self.board.show(self._setting.text)

    # --- what is seen ---

    def headline(self, count: int, total: int) -> str:
        return f"{self.title} · {self._setting.name}"

    def found(self, query: str) -> Sequence[Entry]:
        return choices(self._setting, query)

    def about(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        setting = self._setting
        lines = [TextBlock(setting.about), TextBlock(f"Takes {setting.takes}. Default: {setting.default}.", "dim")]
        if self._refused:
            lines.insert(0, TextBlock(f"{setting.name} {self._refused}", "error"))
        place = f"Enter writes to {self._port.files[self._file]}."
        if self._other in self._port.files:
            place += f" {self.board.keymap.shown('switch')}: {self._port.files[self._other]}"
        return [*lines, TextBlock(place, "plain")]

    def note(self, entry: Entry | None) -> str:
        return f"enter writes · {self.board.keymap.shown('switch')} other file"

    @property
    def _other(self) -> FileName:
        return "local" if self._file == "user" else "user"

    # --- what is done ---

    def typed(self, text: str) -> None:
        if not self._setting.choices:
            self.board.after(PAUSE, lambda: self.board.start(lambda: self._check(text), "check"))

    async def _check(self, text: str) -> None:
        if self.board.text != text:
            return
        refused = (
            await asyncio.to_thread(self._port.check, self._setting.name, text, self._file) if text.strip() else ""
        )
        if self.board.shows(self) and self.board.text == text:
            self._refused = refused
            self.board.show()

    def switch(self) -> None:
        if self._other in self._port.files:
            self._file = self._other
        self.board.show()
        self.typed(self.board.text)

    def sent(self, entry: Entry | None, text: str) -> None:
        if not self._setting.choices:
            self.board.start(lambda: self._store(text))
        elif entry is not None:
            self.board.start(lambda: self._store(entry.name))

    async def _store(self, text: str) -> None:
        name, file = self._setting.name, self._file
        try:
            if text.strip():
                written = await asyncio.to_thread(self._port.write, name, text, file)
            else:
                written = await asyncio.to_thread(self._port.unset, name, file)
        except ValueError as error:
            self._refused = str(error)
            self.board.show()
            return
        self._written(written, self._setting, file)
        if self.board.shows(self):
            self.board.back()


def choices(setting: Setting, query: str) -> list[Entry]:
    """The values of a setting that has few, narrowed by what is typed."""
    found = [
        Entry(
            choice,
            (choice.strip('"'), "in force" if choice == setting.text else ""),
            mark="●" if choice == setting.text else " ",
        )
        for choice in setting.choices
    ]
    return [entry for entry in found if query.strip().casefold() in entry.cells[0].casefold()]
