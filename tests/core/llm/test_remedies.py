"""Whose fault an error is, by texts of real servers: each has a kind and a remedy that fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.dialects import Dialect
from swecli.core.llm.errors import read_body, to_provider_error
from swecli.core.llm.remedies import ErrorContext
from swecli.core.llm.role_complaints import suitable_dialect

DATA = Path(__file__).parents[2] / "data"
CASES: list[dict[str, Any]] = [json.loads(line) for line in (DATA / "error-texts.jsonl").read_text().splitlines()]
"""Texts with the server, template or bug report that they come from."""
WORDS = {
    "history": "earlier conversation",
    "roles": "roles of these messages",
    "template": "chat template",
    "tools": "description of a tool",
    "ability": "may not support tools or images",
    "image": "rejects an image",
    "load": "could not load the model",
    "plan": "plan of this account",
    "quota": "no credit or quota",
    "later": "choose another model",
    "option": "option that it names",
    "same": "same request would fail again",
}


@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case['remedy']}" for number, case in enumerate(CASES)])
def test_the_remedy_fits_the_fault(case: dict[str, Any]) -> None:
    context = ErrorContext("p", "m", "http://127.0.0.1:1/v1")
    error = to_provider_error(read_body(case["status"], {}, json.dumps(case["body"]).encode()), context)
    assert (error.kind, WORDS[case["remedy"]] in error.hint) == (case["kind"], True), error.hint


def test_there_are_enough_texts_to_judge_by_each_with_its_source() -> None:
    assert len(CASES) >= 60
    assert all(case["source"] for case in CASES)


@pytest.mark.parametrize(
    ("words", "system", "calls"),
    [
        ("Only user and assistant roles are supported!", "user", "text"),
        ("Only user, system and assistant roles are supported", "system", "text"),
        ("Only user, assistant, system and tool roles are supported, got developer.", "system", "native"),
    ],
)
def test_a_template_that_names_its_roles_gets_only_those(words: str, system: str, calls: str) -> None:
    error = read_body(400, {}, json.dumps({"error": {"message": words}}).encode())
    dialect = suitable_dialect(error, Dialect(system_role="developer"))
    assert dialect is not None
    assert (dialect.system_role, dialect.tool_calls) == (system, calls)
    assert suitable_dialect(error, dialect) is None
