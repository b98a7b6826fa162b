"""The approval panel: what would run, why it asks, and what each answer means."""

from __future__ import annotations

import time

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from swecli.core.protocol.commands import ReplyPermission
from swecli.core.protocol.events import GrantSpan, PermissionChoice, PermissionRequested
from swecli.safe_text import safe_line, sanitise
from swecli.tui.dock.block_view import BlockView
from swecli.tui.dock.panel import NARROW, Clock, DockPanel, Grace, keymap_of

_VERBS = {
    "run_command": "Run this command?",
    "edit_file": "Make this change?",
    "apply_patch": "Make these changes?",
    "write_file": "Write this file?",
    "read_file": "Read this file?",
    "list_files": "List these files?",
    "search": "Search here?",
}


_SPANS: tuple[tuple[GrantSpan, str], ...] = (
    ("session", "for this session"),
    ("turn", "for this turn"),
    ("week", "here for 7 days"),
    ("project", "here until revoked"),
)


class ApprovalPanel(DockPanel):
    """One request. Nothing but ``y`` and ``a`` approves; ``s`` chooses how long "always" holds."""

    DEFAULT_CSS = """
    ApprovalPanel { border-top: solid $warning; }
    ApprovalPanel .dock--title { color: $warning; }
    ApprovalPanel #rule { height: auto; color: $foreground-muted; text-style: $muted-style; }
    ApprovalPanel #word { display: none; }
    """

    def __init__(
        self,
        request: PermissionRequested,
        *,
        place: tuple[int, int] = (1, 1),
        clock: Clock = time.monotonic,
    ) -> None:
        super().__init__()
        self.request = request
        self._place = place
        self._clock = clock
        self._grace: Grace | None = None
        self._expanded = False
        self._narrow = False
        self._always = False
        self._span = 0
        self._decided = False
        self._body = BlockView(request.blocks)
        self._word = Input(placeholder="What should it do instead? Enter sends, Esc goes back", id="word", compact=True)

    def compose(self) -> ComposeResult:
        yield Static(self._title(), classes="dock--title", id="title")
        yield Static(Content(self._about()), classes="dock--note", id="reason")
        yield self._body
        yield Static(Content(self._rule()), id="rule")
        yield self._word
        yield Static(self._keys(), classes="dock--keys", id="keys")

    def on_mount(self) -> None:
        self._grace = Grace(self._clock)
        self.fit()

    def show_place(self, place: tuple[int, int]) -> None:
        """Say which of how many waiting requests this is."""
        if place != self._place:
            self._place = place
            self.query_one("#title", Static).update(self._title())

    def toggle_expanded(self) -> bool:
        self._expanded = not self._expanded
        self.fit()
        return True

    def escape(self) -> None:
        """Leave the text field, or else reject the call."""
        if self._word.display:
            self._ask_why(False)
        else:
            self._decide("reject")

    def on_key(self, event: events.Key) -> None:
        if self._word.has_focus:
            return
        if event.key in ("s", "S") and self._always and self._grace is not None and not self._grace.ignores():
            event.stop()
            event.prevent_default()
            self._span = (self._span + 1) % len(_SPANS)
            self.query_one("#rule", Static).update(Content(self._rule()))
            return
        keymap = keymap_of(self)
        action = keymap.action("approval", event.key) or keymap.action("approval", event.key.lower())
        decides = action is not None or event.key == "enter"
        if event.is_printable and not decides and self._grace is not None:
            self._grace.typed()
        if event.key in self._scrolling:
            event.stop()
            event.prevent_default()
            self._scrolling[event.key](self._body)
            return
        if not decides:
            return
        event.stop()
        event.prevent_default()
        if self._grace is None or self._grace.ignores():
            return
        match action:
            case "approve_once":
                self._decide("once")
            case "approve_always" if self._always:
                self._decide("always")
            case "reject":
                self._ask_why(True)
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

    @on(Input.Submitted)
    def _said(self, event: Input.Submitted) -> None:
        event.stop()
        self._decide("reject", event.value.strip())

    def _ask_why(self, on: bool) -> None:
        self._word.value = ""
        self._word.display = on
        (self._word if on else self).focus()
        self.query_one("#keys", Static).update(self._keys())

    def _decide(self, choice: PermissionChoice, note: str = "") -> None:
        if not self._decided:
            self._decided = True
            span = _SPANS[self._span][0] if choice == "always" else "session"
            self.post_message(self.Finished(ReplyPermission(self.request.request, choice, note, span=span)))

    def fit(self) -> None:
        """Share the lines that there are: title, keys and one line of the body first, then the rule, the reason,
        and the rest of the body. Where the rule finds no place, always is not offered."""
        rows, columns = self.available(), self.screen.size.width
        width = max(1, columns - 2)
        self._narrow = columns < NARROW
        spare = rows - 2 - _height(self._title().plain, width) - 1
        for widget, text in (("#rule", self._rule()), ("#reason", self._about())):
            wanted = _height(text, width)
            fits = bool(text) and wanted <= spare
            self.query_one(widget).display = fits
            spare -= wanted if fits else 0
        self._always = self.request.rule is not None and self.query_one("#rule").display
        self.query_one("#keys", Static).update(self._keys())
        room = max(1, spare + 1)
        self._body.styles.max_height = room if self._expanded else max(1, min(room, max(6, rows * 6 // 10)))
        super().fit()

    def _about(self) -> str:
        reason = self.request.reason
        evidence = [line for line in self.request.evidence if line not in reason]
        return "\n".join(sanitise(line) for line in (reason, *evidence) if line)

    def _rule(self) -> str:
        rule = self.request.rule
        return "" if rule is None else f"always = {safe_line(rule)}, {_SPANS[self._span][1]} (s: how long)"

    def _title(self) -> Content:
        request = self.request
        question = _VERBS.get(request.tool, f"Allow {safe_line(request.tool)}?")
        target = f" {safe_line(request.title)}" if request.title and request.tool != "run_command" else ""
        place = "" if self._place[1] < 2 else f"  ({self._place[0]} of {self._place[1]})"
        return Content(f"{question}{target}{place}")

    def _keys(self) -> Content:
        keymap = keymap_of(self)
        yes, every, no, leave = map(keymap.shown, ("approve_once", "approve_always", "reject", "close"))
        leave = leave.lower()
        always = [(every, "always")] if self._always else []
        if self._word.display:
            choices = [("enter", "says no with this"), (leave, "back")]
        elif self._narrow:
            choices = [(yes, "once"), *always, (no, "no…"), (leave, "no")]
        else:
            choices = [(yes, "once"), *always, (no, "no, and say why"), (leave, "no"), ("↑↓", "scroll")]
        gap = "  " if self._narrow else "   "
        return Content.assemble(
            *(part for key, word in choices for part in ((key, "bold $accent"), (f" {word}{gap}", "$foreground-muted")))
        )


def _height(text: str, width: int) -> int:
    """Lines that a text takes, a little generously."""
    return sum(1 + max(0, cell_len(line) - 1) // width for line in text.split("\n")) if text else 0
