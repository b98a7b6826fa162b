"""The settings: every field with its value and where it comes from; changed in the user's file or the project's local
one, checked while it is typed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.tui.dock.panel import keymap_of
from swecli.tui.screens.entry import Entry, heading, narrowed
from swecli.tui.screens.ports import FileName, Setting, SettingsPort, Written
from swecli.tui.screens.reading import read_or_say
from swecli.tui.screens.view import ScreenView

PAUSE = 0.12
"""Seconds after a key before what is typed is checked."""

PLACEHOLDER = "type to search names, values and meanings"
COUNTS = {"now": "Counts at once.", "session": "Counts from the next session on; you are asked when you leave."}


@dataclass(frozen=True, slots=True)
class Editing:
    """The setting that is being changed, and the words that were typed before."""

    setting: Setting
    words: str


class SettingsScreen(ScreenView):
    """``changed`` gets what was written, ``tell`` a sentence for the user."""

    def __init__(
        self,
        port: SettingsPort,
        changed: Callable[[Written, Setting], None],
        tell: Callable[[str], None],
        *,
        words: str = "",
    ) -> None:
        super().__init__("Settings", PLACEHOLDER)
        self._port = port
        self._changed = changed
        self._tell = tell
        self._settings: dict[str, Setting] = {}
        self._file: FileName = "user"
        self._editing: Editing | None = None
        self._refused = ""
        self._start = words
        self.line.value = words

    def on_mount(self) -> None:
        super().on_mount()
        self.run_worker(self._read())

    async def _read(self) -> None:
        found = await read_or_say(self, self._port.read)
        if found is None:
            return
        self._settings = {setting.name: setting for setting in found}
        self.show_all(entries(found))

    # --- what is seen ---

    def found(self, query: str) -> Sequence[Entry]:
        if self._editing is not None:
            return choices(self._editing.setting, query)
        left = narrowed(self._all, query)
        name = query.strip()
        if not left and "." in name and name not in self._settings:
            new = self._port.find(name)
            if new is not None:
                self._settings[new.name] = new
                return [heading("New"), _entry(new)]
        exact = [entry for entry in left if name and entry.name == name]
        return exact or left

    def about(self, entry: Entry) -> Sequence[DisplayBlock]:
        if self._editing is not None:
            return self._advice(self._editing.setting)
        setting = self._settings[entry.name]
        lines = [TextBlock(setting.about), TextBlock(f"Takes {setting.takes}. Default: {setting.default}.", "dim")]
        lines.append(TextBlock(f"Now: {setting.shown} ({setting.origin}). {COUNTS[setting.effect]}", "dim"))
        if setting.locked:
            lines.append(TextBlock(setting.locked, "warning"))
        return lines

    def about_nothing(self) -> Sequence[DisplayBlock]:
        return self._advice(self._editing.setting) if self._editing is not None else ()

    def headline(self, count: int, total: int) -> str:
        if self._editing is not None:
            return f"Settings · {self._editing.setting.name}"
        return super().headline(count, total)

    def _advice(self, setting: Setting) -> Sequence[DisplayBlock]:
        lines = [TextBlock(setting.about), TextBlock(f"Takes {setting.takes}. Default: {setting.default}.", "dim")]
        if self._refused:
            lines.insert(0, TextBlock(f"{setting.name} {self._refused}", "error"))
        other: FileName = "local" if self._file == "user" else "user"
        switch = keymap_of(self).shown("switch")
        place = f"Enter writes to {self._port.files[self._file]}."
        if other in self._port.files:
            place += f" {switch}: {self._port.files[other]}"
        return [*lines, TextBlock(place, "plain")]

    def note(self, entry: Entry | None) -> str:
        if self._editing is not None:
            return f"enter writes · {keymap_of(self).shown('switch')} other file · esc leaves it as it is"
        if entry is None:
            return "esc closes"
        setting = self._settings[entry.name]
        unset = f"{keymap_of(self).shown('remove')} takes it out of the file · " if setting.own else ""
        return ("" if setting.locked else "enter changes · ") + unset + "↑↓ PgUp PgDn move · esc closes"

    # --- what is done ---

    def choose(self, entry: Entry) -> None:
        if self._editing is not None:
            self._write(entry.name)
            return
        setting = self._settings[entry.name]
        if setting.locked:
            self._tell(setting.locked)
            return
        self._editing = Editing(setting, self.line.value)
        self._refused = ""
        if setting.own is not None:
            self._file = setting.own
        self.line.placeholder = "type to narrow" if setting.choices else "a value; none takes it out of the file"
        self.line.value = "" if setting.choices else setting.text
        self.line.cursor_position = len(self.line.value)
        self.mark(f"{setting.name} = ")
        self.refill(setting.text)

    def sent(self) -> None:
        if self._editing is not None and not self._editing.setting.choices:
            self._write(self.line.value)
        else:
            super().sent()

    def typed(self) -> None:
        self.refill()
        if self._editing is None or self._editing.setting.choices:
            return
        text, name = self.line.value, self._editing.setting.name

        def check() -> None:
            if self._editing is not None and self.line.value == text:
                self.run_worker(self._check(name, text), group="check", exclusive=True)

        self.set_timer(PAUSE, check)

    async def _check(self, name: str, text: str) -> None:
        refused = await asyncio.to_thread(self._port.check, name, text, self._file) if text.strip() else ""
        if self._editing is not None and self._editing.setting.name == name and self.line.value == text:
            self._refused = refused
            self.refill()

    def _write(self, text: str) -> None:
        editing = self._editing
        if editing is not None:
            self.run_worker(self._store(editing, text), group="write")

    async def _store(self, editing: Editing, text: str) -> None:
        setting = editing.setting
        try:
            if text.strip():
                written = await asyncio.to_thread(self._port.write, setting.name, text, self._file)
            else:
                written = await asyncio.to_thread(self._port.unset, setting.name, self._file)
        except ValueError as error:
            self._refused = str(error)
            self.refill()
            return
        await self._done(written, setting)

    async def _done(self, written: Written, setting: Setting) -> None:
        self._leave()
        self._tell(written.told)
        self._changed(written, setting)
        await self._read()

    def _leave(self) -> None:
        editing, self._editing = self._editing, None
        self._refused = ""
        self.mark("/ ")
        self.line.placeholder = PLACEHOLDER
        if editing is not None:
            self.line.value = editing.words
            self.line.cursor_position = len(editing.words)
            self.refill(editing.setting.name)

    def remove_entry(self, entry: Entry) -> None:
        if self._editing is not None:
            return
        setting = self._settings[entry.name]
        if setting.own is None:
            self._tell(f"{setting.name} is in none of your files: it comes from {setting.origin}")
        else:
            self.run_worker(self._unset(setting, setting.own), group="write")

    async def _unset(self, setting: Setting, file: FileName) -> None:
        try:
            written = await asyncio.to_thread(self._port.unset, setting.name, file)
        except ValueError as error:
            self.say((TextBlock(str(error), "error"),))
            return
        await self._done(written, setting)

    def switch(self) -> None:
        if self._editing is not None:
            other: FileName = "local" if self._file == "user" else "user"
            if other in self._port.files:
                self._file = other
            self.typed()

    def back(self) -> bool:
        if self._editing is not None:
            self._leave()
            return True
        return super().back()


def entries(settings: Sequence[Setting]) -> list[Entry]:
    """The settings under their sections."""
    out: list[Entry] = []
    section = ""
    for setting in settings:
        first = setting.name.partition(".")[0]
        if first != section:
            section = first
            out.append(heading(first))
        out.append(_entry(setting))
    return out


def _entry(setting: Setting) -> Entry:
    tone = "plain" if setting.origin != "default" else "dim"
    mark = "*" if setting.origin != "default" else " "
    return Entry(setting.name, (setting.name, setting.shown, setting.origin), tone, setting.about, mark)


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
