"""The playbook in the real program: learned from a failure and its fix, told before the failure comes again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import ROOT, Ended, Program

FAIL, WORK = "./run-tests --fast", "sh tools/check.sh all"
SESSION = f"""
[[step]]
call = [{{ tool = "run_command", arguments = {{ command = "{FAIL}" }} }}]
[[step]]
call = [{{ tool = "run_command", arguments = {{ command = "{WORK}" }} }}]
[[step]]
text = "Done."
"""
BULLET = f"`{FAIL}` fails here (./run-tests: No such file or directory); use `{WORK}`."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(ROOT / "swecli" / "demo" / "project", tmp_path / "project"))
    (folder / "tools").mkdir()
    (folder / "tools" / "check.sh").write_text("echo 3 passed")
    (folder / "AGENTS.md").write_text("# Basket\n\nPrices are integers.\n")
    (folder / ".github" / "workflows").mkdir(parents=True)
    (folder / ".github" / "workflows" / "ci.yml").write_text(f"jobs: {{test: {{steps: [run: {WORK}]}}}}\n")
    return folder


def run(project: Path, prompt: str, *options: str, script: str = SESSION) -> tuple[Ended, list[str]]:
    """What the program did, and the bodies of its requests as texts."""
    with LoopbackServer(parse_script(script), manners=Manners(window=32_000)) as server:
        environment: dict[str, Any] = server.environment()
        program = Program(project, project.parent / "home", environment)
        ended = program.run("-p", prompt, "-m", "openai/m", "--yolo", "--output-format", "stream-json", *options)
        return ended, [json.dumps(asked.body) for asked in server.asked]


def stored(project: Path) -> list[dict[str, Any]]:
    file = project / ".swecli" / "playbook.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_one_bullet_is_learned_and_told_before_the_failure_comes_again(project: Path) -> None:
    first, asked = run(project, "Run the tests", "--trust")
    assert first.code == 0
    (bullet,) = stored(project)
    assert bullet["content"] == BULLET
    assert not any("Playbook:" in body for body in asked)
    learned = [event for event in first.events if event["type"] == "bullet_learned"]
    assert [(one["bullet"], len(one["evidence"])) for one in learned] == [(bullet["id"], 2)]
    notices = [event for event in first.events if event["type"] == "notice"]
    assert (f"Learned: {BULLET}", "/playbook undo undoes it") in [(one["text"], one["hint"]) for one in notices]

    second, asked = run(project, "Please run the tests", "--trust")
    told = next(event for event in second.events if event["type"] == "bullets_told")
    assert told["told"] == [bullet["id"]]
    assert told["place"] == "message"
    assert bullet["id"] in asked[0]
    assert "use `sh tools/check.sh all`" in asked[0]
    assert asked[1].count(bullet["id"]) == 2, "with the message, and again with the result that failed"
    assert len(stored(project)) == 1


def test_a_model_that_knows_the_tool_by_another_name_teaches_as_well(project: Path) -> None:
    ended, _ = run(project, "Run the tests", "--trust", script=SESSION.replace("run_command", "bash"))
    assert ended.code == 0
    assert [one["content"] for one in stored(project)] == [BULLET]
    begun = [event["name"] for event in ended.events if event["type"] == "item_started" and event["kind"] == "tool"]
    assert begun == ["run_command", "run_command"], "it is told by its own name"


def test_what_the_instructions_say_is_not_learned(project: Path) -> None:
    (project / "AGENTS.md").write_text(f"# Commands\n\n- {BULLET}\n")
    ended, _ = run(project, "Run the tests", "--trust")
    assert ended.code == 0
    assert stored(project) == []


def test_a_message_about_something_else_is_told_nothing(project: Path) -> None:
    run(project, "Run the tests", "--trust")
    ended, asked = run(project, "hi", "--trust", script='[[step]]\ntext = "Hello."')
    assert ended.code == 0
    assert "laybook" not in asked[0]


@pytest.mark.parametrize("option", [("--safe-mode",), ("--settings", "off.toml")])
def test_it_can_be_switched_off(option: tuple[str, ...], project: Path) -> None:
    (project / "off.toml").write_text("[playbook]\nenabled = false\n")
    ended, _ = run(project, "Run the tests", "--trust", *option)
    assert ended.code == 0
    assert stored(project) == []
    assert not [event for event in ended.events if event["type"] == "bullet_learned"]


def test_nothing_is_written_into_a_folder_before_it_is_trusted(project: Path) -> None:
    run(project, "Run the tests")
    assert not (project / ".swecli").exists()
    _, asked = run(project, "Run the tests", "--trust")
    assert any("tools/check.sh all`" in body for body in asked)
    assert [one["content"] for one in stored(project)] == [BULLET]


def test_a_read_only_folder_is_told_of_and_ends_nothing(project: Path) -> None:
    (project / ".swecli").write_text("a file where a folder should be")
    ended, _ = run(project, "Run the tests", "--trust")
    assert ended.code == 0
    assert "playbook" in ended.stdout
    assert (project / ".swecli").read_text() == "a file where a folder should be"
