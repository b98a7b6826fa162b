"""What is to be seen of a run: counts, running tasks with their newest lines, figures. Viewers read it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from decimal import Decimal

from msgspec import Struct, field

from swecli.figures import dollars, duration, plural, tokens
from swecli.fleet.link import FINISHED, Began, Ended, FromWorker, Said
from swecli.fleet.tasks import Task
from swecli.safe_text import safe_line

LINES = 2_000
"""Lines of a running task's transcript that can be looked at."""
_WORDS: Mapping[str, str] = {"passed": "passed", "failed": "failed", "unchecked": "done", "broken": "broken"}


class Running(Struct):
    """A running task. ``since`` is in seconds of the monotonic clock."""

    task: Task
    attempt: int
    since: float
    phase: str = "waiting"
    steps: int = 0
    tokens: int = 0
    price: Decimal = Decimal(0)
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))
    said: int = 0
    """Lines so far, those no longer kept included."""

    @property
    def newest(self) -> str:
        return next((line for line in reversed(self.lines) if line.strip()), "")


class Board:
    """The state of a run. ``say`` gets a line for each thing that happens; ``changed`` is called after each change."""

    def __init__(self, total: int, counts: Mapping[str, int], workers: int) -> None:
        self.total = total
        self.workers = workers
        self.counts = {status: counts.get(status, 0) for status in (*FINISHED, "broken", "stopped")}
        self.running: dict[str, Running] = {}
        self.tokens = 0
        self.price = Decimal(0)
        self.since = time.monotonic()
        self.say: Callable[[str], None] = _nobody
        self._seconds: deque[float] = deque(maxlen=200)
        """How long the newest tasks took."""

    @property
    def done(self) -> int:
        return sum(self.counts.values())

    @property
    def left(self) -> float | None:
        """Seconds until the end, from the newest tasks; None before the first has ended."""
        if not self._seconds:
            return None
        mean = sum(self._seconds) / len(self._seconds)
        waiting = self.total - self.done - len(self.running)
        now = time.monotonic()
        begun = sum(max(mean / 10, mean - (now - each.since)) for each in self.running.values())
        return (waiting * mean + begun) / max(1, min(self.workers, waiting + len(self.running)))

    @property
    def summary(self) -> str:
        """The run on one line."""
        parts = [f"{self.done:,} of {self.total:,} done"]
        if self.running:
            parts.append(f"{len(self.running)} running")
        for status in ("passed", "failed", "unchecked", "broken", "stopped"):
            if self.counts[status]:
                parts.append(f"{self.counts[status]:,} {status}")
        parts.append(f"{tokens(self.tokens)} tokens")
        if self.price:
            parts.append(dollars(self.price))
        if self.running and (left := self.left) is not None:
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)

    def began(self, task: Task, attempt: int) -> None:
        self.running[task.id] = Running(task, attempt, time.monotonic())

    def heard(self, task: Task, message: FromWorker) -> None:
        running = self.running.get(task.id)
        if running is None:
            return
        match message:
            case Began(phase=phase):
                running.phase = phase
            case Said(line=line, steps=steps):
                running.steps = steps
                if line:
                    running.lines.append(line)
                    running.said += 1
            case _:
                pass

    def spent(self, task: Task, used: int, price: Decimal) -> None:
        self.tokens += used
        self.price += price
        running = self.running.get(task.id)
        if running is not None:
            running.tokens += used
            running.price += price

    def repeated(self, task: Task, ended: Ended, delay: float) -> None:
        """The attempt failed and will be repeated."""
        self.running.pop(task.id, None)
        reason = safe_line(ended.reason)
        self.say(f"{safe_line(task.id)}: {reason}; tried again in {duration(delay)}")

    def ended(self, task: Task, ended: Ended, seconds: float) -> None:
        self.running.pop(task.id, None)
        self.counts[ended.status] += 1
        if ended.status in FINISHED:
            self._seconds.append(seconds)
        figures = [duration(seconds), plural(ended.steps, "step")]
        if ended.cost is not None and Decimal(ended.cost):
            figures.append(dollars(Decimal(ended.cost)))
        why = f": {safe_line(ended.reason)}" if ended.reason else ""
        word = _WORDS.get(ended.status, ended.status)
        self.say(f"[{self.done:,}/{self.total:,}] {word} {safe_line(task.id)} ({', '.join(figures)}){why}")


def _nobody(_line: str) -> None:
    """Nobody looks."""
