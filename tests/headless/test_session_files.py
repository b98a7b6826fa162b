"""Sessions as files, with the real program: export, import, handoff and log."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from swecli.core.sessions.log import FIELDS
from tests.support.loopback import LoopbackServer
from tests.support.program import Ended, Program

pytestmark = pytest.mark.e2e

KEY = "canary-key-0123456789abc"
WORK = """
[[step]]
text = "I look."
call = [
  { tool = "write_file", arguments = { path = "a.py", content = "print(1)\\n" } },
  { tool = "run_command", arguments = { command = "echo $SOME_TOKEN; seq 2000" } },
]
[[step]]
text = "Done </script> \\u202e."
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program after a session of one turn in a trusted folder, with a large result and a key in it. Each test
    leaves the session as it was."""
    tmp_path = tmp_path_factory.mktemp("session-files")
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Be brief.\n")
    with LoopbackServer(parse_script(WORK, python=sys.executable)) as server:
        variables = {**server.environment(), "OPENAI_API_KEY": KEY, "SWECLI_MODEL": "openai/m"}
        made = Program(project, tmp_path / "home", variables)
        ended = made.run("-p", f"Fix it. Never print {KEY}.", "--trust", "--yolo")
        assert ended.code == 0, ended.stderr
    return made


def session_of(program: Program) -> str:
    (log,) = (program.folder / ".swecli" / "logs").glob("*.log")
    return log.stem


def delete(program: Program, session: str) -> None:
    (database,) = program.home.rglob("sessions.db")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        assert connection.execute("DELETE FROM sessions WHERE id = ?", (session,)).rowcount == 1


def request(program: Program, *arguments: str) -> str:
    ended = program.run("-p", "And now?", "--dry-run", *arguments)
    assert ended.code == 0, ended.stderr
    return ended.stdout


def refused(ended: Ended, *words: str) -> None:
    assert ended.code == 42, ended.stderr
    assert all(word in ended.stderr for word in words), ended.stderr


def test_a_session_exported_deleted_and_imported_is_the_same(program: Program) -> None:
    session = session_of(program)
    before, shown = request(program, "-r", session), program.run("sessions", "export", session).stdout
    for name in ("a.json", "a.md"):
        assert program.run("sessions", "export", session, "-o", name).code == 0
        assert KEY.encode() not in (program.folder / name).read_bytes()
    refused(program.run("sessions", "export", session, "-o", "a.md"), "exists", "--force")
    assert (program.folder / "a.md").read_text() == shown
    delete(program, session)
    refused(program.run("sessions", "export", session), "No session")
    (program.folder / "link.json").symlink_to("a.json")
    ended = program.run("sessions", "import", "link.json")
    assert ended.code == 0, ended.stderr
    assert f"-r {session}" in ended.stdout
    assert program.run("sessions", "export", session).stdout == shown
    assert request(program, "-r", session) == before
    assert "stored as r" in before
    for name, why in (("a.md", "for reading"), (".", "not a file")):
        refused(program.run("sessions", "import", name), why)


def test_commands_write_files_and_replace_none(program: Program) -> None:
    (program.folder / "taken.html").write_text("mine")
    assert "no message was sent" in program.run("-p", "/export empty.md").stdout
    assert not (program.folder / "empty.md").exists()
    exported = program.run("-p", "/export html", "-c").stdout
    (page,) = (program.home / "data" / "exports").glob("swecli-*.html")
    assert re.search(rf"Exported as an HTML page: {re.escape(str(page))} \([\d.]+ KB\)", exported), exported
    assert not list(program.folder.glob("swecli-*"))
    assert page.parent.stat().st_mode & 0o077 == 0
    assert page.stat().st_mode & 0o077 == 0
    assert KEY not in page.read_text()
    for line, why in (("/export taken.html", "exists"), ("/handoff no/x.md", "does not exist")):
        assert why in program.run("-p", line, "-c").stdout
    assert (program.folder / "taken.html").read_text() == "mine"
    program.run("-p", "/export --force taken.html", "-c")
    assert (program.folder / "taken.html").read_text().startswith("<!DOCTYPE html>")


def test_a_bundle_starts_a_session_elsewhere(program: Program, tmp_path: Path) -> None:
    assert "Handoff bundle written" in program.run("-p", "/handoff", "-c").stdout
    bundle = program.folder / "handoff.md"
    assert KEY not in bundle.read_text()
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text("print(2)\n")
    elsewhere = Program(other, tmp_path / "second-home", program.variables)
    ended = elsewhere.run("-p", "Go on.", "--from", str(bundle), "--dry-run")
    assert ended.code == 0, ended.stderr
    assert "a.py different here" in ended.stderr
    body = json.dumps(json.loads(ended.stdout)["body"])
    for words in ("Fix it. Never print ***", "a.py: created, sha256", "a.py different here", "Go on."):
        assert words in body
    refused(elsewhere.run("-p", "x", "--from", str(other / "a.py")), "not a handoff bundle", "Nothing was started")
    assert elsewhere.run("-p", "x", "--from", str(bundle), "-c").code == 2


def test_the_log_is_written_with_trust_only_and_makes_one_document(program: Program, tmp_path: Path) -> None:
    session = session_of(program)
    path = program.folder / ".swecli" / "logs" / f"{session}.log"
    assert program.run("logs", "path").stdout.strip() == str(path)
    text = path.read_text()
    assert KEY not in text
    assert [json.loads(line)["type"] for line in text.splitlines()][:2] == ["session_start", "user_input"]
    assert session in program.run("logs").stdout
    assert "tool_execution: tool write_file" in program.run("logs", "show", session[:13]).stdout
    exported = program.run("logs", "export", session).stdout
    document = json.loads(exported)
    assert {event["type"] for event in document["events"]} >= {"user_input", "llm_call", "tool_execution"}
    assert all([*event] == ["timestamp", "type", *FIELDS[event["type"]]] for event in document["events"])
    assert document["stats"]["files_modified"] == ["a.py"]
    (database,) = program.home.rglob("sessions.db")
    kept = database.rename(database.with_name("kept.db"))
    assert program.run("logs", "export", session).stdout == exported
    refused(program.run("logs", "export", "nope"), "no log for session 'nope'")
    kept.rename(database)
    other = tmp_path / "untrusted"
    other.mkdir()
    for arguments, settings in (((), ""), (("--trust",), "[log]\nenabled = false\n")):
        (tmp_path / "settings.toml").write_text(settings)
        elsewhere = Program(
            other, program.home, {**program.variables, "SWECLI_CONFIG": str(tmp_path / "settings.toml")}
        )
        elsewhere.run("-p", "/status", *arguments)
        assert [*other.iterdir()] == []
    assert "swecli permissions trust" in elsewhere.run("logs").stderr


def test_a_session_of_another_agent_goes_on(program: Program) -> None:
    lines = [
        {"type": "user", "cwd": "/elsewhere", "message": {"role": "user", "content": "Hello from afar"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "Hello back"}]}},
    ]
    (program.folder / "claude.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in [*lines, {"type": "new"}]))
    ended = program.run("sessions", "import", "claude.jsonl")
    assert ended.code == 0, ended.stderr
    assert "1 not understood" in ended.stderr
    assert "/elsewhere" in ended.stderr
    sent = request(program, "-r", ended.stdout.split()[-1])
    assert sent.index("Hello from afar") < sent.index("Hello back") < sent.index("And now?")
