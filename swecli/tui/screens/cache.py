"""The cache view: how much of each request came from the provider's cache, and cause and cost of every miss."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from rich.style import Style

from swecli.commands.requests import recorded_dollars, request_matches
from swecli.core.context_management.cache import (
    CachedRequest,
    CacheHistory,
    CacheMoney,
    Money,
    RecordedMiss,
    miss_cost,
    saving,
)
from swecli.core.protocol.provider_reports import dropped_words
from swecli.figures import dollars, percent, plural
from swecli.figures import tokens as short
from swecli.safe_text import safe_line
from swecli.tui.screens.board import Board, Line, fit, fitted_text, step_for, text_line
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import cells

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

AGAIN: Final = 0.1
"""Seconds between two checks for a new request."""
PRICED: Final = 200
"""Requests priced at a time, about 5 ms, which delays no key."""
CACHED, NEW, UNTOLD = "█", "▒", "░"
"""Distinct glyphs, so that a bar is readable without colours."""
WIDEST_BAR: Final = 48
DETAIL_FROM, HEAD_FROM = 16, 10
"""Lines from which the selected request is described below the list, and the totals above it."""
CLOCK_FROM = 48
"""Columns from which the time of each request is shown."""
_BESIDE = 32
"""Cells of a row besides turn, bar and misses."""


class CacheBoard(Board):
    """``words`` filter the list initially."""

    def __init__(self, session: Session, words: str = "") -> None:
        super().__init__()
        self._session = session
        self._history: CacheHistory = session.view.cache
        self._money = CacheMoney(session.view.price)
        self._sum: tuple[Money, bool] = (Money(), True)
        self._seen = -1
        self._only_misses = False
        self.words = words
        self._numbers: Sequence[int] = ()
        self._at = 0
        """Number of the selected request."""
        self._top = self._list_at = 0
        self._height = 1
        self._take()
        self._at = self._numbers[-1] if self._numbers else 0

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(AGAIN, self._look)

    def _look(self) -> None:
        """Add new requests. A selection of the newest request moves on to the next one."""
        fresh = self._seen != self._history.revision
        if fresh or not self._sum[1]:
            newest = not self._numbers or self._at == self._numbers[-1]
            self._take()
            if newest and self._numbers:
                self._at = self._numbers[-1]
            if fresh or self._sum[1]:  # drawing an unfinished sum would delay keys
                self.changed()

    def _take(self) -> None:
        self._sum = self._money.of(self._history, PRICED)
        if self._seen != self._history.revision:
            self._seen = self._history.revision
            self._narrow()

    def _narrow(self) -> None:
        """Filter the list by filter and words; keep the selected request, or else select the next one."""
        history, words = self._history, self.words.casefold().split()
        self._numbers = range(history.first, history.count)
        if words or self._only_misses:
            listed = zip(self._numbers, history.requests, strict=True)
            self._numbers = [number for number, request in listed if self._wanted(request, words)]
        if self._numbers:
            self._at = self._numbers[min(self._place, len(self._numbers) - 1)]

    def _wanted(self, request: CachedRequest, words: Sequence[str]) -> bool:
        if self._only_misses and not request.misses:
            return False
        return request_matches(request, words)

    @property
    def _place(self) -> int:
        """Row of the selected request."""
        return bisect_left(self._numbers, self._at)

    @property
    def chosen(self) -> CachedRequest | None:
        if not self._numbers or not self._history.first <= self._at < self._history.count:
            return None
        return next(iter(self._history.slice(self._at, self._at + 1)), None)

    # --- keys and mouse ---

    def act(self, action: str) -> bool:
        step = step_for(action, max(1, self._height - 1), len(self._numbers))
        if step is not None:
            self.move_by(step)
        elif action == "open":
            self._open()
        elif action == "filter_items":
            self._filter()
        elif action == "search_items":
            self.typing = True
        else:
            return False
        return True

    def move_by(self, step: int) -> None:
        if self._numbers:
            self._at = self._numbers[max(0, min(self._place + step, len(self._numbers) - 1))]

    def _filter(self) -> None:
        self._only_misses = not self._only_misses
        self._narrow()

    def _open(self) -> None:
        request = self.chosen
        if request is not None:
            heading = f"Request {self._at + 1:,}, turn {request.turn}"
            self.read(heading, "\n".join(_joined(pieces) for pieces in self._request_lines(request)))

    def searched(self) -> None:
        self._narrow()

    def step_back(self) -> bool:
        if self._only_misses:
            self._filter()
            return True
        return False

    def clicked(self, x: int, y: int) -> None:
        row = self._top + y - self._list_at
        if self._list_at <= y < self._list_at + self._height and row < len(self._numbers):
            again, self._at = self._at == self._numbers[row], self._numbers[row]
            if again:
                self._open()
        elif y == self._list_at - 1:
            self._filter()

    # --- texts about a request ---

    def _request_lines(self, request: CachedRequest) -> list[list[str]]:
        """Lines of pieces, the most important piece first."""
        usage, price = request.usage, self._session.view.price
        total, read = usage.input_total or 0, usage.cache_read
        when = time.strftime("%H:%M:%S", time.localtime(request.at))
        lines = [[f"Turn {request.turn}, {when}", safe_line(request.model)]]
        if read is None:
            lines.append([f"{total:,} tokens", "the provider reports no cached tokens"])
        else:
            written = f"{usage.cache_write:,} written" if usage.cache_write else ""
            sizes = [f"{read:,} from the cache", f"{max(0, total - read):,} new", written]
            lines.append([f"{total:,} tokens", *filter(None, sizes)])
        paid = self._paid(request)
        saved = saving(request, price)
        lines.append([f"cost {paid}" if paid else "cost: price unknown", *_saved(saved if read is not None else None)])
        for miss in request.misses:
            lines += self._miss_lines(miss, request)
        if request.diagnosis:
            lines.append([f"The provider's diagnosis: {safe_line(request.diagnosis)}"])
        lines += ([f"× {dropped_words(entry)}"] for entry in request.dropped)
        if not request.misses and read is not None:
            lines.append(["No misses."])
        return lines

    def _miss_lines(self, miss: RecordedMiss, request: CachedRequest) -> list[list[str]]:
        cost = miss_cost(request, miss.tokens, self._session.view.price)
        more = "price unknown" if cost is None else f"{dollars(cost)} more than from the cache"
        lines = [[f"× {safe_line(miss.cause)}"], [f"  {plural(miss.tokens, 'token')} rewritten", more]]
        if miss.component:
            lines.append([f"  First to change: {safe_line(miss.component)}", *filter(None, [self._part(miss)])])
        elif miss.kind in ("expired", "provider"):
            lines.append(["  The prompt starts like the previous one"])
        elif miss.kind == "model":
            lines.append(["  Each model has its own cache"])
        return lines

    def _paid(self, request: CachedRequest) -> str:
        """Cost of a request, at today's price if none was known then; empty if still unknown."""
        return recorded_dollars(request.cost or self._session.view.price(request.model, request.usage))

    def _part(self, miss: RecordedMiss) -> str:
        if miss.kind in ("tools", "model") or not miss.part:
            return safe_line(miss.part)
        return safe_line(self._session.inspection.masked(self._session.inspection.about(miss.part)))

    # --- drawing ---

    def paint(self, width: int, height: int, palette: Palette) -> list[Line]:
        if not self._history.count:
            from swecli.commands.requests import no_cache_words

            words = no_cache_words(self._history)
            foot = self.keys_foot([], ("esc", "closes"), width, palette)
            return [text_line(("Prompt cache", palette.heading)), text_line((words, palette.dim)), [], foot]
        head = self._head(width, palette)
        head = [*(head if height >= HEAD_FROM else head[:1]), self._columns(width, palette)]
        foot = self._foot(width, height, palette)
        self._list_at, self._height = len(head), max(1, height - len(head) - len(foot))
        cursor = min(self._place, max(0, len(self._numbers) - 1))
        self._top = max(0, min(self._top, cursor, len(self._numbers) - self._height))
        self._top = max(self._top, cursor - self._height + 1)
        shown = self._numbers[self._top : self._top + self._height]
        requests = [(number, request) for number in shown for request in self._history.slice(number, number + 1)]
        largest = max((request.usage.prompt for _, request in requests), default=1)
        newest = self._history.slice(self._history.count - 1, self._history.count)[0].turn
        body: list[Line] = []
        for number, shown_request in requests:
            body += self._row(number, shown_request, largest, newest, width, palette)
        body += [[] for _ in range(self._height - len(body))]
        return [*(fit(line, width) for line in head), *body, *(fit(line, width) for line in foot)]

    def _head(self, width: int, palette: Palette) -> list[Line]:
        totals = self._history.totals
        if not totals.requests:
            words = "The provider reports no cached tokens"
            count = f" · {plural(self._history.count, 'request')}"
            return [text_line(("Prompt cache ", palette.heading), (words, palette.warning), (count, palette.dim))]
        newest = self._history.slice(self._history.count - 1, self._history.count)[0].usage.cache_share
        last = "not reported" if newest is None else percent(newest)
        many = plural(totals.requests, "request")
        title = f"{last} of the last request · {percent(totals.share)} of {many}"
        if cells(f"Prompt cache {title}") > width:
            title = f"{last} · {percent(totals.share)} of {many}"
        filled = round(width * totals.share)
        misses = plural(totals.misses, "miss")
        again = f": {short(totals.missed)} rewritten{self._lost()}" if totals.misses else ""
        read = f"{short(totals.read)} of {short(totals.asked)} tokens cached · "
        worth, note = self._worth()
        if cells(read + worth + note + misses + again) + 3 > width:
            note = ""  # misses matter more
        if cells(read + worth + misses + again) + 3 > width:
            read = ""  # the bar shows it
        return [
            text_line(("Prompt cache ", palette.heading), (title, palette.text)),
            text_line((CACHED * filled, palette.accent), (NEW * (width - filled), palette.warning)),
            text_line(
                (read, palette.dim),
                (worth, palette.text),
                (f"{note} · ", palette.dim),
                (misses, palette.error if totals.misses else palette.dim),
                (again, palette.dim),
            ),
        ]

    def _worth(self) -> tuple[str, str]:
        """Money that the cache saved, and which part of the session it excludes."""
        money, done = self._sum
        if not money.priced:
            return "saving: price unknown" if money.unpriced else "saving: …", ""
        words = _saved(money.saved)[0]
        if not done:
            return f"{words} so far", ""
        forgotten = self._history.totals.requests - money.priced - money.unpriced
        parts = [f"{money.unpriced:,} at an unknown price"] if money.unpriced else []
        parts += [f"newest {money.priced:,} requests"] if forgotten > 0 else []
        return words, f" ({', '.join(parts)})" if parts else ""

    def _lost(self) -> str:
        money, done = self._sum
        if not done or not money.priced:
            return ""
        if money.lost_unpriced:
            return f", at least {dollars(money.lost)}" if money.lost else ", price unknown"
        return f", {dollars(money.lost)}"

    def _columns(self, width: int, palette: Palette) -> Line:
        searched = f" / {safe_line(self.words)}{'▏' if self.typing else ''}" if self.typing or self.words else ""
        what = "with misses" if self._only_misses else "all requests"
        words = f"{len(self._numbers):,} · {what}{searched} "
        signs = f" {CACHED} cached {NEW} new × miss"
        if cells(words) + cells(signs) + 4 > width:
            signs = ""
        rule = "─" * max(0, width - cells(words) - cells(signs))
        return text_line((words, palette.dim), (rule, palette.rule), (signs, palette.dim))

    def _foot(self, width: int, height: int, palette: Palette) -> list[Line]:
        keys = [
            *([("enter", "read")] if self._numbers else []),
            (self.keymap.shown("filter_items"), "all requests" if self._only_misses else "misses only"),
            (self.keymap.shown("search_items"), "search"),
        ]
        rule = text_line(("─" * width, palette.rule))
        last = self.keys_foot(keys, ("esc", "closes"), width, palette)
        if height < HEAD_FROM:
            return [last]
        request = self.chosen
        if height < DETAIL_FROM:
            return [rule, last]
        told = self._request_lines(request) if request is not None else [["No request matches."]]
        most = max(6, min(9, height // 4))
        lines: list[Line] = []
        for pieces in told[:most]:
            text = fitted_text(_joined(pieces), width)
            style = palette.error if text.startswith("×") else palette.text if not lines else palette.dim
            lines.append(text_line((text, style)))
        lines += [[] for _ in range(most - len(lines))]
        return [rule, *lines, last]

    def _row(
        self, number: int, request: CachedRequest, largest: int, newest: int, width: int, palette: Palette
    ) -> list[Line]:
        chosen = number == self._at

        def made() -> list[Line]:
            return [fit(self._drawn(request, chosen, largest, newest, width, palette), width)]

        return self.once((number, chosen, largest, newest, self._history.revision, self._paid(request)), made)

    def _drawn(
        self, request: CachedRequest, chosen: bool, largest: int, newest: int, width: int, palette: Palette
    ) -> Line:
        usage = request.usage
        turn = max(8, len(f"turn {newest}"))
        size = max(2, min(WIDEST_BAR, (width - turn - _BESIDE) // 4))
        share = usage.cache_share
        base = palette.text + palette.strong if chosen else palette.text
        when = time.strftime(" %H:%M", time.localtime(request.at)) if width >= CLOCK_FROM else ""
        return text_line(
            ("›" if chosen else " ", palette.cursor),
            ("× " if request.misses else "  ", palette.error),
            (fitted_text(f"turn {request.turn}", turn), base),
            (f"{when} ", palette.dim),
            (f"{usage.prompt:>7,} ", base),
            *self._bar(request, largest, size, palette),
            ("    ?" if share is None else f"{percent(share):>5}", base),
            (f"{self._paid(request) or '?':>9} ", palette.dim),
            (self._missed(request), palette.error),
        )

    def _bar(self, request: CachedRequest, largest: int, size: int, palette: Palette) -> list[tuple[str, Style]]:
        """Bar proportional to the request's size, with its cached part first."""
        usage = request.usage
        length = max(1, round(size * usage.prompt / max(1, largest)))
        if usage.cache_share is None:
            return [(UNTOLD * length + " " * (size - length), palette.dim)]
        filled = round(length * usage.cache_share)
        if usage.cache_share < 1 and filled == length and length > 1:
            filled -= 1  # there is always something new
        return [
            (CACHED * filled, palette.accent),
            (NEW * (length - filled), palette.warning),
            (" " * (size - length), palette.dim),
        ]

    def _missed(self, request: CachedRequest) -> str:
        """The request's last miss: kind, tokens, cost and cause; without one, the thoughts that it lost."""
        if not request.misses:
            return dropped_words(request.dropped[0]) if request.dropped else ""
        miss = request.misses[-1]
        cost = dollars(miss_cost(request, miss.tokens, self._session.view.price))
        return f"{miss.kind or 'miss'} · {short(miss.tokens)} · {cost} · {safe_line(miss.cause)}"


def _joined(pieces: Sequence[str]) -> str:
    return " · ".join(pieces)


def _saved(amount: Decimal | None) -> list[str]:
    if amount is None:
        return []
    if amount < 0:
        return [f"{dollars(-amount)} more than without a cache"]
    return [f"saved {dollars(amount)}"]
