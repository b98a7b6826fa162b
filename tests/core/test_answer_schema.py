"""Answers that have to match a JSON Schema."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from swecli.core import answer_schema
from swecli.core.answer_schema import AnswerSchema, Mismatch, SchemaProblem
from tests.support.waiting import PATIENCE

PERSON = (
    '{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}'
)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ('{"name": "Ada"}', {"name": "Ada"}),
        ('\n {"name": "Ada", "age": 36}\n', {"name": "Ada", "age": 36}),
        ('Here it is:\n```json\n{"name": "Ada"}\n```\n', {"name": "Ada"}),
        ('```\n{"name": 1}\n```\nNo:\n~~~\n{"name": "Ada"}\n~~~', {"name": "Ada"}),
    ],
)
async def test_an_answer_that_fits(answer: str, value: Any) -> None:
    assert await AnswerSchema.read(PERSON).value(answer) == value


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", "it is empty"),
        ("Ada", "it is not JSON"),
        ('{"name": NaN}', "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("{}", "'name' is a required property"),
        ('{"name": 1, "age": "x"}', "age: 'x' is not of type 'integer'; name: 1 is not of type 'string'"),
        ("[]", "[] is not of type 'object'"),
    ],
)
async def test_an_answer_that_does_not_fit_is_told_why(answer: str, said: str) -> None:
    with pytest.raises(Mismatch) as found:
        await AnswerSchema.read(PERSON).value(answer)
    assert said in str(found.value)
    assert said in AnswerSchema.read(PERSON).repair(found.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "5", '{"type": "nothing"}', '{"required": "name"}'])
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(SchemaProblem):
        AnswerSchema.read(text)


async def test_many_problems_are_counted_and_nothing_is_fetched() -> None:
    schema = AnswerSchema.read('{"type": "array", "items": {"type": "string"}}')
    with pytest.raises(Mismatch, match="and 3 more"):
        await schema.value("[1, 2, 3, 4, 5, 6, 7, 8]")


@pytest.mark.parametrize(
    "text",
    [
        '{"$ref": "http://127.0.0.1:1/schema.json"}',
        '{"properties": {"a": {"items": {"$ref": "#/$defs/nothing"}}}}',
        '{"$ref": "#/parts/a", "parts": {"a": {"anyOf": [{"$ref": "#/parts/b"}]}}}',
    ],
)
def test_a_reference_to_what_the_schema_does_not_contain_is_found_at_the_start(text: str) -> None:
    with pytest.raises(SchemaProblem, match="refers to something it does not contain"):
        AnswerSchema.read(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"$ref": "#/$defs/node", "$defs": {"node": {"items": {"$ref": "#/$defs/node"}, "maxItems": 1}}}',
        '{"$id": "http://x/y", "$ref": "z#a", "$defs": {"z": {"$id": "z", "items": {"$anchor": "a", "maxItems": 1}}}}',
        '{"$schema": "http://json-schema.org/draft-04/schema#", "definitions": {"a": {"id": "#b", "maxItems": 1}},'
        ' "$ref": "#b"}',
        '{"maxItems": 1, "properties": {"s": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}',
        '{"maxItems": 1, "properties": {"$ref": {"const": "#/nowhere"}}, "default": {"$ref": "#/nowhere"}}',
    ],
)
async def test_references_within_the_schema_are_followed(text: str) -> None:
    schema = AnswerSchema.read(text)
    assert await schema.value("[[]]") == [[]]
    with pytest.raises(Mismatch, match=r"too long|expected at most"):
        await schema.value("[1, 2]")


async def test_null_is_a_value_too() -> None:
    assert await AnswerSchema.read('{"type": "null"}').value("null") is None


@pytest.mark.parametrize(
    ("step", "answer", "fits"),
    [
        ("0.01", "0.07", True),
        ("0.01", "19.99", True),
        ("0.01", "0.075", False),
        ("0.1", "1e300", True),
        ("7", "21", True),
        ("7", "22", False),
        ("1e-300", "1e300", True),
        ("0.01", '"text"', True),
    ],
)
async def test_a_multiple_is_one_in_decimals(step: str, answer: str, fits: bool) -> None:
    schema = AnswerSchema.read(f'{{"multipleOf": {step}}}')
    if fits:
        await schema.value(answer)
    else:
        with pytest.raises(Mismatch, match="is not a multiple of"):
            await schema.value(answer)


async def test_a_pattern_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_schema, "PATTERN_SECONDS", 0.5)
    schema = AnswerSchema.read('{"properties": {"name": {"pattern": "^(a+)+$"}}}')
    with pytest.raises(Mismatch, match=r"the schema's patterns take longer than 0\.5 s on it"):
        await schema.value(json.dumps({"name": "a" * 60 + "!"}))


@pytest.mark.parametrize(
    "text",
    ['{"properties": {"é": {"pattern": "^[a-z]+$"}}}', '{"patternProperties": {"^é$": {"pattern": "^[a-z]+$"}}}'],
)
async def test_patterns_are_matched(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_schema, "PATTERN_SECONDS", PATIENCE)
    schema = AnswerSchema.read(text)
    assert await schema.value('{"é": "abc"}') == {"é": "abc"}
    with pytest.raises(Mismatch, match=r"^é: 'ABC' does not match '\^\[a-z\]\+\$'$"):
        await schema.value('{"é": "ABC"}')


@pytest.mark.parametrize(("program", "told"), [("false", "ended with status 1"), ("absent", "No such file")])
async def test_a_check_that_fails_is_told_without_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, told: str
) -> None:
    monkeypatch.setattr(answer_schema, "PATTERN_SECONDS", PATIENCE)
    monkeypatch.setattr(sys, "executable", shutil.which(program) or str(tmp_path / program))
    with pytest.raises(Mismatch, match=told) as found:
        await AnswerSchema.read('{"pattern": "a"}').value('"b"')
    assert "import" not in str(found.value)
