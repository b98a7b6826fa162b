"""Answers that have to match a schema, in the whole program."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import Program

pytestmark = pytest.mark.e2e

SCHEMA = '{"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}'


@contextmanager
def answering(tmp_path: Path, *answers: str) -> Iterator[tuple[Program, LoopbackServer]]:
    script = "\n".join(f"[[step]]\ntext = {json.dumps(answer)}" for answer in answers)
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    with LoopbackServer(parse_script(script, python=sys.executable)) as server:
        variables = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k", "SWECLI_MODEL": "openai/m"}
        yield Program(folder, tmp_path / "home", variables), server


def test_a_matching_answer_is_the_structured_output(tmp_path: Path) -> None:
    with answering(tmp_path, '```json\n{"count": 3}\n```', '{"count": 4}') as (program, server):
        ended = program.run("-p", "count", "--json-schema", SCHEMA, "--output-format", "json")
        assert (ended.code, ended.result["structured_output"]) == (0, {"count": 3})
        assert "must be one JSON value" in str(server.asked[0].body["messages"][0])
        file = tmp_path / "schema.json"
        file.write_text(SCHEMA)
        text = program.run("-p", "count", "--json-schema", str(file))
        assert (text.code, text.stdout) == (0, '{"count":4}\n')


def test_a_wrong_answer_is_corrected_once(tmp_path: Path) -> None:
    with answering(tmp_path, "There are 3.", '{"count": 3}') as (program, server):
        ended = program.run("-p", "count", "--json-schema", SCHEMA, "--output-format", "stream-json")
        assert (ended.code, ended.result["structured_output"], ended.result["turns"]) == (0, {"count": 3}, 2)
        assert len(server.asked) == 2


def test_an_answer_that_stays_wrong_has_a_status_of_its_own(tmp_path: Path) -> None:
    with answering(tmp_path, "There are 3.", '{"count": "3"}') as (program, _):
        ended = program.run("-p", "count", "--json-schema", SCHEMA, "--output-format", "json")
        assert ended.code == 65
        assert ended.result["structured_output"] is None
        assert ended.result["error"]["kind"] == "schema"
        assert "count: '3' is not of type 'integer'" in ended.stderr


@pytest.mark.parametrize(
    ("schema", "code", "said"),
    [
        ('{"type": 5}', 42, "not a JSON Schema"),
        ("{", 42, "not JSON"),
        ("missing.json", 2, "No such file"),
    ],
)
def test_what_is_no_schema_is_refused_before_anything_is_sent(
    tmp_path: Path, schema: str, code: int, said: str
) -> None:
    with answering(tmp_path) as (program, server):
        ended = program.run("-p", "count", "--json-schema", schema)
        assert ended.code == code
        assert said in ended.stderr
        assert server.asked == []


@pytest.mark.parametrize(
    ("protocol", "model", "field"),
    [
        ("anthropic", "anthropic/claude-opus-5-5", "output_config"),
        ("openai", "openai/gpt-6", "response_format"),
        ("gemini", "gemini/gemini-3.8-flash", "responseJsonSchema"),
        ("ollama", "ollama/qwen3", "format"),
    ],
)
def test_the_provider_generates_by_the_schema_where_it_can(
    tmp_path: Path, protocol: Any, model: str, field: str
) -> None:
    """Tools work in between, and every request has the same format, because a change would cost the cache. Ollama's
    would prevent calls, so that it is only in the correction."""
    script = """
[[step]]
call = [{ tool = "list_files", arguments = { path = "." } }]
[[step]]
text = "There are 3."
[[step]]
text = '{"count": 3}'
"""
    folder = tmp_path / "project"
    folder.mkdir()
    with LoopbackServer(parse_script(script), protocol) as server:
        program = Program(folder, tmp_path / "home", {**server.environment(), "SWECLI_MODEL": model})
        ended = program.run("-p", "count", "--json-schema", SCHEMA, "--output-format", "json")
        formats = [(request.body.get("generationConfig") or request.body).get(field) for request in server.asked]
    assert (ended.code, ended.result["structured_output"]) == (0, {"count": 3})
    assert len(formats) == 3
    if protocol == "ollama":
        assert formats == [None, None, json.loads(SCHEMA)]
    else:
        assert formats[0]
        assert formats == [formats[0]] * 3
