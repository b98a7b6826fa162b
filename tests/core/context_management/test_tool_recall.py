"""Finding tools of servers as they are, by words that a model would use: an own set beside the generated one."""

from __future__ import annotations

from pathlib import Path

from swecli.core.context_management.deferral import ToolIndex
from swecli.core.llm.types import ToolSchema

DATA = Path(__file__).parents[2] / "data"
RECALL = 0.95


def rows(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (DATA / name).read_text("utf-8").splitlines()]


TOOLS = [
    ToolSchema(f"mcp__{server}__{tool}", about, {"type": "object", "properties": {}}, server)
    for server, tool, about in rows("mcp-tools.tsv")
]


def missed() -> list[tuple[str, str, list[str]]]:
    """Queries whose tool is not among the first five, with what was found instead."""
    index = ToolIndex(TOOLS)
    found: list[tuple[str, str, list[str]]] = []
    for query, wanted in rows("mcp-queries.tsv"):
        name = f"mcp__{wanted.replace(' ', '__', 1)}"
        names = [tool.name for tool in index.search(query)]
        if name not in names:
            found.append((query, name, names))
    return found


def test_the_sets_are_large_and_hang_together() -> None:
    names = {tool.name for tool in TOOLS}
    queries = rows("mcp-queries.tsv")
    assert len(names) == len(TOOLS) >= 500
    assert len(queries) >= 200
    assert {f"mcp__{wanted.replace(' ', '__', 1)}" for _, wanted in queries} <= names


def test_recall_at_five() -> None:
    count = len(rows("mcp-queries.tsv"))
    lost = missed()
    assert 1 - len(lost) / count >= RECALL, "\n".join(f"{query}: {name}" for query, name, _ in lost)
