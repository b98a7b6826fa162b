"""The inspector: content of the context, item by item, with staged changes shown before they are made."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal

from rich.style import Style

from swecli.commands.compaction import LIKELY
from swecli.commands.context import agent_figures, agents_line, tokens_by_agent
from swecli.core.context_management.edit_effects import loss_words
from swecli.core.context_management.edits import Effect
from swecli.core.context_management.fitting import as_references
from swecli.core.context_management.items import CONVERSATION, ContextItem, calls_with_results, foldable, in_one_row
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.commands import ApplyPlan, ChangeContext, Command
from swecli.core.protocol.context_events import ContextChange
from swecli.figures import dollars, plural
from swecli.figures import tokens as short
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import safe_line
from swecli.tui.screens.board import AGAIN, Board, Line, fit, fitted_text, step_for, text_line
from swecli.tui.screens.context_chart import bar_lines, chart, colours, legend, names_of
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import cells, cut

if TYPE_CHECKING:
    from swecli.core.engine.inspection import Picture
    from swecli.core.engine.session import Session

Sort = Literal["order", "size", "age", "last use"]
SORTS: Final[tuple[Sort, ...]] = ("order", "size", "age", "last use")
Action = Literal["pin", "unpin", "drop", "offload", "restore"]
ALL: Final = "all"
CHANGED: Final = "changed"


class InspectorList:
    """Rows of items, filter, selection and staged changes; a call and its result are one row, whose actions change the
    result. ``title`` returns the words of an item, ``size`` its shown tokens; both are computed on first use."""

    def __init__(
        self,
        items: Sequence[ContextItem],
        title: Callable[[ContextItem], str],
        size: Callable[[ContextItem], int],
    ) -> None:
        self._title = title
        self._size = size
        self._titles: dict[tuple[str, str], str] = {}
        self.calls = calls_with_results(items)
        """Calls without a row of their own, by the result's id."""
        self.items: Sequence[ContextItem] = in_one_row(items, self.calls)
        self.sort: Sort = "order"
        self.shown: str = ALL
        """A component, ``ALL`` or ``CHANGED``."""
        self.words = ""
        self.staged: dict[str, Action] = {}
        """Staged actions by item id, in the order chosen."""
        self.ends: tuple[str, ...] = ()
        """Ids of the items where a range to fold begins and ends, as marked; one: its other end is not marked yet."""
        self.rows: Sequence[ContextItem] = self.items
        self.at = 0
        self.top = 0

    def take(self, items: Sequence[ContextItem]) -> None:
        """Set the items of a changed context; keep the staged actions of items that still exist."""
        self.calls = calls_with_results(items)
        self.items = in_one_row(items, self.calls)
        present = {item.id for item in self.items}
        self.staged = {name: action for name, action in self.staged.items() if name in present}
        self.ends = self.ends if present.issuperset(self.ends) else ()
        self.narrow()

    @property
    def chosen(self) -> ContextItem | None:
        return self.rows[self.at] if 0 <= self.at < len(self.rows) else None

    @property
    def changes(self) -> tuple[ContextChange, ...]:
        return tuple(ContextChange(action, name) for name, action in self.staged.items())

    def title(self, item: ContextItem) -> str:
        key = (item.id, item.agent)
        known = self._titles.get(key)
        if known is None:
            known = self._titles[key] = self._title(item)
        return known

    # --- list ---

    def narrow(self) -> None:
        """Apply filter and words, and sort; keep the selected item."""
        chosen = self.chosen
        words = self.words.casefold().split()
        rows = [item for item in self.items if self._wanted(item)]
        if words:
            rows = [item for item in rows if self._has(item, words)]
        match self.sort:
            case "size":
                rows.sort(key=lambda item: -self._size(item))
            case "age":
                rows.sort(key=lambda item: item.created)
            case "last use":
                rows.sort(key=lambda item: item.used)
            case "order":
                pass
        self.rows = rows
        index = next((n for n, item in enumerate(rows) if chosen is not None and item.id == chosen.id), None)
        self.at = index if index is not None else min(self.at, max(0, len(rows) - 1))

    def _wanted(self, item: ContextItem) -> bool:
        if self.shown == ALL:
            return True
        if self.shown == CHANGED:
            return item.id in self.staged or item.pinned or item.state not in ("live", "fixed")
        return item.component == self.shown

    def _has(self, item: ContextItem, words: Sequence[str]) -> bool:
        text = f"{item.id} {item.kind} {item.component} {item.state} {self.title(item)}".casefold()
        if item.pinned:
            text += " pinned"
        return all(word in text for word in words)

    @property
    def filters(self) -> tuple[str, ...]:
        """Filters, in cycling order."""
        present = {item.component for item in self.items}
        return (ALL, CHANGED, *(name for name in CONVERSATION if name in present))

    def next_filter(self) -> None:
        filters = self.filters
        at = filters.index(self.shown) if self.shown in filters else 0
        self.shown = filters[(at + 1) % len(filters)]
        self.narrow()

    def next_sort(self) -> None:
        self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
        self.narrow()
        self.at = 0

    # --- selection ---

    def move(self, step: int) -> None:
        if self.rows:
            self.at = max(0, min(self.at + step, len(self.rows) - 1))

    def follow(self, height: int) -> None:
        """Scroll so that the selected row is among the ``height`` visible ones."""
        self.top = min(self.top, self.at)
        self.top = max(self.top, self.at - max(1, height) + 1)
        self.top = max(0, min(self.top, len(self.rows) - height))

    def stage(self, action: Action) -> str:
        """Stage an action for the selected item; the same action again unstages it. Returns a sentence if that is
        impossible."""
        item = self.chosen
        if item is None:
            return "No item is selected."
        if item.state == "fixed":
            return "This is in every request; /config and the instruction files change it."
        if item.kind == "summary":
            return "A summary goes with its compaction; /compact undoes it."
        if action == "pin" and (item.pinned or self.staged.get(item.id) == "pin"):
            action = "unpin"
        before = self.staged.get(item.id)
        taken_back = before == action or (before == "pin" and action == "unpin") or (before and action == "restore")
        if taken_back:
            del self.staged[item.id]
        elif action == "restore" and item.state == "live":
            return f"{item.id} is in the context word for word."
        else:
            self.staged.pop(item.id, None)
            self.staged[item.id] = action
        self.ends = ()
        return ""

    def mark(self) -> str:
        """Mark the selected item as one end of a range to fold, a third time as the begin of another one. Returns a
        sentence if that is impossible."""
        item = self.chosen
        if item is None or item.state == "fixed":
            return "A range begins and ends with a message of the conversation."
        self.ends = (*self.ends, item.id) if len(self.ends) == 1 else (item.id,)
        return ""

    @property
    def range(self) -> tuple[str, ...]:
        """Items that a fold of the marked range replaces, in the order of the conversation."""
        if len(self.ends) < 2:
            return self.ends
        places = [index for index, item in enumerate(self.items) if item.id in self.ends]
        return foldable(self.items[places[0] : places[-1] + 1])


CHART_FROM, TALL_FROM = 20, 36
"""Lines from which there is a chart, and a tall one."""
CHARTED: Final = 3
"""Columns, one per turn, from which a chart shows more than the figures above it."""
HEADING: Final = 46
"""Cells of a text's heading besides the item's name."""
ID, SHORT_ID, STATE = 11, 9, 10
"""Cells of an item's id, in a narrow window too, and of its state."""
TIMES_FROM: Final = 60
"""Columns from which an item's age and last use are shown."""
GONE: Final = ("dropped", "summarised", "gone")
"""States of items that are not sent."""
_STAGED: Final[dict[str, tuple[str, str]]] = {
    "fold": ("≡", "fold"),
    "pin": ("+", "pin"),
    "unpin": ("-", "unpin"),
    "drop": ("×", "drop"),
    "offload": ("⇣", "offload"),
    "restore": ("↺", "restore"),
}
_STATES: Final = {"live": "", "fixed": "", "offloaded": "offloaded", "dropped": "dropped", "summarised": "in summary"}
_AT = lazy_pattern(r"at ([1-9]\d{0,7})")
"""Words that open the context of an earlier turn."""
_MARKING: Final = "summarise_item"
NOTHING_TO_FOLD: Final = "Every item of this range is pinned, a summary, or not in the context"
LITTLE_TO_FOLD: Final = "Nothing to gain: these messages are as short as the lines in their place"
_STAGING: Final = ("apply_changes", "delay_changes", "discard_changes")
_ACTIONS: Final[dict[str, Action]] = {"pin": "pin", "drop": "drop", "offload": "offload", "restore_item": "restore"}


class Inspector(Board):
    """``send`` sends a command to the session, ``flash`` shows a short message; ``clock`` is Unix seconds."""

    def __init__(
        self,
        session: Session,
        send: Callable[[Command], None],
        flash: Callable[[str], None],
        clock: Callable[[], float],
        words: str = "",
    ) -> None:
        super().__init__()
        self._session = session
        self._send = send
        self._flash = flash
        self._clock = clock
        past = _AT.fullmatch(words)
        self._turn = int(past[1]) if past is not None else 0
        """The earlier turn whose context is shown; 0: the present one."""
        self._missing = False
        self._next: tuple[Hashable, str] = (None, "")
        """What will be removed next, and for which revision."""
        words = "" if self._turn else words
        self._picture: Picture | None = None if self._turn else session.inspection.picture()
        items = self._picture.items if self._picture is not None else ()
        self._sizes: dict[str, int] = {}
        """Sizes of items that are not sent, by id."""
        self.list = InspectorList(items, session.inspection.title, self.shown_tokens)
        self.words = self.list.words = words
        self.list.narrow()
        self._effect: tuple[tuple[object, ...], Effect | None] = ((), None)
        self._fold: tuple[Hashable, tuple[str, ...], Effect | str | None] = (None, (), None)
        """The marked range, its items, and the price of a fold, or why it is impossible."""
        self._agent_tokens_cache: tuple[Hashable, Mapping[str, int]] = (None, {})
        self._list_at = 0
        self._rows = 1

    def on_mount(self) -> None:
        super().on_mount()
        if self._turn:
            self.run_worker(self._read_past(), exclusive=True)
        else:
            self.set_interval(AGAIN, self._look)

    async def _read_past(self) -> None:
        self._picture = await self._session.inspection.at(self._turn)
        self._missing = self._picture is None
        self.list.take(self._picture.items if self._picture is not None else ())
        self.changed()

    def _look(self) -> None:
        """Read new messages and compactions; keep the selection."""
        if self._picture is None or self._picture.revision != self._session.inspection.revision:
            self._picture = self._session.inspection.picture()
            self.list.take(self._picture.items if self._picture is not None else ())
            self.changed()
        elif any(agent.outcome is None for agent in self._session.view.agents):
            self.changed()

    # --- keys and mouse ---

    def act(self, action: str) -> bool:
        step = step_for(action, max(1, self._rows - 1), len(self.list.rows))
        if step is not None:
            self.list.move(step)
        elif self._turn and action in (*_ACTIONS, *_STAGING, _MARKING):
            self._flash(f"This is the context at turn {self._turn}; nothing in it can be changed")
        elif action in _ACTIONS:
            refused = self.list.stage(_ACTIONS[action]) or self._refused()
            if refused:
                self._flash(refused)
            else:
                self.list.move(1)
        elif action == _MARKING:
            self._mark()
        elif action == "open":
            self._open()
        elif action == "sort_items":
            self.list.next_sort()
        elif action == "filter_items":
            self.list.next_filter()
        elif action == "search_items":
            self.typing = True
        elif action == "apply_changes":
            self._apply()
        elif action == "delay_changes":
            self._apply(later=True)
        elif action == "discard_changes":
            self.list.staged.clear()
            self.list.ends = ()
        else:
            return False
        return True

    def _mark(self) -> None:
        if self.list.staged:
            self._flash("Apply or discard your changes before you fold a range")
        elif refused := self.list.mark():
            self._flash(refused)
        elif isinstance(why := self._fold_now()[1], str):
            self.list.ends = self.list.ends[:1]
            self._flash(why)

    def _fold_now(self) -> tuple[tuple[str, ...], Effect | str | None]:
        """The items of the marked range, and what folding them costs, or why it is impossible."""
        key = (self.list.ends, self._picture.revision if self._picture is not None else None)
        if key != self._fold[0]:
            names, price = self.list.range, None
            if len(self.list.ends) == 2:
                price = self._session.prices.fold(names, LIKELY) if names else NOTHING_TO_FOLD
                if isinstance(price, Effect) and price.after >= price.before:
                    price = LITTLE_TO_FOLD
            self._fold = (key, names, price)
        return self._fold[1:]

    def _apply_fold(self) -> None:
        names, price = self._fold_now()
        if not isinstance(price, Effect):
            key = self.keymap.shown(_MARKING)
            self._flash(price or f"Only one end of the range is marked: move, then {key} marks the other")
        elif self._session.view.busy:
            self._flash("A turn is running; fold the range when it ends")
        else:
            self._send(ApplyPlan(names, fold=True))
            self.list.ends = ()
            self._flash(f"Folding {plural(len(names), 'item')}: the model writes a few lines · /compact undo restores")

    def _refused(self) -> str:
        """Why the newest staged action is impossible; it is then unstaged."""
        effect = self._effect_now()
        if effect is None or not effect.refusals:
            return ""
        for refusal in effect.refusals:
            self.list.staged.pop(refusal.change.id, None)
        return effect.refusals[0].reason

    def _apply(self, *, later: bool = False) -> None:
        if self.list.ends:
            self._apply_fold()
        elif not self.list.staged:
            *keys, last = (self.keymap.shown(name) for name in _ACTIONS)
            self._flash(f"Nothing staged: use {', '.join(keys)} or {last} first")
        elif self._session.view.busy:
            self._flash("A turn is running; apply your changes when it ends")
        else:
            changes = self.list.changes
            self._send(ChangeContext(changes, later))
            self.list.staged.clear()
            self._look()
            done = "will be made with the next compaction" if later else "applied"
            self._flash(f"{plural(len(changes), 'change')} {done}")

    def _open(self) -> None:
        item = self.list.chosen
        if item is None:
            return
        sent, original = self._session.inspection.text(item)
        call = self.list.calls.get(item.id)
        if call is not None:
            asked, written = self._session.inspection.text(call)
            sent = "\n\n".join(filter(None, (asked, sent)))
            original = "\n\n".join(filter(None, (written or asked, original))) if original else ""
        said_at = f"{item.id} {self.list.title(item)}" if item.state != "fixed" else item.source
        name = cut(safe_line(said_at), max(20, self.size.width - HEADING))
        if original:
            replacement = "No part of it is sent." if not sent else f"Sent in its place:\n{sent}"
            self.read(f"{name} · {_STATES.get(item.state, '')}", f"{replacement}\n\nOriginal:\n{original}")
        else:
            self.read(f"{name} · exactly as sent", sent or "(nothing)")

    @property
    def _agent_tokens(self) -> Mapping[str, int]:
        """Tokens of each subagent's results in this context."""
        if self._picture is None or not self._session.view.agents:
            return {}
        if self._agent_tokens_cache[0] != self._picture.revision:
            self._agent_tokens_cache = (self._picture.revision, tokens_by_agent(self._picture.items))
        return self._agent_tokens_cache[1]

    def searched(self) -> None:
        self.list.words = self.words
        self.list.narrow()

    def step_back(self) -> bool:
        if self.list.ends:
            self.list.ends = ()
            self._flash("No range is marked now; Esc closes")
            return True
        if self.list.staged:
            count = len(self.list.staged)
            self.list.staged.clear()
            self._flash(f"{plural(count, 'change')} discarded; Esc closes")
            return True
        return False

    def clicked(self, x: int, y: int) -> None:
        row = self.list.top + y - self._list_at
        if self._list_at <= y < self._list_at + self._rows and row < len(self.list.rows):
            again, self.list.at = self.list.at == row, row
            if again:
                self._open()
        elif y == self._list_at - 1:
            self.list.next_sort()

    def move_by(self, step: int) -> None:
        self.list.move(step)

    # --- drawing ---

    def _effect_now(self) -> Effect | None:
        key = (tuple(self.list.staged.items()), self._picture.revision if self._picture is not None else None)
        if key != self._effect[0]:
            effect = self._session.inspection.effect(self._picture, self.list.changes) if self._picture else None
            self._effect = (key, effect)
        return self._effect[1]

    def paint(self, width: int, height: int, palette: Palette) -> list[Line]:
        if self._picture is None and self._turn:
            why = f"No request belongs to turn {self._turn}." if self._missing else "Reading the record …"
            keys = self.keys_foot([], ("esc", "closes"), width, palette)
            return [
                text_line((f"Context at turn {self._turn}", palette.heading)),
                text_line((why, palette.dim)),
                [],
                keys,
            ]
        if self._picture is None:
            return [
                text_line(("Context", palette.heading)),
                text_line(("No model is connected. /model connects one.", palette.dim)),
                [],
                self.keys_foot([], ("esc", "closes"), width, palette),
            ]
        head = self._head(width, height, palette)
        foot = self._foot(width, palette)
        self._list_at = len(head) + 1
        self._rows = max(1, height - len(head) - 1 - len(foot))
        self.list.follow(self._rows)
        rows = self.list.rows[self.list.top : self.list.top + self._rows]
        styles = colours(palette, names_of(self._picture.budget))
        body: list[Line] = []
        for number, item in enumerate(rows, self.list.top):
            body += self._row(item, number == self.list.at, styles.get(item.component, palette.dim), width, palette)
        if not rows:
            body = [text_line(("  No item matches.", palette.dim))]
        body += [[] for _ in range(self._rows - len(body))]
        return [*head, self._columns(width, palette), *body, *foot]

    def _head(self, width: int, height: int, palette: Palette) -> list[Line]:
        picture, timeline = self._picture, self._session.inspection.timeline
        assert picture is not None
        budget, points, marks = picture.budget, timeline.points, timeline.marks

        def bar() -> list[Line]:
            named = legend(budget, width, palette, 2 if height >= CHART_FROM else 1)
            return [fit(line, width) for line in (*bar_lines(budget, width, palette), *named)]

        def turns() -> list[Line]:
            rows = 8 if height >= TALL_FROM else 4 if height >= 28 else 2
            return [fit(line, width) for line in chart(points, marks, width, rows, palette)]

        title = self.once(
            ("title", picture.revision, int(self._clock())), lambda: [self._title(budget, width, palette)]
        )
        lines = [*title, *self.once(("bar", picture.revision), bar)]
        agents = agents_line(self._session.view.agents, sum(self._agent_tokens.values())) if not self._turn else ""
        if agents and height >= CHART_FROM:
            lines.append(fit(text_line((agents, palette.dim)), width))
        if height >= CHART_FROM and len(points) >= CHARTED and not self._turn:
            lines += self.once(("chart", points, marks), turns)
        return lines

    def _title(self, budget: Budget, width: int, palette: Palette) -> Line:
        sign = "" if budget.source == "measured" else "~"
        size = f"{sign}{budget.used:,} of {budget.effective:,} tokens"
        name = f"Context at turn {self._turn} " if self._turn else "Context "
        level = {"ok": palette.success, "warn": palette.warning}.get(budget.level, palette.error)
        title = text_line(
            (name, palette.heading),
            (f"{budget.shown} ", palette.strong + level),
            (size, palette.text),
        )
        room = width - cells(f"{name}{budget.shown} {size}")
        for part in self._conversation() if not self._turn else ():
            room -= cells(part) + 3
            if room >= 0:
                title += text_line((f" · {part}", palette.dim))
        return fit(title, width)

    def _conversation(self) -> list[str]:
        """Facts about the conversation, the most important first."""
        told = self._session.view.conversation
        compacted = sum(record.in_force for record in self._session.inspection.timeline.compactions)
        parts = [*filter(None, [self._removal()]), f"{told.active:,} of {plural(told.total, 'message')}"]
        if told.thoughts or told.dead:
            lost = f", {told.dead:,} left out" if told.dead else ""
            parts.append(f"{plural(told.thoughts, 'thought')} alive{lost}")
        parts.append(f"compacted {compacted}×" if compacted else "not compacted")
        if told.summaries:
            parts.append(plural(told.summaries, "summary"))
        parts += (*told.by_provider, *told.prompt)
        if told.oldest_age is not None:
            parts.append(f"oldest {_age(told.oldest_age)}")
        return parts

    def _removal(self) -> str:
        """What will be removed next, and when."""
        revision = self._picture.revision if self._picture is not None else None
        if self._next[0] != revision:
            self._next = (revision, self._session.inspection.next_removal())
        return self._next[1]

    def _columns(self, width: int, palette: Palette) -> Line:
        rows = plural(len(self.list.rows), "item")
        searched = f"  / {safe_line(self.words)}{'▏' if self.typing else ''}" if self.typing or self.words else ""
        left = f"{rows} · {self.list.shown} · by {self.list.sort}{searched}"
        right = f"tokens  {'' if width < TIMES_FROM else '  age   used  '}state     "
        if cells(left) + cells(right) + 2 > width:
            left = f"{rows}{searched}"
        gap = max(1, width - cells(left) - cells(right))
        style = palette.accent if self.typing else palette.dim
        return fit(
            text_line((left, style), (" " + "─" * max(0, gap - 2) + " ", palette.rule), (right, palette.dim)), width
        )

    def _row(self, item: ContextItem, chosen: bool, mark: Style, width: int, palette: Palette) -> list[Line]:
        now, staged = self._clock(), self.list.staged.get(item.id)
        if self.list.ends and item.id in self._fold_now()[0]:
            staged = "fold"
        age = _age(now - item.created) if item.created else ""
        used = _age(now - item.used) if item.used > item.created else ""
        times = f"{age:>7}{used:>7}"
        key = (item, chosen, staged, times, mark)
        return self.once(key, lambda: [self._item(item, chosen, staged, times, mark, width, palette)])

    def shown_tokens(self, item: ContextItem) -> int:
        """Tokens that the item takes, or took before it was removed."""
        if item.state not in GONE:
            return item.tokens
        call = self.list.calls.get(item.id)
        return sum(self._entry_size(name) for name in (item.id, *([call.id] if call is not None else ())))

    def _entry_size(self, name: str) -> int:
        known = self._sizes.get(name)
        if known is None:
            known = self._sizes[name] = self._session.inspection.size(name)
        return known

    def _item(
        self,
        item: ContextItem,
        chosen: bool,
        staged: Action | Literal["fold"] | None,
        times: str,
        mark: Style,
        width: int,
        palette: Palette,
    ) -> Line:
        state = "pinned" if item.pinned else _STATES.get(item.state, item.state)
        if staged is not None:
            state = f"{_STAGED[staged][0]} {_STAGED[staged][1]}"
        removed = item.state in GONE
        tokens = f"({short(self.shown_tokens(item))})" if removed else f"{item.tokens:,}"
        figures = f"{tokens:>8}{times}  " if width >= TIMES_FROM else f"{tokens:>7}  "
        ident = ID if width >= TIMES_FROM else SHORT_ID
        room = max(6, width - cells(figures) - STATE - ident - 4)
        base = palette.dim if removed or item.state == "offloaded" else palette.text
        line = text_line(
            ("›" if chosen else " ", palette.cursor),
            ("▌" if not removed else "┊", mark),
            (fitted_text(safe_line(item.id) if item.state != "fixed" else "", ident) + " ", palette.dim),
            (fitted_text(safe_line(self.list.title(item)), room) + " ", base + palette.strong if chosen else base),
            (figures, base),
            (fitted_text(state, STATE), palette.warning if staged else palette.accent if item.pinned else palette.dim),
        )
        return fit(line, width)

    def _foot(self, width: int, palette: Palette) -> list[Line]:
        rule = text_line(("─" * width, palette.rule))
        shown = {name: self.keymap.shown(name) for name in (*_ACTIONS, *_STAGING)}
        mark = self.keymap.shown(_MARKING)
        keys = [
            (shown["pin"], "pin"),
            (shown["drop"], "drop"),
            (shown["offload"], "offload"),
            (shown["restore_item"], "restore"),
            ("enter", "text"),
            (mark, "fold from here"),
            (self.keymap.shown("search_items"), "search"),
            (self.keymap.shown("filter_items"), "filter"),
            (self.keymap.shown("sort_items"), "sort"),
        ]
        if self._turn:
            keys = [key for key in keys[len(_ACTIONS) :] if key[0] != mark]
        if self.list.staged:
            effect = self._effect_now()
            wait = [(shown["delay_changes"], "wait for a compaction")] if effect is not None and effect.thoughts else []
            keys[:0] = [(shown["apply_changes"], "apply"), *wait, (shown["discard_changes"], "discard")]
        if len(self.list.ends) == 1:
            keys = [(mark, "fold to here"), (shown["discard_changes"], "discard"), *(k for k in keys if k[0] != mark)]
        elif self.list.ends:
            keys[:0] = [(shown["apply_changes"], "fold"), (shown["discard_changes"], "discard")]
        leave = "discards" if self.list.staged or self.list.ends else "clears" if self.words else "closes"
        foot = self.keys_foot(keys, ("esc", leave), width, palette)
        return [rule, fit(self._effect_line(width, palette), width), foot]

    def _explained(self, item: ContextItem) -> str:
        """The columns of an item in words."""
        now = self._clock()
        parts = [_explanation(item.state)]
        if item.created:
            parts.append(f"added {_age(now - item.created)} ago")
        if item.used > item.created:
            parts.append(f"last used {_age(now - item.used)} ago")
        return ", ".join(parts)

    def _effect_line(self, width: int, palette: Palette) -> Line:
        effect, what = self._effect_now() if self.list.staged else None, plural(len(self.list.staged), "change")
        if self.list.ends:
            names, price = self._fold_now()
            what = f"Fold {plural(len(names), 'item')} into a few lines"
            effect = price if isinstance(price, Effect) else None
        if effect is None:
            item = self.list.chosen
            words = self.list.title(item) if item is not None else ""
            about = f"{item.component} · turn {item.turn} · {self._explained(item)} · " if item and item.turn else ""
            agents = self._session.view.agents if item is not None and item.agent else ()
            for agent in agents:
                if item is not None and agent.id == item.agent:
                    figures = agent_figures(agent, self._agent_tokens.get(agent.id, 0))
                    about, words = "", " · ".join(filter(None, figures))
            return text_line((about + safe_line(words), palette.dim))
        change = effect.after - effect.before
        grows = palette.success if change < 0 else palette.warning if change else palette.text
        cost = f"costs {dollars(Decimal(effect.cost))} once" if effect.cost is not None else "price unknown"
        if effect.saved is not None and change:
            each = Decimal(effect.saved)
            cost += f", {'saves' if each >= 0 else 'adds'} {dollars(abs(each))} a request"
        line = text_line(
            (f"{what}: ", palette.strong),
            (f"{change:+,} token{'' if abs(change) == 1 else 's'}", grows),
        )
        if effect.over:
            line = text_line((f"Too much: {plural(effect.over, 'token')} more than fit. ", palette.error)) + line
        if effect.references:
            line += text_line((f" · {as_references(effect.references)}", palette.warning))
        if effect.thoughts or effect.regained:
            style = palette.warning if effect.thoughts else palette.success
            line += text_line(*((f" · {words}", style) for words in loss_words(effect)))
        room = width - sum(cells(piece.text) for piece in line)
        sizes = f" ({short(effect.before)} → {short(effect.after)})"
        cached, cost = f" · {short(effect.rewritten)} leave the cache", f" · {cost}"
        if cells(sizes + cached + cost) > room:
            sizes = ""
        if cells(cached + cost) > room:
            cost = cost.partition(",")[0] if effect.cost is not None else ""
        return line + text_line((sizes, palette.text), (cached, palette.dim), (cost, palette.dim))


def _explanation(state: str) -> str:
    """A state as a phrase about what is sent."""
    return {
        "live": "sent in full",
        "fixed": "in every request",
        "offloaded": "on disk, a reference is sent",
        "dropped": "no longer sent",
        "summarised": "sent as part of a summary",
    }.get(state, state)


def _age(seconds: float) -> str:
    """A duration in its largest unit: 12s, 3m, 2h, 5d."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{int(max(0.0, seconds))}s"
