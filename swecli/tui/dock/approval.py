"""The approval panel: what would run, why it asks, and the effect of each answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.widgets import Input, Static

from swecli.core.permissions.types import SANDBOXED
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock
from swecli.core.protocol.commands import ReplyPermission
from swecli.core.protocol.events import PermissionRequested
from swecli.core.protocol.request_events import EditedText, Hunk, PermissionChoice, hunk_texts
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import SafeText, safe_line
from swecli.tui.dock import panel
from swecli.tui.dock.block_view import BlockView
from swecli.tui.dock.choices import Choice, ChoiceList, step_of
from swecli.tui.dock.panel import (
    GRACE,
    NARROW,
    SPANS,
    CommandEditor,
    DockPanel,
    Hint,
    KeyEffect,
    KeyLine,
    height,
)
from swecli.tui.keymap import keymap_of
from swecli.tui.line_input import LineInput
from swecli.tui.transcript.diff import TextDiff, change_lines, render_lines
from swecli.tui.transcript.palette import palette_for
from swecli.tui.transcript.rows import NO_STYLE, Row, Styled


class HunkList(BlockView):
    """Diff whose hunks can be accepted one by one; initially all are."""

    def __init__(self, blocks: Sequence[DisplayBlock], hunks: Sequence[Hunk]) -> None:
        super().__init__(blocks)
        self._hunks = tuple(hunks)
        self._on = set(range(1, len(hunks) + 1))
        self._cursor = 1
        self._starts: list[int] = []
        """First line of each hunk."""

    @property
    def accepted(self) -> tuple[int, ...]:
        """Numbers of the ticked hunks, from 1."""
        return tuple(sorted(self._on))

    @property
    def count(self) -> int:
        return len(self._hunks)

    def move(self, by: int) -> None:
        """Move the cursor to another hunk and scroll it into view."""
        self._cursor = max(1, min(self.count, self._cursor + by))
        self._changed()
        if self._starts:
            self._bring_into_sight()
        else:
            self.call_after_refresh(self._bring_into_sight)

    def _bring_into_sight(self) -> None:
        """Scroll to the hunk at the cursor once it has been drawn."""
        if self._starts:
            self.scroll_to(y=self._starts[self._cursor - 1], animate=False)

    def toggle(self) -> None:
        """Tick or untick the hunk at the cursor."""
        self._on ^= {self._cursor}
        self._changed()

    def tick(self, every: bool) -> None:
        """Tick all hunks, or none."""
        self._on = set(range(1, self.count + 1)) if every else set()
        self._changed()

    def text_at_cursor(self) -> tuple[int, str] | None:
        """Block index at the cursor and its text with the ticked hunks; None for a deleted file."""
        block = self._hunks[self._cursor - 1].block
        text = self._composed(block)
        return None if text is None else (block, text)

    def texts_with(self, edited: EditedText) -> tuple[EditedText, ...]:
        """The edited text, and the texts of other files with unticked hunks."""
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
        for index, hunk in reversed(list(enumerate(self._hunks, 1))):
            if hunk.block == number and index not in self._on:
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
            first = hunk.old_start if removed else hunk.new_start
            head += f"{safe_line(block.path)}:{first}  +{len(added)} -{len(removed)}"
            rows += Styled(SafeText(head), palette.strong).rows(width)
            changed = change_lines(removed, added, hunk.old_start - 1, hunk.new_start - 1)
            rows += render_lines(block, TextDiff(tuple(changed), len(added), len(removed)), width, palette)
        self._lines = [Strip(row.segments()).adjust_cell_length(width, row.fill or NO_STYLE) for row in rows]
        self._key = (width, palette)
        return self._lines


def _without_returns(removed: list[str], added: list[str]) -> tuple[list[str], list[str]]:
    """Lines of a CRLF file without the CR."""
    if not all(line.endswith("\r") for line in (*removed, *added)):
        return removed, added
    return [line[:-1] for line in removed], [line[:-1] for line in added]


_Doing = Literal["asks", "word", "command", "hunks"]
"""State of the panel: asking, or taking a note to the model, a command, or a choice of hunks."""

ESSENCE = 3
"""Lines of the proposed action that take precedence over everything about it."""

Answer = Literal["approve_once", "approve_always", "reject", "approve_edits"]
ANSWERS: tuple[Answer, ...] = ("approve_once", "approve_always", "reject", "approve_edits")
"""Answers of the numbered choices, from 1; a number means the same in every approval."""
NO = ANSWERS.index("reject")
_EDITED_FILE = lazy_pattern(r"Edit\(/(/?[^*?!#\[\]\\()]+)\)")
"""The rule about one file, whose path is relative to the workspace or absolute."""


def answers(request: PermissionRequested, span: int, edits: int, letters: Sequence[str]) -> list[Choice]:
    """The numbered choices; ``letters`` are their keys. If no rule can be offered, a line in place of the second choice
    says why; the last one appears while several edits wait."""
    once, always, reject, every = letters
    lasting = SPANS[span][1]
    lasting = f"for {lasting}" if lasting.startswith("this ") else lasting
    if request.rule is None:
        again = Choice(safe_line(request.rule_note), open=False)
    elif request.rule == SANDBOXED:
        again = Choice(f"yes, and run such commands in the sandbox without asking ({SPANS[0][1]})", always)
    elif edited := _EDITED_FILE.fullmatch(request.rule):
        again = Choice(f"yes, and allow edits to {safe_line(edited[1])} {lasting}", always)
    else:
        again = Choice(f"yes, and don't ask again for {safe_line(request.rule)} ({SPANS[span][1]})", always)
    choices = [Choice("yes", once), again, Choice("no, and say what to do instead", reject)]
    return [*choices, Choice(f"yes to all {edits} waiting edits", every)] if edits > 1 else choices


class ApprovalPanel(DockPanel):
    """Asks about one request. A number, a configured letter, or Enter on a choice that the user moved to approves
    it."""

    DEFAULT_CSS = """
    ApprovalPanel { border-top: solid $warning; }
    ApprovalPanel .dock--title { color: $warning; }
    ApprovalPanel #danger { height: auto; color: $error; text-style: bold; }
    ApprovalPanel #facts { height: auto; color: $foreground-muted; text-style: $muted-style; }
    ApprovalPanel #word { display: none; }
    """

    def __init__(
        self,
        request: PermissionRequested,
        *,
        place: tuple[int, int] = (1, 1),
        waiting: Sequence[PermissionRequested] = (),
    ) -> None:
        """``waiting`` are all waiting requests, including this one."""
        super().__init__()
        self.request = request
        self._place = place
        self._edits = _edits(waiting)
        self._edits_at = 0.0
        """When the newest edit request arrived, by the panel's clock."""
        self._expanded = False
        self._more = False
        """Whether part of the call is hidden."""
        self._hidden = 0
        """Lines of the change or command that do not fit."""
        self._span = 0
        self._doing: _Doing = "asks"
        self._body = BlockView(request.blocks)
        self._hunks = HunkList(request.blocks, request.hunks) if request.hunks else None
        command = (request.arguments or {}).get("command")
        self._command = command if request.tool == "run_command" and isinstance(command, str) else None
        self._refused = _refused_command(request) if self._command is not None else ""
        self._editor = CommandEditor(self._refused or self._command or "")
        self._word = LineInput(id="word")
        self._list = ChoiceList()
        self._list.around = not request.danger  # no wrapping from "no" to "yes"
        self._keys = KeyLine()

    def compose(self) -> ComposeResult:
        yield Static(id="title", classes="dock--title")
        yield self._body
        if self._hunks is not None:
            yield self._hunks
        yield self._editor
        yield Static(id="danger")
        yield Static(id="facts")
        yield Static(id="reason", classes="dock--note")
        yield self._list
        yield self._word
        yield self._keys

    def on_mount(self) -> None:
        self.appear()
        self._list.show(self._answers(), NO if self.request.danger else 0)
        self._switch_to("command" if self._refused else "asks")

    def show_place(self, place: tuple[int, int], waiting: Sequence[PermissionRequested] = ()) -> None:
        """Show this request's place among the waiting ones, and offer to accept all edits among them."""
        self._place = place
        edits = _edits(waiting)
        if len(edits) > len(self._edits):
            self._edits_at = self.prompt_context.clock()
        self._edits = edits
        self.fit()

    def toggle_expanded(self) -> bool:
        if self._expanded or self._more:
            self._expanded = not self._expanded
            self.fit()
        else:
            self._say("Everything is already shown.")
        return True

    def available(self) -> int:
        """Lines for the panel; in full view, the screen without the lines below the panel and the todos."""
        if not self._expanded:
            return super().available()
        return max(3, self.screen.size.height - 2 - self.prompt_context.above())

    def escape(self) -> None:
        """Go one step back, or else reject the call."""
        if self._doing == "asks":
            self._decide("reject")
        else:
            self._switch_to("asks")

    @property
    def field(self) -> LineInput | CommandEditor | None:
        return {"word": self._word, "command": self._editor}.get(self._doing)

    def key_effect(self, key: str) -> KeyEffect:
        if self._doing == "hunks" and key in _MOVING_HUNKS:
            return "moves"
        if self._action(key) is not None or key == "enter":
            return "decides"
        if self._doing == "asks" and (self._list.numbered_at(key) is not None or step_of(self, key) is not None):
            return "decides"
        return "moves" if key in _SCROLLING else "nothing"

    def approves(self, key: str) -> bool:
        return (self._action(key) or "").startswith("approve_")

    def take(self, key: str) -> None:
        hunks = self._hunks if self._doing == "hunks" else None
        number = self._list.numbered_at(key)
        if hunks is not None and key in _MOVING_HUNKS:
            _move_in(hunks, key)
            self.fit()
        elif (action := self._action(key)) is not None:
            self._act(action)
        elif key == "enter":
            self._enter()
        elif hunks is None and number is not None:
            self._act(ANSWERS[number])
        elif hunks is None and (step := step_of(self, key)) is not None:
            self._list.move(step)
        elif key in _SCROLLING:
            _scroll(hunks or self._body, key)

    def _action(self, key: str) -> str | None:
        keymap = keymap_of(self)
        return keymap.action("approval", key) or keymap.action("approval", key.lower())

    def _enter(self) -> None:
        if self._doing == "hunks":
            self.said = f"Enter does nothing here; {keymap_of(self).shown('approve_once')} applies the ticked changes."
        elif self._list.display and self._list.moved:
            self._act(ANSWERS[self._list.selected])
        else:
            self.said = self._list.how_to_choose()

    def no_choice(self, digit: str) -> None:
        """Handle a digit without a choice."""
        choices = self._list.choices
        if self._doing == "hunks":
            self.said = "Numbers do nothing here; Space ticks a hunk."
        elif digit == "2" and len(choices) > 1:
            self.said = f"2 does nothing here {choices[1].text}"
        else:
            super().no_choice(digit)

    def key_handled(self) -> None:
        self._keys.say(self.said)
        self._keys.wait(self.grace, self._list.pale)

    def _act(self, action: str) -> None:
        hunks = self._hunks if self._doing == "hunks" else None
        match action:
            case "approve_once" if hunks is not None and not hunks.accepted:
                self.said = "Tick a hunk first (Space); " + keymap_of(self).shown("reject") + " rejects all."
            case "approve_once":
                self._decide("once")
            case "approve_always" | "approve_edits" if hunks is not None:
                self.said = f"That is one level up: {keymap_of(self).shown('close')} goes back."
            case "approve_always" if self._offers_rule:
                self._decide("always")
            case "approve_always":
                self.no_choice("2")
            case "approve_edits":
                self._accept_edits()
            case "reject":
                self._switch_to("word")
            case "tick_all" | "tick_none" if hunks is not None:
                hunks.tick(action == "tick_all")
                self.fit()
            case "change_call" if hunks is not None:
                self.run_worker(self._edit_text(hunks), exclusive=True)
            case "change_call" if self._hunks is not None:
                self._switch_to("hunks")
            case "change_call" if self._command is not None:
                self._switch_to("command")
            case "grant_span" if self._offers_span and hunks is None:
                self._span = (self._span + 1) % len(SPANS)
                self.fit()
            case "full_view":
                self.toggle_expanded()
            case _:
                pass

    @property
    def _offers_rule(self) -> bool:
        """Whether there is a rule and it is visible."""
        return self.request.rule is not None and bool(self._list.display)

    @property
    def _offers_span(self) -> bool:
        """Whether the rule may last longer than the session."""
        return self._offers_rule and self.request.rule != SANDBOXED

    def _accept_edits(self) -> None:
        """Approve this edit and the other waiting ones, as far as the user has seen them."""
        if len(self._edits) < 2:
            self.said = "No other edits wait."
        elif self.prompt_context.clock() - self._edits_at < GRACE:
            self.said = "Ignored: another edit joined before you could read it."
        else:
            for request in self._edits:
                if request != self.request.request:
                    self.post_message(self.Decided(ReplyPermission(request, "once")))
            if self.request.request in self._edits:
                self._decide("once")

    @on(Input.Submitted)
    def _noted(self, event: Input.Submitted) -> None:
        event.stop()
        self._decide("reject", event.value.strip())

    @on(CommandEditor.Submitted)
    def _typed(self, event: CommandEditor.Submitted) -> None:
        event.stop()
        if event.text.strip() and event.text != self._command:
            arguments = {**(self.request.arguments or {}), "command": event.text}
            self._reply(ReplyPermission(self.request.request, "edit", arguments=arguments))
        else:
            self._switch_to("asks")

    async def _edit_text(self, hunks: HunkList) -> None:
        """Let the user edit the proposed text; the result is shown before it can be approved."""
        from swecli.tui.external import ExternalError, edit

        target = hunks.text_at_cursor()
        if target is None:
            self._say("A deleted file has no text to edit.")
            return
        block, text = target
        name = getattr(self.request.blocks[block], "path", "")
        suffix = f".{name.rpartition('.')[2]}" if "." in name.rpartition("/")[2] else ".txt"
        try:
            edited = await edit(self.app, text, suffix if suffix[1:].isalnum() else ".txt")
        except ExternalError as error:
            self._say(safe_line(str(error)))
            return
        if edited != text:
            texts = hunks.texts_with(EditedText(block, edited))
            self._reply(ReplyPermission(self.request.request, "edit", texts=texts))

    def _say(self, text: str) -> None:
        """Show a message in place of the keys until the next key."""
        self.said = text
        self._keys.say(text)

    def _switch_to(self, doing: _Doing) -> None:
        self._doing = doing
        self.said = ""
        self._word.placeholder = "What should it do instead?"
        self._word.display = doing == "word"
        self._editor.display = doing == "command"
        self._body.display = doing in ("asks", "word")
        if self._hunks is not None:
            self._hunks.display = doing == "hunks"
        {"word": self._word, "command": self._editor}.get(doing, self).focus()
        self._keys.say("")
        self._keys.wait(self.grace if doing == "asks" else None, self._list.pale)
        self.fit()

    def _decide(self, choice: PermissionChoice, note: str = "") -> None:
        span = SPANS[self._span][0] if choice == "always" else "session"
        hunks = None
        if choice == "once" and self._doing == "hunks" and self._hunks is not None:
            hunks = self._hunks.accepted if len(self._hunks.accepted) < self._hunks.count else None
        self._reply(ReplyPermission(self.request.request, choice, note, span=span, hunks=hunks))

    def _reply(self, reply: ReplyPermission) -> None:
        if not self.answered:
            self.close_to_keys()
            self.post_message(self.Decided(reply))

    def _answers(self) -> list[Choice]:
        letters = [keymap_of(self).shown(action) for action in ANSWERS]
        return answers(self.request, self._span, len(self._edits), letters)

    def fit(self) -> None:
        """Distribute the lines: title, keys and some lines of the body first, then danger, choices, facts, reason, and
        the rest of the body. If the choices don't fit, no rule is offered."""
        if not self.is_mounted:
            return
        columns = self.screen.size.width
        narrow, width = columns < NARROW, max(1, columns - (0 if columns < NARROW else 2))
        asked = self._doing in ("asks", "word")
        heading = panel.title(self.request, self._place)
        self._list.show(self._answers())
        choices = self._list.lines(width) if self._doing == "asks" else 0
        essence = min(ESSENCE, len(self._body.lines(width))) if asked else ESSENCE
        danger = panel.danger(self.request)
        fixed = 2 + height(heading, width) + (self._doing == "word") + bool(danger)
        least = fixed + min(2, essence)
        rows = self.measure(panel.least_width(self._hints(narrow)), fixed + essence + choices, least)
        spare = rows - fixed - essence
        danger = _cut(danger, panel.brief_danger(danger, self._command or ""), width, max(1, spare + 1))
        spare -= _show_text(self, "#danger", danger, width, rows) - bool(danger)
        self._list.display = bool(choices) and choices <= spare
        spare -= choices if self._list.display else 0
        spare -= _show_text(self, "#facts", panel.facts(self.request), width, spare)
        reason = panel.reasons(self.request, folded=not self._expanded) if asked else ""
        shown = _show_text(self, "#reason", reason, width, spare)
        spare -= shown
        _show_text(self, "#title", heading, width, rows)
        whole = len(self._body.lines(width)) if asked else 0
        if not self._expanded and self._doing != "hunks" and rows <= super().available():
            # The content above the panel matters more than the rest of a long change.
            spare = min(spare, self.screen.size.height * 2 // 3 - (rows - spare))
        most = max(1, essence + spare)
        for view in (self._body, self._hunks):
            if view is not None:
                view.styles.max_height = most
        self._editor.styles.max_height = max(1, most)
        unfolded = panel.reasons(self.request, folded=False) if asked else ""
        self._hidden = max(0, whole - most)
        self._more = bool(self._hidden) or unfolded != (reason if shown else "")
        self._keys.tell(self._hints(narrow), width, narrow=narrow)
        self.set_class(narrow, "-tight")

    def _hints(self, narrow: bool) -> list[Hint]:
        keymap = keymap_of(self)
        names = ("approve_once", "reject", "close", "change_call", "full_view", "grant_span", "next_mode")
        yes, no, leave, change, full, span, mode = map(keymap.shown, names)
        leave = leave.lower()
        match self._doing:
            case "word":
                return [("enter", "rejects with this note", 0), (leave, "back", 1)]
            case "command":
                return [("enter", "shows it for approval", 0), ("ctrl+j", "new line", 2), (leave, "back", 1)]
            case "hunks":
                assert self._hunks is not None
                return [
                    ("space", "tick", 0),
                    (yes, f"apply {len(self._hunks.accepted)} of {self._hunks.count}", 0),
                    (keymap.shown("tick_all"), "all", 3),
                    (keymap.shown("tick_none"), "none", 4),
                    (change, "edit the text", 2),
                    (no, "reject", 3),
                    (leave, "back", 1),
                ]
            case "asks":
                hints: list[Hint] = [("\u2191\u2193 enter", "choose", 5)]
                if not self._list.display:
                    hints = [(yes, "yes", 0), (no, "no\u2026" if narrow else "no, with a note", 0)]
                hints += [(change, "edit", 2)] if self._hunks is not None or self._command is not None else []
                hints += [(span, "how long", 4)] if self._offers_span else []
                lines = "line" if self._hidden == 1 else "lines"
                more = f"{self._hidden:,} more {lines}" if self._hidden and not narrow else "more"
                hints += [(full, "less" if self._expanded else more, 3)] if self._more or self._expanded else []
                hints += [(mode.lower(), "accept edits", 6)] if self.request.acceptable else []
                return [*hints, (leave, "reject", 1)]


_MOVING_HUNKS = frozenset(("up", "down", "k", "j", "space"))
_SCROLLING = frozenset(("k", "j", "pageup", "pagedown", "space", "b", "home", "end"))


def _move_in(hunks: HunkList, key: str) -> None:
    match key:
        case "up" | "k":
            hunks.move(-1)
        case "down" | "j":
            hunks.move(1)
        case _:
            hunks.toggle()


def _scroll(body: BlockView, key: str) -> None:
    match key:
        case "k":
            body.scroll_up(animate=False)
        case "j":
            body.scroll_down(animate=False)
        case "pageup" | "b":
            body.scroll_page_up(animate=False)
        case "home":
            body.scroll_home(animate=False)
        case "end":
            body.scroll_end(animate=False)
        case _:
            body.scroll_page_down(animate=False)


def _edits(waiting: Sequence[PermissionRequested]) -> tuple[str, ...]:
    """Ids of the requests that mode accept-edits would approve."""
    return tuple(request.request for request in waiting if request.acceptable)


def _refused_command(request: PermissionRequested) -> str:
    """The user's own refused command, to return it to the prompt."""
    command = request.refused.arguments.get("command") if request.refused is not None else None
    return command if isinstance(command, str) else ""


def _cut(text: str, brief: str, width: int, lines: int) -> str:
    """The text in at most this many lines: whole, or its brief form, cut if necessary."""
    for whole in (text, brief):
        if height(whole, width) <= lines:
            return whole
    cuts = (Content(brief).truncate(cells, ellipsis=True).plain for cells in range(width * lines, 0, -1))
    return next((cut for cut in cuts if height(cut, width) <= lines), "")


def _show_text(asking: ApprovalPanel, name: str, text: str, width: int, room: int) -> int:
    """Show a text if it fits. Returns its number of lines."""
    lines = height(text, width)
    shown = bool(text) and lines <= room
    for widget in asking.query(name).results(Static):  # gone before the panel when the program ends
        widget.display = shown
        panel.show_text(widget, text)
    return lines if shown else 0
