"""One call of every tool: its arguments, what stands ready for it, and what the tool itself makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from msgspec import structs
from msgspec.structs import replace

from swecli.core.extensions.skills import read_skill
from swecli.core.language_servers.definitions import CodePlace
from swecli.core.llm.types import ToolSchema
from swecli.core.ports import BlobStore, TranscriptHit, TranscriptSearch
from swecli.core.protocol.blocks import DisplayBlock, TerminalBlock
from swecli.core.retrieval.project import ProjectIndex
from swecli.core.tools import web_fetch, web_search
from swecli.core.tools.arguments import parse_arguments
from swecli.core.tools.base import AnyTool, ToolOutcome
from swecli.core.tools.session_tools import Scratchpad, SkillTool, ToolSearch
from swecli.core.tools.web_search import SearchEngine, WebSearch
from swecli.core.web.fetch import Limits, Page
from swecli.core.workspace.jobs import JobInfo, Jobs
from swecli.features.language_servers.tool import Symbols
from swecli.features.memory.places import MemoryPlaces
from swecli.features.memory.tool import MemoryTool
from swecli.features.retrieval.tool import Locate
from swecli.features.subagents.tool import TaskTool
from tests.core.extensions.support import found
from tests.support.tool_context import FixedAnswers, ToolBench

OLD = "def price(pens):\n    if pens > 10:\n        return 95\n    return 100\n"
TESTS = "from pricing import price\n\n\ndef test_ten():\n    assert price(10) == 95\n"
FOUND = (
    '{"results": [{"url": "https://example.org/prices", "title": "Prices", "content": "Ten pens are cheaper."},'
    ' {"url": "https://example.com/日本", "title": "Pens of 日本", "content": "Sold by the dozen."}]}'
)
PAGE = "<html><title>Prices</title><h1>Prices</h1><p>Ten pens are cheaper.</p></html>"

CALLS: Mapping[str, Mapping[str, object]] = {
    "apply_patch": {
        "input": "*** Begin Patch\n*** Update File: shop/pricing.py\n@@\n-    if pens > 10:\n+    if pens >= 10:\n"
        "*** Add File: CHANGES.md\n+Ten pens are cheaper.\n*** End Patch"
    },
    "ask_user": {
        "questions": [
            {"question": "Which price is meant?", "options": [{"label": "95", "description": "as in the README"}]}
        ]
    },
    "compact_context": {},
    "edit_file": {"path": "shop/pricing.py", "old_string": "pens > 10", "new_string": "pens >= 10"},
    "job": {"id": "j1", "wait": 5},
    "list_files": {"path": "shop"},
    "locate": {"query": "the price of pens"},
    "read_file": {"path": "shop/pricing.py", "offset": 2},
    "read_result": {"ref_id": "r7"},
    "recall": {"query": "price of pens"},
    "run_command": {"command": "printf '\\033[32m1 passed\\033[0m\\n10%%\\r100%%\\n'; exit 3"},
    "search": {"pattern": "price", "path": "shop"},
    "skill": {"name": "prices", "arguments": "pens"},
    "symbols": {"action": "references", "path": "shop/pricing.py", "symbol": "price"},
    "task": {"description": "Find the price", "prompt": "Where is the price?", "agent": "explore"},
    "tool_search": {"query": "change a calendar"},
    "memory": {"command": "create", "path": "/memories/build.md", "file_text": "Tests: make test\n"},
    "scratchpad": {"text": "The price is 95.\nTests are next."},
    "update_todos": {
        "todos": [
            {"text": "find the price", "status": "completed"},
            {"text": "correct it", "status": "in_progress"},
            {"text": "run the tests"},
        ]
    },
    "web_fetch": {"url": "https://example.org/prices?pens=10"},
    "web_search": {"query": "price of ten pens"},
    "write_file": {"path": "notes/日本.md", "content": "# Notes\n\nTen pens.\n"},
}
"""Arguments by the tool's name."""


@dataclass(frozen=True)
class Made:
    """A call as the transcript gets to know it: ``preview`` before consent, ``blocks`` and ``detail`` afterwards."""

    name: str
    arguments: str
    title: str
    preview: tuple[DisplayBlock, ...]
    blocks: tuple[DisplayBlock, ...]
    detail: str
    text: str


class _Stored:
    """What left the context: one result, one entry."""

    def get(self, ref: str) -> bytes | None:
        return b"a long result\n" * 5

    def search(self, query: str, limit: int) -> tuple[TranscriptHit, ...]:
        return (TranscriptHit("t12", "ten pens cost 95", 1.0, "the user"),)

    def request_compaction(self) -> str:
        return "Before the next step."


class _Jobs:
    """A server that has ended."""

    def info(self, job: str) -> JobInfo:
        return JobInfo(job, "make serve", "t1", 7, 1000.0, "exited", 1, 1012.5)

    async def wait(self, job: str, seconds: float) -> None:
        return None

    async def new_output(self, job: str, head: int, tail: int) -> str:
        return "listening on port 8000\nstopped\n"


class _Agents:
    """A subagent that has an answer."""

    def expect(self, item: str) -> None:
        """Its number is not shown."""

    async def work(self, item: str, task: object, output: object) -> ToolOutcome:
        return ToolOutcome("The price is in shop/pricing.py:3.", (), "done, 3 steps")


class _Code:
    """A language server that knows two places."""

    async def ask(self, what: str, path: Path, line: int, column: int) -> Sequence[CodePlace]:
        return (CodePlace(path, line), CodePlace(path.parent / "tests" / "test_pricing.py", 5))


async def made(name: str, folder: Path) -> Made:
    """Call the tool of this name in ``folder`` with its sample arguments."""
    bench = ToolBench(folder)
    bench.file("shop/pricing.py", OLD)
    bench.file("shop/tests/test_pricing.py", TESTS)
    bench.asker = FixedAnswers((("95",),))
    stored: Any = _Stored()
    context = replace(
        bench.context,
        asker=bench.asker,
        blobs=cast("BlobStore", stored),
        transcript=cast("TranscriptSearch", stored),
        request_compaction=stored.request_compaction,
        companion=lambda kind: _Agents(),
        jobs=cast("Jobs", _Jobs()) if name == "job" else None,
    )
    skill = read_skill(found("---\nname: prices\ndescription: d\n---\nUse pounds.", "prices", "skills"))
    others: dict[str, AnyTool] = {
        "locate": Locate(ProjectIndex(bench.context.cwd, None).retrieval, lambda: "it is being made"),
        "skill": SkillTool(lambda: {"prices": skill}),
        "symbols": Symbols(cast("Any", _Code())),
        "task": TaskTool(lambda: (("explore", "Searches and reads."),)),
        "memory": MemoryTool(MemoryPlaces(bench.folder / ".swecli" / "memory", None), 1_000, lambda text: False),
        "scratchpad": Scratchpad(),
        "tool_search": ToolSearch(lambda query: (ToolSchema("mcp__calendar__move", "Moves a date.", {}),), lambda: 3),
        "web_search": WebSearch(SearchEngine("http://localhost:8888/search")),
    }
    tool = others.get(name) or bench.registry.get(name)
    assert tool is not None
    arguments = json.dumps(CALLS[name], ensure_ascii=False)
    params = parse_arguments(arguments, tool)

    async def page(url: str, limits: Limits, environment: Mapping[str, str]) -> Page:
        return Page(url, 200, "text/html", PAGE.encode())

    async def results(url: str, limits: Limits, environment: Mapping[str, str]) -> Page:
        return Page(url, 200, "application/json", FOUND.encode())

    with patch.object(web_fetch, "fetch", page), patch.object(web_search, "fetch", results):
        preview = await tool.preview(params, context)
        outcome = await tool.run(params, context)
    blocks = tuple(
        structs.replace(block, cwd="", duration=1.2) if isinstance(block, TerminalBlock) else block
        for block in outcome.blocks
    )
    return Made(name, arguments, tool.title(params, context), preview.blocks, blocks, outcome.detail, outcome.text)
