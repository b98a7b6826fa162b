"""A budget ends a run in which nobody can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.headless.test_program import program, project, server

__all__ = ["project"]


@pytest.mark.parametrize("budget", ["turn", "session", "day"])
def test_a_budget_ends_the_run_before_the_request_that_would_cross_it(
    budget: str, project: Path, tmp_path: Path
) -> None:
    """Each request takes 6,000 tokens and its answer 500: a third one would cross 16,000."""
    step = '[[step]]\ncall = [{ tool = "list_files" }]\nusage = { input = 6000, output = 500 }'
    settings = tmp_path / "budget.toml"
    settings.write_text(f"[budget]\n{budget}_tokens = 16000\n", encoding="utf-8")
    with server("\n".join([step] * 5)) as provider:
        run = program(project, provider).run
        ended = run("-p", "x", "-m", "openai/m", "--settings", str(settings), "--output-format", "json")
    assert (ended.code, ended.result["status"]) == (60, "limit")
    assert len(provider.asked) == 2
    assert "13,000 of the 16,000 tokens " in ended.result["error"]["message"]
    assert (ended.result["usage"]["input_total"], ended.result["usage"]["output_total"]) == (12_000, 1_000)
