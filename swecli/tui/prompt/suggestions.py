"""The popup above the editor: suggestions for the token before the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from swecli.tui.keymap import Keymap
from swecli.tui.prompt import completion
from swecli.tui.prompt.completion import Suggestion, Token
from swecli.tui.prompt.editor import PromptEditor
from swecli.tui.prompt.files import FileIndex
from swecli.tui.rows import Row, Rows

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand


class Suggestions(Rows):
    """Follows what is typed in ``editor``; the editor keeps the focus."""

    DEFAULT_CSS = "Suggestions { display: none; }"

    def __init__(self, editor: PromptEditor, files: Callable[[], Sequence[str]], keymap: Keymap) -> None:
        super().__init__(limit=completion.LIMIT, id="suggestions")
        self._editor = editor
        self._keymap = keymap
        self._files = FileIndex(files)
        self._entries: list[Suggestion] = []
        self._token: Token | None = None
        self._dismissed: tuple[str, int] | None = None
        self._chosen = False
        self.commands: Sequence[SlashCommand] = ()

    @property
    def is_open(self) -> bool:
        return bool(self._entries)

    def follow(self) -> None:
        """The text or the cursor changed."""
        editor = self._editor
        row, column = editor.cursor_location
        line = editor.document.get_line(row)
        token = self._token = completion.token_before(line, row, column)
        if token is None:
            self._dismissed = None
            self._offer([])
        elif self._dismissed == (token.kind, token.start):
            self._offer([])
        elif token.kind == "command":
            alone = editor.document.line_count == 1 and column == len(line)
            self._offer(completion.commands(token.query, self.commands) if alone else [])
        else:
            self._files.refresh(self.follow)
            self._offer(completion.files(token.query, self._files.paths))

    def close(self) -> None:
        """Nothing is offered until the text changes."""
        self._offer([])

    def dismiss(self) -> None:
        """The user does not want to complete this token."""
        if self._token is not None:
            self._dismissed = (self._token.kind, self._token.start)
        self.close()

    def take_key(self, key: str) -> bool:
        """Choose and accept; whether the key was for the popup."""
        if self._behind():
            self.follow()
            if not self.is_open:
                return False
        match self._keymap.action("list", key) or self._keymap.action("prompt", key):
            case "previous":
                self._chosen = True
                self.move(-1)
            case "next":
                self._chosen = True
                self.move(1)
            case "complete":
                self._accept()
            case "send":
                self._run()
            case _:
                return False
        return True

    def _behind(self) -> bool:
        """Whether text has come that is not followed yet: keys that arrive together."""
        row, column = self._editor.cursor_location
        return completion.token_before(self._editor.document.get_line(row), row, column) != self._token

    def _run(self) -> None:
        """Enter: a command that was only guessed from scattered letters runs when it was chosen, else the text
        is sent as it is."""
        chosen, token = self._entries[self.selected], self._token
        complete = token is not None and f"/{token.query}" == chosen.insert.rstrip()
        if token is not None and token.kind == "command" and not (chosen.begins or self._chosen):
            self.close()
            self._editor.submit()
        elif token is not None and token.kind == "command" and (chosen.runs or complete):
            self.close()
            self._editor.put(chosen.insert.rstrip())
            self._editor.submit()
        else:
            self._accept()

    def _accept(self) -> None:
        chosen, token = self._entries[self.selected], self._token
        self.close()
        if token is not None:
            row, column = self._editor.cursor_location
            self._editor.replace(chosen.insert, (row, token.start), (row, column), maintain_selection_offset=False)

    def _offer(self, entries: list[Suggestion]) -> None:
        if entries or self._entries:
            self._chosen = self._chosen and entries == self._entries
            self._entries = entries
            self.display = bool(entries)
            self.show([Row(entry.label, entry.detail) for entry in entries])
