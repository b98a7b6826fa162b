"""Runs tests/interop against real third-party programs: the LiteLLM proxy, and MCP servers from npm and PyPI.

    make test-interop

Installs ``litellm[proxy]`` from the package index into build/interop (about 750 MB) the first time. Nothing leaves this
machine but that: the proxy answers from its own mock or from a scripted server.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "interop"
WANTED = "litellm[proxy]>=1.80,<2"


def installed() -> Path:
    """The proxy's program, after whatever has to be installed."""
    program = PLACE / "bin" / "litellm"
    if not program.exists():
        print(f"Installing {WANTED} into {PLACE.relative_to(ROOT)} ...", flush=True)
        venv.create(PLACE, with_pip=True, clear=True)
        command = [
            str(PLACE / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            WANTED,
        ]
        subprocess.run(command, check=True)
    return program


SERVERS = ROOT / "build" / "interop-mcp"
NPM = ("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")
PYPI = ("mcp-server-git", "mcp-server-time")


def installed_servers() -> Path:
    """The folder of the MCP servers, after whatever has to be installed."""
    if not (SERVERS / "py" / "bin" / PYPI[-1]).exists():
        print(f"Installing {', '.join((*NPM, *PYPI))} into {SERVERS.relative_to(ROOT)} ...", flush=True)
        SERVERS.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(SERVERS), *NPM], check=True)
        venv.create(SERVERS / "py", with_pip=True, clear=True)
        python = str(SERVERS / "py" / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PYPI], check=True)
    return SERVERS


def main() -> int:
    """Install what is missing and run the tests."""
    try:
        program, servers = installed(), installed_servers()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"Not everything could be installed: {error}", file=sys.stderr)
        return 1
    environment = {**os.environ, "SWECLI_INTEROP": str(program), "SWECLI_INTEROP_MCP": str(servers)}
    tests = [sys.executable, "-m", "pytest", "tests/interop", "-rs", *sys.argv[1:]]
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
