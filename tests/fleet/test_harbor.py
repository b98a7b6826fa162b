"""The agent for Harbor, in an environment that runs its commands here."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import Step
from tests.fleet.test_command import call, environment
from tests.support.fleet_server import FleetServer
from tests.support.program import PYTHONPATH, ROOT


class StandInAgent:
    """What the adapter needs of Harbor's ``BaseAgent``."""

    def __init__(self, logs_dir: Path, model_name: str | None = None, **_options: Any) -> None:
        self.logs_dir, self.model_name = logs_dir, model_name
        self.extra_env: dict[str, str] = {}


class Here:
    """An environment whose folders are below ``place``."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def _here(self, text: str) -> str:
        for folder in ("/installed-agent", "/logs"):
            text = text.replace(folder, f"{self._place}{folder}")
        return text

    async def exec(self, command: str, env: dict[str, str] | None = None) -> types.SimpleNamespace:
        own = {name: self._here(value) for name, value in (env or {}).items()}
        inherited = {"PATH": os.environ["PATH"], "HOME": str(self._place), "PYTHONPATH": PYTHONPATH}
        ended = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-c", self._here(command)],
            cwd=self._place / "task",
            env=inherited | own,
            capture_output=True,
            text=True,
        )
        return types.SimpleNamespace(stdout=ended.stdout, stderr=ended.stderr, return_code=ended.returncode)

    async def upload_file(self, source: Path, target: str) -> None:
        await self.exec(f"mkdir -p {os.path.dirname(target)}; cp {source} {target}")


async def test_a_trial_does_the_task_and_reports_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = types.ModuleType("harbor.agents.base")
    base.BaseAgent = StandInAgent  # pyright: ignore[reportAttributeAccessIssue]
    for name in ("harbor", "harbor.agents"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "harbor.agents.base", base)
    monkeypatch.delitem(sys.modules, "swecli.fleet.harbor", raising=False)
    from swecli.fleet.harbor import Swecli

    (tmp_path / "task").mkdir()
    steps = (call("run_command", command="echo hello > hello.txt"), Step(text="Done."))
    bin_folder = "/installed-agent/venv/bin"
    program = f'#!/bin/sh\nexec {sys.executable} -m swecli.cli "$@"\n'
    install = f"mkdir -p {bin_folder}; cat >{bin_folder}/swecli <<'E'\n{program}E\nchmod +x {bin_folder}/swecli"
    context = types.SimpleNamespace()
    with FleetServer(lambda _name: steps) as server:
        for name, value in environment(server).items():
            monkeypatch.setenv(name, value)
        agent = Swecli(tmp_path, "openai/fleet-model", install=install)
        await agent.setup(Here(tmp_path))
        await agent.run("TASK=x Write hello.txt", Here(tmp_path), context)
    assert (tmp_path / "task" / "hello.txt").read_text() == "hello\n"
    assert context.n_input_tokens > 0
    assert context.metadata["swecli"]["status"] == "done"
    lines = (tmp_path / "logs" / "agent" / "swecli.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["type"] == "result"
    assert (ROOT / "docs" / "benchmarks.md").exists()
    with pytest.raises(RuntimeError, match="cannot be installed in the container: no network"):
        await Swecli(tmp_path, install="echo no network >&2; exit 1").setup(Here(tmp_path))
