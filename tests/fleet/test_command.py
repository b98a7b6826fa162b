"""``swecli fleet``: the arguments, and whole runs of the program."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from swecli.cli import main
from swecli.core.llm.scripted import Arguments, ScriptedCall, Step
from swecli.fleet.command import run_folder
from swecli.fleet.ledger import Ledger
from swecli.fleet.report import report_page, report_text
from swecli.launch import StartError
from tests.fleet.test_tasks import listed, repository
from tests.support.fleet_server import FleetServer
from tests.support.program import Program

CHECK = f"{sys.executable} -c \"import sys; sys.exit('y = 2' not in open('b.py').read())\""


def call(tool: str, **arguments: object) -> Step:
    return Step(calls=(ScriptedCall(tool, Arguments(json.dumps(arguments))),))


def steps(name: str) -> Sequence[Step]:
    new = "y = 3" if name == "bad" else "y = 2"
    return (
        call("read_file", path="b.py"),
        call("edit_file", path="b.py", old_string="y = 1", new_string=new),
        Step(text="Done."),
    )


def environment(server: FleetServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "test-key"}


def task(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "repo": "r", "prompt": f"TASK={name} change b.py", "check": CHECK, **more}


def test_a_run_verifies_each_task_resumes_and_reports(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r")
    mark = tmp_path / "killed once"
    path = listed(
        tmp_path,
        task("good"),
        task("bad"),
        task("setup", setup="echo no wheel; exit 3"),
        task("late", check="sleep 60", timeout=5),
        task("killed", setup=f"test -e '{mark}' || {{ touch '{mark}'; kill -9 $PPID; }}"),
    )
    retries = ("--retries", "1", "--retry-delay", "0.01")
    run = ("fleet", "run", str(path), "--out", "out", "-j", "2", "-m", "openai/fleet-model", *retries)
    with FleetServer(steps) as server:
        program = Program(tmp_path, tmp_path / "home", environment(server))
        ended = program.run(*run)
        assert ended.code == 1, ended.stderr
        asked = len(server.player.asked)
        again = program.run("fleet", "run", "--out", "out", "--resume", "--retries", "0")
        assert len(server.player.asked) == asked  # only the broken one ran again, and its setup failed
    assert "1 task unfinished" in again.stderr
    assert "killed: the worker was killed by SIGKILL; tried again" in ended.stderr
    results = {
        line["id"]: line for line in map(json.loads, (tmp_path / "out" / "results.jsonl").read_text().splitlines())
    }
    assert (results["good"]["status"], results["bad"]["status"], results["late"]["status"]) == (
        "passed",
        "failed",
        "failed",
    )
    assert results["late"]["kind"] == "check timeout"
    assert (results["killed"]["status"], results["killed"]["attempt"]) == ("passed", 2)
    assert "setup" not in results
    assert "the setup ended with status 3: no wheel" in ended.stderr
    patch = (tmp_path / "out" / "patches" / "good.diff").read_text()
    assert "+y = 2" in patch
    assert (repo / "b.py").read_text() == "y = 1\n"
    transcript = json.loads((tmp_path / "out" / "transcripts" / "good.json").read_text())
    assert transcript["format"] == "swecli-session"
    assert list((tmp_path / "home" / "data" / "workspaces").iterdir()) == []
    text = report_text([tmp_path / "out"])
    assert "2 of 4 passed, 50%" in text
    assert "1 broken, setup: setup" in text
    page = report_page([tmp_path / "out", tmp_path / "out"])
    assert "+y = 2" in page
    assert "McNemar" in page
    shown = program.run("fleet", "apply", "good", "--out", "out", "-C", "r")
    assert shown.code == 62
    assert "+y = 2" in shown.stdout
    assert program.run("fleet", "apply", "good", "--out", "out", "-C", "r", "--yes").code == 0
    assert (repo / "b.py").read_text() == "y = 2\n"
    assert program.run("fleet", "apply", "good", "--out", "out", "-C", "r", "--yes").code == 42


USAGES = {
    "no list": (["run", "--out", "o"], "Give one list"),
    "two lists": (["run", "t.jsonl", "--each", "*.py", "--out", "o"], "Give one list"),
    "no prompt": (["run", "--each", "*.py", "--out", "o"], "needs --prompt"),
    "no out": (["run", "t.jsonl"], "required: --out"),
    "workers": (["run", "t.jsonl", "--out", "o", "-j", "0"], "must be a whole number ≥ 1"),
    "price": (["run", "t.jsonl", "--out", "o", "--max-price", "-1"], "not an amount of dollars above 0"),
    "memory": (["run", "t.jsonl", "--out", "o", "--memory", "20"], "at least 512"),
    "address": (["run", "t.jsonl", "--out", "o", "--address", "x:1"], "needs --on ray"),
    "nothing to resume": (["run", "--out", "o", "--resume"], "has no run to resume"),
    "no report": (["report", "o"], "is not a fleet's folder"),
    "no apply": (["apply", "x", "--out", "o"], "is not a fleet's folder"),
    "nothing": ([], "The following arguments are required"),
}


@pytest.mark.parametrize(("arguments", "part"), USAGES.values(), ids=USAGES)
def test_wrong_arguments_are_one_line(
    arguments: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["fleet", *arguments]) != 0
    error = capsys.readouterr().err
    assert part in error
    assert len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_check_validates_without_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    repository(tmp_path / "r")
    path = listed(tmp_path, task("a"), task("b", check=""))
    assert main(["fleet", "check", str(path)]) == 0
    assert capsys.readouterr().out == "2 tasks in 1 repository; 1 without a check. Nothing is wrong.\n"
    assert main(["fleet", "check", str(path), "--print", "--model", "a/b"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["model"] == "a/b"
    listed(tmp_path, task("a", ref="v1"), "{")
    assert main(["fleet", "check", str(path)]) == 42
    assert "tasks.jsonl:2: not JSON" in capsys.readouterr().err


def test_the_only_run_here_needs_no_name(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"There is no run in .*; name one with --out FOLDER"):
        run_folder(None, tmp_path)
    Ledger(tmp_path / "fixes", resume=False).close()
    assert run_folder(None, tmp_path) == tmp_path / "fixes"
    assert run_folder(None, tmp_path / "fixes") == tmp_path / "fixes"
    Ledger(tmp_path / "more", resume=False).close()
    with pytest.raises(StartError, match=r"There are several runs in .* \(fixes, more\)"):
        run_folder(None, tmp_path)
    assert run_folder(str(tmp_path / "more"), tmp_path) == tmp_path / "more"


def test_ray_is_named_in_one_line_where_it_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    repository(tmp_path / "r")
    path = listed(tmp_path, task("a"))
    assert main(["fleet", "run", str(path), "--out", str(tmp_path / "out"), "--on", "ray"]) == 52
    assert capsys.readouterr().err == "swecli: --on ray needs Ray: pip install 'swecli[fleet]'\n"
    assert not (tmp_path / "out").exists()
