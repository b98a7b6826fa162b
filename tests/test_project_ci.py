"""What continuous integration lets through, and what the end of a test run tells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import skip_lines
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent


def ci(tmp_path: Path, tools: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``.ci/run`` in a folder where ``make`` prints its environment, with these tools (name -> shell script)."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("bash", "env", "dirname", "sh"):
        found = shutil.which(tool)
        assert found
        (folder / tool).symlink_to(found)
    for name, script in {"make": f'echo "make $*"; {shutil.which("env")}', "id": "echo 0", **tools}.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return subprocess.run(
        [str(folder / "bash"), str(tmp_path / ".ci" / "run")],
        env={"PATH": str(folder), "HOME": "/nowhere", **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )


def test_the_environment_is_empty_but_for_what_an_installer_needs(tmp_path: Path) -> None:
    let_through = {"PIP_CERT": "a b", "HTTPS_PROXY": "p", "no_proxy": "n", "SSL_CERT_FILE": "f", "CI": "true"}
    held_back = {"PYTHONUNBUFFERED": "1", "TERM": "xterm", "OPENAI_API_KEY": "k", "PYTHON_PROXY": "x"}
    lines = ci(tmp_path, {"bwrap": ":"}, **let_through, **held_back).stdout.splitlines()
    assert lines[0] == "make test"
    found = dict(line.split("=", 1) for line in lines[1:])
    for own in ("PWD", "SHLVL", "_", "OLDPWD"):  # the shell of the pretended make sets them
        found.pop(own, None)
    assert found == {"PATH": str(tmp_path / "bin"), "HOME": "/nowhere", "LANG": "C.UTF-8", **let_through}


@pytest.mark.parametrize(
    ("apt", "user", "says"), [(":", "0", "was installed"), ("exit 100", "0", "skipped"), (":", "1000", "skipped")]
)
def test_bubblewrap_is_installed_where_that_is_possible_and_missed_aloud(
    apt: str, user: str, says: str, tmp_path: Path
) -> None:
    ended = ci(tmp_path, {"apt-get": f"echo noise; {apt}", "id": f"echo {user}"})
    first, second = ended.stdout.splitlines()[:2]
    assert says in first
    assert second == "make test"
    assert "noise" not in ended.stdout


def test_skipped_tests_are_counted_by_their_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import pytest\n"
        "@pytest.mark.skip(reason='no bubblewrap')\n@pytest.mark.parametrize('n', [1, 2])\ndef test_a(n): ...\n"
        "def test_b(): pytest.skip('no key')\ndef test_c(): assert True\n"
    )
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    lines = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").outlines
    assert lines[-4].startswith("3 tests were skipped")
    assert lines[-3:-1] == ["     2  no bubblewrap", "     1  no key"]
    assert skip_lines([]) == ["0 tests were skipped."]
