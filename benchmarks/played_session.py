"""The interface alone, on a long session without an engine, for what is typed into it from outside.

    python -m benchmarks.played_session ITEMS FOLDER

Four messages have an effect: "append" adds items one by one, "stream" answers with 20,000 tokens at 2,000 a second,
"diff" shows a change of 2,000 lines. FOLDER gets a JSON file for each when it is over: when what was handed to the
interface, in seconds of the monotonic clock, and the processor seconds meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from swecli.assembly.succession import Succession
from swecli.core.engine.state import Totals
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import DiffBlock, TerminalBlock
from swecli.core.protocol.commands import Command, Steer, Submit
from swecli.core.protocol.events import (
    Body,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    SessionStarted,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from swecli.launch import LaunchOptions
from swecli.tui.launch import run
from swecli.tui.program import Program

READY = "session-is-shown"
APPENDED = 30
APPEND_GAP = 0.15
TOKENS, RATE = 20_000, 2_000
DIFF_LINES = 2_000

GLYPHS = tuple(chr(number) for number in range(0x100, 0x24F) if chr(number).isalpha())
"""Letters that occur nowhere else: where one is seen, what carried it has been painted."""
STREAM_END, DIFF_END = GLYPHS[-1], GLYPHS[-2]
APPENDED_GLYPHS = GLYPHS[-2 - APPENDED : -2]

PARAGRAPH = (
    "The parser reads one line after the other and keeps a stack of open blocks, so that `close_all` can end "
    "them in order. That is why the **last** line matters: it decides which block is still open.\n\n"
    "- first the blocks are opened\n- then their text is kept\n\n"
    "```python\ndef close_all(stack):\n    while stack:\n        stack.pop().close()\n```\n\n"
)


def pieces() -> list[str]:
    """An answer of 20,000 tokens as models write them, in the pieces in which it comes."""
    words = (PARAGRAPH * (TOKENS // len(PARAGRAPH.split(" ")) + 99)).split(" ")
    return [f"{word} " for word in words[: TOKENS - 1]] + [f"\n\n{STREAM_END}"]


def history(items: int) -> list[Body]:
    """A session of so many items: a message, an answer, a command's output and a change, again and again."""
    bodies: list[Body] = []
    output = "".join(f"tests/test_{n}.py::test_case_{n} PASSED\n" for n in range(12))
    old = "".join(f"value_{n} = compute({n})\n" for n in range(20))
    for number in range(0, items, 4):
        bodies += said(f"u{number}", "user", f"Please look at part {number} and mend what is wrong there.")
        bodies += said(f"a{number}", "text", f"Part {number}.\n\n{PARAGRAPH}")
        shown = TerminalBlock("pytest -q", output, 0)
        bodies += tool(f"t{number}", "run_command", "pytest -q", shown, "exit 0")
        change = DiffBlock(f"src/part_{number}.py", old, old.replace("compute(7)", f"other({number})"))
        bodies += tool(f"e{number}", "edit_file", change.path, change, "+1 -1")
    return bodies


def said(item: str, kind: Any, text: str) -> list[Body]:
    return [ItemStarted(item, kind), ItemCompleted(item, "ok", (TextPart(text),))]


def tool(item: str, name: str, title: str, block: TerminalBlock | DiffBlock, detail: str) -> list[Body]:
    call = ItemCheckpointed(item, ToolCallPart(item, name, "{}"), title, running=True)
    done = ItemCompleted(item, "ok", (ToolResultPart(item, name, "done"),), (block,), detail, 0.1)
    return [ItemStarted(item, "tool", name), call, done]


class PlayedSession:
    """As much of a session as the interface needs for this. The fake one of the tests would cost 14 MiB."""

    kept = "nothing"

    def __init__(self, items: int, folder: Path) -> None:
        self._folder = folder
        self._past = [
            SessionStarted("/proj", "bench/model", "default", "0"),
            *history(items),
            *said("r", "text", READY),
        ]
        self._live: asyncio.Queue[Event | None] = asyncio.Queue()
        self._seq = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.closed = False
        self.view: Any = SimpleNamespace(
            session_id="bench", started_seq=1, cwd=Path.cwd(), mode="default", model=ModelInfo("bench", "model"),
            effort=None, busy=False, budget=None, last_usage=None, totals=Totals(), queue=(), todos=(), permission=None,
            question=None, sandbox=None, jobs=(), messages=(), instructions=(), yolo=False, suggestion=None,
            forecast=lambda text, images=0, attached=0: None,
        )  # fmt: skip

    def _event(self, body: Body) -> Event:
        self._seq += 1
        return Event(self._seq, 1_700_000_000.0, "bench", 0, body)

    def emit(self, *bodies: Body) -> float:
        """Hand over events. Returns when."""
        for body in bodies:
            self._live.put_nowait(self._event(body))
        return time.monotonic()

    async def subscribe(self, *, replay: bool = False, turns: int | None = None) -> AsyncIterator[Event]:
        past, self._past = self._past, []
        for body in past if replay else ():
            yield self._event(body)
        del past
        while (event := await self._live.get()) is not None:
            yield event

    def send(self, command: Command) -> None:
        plays: dict[str, Callable[[], Any]] = {"append": self._append, "stream": self._stream, "diff": self._diff}
        if isinstance(command, Submit | Steer) and command.text in plays:
            task = asyncio.create_task(self._play(command.text, plays[command.text]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _play(self, name: str, play: Callable[[], Any]) -> None:
        cpu = time.process_time()
        self.emit(TurnStarted(f"turn-{name}"))
        times = await play()
        self.emit(TurnEnded("done"))
        result = json.dumps({"times": times, "cpu": time.process_time() - cpu})
        temporary = self._folder / f"{name}.new"
        await asyncio.to_thread(temporary.write_text, result)
        temporary.replace(self._folder / f"{name}.json")

    async def _append(self) -> Sequence[float]:
        times = []
        for number, glyph in enumerate(APPENDED_GLYPHS):
            await asyncio.sleep(APPEND_GAP)
            times.append(self.emit(*said(f"n{self._seq}-{number}", "text", f"Appended {glyph}.\n\n{PARAGRAPH}{glyph}")))
        await asyncio.sleep(APPEND_GAP)
        return times

    async def _stream(self) -> Sequence[float]:
        item, start = f"s{self._seq}", time.monotonic()
        self.emit(ItemStarted(item, "text"))
        given = pieces()
        for number, piece in enumerate(given):
            self.emit(ItemDelta(item, piece))
            ahead = start + (number + 1) / RATE - time.monotonic()
            if ahead > 0:
                await asyncio.sleep(ahead)
        end = time.monotonic()
        self.emit(ItemCompleted(item, "ok", (TextPart("".join(given)),)))
        await asyncio.sleep(0.5)
        return [start, start + TOKENS / RATE, end]

    async def _diff(self) -> Sequence[float]:
        new = "".join(f"line_{n} = other({n})\n" for n in range(DIFF_LINES // 2 - 1)) + DIFF_END
        old = "".join(f"line_{n} = compute({n})\n" for n in range(DIFF_LINES // 2))
        block = DiffBlock("src/long.py", old, new)
        await asyncio.sleep(0.5)
        cpu = time.process_time()
        at = self.emit(*tool(f"d{self._seq}", "edit_file", block.path, block, f"+1000 -1000 {DIFF_END}"))
        await asyncio.sleep(0.1)
        return [at, time.process_time() - cpu]

    async def close(self, reason: str = "other") -> None:
        self.closed = True
        self._live.put_nowait(None)


def main() -> int:
    items, folder = int(sys.argv[1]), Path(sys.argv[2])

    async def opened(_: LaunchOptions) -> Any:
        return PlayedSession(items, folder)

    return run(Program(open=Succession(LaunchOptions(folder), opened)))


if __name__ == "__main__":
    sys.exit(main())
