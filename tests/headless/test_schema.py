"""Answers that have to match a schema, in the whole program."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
