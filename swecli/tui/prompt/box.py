"""The prompt as a whole: waiting messages, suggestions, the editor, and history search around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from swecli.commands.base import SlashCommand
from swecli.core.protocol.events import Queued
from swecli.tui.prompt import completion
from swecli.tui.prompt.drafts import Drafts
from swecli.tui.prompt.editor import PromptEditor
from swecli.tui.prompt.files import FileIndex
from swecli.tui.prompt.history import History
from swecli.tui.rows import Row, Rows
from swecli.tui.safe_text import safe_line

PLACEHOLDER = "Ask for a change · / commands · @ files · ? help"
STEERING = "Enter steers the running turn · Tab queues for after it"
STARTING = "You can type already…"
SAVE_AFTER = 0.4
"""Seconds without a key after which the draft is saved."""

MAX_LINES = 12
SHOWN_QUEUE = 3


class Prompt(Vertical):
    """The docked slot's usual content."""

    DEFAULT_CSS = """
    Prompt { height: auto; border-top: solid $border-blurred; }
    Prompt > Horizontal { height: auto; }
    Prompt #prompt-mark { width: 2; height: 1; color: $accent; text-style: bold; }
    Prompt #queue { height: auto; color: $foreground-muted; display: none; }
    Prompt #history-search { height: 1; color: $secondary; display: none; }
    Prompt #suggestions { display: none; }
    """

    @dataclass
    class Recall(Message):
        """Up on an empty prompt while messages wait: the newest of them is to be edited."""

        queued: Queued

    class Edited(Message):
        """The text changed."""

    class Leave(Message):
        """Ctrl+D on an empty prompt."""

    @dataclass
    class Scroll(Message):
        """A key that scrolls the transcript: page_up, page_down, home, end."""

        where: str

    def __init__(
        self,
        state: Path | None,
        files: Callable[[], Sequence[str]] = lambda: (),
        complain: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``state`` is the folder for history and drafts of this workspace, ``files`` lists what ``@`` offers
        (in a thread), ``complain`` gets a sentence when the history can't be saved."""
        super().__init__(id="prompt")
        self.commands: Sequence[SlashCommand] = ()
        self.history = History(None if state is None else state / "history.jsonl", complain)
        self._drafts = Drafts(state)
        self._files = FileIndex(files)
        self._busy = False
        self._queue: tuple[Queued, ...] = ()
        self._suggestions: list[completion.Suggestion] = []
        self._token: completion.Token | None = None
        self._dismissed: completion.Token | None = None
        self._query: str | None = None
        self._skip = 0
        self._walked: str | None = None
        self._before_search = ""
        self.editor = PromptEditor(id="editor")
        self._placeholder = ""
        self.editor.intercept = self._intercept
        self._popup = Rows(limit=completion.LIMIT, id="suggestions")
        self._save_timer = None

    def compose(self) -> ComposeResult:
        yield Static("", id="queue", markup=False)
        yield self._popup
        yield Static("", id="history-search", markup=False)
        with Horizontal():
            yield Static(Content("› "), id="prompt-mark")
            yield self.editor

    def on_resize(self, event: events.Resize) -> None:
        self.editor.styles.max_height = max(1, min(MAX_LINES, self.screen.size.height * 2 // 5))

    def adopt_draft(self) -> None:
        """Take over what a killed process left unsent, unless the user types already."""
        if not self.editor.text and (draft := self._drafts.adopt()):
            self.editor.put(draft)

    def show_session(self, opened: bool, busy: bool, queue: tuple[Queued, ...]) -> None:
        """Bring what depends on the session up to date. While it is busy, Tab queues."""
        self._busy = busy
        placeholder = (STEERING if busy else PLACEHOLDER) if opened else STARTING
        if placeholder != self._placeholder:
            self._placeholder = placeholder
            self.editor.placeholder = Content(placeholder)
        if queue != self._queue:
            self._show_queue(queue)

    def restore(self, text: str) -> None:
        """Put a text that was not sent back in front of what is typed."""
        present = self.editor.message
        self.editor.put(f"{text}\n{present}" if present.strip() else text)

    def _show_queue(self, queue: tuple[Queued, ...]) -> None:
        self._queue = queue
        widget = self.query_one("#queue", Static)
        lines = [
            Content(f"{'↳ next step' if entry.steer else '⧗ queued'}: {safe_line(entry.text)}")
            for entry in queue[-SHOWN_QUEUE:]
        ]
        if len(queue) > SHOWN_QUEUE:
            lines.insert(0, Content(f"… {len(queue) - SHOWN_QUEUE} more"))
        widget.display = bool(queue)
        width = max(1, self.size.width)
        widget.update(Content("\n").join([line.truncate(width, ellipsis=True) for line in lines]))

    def save(self) -> None:
        """Keep the draft on disk now."""
        self._drafts.save(self.editor.message)

    def remember(self, text: str) -> None:
        """The text was sent: it joins the history."""
        self.history.add(text)
        self._drafts.save("")

    @property
    def overlay(self) -> bool:
        """Whether suggestions or the history search are open."""
        return bool(self._suggestions) or self._query is not None

    def close_overlay(self) -> bool:
        """Close what is open; whether something was."""
        if self._query is not None:
            self._query = None
            self._show_search("")
            self.editor.put(self._before_search)
            return True
        if self._suggestions:
            self._dismissed = self._token
            self._suggest([])
            return True
        return False

    # --- keys -------------------------------------------------------------------------------------------

    def _intercept(self, event: events.Key) -> bool:
        key = event.key
        if self._query is not None and self._search_key(event):
            return True
        if self._suggestions and self._popup_key(key):
            return True
        match key:
            case "up":
                return self.editor.cursor_at_first_line and self._older()
            case "down":
                return self.editor.cursor_at_last_line and self._newer()
            case "ctrl+r":
                self._start_search()
                return True
            case "tab":
                if self._busy and self.editor.text.strip():
                    self.editor.post_message(PromptEditor.Submitted(self.editor.message, queue=True))
                return True
            case "pageup" | "pagedown":
                self.post_message(self.Scroll("page_up" if key == "pageup" else "page_down"))
                return True
            case "home" if self.editor.cursor_at_start_of_text:
                self.post_message(self.Scroll("home"))
                return True
            case "end" if self.editor.cursor_at_end_of_text:
                self.post_message(self.Scroll("end"))
                return True
            case "ctrl+d" if not self.editor.text:
                self.post_message(self.Leave())
                return True
            case _:
                return False

    def _popup_key(self, key: str) -> bool:
        match key:
            case "up" | "ctrl+p":
                self._popup.move(-1)
            case "down" | "ctrl+n":
                self._popup.move(1)
            case "tab":
                self._accept()
            case "enter":
                chosen = self._suggestions[self._popup.selected]
                typed = self._token.query if self._token else ""
                if self._token and self._token.kind == "command" and (chosen.runs or f"/{typed}" == chosen.insert):
                    self.editor.put(chosen.insert.rstrip())
                    self._suggest([])
                    self.editor.post_message(PromptEditor.Submitted(self.editor.message))
                else:
                    self._accept()
            case _:
                return False
        return True

    def _accept(self) -> None:
        token, chosen = self._token, self._suggestions[self._popup.selected]
        if token is None:
            return
        row, column = self.editor.cursor_location
        self._suggest([])
        self.editor.replace(chosen.insert, (row, token.start), (row, column), maintain_selection_offset=False)

    def _older(self) -> bool:
        if self._queue and not self.editor.text:
            self.post_message(self.Recall(self._queue[-1]))
            return True
        text = self.history.older(self.editor.message)
        if text is None:
            return self.editor.cursor_at_start_of_text or not self.editor.text
        self._walk(text)
        return True

    def _newer(self) -> bool:
        text = self.history.newer()
        if text is None:
            return False
        self._walk(text)
        return True

    def _walk(self, text: str) -> None:
        self.editor.put(text)
        self._walked = self.editor.text

    # --- history search -----------------------------------------------------------------------------------

    def _start_search(self) -> None:
        self._before_search = self.editor.message
        self._query, self._skip = "", 0
        self._suggest([])
        self._show_search("")

    def _search_key(self, event: events.Key) -> bool:
        assert self._query is not None
        key = event.key
        match key:
            case "ctrl+r" | "up":
                self._skip += 1
            case "down":
                self._skip = max(0, self._skip - 1)
            case "backspace" | "ctrl+h":
                self._query, self._skip = self._query[:-1], 0
            case "enter" | "tab" | "right" | "left":
                self._query = None
                self._show_search("")
                return key != "left"
            case _ if event.is_printable and event.character:
                self._query, self._skip = self._query + event.character, 0
            case _:
                return False
        self._find()
        return True

    def _find(self) -> None:
        query = self._query or ""
        found = self.history.search(query, self._skip) if query else None
        if found is None and self._skip:
            self._skip -= 1
            found = self.history.search(query, self._skip)
        if found is not None:
            self._walk(found)
        self._show_search("" if found is not None or not query else "nothing found")

    def _show_search(self, note: str) -> None:
        widget = self.query_one("#history-search", Static)
        widget.display = self._query is not None
        if self._query is not None:
            hint = note or "ctrl+r older · enter takes it · esc leaves"
            line = Content(f"search history: {safe_line(self._query)}▏  {hint}")
            widget.update(line.truncate(max(1, self.size.width), ellipsis=True))

    # --- suggestions ----------------------------------------------------------------------------------------

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if self.editor.text == self._walked:
            self._suggest([])
        else:
            self._walked = None
            self.history.leave()
            self._refresh_suggestions()
        if self._save_timer is not None:
            self._save_timer.stop()
        self._save_timer = self.set_timer(SAVE_AFTER, self.save)
        self.post_message(self.Edited())

    @on(TextArea.SelectionChanged)
    def _moved(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        if self._suggestions:
            self._refresh_suggestions()

    def _refresh_suggestions(self) -> None:
        if self._query is not None:
            return
        row, column = self.editor.cursor_location
        line = self.editor.document.get_line(row)
        token = completion.token_before(line, row, column)
        self._token = token
        if token is None:
            self._dismissed = None
            self._suggest([])
        elif (
            self._dismissed is not None and self._dismissed.start == token.start and self._dismissed.kind == token.kind
        ):
            self._suggest([])
        elif token.kind == "command":
            alone = self.editor.document.line_count == 1 and column == len(line)
            self._suggest(completion.commands(token.query, self.commands) if alone else [])
        else:
            self._files.refresh(self._refresh_suggestions)
            self._suggest(completion.files(token.query, self._files.paths))

    def _suggest(self, suggestions: list[completion.Suggestion]) -> None:
        if not suggestions and not self._suggestions:
            return
        self._suggestions = suggestions
        self._popup.display = bool(suggestions)
        self._popup.show([Row(entry.label, entry.detail) for entry in suggestions])
