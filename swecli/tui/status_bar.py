"""The activity line above the prompt and the status bar below it."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct
from rich.cells import cell_len
from textual.content import Content
from textual.strip import Strip
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from swecli.figures import BAR, bar, dollars, duration, percent, plural, tokens
from swecli.safe_text import safe_line
from swecli.tool_words import OWN_COMMAND, words_for
from swecli.tui.keymap import keymap_of, shown

if TYPE_CHECKING:
    from swecli.core.context_management.forecast import Forecast
    from swecli.core.engine.session_view import SessionView
    from swecli.core.protocol.budget import Budget, ContextLevel
    from swecli.core.protocol.events import Mode, PromptProgress, SandboxChanged
    from swecli.tui.session_state import Running, UiState


STARTING = "…"
"""Shown in place of the model until there is a session."""

Tone = Literal["plain", "dim", "mode", "ok", "warn", "compact", "block"]

BAR_WIDTH = 8


class Facts(Struct, frozen=True):
    """Values of the bar. ``cost`` is US dollars, None if unknown; ``branch`` ends with ``*`` for uncommitted
    changes."""

    mode: Mode
    model: str | None
    budget: Budget | None = None
    cache_share: float | None = None
    cost: Decimal | None = None
    branch: str = ""
    sandbox: SandboxChanged | None = None
    jobs: int = 0
    """Number of background commands."""
    editing: str = ""
    """Mode of the vim keys; empty if they are off."""
    yolo: bool = False
    """Whether everything runs without approval, except in plan mode."""


class Piece(Struct, frozen=True):
    text: str
    tone: Tone = "plain"


_WORDS: dict[ContextLevel, str] = {"ok": "", "warn": " filling up", "compact": " nearly full", "block": " full"}


def context(budget: Budget | None, detail: int) -> list[Piece]:
    """The meter in six sizes: 5 with label, bar, percentage, used tokens and total; 4 without used tokens; 3 without
    label; 2 without total; 1 bar and percentage without words; 0 the percentage. Empty if unknown. A total that is only
    assumed says so."""
    if budget is None or budget.source == "unknown" or budget.effective <= 0:
        return []
    tone: Tone = budget.level
    pieces: list[Piece] = []
    if detail >= 4:
        pieces.append(Piece("context ", "dim"))
    if detail >= 1:
        pieces.append(Piece(f"{bar(budget.share, BAR_WIDTH)} ", tone))
    pieces.append(Piece(budget.shown, tone))
    if detail >= 3:
        total = tokens(budget.effective)
        pieces.append(Piece(f" · {tokens(budget.used)}/{total}" if detail >= 5 else f" of {total}", "dim"))
        if budget.window_source == "assumed":
            pieces.append(Piece(" (assumed)", "dim"))
    if detail >= 2 and budget.level != "ok":
        pieces.append(Piece(_WORDS[budget.level], tone))
    return pieces


def without_commands(facts: Facts) -> bool:
    """Whether auto mode asks about every command here because no sandbox contains them."""
    state = facts.sandbox
    return facts.mode == "auto" and state is not None and state.level != "full" and not state.contains


def _mode(facts: Facts) -> Piece:
    if facts.yolo and facts.mode != "plan":
        return Piece("yolo", "block")
    return Piece("auto (edits only)" if without_commands(facts) else facts.mode, "mode")


ROOMY = 96
"""Cells from which the bar has room for the used tokens: a terminal of 100 columns."""


def line(facts: Facts, width: int) -> list[Piece]:
    """Pieces of the bar, separated, that fit ``width`` cells. Words are dropped first, then cost and branch; the meter
    last."""
    name = facts.model.rsplit("/", 1)[-1] if facts.model else "no model"
    mode = [_mode(facts)]
    if facts.editing:
        mode = [Piece(facts.editing), Piece(" · ", "dim"), *mode]
    model = [Piece(name)] if facts.model != STARTING else []
    medium, short = ([Piece(shorten(name, limit))] if model else [] for limit in (24, 14))
    cache = [] if facts.cache_share is None else [Piece(f"{percent(facts.cache_share)} cached", "dim")]
    cost = [] if facts.cost is None else [Piece(dollars(facts.cost), "dim")]
    branch = [Piece(shorten(facts.branch, 30), "dim")] if facts.branch else []
    jobs = [Piece(plural(facts.jobs, "job"), "warn")] if facts.jobs else []
    meters = [context(facts.budget, detail) for detail in range(6)]
    candidates = [
        *([[mode, jobs, model, meters[5], cache, cost, branch]] if width >= ROOMY else []),
        [mode, jobs, model, meters[4], cache, cost, branch],
        [mode, jobs, model, meters[4], cost, branch],
        [mode, jobs, model, meters[3], cost, branch],
        [mode, jobs, model, meters[2], cost, branch],
        [mode, jobs, medium, meters[2], cost, branch],
        [mode, jobs, model, meters[2], cost],
        [mode, jobs, medium, meters[2], cost],
        [mode, jobs, model, meters[2]],
        [mode, jobs, short, meters[2]],
        [mode, jobs, short, meters[1]],
        [mode, jobs, meters[1]],
        [mode, meters[1]],
        [meters[1]],
        [meters[0]],
    ]
    for groups in candidates:
        pieces = _joined([group for group in groups if group])
        if sum(cell_len(safe_line(piece.text)) for piece in pieces) <= width:
            return pieces
    return []


def unsaid(facts: Facts, text: str) -> list[Piece]:
    """Pieces that precede a status line of the user's own: the mode of the vim keys, and what runs without approval,
    unless ``text`` states it. A mode that Shift+Tab changes must not be invisible."""
    mode = _mode(facts)
    groups = [[Piece(facts.editing)] if facts.editing and facts.editing not in text else []]
    if (facts.mode != "default" or facts.yolo) and mode.text not in text and (facts.yolo or facts.mode not in text):
        groups.append([mode])
    return [piece for group in groups if group for piece in (*group, Piece(" · ", "dim"))]


def shorten(text: str, limit: int) -> str:
    """The text, shortened in its middle to at most ``limit`` characters."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def _joined(groups: list[list[Piece]]) -> list[Piece]:
    pieces: list[Piece] = []
    for group in groups:
        if pieces:
            pieces.append(Piece(" · ", "dim"))
        pieces.extend(group)
    return pieces


SILENCE = 10.0
"""Seconds of silence from the model after which the line reports it."""
LOOKING = "Looking for models…"
"""Shown while servers are asked for their models."""
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


LONG_COMMAND = 5.0
"""Seconds after which the line names the key that moves a command to the background."""


class Activity(NamedTuple):
    """What is going on; all empty if nothing is. A narrow screen cuts ``what``, never the ``time`` behind it."""

    what: str = ""
    time: str = ""
    stop: str = ""
    """How to stop it."""

    @property
    def text(self) -> str:
        return self.what + self.time


def describe(state: UiState, *, now: float, background: str = "") -> Activity:
    """The activity at ``now``, in Unix seconds. ``background`` is the key that moves a command to the background, if
    any."""
    if not state.busy and not state.running:
        return Activity()
    since = state.turn_since + state.waited if state.busy else min(item.since for item in state.running.values())
    seconds = duration(max(0, int(now - since)))
    stop = "esc to skip it" if state.hooks else "esc to continue without" if state.awaits else "esc to interrupt"
    if state.interrupting:
        return Activity("Interrupting…")
    if state.requests:
        return Activity(f"Waiting for your answer {duration(int(now - state.asked_since))}")
    if state.retry is not None:
        left = max(0, round(state.retry_at - now))
        retry = state.retry
        if retry.unreached:
            from swecli.event_lines import unreached_words  # not needed by the first frame

            coming = f"next try in {left} s" if left else "trying again"
            return Activity(unreached_words(retry), f"; {coming}", "esc to stop")
        number = f"{retry.attempt} of {retry.limit}" if retry.limit else f"{retry.attempt}"
        return Activity(f"Retry {number}", f" in {left} s" if left else " now", "esc to stop")
    if background and any(item.is_command and now - item.since >= LONG_COMMAND for item in state.running.values()):
        stop = f"{stop} · {background} moves it to the background"
    doing = _doing(state)
    if (first := _first_executing(state)) is not None and not state.hooks:
        seconds = duration(max(0, int(now - first.since)))  # same time as on its transcript line
    passed = f"{' ' if doing.endswith('…') else ' · '}{seconds}"
    silence = now - state.heard
    model_works = (
        state.busy
        and not state.awaits
        and not state.hooks
        and not any(item.executing or item.awaits or item.kind == "compaction" for item in state.running.values())
    )
    # As the time since the turn began, or as what the server does before the first output.
    already_shown = not state.running and (silence > now - state.turn_since - 2 or not _is_read(state.prompt))
    if model_works and silence >= SILENCE and not already_shown:
        passed = f"{passed} · no output for {duration(int(silence))}"
    return Activity(doing, passed, stop)


def _is_executing(item: Running) -> bool:
    return item.executing and item.kind == "tool"


def _first_executing(state: UiState) -> Running | None:
    return next(filter(_is_executing, state.running.values()), None)


def _doing(state: UiState) -> str:
    for hooks in state.hooks.values():
        from swecli.core.protocol.hook_words import running_words

        return running_words(hooks.event, hooks.commands)
    running = state.running
    if (first := _first_executing(state)) is not None:
        verb = words_for(first.name).doing or "Working"
        count = sum(map(_is_executing, running.values()))
        more = f" (+{count - 1} more)" if count > 1 else ""
        return f"{verb} {first.title}{more}".strip()
    if state.call is not None:
        return _preparing(state.call.name)
    for item in reversed(running.values()):
        match item.kind:
            case "reasoning":
                return "Reasoning…"
            case "text":
                return "Writing…"
            case "tool" if item.awaits:
                return f"{words_for(item.name).doing} {item.title}: {item.awaits}…"
            case "user" if item.is_command:
                return f"{words_for(OWN_COMMAND).doing} {item.title}"
            case "tool":
                return _preparing(item.name)
            case "compaction":
                return "Compacting the context…"
            case _:
                continue
    return state.awaits or _waiting(state.prompt)


def _preparing(tool: str) -> str:
    return f"Preparing {tool}…" if tool else "Preparing a call…"


def _is_read(prompt: PromptProgress | None) -> bool:
    return prompt is None or prompt.read >= prompt.total > 0


def _waiting(prompt: PromptProgress | None) -> str:
    if prompt is None or _is_read(prompt):
        return "Waiting for the model…"
    if not prompt.total and prompt.slots == 1:
        return "The server's one slot serves an earlier request…"
    if not prompt.total and prompt.slots:
        slots = "Both" if prompt.slots == 2 else f"All {prompt.slots}"
        return f"{slots} slots of the server serve earlier requests…"
    if not prompt.total:
        return "Waiting: the server has not begun to read the prompt…"
    return f"The model reads the prompt: {prompt.read:,} of {prompt.total:,} tokens…"


SPIN = 1 / 8
"""Seconds between two frames of the spinner."""

WIDE = 80
"""Cells of the activity line from which it names a second key."""

LEAST_TITLE = 12
"""Cells of an activity's name that stay beside its time, at the cost of the key's."""

FLASH = 4.0
"""Seconds that a short message is shown."""


class LineWidget(Widget, can_focus=False):
    """One line whose content is built when it is drawn."""

    def content(self, width: int) -> Content:
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y or width < 1:
            return Strip.blank(max(0, width), self.rich_style)
        line = self.content(width).truncate(width, ellipsis=True, pad=True)
        return Strip(list(line.render_segments(self.visual_style)), width)


class ActivityLine(LineWidget):
    """Shows the current activity, a short message, the draft's forecast, a context suggestion, or nothing. Ticks only
    while something runs and the terminal has the focus."""

    DEFAULT_CSS = """
    ActivityLine { height: 1; padding: 0 1; color: $foreground; }
    ActivityLine > .activity--stop { color: $foreground-muted; text-style: $muted-style; }
    ActivityLine > .activity--flash { color: $warning; }
    ActivityLine > .activity--unseen { color: $accent; text-style: bold; background: $panel; }
    """
    COMPONENT_CLASSES = {"activity--stop", "activity--flash", "activity--unseen"}

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(id="activity")
        self._clock = clock
        self._still = False
        self._state: UiState | None = None
        self._starting = True
        self._shown = 0.0
        self._flash = ""
        self._holds: Callable[[], bool] | None = None
        self._beside: list[tuple[str, str, float, bool]] = []
        """Side activities: what, how to stop it, since when, and whether it also shows while something else runs."""
        self._unseen = 0
        self._covered = False
        """Whether a screen is open, which Esc closes, so that it stops nothing."""
        self._timer: Timer | None = None
        self._pace: float | None = None
        """Seconds between two ticks of the timer; None if it does not run."""
        self._flash_timer: Timer | None = None
        self.foresee: Callable[[], Forecast | None] | None = None
        """Forecast of the draft as the next request; None if disabled."""
        self.suggest: Callable[[int], str] | None = None
        """Without a forecast: what the draft's shell command does, or a context suggestion, in so many cells; empty if
        there is neither or the session is busy."""
        self._forecast: Forecast | None = None
        self._forecast_timer: Timer | None = None

    def show(self, state: UiState, *, starting: bool) -> None:
        self._state, self._starting = state, starting
        if self._holds is not None and not self._holds():
            self.end_flash()
        self._tick_if_needed()
        self._shown = self._clock()
        self.look_ahead()

    def keep_still(self, still: bool) -> None:
        """Stop or allow animation; seconds still count."""
        if still != self._still:
            self._still = still
            self._tick_if_needed()
            self.refresh()

    def flash(self, text: str, seconds: float = FLASH, holds: Callable[[], bool] | None = None) -> None:
        """Show a short message for a while, at most until the next key, and only while it ``holds``."""
        self._flash, self._holds = text, holds
        if self._flash_timer is not None:
            self._flash_timer.stop()
        self._flash_timer = self.set_timer(seconds, self.end_flash) if text else None
        self.refresh()

    def end_flash(self) -> None:
        """Remove the short message."""
        if self._flash:
            self.flash("")

    @contextmanager
    def beside(self, what: str, stop: str = "", *, always: bool = True) -> Iterator[None]:
        """Show an activity until the block ends; unless ``always``, only while nothing else runs."""
        entry = (what, stop, self._clock(), always)
        self._beside.append(entry)
        self._tick_if_needed()
        self.refresh()
        try:
            yield
        finally:
            self._beside.remove(entry)
            if self.is_attached:
                self._tick_if_needed()
                self.refresh()

    def show_unseen(self, lines: int) -> None:
        """Show how many new lines are below the visible part."""
        if lines != self._unseen:
            self._unseen = lines
            self.refresh()

    def cover(self, covered: bool) -> None:
        """A screen opens in place of the transcript, or closes."""
        self._covered = covered
        self.refresh()

    def focus_changed(self) -> None:
        self._tick_if_needed()
        self.look_ahead()

    def look_ahead(self, *, drafted: bool = True) -> None:
        """Update the forecast of the next request if one is ``drafted``. A timer runs only until the next text change,
        and none in the background."""
        if self._forecast_timer is not None:
            self._forecast_timer.stop()
            self._forecast_timer = None
        self._forecast = self.foresee() if drafted and self.foresee is not None else None
        if self._forecast is not None and self.app.app_focus:
            from swecli.tui.forecast_line import next_change

            after = next_change(self._forecast)
            self._forecast_timer = None if after is None else self.set_timer(after, self.look_ahead)
        self.refresh()

    def content(self, width: int) -> Content:
        line = self._what(width)
        if not self._unseen:
            return line
        new = f" ↓ {plural(self._unseen, 'new line')} · End "
        pill = Content(new).stylize(self.get_visual_style("activity--unseen", partial=True))
        if pill.cell_length >= width:
            return line
        room = width - pill.cell_length
        return line.truncate(room, ellipsis=True).pad_right(max(0, room - line.cell_length)) + pill

    def _what(self, width: int) -> Content:
        muted = self.get_visual_style("activity--stop", partial=True)
        keys = keymap_of(self).keys("background") if width >= WIDE else ()
        background = shown(keys[0]) if keys else ""
        state, now = self._state, self._clock()
        what, passed, stop = Activity() if state is None else describe(state, now=now, background=background)
        others = [entry for entry in self._beside if entry[3] or not what]
        if others:
            other, how, since, _ = others[-1]
            if what:
                passed = f"{passed} · {safe_line(other)}"
            else:
                what, passed, stop = other, f" {duration(int(self._clock() - since))}", how
        suffix = Content("")
        if self._flash:  # keep the hint how to stop
            line = Content(safe_line(self._flash)).stylize(self.get_visual_style("activity--flash", partial=True))
        elif self._starting and not self._beside:
            return Content("Starting…").stylize(muted)
        elif not what:
            return self._foreseen(width).stylize(muted)
        else:
            frame = int(self._clock() / SPIN) % len(FRAMES)
            mark = "●" if self._rests else FRAMES[frame]
            line = Content(f"{mark} {safe_line(what)}")
            suffix = Content(passed)
        rest = suffix + Content(f" · {stop}" if stop and not self._covered else "").stylize(muted)
        return line.truncate(max(LEAST_TITLE, width - rest.cell_length), ellipsis=True) + rest

    def _foreseen(self, width: int) -> Content:
        if self._forecast is None:
            return Content(safe_line(self.suggest(width) if self.suggest is not None else ""))
        from swecli.tui.forecast_line import forecast_words

        return Content(forecast_words(self._forecast, width))

    def _tick_if_needed(self) -> None:
        state = self._state
        works = bool(self._beside) or (state is not None and (state.busy or bool(state.running)))
        wanted = works and self.app.app_focus
        pace = (1.0 if self._rests else SPIN) if wanted else None
        if pace != self._pace:
            if self._timer is not None:
                self._timer.stop()
            self._pace = pace
            self._timer = self.set_interval(pace, self._tick) if pace is not None else None

    @property
    def _rests(self) -> bool:
        """Whether nothing spins: the user wants that, or everything waits for the user."""
        state = self._state
        waits = state is not None and bool(state.requests) and _first_executing(state) is None
        return self._still or (waits and not self._beside)

    def _tick(self) -> None:
        """Redraw, except while an answer streams: each of its deltas already redraws this line."""
        if not 0 <= self._clock() - self._shown < SPIN:
            self.refresh()


class StatusBar(LineWidget):
    """Mode, model, context, cache, cost, branch."""

    DEFAULT_CSS = """
    StatusBar { height: 1; padding: 0 1; background: $panel; color: $foreground; }
    StatusBar > .status--dim { color: $foreground-muted; text-style: $muted-style; }
    StatusBar > .status--mode { color: $accent; text-style: bold; }
    StatusBar > .status--ok { color: $success; }
    StatusBar > .status--warn { color: $warning; }
    StatusBar > .status--compact { color: $warning; text-style: bold; }
    StatusBar > .status--block { color: $error; text-style: bold; }
    StatusBar > .status--track { background: $track; }
    StatusBar > .status--track-end { color: $track-end; text-style: none; }
    """
    COMPONENT_CLASSES = {
        f"status--{tone}" for tone in ("dim", "mode", "ok", "warn", "compact", "block", "track", "track-end")
    }

    def __init__(self) -> None:
        super().__init__(id="status")
        self._facts: Facts | None = None
        self._line: Content | None = None

    def show(self, facts: Facts) -> None:
        if facts != self._facts:
            self._facts = facts
            self.refresh()

    def show_line(self, line: Content | None) -> None:
        """Show this in place of the facts, except ``unsaid`` ones; None shows the facts again."""
        self._line = line
        self.refresh()

    def content(self, width: int) -> Content:
        if self._line is not None:
            before = unsaid(self._facts, self._line.plain) if self._facts is not None else []
            return self._assembled(before) + self._line
        if self._facts is None:
            return Content("")
        return self._assembled(line(self._facts, width))

    def _assembled(self, pieces: Sequence[Piece]) -> Content:
        line = Content("")
        for piece in pieces:
            part = Content(safe_line(piece.text))
            if piece.tone != "plain":
                part = part.stylize(self.get_visual_style(f"status--{piece.tone}", partial=True))
            if match := BAR.search(piece.text):
                start, end = match.span()
                ground = self.get_component_styles("status--track").background
                if ground.ansi is None:  # the terminal's own colours have no RGB value; the ends stay visible
                    part = part.stylize(Style(background=ground), start + 1, end - 1)
                ends = self.get_visual_style("status--track-end", partial=True)
                part = part.stylize(ends, start, start + 1).stylize(ends, end - 1, end)
            line = line + part
        return line


PAUSE = 0.3
"""Minimum seconds from the end of one run to the start of the next."""
LIMIT = 8_192
"""Bytes of output to read."""
GIVE_UP = 3
"""Consecutive failures after which the command is not run again in this session."""


def document(facts: Facts, view: SessionView | None, columns: int) -> dict[str, object]:
    """JSON input of the status command. Unknown values are null."""
    budget = facts.budget
    context = None
    if budget is not None and budget.source != "unknown":
        context = {
            "used": budget.used,
            "effective": budget.effective,
            "share": round(budget.share, 4),
            "level": budget.level,
            "estimated": budget.source == "estimated",
        }
    return {
        "session_id": None if view is None else view.session_id,
        "cwd": None if view is None else str(view.cwd),
        "model": facts.model,
        "mode": facts.mode,
        "busy": False if view is None else view.busy,
        "context": context,
        "cache_share": facts.cache_share,
        "cost_usd": None if facts.cost is None else float(facts.cost),
        "branch": facts.branch or None,
        "sandbox": None if facts.sandbox is None else facts.sandbox.level,
        "columns": columns,
    }


class StatusScript:
    """Runs the status command when the state has changed, one run at a time, without blocking.

    It does not get the variables ``keys``. ``show`` gets the output's first line, raw, or None for the usual bar;
    ``complain`` a sentence about the first failure.
    """

    def __init__(
        self,
        command: str,
        timeout: float,
        keys: Collection[str],
        show: Callable[[str | None], None],
        complain: Callable[[str], None],
        *,
        environ: Mapping[str, str] | None = None,
        pause: float = PAUSE,
    ) -> None:
        self._command = command
        self._timeout = timeout
        self._keys = keys
        self._show = show
        self._complain = complain
        self._environ = environ
        self._pause = pause
        self._wanted: tuple[dict[str, object], Path] | None = None
        self._last: dict[str, object] | None = None
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._reported = False

    def update(self, state: dict[str, object], cwd: Path) -> None:
        """Record the new state and schedule a run. Returns at once."""
        if self._failures >= GIVE_UP or state == self._last:
            return
        self._last, self._wanted = state, (state, cwd)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    def stop(self) -> None:
        """Start no further run, and end the current one."""
        self._failures, self._wanted = GIVE_UP, None
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Stop and wait for the end."""
        self.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while self._wanted is not None and self._failures < GIVE_UP:
            (state, cwd), self._wanted = self._wanted, None
            began = time.monotonic()
            await self._run(state, cwd)
            await asyncio.sleep(max(0.0, self._pause - (time.monotonic() - began)))

    async def _run(self, state: dict[str, object], cwd: Path) -> None:
        from swecli.core.workspace.command_output import capture
        from swecli.core.workspace.process import scrubbed_environment

        environment = scrubbed_environment(os.environ if self._environ is None else self._environ, keys=self._keys)
        environment["COLUMNS"] = str(state.get("columns", 80))
        text = json.dumps(state, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            ran = await capture(
                ["/bin/sh", "-c", self._command],
                cwd=cwd,
                environment=environment,
                timeout=self._timeout,
                limit=LIMIT,
                stdin=text,
            )
        except OSError as error:
            self._failed(f"could not start: {error.strerror or error}")
            return
        if ran.timed_out:
            self._failed(f"took longer than {self._timeout:g} s and was stopped")
        elif ran.status not in (0, None):
            message = ran.errors.decode("utf-8", "replace").strip().partition("\n")[0][:200]
            self._failed(f"ended with status {ran.status}{f': {message}' if message else ''}")
        else:
            self._failures = 0
            lines = ran.output.decode("utf-8", "replace").strip("\n").splitlines()
            self._show(lines[0] if lines else "")

    def _failed(self, how: str) -> None:
        self._failures += 1
        self._show(None)
        if not self._reported:
            self._reported = True
            self._complain(f"The command of ui.status_line {how}. Showing the normal bar.")
