"""swecli as an agent of Harbor, which runs Terminal-Bench and other benchmarks in containers.

    harbor run -d terminal-bench@2.0 -m anthropic/NAME --agent-import-path swecli.fleet.harbor:Swecli

The package ``harbor`` (Python 3.12 and later) imports this module, nothing of swecli does. In the container swecli is
installed from the package index, or by the command in ``--agent-kwarg install=…``, and runs one headless turn without
approvals: the container is the sandbox.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent  # pyright: ignore[reportMissingImports]

from swecli import __version__

HOME = "/installed-agent"
"""Folder of swecli in the container."""
LOGS = "/logs/agent"
"""Folder that Harbor copies to the host after a trial."""
KEYS = ("_API_KEY", "_BASE_URL")
"""Ends of the variables that lead to a provider."""
INSTALL = f"""
set -eu
if ! command -v swecli >/dev/null; then
  if python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python3 -m venv {HOME}/venv
    {HOME}/venv/bin/pip install --quiet swecli=={__version__}
  else
    command -v uv >/dev/null || curl -LsSf https://astral.sh/uv/install.sh | sh
    export PATH="$HOME/.local/bin:$PATH"
    uv venv --quiet --python 3.13 {HOME}/venv
    uv pip install --quiet --python {HOME}/venv/bin/python swecli=={__version__}
  fi
fi
"""


class Swecli(BaseAgent):
    """One trial's agent. ``install`` replaces the commands that install swecli; ``max_turns`` caps its model steps."""

    def __init__(self, *args: Any, install: str = INSTALL, max_turns: int | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._install = install
        self._max_turns = max_turns

    @staticmethod
    def name() -> str:
        return "swecli"

    def version(self) -> str | None:
        return __version__

    async def setup(self, environment: Any) -> None:
        """Install swecli in the container.

        Raises:
            RuntimeError: it can't be installed.
        """
        installed = await environment.exec(self._install)
        if installed.return_code:
            output = f"{installed.stdout or ''}{installed.stderr or ''}"
            raise RuntimeError(f"swecli cannot be installed in the container: {output.strip()[-500:]}")

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        """Do the task, and report its tokens and cost. The events are in ``swecli.jsonl`` among the trial's logs."""
        given = Path(self.logs_dir) / "instruction.txt"
        given.write_text(instruction, encoding="utf-8")
        await environment.upload_file(given, f"{HOME}/instruction.txt")
        words = ["swecli", "-p", "--yolo", "--output-format", "stream-json"]
        words += ["-m", self.model_name] if self.model_name else []
        words += ["--max-turns", str(self._max_turns)] if self._max_turns is not None else []
        command = f"{shlex.join(words)} <{HOME}/instruction.txt >{LOGS}/swecli.jsonl 2>{LOGS}/swecli.err"
        path = f"PATH={HOME}/venv/bin:$HOME/.local/bin:$PATH; mkdir -p {LOGS}; {command}; "
        own = {**keys(os.environ), **dict(self.extra_env or {}), "IS_SANDBOX": "1", "SWECLI_HOME": f"{HOME}/home"}
        ended = await environment.exec(f"{path}tail -n 1 {LOGS}/swecli.jsonl", env=own)
        report(ended.stdout or "", context)


def keys(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that lead to providers."""
    return {name: value for name, value in environment.items() if name.endswith(KEYS)}


def report(line: str, context: Any) -> None:
    """Put the figures of a result line into Harbor's context; without a result, as after a kill, it stays empty."""
    try:
        result = json.loads(line.strip().rpartition("\n")[2] or "null")
    except ValueError:
        return
    if not isinstance(result, dict) or result.get("type") != "result":
        return
    usage = result["usage"]
    context.n_input_tokens = usage["input_total"]
    context.n_output_tokens = usage["output_total"]
    context.n_cache_tokens = usage["cache_read"]
    context.cost_usd = None if result["cost"] is None else float(result["cost"])
    named = ("status", "exit_code", "error", "steps", "model", "session")
    context.metadata = {"swecli": {name: result[name] for name in named}}
