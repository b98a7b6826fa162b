"""A real llama.cpp server on loopback, with the weights of a small model, or with its first two layers for whatever
does not depend on what it says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.program import Program
from tests.support.waiting import wait_until

PYTHON = os.environ.get("SWECLI_LLAMA_PYTHON", "")
WHOLE = os.environ.get("SWECLI_LLAMA_MODEL", "")
SHORT = os.environ.get("SWECLI_LLAMA_SHORT_MODEL", "")
SERVER = Path(__file__).with_name("llama_server.py")

NEEDS_MODEL = pytest.mark.skipif(
    not (PYTHON and WHOLE and SHORT), reason="needs llama.cpp and a model: make test-model"
)


@contextmanager
def llama(window: int, *, model: str = "", port: int = 0, template: str = "own") -> Iterator[str]:
    """The address of a server with this window in tokens and one slot."""
    command = [PYTHON, str(SERVER), model or SHORT, str(window), str(port), template]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = server.stdout.readline().decode().strip()
            wait_until(lambda: httpx.get(f"{url}/health").status_code == 200)  # the model is loaded
            yield url
        finally:
            server.kill()  # in the middle of an answer, too


def program_at(url: str, folder: Path, **settings: str) -> Program:
    """The program in a project of its own, connected to the server; ``settings`` are tables of its settings file."""
    project, home = folder / "project", folder / "home"
    project.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    tables = [f"[{name.replace('_', '.')}]\n{content}\n" for name, content in settings.items()]
    (home / "config.toml").write_text("\n".join(tables), encoding="utf-8")
    return Program(project, home, {"LLAMACPP_BASE_URL": f"{url}/v1", "SWECLI_MODEL": f"llamacpp/{name_at(url)}"})


def name_at(url: str) -> str:
    return httpx.get(f"{url}/v1/models").json()["data"][0]["id"]


def tokens_in(url: str, text: str) -> int:
    return len(httpx.post(f"{url}/tokenize", json={"content": text}).json()["tokens"])


def rendered(url: str, body: Mapping[str, Any]) -> str:
    """The prompt that the server's template makes of a request."""
    given = {name: body[name] for name in ("messages", "tools") if name in body}
    return httpx.post(f"{url}/apply-template", json=given).json()["prompt"]
