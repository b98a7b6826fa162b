"""Sessions against a real llama.cpp server: in each step it evaluates only what is new. Its model is too small to call
tools, so each request is evaluated by the server and answered from a script. Run by ``make test-model``."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx

from swecli.core.llm.scripted import Script
from tests.model.llama import NEEDS_MODEL, llama
from tests.support.conversations import Pipes
from tests.support.loopback import ProtocolName, Received
from tests.support.program import Program
from tests.support.session_kinds import call, do, end, read
from tests.support.strict_server import StrictServer
from tests.support.wire import Answering
from tests.support.wire_openai import OpenAIChat

WINDOW = 8_192
MOST = 1.03
"""Evaluated tokens for each new one."""
EVALUATION = 600.0
"""Seconds for a prompt on a slow machine."""

pytestmark = NEEDS_MODEL


@dataclass
class RealLlama:
    """``steps`` has the whole size of each prompt in tokens and how many of them the server evaluated."""

    url: str
    protocol: ProtocolName = "openai"
    steps: list[tuple[int, int]] = field(default_factory=list)

    def wire(self) -> OpenAIChat:
        return _Counted(self)

    def refusal(self, number: int, received: Received) -> str:
        return ""

    def evaluate(self, body: Any) -> None:
        options = {"stream": False, "max_tokens": 1, "stream_options": None}
        answer = httpx.post(f"{self.url}/v1/chat/completions", json={**body, **options}, timeout=EVALUATION).json()
        assert "timings" in answer, answer
        timings = answer["timings"]
        self.steps.append((timings["cache_n"] + timings["prompt_n"], timings["prompt_n"]))


class _Counted(OpenAIChat):
    def __init__(self, rules: RealLlama) -> None:
        super().__init__()
        self._rules = rules

    def opening(self, answering: Answering) -> list[bytes]:
        self._rules.evaluate(answering.body)
        return super().opening(answering)


def todos(*states: str) -> Any:
    return do(call("update_todos", todos=[{"text": f"step {at}", "status": state} for at, state in enumerate(states)]))


STEPS = (
    *(todos("in_progress", "pending"), do(read("a.txt")), end("one")),
    *(do(read("b.txt")), todos("completed", "in_progress"), end("two")),
    *(do(call("run_command", command="echo hi")), do(read("a.txt"), read("b.txt")), end("three")),
)


def session(url: str, folder: Path) -> RealLlama:
    project = folder / "project"
    project.mkdir()
    for name in ("a", "b"):
        (project / f"{name}.txt").write_text(f"{name} line of a file\n" * 5)
    rules = RealLlama(url)
    with StrictServer(Script(STEPS, name="m"), rules) as server:
        server.manners = type(server.manners)(window=WINDOW)
        it = Pipes(Program(project, folder / "home", {**server.environment(), "SWECLI_MODEL": "openai/m"}), "--yolo")
        for number, mode in enumerate(("default", "plan", "auto"), 1):
            it.send(type="set_mode", mode=mode)
            it.say(f"Go on with part {number} of it.")
        it.close()
    return rules


def test_a_step_evaluates_only_new_tokens(tmp_path: Path) -> None:
    with llama(WINDOW, template="") as url:
        steps = session(url, tmp_path).steps
    assert len(steps) == len(STEPS)
    new = [now - before for (before, _), (now, _) in pairwise(steps)]
    evaluated = [tokens for _, tokens in steps[1:]]
    assert sum(evaluated) <= MOST * sum(new), (evaluated, new)
