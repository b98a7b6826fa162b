"""The real program as a subprocess, with an environment of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tests.support.preloaded import Preloaded
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
PYTHONPATH = f"{ROOT}:{Path(__file__).with_name('start')}"
"""For each Python that a test starts: with ``sitecustomize``, it reaches no model server of this machine."""
PROVIDERS = (
    "OPENAI",
    "ANTHROPIC",
    "GEMINI",
    "GOOGLE",
    "OPENROUTER",
    "OLLAMA",
    "SWECLI",
    "XDG",
    "AZURE",
    "MISTRAL",
    "GROQ",
)


@dataclass(frozen=True, slots=True)
class Ended:
    """What a run left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        """The result object: the last line of standard output."""
        return json.loads(self.stdout.splitlines()[-1])

    @property
    def events(self) -> list[dict[str, Any]]:
        """The bodies of all events of stream-json output."""
        return [data["body"] for data in map(json.loads, self.stdout.splitlines()) if "body" in data]


@dataclass(frozen=True, slots=True)
class Program:
    """Runs ``swecli`` in ``folder`` with all of its own files below ``home``. No key or setting of the
    machine's user is seen."""

    folder: Path
    home: Path
    variables: Mapping[str, str] = field(default_factory=lambda: {})
    fresh: bool = False
    """Whether Python itself starts, too; otherwise a process in which the modules are loaded is forked."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every run. What changes Python, such as PYTHONUNBUFFERED, could hide a defect."""
        hidden = (*PROVIDERS, "PYTHON")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        own = {"SWECLI_HOME": str(self.home), "IS_SANDBOX": "1", "PYTHONPATH": PYTHONPATH, "NO_PROXY": "127.0.0.1"}
        return {**inherited, **own, **self.variables}

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """The program while it runs, with pipes for all three streams unless given otherwise."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        own_python = any(re.match(r"PYTHON[^_]|LC_|LANG", name) for name in self.variables)
        if self.fresh or own_python or not options.keys() <= {*streams, "text"}:
            command = [sys.executable, "-m", "swecli.cli", *arguments]
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment, **{**streams, **options})
        else:
            process = Preloaded(arguments, cwd=self.folder, env=self.environment, **{**streams, **options})
        return cast("subprocess.Popen[bytes]", process)

    def run(self, *arguments: str, stdin: str | bytes | None = None, timeout: float = PATIENCE) -> Ended:
        """Run to the end; the timeout is for a program that hangs. Without ``stdin`` it is empty and closed."""
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        process = self.start(*arguments)
        try:
            out, err = process.communicate(data, timeout=timeout)
        finally:
            process.kill()
        return Ended(process.returncode, out.decode(), err.decode())
