"""The demonstration's parts fit together: the project fails, the script's edit repairs it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from swecli import demo
from swecli.core.llm.scripted import load_script
from tests.support.waiting import PATIENCE


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    command = f"{demo.interpreter()} test_basket.py"
    return subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return demo.prepare()


def test_the_scripted_edit_is_the_one_that_makes_the_tests_pass(folder: Path) -> None:
    script = load_script(demo.SCRIPT, python=demo.interpreter())
    assert run_tests(folder).returncode == 1
    edits = [call for step in script.steps for call in step.calls if call.tool == "edit_file"]
    assert len(edits) == 1
    arguments = json.loads(edits[0].arguments)
    target = folder / arguments["path"]
    source = target.read_text()
    assert source.count(arguments["old_string"]) == 1
    target.write_text(source.replace(arguments["old_string"], arguments["new_string"]))
    done = run_tests(folder)
    assert done.returncode == 0
    passed = next(step for step in script.steps if step.when and step.when.last_result)
    assert passed.when is not None
    assert all(part in done.stdout for part in passed.when.last_result)


def test_each_preparation_is_a_fresh_copy(tmp_path: Path, folder: Path) -> None:
    (folder / "basket" / "pricing.py").unlink()
    other = demo.prepare()
    assert other != folder
    assert other.is_relative_to(tmp_path)
    assert (other / "basket" / "pricing.py").is_file()
    assert not list(other.rglob("__pycache__"))


def test_the_script_runs_the_interpreter_that_runs_swecli(folder: Path) -> None:
    command = f"{demo.interpreter()} -c 'import sys; print(sys.version)'"
    shown = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    assert shown.strip() == sys.version


def test_the_banner_says_what_is_scripted_and_how_to_go_on(folder: Path) -> None:
    text = demo.banner(folder)
    assert "scripted" in text
    assert str(folder) in text
    assert "-m openai/" in text
    assert "-m anthropic/" in text


def test_project_script_and_example_are_in_the_wheel(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=root, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if "No module named hatchling" in done.stderr:
        pytest.skip("hatchling, the build backend, is not installed here")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"swecli/demo/{name}" for name in ("demo.script.toml", "project/README.md", "project/test_basket.py")} < {
        *names
    }
    assert {
        f"swecli/example/{name}" for name in ("config.toml", "skills/release-notes/SKILL.md", "commands/git/since.md")
    } < {*names}
