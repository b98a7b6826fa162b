"""The same task through every protocol is the same session, and what a provider wants back comes back."""

from __future__ import annotations

import json
import shutil
import sys
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners, Received
from tests.support.program import ROOT, Ended, Program

pytestmark = pytest.mark.e2e

TASK = """
[[step]]
reasoning = "Where is the discount? In pricing, I think."
text = "I look."
call = [
    { tool = "search", arguments = { pattern = "quantity >" } },
    { tool = "list_files", arguments = { path = "basket" } },
]
[[step]]
expect = { last_result = "basket/pricing.py" }
reasoning = "There it is."
call = [{ tool = "read_file", arguments = { path = "basket/pricing.py" } }]
[[step]]
expect = { last_result = "quantity > pieces" }
[[step.call]]
tool = "edit_file"
arguments = { path = "basket/pricing.py", old_string = "quantity > pieces", new_string = "quantity >= pieces" }
[[step]]
expect = { last_result = "basket/pricing.py" }
text = "Fixed. Größe: 5 → ok"
"""
AGAIN = """
[[step]]
expect = { last_user = "And now?", request = "quantity >= pieces", tools = true }
reasoning = "One more look."
call = [{ tool = "read_file", arguments = { path = "basket/__init__.py" } }]
[[step]]
text = "All is well."
"""

MODELS = {
    "openai": "openai/m",
    "anthropic": "anthropic/claude-sonnet-5-5",
    "responses": "resp/gpt-5.6",
    "gemini": "gemini/gemini-3.8-flash",
    "ollama": "ollama/qwen3",
}
PROTOCOLS = tuple(MODELS)


def server(script: str, protocol: str, **manners: Any) -> LoopbackServer:
    return LoopbackServer(parse_script(script, python=sys.executable), protocol, Manners(**manners))  # pyright: ignore[reportArgumentType]


def run(folder: Path, provider: LoopbackServer, protocol: str, *arguments: str) -> Ended:
    settings = folder / "settings.toml"
    settings.write_text(
        f'[providers.resp]\nprotocol = "openai-responses"\nbase_url = "{provider.url}/v1"\n[models.effort]\n'
    )
    variables = {**provider.environment(), "SWECLI_CONFIG": str(settings)}
    project = folder / "project"
    if not project.exists():
        shutil.copytree(ROOT / "swecli" / "demo" / "project", project)
    program = Program(project, folder / "home", variables)
    return program.run(*arguments, "-m", MODELS[protocol], "--yolo", "--output-format", "stream-json")


def story(ended: Ended, folder: Path) -> list[tuple[Any, ...]]:
    """What a person saw: items with their content, without ids, times and figures."""
    kinds: dict[str, tuple[str, str]] = {}
    told: list[tuple[Any, ...]] = []
    for body in ended.events:
        if body["type"] == "item_started":
            kinds[body["item"]] = (body["kind"], body.get("name", ""))
        elif body["type"] == "item_completed" and kinds[body["item"]][0] != "opaque":
            texts = tuple(part.get("text", "") for part in body["parts"])
            told.append((*kinds[body["item"]], body["status"], json.dumps(texts).replace(str(folder), "")))
        elif body["type"] in ("turn_ended", "file_changed"):
            told.append((body["type"], body.get("outcome", "")))
    # Calls that run together end in any order.
    return [entry for is_tool, run in groupby(told, _is_tool) for entry in (sorted(run) if is_tool else run)]


def _is_tool(entry: tuple[Any, ...]) -> bool:
    return entry[0] == "tool"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    folder = tmp_path_factory.mktemp("reference")
    with server(TASK, "openai") as provider:
        return story(run(folder, provider, "openai", "-p", "Fix the discount"), folder)


@pytest.mark.parametrize(
    ("protocol", "single_bytes"),
    [*((name, False) for name in PROTOCOLS[1:]), *((name, True) for name in PROTOCOLS[2:])],
)
def test_the_same_task_is_the_same_session(
    tmp_path: Path, protocol: str, single_bytes: bool, expected: list[tuple[Any, ...]]
) -> None:
    with server(TASK, protocol, chunk_bytes=int(single_bytes), keep_alives=single_bytes) as provider:
        ended = run(tmp_path, provider, protocol, "-p", "Fix the discount")
    assert ended.code == 0, ended.stderr
    assert story(ended, tmp_path) == expected
    assert ended.result["text"] == "Fixed. Größe: 5 → ok"
    assert ended.result["usage"]["input_total"] > 0
    assert "quantity >= pieces" in (tmp_path / "project" / "basket" / "pricing.py").read_text()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_must_come_back_comes_back_also_after_a_resume(tmp_path: Path, protocol: str) -> None:
    with server(TASK, protocol) as provider:
        assert run(tmp_path, provider, protocol, "-p", "Fix the discount").code == 0
        asked = provider.asked
    with server(AGAIN, protocol) as provider:
        ended = run(tmp_path, provider, protocol, "-c", "-p", "And now?")
        assert ended.code == 0, ended.stderr
        asked = [*asked, *provider.asked]
    check = {"openai": chat, "anthropic": messages, "responses": items, "gemini": contents, "ollama": ollama}[protocol]
    check(asked)


def prefixes(asked: list[Received], key: str, without: int) -> None:
    """Each request begins with the one before, but for the newest entry, which carries what is not history."""
    for one, later in pairwise(asked):
        kept = one.body[key][: len(one.body[key]) - without]
        assert without_marks(later.body[key][: len(kept)]) == without_marks(kept)


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_marks(entry) for key, entry in value.items() if key != "cache_control"}
    return [without_marks(entry) for entry in value] if isinstance(value, list) else value


def chat(asked: list[Received]) -> None:
    prefixes(asked, "messages", 1)
    ours = [message for message in asked[-1].body["messages"] if message["role"] == "assistant"]
    assert [message.get("reasoning_content") for message in ours[:2]] == [
        "Where is the discount? In pricing, I think.",
        "There it is.",
    ]


def messages(asked: list[Received]) -> None:
    prefixes(asked, "messages", 1)
    ours = [message["content"] for message in asked[-1].body["messages"] if message["role"] == "assistant"]
    thoughts = [block for content in ours for block in content if block["type"] == "thinking"]
    assert [block["thinking"] for block in thoughts][:2] == [
        "Where is the discount? In pricing, I think.",
        "There it is.",
    ]
    assert all(block["signature"] for block in thoughts)
    assert [block["type"] for block in ours[0]] == ["thinking", "text", "tool_use", "tool_use"]


def items(asked: list[Received]) -> None:
    prefixes(asked, "input", 1)
    kinds = [item.get("type") or item["role"] for item in asked[1].body["input"]]
    assert kinds[-6:-2] == ["reasoning", "message", "function_call", "function_call"]
    reasoning = [item for item in asked[-1].body["input"] if item.get("type") == "reasoning"]
    assert [item["encrypted_content"] for item in reasoning][:2] == ["encrypted-1", "encrypted-2"]
    spoken = [item for item in asked[-1].body["input"] if item.get("id", "").startswith("msg_")]
    assert all(item["phase"] == "commentary" for item in spoken)


def contents(asked: list[Received]) -> None:
    prefixes(asked, "contents", 1)
    ours = [content["parts"] for content in asked[-1].body["contents"] if content["role"] == "model"]
    calls = [part for parts in ours for part in parts if "functionCall" in part]
    assert [part.get("thoughtSignature") for part in calls] == [
        "signature-1",
        None,
        "signature-2",
        "signature-3",
        "signature-1",
    ]
    assert ["id" in part["functionCall"] for part in calls] == [True, True, False, True, True]
    assert any(
        part.get("thoughtSignature") == "signature-4" and not part["text"]
        for parts in ours
        for part in parts
        if "text" in part
    )


def ollama(asked: list[Received]) -> None:
    prefixes(asked, "messages", 1)
    ours = [message for message in asked[-1].body["messages"] if message["role"] == "assistant"]
    assert ours[0]["thinking"] == "Where is the discount? In pricing, I think."
    assert {request.body["options"]["num_ctx"] for request in asked} == {32_000}


@pytest.mark.parametrize(("before", "after"), [*pairwise([*PROTOCOLS, PROTOCOLS[0]]), ("responses", "anthropic")])
def test_another_provider_goes_on_with_the_conversation(tmp_path: Path, before: str, after: str) -> None:
    with server(TASK, before) as provider:
        assert run(tmp_path, provider, before, "-p", "Fix the discount").code == 0
    with server(AGAIN, after) as provider:
        ended = run(tmp_path, provider, after, "-c", "-p", "And now?")
        sent = json.dumps(provider.asked[0].body)
    assert ended.code == 0, ended.stderr
    assert ended.result["text"] == "All is well."
    foreign = ("encrypted-1", '"signature-1"', "c2lnbmF0dXJl", "rs_1", '"phase"')
    assert not [word for word in foreign if word in sent]
    assert "There it is." not in sent


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cut_answer_is_gone_on_with(tmp_path: Path, protocol: str) -> None:
    script = TASK.replace('text = "I look."', 'text = "I look."\nfault = { kind = "cut", after = 60 }', 1)
    first, rest = script.split("[[step]]", 2)[1], TASK
    with server(f"[[step]]{first}{rest}", protocol) as provider:
        ended = run(tmp_path, provider, protocol, "-p", "Fix the discount")
    assert ended.code == 0, ended.stderr
    assert len([body for body in ended.events if body["type"] == "file_changed"]) == 1
    assert ended.result["text"] == "Fixed. Größe: 5 → ok"


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_an_overflow_is_recognised_and_its_window_learned(tmp_path: Path, protocol: str) -> None:
    has_numbers = protocol not in ("ollama", "responses")
    fault = '[[step]]\nfault = { kind = "overflow", tokens = 9500, window = 9000 }\n'
    with server(fault + ('[[step]]\ntext = "Now it fits."' if has_numbers else ""), protocol) as provider:
        ended = run(tmp_path, provider, protocol, "-p", "hi")
    assert ended.code == (0 if has_numbers else 61)
    learned = (tmp_path / "home" / "data" / "windows.json").exists()
    assert learned == has_numbers
