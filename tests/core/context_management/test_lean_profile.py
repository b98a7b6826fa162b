"""Small windows: a short prompt and seven tools, so that at least half of the window is left for the conversation."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import PieceEstimator
from swecli.core.llm.text_tools import as_text
from swecli.core.llm.types import ModelInfo
from swecli.core.ports import BlobRef
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.retrieval.project import ProjectIndex
from swecli.core.sessions.results import reference_text, usual_excerpt
from swecli.core.tools.registry import LEAN_TOOLS, LEFT_OUT, MINIMAL_TOOLS, ToolRegistry, builtin_tools, small_schemas
from swecli.core.tools.session_tools import Scratchpad
from swecli.core.tools.web_search import SearchEngine, WebSearch
from swecli.features.language_servers.tool import Symbols
from swecli.features.memory.places import MemoryPlaces
from swecli.features.memory.tool import MemoryTool
from swecli.features.retrieval.tool import Locate
from swecli.features.subagents.tool import TaskTool
from swecli.library.figures import ContextBudget

MEMORY = MemoryTool(MemoryPlaces(None, None), 1_000, lambda text: False)
LOCATE = Locate(ProjectIndex(Path(), None).retrieval, ProjectIndex(Path(), None).missing)
SEARCH = WebSearch(SearchEngine("http://localhost/"))
REGISTRY = ToolRegistry((*builtin_tools(), TaskTool(lambda: ()), MEMORY, Scratchpad(), Symbols(), LOCATE, SEARCH))
HELLO = (Message("user", (TextPart("Fix the bug."),), "u1"),)


def manager() -> ContextManager:
    return ContextManager(REGISTRY.schemas(), small_tools=small_schemas(REGISTRY))


def info(window: int) -> ModelInfo:
    return ModelInfo("fake", f"m{window}", window, None, "endpoint")


def test_every_tool_of_swecli_is_in_or_out() -> None:
    assert sorted((*LEAN_TOOLS, *LEFT_OUT)) == sorted(REGISTRY.names())


@pytest.mark.parametrize("window", [4_097, 8_192, 16_384])
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


def test_the_smallest_windows_get_four_tools_and_an_example_of_each() -> None:
    request = manager().prepare(HELLO, info=info(4_096)).request
    assert tuple(tool.name for tool in request.tools) == tuple(MINIMAL_TOOLS)
    full = {tool.name: tool for tool in REGISTRY.schemas()}
    for tool in request.tools:
        example = json.loads(tool.description.partition(": ")[2])
        assert set(example) <= set(tool.parameters["properties"]) <= set(full[tool.name].parameters["properties"])
        assert set(tool.parameters.get("required", ())) <= set(example)
    told = as_text(request).system  # as a model without tools sees them
    assert PieceEstimator().count("".join(block.text for block in told)) <= 600


def test_the_user_chooses_the_profile_of_a_model() -> None:
    context = manager()
    chosen = {name: replace(info(8_192), profile=name) for name in ("full", "lean", "minimal")}
    counts = [len(context.prepare(HELLO, info=known).request.tools) for known in chosen.values()]
    assert counts == [len(REGISTRY.schemas()), len(LEAN_TOOLS), len(MINIMAL_TOOLS)]


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
