"""The approval panel: what would run, why it asks, and what each answer means."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Literal

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.widgets import Input, Static

from swecli.core.protocol.blocks import DiffBlock, DisplayBlock
from swecli.core.protocol.commands import ReplyPermission
from swecli.core.protocol.events import EditedText, Hunk, PermissionChoice, PermissionRequested, hunk_texts
from swecli.safe_text import SafeText, safe_line
from swecli.tui.dock import panel
from swecli.tui.dock.block_view import BlockView
from swecli.tui.dock.panel import NARROW, SPANS, CommandEditor, DockPanel, Hint, KeyEffect, KeyLine, height
from swecli.tui.keymap import keymap_of
from swecli.tui.line_input import LineInput
from swecli.tui.transcript.diff import TextDiff, change_lines, render_lines
from swecli.tui.transcript.palette import palette_for
from swecli.tui.transcript.rows import NO_STYLE, Row, Styled


class HunkList(BlockView):
    """All hunks are accepted at first."""

    def __init__(self, blocks: Sequence[DisplayBlock], hunks: Sequence[Hunk]) -> None:
        super().__init__(blocks)
        self._hunks = tuple(hunks)
        self._on = set(range(1, len(hunks) + 1))
        self._cursor = 1
        self._starts: list[int] = []
        """The line at which each hunk begins."""

    @property
    def accepted(self) -> tuple[int, ...]:
        """Numbers of the hunks that are ticked, from 1."""
        return tuple(sorted(self._on))

    @property
    def count(self) -> int:
        return len(self._hunks)

    def move(self, by: int) -> None:
        """Point at another hunk and bring it into sight."""
        self._cursor = max(1, min(self.count, self._cursor + by))
        self._changed()
        self.scroll_to(y=self._starts[self._cursor - 1], animate=False)

    def toggle(self) -> None:
        """Tick the hunk that is pointed at, or not."""
        self._on ^= {self._cursor}
        self._changed()

    def tick(self, every: bool) -> None:
        """Tick all of them, or none."""
        self._on = set(range(1, self.count + 1)) if every else set()
        self._changed()

    def text_at_cursor(self) -> tuple[int, str] | None:
        """The block that is pointed at and its text with what is ticked; None where a file is deleted."""
        block = self._hunks[self._cursor - 1].block
        text = self._composed(block)
        return None if text is None else (block, text)

    def texts_with(self, edited: EditedText) -> tuple[EditedText, ...]:
        """The edited text, and of other files the texts of which not all is ticked."""
        partly = {hunk.block for number, hunk in enumerate(self._hunks, 1) if number not in self._on}
        others = [(block, self._composed(block)) for block in sorted(partly - {edited.block})]
        return (edited, *(EditedText(block, text) for block, text in others if text is not None))

    def _composed(self, number: int) -> str | None:
        block = self._blocks[number]
        if not isinstance(block, DiffBlock) or block.new is None:
            return None
        if block.old is None:
            return block.new
        lines = block.new.split("\n")
        for place, hunk in reversed(list(enumerate(self._hunks, 1))):
            if hunk.block == number and place not in self._on:
                at = hunk.new_start - block.first_line
                lines[at : at + hunk.new_lines] = hunk_texts(block, hunk)[0]
        return "\n".join(lines)

    def _changed(self) -> None:
        self._key = None
        self.refresh()

    def on_resize(self) -> None:
        super().on_resize()
        self.virtual_size = Size(self.virtual_size.width, len(self.lines(self.scrollable_content_region.width)))

    def lines(self, width: int) -> list[Strip]:
        palette = palette_for(self.app.current_theme)
        if (width, palette) == self._key:
            return self._lines
        rows: list[Row] = []
        self._starts = []
        for number, hunk in enumerate(self._hunks, 1):
            self._starts.append(len(rows))
            block = self._blocks[hunk.block]
            assert isinstance(block, DiffBlock)
            removed, added = _without_returns(*hunk_texts(block, hunk))
            mark = "\u203a" if number == self._cursor else " "
            head = f"{mark} [{'x' if number in self._on else ' '}] {number} of {self.count}  "
            head += f"{safe_line(block.path)}:{hunk.new_start}  +{len(added)} -{len(removed)}"
            rows += Styled(SafeText(head), palette.strong).rows(width)
            changed = change_lines(removed, added, hunk.old_start - 1, hunk.new_start - 1)
            rows += render_lines(block, TextDiff(tuple(changed), len(added), len(removed)), width, palette)
        self._lines = [Strip(row.segments()).adjust_cell_length(width, row.fill or NO_STYLE) for row in rows]
        self._key = (width, palette)
        return self._lines


def _without_returns(removed: list[str], added: list[str]) -> tuple[list[str], list[str]]:
    """Lines of a file whose lines end with CR and LF, without the CR."""
    if not all(line.endswith("\r") for line in (*removed, *added)):
        return removed, added
    return [line[:-1] for line in removed], [line[:-1] for line in added]


_Doing = Literal["asks", "word", "command", "hunks"]
"""What the panel is at: it asks, or takes a word to the model, a command, a choice of hunks."""

ESSENCE = 3
"""Lines of what would be done that are shown before anything about it is."""


class ApprovalPanel(DockPanel):
    """One request. Nothing but the keys of "once" and "always" approves, at first those that are set for it."""

    DEFAULT_CSS = """
    ApprovalPanel { border-top: solid $warning; }
    ApprovalPanel .dock--title { color: $warning; }
    ApprovalPanel #rule, ApprovalPanel #facts { height: auto; color: $foreground-muted; text-style: $muted-style; }
    ApprovalPanel #warnings { height: auto; color: $warning; }
    ApprovalPanel #word { display: none; }
    """

    def __init__(
        self,
        request: PermissionRequested,
        *,
        place: tuple[int, int] = (1, 1),
    ) -> None:
        super().__init__()
        self.request = request
        self._place = place
        self._expanded = False
        self._always = False
        self._span = 0
        self._decided = False
        self._doing: _Doing = "asks"
        self._notice = ""
        self._body = BlockView(request.blocks)
        self._hunks = HunkList(request.blocks, request.hunks) if request.hunks else None
        command = (request.arguments or {}).get("command")
        self._command = command if request.tool == "run_command" and isinstance(command, str) else None
        self._refused = _refused_command(request) if self._command is not None else ""
        self._editor = CommandEditor(self._refused or self._command or "")
        self._word = LineInput(id="word")
        self._keys = KeyLine("keys")

    def compose(self) -> ComposeResult:
        yield Static(id="title", classes="dock--title")
        yield Static(id="warnings")
        yield Static(id="facts")
        yield Static(id="reason", classes="dock--note")
        yield self._body
        if self._hunks is not None:
            yield self._hunks
        yield self._editor
        yield Static(id="rule")
        yield self._word
        yield self._keys

    def on_mount(self) -> None:
        self.appear()
        self._be("command" if self._refused else "asks")

    def show_place(self, place: tuple[int, int]) -> None:
        """Say which of how many waiting requests this is."""
        self._place = place
        self.fit()

    def toggle_expanded(self) -> bool:
        self._expanded = not self._expanded
        self.fit()
        return True

    def available(self) -> int:
        """In full view everything but the lines below the panel."""
        return max(3, self.screen.size.height - 2) if self._expanded else super().available()

    def escape(self) -> None:
        """One step back, or else reject the call."""
        if self._doing == "asks":
            self._decide("reject")
        else:
            self._be("asks")

    @property
    def field(self) -> LineInput | CommandEditor | None:
        return {"word": self._word, "command": self._editor}.get(self._doing)

    def key_effect(self, key: str) -> KeyEffect:
        if _action(self, key, self._moving if self._doing == "hunks" else ()) is not None:
            return "decides"
        return "moves" if key == "enter" or key in self._moves else "nothing"

    def take(self, key: str) -> None:
        action = _action(self, key, self._moving if self._doing == "hunks" else ())
        if action is not None:
            self._act(action)
        elif self._doing == "hunks" and self._hunks is not None and key in self._moving:
            self._moving[key](self._hunks)
            self.fit()
        elif key in self._scrolling:
            self._scrolling[key](self._hunks if self._doing == "hunks" and self._hunks is not None else self._body)

    def no_choice(self, digit: str) -> None:
        self.notify_line(f"{digit} does nothing here. Use the keys below.")

    def key_handled(self) -> None:
        self._keys.wait(self.grace)

    @property
    def _moves(self) -> frozenset[str]:
        moving = self._moving if self._doing == "hunks" else {}
        return frozenset((*moving, *self._scrolling))

    def _act(self, action: str) -> None:
        hunks = self._hunks if self._doing == "hunks" else None
        match action:
            case "approve_once" if hunks is None or hunks.accepted:
                self._decide("once")
            case "approve_always" | "reject" if hunks is not None:
                hunks.tick(action == "approve_always")
                self.fit()
            case "approve_always" if self._always:
                self._decide("always")
            case "approve_once" | "reject":
                self._be("word")
            case "change_call" if hunks is not None:
                self.run_worker(self._edit_text(hunks), exclusive=True)
            case "change_call" if self._hunks is not None:
                self._be("hunks")
            case "change_call" if self._command is not None:
                self._be("command")
            case "grant_span" if self._always:
                self._span = (self._span + 1) % len(SPANS)
                self.fit()
            case "full_view":
                self.toggle_expanded()
            case _:
                pass

    _scrolling = {
        "up": lambda body: body.scroll_up(animate=False),
        "down": lambda body: body.scroll_down(animate=False),
        "k": lambda body: body.scroll_up(animate=False),
        "j": lambda body: body.scroll_down(animate=False),
        "pageup": lambda body: body.scroll_page_up(animate=False),
        "pagedown": lambda body: body.scroll_page_down(animate=False),
        "space": lambda body: body.scroll_page_down(animate=False),
        "b": lambda body: body.scroll_page_up(animate=False),
        "home": lambda body: body.scroll_home(animate=False),
        "end": lambda body: body.scroll_end(animate=False),
    }

    _moving = {
        "up": lambda hunks: hunks.move(-1),
        "down": lambda hunks: hunks.move(1),
        "k": lambda hunks: hunks.move(-1),
        "j": lambda hunks: hunks.move(1),
        "space": lambda hunks: hunks.toggle(),
    }

    @on(Input.Submitted)
    def _said(self, event: Input.Submitted) -> None:
        event.stop()
        self._decide("reject", event.value.strip())

    @on(CommandEditor.Submitted)
    def _typed(self, event: CommandEditor.Submitted) -> None:
        event.stop()
        if event.text.strip() and event.text != self._command:
            arguments = {**(self.request.arguments or {}), "command": event.text}
            self._reply(ReplyPermission(self.request.request, "edit", arguments=arguments))
        else:
            self._be("asks")

    async def _edit_text(self, hunks: HunkList) -> None:
        """Let the user edit the proposed text; what they leave is shown before it can be approved."""
        from swecli.tui.external import ExternalError, edit

        found = hunks.text_at_cursor()
        if found is None:
            self.notify_line("A deleted file has no text to edit.")
            return
        block, text = found
        name = getattr(self.request.blocks[block], "path", "")
        suffix = f".{name.rpartition('.')[2]}" if "." in name.rpartition("/")[2] else ".txt"
        try:
            edited = await edit(self.app, text, suffix if suffix[1:].isalnum() else ".txt")
        except ExternalError as error:
            self.notify_line(str(error))
            return
        if edited != text:
            texts = hunks.texts_with(EditedText(block, edited))
            self._reply(ReplyPermission(self.request.request, "edit", texts=texts))

    def notify_line(self, text: str) -> None:
        """Say something in place of the facts until the panel changes."""
        self._notice = safe_line(text)
        self.fit()

    def _be(self, doing: _Doing) -> None:
        self._doing, self._notice = doing, ""
        self._word.value = ""
        self._word.placeholder = "What should it do instead? Enter sends, Esc goes back"
        self._word.display = doing == "word"
        self._editor.display = doing == "command"
        self._body.display = doing in ("asks", "word")
        if self._hunks is not None:
            self._hunks.display = doing == "hunks"
        {"word": self._word, "command": self._editor}.get(doing, self).focus()
        self._keys.wait(self.grace if doing == "asks" else None)
        self.fit()

    def _decide(self, choice: PermissionChoice, note: str = "") -> None:
        span = SPANS[self._span][0] if choice == "always" else "session"
        hunks = None
        if choice == "once" and self._doing == "hunks" and self._hunks is not None:
            hunks = self._hunks.accepted if len(self._hunks.accepted) < self._hunks.count else None
        self._reply(ReplyPermission(self.request.request, choice, note, span=span, hunks=hunks))

    def _reply(self, reply: ReplyPermission) -> None:
        if not self._decided:
            self._decided = True
            self.post_message(self.Decided(reply))

    def fit(self) -> None:
        """Share the lines that there are: title, keys and some lines of the body first, then warnings, the rule, the
        facts, the reason, and the rest of the body. Where the rule finds no place, always is not offered."""
        if not self.is_mounted:
            return
        columns = self.screen.size.width
        width = max(1, columns - 2)
        hints = self._hints(columns < NARROW)
        asked = self._doing in ("asks", "word")
        heading = panel.title(self.request, self._place)
        shown = len(self._body.lines(width)) if asked else ESSENCE
        fixed = 2 + height(heading, width) + (self._doing == "word")
        best, least = fixed + min(ESSENCE, shown), fixed + min(2, shown)
        rows = self.measure(panel.least_width(hints), best, least)
        spare = rows - min(rows - 1, best)
        texts = {
            "#warnings": panel.warnings(self.request),
            "#rule": panel.rule(self.request, self._span) if asked else "",
            "#facts": self._notice or panel.facts(self.request),
        }
        for name, text in texts.items():
            wanted = height(text, width)
            fits = bool(text) and wanted <= spare
            _put(self, name, text if fits else "")
            spare -= wanted if fits else 0
        reason = panel.reasons(self.request, width, spare) if asked else ""
        _put(self, "#reason", reason)
        spare -= height(reason, width)
        _put(self, "#title", heading)
        self._always = self.request.rule is not None and bool(self.query_one("#rule").display)
        # what "always" means may have had no room
        self._keys.tell(self._hints(columns < NARROW), width, narrow=columns < NARROW)
        room = max(1, spare + min(ESSENCE, shown))
        most = room if self._expanded or self._doing == "hunks" else max(1, min(room, max(6, rows * 6 // 10)))
        for view in (self._body, self._hunks):
            if view is not None:
                view.styles.max_height = most
        self._editor.styles.max_height = room
        self.set_class(columns < NARROW, "-tight")

    def _hints(self, narrow: bool) -> list[Hint]:
        keymap = keymap_of(self)
        yes, every, no, leave, change, full = map(
            keymap.shown, ("approve_once", "approve_always", "reject", "close", "change_call", "full_view")
        )
        leave = leave.lower()
        match self._doing:
            case "word":
                return [("enter", "rejects with this note", 0), (leave, "back", 1)]
            case "command":
                return [("enter", "shows it for approval", 0), ("ctrl+j", "new line", 2), (leave, "back", 1)]
            case "hunks":
                assert self._hunks is not None
                chosen = f"apply {len(self._hunks.accepted)} of {self._hunks.count}"
                return [
                    ("space", "toggle", 0),
                    (every, "all", 3),
                    (no, "none", 4),
                    (yes, chosen if self._hunks.accepted else "none: reject", 0),
                    (change, "edit the text", 2),
                    (leave, "back", 1),
                ]
            case "asks":
                hints: list[Hint] = [(yes, "once", 0)]
                hints += [(every, "always", 0)] if self._always else []
                hints += [(change, "edit", 3)] if self._hunks is not None or self._command is not None else []
                hints += [(no, "no…" if narrow else "reject with a note", 0), (leave, "no", 2)]
                return [*hints, (full, "full", 4), *([] if narrow else [("↑↓", "scroll", 5)])]


def _refused_command(request: PermissionRequested) -> str:
    """The user's own command, where it was refused: they get it back."""
    command = request.refused.arguments.get("command") if request.refused is not None else None
    return command if isinstance(command, str) else ""


def _action(panel: ApprovalPanel, key: str, taken: Container[str]) -> str | None:
    """What a key does to the question, unless it is taken for something else."""
    keymap = keymap_of(panel)
    return None if key in taken else keymap.action("approval", key) or keymap.action("approval", key.lower())


def _put(panel: ApprovalPanel, name: str, text: str) -> None:
    widget = panel.query_one(name, Static)
    widget.display = bool(text)
    widget.update(Content(text))
