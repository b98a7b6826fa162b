"""The wire view: the next request by section, with tokens, cache breakpoints, and differences from the previous one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from swecli.commands.requests import with_message
from swecli.figures import plural
from swecli.figures import tokens as short
from swecli.safe_text import safe_line
from swecli.tui.screens.board import AGAIN, Board, Line, fit, fitted_text, step_for, text_line
from swecli.tui.screens.context_chart import fill_of
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import cells

if TYPE_CHECKING:
    from swecli.core.context_management.wire import WireSection
    from swecli.core.engine.session import Session

_MARKS: Final = {"same": " ", "new": "+", "changed": "~", "gone": "-"}


class WireBoard(Board):
    """``draft`` is shown as the message sent with it."""

    def __init__(self, session: Session, flash: Callable[[str], None], draft: str = "") -> None:
        super().__init__()
        self._session = session
        self._flash = flash
        self._draft = draft
        self._wire = session.inspection.wire(draft)
        self._revision = session.inspection.revision
        self._only_changes = False
        self._at = self._top = self._list_at = 0
        self._height = 1

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(AGAIN, self._look)

    def _look(self) -> None:
        """Follow the conversation: each message changes the next request. Keep the selected section."""
        if self._revision == self._session.inspection.revision:
            return
        rows = self._rows
        chosen = rows[self._at].name if self._at < len(rows) else ""
        self._revision, self._wire = self._session.inspection.revision, self._session.inspection.wire(self._draft)
        rows = self._rows
        self._at = next(
            (at for at, section in enumerate(rows) if section.name == chosen), max(0, min(self._at, len(rows) - 1))
        )
        self.changed()

    @property
    def _rows(self) -> list[WireSection]:
        sections = self._wire.sections if self._wire is not None else ()
        words = self.words.casefold().split()
        return [
            section
            for section in sections
            if (not self._only_changes or section.change != "same")
            and all(word in f"{section.name} {section.text}".casefold() for word in words)
        ]

    def act(self, action: str) -> bool:
        step = step_for(action, max(1, self._height - 1), len(self._rows))
        if step is not None:
            self.move_by(step)
        elif action == "open":
            self._open()
        elif action == "show_changes":
            self._only_changes = not self._only_changes
            self._at = 0
        elif action == "search_items":
            self.typing = True
        elif action == "save_request":
            self.run_worker(self._save(), exclusive=True)
        else:
            return False
        return True

    def move_by(self, step: int) -> None:
        self._at = max(0, min(self._at + step, len(self._rows) - 1))

    def _open(self) -> None:
        rows = self._rows
        if self._at < len(rows):
            section = rows[self._at]
            text = json.dumps(json.loads(section.text), ensure_ascii=False, indent=2).replace("\\n", "\n")
            self.read(f"{section.name} · {plural(section.tokens, 'token')}", self._session.inspection.masked(text))

    async def _save(self) -> None:
        from swecli.commands.requests import save_wire

        try:
            path = await save_wire(self._session, draft=self._draft)
        except OSError as error:
            self._flash(f"Could not save the request: {error}")
        else:
            self._flash(f"Saved to {path}, secrets masked" if path is not None else "There is no request to save")
        await asyncio.sleep(0)

    def searched(self) -> None:
        self._at = 0

    def clicked(self, x: int, y: int) -> None:
        row = self._top + y - self._list_at
        if self._list_at <= y < self._list_at + self._height and row < len(self._rows):
            again, self._at = self._at == row, row
            if again:
                self._open()

    # --- drawing ---

    def paint(self, width: int, height: int, palette: Palette) -> list[Line]:
        wire = self._wire
        if wire is None:
            words = "No model is connected, so there is no request to show. /model connects one."
            foot = self.keys_foot([], ("esc", "closes"), width, palette)
            return [text_line(("Wire view", palette.heading)), text_line((words, palette.dim)), [], foot]
        size = f"{plural(wire.tokens, 'token')}, {len(wire.body.encode('utf-8', 'replace')):,} bytes"
        to = safe_line(wire.url) if wire.exact else "swecli's own form: this model is not on a network"
        changed = sum(section.change != "same" for section in wire.sections)
        differ = f" · {plural(changed, 'section')} differ{'s' if changed == 1 else ''}"
        unchanged = sum(section.tokens for section in self._unchanged())
        first = ("First request of this run: nothing to compare with", palette.dim)
        alone = ("No part matches the previous request", palette.warning) if wire.compared else first
        drafted = f" ·{with_message(self._draft)}" if self._draft else ""
        head = [
            text_line(("Wire ", palette.heading), (f"the next request · {size}{drafted}", palette.text)),
            text_line((to, palette.dim)),
            self._prefix_bar(width, palette),
            text_line(
                *(
                    (
                        (f"{short(unchanged)} as in the previous request", palette.accent),
                        (differ, palette.warning if changed else palette.dim),
                    )
                    if unchanged
                    else (alone,)
                ),
                (" · ┃ cache breakpoint", palette.dim),
            ),
        ]
        searched = f"  / {safe_line(self.words)}{'▏' if self.typing else ''}" if self.typing or self.words else ""
        rows = self._rows
        what = "differences" if self._only_changes else "all sections"
        columns = f"{len(rows)} · {what}{searched} "
        head.append(text_line((columns, palette.dim), ("─" * max(0, width - cells(columns)), palette.rule)))
        keys = [
            *([("enter", "read")] if rows else []),
            (self.keymap.shown("show_changes"), "only differences"),
            (self.keymap.shown("search_items"), "search"),
            (self.keymap.shown("save_request"), "save, secrets masked"),
        ]
        foot = [text_line(("─" * width, palette.rule)), self.keys_foot(keys, ("esc", "closes"), width, palette)]
        self._list_at, self._height = len(head), max(1, height - len(head) - len(foot))
        self._top = max(0, min(self._top, self._at))
        self._top = max(self._top, self._at - self._height + 1)
        shown = rows[self._top : self._top + self._height]
        body = [self._row(section, self._top + n == self._at, width, palette) for n, section in enumerate(shown)]
        if not rows:
            none = "No section matches." if self.words else "No section differs from the previous request."
            body = [text_line((none, palette.dim))]
        body += [[] for _ in range(self._height - len(body))]
        return [fit(line, width) for line in (*head, *body, *foot)]

    def _unchanged(self) -> list[WireSection]:
        """Sections before the first difference, which the provider may still have cached."""
        sections: list[WireSection] = []
        for section in self._wire.sections if self._wire is not None else ():
            if section.change != "same" and "[" in section.name:
                break
            if section.change == "same":
                sections.append(section)
        return sections

    def _prefix_bar(self, width: int, palette: Palette) -> Line:
        """The request as a bar: its unchanged prefix, and the rest."""
        total = sum(section.tokens for section in self._wire.sections) if self._wire is not None else 0
        unchanged = sum(section.tokens for section in self._unchanged())
        size = round(width * unchanged / total) if total else 0
        same, other = fill_of(0, palette), fill_of(1, palette)
        return text_line((same * size, palette.accent), (other * (width - size), palette.warning))

    def _row(self, section: WireSection, chosen: bool, width: int, palette: Palette) -> Line:
        style = {"same": palette.dim, "gone": palette.error}.get(section.change, palette.warning)
        base = palette.text if section.change != "gone" else palette.dim
        about = fitted_text(safe_line(self._session.inspection.masked(section.about)), max(1, width - 32))
        return text_line(
            ("›" if chosen else " ", palette.cursor),
            (f"{_MARKS[section.change]} ", style),
            (fitted_text(safe_line(section.name), 16), palette.accent if "[" in section.name else palette.dim),
            (f"{section.tokens:>8,} ", base),
            ("┃ " if section.breakpoint else "  ", palette.success),
            (about, base + palette.strong if chosen else base),
        )
