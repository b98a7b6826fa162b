"""The complete prompt: waiting messages, suggestions, history, drafts, and the editor."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static, TextArea

from swecli.core.atomic_text import alone_in, make_private, write_whole
from swecli.safe_text import safe_line
from swecli.tui.dock.panel import ANSWERS, GRACE, Clock
from swecli.tui.keymap import Keymap
from swecli.tui.prompt.completion import Suggestions
from swecli.tui.prompt.editor import COMMANDS, PromptEditor
from swecli.tui.prompt.history_search import HistorySearch

if TYPE_CHECKING:
    from swecli.core.llm.secrets import Masker
    from swecli.core.protocol.events import Queued
    from swecli.core.protocol.messages import ImagePart
    from swecli.tui.prompt.vim import Ask
    from swecli.tui.prompt.vim_keys import VimKeys


# --- history per workspace, and unsent drafts ---


class Draft(NamedTuple):
    """An unsent message: the typed text with placeholders, and their pastes."""

    text: str = ""
    pastes: Mapping[int, str] = MappingProxyType({})


class Drafts:
    """Drafts of one workspace in ``folder``; None stores nothing. Each paste is a separate file, written once."""

    def __init__(self, folder: Path | None, pid: int | None = None) -> None:
        self._folder = folder
        self._pid = os.getpid() if pid is None else pid
        self._saved = ""
        self._pastes: dict[int, str] = {}
        """Pastes already on disk."""

    def save(self, text: str, pastes: Mapping[int, str] | None = None) -> None:
        """Replace this process's draft; empty text removes it. Disk errors are ignored so that typing continues."""
        wanted = dict(pastes or {}) if text.strip() else {}
        same = wanted.keys() == self._pastes.keys() and all(wanted[key] is self._pastes[key] for key in wanted)
        if self._folder is None or (same and text == self._saved):
            return
        with contextlib.suppress(OSError):
            if text.strip():
                make_private(self._folder)
                for number, paste in wanted.items():
                    if self._pastes.get(number) is not paste:
                        self._write(f"draft-{self._pid}-{number}.paste", paste)
                self._write(f"draft-{self._pid}.txt", text)
            else:
                (self._folder / f"draft-{self._pid}.txt").unlink(missing_ok=True)
            for number in self._pastes.keys() - wanted.keys():
                (self._folder / f"draft-{self._pid}-{number}.paste").unlink(missing_ok=True)
            self._saved, self._pastes = text, wanted

    def _write(self, name: str, text: str) -> None:
        assert self._folder is not None
        temporary = self._folder / f"{name}.new"
        temporary.write_bytes(text.encode("utf-8", "replace"))
        temporary.chmod(0o600)
        temporary.replace(self._folder / name)

    def adopt(self) -> Draft:
        """Return and remove the newest draft of a process that no longer runs; empty if there is none. Of two programs
        that find the same one, it belongs to the one that removes it."""
        if self._folder is None:
            return Draft()
        drafts: list[tuple[float, Path]] = []
        with contextlib.suppress(OSError):
            for path in self._folder.glob("draft-*.txt"):
                pid = path.stem.removeprefix("draft-")
                if pid.isdecimal() and self._is_left(int(pid)):
                    drafts.append((path.stat().st_mtime, path))
        for _, path in sorted(drafts)[-1:]:
            try:
                text, pastes = path.read_bytes().decode("utf-8", "replace"), dict[int, str]()
                path.unlink()
            except OSError:
                break
            for paste in self._folder.glob(f"{path.stem}-*.paste"):
                number = paste.stem.removeprefix(f"{path.stem}-")
                with contextlib.suppress(OSError):
                    if number.isdecimal():
                        pastes[int(number)] = paste.read_bytes().decode("utf-8", "replace")
                    paste.unlink()
            return Draft(text, pastes)
        return Draft()

    def _is_left(self, pid: int) -> bool:
        """Whether the draft of this process id is of a process that no longer runs. In containers each run may have the
        same id: then it is of an earlier one unless this one has saved its own."""
        from swecli.core.workspace.process_tree import is_running

        return not self._saved if pid == self._pid else not is_running(pid)


KEEP = 1000
"""Entries to load. A file of twice as many, or twice ``MAX_FILE``, is cut to these."""
MAX_FILE = 4_000_000
"""Bytes of the entries to load."""

MAX_ENTRY = 200_000
"""Characters; longer messages are not remembered."""


class History:
    """History entries, oldest first, with a current position.

    ``complain`` is called once with a sentence if the file can't be written; this session's entries remain usable.
    """

    def __init__(self, path: Path | None, complain: Callable[[str], None] = lambda text: None) -> None:
        self._path = path
        self._complain = complain
        self._entries: list[str] | None = None
        self._sent: list[str] = []
        """Messages sent since the entries were last read."""
        self._unsaved: list[str] = []
        self._place: int | None = None
        self._draft = ""

    @property
    def walking(self) -> bool:
        """Whether the position is at an entry, not at the draft."""
        return self._place is not None

    @property
    def entries(self) -> list[str]:
        """All entries, oldest first; the file is read on first use."""
        return self._take_in()

    def _take_in(self) -> list[str]:
        """Read the file if needed, and append the messages sent since; returns all entries."""
        if self._entries is None:
            self._entries = _read(self._path)
        sent, self._sent = self._sent, []
        for text in sent:
            if self._entries[-1:] != [text]:
                self._entries.append(text)
                self._unsaved.append(text)
        return self._entries

    @cached_property
    def _masker(self) -> Masker:
        """Masks keys and secrets of the environment, as in stored sessions."""
        from swecli.core.llm.secrets import masker_of
        from swecli.core.workspace.process import secret_values

        return masker_of(secret_values(os.environ))

    def add(self, text: str) -> None:
        """Add a sent message, in memory until ``save``, and return to the newest position."""
        self._place = None
        if len(text) <= MAX_ENTRY and text.strip():
            self._sent.append(text)

    def save(self) -> None:
        """Write the new entries."""
        if self._sent:
            self._take_in()
        added, self._unsaved = self._unsaved, []
        if self._path is None or not added:
            return
        try:
            _append(self._path, [self._masker.cover(text) for text in added])
        except OSError as error:
            self._complain(f"Cannot save the prompt history: {error.strerror or error}")
            self._path = None

    def older(self, current: str) -> str | None:
        """The entry before the current position, or None at the oldest. ``newer`` later returns to ``current``."""
        if self._place is None:
            self._draft, self._place = current, len(self.entries)
        index = self._place - 1
        while index >= 0 and self.entries[index] == current:
            index -= 1
        if index < 0:
            if self._place == len(self.entries):
                self._place = None
            return None
        self._place = index
        return self.entries[index]

    def newer(self) -> str | None:
        """The entry after the current position, the draft after the newest, or None if there is nothing newer."""
        if self._place is None:
            return None
        if self._place + 1 < len(self.entries):
            self._place += 1
            return self.entries[self._place]
        self._place = None
        return self._draft

    def leave(self) -> None:
        """Reset the position, because the text was edited or sent."""
        self._place = None

    def search(self, query: str, skip: int = 0) -> str | None:
        """The newest entry that contains ``query``, ignoring case; ``skip`` is the number of matches to skip."""
        needle = query.casefold()
        seen: set[str] = set()
        for entry in reversed(self.entries):
            if entry in seen or needle not in entry.casefold():
                continue
            seen.add(entry)
            if len(seen) > skip:
                return entry
        return None


def _read(path: Path | None) -> list[str]:
    """The newest entries; a file that has become too long is cut to them."""
    if path is None:
        return []
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError:
        return []
    newest = _newest(lines)
    if len(lines) > 2 * KEEP or sum(map(len, lines)) > 2 * MAX_FILE:
        with contextlib.suppress(OSError), alone_in(path.parent):
            newest = _newest(path.read_bytes().splitlines(keepends=True))
            write_whole(path, b"".join(newest).decode("utf-8", "replace"))
    entries: list[str] = []
    for line in newest:
        try:
            text = json.loads(line)
        except ValueError:
            continue
        if isinstance(text, str) and entries[-1:] != [text]:
            entries.append(text)
    return entries


def _newest(lines: Sequence[bytes]) -> Sequence[bytes]:
    """The last ``KEEP`` lines, of those as many as fit ``MAX_FILE``."""
    sizes = itertools.accumulate(len(line) for line in reversed(lines[-KEEP:]))
    fitting = sum(size <= MAX_FILE for size in sizes)
    return lines[len(lines) - fitting :]


def _append(path: Path, texts: Sequence[str]) -> None:
    data = "".join(json.dumps(text) + "\n" for text in texts).encode()
    make_private(path.parent)
    with alone_in(path.parent):  # another program may just replace the file by a shorter one
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)


# --- the prompt ---------------------------------------------------------------------------------------------


SHOWN = 4
"""Lines for waiting messages."""

LEAST_TEXT = 40
"""Cells of a waiting message that its key may leave."""

THIS_TURN = "this turn"


class Waiting(Static):
    """The waiting messages, one line each; of many, those that run next and the newest, which Up takes back."""

    DEFAULT_CSS = "Waiting { height: auto; color: $foreground-muted; text-style: $muted-style; display: none; }"

    def __init__(self) -> None:
        super().__init__("", id="queue", markup=False)
        self.queue: tuple[Queued, ...] = ()
        self._after: tuple[str, ...] = ()
        self._back = ""

    def show(self, queue: tuple[Queued, ...], after: tuple[str, ...], back: str) -> None:
        """``after`` says what each of them waits for, ``back`` names the key that takes the newest one back, if any."""
        if (queue, after, back) != (self.queue, self._after, self._back):
            self.queue, self._after, self._back = queue, after, back
            self.fit()

    def _line(self, entry: Queued, after: str) -> str:
        steers = entry.steer and after == THIS_TURN
        when = "↳ next step" if steers else f"⧗ after {after}" if after else "⧗ next"
        return f"{when}: {safe_line(entry.text)}"

    def fit(self) -> None:
        """Cut the lines to the current width."""
        lines = [Content(self._line(*entry)) for entry in zip(self.queue, self._after, strict=True)]
        if hidden := max(0, len(lines) - SHOWN):
            lines[SHOWN - 2 : -1] = [Content(f"… {hidden + 1} more")]
        width = max(1, self.app.size.width - 2)
        hint = Content(f" · {self._back} takes it back" if self._back else "")
        *earlier, newest = [line.truncate(width, ellipsis=True) for line in lines] or [Content("")]
        if (room := width - hint.cell_length) >= LEAST_TEXT:
            newest = newest.truncate(room, ellipsis=True) + hint
        self.display = bool(self.queue)
        shown = Content("\n").join([*earlier, newest])
        if shown != self.content:  # it has no styles
            self.update(shown)


class MentionWeights(Static):
    """Line below the draft with the size of its mentioned files relative to the window."""

    DEFAULT_CSS = "MentionWeights { height: 1; color: $foreground-muted; text-style: $muted-style; display: none; }"

    def __init__(self) -> None:
        super().__init__("", id="mention-weights", markup=False)
        self.weigh: Callable[[Sequence[str]], Awaitable[tuple[str, int]]] | None = None
        """Line about words after ``@``, and their estimated tokens; None while sizes are unknown."""
        self.weighed: Callable[[], None] | None = None
        """Called when ``tokens`` has changed."""
        self.tokens = 0
        self.words: tuple[str, ...] = ()
        self._text = ""
        self._timer: Timer | None = None

    def follow(self, text: str) -> None:
        """Update for a changed draft."""
        words: Sequence[str] = ()
        if "@" in text:
            from swecli.core.workspace.mentions import mentioned  # not needed by the first frame

            words = mentioned(text)
        if words == self.words:
            return
        self.words = words
        if self._timer is not None:
            self._timer.stop()
        if words:
            self._timer = self.set_timer(WEIGH_AFTER, self._weigh)
        else:
            self.tokens = 0
            self._show("")

    def _weigh(self) -> None:
        self.run_worker(self._weigh_words(self.words), group="mentions", exclusive=True)

    async def _weigh_words(self, words: tuple[str, ...]) -> None:
        line, tokens = ("", 0) if self.weigh is None else await self.weigh(words)
        if words != self.words:
            return
        self._show(safe_line(line))
        if tokens != self.tokens:
            self.tokens = tokens
            if self.weighed is not None:
                self.weighed()

    def _show(self, text: str) -> None:
        self._text = text
        self.display = bool(text)
        self.fit()

    def fit(self) -> None:
        """Cut the line to the current width."""
        width = max(1, self.app.size.width - 4)
        self.update(Content(f"  {self._text}").truncate(width, ellipsis=True), layout=False)


PLACEHOLDER = "Ask for a change · / commands · @ files · ? help"
STEERING = "Enter steers the running turn · Tab queues for after it"
STARTING = "You can type now…"

WEIGH_AFTER = 0.15
"""Seconds without a change of the mentions before their files are weighed."""

SAVE_AFTER = 0.4
"""Seconds without a key before draft and history are saved."""

MAX_LINES = 12


class Prompt(Vertical):
    """The dock's usual content."""

    DEFAULT_CSS = """
    Prompt { height: auto; border-top: solid $border-blurred; padding: 0 0 0 1; }
    Prompt > Horizontal { height: auto; }
    Prompt #prompt-mark { width: 2; height: 1; color: $accent; text-style: bold; }
    """

    @dataclass
    class Recall(Message):
        """Up on an empty prompt: edit the newest waiting message."""

        queued: Queued

    @dataclass
    class Scroll(Message):
        """A key that scrolls the transcript: page_up, page_down, home, end."""

        where: str

    class Edited(Message):
        """The text changed."""

    class Walk(Message):
        """Tab on an empty prompt: walk through the transcript."""

    class ContinueNewest(Message):
        """Asks to continue the newest session, on an empty prompt."""

    class Palette(Message):
        """Asks for the palette of all actions."""

    class Help(Message):
        """A question mark on an empty prompt."""

    class EditingChanged(Message):
        """Vim keys were switched on or off, or changed mode."""

    class Leave(Message):
        """Ctrl+D on an empty prompt."""

    def __init__(
        self,
        state: Path | None,
        files: Callable[[], Sequence[str]] = lambda: (),
        complain: Callable[[str], None] = lambda text: None,
        keymap: Keymap | None = None,
        *,
        clock: Clock = time.monotonic,
    ) -> None:
        """``state`` is the folder for this workspace's history and drafts, ``files`` lists what ``@`` offers (in a
        thread), ``complain`` gets a sentence if the history can't be saved, ``clock`` is monotonic seconds."""
        super().__init__(id="prompt")
        self.keymap = keymap or Keymap()
        self.editor = PromptEditor(id="editor", keymap=self.keymap)
        self.editor.intercept = self._intercept
        self.editor.intercept_paste = lambda text: self._search.take_paste(text)
        self.editor.complain = self._complain = complain
        self.suggestions = Suggestions(self.editor, files, self.keymap)
        self.history = History(None if state is None else state / "history.jsonl", complain)
        self._search = HistorySearch(self.history, self._walk, self.keymap)
        self._waiting = Waiting()
        self.mentions = MentionWeights()
        self._drafts = Drafts(state)
        self._walked: str | None = None
        self._save_timer: Timer | None = None
        self._busy = False
        self._clock = clock
        self._typed_at: float | None = None
        self._answered_until = 0.0
        """Clock time until which keys still belong to the answered panel."""
        self._answered_draft = ""
        self._invitation = self._placeholder = ""
        self._vim: VimKeys | None = None

    def compose(self) -> ComposeResult:
        yield self._waiting
        yield self.suggestions
        yield self._search
        with Horizontal():
            yield Static(Content("› "), id="prompt-mark")
            yield self.editor
        yield self.mentions

    def on_resize(self) -> None:
        self.fit()

    def on_unmount(self) -> None:
        self.save()

    def fit(self) -> None:
        """Limit the height so that the transcript gets most of the screen."""
        self.editor.styles.max_height = max(1, min(MAX_LINES, self.screen.size.height * 2 // 5))
        self._invite()
        self._waiting.fit()
        self.mentions.fit()

    def adopt_draft(self) -> None:
        """Load the unsent draft of a killed process, unless the user is already typing."""
        if self.editor.text:
            return
        draft = self._drafts.adopt()
        if draft.text:
            self.editor.retype(self.editor.pastes.adopt(draft.text, draft.pastes))

    def put_back(self, text: str, images: Sequence[ImagePart] = (), *, wanted: bool = False) -> None:
        """Return a failed message or command with its images, or one that the user ``wanted``. If text was typed since,
        a message goes before it; a command stays in the history only."""
        text = self.editor.attachments.back(text, images)
        if not self.editor.text or not text.startswith(("/", "!")):
            self._give_back([self.editor.folded_back(text)], wanted=wanted)

    def take_back(self, queue: Sequence[Queued], *, wanted: bool = False) -> tuple[str, ...]:
        """Put unsent messages with their images before the typed text; without any text, the first command. Returns the
        other commands, which stay in the history only, because they do not go together with other text. ``wanted``: the
        user asked for them."""
        attachments, editor = self.editor.attachments, self.editor
        back = [queued for queued in queue if not queued.text.startswith(("/", "!"))]
        if not back and not editor.text:
            back = [*queue[:1]]
        self._give_back(
            [editor.folded_back(attachments.back(queued.text, queued.images)) for queued in back], wanted=wanted
        )
        return tuple(queued.text for queued in queue if queued not in back)

    def _give_back(self, texts: Sequence[str], *, wanted: bool) -> None:
        """Put texts before what was typed since; put them aside if that is a command."""
        typed = self.editor.text
        if texts and typed.startswith(COMMANDS) and not wanted:
            self.editor.put_aside("\n".join(texts))
        elif texts:
            self.editor.give_back("\n".join([*texts, *([typed] if typed else [])]), wanted=wanted)

    def use_vim(self, on: bool) -> None:
        """Switch the editor between vim's and a shell's keys."""
        if on:
            from swecli.tui.prompt.vim_keys import VimKeys

            self._vim = VimKeys(self.editor, self._show_editing, self._do_for_vim)
            self.editor.taken = self._vim.begin
        else:
            self._vim = None
            self.editor.taken = None
        self._show_editing()

    def _show_editing(self) -> None:
        self.post_message(self.EditingChanged())

    @property
    def editing(self) -> str:
        """Vim mode and the pending keys; empty if vim keys are off."""
        return "" if self._vim is None else f"{self._vim.mode.upper()} {self._vim.pending}".rstrip()

    def _do_for_vim(self, ask: Ask) -> None:
        match ask:
            case "older":
                self._older()
            case "newer":
                self._newer()
            case "search":
                self._search.start(self.editor.text)
            case _ if not self.editor.text:
                self._complain("Normal mode: i to type, / searches sent messages, ? help")
            case _:
                self._complain("This key does nothing in normal mode; i to type")

    def save(self) -> None:
        """Save the history, then the draft with each paste once."""
        self.history.save()
        self._drafts.save(self.editor.text, self.editor.pastes.saved())

    def show_session(
        self,
        opened: bool,
        busy: bool,
        queue: tuple[Queued, ...],
        other_work: bool = False,
        later: tuple[Queued, ...] = (),
    ) -> None:
        """Update for the session's state. While it is busy, Tab queues. ``other_work``: a command runs. ``later`` is
        what runs once the session is free."""
        self._busy = busy
        self._invitation = (STEERING if busy else PLACEHOLDER) if opened else STARTING
        self._invite()
        work = THIS_TURN if busy else "this command" if other_work else ""
        after = (*(work or "the next turn" for _ in queue), *(work for _ in later))
        back = self.keymap.shown("older") if self.keymap.keys("older") else ""
        self._waiting.show((*queue, *later), after, back)

    def _invite(self) -> None:
        """Set the empty prompt's placeholder in the longest form that fits."""
        wanted = self._invitation
        placeholder = wanted.partition(" · ")[0] if self.app.size.width < len(wanted) + 5 else wanted
        if placeholder != self._placeholder:
            self._placeholder = placeholder
            self.editor.placeholder = Content(placeholder)

    @property
    def typed_at(self) -> float | None:
        """Clock time of the last typing at the draft; None without a draft."""
        return self._typed_at if self.editor.text else None

    @property
    def idle(self) -> float | None:
        """Seconds since the last typing at the draft; None without a draft."""
        return self._clock() - self._typed_at if self.editor.text and self._typed_at is not None else None

    def answered(self) -> None:
        """A panel was answered and the prompt returned. A repeat of the answering key is meant for the panel."""
        self._answered_until = self._clock() + GRACE
        self._answered_draft = self.editor.text

    def _meant_for_panel(self, key: str) -> bool:
        """Whether a key follows a panel's answer without a pause and could have been an answer. A key after typed or
        pasted text can't."""
        now = self._clock()
        if now >= self._answered_until or key not in ANSWERS or self.editor.text != self._answered_draft:
            self._answered_until = 0.0
            return False
        self._answered_until = now + GRACE
        return True

    def receive(self, text: str) -> None:
        """Insert letters that were typed elsewhere but meant for the draft."""
        if text:
            self._typed_at = self._clock()
            self.editor.add(text)

    def receive_paste(self, text: str) -> None:
        """Insert a paste that was meant for the draft."""
        self._typed_at = self._clock()
        self.editor.take_paste(text)

    @property
    def overlay(self) -> bool:
        """Whether suggestions or the history search are open."""
        return self.suggestions.is_open or self._search.display

    def close_overlay(self) -> None:
        if self._search.display:
            self._return(self._search.cancel())
        else:
            self.suggestions.dismiss()

    def _intercept(self, event: events.Key) -> bool:
        if self._answered_until and self._meant_for_panel(event.key):
            return True
        if event.is_printable:
            self._typed_at = self._clock()
        if self._search.display and self._search.take_key(event):
            return True
        editor = self.editor
        if not event.is_printable and self.suggestions.behind and editor.text != self._walked:
            self._follow()
        if self.suggestions.display and self.suggestions.take_key(event.key):
            return True
        if event.character == "?" and not editor.text:
            self.post_message(self.Help())
            return True
        if self._vim is not None and not self._search.display and self._vim.take(event):
            return True
        match self.keymap.action("prompt", event.key) or self.keymap.action("everywhere", event.key):
            case "older" if editor.at_first_row:
                return self._older()
            case "newer" if editor.at_last_row:
                return self._newer()
            case "search_history":
                self.suggestions.close()
                self._search.start(editor.text)
            case "complete":
                if not editor.text:
                    self.post_message(self.Walk())
                elif self._busy:
                    editor.submit(queue=True)
            case "page_up":
                self.post_message(self.Scroll("page_up"))
            case "page_down":
                self.post_message(self.Scroll("page_down"))
            case "scroll_home" if editor.cursor_at_start_of_text or event.key != "home":
                self.post_message(self.Scroll("home"))
            case "scroll_end" if editor.cursor_at_end_of_text or event.key != "end":
                self.post_message(self.Scroll("end"))
            case "palette":
                self.suggestions.close()
                self.post_message(self.Palette())
            case "continue_session" if not editor.text:
                self.post_message(self.ContinueNewest())
            case "leave" if not editor.text:
                self.post_message(self.Leave())
            case _:
                return False
        return True

    def _follow(self) -> None:
        """Offer completions while text is being typed."""
        if self._vim is not None and self._vim.mode != "insert":
            self.suggestions.close()
        elif not self._search.display:
            self.suggestions.follow()

    def _older(self) -> bool:
        if self._waiting.queue and not self.editor.text:
            self.post_message(self.Recall(self._waiting.queue[-1]))
            return True
        text = self.history.older(self.editor.text)
        if text is None:
            return self.editor.cursor_at_start_of_text
        self._walk(text)
        return True

    def _newer(self) -> bool:
        text = self.history.newer()
        if text is not None and self.history.walking:
            self._walk(text)
        elif text is not None:
            self._return(text)
        return text is not None

    def _return(self, draft: str) -> None:
        """Restore the draft."""
        self.editor.retype(draft)
        self._walked = self.editor.text

    def _walk(self, text: str) -> None:
        self.editor.put(text)
        self._walked = self.editor.text

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()
        text = self.editor.text
        if "@" in text or self.mentions.words:
            self.mentions.follow(text)
        if text == self._walked:
            self.suggestions.close()
        else:
            self._walked = None
            self.history.leave()
            self._follow()
        if self._save_timer is not None:
            self._save_timer.stop()
        self._save_timer = self.set_timer(SAVE_AFTER, self.save)
        self.post_message(self.Edited())

    @on(TextArea.SelectionChanged)
    def _moved(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        if self._vim is not None:
            self._vim.settle()
        if self.suggestions.display:
            self._follow()
