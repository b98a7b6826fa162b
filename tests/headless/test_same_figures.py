"""Model, window and percentage are the same values in the same words wherever they are shown."""

from __future__ import annotations

import json
import subprocess
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from swecli.commands.context import context_document, context_text
from swecli.commands.session import status_text
from swecli.core.llm.scripted import parse_script
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import Budget, window_words
from swecli.core.protocol.events import ContextMeasured, Event, SessionStarted, TurnStarted
from swecli.figures import dollars, tokens
from swecli.headless.outcome import Outcome
from swecli.headless.printers import context_figures, result_object
from swecli.tui.status_bar import Facts, line
from tests.support.fake_session import FakeSession
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Program
from tests.support.waiting import PATIENCE

CASES = {
    "known": ("openai/gpt-6-sol", 1_050_000, "catalogue", "measured", "1,050,000 tokens (the catalogue)"),
    "unknown window": ("office/m", 32_000, "assumed", "estimated", "32,000 tokens (assumed)"),
    "set by the user": ("office/m", 50_000, "user", "measured", "50,000 tokens (your settings)"),
    "capped by the user": ("openai/gpt-6-sol", 60_000, "settings", "measured", "60,000 tokens (your settings)"),
    "local server": ("ollama/qwen3", 40_960, "endpoint", "measured", "40,960 tokens (reported by the server)"),
    "told by an error": ("office/m", 65_536, "learned", "estimated", "65,536 tokens (reported in a server error)"),
}


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_every_surface_has_the_same_figures(case: str, resumed: bool) -> None:
    ref, window, source, measure, words = CASES[case]
    effective = window - window // 5
    used = effective // 3
    budget = Budget((), used, used, effective, window, window // 5, "ok", measure, source)  # type: ignore[arg-type]
    provider, _, name = ref.partition("/")
    session = FakeSession([])
    session.view.model, session.view.budget = ModelInfo(provider, name, window), budget

    outcome = Outcome()
    bodies = (SessionStarted("/proj", ref, "default", "0", resumed), TurnStarted("u1"), ContextMeasured(budget))
    for number, body in enumerate(bodies, 1):
        outcome.apply(Event(number, 0.0, "fake", 1, body))
    result, document = msgspec.to_builtins(result_object(outcome)), context_document(session)  # type: ignore[arg-type]
    status, context = status_text(session.view), context_text(session.view)
    bar = "".join(piece.text for piece in line(Facts("default", ref, budget), 200))

    assert window_words(window, source) == words
    assert f"{ref}, window {words}" in status
    assert f"Window {words}, " in context
    assert result["model"] == document["model"] == ref
    assert name in bar

    percentage = budget.shown
    assert f"{percentage} of {effective:,} tokens" in status
    assert f"Context {percentage}: " in context
    assert f"of {effective:,} tokens" in context
    assumed = " (assumed)" if source == "assumed" else ""
    assert bar.endswith(f" {percentage} · {tokens(used)}/{tokens(effective)}{assumed}")
    assert result["context"] == msgspec.to_builtins(context_figures(budget))
    assert result["context"]["shown"] == percentage
    assert result["context"]["share"] == document["share"]
    for figure in ("used", "effective", "window", "window_source"):
        assert result["context"][figure] == document["budget"][figure]
    json.dumps(result)


PRICES = '[models.price]\n"openai/mine" = { input = 3.0, output = 15.0 }\n'
SCRIPT = 'name = "mine"\n[[step]]\ntext = "One."\n[[step]]\ntext = "Two."'
COMMANDS = "/status\n/context\n/doctor\n/model\n/usage\n"


@pytest.mark.e2e
def test_a_continued_session_has_the_figures_of_its_run_on_every_surface(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    (home / "config.toml").write_text(PRICES)
    with LoopbackServer(parse_script(SCRIPT), manners=Manners(window=40_960)) as server:
        variables = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        program = Program(folder, home, variables)
        first = program.run("-p", "Hello.", "-m", "openai/mine", "--output-format", "json").result
        second = program.run("-p", "Again.", "-c", "--output-format", "json").result
        lines = program.start("--plain", "-c", stderr=subprocess.DEVNULL)
        shown = " ".join(lines.communicate(COMMANDS.encode(), timeout=PATIENCE)[0].decode().split())
    used, effective, words = (
        second["context"]["used"],
        second["context"]["effective"],
        "40,960 tokens (reported by the server)",
    )
    assert (first["model"], second["model"]) == ("openai/mine", "openai/mine")
    assert first["session"] == second["session"]
    for run in (first, second):
        usage = run["usage"]
        assert Decimal(run["cost"]) == (usage["input_total"] * 3 + usage["output_total"] * 15) / Decimal(1_000_000)
    cost = Decimal(first["cost"]) + Decimal(second["cost"])
    for surface in (
        f"openai/mine, window {words}",  # /status
        f"{second['context']['shown']} of {effective:,} tokens",
        f"Context {second['context']['shown']}: {used:,} of {effective:,} tokens",
        f"Window {words}, ",
        f"openai/mine window {words} $3 in, $15 out per million tokens key from OPENAI_API_KEY",  # /doctor
        "openai/mine 41K · 3 / 15",  # /model
        f"Cost {dollars(cost)}",
    ):
        assert surface in shown
