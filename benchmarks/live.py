"""One long turn against a server with real cache rules: what clearing costs at each window.

The whole program runs (`swecli -p`, then `-p -c`), once for each window, against a server on 127.0.0.1 that speaks
Anthropic's protocol and charges each request by the rules of its cache: breakpoints, 20 blocks of looking back, five
minutes. The model reads one file after the other, and in later turns only what it can't see any more. Cost is in units
of one uncached input token.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.replay import SUMMARY
from swecli.features.lab.prefix_cache import Charge, PrefixCache
from tests.support.program import Program

WINDOWS = (32_000, 64_000, 128_000, 200_000)
FILES, LINES = 26, 240
LATER = ((0, 1, 2), (8, 9, 10), (23, 24, 25))
"""Files that the turns after the first need."""
CHARACTERS_PER_TOKEN = 3.6
ASKED_FOR_SUMMARY = "Write the summary that will take the place"


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    return [figure for window in WINDOWS for figure in _figures(window, played(window))]


@dataclass
class Played:
    """One session: what each request was charged, with the tokens of its answer, and what the program told."""

    requests: list[tuple[Charge, int]] = field(default_factory=list)
    first_turn: int = 0
    """Requests of the first turn."""
    breaks: int = 0
    """Requests whose beginning, sent before, had to be computed again for the most part."""
    gone: int = 0
    """Files whose whole text was not before the model when it wrote the first turn's answer."""
    read_again: int = 0
    events: list[Mapping[str, Any]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    def batches(self, *, clearing: bool) -> list[Mapping[str, Any]]:
        """Completed clearings or compactions."""
        done = [body for body in self.events if body["type"] == "compaction_completed"]
        return [body for body in done if (body["strategies"] == ["clearing"]) is clearing]


class Server(ThreadingHTTPServer):
    """Nobody is told of a client that does not wait for its answer; a failure of the run ends it anyway."""

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection ended early."""


class Reader:
    """The model: wants files, and reads those whose middle line it can't see."""

    def __init__(self, played: Played) -> None:
        self.played = played
        self.wanted: list[int] = []
        self.turn = 0
        self._cache = PrefixCache(lambda block: 0, time.monotonic)
        self._total = 0

    def begin(self, wanted: list[int]) -> None:
        """The next turn needs these files."""
        self.wanted, self.turn = wanted, self.turn + 1

    def answer(self, body: Mapping[str, Any]) -> tuple[Charge, dict[str, Any]]:
        """The content block of the answer, and what the request is charged."""
        charge = self._charge(body)
        said = json.dumps(body["messages"])
        if ASKED_FOR_SUMMARY in said:
            return charge, self._ends(charge, SUMMARY)
        self.played.breaks += charge.read < 0.5 * min(self._total, charge.total)
        self._total = charge.total
        while self.wanted:
            number = self.wanted.pop(0)
            if _middle(number) not in said:
                self.played.read_again += self.turn > 1
                path = {"path": f"file_{number:02}.py"}
                self.played.requests.append((charge, 60))
                call = f"c{len(self.played.requests)}"
                return charge, {"type": "tool_use", "id": call, "name": "read_file", "input": path}
        if self.turn == 1:
            self.played.gone = sum(_middle(number) not in said for number in range(FILES))
        return charge, self._ends(charge, "This is what the files do: they hold numbers and give them back.")

    def _ends(self, charge: Charge, text: str) -> dict[str, Any]:
        self.played.requests.append((charge, len(text) // 4))
        return {"type": "text", "text": text}

    def _charge(self, body: Mapping[str, Any]) -> Charge:
        blocks: list[tuple[int, int]] = []
        marks: list[int] = []
        for role, block in _blocks(body):
            text = json.dumps({name: value for name, value in block.items() if name != "cache_control"}, sort_keys=True)
            if "cache_control" in block:
                marks.append(len(blocks))
            blocks.append((hash((role, text)), round(len(text) / CHARACTERS_PER_TOKEN)))
        return self._cache.charge_blocks(blocks, marks)


def _blocks(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The content blocks of a request in the order of the cache."""
    for name in ("tools", "system"):
        for block in body.get(name, ()):
            yield name, block
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield message["role"], block


def _middle(number: int) -> str:
    return f"value_{number}_{LINES // 2} = "


def _file(number: int) -> str:
    return "".join(f"value_{number}_{line} = compute({line * 37}, 'part {number}')\n" for line in range(LINES))


def played(window: int) -> Played:
    """One session in a window of so many tokens."""
    result = Played()
    reader = Reader(result)
    server = Server(("127.0.0.1", 0), _handler(reader))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as name:
            _play(Path(name), window, reader, f"http://127.0.0.1:{server.server_address[1]}")
    finally:
        server.shutdown()
        server.server_close()
    return result


def _play(place: Path, window: int, reader: Reader, url: str) -> None:
    home, project = place / "home", place / "project"
    for folder in (home, project):
        folder.mkdir(parents=True)
    for number in range(FILES):
        (project / f"file_{number:02}.py").write_text(_file(number))
    (home / "config.toml").write_text(f"[agent]\ncontext_budget = {window}\nmax_output_tokens = 8000\n")
    program = Program(project, home, {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url})
    for turn, wanted in enumerate((tuple(range(FILES)), *LATER)):
        reader.begin(list(wanted))
        again = ("-c",) if turn else ()
        options = ("-m", "anthropic/reader", "--output-format", "stream-json")
        ended = program.run("-p", f"Look at the files, part {turn}.", *again, *options, timeout=300)
        reader.played.ended.append(ended.code)
        if ended.code:
            raise RuntimeError(f"turn {turn} ended with {ended.code}: {ended.stderr[-2000:]}")
        reader.played.events += ended.events
        reader.played.first_turn = reader.played.first_turn or len(reader.played.requests)


def _handler(reader: Reader) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.path.endswith("/messages"):
                self.send_error(404)
                return
            with lock:
                charge, block = reader.answer(body)
            text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _stream(charge, block))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(text.encode())

        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _stream(charge: Charge, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = {
        "input_tokens": charge.plain,
        "cache_creation_input_tokens": charge.written,
        "cache_read_input_tokens": charge.read,
        "output_tokens": 1,
    }
    message = {"id": "m", "type": "message", "role": "assistant", "model": "reader", "content": [], "usage": usage}
    yield {"type": "message_start", "message": message}
    calls = block["type"] == "tool_use"
    empty = {**block, "input": {}} if calls else {"type": "text", "text": ""}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    arguments = {"type": "input_json_delta", "partial_json": json.dumps(block.get("input"))}
    delta = arguments if calls else {"type": "text_delta", "text": block["text"]}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = {"stop_reason": "tool_use" if calls else "end_turn"}
    yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 60}}
    yield {"type": "message_stop"}


def _figures(window: int, played: Played) -> list[tuple[str, float, str]]:
    clearings, compactions = played.batches(clearing=True), played.batches(clearing=False)
    charges = [charge for charge, _ in played.requests]
    freed = sum(body["tokens_before"] - body["tokens_after"] for body in clearings)
    stubs = [sum(entry["kind"] == "stub" for entry in body["view"]) for body in clearings]
    steps = [body["budget"] for body in played.events if body["type"] == "step_started"]
    return [
        (f"{window:,}: requests, those of the first turn", len(played.requests), f"({played.first_turn})"),
        ("  cost", sum(charge.cost(output) for charge, output in played.requests), "input tokens"),
        ("  of that the first turn", sum(c.cost(o) for c, o in played.requests[: played.first_turn]), "input tokens"),
        ("  tokens computed, not read from the cache", sum(c.written + c.plain for c in charges), ""),
        ("  cached share of all requests", 100 * sum(c.read for c in charges) / sum(c.total for c in charges), "%"),
        ("  requests that missed most of what was sent before", played.breaks, ""),
        ("  batches of clearing", len(clearings), f"({freed:,} tokens; stubs afterwards {stubs})"),
        ("  compactions", len(compactions), str([", ".join(body["strategies"]) for body in compactions])),
        ("  files not before the model at the first answer", played.gone, f"of {FILES}"),
        ("  files read again in later turns", played.read_again, f"of {sum(map(len, LATER))}"),
        ("  fullest request", 100 * max(budget["upper"] / budget["effective"] for budget in steps), "%"),
    ]
