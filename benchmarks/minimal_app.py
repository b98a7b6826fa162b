"""The yardstick: the smallest Textual application that shows a text, or appends words to one.

python -m benchmarks.minimal_app               shows READY
python -m benchmarks.minimal_app RESULT.json   appends words; writes the processor time of that to RESULT.json
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from textual.app import App, ComposeResult
from textual.widgets import Log

READY = "minimal-app-ready"
OVER = "minimal-app-over"


class MinimalApp(App[None]):
    BINDINGS = [("ctrl+d", "quit", "Quit")]

    def compose(self) -> ComposeResult:
        yield Log()

    async def on_mount(self) -> None:
        self.query_one(Log).write_line(READY)
        if len(sys.argv) > 1:
            self.run_worker(self.stream(Path(sys.argv[1])))

    async def stream(self, result: Path) -> None:
        from benchmarks.screen_run import DELAY, text

        await asyncio.sleep(0.5)
        log = self.query_one(Log)
        start = time.process_time()
        for word in text().split(" "):
            log.write(f"{word} ")
            await asyncio.sleep(DELAY)
        await asyncio.to_thread(result.write_text, json.dumps({"cpu": time.process_time() - start}))
        log.write_line(f"\n{OVER}")


if __name__ == "__main__":
    MinimalApp().run()
