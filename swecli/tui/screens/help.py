"""Help: common tasks in groups first, then every key and command, searchable."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from swecli.commands.base import SlashCommand, listed, other_names
from swecli.core.config.key_actions import ACTIONS
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.tui.keymap import PLACES, Keymap
from swecli.tui.screens.list_screen import Entry, ListPage, heading, narrowed

BASICS = (
    ("/", "commands; Tab completes, Enter runs"),
    ("@path", "attach a file, folder or image; @path:10-40 for lines"),
    ("!", "run a shell command; its output is added to the conversation"),
    ("!!", "run it in the whole terminal, as swecli does for editors"),
    ("#", "add a line to the instructions; you approve the change"),
    ("?", "this help, on an empty prompt"),
)
"""Meaning of the first character of a word or message."""

WANTED: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("Context", (("/context", ""), ("/compact", ""), ("/rewind", ""), ("/usage", ""))),
    (
        "Ask",
        (
            ("@path", BASICS[1][1]),
            ("!", BASICS[2][1]),
            ("#", BASICS[4][1]),
            ("newline", "new line; a backslash before Enter does the same"),
            ("older", "the previous message, or the queued one to edit"),
            ("external_editor", "write in your editor; /vim for vim keys in the prompt"),
        ),
    ),
    (
        "While it works",
        (
            ("send", "steer it at the next step"),
            ("complete", "queue the message for after the turn"),
            ("close", "interrupt; waiting text returns to the prompt"),
            ("background", "move the running command to the background"),
        ),
    ),
    (
        "Decide and undo",
        (
            ("next_mode", "next mode: default, accept-edits, plan, auto"),
            ("/plan", ""),
            ("/permissions", ""),
            ("/diff", ""),
            ("/undo", ""),
        ),
    ),
    (
        "Look around",
        (
            ("expand", "more detail, or less"),
            ("find", "search the transcript"),
            ("turn_previous", "jump to your previous message; Tab walks block by block"),
            ("/copy", ""),
        ),
    ),
    ("Models, sessions, settings", (("/model", ""), ("/resume", ""), ("/clear", ""), ("/config", ""), ("/keys", ""))),
)
"""First page: prefixes, names of keys and commands, and their purpose if the command's own summary doesn't say it."""
ALL = "all"

Taken = Callable[[str], None]


def wanted(commands: Sequence[SlashCommand], keymap: Keymap) -> list[Entry]:
    """Common tasks with the user's keys, without commands that are unavailable."""
    known = {f"/{command.name}": command for command in commands}
    out: list[Entry] = []
    for title, rows in WANTED:
        entries: list[Entry] = []
        for name, meaning in rows:
            if name in known:
                entries.append(Entry(name, (name, known[name].summary)))
            elif meaning and name in dict(BASICS):
                entries.append(Entry(f"basic {name}", (name, meaning)))
            elif meaning:
                entries.append(Entry(f"key {name}", (keymap.shown(name).split(", ")[0], meaning)))
        out += [heading(title), *entries]
    return [*out, Entry(ALL, ("All …", "every key and command"))]


def entries(commands: Sequence[SlashCommand], keymap: Keymap) -> list[Entry]:
    """Every prefix, command and key."""
    out = [heading("In a message")]
    out += [Entry(f"basic {sign}", (sign, meaning)) for sign, meaning in BASICS]
    out.append(heading("Commands"))
    for command in listed(commands):
        also = other_names(command, commands)
        cells = (f"/{command.name} {command.arguments}".rstrip(), command.summary + (f" ({also})" if also else ""))
        out.append(Entry(f"/{command.name}", cells, words="command"))
    for context in PLACES:
        out.append(heading(f"Keys: {PLACES[context][0].lower()}{PLACES[context][1:]}"))
        out += [
            Entry(f"key {action.name}", (keymap.shown(action.name), action.meaning), words=action.name)
            for action in ACTIONS
            if action.place == context
        ]
    return out


class HelpPage(ListPage):
    """Help list. Enter puts a command into the prompt by ``take``, and explains how to change a key. Without ``whole``
    it starts with the common tasks; typing searches everything."""

    about = 3

    def __init__(self, commands: Sequence[SlashCommand], keymap: Keymap, take: Taken, *, whole: bool = False) -> None:
        super().__init__("Help", "type to search all keys and commands")
        self._offered = commands
        self._commands = {f"/{command.name}": command for command in commands}
        self._keymap = keymap
        self._take = take
        self._wanted = [] if whole else wanted(commands, keymap)
        self.entries = entries(commands, keymap)

    def headline(self, count: int, total: int) -> str:
        if self._wanted and not self.view.text.strip():
            return f"{self.title} · the most used of {total}"
        return super().headline(count, total)

    def matching(self, query: str) -> Sequence[Entry]:
        if self._wanted and not query.strip():
            return self._wanted
        matches = narrowed(self.entries, query)
        named = [entry for entry in matches if entry.name == f"/{query.strip().removeprefix('/').casefold()}"]
        return [*named, *(entry for entry in matches if entry not in named)]

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        if entry is None or entry.name == ALL:
            return ()
        if entry.name in self._commands:
            command = self._commands[entry.name]
            lines = [f"{entry.name} {command.arguments}".rstrip() + f": {command.summary}"]
            if also := other_names(command, self._offered):
                lines.append(f"Also: {also}")
            if not command.while_busy:
                lines.append("It waits until the turn ends.")
            return (TextBlock("\n".join(lines)),)
        if entry.name.startswith("key "):
            name = entry.name.removeprefix("key ")
            hint = f'To change it: /config keys.{name}, or in the settings [keys] {name} = ["f2"]'
            return (TextBlock(f"{self._keymap.shown(name)}: {entry.cells[1]}"), TextBlock(hint, "dim"))
        return (TextBlock(entry.cells[1]),)

    def key_note(self, entry: Entry | None) -> str:
        if entry is not None and entry.name == ALL:
            return "enter lists all · ↑↓ PgUp PgDn move"
        command = entry is not None and entry.name in self._commands
        return ("enter inserts it into the prompt · " if command else "") + "↑↓ PgUp PgDn move"

    def choose(self, entry: Entry) -> None:
        if entry.name == ALL:
            self.view.enter(HelpPage(self._offered, self._keymap, self._take, whole=True))
        elif entry.name in self._commands:
            self._take(entry.name + (" " if self._commands[entry.name].arguments else ""))
