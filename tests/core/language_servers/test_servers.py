"""What edits bring, from servers of every kind."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Raw

from swecli.core.language_servers import peer, server
from swecli.core.language_servers.definitions import CodeError
from swecli.core.language_servers.servers import LanguageServerOptions
from swecli.core.protocol.events import MAIN
from swecli.core.workspace.server_log import ServerLog
from tests.core.engine.support import until
from tests.core.language_servers.support import PATIENT, Served, messages, served, unkind
from tests.support.waiting import PATIENCE, at_some_pace

ONE = "unkind reports 1 new error:\n"
KINDS = ((), ("pull",), ("register",), ("versionless", "stale"), ("pull", "busy"), ("nochange",), ("junk",), ("noisy",))
KINDS += (("tsserver", "interrupted", "versionless", "stale"),)


@pytest.mark.parametrize("ways", KINDS, ids="-".join)
async def test_an_edit_brings_its_own_errors_and_no_others(
    tmp_path: Path, ways: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def attempt(seconds: float) -> None:
        monkeypatch.setattr(server, "QUIET", seconds)
        monkeypatch.setattr(server, "FIRST_SECONDS", 50 * seconds)
        async with served(tmp_path, *ways) as made:
            made.file("a.txt", "ERR old\nfine\n")
            assert await made.edit("a.txt", "fine\nERR old\nfine\n") == ""
            assert await made.edit("a.txt", "fine\nERR old\nERR new\nWARN\n") == f"{ONE}a.txt:3: bad: ERR new [E1]"
            assert await made.edit("a.txt", "fine\nERR old\nERR new\nWARN\nmore\n") == ""
            assert await made.edit("a.txt", "fine\n") == ""

    await at_some_pace(attempt, server.QUIET)


async def test_a_server_that_says_nothing_of_clean_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def attempt(seconds: float) -> None:
        monkeypatch.setattr(server, "FIRST_SILENCE", seconds)
        monkeypatch.setattr(server, "SILENCE", seconds)
        async with served(tmp_path, "versionless", "silent") as made:
            made.file("a.txt", "fine\n")
            assert await made.edit("a.txt", "fine too\n") == ""
            assert await made.edit("a.txt", "fine too\nmore\n") == ""
            assert not made.server.behind
            assert await made.edit("a.txt", "ERR\n") == f"{ONE}a.txt:1: bad: ERR [E1]"

    await at_some_pace(attempt, 0.2)


async def test_silence_counts_as_work_until_a_server_is_known_to_leave_texts_unanswered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "FIRST_SILENCE", 0.2)
    monkeypatch.setattr(server, "SILENCE", PATIENCE)
    async with served(tmp_path, "versionless", "silent", "bare", wait=0.0) as made:
        assert await made.edit("a.txt", "fine\n") == ""
        assert made.servers.at_work(MAIN) == ["unkind"]
        await until(lambda: not made.server.behind, "the silence")
        assert await made.edit("a.txt", "fine too\n") == ""
        await until(lambda: made.server.state == "checking", "the check")
        assert made.server.late_checks(MAIN)
        assert made.servers.at_work(MAIN) == []


class CountedEvent(asyncio.Event):
    """Counts how often it is waited for."""

    waits = 0

    async def wait(self) -> Literal[True]:
        self.waits += 1
        return await super().wait()


@pytest.mark.parametrize("working", [True, False])
async def test_silence_means_no_errors_only_while_no_work_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, working: bool
) -> None:
    monkeypatch.setattr(server, "FIRST_SILENCE", 0.001)
    lists: list[server.Document] = []
    running = server.RunningServer(unkind().server, tmp_path, ServerLog(None, str), lists.append)
    document = server.Document(tmp_path / "a.txt", "text")
    document.text, document.news = "ERR\n", CountedEvent()
    running.documents[document.path] = document
    if working:
        running._told("$/progress", Raw(b'{"token": "t", "value": {"kind": "begin", "title": "lint"}}'))
    errors = asyncio.ensure_future(running.errors((document,)))
    await until(lambda: document.news.waits > 3 or errors.done(), "the silence")
    assert errors.done() is not working
    place = '{"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}'
    found = f'{{"range": {place}, "severity": 1, "message": "bad"}}'
    running._told(
        "textDocument/publishDiagnostics", Raw(f'{{"uri": "{document.uri}", "diagnostics": [{found}]}}'.encode())
    )
    (heard,) = await errors
    assert [one.message for one in heard] == (["bad"] if working else [])
    assert lists == [document]
    assert not running.leaves_unanswered, "it was slow, not silent"


async def test_errors_of_a_server_that_reads_the_disk_too_late_are_reported_as_perhaps_older(tmp_path: Path) -> None:
    read = tmp_path / "read"
    async with served(tmp_path, "disk", f"until={read}", "versionless", "bare", wait=0.0) as made:
        made.file("a.txt", "ERR old\nfine\n")
        assert await made.edit("a.txt", "ERR old\nERR new\n") == ""
        read.touch()
        await until(lambda: bool(made.host.notes), "the errors")
        assert made.host.notes == [
            "unkind reports 2 errors after an earlier edit:\n"
            "a.txt:1: bad: ERR old [E1] (perhaps older than the edit)\n"
            "a.txt:2: bad: ERR new [E1] (perhaps older than the edit)"
        ]
        assert await made.edit("a.txt", "ERR old\nERR new\nfine\n") == ""
        await until(lambda: not made.server.behind, "the second check")
        assert len(made.host.notes) == 1


async def test_texts_of_all_kinds(tmp_path: Path) -> None:
    async with served(tmp_path, "pull") as made:
        made.file("crlf.txt", "one\r\nERR old\r\nthree\r\n")
        assert await made.edit("crlf.txt", "zero\r\none\r\nERR old\r\n😀 ERR new\r\n") == (
            f"{ONE}crlf.txt:4: bad: 😀 ERR new [E1]"
        )
        assert await made.edit("some dir/ö #1?%.txt".replace(" dir/", " "), "ERR\n") == (
            f"{ONE}some ö #1?%.txt:1: bad: ERR [E1]"
        )
        (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00 \x80\n")
        assert await made.edit("bytes.txt", "ERR\n") == f"{ONE}bytes.txt:1: bad: ERR [E1]"
        (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n\x81\n")
        assert await made.edit("latin.txt", "ERR\n") == f"{ONE}latin.txt:1: bad: ERR [E1]"
        assert await made.edit("other.py", "ERR\n") == ""
        assert [server.name for server in made.servers.in_use.values()] == ["unkind"]


async def test_files_that_are_moved_deleted_and_too_large(tmp_path: Path) -> None:
    async with served(tmp_path, "pull") as made:
        made.file("old.txt", "ERR old\n")
        assert await made.edit("new.txt", "ERR old\n", ("old.txt", None)) == ""
        assert await made.edit("new.txt", None) == ""
        assert made.server.open_files == 0
        assert await made.edit("large.txt", "ERR " + "x" * 5_000_000) == ""
        assert list(made.servers.left_out) == [str(made.folder / "large.txt")]
        assert await made.edit("large.txt", "small ERR\n") == f"{ONE}large.txt:1: bad: small ERR [E1]"
        assert made.servers.left_out == {}


async def test_a_flood_is_counted_and_capped(tmp_path: Path) -> None:
    async with served(tmp_path, most=3) as made:
        made.file("a.txt", "fine\n")
        await made.edit("a.txt", "fine\n\n")
        text = await made.edit("a.txt", "FLOOD\n")
        assert "100,000 new errors" in text
        assert text.endswith("and 99,997 more")
        assert len(text.splitlines()) == 5


async def test_what_comes_late_is_told_later(tmp_path: Path) -> None:
    checked = tmp_path / "checked"
    async with served(tmp_path, f"late={checked}", wait=0.1) as made:
        made.file("a.txt", "fine\n")
        await made.servers.expect([str(made.folder / "a.txt")])
        await until(lambda: made.server.open_files == 1, "the first look")
        assert await made.edit("a.txt", "ERR late\n") == ""
        assert made.server.behind
        assert await made.edit("b.md", "ERR elsewhere\n") == ""  # nobody waits for one that is behind
        assert made.host.notes == []
        checked.touch()
        await until(lambda: len(made.host.notes) == 2, "the late notes")
        assert made.host.notes[0] == "unkind reports 1 new error after an earlier edit:\na.txt:1: bad: ERR late [E1]"
        assert made.host.titles[0] == "unkind reports 1 new error after an earlier edit: a.txt:1"
        assert not made.server.behind


async def test_late_errors_that_the_next_edit_mends_are_not_told(tmp_path: Path) -> None:
    checked = tmp_path / "checked"
    async with served(tmp_path, f"late={checked}", wait=0.05) as made:
        made.file("a.txt", "fine\n")
        await made.servers.expect([str(made.folder / "a.txt")])
        await until(lambda: made.server.open_files == 1, "the first look")
        for text in ("ERR one\n", "ERR one\nERR two\n", "ERR two\n"):
            assert await made.edit("a.txt", text) == ""
        checked.touch()
        await until(lambda: not made.server.behind, "the checks")
        assert made.host.notes == ["unkind reports 1 new error after an earlier edit:\na.txt:1: bad: ERR two [E1]"]


async def test_late_errors_of_a_subagent_are_told_to_it(tmp_path: Path) -> None:
    checked = tmp_path / "checked"
    async with served(tmp_path, f"late={checked}", wait=0.05) as made:
        made.file("a.txt", "fine\n")
        await made.servers.expect([str(made.folder / "a.txt")])
        await until(lambda: made.server.open_files == 1, "the first look")
        assert await made.edit("a.txt", "ERR\n", agent="explore 1") == ""
        checked.touch()
        await until(lambda: not made.server.behind, "the check")
        assert await made.servers.brought((), "explore 2") == ""
        assert "after an earlier edit" in await made.servers.brought((), "explore 1"), "with its next call of any tool"
        assert await made.servers.brought((), "explore 1") == ""
        assert made.host.notes == []


async def test_a_server_that_still_reads_the_project_is_waited_for_in_the_background(tmp_path: Path) -> None:
    read = tmp_path / "read"
    async with served(tmp_path, f"reads={read}", "pull", wait=0.05) as made:
        made.file("a.txt", "ERR old\n")
        assert await made.edit("a.txt", "ERR old\nERR new\n") == ""
        read.touch()
        await until(lambda: bool(made.host.notes), "the late note")
        assert made.host.notes[0].endswith("a.txt:2: bad: ERR new [E1]")


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("dead", "it ended with status 3: error: no such component"),
        ("crash", "it ended with status 7: Segmentation fault, so sorry"),
        ("huge", "it sent a message of more than 64 MB"),
    ],
)
async def test_a_server_that_fails_is_told_once_and_given_up(tmp_path: Path, way: str, reason: str) -> None:
    async with served(tmp_path, way) as made:
        made.file("a.txt", "fine\n")
        for count in range(6):
            assert await made.edit("a.txt", f"ERR {count}\n") == ""
            await until(lambda: made.server.state == "failed", "the failure")
        assert made.server.error == reason
        assert made.host.notices == [f"The language server unkind failed: {reason}. Edits continue without its errors."]
        with pytest.raises(CodeError, match="3 times"):
            await made.servers.ask("outline", made.folder / "a.txt")


async def test_a_program_whose_input_closes_first_still_tells_why_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "GRACE", PATIENCE)
    program = peer.Peer(ServerLog(None, str), lambda method, params: None, lambda method, params: None)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"exec 0<&-; read line <{gate}; echo no such component >&2; exit 3"
    await program.start(peer.Command(("sh", "-c", script), tmp_path, os.environ))
    process = program._process
    assert process is not None
    assert process.stdin is not None
    await until(process.stdin.is_closing, "the closed input")
    asked = asyncio.ensure_future(program.request("initialize", {}, PATIENCE))
    await asyncio.sleep(0)
    assert not asked.done()
    await asyncio.to_thread(gate.write_text, "go\n")
    with pytest.raises(peer.ServerEnded, match="it ended with status 3: no such component"):
        await asked
    await program.close("the test is over")


async def test_where_the_first_can_not_be_started_the_next_is_used(tmp_path: Path) -> None:
    others = (unkind("pull", name="second"), unkind("pull", name="third"))
    made = Served(tmp_path, unkind("dead"), LanguageServerOptions(PATIENT), None, *others)
    made.file("a.txt", "fine\n")
    assert await made.edit("a.txt", "ERR\n") == "second reports 1 new error:\na.txt:1: bad: ERR [E1]"
    assert await made.edit("a.txt", "fine too\n") == ""
    assert [server.state for server in made.servers.in_use.values()] == ["failed", "ready"]
    assert made.host.notices == []
    await made.servers.close()


async def test_one_that_never_answers_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "START_SECONDS", 0.3)
    async with served(tmp_path, "mute", wait=0.1) as made:
        made.file("a.txt", "fine\n")
        assert await made.edit("a.txt", "ERR\n") == ""
        await until(lambda: made.server.state == "failed", "the end")
        assert "did not answer" in made.server.error


async def test_it_restarts_after_one_crash(tmp_path: Path) -> None:
    async with served(tmp_path, "pull") as made:
        made.file("a.txt", "fine\n")
        assert await made.edit("a.txt", "ERR\n")
        pid = made.server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: made.server.state == "failed", "the end")
        assert await made.edit("a.txt", "ERR\nERR two\n") == f"{ONE}a.txt:2: bad: ERR two [E1]"
        assert made.server.pid not in (None, pid)


async def test_questions_of_a_server(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with served(tmp_path, "asks", f"record={record}", settings={"a": {"b": 1}}) as made:
        made.file("a.txt", "fine\n")
        await made.edit("a.txt", "ERR\n")
        await until(lambda: sum("method" not in one for one in messages(record)) == 7, "all answers")
    said = messages(record)
    answers: list[Any] = [one.get("result", one.get("error")) for one in said if "method" not in one]
    assert answers[0] == [1, None, {"a": {"b": 1}}]
    assert answers[2] == {"applied": False, "failureReason": "swecli does not let servers change files"}
    assert answers[1] is answers[3] is answers[4] is answers[5] is None
    assert answers[6]["code"] == -32601
    first = said[0]["params"]
    assert first["processId"] is None
    assert first["rootUri"] == tmp_path.as_uri()
    saved = [one["params"] for one in said if one.get("method") == "textDocument/didSave"]
    assert saved[-1]["text"] == "ERR\n"
    assert [one.get("method") for one in said][-2:] == ["shutdown", "exit"]


async def test_changes_behind_its_back_are_told(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with served(tmp_path, "pull", f"record={record}") as made:
        made.file("a.txt", "fine\n")
        made.file("gone.md", "")
        made.file("node_modules/x.txt", "")
        await made.edit("a.txt", "fine\nmore\n")
        made.file("sub/new.md", "")
        (tmp_path / "gone.md").unlink()
        await made.edit("a.txt", "fine\n")
        told = [one["params"]["changes"] for one in messages(record) if one.get("method", "").endswith("WatchedFiles")]
    assert {(one["uri"].rpartition("/")[2], one["type"]) for one in told[-1]} == {
        ("a.txt", 2),
        ("new.md", 1),
        ("gone.md", 3),
    }


async def test_an_idle_server_ends_and_comes_back(tmp_path: Path) -> None:
    async with served(tmp_path, "pull", idle=0.2) as made:
        made.file("a.txt", "fine\n")
        assert await made.edit("a.txt", "ERR\n")
        await until(lambda: made.server.state == "idle", "the end")
        assert made.server.pid is None
        assert await made.edit("a.txt", "ERR\nERR 2\n") == f"{ONE}a.txt:2: bad: ERR 2 [E1]"


async def test_one_that_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "GRACE", 0.1)
    async with served(tmp_path, "deaf", "pull") as made:
        made.file("a.txt", "fine\n")
        assert await made.edit("a.txt", "ERR\n")


async def test_stop_and_restart(tmp_path: Path) -> None:
    async with served(tmp_path, "pull") as made:
        made.file("a.txt", "fine\n")
        assert await made.edit("a.txt", "ERR\n")
        await made.server.stop()
        assert await made.edit("a.txt", "ERR\nERR\n") == ""
        await made.server.restart()
        await until(lambda: made.server.state == "ready", "the start")
        assert await made.edit("a.txt", "fine\nERR 3\n")


async def test_a_program_of_the_workspace_needs_a_sandbox(tmp_path: Path) -> None:
    async with served(tmp_path, "pull", inside=True) as made:
        made.file("a.txt", "fine\n")
        assert await made.edit("a.txt", "ERR\n") == ""
        assert "is a file of the workspace" in made.server.error


async def test_one_process_for_all_parts_of_a_project(tmp_path: Path) -> None:
    async with served(tmp_path, "pull") as made:
        for name in ("mark.toml", "one/mark.toml", "two/a.txt", "one/a.txt"):
            made.file(name, "")
        assert await made.edit("one/a.txt", "ERR\n", ("two/a.txt", "ERR\n"))
        assert [server.root for server in made.servers.in_use.values()] == [made.folder]
        assert made.servers.server_for(tmp_path.parent / "outside.txt") is None


async def test_the_log_is_kept_within_bounds(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    async with served(tmp_path, "noisy", logs=logs) as made:
        made.file("a.txt", "fine\n")
        assert await made.edit("a.txt", "ERR\n")
    assert sum(path.stat().st_size for path in logs.iterdir()) <= 2_100_000


async def test_what_the_model_asks(tmp_path: Path) -> None:
    async with served(tmp_path, "pull") as made:
        path = made.file("a.txt", "one 😀 two\nthree two\n")
        (first,) = await made.servers.ask("definition", path, 2, 6)
        assert (first.path, first.line) == (path, 1)
        assert [one.line for one in await made.servers.ask("references", path, 1, 6)] == [1, 2]
        outline = await made.servers.ask("outline", path)
        assert [(one.name, one.kind, one.depth) for one in outline] == [("outer", "class", 0), ("inner", "function", 1)]
        assert [(one.name, one.line) for one in await made.servers.search("three", None)] == [("three", 2)]
        with pytest.raises(CodeError, match="has 3 lines"):
            await made.servers.ask("references", path, 9, 0)
        with pytest.raises(CodeError, match=r"servers handle \.md, \.txt"):
            await made.servers.ask("outline", tmp_path / "a.py")
        with pytest.raises(CodeError, match="does not exist"):
            await made.servers.ask("outline", tmp_path / "none.txt")


async def test_a_server_without_a_feature_says_so(tmp_path: Path) -> None:
    async with served(tmp_path, "bare", "pull") as made:
        path = made.file("a.txt", "one\n")
        with pytest.raises(CodeError, match="does not answer this"):
            await made.servers.ask("references", path, 1, 0)


async def test_nothing_starts_before_it_is_used(tmp_path: Path) -> None:
    async with served(tmp_path) as made:
        made.file("a.txt", "fine\n")
        await asyncio.sleep(0)
        assert made.servers.in_use == {}


async def test_closing_in_the_middle_of_everything(tmp_path: Path) -> None:
    async with served(tmp_path, f"late={tmp_path / 'never'}", wait=0.05) as made:
        made.file("a.txt", "fine\n")
        assert await made.edit("a.txt", "ERR\n") == ""
