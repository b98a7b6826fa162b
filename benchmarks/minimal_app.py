"""The yardsticks: the smallest Textual application that shows a text and has an editor, and a plain write.

python -m benchmarks.minimal_app                 shows READY
python -m benchmarks.minimal_app edit            the same with an editor to type into
python -m benchmarks.minimal_app stream RESULT   appends 20,000 tokens at 2,000 a second; RESULT gets processor seconds
python -m benchmarks.minimal_app plain RESULT    writes them to standard output, without Textual
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

READY = "minimal-app-ready"
OVER = "minimal-app-over"


def plain(result: Path) -> None:
    """Each token is written at its time and flushed."""
    from benchmarks.played_session import RATE, pieces

    given = pieces()
    cpu, start = time.process_time(), time.monotonic()
    for number, piece in enumerate(given):
        sys.stdout.write(piece)
        sys.stdout.flush()
        ahead = start + (number + 1) / RATE - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
    result.write_text(json.dumps({"cpu": time.process_time() - cpu}))
    sys.stdout.write(f"\n{OVER}\n")
    sys.stdout.flush()
    time.sleep(1.0)


def main() -> None:
    if sys.argv[1:2] == ["plain"]:
        plain(Path(sys.argv[2]))
        return
    from textual.app import App, ComposeResult
    from textual.widgets import Log, TextArea

    class MinimalApp(App[None]):
        BINDINGS = [("ctrl+d", "quit", "Quit")]
        AUTO_FOCUS = "TextArea"

        def compose(self) -> ComposeResult:
            yield Log()
            if sys.argv[1:] == ["edit"]:
                editor = TextArea()
                editor.cursor_blink = False
                yield editor

        async def on_mount(self) -> None:
            self.query_one(Log).write_line(READY)
            if sys.argv[1:2] == ["stream"]:
                self.run_worker(self.stream(Path(sys.argv[2])))

        async def stream(self, result: Path) -> None:
            from benchmarks.played_session import RATE, pieces

            given = pieces()
            await asyncio.sleep(0.5)
            log = self.query_one(Log)
            cpu, start = time.process_time(), time.monotonic()
            for number, piece in enumerate(given):
                log.write(piece)
                ahead = start + (number + 1) / RATE - time.monotonic()
                if ahead > 0:
                    await asyncio.sleep(ahead)
            await asyncio.to_thread(result.write_text, json.dumps({"cpu": time.process_time() - cpu}))
            log.write_line(f"\n{OVER}")

    MinimalApp().run()


if __name__ == "__main__":
    main()
