"""The compaction plan: what is kept, summarised, or replaced by a reference; items can be moved and edited, the plan
applied or cancelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import TextArea

from swecli.core.context_management.compaction.plan import COLUMNS, Arranged, Column, PlannedItem
from swecli.core.context_management.edit_effects import cost_words
from swecli.core.protocol.commands import ApplyPlan, Command, RedoCompaction, UndoCompaction
from swecli.figures import dollars, plural
from swecli.figures import tokens as short
from swecli.safe_text import safe_line
from swecli.tui.screens.board import Board, Line, fit, fitted_text, keys_line, step_for, text_line, wrapped
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import cells

if TYPE_CHECKING:
    from swecli.core.context_management.fitting import Fitted
    from swecli.core.context_management.forecast import CompactionRecord
    from swecli.core.engine.session import Session

SUMMARY_FOCUS: Final = 3
"""Focus index of the summary, after the columns."""
COLUMNS_FROM: Final = 96
"""Cells from which the columns are side by side."""
SummaryLine = tuple[str, tuple[str, ...]]
"""A line, and the ids of its sources."""
_NAMES: Final[dict[Column, str]] = {"kept": "Kept", "summarised": "Summarised", "offloaded": "Offloaded"}
_MARKS: Final[dict[Column, str]] = {"kept": "=", "summarised": "Σ", "offloaded": "⇣"}
_MOVES: Final[dict[str, Column]] = {"keep_item": "kept", "summarise_item": "summarised", "offload": "offloaded"}


class _SummaryEditor(TextArea):
    def render_lines(self, crop: Region) -> list[Strip]:
        """A removed editor may be drawn once more, without styles."""
        return super().render_lines(crop) if self.is_attached else [Strip.blank(crop.width)] * crop.height


class PlanBoard(Board):
    """``send`` sends a command to the session, ``flash`` shows a short message."""

    DEFAULT_CSS = "PlanBoard TextArea { dock: bottom; height: 60%; border: round $accent; }"

    def __init__(self, session: Session, send: Callable[[Command], None], flash: Callable[[str], None]) -> None:
        super().__init__()
        self._session = session
        self._send = send
        self._flash = flash
        self._draft = session.draft_compaction() if not session.view.busy else None
        self._revision = session.inspection.revision
        self._summary: str | None = None
        """The draft; None until the model was asked or the user wrote one."""
        self._writing = False
        self._arranged: tuple[object, Arranged] | None = None
        self._focus = 1 if self._draft is not None and self._draft.summarised else 0
        self._at = [0, 0, 0, 0]
        self._tops = [0, 0, 0, 0]
        self._hits: list[tuple[int, int, int, int, int]] = []
        """Clickable cells: x from, x to, y, focus, row."""
        self._history = False
        self._record: CompactionRecord | None = None
        """Compaction whose summary is open in the history."""
        self._cited: tuple[object, Sequence[SummaryLine]] = (None, ())
        """Lines of the current summary, and the object that they belong to."""
        self._moved: tuple[object, tuple[int, Fitted] | None, str] | None = None
        """What undoing or redoing the selected compaction makes of the context, and for which state."""
        self._editor: _SummaryEditor | None = None
        self._edited = ""
        """The editor's initial text."""

    # --- keys and mouse ---

    @property
    def _items(self) -> tuple[PlannedItem, ...]:
        return self._draft.items if self._draft is not None else ()

    def _column(self, index: int) -> list[PlannedItem]:
        return [item for item in self._items if item.column == COLUMNS[index]]

    @property
    def _lines(self) -> Sequence[SummaryLine]:
        """The current summary, each line with the ids of its sources."""
        if self._record is not None:
            key: object = self._record
            if key != self._cited[0]:
                self._cited = (key, self._session.inspection.lines(self._record.summary))
            return self._cited[1]
        if self._draft is None or not self._summary:
            return ()
        key = (self._draft.summarised, self._summary)
        if key != self._cited[0]:
            self._cited = (key, self._draft.lines(self._summary))
        return self._cited[1]

    @property
    def _records(self) -> Sequence[CompactionRecord]:
        return tuple(reversed(self._session.inspection.timeline.compactions))

    def _length(self) -> int:
        if self._history and self._record is None:
            return len(self._records)
        if self._record is not None or self._focus == SUMMARY_FOCUS:
            return len(self._lines)
        return len(self._column(self._focus))

    def act(self, action: str) -> bool:
        step = step_for(action, page=10, rows=100_000)
        if step is not None:
            self.move_by(step)
        elif action == "show_history":
            self._history, self._record = not self._history, None
            self._focus, self._at[0] = 0, 0
        elif self._history and action == "open":
            self._open_record()
        elif self._history:
            if action != "undo_compaction" or self._record is not None:
                return False
            self._turn_back()
        elif action in ("next_column", "previous_column"):
            self._focus = (self._focus + (1 if action == "next_column" else -1)) % 4
        elif action in _MOVES:
            self._place(_MOVES[action])
        elif action == "open":
            self._open()
        elif action == "draft_summary":
            self._ask()
        elif action == "edit_summary":
            self._edit()
        elif action == "apply_changes":
            self._apply()
        else:
            return False
        return True

    def move_by(self, step: int) -> None:
        self._at[self._focus] = max(0, min(self._at[self._focus] + step, self._length() - 1))

    def _chosen(self) -> PlannedItem | None:
        items = self._column(self._focus) if self._focus < SUMMARY_FOCUS else []
        at = self._at[self._focus]
        return items[at] if at < len(items) else None

    def _place(self, column: Column) -> None:
        item = self._chosen()
        if item is None or self._draft is None:
            return
        refused = self._draft.move(item.id, column)
        if refused:
            self._flash(refused)
        self.move_by(0)

    def _open(self) -> None:
        if self._focus == SUMMARY_FOCUS:
            self._open_sources()
            return
        item = self._chosen()
        if item is not None:
            self.read(f"{item.id} · {plural(item.tokens, 'token')}", self._session.inspection.said(item.id))

    def _open_sources(self) -> None:
        """Show the sources of the selected summary line."""
        lines, at = self._lines, self._at[SUMMARY_FOCUS]
        ids = lines[at][1] if at < len(lines) else ()
        if ids:
            told = f"{safe_line(lines[at][0])}\n\n{self._session.inspection.sources(ids)}"
            self.read(f"Sources of a line: {', '.join(ids)}", told)
        else:
            self._flash("This line names no source")

    def _open_record(self) -> None:
        """Show the summary of the selected compaction, or the sources of its selected line."""
        records, at = self._records, self._at[0]
        if self._record is not None:
            self._open_sources()
        elif at < len(records) and records[at].summary:
            self._record, self._focus = records[at], SUMMARY_FOCUS
            self._at[SUMMARY_FOCUS] = self._tops[SUMMARY_FOCUS] = 0
        elif records:
            self._flash("This compaction has no summary by the model")

    def _ask(self) -> None:
        if self._session.view.busy:
            self._flash("A turn is running; write the summary when it ends")
        elif not self._writing:
            self._writing = True
            self.run_worker(self._write(), exclusive=True)

    async def _write(self) -> None:
        summary = await self._session.draft_summary()
        self._writing = False
        if summary is None or not summary.text:
            why = summary.notes[-1] if summary is not None and summary.notes else "the model wrote none"
            self._flash(f"No summary: {why}; the record replaces it")
        else:
            self._summary = summary.text
            self._focus = SUMMARY_FOCUS
        self.changed()

    def _edit(self) -> None:
        if self._editor is None and self._draft is not None:
            self._edited = self._summary or ""
            self._editor = _SummaryEditor(self._edited, soft_wrap=True)
            self._editor.border_subtitle = "Esc ends editing and keeps the text"
            self.mount(self._editor)
            self._editor.focus()

    def take_focus(self) -> None:
        """Focus the editor while it is open."""
        if self._editor is None:
            super().take_focus()
        else:
            self._editor.focus()

    def step_back(self) -> bool:
        if self._editor is not None:
            text, drafted = self._editor.text.strip(), (self._summary or "") != self._edited
            changed = text != self._edited.strip()
            self._editor.remove()
            self._editor = None
            self.focus()
            if changed:
                self._summary = text
            if changed and not text:
                self._flash("The summary is empty; your messages, files, checks and todos are kept")
            elif changed and drafted:
                self._flash("Your text was kept, not the draft that arrived since")
            return True
        if self._record is not None:
            self._record, self._focus = None, 0
            return True
        if self._history:
            self._history = False
            return True
        return False

    def _apply(self) -> None:
        if self._draft is None:
            return
        if self._session.view.busy:
            self._flash("A turn is running; apply the plan when it ends")
            return
        if self._session.inspection.revision != self._revision:
            self._renew()
            self._flash("The conversation has changed; check the new plan, then apply it")
            return
        summarise = self._draft.summarised
        if not summarise and not self._draft.offloaded:
            self._flash("Nothing to do: everything is kept")
            return
        self._send(ApplyPlan(summarise, self._draft.offloaded, self._summary if summarise else ""))
        self.escape()

    def _renew(self) -> None:
        """Plan again for the changed conversation, keeping the written summary."""
        self._draft = self._session.draft_compaction()
        self._revision = self._session.inspection.revision
        self._arranged = None

    def _turn_back(self) -> None:
        records = self._records
        if self._at[0] < len(records):
            item = records[self._at[0]].item
            match self._session.inspection.turn_back(item):
                case "undo":
                    self._send(UndoCompaction(item))
                case "redo":
                    self._send(RedoCompaction(item))
                case _:
                    self._flash(f"{item} cannot be redone: the conversation has changed since")
                    return
            self._renew()

    def clicked(self, x: int, y: int) -> None:
        for left, right, row, focus, at in self._hits:
            if left <= x < right and y == row:
                again = self._focus == focus and self._at[focus] == at
                self._focus, self._at[focus] = focus, at
                if again:
                    self._open()
                return

    # --- drawing ---

    def _result(self) -> Arranged | None:
        if self._draft is None:
            return None
        key = (self._draft.summarised, self._draft.offloaded, self._summary)
        if self._arranged is None or self._arranged[0] != key:
            self._arranged = (key, self._draft.arranged(self._summary or ""))
        return self._arranged[1]

    def paint(self, width: int, height: int, palette: Palette) -> list[Line]:
        if self._draft is None:
            words = "A turn is running, or no model is connected: planning is not possible now."
            foot = self.keys_foot([], ("esc", "closes"), width, palette)
            return [text_line(("Compaction plan", palette.heading)), text_line((words, palette.dim)), [], foot]
        self._hits = []
        if self._record is not None:
            return self._record_lines(self._record, width, height, palette)
        if self._history:
            return self._history_lines(width, height, palette)
        result = self._result()
        head = self._head(result, width, palette)
        foot = self._foot(width, palette)
        room = max(2, height - len(head) - len(foot))
        summary_rows = min(max(4, room // 3), room - 1)
        rows = room - summary_rows
        body = (
            self._side_by_side(width, rows, len(head), palette)
            if width >= COLUMNS_FROM
            else self._as_tabs(width, rows, len(head), palette)
        )
        summary = self._summary_lines(width, summary_rows, len(head) + rows, palette)
        return [fit(line, width) for line in (*head, *body, *summary, *foot)]

    def _head(self, result: Arranged | None, width: int, palette: Palette) -> list[Line]:
        if result is None or self._draft is None:
            return []
        effective = max(1, self._draft.before.effective)
        change = round(100 * (result.after / max(1, result.before) - 1))
        title = text_line(
            ("Compaction plan ", palette.heading),
            (f"{result.before:,} → {'~' * (self._summary is None)}{result.after:,} tokens", palette.strong),
            (f" ({change:+}%)" if change else "", palette.success if change < 0 else palette.warning),
        )
        parts = [f"{short(result.rewritten)} leave the cache"]
        if result.thoughts:
            parts.append(f"{plural(result.thoughts, 'thought')} {'is' if result.thoughts == 1 else 'are'} lost")
        if result.saved is not None:
            parts.insert(0, f"saves {dollars(Decimal(result.saved))} a request")
        parts.insert(0, f"costs {dollars(Decimal(result.cost))} once" if result.cost is not None else "price unknown")
        told = " · ".join(parts)
        beside = cells(told) + 3 <= width - sum(cells(piece.text) for piece in title)
        return [
            title + text_line((f" · {told}", palette.dim)) if beside else title,
            *([] if beside else [text_line((told, palette.dim))]),
            self._bar(result.before, effective, width, "before ", palette.warning, palette),
            self._bar(result.after, effective, width, "after  ", palette.success, palette),
        ]

    def _bar(self, size: int, effective: int, width: int, name: str, style: Style, palette: Palette) -> Line:
        room = width - len(name)
        filled = max(1, min(room, round(room * size / effective)))
        return text_line((name, palette.dim), ("█" * filled, style), ("·" * (room - filled), palette.rule))

    def _title(self, index: int, width: int, palette: Palette) -> Line:
        column = COLUMNS[index]
        items = self._column(index)
        words = f"{_MARKS[column]} {_NAMES[column]} "
        size = f"{_sizes(items, width - cells(words) - 1)} "
        style = palette.accent + palette.strong if index == self._focus else palette.text
        rest = max(0, width - cells(words + size))
        return text_line((words, style), (size, palette.dim), ("─" * rest, palette.rule))

    def _side_by_side(self, width: int, rows: int, top: int, palette: Palette) -> list[Line]:
        gap = 2
        size = (width - 2 * gap) // 3
        columns = [
            [
                self._title(index, size, palette),
                *self._rows(index, size, rows - 1, top + 1, index * (size + gap), palette),
            ]
            for index in range(3)
        ]
        return [
            [*fit(left, size + gap), *fit(middle, size + gap), *fit(right, size)]
            for left, middle, right in zip(*columns, strict=True)
        ]

    def _as_tabs(self, width: int, rows: int, top: int, palette: Palette) -> list[Line]:
        shown = self._focus if self._focus < SUMMARY_FOCUS else 1
        tabs = self._tabs(shown, palette, named=True)
        if sum(cells(piece.text) for piece in tabs) > width:
            tabs = self._tabs(shown, palette, named=False)
        return [tabs, *self._rows(shown, width, rows - 1, top + 1, 0, palette)]

    def _tabs(self, shown: int, palette: Palette, *, named: bool) -> Line:
        """Column names with the sizes of the shown one; the others only as glyphs unless ``named``."""
        tabs: Line = []
        for index, column in enumerate(COLUMNS):
            items = self._column(index)
            name = f"{_NAMES[column]} " if named or index == shown else ""
            size = _sizes(items) if index == shown else f"{len(items):,}"
            style = palette.accent + palette.strong if index == self._focus else palette.dim
            tabs += text_line((f" {_MARKS[column]} {name}", style), (f"{size} ", palette.dim))
        return tabs

    def _rows(self, index: int, width: int, rows: int, top: int, left: int, palette: Palette) -> list[Line]:
        items = self._column(index)
        at = min(self._at[index], max(0, len(items) - 1))
        self._at[index] = at
        first = max(0, min(self._tops[index], at), at - rows + 1)
        self._tops[index] = first = max(0, min(first, max(0, len(items) - rows)))
        lines: list[Line] = []
        for number, item in enumerate(items[first : first + rows]):
            chosen = first + number == at and index == self._focus
            self._hits.append((left, left + width, top + number, index, first + number))
            pin = "⌂" if item.pinned else " "
            about = safe_line(self._session.inspection.about(item.id))
            base = palette.text + palette.strong if chosen else palette.text
            lines.append(
                fit(
                    text_line(
                        ("›" if chosen else " ", palette.cursor),
                        (fitted_text(about, max(4, width - 12)), base),
                        (f" {pin}", palette.accent),
                        (f"{short(item.tokens):>6}", palette.dim),
                    ),
                    width,
                )
            )
        if not items:
            lines.append(text_line(("  nothing", palette.dim)))
        return lines + [[] for _ in range(rows - len(lines))]

    def _summary_lines(self, width: int, rows: int, top: int, palette: Palette) -> list[Line]:
        result = self._result()
        quality = result.quality if result is not None else None
        focused = self._focus == SUMMARY_FOCUS
        style = palette.accent + palette.strong if focused else palette.text
        line = text_line(("Summary ", style))
        if quality is not None and quality.anchors and self._summary is not None:
            score = palette.success if quality.kept == quality.anchors else palette.warning
            preserved = f"· {quality.kept} of {plural(quality.anchors, 'key detail')} kept"
            where = f": {quality.written} in this text, {quality.kept - quality.written} in the record"
            line += text_line((preserved, score), (where, palette.dim))
        used = sum(cells(piece.text) for piece in line)
        head = [*line, *text_line((" " + "─" * max(0, width - used - 1), palette.rule))]
        if self._summary is None:
            what = "The model is writing it…" if self._writing else self._no_draft()
            notes = [text_line((row, palette.dim)) for row in wrapped(what, width)]
            return [head, *notes, *([[]] * rows)][:rows]
        lines = self._lines
        if not lines:
            words = "(empty: your messages, files, checks and todos replace what is removed)"
            return [head, text_line((words, palette.dim)), *([[]] * (rows - 2))][:rows]
        return [head, *self._cited_lines(width, rows - 1, top + 1, palette, focused=focused)]

    def _cited_lines(self, width: int, room: int, top: int, palette: Palette, *, focused: bool) -> list[Line]:
        """Lines of the current summary in ``room`` rows from ``top``."""
        lines = self._lines
        at = min(self._at[SUMMARY_FOCUS], max(0, len(lines) - 1))
        first = max(0, min(self._tops[SUMMARY_FOCUS], at), at - room + 1)
        self._tops[SUMMARY_FOCUS] = first
        shown: list[Line] = []
        for number, (text, ids) in enumerate(lines[first : first + room]):
            chosen = focused and first + number == at
            self._hits.append((0, width, top + number, SUMMARY_FOCUS, first + number))
            cited = f"[{', '.join(ids)}]" if ids else ""
            base = palette.heading_small if text.startswith("#") else palette.text
            shown.append(
                text_line(
                    ("›" if chosen else " ", palette.cursor),
                    (fitted_text(safe_line(text), max(4, width - cells(cited) - 2)) + " ", base),
                    (cited, palette.link),
                )
            )
        return [*shown, *([[]] * (room - len(shown)))]

    def _no_draft(self) -> str:
        shown = self.keymap.shown
        ways = f"{shown('draft_summary')}: let the model write one · {shown('edit_summary')}: write it yourself"
        return f"No draft yet. {ways} · {shown('apply_changes')}: apply (the model writes it)"

    def _foot(self, width: int, palette: Palette) -> list[Line]:
        shown = self.keymap.shown
        if self._editor is not None:
            return [keys_line([], ("esc", "ends editing and keeps the text"), width, palette)]
        keys = [
            (shown("apply_changes"), "apply"),
            (shown("keep_item"), "keep"),
            (shown("summarise_item"), "summarise"),
            (shown("offload"), "offload"),
            ("tab", "column"),
            (shown("draft_summary"), "draft"),
            (shown("edit_summary"), "edit"),
            ("enter", "sources" if self._focus == SUMMARY_FOCUS else "text"),
            (shown("show_history"), "history"),
        ]
        return [text_line(("─" * width, palette.rule)), self.keys_foot(keys, ("esc", "cancels"), width, palette)]

    def _history_lines(self, width: int, height: int, palette: Palette) -> list[Line]:
        records = self._records
        lines = [
            text_line(("Compactions so far ", palette.heading), (f"{len(records)}, newest first", palette.dim)),
            text_line(("─" * width, palette.rule)),
        ]
        at = min(self._at[0], max(0, len(records) - 1))
        room = max(1, height - 5)
        first = max(0, at - room + 1)
        for number, record in enumerate(records[first : first + room]):
            chosen = first + number == at
            saved = 1 - record.after / max(1, record.before)
            preserved = f"{record.kept}/{record.anchors} kept" if record.anchors else ""
            state = self._session.inspection.compaction_state(record)
            lines.append(
                text_line(
                    ("›" if chosen else " ", palette.cursor),
                    (fitted_text(f"{record.item} turn {record.turn}", 14), palette.accent),
                    (f"{state:<9} ", palette.dim if state == "active" else palette.warning),
                    (f"{short(record.before):>6} → {short(record.after):>5} ", palette.text),
                    (f"-{saved * 100:.0f}%  ", palette.success),
                    (fitted_text(preserved, 12) + " ", palette.dim),
                    (", ".join((record.trigger, *record.strategies)), palette.text),
                )
            )
        if not records:
            lines.append(text_line(("  No compaction yet.", palette.dim)))
        way = self._session.inspection.turn_back(records[at].item) if at < len(records) else ""
        lines += [[] for _ in range(height - 2 - len(lines))]
        lines.append(self._moved_line(records[at].item, palette) if way else [])
        keys = [("enter", "summary")]
        if way:
            verb = "undo back to here" if way == "undo" else "redo up to this one"
            keys.append((self.keymap.shown("undo_compaction"), verb))
        lines.append(self.keys_foot(keys, ("esc", "back"), width, palette))
        return [fit(line, width) for line in lines]

    def _moved_line(self, item: str, palette: Palette) -> Line:
        """What undoing or redoing up to this compaction makes of the context."""
        key = (item, self._session.inspection.revision)
        if self._moved is None or self._moved[0] != key:
            moved = self._session.inspection.moved(item)
            effect = self._session.prices.view(moved[1].view) if moved is not None else None
            price = "".join(f" · {words}" for words in cost_words(effect, unknown="")) if effect is not None else ""
            self._moved = (key, moved, price)
        if (moved := self._moved[1]) is None:
            return text_line(("  The window has no room for what this removed.", palette.warning))
        now, fitted = moved
        undo = self._session.inspection.turn_back(item) == "undo"
        more = f" with the {plural(fitted.more, 'later one')} that it needs to fit" if fitted.more else ""
        what = f"Undo {fitted.clause}" if undo else f"Redo{more}"
        sizes = f"  {what}: {short(now)} → {short(fitted.used)} tokens"
        return text_line((sizes, palette.text), (self._moved[2], palette.dim))

    def _record_lines(self, record: CompactionRecord, width: int, height: int, palette: Palette) -> list[Line]:
        self._hits = []
        lines = [
            text_line(
                (f"Summary of {record.item} ", palette.heading),
                (f"turn {record.turn} · {short(record.before)} → {short(record.after)} tokens", palette.dim),
            ),
            text_line(("─" * width, palette.rule)),
            *self._cited_lines(width, max(1, height - 3), 2, palette, focused=True),
            self.keys_foot([("enter", "sources")], ("esc", "back"), width, palette),
        ]
        return [fit(line, width) for line in lines]


def _sizes(items: Sequence[PlannedItem], room: int = 80) -> str:
    """Count and tokens of items, in as many words as there is room for in cells."""
    tokens = sum(item.tokens for item in items)
    count = plural(len(items), "item")
    whole = f"{count} · {short(tokens)} token{'' if tokens == 1 else 's'}"
    forms = (whole, f"{count} · {short(tokens)}", f"{len(items):,} · {short(tokens)}")
    return next((form for form in forms if cells(form) <= room), short(tokens))
