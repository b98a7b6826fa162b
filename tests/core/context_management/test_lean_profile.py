"""Small windows: a short prompt and seven tools, so that at least half of the window is left for the conversation."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.llm.types import ModelInfo
from swecli.core.memory.places import MemoryPlaces
from swecli.core.ports import BlobRef
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.retrieval.project import ProjectIndex
from swecli.core.sessions.results import reference_text, usual_excerpt
from swecli.core.tools.memory import MemoryTool
from swecli.core.tools.registry import LEAN_TOOLS, LEFT_OUT, ToolRegistry, builtin_tools, lean_schemas
from swecli.core.tools.search import Locate
from swecli.core.tools.session_tools import Scratchpad, TaskTool
from swecli.core.tools.symbols import Symbols
from swecli.core.tools.web_search import SearchEngine, WebSearch
from swecli.library import ContextBudget

MEMORY = MemoryTool(MemoryPlaces(None, None), 1_000, lambda text: False)
LOCATE = Locate(ProjectIndex(Path(), None).retrieval, ProjectIndex(Path(), None).missing)
SEARCH = WebSearch(SearchEngine("http://localhost/"))
REGISTRY = ToolRegistry((*builtin_tools(), TaskTool(lambda: ()), MEMORY, Scratchpad(), Symbols(), LOCATE, SEARCH))
HELLO = (Message("user", (TextPart("Fix the bug."),), "u1"),)


def manager() -> ContextManager:
    return ContextManager(REGISTRY.schemas(), lean_tools=lean_schemas(REGISTRY))


def info(window: int) -> ModelInfo:
    return ModelInfo("fake", f"m{window}", window, None, "endpoint")


def test_every_tool_of_swecli_is_in_or_out() -> None:
    assert sorted((*LEAN_TOOLS, *LEFT_OUT)) == sorted(REGISTRY.names())


@pytest.mark.parametrize("window", [4_096, 8_192, 16_384])
def test_a_small_window_keeps_half_for_the_conversation(window: int) -> None:
    prepared = manager().prepare(HELLO, info=info(window))
    assert tuple(tool.name for tool in prepared.request.tools) == LEAN_TOOLS
    assert prepared.budget.effective - prepared.budget.upper >= window / 2
    full = {tool.name: tool for tool in REGISTRY.schemas()}
    assert all(len(tool.description) <= len(full[tool.name].description) for tool in prepared.request.tools)
    for tool in prepared.request.tools:
        known = full[tool.name].parameters["properties"]
        assert all(known[name] == schema for name, schema in tool.parameters["properties"].items())
        assert set(full[tool.name].parameters.get("required", ())) <= set(tool.parameters.get("required", ()))
        assert set(tool.parameters.get("required", ())) <= set(tool.parameters["properties"])


def test_a_larger_window_gets_everything_and_a_switch_changes_it() -> None:
    context = manager()
    assert context.prepare(HELLO, info=info(16_385)).request.tools == REGISTRY.schemas()
    assert len(context.prepare(HELLO, info=info(8_192)).request.tools) == 7
    assert context.prepare(HELLO, info=info(200_000)).request.tools == REGISTRY.schemas()


def test_tools_from_elsewhere_stay() -> None:
    context = ContextManager(REGISTRY.schemas())
    assert context.prepare(HELLO, info=info(8_192)).request.tools == REGISTRY.schemas()


def test_what_the_words_for_a_small_window_name_is_offered() -> None:
    request = manager().prepare(HELLO, info=info(8_192)).request
    left_out = [name for name in LEFT_OUT if name not in ("job", "task")]  # words of their own
    told = "".join(block.text for block in request.system) + "".join(tool.description for tool in request.tools)
    assert not [name for name in left_out if name in told]
    reference = reference_text(BlobRef("r1", "run_command", 9), "some text", usual_excerpt(9, failed=False))
    assert not [name for name in left_out if name in reference]


def test_a_window_that_fills_up_names_the_tool_that_makes_room() -> None:
    long = (Message("user", (TextPart("many words " * 1_850),), "u1"),)
    prepared = manager().prepare(long, info=info(8_192))
    assert prepared.budget.level == "warn"
    assert "compact_context" in {tool.name for tool in prepared.request.tools}
    assert "/compact" in prepared.warning


def test_each_source_of_tools_is_a_component() -> None:
    acme = [replace(schema, name=f"acme_{schema.name}", source="acme") for schema in REGISTRY.schemas()[:2]]
    found = ContextManager((*REGISTRY.schemas(), *acme)).prepare(HELLO, info=info(100_000)).budget
    parts = {part.name: part.tokens for part in found.components}
    assert parts["tool descriptions of acme"] > 0
    assert ContextBudget.of(found).tool_descriptions == parts["tool descriptions of acme"] + parts["tool descriptions"]
