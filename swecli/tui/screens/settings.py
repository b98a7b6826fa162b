"""The settings: every field with its value and origin; changed in the user's file or the project's local one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from swecli.assembly.settings import FileName, Setting, SettingsFiles, Written
from swecli.core.config.load import toml_text
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, MarkdownBlock, TextBlock
from swecli.core.validation import yes_or_no
from swecli.figures import bar, percent
from swecli.tui.screens.list_screen import NOTHING, Entry, ListPage, brief_paths, heading, narrowed, read_or_say

COMMON: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model.name": "Model",
        "approval.mode": "Permission mode",
        "ui.theme": "Theme",
        "ui.editing": "Editing keys",
        "ui.density": "Detail in the transcript",
        "ui.notify": "Notifications",
        "ui.status_line": "Status line",
        "context.auto_compact": "Compact automatically",
        "context.warn": "Warn when this full",
        "tools.command_timeout": "Command timeout",
        "ui.diff": "Diffs",
    }
)
"""Settings of the first page, in order; those that this version lacks are omitted."""
MOST: Final = 10
"""Maximum number of settings on the first page."""
ALL: Final = "all settings"
"""Entry that lists every setting."""


def first_page(settings: Sequence[Setting]) -> list[Entry]:
    """The common settings with display names, then the entry for all."""
    known = {setting.name: setting for setting in settings}
    common = [known[name] for name in COMMON if name in known][:MOST]
    entries = [
        replace(entry_of(setting, COMMON[setting.name], setting.shown, setting.name), tail=False, spare=True)
        for setting in common
    ]
    return [*entries, Entry(ALL, (f"All {len(settings)} settings …", "", ""), spare=True)]


def entry_of(setting: Setting, *cells: str) -> Entry:
    """List entry; values set by the user are highlighted."""
    changed = setting.origin != "default"
    words = f"{setting.about} {COMMON.get(setting.name, '')}"
    return Entry(setting.name, cells, "plain" if changed else "dim", words, "*" if changed else " ", tail=True)


_THEME: Final[tuple[DisplayBlock, ...]] = (
    MarkdownBlock("**Fixed**: `price` compared with `>`, see [the docs](https://example.com)."),
    DiffBlock("shop.py", "def price(pens):\n    if pens > 10:\n", "def price(pens):\n    if pens >= 10:\n"),
)
_OUTPUT: Final = "test_cart.py ..F\n1 failed, 2 passed"
_DETAIL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "short": "$ Run pytest   exit 1 · 2 s",
        "usual": f"$ Run pytest   exit 1 · 2 s\n  {_OUTPUT.splitlines()[0]}\n  … 41 lines hidden\n  1 failed, 2 passed",
        "full": f"$ Run pytest   exit 1 · 2 s\n  {_OUTPUT.splitlines()[0]}\n  (all 43 lines)\n  1 failed, 2 passed",
    }
)


def sample(name: str, value: str) -> Sequence[DisplayBlock]:
    """Visible effect of a setting's value, if it has one."""
    plain = value.strip().strip('"')
    match name:
        case "ui.theme":
            return _THEME
        case "ui.density" if plain in _DETAIL:
            return (TextBlock(_DETAIL[plain], "dim"),)
        case "context.warn" | "agent.compact_trigger" | "agent.hard_block" if (share := _share(plain)) is not None:
            return (TextBlock(f"{bar(share, 24)} {percent(share)} of the context"),)
        case _:
            return ()


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


PAUSE = 0.12
"""Seconds from a key to the check of the input."""


class ValuePage(ListPage):
    """Value of one setting. Starts with one of the two files; ``written`` receives the result, setting and file."""

    def __init__(
        self,
        port: SettingsFiles,
        setting: Setting,
        file: FileName,
        written: Callable[[Written, Setting, FileName], None],
        offered: Sequence[str] = (),
        preview: Preview | None = None,
    ) -> None:
        """``offered`` are suggested values besides free input; ``preview`` shows the effect of the selected one."""
        listed = bool(setting.choices or offered)
        super().__init__("Settings", "type to filter" if listed else "a value; empty removes it from the file")
        self.mark = "/ " if listed else f"{setting.name} = "
        self.leave = "cancels"
        self._port = port
        self._setting = setting
        self._file: FileName = file
        self._written = written
        self._refused = ""
        self._offered = tuple(offered)
        self._preview = preview
        self._stored = False
        """Whether the value is written, so that the preview remains."""

    def begin(self) -> None:
        self.view.show(self._setting.text.strip('"') if self._offered else self._setting.text)

    def pointed(self, entry: Entry | None) -> None:
        if self._preview is not None and entry is not None:
            self._preview.show(entry.name.strip('"'))

    def left(self) -> None:
        if self._preview is not None and not self._stored:
            self._preview.undo()

    # --- display ---

    def headline(self, count: int, total: int) -> str:
        return f"{self.title} · {self._setting.name}"

    def matching(self, query: str) -> Sequence[Entry]:
        return choices(self._setting, query, self._offered)

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        setting = self._setting
        lines = [TextBlock(setting.about), TextBlock(_allowed(setting), "dim")]
        if self._refused:
            lines.insert(0, TextBlock(f"{setting.name} {self._refused.rstrip('.')}.", "error"))
        elif entry is None and setting.choices:
            lines = [*NOTHING, *lines]
        shown = sample(setting.name, entry.name if entry is not None else self.view.text)
        destination = f"Enter writes it to {brief_paths(self._port.files[self._file])}"
        if self._other in self._port.files:
            destination += (
                f"\n{self.view.keymap.shown('switch')} selects {brief_paths(self._port.files[self._other])} instead"
            )
        return [*lines, TextBlock(destination, "plain"), *shown]

    def key_note(self, entry: Entry | None) -> str:
        return f"enter writes · {self.view.keymap.shown('switch')} other file"

    @property
    def _other(self) -> FileName:
        return "local" if self._file == "user" else "user"

    # --- actions ---

    def typed(self, text: str) -> None:
        if not self.matching(text) and not self._setting.choices:
            self.view.after(PAUSE, lambda: self.view.start(lambda: self._check(text), "check"))

    async def _check(self, text: str) -> None:
        if self.view.text != text:
            return
        refused = (
            await asyncio.to_thread(self._port.check, self._setting.name, text, self._file) if text.strip() else ""
        )
        if self.view.shows(self) and self.view.text == text:
            self._refused = refused
            self.view.show()

    def switch(self) -> None:
        if self._other in self._port.files:
            self._file = self._other
        self.view.show()
        self.typed(self.view.text)

    def submitted(self, entry: Entry | None, text: str) -> None:
        if entry is not None:
            self.view.start(lambda: self._store(entry.name))
        elif not self._setting.choices:
            self.view.start(lambda: self._store(text))

    async def _store(self, text: str) -> None:
        name, file = self._setting.name, self._file
        try:
            if text.strip():
                written = await asyncio.to_thread(self._port.write, name, text, file)
            else:
                written = await asyncio.to_thread(self._port.unset, name, file)
        except ValueError as error:
            self._refused = str(error)
            self.view.show()
            return
        self._stored = True
        self._written(written, self._setting, file)
        if self.view.shows(self):
            self.view.back()


def choices(setting: Setting, query: str, offered: Sequence[str] = ()) -> list[Entry]:
    """Values of a setting with few of them, or the ``offered`` ones, filtered by the input."""
    now = setting.text.strip('"')
    values = [
        Entry(
            choice,
            (choice.strip('"'), "current" if choice.strip('"') == now else ""),
            mark="●" if choice.strip('"') == now else " ",
        )
        for choice in setting.choices or offered
    ]
    flag = yes_or_no(query) if set(setting.choices) == {"true", "false"} else None
    wanted = query.strip().casefold() if flag is None else toml_text(flag)
    return [entry for entry in values if wanted in entry.cells[0].casefold()]


class Preview(Struct, frozen=True):
    """Shows a value on the screen, and reverts that."""

    show: Callable[[str], None]
    undo: Callable[[], None]


class Offered(Struct, frozen=True):
    """Suggested values of a free-text setting."""

    values: Callable[[], Awaitable[Sequence[str]]]
    preview: Preview | None = None


COUNTS = {
    "now": "Applies at once.",
    "session": "Applies from the next session; swecli offers to reopen this one when you leave.",
}


class SettingsPage(ListPage):
    """``changed`` gets the written result, ``notify`` a sentence for the user; ``offers`` are keyed by setting name.
    Without ``whole`` the page starts with the most common settings; typing searches all."""

    def __init__(
        self,
        port: SettingsFiles,
        changed: Callable[[Written, Setting], None],
        notify: Callable[[str], None],
        offers: Mapping[str, Offered] | None = None,
        *,
        whole: bool = False,
    ) -> None:
        super().__init__("Settings", "type to search names, values and meanings")
        self._port = port
        self._changed = changed
        self._notify = notify
        self._offers = offers or {}
        self._whole = whole
        self._settings: dict[str, Setting] = {}
        self._file: FileName = "user"

    def begin(self) -> None:
        self.view.start(self._read)

    async def _read(self) -> None:
        settings = await read_or_say(self, self._port.read)
        if settings is not None:
            self._settings = {setting.name: setting for setting in settings}
            self.entries = entries(settings)
            self.view.show()

    # --- display ---

    def headline(self, count: int, total: int) -> str:
        if self._whole or self.view.text.strip():
            return super().headline(count, total)
        return f"{self.title} · the most used of {total}" if total else self.title

    def matching(self, query: str) -> Sequence[Entry]:
        if not self._whole and not query.strip():
            return first_page(tuple(self._settings.values())) if self._settings else ()
        left = narrowed(self.entries, query)
        name = query.strip()
        if not left and "." in name and name not in self._settings:
            new = self._port.find(name)
            if new is not None:
                self._settings[new.name] = new
                return [heading("New"), entry_of(new, new.name, new.shown, new.origin)]
        exact = [entry for entry in left if name and entry.name == name]
        return exact or left

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        if entry is None:
            return () if self.entries else (TextBlock("Reading the settings.", "dim"),)
        if entry.name == ALL:
            return (TextBlock("Every setting by section, with where its value comes from."),)
        setting = self._settings[entry.name]
        lines = [TextBlock(setting.about), TextBlock(_allowed(setting), "dim")]
        lines.append(TextBlock(f"Now: {_now(setting)}. {COUNTS[setting.effect]}", "dim"))
        if setting.locked:
            lines.append(TextBlock(setting.locked, "warning"))
        return [*lines, *sample(setting.name, setting.text or setting.default)]

    def key_note(self, entry: Entry | None) -> str:
        if entry is None:
            return ""
        if entry.name == ALL:
            return "enter lists all · ↑↓ PgUp PgDn move"
        setting = self._settings[entry.name]
        unset = f"{self.view.keymap.shown('remove')} removes it from the file · " if setting.own else ""
        return ("" if setting.locked else "enter changes · ") + unset + "↑↓ PgUp PgDn move"

    # --- actions ---

    def choose(self, entry: Entry) -> None:
        if entry.name == ALL:
            self.view.enter(SettingsPage(self._port, self._changed, self._notify, self._offers, whole=True))
            return
        setting = self._settings[entry.name]
        if setting.locked:
            self._notify(setting.locked)
            return
        if setting.own is not None:
            self._file = setting.own
        offer = self._offers.get(setting.name)
        if offer is not None and not setting.choices:
            self.view.start(lambda: self._offer(setting, offer))
            return
        self.view.enter(
            ValuePage(self._port, setting, self._file, self._written), "" if setting.choices else setting.text
        )

    async def _offer(self, setting: Setting, offer: Offered) -> None:
        values = await offer.values()
        if self.view.shows(self):
            page = ValuePage(self._port, setting, self._file, self._written, values, offer.preview)
            self.view.enter(page, "" if values else setting.text)

    def _written(self, written: Written, setting: Setting, file: FileName) -> None:
        self._file = file
        self._notify(brief_paths(written.message))
        self._changed(written, setting)

    def remove(self, entry: Entry | None) -> None:
        if entry is None or entry.name == ALL:
            return
        setting = self._settings[entry.name]
        file = setting.own
        if file is None:
            self._notify(f"{setting.name} is not in your files: it comes from {setting.origin}")
        else:
            self.view.start(lambda: self._unset(setting, file))

    async def _unset(self, setting: Setting, file: FileName) -> None:
        try:
            written = await asyncio.to_thread(self._port.unset, setting.name, file)
        except ValueError as error:
            self.view.say((TextBlock(str(error), "error"),))
            return
        self._written(written, setting, self._file)
        await self._read()


def _allowed(setting: Setting) -> str:
    """Allowed values and default of the setting: "A number from 0 to 1; default 0.25."."""
    default = "unset by default" if setting.default == UNSET else f"default {setting.default}"
    return f"{setting.takes[:1].upper()}{setting.takes[1:]}; {default}."


def _now(setting: Setting) -> str:
    if setting.origin == DEFAULT:
        return "unset" if setting.default == UNSET else "the default"
    return f"{setting.shown} ({setting.origin})"


UNSET, DEFAULT = "(unset)", "default"
"""Text for a missing value, and for the origin of a value that no file sets."""


def entries(settings: Sequence[Setting]) -> list[Entry]:
    out: list[Entry] = []
    section = ""
    for setting in settings:
        first = setting.name.partition(".")[0]
        if first != section:
            section = first
            out.append(heading(first))
        out.append(entry_of(setting, setting.name, setting.shown, setting.origin))
    return out
