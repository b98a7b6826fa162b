"""Builds the wheel and the source distribution and tries them as a stranger would: on each Python that is here, with
each installer, in an empty environment and an empty home, up to the first answer from a server on this machine.

    make test-package

Installs uv, pipx and twine from the package index into build/package the first time; the trials download swecli's
requirements once. Nothing else leaves this machine. ``ARGS=3.12`` tries one Python only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from swecli import __version__
from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "package"
DIST = PLACE / "dist"
TOOLS = PLACE / "tools" / "bin"
WANTED = ("uv>=0.8,<1", "pipx>=1.7,<2", "twine>=6.1,<8")
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
ANSWER = "It answers."
SCRIPT = f'[[step]]\ntext = "{ANSWER}"\n'
PASSED_ON = ("PIP_", "UV_", "SSL_")
"""Beginnings of variables that an installer may need to reach its packages."""


class Trial(NamedTuple):
    """A way to get the program. ``install`` returns the command that starts it, and the folder below which its share
    folder should be, if the way keeps one; ``updated_by`` is a part of what ``swecli update`` has to name."""

    name: str
    install: Callable[[Home, str], tuple[list[str], Path | None]]
    updated_by: str


class Home:
    """An empty home with an empty environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
        kept |= {name: value for name, value in os.environ.items() if name.upper().endswith(("_PROXY", "_CA_BUNDLE"))}
        path = f"{folder / '.local' / 'bin'}:{TOOLS}:/usr/bin:/bin"
        caches = {"UV_CACHE_DIR": str(PLACE / "cache" / "uv"), "PIP_CACHE_DIR": str(PLACE / "cache" / "pip")}
        quiet = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.environment = {**kept, **caches, **quiet, "HOME": str(folder), "PATH": path, "LANG": "C.UTF-8"}

    def run(self, *command: str | Path, more: Mapping[str, str] | None = None) -> str:
        """What the command printed.

        Raises:
            subprocess.CalledProcessError: it failed.
        """
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder,
            env={**self.environment, **(more or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout


def wheel() -> str:
    return str(next(DIST.glob("*.whl")))


def source() -> str:
    return str(next(DIST.glob("*.tar.gz")))


def by_pip(file: Callable[[], str]) -> Callable[[Home, str], tuple[list[str], Path | None]]:
    def install(home: Home, python: str) -> tuple[list[str], Path | None]:
        place = home.folder / "venv"
        home.run(python, "-m", "venv", place)
        home.run(place / "bin" / "python", "-m", "pip", "install", "--quiet", file())
        return [str(place / "bin" / "swecli")], place

    return install


def by_uvx(_home: Home, python: str) -> tuple[list[str], Path | None]:
    return [str(TOOLS / "uvx"), "--quiet", "--python", python, "--from", wheel(), "swecli"], None


def by_uv_tool(home: Home, python: str) -> tuple[list[str], Path | None]:
    home.run(TOOLS / "uv", "tool", "install", "--quiet", "--python", python, wheel())
    return ["swecli"], home.folder / ".local" / "share" / "uv" / "tools" / "swecli"


def by_pipx(home: Home, python: str) -> tuple[list[str], Path | None]:
    home.run(TOOLS / "pipx", "install", "--quiet", "--python", python, wheel())
    return ["swecli"], home.folder / ".local"


TRIALS = (
    Trial("pip, wheel", by_pip(wheel), "-m pip install --upgrade swecli"),
    Trial("pip, source", by_pip(source), "-m pip install --upgrade swecli"),
    Trial("uvx", by_uvx, "uvx swecli@latest"),
    Trial("uv tool install", by_uv_tool, "uv tool upgrade swecli"),
    Trial("pipx install", by_pipx, "pipx upgrade swecli"),
)


def problems(trial: Trial, python: str, home: Home) -> Iterator[str]:
    """What is wrong with the program that the trial installs."""
    program, share = trial.install(home, python)
    command = ["/usr/bin/env", *program]  # looks it up in the PATH of the trial
    version = home.run(*command, "--version")
    if version != f"swecli {__version__}\n":
        yield f"--version printed {version!r}"
    with LoopbackServer(parse_script(SCRIPT)) as server:
        address = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "test-key"}
        answer = home.run(*command, "-p", "Does it work?", "-m", "openai/first-answer", more=address)
    if answer != f"{ANSWER}\n":
        yield f"-p printed {answer!r}"
    named = home.run(*command, "update")
    if trial.updated_by not in named:
        yield f"update printed {named!r}"
    if share is not None and not (page := share / "share" / "man" / "man1" / "swecli.1").exists():
        yield f"there is no {page.relative_to(home.folder)}"


def built() -> None:
    """Builds both files and checks that the index would render their description."""
    if not (TOOLS / "twine").exists():
        print(f"Installing {', '.join(WANTED)} into {TOOLS.parent.relative_to(ROOT)} ...", flush=True)
        venv.create(TOOLS.parent, with_pip=True, clear=True)
        command = [str(TOOLS / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *WANTED]
        subprocess.run(command, check=True)
    shutil.rmtree(DIST, ignore_errors=True)
    # The wheel is built from the source distribution, so that what that lacks is noticed.
    subprocess.run([str(TOOLS / "uv"), "build", "--quiet", "--out-dir", str(DIST), str(ROOT)], check=True)
    subprocess.run([str(TOOLS / "twine"), "check", "--strict", wheel(), source()], check=True)


def python_here(version: str) -> str:
    """The path of the Python of this version; empty if there is none."""
    command = [str(TOOLS / "uv"), "python", "find", "--no-python-downloads", "--no-project", "--system", version]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main(versions: Sequence[str]) -> int:
    try:
        built()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"The package could not be built: {error}", file=sys.stderr)
        return 1
    failures = 0
    for version in versions:
        python = python_here(version)
        if not python:
            print(f"Python {version}: untried, it is not installed here")
            continue
        for trial in TRIALS:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    wrong = list(problems(trial, python, Home(Path(folder))))
                except subprocess.CalledProcessError as error:
                    wrong = [f"{error}\n{error.stdout}{error.stderr}"]
            failures += bool(wrong)
            print(f"Python {version}, {trial.name}: {'; '.join(wrong) or 'ok'}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or PYTHONS))
