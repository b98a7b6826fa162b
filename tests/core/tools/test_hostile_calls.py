"""Odd and hostile paths and arguments through ``swecli debug tool --batch``: refused or asked about, told clearly."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.preloaded import Preloaded
from tests.support.waiting import PATIENCE

SECRET = "KEY-THAT-NOBODY-MAY-SEE"


class Place:
    """A workspace with traps, beside a folder that nothing may read or change."""

    def __init__(self, base: Path) -> None:
        self.base, self.root, self.home, self.outside = base, base / "home" / "work", base / "home", base / "outside"
        for folder in ("src/deep", ".git/hooks", ".swecli/hooks", ".ssh", "closed"):
            (self.root / folder).mkdir(parents=True)
        self.outside.mkdir()
        for name in ("secret.txt", "victim.txt"):
            (self.outside / name).write_text(SECRET)
        for name in (".env", ".env.local", "id_rsa", ".netrc", "server.pem", ".ssh/config", "credentials.json"):
            (self.root / name).write_text(SECRET)
        (self.home / ".bashrc").write_text(SECRET)
        (self.root / "ok.txt").write_text("fine\n")
        (self.root / "src" / "a.py").write_text("a = 1\n")
        (self.root / "src" / "caf\u00e9.txt").write_text("nfc\n")
        (self.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (self.root / ".git" / "config").write_text("[core]\n")
        links = {
            "out": self.outside,
            "out-file": self.outside / "victim.txt",
            "chain": "out-file",
            "chain2": "chain",
            "loop-a": "loop-b",
            "loop-b": "loop-a",
            "dangling-out": self.outside / "absent.txt",
            "dangling-in": "src/absent.txt",
            "in": "src",
            "to-root": "/",
            "to-git": ".git",
            "to-zero": "/dev/zero",
            "src/up": "../..",
        }
        for name, target in links.items():
            (self.root / name).symlink_to(target)
        os.link(self.outside / "victim.txt", self.root / "hard.txt")
        os.mkfifo(self.root / "pipe")
        with socket.socket(socket.AF_UNIX) as listener:
            here = Path.cwd()
            try:
                os.chdir(self.root)
                listener.bind("sock")
            finally:
                os.chdir(here)

    def run(self, lines: list[str]) -> list[dict[str, Any]]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "SWECLI_HOME": str(self.base / "swecli"),
            "LANG": "C.UTF-8",
        }
        given = "".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = Preloaded(["debug", "tool", "--batch"], cwd=self.root, env=environment, **pipes)
        try:
            out, err = process.communicate(given, timeout=PATIENCE)
        finally:
            process.kill()
        assert b"Traceback" not in err + out, err[-2000:]
        answers = [json.loads(line) for line in out.splitlines()]
        assert len(answers) == len(lines)
        return answers

    def state(self) -> dict[str, Any]:
        """What is outside and what is protected inside."""
        found: dict[str, Any] = {}
        for start in (self.outside, self.root / ".git", self.root / ".swecli", self.root / ".ssh"):
            for path in (start, *sorted(start.rglob("*"))):
                found[str(path)] = (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        found["home"] = sorted(entry.name for entry in self.home.iterdir())
        found[".env"] = (self.root / ".env").read_bytes()
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def line(name: str, arguments: object, mode: str = "default", *, approve: bool = False) -> str:
    return json.dumps({"id": 1, "name": name, "arguments": arguments, "mode": mode, "approve": approve})


ELSEWHERE = [
    *("..", "../", "../..", "../../outside/secret.txt", "src/../../x", "./../x", "src/deep/../../../x", "..//..//x"),
    *("/etc/passwd", "/etc/shadow", "//etc/passwd", "/etc/../etc/passwd", "/proc/self/environ", "/proc/1/environ"),
    *(
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/../../outside/secret.txt",
        "/proc/self/fd/0",
        "/dev/mem",
        "/",
        "/root",
    ),
    *("~", "~/", "~/.bashrc", "~/.ssh/id_rsa", "~root", "~root/.bashrc", "~/../outside/secret.txt"),
    *("out", "out/", "out/secret.txt", "out/../outside/secret.txt", "out-file", "chain", "chain2", "dangling-out"),
    *("to-root/etc/passwd", "to-root/etc", "in/../../x", "src/up", "src/up/.bashrc", "src/up/../outside/secret.txt"),
    *("./out-file", "src/../out-file", "out-file/", "to-zero", "/dev/zero", "/dev/null/x", "/dev/random"),
]
SECRETS = [".env", "./.env", ".env.local", "src/../.env", "id_rsa", ".netrc", "server.pem", ".ssh/config", "in/../.env"]
SECRETS += ["credentials.json", ".ENV", "/proc/self/cwd/.env"]
BROKEN = [
    *("ok.txt\0", "\0", "src/\0/x", "loop-a", "loop-a/x", "~nobody-of-this-name/x", "x" * 300, "a/" * 3_000 + "x"),
    *("\ud800", "src/\udcff", "ok.txt/x", "pipe", "sock", "", " ", "absent/x.txt", "$HOME/.bashrc"),
]
PROTECTED = [
    *(".git/config", ".git/hooks/pre-commit", ".git/HEAD", ".GIT/config", "to-git/config", "to-git/hooks/post-merge"),
    *(".swecli/config.toml", ".swecli/hooks/x", ".swecli/config.local.toml", ".vscode/tasks.json", ".envrc", ".bashrc"),
    *(".mcp.json", ".ssh/authorized_keys", ".idea/x.xml", ".husky/pre-commit", ".gitmodules", "src/../.git/config"),
]


def told(answer: dict[str, Any]) -> bool:
    return answer["status"] != "ok" and bool(str(answer.get("text", "")).strip()) and SECRET not in json.dumps(answer)


def test_reading_elsewhere_and_secrets_is_never_silent(place: Place) -> None:
    paths = [*ELSEWHERE, *SECRETS]
    calls = [(path, mode) for path in paths for mode in ("accept-edits", "auto")]
    answers = place.run([line("read_file", {"path": path}, mode) for path, mode in calls])
    wrong = [(call, answer) for call, answer in zip(calls, answers, strict=True) if not told(answer)]
    assert wrong == []


@pytest.mark.parametrize("tool", ["list_files", "search"])
def test_looking_around_elsewhere_is_never_silent(place: Place, tool: str) -> None:
    calls = [{"path": path, **({"pattern": "KEY"} if tool == "search" else {})} for path in ELSEWHERE]
    answers = place.run([line(tool, call, "auto") for call in calls])
    assert [call for call, answer in zip(calls, answers, strict=True) if not told(answer)] == []


@pytest.mark.parametrize("mode", ["accept-edits", "auto"])
def test_writing_elsewhere_or_to_what_steers_programs_is_never_silent(place: Place, mode: str) -> None:
    before = place.state()
    calls: list[tuple[str, dict[str, Any]]] = []
    for index, path in enumerate((*ELSEWHERE, *PROTECTED, ".env", "id_rsa")):
        calls.append(("write_file", {"path": path, "content": "owned"}))
        if index % 4:
            continue
        calls.append(("edit_file", {"path": path, "old_string": "KEY", "new_string": "owned"}))
        patch = f"*** Begin Patch\n*** Add File: {path}\n+owned\n*** End Patch\n"
        calls.append(("apply_patch", {"input": patch}))
    answers = place.run([line(name, arguments, mode) for name, arguments in calls])
    assert [call for call, answer in zip(calls, answers, strict=True) if not told(answer)] == []
    assert place.state() == before


def test_what_is_no_usable_path_is_an_error_even_when_approved(place: Place) -> None:
    before = place.state()
    calls = [(tool, path) for path in BROKEN for tool in ("read_file", "edit_file")]
    extra: dict[str, dict[str, Any]] = {"read_file": {}, "edit_file": {"old_string": "a", "new_string": "b"}}
    answers = place.run([line(tool, {"path": path, **extra[tool]}, approve=True) for tool, path in calls])
    assert [call for call, answer in zip(calls, answers, strict=True) if not told(answer)] == []
    assert place.state() == before


def test_names_that_no_file_can_have_are_an_error_of_every_tool(place: Place) -> None:
    before = place.state()
    extra: dict[str, dict[str, Any]] = {"list_files": {}, "search": {"pattern": "x"}, "write_file": {"content": "x"}}
    names = ("x" * 300, "a/" * 3_000 + "x", "ok.txt/x", "loop-a", "loop-a/x", "a\0b", "\ud800")
    calls = [(tool, name) for name in names for tool in extra]
    patch = "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch"
    lines = [line(tool, {"path": name, **extra[tool]}, "accept-edits", approve=True) for tool, name in calls]
    lines += [line("apply_patch", {"input": patch.format(name)}, "accept-edits", approve=True) for name in names]
    answers = place.run(lines)
    assert [answer for answer in answers if not told(answer) or answer.get("defect")] == []
    assert place.state() == before


def test_a_hard_link_to_the_outside_is_not_written_through_unasked(place: Place) -> None:
    (answer,) = place.run([line("write_file", {"path": "hard.txt", "content": "x"}, "default")])
    assert answer["status"] != "ok"
    assert (place.outside / "victim.txt").read_text() == SECRET


def test_ordinary_paths_in_odd_spellings_still_work(place: Place) -> None:
    good = [
        "ok.txt",
        "ok.txt/",
        "./ok.txt",
        "src/../ok.txt",
        "src//a.py",
        "in/a.py",
        str(place.root / "ok.txt"),
        "src/café.txt",
    ]
    answers = place.run([line("read_file", {"path": path}) for path in good])
    assert [answer["status"] for answer in answers] == ["ok"] * len(good)


ARGUMENTS: list[tuple[str, Any]] = [
    ("read_file", raw)
    for raw in (
        *('{"path": "ok.txt"', '{"path": ', '["ok.txt"]', "null", "3", "true", '"ok.txt"', "{", "}", "[", "nonsense"),
        *("{'path': 'ok.txt'}", '{"path": "ok.txt",}', '{"path": "ok.txt"} x', '{"path": NaN}', "\ufeff{}", "{}", ""),
        *('{"path": "ok.txt", "path": "src/a.py"}', '{"path": {"a": 1}}', '{"path": ["ok.txt"]}', '{"path": null}'),
        *('{"path": true}', '{"path": "ok.txt", "extra": 1}', '{"path": "ok.txt", "offset": 0}', "[" * 100_000),
        *('{"path": "ok.txt", "offset": -1}', '{"path": "ok.txt", "limit": 0}', '{"path": "ok.txt", "limit": -5}'),
        *(
            '{"path": "ok.txt", "offset": 1.5}',
            '{"path": "ok.txt", "offset": "x"}',
            '{"path": "ok.txt", "offset": 1e400}',
        ),
        *('{"path": "ok.txt", "offset": []}', '{"path": "\\ud800"}', '{"path": "ok.txt\\u0000"}', '{"path": ""}'),
        *('{"path":' * 5_000, '{"path": "ok.txt", "offset": ' + "9" * 5_000 + "}", '{"PATH": "ok.txt"}'),
        '{"path": "ok.txt", "limit": Infinity}',
    )
    if len(raw) != 1 or raw in "{}[3"
]
ARGUMENTS += [
    *(("write_file", value) for value in ({}, {"path": "n.txt"}, {"content": "x"}, {"path": 1.5e300, "content": []})),
    *(("write_file", {"path": "n.txt", "content": value}) for value in (None, {"a": 1}, ["x"], True)),
    *(("write_file", {"path": value, "content": "x"}) for value in (None, [], {}, True, "", "\0", "\ud800")),
    ("write_file", {"path": "n.txt", "content": "x", "mode": "0777"}),
    *(("edit_file", value) for value in ({}, {"path": "ok.txt"}, {"path": "ok.txt", "old_string": "fine"})),
    ("edit_file", {"path": "ok.txt", "old_string": "", "new_string": "x"}),
    ("edit_file", {"path": "ok.txt", "old_string": "fine", "new_string": "fine"}),
    ("edit_file", {"path": "ok.txt", "old_string": "absent", "new_string": "x"}),
    ("edit_file", {"path": "ok.txt", "edits": "no list"}),
    ("edit_file", {"path": "ok.txt", "edits": [1]}),
    ("edit_file", {"path": "ok.txt", "edits": []}),
    ("edit_file", {"path": "ok.txt", "edits": [{"old_string": "fine"}]}),
    (
        "edit_file",
        {"path": "ok.txt", "old_string": "fine", "new_string": "x", "edits": [{"old_string": "a", "new_string": "b"}]},
    ),
    *(
        ("run_command", value)
        for value in ({}, {"command": ""}, {"command": None}, {"command": ["ls", 3]}, {"command": {}})
    ),
    *(("run_command", {"command": "ls", "timeout": value}) for value in (0, -1, "x", [], 10**400)),
    ("run_command", {"command": "ls", "background": "perhaps"}),
    ("run_command", {"command": "ls", "cwd": 3}),
    ("run_command", {"command": "ls\0"}),
    ("run_command", {"command": "echo \ud800"}),
    *(
        ("search", value)
        for value in ({}, {"pattern": ""}, {"pattern": None}, {"pattern": "("}, {"pattern": "a", "context": -1})
    ),
    *(("search", {"pattern": "a", name: "x"}) for name in ("context", "max_results", "ignore_case")),
    *(("list_files", value) for value in ({"depth": 0}, {"depth": -3}, {"depth": "x"}, {"path": []}, {"depth": 1.5})),
    *(("apply_patch", value) for value in ({}, {"input": ""}, {"input": "nonsense"}, {"input": 3, "x": 1})),
    *((name, {}) for name in ("no_such_tool", "", "Read\0", "../read_file", "x" * 10_000)),
    *(
        ("update_todos", value)
        for value in ({}, {"todos": 3}, {"todos": [3]}, {"todos": [{"text": 1, "status": "odd"}]})
    ),
]


def test_arguments_that_do_not_fit_are_told_and_nothing_is_done(place: Place) -> None:
    before = place.state()
    names = sorted(path.name for path in place.root.iterdir())
    answers = place.run([line(name, value, "accept-edits", approve=True) for name, value in ARGUMENTS])
    wrong = [
        (name, str(value)[:80], answer)
        for (name, value), answer in zip(ARGUMENTS, answers, strict=True)
        if not told(answer) or len(json.dumps(answer)) > 20_000
    ]
    assert wrong == []
    assert (sorted(path.name for path in place.root.iterdir()), place.state()) == (names, before)
    assert (place.root / "ok.txt").read_text() == "fine\n"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "{",
            "[]",
            "null",
            "3",
            '"x"',
            "{}",
            '{"name": 3}',
            '{"name": null}',
            '{"name": "read_file", "mode": "yolo"}',
        ),
        *('{"name": "read_file", "mode": ["auto"]}', '{"name": "read_file", "cwd": "/absent"}', "[" * 50_000),
        '{"name": "read_file", "cwd": "a\\u0000b"}',
        '{"name": "read_file", "cwd": "\\ud800"}',
    ],
)
def test_lines_that_are_no_call_are_answered(place: Place, text: str) -> None:
    (answer,) = place.run([text])
    assert answer["status"] == "error"


def test_there_are_enough_cases_to_mean_something() -> None:
    assert len({*ELSEWHERE, *SECRETS, *BROKEN, *PROTECTED}) >= 90
    assert len(ARGUMENTS) >= 75
