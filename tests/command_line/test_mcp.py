"""`swecli mcp`."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from swecli.command_line.arguments import UsageError
from swecli.command_line.headless import run_headless
from swecli.command_line.mcp import mcp
from swecli.core.config.paths import user_paths
from swecli.core.config.trust import write_trust
from swecli.launch import LaunchOptions
from tests.core.mcp.support import SERVER

WORDS = [sys.executable, str(SERVER)]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def test_added_listed_tried_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    assert mcp(["add", "hub", "-e", "TOKEN=${TOKEN:-x}", "-e", "INDENT= = ", "--", *WORDS]) == 0
    own = user_paths({"SWECLI_HOME": str(Path.cwd().parent / "home")}).config / "mcp.json"
    assert json.loads(own.read_text())["mcpServers"]["hub"]["env"] == {"TOKEN": "${TOKEN:-x}", "INDENT": " = "}
    assert mcp(["list", "--json"]) == 0
    entry = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (entry["name"], entry["state"], entry["scope"]) == ("hub", "on", "user")
    assert mcp(["test", "hub"]) == 0
    shown = capsys.readouterr().out
    assert "hub works (unkind 1.2): 12 tools" in shown
    assert "  echo  Says the text again." in shown
    with pytest.raises(UsageError, match="already"):
        mcp(["add", "hub", "--", "x"])
    assert mcp(["remove", "hub"]) == 0
    assert mcp(["list"]) == 0
    assert "No MCP servers" in capsys.readouterr().out


def test_names_of_a_server_cannot_control_the_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mcp(["add", "hub", "--", *WORDS, "control"])
    assert mcp(["test", "hub"]) == 0
    shown = capsys.readouterr().out
    assert "clear" in shown
    assert shown.replace("\n", "").isprintable()
    mcp(["add", "led", "-s", "project", "--", "sh", "-c", "rm x\x1b[2K\rtrue"])
    write_trust(user_paths({"SWECLI_HOME": str(home / "home")}).data, home / "work", "trusted")
    for words in (["approve", "led"], ["list"]):
        assert mcp(words) == 0
        shown = capsys.readouterr().out
        assert "rm x" in shown
        assert shown.replace("\n", "").isprintable()


def test_a_server_of_the_project_s_own_folder(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Claude Code's variable for it, which its own files use."""
    (home / "work" / "server.py").symlink_to(WORDS[-1])
    assert mcp(["add", "hub", "--", WORDS[0], "${CLAUDE_PROJECT_DIR}/server.py"]) == 0
    assert mcp(["test", "hub"]) == 0
    assert "hub works" in capsys.readouterr().out


def test_servers_added_at_the_same_time_are_all_there(home: Path) -> None:
    with ThreadPoolExecutor(12) as pool:
        assert set(pool.map(lambda name: mcp(["add", name, "--", "x"]), map("s{}".format, range(12)))) == {0}
    assert len(json.loads((home / "home" / "mcp.json").read_text())["mcpServers"]) == 12


def test_a_link_stays_one_and_a_file_keeps_its_rights(home: Path) -> None:
    shared, own = home / "dotfiles.json", home / "home" / "mcp.json"
    shared.write_text('{"mcpServers": {}}')
    own.parent.mkdir()
    own.symlink_to(shared)
    project = home / "work" / ".mcp.json"
    project.write_text('{"mcpServers": {}}')
    project.chmod(0o644)
    mcp(["add", "hub", "--", "x"])
    mcp(["add", "hub", "-s", "project", "--", "x"])
    assert own.is_symlink()
    assert "hub" in shared.read_text()
    assert "hub" in project.read_text()
    assert project.stat().st_mode & 0o777 == 0o644


def test_a_server_that_does_not_work(capsys: pytest.CaptureFixture[str]) -> None:
    mcp(["add", "bad", "--", *WORDS, "die"])
    assert mcp(["test", "bad"]) == 1
    assert "no such database" in capsys.readouterr().err


def test_a_server_of_the_project_is_approved(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mcp(["add", "hub", "-s", "project", "-e", "A=b", "--", "program"])
    assert json.loads((home / "work" / ".mcp.json").read_text())["mcpServers"]["hub"]["command"] == "program"
    with pytest.raises(UsageError, match=r"not trusted.*swecli permissions trust"):
        mcp(["approve", "hub"])
    write_trust(user_paths({"SWECLI_HOME": str(home / "home")}).data, home / "work", "trusted")
    mcp(["list"])
    assert "needs approval" in capsys.readouterr().out
    assert mcp(["approve", "hub"]) == 0
    assert "with the variables A" in capsys.readouterr().out
    mcp(["list"])
    assert "hub  on  program" in capsys.readouterr().out


def test_taken_over_from_another_program(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "work" / ".cursor").mkdir()
    servers = {"a": {"command": "x"}, "b": {"url": "https://y/mcp"}}
    (home / "work" / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    mcp(["import"])
    assert "Import them with --all." in capsys.readouterr().out
    assert mcp(["import", "--only", "b"]) == 0
    mcp(["list"])
    assert "b  on  https://y/mcp" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["servers", "mcpServers", ""])
def test_servers_in_another_programs_form_are_kept(key: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = {"time": {"command": "uvx"}}
    (home / "work" / ".mcp.json").write_text(json.dumps({key: table, "inputs": []} if key else {**table, "more": 1}))
    mcp(["add", "u", "-s", "project", "--", "x"])
    write_trust(user_paths({"SWECLI_HOME": str(home / "home")}).data, home / "work", "trusted")
    capsys.readouterr()
    mcp(["list", "--json"])
    assert [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()] == ["time", "u"]
    mcp(["remove", "time"])
    capsys.readouterr()
    mcp(["list", "--json"])
    assert [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()] == ["u"]


def test_what_an_editor_configured_works_the_same(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "work" / ".vscode").mkdir()
    (home / "work" / ".vscode" / "mcp.json").write_text(
        """{
          // VS Code's own form
          "servers": {
            "a": {"command": "x", "args": ["${workspaceFolder}/data", "http://y//z"], /* and */ "disabled": true,
                  "env": {"TOKEN": "${input:api-key}", "KEY": "${env:NOBODY}"}, "timeout": 5000},
          },
        }"""
    )
    mcp(["import"])
    assert "with the variables TOKEN (your api_key), KEY (your NOBODY)" in capsys.readouterr().out
    mcp(["import", "--all"])
    told = capsys.readouterr().out
    assert "switched off as it was" in told
    assert "a needs api_key, NOBODY in your environment." in told
    (file,) = (home / "home").rglob("mcp.json")
    assert json.loads(file.read_text())["mcpServers"]["a"] == {
        "command": "x",
        "args": ["./data", "http://y//z"],
        "env": {"TOKEN": "${api_key}", "KEY": "${NOBODY}"},
        "timeout": 5000,
        "disabled": True,
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["frob"], "has no 'frob'"),
        (["add", "x"], "Give a command after --"),
        (["add", "a b", "--", "x"], "its name must use"),
        (["add", "x", "-e", "novalue", "--", "y"], "wants NAME=VALUE"),
        (["add", "x", "npx", "-y", "y"], "Put -- before the program"),
        (["add", "x", "--url", "ftp://y"], "must begin with http"),
        (["add", "x", "ftp://y"], "must begin with http"),
        (["add", "x", "--transport", "stdio", "--url", "http://y"], "it has no command"),
        (["add", "x", "--transport", "http", "--", "y"], "it has no url"),
        (["add", "x", "--", ""], "it has no command"),
        (["remove", "x"], "No server 'x' is in"),
        (["test", "x"], "there are: none"),
        (["import"], "No servers are in"),
    ],
)
def test_mistakes_are_named(words: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        mcp(words)


def test_a_prompt_of_a_server_is_a_command_of_a_headless_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mcp(["add", "hub", "--", *WORDS])
    script = home / "script.toml"
    script.write_text('[[step]]\ntext = "done"\n')
    options = LaunchOptions(cwd=home / "work", prompt="/hub:review it", headless=True, script=script, store=False)
    assert run_headless(options) == 0
    assert capsys.readouterr().out.strip().endswith("done")


BROKEN = {
    ".cursor/mcp.json": ('{"mcpServers":\n {"a": {"command": "x"}}', ":2: is not valid JSON"),
    ".vscode/mcp.json": ('{\n "servers": []\n}', ":2: servers is not an object; the servers in it are ignored."),
    ".gemini/settings.json": ('{"mcpServers":\n {"b": 3, "ok": {"command": "y"}}}', ":2: ignored server 'b'"),
    ".codex/config.toml": ("[mcp_servers.x\ncommand = 'y'", ":1: is not valid TOML"),
    "opencode.json": ('{"mcp": {"s": {"type": "local"}}}', ":1: ignored server 's': it has no command."),
}


def test_broken_files_that_are_only_imported_are_named_once(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, (text, _) in BROKEN.items():
        (home / "work" / name).parent.mkdir(exist_ok=True)
        (home / "work" / name).write_text(text)
    assert mcp(["list"]) == 0
    assert "ignored" not in capsys.readouterr().err, "an untrusted folder's files are not read"
    write_trust(user_paths({"SWECLI_HOME": str(home / "home")}).data, home / "work", "trusted")
    for words in (["list"], ["import"]):
        assert mcp(words) == 0
        said = capsys.readouterr()
        for name, (_, told) in BROKEN.items():
            assert said.err.count(f"{name}{told}") == 1, said.err
    script = home / "script.toml"
    script.write_text('[[step]]\ntext = "done"\n')
    options = LaunchOptions(cwd=home / "work", prompt="hello", headless=True, script=script, store=False)
    assert run_headless(options) == 0
    said = capsys.readouterr()
    for name, (_, told) in BROKEN.items():
        assert said.err.count(f"{name}{told}") == 1, said.err
    assert mcp(["list"]) == 0
    assert "1 server of other agents can be imported: swecli mcp import" in capsys.readouterr().out
    assert mcp(["import", "--all"]) == 0
    assert mcp(["list"]) == 0
    assert "can be imported" not in capsys.readouterr().out


def test_the_help_names_every_word(capsys: pytest.CaptureFixture[str]) -> None:
    mcp(["--help"])
    told = capsys.readouterr().out
    assert [word for word in ("list", "add", "remove", "test", "import", "approve", "serve") if word not in told] == []
