"""The help: every key and every command, searchable."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swecli.commands.base import SlashCommand
from swecli.core.config.key_actions import ACTIONS
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.tui.keymap import PLACES, Keymap
from swecli.tui.screens.list_screen import Entry, ListPage, heading

BASICS = (
    ("/", "commands; Tab completes, Enter runs"),
    ("@", "files and folders: @path, @path:10-40"),
    ("!", "run a shell command; its output is added to the conversation"),
    ("?", "this help"),
)
"""What the first character of a message means."""

Taken = Callable[[str], None]


def entries(commands: Sequence[SlashCommand], keymap: Keymap) -> list[Entry]:
    out = [heading("At the start of a message")]
    out += [Entry(f"basic {sign}", (sign, meaning)) for sign, meaning in BASICS]
    out.append(heading("Commands"))
    for command in commands:
        also = ", ".join(f"/{alias}" for alias in command.aliases)
        cells = (f"/{command.name} {command.arguments}".rstrip(), command.summary + (f" ({also})" if also else ""))
        out.append(Entry(f"/{command.name}", cells, words="command"))
    for place in PLACES:
        out.append(heading(f"Keys: {PLACES[place][0].lower()}{PLACES[place][1:]}"))
        out += [
            Entry(f"key {action.name}", (keymap.shown(action.name), action.meaning), words=action.name)
            for action in ACTIONS
            if action.place == place
        ]
    return out


class HelpPage(ListPage):
    """Enter on a command puts it into the prompt, by ``take``; on a key it tells how to change it."""

    def __init__(self, commands: Sequence[SlashCommand], keymap: Keymap, take: Taken) -> None:
        super().__init__("Help", "type to search keys and commands")
        self._commands = {f"/{command.name}": command for command in commands}
        self._keymap = keymap
        self._take = take
        self.entries = entries(commands, keymap)

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        if entry is None:
            return ()
        if entry.name in self._commands:
            command = self._commands[entry.name]
            lines = [f"{entry.cells[0]}: {command.summary}"]
            if command.aliases:
                lines.append(f"Also: {', '.join('/' + alias for alias in command.aliases)}")
            if not command.while_busy:
                lines.append("It waits until the turn ends.")
            return (TextBlock("\n".join(lines)),)
        if entry.name.startswith("key "):
            name = entry.name.removeprefix("key ")
            hint = f'To change it: /config keys.{name}, or in the settings [keys] {name} = ["f2"]'
            return (TextBlock(f"{self._keymap.shown(name)}: {entry.cells[1]}"), TextBlock(hint, "dim"))
        return (TextBlock(entry.cells[1]),)

    def key_note(self, entry: Entry | None) -> str:
        command = entry is not None and entry.name in self._commands
        return ("enter inserts it into the prompt · " if command else "") + "↑↓ PgUp PgDn move"

    def choose(self, entry: Entry) -> None:
        if entry.name in self._commands:
            self._take(entry.name + (" " if self._commands[entry.name].arguments else ""))
