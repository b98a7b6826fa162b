"""Runs tests/interop against real third-party programs: the LiteLLM proxy, MCP servers from npm and PyPI, language
servers and clients of the Agent Client Protocol from npm, and where they are installed Chromium, clangd, gopls and
rust-analyzer (Debian: apt-get install chromium clangd gopls golang-go).

    make test-interop

Captured requests are checked against the types of the vendors' newest SDKs (``ARGS=tests/interop/test_sdk_types.py``).

Installs ``litellm[proxy]`` from the package index into build/interop (about 750 MB) the first time. Nothing leaves this
machine but that: the proxy answers from its own mock or from a scripted server.
"""

from __future__ import annotations

import os
import shutil
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


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
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


LANGUAGE_SERVERS = ROOT / "build" / "interop-lsp"
TYPESCRIPT = {"seven": ("typescript@7",), ".": ("typescript-language-server@5", "typescript@5")}
"""By the folder that they are installed in."""


def installed_language_servers() -> Path:
    """The folder of the language servers, after whatever has to be installed."""
    if not (LANGUAGE_SERVERS / "node_modules" / "typescript" / "lib" / "tsserver.js").exists():
        for folder, packages in TYPESCRIPT.items():
            place = LANGUAGE_SERVERS / folder
            print(f"Installing {', '.join(packages)} into {place.relative_to(ROOT)} ...", flush=True)
            place.mkdir(parents=True, exist_ok=True)
            command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place), *packages]
            subprocess.run(command, check=True)
    return LANGUAGE_SERVERS


CLIENTS = ROOT / "build" / "interop-acp"
ACP = ("@agentclientprotocol/sdk@2", "acpx")


def installed_clients() -> Path:
    """The folder of the Agent Client Protocol's clients, after whatever has to be installed."""
    if not (CLIENTS / "node_modules" / "acpx").exists():
        print(f"Installing {', '.join(ACP)} into {CLIENTS.relative_to(ROOT)} ...", flush=True)
        CLIENTS.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(CLIENTS), *ACP], check=True)
    return CLIENTS


SDKS = ROOT / "build" / "interop-sdks"
VENDORS = ("anthropic", "openai", "google-genai")


def installed_sdks() -> Path:
    """The Python that has the vendors' SDKs, always the newest ones: their types say what requests may contain."""
    python = SDKS / "bin" / "python"
    if not python.exists():
        venv.create(SDKS, with_pip=True, clear=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", *VENDORS]
    subprocess.run(command, check=True)
    return python


def main() -> int:
    """Install what is missing and run the tests."""
    try:
        places = {
            "": installed(),
            "_MCP": installed_servers(),
            "_LSP": installed_language_servers(),
            "_ACP": installed_clients(),
            "_SDK": installed_sdks(),
        }
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"Not everything could be installed: {error}", file=sys.stderr)
        return 1
    browser = next(filter(None, map(shutil.which, BROWSERS)), "")
    if not browser:
        print("No Chromium is installed: the HTML export is not opened.", file=sys.stderr)
    found = {f"SWECLI_INTEROP{name}": str(place) for name, place in places.items()}
    environment = {**os.environ, **found, "SWECLI_BROWSER": browser}
    tests = [sys.executable, "-m", "pytest", "tests/interop", "-rs", *sys.argv[1:]]
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
