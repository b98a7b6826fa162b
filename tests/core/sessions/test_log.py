"""The log: one JSON object a line, and one document with exactly the fields that are promised."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.protocol.codec import to_text
from swecli.core.protocol.events import (
    AgentStarted,
    CacheBreak,
    ContextRetrieved,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ModelResponded,
    Notice,
    SessionStarted,
    StepEnded,
    TurnEnded,
)
from swecli.core.protocol.messages import Origin, ProviderReport, TextPart, ToolCallPart
from swecli.core.sessions.log import (
    FIELDS,
    KEPT,
    LogEntries,
    SessionLog,
    log_document,
    log_files,
    log_path,
    read_lines,
)
from tests.export.support import answered, call, in_order, result, said, sample, user


def entries(events: Sequence[Event]) -> list[dict[str, Any]]:
    reading = LogEntries(len)
    return [entry for event in events for entry in reading.take(event)]


def log(folder: Path, **options: Any) -> SessionLog:
    return SessionLog(folder, "s", LogEntries(len), **options)


def test_the_document_has_the_promised_fields_and_sums() -> None:
    document = log_document("s", entries(sample()))
    assert [*document] == ["session_id", "started_at", "working_dir", "events", "stats"]
    assert document["started_at"] == "2026-01-02T03:04:06Z"
    assert document["working_dir"] == "/proj"
    for event in document["events"]:
        assert [*event] == ["timestamp", "type", *FIELDS[event["type"]]]
    kinds = [event["type"] for event in document["events"]]
    assert {*kinds} == {*FIELDS} - {"context_retrieval"}
    by_kind = {event["type"]: event for event in reversed(document["events"])}
    assert by_kind["user_input"]["content"] == "Fix add. Never touch the tests.[image shot.png]"
    assert by_kind["user_input"]["tokens"] == 31
    assert by_kind["llm_call"] | {"timestamp": ""} == {
        "timestamp": "",
        "type": "llm_call",
        "tokens_in": 4_000,
        "tokens_out": 50,
        "duration_ms": 1500,
    }
    assert (by_kind["tool_execution"]["file"], by_kind["tool_execution"]["approved"]) == ("calc.py", True)
    assert (by_kind["context_update"]["total_tokens"], by_kind["context_update"]["usage_percent"]) == (4_000, 40.0)
    assert [by_kind["compaction"][name] for name in FIELDS["compaction"]] == [8_000, 3_000, 62.5, 5]
    assert document["stats"] == {
        "total_turns": 2,
        "llm_calls": 4,
        "tools_executed": 2,
        "compactions": 1,
        "total_tokens_used": 3 * 4_050 + 3_500 + len("The key is sk-proj-0123456789abcdefghijklmn."),
        "files_modified": ["calc.py"],
    }


def test_a_call_says_what_it_was_about_whether_it_ran_or_not() -> None:
    run = ToolCallPart("c1", "run_command", '{"command": "rm -r build"}')
    started = [ItemStarted("t1", "tool", "run_command"), ItemCheckpointed("t1", run)]
    shown = ItemCheckpointed("t1", run, title="rm -r build")
    refused = [*started, shown, ItemCompleted("t1", "rejected", (result("t1", "run_command", "no"),))]
    ran = [*started, shown, replace(shown, running=True, title=""), ItemCompleted("t1", "ok", ())]
    unread = [ItemStarted("t2", "tool", "run_command"), ItemCompleted("t2", "error", (), title="cut off")]
    for bodies, target in ((refused, "rm -r build"), (ran, "rm -r build"), (unread, "cut off")):
        (entry,) = entries(in_order(bodies))
        assert entry["target"] == target
    (document,) = log_document("s", entries(in_order(ran)))["events"]
    assert "target" not in document


def test_rejected_calls_attachments_subagents_and_other_lines() -> None:
    bodies = [
        *user("u1", TextPart("look at @a.py")),
        ItemStarted("t2", "attachment", "read_file", "/proj/a.py"),
        ItemCompleted("t2", "ok", (result("t2", "read_file", "12345"),)),
        *call("t3", "write_file", '{"path": "b.py"}')[:1],
        ItemCompleted("t3", "rejected", (result("t3", "write_file", "no"),)),
        CacheBreak("tools changed", 900),
        Notice("careful", "warning", "x"),
        TurnEnded("done"),
    ]
    events = in_order(bodies)
    unmade = [*call("t4", "memory", '{"command": "delete"}')[:1], ItemCompleted("t4", "error", ())]
    stopped = [*call("t5", "memory", '{"command": "delete"}')[:1], ItemCompleted("t5", "interrupted", ())]
    made = [entry["approved"] for entry in entries(in_order([*user("u1"), *unmade, *stopped])) if "approved" in entry]
    assert made == [True, False]
    inner = [
        Event(90, 1.0, "s", 1, AgentStarted("x1", "t3", "t", "general", "m")),
        *(Event(91 + n, 1.0, "s", 1, body, "x1") for n, body in enumerate([*said("b1", "1234"), answered("b1")])),
    ]
    found = entries([*events, *inner])
    by_kind = {entry["type"]: entry for entry in found}
    assert by_kind["tool_execution"]["approved"] is False
    assert by_kind["cache_break"]["cause"] == "tools changed"
    assert by_kind["notice"]["level"] == "warning"
    assert by_kind["llm_call"]["agent"] == "x1"
    assert by_kind["llm_call"]["tokens_out"] == 4
    step = entries([*in_order(bodies[:5]), sample()[4]])
    retrieved = next(entry for entry in step if entry["type"] == "context_retrieval")
    assert (retrieved["actions"], retrieved["tokens_added"]) == (["read /proj/a.py"], 5)
    assert log_document("s", found)["stats"]["tools_executed"] == 0


def test_what_an_index_found_is_one_entry_with_what_the_user_attached() -> None:
    bodies = [
        SessionStarted("/proj", "m", "default", "1"),
        *user("u1", TextPart("a.py and @b.py")),
        ItemStarted("t2", "attachment", "read_file", "/proj/b.py"),
        ItemCompleted("t2", "ok", (result("t2", "read_file", "12345"),)),
        ItemStarted("t3", "attachment", "read_file", "/proj/a.py"),
        ItemCompleted("t3", "ok", (result("t3", "read_file", "123"),)),
        ContextRetrieved(("read a.py", "point to c.py:2 go"), 40),
    ]
    found = entries([*in_order(bodies), sample()[4]])
    retrieved = [entry for entry in found if entry["type"] == "context_retrieval"]
    assert [(entry["actions"], entry["tokens_added"]) for entry in retrieved] == [
        (["read b.py", "read a.py", "point to c.py:2 go"], 45)
    ]


def test_it_is_there_at_once_for_the_user_alone_and_not_for_the_repository(tmp_path: Path) -> None:
    written = log(tmp_path)
    for number, event in enumerate(sample(), 1):
        written.write([event])
        if number == 4:
            assert '"user_input"' in log_path(tmp_path, "s").read_text()
    written.close()
    path = log_path(tmp_path, "s")
    assert path == tmp_path / ".swecli" / "logs" / "s.log"
    assert path.stat().st_mode & 0o077 == 0
    assert (path.parent / ".gitignore").read_text().endswith("*\n")
    lines = path.read_bytes().splitlines()
    assert len(path.read_text().splitlines()) == len(lines)
    whole = json.loads(to_text(log_document("s", entries(sample()))))
    assert log_document("s", read_lines([*lines, b'{"torn": ', b"[1]"])) == whole


def test_it_rotates_and_goes_on_in_the_same_file_later(tmp_path: Path) -> None:
    first = log(tmp_path, max_bytes=4_000)
    for _ in range(40):
        first.write(sample())
    first.close()
    second = log(tmp_path, max_bytes=4_000)
    second.write(in_order(user("u1", TextPart("newest"))))
    second.close()
    files = log_files(tmp_path, "s")
    assert len(files) == KEPT + 1
    assert files[-1] == log_path(tmp_path, "s")
    assert "newest" in files[-1].read_text()
    assert all(json.loads(line) for file in files for line in file.read_text().splitlines())


def test_a_log_that_somebody_removes_is_begun_again(tmp_path: Path) -> None:
    written = log(tmp_path)
    written.write(sample())
    log_path(tmp_path, "s").unlink()
    written.write(sample())
    written.close()
    assert log_path(tmp_path, "s").stat().st_size > 0


@pytest.mark.parametrize("trap", ["folder", "logs", "file", "hard", "fifo"])
def test_no_link_leads_it_elsewhere(tmp_path: Path, trap: str) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    target = outside / "target"
    target.write_text("mine")
    logs = project / ".swecli" / "logs"
    if trap == "folder":
        (project / ".swecli").symlink_to(outside)
    else:
        logs.parent.mkdir()
    if trap == "logs":
        logs.symlink_to(outside)
    elif trap != "folder":
        logs.mkdir()
    if trap == "file":
        (logs / "s.log").symlink_to(target)
    elif trap == "hard":
        os.link(target, logs / "s.log")
    elif trap == "fifo":
        os.mkfifo(logs / "s.log")
    told: list[str] = []
    written = log(project)
    written.tell = told.append
    written.write(sample())
    written.write(sample())
    written.close()
    assert [path.name for path in outside.iterdir()] == ["target"]
    assert target.read_text() == "mine"
    assert len(told) == 1
    assert "Cannot write" in told[0]


def test_a_diagnosis_of_the_provider_that_differs_from_swecli_is_a_line() -> None:
    def answered_with(reason: str, *breaks: CacheBreak) -> list[dict[str, Any]]:
        report = ProviderReport(miss=reason)
        bodies = (
            StepEnded(1),
            ModelResponded("m1", (), Origin("", "", ""), report=report),
            *breaks,
            StepEnded(2),
        )
        events = [Event(number, 1.0, "s", 1, body) for number, body in enumerate(bodies, 1)]
        return [entry for entry in entries(events) if entry["type"] == "cache_diagnosis"]

    tools = CacheBreak("the tools changed", 70, "tools")
    assert answered_with("tools_changed", tools) == []
    assert answered_with("") == []
    (line,) = answered_with("system_changed", tools)
    assert (line["provider"], line["swecli"]) == ("system_changed", "tools")
    (line,) = answered_with("messages_changed")
    assert (line["provider"], line["swecli"]) == ("messages_changed", None)
