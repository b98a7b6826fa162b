"""The action, its workflows and the GitLab template: their steps' scripts run as a runner would run them, in an empty
environment, with a scripted model and a pretended ``gh``."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from swecli import __version__
from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
ACTION = ROOT / "action.yml"
REVIEW, FIX = ROOT / "integrations" / "github" / "review.yml", ROOT / "integrations" / "github" / "fix.yml"
GITLAB = ROOT / "integrations" / "gitlab" / "swecli.yml"
WORKFLOWS = [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), REVIEW, FIX]
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


def read(path: Path) -> Any:
    # YAML 1.1 takes the key `on` for a boolean; BaseLoader keeps every scalar a text.
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def steps_of(path: Path) -> Iterator[dict[str, Any]]:
    whole = read(path)
    if path == ACTION:
        yield from whole["runs"]["steps"]
    for job in whole.get("jobs", {}).values():
        yield from job["steps"]


def step(path: Path, name: str) -> dict[str, Any]:
    return next(each for each in steps_of(path) if each.get("name") == name)


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.name)
def test_scripts_parse_and_take_nothing_from_outside_but_variables(path: Path) -> None:
    for each in steps_of(path):
        script = each.get("run", "")
        assert not EXPRESSION.search(script), each  # text of an issue would become part of the script
        parsed = subprocess.run(["bash", "-n", "-c", script], capture_output=True, text=True, check=False)
        assert (parsed.returncode, parsed.stderr) == (0, "")


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.name)
def test_actions_are_pinned_and_no_token_stays_in_the_clone(path: Path) -> None:
    used = [each for each in steps_of(path) if "uses" in each]
    for each in used:
        name, _, version = each["uses"].partition("@")
        assert version == f"v{__version__}" if name == "swecli/swecli" else re.fullmatch("[0-9a-f]{40}", version), each
        if name == "actions/checkout":
            assert each["with"]["persist-credentials"] == "false"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_permission_and_each_job_what_it_needs(path: Path) -> None:
    whole = read(path)
    assert whole["permissions"] == {}
    for job in whole["jobs"].values():
        writes = {name for name, value in job["permissions"].items() if value == "write"}
        reads_key = "secrets." in json.dumps(job)
        assert not (reads_key and "contents" in writes), "the model works in a job that may write to the repository"


def test_every_file_for_other_people_s_tools_names_this_version() -> None:
    folder = ROOT / "integrations"
    entry = json.loads((folder / "acp-registry" / "swecli" / "agent.json").read_text(encoding="utf-8"))
    assert entry["version"] == __version__
    assert entry["distribution"]["uvx"] == {"package": f"swecli=={__version__}", "args": ["acp"]}
    feature = json.loads((folder / "devcontainer" / "swecli" / "devcontainer-feature.json").read_text(encoding="utf-8"))
    assert feature["version"] == __version__
    assert f"swecli-{__version__}.tar.gz" in (folder / "homebrew" / "swecli.rb").read_text(encoding="utf-8")
    assert f"/swecli/v{__version__}/integrations/gitlab/" in GITLAB.read_text(encoding="utf-8")


def test_the_dev_container_s_script_says_what_it_lacks(tmp_path: Path) -> None:
    script = ROOT / "integrations" / "devcontainer" / "swecli" / "install.sh"
    ended = subprocess.run(["/bin/sh", str(script)], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "needs Python 3.11 or newer" in ended.stderr


class Runner:
    """A job: its folders, and what its steps wrote for each other."""

    def __init__(self, folder: Path, project: Path, server: LoopbackServer) -> None:
        self.temp, self.project, self.server = folder / "runner", project, server
        (self.temp / "swecli" / "bin").mkdir(parents=True)
        tools = folder / "tools"
        tools.mkdir()
        for place in (self.temp / "swecli" / "bin", tools):
            (place / "swecli").write_text(f'#!/bin/sh\nexec {sys.executable} -m swecli.cli "$@"\n', encoding="utf-8")
            (place / "swecli").chmod(0o755)
        self.asked = folder / "gh.txt"
        (tools / "gh").write_text(f'#!/bin/sh\nprintf "%s\\n" "$GH_TOKEN" "$@" >>{self.asked}\n', encoding="utf-8")
        (tools / "gh").chmod(0o755)
        self.environment = {
            "PATH": f"{tools}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_REPOSITORY": "someone/something",
            "GITHUB_OUTPUT": str(folder / "output.txt"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }

    def run(self, each: Mapping[str, Any], values: Mapping[str, str]) -> str:
        """Run a step; expressions in its variables are looked up in ``values``. Returns what it printed."""
        variables = {
            name: EXPRESSION.sub(lambda match: values[match.group(1)], value) for name, value in each["env"].items()
        }
        return self.bash(each["run"], variables)

    def bash(self, script: str, variables: Mapping[str, str]) -> str:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.project,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def outputs(self) -> dict[str, str]:
        text = Path(self.environment["GITHUB_OUTPUT"]).read_text(encoding="utf-8")
        return dict(re.findall(r"^([a-z-]+)<<(?:end-\w+)\n(.*?)\nend-", text, re.MULTILINE | re.DOTALL))

    def act(self, given: Mapping[str, str]) -> dict[str, str]:
        """The step `Run` of the action with these inputs. Returns its outputs."""
        keys = f"OPENAI_API_KEY=key-of-the-model\nOPENAI_BASE_URL={self.server.url}/v1\n"
        inputs = {name: each.get("default", "") for name, each in read(ACTION)["inputs"].items()}
        inputs |= {**given, "keys": keys, "model": "openai/scripted", "max-price": ""}
        values = {f"inputs.{name}": value for name, value in inputs.items()}
        self.run(step(ACTION, "Run"), {**values, "github.action_path": str(ROOT)})
        return self.outputs()


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "price.py").write_text("def total(prices):\n    return sum(prices)\n", encoding="utf-8")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Begin")
    return folder


FINDINGS = {
    "summary": "One defect, told to @everyone.",
    "findings": [
        {"file": "price.py", "line": 2, "severity": "minor", "finding": "Slow | maybe ![x](http://host/x)"},
        {"file": "price.py", "line": 1, "severity": "critical", "finding": "The first price is left out."},
    ],
}
ANSWER = f"[[step]]\ntext = '''{json.dumps(FINDINGS)}'''\n"


def with_change(project: Path) -> str:
    """Commit a change. Returns the commit before it."""
    base = git(project, "rev-parse", "HEAD").strip()
    (project / "price.py").write_text("def total(prices):\n    return sum(prices[1:])\n", encoding="utf-8")
    git(project, "commit", "--quiet", "-am", "Change")
    return base


def given(path: Path, runner: Runner, **more: str) -> dict[str, str]:
    """The inputs that the workflow gives to the action."""
    used = next(each for each in steps_of(path) if each.get("uses", "").startswith("swecli/swecli@"))["with"]
    values = {"runner.temp": str(runner.temp), "secrets.ANTHROPIC_API_KEY": "k", **more}
    return {name: EXPRESSION.sub(lambda match: values[match.group(1)], value) for name, value in used.items()}


def test_a_review_is_findings_as_json_and_a_comment(project: Path, tmp_path: Path) -> None:
    base = with_change(project)
    with LoopbackServer(parse_script(ANSWER)) as server:
        runner = Runner(tmp_path, project, server)
        runner.run(step(REVIEW, "Write the prompt"), {"github.event.pull_request.base.sha": base})
        found = runner.act(given(REVIEW, runner, **{"github.event.pull_request.number": "7"}))
        message = json.dumps(server.asked[0].body["messages"])
        assert server.asked[0].headers["authorization"] == "Bearer key-of-the-model"
    assert "sum(prices[1:])" in message
    assert found["status"] == "done"
    assert found["exit-code"] == "0"
    assert json.loads(found["structured-output"]) == FINDINGS

    comment = Path(found["comment-file"]).read_text(encoding="utf-8")
    assert comment == Path(runner.environment["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8")
    rows = [line for line in comment.splitlines() if line.startswith("| ")][1:]
    assert rows[0] == "| critical | `price.py:1` | The first price is left out. |"
    assert "@everyone" not in comment
    assert "![x](http" not in comment
    assert "Slow \\|" in rows[1]

    runner.run(step(ACTION, "Export the session"), {"steps.run.outputs.session": found["session"]})
    assert "The first price is left out." in (runner.temp / "swecli-session.html").read_text(encoding="utf-8")
    values = {
        "inputs.github-token": "token",
        "inputs.comment-on": "7",
        "steps.run.outputs.comment-file": found["comment-file"],
    }
    runner.run(step(ACTION, "Comment"), values)
    asked = runner.asked.read_text(encoding="utf-8")
    assert "POST\nrepos/someone/something/issues/7/comments" in asked
    assert f"body=@{found['comment-file']}" in asked
    assert not git(project, "status", "--porcelain", "--untracked-files=all")


EDIT = """
[[step]]
call = [{ tool = "edit_file", arguments = { path = "price.py", old_string = "[1:]", new_string = "" } }]
[[step]]
text = "The slice left the first price out; it is gone now."
"""


def test_a_fix_is_a_patch_that_applies_elsewhere(project: Path, tmp_path: Path) -> None:
    with_change(project)
    origin = tmp_path / "origin.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(project), str(origin))
    issue = {
        "github.event.issue.number": "12",
        "github.event.issue.title": "Wrong `total` $(touch pwned)",
        "github.event.issue.body": '"; touch pwned; echo "',
        "github.event.repository.default_branch": "main",
        "github.token": "token",
    }
    with LoopbackServer(parse_script(EDIT)) as server:
        (tmp_path / "one").mkdir()
        runner = Runner(tmp_path / "one", project, server)
        runner.run(step(FIX, "Write the prompt"), issue)
        found = runner.act(given(FIX, runner))
        assert "Wrong `total` $(touch pwned)" in json.dumps(server.asked[0].body["messages"])
    assert found["text"].startswith("The slice left")
    runner.run(step(FIX, "Make the patch"), {"steps.swecli.outputs.comment-file": found["comment-file"]})
    assert not list(tmp_path.rglob("pwned"))

    (tmp_path / "two").mkdir()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(origin), str(clone))
    second = Runner(tmp_path / "two", clone, server)
    shutil.copytree(runner.temp / "fix", second.temp / "fix")
    second.bash(step(FIX, "Apply the patch")["run"], {})
    assert "sum(prices)\n" in (clone / "price.py").read_text(encoding="utf-8")
    second.run(step(FIX, "Open the pull request"), issue)
    assert "+    return sum(prices)\n" in git(origin, "show", "swecli/issue-12")
    assert "--draft\n--base\nmain\n--head\nswecli/issue-12" in second.asked.read_text(encoding="utf-8")
    assert "Fixes #12" in (second.temp / "fix" / "body.md").read_text(encoding="utf-8")


def test_gitlab_shows_findings_beside_the_changes(project: Path, tmp_path: Path) -> None:
    base = with_change(project)
    job = read(GITLAB)["swecli-review"]
    # The runner joins the lines of a script; the first ones install packages.
    script = "\n".join(job["script"]).replace("/tmp/", f"{tmp_path}/")
    with LoopbackServer(parse_script(ANSWER)) as server:
        runner = Runner(tmp_path, project, server)
        variables = {**job["variables"], "CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "SWECLI_MODEL": "openai/scripted"}
        printed = runner.bash(script, {**variables, "SWECLI_MAX_PRICE": "1", **server.environment()})
    assert "critical: price.py:1: The first price is left out." in printed
    report = json.loads((project / "gl-code-quality-report.json").read_text(encoding="utf-8"))
    assert [(each["location"]["path"], each["severity"]) for each in report] == [
        ("price.py", "minor"),
        ("price.py", "critical"),
    ]
    assert (project / "swecli-session.html").exists()
